"""What is sent to every task of a join, and that it is little.

To send a few rows to all tasks spares a shuffle of what they are joined with. They are in the memory of the driver and
of each executor then, which nothing spills: it is the one thing in a step that grows with its rows and has no bound by
itself. What a join multiplied, or how long its texts are, is not known before it is there. So each task counts the rows
that it makes for sending, and fails when they are too many or too large; then the collection is computed anew without
sending anything, by shuffles, which go to disk.

A task knows the number of a row and the row's own size w, but no sum of sizes. It fails where the first n rows would
have more than `Budget.sent_bytes` B if all were as large as the n-th. So of rows of one size it makes no more than B
bytes, and of any others no more than B * (1 + 1/2 + ... + 1/n), fourteen times as much for all of `Budget.sent_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.balanced import balanced
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.causes import chain

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TOO_MANY = "mz: too many rows to be sent to all tasks"
_NO_COLUMNS: Mapping[str, ScalarType] = MappingProxyType({})
#: The kinds of which no value takes more than a few bytes.
_SMALL = frozenset(Kind) - {
    Kind.TEXT,
    Kind.VARCHAR,
    Kind.CHAR,
    Kind.BYTEA,
    Kind.JSON,
    Kind.JSONB,
    Kind.ARRAY,
    Kind.RECORD,
    Kind.DIMENSIONED,
}
#: The bits in which Spark numbers the rows of a partition.
_OF_PARTITION = 2**33 - 1


def broadcast(frame: DataFrame, columns: Mapping[str, ScalarType] = _NO_COLUMNS) -> DataFrame:
    """Returns rows that are to be sent to every task; of more than `Budget` allows a task, what runs them fails.

    Args:
        frame: The rows.
        columns: The types of those of their columns that may be large.
    """
    number = sf.monotonically_increasing_id().bitwiseAND(sf.lit(_OF_PARTITION))
    too_many = sf.raise_error(sf.lit(_TOO_MANY)).cast("boolean")
    within = sf.when(number >= budget().sent_rows, too_many)
    sizes = [_size(name, type_) for name, type_ in columns.items() if type_.kind not in _SMALL]
    if sizes:
        bytes_ = (number + 1) * balanced(add, sizes)
        within = within.when(bytes_ > budget().sent_bytes, too_many)
    return frame.where(within.otherwise(sf.lit(True))).hint("broadcast")


def _size(name: str, type_: ScalarType) -> Column:
    """Returns about how many bytes the column of that name takes."""
    column = sf.col(name)
    stored = spark_type(type_)
    text = column if stored in ("string", "binary") else sf.to_json(column)
    return sf.coalesce(sf.octet_length(text), sf.lit(0)).cast("bigint")


def is_too_large_to_broadcast(error: BaseException) -> bool:
    """Returns whether what failed was to send more than is sent."""
    return any(_TOO_MANY in str(one) for one in chain(error))
