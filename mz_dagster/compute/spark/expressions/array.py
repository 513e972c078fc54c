"""Arrays, of one dimension and counted from 1.

Exactness: elements compare as their kind does, NULL equals NULL and is greater than everything, as PostgreSQL's arrays
have it; where SQL's third truth value counts (`@>`, `= ANY`), NULL equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.comparison import compare
from mz_dagster.compute.spark.expressions.emitted import STRICT, Invocation, Outcome, leftmost, lenient, strict
from mz_dagster.compute.spark.expressions.emitter import emit, literal
from mz_dagster.compute.spark.expressions.pure import among_in_python, each_in_python, in_python, parts_in_python
from mz_dagster.errors import InternalError
from mz_dagster.functions import Failure, cast, element_context, modified_element
from mz_dagster.functions.arrays.limits import ARRAY_ELEMENTS, SEVERAL_DIMENSIONS, TOO_LONG
from mz_dagster.functions.output import output_of
from mz_dagster.functions.plain import to_plain
from mz_dagster.plan.representations import REPRESENTATIONS, comparable
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.floats import each_field, represented, restored

if TYPE_CHECKING:
    from pyspark.sql import Column


@lenient("array")
def _array(invocation: Invocation) -> Outcome:
    return sf.array(*invocation.values).cast(spark_type(invocation.type)), None


def _element(type_: ScalarType) -> ScalarType:
    if type_.element is None:
        raise InternalError(f"{type_} is not an array")
    return type_.element


# Each element by itself.


@strict("cast_elements", "assign_elements")
def _cast_elements(invocation: Invocation) -> Outcome:
    element, target = _element(invocation.scalars[0].type), _element(invocation.type)
    found = cast(element, target, element_context(invocation.function))
    assert not isinstance(found, Failure), str(found)
    return _mapped(invocation, found.apply(ColumnRef(0, element)))


@strict("modified_elements")
def _modified_elements(invocation: Invocation) -> Outcome:
    element = ColumnRef(0, _element(invocation.scalars[0].type))
    one = Call(invocation.function, invocation.scalars, invocation.type)
    return _mapped(invocation, modified_element(one)(element))


@strict("array_output")
def _output(invocation: Invocation) -> Outcome:
    return _mapped(invocation, output_of(ColumnRef(0, _element(invocation.scalars[0].type))))


def _mapped(invocation: Invocation, scalar: Scalar) -> Outcome:
    """Returns the array of what `scalar`, a chain of calls over column 0, is for each element; the first error wins."""
    array, *_ = invocation.values
    chain: list[Call] = []
    while isinstance(scalar, Call):
        chain.insert(0, scalar)
        scalar = scalar.arguments[0]
    error: Column | None = None
    for call in chain:
        array, failed = _each(array, call, invocation.share)
        error = leftmost([error, failed])
        array = array if failed is None else sf.when(failed.isNull(), array)
    return array, error


def _each(array: Column, call: Call, share: Callable[..., list[Column]]) -> Outcome:
    """Returns what a call is for each element in the place of its first argument, and the first error."""
    if STRICT.get(call.function) is in_python:
        return each_in_python(array, call, share)
    argument = ColumnRef(0, call.arguments[0].type)
    one = Call(call.function, (argument, *call.arguments[1:]), call.type)
    values = sf.transform(array, lambda element: emit(one, [element]).value)
    if emit(one, [sf.lit(None).cast(spark_type(argument.type))]).error is None:
        return values, None

    def failure(element: Column) -> Column:
        error = emit(one, [element]).error
        assert error is not None
        return error

    failures = sf.filter(sf.transform(array, failure), lambda text: text.isNotNull())
    return values, sf.get(failures, sf.lit(0))


# Comparisons.


def _as_compared(scalar: Scalar) -> Scalar:
    """Returns what Spark compares as PostgreSQL does a value."""
    known = REPRESENTATIONS.get(scalar.type.kind)
    if known is None:
        return scalar
    if known.sorted:
        return Call(known.sorted, (scalar,), known.order, scalar.nullable)
    return comparable(scalar)


def _compared(invocation: Invocation, number: int) -> Column:
    """Returns an argument, a value or an array, in a form that Spark compares as PostgreSQL does the argument."""
    return _compared_form(invocation.values[number], invocation.scalars[number].type, invocation.share)


def _compared_form(value: Column, type_: ScalarType, share: Callable[..., list[Column]]) -> Column:
    """Returns a value or an array in a form that Spark compares as PostgreSQL does it."""
    scalar = _as_compared(ColumnRef(0, type_.element or type_))
    if not isinstance(scalar, Call):
        return value
    if type_.element is None:
        (shared,) = share(emit(scalar, [value]).value)
        return shared
    compared, error = _each(value, scalar, share)
    assert error is None, "to bring a value into another form does not fail"
    return compared


def _ordered(array: Column) -> Column:
    """Returns the elements so that Spark orders them as PostgreSQL does: NULL last."""
    return sf.transform(array, lambda one: sf.struct(one.isNull().alias("f1"), one.alias("f2")))


@strict("order_array")
def _order(invocation: Invocation) -> Outcome:
    return _ordered(invocation.values[0]).cast(spark_type(invocation.type)), None


@strict("unsigned_zeros")
def _unsigned_zeros(invocation: Invocation) -> Outcome:
    return _unsigned(invocation.values[0], invocation.type), None


def _unsigned(value: Column, type_: ScalarType) -> Column:
    if type_.element is not None:
        element = type_.element
        return sf.transform(value, lambda one: _unsigned(one, element))
    if type_.is_composite:
        return each_field(value, type_, _unsigned)
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return sf.when(value == 0, sf.lit(0.0).cast(spark_type(type_))).otherwise(value)
    return value


@strict("represented_floats")
def _represented_floats(invocation: Invocation) -> Outcome:
    return represented(invocation.values[0], invocation.scalars[0].type), None


@strict("restored_floats")
def _restored_floats(invocation: Invocation) -> Outcome:
    return restored(invocation.values[0], invocation.type), None


@strict("comparable_parts", "sorted_parts", "ordered_parts", "restored_parts")
def _parts(invocation: Invocation) -> Outcome:
    return parts_in_python(invocation)


@strict(*(f"{name}_array" for name in ("eq", "ne", "lt", "le", "gt", "ge")))
def _comparison(invocation: Invocation) -> Outcome:
    left, right = (_ordered(_compared(invocation, number)) for number in range(2))
    return compare(invocation.function[:2], left, right), None


def _has(array: Column, value: Column) -> Column:
    """Returns whether an element equals `value`; NULL equals nothing."""
    return sf.exists(array, lambda one: sf.coalesce(one == value, sf.lit(False)))


@strict("array_contains", "array_contained")
def _contains(invocation: Invocation) -> Outcome:
    whole, part = (_compared(invocation, number) for number in range(2))
    if invocation.function == "array_contained":
        whole, part = part, whole
    present = sf.forall(part, lambda one: _has(whole, one))
    return sf.when(whole.isNotNull() & part.isNotNull(), present), None


@strict("array_overlaps")
def _overlaps(invocation: Invocation) -> Outcome:
    left, right = (_compared(invocation, number) for number in range(2))
    return sf.when(left.isNotNull() & right.isNotNull(), sf.exists(left, lambda one: _has(right, one))), None


@strict("is_among")
def _among(invocation: Invocation) -> Outcome:
    constants = invocation.scalars[1]
    assert isinstance(constants, Literal)
    assert isinstance(constants.value, tuple)
    element = _element(constants.type)
    if len(constants.value) > budget().literal_constants:
        return among_in_python(invocation, frozenset(to_plain(one, element) for one in constants.value))
    value = invocation.values[0]
    if element.kind in (Kind.FLOAT4, Kind.FLOAT8):  # Spark's set tells -0 from 0, as boxes do
        value = value + sf.lit(0.0).cast(spark_type(element))
    return value.isin(*(literal(Literal(one, element)) for one in constants.value)), None


@lenient("any_element", "all_elements")
def _quantified(invocation: Invocation) -> Outcome:
    value, array, _ = invocation.values
    _, over, named = invocation.scalars
    assert isinstance(named, Literal)
    types = (invocation.scalars[0].type, _element(over.type))
    test = Call(str(named.value), (ColumnRef(0, types[0]), ColumnRef(1, types[1])), BOOL)
    tests = sf.transform(array, lambda one: emit(test, [value, one]).value)
    decides = invocation.function == "any_element"
    decided = sf.exists(tests, lambda one: sf.coalesce(one if decides else ~one, sf.lit(False)))
    undecided = sf.exists(tests, lambda one: one.isNull())
    answer = sf.when(decided, sf.lit(decides)).when(undecided, sf.lit(None).cast("boolean"))
    outcome = sf.when(array.isNotNull(), answer.otherwise(sf.lit(not decides)))
    if emit(test, [sf.lit(None).cast(spark_type(one)) for one in types]).error is None:
        return outcome, None

    def failure(one: Column) -> Column:
        error = emit(test, [value, one]).error
        assert error is not None
        return error

    failures = sf.filter(sf.transform(array, failure), lambda text: text.isNotNull())
    error = sf.when(~decided, sf.get(failures, sf.lit(0)))
    return sf.when(error.isNull(), outcome), error


# Arrays of any dimensions: structs of their elements, lengths and lower bounds.


@strict("dimensioned")
def _dimensioned(invocation: Invocation) -> Outcome:
    fields = [value.alias(f"f{i}") for i, value in enumerate(invocation.values, 1)]
    return _where(invocation, sf.struct(*fields).cast(spark_type(invocation.type))), None


@strict("dimensioned_list")
def _dimensioned_list(invocation: Invocation) -> Outcome:
    (values,) = invocation.values
    none = sf.array().cast("array<int>")
    lengths, lowers = (
        sf.when(sf.size(values) > 0, sf.array(one)).otherwise(none) for one in (sf.size(values), sf.lit(1))
    )
    found = sf.struct(values.alias("f1"), lengths.alias("f2"), lowers.alias("f3"))
    return _where(invocation, found.cast(spark_type(invocation.type))), None


def _in_order(array: Column, elements: Column, element: ScalarType) -> Column:
    """Returns what orders arrays of any dimensions, given their elements in a form of a type that Spark compares."""

    def part(rank: Column, cell: Column, number: Column) -> Column:
        return sf.struct(rank.alias("f1"), cell.alias("f2"), number.alias("f3"))

    cells = sf.transform(elements, lambda one: part(one.isNull().cast("int"), one, sf.lit(0)))
    shape = sf.concat(sf.array(sf.size(array.getField("f2"))), array.getField("f2"), array.getField("f3"))
    none = sf.lit(None).cast(spark_type(element))
    return sf.concat(cells, sf.transform(shape, lambda one: part(sf.lit(-1), none, one)))


@strict("order_dimensioned")
def _order_dimensioned(invocation: Invocation) -> Outcome:
    (array,) = invocation.values
    element = _element(invocation.scalars[0].type.parts[0])
    ordered = _in_order(array, array.getField("f1"), element)
    return _where(invocation, ordered.cast(spark_type(invocation.type))), None


@strict(*(f"{name}_dimensioned" for name in ("eq", "ne", "lt", "le", "gt", "ge")))
def _dimensioned_comparison(invocation: Invocation) -> Outcome:
    sides: list[Column] = []
    for array, scalar in zip(invocation.values, invocation.scalars, strict=True):
        listed = scalar.type.parts[0]
        elements = _compared_form(array.getField("f1"), listed, invocation.share)
        compared = _as_compared(ColumnRef(0, _element(listed))).type
        sides.append(_where(invocation, _in_order(array, elements, compared)))
    return compare(invocation.function[:2], *sides), None


# Places.


@strict("array_subscript")
def _subscript(invocation: Invocation) -> Outcome:
    array, place = invocation.values
    return sf.get(array, sf.try_subtract(place, sf.lit(1))), None


@strict("array_slice")
def _slice(invocation: Invocation) -> Outcome:
    array, first, last = invocation.values
    first, last = sf.greatest(first, sf.lit(1)), sf.least(last, sf.size(array))
    length = sf.when(last >= first, last - first + 1).otherwise(sf.lit(0))
    return _where(invocation, sf.slice(array, sf.when(length > 0, first).otherwise(sf.lit(1)), length)), None


def _where(invocation: Invocation, value: Column) -> Column:
    """Returns `value` where no argument is NULL: size() of NULL need not be NULL."""
    present = invocation.values[0].isNotNull()
    for one in invocation.values[1:]:
        present = present & one.isNotNull()
    return sf.when(present, value)


@strict("cardinality")
def _cardinality(invocation: Invocation) -> Outcome:
    return _where(invocation, sf.size(invocation.values[0])), None


@strict("array_length", "array_upper", "array_lower")
def _bound(invocation: Invocation) -> Outcome:
    array, dimension = invocation.values
    bound = sf.lit(1) if invocation.function == "array_lower" else sf.size(array)
    return sf.when(array.isNotNull() & (dimension == 1) & (sf.size(array) > 0), bound), None


@strict("generate_subscripts", "generate_subscripts_reversed")
def _subscripts(invocation: Invocation) -> Outcome:
    array, dimension, *backwards = invocation.values
    none = sf.array().cast("array<int>")
    places = sf.transform(array, lambda _, n: n + 1)
    if backwards:
        places = sf.when(backwards[0], sf.reverse(places)).otherwise(places)
    return _where(invocation, sf.when(dimension == 1, places).otherwise(none)), None


@strict("array_ndims")
def _dimensions(invocation: Invocation) -> Outcome:
    (array,) = invocation.values
    return sf.when(array.isNotNull() & (sf.size(array) > 0), sf.lit(1)), None


@strict("array_dims")
def _dims(invocation: Invocation) -> Outcome:
    (array,) = invocation.values
    shown = sf.concat(sf.lit("[1:"), sf.size(array).cast("string"), sf.lit("]"))
    return sf.when(array.isNotNull() & (sf.size(array) > 0), shown), None


@strict("trim_array")
def _trimmed(invocation: Invocation) -> Outcome:
    array, count = invocation.values
    size = sf.size(array)
    fits = (count >= 0) & (count <= size)
    error = sf.concat(sf.lit("2202E number of elements to trim must be between 0 and "), size.cast("string"))
    kept = sf.slice(array, sf.lit(1), sf.when(fits, size - count).otherwise(sf.lit(0)))
    return _where(invocation, sf.when(fits, kept)), _where(invocation, sf.when(~fits, error))


@lenient("array_fill")
def _filled(invocation: Invocation) -> Outcome:
    value, sizes = invocation.values
    empty = (sf.size(sizes) == 0) | sf.exists(sizes, lambda one: one == 0)
    error = (
        sf.when(sizes.isNull(), sf.lit("22004 dimension array or low bound array cannot be null"))
        .when(sf.exists(sizes, lambda one: one.isNull()), sf.lit("22004 dimension values cannot be null"))
        .when(
            sf.exists(sizes, lambda one: one < 0) | (~empty & sf.exists(sizes, lambda one: one > ARRAY_ELEMENTS)),
            sf.lit(TOO_LONG),
        )
        .when(~empty & (sf.size(sizes) > 1), sf.lit(SEVERAL_DIMENSIONS))
    )
    count = sf.when(error.isNotNull() | empty, sf.lit(0)).otherwise(sf.get(sizes, sf.lit(0)))
    return sf.when(error.isNull(), sf.array_repeat(value, count)), error


@strict("width_bucket_array")
def _bucket(invocation: Invocation) -> Outcome:
    value, thresholds = (_compared(invocation, number) for number in range(2))
    # A search by halves, as PostgreSQL's, which decides where the thresholds are in no order.
    bounds = sf.struct(sf.lit(0).alias("low"), sf.size(thresholds).alias("high"))

    def halved(bounds: Column, _: Column) -> Column:
        low, high = bounds["low"], bounds["high"]
        middle = sf.shiftright(low + high, 1)
        below = compare("lt", value, sf.get(thresholds, middle))
        open_ = low < high
        return sf.struct(
            sf.when(open_ & ~below, middle + 1).otherwise(low).alias("low"),
            sf.when(open_ & below, middle).otherwise(high).alias("high"),
        )

    found = sf.aggregate(sf.sequence(sf.lit(1), sf.lit(ARRAY_ELEMENTS.bit_length() + 1)), bounds, halved)["low"]
    error = sf.when(
        sf.exists(thresholds, lambda one: one.isNull()), sf.lit("22004 thresholds array must not contain NULLs")
    )
    return _where(invocation, sf.when(error.isNull(), found)), _where(invocation, error)


# Elements that are not distinct from a value.


def _places(array: Column, value: Column) -> Column:
    """Returns the places of the elements that are not distinct from `value`, in order."""
    places = sf.transform(array, lambda one, n: sf.when(one.eqNullSafe(value), n + 1))
    return sf.filter(places, lambda place: place.isNotNull())


@lenient("array_position")
def _position(invocation: Invocation) -> Outcome:
    array, value = (_compared(invocation, number) for number in range(2))
    return sf.get(_places(array, value), sf.lit(0)), None


@lenient("array_position_from")
def _position_from(invocation: Invocation) -> Outcome:
    array, value = (_compared(invocation, number) for number in range(2))
    start = invocation.values[2]
    places = sf.filter(_places(array, value), lambda place: place >= start)
    # Where PostgreSQL knows before that there is no such element it does not look at the start.
    looks = (sf.size(array) > 0) & (value.isNotNull() | sf.exists(array, lambda one: one.isNull()))
    error = sf.when(looks & start.isNull(), sf.lit("22004 initial position must not be null"))
    return sf.when(error.isNull(), sf.get(places, sf.lit(0))), error


@lenient("array_positions")
def _positions(invocation: Invocation) -> Outcome:
    return _places(*(_compared(invocation, number) for number in range(2))), None


@lenient("array_remove")
def _without(invocation: Invocation) -> Outcome:
    array, compared, value = invocation.values[0], _compared(invocation, 0), _compared(invocation, 1)
    return sf.filter(array, lambda _, n: ~sf.get(compared, n).eqNullSafe(value)), None


@lenient("array_replace")
def _replaced(invocation: Invocation) -> Outcome:
    array, _, new = invocation.values
    compared, old = _compared(invocation, 0), _compared(invocation, 1)
    return sf.transform(array, lambda one, n: sf.when(sf.get(compared, n).eqNullSafe(old), new).otherwise(one)), None


@strict("distinct_elements")
def _distinct(invocation: Invocation) -> Outcome:
    array, compared = invocation.values[0], _compared(invocation, 0)
    return sf.filter(array, lambda _, n: (n == 0) | ~sf.get(compared, n).eqNullSafe(sf.get(compared, n - 1))), None


# Longer arrays.


def _or_empty(array: Column, type_: ScalarType) -> Column:
    return sf.coalesce(array, sf.array().cast(spark_type(type_)))


@lenient("array_append")
def _append(invocation: Invocation) -> Outcome:
    array, value = invocation.values
    return sf.concat(_or_empty(array, invocation.type), sf.array(value)), None


@lenient("array_prepend")
def _prepend(invocation: Invocation) -> Outcome:
    value, array = invocation.values
    return sf.concat(sf.array(value), _or_empty(array, invocation.type)), None


@lenient("array_cat")
def _cat(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    return sf.coalesce(sf.concat(left, right), left, right), None


# Texts.


@lenient("array_to_string")
def _to_string(invocation: Invocation) -> Outcome:
    texts, separator, *shown = invocation.values
    if shown:
        texts = sf.when(shown[0].isNull(), texts).otherwise(sf.transform(texts, lambda one: sf.coalesce(one, shown[0])))
    kept = sf.filter(texts, lambda one: one.isNotNull())
    parts = sf.transform(kept, lambda one, n: sf.when(n == 0, one).otherwise(sf.concat(separator, one)))
    joined = sf.aggregate(parts, sf.lit(""), lambda whole, one: sf.concat(whole, one))
    return sf.when(texts.isNotNull() & separator.isNotNull(), joined), None


@lenient("string_to_array", "string_to_array_by")
def _of_string(invocation: Invocation) -> Outcome:
    text, separator, *null = invocation.values
    # As Java's Pattern.quote has it.
    quoted = sf.replace(separator, sf.lit("\\E"), sf.lit("\\E\\\\E\\Q"))
    pattern = sf.concat(sf.lit("\\Q"), quoted, sf.lit("\\E"))
    letters = sf.transform(
        sf.array_repeat(sf.lit(0), sf.char_length(text)), lambda _, n: sf.substring(text, n + 1, sf.lit(1))
    )
    parts = (
        sf.when(text == "", sf.array().cast("array<string>"))
        .when(separator.isNull(), letters)
        .when(separator == "", sf.array(text))
        .otherwise(sf.split(text, pattern, sf.lit(-1)))
    )
    if null:
        parts = sf.transform(parts, lambda one: sf.when(~one.eqNullSafe(null[0]), one))
    return sf.when(text.isNotNull(), parts), None
