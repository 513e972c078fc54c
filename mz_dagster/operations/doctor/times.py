"""Checks of frontiers, capabilities, the timestamp oracle and leases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mz_dagster.adapter.health import with_dependants
from mz_dagster.catalog import Catalog
from mz_dagster.catalog.sweeping import GRACE_MS, LONGEST_MS
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding

LONGEST_LEAD_MS = 3_600_000
"""A leader renews its lease every few seconds; one that ends later than this is of a clock that was ahead."""


def check_times(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what contradicts the order of since, upper, capabilities, oracle and clock."""
    for row in examined.collections.values():
        if not row.since <= row.upper and not examined.is_written_by_capability(row.id):
            what = f"its since {row.since} is beyond its upper {row.upper}"
            yield Finding("since-beyond-upper", examined.called(row.id), what)
    yield from _behind(examined)
    yield from _held(examined)
    yield from _constraints(examined)
    yield from _oracles(examined)
    yield from _leases(examined)


def _behind(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what stays behind, and why."""
    own = {}
    for row in examined.collections.values():
        if row.reason is not None and not examined.is_dropped(row.id):
            own[row.id] = row.reason
            check, what = ("step-failed", "its last step did not finish")
            if row.poll_failure is not None:
                check, what = ("poll-failed", "its last poll failed")
            yield Finding(check, examined.called(row.id), f"{what}: {row.reason}")
    inputs: dict[GlobalId, set[GlobalId]] = {}
    for edge in examined.records["hold"]:
        inputs.setdefault(GlobalId(edge["output"]), set()).add(GlobalId(edge["input"]))
    names = {id: row["created_as"] or id for id, row in examined.objects.items()}
    for id, why in with_dependants(own, inputs, names).items():
        if id not in own and not examined.is_dropped(id):
            yield Finding("input-behind", examined.called(id), f"it {why}")


def _held(examined: ExaminedProject) -> Iterator[Finding]:
    for one in examined.records["capability"]:
        row = examined.collections.get(one["collection"])
        if row is None or examined.is_dropped(row.id):
            continue
        if one["until_ms"] is not None and one["until_ms"] <= examined.now_ms:
            continue
        held = examined.frontier(f"capability {one['id']}", row.timeline, one["frontier"])
        limit, check = (
            (row.upper, "upper-beyond-capability") if one["writes"] else (row.since, "since-beyond-capability")
        )
        if held is not None and not limit <= held:
            what = f"it stands at {limit}, and capability {one['id']} of {one['holder']} holds it at {held}"
            yield Finding(check, examined.called(row.id), what)


def _constraints(examined: ExaminedProject) -> Iterator[Finding]:
    for edge in examined.records["hold"]:
        output, input = (examined.collections.get(edge[end]) for end in ("output", "input"))
        if output is None or input is None or examined.is_dropped(output.id) or examined.is_dropped(input.id):
            continue
        where = examined.called(output.id)
        if not input.since <= output.since:
            what = f"its since is {output.since}, and that of its input {examined.called(input.id)} {input.since}"
            yield Finding("since-beyond-output", where, what)
        if not output.upper <= input.upper:
            what = f"its upper is {output.upper}, and that of its input {examined.called(input.id)} {input.upper}"
            yield Finding("upper-beyond-input", where, what)


def _oracles(examined: ExaminedProject) -> Iterator[Finding]:
    for line in examined.records["timeline"]:
        name, read_ts = line["name"], line["read_ts"]
        closed = [tick["tick"] for tick in examined.records["tick"] if tick["timeline"] == name]
        closed += [
            row.upper.only - 1
            for row in examined.collections.values()
            if row.timeline == name and not row.upper.is_empty and not examined.is_written_by_capability(row.id)
        ]
        least = max([read_ts, *closed])
        if read_ts < least or line["write_ts"] < read_ts:
            what = f"it stands at {read_ts} (writes {line['write_ts']}), and {least} is closed already"
            yield Finding("oracle-behind", f'timeline "{name}"', what, partial(_advance, examined.catalog, name, least))
        settings = examined.project.timelines.get(name)
        counts_time = line["lattice"] == "epoch_ms" and (settings is None or settings.clock is None)
        if counts_time and read_ts > examined.now_ms + LONGEST_LEAD_MS:
            what = f"it stands at {read_ts}, {(read_ts - examined.now_ms) // 60_000} minutes from now"
            yield Finding("oracle-ahead", f'timeline "{name}"', what)


def _leases(examined: ExaminedProject) -> Iterator[Finding]:
    now = examined.now_ms
    repair = partial(_end_leases, examined.catalog, now)
    for table, limit in (("timeline", LONGEST_LEAD_MS), ("writer", LONGEST_MS), ("lease", LONGEST_MS)):
        for row in examined.records[table]:
            until = row["until_ms"]
            where = f'leader of timeline "{row["name"]}"' if table == "timeline" else f"{table} {row['id']}"
            if until is not None and until > now + limit:
                what = f"the lease of {row['holder']} ends only in {(until - now) // 60_000} minutes"
                yield Finding("lease-in-future", where, what, repair)
            elif table != "timeline" and until <= now - 2 * GRACE_MS:
                yield Finding("lease-expired", where, f"it was of {row['holder']}", examined.sweep)


def _advance(catalog: Catalog, timeline: str, least: int) -> str:
    catalog.apply_write(timeline, least)
    return f'the oracle of timeline "{timeline}" stands at {least}'


def _end_leases(catalog: Catalog, now_ms: int) -> str:
    ended = catalog.end_leases_beyond(now_ms + LONGEST_LEAD_MS, now_ms + LONGEST_MS)
    return f"ended {ended} leases of a clock that was ahead"
