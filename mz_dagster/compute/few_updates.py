"""Few updates: what Spark computed, handed over for this process to write.

A write by Spark costs the jobs of a Delta commit, however little there is to write: a second or two, ten times what an
append in this process costs. Whether a result is few shows when it is there; if it is not, it is left to Spark, which
then computes it again. So this is for results that are likely to be few: where little was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.plan.types import Column
from mz_dagster.storage.spark_shards import update_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

#: Up to how many updates are few.
FEW = 500_000
#: A first load of more rows than this is left to Spark, which lays it out for lookups.
FEW_AT_FIRST = 100_000


def likely_few(read: int, *, is_first: bool) -> bool:
    """Returns whether few updates are likely to be made of `read` rows, by which a collection may be made first."""
    return read <= (FEW_AT_FIRST if is_first else FEW)


def few_updates(frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
    """Returns the updates of `frame`, or None if they are more than `FEW`.

    Args:
        frame: Its columns are `columns`, under their names and in their order, then time, diff and error.
        columns: The data columns.
    """
    # Without the limit a result of any size would go through the memory of both processes; without being told the
    # columns, the client would have the whole plan analyzed once more to know them.
    found = frame.limit(FEW + 1).to(update_schema(columns)).toArrow()
    return found if found.num_rows <= FEW else None
