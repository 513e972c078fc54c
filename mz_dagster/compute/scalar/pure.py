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
from mz_dagster.plan.types import Kind, ScalarType
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

cloudpickle.register_pickle_by_value(pure)  # type: ignore[no-untyped-call]


def in_python(invocation: Invocation) -> Outcome:
    """Returns the call of a function of `PURE`."""
    fallible = FUNCTIONS[invocation.function].fallible
    value_type = _plain_type(invocation.type)
    returned = (
        types.StructType([types.StructField("value", value_type), types.StructField("error", types.StringType())])
        if fallible
        else value_type
    )
    function = sf.udf(_worker(pure.PURE[invocation.function], fallible=fallible), returned, useArrow=True)
    arguments = [
        _plain(value, scalar.type) for value, scalar in zip(invocation.values, invocation.scalars, strict=True)
    ]
    (result,) = invocation.share(function(*arguments))
    if not fallible:
        return _stored(result, invocation.type), None
    error = result.getField("error")
    return _stored(result.getField("value"), invocation.type), sf.when(all_present(invocation.values), error)


def _worker(function: Callable[..., Any], *, fallible: bool) -> Callable[..., Any]:
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


def _plain_type(type_: ScalarType) -> types.DataType:
    """Returns the Spark type in which a worker gets and gives values of `type_`."""
    match type_.kind:
        case Kind.DATE:
            return types.IntegerType()
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return types.LongType()
        case Kind.ARRAY:
            assert type_.element is not None
            return types.ArrayType(_plain_type(type_.element))
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
        case Kind.ARRAY if type_.element is not None and _plain_type(type_.element) != spark_type(type_.element):
            element = type_.element
            return sf.transform(value, lambda one: _plain(one, element))
        case _:
            return value


def _stored(value: Column, type_: ScalarType) -> Column:
    match type_.kind:
        case Kind.DATE:
            return sf.date_from_unix_date(value)
        case Kind.TIMESTAMP:
            return sf.timestamp_micros(value).cast("timestamp_ntz")
        case Kind.TIMESTAMPTZ:
            return sf.timestamp_micros(value)
        case Kind.ARRAY if type_.element is not None and _plain_type(type_.element) != spark_type(type_.element):
            element = type_.element
            return sf.transform(value, lambda one: _stored(one, element))
        case _:
            return value


STRICT.update(dict.fromkeys(pure.PURE, in_python))
