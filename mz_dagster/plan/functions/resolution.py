"""Which implementation a call means.

Owns PostgreSQL's resolution of overloaded functions and operators ("10.2 Operators", "10.3 Functions" of its manual),
over the table in `table.py`. It decides on kinds; scales of numerics come after, from the chosen overload's rule.
Nothing here raises for a user's mistake: the outcome is a `Resolved` or a `Failure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mz_dagster.plan.functions.casts import (
    CATEGORY,
    PREFERRED,
    CastContext,
    cast,
    common_type,
    implicitly_castable,
    numeric_scale,
)
from mz_dagster.plan.functions.signature import (
    ArgumentType,
    Cast,
    Failure,
    Overload,
    Resolved,
    Unknown,
    default_type,
    type_name,
)
from mz_dagster.plan.functions.table import (
    EXTRACT_FIELDS,
    FUNCTIONS,
    OPERATORS,
    OVERLOADS,
    TRUNC_UNITS,
    field_name,
)
from mz_dagster.plan.types import BOOL, FLOAT8, TEXT, TIMESTAMPTZ, Kind, ScalarType, numeric

_CASTS_HINT = "You might need to add explicit type casts."
_TESTS = {
    "is null": "is_null",
    "is not null": "is_not_null",
    "is unknown": "is_null",
    "is not unknown": "is_not_null",
    "is true": "is_true",
    "is not true": "is_not_true",
    "is false": "is_false",
    "is not false": "is_not_false",
}
_VARIADIC = ("coalesce", "greatest", "least")


def resolve_operator(
    operator: str, arguments: Sequence[ArgumentType], literals: Sequence[object] = ()
) -> Resolved | Failure:
    """Returns what `operator` over arguments of these types means.

    Besides the symbols, the operators are `and`, `or`, `not`, `is [not] null|true|false|unknown`, `is [not] distinct
    from`, `[not] like`, `[not] ilike`; in lower case. `!=` is `<>`.

    Example:
        >>> from mz_dagster.plan.types import INT4, INT8
        >>> resolve_operator("+", [INT4, INT8]).implementation
        'add_int8'
        >>> print(resolve_operator("+", [INT4, TEXT]))
        42883 operator does not exist: integer + text
    """
    name = "<>" if operator == "!=" else operator
    if name in ("and", "or"):
        return _coerced(name, arguments, [BOOL] * len(arguments), BOOL)
    if name in _TESTS:
        about_bool = not name.endswith("null")
        target = BOOL if about_bool else default_type(arguments[0])
        return _coerced(_TESTS[name], arguments, [target], BOOL)
    if name in ("is distinct from", "is not distinct from"):
        equal = resolve_operator("=", arguments)
        if isinstance(equal, Failure):
            return equal
        return _coerced(name.replace(" ", "_"), arguments, equal.argument_types, BOOL)
    if name == "+" and len(arguments) == 1:
        return _unary_plus(arguments[0])
    if name in ("+", "-") and len(arguments) == 2 and _date_and_unknown(name, arguments):
        return Failure("0A000", "there is no interval type", "Add whole days to a date: d + 90, or d + '90 days'.")
    unary_minus = name == "-" and len(arguments) == 1
    if (name in ("*", "/") or unary_minus) and all(isinstance(one, Unknown) for one in arguments):
        # PostgreSQL has these of geometric types, intervals and money, too.
        return _ambiguous(name, arguments)
    return _resolve(name, arguments, literals)


def resolve_function(
    sql_name: str, arguments: Sequence[ArgumentType], literals: Sequence[object] = ()
) -> Resolved | Failure:
    """Returns what a call of `sql_name`, in lower case, with arguments of these types means.

    `coalesce`, `greatest`, `least`, `concat` and `concat_ws` are resolved here too. `extract`, `date_part` and
    `date_trunc` have `resolve_extract`, `resolve_date_part` and `resolve_date_trunc`: their field is part of the
    implementation's name. `nullif(a, b)` is `If(a = b, NULL, a)`.

    Args:
        sql_name: For example `length`.
        arguments: The arguments' types.
        literals: The values of those arguments that are literals, by position, else None; `round(x, 2)` takes its
            scale from there.
    """
    if sql_name in _VARIADIC:
        if not arguments:
            return Failure("42883", f"function {sql_name}() does not exist")
        type_ = common_type(arguments, sql_name.upper())
        if isinstance(type_, Failure):
            return type_
        return _coerced(sql_name, arguments, [type_] * len(arguments), type_)
    if sql_name in ("concat", "concat_ws"):
        return _concat(sql_name, arguments)
    return _resolve(sql_name, arguments, literals)


def resolve_extract(field: str, argument: ArgumentType) -> Resolved | Failure:
    """Returns what `extract(field FROM argument)` means; its result is numeric.

    Example:
        >>> from mz_dagster.plan.types import DATE
        >>> resolve_extract("YEAR", DATE).implementation
        'extract_year_date'
    """
    name = field_name(field)
    if isinstance(argument, Unknown):
        return Failure("42725", "function pg_catalog.extract(unknown, unknown) is not unique", _CASTS_HINT)
    if argument.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return Failure("42883", f"function pg_catalog.extract(unknown, {type_name(argument)}) does not exist")
    if name not in EXTRACT_FIELDS:
        if name in ("julian",):
            return Failure("0A000", f'unit "{field}" is not supported')
        return Failure("22023", f'unit "{field}" not recognized for type {type_name(argument)}')
    kinds, scale = EXTRACT_FIELDS[name]
    if argument.kind not in kinds:
        return Failure("0A000", f'unit "{field}" not supported for type {type_name(argument)}')
    if name == "epoch" and argument.kind is Kind.DATE:
        scale = 0
    function = FUNCTIONS[f"extract_{name}_{_short(argument)}"]
    return Resolved(function, (argument,), numeric(scale), (None,))


def resolve_date_part(field: str, argument: ArgumentType) -> tuple[Resolved, Cast] | Failure:
    """Returns what `date_part(field, argument)` means: an extract, and the cast of its result to double precision.

    PostgreSQL's `date_part` of a date reads it as a timestamp. Fields with a fraction are refused: PostgreSQL reckons
    them in floating point, step by step, and the last digit would differ.
    """
    if field_name(field) in ("epoch", "second", "milliseconds"):
        return Failure("0A000", f'date_part of "{field}" is not supported', "Use extract, which is exact.")
    if isinstance(argument, ScalarType) and argument.kind is Kind.DATE:
        resolved = resolve_extract(field, ScalarType(Kind.TIMESTAMP))
        if isinstance(resolved, Failure):
            return resolved
        widened = cast(argument, ScalarType(Kind.TIMESTAMP))
        assert isinstance(widened, Cast)
        resolved = Resolved(resolved.function, resolved.argument_types, resolved.result_type, (widened,))
    else:
        resolved = resolve_extract(field, argument)
        if isinstance(resolved, Failure):
            return resolved
    to_float = cast(resolved.result_type, FLOAT8)
    assert isinstance(to_float, Cast)
    return resolved, to_float


def resolve_date_trunc(unit: str, argument: ArgumentType) -> Resolved | Failure:
    """Returns what `date_trunc(unit, argument)` means; a date is read as a timestamptz, as in PostgreSQL."""
    name = field_name(unit)
    if isinstance(argument, ScalarType) and argument.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return Failure("42883", f"function date_trunc(unknown, {type_name(argument)}) does not exist")
    target = argument if isinstance(argument, ScalarType) and argument.kind is not Kind.DATE else TIMESTAMPTZ
    if name not in TRUNC_UNITS:
        state = "0A000" if name in EXTRACT_FIELDS else "22023"
        word = "not supported" if name in EXTRACT_FIELDS else "not recognized"
        return Failure(state, f'unit "{unit}" {word} for type {type_name(target)}')
    return _coerced(f"date_trunc_{name}_{_short(target)}", [argument], [target], target)


def _short(type_: ScalarType) -> str:
    return {Kind.DATE: "date", Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamptz"}[type_.kind]


def _unary_plus(argument: ArgumentType) -> Resolved | Failure:
    negated = _resolve("-", [argument], ())
    if isinstance(negated, Failure):
        return Failure(negated.sqlstate, negated.message.replace("- ", "+ ", 1), negated.hint)
    type_ = negated.result_type
    return _coerced("coalesce", [argument], [type_], type_)


def _date_and_unknown(name: str, arguments: Sequence[ArgumentType]) -> bool:
    """Tells `date + '1'`, which in PostgreSQL adds an interval; `date - '...'` subtracts a date, as here."""
    kinds = [one.kind if isinstance(one, ScalarType) else None for one in arguments]
    dated = {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ} & set(kinds)
    if not dated or None not in kinds:
        return False
    return name == "+"


def _concat(sql_name: str, arguments: Sequence[ArgumentType]) -> Resolved | Failure:
    fewest = 1 if sql_name == "concat" else 2
    if len(arguments) < fewest:
        return _no_match(sql_name, arguments)
    casts: list[Cast | None] = []
    for argument in arguments:
        if isinstance(argument, ScalarType) and argument.kind is Kind.BOOL:
            casts.append(Cast("output_bool", argument, TEXT, False))
            continue
        found = None if isinstance(argument, Unknown) else cast(argument, TEXT, CastContext.ASSIGNMENT)
        if isinstance(found, Failure):
            return found
        casts.append(found if found is not None and found.function else None)
    return Resolved(FUNCTIONS[sql_name], tuple(TEXT for _ in arguments), TEXT, tuple(casts))


def _coerced(
    implementation: str, arguments: Sequence[ArgumentType], targets: Sequence[ScalarType], result: ScalarType
) -> Resolved | Failure:
    casts: list[Cast | None] = []
    for argument, target in zip(arguments, targets, strict=True):
        if isinstance(argument, Unknown):
            casts.append(None)
            continue
        found = cast(argument, target, CastContext.IMPLICIT)
        if isinstance(found, Failure):
            if target == BOOL:
                word = implementation.replace("_", " ").upper()
                return Failure("42804", f"argument of {word} must be type boolean, not type {type_name(argument)}")
            return found
        casts.append(found if found.function else None)
    return Resolved(FUNCTIONS[implementation], tuple(targets), result, tuple(casts))


def _resolve(sql_name: str, arguments: Sequence[ArgumentType], literals: Sequence[object]) -> Resolved | Failure:
    candidates = [one for one in OVERLOADS.get(sql_name, ()) if len(one.signature) == len(arguments)]
    chosen = choose(candidates, arguments)
    if chosen is None:
        return _no_match(sql_name, arguments)
    if chosen == "ambiguous":
        return _ambiguous(sql_name, arguments)
    assert isinstance(chosen, Overload)
    if chosen.refused:
        arrays = Kind.ARRAY in chosen.signature
        shown = _shown(sql_name, arguments if arrays else [ScalarType(kind) for kind in chosen.signature])
        return Failure("0A000", f"{shown} is not supported", f"{chosen.refused[0].upper()}{chosen.refused[1:]}.")
    function = FUNCTIONS[chosen.implementation]
    targets = [
        ScalarType(kind, numeric_scale(argument)) if kind is Kind.NUMERIC else ScalarType(kind)
        for kind, argument in zip(function.arguments, arguments, strict=True)
    ]
    result = _result_type(chosen, targets, literals)
    if isinstance(result, Failure):
        return result
    casts: list[Cast | None] = []
    for argument, target in zip(arguments, targets, strict=True):
        found = None if isinstance(argument, Unknown) else cast(argument, target, CastContext.ASSIGNMENT)
        if isinstance(found, Failure):
            return found
        casts.append(found if found is not None and found.function else None)
    return Resolved(function, tuple(targets), result, tuple(casts))


def _result_type(overload: Overload, targets: Sequence[ScalarType], literals: Sequence[object]) -> ScalarType | Failure:
    kind = FUNCTIONS[overload.implementation].result
    assert kind is not None
    if kind is not Kind.NUMERIC:
        return ScalarType(kind)
    assert overload.scale is not None
    scale = overload.scale(targets, literals)
    return scale if isinstance(scale, Failure) else numeric(scale)


def choose(candidates: Sequence[Overload], arguments: Sequence[ArgumentType]) -> Overload | str | None:
    """Returns the best of `candidates`, `"ambiguous"`, or None if none fits.

    The steps are those of `func_select_candidate`: an exact match; an undecided operand taken for the other's type;
    what implicit casts allow; most exact matches; most preferred types; the category of undecided arguments.
    """
    kinds = [None if isinstance(one, Unknown) else one.kind for one in arguments]
    if Kind.MZ_TIMESTAMP not in kinds:
        # Not PostgreSQL's: it must not make `date = integer` legal.
        candidates = [one for one in candidates if Kind.MZ_TIMESTAMP not in one.signature]
    exact = _first(one for one in candidates if list(one.signature) == kinds)
    if exact is not None:
        return exact
    if len(kinds) == 2 and kinds.count(None) == 1:
        same = [kinds[0] or kinds[1]] * 2
        assumed = _first(one for one in candidates if list(one.signature) == same)
        if assumed is not None:
            return assumed
    left = [
        one
        for one in candidates
        if all(have is None or implicitly_castable(have, want) for have, want in zip(kinds, one.signature, strict=True))
    ]
    if len(left) <= 1:
        return left[0] if left else None
    left = _most(left, lambda one: sum(have is want for have, want in zip(kinds, one.signature, strict=True)))
    if len(left) > 1:
        left = _most(
            left,
            lambda one: sum(
                have is not None and (have is want or (want in PREFERRED and CATEGORY[want] == CATEGORY[have]))
                for have, want in zip(kinds, one.signature, strict=True)
            ),
        )
    if len(left) > 1 and None in kinds:
        left = _by_category(left, kinds)
    if len(left) > 1 and None in kinds:
        known = {kind for kind in kinds if kind is not None}
        if len(known) == 1:
            (kind,) = known
            fitting = [one for one in left if all(implicitly_castable(kind, want) for want in one.signature)]
            left = fitting if len(fitting) == 1 else left
    return left[0] if len(left) == 1 else "ambiguous"


def _first(overloads: Iterable[Overload]) -> Overload | None:
    return next(iter(overloads), None)


def _most(overloads: list[Overload], count: Callable[[Overload], int]) -> list[Overload]:
    counts = [count(one) for one in overloads]
    return [one for one, n in zip(overloads, counts, strict=True) if n == max(counts)]


def _by_category(overloads: list[Overload], kinds: Sequence[Kind | None]) -> list[Overload]:
    """Applies the rule for undecided arguments: text if any candidate takes it there, else the common category."""
    categories: list[str | None] = []
    preferred: list[bool] = []
    for position, kind in enumerate(kinds):
        if kind is not None:
            categories.append(None)
            preferred.append(False)
            continue
        wanted = {CATEGORY[one.signature[position]] for one in overloads}
        category = "S" if "S" in wanted else wanted.pop() if len(wanted) == 1 else None
        if category is None:
            return overloads
        categories.append(category)
        preferred.append(
            any(
                CATEGORY[one.signature[position]] == category and one.signature[position] in PREFERRED
                for one in overloads
            )
        )

    def fits(one: Overload) -> bool:
        for position, category in enumerate(categories):
            want = one.signature[position]
            if category is not None and (CATEGORY[want] != category or (preferred[position] and want not in PREFERRED)):
                return False
        return True

    return [one for one in overloads if fits(one)] or overloads


def _shown(sql_name: str, arguments: Sequence[ArgumentType]) -> str:
    names = [type_name(one) for one in arguments]
    symbol = {"like": "~~", "not like": "!~~", "ilike": "~~*", "not ilike": "!~~*"}.get(sql_name, sql_name)
    if symbol not in OPERATORS:
        return f"function {sql_name}({', '.join(names)})"
    return f"operator {names[0]} {symbol} {names[1]}" if len(names) == 2 else f"operator {symbol} {names[0]}"


def _no_match(sql_name: str, arguments: Sequence[ArgumentType]) -> Failure:
    shown = _shown(sql_name, arguments)
    if shown.startswith("operator"):
        return Failure(
            "42883",
            f"operator does not exist: {shown.removeprefix('operator ')}",
            f"No operator matches the given name and argument types. {_CASTS_HINT}",
        )
    return Failure(
        "42883", f"{shown} does not exist", f"No function matches the given name and argument types. {_CASTS_HINT}"
    )


def _ambiguous(sql_name: str, arguments: Sequence[ArgumentType]) -> Failure:
    shown = _shown(sql_name, arguments)
    if shown.startswith("operator"):
        return Failure(
            "42725",
            f"operator is not unique: {shown.removeprefix('operator ')}",
            f"Could not choose a best candidate operator. {_CASTS_HINT}",
        )
    return Failure("42725", f"{shown} is not unique", f"Could not choose a best candidate function. {_CASTS_HINT}")
