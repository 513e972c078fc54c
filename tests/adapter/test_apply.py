"""Applying a project's files to a catalog that may hold some of it, at frontiers that have moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster.adapter import BadProjectFile, Engine, Project, Session
from mz_dagster.adapter.applying import apply_project
from mz_dagster.storage.spark import SparkConfig
from tests.sparkless import refuse_spark


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(tmp_path, t="CREATE TABLE t (a integer, b text);")
    return Project.load(tmp_path)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text, encoding="utf-8")


def test_applying_twice_changes_nothing(project: Project, spark_config: SparkConfig) -> None:
    write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a FROM t; CREATE INDEX i ON m (a);")
    with Engine(project, spark=spark_config) as engine:
        assert engine.apply().created == ("t", "m", "i")
        assert not engine.apply().changed
    with Engine(project, spark=spark_config) as engine:
        assert engine.apply().kept == ("t", "m", "i")


def test_a_new_view_over_compacted_inputs_begins_where_they_are_readable(
    project: Project, spark_config: SparkConfig
) -> None:
    with Engine(project, spark=spark_config) as engine:
        engine.apply()
        session = Session(engine)
        session.execute("INSERT INTO t VALUES (1, 'x')")
        session.execute("INSERT INTO t VALUES (2, 'y')")
        engine.catalog.set_retention(engine.collection_of("t"), 0)
        list(engine.compact())
        since = engine.catalog.collection(engine.collection_of("t")).since.only
        assert since > 0
        write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t; CREATE VIEW v AS SELECT a FROM m;")
        assert engine.apply().created == ("m", "v")
        made = engine.catalog.collection(engine.collection_of("m"))
        assert made.since.only >= since
        assert sorted(session.execute("SELECT * FROM m").rows) == [(1, "x"), (2, "y")]


def test_a_changed_view_and_its_readers_are_replaced_and_hydrate_anew(
    project: Project, spark_config: SparkConfig
) -> None:
    write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a FROM t;")
    write(project.root, n="CREATE MATERIALIZED VIEW n AS SELECT a FROM m;")
    with Engine(project, spark=spark_config) as engine:
        engine.apply()
        session = Session(engine)
        session.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        assert sorted(session.execute("SELECT * FROM n").rows) == [(1,), (2,)]
        old = engine.collection_of("n")
        write(project.root, m="CREATE MATERIALIZED VIEW m AS SELECT a FROM t WHERE a > 1;")
        applied = engine.apply()
        assert (applied.replaced, applied.kept) == (("m", "n"), ("t",))
        assert engine.collection_of("n") != old
        assert engine.catalog.collection(old).since.is_empty
        assert session.execute("SELECT * FROM n").rows == ((2,),)
        session.execute("INSERT INTO t VALUES (3, 'z')")
        assert sorted(session.execute("SELECT * FROM n").rows) == [(2,), (3,)]


def test_what_the_files_no_longer_define_is_told_and_kept(project: Project, spark_config: SparkConfig) -> None:
    write(project.root, m="CREATE VIEW m AS SELECT a FROM t;")
    with Engine(project, spark=spark_config) as engine:
        engine.apply()
        (project.assets / "m.sql").unlink()
        assert engine.apply().orphaned == ("m",)
        assert Session(engine).execute("SELECT * FROM m").rows == ()


def test_a_table_is_never_replaced(project: Project, spark_config: SparkConfig) -> None:
    with Engine(project, spark=spark_config) as engine:
        engine.apply()
        write(project.root, t="CREATE TABLE t (a integer);")
        with pytest.raises(BadProjectFile, match='definition of table "t" changed') as caught:
            engine.apply()
        assert caught.value.hint is not None
        write(project.root, t="CREATE VIEW t AS SELECT 1 AS a;")
        with pytest.raises(BadProjectFile, match='"t" is a table in the catalog, and a view here'):
            engine.apply()


def test_a_view_becomes_a_materialized_one_and_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has anything but what its query gives."""
    tried = refuse_spark(monkeypatch)
    write(project.root, v="CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1;")
    write(project.root, n="CREATE MATERIALIZED VIEW n AS SELECT count(*) AS c FROM v; CREATE INDEX i ON n (c);")
    write(project.root, x="CREATE INDEX j ON v (b);")
    with Engine(project) as engine:
        assert set(engine.apply().created) == {"t", "v", "n", "i", "j"}
        session = Session(engine)
        session.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        session.execute("CREATE VIEW mine AS SELECT b FROM v")
        for number, kind in enumerate(("MATERIALIZED VIEW", "VIEW", "MATERIALIZED VIEW"), 1):
            write(project.root, v=f"CREATE {kind} v AS SELECT a, b FROM t WHERE a > 1;")
            applied = engine.apply()
            assert set(applied.replaced) == {"v", "n", "i", "j"}
            assert not applied.faults
            (change,) = (one for one in applied.changes if one.name == "v")
            assert change.reason == f"it was a {'view' if number % 2 else 'materialized view'} and is a {kind.lower()}"
            assert change.held_by == (("mine",) if number == 1 else ())  # it reads on what it was made of
            assert not engine.apply().changed
            session.execute("INSERT INTO t VALUES (3, 'z')")
            assert session.execute("SELECT c FROM n").rows == ((1 + number,),)
            assert session.execute("SELECT count(*) FROM v WHERE b = 'z'").rows == ((number,),)
            assert session.execute("SELECT count(*) FROM mine").rows == ((1 + number,),)
    assert not tried


