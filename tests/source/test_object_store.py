"""Delta tables in an object store: sources and sinks are what they are in folders, and no secret gets out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mz_dagster.adapter import Connection
from mz_dagster.cli import main
from mz_dagster.errors import OperationalError
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedObject
from mz_dagster.storage.object_store import S3
from mz_dagster.storage.sink.sink import SinkTaken
from tests.adapter.test_delta_sinks import stands, step
from tests.errors import says_what_to_do
from tests.object_store import BUCKET, Store, opened_beside, running_store
from tests.source import test_delta, test_delta_upsert
from tests.source.test_delta import TIMELINE, held, last_tick, reference, rows, unpolled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def running() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, which the tests' own writers find in the environment."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    """A table of the test's own."""
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid))}/t"


@pytest.fixture
def connection(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    with opened_beside(store, tmp_path, monkeypatch) as connection:
        yield connection


def delta(uri: str) -> str:
    return f"DELTA (URI '{uri}', CONNECTION store)"


@pytest.mark.parametrize(("seed", "commits"), [(0, 7), *(pytest.param(n, 15, marks=pytest.mark.deep) for n in (0, 1))])
def test_whatever_is_committed_the_source_is_the_table(
    connection: Connection, table: str, seed: int, commits: int
) -> None:
    test_delta.follow(connection, table, seed, commits, delta(table))


@pytest.mark.parametrize("commits", [7, pytest.param(15, marks=pytest.mark.deep)])
def test_whatever_is_committed_keys_have_their_last_rows(connection: Connection, table: str, commits: int) -> None:
    equal, _ = test_delta_upsert.follow(connection, table, 1, commits, delta(table))
    assert equal


def test_columns_are_the_tables_and_what_changes_is_read(connection: Connection, table: str) -> None:
    write_deltalake(table, rows((1, "x", 0.5), (2, "a b/c", None)), partition_by=["p"])
    connection.execute(f"CREATE SOURCE t FROM {delta(table)}")
    assert held(connection) == reference(table)
    first = last_tick(connection)
    connection.engine.poll(TIMELINE)
    assert last_tick(connection) == first, "nothing is new"
    DeltaTable(table).delete("a = 1")
    assert held(connection) == {(2, "a b/c", None): 1}
    connection.execute("ALTER CONNECTION store RENAME TO other")
    (made,) = connection.execute("SHOW CREATE SOURCE t").fetchall()
    assert made[1].endswith(f"FROM DELTA (URI '{table}', CONNECTION other)")
    DeltaTable(table).update(updates={"p": "'y'"}, predicate="a = 2")
    test_delta.vacuum(table)
    says_what_to_do(unpolled(connection), "cannot be read any more", "ALTER SOURCE ... RESET")
    connection.execute("ALTER SOURCE t RESET")
    assert held(connection) == {(2, "y", None): 1}


@pytest.mark.parametrize("envelope", ["ENVELOPE UPSERT", pytest.param("APPEND CHANGES", marks=pytest.mark.deep)])
def test_a_sink_is_its_view(connection: Connection, table: str, envelope: str) -> None:
    connection.execute("CREATE TABLE t (a bigint, p text, x double precision)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    connection.execute(f"CREATE SINK s FROM v INTO {delta(table)} {envelope}")
    random = Random(3)
    for _ in range(5):
        values = ", ".join(f"({random.randrange(9)}, 'x', {random.random()})" for _ in range(3))
        connection.execute(f"INSERT INTO t VALUES {values}")
        connection.execute(f"DELETE FROM t WHERE a = {random.randrange(9)}")
        assert not step(connection).failures
        wanted = Counter(connection.execute(f"SELECT * FROM v AS OF {stands(connection) - 1}").fetchall())
        if envelope == "APPEND CHANGES":
            sums: Counter[tuple[object, ...]] = Counter()
            for row in DeltaTable(table).to_pyarrow_table().to_pylist():
                sums[row["a"], row["p"], row["x"]] += row["mz_diff"]
            assert +sums == wanted
        else:
            assert reference(table) == wanted
    found = examine(connection.engine.project.root, deep=True).findings
    assert not [one for one in found if CHECKS[one.check].severity is Severity.BREAK]
    other = table.removesuffix("/t")
    with pytest.raises(SinkTaken, match="something else"):
        connection.execute(f"CREATE SINK again FROM v INTO {delta(other)} {envelope}")
    with pytest.raises(SinkTaken, match='sink "s" writes'):
        connection.execute(f"CREATE SINK again FROM v INTO {delta(table)} {envelope}")
    connection.execute("ALTER SINK s RESET")
    assert not step(connection).failures
    assert DeltaTable(table).metadata().description.startswith("Written by a sink of mz_dagster")


# ---- what goes wrong


def test_what_cannot_be_reached_says_why(connection: Connection, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create = "CREATE SOURCE {} (a bigint) FROM DELTA (URI '{}'{})"
    with pytest.raises(InvalidTableDefinition, match="needs a CONNECTION"):
        connection.execute(create.format("t", table, ""))
    with pytest.raises(InvalidTableDefinition, match="is reached without a CONNECTION"):
        connection.execute(create.format("t", "lake/t", ", CONNECTION store"))
    for uri in (f"s3://{BUCKET}", f"s3://{BUCKET}/", f"s3://{BUCKET}/a b", f"s3://{BUCKET}/a%20b", "s3:///t"):
        with pytest.raises(InvalidTableDefinition, match="names no table"):
            connection.execute(create.format("t", uri, ", CONNECTION store"))
    with pytest.raises(UndefinedObject, match='connection "hidden" does not exist'):
        connection.execute(create.format("t", table, ", CONNECTION hidden"))
    connection.execute(create.format("t", table, ", CONNECTION store"))
    says_what_to_do(unpolled(connection), "is no Delta table", "once the table is there")
    write_deltalake(table, rows((1, "x", None)))
    assert held(connection) == {(1,): 1}
    write_deltalake(table, rows((2, "x", None)), mode="append")
    monkeypatch.delenv("STORE_SECRET")
    says_what_to_do(unpolled(connection), 'no variable "STORE_SECRET", which secret "hidden" names')
    monkeypatch.setenv("STORE_SECRET", "any")
    assert held(connection) == {(1,): 1, (2,): 1}
    connection.execute(create.format("u", table.replace(BUCKET, "nobucket"), ", CONNECTION store"))
    says_what_to_do(unpolled(connection), "cannot read Delta table", "NoSuchBucket", "the next poll goes on")


def test_a_store_that_is_away_is_the_sources_own_error(
    connection: Connection, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(table, rows((1, "x", None)))
    connection.execute(f"CREATE SOURCE t FROM {delta(table)}")
    connection.execute("CREATE TABLE other (a integer)")
    assert held(connection) == {(1, "x", None): 1}
    first = last_tick(connection)
    write_deltalake(table, rows((2, "x", None)), mode="append")
    polled = connection.engine.poll(TIMELINE)
    assert polled.tick is not None
    with monkeypatch.context() as away:
        away.setattr(S3, "settings", lambda *_: {"aws_endpoint": "http://127.0.0.1:9", "aws_allow_http": "true"})
        (failure,) = connection.engine.step(TIMELINE, polled.tick).failures
        assert failure.error is not None
        says_what_to_do(failure.error, "cannot read commit 1", "Connection refused")
        says_what_to_do(unpolled(connection), "cannot reach Delta table", "Connection refused", "the next poll goes on")
        assert held(connection, at=first) == {(1, "x", None): 1}
        connection.execute("INSERT INTO other VALUES (1)")
        assert held(connection, "other") == {(1,): 1}
    assert held(connection) == {(1, "x", None): 1, (2, "x", None): 1}


class Refusing(BaseHTTPRequestHandler):
    """A store to which nobody has rights."""

    def do_GET(self) -> None:
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *_: object) -> None: ...


@pytest.mark.deep
def test_a_table_without_rights_is_the_sources_and_the_sinks_own_error(
    connection: Connection, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(table, rows((1, "x", None)))
    connection.execute(f"CREATE SOURCE t FROM {delta(table)}")
    connection.execute("CREATE TABLE other (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM other")
    connection.execute(f"CREATE SINK s FROM v INTO {delta(f'{table}-out')} ENVELOPE UPSERT")
    assert held(connection) == {(1, "x", None): 1}
    write_deltalake(table, rows((2, "x", None)), mode="append")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    with monkeypatch.context() as without:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        settings = {"aws_endpoint": endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        without.setattr(S3, "settings", lambda *_: settings | keys)
        says_what_to_do(unpolled(connection), "cannot reach Delta table", "AccessDenied", "the next poll goes on")
        with pytest.raises(OperationalError, match="cannot read Delta table") as caught:
            connection.execute(f"CREATE SOURCE u FROM {delta(table)}")
        assert "AccessDenied" in str(caught.value.detail)
        connection.execute("INSERT INTO other VALUES (1)")
        assert held(connection, "v") == {(1,): 1}
        (failure,) = step(connection).failures
        assert failure.error is not None
        says_what_to_do(failure.error, "AccessDenied", "rights", "the next step tries again")
    server.shutdown()
    server.server_close()
    assert not step(connection).failures
    assert held(connection) == {(1, "x", None): 1, (2, "x", None): 1}
    assert DeltaTable(f"{table}-out").to_pyarrow_table().to_pylist() == [{"a": 1}]


# ---- secrets


def test_a_secret_is_nowhere(
    tmp_path: Path, running: Store, table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Looks for the secret in all that commands, a run of Dagster's and a backup write and say, also when they fail."""
    root, out = tmp_path / "project", f"{table}.out"
    options = dict(running.environment)
    monkeypatch.setenv("STORE_SECRET", running.secret)
    assert main(["init", str(root)]) == 0
    shutil.rmtree(root / "assets")
    (root / "assets").mkdir()
    files = [
        *running.statements,
        f"CREATE SOURCE t (a bigint) FROM {delta(table)}",
        f"CREATE SOURCE gone (a bigint) FROM {delta(table.replace(BUCKET, 'nobucket'))}",
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t",
        f"CREATE SINK s FROM v INTO {delta(out)} ENVELOPE UPSERT",
    ]
    (root / "assets" / "all.sql").write_text(";\n".join(files) + ";\n")
    write_deltalake(table, pa.table({"a": [1]}), storage_options=options)
    project = ["--project", str(root)]
    main([*project, "apply"])
    write_deltalake(table, pa.table({"a": [2]}), mode="append", storage_options=options)
    command = [sys.executable, "-m", "mz_dagster.cli", *project, "run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    arguments: set[bytes] = set()
    while process.poll() is None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                arguments.add(path.read_bytes())
        sleep(0.5)
    ran = process.communicate()[0]
    shown = "SHOW CREATE CONNECTION store; SHOW CREATE SECRET hidden; SELECT * FROM mz_objects"
    main([*project, "sql", "-c", shown])
    main([*project, "doctor", "--deep"])
    main([*project, "backup", str(tmp_path / "backup")])
    said = f"{ran}{''.join(capfd.readouterr())}"
    assert "NoSuchBucket" in said, said
    assert "CREATE SECRET hidden AS" in said
    assert DeltaTable(out, storage_options=options).to_pyarrow_table().to_pylist() == [{"n": 2}]
    assert running.secret not in said
    hidden = running.secret.encode()
    assert not [one for one in arguments if hidden in one]
    looked_at = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(looked_at) > 10
    assert not [path for path in looked_at if hidden in path.read_bytes()]
