"""Collections that become views by right of their write capabilities (items 83 to 89): all of it, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from mz_dagster.catalog import (
    BatchStats,
    Catalog,
    FrontierNotHeld,
    InputNotHeld,
    NameTaken,
    NewObject,
    ReadCapability,
    Seal,
    Sealed,
    StillNeeded,
    UnknownCapability,
    UpperBeyondInput,
    WriteCapability,
    WrongDefinition,
    WrongRight,
)
from mz_dagster.clock import ManualClock
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.types import INT4, INT8, Column

N = (Column("n", INT4),)
BEGIN = 7


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


@pytest.fixture
def table(catalog: Catalog) -> GlobalId:
    """A table that is known before 9."""
    id = catalog.create_object(NewObject("t", "table", "create t", "t", N)).id
    catalog.seal([Seal(id, at(0), at(9))])
    return id


@pytest.fixture
def read(catalog: Catalog, table: GlobalId) -> ReadCapability:
    return catalog.acquire_read(table, at(BEGIN), holder="test", ttl_ms=None)


def made(catalog: Catalog, start: int = BEGIN, columns: Sequence[Column] = N) -> tuple[ReadCapability, WriteCapability]:
    id = catalog.reserve_id()
    return catalog.create_collection(id, "t", columns, start=start, holder="test", ttl_ms=None)


def view(table: GlobalId, name: str = "v") -> NewObject:
    return NewObject(
        name, "materialized view", f"create {name}", "t", N, dependencies={"t": table}, since=BEGIN, upper=BEGIN
    )


def maintain(
    catalog: Catalog, read: ReadCapability, *views: NewObject, writes: Sequence[WriteCapability | None]
) -> None:
    tokens = [None if one is None else one.token for one in writes]
    catalog.maintain([read.token], views, tokens, holder="test", ttl_ms=None)


def test_a_collection_becomes_the_view_that_is_written_to_it(
    catalog: Catalog, table: GlobalId, read: ReadCapability
) -> None:
    reader, write = made(catalog)
    id = write.collection
    before = catalog.collection(id)
    catalog.maintain([read.token], [view(table, "first"), view(table)], [None, write.token], holder="test", ttl_ms=None)
    found = catalog.resolve_name("v")
    assert found is not None
    assert (found.id, found.kind, found.sql, found.created_as) == (id, "materialized view", "create v", "v")
    assert catalog.collection(id) == before  # the same shard, at the same frontiers
    assert catalog.validate(reader.token) == reader
    assert catalog.holds(id) == (table,)
    assert [one.name for one in catalog.objects()] == ["t", "first", "v"]  # each after what it depends on
    first = catalog.resolve_name("first")
    assert first is not None
    assert first.id != id

    # Nobody but the engine writes it from now on.
    with pytest.raises(UnknownCapability, match=write.label):
        catalog.append_batch(write.token, at(BEGIN), at(8))
    assert catalog.acquire(id, holder="test", ttl_ms=None)[1].frontier.is_empty
    assert isinstance(catalog.seal([Seal(one, at(BEGIN), at(8)) for one in (first.id, id)]), Sealed)
    with pytest.raises(UpperBeyondInput):
        catalog.seal([Seal(id, at(8), at(10))])
    catalog.drop(read.token)
    catalog.allow_compaction("t", retention_ms=0)
    assert catalog.collection(table).since == at(BEGIN)  # the view's upper - 1

    with pytest.raises(StillNeeded):
        catalog.drop_object(table)
    assert set(catalog.drop_object(table, cascade=True)) == {table, first.id, id}
    assert catalog.validate(reader.token).collection == id  # which is the reader's to give back


def test_a_collection_that_is_behind_follows_to_where_the_view_begins(
    catalog: Catalog, clock: ManualClock, table: GlobalId, read: ReadCapability
) -> None:
    reader, write = made(catalog, start=2)
    with pytest.raises(FrontierNotHeld) as refused:  # a reader may still ask what there was at 2
        maintain(catalog, read, view(table), writes=[write])
    assert f'"{reader.label}" of test' in str(refused.value.detail)
    catalog.downgrade(reader.token, at(BEGIN))
    forgotten = catalog.clone(write.token, holder="late", ttl_ms=1_000)
    clock.advance(1_001)
    maintain(catalog, read, view(table), writes=[write])
    row = catalog.collection(write.collection)
    assert (row.since, row.upper) == (at(BEGIN), at(BEGIN))
    clock.advance(-1_001)
    with pytest.raises(UnknownCapability):  # one that has expired is gone, too, whatever the clock says later
        catalog.append_batch(forgotten.token, at(2), at(BEGIN))


def test_what_is_not_handed_over_whole_is_not_written(catalog: Catalog, table: GlobalId, read: ReadCapability) -> None:
    def refused(error: type[ProgrammingError], match: str, new: NewObject, *writes: WriteCapability) -> None:
        before = catalog.records()
        with pytest.raises(error, match=re.escape(match)):
            maintain(catalog, read, new, writes=writes)
        assert catalog.records() == before, "what is refused has no effect"

    reader, write = made(catalog)
    refused(WrongRight, "to write", view(table), WriteCapability(reader.token, reader.collection, at(BEGIN), None))
    refused(WrongDefinition, "2 write capabilities for 1 views", view(table), write, made(catalog)[1])
    refused(NameTaken, '"t"', view(table, "t"), write)
    other = catalog.clone(write.token, holder="a script", ttl_ms=None)
    refused(FrontierNotHeld, "not the only one to write", view(table), write)
    catalog.drop(other.token)
    refused(UnknownCapability, other.label, view(table), WriteCapability(other.token, write.collection, at(7), None))
    elsewhere = catalog.create_object(NewObject("u", "table", "create u", "t", N)).id
    refused(InputNotHeld, elsewhere, view(elsewhere), write)
    refused(WrongDefinition, "timelines differ", replace(view(table), timeline=None), write)
    ahead = made(catalog, start=8)[1]
    refused(FrontierNotHeld, "from {7} on", view(table), ahead)
    refused(
        FrontierNotHeld,
        "cannot be read at {9999}",
        replace(view(table), since=9999, upper=9999),
        made(catalog, start=9999)[1],
    )
    read_late, gone = made(catalog)
    catalog.downgrade(read_late.token, at(8))
    catalog.allow_compaction("t")
    refused(FrontierNotHeld, "from {7} on", view(table), gone)
    batch = catalog.reserve_batch(write.collection, catalog.register_writer("test", 1_000), at(BEGIN), at(8))
    moved = catalog.append_batch(write.token, at(BEGIN), at(8), batch, BatchStats(2, 0, 1, 100))
    assert isinstance(moved, WriteCapability)
    refused(WrongDefinition, "holds updates already", replace(view(table), since=8, upper=8), moved)
    catalog.append_batch(write.token, at(8), Antichain.empty(EPOCH_MS))
    refused(UnknownCapability, write.label, view(table), write)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, columns=(Column("m", INT4, False),)),
        lambda one: replace(one, columns=(Column("n", INT8, False),)),
        lambda one: replace(one, columns=N),  # may be NULL
        lambda one: replace(one, columns=(*one.columns, Column("m", INT4))),
        lambda one: replace(one, keys=frozenset()),
    ],
)
def test_a_view_keeps_what_the_collection_promised(
    catalog: Catalog, table: GlobalId, read: ReadCapability, change: Callable[[NewObject], NewObject]
) -> None:
    columns, key = (Column("n", INT4, nullable=False),), frozenset({frozenset({0})})
    id = catalog.reserve_id()
    _, write = catalog.create_collection(id, "t", columns, keys=key, start=BEGIN, holder="test", ttl_ms=None)
    good = replace(view(table), columns=columns, keys=frozenset[frozenset[int]]({frozenset()}))  # at most one row
    with pytest.raises(WrongDefinition, match="columns or keys differ") as refused:
        maintain(catalog, read, change(good), writes=[write])
    assert "(n integer NOT NULL, UNIQUE (n))" in str(refused.value.detail)
    maintain(catalog, read, good, writes=[write])
    assert catalog.collection(id).keys == good.keys


def test_a_collection_keeps_its_columns_and_its_retention(
    catalog: Catalog, table: GlobalId, read: ReadCapability
) -> None:
    strict = (Column("n", INT4, nullable=False),)
    for name, own, asked, kept in (("a", 5, None, 5), ("b", 5, 2, 2), ("c", None, 2, 2), ("d", None, None, None)):
        id = catalog.reserve_id()
        _, write = catalog.create_collection(id, "t", N, start=BEGIN, retention_ms=own, holder="test", ttl_ms=None)
        maintain(catalog, read, replace(view(table, name), columns=strict, retention_ms=asked), writes=[write])
        row = catalog.collection(id)
        assert (row.columns, row.retention_ms) == (N, kept)
