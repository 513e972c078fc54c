"""A source goes on without the records that it could not read: its errors are dropped, at a tick of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import mz_dagster
from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.doctor import examine
from mz_dagster.operations.rereading import reread
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.command_line import python
from tests.opened import opened

LINES = "CREATE SOURCE lines (a integer, b text) FROM FILES (FOLDER 'lines') FORMAT CSV"
STATES = """CREATE SOURCE states (k integer, v text, PRIMARY KEY (k)) FROM FILES (FOLDER 'states')
FORMAT JSON ENVELOPE UPSERT"""
VIEWS = {
    "sums": ("SELECT b, count(*) AS n, max(a) AS m FROM lines GROUP BY b", [("x", 2, 3)]),
    "largest": ("SELECT a FROM lines ORDER BY a DESC LIMIT 1", [(3,)]),
    "distinct_b": ("SELECT DISTINCT b FROM lines", [("x",)]),
    "joined": ("SELECT l.a, r.b FROM lines AS l JOIN lines AS r USING (a)", [(1, "x"), (3, "x")]),
    "ranked": ("SELECT a, row_number() OVER (ORDER BY a) AS r FROM lines", [(1, 1), (3, 2)]),
    "outer_rows": ("SELECT l.a FROM lines AS l LEFT JOIN states AS s ON s.k = l.a", [(1,), (3,)]),
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    for folder in ("lines", "states"):
        (tmp_path / folder).mkdir()
    with opened(tmp_path) as connection:
        connection.execute(LINES)
        connection.execute(STATES)
        yield connection


def land(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall())


def told(connection: Connection, statement: str) -> str:
    connection.execute(statement)
    return str(connection.messages[-1][1])


def updates(engine: Engine, name: str) -> list[str]:
    row = engine.catalog.collection(engine.collection_of(name))
    return sorted(map(repr, engine.shards.read(row, engine.catalog.live_batches([row.id])[row.id]).to_pylist()))


def test_views_of_every_kind_recover_and_keep_what_was_read(connection: Connection, tmp_path: Path) -> None:
    for name, (query, _) in VIEWS.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    land(tmp_path, "lines/1.csv", 'a,b\n1,x\nmany,y\n3,x\n4,"\n')
    for name in VIEWS:
        with pytest.raises(Error, match=r'invalid input syntax for type integer: "many"'):
            rows(connection, f"SELECT * FROM {name}")
    before = rows(connection, "SELECT name, message FROM mz_internal.mz_errors WHERE name = 'lines'")
    assert told(connection, "ALTER SOURCE lines DROP ERRORS") == (
        'NOTICE:  dropped 2 errors of source "lines"\n'
        'DETAIL:  invalid input syntax for type integer: "many" (file "1.csv", line 3, column "a"). '
        'unterminated CSV quoted field (file "1.csv", line 5).'
    )
    for name, (_, expected) in VIEWS.items():
        assert rows(connection, f"SELECT * FROM {name}") == expected, name
    assert len(before) == 2
    assert rows(connection, "SELECT * FROM mz_internal.mz_errors") == []
    assert "dropped 0 errors" in told(connection, "ALTER SOURCE lines DROP ERRORS")
    # What comes later is looked at as ever, and healed likewise.
    land(tmp_path, "lines/2.csv", "a,b\n5,x\nx,x\n")
    with pytest.raises(Error, match='line 3, column "a"') as failed:
        rows(connection, "SELECT * FROM sums")
    assert "ALTER SOURCE ... DROP ERRORS" in str(failed.value.hint)
    connection.execute("ALTER SOURCE lines DROP ERRORS")
    assert rows(connection, "SELECT * FROM sums") == [("x", 3, 5)]
    assert rows(connection, "SELECT * FROM largest") == [(5,)]
    assert rows(connection, "SELECT bindings_read FROM mz_internal.mz_source_statistics WHERE name = 'lines'") == [(4,)]


def test_a_key_of_which_the_last_record_was_dropped_is_told_again(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM states GROUP BY v")
    good = '{"key": {"k": 1}, "value": {"v": "a"}}\n{"key": {"k": 2}, "value": {"v": "a"}}\n'
    land(tmp_path, "states/1.jsonl", good)
    assert rows(connection, "SELECT * FROM m") == [("a", 2)]
    land(tmp_path, "states/2.jsonl", 'nonsense\n{"key": {"k": 2}, "value": 7}\n')
    with pytest.raises(Error, match="invalid input syntax"):
        rows(connection, "SELECT * FROM m")
    connection.execute("ALTER SOURCE states DROP ERRORS")
    assert rows(connection, "SELECT * FROM states") == [(1, "a")]
    assert rows(connection, "SELECT * FROM m") == [("a", 1)]
    # The next record of the key, and what withdraws an error that is gone, find nothing to take back.
    land(tmp_path, "states/3.jsonl", '{"key": {"k": 2}, "value": {"v": "b"}}\n{"key": null, "value": null}\n')
    assert rows(connection, "SELECT * FROM m") == [("a", 1), ("b", 1)]


def test_a_source_that_is_read_again_has_the_same_history(connection: Connection, tmp_path: Path) -> None:
    for number, name in enumerate(("lines", "states", "lines")):
        land(tmp_path, f"lines/{number}.csv", f"a,b\n{number},x\nbad,x\n")
        land(tmp_path, f"states/{number}.jsonl", f'bad\n{{"key": {{"k": {number}}}, "value": {{"v": 7}}}}\nworse\n')
        with pytest.raises(Error, match="invalid input syntax"):
            rows(connection, f"SELECT * FROM {name}")
        connection.execute(f"ALTER SOURCE {name} DROP ERRORS")
    connection.execute("ALTER SOURCE states DROP ERRORS")
    assert rows(connection, "SELECT a FROM lines") == [(0,), (1,), (2,)]
    assert rows(connection, "SELECT k FROM states") == [(0,), (1,), (2,)]
    connection.close()
    with Engine(Project.load(tmp_path)) as engine:
        for name in ("lines", "states"):
            before = updates(engine, name)
            assert sum("'mz_diff': -1" in one for one in before) == 3, "\n".join(before)
            reread(engine, name)
            assert updates(engine, name) == before
    assert examine(tmp_path, deep=True).healthy


@pytest.mark.deep
def test_spark_reads_files_of_an_interval_in_which_errors_are_dropped(
    tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget
) -> None:
    (tmp_path / "states").mkdir()
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute(STATES)
        key = '{"key": {"k": 1}, "value": '
        land(tmp_path, "states/1.jsonl", f'bad\n{key}{{"v": "a"}}}}\n')
        with pytest.raises(Error, match="invalid input syntax"):
            rows(connection, "SELECT * FROM states")
        connection.execute("ALTER SOURCE states DROP ERRORS")
        set_budget(ingested_bytes=0)
        land(tmp_path, "states/2.jsonl", f'{key}{{"v": "b"}}}}\n')
        assert rows(connection, "SELECT * FROM states") == [(1, "b")]
        engines = connection.execute("SELECT engine FROM mz_internal.mz_step_collections").fetchall()
        assert any("files hold" in str(one) for one in engines)


def test_what_has_no_errors_of_its_own_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (errors integer, a integer)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM lines")
    for statement, sqlstate in (
        ("ALTER MATERIALIZED VIEW m DROP ERRORS", "42809"),
        ("ALTER SINK m DROP ERRORS", "42809"),
        ("ALTER SOURCE m DROP ERRORS", "42809"),
        ("ALTER SOURCE t DROP ERRORS", "42809"),
        ("ALTER SOURCE nowhere DROP ERRORS", "42P01"),
    ):
        with pytest.raises(Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate == sqlstate, statement
    connection.execute("ALTER SOURCE IF EXISTS nowhere DROP ERRORS")
    connection.execute("ALTER TABLE t DROP errors")  # a column of that name
    assert [one[0] for one in connection.execute("SELECT * FROM t").description or ()] == ["a"]


def test_a_source_of_a_table_takes_its_errors_back_by_itself(connection: Connection, tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), pa.table({"a": pa.array([1], pa.int64())}))
    connection.execute("CREATE SOURCE d (a integer) FROM DELTA (URI 't')")
    with pytest.raises(Error, match='errors of source "d" cannot be dropped') as refused:
        connection.execute("ALTER SOURCE d DROP ERRORS")
    assert refused.value.sqlstate == "42809"


#: Where a process is killed that drops errors and reads; the first passages are those of the statement itself.
KILLS = (
    "tick.before_mint",
    "tick.minted",
    "catalog.before_commit:1",
    "catalog.committed:1",
    "catalog.before_commit:3",
    "catalog.committed:3",
    "append.before_reserve",
    "append.inlined",
    "seal.in_transaction",
    "seal.sealed",
)


@pytest.mark.parametrize(
    "kill", [pytest.param(one, marks=pytest.mark.deep if number % 3 else ()) for number, one in enumerate(KILLS)]
)
def test_a_killed_process_has_dropped_them_or_not(tmp_path: Path, kill: str) -> None:
    for folder in ("lines", "states"):
        (tmp_path / folder).mkdir()
    with opened(tmp_path) as connection:
        connection.execute(LINES)
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM lines GROUP BY b")
        land(tmp_path, "lines/1.csv", "a,b\n1,x\nbad,x\n2,x\n")
        with pytest.raises(Error, match="invalid input syntax"):
            rows(connection, "SELECT * FROM m")
    code = (
        "import os, sys, mz_dagster\n"
        "with mz_dagster.connect(sys.argv[1]) as c:\n"
        f"    os.environ[{VARIABLE!r}] = sys.argv[2]\n"
        "    c.execute('ALTER SOURCE lines DROP ERRORS')\n"
        "    c.execute('SELECT * FROM m').fetchall()\n"
    )
    assert python(code, tmp_path, str(tmp_path), kill).returncode == -signal.SIGKILL
    with mz_dagster.connect(tmp_path) as connection:
        counted = int(told(connection, "ALTER SOURCE lines DROP ERRORS").split()[2])
        assert counted == (1 if kill in ("tick.before_mint", "catalog.before_commit:1") else 0) or ":" in kill
        assert rows(connection, "SELECT * FROM m") == [("x", 2)]
        assert rows(connection, "SELECT * FROM lines") == [(1, "x"), (2, "x")]
    assert examine(tmp_path, deep=True).healthy
