"""Functions that run in Python, on Spark's workers: all of `plan.functions.pure`.

Owns the way there and back: stored values to plain ones and results to columns. A worker gets the code by value,
so that it needs no `mz_dagster`, only Python of the same minor version with pyarrow, as any Python function of
Spark does. About a microsecond a row: what Spark can compute exactly itself is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import functions as sf
from pyspark.sql import types

from mz_dagster.compute.scalar.emitted import STRICT, Invocation, Outcome, all_present
from mz_dagster.plan.functions import FUNCTIONS, pure
from mz_dagster.plan.scalar import Call
from mz_dagster.plan.types import Kind, ScalarType, array_of
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

cloudpickle.register_pickle_by_value(pure)  # type: ignore[no-untyped-call]


def in_python(invocation: Invocation) -> Outcome:
    """Returns the call of a function of `PURE`."""
    fallible = FUNCTIONS[invocation.function].fallible
    value_type = plain_type(invocation.type)
    returned = (
        types.StructType([types.StructField("value", value_type), types.StructField("error", types.StringType())])
        if fallible
        else value_type
    )
    body = pure.PURE[invocation.function]
    if invocation.function in pure.SCALED:
        body = _with_scale(body, invocation.type.scale)
    function = sf.udf(on_worker(body, fallible=fallible), returned, useArrow=True)
    arguments = [
        _plain(value, scalar.type) for value, scalar in zip(invocation.values, invocation.scalars, strict=True)
    ]
    (result,) = invocation.share(function(*arguments))
    if not fallible:
        return restored(result, invocation.type), None
    error = result.getField("error")
    return restored(result.getField("value"), invocation.type), sf.when(all_present(invocation.values), error)


def _with_scale(function: Callable[..., Any], scale: int) -> Callable[..., Any]:
    return lambda *arguments: function(*arguments, scale)


def each_in_python(array: Column, call: Call, share: Callable[..., list[Column]]) -> Outcome:
    """Returns what a call of a function of `PURE` is for each element of `array`, in the place of its one argument.

    The error is that of the first element that fails.
    """
    fallible = FUNCTIONS[call.function].fallible
    element, values = call.arguments[0].type, types.ArrayType(plain_type(call.type))
    returned = (
        types.StructType([types.StructField("value", values), types.StructField("error", types.StringType())])
        if fallible
        else values
    )
    body = pure.PURE[call.function]
    if call.function in pure.SCALED:
        body = _with_scale(body, call.type.scale)
    worker = on_worker(body, fallible=fallible)

    def each(cells: list[Any] | None) -> Any:
        if cells is None:
            return (None, None) if fallible else None
        outcomes = [worker(one) for one in cells]
        if not fallible:
            return outcomes
        error = next((error for _, error in outcomes if error is not None), None)
        return ([value for value, _ in outcomes] if error is None else None), error

    plain = _plain(array, array_of(element))
    (result,) = share(sf.udf(each, returned, useArrow=True)(plain))
    if not fallible:
        return restored(result, array_of(call.type)), None
    return restored(result.getField("value"), array_of(call.type)), result.getField("error")


def on_worker(function: Callable[..., Any], *, fallible: bool) -> Callable[..., Any]:
    """Returns what runs on a worker: strict, and with the error as a value if there can be one."""
    failure = pure.SqlFailure

    def strict(*arguments: Any) -> Any:
        return None if None in arguments else function(*arguments)

    def total(*arguments: Any) -> Any:
        if None in arguments:
            return None, None
        try:
            return function(*arguments), None
        except failure as error:
            return None, str(error)

    return total if fallible else strict


def plain_type(type_: ScalarType) -> types.DataType:
    """Returns the Spark type in which a worker gets and gives values of `type_`."""
    match type_.kind:
        case Kind.DATE:
            return types.IntegerType()
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return types.LongType()
        case Kind.ARRAY:
            assert type_.element is not None
            return types.ArrayType(plain_type(type_.element))
        case Kind.RECORD:
            fields = enumerate(type_.fields, 1)
            return types.StructType([types.StructField(f"f{i}", plain_type(one)) for i, (_, one) in fields])
        case _:
            return spark_type(type_)


def _plain(value: Column, type_: ScalarType) -> Column:
    match type_.kind:
        case Kind.DATE:
            return sf.unix_date(value)
        case Kind.TIMESTAMP:
            # UTC is the session's zone.
            return sf.unix_micros(value.cast("timestamp"))
        case Kind.TIMESTAMPTZ:
            return sf.unix_micros(value)
        case Kind.ARRAY if type_.element is not None and plain_type(type_.element) != spark_type(type_.element):
            element = type_.element
            return sf.transform(value, lambda one: _plain(one, element))
        case Kind.RECORD if plain_type(type_) != spark_type(type_):
            return _fields(value, type_, _plain)
        case _:
            return value


def restored(value: Column, type_: ScalarType) -> Column:
    """Returns a value in its stored form, given in its plain one."""
    match type_.kind:
        case Kind.DATE:
            return sf.date_from_unix_date(value)
        case Kind.TIMESTAMP:
            return sf.timestamp_micros(value).cast("timestamp_ntz")
        case Kind.TIMESTAMPTZ:
            return sf.timestamp_micros(value)
        case Kind.ARRAY if type_.element is not None and plain_type(type_.element) != spark_type(type_.element):
            element = type_.element
            return sf.transform(value, lambda one: restored(one, element))
        case Kind.RECORD if plain_type(type_) != spark_type(type_):
            return _fields(value, type_, restored)
        case _:
            return value


# What Spark computes exactly itself has an implementation of its own, whichever module is imported first.
def _fields(value: Column, type_: ScalarType, rule: Callable[[Column, ScalarType], Column]) -> Column:
    """Returns a record of what `rule` makes of each field."""
    fields = [rule(value.getField(f"f{i}"), one).alias(f"f{i}") for i, (_, one) in enumerate(type_.fields, 1)]
    return sf.when(value.isNotNull(), sf.struct(*fields))


STRICT.update({name: in_python for name in pure.PURE if name not in STRICT})
