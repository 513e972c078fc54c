"""What a check says at a time, read from its collection: the number of violations, how it changed, and some of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.checks import about, blocking_checks, options_of
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.samples import Sample, shown
from mz_dagster.adapter.timestamps import NoValidTimestamp
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.compute.step.violations import Violations, violations_of
from mz_dagster.formalism import GlobalId
from mz_dagster.sql.statements import CheckOptions


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says at a time.

    Attributes:
        check: The check.
        about: What it is about.
        options: What its violations mean.
        time: The time.
        count: How many violations there are; None if nobody knows, for `reason`.
        change: By how many they became more since the tick before; all of them if that is not known.
        sample: Some of them; None if there are none, or very many.
        reason: Why nobody knows; None if it is known.
        is_forgotten: Whether nobody knows because its history begins later than the time.
    """

    check: ObjectRow
    about: GlobalId
    options: CheckOptions
    time: int
    count: int | None
    change: int = 0
    sample: Sample | None = None
    reason: str | None = None
    is_forgotten: bool = False

    @property
    def holds(self) -> bool:
        """Whether there is no violation, and that is known."""
        return self.count == 0


def check_results(
    engine: Engine, checks: Sequence[ObjectRow], time: int | None = None, *, examples: int = 5
) -> Iterator[CheckResult]:
    """Yields what checks of one timeline say at a time.

    Reads multiplicities, as many as there are violations and were since the history that is kept begins, and no file if
    there are none; the rows themselves only where there are violations.

    Args:
        engine: The project.
        checks: The checks.
        time: When; None for the latest time that each is complete at.
        examples: How many violations of each to show.
    """
    if not checks:
        return
    state = engine.catalog.state()
    rows = [row for one in checks if (row := state.collection(one.id)) is not None]  # the rest was dropped meanwhile
    ticks = engine.catalog.ticks(str(checks[0].timeline))
    found = violations_of(
        engine.catalog, engine.shards, rows, engine.holder, engine.project.lease_ms, examples=examples, at=time
    )
    known = {one.id: one for one in checks}
    for row in rows:
        check = known[row.id]
        at = row.upper.only - 1 if time is None else time
        unsaid = CheckResult(check, about(check, state), options_of(check), at, None)
        yield _said(unsaid, row, found[row.id], ticks)


def _said(unsaid: CheckResult, row: CollectionRow, found: Violations, ticks: Sequence[int]) -> CheckResult:
    """Returns the result with what the violations say."""
    time = unsaid.time
    if not found.is_known_at(time):
        is_forgotten = row.is_hydrated and time < found.since
        why = "its history begins later" if is_forgotten else "it is not complete there yet"
        reason = row.reason or (why if row.is_hydrated else "it is not hydrated yet")
        return replace(unsaid, reason=reason, is_forgotten=is_forgotten)
    if errors := found.errors_at(time):
        return replace(unsaid, reason=errors[0])
    count = found.count_at(time)
    before = ticks[bisect_left(ticks, time) - 1] if bisect_left(ticks, time) else time
    change = count - (found.count_at(before) if found.since <= before < time else 0)
    return replace(unsaid, count=count, change=change, sample=_sample(row, found.rows))


def last_held(engine: Engine, id: GlobalId, time: int) -> int:
    """Returns the last time, not after one, at which the blocking checks of all that an object is computed from held.

    That is the given one if they hold there, and else a tick.

    Args:
        engine: The project.
        id: The object, which has a collection of a timeline.
        time: When it is complete.

    Raises:
        NoValidTimestamp: There was none since the history begins that is kept.
    """
    checks = blocking_checks(engine.catalog.state(), id)
    if not checks:
        return time
    row = engine.catalog.collection(id)
    timeline = str(row.timeline)
    engine.reach(timeline, time, checks)
    rows = [engine.catalog.collection(one) for one in sorted(checks)]
    found = violations_of(engine.catalog, engine.shards, rows, engine.holder, engine.project.lease_ms)
    ticks = [one for one in engine.catalog.ticks(timeline, lower=row.since.only) if one < time]
    for one in (time, *reversed(ticks)):
        if all(each.holds_at(one) for each in found.values()):
            return one
    names = sorted(str(engine.catalog.object(id).name) for id, each in found.items() if not each.holds_at(time))
    raise NoValidTimestamp(
        f"blocking checks did not hold at any tick that is kept: {', '.join(names)}",
        hint="Correct or delete what violates them, SELECT * FROM the check shows it; or read without held.",
    )


def _sample(row: CollectionRow, rows: tuple[tuple[object, ...], ...]) -> Sample | None:
    if not rows:
        return None
    return Sample(
        row.names,
        tuple(str(column.type) for column in row.columns),
        tuple(tuple(map(shown, cells)) for cells in rows),
    )
