"""Reading at one time: which time, making it readable, leasing the lists, and running the plan.

What needs no Spark does not start one: a query over constants or introspection alone, and a collection read as it is,
or with columns left out and constants added, if it is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.adapter import introspection
from mz_dagster.adapter.engine import SMALL, Engine
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, select_timestamp
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.compute import peek, rows_of
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import snapshot_ordered_by_size
from mz_dagster.plan.physical import ConstantRows, Linear, Physical, ReadCollection, SnapshotPlan
from mz_dagster.plan.reading_time import at_time, depends_on_time
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.rewriting import bottom_up, gets_of
from mz_dagster.plan.scalar import Literal, Scalar
from mz_dagster.storage.read import ReadBeforeSince, check_readable, leased, overlapping

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
        leaf, cells = (None, ()) if plan.shared else _leaf(plan.output)
        if isinstance(leaf, ConstantRows):
            return [tuple(shown(row[one] if isinstance(one, int) else one) for one in cells) for row in leaf.rows]
        engine = self.engine
        by_id = {row.id: row for row in rows}
        with leased(engine.catalog, tuple(by_id), holder=engine.holder) as lease:
            for id, snapshot in lease.snapshots.items():
                check_readable(id, snapshot, time)  # since may have moved after the time was chosen
            listed = {id: snapshot.batches for id, snapshot in lease.snapshots.items()}
            if leaf is not None and sum(batch.stats.rows for batch in listed[leaf.id]) <= SMALL:
                return self._read_here(by_id[leaf.id], cells, listed[leaf.id], time)
            session, shards = engine.spark.open()

            def read(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> Any:
                batches = overlapping(listed[id], lower, upper)
                return shards.read(by_id[id], batches, lower=lower, upper=upper, where=where)

            plan = snapshot_ordered_by_size(plan, lambda id: sum(batch.stats.rows for batch in listed[id]))
            return peek(session, read, plan, time)

    def _read_here(
        self, row: CollectionRow, cells: Sequence[int | Literal], batches: Sequence[Batch], time: int
    ) -> list[Row]:
        """Reads a small collection in this process."""
        positions = [one for one in cells if isinstance(one, int)]
        shards = self.engine.shards
        names = list(dict.fromkeys(row.columns[i].name for i in positions))
        frame = shards.read(row, overlapping(batches, None, time + 1), upper=time + 1, columns=names)
        total = shards.consolidate(row, frame, time, columns=names)
        data = [total.column(row.columns[i].name).to_pylist() for i in positions]
        updates = zip(*data, total.column("mz_diff").to_pylist(), total.column("mz_error").to_pylist(), strict=True)
        found = rows_of(updates, tuple(row.columns[i] for i in positions))
        if len(positions) == len(cells):
            return found
        places = [positions.index(one) if isinstance(one, int) else one for one in cells]
        return [tuple(data[one] if isinstance(one, int) else shown(one) for one in places) for data in found]


def shown(literal: Literal) -> Any:
    """Returns the Python form of a literal, in whose plan an array is a tuple."""
    value = literal.value
    return list(value) if literal.type.element is not None and isinstance(value, tuple) else value


def _leaf(plan: Physical) -> tuple[ReadCollection | ConstantRows | None, tuple[int | Literal, ...]]:
    """Returns the leaf of a plan that at most leaves out columns and adds constants, and the cells of its rows.

    A cell is a column of the leaf or a constant. The leaf is None for any other plan.
    """
    cells: tuple[int | Literal, ...] = tuple(range(plan.relation_type.arity))
    if isinstance(plan, Linear):
        added = [scalar for _, scalar in plan.mfp.steps if isinstance(scalar, Literal)]
        if len(added) < len(plan.mfp.steps) or any(kind != "map" for kind, _ in plan.mfp.steps):
            return None, cells
        row = (*range(plan.mfp.arity), *added)
        cells, plan = tuple(row[one] for one in plan.mfp.projection), plan.input
    return (plan if isinstance(plan, ReadCollection | ConstantRows) else None), cells
