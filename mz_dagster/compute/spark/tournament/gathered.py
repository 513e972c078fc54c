"""Ordered aggregates of whole groups: `plan.physical.Gathered`.

`array_agg` keeps NULLs, `string_agg` skips NULL values and puts before each value but the first that value's own
separator, NULL being empty. Without an order, and among ties, the whole row decides. A row of multiplicity n is n
elements. Without any element the result is NULL. What PostgreSQL could not hold either is an error of the data.

Cost: one sort of each group for each distinct order, and the group's values in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, spark_type
from mz_dagster.compute.algebra.gathering import MOST_BYTES, MOST_ELEMENTS, TOO_MANY_BYTES, TOO_MANY_ELEMENTS
from mz_dagster.compute.spark.tournament.extremes import grouped_with_bystanders
from mz_dagster.compute.spark.tournament.top_rows import ordered
from mz_dagster.compute.spark.tournament.versions import RowLayout, sign
from mz_dagster.errors import InternalError
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Gathered
from mz_dagster.plan.relation import Aggregate, ColumnOrder
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def gathered(frame: DataFrame, shape: RowLayout, function: Gathered, keys: Sequence[str], subject: Column) -> DataFrame:
    """Returns the rows that are not `subject`, and for each bucket of the others one row of multiplicity 1.

    The arguments are those of every function of a stage (`tournament`), `keys` with an error among them; the results
    are `c{arity}` and so on.
    """
    orders = list(dict.fromkeys(one.order for one in function.aggregates))
    names: dict[tuple[ColumnOrder, ...], str] = {}
    for i, order in enumerate(orders):
        window = Window.partitionBy(*keys, *shape.group_names, subject)
        window = window.orderBy(*(ordered(one) for one in order), *shape.ties())
        names[order] = f"mz_place_{i}"
        frame = frame.select("*", sf.row_number().over(window).alias(names[order]))
    aggregations: list[Column] = []
    for i, one in enumerate(function.aggregates):
        aggregations += [column.alias(f"mz_{name}_{i}") for name, column in _collected(shape, one, names[one.order])]
    found = grouped_with_bystanders(frame, shape, keys, subject, aggregations)
    errors: list[Column] = []
    results: list[Column] = []
    for i, one in enumerate(function.aggregates):
        is_array = one.function is AggregateFunction.ARRAY_AGG
        fits = sf.col(f"mz_size_{i}") <= (MOST_ELEMENTS if is_array else MOST_BYTES)
        made = _array(f"mz_found_{i}") if is_array else _text(f"mz_found_{i}", one.type)
        results.append(sf.when(subject & fits, made).alias(f"c{shape.arity + i}"))
        errors.append(sf.when(subject & ~fits, TOO_MANY_ELEMENTS if is_array else TOO_MANY_BYTES))
    data = [
        sf.col(f"mz_own_{position}" if position in shape.others else f"c{position}") for position in range(shape.arity)
    ]
    rest = [sf.col(name) for name in keys if name != ERROR]
    error = sf.coalesce(sf.col(ERROR), *errors).alias(ERROR)
    return found.select(
        *rest, error, *(column.alias(f"c{i}") for i, column in enumerate(data)),
        *(sf.col(sign(position)) for position in shape.floats), *results, sf.col(DIFF),
    )  # fmt: skip


def _collected(shape: RowLayout, aggregate: Aggregate, place: str) -> list[tuple[str, Column]]:
    """Returns the aggregations of one aggregate: what was found, with its place, and how large the result will be."""
    if aggregate.distinct:
        raise InternalError("a distinct aggregate is gathered from distinct rows")
    value = shape.restored(aggregate.arguments[0])
    counts = sf.lit(True) if aggregate.filter is None else sf.coalesce(sf.col(f"c{aggregate.filter}"), sf.lit(False))
    fields = [sf.col(place).alias("place"), sf.col(DIFF).alias("times"), value.alias("value")]
    size = sf.col(DIFF).cast("double")
    match aggregate.function:
        case AggregateFunction.ARRAY_AGG:
            pass
        case AggregateFunction.STRING_AGG:
            empty = sf.lit("").cast(spark_type(aggregate.type))
            separator = sf.coalesce(sf.col(f"c{aggregate.arguments[1]}"), empty).alias("separator")
            counts = counts & value.isNotNull()
            size = size * text_size(value, separator, aggregate.type)
            fields.append(separator)
        case _:
            raise InternalError(f"{aggregate.function.value} is not gathered")
    total = sf.coalesce(sf.sum(sf.when(counts, size)), sf.lit(0.0))
    return [("found", sf.collect_list(sf.when(counts, sf.struct(*fields)))), ("size", total)]


def text_size(value: Column, separator: Column, type_: ScalarType) -> Column:
    """Returns how large an element of a text or a bytea is; the latter is put together as hexadecimal text."""
    width = 2 if type_.kind is Kind.BYTEA else 1
    return (width * sf.greatest(sf.octet_length(value) + sf.octet_length(separator), sf.lit(1))).cast("double")


def _elements(found: str) -> Column:
    """Returns the found rows in order, each as often as it is there."""
    return sf.flatten(
        sf.transform(sf.sort_array(sf.col(found)), lambda one: sf.array_repeat(one, one["times"].cast("int")))
    )


def _array(found: str) -> Column:
    return sf.when(sf.size(found) > 0, sf.transform(_elements(found), lambda one: one["value"]))


def _text(found: str, type_: ScalarType) -> Column:
    return sf.when(sf.size(found) > 0, joined(_elements(found), type_))


def joined(elements: Column, type_: ScalarType) -> Column:
    """Returns the values of `elements`, texts or byteas, each but the first behind its separator, as one."""
    parts = sf.transform(
        elements, lambda one, i: sf.when(i == 0, one["value"]).otherwise(sf.concat(one["separator"], one["value"]))
    )
    if type_.kind is Kind.BYTEA:
        return sf.unhex(sf.array_join(sf.transform(parts, sf.hex), ""))
    return sf.array_join(parts, "")
