"""Peeks: a plan's content at one time, as rows: few in Python, many in the Arrow columns that they were computed in.

A peek runs the same operators as a step, in their form for one time, over leased lists; of little, in this process.
Its answer is exact or an error: an error part that does not sum to zero is raised, and so is a multiplicity below zero.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, by_position, positional, with_names
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.lookups.step_reads import stored_parts
from mz_dagster.compute.snapshot.content import snapshot
from mz_dagster.compute.snapshot.stored_rows import AT_ONCE, Row, StoredRows, repeated
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.expressions.pure import plain_form
from mz_dagster.compute.spark.operators import Read
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.walk.handover import Handover
from mz_dagster.compute.walk.local_plans import LocalContents
from mz_dagster.errors import DataError, OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.operators import operators
from mz_dagster.plan.physical import ReadCollection, SnapshotPlan
from mz_dagster.plan.plan_size import PlanTooLarge
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.scalars.values import from_stored
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.storage.read import overlapping
from mz_dagster.storage.spark import reporting_lost_spark
from mz_dagster.storage.spark.deadline import HeapFull

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What a row takes at least, with what is made of it until it is handed out.
_LEAST_ROW_BYTES = 128
#: Rows that were found: few in Python, many in columns.
Found = list[Row] | StoredRows


_HINT = "It heals when the row that causes it is corrected or deleted."
#: How an error of a record in a file ends (`source.record`), and what takes it back.
_IN_FILE = re.compile(r' \(file ".*", (?:line|row) \d+(?:, column ".*")?\)$', re.DOTALL)
_IN_FILE_HINT = (
    "With a key, its next record takes it back; "
    "ALTER SOURCE ... DROP ERRORS has the source go on without what it cannot read."
)


class CollectionHasErrors(DataError):
    """An error that is part of what was read; its SQLSTATE is that of the error in the data."""

    def __init__(self, text: str, others: int) -> None:
        code, _, message = text.partition(" ")
        super().__init__(
            message,
            detail=f"It is an error of the data, with SQLSTATE {code}."
            + (f" There are {others} more." if others else ""),
            hint=_IN_FILE_HINT if _IN_FILE.search(message) else _HINT,
        )
        self.sqlstate = code


class NegativeMultiplicity(DataError):
    """A row of which there are fewer than none: a retraction of what was never there."""

    sqlstate = "XX001"


class ResultTooLarge(OperationalError):
    """Rows of which there are more copies than memory holds."""

    sqlstate = "53200"

    def __init__(self, count: int) -> None:
        super().__init__(
            f"memory does not hold the {count} rows of the result",
            detail="Many of them are copies of one row.",
            hint="Group by the columns and count, or select DISTINCT.",
        )


def peek(session: SparkSession, read: Read, plan: SnapshotPlan, as_of: int) -> Found:
    """Returns the plan's rows at `as_of`, each as often as its multiplicity says, in no order.

    Args:
        session: The session to run on.
        read: Returns the updates of a collection with `lower <= time < upper`.
        plan: What to compute.
        as_of: When; every collection that is read must be readable there.

    Raises:
        DataError: The content is an error, or a multiplicity is negative.
    """
    columns = plan.output.relation_type.columns
    with _naming(plan), reporting_lost_spark():
        named = by_position(plan.output.relation_type)
        content = snapshot(session, read, plan, as_of).toDF(*positional(len(columns)), *META)
        total = consolidate(content, named)
        # Moments travel as numbers: no client's zone shifts them, and of infinite ones Python has no date.
        shown = [plain_form(F.col(column.name), column.type).alias(column.name) for column in named]
        collected = total.select(*shown, F.col(DIFF), F.col(ERROR)).toArrow()
    return found_rows(collected, range(len(columns)), columns)


@contextmanager
def _naming(plan: SnapshotPlan) -> Iterator[None]:
    """Says of what was too much for Spark which operators that was."""
    try:
        yield
    except (HeapFull, PlanTooLarge) as error:
        raise error.of(f"{operators(plan.output)} of a query") from error


def peek_locally(
    spark: SparkUse,
    local: LocalShards,
    rows: Mapping[GlobalId, CollectionRow],
    listed: Mapping[GlobalId, Sequence[Batch]],
    plan: SnapshotPlan,
    as_of: int,
    given: Mapping[GlobalId, pa.Table] = MappingProxyType({}),
) -> Found | str:
    """Returns what `peek` does, computed in this process, with Spark for functions at most; else why it is Spark's.

    Args:
        spark: Opens Spark when it is needed, told for what.
        local: Where the collections are.
        rows: The collections that are read, by their ids.
        listed: Their batches.
        plan: What to compute.
        as_of: When; every collection that is read must be readable there.
        given: Updates that are read as collections are.

    Raises:
        DataError: The content is an error, or a multiplicity is negative.
    """
    before = {id: overlapping(batches, None, as_of + 1) for id, batches in listed.items()}

    def stored(read: ReadCollection, used: Collection[int], at_once: int | None) -> Iterable[pa.Table]:
        if read.id in given:
            return [given[read.id]]
        return stored_parts(local, rows[read.id], before[read.id], as_of + 1, used, read.where, at_once)

    contents = LocalContents(
        spark,
        lambda id: len(given[id]) if id in given else sum(batch.stats.rows for batch in before[id]),
        stored,
        as_of,
        as_of + 1,
    )
    with reporting_lost_spark():
        found = contents.updates(plan.output, plan.shared)
    if found is None:
        return contents.spark_because
    columns = plan.output.relation_type.columns
    return found_rows(summed(found), range(len(columns)), columns)


def updates_of_rows(columns: RelationType, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Returns the updates by which rows are there from the first time on."""
    if isinstance(rows, StoredRows):
        return rows.updates(columns.columns, FIRST_TIME)
    return update_table(columns.columns, [(row, FIRST_TIME, 1) for row in rows])


