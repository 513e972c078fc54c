"""A process keeps what it read of the catalog and asks for changes only; it never knows less than who reads it all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from mz_dagster.catalog import Catalog, CatalogState, NewObject, Seal, replica
from mz_dagster.catalog.errors import ChangesLost, OracleBehind
from mz_dagster.catalog.frontiers import collection_of
from mz_dagster.catalog.stored_objects import object_of
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.types import INT4, Column
from tests.catalog.connected import connected


def new(name: str | None, *inputs: GlobalId, kind: str = "materialized view", **others: object) -> NewObject:
    columns = (Column("a", INT4),)
    dependencies = {f"input {n}": id for n, id in enumerate(inputs)}
    return NewObject(name, kind, f"sql of {name}", "t", columns, dependencies=dependencies, **others)  # type: ignore[arg-type]


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def check(state: CatalogState, catalog: Catalog) -> None:
    """Compares what is known with what is there."""
    objects, collections = catalog.objects(), catalog.collections()
    assert state.objects() == objects
    assert state.collections() == collections
    assert state.collections("t") == catalog.collections("t")
    assert state.objects("table") == catalog.objects("table")
    assert state.ids == {one.name: one.id for one in objects if one.name is not None}
    for one in objects:
        assert state.object(one.id) == one
        assert state.owned.get(one.id, ()) == tuple(other.id for other in objects if other.owner == one.id)
        assert state.dependants.get(one.id, ()) == catalog.dependants(one.id)
    for row in collections:
        assert state.collection(row.id) == row


class Changes:
    """Makes changes of every kind by chance, with the catalog's own methods."""

    def __init__(self, chance: random.Random, catalog: Catalog) -> None:
        self.chance, self.catalog, self.names = chance, catalog, 0

    def make(self) -> None:
        chance, catalog = self.chance, self.catalog
        rows = [one for one in catalog.objects() if one.name is not None]
        kinds: list[Callable[[], object]] = [self.create, self.create]
        if rows:
            row = chance.choice(rows)
            kinds += [
                lambda: catalog.rename_object(row.id, self.name()),
                lambda: catalog.drop_object(row.id, cascade=True),
                lambda: catalog.swap([new(row.name)], [row.id]),
                lambda: catalog.seal([], failures={row.id: chance.choice([None, "why"])}),
                lambda: catalog.note_polls({row.id: chance.choice([None, "where"])}),
                lambda: catalog.allow_compaction("t", retention_ms=chance.randrange(3)),
                self.seal,
                self.seal,
            ]
            if row.has_collection:
                kinds.append(lambda: catalog.set_retention(row.id, chance.randrange(100)))
        chance.choice(kinds)()

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def create(self) -> None:
        there = [one.id for one in self.catalog.collections()]
        inputs = self.chance.sample(there, min(len(there), self.chance.randrange(3)))
        kind = "materialized view" if inputs else self.chance.choice(["table", "source", "view"])
        since = max((self.catalog.collection(id).since.only for id in inputs), default=0)
        made = new(self.name(), *inputs, kind=kind, since=since, upper=since, has_collection=kind != "view")
        (row,) = self.catalog.create_objects([made])
        if self.chance.random() < 0.3 and kind != "view":
            self.catalog.create_objects([new(None, row.id, kind="arrangement", owner=row.id, since=since, upper=since)])

    def seal(self) -> None:
        rows = [one for one in self.catalog.collections() if not self.catalog.holds(one.id)]
        moved = self.chance.sample(rows, min(len(rows), 2))
        ends = {row.id: row.upper.only + 1 + self.chance.randrange(5) for row in moved}
        self.catalog.seal([Seal(row.id, row.upper, at(ends[row.id])) for row in moved])


@pytest.mark.parametrize(
    ("url", "steps"),
    [
        ("sqlite", 50),
        ("postgresql", 20),
        pytest.param("postgresql", 50, marks=pytest.mark.deep),
        *(pytest.param(one, 500, marks=pytest.mark.deep) for one in ("sqlite", "postgresql")),
    ],
    indirect=["url"],
)
def test_what_a_process_knows_is_what_is_there(url: str, clock: ManualClock, steps: int) -> None:
    """Of two processes one makes changes of every kind, and the other knows of each as soon as it is committed."""
    with Catalog.open(url, clock=clock) as writer, Catalog.open(url, clock=clock) as reader:
        writer.declare_timeline("t")
        changes = Changes(random.Random(5), writer)
        for _ in range(steps):
            changes.make()
            check(reader.state(), writer)
            assert writer.state().number == reader.state().number


