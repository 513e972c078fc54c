"""A look at what is in a collection, without Spark and without reading it: some updates of a batch, and its errors.

For people, so cells are text and long ones are cut. What is looked at is as exact as any read, but nothing waits for it
or fails because of it: a batch that a merge and a sweep took away meanwhile has nothing to show.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import Batch, BatchState, CollectionRow, ListedBatches
from mz_dagster.compute import CollectionStep
from mz_dagster.formalism import Antichain
from mz_dagster.storage.plain_cells import python_cells
from mz_dagster.storage.read import check_readable, leased, overlapping
from mz_dagster.storage.shards import DIFF, ERROR, TIME, BatchIncomplete

#: How long a cell may be before it is cut, in characters.
CELL = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows to look at.

    Attributes:
        columns: Their names.
        types: Their SQL types.
        rows: Numbers of the engine's own columns, and text.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """A collection's error part at a time, or a batch's.

    Attributes:
        total: How many errors there are, each as often as its multiplicity says.
        distinct: How many different ones.
        texts: The first of those, by text, each with its SQLSTATE in front.
    """

    total: int
    distinct: int
    texts: tuple[str, ...]


NO_ERRORS = ErrorPart(0, 0, ())


def updates_written(engine: Engine, row: CollectionRow, step: CollectionStep, limit: int) -> Sample:
    """Returns some of the updates that a step wrote to a collection, in no order."""
    columns = (*row.names, TIME, DIFF, ERROR)
    types = (*(str(column.type) for column in row.columns), "bigint", "bigint", "text")
    found: list[tuple[str | int, ...]] = []
    if (batch := _written(row, step)) is not None:
        with suppress(BatchIncomplete):
            head = engine.shards.head(row, batch, limit)
            data = [[shown(cell) for cell in python_cells(head.column(i))] for i in range(len(row.columns))]
            meta = [head.column(name).to_pylist() for name in (TIME, DIFF)]
            found = list(zip(*data, *meta, map(shown, head.column(ERROR).to_pylist()), strict=True))
    return Sample(columns, types, tuple(found))


def errors_written(engine: Engine, row: CollectionRow, step: CollectionStep, limit: int) -> ErrorPart:
    """Returns the errors that a step added to a collection, those that it took back not counted."""
    batch = _written(row, step)
    if batch is None or not batch.stats.errors:
        return NO_ERRORS
    with suppress(BatchIncomplete):
        added = {text: n for text, n in _net(engine.shards.errors(row, [batch])).items() if n > 0}
        return _part(added, limit)
    return NO_ERRORS


def errors_at(engine: Engine, row: CollectionRow, time: int, limit: int) -> ErrorPart:
    """Returns the error part of a collection at a time, or at its since if that is later.

    Opens no file unless the statistics say that there is an error.

    Raises:
        ReadBeyondUpper: It is not complete at that time.
    """
    return _part(all_errors_at(engine, row, time), limit)


def all_errors_at(engine: Engine, row: CollectionRow, time: int) -> dict[str, int]:
    """Returns how often each error is in the error part of a collection; see `errors_at`."""
    if not _candidates(row, engine.catalog.listed([row.id])[row.id], time)[0]:
        return {}  # no file is read, so none needs a lease
    with leased(engine.catalog, [row.id], holder=engine.holder, ttl_ms=engine.project.lease_ms) as lease:
        batches, time = _candidates(row, lease.snapshots[row.id], time)
        found = engine.shards.errors(row, batches, upper=time + 1)
    return _net(found)


def _candidates(row: CollectionRow, listed: ListedBatches, time: int) -> tuple[tuple[Batch, ...], int]:
    """Returns the batches that may hold errors that count at a time, or at since if that is later, and at which."""
    time = time if listed.since.is_empty else max(time, listed.since.only)
    check_readable(row.id, listed, time)
    return tuple(one for one in overlapping(listed.batches, None, time + 1) if one.stats.errors), time


def shown(cell: object) -> str:
    """Returns a cell as text.

    Example:
        >>> shown(None), shown("x" * 300) == "x" * 199 + "…"
        ('NULL', True)
    """
    text = "NULL" if cell is None else str(cell)
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _written(row: CollectionRow, step: CollectionStep) -> Batch | None:
    """Returns the batch that a step wrote, or None; unleased, as a part of it never passes for whole."""
    if step.batch is None or not step.stats.rows:
        return None
    lower, upper = (Antichain.of(row.upper.lattice, time) for time in (step.lower, step.upper))
    return Batch(step.batch, row.id, lower, upper, BatchState.LIVE, step.stats)


def _net(errors: pa.Table) -> dict[str, int]:
    """Returns how often each error is there, without those that cancel."""
    grouped = errors.group_by(ERROR, use_threads=False).aggregate([(DIFF, "sum")])
    counts = zip(grouped.column(ERROR).to_pylist(), grouped.column(f"{DIFF}_sum").to_pylist(), strict=True)
    return {text: n for text, n in counts if n}


def _part(counts: dict[str, int], limit: int) -> ErrorPart:
    return ErrorPart(sum(abs(n) for n in counts.values()), len(counts), tuple(sorted(counts)[:limit]))
