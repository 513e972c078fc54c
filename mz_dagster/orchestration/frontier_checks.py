"""The cheap checks: what the catalog alone can tell of a collection's frontiers, given with each step.

    since_le_upper        since <= upper
    frontiers_monotone    neither frontier is behind what the asset's last materialization said
    not_ahead_of_inputs   upper <= the upper of every input (constraint W)
    goes_on               its last poll and step went well, and so did those of what it is computed from; and what the
                          files say of it is what was applied (else a warning: it goes on as it was)
    no_errors             the error part is empty at the tick, or at since if the tick's history is forgotten

What the frontiers were is taken from the Dagster instance, for all assets in one query: the catalog keeps no history
of them, and a check's own last evaluation would be a query for each asset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import dagster as dg

from mz_dagster.adapter import Engine, RowCount, errors_at, reasons
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import Graph
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.events import ID_KEY, ROWS_KEY, SINCE_KEY, UPPER_KEY
from mz_dagster.orchestration.ticks import tick_of

SINCE_LE_UPPER = "since_le_upper"
FRONTIERS_MONOTONE = "frontiers_monotone"
NOT_AHEAD_OF_INPUTS = "not_ahead_of_inputs"
NO_ERRORS = "no_errors"
GOES_ON = "goes_on"

_DESCRIPTIONS = {
    SINCE_LE_UPPER: "What is readable begins no later than it ends.",
    FRONTIERS_MONOTONE: "Neither since nor upper ever goes back.",
    NOT_AHEAD_OF_INPUTS: "Nothing claims to be complete where an input of it is not.",
    GOES_ON: "Nothing keeps it, or what it is computed from, from being advanced.",
    NO_ERRORS: "No row of the data makes an expression fail; reading the collection raises nothing.",
}

#: Those that read the data, and come when somebody asks for them (`checks`).
NO_NEGATIVE_MULTIPLICITY = "no_negative_multiplicity"
AUDIT = "audit"

#: What checks of every asset are called, so that none of a project's own is.
OWN_NAMES = frozenset({*_DESCRIPTIONS, NO_NEGATIVE_MULTIPLICITY, AUDIT})

#: How many texts of errors a description shows.
_TEXTS = 3


@dataclass(frozen=True, slots=True)
class FrontierSnapshot:
    """Where a collection stood when an event was made, and how many rows it had, if that was counted."""

    id: str
    since: int
    upper: int
    counted: RowCount | None = None


def frontier_check_specs(specs: Iterable[dg.AssetSpec]) -> list[dg.AssetCheckSpec]:
    """Returns the specifications of the cheap checks of each asset."""
    return [
        dg.AssetCheckSpec(name, asset=spec.key, description=description)
        for spec in specs
        for name, description in _DESCRIPTIONS.items()
    ]


def last_frontiers(instance: dg.DagsterInstance, keys: Iterable[dg.AssetKey]) -> dict[dg.AssetKey, FrontierSnapshot]:
    """Returns where each asset's collection stood at its last materialization, if it had one that tells."""
    found: dict[dg.AssetKey, FrontierSnapshot] = {}
    for record in instance.get_asset_records(list(keys)):
        entry = record.asset_entry
        if entry.last_materialization is None or entry.last_materialization.asset_materialization is None:
            continue
        event = entry.last_materialization.asset_materialization
        told = event.metadata
        if {ID_KEY, SINCE_KEY, UPPER_KEY} <= told.keys():
            since, upper = (int(str(told[key].value)) for key in (SINCE_KEY, UPPER_KEY))
            id, counted = str(told[ID_KEY].value), None
            if ROWS_KEY in told and event.partition is not None:
                counted = RowCount(GlobalId(id), tick_of(event.partition), int(str(told[ROWS_KEY].value)))
            found[entry.asset_key] = FrontierSnapshot(id, since, upper, counted)
    return found


def counted_before(found: Mapping[dg.AssetKey, FrontierSnapshot]) -> dict[GlobalId, RowCount]:
    """Returns how many rows collections had when they were counted last."""
    return {one.counted.id: one.counted for one in found.values() if one.counted is not None}