@pytest.mark.parametrize("table", ["object", "name", "dependency", "collection"])
def test_a_change_is_noted_whoever_makes_it(table: str, catalog: Catalog, url: str) -> None:
    """Each row that is put in, changed or taken out behind the catalog's back is known by the next question."""
    first = catalog.create_object(new("first", kind="table")).id
    second = catalog.create_object(new("second", first)).id
    catalog.state()
    changes = {
        "object": ["UPDATE object SET sql = 'other' WHERE id = '{}'"],
        "name": [
            "UPDATE name SET name = 'third' WHERE object = '{}'",
            "DELETE FROM name WHERE object = '{}'",
            "INSERT INTO name (name, object) VALUES ('fourth', '{}')",
        ],
        "dependency": [
            "UPDATE dependency SET name = 'other' WHERE dependant = '{}'",
            "DELETE FROM dependency WHERE dependant = '{}'",
        ],
        "collection": [
            "UPDATE collection SET upper = '[7]' WHERE id = '{}'",
            "DELETE FROM hold WHERE output = '{}'",
            "DELETE FROM collection WHERE id = '{}'",
        ],
    }
    for statement in changes[table]:
        with connected(url) as raw:
            raw.exec_driver_sql(statement.format(second))
        check(catalog.state(), catalog)


def test_a_name_that_goes_from_one_to_another_is_known_of_both(catalog: Catalog, url: str) -> None:
    first, second = catalog.create_object(new("a", kind="table")).id, catalog.create_object(new(None)).id
    catalog.state()
    with connected(url) as raw:
        raw.exec_driver_sql(f"UPDATE name SET object = '{second}' WHERE object = '{first}'")
    check(catalog.state(), catalog)
    assert catalog.state().ids == {"a": second}


def test_rows_of_dropped_objects_may_go(catalog: Catalog, url: str) -> None:
    """One who did not look between the drop and the end of the rows knows of the drop all the same."""
    kept, gone = (catalog.create_object(new(name, kind="table")).id for name in ("kept", "gone"))
    assert catalog.state().object(gone) is not None
    catalog.drop_object(gone)
    with connected(url) as raw:
        raw.exec_driver_sql(f"DELETE FROM collection WHERE id = '{gone}'")
        raw.exec_driver_sql(f"DELETE FROM object WHERE id = '{gone}'")
        noted = raw.exec_driver_sql(f"SELECT count(*) FROM changed WHERE object = '{gone}'").scalar_one()
    assert noted == 0
    check(catalog.state(), catalog)
    assert [one.id for one in catalog.state().objects()] == [kept]


@pytest.mark.parametrize("others", [0, 9])
def test_changes_that_were_emptied_are_missed_by_nobody(others: int, catalog: Catalog, url: str) -> None:
    """Not by who reads next nor by who reads when the numbers have come as far as he was."""
    table = catalog.create_object(new("a", kind="table")).id
    with Catalog.open(url, clock=ManualClock(1)) as reader:
        reader.state()
        with connected(url) as raw:
            raw.exec_driver_sql("DELETE FROM changed")
            for n in range(others):
                raw.exec_driver_sql(f"UPDATE collection SET upper = '[{n + 1}]' WHERE id = '{table}'")
                raw.exec_driver_sql(f"UPDATE object SET sql = '{n}' WHERE id = '{table}'")
        for process in (reader, catalog):
            with pytest.raises(ChangesLost, match="what changed"):
                process.state()
        catalog.mark_changes()
        check(reader.state(), catalog)
        catalog.rename_object(table, "b")
        check(reader.state(), catalog)


def test_nothing_is_read_by_an_oracle_that_was_set_back(catalog: Catalog, url: str) -> None:
    """A read at what it says would miss an acknowledged write; so says who was there and who comes later."""
    table = catalog.create_object(new("a", kind="table")).id
    catalog.seal([Seal(table, at(0), at(8))], apply=("t", 7))
    assert catalog.read_ts("t") == 7
    catalog.seal([Seal(table, at(8), at(9))], apply=("t", 8))
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE timeline SET read_ts = 7")
    with Catalog.open(url, clock=ManualClock(1)) as later:
        for process in (catalog, later):
            with pytest.raises(OracleBehind, match="was set back") as told:
                process.read_ts("t")
            assert told.value.detail is not None
            assert "at 7, and 8 is readable" in told.value.detail
        later.apply_write("t", 8)
        assert catalog.read_ts("t") == later.read_ts("t") == 8


