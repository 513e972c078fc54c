"""Maintained checks (`CREATE CHECK`, `-- @check`) as asset checks: what each says at a tick, read from its own view.

Every run that steps an asset carries them. Their keys follow from the catalog's names, as those of the assets do; one
that is about a plain view, which is no asset, is shown at the first asset that the view reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from hashlib import sha256

import dagster as dg

from mz_dagster.adapter import CheckResult, Engine, ProjectObject, check_results
from mz_dagster.adapter.checks import about
from mz_dagster.adapter.file_ids import name_of_file_id
from mz_dagster.catalog import CatalogState, ObjectRow
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.events import table
from mz_dagster.orchestration.frontier_checks import OWN_NAMES
from mz_dagster.orchestration.ticks import partition_key

VIOLATIONS = "mz/violations"

#: The key of a check's own metadata: which object it stands for.
CHECK_KEY = "mz/check"


def data_check_specs(
    objects: Mapping[str, ProjectObject], keys: Mapping[str, dg.AssetKey]
) -> Iterator[dg.AssetCheckSpec]:
    """Yields the specifications of the checks among a project's objects.

    Args:
        objects: The objects, by name.
        keys: Those that are assets, with their keys.
    """

    def read_by(name: str) -> Iterable[str]:
        return objects[name].depends if name in objects else ()

    for one in objects.values():
        check = one.definition.check
        key = None if check is None else _asset_of(name_of_file_id(check.on.id), keys, read_by)
        if check is None or key is None:
            continue
        description = one.comment or f"There are no rows of {one.name}."
        if name_of_file_id(check.on.id) not in keys:
            description = f'{description} It is about the view "{check.on.called}".'
        yield dg.AssetCheckSpec(
            check_name(one.name),
            asset=key,
            description=description,
            blocking=check.options.blocking,
            metadata={"mz/sql": one.definition.text, CHECK_KEY: one.name},
        )


def check_name(name: str) -> str:
    """Returns what Dagster calls a check, given what the catalog does.

    Example:
        >>> check_name("orders_unique_id"), check_name("it's one")
        ('orders_unique_id', 'it_s_one_bf37ca')
    """
    if re.fullmatch(r"\w+", name, re.ASCII) and name not in OWN_NAMES:
        return name
    return f"{re.sub('[^A-Za-z0-9]', '_', name)}_{sha256(name.encode()).hexdigest()[:6]}"


def data_check_results(
    engine: Engine,
    timeline: str,
    keys: Mapping[str, dg.AssetKey],
    time: int | None,
    wanted: Set[dg.AssetCheckKey] | None,
) -> Iterator[dg.AssetCheckResult]:
    """Yields what the checks of a timeline say; nothing of one whose history begins after the time.

    A run of an old tick, as a retry or a backfill makes one, is not held up by what was forgotten since, nor does it
    say anew what was told when the tick was closed.

    Args:
        engine: The project.
        timeline: The timeline.
        keys: The assets' keys, by the names of their objects.
        time: At which time; None for the latest that each is complete at.
        wanted: Which to evaluate; None for all.
    """
    state = engine.catalog.state()
    chosen: dict[GlobalId, dg.AssetCheckKey] = {}
    rows: list[ObjectRow] = []
    for row in state.objects("check"):
        asset = _asset_of_row(row, state, keys)
        if row.timeline != timeline or row.name is None or asset is None:
            continue
        key = dg.AssetCheckKey(asset, check_name(row.name))
        if wanted is None or key in wanted:
            chosen[row.id] = key
            rows.append(row)
    for one in check_results(engine, rows, time):
        if one.is_forgotten:
            continue
        yield _result(chosen[one.check.id], one)


def _result(key: dg.AssetCheckKey, one: CheckResult) -> dg.AssetCheckResult:
    severity = dg.AssetCheckSeverity.WARN if one.options.severity == "warn" else dg.AssetCheckSeverity.ERROR
    metadata: dict[str, dg.RawMetadataValue] = {"mz/tick": one.time, "mz/blocking": one.options.blocking}
    if one.count is None:
        description = f"it cannot be told: {one.reason}"
    else:
        metadata |= {VIOLATIONS: one.count, "mz/violations_change": one.change}
        description = f"{violations(one.count)} at {partition_key(one.time)}"
        if one.change:
            description += f", {abs(one.change)} {'more' if one.change > 0 else 'fewer'} than at the tick before"
    if one.sample is not None:
        metadata["mz/violating"] = table(one.sample)
    return dg.AssetCheckResult(
        passed=one.holds,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=severity,
        description=description,
        metadata=metadata,
    )


def violations(count: int) -> str:
    """Returns how many violations there are, in words."""
    return {0: "no violations", 1: "1 violation"}.get(count, f"{count} violations")


def holding_up(results: Sequence[dg.AssetCheckResult]) -> list[dg.AssetCheckResult]:
    """Returns those that keep what is downstream from going on."""
    return [
        one
        for one in results
        if not one.passed and "mz/blocking" in one.metadata and one.metadata["mz/blocking"].value is True
    ]


def _asset_of_row(row: ObjectRow, state: CatalogState, keys: Mapping[str, dg.AssetKey]) -> dg.AssetKey | None:
    def called(id: GlobalId) -> str:
        found = state.object(id)
        return "" if found is None or found.name is None else found.name

    def read_by(name: str) -> Iterable[str]:
        view = state.object(state.ids[name]) if name in state.ids else None
        return () if view is None else map(called, view.dependencies.values())

    return _asset_of(called(about(row, state)), keys, read_by)


def _asset_of(
    name: str, keys: Mapping[str, dg.AssetKey], read_by: Callable[[str], Iterable[str]]
) -> dg.AssetKey | None:
    """Returns the key of an object that is an asset, or of the first one that a plain view reads."""
    if name in keys:
        return keys[name]
    found = (_asset_of(one, keys, read_by) for one in sorted(set(read_by(name))))
    return next((one for one in found if one is not None), None)
