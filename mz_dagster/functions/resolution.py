"""Which implementation a call means.

Owns PostgreSQL's resolution of overloaded functions and operators ("10.2 Operators", "10.3 Functions" of its manual),
over the table in `table.py`. It decides on kinds; scales of numerics come after, from the chosen overload's rule.
Nothing here raises for a user's mistake: the outcome is a `Resolved` or a `Failure`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from mz_dagster.functions.casts import (
    CATEGORY,
    PREFERRED,
    CastContext,
    cast,
    common_type,
    implicitly_castable,
    numeric_scale,
    short_name,
)
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import COMPARISONS, Overload
from mz_dagster.functions.literals import numeric_type_of
from mz_dagster.functions.moments.field_names import (
    DATE_PARTS,
    EXTRACT_FIELDS,
    INTERVAL_FIELDS,
    INTERVAL_UNITS,
    TIME_FIELDS,
    TIMETZ_FIELDS,
    TRUNC_UNITS,
    field_name,
)
from mz_dagster.functions.numbers.known_numbers import fits, known_result
from mz_dagster.functions.polymorphic import has_order, resolve_polymorphic
from mz_dagster.functions.signature import ArgumentType, Cast, Resolved, Unknown, default_type, type_name
from mz_dagster.functions.table import FUNCTIONS, OVERLOADS, TABLE_OVERLOADS
from mz_dagster.scalars.types import (
    BOOL,
    FLOAT8,
    INTERVAL,
    TEXT,
    TIMESTAMPTZ,
    UNCONSTRAINED,
    Kind,
    ScalarType,
    array_of,
    numeric,
)

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
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_VARIADIC = ("coalesce", "greatest", "least")
#: Kinds whose values concat() shows otherwise than the cast to text does.
_OUTPUTS = {Kind.BOOL: "output_bool", Kind.CHAR: "output_bpchar"}


def resolve_operator(
    operator: str, arguments: Sequence[ArgumentType], literals: Sequence[object] = ()
) -> Resolved | Failure:
    """Returns what `operator` over arguments of these types means.

    Besides the symbols, the operators are `and`, `or`, `not`, `is [not] null|true|false|unknown`, `is [not] distinct
    from`, `[not] like`, `[not] ilike`; in lower case. `!=` is `<>`.

    Example:
        >>> from mz_dagster.scalars.types import INT4, INT8
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
    unary_minus = name == "-" and len(arguments) == 1
    if (name in ("*", "/") or unary_minus) and all(isinstance(one, Unknown) for one in arguments):
        # PostgreSQL has these of geometric types, intervals and money, too.
        return ambiguous(name, arguments)
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
        if type_.kind is Kind.JSON and sql_name != "coalesce":
            return Failure("42883", "could not identify a comparison function for type json")
        if type_.kind is Kind.JSONB and sql_name != "coalesce":
            return Failure("0A000", f"{sql_name} of jsonb is not supported", "Write CASE WHEN a < b THEN a ELSE b END.")
        if not has_order(type_) and sql_name != "coalesce":
            return Failure("0A000", f"{sql_name} of {type_name(type_)} is not supported", "Compare fields or elements.")
        return _coerced(sql_name, arguments, [type_] * len(arguments), type_)
    if sql_name in ("concat", "concat_ws"):
        return _concat(sql_name, arguments)
    return _resolve(sql_name, arguments, literals)


def resolve_extract(field: str, argument: ArgumentType) -> Resolved | Failure:
    """Returns what `extract(field FROM argument)` means; its result is numeric.

    Example:
        >>> from mz_dagster.scalars.types import DATE
        >>> resolve_extract("YEAR", DATE).implementation
        'extract_year_date'
    """
    name = field_name(field)
    if isinstance(argument, Unknown):
        return Failure("42725", "function pg_catalog.extract(unknown, unknown) is not unique", _CASTS_HINT)
    fields = _fields_of(argument.kind)
    if not fields:
        return Failure("42883", f"function pg_catalog.extract(unknown, {type_name(argument)}) does not exist")
    if name not in fields:
        if name == "julian" and argument.kind in _MOMENTS:
            return Failure("0A000", f'unit "{field}" is not supported')
        if name in EXTRACT_FIELDS or name == "julian":
            return Failure("0A000", f'unit "{field}" not supported for type {type_name(argument)}')
        return Failure("22023", f'unit "{field}" not recognized for type {type_name(argument)}')
    scale = fields[name]
    if name == "epoch" and argument.kind is Kind.DATE:
        scale = 0
    function = FUNCTIONS[f"extract_{name}_{short_name(argument.kind)}"]
    return Resolved(function, (argument,), numeric(scale), (None,))


def _fields_of(kind: Kind) -> Mapping[str, int]:
    """Returns the fields that `extract` knows of a kind, each with the scale of its values."""
    if kind is Kind.TIME:
        return TIME_FIELDS
    if kind is Kind.TIMETZ:
        return TIMETZ_FIELDS
    if kind is Kind.INTERVAL:
        return INTERVAL_FIELDS
    return {name: scale for name, (kinds, scale) in EXTRACT_FIELDS.items() if kind in kinds}


