"""A source of files gets columns: what it has read has NULL there, what comes has what it says, and readers read on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.applying import apply_project
from mz_dagster.compute.step.advance import SourceAltered
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.doctor import examine
from mz_dagster.operations.rereading import reread
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.command_line import python
from tests.errors import says_what_to_do
from tests.opened import opened

Rows = Sequence[Mapping[str, Any]]


def csv(rows: Rows) -> bytes:
    names = list(rows[0])
    lines = [",".join("" if one[name] is None else str(one[name]) for name in names) for one in rows]
    return "\n".join([",".join(names), *lines, ""]).encode()


def lines(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in rows).encode()


def parquet(rows: Rows) -> bytes:
    target = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), target)
    return target.getvalue()


def orc_file(rows: Rows) -> bytes:
    target = BytesIO()
    orc.write_table(pa.Table.from_pylist(list(rows)), target)
    return target.getvalue()


def avro(rows: Rows) -> bytes:
    types = {int: "long", str: "string"}
    fields = [{"name": name, "type": ["null", types[type(value)]]} for name, value in rows[0].items()]
    target = BytesIO()
    fastavro.writer(target, fastavro.parse_schema({"type": "record", "name": "r", "fields": fields}), rows)
    return target.getvalue()


#: What writes files of each format, and how their names end.
FORMATS: Mapping[str, tuple[str, Callable[[Rows], bytes]]] = {
    "csv": ("csv", csv),
    "json": ("jsonl", lines),
    "parquet": ("parquet", parquet),
    "orc": ("orc", orc_file),
    "avro": ("avro", avro),
}
STATES = """CREATE SOURCE states (k integer, v text, PRIMARY KEY (k)) FROM FILES (FOLDER 'states')
FORMAT JSON ENVELOPE {}"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        yield connection


def land(root: Path, name: str, content: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall(), key=repr)


def updates(engine: Engine, name: str) -> list[str]:
    row = engine.catalog.collection(engine.collection_of(name))
    return sorted(map(repr, engine.shards.read(row, engine.catalog.live_batches([row.id])[row.id]).to_pylist()))


def check_formats(connection: Connection, root: Path, names: Sequence[str]) -> None:
    """Adds a column to sources while files that have it are read, are bound, and come."""

    def landed(name: str, number: int, found: Rows) -> None:
        suffix, made = FORMATS[name]
        land(root, f"{name}/{number}.{suffix}", made(found))

    for name in names:
        connection.execute(f"CREATE SOURCE {name} (a integer) FROM FILES (FOLDER '{name}') FORMAT {name.upper()}")
        connection.execute(f"CREATE MATERIALIZED VIEW sum_{name} AS SELECT sum(a) AS s, count(*) AS n FROM {name}")
        connection.execute(f"CREATE MATERIALIZED VIEW all_{name} AS SELECT * FROM {name}")
        landed(name, 1, [{"a": 1, "b": "read already"}, {"a": 2, "b": "read already"}])
    for name in names:
        assert rows(connection, f"SELECT * FROM sum_{name}") == [(3, 2)], name
        landed(name, 2, [{"a": 3, "b": "bound already"}])
    connection.engine.poll("default")
    for name in names:
        connection.execute(f"ALTER SOURCE {name} ADD COLUMN b text")
        landed(name, 3, [{"a": 4, "b": "to come"}])
        landed(name, 4, [{"a": 5}])
    for name in names:
        found = [(1, None), (2, None), (3, None), (4, "to come"), (5, None)]
        assert rows(connection, f"SELECT a, b FROM {name}") == found, name
        assert rows(connection, f"SELECT * FROM sum_{name}") == [(15, 5)], name
        assert rows(connection, f"SELECT * FROM all_{name}") == [(one,) for one, _ in found], name


