"""How a collection's content differs from what a plan computes at the same time: two multisets, compared.

    difference = content of the plan - content of the collection        consolidated

is empty exactly if they are equal; what is in it with a positive multiplicity the collection lacks, what is in it with
a negative one it has too often. Rows are compared one by one, so a share of them can be compared: those whose hash, of
all their cells, falls into it. The error part is never sampled.

Cost: the plan at one time, one read of the collection, a shuffle of both; all of it once more if they differ, for the
examples. Little is compared in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.algebra.frame import (
    DIFF,
    ERROR,
    META,
    TIME,
    at_time,
    by_position,
    columns_at,
    positional,
    with_positions,
)
from mz_dagster.compute.snapshot.content import snapshot
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.operators import Read
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.spark.union import union
from mz_dagster.compute.walk.local_plans import LocalContents
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import SnapshotPlan
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.plain_cells import python_cells
from mz_dagster.storage.spark import reporting_lost_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Rows are sampled by their hash modulo this.
_SHARES = 1_000_000

#: Cells as text, NULL being None, then how often the row is there.
Example = tuple[tuple[str | None, ...], int]


@dataclass(frozen=True, slots=True)
class RowSample:
    """Some rows: how many, each as often as it is there, and the first of them.

    Attributes:
        count: How many.
        examples: The first few, in the order of their cells.
    """

    count: int
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """How a collection differs from a plan.

    Attributes:
        held: How many rows the collection has, of those compared.
        missing: Rows that the plan has and the collection lacks.
        surplus: Rows that the collection has and the plan does not.
        errors_held: How many errors the collection has.
        errors_computed: How many errors the plan has.
    """

    held: int
    missing: RowSample
    surplus: RowSample
    errors_held: int
    errors_computed: int


def discrepancy(
    session: SparkSession,
    read: Read,
    plan: SnapshotPlan,
    collection: tuple[GlobalId, RelationType],
    as_of: int,
    *,
    share: float = 1.0,
    examples: int = 5,
) -> Discrepancy:
    """Returns how a collection differs from a plan at `as_of`.

    Args:
        session: The session to run on.
        read: Returns the updates of a collection with `lower <= time < upper`.
        plan: What the collection should be.
        collection: Its id and its columns.
        as_of: When; everything that is read must be readable there.
        share: Of the rows to compare, above 0 and up to 1.
        examples: How many rows of each kind to show.
    """
    with reporting_lost_spark():
        relation_type = plan.output.relation_type
        computed = snapshot(session, read, plan, as_of)
        computed = _sampled(computed.toDF(*positional(relation_type.arity), *META), share)
        held = _sampled(content(read, collection, as_of), share)
        minus = held.select(*columns_at(relation_type.arity), TIME, sf.negate(DIFF).alias(DIFF), ERROR)
        difference = consolidate(union([computed, minus]), by_position(relation_type))
        rows, errors = held.agg(_total(_is_row()), _total(~_is_row())).collect()[0]
        lacking, excess, moved = difference.agg(
            _total(_is_row() & (sf.col(DIFF) > 0)), _total(_is_row() & (sf.col(DIFF) < 0)), _total(~_is_row())
        ).collect()[0]
        return Discrepancy(
            held=rows,
            missing=RowSample(lacking, _examples(difference, sf.col(DIFF) > 0, examples) if lacking else ()),
            surplus=RowSample(-excess, _examples(difference, sf.col(DIFF) < 0, examples) if excess else ()),
            errors_held=errors,
            errors_computed=errors + moved,
        )


def local_discrepancy(
    spark: SparkUse,
    rows: Callable[[GlobalId], int],
    read: Callable[[GlobalId], pa.Table],
    plan: SnapshotPlan,
    id: GlobalId,
    as_of: int,
    *,
    examples: int = 5,
) -> Discrepancy | str:
    """Returns what `discrepancy` does, compared in this process, with Spark for functions at most; else why it is not.

    Args:
        spark: Opens Spark when it is needed, told for what.
        rows: Returns how many updates a collection has at most, of those that `read` returns.
        read: Returns the updates of a collection up to `as_of`.
        plan: What the collection should be.
        id: The collection.
        as_of: When; everything that is read must be readable there.
        examples: How many rows of each kind to show.
    """
    contents = LocalContents(spark, rows, lambda one, *_: [read(one.id)], as_of, as_of + 1)
    with reporting_lost_spark():
        computed = contents.updates(plan.output, plan.shared)
    if computed is None:
        return contents.spark_because
    held = consolidated(read(id), as_of).rename_columns(computed.column_names)
    minus = held.set_column(held.column_names.index(DIFF), held.schema.field(DIFF), pc.negate(held.column(DIFF)))
    difference = consolidated(pa.concat_tables([computed, minus.cast(computed.schema)]), as_of)
    errors, moved = (_total_here(one, pc.is_valid(one.column(ERROR))) for one in (held, difference))
    return Discrepancy(
        held=_total_here(held, pc.is_null(held.column(ERROR))),
        missing=local_rows(difference, pc.greater(difference.column(DIFF), 0), examples),
        surplus=local_rows(difference, pc.less(difference.column(DIFF), 0), examples),
        errors_held=errors,
        errors_computed=errors + moved,
    )


def local_rows(total: pa.Table, condition: pa.ChunkedArray, limit: int) -> RowSample:
    """Returns the rows of a consolidated table for which a condition is true, as often as they are there or lacking."""
    found = total.filter(pc.and_(pc.is_null(total.column(ERROR)), condition))
    cells = [python_cells(found.column(name)) for name in found.column_names if name not in META]
    diffs = [abs(one) for one in found.column(DIFF).to_pylist()]
    texts = [
        (tuple(None if one is None else str(one) for one in data), n) for *data, n in zip(*cells, diffs, strict=True)
    ]
    return RowSample(sum(diffs), tuple(sorted(texts, key=_order)[:limit]))


def negative_multiplicities(
    frame: DataFrame, columns: RelationType, *, share: float = 1.0, examples: int = 5
) -> RowSample:
    """Returns the rows of a collection's `content` of which there are fewer than none, and how many are lacking."""
    with reporting_lost_spark():
        total = consolidate(_sampled(frame, share), by_position(columns))
        lacking = total.agg(_total(_is_row() & (sf.col(DIFF) < 0))).collect()[0][0]
        return RowSample(-lacking, _examples(total, sf.col(DIFF) < 0, examples) if lacking else ())