def resolve_date_part(field: str, argument: ArgumentType) -> tuple[Resolved, Cast] | Failure:
    """Returns what `date_part(field, argument)` means: an extract, and the cast of its result to double precision.

    PostgreSQL's `date_part` of a date reads it as a timestamp. Fields with a fraction have implementations of their
    own, which return doubles: PostgreSQL reckons them in floating point, step by step.
    """
    name = field_name(field)
    if name in DATE_PARTS and isinstance(argument, ScalarType) and _fields_of(argument.kind):
        target = ScalarType(Kind.TIMESTAMP) if argument.kind is Kind.DATE else argument
        own = _coerced(f"date_part_{name}_{short_name(target.kind)}", [argument], [target], FLOAT8)
        return own if isinstance(own, Failure) else (own, Cast("", FLOAT8, FLOAT8, False))
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
    kind = argument.kind if isinstance(argument, ScalarType) else Kind.DATE
    if kind not in (*_MOMENTS, Kind.TIME, Kind.INTERVAL):
        return Failure("42883", f"function date_trunc(unknown, {type_name(argument)}) does not exist")
    target = TIMESTAMPTZ if kind is Kind.DATE else INTERVAL if kind is Kind.TIME else ScalarType(kind)
    units: Collection[str] = INTERVAL_UNITS if target == INTERVAL else TRUNC_UNITS
    if name == "week" and target == INTERVAL:
        return Failure("0A000", f'unit "{unit}" not supported for type interval', "Months have fractions of weeks.")
    if name not in units:
        state = "0A000" if name in EXTRACT_FIELDS else "22023"
        word = "not supported" if name in EXTRACT_FIELDS else "not recognized"
        return Failure(state, f'unit "{unit}" {word} for type {type_name(target)}')
    return _coerced(f"date_trunc_{name}_{short_name(target.kind)}", [argument], [target], target)


def _unary_plus(argument: ArgumentType) -> Resolved | Failure:
    if argument == INTERVAL:
        return no_match("+", [argument])
    negated = _resolve("-", [argument], ())
    if isinstance(negated, Failure):
        return Failure(negated.sqlstate, negated.message.replace("- ", "+ ", 1), negated.hint)
    type_ = negated.result_type
    return _coerced("coalesce", [argument], [type_], type_)


def _concat(sql_name: str, arguments: Sequence[ArgumentType]) -> Resolved | Failure:
    fewest = 1 if sql_name == "concat" else 2
    if len(arguments) < fewest:
        return no_match(sql_name, arguments)
    casts: list[Cast | None] = []
    for argument in arguments:
        output = _OUTPUTS.get(argument.kind) if isinstance(argument, ScalarType) else None
        if output is not None and isinstance(argument, ScalarType):
            casts.append(Cast(output, argument, TEXT, False))
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


def resolve_table_function(
    sql_name: str, arguments: Sequence[ArgumentType], literals: Sequence[object] = ()
) -> Resolved | Failure:
    """Returns what a call of a function that returns rows means: the one that returns them as an array.

    Example:
        >>> from mz_dagster.scalars.types import INT4, INT8
        >>> str(resolve_table_function("generate_series", [INT4, INT8]).result_type)
        'bigint[]'
    """
    return _resolve(sql_name, arguments, literals, TABLE_OVERLOADS)


def _resolve(
    sql_name: str,
    arguments: Sequence[ArgumentType],
    literals: Sequence[object],
    overloads: Mapping[str, Sequence[Overload]] = OVERLOADS,
) -> Resolved | Failure:
    polymorphic = resolve_polymorphic(sql_name, arguments, FUNCTIONS)
    if polymorphic is not None:
        return polymorphic
    compared = _compared_enums(sql_name, arguments)
    if compared is not None:
        return compared
    candidates = [
        one
        for one in overloads.get(sql_name, ())
        if len(one.signature) == len(arguments) and _takes_arrays(one, arguments)
    ]
    chosen = choose(candidates, arguments)
    if chosen is None:
        return no_match(sql_name, arguments)
    if chosen == "ambiguous":
        return ambiguous(sql_name, arguments)
    assert isinstance(chosen, Overload)
    if chosen.refused:
        arrays = Kind.ARRAY in chosen.signature
        shown = _shown(sql_name, arguments if arrays else [ScalarType(kind) for kind in chosen.signature])
        return Failure("0A000", f"{shown} is not supported", f"{chosen.refused[0].upper()}{chosen.refused[1:]}.")
    function = FUNCTIONS[chosen.implementation]
    targets = [_target(kind, argument) for kind, argument in zip(function.arguments, arguments, strict=True)]
    result = _result_type(chosen, targets, literals)
    wider = _without_scale(chosen, result, arguments, literals, overloads)
    if wider is not None:
        chosen, function = wider, FUNCTIONS[wider.implementation]
        result = _result_type(wider, targets, literals)
        targets = [_target(kind, argument) for kind, argument in zip(function.arguments, arguments, strict=True)]
    if isinstance(result, Failure):
        return result
    casts: list[Cast | None] = []
    for argument, target, declared in zip(arguments, targets, chosen.signature, strict=True):
        found = None if isinstance(argument, Unknown) else _argument_cast(argument, target, declared)
        if isinstance(found, Failure):
            return found
        casts.append(found if found is not None and found.function else None)
    return Resolved(function, tuple(targets), result, tuple(casts))