def test_what_was_read_or_bound_has_null_and_what_comes_what_it_says(connection: Connection, tmp_path: Path) -> None:
    check_formats(connection, tmp_path, list(FORMATS))
    connection.execute("CREATE MATERIALIZED VIEW new AS SELECT b, count(*) AS n FROM csv GROUP BY b")
    assert rows(connection, "SELECT * FROM new") == [("to come", 1), (None, 4)]
    engine = connection.engine
    for name in FORMATS:  # of the same files the same updates, at their ticks
        before = updates(engine, name)
        reread(engine, name)
        assert updates(engine, name) == before, name
    connection.close()
    assert examine(tmp_path, deep=True).healthy


@pytest.mark.deep
def test_spark_reads_each_file_for_the_columns_that_there_were(
    tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget
) -> None:
    set_budget(ingested_bytes=0)
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        check_formats(connection, tmp_path, ["csv", "avro"])
        engines = connection.execute("SELECT engine FROM mz_internal.mz_step_collections").fetchall()
        assert any("files hold" in str(one) for one in engines)


def test_keys_take_their_rows_back_with_the_columns_that_they_had(connection: Connection, tmp_path: Path) -> None:
    connection.execute(STATES.format("UPSERT"))
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM states GROUP BY v")
    land(tmp_path, "states/1.jsonl", lines([{"key": {"k": k}, "value": {"v": "a", "w": 1}} for k in (1, 2, 3)]))
    assert rows(connection, "SELECT * FROM m") == [("a", 3)]
    connection.execute("ALTER SOURCE states ADD w integer, ADD COLUMN IF NOT EXISTS x text")
    changes: Rows = [{"key": {"k": 1}, "value": {"v": "a", "w": 2}}, {"key": {"k": 2}, "value": None}]
    land(tmp_path, "states/2.jsonl", lines(changes))
    assert rows(connection, "SELECT * FROM states") == [(1, "a", 2, None), (3, "a", None, None)]
    assert rows(connection, "SELECT * FROM m") == [("a", 2)]
    connection.execute("ALTER SOURCE states ADD IF NOT EXISTS w text, ADD y boolean")  # and again
    land(tmp_path, "states/3.jsonl", lines([{"key": {"k": 3}, "value": {"v": "b", "w": 3, "x": "c", "y": True}}]))
    assert rows(connection, "SELECT * FROM states") == [(1, "a", 2, None, None), (3, "b", 3, "c", True)]
    assert rows(connection, "SELECT * FROM m") == [("a", 1), ("b", 1)]
    before = updates(connection.engine, "states")
    reread(connection.engine, "states")
    assert updates(connection.engine, "states") == before


def test_what_debezium_wrote_gets_columns_too(connection: Connection, tmp_path: Path) -> None:
    def change(k: int, position: int, **after: object) -> Mapping[str, object]:
        return {
            "op": "c",
            "before": None,
            "after": {"k": k, **after},
            "source": {"connector": "postgresql", "lsn": position},
        }

    connection.execute(STATES.format("DEBEZIUM"))
    land(tmp_path, "states/1.jsonl", lines([change(1, 1, v="a", w=1), change(2, 2, v="a", w=1)]))
    assert rows(connection, "SELECT * FROM states") == [(1, "a"), (2, "a")]
    connection.execute("ALTER SOURCE states ADD w integer")
    land(tmp_path, "states/2.jsonl", lines([change(2, 2, v="stale", w=9), change(2, 3, v="b", w=2)]))
    assert rows(connection, "SELECT * FROM states") == [(1, "a", None), (2, "b", 2)]


def test_another_process_reads_what_it_has_become(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 's') FORMAT CSV")
    land(tmp_path, "s/1.csv", csv([{"a": 1, "b": 1}]))
    assert rows(connection, "SELECT * FROM s") == [(1,)]
    with opened(tmp_path) as other:
        assert rows(other, "SELECT * FROM s") == [(1,)]
        other.execute("ALTER SOURCE s ADD b integer")
    land(tmp_path, "s/2.csv", csv([{"a": 2, "b": 2}]))
    assert rows(connection, "SELECT * FROM s") == [(1, None), (2, 2)]
    columns = "SELECT column_name, ordinal_position FROM information_schema.columns WHERE table_name = 's'"
    assert rows(connection, columns) == [("a", 1), ("b", 2)]
    (shown,) = rows(connection, "SHOW CREATE SOURCE s")
    assert "(a integer, b integer)" in str(shown)


