"""Reading at one time: which time, making it readable, leasing the lists, and running the plan.

What needs no Spark does not start one: a query over constants or introspection alone, a small collection read as it
is, rows looked up by a key (`simple_plan`), and other queries over little, unless Spark has to evaluate a function. A
simple plan reads at once, so it does without a lease: if a batch is swept before it has it, it notices, and reads again
under one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mz_dagster.adapter import introspection
from mz_dagster.adapter.bound_tables import check_unaltered
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.planned_queries import LookupPlan
from mz_dagster.adapter.simple_plan import SimplePlan
from mz_dagster.adapter.system_catalogs import FactsOnDemand
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, select_timestamp
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.catalog import CatalogState, CollectionRow, ListedBatches, Moment, ReadSet
from mz_dagster.compute import (
    CollectionHasErrors,
    Found,
    SparkUse,
    frame_of_given,
    peek,
    peek_locally,
    updates_of_rows,
)
from mz_dagster.compute.algebra.operator_costs import OperatorCost
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import snapshot_ordered_by_size, snapshot_over_stored
from mz_dagster.plan.physical import ReadCollection, SnapshotPlan
from mz_dagster.plan.reading_time import at_time, depends_on_time
from mz_dagster.plan.relation import Get, Let, Relation
from mz_dagster.plan.rewriting import bottom_up, gets_of, nodes_of
from mz_dagster.plan.transform import fold_constants
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.sql import AsOf, bind_as_of
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import GivenRows
from mz_dagster.sql.errors import QueryOfTwoTimelines
from mz_dagster.storage.keyed_rows import KeyedRows
from mz_dagster.storage.lookup import Lookup
from mz_dagster.storage.read import ReadBeforeSince, check_readable, leased, overlapping
from mz_dagster.storage.shards import BatchIncomplete
from mz_dagster.storage.spark.deadline import HeapFull

logger = logging.getLogger("mz_dagster.session")

Row = tuple[Any, ...]

#: How a simple plan is computed.
_IN_PLACE = "this process, which reads the stored rows as they are"
_TRIES = 10
#: Of how many lookups rows are held by their keys while nothing is committed.
_KEYED = 64
#: How often a time that is to come is looked for, in milliseconds.
_LOOK_MS = 50


class TimeNotComputed(OperationalError):
    """A time up to which a collection would have to be computed first, in a project that cannot be written."""

    sqlstate = "25006"


def as_of_time(
    as_of: AsOf | None, parameters: Sequence[object], circumstances: Callable[[], Circumstances]
) -> AsOfTime | None:
    """Returns the time of an AS OF clause, if there is one."""
    if as_of is None:
        return None
    return AsOfTime(bind_as_of(as_of, params=parameters, circumstances=circumstances()), as_of.at_least)


@dataclass(slots=True)
class ReadReport:
    """How a query was computed.

    Attributes:
        relation: Its plan; None if it was not planned.
        planned_ms: When it was planned, by the monotonic clock.
        computed_by: By what.
        costs: What each operator cost that this process computed, inputs first.
        placements: By which sizes and thresholds that was decided.
        rows: How many rows are stored of each collection that was read, in the batches that were.
    """

    relation: Relation | None = None
    planned_ms: float = 0.0
    computed_by: str = "nothing: its rows are known when it is planned"
    costs: tuple[OperatorCost, ...] = ()
    placements: tuple[Placement, ...] = ()
    rows: dict[GlobalId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Peeks:
    """Reads plans at one time, for a session.

    Attributes:
        engine: The project.
        isolation: What reads may miss.
        facts: What the catalog's own relations say.
        transaction: The transaction block of which the statement is; None if it is one of its own.
        report: What is to be told of how they are read; None if nobody asks.
    """

    engine: Engine
    isolation: Isolation
    facts: FactsOnDemand
    transaction: Transaction | None = None
    report: ReadReport | None = None

    def peek(self, relation: Relation, as_of: AsOfTime | None) -> Found:
        """Returns the rows of a bound query, in no order; raises as `peek_planned`."""
        return self.peek_planned(self.planned(relation), as_of)

    def peek_planned(self, optimized: Relation, as_of: AsOfTime | None) -> Found:
        """Returns the rows of a planned query, in no order.

        Args:
            optimized: The query.
            as_of: The time that is asked for, if one is.

        Raises:
            NoValidTimestamp: It cannot be read at the time asked for.
            DataError: Its content is an error.
        """
        by_clock = depends_on_time(optimized)
        as_of = self._awaited(lambda: self._collections(optimized), as_of, by_clock=by_clock)
        for attempt in range(1, _TRIES + 1):
            rows = self._collections(optimized)
            timelines = {row.timeline for row in rows if row.timeline is not None}
            if not timelines and not by_clock:
                try:
                    return self._read(lower_to_snapshot_plan(optimized), 0, rows)
                except CollectionHasErrors as error:
                    if not rows:  # nothing is read whose rows could be corrected
                        error.detail = error.hint = None
                    raise
            (timeline,) = timelines or {self.engine.project.timeline}
            try:
                time = self._chosen(timeline, rows, as_of, by_clock=by_clock)
            except ReadBeforeSince:
                if attempt == _TRIES or (as_of is not None and not as_of.at_least):
                    raise
                continue
            self._reach(timeline, time, rows)
            if not rows and not self.engine.catalog.is_read_only:
                self.engine.catalog.apply_write(timeline, time)  # what is written from here on is later
            try:
                return self._read(lower_to_snapshot_plan(at_time(optimized, time)), time, rows)
            except ReadBeforeSince:
                # A since passed the time before the lease was taken: a later time is as good, unless one was asked for.
                if attempt == _TRIES or (as_of is not None and not as_of.at_least):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def look_up(self, plan: LookupPlan, state: CatalogState, parameters: Sequence[Literal]) -> Found | None:
        """Returns the rows that a lookup finds of a table now, in no order; None if it takes more than to look.

        It is a lookup of what was defined in `state`. What it asks of the catalog is of one committed state, so nothing
        can be altered in between: there is nothing to look at again once it has read.
        """
        catalog, id = self.engine.catalog, plan.get.id
        row = state.collection(id)
        if self.transaction is not None or self.isolation is not Isolation.STRICT_SERIALIZABLE or row is None:
            return None
        if row.timeline is None or row.version or catalog.is_read_only:
            return None
        if self.engine.definitions.is_temporal(id):
            return None
        self.poll([row])
        for _ in range(_TRIES):
            moment = catalog.moment(row.timeline, (id,))
            now = moment.state.collection(id)
            if now is None or moment.state.definitions != state.definitions or now.since.is_empty:
                return None
            time = max(moment.read_ts, now.since.only)
            if now.upper.less_equal(time):
                self._reach(row.timeline, time, [now])
                continue
            try:
                return self._found(plan, moment, now, time, parameters)
            except BatchIncomplete:
                return None
        return None

    def _found(
        self, plan: LookupPlan, moment: Moment, row: CollectionRow, time: int, parameters: Sequence[Literal]
    ) -> Found | None:
        """Returns the rows that a lookup finds at a time, of the batches that are listed at a moment."""
        known = moment.kept.get(id(plan))
        if known is not None and known[0] is plan:
            found: list[Row] | None = known[1].find(parameters[0].value)
            if found is not None:
                return found
        lookup = Lookup.of(plan.of_values(parameters), row.columns)
        if lookup is None:
            return None
        shards, listed = self.engine.shards, moment.listed[row.id]
        simple = SimplePlan(ReadCollection(row.id, plan.get.relation_type, plan.get.name), lookup, plan.columns)
        rows = simple.read(shards, row, listed, time)
        key = lookup.key
        if known is None and rows is not None and key is not None and key.is_all and len(parameters) == 1:
            keyed = KeyedRows.of(
                shards, row, overlapping(listed.batches, None, time + 1), key.column, plan.columns, time
            )
            if keyed is not None and len(moment.kept) < _KEYED:
                moment.kept[id(plan)] = plan, keyed
        if rows is not None:
            self._tell(_IN_PLACE, {row.id: listed})
        return rows

    def asked_time(self, as_of: AsOfTime | None) -> int | None:
        """Returns the one time at which a statement can read, if there is one: the block's, or that asked for."""
        block = None if self.transaction is None else self.transaction.as_of
        asked = block or as_of
        return None if asked is None or asked.at_least else asked.time

    def poll(self, rows: Sequence[CollectionRow]) -> None:
        """Has the sources that are read, directly or not, asked what is new, if a read is to see that.

        In a transaction block the first read is to, which chooses the time of all.
        """
        engine = self.engine
        begun = self.transaction is not None and self.transaction.as_of is not None
        strict = self.isolation is Isolation.STRICT_SERIALIZABLE
        if engine.project.polls_for_reads and strict and not begun and not engine.catalog.is_read_only:
            for timeline in dict.fromkeys(row.timeline for row in rows if row.timeline is not None):
                engine.poll_for(timeline, [row.id for row in rows if row.timeline == timeline])

    def time_for(self, id: GlobalId, as_of: AsOfTime | None) -> int:
        """Returns a time at which a collection can be read, chosen as for a SELECT of it, or asked for.

        Raises:
            NoValidTimestamp: It cannot be read at the time asked for.
        """
        catalog = self.engine.catalog
        as_of = self._awaited(lambda: [catalog.collection(id)], as_of, by_clock=False)
        row = catalog.collection(id)
        if row.timeline is None:
            return 0
        time = self._chosen(row.timeline, [row], as_of, by_clock=False)
        self._reach(row.timeline, time, [row])
        return time

    def _awaited(
        self, collections: Callable[[], list[CollectionRow]], as_of: AsOfTime | None, *, by_clock: bool
    ) -> AsOfTime | None:
        """Returns the time that is asked for, by the block if not by the statement, once it has come; polls sources."""
        if self.transaction is not None:
            if as_of is not None:
                self.transaction.check_as_of(as_of)
            as_of = self.transaction.as_of or as_of
        if as_of is not None:
            self._await(collections, as_of, by_clock=by_clock)
        if as_of is None or as_of.at_least:
            self.poll(collections())
        return as_of

    def _chosen(self, timeline: str, rows: Sequence[CollectionRow], as_of: AsOfTime | None, *, by_clock: bool) -> int:
        """Returns the time at which collections are read, which a block that is open holds readable.

        Raises:
            ReadBeforeSince: The block cannot hold it any more.
        """
        if self.transaction is not None:
            self.transaction.check_timeline(timeline)
        read_ts = self._read_ts(timeline, rows, by_clock)
        if as_of is not None and as_of.time > read_ts:  # it may have passed without a write
            read_ts = self._read_ts(timeline, rows, True)
        time = select_timestamp(rows, read_ts, self.isolation, as_of, closable=self._closable())
        self._note_read(timeline, time, rows)
        return time

    def _reach(self, timeline: str, time: int, rows: Sequence[CollectionRow]) -> None:
        """Has collections complete at a time."""
        behind = [row for row in rows if row.upper.less_equal(time)]  # uppers never go back
        if behind:
            self._check_writable(behind[0], time)
            self.engine.reach(timeline, time, frozenset(row.id for row in rows))

    def _note_read(self, timeline: str, time: int, rows: Sequence[CollectionRow]) -> None:
        """Has the transaction block, if there is one, read at that time, and remember what was read."""
        if self.transaction is not None:
            self.transaction.read_at(timeline, time, rows)
            self.transaction.note_read(row.id for row in rows)

    def _await(self, collections: Callable[[], list[CollectionRow]], as_of: AsOfTime, *, by_clock: bool) -> None:
        """Returns once the time asked for has come, or nobody can say that it does before the deadline."""
        engine = self.engine
        until = engine.clock.monotonic_ms() + engine.project.as_of_deadline_ms
        while True:
            rows = collections()
            timelines = {row.timeline for row in rows if row.timeline is not None}
            if len(timelines) != 1 and not by_clock:
                return
            (timeline,) = timelines or {engine.project.timeline}
            complete = (row.upper.only - 1 for row in rows if not row.upper.is_empty)
            to_come = as_of.time - max(engine.reading_time(timeline), min(complete, default=0))
            left = until - engine.clock.monotonic_ms()
            # A feed's clock may jump; the wall clock is there when it says.
            if to_come <= 0 or left <= 0 or (to_come > left and engine.project.clock_of(timeline) is None):
                return
            engine.clock.sleep(min(_LOOK_MS, left) / 1000)

    @property
    def written(self) -> frozenset[GlobalId]:
        """The tables that the transaction block has written."""
        return frozenset() if self.transaction is None else self.transaction.written

    def planned(self, relation: Relation) -> Relation:
        """Returns the optimized plan of a bound query, with the catalog's own relations as they are now."""
        read = {get.id: own for get in gets_of(relation) if (own := introspection.by_id(get.id)) is not None}
        if not read:
            return optimize(self._of_own_writes(relation))
        rows = {id: own.constant(self.facts.found) for id, own in read.items()}

        def with_rows(one: Relation) -> Relation:
            return rows.get(one.id, one) if isinstance(one, Get) else one

        # Much of what clients ask about is not there; only at the end is all of that constant.
        return fold_constants(optimize(bottom_up(self._of_own_writes(relation), with_rows)))

    def _of_own_writes(self, relation: Relation) -> Relation:
        """Returns a plan that computes itself what is computed from a table that the transaction block has written.

        One that the block has altered is read as what stands in for it.
        """
        written = self.written
        if self.transaction is None or not written:
            return relation
        definitions = self.engine.definitions
        altered = {one.table.id: (new, one) for new, one in self.transaction.defined.stand_ins.items()}
        bound = {one.id for one in nodes_of(relation) if isinstance(one, Let)}

        def computed(one: Relation) -> Relation:
            if not isinstance(one, Get) or one.id in bound or _is_no_collection(one.id):
                return one
            if one.id in altered:
                new, stands = altered[one.id]
                return stands.in_place_of(one, definitions.item(new).relation())
            if one.id in written or definitions.inputs_of(one.id).isdisjoint(written):
                return one
            return self._of_own_writes(definitions.query_of(one.id))

        return bottom_up(relation, computed)

    def reads_for(self, table: CollectionRow, relations: Sequence[Relation]) -> tuple[ReadSet | None, int | None]:
        """Returns what a write to a table reads, all of it readable at one time, and when the write may take effect.

        The time is not before any acknowledged write to what is read. For a write that reads nothing but its table that
        is so without asking the oracle, as long as nobody writes the table in between, which its seal finds out. What
        moves with the clock is read now, and written as soon after as the oracle can have it: all that became due in
        between would have to be read again.

        Args:
            table: The table to be written.
            relations: The plans of all that is read for it.

        Returns:
            The reads, for the seal to expect, or None if nothing is read; a timestamp that the oracle has handed out to
            write at, or None for any later one.

        Raises:
            QueryOfTwoTimelines: Something is on another timeline than the table.
            NoValidTimestamp: Something was dropped.
            OperationalError: A view that is read cannot be computed.
        """
        assert table.timeline is not None
        engine = self.engine
        rows = list({row.id: row for one in relations for row in self._collections(one)}.values())
        self._check_timeline(table, rows)
        self.poll(rows)
        read = frozenset(row.id for row in rows)
        by_clock = any(map(depends_on_time, relations)) or any(engine.definitions.is_temporal(id) for id in read)
        if not rows and not by_clock:
            return None, None
        if self.transaction is None and not by_clock and read == {table.id} and table.upper.only > 0:
            return ReadSet(table.upper.only - 1, read), None
        read_ts = engine.reading_time(table.timeline) if by_clock else engine.catalog.read_ts(table.timeline)
        if self.transaction is not None:
            time = select_timestamp(rows, read_ts, self.isolation, self.transaction.as_of)
            self._note_read(table.timeline, time, rows)
            engine.reach(table.timeline, time, read)
            return ReadSet(time, read), None
        time = select_timestamp(rows, read_ts, Isolation.STRICT_SERIALIZABLE)
        write_at = engine.catalog.write_ts(table.timeline, time + 1) if by_clock else None
        engine.catalog.apply_write(table.timeline, time)  # what is written from here on is later
        engine.reach(table.timeline, time, read)
        return ReadSet(time, read), write_at

    def peek_at(self, plan: Relation, time: int, given: GivenRows | None = None) -> list[Row]:
        """Returns the rows of a planned query at a time, in Python; see `found_at`."""
        return [*self.found_at(plan, time, given)]

    def found_at(self, plan: Relation, time: int, given: GivenRows | None = None) -> Found:
        """Returns the rows of a planned query at a time, in no order; it reads rows that are given as a collection.

        Raises:
            ReadBeforeSince: That time is forgotten, so somebody has written meanwhile.
            DataError: Its content is an error.
        """
        return self._read(lower_to_snapshot_plan(at_time(plan, time)), time, self._collections(plan), given)

    def _check_writable(self, row: CollectionRow, time: int) -> None:
        if self.engine.catalog.is_read_only:
            latest = max((*row.since, *(upper - 1 for upper in row.upper)))
            raise TimeNotComputed(
                f'"{self.engine.names()[row.id]}" is not computed up to {time}, and the project is read-only',
                detail=f"The latest time at which it can be read is {latest}.",
                hint=f"Read it AS OF {latest}, or make the project's folders writable.",
            )

    def _check_timeline(self, table: CollectionRow, rows: Iterable[CollectionRow]) -> None:
        for row in rows:
            if row.timeline not in (None, table.timeline):
                names = self.engine.names()
                raise QueryOfTwoTimelines(
                    f'"{names[table.id]}" cannot be written by what is read from "{names[row.id]}"',
                    detail=f'"{names[table.id]}" is on timeline "{table.timeline}", "{names[row.id]}" on '
                    f'"{row.timeline}"; their times never compare.',
                    hint="Read it in one statement, and write what it returned in another.",
                )

    def _read_ts(self, timeline: str, rows: Sequence[CollectionRow], by_clock: bool) -> int:
        """Returns the time that a linear read must not be before: for contents that move with the clock it is now."""
        if by_clock or any(self.engine.definitions.is_temporal(row.id) for row in rows):
            return self.engine.reading_time(timeline)
        return self.engine.catalog.read_ts(timeline)

    def _closable(self) -> frozenset[GlobalId]:
        """Returns what the reader can close at any time by itself, if that is asked for."""
        if self.isolation is not Isolation.SERIALIZABLE or self.engine.catalog.is_read_only:
            return frozenset()
        return frozenset(one.id for one in self.engine.catalog.objects("table"))

    def _collections(self, relation: Relation) -> list[CollectionRow]:
        ids = sorted({get.id for get in gets_of(relation) if not _is_no_collection(get.id)})
        return [self.engine.catalog.collection(id) for id in ids]

    def _listed(self, listed: Mapping[GlobalId, ListedBatches]) -> Mapping[GlobalId, ListedBatches]:
        return listed if self.transaction is None else self.transaction.with_own_writes(listed)

    def _read(self, plan: SnapshotPlan, time: int, rows: list[CollectionRow], given: GivenRows | None = None) -> Found:
        """Returns what a plan reads at a time, if what it was bound to is still so.

        Raises:
            TableAltered: A table was altered meanwhile.
        """
        found = self._run(plan, time, rows, given)
        if rows:
            check_unaltered(self.engine.catalog)
        return found

    def _tell(self, computed_by: str, listed: Mapping[GlobalId, ListedBatches], spark: SparkUse | None = None) -> None:
        """Reports how a plan is computed, if somebody asks."""
        if self.report is not None:
            self.report.computed_by = computed_by
            if spark is not None:
                self.report.costs, self.report.placements = tuple(spark.costs.found), tuple(spark.placements)
            self.report.rows = {id: sum(one.stats.rows for one in found.batches) for id, found in listed.items()}

    def _run(self, plan: SnapshotPlan, time: int, rows: list[CollectionRow], given: GivenRows | None) -> Found:
        plan = snapshot_over_stored(plan, {row.id: row.columns for row in rows if row.version})
        simple = SimplePlan.of(plan, rows) if given is None else None
        handed = {} if given is None else {given.id: updates_of_rows(given.columns, given.rows)}
        constant = None if simple is None else simple.constant_rows()
        if constant is not None:
            return constant
        engine = self.engine
        by_id = {row.id: row for row in rows}
        if simple is not None:
            try:
                (row,) = rows
                found = simple.read(engine.shards, row, self._listed(engine.catalog.listed([row.id]))[row.id], time)
                if found is not None:
                    self._tell(_IN_PLACE, engine.catalog.listed([row.id]))
                    return found
                simple = None
            except BatchIncomplete:
                pass  # swept meanwhile, which a lease keeps from happening again
        with leased(engine.catalog, tuple(by_id), holder=engine.holder, ttl_ms=engine.project.lease_ms) as lease:
            snapshots = self._listed(lease.snapshots)
            for id, snapshot in snapshots.items():
                check_readable(id, snapshot, time)  # since may have moved after the time was chosen
            if simple is not None:
                found = simple.read(engine.shards, row, snapshots[row.id], time)
                if found is not None:
                    self._tell(_IN_PLACE, snapshots)
                    return found
            listed = {id: snapshot.batches for id, snapshot in snapshots.items()}
            spark = SparkUse(engine.spark.open)
            computed = peek_locally(spark, engine.shards, by_id, listed, plan, time, handed)
            if not isinstance(computed, str):
                self._tell("this process", snapshots, spark)
                return computed
            spark.costs.found.clear()  # of what this process began
            self._tell(f"Spark, as one plan, because {computed}", snapshots, spark)
            sizes = {id: sum(batch.stats.rows for batch in batches) for id, batches in listed.items()}
            sizes |= {id: len(table) for id, table in handed.items()}
            plan = snapshot_ordered_by_size(plan, sizes.__getitem__)

            def computed_by(spark: SparkUse, why: str) -> Found:
                session, shards = spark.open(why)

                def read(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> Any:
                    if given is not None and id in handed:
                        return frame_of_given(spark, handed[id], given.columns)
                    batches = overlapping(listed[id], lower, upper)
                    return shards.read(by_id[id], batches, lower=lower, upper=upper, where=where)

                return peek(session, read, plan, time)

            try:
                return computed_by(spark, computed)
            except HeapFull as error:
                logger.warning("%s, so it is computed once more, in smaller pieces", error.message)
            return computed_by(SparkUse(partial(engine.spark.open, smaller_pieces=True)), computed)


def _is_no_collection(id: GlobalId) -> bool:
    """Returns whether an id is that of one of the catalog's own relations, or of rows that are given."""
    return id == GivenRows.id or introspection.by_id(id) is not None
