"""Names, ids, dependencies, swap and drop (items 50 to 57, 90 to 93, 102 to 107, 113)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from mz_dagster.catalog import (
    Catalog,
    NameTaken,
    NewObject,
    Ref,
    SinceBehindInput,
    StillNeeded,
    UnknownObject,
    UnknownTimeline,
    WrongDefinition,
)
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import INT4, TEXT, Column, numeric
from tests.catalog.connected import connected

COLUMNS = (Column("a", INT4, nullable=False), Column("b", TEXT), Column("c", numeric(2)))


def new(
    name: str | None, kind: str = "table", reads: Mapping[str, GlobalId | Ref] | None = None, **rest: Any
) -> NewObject:
    return NewObject(name, kind, f"create {name}", "t", COLUMNS, dependencies=reads or {}, **rest)


def test_an_object_reads_back_as_it_was_created(catalog: Catalog) -> None:
    made = catalog.create_object(
        new(
            "x",
            keys=frozenset({frozenset({0}), frozenset({1, 2})}),
            monotonic=True,
            options={"n": [1, None], "s": "ü"},
            tags=("p", "q"),
        )
    )
    assert catalog.object(made.id) == made == catalog.resolve_name("x")
    assert (catalog.id_of("x"), catalog.id_of("y")) == (made.id, None)
    assert made.columns == COLUMNS
    assert made.relation_type.keys == {frozenset({0}), frozenset({1, 2})}
    assert made.options == {"n": [1, None], "s": "ü"}
    row = catalog.collection(made.id)
    assert (row.columns, row.keys, row.since.only, row.upper.only) == (COLUMNS, made.keys, 0, 0)
    assert not row.is_hydrated
    assert catalog.resolve_name("y") is None


def test_global_ids_are_never_reused(catalog: Catalog, url: str, clock: ManualClock) -> None:
    first = catalog.create_object(new("x", "source"))
    assert first.id == "s1"
    catalog.drop_object(first.id)
    with Catalog.open(url, clock=clock) as again:
        second = again.create_object(new("x"))
        assert second.id == "u2"
        assert again.was_dropped(first.id)
        with pytest.raises(UnknownObject, match="was dropped"):
            again.drop_object(first.id)
        with pytest.raises(UnknownObject, match="does not exist"):
            again.object(GlobalId("u99"))


def test_a_taken_name_refuses_all_objects_of_the_call(catalog: Catalog) -> None:
    catalog.create_object(new("x"))
    with pytest.raises(NameTaken) as error:
        catalog.create_objects([new("y"), new("x")])
    assert error.value.hint
    assert catalog.resolve_name("y") is None
    with pytest.raises(NameTaken):
        catalog.create_objects([new("z"), new("z")])
    assert len(catalog.objects()) == 1


def test_objects_created_together_refer_to_each_other(catalog: Catalog) -> None:
    table, arrangement, view = catalog.create_objects(
        [
            new("x"),
            new(None, "arrangement", {"x": Ref(0)}, owner=Ref(2)),
            new("v", "materialized view", {"x": Ref(0)}),
        ]
    )
    assert view.dependencies == {"x": table.id}
    assert arrangement.owner == view.id
    assert catalog.dependants(table.id) == (arrangement.id, view.id)
    assert set(catalog.holds(view.id)) == {table.id, arrangement.id}
    with pytest.raises(WrongDefinition):
        catalog.create_objects([new("p", "view", {"q": Ref(1)}), new("q")])


def test_a_plain_view_passes_its_inputs_on(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    view = catalog.create_object(new("v", "view", {"x": table.id}, has_collection=False))
    maintained = catalog.create_object(new("m", "materialized view", {"v": view.id}))
    assert catalog.holds(maintained.id) == (table.id,)
    with pytest.raises(UnknownObject):
        catalog.collection(view.id)


def test_constraint_r_holds_from_the_start(catalog: Catalog) -> None:
    table = catalog.create_object(new("x", since=10, upper=20))
    with pytest.raises(SinceBehindInput):
        catalog.create_object(new("m", "materialized view", {"x": table.id}, since=9, upper=9))
    catalog.create_object(new("m", "materialized view", {"x": table.id}, since=19, upper=19))


def test_dropping_is_refused_while_others_depend_on_it(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    view = catalog.create_object(new("v", "view", {"x": table.id}, has_collection=False))
    maintained = catalog.create_object(new("m", "materialized view", {"v": view.id}))
    with pytest.raises(StillNeeded) as error:
        catalog.drop_object(table.id)
    assert error.value.dependants == ("m", "v")
    assert not catalog.object(table.id).dropped
    assert set(catalog.drop_object(table.id, cascade=True)) == {table.id, view.id, maintained.id}
    assert catalog.objects() == ()
    row = catalog.collection(table.id)
    assert row.since.is_empty
    assert row.upper.is_empty


def test_objects_that_only_need_each_other_are_dropped_together(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    view = catalog.create_object(new("v", "view", {"x": table.id}, has_collection=False))
    reader = catalog.create_object(new("w", "view", {"v": view.id}, has_collection=False))
    other = catalog.create_object(new("o"))
    with pytest.raises(StillNeeded) as error:
        catalog.drop_objects([other.id, table.id, view.id])
    assert error.value.dependants == ("w",)
    assert [one.name for one in catalog.objects()] == ["x", "v", "w", "o"]
    assert set(catalog.drop_objects([table.id, reader.id, view.id])) == {table.id, view.id, reader.id}
    assert catalog.drop_objects([]) == ()
    assert [one.name for one in catalog.objects()] == ["o"]


def test_a_renamed_object_keeps_its_id_and_its_dependants(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    view = catalog.create_object(new("v", "view", {"x": table.id}, has_collection=False))
    catalog.rename_object(table.id, "y")
    renamed = catalog.object(table.id)
    assert (renamed.name, renamed.created_as) == ("y", "x")
    assert catalog.resolve_name("x") is None
    assert catalog.resolve_name("y") == renamed
    assert catalog.object(view.id).dependencies == {"x": table.id}
    for taken in ("y", "v"):
        with pytest.raises(NameTaken):
            catalog.rename_object(table.id, taken)
    catalog.create_object(new("x"))  # the name is free again
    catalog.drop_object(table.id, cascade=True)
    for gone in (table.id, GlobalId("u99")):
        with pytest.raises(UnknownObject):
            catalog.rename_object(gone, "z")


def test_indexes_and_arrangements_go_with_what_they_serve(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    index = catalog.create_object(new("x_idx", "index", {"x": table.id}))
    view, arrangement = catalog.create_objects(
        [new("m", "materialized view", {"x": table.id}), new(None, "arrangement", {"x": table.id}, owner=Ref(0))]
    )
    assert set(catalog.drop_object(view.id)) == {view.id, arrangement.id}
    assert set(catalog.drop_object(table.id)) == {table.id, index.id}


def test_an_index_with_arrangements_of_its_own_outlives_what_it_has_nothing_to_do_with(catalog: Catalog) -> None:
    table, other = catalog.create_object(new("x")), catalog.create_object(new("y"))
    view = catalog.create_object(new("v", "view", {"x": table.id}, has_collection=False))
    arrangement, index = catalog.create_objects(
        [
            new(None, "arrangement", {"x": table.id}, owner=Ref(1)),
            new("i", "index", {"v": view.id, "collection 1": Ref(0)}),
        ]
    )
    assert catalog.drop_object(other.id) == (other.id,)
    assert set(catalog.drop_object(index.id)) == {arrangement.id, index.id}
    again = catalog.create_objects(
        [
            new(None, "arrangement", {"x": table.id}, owner=Ref(1)),
            new("i", "index", {"v": view.id, "collection 1": Ref(0)}),
        ]
    )
    assert set(catalog.drop_object(view.id)) == {view.id, *(one.id for one in again)}


def test_a_dropped_index_lives_as_long_as_a_plan_uses_it(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    index = catalog.create_object(new("i", "index", {"x": table.id}))
    view = catalog.create_object(new("m", "materialized view", {"x": table.id, "x by a": index.id}))
    assert catalog.drop_object(index.id) == ()
    assert catalog.resolve_name("i") is None
    assert not catalog.object(index.id).dropped
    catalog.create_object(new("i", "index", {"x": table.id}))  # the name is free again
    assert set(catalog.drop_object(view.id)) == {view.id, index.id}


def test_a_swap_moves_names_and_keeps_what_is_still_used(catalog: Catalog) -> None:
    table = catalog.create_object(new("x"))
    old = catalog.create_object(new("v", "materialized view", {"x": table.id}))
    reader = catalog.create_object(new("r", "materialized view", {"v": old.id}))
    (fresh,) = catalog.swap([new("v", "materialized view", {"x": table.id})], [old.id])
    found = catalog.resolve_name("v")
    assert found is not None
    assert found.id == fresh.id != old.id
    assert catalog.object(reader.id).dependencies == {"v": old.id}  # bound to the id, not to the name
    kept = catalog.object(old.id)
    assert (kept.name, kept.created_as, kept.dropped) == (None, "v", False)
    assert set(catalog.drop_object(reader.id)) == {reader.id, old.id}
    (last,) = catalog.swap([new("v", "materialized view", {"x": table.id})], [fresh.id])
    assert catalog.was_dropped(fresh.id)
    assert [one.name for one in catalog.objects()] == ["x", "v"]
    assert last.id == "u5"


def test_what_is_wrong_is_refused_with_a_reason(catalog: Catalog) -> None:
    with pytest.raises(UnknownTimeline) as error:
        catalog.create_object(NewObject("x", "table", "", "nowhere", COLUMNS))
    assert error.value.detail == "Declared timelines: t."
    with pytest.raises(WrongDefinition):
        catalog.create_object(new("x", "spreadsheet"))
    with pytest.raises(WrongDefinition):
        catalog.create_object(NewObject("x", "table", "", "t", (COLUMNS[0], COLUMNS[0])))
    assert catalog.objects() == ()


@pytest.mark.parametrize("lattice", ["natural", "epoch_ms"])
def test_inputs_of_other_timelines_are_refused_though_they_count_alike(catalog: Catalog, lattice: str) -> None:
    catalog.declare_timeline("n", lattice=lattice)
    table = catalog.create_object(new("x"))
    with pytest.raises(WrongDefinition, match="never compare"):
        catalog.create_object(NewObject("v", "materialized view", "", "n", COLUMNS, dependencies={"x": table.id}))


def test_the_database_keeps_references_whole(catalog: Catalog, url: str) -> None:
    catalog.create_object(new("x"))
    with pytest.raises(IntegrityError), connected(url) as raw:
        raw.exec_driver_sql("DELETE FROM object")
