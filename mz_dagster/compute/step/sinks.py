"""The sinks of a step: what they write once that is sealed.

A sink has a collection with frontiers and no content: its upper says up to which time it is known to have written, and
holds its input's since back, so that the updates from there on can still be told. It writes after the step has sealed
its input, so that nothing ever leaves that could be lost. The sink itself knows better where it stands: what was
written before a crash is not written again.

Each tick in an interval is a write of its own, if anything changes at it. While the input's contents are an error, or
have one, nothing is written; the first tick at which they have none has all that changed since. So it is with ticks at
which a blocking check of what it writes, or of what that is computed from, does not hold: the sink stays at the last
one at which all did, whatever the steps were by which it came there.

Memory: the updates of an interval, and at first the whole collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import Batch, Catalog, CollectionRow, Leadership, Seal, Sealed
from mz_dagster.clock import Clock
from mz_dagster.compute.lookups.step_reads import stored_table
from mz_dagster.compute.step.advance import frontier_at
from mz_dagster.compute.step.graph import SinkNode
from mz_dagster.compute.step.report import CollectionStep, Outcome, Progress
from mz_dagster.compute.step.violations import Violations, violations_of
from mz_dagster.errors import DatabaseError, DataError, OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.arrow_schema import without_errors
from mz_dagster.storage.consolidation import consolidated, summed
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import check_readable, leased, overlapping
from mz_dagster.storage.shards import DIFF, ERROR, TIME
from mz_dagster.storage.sink.sink import SinkChanged

#: How many violations the reason names for which a sink is held up.
_EXAMPLES = 3
_CELL = 40


class ContentsAreErrors(DataError):
    """What a sink is to write has an error: it writes nothing until that is gone."""


class HeldUp(DataError):
    """Blocking checks of what a sink writes do not hold: it stays where they did."""


@dataclass(frozen=True, slots=True)
class _Checks:
    """The blocking checks of a sink.

    Attributes:
        found: The violations of each, by its collection.
    """

    found: Mapping[GlobalId, Violations]

    def hold_at(self, time: int) -> bool:
        """Returns whether all are known to have held at a time."""
        return all(one.holds_at(time) for one in self.found.values())


@dataclass(frozen=True, slots=True)
class Sinks:
    """Advances the sinks of a timeline.

    Attributes:
        catalog: The durable state.
        local: The shards.
        holder: Names this process in leases.
        lease_ms: How long a lease lasts without renewal.
        clock: Tells how long it takes.
    """

    catalog: Catalog
    local: LocalShards
    holder: str
    lease_ms: int
    clock: Clock

    def advance(
        self,
        nodes: Iterable[SinkNode],
        tick: int,
        leadership: Leadership | None,
        progress: Progress,
        *,
        idle_only: bool,
    ) -> Iterator[CollectionStep]:
        """Yields what became of each sink; what finished is sealed, sink by sink.

        Args:
            nodes: The sinks.
            tick: The tick to which they go at most.
            leadership: The right to step the timeline, validated by the seals.
            progress: Receives the story.
            idle_only: Whether those that have something to write stay where they are.
        """
        for node in nodes:
            row, input = self.catalog.collection(node.id), self.catalog.collection(node.input)
            checks = [self.catalog.collection(id) for id in sorted(node.checks)]
            lower, limit = row.upper.only, min(one.upper.only for one in (input, *checks))
            upper = tick + 1 if limit > tick else self._last_tick(row, limit)
            step = CollectionStep(node.id, node.name, Outcome.CURRENT, lower, lower, operators=node.operators)
            if upper <= lower:
                waits = "its input" if input.upper.only == limit else "a check"
                yield step if lower > tick else replace(step, outcome=Outcome.BLOCKED, reason=f"waits for {waits}")
                continue
            listed = self.catalog.live_batches((input.id, *node.checks))
            new = list(overlapping(listed[input.id], lower, upper))
            violated = any(batch.stats.rows for id in node.checks for batch in listed[id])
            if row.is_hydrated and not new and not violated:
                if self._seal(row, upper, leadership, None):
                    step = replace(step, outcome=Outcome.IDLE, upper=upper)
                yield step
                continue
            if idle_only:
                yield replace(step, outcome=Outcome.BLOCKED, reason="has something to write")
                continue
            yield self._written(node, row, input, step, upper, checks if violated else [], leadership, progress)

    def rewrite(self, node: SinkNode, leadership: Leadership | None) -> None:
        """Has a sink written anew, from what its input holds at the latest time at which that is complete.

        Raises:
            DatabaseError: It cannot be; what was there is as it was.
        """
        row, input = self.catalog.collection(node.id), self.catalog.collection(node.input)
        upper = input.upper.only
        frame, errors = self._read(input, None, upper)
        if upper <= input.since.only:
            raise OperationalError(f'what "{node.name}" writes has no contents yet', hint="Step it first.")
        _check_none(errors, upper - 1, node.name)
        node.sink.begin(consolidated(frame, upper - 1), upper)
        if not self._seal(row, upper, leadership, None):
            raise OperationalError(f'another runner moves "{node.name}"', hint="Try again.")

    def _written(
        self,
        node: SinkNode,
        row: CollectionRow,
        input: CollectionRow,
        step: CollectionStep,
        limit: int,
        checked: Sequence[CollectionRow],
        leadership: Leadership | None,
        progress: Progress,
    ) -> CollectionStep:
        begin = self.clock.monotonic_ms()
        held: HeldUp | None = None
        upper, rows = limit, 0
        try:
            with only_our_errors():
                checks = self._checks(checked, limit)
                if not checks.hold_at(limit - 1):
                    held, upper = self._held_up(node, checks, limit), self._last_tick(row, limit, checks.hold_at)
                if upper > row.upper.only:
                    rows = self._write(node, row, input, upper, checks)
        except DatabaseError as error:
            progress(f'"{node.name}" failed in {node.operators}: {error.message}')
            self._seal(row, row.upper.only, leadership, error.message)
            return replace(step, outcome=Outcome.FAILED, error=error, reason=error.message)
        fail_point("sink.before_seal")
        took_ms = self.clock.monotonic_ms() - begin
        if not self._seal(row, upper, leadership, None if held is None else held.message):
            return replace(step, outcome=Outcome.BLOCKED, reason="another runner goes on with it")
        if held is not None:
            progress(held.message)
            return replace(step, outcome=Outcome.FAILED, upper=upper, error=held, reason=held.message, rows_in=rows)
        progress(f'"{node.name}" [{row.upper.only}, {upper}): {rows} updates left in {took_ms / 1000:.1f} s')
        return replace(step, outcome=Outcome.ADVANCED, upper=upper, rows_in=rows, rows_read=rows, spark_ms=took_ms)

    def _checks(self, rows: Sequence[CollectionRow], upper: int) -> _Checks:
        found = violations_of(
            self.catalog, self.local, rows, self.holder, self.lease_ms, examples=_EXAMPLES, at=upper - 1
        )
        return _Checks(found)

    def _last_tick(self, row: CollectionRow, limit: int, holds: Callable[[int], bool] = lambda _: True) -> int:
        """Returns behind the last tick before `limit` at which something holds; where the sink is if there is none.

        A read may have taken what it writes to a time between two ticks. There the sink does not stand: after a crash
        nobody would know of it.
        """
        lower = row.upper.only
        ticks = self.catalog.ticks(str(row.timeline), lower=lower)
        return next((one + 1 for one in reversed(ticks) if one < limit and holds(one)), lower)

    def _held_up(self, node: SinkNode, checks: _Checks, limit: int) -> HeldUp:
        """Returns why a sink does not go on to `limit`: which checks do not hold there, and for which rows."""
        told = []
        for id, one in checks.found.items():
            if one.holds_at(limit - 1):
                continue
            count, errors = one.count_at(limit - 1), one.errors_at(limit - 1)
            name = self.catalog.object(id).name or id
            shown = ", ".join(f"({', '.join(map(_cell, cells))})" for cells in one.rows)
            why = f"cannot be told: {errors[0]}" if errors else f"has {count} violation{'' if count == 1 else 's'}"
            told.append(f'check "{name}" {why}' + (f": {shown}" if shown else ""))
        return HeldUp(
            f'sink "{node.name}" is held up: {"; ".join(told)}',
            hint="It goes on once there are none: correct or delete what is wrong. SELECT * FROM the check shows all.",
        )

    def _write(self, node: SinkNode, row: CollectionRow, input: CollectionRow, upper: int, checks: _Checks) -> int:
        """Writes all before `upper` that is not written, tick by tick; returns how many updates that took.

        At `upper - 1` all checks hold.
        """
        sink, stands = node.sink, node.sink.stands_at()
        taken = 0
        if stands is None:
            if row.is_hydrated:
                raise SinkChanged(
                    f'what sink "{node.name}" has written is gone',
                    hint="ALTER SINK ... RESET writes it anew, from what the sink reads.",
                )
            first = row.since.only
            if not checks.hold_at(first):
                begun = self.catalog.ticks(str(input.timeline), lower=first)
                first = next((one for one in begun if checks.hold_at(one)), upper - 1)
            frame, errors = self._read(input, None, first + 1)
            _check_none(errors, first, node.name)
            taken += len(frame)
            sink.begin(consolidated(frame, first), first + 1)
            stands = first + 1
        else:
            self._check_known(node, row, stands)
        stands = max(stands, row.upper.only)
        if stands >= upper:
            return taken
        frame, errors = self._read(input, stands, upper)
        taken += len(frame)
        ticks = [one for one in self.catalog.ticks(str(input.timeline), lower=stands) if one < upper]
        for tick in dict.fromkeys([*ticks, upper - 1]):
            if _errors_at(errors, tick) or not checks.hold_at(tick):
                continue
            times = frame.column(TIME)
            due = frame.filter(pc.and_(pc.greater_equal(times, stands), pc.less_equal(times, tick)))
            due = summed(due) if sink.keeps_times else consolidated(due, tick)
            if len(due):
                sink.go_on(due, stands, tick + 1)
            stands = tick + 1
        _check_none(errors, upper - 1, node.name)
        return taken

    def _check_known(self, node: SinkNode, row: CollectionRow, stands: int) -> None:
        """Raises if a sink stands where this catalog has never led it: it has written what is not so any more.

        Raises:
            SinkChanged: It does, as after a backup of before was restored.
        """
        known = row.upper.only if row.is_hydrated else row.since.only + 1
        if stands > known and stands - 1 not in self.catalog.ticks(str(row.timeline), lower=row.since.only):
            raise SinkChanged(
                f'sink "{node.name}" has written up to {stands - 1}, of which nothing is known here',
                detail="It is ahead of the catalog, as after a backup was restored.",
                hint="ALTER SINK ... RESET writes it anew, from what the sink reads.",
            )

    def _read(self, input: CollectionRow, lower: int | None, upper: int) -> tuple[pa.Table, pa.Table]:
        """Returns the updates of rows in `[lower, upper)`, and those of errors before `upper`."""
        with leased(self.catalog, (input.id,), holder=self.holder, ttl_ms=self.lease_ms) as lease:
            listed = lease.snapshots[input.id]
            check_readable(input.id, listed, upper - 1)
            batches: Sequence[Batch] = list(overlapping(listed.batches, None, upper))
            errors = self.local.errors(input, batches, upper=upper)
            some = list(overlapping(batches, lower, upper))
            frame = stored_table(self.local, input, some, lower, upper, range(len(input.columns)))
        return without_errors(frame), errors

    def _seal(self, row: CollectionRow, upper: int, leadership: Leadership | None, failure: str | None) -> bool:
        """Moves a sink's upper, or notes why it does not move; returns whether nobody else had."""
        failures: Mapping[object, str | None] = {row.id: failure} if failure != row.failure else {}
        seals = [] if upper == row.upper.only else [Seal(row.id, row.upper, frontier_at(row.upper, upper), None, None)]
        if not seals and not failures:
            return True
        sealed = self.catalog.seal(seals, leadership=leadership, failures=failures, dues={})  # type: ignore[arg-type]
        return isinstance(sealed, Sealed)


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _errors_at(errors: pa.Table, time: int) -> pa.Table:
    """Returns the errors that contents have at a time."""
    before = errors.filter(pc.less_equal(errors.column(TIME), time))
    return consolidated(before, time) if len(before) else before


def _check_none(errors: pa.Table, time: int, name: str) -> None:
    """Raises if contents have errors at a time.

    Raises:
        ContentsAreErrors: They do.
    """
    found = _errors_at(errors, time)
    if len(found):
        texts = sorted(found.column(ERROR).to_pylist())
        raise ContentsAreErrors(
            f'what sink "{name}" is to write has {int(pc.sum(found.column(DIFF)).as_py())} errors: {texts[0]}',
            hint="It goes on once the rows that cause them are corrected or deleted.",
        )