def test_a_step_that_knows_the_old_columns_does_not_read_what_has_the_new_ones(
    connection: Connection, tmp_path: Path
) -> None:
    connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 's') FORMAT CSV")
    land(tmp_path, "s/1.csv", csv([{"a": 1, "b": 1}]))
    engine = connection.engine
    stale = engine.graph("default")
    with opened(tmp_path) as other:
        other.execute("ALTER SOURCE s ADD b integer")
        tick = other.engine.poll("default").tick
    assert tick is not None
    (failure,) = engine.stepper.run(stale, tick).failures
    assert isinstance(failure.error, SourceAltered)
    says_what_to_do(failure.error, "was altered while it was about to be read")
    assert rows(connection, "SELECT * FROM s") == [(1, 1)]


def test_what_cannot_be_added_is_refused(connection: Connection, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "d"), pa.table({"a": pa.array([1], pa.int64())}))
    connection.execute("CREATE SOURCE d (a integer) FROM DELTA (URI 'd')")
    connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 's') FORMAT CSV")
    connection.execute("CREATE TABLE t (a integer)")
    for statement, sqlstate, said in (
        ("ALTER SOURCE s ADD a text", "42701", 'column "a" of relation "s" already exists'),
        ("ALTER SOURCE s ADD b text, ADD b text", "42701", 'column "b" of relation "s" already exists'),
        ("ALTER SOURCE s ADD b text NOT NULL", "42P16", "has to be one that may be NULL"),
        ("ALTER SOURCE s ADD b text PRIMARY KEY", "42P16", "has to be one that may be NULL"),
        ("ALTER SOURCE s ADD b text DEFAULT 'x'", "0A000", "DEFAULT in a definition"),
        ("ALTER SOURCE s ADD mz_error text", "42P16", "is reserved"),
        ("ALTER SOURCE s ADD b nothing", "42704", 'type "nothing" does not exist'),
        ("ALTER SOURCE s ADD b", "42601", "syntax error"),
        ("ALTER SOURCE d ADD b text", "42809", 'columns of source "d" cannot be added'),
        ("ALTER SOURCE t ADD b text", "42809", '"t" is not a source'),
        ("ALTER SOURCE nowhere ADD b text", "42P01", "does not exist"),
    ):
        with pytest.raises(Error) as refused:
            connection.execute(statement)
        assert (refused.value.sqlstate, said in str(refused.value)) == (sqlstate, True), str(refused.value)
    connection.execute("ALTER SOURCE IF EXISTS nowhere ADD b text")
    connection.execute("ALTER SOURCE s ADD IF NOT EXISTS a text")
    assert connection.engine.catalog.version_of(connection.engine.collection_of("s")) == 0
    connection.execute("BEGIN")
    with pytest.raises(Error, match="cannot run inside a transaction block"):
        connection.execute("ALTER SOURCE s ADD b text")
    connection.execute("ROLLBACK")
    connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    connection.execute("ALTER SOURCE s ADD b mood")
    land(tmp_path, "s/1.csv", csv([{"a": 1, "b": "bad"}]))
    assert rows(connection, "SELECT * FROM s WHERE b > 'good'") == [(1, "bad")]
    with pytest.raises(Error, match="other objects depend on it"):
        connection.execute("DROP TYPE mood")


FILES = {
    "s": "CREATE SOURCE s (k int, a int{}, PRIMARY KEY (k)) FROM FILES (FOLDER 's') FORMAT JSON ENVELOPE UPSERT;",
    "m": "CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM s;",
    "everything": "CREATE VIEW everything AS SELECT * FROM s;",
}


def write(root: Path, **files: str) -> None:
    (root / "assets").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text)


