"""Scalar expressions evaluated in Python: constants when a plan is made, and few rows in place of Spark.

Owns the reference of every function, which is the same as where Spark evaluates it, value and error: a row must be the
same wherever it is computed, or its retraction would not meet it. What is Python's there, too, is in `references`;
floats, arrays and records are in files of their own, and the rest is here.

A scalar becomes a function of a row, whose cells are in their plain form. It returns the plain form of its value, or
raises `SqlFailure`; as on Spark, of several arguments that fail the leftmost one's error counts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

from mz_dagster.functions.arrays.array_evaluation import LENIENT_ARRAYS, STRICT_ARRAYS
from mz_dagster.functions.casts import cast, element_context
from mz_dagster.functions.errors import (
    DATE_OUT_OF_RANGE,
    MZ_TIMESTAMP_OUT_OF_RANGE,
    STEP_OVERFLOW,
    TIMESTAMP_OUT_OF_RANGE,
    failure,
)
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.literals import INTEGER_RANGES, literal_of
from mz_dagster.functions.membership import AMONG, constants_of, has_null
from mz_dagster.functions.moments.calendar import DAY, FIRST_DAY, LAST_DAY
from mz_dagster.functions.moments.infinite import guarded
from mz_dagster.functions.numbers.arithmetic import in_range, within
from mz_dagster.functions.numbers.numerics import (
    rounded,
    to_scale,
)
from mz_dagster.functions.output import output_of
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.references import PURE, SCALED
from mz_dagster.functions.registry import BUILT, SqlFailure, function
from mz_dagster.functions.signature import modified_element
from mz_dagster.functions.value_order import nullable_key, order_key
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, walk
from mz_dagster.scalars.types import BOOL, Kind, ScalarType

#: Returns a scalar's value in its plain form, None for NULL, of a row's cells in theirs, by position.
Evaluate: TypeAlias = Callable[[Mapping[int, Any] | Sequence[Any]], Any]
#: Returns what a strict function makes of arguments that are not NULL.
Apply: TypeAlias = Callable[..., Any]

_TIMES = (0, INTEGER_RANGES[Kind.INT8][1])
_INTEGERS = ("int2", "int4", "int8")
_MOMENTS = ("timestamp", "timestamptz")
_FLOATS = ("float4", "float8")
_STRINGS = ("text", "varchar", "bpchar")
_TESTS: Mapping[str, Apply] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "is_true": lambda value: value is True,
    "is_not_true": lambda value: value is not True,
    "is_false": lambda value: value is False,
    "is_not_false": lambda value: value is not False,
}
_ALL_CASTS = frozenset(f"cast_{one}_to_{other}" for one in _INTEGERS for other in _INTEGERS)
_TO_NUMERIC = frozenset(f"cast_{one}_to_numeric" for one in (*_INTEGERS, "numeric"))
_TO_INTEGER = frozenset(f"cast_numeric_to_{one}" for one in _INTEGERS)


def is_evaluable(scalar: Scalar) -> bool:
    """Returns whether a scalar is one that `compiled` knows."""
    return all(_is_known(one) for one in walk(scalar))


def _is_known(node: Scalar) -> bool:
    match node:
        case ColumnRef() | Literal() | If():
            return True
        case Call():
            return _is_lenient(node) or _applied(node) is not None
        case _:
            return False


def value_of(scalar: Scalar) -> Any:
    """Returns the value of a scalar without columns that `is_evaluable`, in its Python form (`scalars/values.py`).

    Raises:
        SqlFailure: It has an error.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> value_of(Call("add_int4", (Literal(1, INT4), Literal(2, INT4)), INT4))
        3
    """
    return from_plain(compiled(scalar)(()), scalar.type)


def known_value(scalar: Scalar) -> Any:
    """Returns the value of a constant, or of casts of one, in its Python form; None of what is none.

    None, too, of NULL, and of casts that fail.

    Example:
        >>> from mz_dagster.scalars.types import INT4, numeric
        >>> known_value(Call("cast_int4_to_numeric", (Literal(2, INT4),), numeric(0)))
        Decimal('2')
    """
    if isinstance(scalar, Literal):
        return scalar.value
    try:
        return value_of(scalar) if is_constant(scalar) else None
    except SqlFailure:
        return None


def is_constant(scalar: Scalar) -> bool:
    """Returns whether a scalar is a constant, or casts of one that can be evaluated here."""
    inner = scalar
    while isinstance(inner, Call) and inner.function.startswith("cast_") and len(inner.arguments) == 1:
        (inner,) = inner.arguments
    return isinstance(inner, Literal) and is_evaluable(scalar)


def compiled(scalar: Scalar) -> Evaluate:
    """Returns what evaluates a scalar that `is_evaluable`."""
    match scalar:
        case ColumnRef():
            return operator.itemgetter(scalar.position)
        case Literal():
            value = to_plain(scalar.value, scalar.type)
            return lambda _: value
        case If():
            condition, then, otherwise = map(compiled, (scalar.condition, scalar.then, scalar.otherwise))
            return lambda row: then(row) if condition(row) is True else otherwise(row)
        case Call():
            arguments = tuple(map(compiled, scalar.arguments[:1] if scalar.function == AMONG else scalar.arguments))
            if _is_lenient(scalar):
                return _LENIENT[scalar.function](scalar, arguments)
            apply = _applied(scalar)
            assert apply is not None, "such a scalar is not evaluated here"
            return _strict(apply, arguments)
        case _:
            raise AssertionError("such a scalar is not evaluated here")


def _strict(apply: Apply, arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        values = [one(row) for one in arguments]
        return None if any(value is None for value in values) else apply(*values)

    return evaluate


# ---- functions that do not simply return NULL for NULL


def _is_lenient(call: Call) -> bool:
    """Returns whether a call is of a function that is not strict."""
    return call.function in _LENIENT


def _test(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,), test = arguments, _TESTS[call.function]
    return lambda row: test(argument(row))


def _connective(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Returns `and` and `or`: what decides does so whatever fails in the others."""
    decides = call.function == "or"

    return lambda row: _decided(((one, row) for one in arguments), decides)


