"""Checks of the catalog's rows among themselves: ids, references, names, and what belongs to dropped objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import Catalog
from mz_dagster.catalog.records import Record
from mz_dagster.catalog.schema import METADATA
from mz_dagster.errors import Error
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding, Repair


def check_references(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what refers to nothing, to what was dropped, or to two things."""
    yield from _lost(examined)
    yield from _dangling(examined)
    yield from _ids(examined)
    yield from _counters(examined)
    yield from _of_dropped(examined)
    yield from _holds(examined)


def _lost(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what there are fewer rows of than were counted, or than others tell of."""
    names, said = len(examined.records["name"]), examined.records["project"][0]["names"]
    if names != said:
        yield Finding("names-lost", "catalog", f"there should be {said} names, and there are {names}")
    if all(row["number"] for row in examined.records["changed"]):  # the mark of the table has the number 0
        what, repair = "its table of changes was emptied", partial(_mark_changes, examined.catalog)
        yield Finding("changes-lost", "catalog", what, repair)
    bound_rows = [*examined.records["bound_file"], *examined.records["bound_offset"]]
    known = Counter(row["source"] for row in bound_rows)
    for row in examined.records["collection"]:
        if known[row["id"]] != row["bound_files"] and not examined.is_dropped(row["id"]):
            what = (
                f"it has read {row['bound_files']} files or versions, and the catalog knows {known[row['id']]} of them"
            )
            yield Finding("bindings-lost", examined.called(row["id"]), what)
    ticks = {(row["timeline"], row["tick"]) for row in examined.records["tick"]}
    for collection in examined.collections.values():
        timeline = str(collection.timeline)
        bound = {one["tick"] for one in bound_rows if one["source"] == collection.id}
        readable = {(timeline, tick) for tick in bound if collection.since.less_equal(tick)}
        for _, tick in sorted(readable - ticks):
            repair = partial(_restore_tick, examined.catalog, timeline, tick)
            yield Finding("tick-lost", f'tick {tick} of timeline "{timeline}"', "it is not among the ticks", repair)
    yield from _sequences(examined)


def _sequences(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields the columns of which nobody knows which number they have generated last."""
    known = {(row["object"], row["column"]) for row in examined.records["sequence"]}
    for id, row in examined.objects.items():
        if row["kind"] != "table" or row["dropped"]:
            continue
        with suppress(Error):  # what cannot be planned is found elsewhere
            for column in sorted(constraints_of(row["sql"]).identities):
                if (id, column) not in known:
                    what = f'it is not known which number its column "{column}" has generated last'
                    yield Finding("sequence-lost", examined.called(id), what)


def _dangling(examined: ExaminedProject) -> Iterator[Finding]:
    for table in METADATA.sorted_tables:
        for column in table.columns:
            for key in column.foreign_keys:
                known = {row[key.column.name] for row in examined.records[key.column.table.name]}
                for row in examined.records[table.name]:
                    value = row[column.name]
                    if value is not None and value not in known:
                        what = f"its {column.name} {value!r} is no {key.column.table.name} that there is"
                        # Of what was dropped, nobody misses its frontiers.
                        is_over = table.name == "batch" and examined.is_dropped(value)
                        repair = partial(_remove_strays, examined.catalog) if is_over else None
                        yield Finding("dangling-reference", _row(examined, table.name, row), what, repair)
    stored = {row["id"] for row in examined.records["collection"]}
    for id, row in examined.objects.items():
        if bool(row["has_collection"]) != (id in stored):
            what = (
                "it should have a collection and has none" if row["has_collection"] else "it should have no collection"
            )
            repair = partial(_remove_strays, examined.catalog) if row["dropped"] else None
            yield Finding("dangling-reference", examined.called(id), what, repair)


def _ids(examined: ExaminedProject) -> Iterator[Finding]:
    for id, row in examined.objects.items():
        expected = f"{'s' if row['kind'] == 'source' else 'u'}{row['sequence']}"
        if id != expected and not _was_a_collection(id, row):
            yield Finding("wrong-id", examined.called(id), f"it is a {row['kind']} of number {row['sequence']}")
    for buried in examined.records["tombstone"]:
        if buried["id"] in examined.objects:
            what = "it is there, and said to have been dropped"
            yield Finding(
                "tombstone-of-living", examined.called(buried["id"]), what, partial(_remove_strays, examined.catalog)
            )
    shards = Counter(row["shard"] for row in examined.records["collection"])
    named = Counter(row["object"] for row in examined.records["name"])
    for what, counted in (("shard", shards), ("object", named)):
        for value, times in counted.items():
            if times > 1:
                yield Finding("wrong-id", f"{what} {value!r}", f"{times} denote it")


def _was_a_collection(id: str, row: Record) -> bool:
    """Returns whether a view may have its id from before it was one, which then is of a lesser number."""
    number = re.fullmatch(r"u([1-9]\d*)", id)
    return row["kind"] == "materialized view" and number is not None and int(number[1]) < row["sequence"]


def _counters(examined: ExaminedProject) -> Iterator[Finding]:
    last = {row["name"]: row["last"] for row in examined.records["counter"]}
    used = {
        "object": [row["sequence"] for kind in ("object", "tombstone") for row in examined.records[kind]],
        "batch": [row["id"] for row in examined.records["batch"]]
        + [row["batch"] for row in examined.records["leased_batch"]],
        **{name: [row["id"] for row in examined.records[name]] for name in ("writer", "lease", "capability")},
    }
    for name, ids in used.items():
        if name not in last:
            yield Finding("dangling-reference", f"counter {name!r}", "it is gone")
        elif ids and max(ids) > last[name]:
            repair = partial(_raise_counter, examined.catalog, name, max(ids))
            what = f"it stands at {last[name]}, and {max(ids)} was handed out already"
            yield Finding("counter-behind", f"counter {name!r}", what, repair)


def _of_dropped(examined: ExaminedProject) -> Iterator[Finding]:
    repair: Repair = partial(_remove_strays, examined.catalog)
    for row in examined.records["name"]:
        if examined.is_dropped(row["object"]):
            yield Finding(
                "name-of-dropped", f'name "{row["name"]}"', f"it denotes {row['object']}, which was dropped", repair
            )
    for row in examined.records["capability"]:
        if examined.is_over(row["collection"]):
            what = f"it is on {examined.called(row['collection'])}, which was dropped"
            yield Finding("right-of-dropped", f"capability {row['id']} of {row['holder']}", what, repair)
    for row in examined.records["hold"]:
        output, input = row["output"], row["input"]
        if examined.is_dropped(output):
            what = f"it holds {examined.called(input)}, although it was dropped"
            yield Finding("right-of-dropped", examined.called(output), what, repair)
        elif examined.is_dropped(input):
            what = f"it is computed from {examined.called(input)}, which was dropped"
            yield Finding("needs-dropped", examined.called(output), what)


def _holds(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields the outputs that do not hold a collection that they are computed from."""
    held = {(row["output"], row["input"]) for row in examined.records["hold"]}
    reads: dict[str, set[str]] = {}
    for row in examined.records["dependency"]:
        reads.setdefault(row["dependant"], set()).add(row["dependency"])
    stored = {row["id"] for row in examined.records["collection"]}

    def inputs(id: str, seen: frozenset[str]) -> set[str]:
        found: set[str] = set()
        for one in reads.get(id, set()) - seen:
            found |= {one} if one in stored else inputs(one, seen | {one})
        return found

    for id in stored & examined.objects.keys():
        if examined.is_dropped(id):
            continue
        for input in sorted(inputs(id, frozenset({id})) & examined.objects.keys()):
            if (id, input) not in held:
                what = f"it does not hold {examined.called(input)}, which it is computed from"
                yield Finding("missing-hold", examined.called(id), what)


def _row(examined: ExaminedProject, table: str, row: object) -> str:
    assert isinstance(row, dict)
    if table in ("object", "collection"):
        return examined.called(row["id"])
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
