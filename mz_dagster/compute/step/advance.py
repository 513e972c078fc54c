"""The advance of one collection in a step: its updates are computed, and written as a batch that is not sealed.

A source's bindings are ingested; a plan's updates are computed in this process if placement says so, else on Spark. A
collection that is not hydrated yet begins with its plan's content as of its since, and steps like any other from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import (
    NO_ROWS,
    BatchId,
    BatchStats,
    Binding,
    Catalog,
    CollectionRow,
)
from mz_dagster.compute.algebra.frame import META, with_positions
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.lookups.common_lookups import CommonLookups
from mz_dagster.compute.lookups.step_reads import StepReads, stored_parts
from mz_dagster.compute.placement.choice import may_be_little
from mz_dagster.compute.placement.sizes import rows_at_most
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.spark.state import FrameState, OwnState, ShardState
from mz_dagster.compute.spark.union import union
from mz_dagster.compute.step.due import next_due
from mz_dagster.compute.step.graph import FailedNode, MaintainedNode, Node, SinkNode, SourceNode, TableNode
from mz_dagster.compute.step.ingest import ingested
from mz_dagster.compute.step.report import Progress
from mz_dagster.compute.step.run import StepRun
from mz_dagster.compute.walk.handover import Handover
from mz_dagster.compute.walk.local_plans import LocalContents, LocalUpdates
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.errors import InternalError, OperationalError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.lowering import LookupOrders
from mz_dagster.plan.physical import Accumulate, ReadCollection, is_linear
from mz_dagster.progress import current_task, task
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.append import Frame
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import ERROR, Shards
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.spark_shards import update_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SourceAltered(OperationalError):
    """A source is not any more what a graph was made with; nothing was done."""

    sqlstate = "40001"


class Writer(Protocol):
    """Writes batches that are not sealed: a `BatchWriter`, or what keeps them in memory."""

    def write(
        self,
        shards: Shards[Frame],
        collection: CollectionRow,
        lower: Antichain[int],
        upper: Antichain[int],
        frame: Frame,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> tuple[BatchId, BatchStats]:
        """Returns the batch and its stats; see `BatchWriter.write`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The advance of one collection over `[lower, upper)`.

    Attributes:
        run: The step that it is part of.
        node: The collection.
        row: It, as the catalog has it.
        lower: The beginning of the interval.
        upper: Its end.
        catalog: Says what is bound.
        local: The shards in this process.
        orders: In which order joins look up.
        writer: Writes batches.
        spark: Opens Spark, and counts.
        common: The lookups that the step's collections share on that Spark.
        progress: Receives the story.
    """

    run: StepRun
    node: Node
    row: CollectionRow
    lower: int
    upper: int
    catalog: Catalog
    local: LocalShards
    orders: LookupOrders
    writer: Writer
    spark: SparkUse
    common: CommonLookups | None
    progress: Progress

    def write(self, *, sends: bool) -> tuple[BatchStats, int]:
        """Computes the collection's updates in `[lower, upper)` and writes them as one unsealed batch.

        What is taken to be little is sent to all tasks if it `sends`.

        Returns what was written, and how many rows were read.
        """
        name = self.node.name
        if isinstance(self.node, SourceNode):
            bindings = self.catalog.bindings(self.node.bound, self.lower, self.upper)
            self._check_unaltered(self.node)
            with task(f'reading "{name}"', self.node.source.size(bindings), "bytes"):
                return self._write(bindings, sends=sends)
        doing = "maintaining" if self.row.is_hydrated else "hydrating"
        with task(f'{doing} "{name}"', self.run.rows_in(self.node, self.lower, self.upper), "rows"):
            return self._write((), sends=sends)

    def _check_unaltered(self, node: SourceNode) -> None:
        """Raises if the source was altered since the graph was made: what was bound since then has other columns.

        Raises:
            SourceAltered: It was.
        """
        if isinstance(node.source, FileSource) and self.catalog.version_of(node.bound) != node.source.version:
            raise SourceAltered(
                f'source "{node.name}" was altered while it was about to be read',
                hint="Nothing was read; the next step reads it with its columns of now.",
            )

    def _write(self, bindings: Sequence[Binding], *, sends: bool) -> tuple[BatchStats, int]:
        if isinstance(self.node, MaintainedNode):
            self.progress(f"{self.interval}: maintaining {_reading(self.run, self.node, self.lower, self.upper)}")
            since = self.lower - 1 if self.row.is_hydrated else self.lower
            for input in self.node.inputs:
                _check_since(self.run.rows[input], since, self.node)
            found = None if self.row.is_hydrated else self._hydrated_locally(self.node)
            if found is not None:
                batch, stats = self.writer.write(self.local, self.row, self.row.upper, self._end, self._first(found))
                if current := current_task():  # what was not read in portions was done at once
                    current.advance(current.total - current.done)
                self.run.note(self.row, self._end, batch, stats)
                self._note_due(self.node)
                return stats, self.run.rows_in(self.node, self.lower, self.upper)
        is_grouped = not (isinstance(self.node, MaintainedNode) and is_linear(self.node.plan))
        with StepReads(
            self.spark.open,
            self.run.rows,
            self.run.overlapping,
            is_grouped=is_grouped,
            common=self.common,
            local=self.local,
            shared=self.run.reads,
            resume=self.spark.resume,
        ) as reads:
            match self.node:
                case SourceNode():
                    source = self.node.source
                    self.progress(f"{self.interval}: reading {source.described(bindings)}")
                    has_prior = not self.run.is_empty(self.node.id, 0, self.lower)
                    before = self.catalog.last_binding(self.node.bound, self.lower)
                    memory = None if self.node.memory is None else self.run.rows[self.node.memory]
                    with ingested(
                        self.row,
                        source,
                        bindings,
                        before,
                        reads,
                        self.spark,
                        has_prior=has_prior,
                        memory=memory,
                        shared=self.run.fresh,
                    ) as updates:
                        few = source.size(bindings) <= budget().small_file_bytes
                        stats = self._append(updates, is_little=few)
                case MaintainedNode():
                    maintained = self._maintained(self.node, reads, sends=sends)
                    if maintained is None:
                        return NO_ROWS, reads.rows_read
                    first = self.lower if self.row.is_hydrated else None
                    read = {id: self.run.rows_between(id, first, self.upper) for id in self.node.reads}
                    most = rows_at_most(self.node.plan, read.__getitem__)
                    few = may_be_little(sum(read.values()), is_first=not self.row.is_hydrated)
                    stats = self._append(maintained, most, is_little=few)
                    self._note_due(self.node)
                case TableNode() | FailedNode() | SinkNode():
                    raise InternalError(f'"{self.node.name}" has no work in a step')
            return stats, reads.rows_read

    def _first(self, found: pa.Table) -> pa.Table:
        """Returns an operator's first updates consolidated, as those of counts and sums are, but for errors."""
        is_accumulated = isinstance(self.node, MaintainedNode) and isinstance(self.node.plan, Accumulate)
        has_errors = found.column(ERROR).null_count < len(found)
        return found if is_accumulated and not has_errors else summed(found)

    @property
    def _end(self) -> Antichain[int]:
        return frontier_at(self.row.upper, self.upper)

    @property
    def interval(self) -> str:
        """The collection and the interval, for people."""
        return f'"{self.node.name}" [{self.lower}, {self.upper})'

    def _append(
        self, updates: DataFrame | pa.Table | pa.RecordBatchReader, most: int | None = None, *, is_little: bool
    ) -> BatchStats:
        """Writes a collection's updates in `[lower, upper)` as one unsealed batch, which the rest of the step reads.

        Those of an operator are consolidated first. What is likely to be little is written in this process.
        """
        whole = self.row.upper, self._end
        is_operator = isinstance(self.node, MaintainedNode)
        if isinstance(updates, pa.Table | pa.RecordBatchReader):
            found: pa.Table | None = updates
        else:
            found = Handover(self.spark).to_be_written(updates, self.row.columns) if is_little else None
        if found is not None:
            batch, stats = self.writer.write(self.local, self.row, *whole, summed(found) if is_operator else found)
        else:
            updates = consolidate(updates, self.row.columns) if is_operator else updates
            key = self.node.key if isinstance(self.node, SourceNode | MaintainedNode) else ()
            batch, stats = self.writer.write(self.spark.open()[1], self.row, *whole, updates, key=key, rows=most)
        self.run.note(self.row, self._end, batch, stats)
        return stats

    def _note_due(self, node: MaintainedNode) -> None:
        """Notes when a temporal filter's state, which has been written, changes next by itself."""
        if node.is_temporal:
            self.spark.resume()
            written = [batch for batch in self.run.batches[node.id] if batch.id == self.run.written.get(node.id)]
            listed = partial(self.run.overlapping, node.id, None, self.upper)
            shards = partial(self.spark.open, "the next due time is looked for in much")
            self.run.dues[node.id] = next_due(self.row, self.upper, written, listed, lambda: shards()[1], self.local)

    def _hydrated_locally(self, node: MaintainedNode) -> pa.Table | None:
        """Returns the first updates of a collection, those up to `lower` at `lower`, if they are made of little."""

        def rows(id: GlobalId) -> int:
            return self.run.rows_between(id, None, self.upper)

        def read(one: ReadCollection, used: Collection[int], rows: int | None) -> Iterator[pa.Table]:
            batches = self.run.overlapping(one.id, None, self.upper)
            return stored_parts(self.local, self.run.rows[one.id], batches, self.upper, used, one.where, rows)

        contents = LocalContents(self.spark, rows, read, self.lower, self.upper)
        found = contents.updates(self.orders.ordered(node.id, node.plan, rows))
        if found is None:
            self.spark.open(contents.spark_because)
            return None
        if (size := found.num_rows) > (most := budget().first_updates):
            why = f"it begins with {size} updates, more than {most} (first_updates)"
            self.spark.placements.append(Placement(node.operators, True, size, most, "first_updates", why))
            self.spark.open(why)
            return None
        return found.rename_columns([*(column.name for column in self.row.columns), *META])

    def _maintained(self, node: MaintainedNode, reads: StepReads, *, sends: bool) -> DataFrame | pa.Table | None:
        """Returns a collection's updates in `[lower, upper)`, None if there are none.

        They are a table if this process computes them.
        """
        lower = self.lower

        def is_small(id: GlobalId) -> bool:
            return sends and self.run.rows_between(id, lower, self.upper) <= budget().broadcast_updates

        plan = self.orders.ordered(node.id, node.plan, lambda id: self.run.rows_between(id, None, self.upper))
        columns = RelationType(self.row.columns)
        parts: list[DataFrame] = []

        def session() -> SparkSession:
            return self.spark.session("" if local is None else local.spark_because)

        def nothing() -> DataFrame:
            return session().createDataFrame([], update_schema(self.row.columns))

        local: LocalUpdates | None = None
        if not self.row.is_hydrated:
            as_of = lower
            if node.has_constants or any(self.run.overlapping(input, None, as_of + 1) for input in node.reads):
                parts.append(
                    Renderer(session(), reads.read, reads=reads).snapshot(plan, as_of).toDF(*columns.names, *META)
                )
            lower = as_of + 1
            # What was just computed is not written yet: the steps that follow in this run see it as a frame.
            own: OwnState = FrameState(with_positions(parts[0] if parts else nothing(), columns))
        else:
            local = LocalUpdates(self.spark, reads, lower, self.upper, ReadCollection(self.row.id, columns))
            if (found := local.updates(plan)) is not None:
                # A temporal filter's next due time is looked for even if nothing came of what fell due.
                return found.rename_columns([*columns.names, *META]) if found.num_rows or node.is_temporal else None
            # Before its next due time nothing of a temporal state matters to what arrives.
            if node.is_temporal and not self.row.is_due(self.upper):
                own = FrameState(with_positions(nothing(), columns))
            else:
                few = all(is_small(id) for id in node.reads)
                own = ShardState(reads, self.row.id, columns, lower, prunes=few)
        updates = None
        if lower < self.upper:
            renderer = Renderer(session(), reads.read, is_small=is_small, own=own, reads=reads, local=local)
            updates = renderer.updates(plan, lower, self.upper, lambda id: self.run.is_empty(id, lower, self.upper))
        if updates is not None:
            parts.append(updates)
        if not parts:
            return None
        # A plan's columns are known by position; the shard's bear the object's names.
        return union(parts).toDF(*(column.name for column in self.row.columns), *META)


def frontier_at(like: Antichain[int], time: int) -> Antichain[int]:
    """Returns the frontier at a time, on the timeline of another."""
    return Antichain.of(like.lattice, time)


def _reading(run: StepRun, node: MaintainedNode, lower: int, upper: int) -> str:
    names = ", ".join(f'"{one.name}"' for one in run.inputs(node))
    of = f"{run.rows_in(node, lower, upper)} rows of {names}" if names else "constants"
    return f"{node.operators}, {of}{'' if run.rows[node.id].is_hydrated else f', hydrating at {lower}'}"


def _check_since(input: CollectionRow, needed: int, node: Node) -> None:
    """Holds constraint R: what is needed of an input is not forgotten."""
    if not input.since.less_equal(needed):
        raise InternalError(
            f'"{node.name}" needs its input "{input.id}" as of {needed}, but its history begins at {input.since}',
            detail="A capability of the reader should have held the input's since back.",
        )