def content(read: Read, collection: tuple[GlobalId, RelationType], as_of: int) -> DataFrame:
    """Returns a collection's content at `as_of`, not consolidated, by the operators' names."""
    id, columns = collection
    return at_time(with_positions(read(id, None, as_of + 1, ()), columns), columns.arity, as_of)


def _order(example: Example) -> list[tuple[bool, str]]:
    """Returns what an example is ordered by: its cells, NULL first."""
    return [(cell is not None, cell or "") for cell in example[0]]


def _total_here(table: pa.Table, condition: pa.ChunkedArray) -> int:
    return pc.sum(table.filter(condition).column(DIFF)).as_py() or 0


def _is_row() -> Column:
    return sf.col(ERROR).isNull()


def _total(condition: Column) -> Column:
    return sf.coalesce(sf.sum(sf.when(condition, sf.col(DIFF))), sf.lit(0))


def _sampled(frame: DataFrame, share: float) -> DataFrame:
    if share >= 1.0:
        return frame
    names = [sf.col(name) for name in frame.columns if name not in META]
    return frame.where(~_is_row() | (sf.pmod(sf.xxhash64(*names), sf.lit(_SHARES)) < sf.lit(int(share * _SHARES))))


def _examples(frame: DataFrame, condition: Column, limit: int) -> tuple[Example, ...]:
    names = [name for name in frame.columns if name not in META]
    cells = [sf.col(name).cast("string").alias(name) for name in names]
    found = frame.where(_is_row() & condition).select(*cells, sf.abs(DIFF).alias(DIFF)).orderBy(*names).limit(limit)
    return tuple((tuple(row[:-1]), row[-1]) for row in found.collect())
