"""How the scalar types of a plan are stored by Spark.

Owns the one mapping from `ScalarType` to Spark's types. It agrees with the `deltalake` implementation's; the
conformance suite of the shards holds them together.
"""

from __future__ import annotations

from functools import cache

from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import types


def quoted(name: str) -> str:
    """Returns `name` as a quoted identifier of Spark.

    Example:
        >>> quoted("a`b")
        '`a``b`'
    """
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def spark_type(scalar: ScalarType) -> types.DataType:
    """Returns the Spark type that holds exactly the values of `scalar`.

    Example:
        >>> from mz_dagster.scalars.types import TIMESTAMP, numeric
        >>> spark_type(numeric(2)).simpleString(), spark_type(TIMESTAMP).simpleString()
        ('decimal(38,2)', 'timestamp_ntz')
    """
    if scalar.element is not None:
        return types.ArrayType(spark_type(scalar.element))
    if scalar.is_composite:
        fields = enumerate(scalar.fields, 1)
        return types.StructType([types.StructField(f"f{i}", spark_type(one)) for i, (_, one) in fields])
    if scalar.kind is Kind.NUMERIC:
        return types.DecimalType(38, scalar.scale)
    return _types()[scalar.kind]


@cache
def _types() -> dict[Kind, types.DataType]:
    return {
        Kind.BOOL: types.BooleanType(),
        Kind.INT2: types.ShortType(),
        Kind.INT4: types.IntegerType(),
        Kind.INT8: types.LongType(),
        Kind.FLOAT4: types.FloatType(),
        Kind.FLOAT8: types.DoubleType(),
        Kind.TEXT: types.StringType(),
        Kind.DATE: types.DateType(),
        Kind.TIMESTAMP: types.TimestampNTZType(),
        Kind.TIMESTAMPTZ: types.TimestampType(),
        Kind.MZ_TIMESTAMP: types.LongType(),
        Kind.TIME: types.LongType(),
        Kind.TIMETZ: types.LongType(),
        Kind.INTERVAL: types.StructType(
            [
                types.StructField("months", types.IntegerType()),
                types.StructField("days", types.IntegerType()),
                types.StructField("microseconds", types.LongType()),
            ]
        ),
        Kind.UUID: types.StringType(),
        Kind.BYTEA: types.BinaryType(),
        Kind.JSON: types.StringType(),
        Kind.JSONB: types.StringType(),
        Kind.UNCONSTRAINED: types.StringType(),
        Kind.VARCHAR: types.StringType(),
        Kind.ENUM: types.StringType(),
        Kind.CHAR: types.StringType(),
    }
