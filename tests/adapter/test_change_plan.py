"""What a change of a project's files comes to and costs: told before it is done, and without Spark."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mz_dagster.adapter import (
    ChangePlan,
    Engine,
    Hydration,
    NotAllApplied,
    OrphanStillRead,
    Project,
    Session,
    preview_changes,
)
from mz_dagster.catalog import Catalog, CatalogTooOld

SOURCE = """CREATE SOURCE o (id integer NOT NULL, city text, amount integer, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing/o', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(tmp_path, t="CREATE TABLE t (a integer, b text);", m="CREATE MATERIALIZED VIEW m AS SELECT a FROM t;")
    return Project.load(tmp_path)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text, encoding="utf-8")


def apply(project: Project, *, drop: bool = False) -> ChangePlan:
    with Engine(project) as engine:
        return engine.apply(drop=drop)


def execute(project: Project, *statements: str) -> None:
    with Engine(project) as engine:
        for statement in statements:
            Session(engine).execute(statement)


def content(project: Project) -> list[str]:
    """Returns the whole catalog as SQL."""
    with closing(sqlite3.connect(project.state / "catalog.sqlite")) as connection, connection:
        return list(connection.iterdump())


def told(plan: ChangePlan) -> dict[str, tuple[str, str]]:
    return {one.name: (one.action.value, one.reason) for one in plan.changes}


def hydration(project: Project, name: str) -> Hydration:
    _, cost = preview_changes(project)
    return next(one for one in cost.hydrations if one.name == name)


# ---- the difference


def test_a_plan_for_a_project_that_was_never_applied_makes_nothing(project: Project) -> None:
    plan, cost = preview_changes(project)
    assert plan.created == ("t", "m")
    assert plan.changed
    assert [(one.name, one.waits_for) for one in cost.hydrations] == [("m", ("t",))]
    assert not project.state.exists()


def test_a_plan_changes_nothing_in_the_catalog(project: Project) -> None:
    apply(project)
    write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT b FROM t;", n="CREATE VIEW n AS SELECT b FROM m;")
    (project.root / "mz.toml").write_text("[timelines.feed]\nclock = 'clock'\n")  # opening an engine would declare it
    before = content(project)
    assert preview_changes(Project.load(project.root))[0].changed
    assert content(project) == before
    assert apply(project).changed
    assert content(project) != before


def test_apply_carries_out_the_plan_that_was_shown(project: Project) -> None:
    write(project.root, n="CREATE VIEW n AS SELECT a FROM m;", old="CREATE VIEW old AS SELECT b FROM t;")
    assert apply(project).created == ("t", "m", "n", "old")
    write(
        project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t;", p="CREATE VIEW p AS SELECT b FROM t;"
    )
    (project.assets / "old.sql").unlink()
    for drop in (False, True):
        shown, _ = preview_changes(project, drop=drop)
        assert (shown.created, shown.replaced, shown.kept) == (("p",), ("m", "n"), ("t",))
        assert (shown.dropped, shown.orphaned) == ((("old",), ()) if drop else ((), ("old",)))
    assert apply(project, drop=True) == shown
    done, cost = preview_changes(project, drop=True)
    assert not done.changed
    assert done.kept == ("t", "m", "n", "p")
    assert (cost.hydrations, cost.dropped) == ((), {})


def test_every_replacement_says_why(project: Project) -> None:
    write(project.root, n="CREATE MATERIALIZED VIEW n AS SELECT m.a FROM m JOIN t ON t.a = m.a;")
    write(project.root, i="CREATE INDEX i ON n (a);")
    apply(project)
    write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a FROM t WHERE a > 1;")
    plan, _ = preview_changes(project)
    assert told(plan) == {
        "t": ("keep", "it is as it was"),
        "m": ("replace", "its definition changed"),
        "n": ("replace", "it reads m"),
        "i": ("replace", "it reads n"),
    }


