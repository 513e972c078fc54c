"""The hash by which rows are laid out in buckets: equal keys have equal hashes, on every frame and for good.

Files on disk depend on it, so it must never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def hash_modulo(columns: Sequence[Column], types: Sequence[ScalarType], modulus: int) -> Column:
    """Returns the bucket number of a key: its hash modulo `modulus`, a power of two.

    Args:
        columns: The key's columns; each is cast to how its type is stored, since the hash is one of representations.
        types: Their types.
        modulus: How many buckets there are.
    """
    normal = [_normal(column.cast(spark_type(one)), one) for column, one in zip(columns, types, strict=True)]
    return sf.pmod(sf.xxhash64(*normal), sf.lit(modulus).cast("bigint"))


def _normal(column: Column, type_: ScalarType) -> Column:
    """Returns the one value that stands for all that equal the column's: of zeros and of NaNs."""
    element = type_.element
    if element is not None and element.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return sf.transform(column, lambda one: _normal(one, element))
    if type_.fields:
        parts = enumerate((one for _, one in type_.fields), 1)
        return sf.struct(*(_normal(column.getField(f"f{i}"), one) for i, one in parts))
    if type_.kind not in (Kind.FLOAT4, Kind.FLOAT8):
        return column
    stored = spark_type(type_)
    zero, nan = sf.lit(0.0).cast(stored), sf.lit(float("nan")).cast(stored)
    return sf.when(column == zero, zero).when(sf.isnan(column), nan).otherwise(column)