@dataclass(frozen=True)
class FrontierChecks:
    """Evaluates the cheap checks of the collections of one timeline, as the catalog has them now.

    Attributes:
        engine: The project.
        graph: The timeline's.
        rows: Its collections.
        tick: The tick that is reported.
        before: Where each asset's collection stood at its last materialization.
    """

    engine: Engine
    graph: Graph
    rows: Mapping[GlobalId, CollectionRow]
    tick: int
    before: Mapping[dg.AssetKey, FrontierSnapshot]

    @cached_property
    def reasons(self) -> Mapping[GlobalId, str]:
        """Why collections of the timeline stay behind."""
        return reasons(self.graph, self.rows)

    @cached_property
    def faults(self) -> Mapping[GlobalId, str]:
        """What is wrong in the files, by the collections that stand for it."""
        return self.engine.definition_faults()

    def results(self, key: dg.AssetKey, id: GlobalId, names: Set[str]) -> Iterator[dg.AssetCheckResult]:
        """Yields the results of the checks that are asked for by name, of the asset with this collection."""
        row = self.rows[id]
        evaluations: dict[str, Callable[[CollectionRow], _Evaluation]] = {
            SINCE_LE_UPPER: _since_le_upper,
            FRONTIERS_MONOTONE: lambda row: _monotone(row, self.before.get(key)),
            NOT_AHEAD_OF_INPUTS: self._not_ahead,
            GOES_ON: self._goes_on,
            NO_ERRORS: self._no_errors,
        }
        for name, evaluate in evaluations.items():
            if name in names:
                passed, metadata, description = evaluate(row)
                yield dg.AssetCheckResult(
                    passed=passed,
                    asset_key=key,
                    check_name=name,
                    severity=self._severity(name, id),
                    metadata=metadata,
                    description=description,
                )

    def _not_ahead(self, row: CollectionRow) -> _Evaluation:
        uppers = {input: self.rows[input].upper.only for input in self.graph.by_id[row.id].inputs}
        ahead = [self.graph.by_id[input].name for input, upper in uppers.items() if upper < row.upper.only]
        least = min(uppers.values(), default=row.upper.only)
        description = f"ahead of {', '.join(sorted(ahead))}" if ahead else "no input is behind"
        metadata = {UPPER_KEY: row.upper.only, "mz/inputs_upper": least, "mz/ahead_ms": max(0, row.upper.only - least)}
        return not ahead, metadata, description

    def _goes_on(self, row: CollectionRow) -> _Evaluation:
        reason = self.reasons.get(row.id)
        if reason is None and row.id in self.faults:
            reason = f"it goes on as it was applied last: {self.faults[row.id]}"
        lag = max(0, self.tick + 1 - row.upper.only)
        return reason is None, {UPPER_KEY: row.upper.only, "mz/lag_ms": lag}, reason or "nothing keeps it behind"

    def _severity(self, name: str, id: GlobalId) -> dg.AssetCheckSeverity:
        """Returns a warning for what is advanced, although not as the files say."""
        only_warned = name == GOES_ON and id in self.faults and id not in self.reasons
        return dg.AssetCheckSeverity.WARN if only_warned else dg.AssetCheckSeverity.ERROR

    def _no_errors(self, row: CollectionRow) -> _Evaluation:
        if not row.since.less_equal(self.tick):
            return True, {"mz/net_errors": 0, "mz/distinct_errors": 0}, "nothing can be read yet"
        found = errors_at(self.engine, row, self.tick, _TEXTS)
        more = f"; and {found.distinct - len(found.texts)} more" if found.distinct > len(found.texts) else ""
        description = f"{'; '.join(found.texts)}{more}" if found.total else "no errors"
        return found.total == 0, {"mz/net_errors": found.total, "mz/distinct_errors": found.distinct}, description


def evaluation(key: dg.AssetKey, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Returns a check's result as an event of its own."""
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


def poll_changes(
    engine: Engine, timeline: str, assets: Mapping[dg.AssetKey, CollectionRow], changed: Set[GlobalId]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yields what `goes_on` says of assets since a poll of these sources failed, or did not any more.

    Args:
        engine: The project.
        timeline: The timeline.
        assets: The collections behind its assets.
        changed: The sources.
    """
    if not changed:
        return
    graph = engine.graph(timeline)
    rows = {row.id: row for row in engine.catalog.collections(timeline)}
    reached = graph.downstream(changed)
    checks = FrontierChecks(engine, graph, rows, engine.catalog.last_tick(timeline) or 0, {})
    for key, row in assets.items():
        if row.id in reached and row.id in rows:
            for result in checks.results(key, row.id, {GOES_ON}):
                yield evaluation(key, result)


_Evaluation = tuple[bool, dict[str, int], str]


def _since_le_upper(row: CollectionRow) -> _Evaluation:
    since, upper = row.since.only, row.upper.only
    metadata = {SINCE_KEY: since, UPPER_KEY: upper, "mz/readable_ms": upper - since}
    return since <= upper, metadata, f"readable from {since} until before {upper}"


def _monotone(row: CollectionRow, before: FrontierSnapshot | None) -> _Evaluation:
    if before is None or before.id != row.id:
        return True, {"mz/since_moved_ms": 0, "mz/upper_moved_ms": 0}, "no earlier event of this collection"
    since, upper = row.since.only - before.since, row.upper.only - before.upper
    passed = since >= 0 and upper >= 0
    description = f"since {before.since} -> {row.since.only}, upper {before.upper} -> {row.upper.only}"
    return passed, {"mz/since_moved_ms": since, "mz/upper_moved_ms": upper}, description