def _decided(tests: Iterable[tuple[Evaluate, Any]], decides: bool) -> bool | None:
    """Returns what tests of rows are together, the first error if none is the value that decides."""
    failed, is_unknown = None, False
    for test, row in tests:
        try:
            found: bool | None = test(row)
        except SqlFailure as error:
            failed = failed or error
            continue
        if found is decides:
            return decides
        is_unknown = is_unknown or found is None
    if failed is not None:
        raise failed
    return None if is_unknown else not decides


def _coalesce(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        return next((value for one in arguments if (value := one(row)) is not None), None)

    return evaluate


def _error(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (says,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        text = says(row)
        if text is None:
            return None
        raise failure(text)

    return evaluate


def _without_error(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        try:
            return argument(row)
        except SqlFailure:
            return None

    return evaluate


def _error_of(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        try:
            argument(row)
        except SqlFailure as failure:
            return str(failure)
        return None

    return evaluate


def _concat(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    return lambda row: "".join([value for one in arguments if (value := one(row)) is not None])


def _concat_ws(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        separator, *parts = [one(row) for one in arguments]
        return None if separator is None else separator.join([part for part in parts if part is not None])

    return evaluate


def _distinct(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    left, right = arguments
    left_key, right_key = (nullable_key(order_key(one.type)) for one in call.arguments)
    if call.function == "is_distinct_from":
        return lambda row: left_key(left(row)) != right_key(right(row))
    return lambda row: left_key(left(row)) == right_key(right(row))


def _extreme(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    extreme: Apply = max if call.function == "greatest" else min
    key = order_key(call.type)

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        values = [one(row) for one in arguments]
        return extreme((value for value in values if value is not None), key=key, default=None)

    return evaluate


def _of_array(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    apply = LENIENT_ARRAYS[call.function](call)
    return lambda row: apply(*[one(row) for one in arguments])


def _quantified(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Returns `= ANY (array)` and the like: what decides does so whatever fails for other elements."""
    value, array, named = arguments
    element = call.arguments[1].type.element
    assert element is not None
    columns = (ColumnRef(0, call.arguments[0].type), ColumnRef(1, element))
    test = compiled(Call(str(named(())), columns, BOOL))
    decides = call.function == "any_element"

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        own, elements = value(row), array(row)
        return None if elements is None else _decided(((test, (own, one)) for one in elements), decides)

    return evaluate


_LENIENT: Mapping[str, Callable[[Call, tuple[Evaluate, ...]], Evaluate]] = {
    **dict.fromkeys(_TESTS, _test),
    "and": _connective,
    "or": _connective,
    "coalesce": _coalesce,
    "error": _error,
    "without_error": _without_error,
    "error_of": _error_of,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "is_distinct_from": _distinct,
    "is_not_distinct_from": _distinct,
    "greatest": _extreme,
    "least": _extreme,
    "any_element": _quantified,
    "all_elements": _quantified,
    **dict.fromkeys(LENIENT_ARRAYS, _of_array),
}

# ---- strict functions


def _applied(call: Call) -> Apply | None:
    """Returns what evaluates the call of a strict function, None if it is not known."""
    name, type_ = call.function, call.type
    if name in _ALL_CASTS:
        return in_range(lambda value: value, call)
    if name in _TO_NUMERIC:
        return lambda value: to_scale(Decimal(value), type_.scale)
    if name in _TO_INTEGER:
        return in_range(lambda value: int(rounded(value, 0, ROUND_HALF_UP)), call)
    for builders in (_OWN, STRICT_ARRAYS):
        if name in builders:
            return guarded(name, builders[name](call))
    if name in BUILT:
        built = BUILT[name](call)
        return None if built is None else guarded(name, built)
    return _pure(name, type_) if name in PURE else None


def _numeric_text(call: Call) -> Apply:
    scale = call.arguments[0].type.scale
    return lambda value: f"{to_scale(value, scale):f}"


def _pure(name: str, type_: ScalarType) -> Apply:
    function = PURE[name]
    scale = (type_.scale,) if name in SCALED else ()
    if type_.kind is Kind.NUMERIC:
        return lambda *values: None if (found := function(*values, *scale)) is None else to_scale(found, type_.scale)
    return (lambda *values: function(*values, *scale)) if scale else function


def _shifted_date(sign: int) -> Apply:
    return within(lambda day, days: day + sign * days, (FIRST_DAY, LAST_DAY), DATE_OUT_OF_RANGE)


def _read(call: Call) -> Apply:
    """Returns the cast of a text, or of an exact number as one."""
    type_, assigned = call.type, call.function.startswith("assign_")

    def read(value: str | int | Decimal) -> Any:
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
        found = literal_of(text, type_, assigned=assigned)
        if isinstance(found, Failure):
            raise SqlFailure(found.sqlstate, found.message)
        return to_plain(found.value, type_)

    return read


# Where a text may not be longer than its column: the blanks beyond are dropped, anything else is an error.
for _short in _STRINGS:
    for _kind, _other in ((Kind.VARCHAR, "varchar"), (Kind.CHAR, "bpchar")):
        function(f"assign_{_short}_to_{_other}", (), _kind, fallible=True, of_call=True)(_read)


def _to_mz_timestamp(apply: Apply) -> Apply:
    return within(apply, _TIMES, MZ_TIMESTAMP_OUT_OF_RANGE)


def _of_mz_timestamp(_: Call) -> Apply:
    return within(lambda millis: millis * 1000, (0, (LAST_DAY + 1) * DAY - 1), TIMESTAMP_OUT_OF_RANGE)


def _epoch(call: Call) -> Apply:
    return lambda micros: to_scale(Decimal(micros).scaleb(-6), call.type.scale)


def _each(call: Call, of_element: Callable[[Scalar], Scalar]) -> Apply:
    """Returns the array of what a scalar is for each element of one; the first error wins."""
    element = call.arguments[0].type.element
    assert element is not None
    evaluate = compiled(of_element(ColumnRef(0, element)))
    return lambda values: [evaluate((one,)) for one in values]


def _cast_elements(call: Call) -> Apply:
    source, target = call.arguments[0].type.element, call.type.element
    assert source is not None
    assert target is not None
    found = cast(source, target, element_context(call.function))
    assert not isinstance(found, Failure), str(found)
    return _each(call, found.apply)


def _modified_elements(call: Call) -> Apply:
    apply = _each(call, modified_element(call))
    return lambda values, *_: apply(values)


def _record_output(call: Call) -> Apply:
    fields = [compiled(output_of(ColumnRef(0, one))) for _, one in call.arguments[0].type.fields]
    return lambda cells: [evaluate((cell,)) for evaluate, cell in zip(fields, cells, strict=True)]


def _jsonb_of_moment(call: Call) -> Apply:
    text = PURE[f"cast_{call.function.removeprefix('to_jsonb_')}_to_text"]
    zone = ":00" if call.function == "to_jsonb_timestamptz" else ""
    return lambda value: f'"{text(value).replace(" ", "T")}{zone}"'


def _membership(call: Call) -> Apply:
    element = call.arguments[1].type.element
    assert element is not None
    members = frozenset(to_plain(one, element) for one in constants_of(call))
    if has_null(call):
        return lambda value: True if value in members else None
    return lambda value: value in members


_OWN: Mapping[str, Callable[[Call], Apply]] = {
    AMONG: _membership,
    "not": lambda _: operator.not_,
    "output_bool": lambda _: lambda value: "t" if value else "f",
    "cast_bool_to_text": lambda _: lambda value: "true" if value else "false",
    "cast_bool_to_int4": lambda _: int,
    "cast_int4_to_bool": lambda _: bool,
    **{f"cast_{kind}_to_text": lambda _: str for kind in _INTEGERS},
    "cast_numeric_to_text": _numeric_text,
    "cast_numeric_to_unconstrained": _numeric_text,
    **{f"cast_text_to_{kind}": _read for kind in ("bool", "numeric", "mz_timestamp", *_FLOATS, *_INTEGERS)},
    **{f"cast_{one}_to_{other}": _read for one in (*_INTEGERS, "numeric", "unconstrained") for other in _FLOATS},
    **{f"cast_{one}_to_{other}": _read for one in _STRINGS for other in _STRINGS},
    "array_output": lambda call: _each(call, output_of),
    **dict.fromkeys(("cast_elements", "assign_elements"), _cast_elements),
    "modified_elements": _modified_elements,
    "record_output": _record_output,
    **{f"to_jsonb_{kind}": lambda _: str for kind in _INTEGERS},
    "to_jsonb_bool": lambda _: lambda value: "true" if value else "false",
    "to_jsonb_numeric": _numeric_text,
    **{f"to_jsonb_{kind}": _jsonb_of_moment for kind in ("date", *_MOMENTS)},
    "cast_bytea_to_text": lambda _: lambda value: f"\\x{value.hex()}",
    "cast_uuid_to_text": lambda _: str,
    "cast_jsonb_to_text": lambda _: str,
    "add_int4_date": lambda _: _shifted_date(1),
    "add_date_int4": lambda _: _shifted_date(1),
    "subtract_date_int4": lambda _: _shifted_date(-1),
    "subtract_date_date": lambda _: operator.sub,
    **{f"cast_{kind}_to_mz_timestamp": lambda _: _to_mz_timestamp(int) for kind in ("int4", "int8")},
    "cast_numeric_to_mz_timestamp": lambda _: _to_mz_timestamp(lambda n: int(n) if n == int(n) else None),
    "cast_date_to_mz_timestamp": lambda _: _to_mz_timestamp(lambda days: days * (DAY // 1000)),
    **{f"cast_{kind}_to_mz_timestamp": lambda _: _to_mz_timestamp(lambda micros: micros // 1000) for kind in _MOMENTS},
    **{f"cast_mz_timestamp_to_{kind}": _of_mz_timestamp for kind in _MOMENTS},
    "cast_mz_timestamp_to_text": lambda _: str,
    "step_mz_timestamp": lambda _: within(lambda value: value + 1, _TIMES, STEP_OVERFLOW),
    "extract_epoch_timestamp": _epoch,
    "extract_epoch_timestamptz": _epoch,
}
