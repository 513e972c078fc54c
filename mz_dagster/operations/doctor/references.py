"""Checks of the catalog's rows among themselves: ids, references, names, and what belongs to dropped objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from mz_dagster.adapter.constraints import constraints_of
from mz_dagster.catalog import Catalog
from mz_dagster.catalog.records import Record
from mz_dagster.catalog.schema import METADATA
from mz_dagster.errors import Error
from mz_dagster.operations.doctor.finding import Finding, Repair
from mz_dagster.operations.doctor.patient import Patient


def check_references(patient: Patient) -> Iterator[Finding]:
    """Yields what refers to nothing, to what was dropped, or to two things."""
    yield from _lost(patient)
    yield from _dangling(patient)
    yield from _ids(patient)
    yield from _counters(patient)
    yield from _of_dropped(patient)
    yield from _holds(patient)


def _lost(patient: Patient) -> Iterator[Finding]:
    """Yields what there are fewer rows of than were counted, or than others tell of."""
    names, said = len(patient.records["name"]), patient.records["project"][0]["names"]
    if names != said:
        yield Finding("names-lost", "catalog", f"there should be {said} names, and there are {names}")
    if all(row["number"] for row in patient.records["changed"]):  # the mark of the table has the number 0
        what, repair = "its table of changes was emptied", partial(_mark_changes, patient.catalog)
        yield Finding("changes-lost", "catalog", what, repair)
    files = Counter(row["source"] for row in patient.records["bound_file"])
    for row in patient.records["collection"]:
        if files[row["id"]] != row["bound_files"] and not patient.is_dropped(row["id"]):
            what = f"it has read {row['bound_files']} files, and the catalog knows {files[row['id']]} of them"
            yield Finding("bindings-lost", patient.called(row["id"]), what)
    ticks = {(row["timeline"], row["tick"]) for row in patient.records["tick"]}
    for collection in patient.collections.values():
        timeline = str(collection.timeline)
        bound = {one["tick"] for one in patient.records["bound_file"] if one["source"] == collection.id}
        readable = {(timeline, tick) for tick in bound if collection.since.less_equal(tick)}
        for _, tick in sorted(readable - ticks):
            repair = partial(_restore_tick, patient.catalog, timeline, tick)
            yield Finding("tick-lost", f'tick {tick} of timeline "{timeline}"', "it is not among the ticks", repair)
    yield from _sequences(patient)


def _sequences(patient: Patient) -> Iterator[Finding]:
    """Yields the columns of which nobody knows which number they have generated last."""
    known = {(row["object"], row["column"]) for row in patient.records["sequence"]}
    for id, row in patient.objects.items():
        if row["kind"] != "table" or row["dropped"]:
            continue
        with suppress(Error):  # what cannot be planned is found elsewhere
            for column in sorted(constraints_of(row["sql"]).identities):
                if (id, column) not in known:
                    what = f'it is not known which number its column "{column}" has generated last'
                    yield Finding("sequence-lost", patient.called(id), what)


def _dangling(patient: Patient) -> Iterator[Finding]:
    for table in METADATA.sorted_tables:
        for column in table.columns:
            for key in column.foreign_keys:
                known = {row[key.column.name] for row in patient.records[key.column.table.name]}
                for row in patient.records[table.name]:
                    value = row[column.name]
                    if value is not None and value not in known:
                        what = f"its {column.name} {value!r} is no {key.column.table.name} that there is"
                        # Of what was dropped, nobody misses its frontiers.
                        is_over = table.name == "batch" and patient.is_dropped(value)
                        repair = partial(_remove_strays, patient.catalog) if is_over else None
                        yield Finding("dangling-reference", _row(patient, table.name, row), what, repair)
    stored = {row["id"] for row in patient.records["collection"]}
    for id, row in patient.objects.items():
        if bool(row["has_collection"]) != (id in stored):
            what = (
                "it should have a collection and has none" if row["has_collection"] else "it should have no collection"
            )
            repair = partial(_remove_strays, patient.catalog) if row["dropped"] else None
            yield Finding("dangling-reference", patient.called(id), what, repair)


def _ids(patient: Patient) -> Iterator[Finding]:
    for id, row in patient.objects.items():
        expected = f"{'s' if row['kind'] == 'source' else 'u'}{row['sequence']}"
        if id != expected and not _was_a_collection(id, row):
            yield Finding("wrong-id", patient.called(id), f"it is a {row['kind']} of number {row['sequence']}")
    for buried in patient.records["tombstone"]:
        if buried["id"] in patient.objects:
            what = "it is there, and said to have been dropped"
            yield Finding(
                "tombstone-of-living", patient.called(buried["id"]), what, partial(_remove_strays, patient.catalog)
            )
    shards = Counter(row["shard"] for row in patient.records["collection"])
    named = Counter(row["object"] for row in patient.records["name"])
    for what, counted in (("shard", shards), ("object", named)):
        for value, times in counted.items():
            if times > 1:
                yield Finding("wrong-id", f"{what} {value!r}", f"{times} denote it")


def _was_a_collection(id: str, row: Record) -> bool:
    """Returns whether a view may have its id from before it was one, which then is of a lesser number."""
    number = re.fullmatch(r"u([1-9]\d*)", id)
    return row["kind"] == "materialized view" and number is not None and int(number[1]) < row["sequence"]


def _counters(patient: Patient) -> Iterator[Finding]:
    last = {row["name"]: row["last"] for row in patient.records["counter"]}
    used = {
        "object": [row["sequence"] for kind in ("object", "tombstone") for row in patient.records[kind]],
        "batch": [row["id"] for row in patient.records["batch"]]
        + [row["batch"] for row in patient.records["leased_batch"]],
        **{name: [row["id"] for row in patient.records[name]] for name in ("writer", "lease", "capability")},
    }
    for name, ids in used.items():
        if name not in last:
            yield Finding("dangling-reference", f"counter {name!r}", "it is gone")
        elif ids and max(ids) > last[name]:
            repair = partial(_raise_counter, patient.catalog, name, max(ids))
            what = f"it stands at {last[name]}, and {max(ids)} was handed out already"
            yield Finding("counter-behind", f"counter {name!r}", what, repair)


def _of_dropped(patient: Patient) -> Iterator[Finding]:
    repair: Repair = partial(_remove_strays, patient.catalog)
    for row in patient.records["name"]:
        if patient.is_dropped(row["object"]):
            yield Finding(
                "name-of-dropped", f'name "{row["name"]}"', f"it denotes {row['object']}, which was dropped", repair
            )
    for row in patient.records["capability"]:
        if patient.is_over(row["collection"]):
            what = f"it is on {patient.called(row['collection'])}, which was dropped"
            yield Finding("right-of-dropped", f"capability {row['id']} of {row['holder']}", what, repair)
    for row in patient.records["hold"]:
        output, input = row["output"], row["input"]
        if patient.is_dropped(output):
            what = f"it holds {patient.called(input)}, although it was dropped"
            yield Finding("right-of-dropped", patient.called(output), what, repair)
        elif patient.is_dropped(input):
            what = f"it is computed from {patient.called(input)}, which was dropped"
            yield Finding("needs-dropped", patient.called(output), what)


def _holds(patient: Patient) -> Iterator[Finding]:
    """Yields the outputs that do not hold a collection that they are computed from."""
    held = {(row["output"], row["input"]) for row in patient.records["hold"]}
    reads: dict[str, set[str]] = {}
    for row in patient.records["dependency"]:
        reads.setdefault(row["dependant"], set()).add(row["dependency"])
    stored = {row["id"] for row in patient.records["collection"]}

    def inputs(id: str, seen: frozenset[str]) -> set[str]:
        found: set[str] = set()
        for one in reads.get(id, set()) - seen:
            found |= {one} if one in stored else inputs(one, seen | {one})
        return found

    for id in stored & patient.objects.keys():
        if patient.is_dropped(id):
            continue
        for input in sorted(inputs(id, frozenset({id})) & patient.objects.keys()):
            if (id, input) not in held:
                what = f"it does not hold {patient.called(input)}, which it is computed from"
                yield Finding("missing-hold", patient.called(id), what)


def _row(patient: Patient, table: str, row: object) -> str:
    assert isinstance(row, dict)
    if table in ("object", "collection"):
        return patient.called(row["id"])
    key = ", ".join(str(row[column.name]) for column in METADATA.tables[table].primary_key)
    return f"{table.replace('_', ' ')} {key}"


def _mark_changes(catalog: Catalog) -> str:
    catalog.mark_changes()
    return "began the table of changes anew; who is at work reads the whole catalog again"


def _restore_tick(catalog: Catalog, timeline: str, tick: int) -> str:
    catalog.restore_tick(timeline, tick)
    return f'put tick {tick} of timeline "{timeline}" back'


def _raise_counter(catalog: Catalog, name: str, least: int) -> str:
    catalog.raise_counters({name: least})
    return f"counter {name!r} goes on after {least}"


def _remove_strays(catalog: Catalog) -> str:
    return f"removed {catalog.remove_strays()} names, rights and tombstones that contradict what is there"