def _compared_enums(sql_name: str, arguments: Sequence[ArgumentType]) -> Resolved | None:
    """Returns the comparison of two values of one enumeration, whose members compare as texts; None of all else."""
    types = {one for one in arguments if isinstance(one, ScalarType)}
    if sql_name not in COMPARISONS or len(arguments) != 2 or len(types) != 1:
        return None
    (type_,) = types
    if type_.kind is not Kind.ENUM:
        return None
    return Resolved(FUNCTIONS[f"{COMPARISONS[sql_name]}_text"], (type_, type_), BOOL, (None, None))


def _without_scale(
    overload: Overload,
    result: ScalarType | Failure,
    arguments: Sequence[ArgumentType],
    literals: Sequence[object],
    overloads: Mapping[str, Sequence[Overload]],
) -> Overload | None:
    """Returns the twin of an overload over unconstrained numerics where an argument or the result has no known scale.

    That is where a quoted number does not fit one, where no rule gives one to the result, and where all arguments are
    known and their result does not fit it.
    """
    if Kind.NUMERIC not in overload.signature or (isinstance(result, Failure) and result.sqlstate != "0A000"):
        return None
    signature = tuple(Kind.UNCONSTRAINED if kind is Kind.NUMERIC else kind for kind in overload.signature)
    twin = _first(one for one in overloads.get(overload.sql_name, ()) if one.signature == signature and not one.refused)
    quoted = zip(arguments, overload.signature, strict=True)
    if (
        twin is None
        or isinstance(result, Failure)
        or any(_is_beyond(one) for one, kind in quoted if kind is Kind.NUMERIC)
    ):
        return twin
    if result.kind is not Kind.NUMERIC or len(literals) != len(signature):
        return None
    found = known_result(twin.implementation, signature, literals)
    return twin if found is not None and not fits(found, result.scale) else None


def _is_beyond(argument: ArgumentType) -> bool:
    """Returns whether an argument is a quoted number that no numeric with a scale holds."""
    return (
        isinstance(argument, Unknown) and argument.text is not None and numeric_type_of(argument.text) == UNCONSTRAINED
    )


def _takes_arrays(overload: Overload, arguments: Sequence[ArgumentType]) -> bool:
    """Returns whether all arrays among the arguments are of strings where the overload has an array."""
    return all(
        kind is not Kind.ARRAY
        or not isinstance(one, ScalarType)
        or one.element is None
        or one.element.kind in (Kind.TEXT, Kind.VARCHAR)
        for kind, one in zip(overload.signature, arguments, strict=True)
    )


def _target(kind: Kind, argument: ArgumentType) -> ScalarType:
    """Returns the type that an argument becomes; what an overload takes as an array is one of text."""
    match kind:
        case Kind.NUMERIC:
            return numeric(numeric_scale(argument))
        case Kind.ARRAY:
            return array_of(TEXT)
        case _:
            return ScalarType(kind)


def _argument_cast(argument: ScalarType, target: ScalarType, declared: Kind) -> Cast | Failure | None:
    if target.kind is Kind.TEXT and argument.kind in (Kind.VARCHAR, Kind.CHAR):
        # They are stored as the text that they become; only an overload of char(n) sees the blanks at its end.
        padded = declared is Kind.CHAR and argument.kind is Kind.CHAR
        return Cast("output_bpchar", argument, target, False) if padded else None
    return cast(argument, target, CastContext.ASSIGNMENT)


def _result_type(overload: Overload, targets: Sequence[ScalarType], literals: Sequence[object]) -> ScalarType | Failure:
    if overload.result is not None:
        return overload.result(targets)
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
    # PostgreSQL has one type of numerics: a call is over those with a scale, or over those without.
    other = Kind.NUMERIC if Kind.UNCONSTRAINED in kinds else Kind.UNCONSTRAINED
    candidates = [one for one in candidates if other not in one.signature]
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
        category = "S" if "S" in wanted else min(wanted) if len(wanted) == 1 else None
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
    if symbol[0].isalpha() or symbol[0] == "_":
        return f"function {sql_name}({', '.join(names)})"
    return f"operator {names[0]} {symbol} {names[1]}" if len(names) == 2 else f"operator {symbol} {names[0]}"


def no_match(sql_name: str, arguments: Sequence[ArgumentType]) -> Failure:
    """Returns what says that no function or operator of that name takes these arguments."""
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


def ambiguous(sql_name: str, arguments: Sequence[ArgumentType]) -> Failure:
    """Returns what says that several functions or operators of that name take these arguments."""
    shown = _shown(sql_name, arguments)
    if shown.startswith("operator"):
        return Failure(
            "42725",
            f"operator is not unique: {shown.removeprefix('operator ')}",
            f"Could not choose a best candidate operator. {_CASTS_HINT}",
        )
    return Failure("42725", f"{shown} is not unique", f"Could not choose a best candidate function. {_CASTS_HINT}")
