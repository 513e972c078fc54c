"""What a change of files leaves in place: an object under another name or in other words, a table with more columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster import cli
from mz_dagster.adapter import BadProjectFile, ChangePlan, Connection, NotAllApplied, apply_project, preview_changes
from mz_dagster.adapter.change_plan import Action
from tests.opened import opened

TABLE = "CREATE TABLE t (a int PRIMARY KEY, b text);"
VIEW = "CREATE MATERIALIZED VIEW {} AS SELECT b, count(*) AS n FROM t GROUP BY b;"


def write(root: Path, *statements: str) -> None:
    (root / "mz.toml").touch()
    (root / "assets").mkdir(exist_ok=True)
    (root / "assets" / "all.sql").write_text("\n".join(statements), encoding="utf-8")


def ids(connection: Connection) -> dict[str, str]:
    return {str(one.id): str(one.name) for one in connection.engine.catalog.objects() if one.name is not None}


def actions(plan: ChangePlan) -> dict[str, str]:
    return {one.name: one.action.value for one in plan.changes}


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall())


def test_a_renamed_object_keeps_its_id_and_so_does_what_reads_it(tmp_path: Path) -> None:
    write(tmp_path, TABLE, VIEW.format("old"), "CREATE VIEW v AS SELECT n FROM old;", "CREATE INDEX i ON old (b);")
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x')")
        assert rows(connection, "SELECT * FROM v") == [(2,)]
        before = ids(connection)
        write(
            tmp_path,
            TABLE,
            "-- @renamed_from old",
            VIEW.format("new"),
            "CREATE VIEW v AS SELECT n FROM new;",
            "CREATE INDEX i ON new (b);",
        )
        plan, cost = preview_changes(connection.engine.project)
        expected = {"t": "keep", "new": "rename", "v": "reword", "i": "reword"}
        assert (actions(plan), cost.hydrations, plan.orphans) == (expected, (), ())
        assert actions(apply_project(connection.engine)) == expected
        assert ids(connection) == {id: "new" if name == "old" else name for id, name in before.items()}
        assert rows(connection, "SELECT * FROM new") == [("x", 2)]
        assert rows(connection, "SHOW CREATE VIEW v") == [("v", "CREATE VIEW v AS SELECT n FROM new")]
        assert set(actions(apply_project(connection.engine)).values()) == {"keep"}
        write(tmp_path, TABLE, VIEW.format("new"), "CREATE VIEW v AS SELECT n FROM new;", "CREATE INDEX i ON new (b);")
        assert set(actions(apply_project(connection.engine)).values()) == {"keep"}
    with opened(tmp_path) as connection:
        connection.execute("INSERT INTO t VALUES (3, 'y')")
        assert rows(connection, "SELECT * FROM v") == [(1,), (2,)]
        assert not connection.engine.replan()


def test_a_table_and_a_source_are_renamed_with_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "one.jsonl").write_text('{"a": 1}\n')
    source = "CREATE SOURCE {} (a int) FROM FILES (FOLDER 'landing') FORMAT JSON;"
    write(tmp_path, TABLE, source.format("s"))
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        connection.engine.poll(connection.engine.project.timeline)
        before = set(ids(connection))
        renamed = TABLE.replace(" t ", " t2 ")
        write(tmp_path, "-- @renamed_from t", renamed, "-- @renamed_from s", source.format("s2"))
        assert actions(apply_project(connection.engine)) == {"t2": "rename", "s2": "rename"}
        assert set(ids(connection)) == before
        assert rows(connection, "SELECT * FROM t2") == [(1, "x")]


def test_a_new_object_that_differs_in_its_name_alone_is_offered_to_be_a_rename(tmp_path: Path) -> None:
    write(tmp_path, TABLE, VIEW.format("old"))
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        write(tmp_path, TABLE, VIEW.format("new"))
        plan, _ = preview_changes(connection.engine.project)
        (change,) = (one for one in plan.changes if one.action is Action.CREATE)
        assert 'but for its name it is "old": write "-- @renamed_from old" above it' in change.reason
        write(tmp_path, TABLE, "-- @renamed_from old", VIEW.format("new").replace("count(*)", "count(a)"))
        plan = apply_project(connection.engine)
        assert actions(plan)["new"] in ("replace", "rename")
        assert set(ids(connection).values()) == {"t", "new"}


def test_a_text_that_computes_the_same_in_other_words_hydrates_nothing(tmp_path: Path) -> None:
    write(tmp_path, TABLE, VIEW.format("m"))
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        before = ids(connection)
        write(tmp_path, TABLE, "CREATE MATERIALIZED VIEW m AS SELECT q.b, count(*) AS n FROM t AS q GROUP BY (q.b);")
        assert actions(apply_project(connection.engine)) == {"t": "keep", "m": "reword"}
        assert ids(connection) == before
        write(tmp_path, TABLE, "CREATE MATERIALIZED VIEW m AS SELECT q.b, sum(a) AS n FROM t AS q GROUP BY q.b;")
        assert actions(apply_project(connection.engine)) == {"t": "keep", "m": "replace"}


def test_a_table_file_with_more_columns_alters_the_table_under_its_views(tmp_path: Path) -> None:
    star, count = "CREATE VIEW star AS SELECT * FROM t;", VIEW.format("m")
    write(tmp_path, TABLE, star, count, "CREATE INDEX i ON t (a);")
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        assert rows(connection, "SELECT * FROM m") == [("x", 1)]
        before = ids(connection)
        more = "CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'z', c int NOT NULL DEFAULT 3 CHECK (c > 0));"
        by_c = "CREATE MATERIALIZED VIEW by_c AS SELECT c, count(*) AS n FROM t GROUP BY c;"
        write(tmp_path, more, star, count, "CREATE INDEX i ON t (a);", by_c)
        expected = {"t": "alter", "star": "replace", "m": "keep", "i": "keep", "by_c": "create"}
        plan, cost = preview_changes(connection.engine.project)
        assert (actions(plan), [one.name for one in cost.hydrations]) == (expected, ["by_c"])
        assert actions(apply_project(connection.engine)) == expected
        assert {id for id, name in ids(connection).items() if name in ("t", "m", "i")} <= before.keys()
        connection.execute("INSERT INTO t (a) VALUES (2)")
        assert rows(connection, "SELECT * FROM star") == [(1, "x", 3), (2, "z", 3)]
        assert rows(connection, "SELECT * FROM m") == [("x", 1), ("z", 1)]
        assert rows(connection, "SELECT * FROM by_c") == [(3, 2)]
        assert set(actions(apply_project(connection.engine)).values()) == {"keep"}
    with opened(tmp_path) as connection:
        assert not connection.engine.replan()
        write(tmp_path, "CREATE TABLE t (a int PRIMARY KEY, c int);", count)
        with pytest.raises(NotAllApplied, match=r'the definition of table "t" changed|column "b" does not exist'):
            apply_project(connection.engine)
        write(tmp_path, more.replace("CHECK (c > 0)", "CHECK (c > 3)"), star, count, by_c)
        with pytest.raises(BadProjectFile, match=r"all.sql:1: new row for relation .* violates check constraint"):
            apply_project(connection.engine)


def test_a_table_is_renamed_after_and_while_it_is_altered_and_keeps_its_rows(tmp_path: Path) -> None:
    more = "CREATE TABLE {} (a int PRIMARY KEY, b text, c int);"
    count = "CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM {} GROUP BY b;"
    write(tmp_path, TABLE, count.format("t"))
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        assert rows(connection, "SELECT * FROM m") == [("x", 1)]
        before = ids(connection)
        write(tmp_path, "-- @renamed_from t", more.format("u"), count.format("u"))
        assert actions(apply_project(connection.engine)) == {"u": "alter", "m": "reword"}
        assert rows(connection, "SELECT * FROM u") == [(1, "x", None)]
        write(tmp_path, "-- @renamed_from u", more.format("w"), count.format("w"))
        assert actions(apply_project(connection.engine)) == {"w": "alter", "m": "reword"}
        connection.execute("INSERT INTO w VALUES (2, 'x', 3)")
        assert rows(connection, "SELECT * FROM w") == [(1, "x", None), (2, "x", 3)]
        assert rows(connection, "SELECT * FROM m") == [("x", 2)]
        assert ids(connection).keys() == before.keys()
        plan = apply_project(connection.engine)
        assert (set(actions(plan).values()), plan.replanned) == ({"keep"}, ()), "it comes to an end"
        write(tmp_path, "-- @renamed_from w", "CREATE TABLE v (a int PRIMARY KEY, c int);", count.format("v"))
        with pytest.raises(NotAllApplied, match=r'the definition of table "v" changed|column "b" does not exist'):
            apply_project(connection.engine)
        assert rows(connection, "SELECT * FROM w") == [(1, "x", None), (2, "x", 3)]


def test_a_plan_says_first_what_was_renamed_or_is_gone_and_shows_queries_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        TABLE,
        VIEW.format("m"),
        "CREATE TABLE u (a int);",
        "CREATE VIEW v AS\nSELECT a\nFROM u;",
        VIEW.format("w"),
    )
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
    write(tmp_path, TABLE, "CREATE VIEW v AS\nSELECT a\nFROM u;", "-- @renamed_from m", VIEW.format("k"),
          "CREATE MATERIALIZED VIEW w AS SELECT b, sum(a) AS n FROM t GROUP BY b;")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan"]) == 1
    printed = capsys.readouterr().out
    lines = [line.split()[:4] for line in printed.splitlines()[2:5]]
    assert lines[0][0] == "rename"
    assert [one[0] for one in lines[1:]] == ["leave", "rehydrate"]
    assert "no file defines it any more, and v cannot do without" in printed
    assert (
        VIEW.format("w")[:-1] + "  | CREATE MATERIALIZED VIEW w AS SELECT b, sum(a) AS n FROM t GROUP BY b" in printed
    )
