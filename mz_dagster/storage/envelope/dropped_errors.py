"""Errors of a source of files that were dropped: what they are from the tick on at which that was said.

A record that cannot be read is an error of its source, and with the envelope `none` no later record takes it back. Who
has decided to go on without such records says `ALTER SOURCE ... DROP ERRORS`. That is a binding like any other: at a
tick of its own the source gains that its errors end. It is minted once the source is complete before the tick, so what
is dropped is exactly what could be seen. Let `e(t)` be the errors that the source's files make by themselves, and `d`
a tick at which errors are dropped:

    errors(t) = the errors of e(t) that began at or after the last d <= t

An error names its file and its line, and no file is bound twice: each begins once. So of each error it is enough to
know when it began. It ends at the first tick after that at which errors are dropped, or when a record of its key takes
its place, whatever comes first; what comes second is no update. The updates of rows are left as they are: a key whose
last record could not be read has no row until its next record comes.

Nothing but bindings decides it, so an interval may be split anywhere, a step that was killed begins once more and makes
the same, and a source that is read again from its files has the same errors dropped at the same times. The lines stay
where they are, in their files; what was dropped is told to who drops it, and readable at earlier times for as long as
the source's history is.

State: none but the collection itself, of which the errors before the interval are read. Cost: in proportion to errors.
What it does not do: a source of a table takes back an error with the row that makes it, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.shards import DIFF, ERROR, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Columns beside those of an update frame.
_TEXT, _DIED = "mz_text", "mz_died"


def without_dropped(updates: pa.Table, held: pa.Table, ticks: Sequence[int], lower: int) -> pa.Table:
    """Returns the updates of an interval in which errors are dropped.

    Args:
        updates: What the interval's files make by themselves.
        held: The errors before the interval, consolidated.
        ticks: Those at which errors are dropped, in ascending order.
        lower: Where the interval begins.

    Example:
        An error of before is dropped at 5, one of the interval's own at the second time; the row stays.

        >>> columns = ("a", TIME, DIFF, ERROR)
        >>> rows = lambda *rows: pa.Table.from_pylist([dict(zip(columns, one)) for one in rows],
        ...     pa.schema(zip(columns, (pa.int32(), pa.int64(), pa.int64(), pa.string()))))
        >>> found = without_dropped(rows((1, 6, 1, None), (None, 6, 1, "new")), rows((None, 4, 1, "old")), (5, 7), 5)
        >>> [tuple(one.values()) for one in found.to_pylist()]
        [(1, 6, 1, None), (None, 6, 1, 'new'), (None, 5, -1, 'old'), (None, 7, -1, 'new')]
    """
    are_errors = pc.is_valid(updates.column(ERROR))
    errors = pa.concat_tables([held.select(updates.column_names), updates.filter(are_errors)]).combine_chunks()
    begin = pc.greater(errors.column(DIFF), 0)
    born, gone = errors.filter(begin), errors.filter(pc.invert(begin))
    replaced = gone.column(TIME).take(pc.index_in(born.column(ERROR), value_set=gone.column(ERROR)))
    # The first tick beyond the birth; there is none behind the last one.
    places = pa.array(np.searchsorted(np.array(ticks, np.int64), born.column(TIME).to_numpy(), side="right"))
    dropped = pa.array([*ticks, None], pa.int64()).take(places)
    end = pc.min_element_wise(replaced, dropped, skip_nulls=True)
    ended = _with(_with(born, TIME, end), DIFF, pc.negate(born.column(DIFF))).filter(pc.is_valid(end))
    begun = born.filter(pc.greater_equal(born.column(TIME), lower))
    return pa.concat_tables([updates.filter(pc.invert(are_errors)), begun, ended])


def without_dropped_by_spark(updates: DataFrame, held: DataFrame, ticks: Sequence[int], lower: int) -> DataFrame:
    """Returns what `without_dropped` does, of frames: a join of errors by their texts, no shuffle of rows."""
    errors = held.select(*updates.columns).unionByName(updates.where(F.col(ERROR).isNotNull()))
    gone = errors.where(F.col(DIFF) < 0).select(F.col(ERROR).alias(_TEXT), F.col(TIME).alias(_DIED))
    born = errors.where(F.col(DIFF) > 0).join(gone, F.col(ERROR) == F.col(_TEXT), "left")
    dropped = F.lit(None).cast("bigint")
    for tick in reversed(ticks):
        dropped = F.when(F.col(TIME) < tick, F.lit(tick).cast("bigint")).otherwise(dropped)
    ended = born.withColumn(_DIED, F.least(F.col(_DIED), dropped)).where(F.col(_DIED).isNotNull())
    ended = ended.withColumn(TIME, F.col(_DIED)).withColumn(DIFF, -F.col(DIFF))
    begun = born.where(F.col(TIME) >= lower)
    parts = [one.select(*updates.columns) for one in (updates.where(F.col(ERROR).isNull()), begun, ended)]
    return parts[0].unionByName(parts[1]).unionByName(parts[2])


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
