"""Functions that run in Python, on Spark's workers: those of `functions.references`.

Owns the way there and back: stored values to plain ones and results to columns. A worker gets the code by value,
so that it needs no `mz_dagster`, only Python of the same minor version with pyarrow, as any Python function of
Spark does. About a microsecond a row: what Spark can compute exactly itself is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mz_dagster.compute.spark.expressions.emitted import STRICT, Invocation, Outcome, all_present
from mz_dagster.functions import FUNCTIONS
from mz_dagster.functions.arrays.parts import PARTS
from mz_dagster.functions.plain import to_plain
from mz_dagster.functions.references import PURE, SCALED
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, Literal
from mz_dagster.scalars.types import Kind, ScalarType, array_of
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types
from mz_dagster.storage.spark.floats import each_field
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def in_python(invocation: Invocation) -> Outcome:
    """Returns the call of a function of `PURE`."""
    worker, fallible = _worker(invocation.function, invocation.type)
    arguments = [
        plain_form(value, scalar.type) for value, scalar in zip(invocation.values, invocation.scalars, strict=True)
    ]
    value, error = _called(worker, arguments, invocation.type, fallible, invocation.share)
    return value, None if error is None else sf.when(all_present(invocation.values), error)


def among_in_python(invocation: Invocation, constants: frozenset[Any]) -> Outcome:
    """Returns whether the first argument is among constants in plain form, of which one may be None, for NULL."""
    otherwise = None if None in constants else False

    def is_among(value: Any) -> bool | None:
        return None if value is None else True if value in constants else otherwise

    plain = plain_form(invocation.values[0], invocation.scalars[0].type)
    return _called(is_among, [plain], invocation.type, False, invocation.share)


def each_in_python(array: Column, call: Call, share: Callable[..., list[Column]]) -> Outcome:
    """Returns what a call of a function of `PURE` is for each element of `array`, in the place of its first argument.

    Its others are literals. The error is that of the first element that fails.
    """
    worker, fallible = _worker(call.function, call.type)
    others = [to_plain(one.value, one.type) for one in call.arguments[1:] if isinstance(one, Literal)]

    def each(cells: list[Any] | None) -> Any:
        if cells is None:
            return (None, None) if fallible else None
        outcomes = [worker(one, *others) for one in cells]
        if not fallible:
            return outcomes
        error = next((error for _, error in outcomes if error is not None), None)
        return ([value for value, _ in outcomes] if error is None else None), error

    plain = plain_form(array, array_of(call.arguments[0].type))
    return _called(each, [plain], array_of(call.type), fallible, share)


def parts_in_python(invocation: Invocation) -> Outcome:
    """Returns the call of a function of `PARTS`."""
    call = Call(invocation.function, tuple(invocation.scalars), invocation.type)
    worker = on_worker(PARTS[call.function](call), fallible=False)
    plain = plain_form(invocation.values[0], call.arguments[0].type)
    return _called(worker, [plain], call.type, False, invocation.share)


def _worker(name: str, type_: ScalarType) -> tuple[Callable[..., Any], bool]:
    """Returns what runs on a worker for a function of `PURE` that returns `type_`, and whether it can fail."""
    function, fallible = PURE[name], FUNCTIONS[name].fallible
    if name not in SCALED:
        return on_worker(function, fallible=fallible), fallible
    scale = type_.scale
    return on_worker(lambda *arguments: function(*arguments, scale), fallible=fallible), fallible


def _called(
    worker: Callable[..., Any],
    arguments: Sequence[Column],
    type_: ScalarType,
    fallible: bool,
    share: Callable[..., list[Column]],
) -> Outcome:
    """Returns what a worker makes of arguments in their plain form: a value of `type_`, and an error if it can fail."""
    returned = plain_type(type_)
    if not fallible:
        (value,) = share(sf.udf(worker, returned, useArrow=True)(*arguments))
        return restored(value, type_), None
    fields = [types.StructField("value", returned), types.StructField("error", types.StringType())]
    (outcome,) = share(sf.udf(worker, types.StructType(fields), useArrow=True)(*arguments))
    return restored(outcome.getField("value"), type_), outcome.getField("error")


def on_worker(function: Callable[..., Any], *, fallible: bool) -> Callable[..., Any]:
    """Returns what runs on a worker: strict, and with the error as a value if there can be one."""
    failure = SqlFailure

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
        case Kind.RECORD | Kind.DIMENSIONED:
            fields = enumerate(type_.fields, 1)
            return types.StructType([types.StructField(f"f{i}", plain_type(one)) for i, (_, one) in fields])
        case _:
            return spark_type(type_)


def plain_form(value: Column, type_: ScalarType) -> Column:
    """Returns a value in the form in which a worker gets it."""
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
            return sf.transform(value, lambda one: plain_form(one, element))
        case Kind.RECORD | Kind.DIMENSIONED if plain_type(type_) != spark_type(type_):
            return each_field(value, type_, plain_form)
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
        case Kind.RECORD | Kind.DIMENSIONED if plain_type(type_) != spark_type(type_):
            return each_field(value, type_, restored)
        case _:
            return value


# What Spark computes exactly itself has an implementation of its own, whichever module is imported first.
STRICT.update({name: in_python for name in PURE if name not in STRICT})
