"""The form of a frame of updates on Spark.

Owns the names and types of the columns and the renaming between a shard's columns (their SQL names) and the
positional ones, `c0`, `c1`, ..., that operators use. Invariant: every operator takes and returns frames with exactly
`c0 .. cn-1, mz_timestamp BIGINT, mz_diff BIGINT, mz_error STRING`; in a row with an error the data columns
mean nothing until `without_error_data` has made them NULL. It reads and writes nothing.

Operators select the columns that they return. To replace or drop columns of a frame (`withColumn`, `drop`) has the
Connect server analyze all that is below, each time: a twelfth of a step of TPC-H's views was spent on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakSet

from mz_dagster.catalog import shard_names
from mz_dagster.scalars.types import Column as PlanColumn
from mz_dagster.scalars.types import RelationType, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.schema import quoted
from mz_dagster.storage.spark.schema import spark_type as storage_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIME = "mz_timestamp"
DIFF = "mz_diff"
ERROR = "mz_error"
META = (TIME, DIFF, ERROR)

#: What a session must have set for expressions to be exact: decimal results keep their scale, or overflow. A stage of
#: shared columns takes the analyzer an iteration or two. Constraints are not inferred from expressions: Catalyst
#: substitutes aliases into each other for that, which takes minutes where large ones stand above a join. A Python
#: function gets rows, not the columns of a Parquet scan: Spark 4.2 then writes its worker a header that the worker does
#: not expect, and both wait for ever. A name is a column of the input, and never one of the same SELECT, to which
#: Spark binds it first in the body of a lambda.
REQUIRED_CONF = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
}

_exact: WeakSet[SparkSession] = WeakSet()


def ensure_exact(session: SparkSession) -> None:
    """Sets on `session` what exactness requires; one round trip for each setting, once a session."""
    if session not in _exact:
        for key, value in REQUIRED_CONF.items():
            session.conf.set(key, value)
        _exact.add(session)


def replan_while_running(session: SparkSession, wanted: bool) -> None:
    """Sets whether Spark plans the rest of a query anew after each of its shuffles: where much is read, sizes tell it.

    Where little is, planning is most of the work.
    """
    session.conf.set("spark.sql.adaptive.enabled", str(wanted).lower())


def spark_type(type_: ScalarType) -> str:
    """Returns the Spark SQL type that holds `type_`.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> spark_type(numeric(2))
        'decimal(38,2)'
    """
    return storage_type(type_).simpleString()


def spark_schema(relation_type: RelationType, names: Sequence[str] | None = None) -> str:
    """Returns the DDL of an update frame with these columns, called `names`, or `c0`, `c1`, ... by default."""
    called = positional(relation_type.arity) if names is None else names
    data = [f"{quoted(n)} {spark_type(c.type)}" for n, c in zip(called, relation_type.columns, strict=True)]
    return ", ".join([*data, f"{TIME} bigint", f"{DIFF} bigint", f"{ERROR} string"])


def named(frame: DataFrame) -> str:
    """Puts a frame under a name of its own, as a temporary view of its session, and returns the name.

    The view is analyzed here; who asks for it drops it.
    """
    name = f"mz_shared_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return name


def positional(arity: int) -> tuple[str, ...]:
    """Returns the operators' names of `arity` columns."""
    return tuple(f"c{position}" for position in range(arity))


def by_position(relation_type: RelationType) -> list[PlanColumn]:
    """Returns the columns of a relation under the operators' names."""
    names = positional(relation_type.arity)
    return [replace(column, name=name) for name, column in zip(names, relation_type.columns, strict=True)]


def columns_at(arity: int) -> list[Column]:
    """Returns the data columns of an operator's frame."""
    return [sf.col(name) for name in positional(arity)]


def meta_columns() -> list[Column]:
    """Returns time, diff and error."""
    return [sf.col(name) for name in META]


def at_time(frame: DataFrame, arity: int, time: int) -> DataFrame:
    """Returns an operator's frame with all its updates at one time."""
    return frame.select(*columns_at(arity), sf.lit(time).cast("bigint").alias(TIME), DIFF, ERROR)


def with_positions(frame: DataFrame, relation_type: RelationType) -> DataFrame:
    """Returns a shard's update frame with the operators' names; the columns' are those of SQL, or of the shard."""
    data = [sf.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(shard_names(relation_type.names))]
    return frame.select(*data, *meta_columns())


def with_names(frame: DataFrame, relation_type: RelationType) -> DataFrame:
    """Returns an operator's frame as a shard wants it; the columns' names are those of SQL, or of the shard."""
    data = [sf.col(f"c{i}").alias(name) for i, name in enumerate(shard_names(relation_type.names))]
    return frame.select(*data, *meta_columns())


def without_error_data(frame: DataFrame, arity: int) -> DataFrame:
    """Returns the frame with all data columns NULL in rows that are updates of the error part."""
    good = sf.col(ERROR).isNull()
    data = [sf.when(good, sf.col(name)).alias(name) for name in positional(arity)]
    return frame.select(*data, *meta_columns())
