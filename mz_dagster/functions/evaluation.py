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

from mz_dagster.functions.casts import cast, element_context
from mz_dagster.functions.errors import (
    failure,
)
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import Nullability
from mz_dagster.functions.literals import literal_of
from mz_dagster.functions.membership import AMONG, constants_of, has_null
from mz_dagster.functions.moments.infinite import guarded
from mz_dagster.functions.numbers.arithmetic import in_range
from mz_dagster.functions.numbers.numerics import (
    rounded,
    to_scale,
)
from mz_dagster.functions.output import output_of
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.references import PURE, SCALED
from mz_dagster.functions.registry import BUILT, LAZY, RECORDS, SqlFailure, built, function, pure
from mz_dagster.functions.signature import modified_element
from mz_dagster.functions.value_order import nullable_key, order_key
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, walk
from mz_dagster.scalars.types import BOOL, Kind, ScalarType

#: Returns a scalar's value in its plain form, None for NULL, of a row's cells in theirs, by position.
Evaluate: TypeAlias = Callable[[Mapping[int, Any] | Sequence[Any]], Any]
#: Returns what a strict function makes of arguments that are not NULL.
Apply: TypeAlias = Callable[..., Any]

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


def is_evaluable(scalar: Scalar) -> bool:
    """Returns whether a scalar is one that `compiled` knows."""
    return all(_is_known(one) for one in walk(scalar))


def _is_known(node: Scalar) -> bool:
    match node:
        case ColumnRef() | Literal() | If():
            return True
        case Call():
            return node.function in LAZY or _applied(node) is not None
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
            if scalar.function in LAZY:
                return LAZY[scalar.function](scalar, arguments)
            apply = _applied(scalar)
            assert apply is not None, "such a scalar is not evaluated here"
            return _applying(apply, arguments, strict=_is_strict(scalar.function))
        case _:
            raise AssertionError("such a scalar is not evaluated here")


def _is_strict(name: str) -> bool:
    """Returns whether a function that is not lazy is not called for NULL; those of families in the table never are."""
    record = RECORDS.get(name)
    return record is None or record.function.strict


def _applying(apply: Apply, arguments: tuple[Evaluate, ...], *, strict: bool) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        values = [one(row) for one in arguments]
        return None if any(value is None for value in values) else apply(*values)

    return evaluate if strict else lambda row: apply(*[one(row) for one in arguments])


# ---- functions that evaluate their arguments themselves


def _test(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,), test = arguments, _TESTS[call.function]
    return lambda row: test(argument(row))


for _name in _TESTS:
    function(_name, (), Kind.BOOL, nullability=Nullability.NEVER, strict=False, lazy=True)(_test)


@function("and", (), Kind.BOOL, strict=False, lazy=True)
@function("or", (), Kind.BOOL, strict=False, lazy=True)
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