def frame_of_given(spark: SparkUse, updates: pa.Table, columns: RelationType) -> DataFrame:
    """Returns given updates as Spark reads those of a collection."""
    return with_names(Handover(spark).to_spark(updates, columns), columns)


def found_rows(total: pa.Table, places: Sequence[int | str], columns: tuple[Column, ...]) -> Found:
    """Returns the rows of a consolidated update frame, each as often as its diff says.

    Args:
        total: The frame.
        places: Which of its columns are the rows', by position or by name.
        columns: What these are.

    Raises:
        DataError: As for `peek`.
    """
    if total.column(ERROR).null_count == len(total):
        _ensure_held(total)
    else:  # which is all that is told, and no copies of rows are made for it
        total = total.filter(pc.or_(pc.less(total.column(DIFF), 0), pc.is_valid(total.column(ERROR))))
    data = [total.column(place) for place in places]
    if len(total) <= AT_ONCE or not columns:
        ends = total.column(DIFF).to_pylist(), total.column(ERROR).to_pylist()
        return rows_of(zip(*map(cells, data), *ends, strict=True), columns)
    are_good = pc.is_null(total.column(ERROR))
    is_wrong = pc.and_(are_good, pc.less(total.column(DIFF), 0))
    if not pc.all(are_good).as_py() or pc.any(is_wrong).as_py():
        total = total.filter(pc.or_(is_wrong, pc.invert(are_good)))
        ends = total.column(DIFF).to_pylist(), total.column(ERROR).to_pylist()
        return rows_of(zip(*(cells(total.column(one)) for one in places), *ends, strict=True), columns)
    found = StoredRows.of(data, columns)
    often = repeated(total.column(DIFF))
    return found if often is None else found.taken(often)


def _ensure_held(rows: pa.Table) -> None:
    """Returns if memory holds the copies of rows that their diffs ask for, besides the rows, which it holds.

    Raises:
        ResultTooLarge: It does not.
    """
    fewest, often = pc.min_max(rows.column(DIFF)).as_py().values()
    if not rows.num_rows or fewest < 0:
        return  # which is what is told of such rows
    if often <= 1 or often * len(rows) * _LEAST_ROW_BYTES <= budget().returned_bytes:
        return  # as always, but for rows of very many copies
    count = sum(diff for diff in rows.column(DIFF).to_pylist() if diff > 0)
    if (count - len(rows)) * max(_LEAST_ROW_BYTES, rows.nbytes // len(rows)) > budget().returned_bytes:
        raise ResultTooLarge(count)


def cells(column: pa.ChunkedArray) -> list[Any]:
    """Returns stored cells as `rows_of` takes them: moments as numbers, as they come from Spark."""
    return list(moments_as_numbers(column).to_pylist())


def rows_of(updates: Iterable[tuple[Any, ...]], columns: tuple[Column, ...]) -> list[Row]:
    """Returns rows from consolidated `(*data, diff, error)`, each as often as its diff says.

    Raises:
        DataError: As for `peek`.
    """
    rows: list[Row] = []
    errors: list[str] = []
    types = [column.type for column in columns]
    for *data, diff, error in updates:
        if error is not None:
            errors.append(str(error))
            continue
        data = [from_stored(cell, type_) for cell, type_ in zip(data, types, strict=True)]
        if diff < 0:
            raise NegativeMultiplicity(
                "a row has a negative multiplicity",
                detail=f"Row {tuple(data)!r} is there {diff} times.",
                hint="A source retracted what it never asserted; correct the source's data.",
            )
        rows.extend([tuple(data)] * diff)
    if errors:
        raise CollectionHasErrors(min(errors), len(errors) - 1)
    return rows
