"""Unnest: each row beside the elements of its arrays. Linear: time and diff are kept, without a shuffle.

Cost: the arrays of one row at a time in memory; the functions that make arrays bound their length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, positional, spark_type
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mz_dagster.plan.physical import Unnest
    from mz_dagster.scalars.types import ScalarType

_NUMBER = "mz_number"
_ELEMENTS = "mz_elements"


def unnest(frame: DataFrame, node: Unnest) -> DataFrame:
    """Returns the updates with elements in the places of the arrays; those of the error part pass as one row each."""
    arity = node.input.relation_type.arity
    kept = positional(arity)[: arity - node.arrays]
    arrays = positional(arity)[len(kept) :]
    types = [column.type for column in node.relation_type.columns[len(kept) : arity]]
    total = [_elements(sf.col(name), type_).alias(name) for name, type_ in zip(arrays, types, strict=True)]
    frame = frame.select(*kept, *META, *total)
    rows = frame.select(*kept, *META, sf.posexplode(sf.arrays_zip(*arrays)).alias(_NUMBER, _ELEMENTS))
    data = [sf.col(name) for name in kept] + [sf.col(_ELEMENTS).getField(name) for name in arrays]
    if node.ordinality:
        data.append((sf.col(_NUMBER) + 1).cast("bigint"))
    named = [column.alias(name) for column, name in zip(data, positional(len(data)), strict=True)]
    return rows.select(*named, TIME, DIFF, ERROR)


def _elements(array: Column, type_: ScalarType) -> Column:
    """Returns the elements that become rows: none of NULL; in a row with an error one, so that the row stays."""
    array_type = f"array<{spark_type(type_)}>"
    none = sf.array().cast(array_type)
    one = sf.array(sf.lit(None)).cast(array_type)
    return sf.when(sf.col(ERROR).isNotNull(), one).otherwise(sf.coalesce(array, none))