def test_what_steps_change_leaves_definitions_as_they_were(catalog: Catalog) -> None:
    table = catalog.create_object(new("t1", kind="table"))
    before = catalog.state()
    row = catalog.collection(table.id)
    catalog.seal([Seal(table.id, row.upper, at(9))])
    catalog.seal([], failures={table.id: "no luck"})
    after = catalog.state()
    assert after.number > before.number
    assert after.definitions == before.definitions
    for change in (
        lambda: catalog.note_polls({table.id: "no folder"}),
        lambda: catalog.rename_object(table.id, "t2"),
        lambda: catalog.create_object(new("t3", table.id, upper=9, since=0)),
    ):
        change()
        found = catalog.state()
        assert found.definitions > after.definitions
        after = found


@contextmanager
def asked(catalog: Catalog) -> Iterator[list[str]]:
    """Yields the queries that are made of the catalog in the block."""
    queries: list[str] = []

    def note(_: object, cursor: object, statement: str, *others: object) -> None:
        if statement.startswith("SELECT"):
            queries.append(statement)

    engine = catalog._database.engine
    event.listen(engine, "after_cursor_execute", note)
    try:
        yield queries
    finally:
        event.remove(engine, "after_cursor_execute", note)


@pytest.fixture
def portion(monkeypatch: pytest.MonkeyPatch) -> int:
    """Of how many objects a statement asks at most."""
    monkeypatch.setattr(replica, "_PORTION", 40)
    return 40


@pytest.mark.parametrize("objects", [3, 80])
def test_a_question_costs_what_changed_however_much_there_is(
    objects: int, catalog: Catalog, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query if nothing changed, none of SQLite; else one more for what did, and of that alone values are made."""
    made: list[str] = []

    def noting(name: str, make: Callable[..., object]) -> None:
        def noted(row: Any, *others: object) -> object:
            made.append(f"{name} {row.id}")
            return make(row, *others)

        monkeypatch.setattr(replica, name, noted)

    ids = [one.id for one in catalog.create_objects([new(f"t{n}", kind="table") for n in range(objects)])]
    check(catalog.state(), catalog)
    noting("object_of", object_of)
    noting("collection_of", collection_of)
    for change, queries, expected in (
        (lambda: None, 0 if catalog._database.is_sqlite else 1, []),
        (lambda: catalog.seal([Seal(ids[1], at(0), at(5))]), 2, [f"collection_of {ids[1]}"]),
        (lambda: catalog.rename_object(ids[2], "other"), 4, [f"object_of {ids[2]}", f"collection_of {ids[2]}"]),
    ):
        change()
        with asked(catalog) as found:
            state = catalog.state()
        assert len(found) == queries
        assert len(state.objects()) == len(state.collections()) == objects
        assert made == expected
        made.clear()


def test_many_changes_at_once_are_known(catalog: Catalog, portion: int) -> None:
    """More than one statement would name."""
    made = catalog.create_objects([new(f"t{n}", kind="table") for n in range(portion + 5)])
    before = catalog.state()
    catalog.seal([Seal(one.id, at(0), at(3)) for one in made])
    after = catalog.state()
    check(after, catalog)
    assert after.definitions == before.definitions
    catalog.drop_objects([one.id for one in made[1:]])
    check(catalog.state(), catalog)


def test_nobody_knows_less_than_was_committed_before_he_asked(url: str, clock: ManualClock) -> None:
    """Threads of two processes ask while a third writes: each finds at least what the writer had committed by then."""
    with Catalog.open(url, clock=clock) as writer:
        writer.declare_timeline("t")
        table = writer.create_object(new("x", kind="table")).id
        committed, wrong, over = [0], [], threading.Event()

        def read(reader: Catalog) -> None:
            last = 0
            while not over.is_set():
                least = committed[0]
                row = reader.state().collection(table)
                if row is None or row.upper.only < max(least, last):
                    wrong.append((least, last, row))
                last = max(last, 0 if row is None else row.upper.only)

        readers = [Catalog.open(url, clock=clock) for _ in range(2)]
        threads = [threading.Thread(target=read, args=(one,)) for one in readers for _ in range(2)]
        for thread in threads:
            thread.start()
        for time in range(1, 60):
            writer.seal([Seal(table, at(time - 1), at(time))])
            committed[0] = time
        over.set()
        for thread in threads:
            thread.join()
        for one in readers:
            assert one.state().number == writer.state().number
            one.close()
    assert not wrong