def test_a_second_index_is_a_copy_in_its_own_order(project: Project, spark_config: SparkConfig) -> None:
    write(project.root, i="CREATE INDEX i ON t (a); CREATE INDEX j ON t (b);")
    with Engine(project, spark=spark_config) as engine:
        engine.apply()
        i, j = (engine.catalog.resolve_name(name) for name in "ij")
        assert i is not None
        assert j is not None
        assert (i.has_collection, j.has_collection) == (False, True)
        assert engine.definitions.sort_key(engine.catalog.collection(engine.collection_of("t"))) == ("a",)
        assert engine.definitions.sort_key(engine.catalog.collection(j.id)) == ("b",)


def test_a_type_is_not_replaced_under_a_table(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = refuse_spark(monkeypatch)
    rest = "CREATE TABLE p (m mood); CREATE MATERIALIZED VIEW v AS SELECT m FROM p WHERE m > 'sad';"
    write(project.root, mood="CREATE TYPE mood AS ENUM ('sad', 'ok');", rest=rest)
    with Engine(project) as engine:
        assert engine.apply().created == ("mood", "p", "v", "t")
        session = Session(engine)
        session.execute("INSERT INTO p VALUES ('sad'), ('ok')")
        assert not engine.apply().changed
        for changed in ("('sad', 'meh')", "('ok', 'sad')"):
            write(project.root, mood=f"CREATE TYPE mood AS ENUM {changed};")
            with pytest.raises(BadProjectFile, match='type "mood" cannot change') as refused:
                engine.apply()
            assert refused.value.detail == (
                "Its values are 'sad', 'ok', and their rows exist nowhere else: p. As it was stays what reads it: p, v."
            )
            assert refused.value.hint
            assert session.execute("SELECT enum_range(NULL::mood), m FROM v").rows == ((["sad", "ok"], "ok"),)
        (project.assets / "mood.sql").unlink()
        write(project.root, feeling="-- @renamed_from mood\nCREATE TYPE feeling AS ENUM ('sad', 'ok');")
        with pytest.raises(BadProjectFile, match="mood"):
            engine.apply()
        session.execute("INSERT INTO p VALUES ('ok'::mood)")
        assert session.execute("SELECT count(*) FROM v").rows == ((2,),)
    assert not tried


def test_a_type_that_only_views_read_is_replaced_with_them(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = refuse_spark(monkeypatch)
    write(project.root, m="CREATE TYPE mood AS ENUM ('x', 'y'); CREATE VIEW v AS SELECT b::mood AS m FROM t;")
    with Engine(project) as engine:
        engine.apply()
        session = Session(engine)
        session.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        write(project.root, m="CREATE TYPE mood AS ENUM ('y', 'x'); CREATE VIEW v AS SELECT b::mood AS m FROM t;")
        assert engine.apply().replaced == ("mood", "v")
        assert session.execute("SELECT m FROM v ORDER BY m").rows == (("y",), ("x",))
    assert not tried


def test_values_that_a_file_adds_are_added_to_the_type(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = refuse_spark(monkeypatch)
    rest = (
        "CREATE TABLE p (m mood, n text); CREATE MATERIALIZED VIEW v AS SELECT m FROM p WHERE m > 'sad';"
        "CREATE MATERIALIZED VIEW w AS SELECT n::mood AS m FROM p;"
    )
    write(project.root, mood="CREATE TYPE mood AS ENUM ('sad', 'ok');", rest=rest)
    with Engine(project) as engine:
        apply_project(engine)
        session = Session(engine)
        session.execute("INSERT INTO p VALUES ('sad', 'ok'), ('ok', 'meh')")
        kept = [engine.collection_of(name) for name in "pv"]
        write(project.root, mood="CREATE TYPE mood AS ENUM ('awful', 'sad', 'meh', 'ok', 'glad');")
        (altered,) = (one for one in apply_project(engine).changes if one.alterations)
        assert altered.name == "mood"
        assert [one.text for one in altered.alterations] == [
            "ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad'",
            "ALTER TYPE mood ADD VALUE 'meh' AFTER 'sad'",
            "ALTER TYPE mood ADD VALUE 'glad' AFTER 'ok'",
        ]
        session.execute("INSERT INTO p VALUES ('meh', 'glad'), ('awful', 'awful')")
        assert [engine.collection_of(name) for name in "pv"] == kept
        write(project.root, more="CREATE MATERIALIZED VIEW x AS SELECT w.m FROM v JOIN w ON v.m = w.m;")
        assert apply_project(engine).created == ("x",)
        assert not apply_project(engine).changed
        assert session.execute("SELECT m FROM v ORDER BY m").rows == (("meh",), ("ok",))
        assert session.execute("SELECT m FROM w ORDER BY m").rows == (("awful",), ("meh",), ("ok",), ("glad",))
        assert session.execute("SELECT m FROM x ORDER BY m DESC").rows == (("ok",), ("meh",))
    assert not tried
