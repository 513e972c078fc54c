"""Reading at one time: which time, making it readable, leasing the lists, and running the plan.

What needs no Spark does not start one: a query over constants or introspection alone, and a collection read as it is,
or with columns left out, if it is small.
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
from mz_dagster.plan.physical import ConstantRows, Linear, Physical, ReadCollection, collections_read
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.rewriting import bottom_up
from mz_dagster.storage.read import ReadBeforeSince, check_readable, leased, overlapping

Row = tuple[Any, ...]

_TRIES = 10


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
        for attempt in range(1, _TRIES + 1):
            plan, rows = self._planned(relation)
            timelines = {row.timeline for row in rows if row.timeline is not None}
            if not timelines:
                return self._run(plan, 0, rows)
            (timeline,) = timelines
            time = select_timestamp(rows, self.engine.catalog.read_ts(timeline), self.isolation, as_of)
            self.engine.reach(timeline, time, frozenset(row.id for row in rows))
            try:
                return self._run(plan, time, rows)
            except ReadBeforeSince:
                # A since passed the time before the lease was taken: a later time is as good, unless one was asked for.
                if attempt == _TRIES or (as_of is not None and not as_of.at_least):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def peek_before(self, relation: Relation, table: CollectionRow) -> list[Row]:
        """Returns the rows of a plan over one table at `upper - 1`, the latest that a writer can build on.

        Raises:
            ReadBeforeSince: That time is forgotten, so somebody has written meanwhile.
        """
        plan, rows = self._planned(relation)
        return self._run(plan, table.upper.only - 1, rows)

    def _planned(self, relation: Relation) -> tuple[Physical, list[CollectionRow]]:
        catalog = self.engine.catalog

        def with_rows(one: Relation) -> Relation:
            found = introspection.by_id(one.id) if isinstance(one, Get) else None
            return one if found is None else found.constant(catalog)

        plan = lower_to_snapshot_plan(optimize(bottom_up(relation, with_rows)))
        return plan, [catalog.collection(id) for id in sorted(collections_read(plan))]

    def _run(self, plan: Physical, time: int, rows: list[CollectionRow]) -> list[Row]:
        leaf, positions = _leaf(plan)
        if isinstance(leaf, ConstantRows):
            return [tuple(row[i].value for i in positions) for row in leaf.rows]
        engine = self.engine
        by_id = {row.id: row for row in rows}
        with leased(engine.catalog, tuple(by_id), holder=engine.holder) as lease:
            for id, snapshot in lease.snapshots.items():
                check_readable(id, snapshot, time)  # since may have moved after the time was chosen
            listed = {id: snapshot.batches for id, snapshot in lease.snapshots.items()}
            if leaf is not None and sum(batch.stats.rows for batch in listed[leaf.id]) <= SMALL:
                return self._read_here(by_id[leaf.id], positions, listed[leaf.id], time)
            session, shards = engine.spark.open()

            def read(id: GlobalId, lower: int | None, upper: int) -> Any:
                return shards.read(by_id[id], overlapping(listed[id], lower, upper), lower=lower, upper=upper)

            return peek(session, read, plan, time)

    def _read_here(
        self, row: CollectionRow, positions: tuple[int, ...], batches: Sequence[Batch], time: int
    ) -> list[Row]:
        """Reads a small collection in this process."""
        shards = self.engine.shards
        frame = shards.read(row, overlapping(batches, None, time + 1), upper=time + 1)
        total = shards.consolidate(row, frame, time)
        data = [total.column(row.columns[i].name).to_pylist() for i in positions]
        updates = zip(*data, total.column("mz_diff").to_pylist(), total.column("mz_error").to_pylist(), strict=True)
        return rows_of(updates, tuple(row.columns[i] for i in positions))


def _leaf(plan: Physical) -> tuple[ReadCollection | ConstantRows | None, tuple[int, ...]]:
    """Returns the leaf of a plan that at most leaves out columns, and which it keeps; None for any other plan."""
    positions = tuple(range(plan.relation_type.arity))
    if isinstance(plan, Linear) and not plan.mfp.steps:
        positions, plan = plan.mfp.projection, plan.input
    return (plan if isinstance(plan, ReadCollection | ConstantRows) else None), positions