@function("coalesce", (), None, nullability=Nullability.IF_ALL_ARGUMENTS, strict=False, lazy=True)
def _coalesce(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        return next((value for one in arguments if (value := one(row)) is not None), None)

    return evaluate


# Fails with the SQLSTATE and message that its argument is wherever it is evaluated; of NULL, NULL.
@function("error", (), None, fallible=True, nullability=Nullability.IF_ALL_ARGUMENTS, strict=False, lazy=True)
def _error(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (says,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        text = says(row)
        if text is None:
            return None
        raise failure(text)

    return evaluate


# Its argument, NULL where that fails.
@function("without_error", (), None, nullability=Nullability.ALWAYS, strict=False, lazy=True)
def _without_error(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        try:
            return argument(row)
        except SqlFailure:
            return None

    return evaluate


# The SQLSTATE and message with which its argument fails; NULL where it does not.
@function("error_of", (), Kind.TEXT, nullability=Nullability.ALWAYS, strict=False, lazy=True)
def _error_of(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    (argument,) = arguments

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        try:
            argument(row)
        except SqlFailure as failure:
            return str(failure)
        return None

    return evaluate


@function("concat", (), Kind.TEXT, nullability=Nullability.NEVER, strict=False, lazy=True)
def _concat(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    return lambda row: "".join([value for one in arguments if (value := one(row)) is not None])


@function("concat_ws", (), Kind.TEXT, nullability=Nullability.IF_FIRST_ARGUMENT, strict=False, lazy=True)
def _concat_ws(_: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        separator, *parts = [one(row) for one in arguments]
        return None if separator is None else separator.join([part for part in parts if part is not None])

    return evaluate


@function("is_distinct_from", (), Kind.BOOL, nullability=Nullability.NEVER, strict=False, lazy=True)
@function("is_not_distinct_from", (), Kind.BOOL, nullability=Nullability.NEVER, strict=False, lazy=True)
def _distinct(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    left, right = arguments
    left_key, right_key = (nullable_key(order_key(one.type)) for one in call.arguments)
    if call.function == "is_distinct_from":
        return lambda row: left_key(left(row)) != right_key(right(row))
    return lambda row: left_key(left(row)) == right_key(right(row))


@function("greatest", (), None, nullability=Nullability.IF_ALL_ARGUMENTS, strict=False, lazy=True)
@function("least", (), None, nullability=Nullability.IF_ALL_ARGUMENTS, strict=False, lazy=True)
def _extreme(call: Call, arguments: tuple[Evaluate, ...]) -> Evaluate:
    extreme: Apply = max if call.function == "greatest" else min
    key = order_key(call.type)

    def evaluate(row: Mapping[int, Any] | Sequence[Any]) -> Any:
        values = [one(row) for one in arguments]
        return extreme((value for value in values if value is not None), key=key, default=None)

    return evaluate


# Whether a comparison, named by a literal, with the second argument's elements is true for any, for all of them.
@function("any_element", (), Kind.BOOL, fallible=True, nullability=Nullability.ALWAYS, strict=False, lazy=True)
@function("all_elements", (), Kind.BOOL, fallible=True, nullability=Nullability.ALWAYS, strict=False, lazy=True)
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


# ---- functions of values


def _applied(call: Call) -> Apply | None:
    """Returns what evaluates the call of a function of values, None if it is not known."""
    name, type_ = call.function, call.type
    if name in BUILT:
        built = BUILT[name](call)
        return None if built is None else guarded(name, built)
    return _pure(name, type_) if name in PURE else None


@function(
    "not", (Kind.BOOL,), Kind.BOOL, sql="not", says="The opposite of a boolean.", example="NOT (1 = 2)", gives="true"
)
def negation(value: bool) -> bool:
    """Returns the opposite."""
    return not value


# How concat() spells a boolean, unlike the cast.
@function("output_bool", (Kind.BOOL,), Kind.TEXT)
def boolean_output(value: bool) -> str:
    """Returns a boolean's letter."""
    return "t" if value else "f"


@function("to_jsonb_numeric", (Kind.NUMERIC,), Kind.JSONB, of_call=True)
@built("cast_numeric_to_text", "cast_numeric_to_unconstrained")
def _numeric_text(call: Call) -> Apply:
    scale = call.arguments[0].type.scale
    return lambda value: f"{to_scale(value, scale):f}"


@built(*(f"cast_{one}_to_{other}" for one in _INTEGERS for other in _INTEGERS if one != other))
def _integer_of_integer(call: Call) -> Apply:
    return in_range(int, call)


@built(*(f"cast_{one}_to_numeric" for one in (*_INTEGERS, "numeric")))
def _to_scale(call: Call) -> Apply:
    scale = call.type.scale
    return lambda value: to_scale(Decimal(value), scale)


@built(*(f"cast_numeric_to_{one}" for one in _INTEGERS))
def _integer_of_numeric(call: Call) -> Apply:
    return in_range(lambda value: int(rounded(value, 0, ROUND_HALF_UP)), call)


pure("cast_bool_to_text")(lambda value: "true" if value else "false")
pure("cast_bool_to_int4")(int)
pure("cast_int4_to_bool")(bool)
pure("cast_bytea_to_text")(lambda value: f"\\x{value.hex()}")
pure(
    *(f"cast_{kind}_to_text" for kind in (*_INTEGERS, "uuid", "jsonb", "mz_timestamp")),
)(str)


def _pure(name: str, type_: ScalarType) -> Apply:
    function = PURE[name]
    scale = (type_.scale,) if name in SCALED else ()
    if type_.kind is Kind.NUMERIC:
        return lambda *values: None if (found := function(*values, *scale)) is None else to_scale(found, type_.scale)
    return (lambda *values: function(*values, *scale)) if scale else function


@built(
    *(f"cast_text_to_{kind}" for kind in ("bool", "numeric", "mz_timestamp", *_FLOATS, *_INTEGERS)),
    *(f"cast_{one}_to_{other}" for one in (*_INTEGERS, "numeric", "unconstrained") for other in _FLOATS),
    *(f"cast_{one}_to_{other}" for one in _STRINGS for other in _STRINGS if (one, other) != ("text", "text")),
)
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


def _each(call: Call, of_element: Callable[[Scalar], Scalar]) -> Apply:
    """Returns the array of what a scalar is for each element of one; the first error wins."""
    element = call.arguments[0].type.element
    assert element is not None
    evaluate = compiled(of_element(ColumnRef(0, element)))
    return lambda values: [evaluate((one,)) for one in values]


@function("array_output", (Kind.ARRAY,), Kind.ARRAY, of_call=True)
def array_output(call: Call) -> Apply:
    """Returns the function to the texts of an array's elements."""
    return _each(call, output_of)


@function("cast_elements", (Kind.ARRAY,), Kind.ARRAY, fallible=True, of_call=True)
@function("assign_elements", (Kind.ARRAY,), Kind.ARRAY, fallible=True, of_call=True)
def cast_elements(call: Call) -> Apply:
    """Returns the function to an array with another element type."""
    source, target = call.arguments[0].type.element, call.type.element
    assert source is not None
    assert target is not None
    found = cast(source, target, element_context(call.function))
    assert not isinstance(found, Failure), str(found)
    return _each(call, found.apply)


@function("modified_elements", (Kind.ARRAY, Kind.INT4, Kind.TEXT), Kind.ARRAY, fallible=True, of_call=True)
def modified_elements(call: Call) -> Apply:
    """Returns what makes of each element what a modifier of these digits and fields makes of it."""
    apply = _each(call, modified_element(call))
    return lambda values, *_: apply(values)


@function("record_output", (Kind.RECORD,), Kind.ARRAY, of_call=True)
def record_output(call: Call) -> Apply:
    """Returns the function to the texts of a record's fields."""
    fields = [compiled(output_of(ColumnRef(0, one))) for _, one in call.arguments[0].type.fields]
    return lambda cells: [evaluate((cell,)) for evaluate, cell in zip(fields, cells, strict=True)]


# What `plan/membership.py` makes of a value's comparisons with the elements of a literal.
@function(AMONG, (), Kind.BOOL, nullability=Nullability.ALWAYS, of_call=True)
def membership(call: Call) -> Apply:
    """Returns the function to whether a value is among constants."""
    element = call.arguments[1].type.element
    assert element is not None
    members = frozenset(to_plain(one, element) for one in constants_of(call))
    if has_null(call):
        return lambda value: True if value in members else None
    return lambda value: value in members