@pytest.mark.deep
def test_a_project_whose_files_were_read_and_are_gone_gets_its_column(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").touch()
    write(tmp_path, **{name: text.format("") for name, text in FILES.items()})
    land(tmp_path, "s/1.jsonl", lines([{"key": {"k": 1}, "value": {"a": 1, "b": 1}}]))
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        assert rows(connection, "SELECT * FROM m") == [(1,)]
        kept = connection.engine.catalog.id_of("m")
        (tmp_path / "s" / "1.jsonl").unlink()
        write(
            tmp_path, s=FILES["s"].format(", b integer"), n="CREATE MATERIALIZED VIEW n AS SELECT sum(b) AS s FROM s;"
        )
        plan = apply_project(connection.engine)
        (reason,) = (one.reason for one in plan.changes if one.name == "s")
        assert reason.startswith(
            "its definition changed: ALTER SOURCE s ADD COLUMN b integer. What it has read has NULL"
        )
        assert (plan.created, plan.replaced, plan.faults) == (("n",), ("everything",), ())
        land(tmp_path, "s/2.jsonl", lines([{"key": {"k": 2}, "value": {"a": 2, "b": 2}}]))
        assert rows(connection, "SELECT * FROM everything") == [(1, 1, None), (2, 2, 2)]
        assert rows(connection, "SELECT * FROM m") == [(3,)]
        assert rows(connection, "SELECT * FROM n") == [(2,)]
        assert connection.engine.catalog.id_of("m") == kept
        assert not apply_project(connection.engine).changed
    with opened(tmp_path) as connection:  # as a new process finds it
        assert not apply_project(connection.engine).changed
        write(tmp_path, s=FILES["s"].format(", b integer, c text"))
        assert apply_project(connection.engine).replaced == ("everything",)
        land(tmp_path, "s/3.jsonl", lines([{"key": {"k": 1}, "value": {"a": 3, "b": 3, "c": "x"}}]))
        assert rows(connection, "SELECT * FROM everything") == [(1, 3, 3, "x"), (2, 2, 2, None)]
        assert rows(connection, "SELECT * FROM m") == [(5,)]
        write(tmp_path, s=FILES["s"].format(", b integer, d text"))
        with pytest.raises(Error, match="1 file that it has read cannot be found") as refused:
            apply_project(connection.engine)
        assert "behind the others" in str(refused.value.hint)
        land(tmp_path, "s/1.jsonl", lines([{"key": {"k": 1}, "value": {"a": 1, "b": 1}}]))  # all are there: read anew
        assert "s" in apply_project(connection.engine).replaced
        assert rows(connection, "SELECT * FROM everything") == [(1, 3, 3, None), (2, 2, 2, None)]
    assert examine(tmp_path, deep=True).healthy


@pytest.mark.parametrize("kill", ["catalog.before_commit:1", "catalog.committed:1"])
def test_a_killed_process_has_added_it_or_not(tmp_path: Path, kill: str) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 's') FORMAT CSV")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM s")
        land(tmp_path, "s/1.csv", csv([{"a": 1, "b": 1}]))
        assert rows(connection, "SELECT * FROM m") == [(1,)]
    code = (
        "import os, sys, mz_dagster\n"
        "with mz_dagster.connect(sys.argv[1]) as c:\n"
        f"    os.environ[{VARIABLE!r}] = sys.argv[2]\n"
        "    c.execute('ALTER SOURCE s ADD b integer')\n"
    )
    assert python(code, tmp_path, str(tmp_path), kill).returncode == -signal.SIGKILL
    with opened(tmp_path) as connection:
        connection.execute("ALTER SOURCE s ADD IF NOT EXISTS b integer")
        land(tmp_path, "s/2.csv", csv([{"a": 2, "b": 2}]))
        assert rows(connection, "SELECT * FROM s") == [(1, None), (2, 2)]
        assert rows(connection, "SELECT * FROM m") == [(2,)]
    assert examine(tmp_path, deep=True).healthy
