"""A project's files may leave a source's columns to its table: they are decided when it is created, and stay."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from mz_dagster import cli, connect
from mz_dagster.adapter import (
    Engine,
    NotAllApplied,
    Project,
    ProjectObject,
    effective_objects,
    load_project,
    preview_changes,
    stated_columns,
)
from mz_dagster.adapter.connection import Connection
from mz_dagster.adapter.project_files import ProjectFiles
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.formalism import GlobalId
from tests.iceberg_tables import catalog_in

UNSTATED = "CREATE SOURCE orders FROM DELTA (URI 'lake/orders');"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").write_text("", encoding="utf-8")
    (tmp_path / "assets").mkdir()
    file(tmp_path, UNSTATED)
    (tmp_path / "assets" / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT * FROM orders;", encoding="utf-8")
    write_deltalake(tmp_path / "lake" / "orders", pa.table({"id": [1, 2], "city": ["London", "Paris"]}))
    return Project.load(tmp_path)


def file(root: Path, text: str) -> None:
    (root / "assets" / "orders.sql").write_text(text, encoding="utf-8")


def add_column(project: Project) -> None:
    rows = pa.table({"id": [3], "city": ["Rome"], "more": [True]})
    write_deltalake(project.root / "lake" / "orders", rows, mode="append", schema_mode="merge")


def columns(project: Project) -> list[tuple[str, ...]]:
    return [one.definition.relation_type.names for one in effective_objects(project)]


def applied(project: Project) -> None:
    with Engine(project) as engine:
        engine.apply()


def read(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_the_columns_are_the_tables_when_it_is_created_and_stay(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["--project", str(project.root), "plan"]) == 0
    assert 'it is new; its table\'s columns are ("id" bigint, "city" text)' in capsys.readouterr().out
    applied(project)
    versions = [one.version for one in effective_objects(project)]
    with connect(project.root) as connection:
        assert '("id" bigint, "city" text)' in str(read(connection, "SHOW CREATE SOURCE orders"))
        add_column(project)
        assert sorted(read(connection, "SELECT * FROM v")) == [(1, "London"), (2, "Paris"), (3, "Rome")]

    def unread(*_: object) -> str:
        raise AssertionError("the table was looked at")

    monkeypatch.setattr(stated_columns, "declared_columns", unread)
    assert columns(project) == [("id", "city")] * 2
    assert [one.version for one in effective_objects(project)] == versions
    assert not preview_changes(project)[0].changed
    file(project.root, "-- @renamed_from orders\nCREATE SOURCE bought FROM DELTA (URI 'lake/orders');")
    (project.assets / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT * FROM bought;", encoding="utf-8")
    plan, _ = preview_changes(project)
    assert {one.name: one.action.value for one in plan.changes} == {"bought": "rename", "v": "reword"}


def test_other_columns_are_stated_and_another_table_has_its_own(project: Project) -> None:
    applied(project)
    add_column(project)
    file(project.root, "CREATE SOURCE orders (id bigint, city text, more boolean) FROM DELTA (URI 'lake/orders');")
    assert preview_changes(project)[0].replaced == ("orders", "v")
    applied(project)
    file(project.root, UNSTATED)
    assert not preview_changes(project)[0].changed
    write_deltalake(project.root / "lake" / "other", pa.table({"x": [1]}))
    file(project.root, UNSTATED.replace("lake/orders", "lake/other"))
    assert preview_changes(project)[0].replaced == ("orders", "v")
    assert columns(project) == [("x",)] * 2


def test_a_key_alone_stays_beside_the_tables_columns(project: Project) -> None:
    keyed = "CREATE SOURCE orders (PRIMARY KEY ({})) FROM DELTA (URI 'lake/orders') ENVELOPE UPSERT;"
    file(project.root, keyed.format("id"))
    applied(project)
    add_column(project)
    assert columns(project) == [("id", "city")] * 2
    file(project.root, keyed.format("city"))
    assert columns(project) == [("id", "city", "more")] * 2
    file(project.root, "\n" + keyed.format("nothing"))
    (fault, waiting) = load_project(project).faults
    assert 'orders.sql:2: column "nothing"' in fault.error.message
    assert waiting.waits_for == "orders"


def test_a_table_that_is_not_there_is_the_sources_fault_alone(project: Project) -> None:
    (project.assets / "t.sql").write_text("CREATE TABLE t (a integer);", encoding="utf-8")
    lake = project.root / "lake" / "orders"
    away = project.root / "away"
    shutil.move(lake, away)
    (own, waiting) = load_project(project).faults
    assert 'is no Delta table (in "orders")' in own.error.message
    assert "once the table is there" in str(own.error.hint)
    assert waiting.waits_for == "orders"
    assert names(effective_objects(project)) == ["t"]
    with Engine(project) as engine, pytest.raises(NotAllApplied, match=r"orders\.sql:1: .*is no Delta table"):
        engine.apply()
    shutil.move(away, lake)
    assert names(effective_objects(project)) == ["orders", "t", "v"]
    applied(project)
    shutil.move(lake, away)
    assert load_project(project).faults == ()
    assert names(effective_objects(project)) == ["orders", "t", "v"]
    file(project.root, UNSTATED.replace("lake/orders", "lake/elsewhere"))
    found = {one.name: one for one in effective_objects(project)}
    assert found["orders"].definition.relation_type.names == ("id", "city")
    assert "is no Delta table" in str(found["orders"].fault)
    assert sorted(found) == ["orders", "t", "v"]


def names(objects: tuple[ProjectObject, ...]) -> list[str]:
    return sorted(one.name for one in objects)


def test_an_iceberg_table_behind_a_connection_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("", encoding="utf-8")
    (tmp_path / "assets").mkdir()
    file(
        tmp_path,
        "CREATE SOURCE orders FROM ICEBERG (TABLE 'db.t', CONNECTION lake);\n"
        "CREATE CONNECTION lake TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = 'sqlite:///lake/catalog.db');",
    )
    project = Project.load(tmp_path)
    with catalog_in(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", Schema(NestedField(1, "id", LongType())))
        table.append(pa.table({"id": [1]}))
        applied(project)
        with table.update_schema() as change:
            change.add_column("more", StringType())
    assert [one for one in columns(project) if one] == [("id",)]
    with connect(tmp_path) as connection:
        assert read(connection, "SELECT * FROM orders") == [(1,)]
    file(tmp_path, "CREATE SOURCE orders FROM ICEBERG (TABLE 'db.t', CONNECTION nowhere);")
    (fault,) = load_project(project).faults
    assert 'orders.sql:1: connection "nowhere" does not exist' in fault.error.message


@pytest.mark.parametrize("where", ["read", "planned", "renamed"])
def test_what_another_apply_has_decided_meanwhile_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "renamed":
        file(project.root, "-- @renamed_from bought\n" + UNSTATED)
    swapped = Catalog.swap
    before = [True]

    def other() -> None:
        """Another process applies the project, when its table has got a column."""
        if before:
            before.clear()
            add_column(project)
            with Engine(project) as engine:
                engine.apply()

    def loads(of: Project) -> ProjectFiles:
        found = load_project(of)
        if where != "planned":
            other()
        return found

    def swaps(catalog: Catalog, *given: Any, **named: Any) -> tuple[ObjectRow, ...]:
        other()
        return swapped(catalog, *given, **named)

    monkeypatch.setattr("mz_dagster.adapter.engine.load_project", loads)
    monkeypatch.setattr(Catalog, "swap", swaps)
    with Engine(project) as engine:
        plan = engine.apply()
        assert set(plan.kept) == {"orders", "v"}, "the other has decided"
        assert not engine.faults()
        assert [row.id for row in engine.catalog.objects() if row.name == "orders"] == [GlobalId("s1")]
    assert columns(project) == [("id", "city", "more")] * 2
    with connect(project.root) as connection:
        assert len(read(connection, "SELECT * FROM v")) == 3