def test_another_default_timeline_is_told(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(tmp_path, o=SOURCE)
    apply(Project.load(tmp_path))
    (tmp_path / "mz.toml").write_text("[project]\ntimeline = 'feed'\n")
    plan, _ = preview_changes(Project.load(tmp_path))
    assert told(plan) == {"o": ("replace", "its timeline was default and is feed")}


def test_white_space_comments_and_case_are_no_change(project: Project) -> None:
    apply(project)
    write(project.root, m="-- A comment.\ncreate materialized VIEW m AS\n    SELECT A -- this one\n    FROM t;")
    assert not preview_changes(project)[0].changed
    write(project.root, m='CREATE MATERIALIZED VIEW m AS SELECT a AS "A" FROM t;')
    assert preview_changes(project)[0].replaced == ("m",)


def test_an_object_that_bears_the_id_of_another_is_not_taken_for_it(project: Project) -> None:
    """Names are the users': one may look like a GlobalId of the catalog."""
    write(project.root, m="CREATE VIEW u2 AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM u2;")
    apply(project)
    with Catalog.open(project.catalog_url) as catalog:
        assert catalog.resolve_name("u2") is not None
        assert {row.name: row.id for row in catalog.objects()}["u2"] == "u2"
    write(project.root, m="CREATE VIEW u2 AS SELECT a + 1 AS a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM u2;")
    assert preview_changes(project)[0].replaced == ("u2", "m")


# ---- what is dropped, and what is not


def test_what_the_files_once_defined_is_dropped_dependants_first(project: Project) -> None:
    write(project.root, n="CREATE VIEW n AS SELECT a FROM m; CREATE MATERIALIZED VIEW o AS SELECT a FROM n;")
    apply(project)
    (project.assets / "m.sql").unlink()
    (project.assets / "n.sql").unlink()
    assert apply(project).orphaned == ("o", "n", "m")
    assert apply(project, drop=True).dropped == ("o", "n", "m")
    with Catalog.open(project.catalog_url) as catalog:
        assert [row.name for row in catalog.objects()] == ["t"]


def test_what_sessions_made_is_never_dropped(project: Project) -> None:
    apply(project)
    execute(project, "CREATE TABLE mine (c integer)", "CREATE VIEW over AS SELECT a FROM m")
    plan, _ = preview_changes(project, drop=True)
    assert plan.outside == ("mine", "over")
    assert not plan.changed
    assert not apply(project, drop=True).changed


def test_what_a_session_reads_is_not_dropped_from_under_it(project: Project) -> None:
    apply(project)
    execute(project, "CREATE VIEW over AS SELECT a FROM m", "CREATE VIEW above AS SELECT a FROM over")
    (project.assets / "m.sql").unlink()
    before = content(project)
    for refused in (lambda: preview_changes(project, drop=True), lambda: apply(project, drop=True)):
        with pytest.raises(OrphanStillRead, match='"m" is not dropped') as caught:
            refused()
        assert "above, over" in str(caught.value.detail)
        assert "DROP MATERIALIZED VIEW m CASCADE" in str(caught.value.hint)
    assert content(project) == before
    assert preview_changes(project)[0].orphaned == ("m",)
    execute(project, "DROP VIEW above", "DROP VIEW over")
    assert apply(project, drop=True).dropped == ("m",)


def test_what_a_session_reads_stays_readable_for_it_when_it_is_replaced(project: Project) -> None:
    apply(project)
    execute(project, "CREATE VIEW over AS SELECT a FROM m")
    write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT b FROM t;")
    (change,) = (one for one in preview_changes(project)[0].changes if one.name == "m")
    assert change.held_by == ("over",)
    assert change.old is not None
    apply(project)
    with Catalog.open(project.catalog_url) as catalog:
        old = catalog.object(change.old.id)
        assert (old.name, old.dropped) == (None, False)


# ---- what it costs


def test_the_cost_is_what_the_catalog_knows_of_the_inputs_and_of_the_old(project: Project) -> None:
    write(project.root, g="CREATE MATERIALIZED VIEW g AS SELECT b, count(*) AS n, max(a) AS most FROM t GROUP BY b;")
    apply(project)
    execute(project, "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'y')")
    with Catalog.open(project.catalog_url) as catalog:
        table = catalog.resolve_name("t")
        assert table is not None
        _, stats = catalog.live_batch_counts()[table.id]
    write(project.root, g="CREATE MATERIALIZED VIEW g AS SELECT b, count(*) AS n, min(a) AS least FROM t GROUP BY b;")
    found = hydration(project, "g")
    assert found.states == ("Accumulate (keyed)", "Extremes (keyed)")
    assert (found.reads, found.waits_for) == (("t",), ())
    # Both states read the table, each once.
    assert (found.size.updates, found.size.bytes) == (6, 2 * stats.bytes)
    assert (found.freed.updates, found.freed.bytes) == (0, 0)  # the old one never hydrated

    write(project.root, m="CREATE MATERIALIZED VIEW n AS SELECT a FROM t;")
    (project.assets / "g.sql").unlink()
    (project.assets / "t.sql").unlink()
    write(project.root, m="CREATE VIEW m2 AS SELECT 1 AS a;")
    _, cost = preview_changes(project, drop=True)
    assert cost.dropped["t"].updates == 3
    assert set(cost.dropped) == {"t", "m", "g"}


def test_a_source_reads_its_files_and_a_changed_one_reads_them_again(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(tmp_path, o=SOURCE, g="CREATE MATERIALIZED VIEW g AS SELECT id FROM o;")
    project = Project.load(tmp_path)
    assert hydration(project, "o").reads == ("0 files in landing/o",)  # the folder is not there yet
    landing = tmp_path / "landing" / "o"
    landing.mkdir(parents=True)
    for name in ("1.jsonl", "2.jsonl", "3.tmp"):
        (landing / name).write_text('{"key": {"id": 1}, "value": null}\n')
    found = hydration(project, "o")
    assert found.reads == ("2 files in landing/o",)
    assert (found.size.updates, found.size.bytes) == (None, 2 * 34)
    with Engine(project) as engine:
        engine.apply()
        assert engine.poll("default").files == 2
    (landing / "1.jsonl").unlink()
    write(tmp_path, o=SOURCE.replace("city text", "street text"))
    plan, cost = preview_changes(project)
    assert (plan.replaced, cost.hydrations) == ((), ())
    fault, reader = plan.faults
    assert fault.error.message.endswith('/o.sql:1: source "o" is not replaced: 1 file that it has read cannot be found')
    assert str(fault.error.detail).startswith("It is to be made anew because its definition changed.")
    assert ("apply --drop" in str(fault.error.hint), reader.waits_for) == (True, "o")
    with Engine(project) as engine:
        with pytest.raises(NotAllApplied, match="1 file that it has read cannot be found"):
            engine.apply()
        id = engine.catalog.id_of("o")
        assert id is not None
        assert engine.catalog.bound_files(id).keys() == {"1.jsonl", "2.jsonl"}
    landing.rename(tmp_path / "elsewhere")
    (fault, _) = preview_changes(project)[0].faults
    assert "2 files that it has read cannot be found" in fault.error.message
    assert str(fault.error.detail).endswith(f'Folder "{landing}" does not exist.')
    (tmp_path / "elsewhere").rename(landing)
    _, cost = preview_changes(project, drop=True)
    assert [(one.reads, one.lost_files) for one in cost.hydrations if one.name == "o"] == [
        (("1 file in landing/o",), 1)
    ]
    (landing / "1.jsonl").write_text("")  # what it has is compared when it is bound, not here
    assert hydration(project, "o").lost_files == 0
    assert hydration(project, "g").waits_for == ("o",)
    (landing / "1.jsonl").unlink()
    with Engine(project) as engine:
        assert engine.apply(drop=True).replaced == ("o", "g")


# ---- what is refused


def test_a_bad_file_is_named_with_its_line(project: Project) -> None:
    write(project.root, m="CREATE MATERIALIZED VIEW m AS\nSELECT nothing FROM t;")
    (fault,) = preview_changes(project)[0].faults
    assert re.search(r"m\.sql:2:8: .*nothing", fault.error.message)


def test_what_reads_the_catalogs_own_relations_is_refused_with_its_line(project: Project) -> None:
    for kind in ("VIEW", "MATERIALIZED VIEW"):
        write(project.root, m=f"\nCREATE {kind} m AS SELECT name FROM mz_internal.mz_frontiers;")
        (fault,) = preview_changes(project)[0].faults
        assert re.search(r'm\.sql:2:1: "m" cannot be defined over', fault.error.message)
        assert fault.error.hint is not None


def test_a_unique_index_of_a_session_stays(project: Project) -> None:
    apply(project)
    execute(project, "CREATE UNIQUE INDEX i ON t (b)")
    assert told(apply(project)) == {"t": ("keep", "it is as it was"), "m": ("keep", "it is as it was")}
    write(project.root, t="CREATE TABLE t (a integer, b text DEFAULT 'x');")
    change = next(one for one in preview_changes(project)[0].changes if one.name == "t")
    assert [one.text for one in change.alterations] == ["ALTER TABLE t ALTER COLUMN b SET DEFAULT 'x'"]


def test_a_type_that_may_lose_values_is_refused(project: Project) -> None:
    write(project.root, w="CREATE TABLE w (a numeric(10, 4));")
    apply(project)
    write(project.root, w="CREATE TABLE w (a numeric(10, 1));")
    (fault,) = preview_changes(project)[0].faults
    assert 'the definition of table "w" changed' in fault.error.message


def test_a_changed_table_is_refused_before_anything_is_done(project: Project) -> None:
    apply(project)
    write(project.root, t="\nCREATE TABLE t (a integer);", m="CREATE VIEW v AS SELECT a FROM t;")
    fault, *behind = preview_changes(project)[0].faults
    assert re.search(r't\.sql:2: the definition of table "t" changed', fault.error.message)
    assert {one.waits_for for one in behind} == {"t"}


def test_a_catalog_of_an_older_version_is_not_migrated_by_looking(project: Project) -> None:
    apply(project)
    with closing(sqlite3.connect(project.state / "catalog.sqlite")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    before = content(project)
    with pytest.raises(CatalogTooOld) as caught:
        preview_changes(project)
    assert caught.value.hint is not None
    assert content(project) == before
