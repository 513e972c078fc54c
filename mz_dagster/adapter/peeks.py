"""Reading at one time: which time, making it readable, leasing the lists, and running the plan.

What needs no Spark does not start one: a query over constants or introspection alone, a small collection read as it
is, rows looked up by a key (`simple_plan`), and other queries over little, unless Spark has to evaluate a function. A
simple plan reads at once, so it does without a lease: if a batch is swept before it has it, it notices, and reads again
under one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.adapter import introspection
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.simple_plan import SimplePlan
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, select_timestamp
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import peek, peek_here
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import snapshot_ordered_by_size
from mz_dagster.plan.physical import SnapshotPlan
from mz_dagster.plan.reading_time import at_time, depends_on_time
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.rewriting import bottom_up, gets_of
from mz_dagster.plan.scalar import Scalar
from mz_dagster.storage.read import ReadBeforeSince, check_readable, leased, overlapping
from mz_dagster.storage.shards import BatchIncomplete

Row = tuple[Any, ...]

_TRIES = 10


class TableMoved(Exception):
    """Says that a table's upper is not the one that a writer builds on; it has to look again."""


@dataclass(frozen=True, slots=True)
class Peeks:
    """Reads plans at one time, for a session.

    Attributes:
        engine: The project.
        isolation: What reads may miss.
    """

    engine: Engine
    isolation: Isolation

    def peek(self, relation: Relation, as_of: AsOfTime | None) -> list[Row]:
        """Returns the rows of a bound query, in no order.

        Raises:
            NoValidTimestamp: It cannot be read at the time asked for.
            DataError: Its content is an error.
        """
        optimized = self._optimized(relation)
        by_clock = depends_on_time(optimized)
        for attempt in range(1, _TRIES + 1):
            rows = self._collections(optimized)
            timelines = {row.timeline for row in rows if row.timeline is not None}
            if not timelines and not by_clock:
                return self._run(lower_to_snapshot_plan(optimized), 0, rows)
            (timeline,) = timelines or {self.engine.project.timeline}
            time = select_timestamp(rows, self._read_ts(timeline, rows, by_clock), self.isolation, as_of)
            if any(row.upper.less_equal(time) for row in rows):  # uppers never go back
                self.engine.reach(timeline, time, frozenset(row.id for row in rows))
            if not rows:
                self.engine.catalog.apply_write(timeline, time)  # what is written from here on is later
            try:
                return self._run(lower_to_snapshot_plan(at_time(optimized, time)), time, rows)
            except ReadBeforeSince:
                # A since passed the time before the lease was taken: a later time is as good, unless one was asked for.
                if attempt == _TRIES or (as_of is not None and not as_of.at_least):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def peek_before(self, relations: Sequence[Relation], table: CollectionRow) -> list[list[Row]]:
        """Returns the rows of plans over a table and others at one time, the latest that a writer can build on.

        That is `upper - 1` of the table, where it stays until the writer appends to it. If others are read it must
        not be before any acknowledged write of theirs either, and the table's upper may have to move first.

        Raises:
            TableMoved: The table's upper is another by now.
            ReadBeforeSince: That time is forgotten, so somebody has written meanwhile.
        """
        assert table.timeline is not None
        plans = [self._optimized(one) for one in relations]
        by_clock = any(depends_on_time(one) for one in plans)
        time = table.upper.only - 1
        rows = {row.id: row for one in plans for row in self._collections(one)}
        if rows.keys() - {table.id}:
            time = max(time, self._read_ts(table.timeline, list(rows.values()), by_clock))
            self.engine.reach(table.timeline, time, frozenset({*rows, table.id}))
            if self.engine.catalog.collection(table.id).upper != table.upper:
                raise TableMoved
        now = max(time, self.engine.reading_time(table.timeline)) if by_clock else time
        found = [lower_to_snapshot_plan(at_time(one, now)) for one in plans]
        return [self._run(plan, time, self._collections(one)) for plan, one in zip(found, plans, strict=True)]

    def _read_ts(self, timeline: str, rows: Sequence[CollectionRow], by_clock: bool) -> int:
        """Returns the time that a linear read must not be before: for contents that move with the clock it is now."""
        if by_clock or any(self.engine.definitions.is_temporal(row.id) for row in rows):
            return self.engine.reading_time(timeline)
        return self.engine.catalog.read_ts(timeline)

    def _optimized(self, relation: Relation) -> Relation:
        catalog = self.engine.catalog

        def with_rows(one: Relation) -> Relation:
            found = introspection.by_id(one.id) if isinstance(one, Get) else None
            return one if found is None else found.constant(catalog)

        return optimize(bottom_up(relation, with_rows))

    def _collections(self, relation: Relation) -> list[CollectionRow]:
        return [self.engine.catalog.collection(id) for id in sorted({get.id for get in gets_of(relation)})]

    def _run(self, plan: SnapshotPlan, time: int, rows: list[CollectionRow]) -> list[Row]:
        simple = SimplePlan.of(plan, rows)
        constant = None if simple is None else simple.constant_rows()
        if constant is not None:
            return constant
        engine = self.engine
        by_id = {row.id: row for row in rows}
        if simple is not None:
            try:
                (row,) = rows
                found = simple.read(engine.shards, row, engine.catalog.listed([row.id])[row.id], time)
                if found is not None:
                    return found
                simple = None
            except BatchIncomplete:
                pass  # swept meanwhile, which a lease keeps from happening again
        with leased(engine.catalog, tuple(by_id), holder=engine.holder) as lease:
            for id, snapshot in lease.snapshots.items():
                check_readable(id, snapshot, time)  # since may have moved after the time was chosen
            if simple is not None:
                found = simple.read(engine.shards, row, lease.snapshots[row.id], time)
                if found is not None:
                    return found
            listed = {id: snapshot.batches for id, snapshot in lease.snapshots.items()}
            found = peek_here(lambda: engine.spark.open()[0], engine.shards, by_id, listed, plan, time)
            if found is not None:
                return found
            session, shards = engine.spark.open()

            def read(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> Any:
                batches = overlapping(listed[id], lower, upper)
                return shards.read(by_id[id], batches, lower=lower, upper=upper, where=where)

            plan = snapshot_ordered_by_size(plan, lambda id: sum(batch.stats.rows for batch in listed[id]))
            return peek(session, read, plan, time)
