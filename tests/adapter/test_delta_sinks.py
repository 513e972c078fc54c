"""Delta sinks: the table is what the view was at the tick that it stands at, exactly once, whoever reads it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mz_dagster import NotSupportedError
from mz_dagster.adapter import Connection
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.catalog import TickMinted
from mz_dagster.compute import Outcome, SinkNode, Stepper, StepReport
from mz_dagster.compute.step.advance import Advance
from mz_dagster.compute.step.sinks import Sinks
from mz_dagster.errors import Error, OperationalError
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedColumn, UndefinedTable, WrongObjectKind
from mz_dagster.storage.sink.sink import SinkChanged, SinkTaken, SinkUnwritable
from tests.errors import says_what_to_do
from tests.forks import forks
from tests.opened import opened

TIMELINE = "default"
Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A table `t`, a view `v` of it, and one of its sums."""
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer, b text, x double precision)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT b, sum(a)::integer AS a FROM t GROUP BY b")
        yield connection


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "out" / "v"


def step(connection: Connection) -> StepReport:
    engine = connection.engine
    engine.poll(TIMELINE)
    # Where nothing was ever written a poll mints none.
    return engine.step(TIMELINE, engine.catalog.last_tick(TIMELINE) or minted(connection))


def minted(connection: Connection) -> int:
    """Mints a tick, as a poll does that finds files."""
    catalog = connection.engine.catalog
    tick = catalog.write_ts(TIMELINE, connection.engine.now(TIMELINE))
    assert isinstance(catalog.mint_tick(TIMELINE, tick, {}, catalog.last_tick(TIMELINE)), TickMinted)
    return tick


def stands(connection: Connection, name: str = "s") -> int:
    return connection.engine.catalog.collection(connection.engine.collection_of(name)).upper.only


def told(connection: Connection) -> list[tuple[str, str]]:
    """Returns what the doctor finds that is broken."""
    found = examine(connection.engine.project.root, deep=True).findings
    return [(one.check, one.what) for one in found if CHECKS[one.check].severity is Severity.BREAK]


def rows(connection: Connection, name: str, at: int) -> Rows:
    return Counter(connection.execute(f"SELECT * FROM {name} AS OF {at}").fetchall())


def written(table: Path, version: int | None = None) -> Rows:
    found = DeltaTable(table, version=version).to_pyarrow_table()
    return Counter(zip(*(one.to_pylist() for one in found.columns), strict=True))


def check(connection: Connection, table: Path, view: str = "v") -> None:
    """Compares what is written with the view at the tick that the sink stands at."""
    assert Counter(map(repr, written(table).elements())) == Counter(
        map(repr, rows(connection, view, stands(connection) - 1).elements())
    )


def test_the_rows_of_a_view_are_a_table_for_any_reader(connection: Connection, table: Path) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', 0.5), (1, 'x', 0.5), (2, NULL, NULL)")
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    check(connection, table)
    connection.execute("DELETE FROM t WHERE a = 2")
    connection.execute("INSERT INTO t VALUES (3, 'y', 'NaN')")
    report = step(connection)
    assert {one.name: one.outcome for one in report.collections}["s"] is Outcome.ADVANCED
    check(connection, table)
    commit = DeltaTable(table).history(1)[0]
    assert commit["mz_tick"] == str(stands(connection) - 1)
    assert sorted(pl.read_delta(str(table)).drop("x").rows()) == [(1, "x"), (1, "x"), (3, "y")]
    files = [str(table / one) for one in pa.table(DeltaTable(table).get_add_actions()).column("path").to_pylist()]
    assert duckdb.sql(f"SELECT a, b FROM read_parquet({files}) ORDER BY a").fetchall() == [(1, "x"), (1, "x"), (3, "y")]
    assert connection.execute("SHOW SINKS").fetchall() == [("s", "sink")]
    (made,) = connection.execute("SHOW CREATE SINK s").fetchall()
    assert made[1].startswith("CREATE SINK s FROM v INTO DELTA")
    frontiers = connection.execute("SELECT write_frontier FROM mz_internal.mz_frontiers WHERE name = 's'").fetchall()
    assert frontiers == [(stands(connection),)]
    for wrong in ("SELECT * FROM s", "CREATE VIEW w AS SELECT * FROM s"):
        with pytest.raises(WrongObjectKind, match="is a sink"):
            connection.execute(wrong)
    with pytest.raises(Error, match=r"still needed|depend"):
        connection.execute("DROP MATERIALIZED VIEW v")
    connection.execute("ALTER SINK s RENAME TO sunk")
    connection.execute("DROP SINK sunk")
    assert connection.execute("SHOW SINKS").fetchall() == []
    assert written(table), "what was written stays"


def test_each_tick_is_one_commit_and_one_without_changes_none(connection: Connection, table: Path) -> None:
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    first = DeltaTable(table).version()
    contents: dict[int, Rows] = {}
    for number in range(3):
        connection.execute(f"INSERT INTO t VALUES ({number}, 'x', NULL)")
        contents[first + 1 + number] = rows(connection, "v", minted(connection))
    step(connection)  # one step over three ticks
    assert DeltaTable(table).version() == first + 3
    for version, wanted in contents.items():
        assert written(table, version) == wanted
    connection.execute("CREATE TABLE other (a integer)")
    connection.execute("INSERT INTO other VALUES (1)")
    step(connection)
    assert DeltaTable(table).version() == first + 3
    assert stands(connection) == connection.engine.catalog.last_tick(TIMELINE) + 1  # type: ignore[operator]


def test_changes_are_appended_with_their_times(connection: Connection, table: Path) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    connection.execute("CREATE SINK s FROM sums INTO DELTA (URI 'out/v') APPEND CHANGES")
    for statement in ("INSERT INTO t VALUES (2, 'x', NULL)", "DELETE FROM t WHERE a = 1", "DELETE FROM t"):
        connection.execute(statement)
        step(connection)
    changes = DeltaTable(table).to_pyarrow_table().to_pylist()
    sums: Counter[tuple[str, int]] = Counter()
    for change in changes:
        sums[change["b"], change["a"]] += change["mz_diff"]
    assert {key for key, n in sums.items() if n} == set()
    ordered = sorted(changes, key=lambda one: (one["mz_timestamp"], one["mz_diff"]))
    assert [(one["a"], one["mz_diff"]) for one in ordered] == [(1, 1), (1, -1), (3, 1), (3, -1), (2, 1), (2, -1)]


def test_changes_of_keys_are_events(connection: Connection, table: Path, tmp_path: Path) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    connection.execute("CREATE SINK s FROM sums INTO DELTA (URI 'out/v') KEY (b) ENVELOPE DEBEZIUM")
    for statement in ("INSERT INTO t VALUES (2, 'x', NULL), (5, 'y', NULL)", "DELETE FROM t WHERE a = 1"):
        connection.execute(statement)
        step(connection)
    connection.execute("DELETE FROM t WHERE b = 'y'")
    step(connection)
    events = sorted(DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda one: (one["ts_ms"], one["op"]))
    assert [(one["op"], one["before"], one["after"]) for one in events] == [
        ("c", None, {"b": "x", "a": 1}),
        ("c", None, {"b": "y", "a": 5}),
        ("u", {"b": "x", "a": 1}, {"b": "x", "a": 3}),
        ("u", {"b": "x", "a": 3}, {"b": "x", "a": 2}),
        ("d", {"b": "y", "a": 5}, None),
    ]
    assert told(connection) == []
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in events))
    files = "FILES (FOLDER 'in') FORMAT JSON ENVELOPE DEBEZIUM"
    connection.execute(f"CREATE SOURCE again (b text, a integer, PRIMARY KEY (b)) FROM {files}")
    assert connection.execute("SELECT * FROM again").fetchall() == [("x", 2)], "who reads them has the view"


def test_a_table_is_partitioned_as_it_is_told(connection: Connection, table: Path) -> None:
    into = "DELTA (URI 'out/v', PARTITION COLUMNS (b), FILE SIZE '1 MB') ENVELOPE UPSERT"
    connection.execute("INSERT INTO t VALUES (1, 'x', 0.5), (2, 'a b/c=%25é', 0.5), (3, NULL, NULL), (4, 'x', NULL)")
    connection.execute(f"CREATE SINK s FROM v INTO {into}")
    check(connection, table)
    connection.execute("DELETE FROM t WHERE a IN (1, 3)")
    connection.execute("INSERT INTO t VALUES (5, 'a b/c=%25é', 1)")
    step(connection)
    check(connection, table)
    assert DeltaTable(table).metadata().partition_columns == ["b"]
    found = pl.scan_delta(str(table)).filter(pl.col("b") == "a b/c=%25é").select("a").collect()
    assert sorted(found.rows()) == [(2,), (5,)]
    assert told(connection) == []
    connection.execute("INSERT INTO t VALUES (6, '', NULL)")
    (failed,) = step(connection).failures
    assert failed.error is not None
    says_what_to_do(failed.error, "no partition of a Delta table has that", "say something else")
    connection.execute("DELETE FROM t WHERE a = 6")
    step(connection)
    check(connection, table)
    connection.execute("DROP SINK s")
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    connection.execute("INSERT INTO t VALUES (7, '', NULL)")
    step(connection)
    check(connection, table)
    assert DeltaTable(table).metadata().partition_columns == [], "the next sink has it otherwise"


def test_files_are_about_as_large_as_they_are_told(connection: Connection, table: Path) -> None:
    connection.execute("CREATE MATERIALIZED VIEW many AS SELECT a, md5(a::text) AS m FROM t")
    connection.execute("CREATE SINK s FROM many INTO DELTA (URI 'out/v', FILE SIZE '1 MB') ENVELOPE UPSERT")
    connection.execute("INSERT INTO t SELECT i, NULL, NULL FROM generate_series(1, 60000) AS g(i)")
    step(connection)
    sizes = [one["size_bytes"] for one in pa.table(DeltaTable(table).get_add_actions()).to_pylist()]
    assert len(sizes) > 1
    assert max(sizes) < 1_300_000


@pytest.mark.parametrize("envelope", ["ENVELOPE UPSERT", "KEY (a) ENVELOPE DEBEZIUM", "APPEND CHANGES"])
@pytest.mark.parametrize("partition", ["", ", PARTITION COLUMNS (a)"])
def test_a_table_has_what_trino_says_that_it_reads(
    connection: Connection, table: Path, envelope: str, partition: str
) -> None:
    if partition and "DEBEZIUM" in envelope:
        return  # events have no partitions
    query = ", ".join(f"{value} AS {name}" for name, value in TYPED.items())
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    connection.execute(f"CREATE MATERIALIZED VIEW typed AS SELECT DISTINCT ON (a) a, {query} FROM t ORDER BY a")
    connection.execute("INSERT INTO t VALUES (1, NULL, NULL), (2, NULL, NULL)")
    connection.execute(f"CREATE SINK s FROM typed INTO DELTA (URI 'out/v'{partition}) {envelope}")
    connection.execute("DELETE FROM t WHERE a = 1")
    step(connection)
    DeltaTable(table).create_checkpoint()
    log = [
        json.loads(line)
        for one in sorted((table / "_delta_log").glob("*.json"))
        for line in one.read_text().splitlines()
    ]
    for action in log:
        if "protocol" in action:
            said = action["protocol"]
            assert (said["minReaderVersion"], said["minWriterVersion"]) <= (3, 7)
            assert set(said.get("readerFeatures", ())) <= TRINO_READS
            assert set(said.get("writerFeatures", ())) <= TRINO_READS | TRINO_WRITES
        elif "metaData" in action:
            assert set(types_in(json.loads(action["metaData"]["schemaString"]))) <= TRINO_TYPES
            assert action["metaData"]["format"]["provider"] == "parquet"
        elif "add" in action:
            assert "deletionVector" not in action["add"] or action["add"]["deletionVector"] is None
            assert not action["add"]["path"].startswith(("/", "file:", "s3:"))
            held = pq.ParquetFile(table / unquote(action["add"]["path"]))
            assert {str(held.metadata.row_group(0).column(0).compression)} <= {"SNAPPY", "ZSTD"}


def types_in(schema: Any) -> Iterator[str]:
    """Yields the types that a Delta schema has, without what decimals have in parentheses."""
    match schema:
        case {"type": "struct", "fields": fields}:
            for field in fields:
                yield from types_in(field["type"])
        case {"type": "array", "elementType": element}:
            yield from types_in(element)
        case str():
            yield schema.partition("(")[0]


#: What the documentation of Trino's connector for Delta Lake lists: features of readers and writers, and types.
TRINO_READS = {
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
    "vacuumProtocolCheck",
}  # fmt: skip
TRINO_WRITES = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "icebergCompatV1", "icebergCompatV2"}
TRINO_TYPES = {
    "boolean", "integer", "byte", "short", "long", "float", "double", "decimal", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
}  # fmt: skip
#: A value of each type that a sink writes.
TYPED = {
    "o": "true", "i2": "1::smallint", "i8": "9223372036854775807", "n": "1.50::numeric(9, 2)", "u": "1.50::numeric",
    "f": "'-Infinity'::real", "c": "'a'::char(3)", "y": "'\\x00ff'::bytea", "d": "'0999-12-31'::date",
    "ts": "'2020-01-01 00:00:00.000001'::timestamp", "tz": "'2020-01-01'::timestamptz", "ti": "'12:30'::time",
    "iv": "'1 mon -1 day'::interval", "id": "'12345678-1234-5678-1234-567812345678'::uuid",
    "j": "'{\"a\": 1}'::jsonb", "m": "'happy'::mood", "l": "ARRAY[1, NULL]", "r": "ROW(1, 'x')",
}  # fmt: skip


def test_every_type_that_delta_has_is_written_as_it_is(connection: Connection, table: Path) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    query = ", ".join(f"{one} AS {name}" for name, one in TYPED.items())
    connection.execute(f"CREATE MATERIALIZED VIEW typed AS SELECT a, {query} FROM t")
    connection.execute("INSERT INTO t VALUES (1, NULL, NULL), (2, NULL, NULL)")
    connection.execute("CREATE SINK s FROM typed INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    connection.execute("DELETE FROM t WHERE a = 1")
    step(connection)
    found = DeltaTable(table).to_pyarrow_table()
    wanted = connection.execute("SELECT * FROM typed").fetch_arrow_table()
    assert found.num_rows == 1
    for name in (*TYPED, "a"):
        if name == "ti":
            assert found.column(name).to_pylist() == ["12:30:00"]
        else:
            assert found.column(name).to_pylist() == wanted.column(name).to_pylist(), name


# ---- what is refused


def test_what_cannot_be_a_sink_says_why(connection: Connection, tmp_path: Path) -> None:
    connection.execute('CREATE MATERIALIZED VIEW odd AS SELECT a AS "a b" FROM t')
    connection.execute('CREATE MATERIALIZED VIEW twice AS SELECT a, a AS "A" FROM t')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    write_deltalake(tmp_path / "theirs", pa.table({"a": [1]}))
    for into, error, text in (
        ("(URI 'out/v') ENVELOPE DEBEZIUM", InvalidTableDefinition, "requires a KEY"),
        ("(URI 'out/v', PARTITION COLUMNS (nope)) ENVELOPE UPSERT", UndefinedColumn, '"nope"'),
        ("(URI 'out/v', PARTITION COLUMNS (x)) ENVELOPE UPSERT", NotSupportedError, "of type double precision"),
        ("(URI 'out/v', PARTITION COLUMNS (a, b, x)) ENVELOPE UPSERT", NotSupportedError, "all of its columns"),
        ("(URI 'out/v', FILE SIZE '10 kB') ENVELOPE UPSERT", InvalidTableDefinition, 'size "10 kB"'),
        ("(URI 'out/v', FILE SIZE '9 MB', FILE SIZE '9 MB') ENVELOPE UPSERT", Error, "expected CONNECTION"),
        ("(URI 'out/v') ENVELOPE NONE", Error, "this envelope"),
    ):
        with pytest.raises(error, match=text):
            connection.execute(f"CREATE SINK s FROM v INTO DELTA {into}")
    with pytest.raises(NotSupportedError, match="what events hold"):
        connection.execute(
            "CREATE SINK s FROM sums INTO DELTA (URI 'out/v', PARTITION COLUMNS (b)) KEY (b) ENVELOPE DEBEZIUM"
        )
    create = "CREATE SINK s FROM {} INTO DELTA (URI '{}') {} ENVELOPE UPSERT"
    for name, uri, key, error, text in (
        ("nothing", "out/v", "", UndefinedTable, "nothing"),
        ("t", "out/v", "", WrongObjectKind, "It is a table"),
        ("odd", "out/v", "", NotSupportedError, 'no column "a b"'),
        ("twice", "out/v", "", NotSupportedError, 'no second column "A"'),
        ("v", "out/v", "KEY (a)", InvalidTableDefinition, "not known to have the key"),
        ("v", "gs://x/y", "", InvalidTableDefinition, "needs a CONNECTION"),
        ("v", "hdfs://x/y", "", NotSupportedError, "not supported yet"),
        ("v", ".mz/out", "", FolderNotAllowed, "the engine's own"),
        ("v", "assets", "", FolderNotAllowed, "defines the project"),
        ("v", "..", "", FolderNotAllowed, "outside of the project"),
        ("v", ".", "", FolderNotAllowed, "the project's folder"),
        ("v", "full", "", SinkTaken, "something else"),
        ("v", "theirs", "", SinkTaken, "not written by a sink of this project"),
    ):
        with pytest.raises(error, match=text):
            connection.execute(create.format(name, uri, key))
    connection.execute(create.format("sums", "out/v", "KEY (b)"))
    with pytest.raises(SinkTaken, match='sink "s" writes'):
        connection.execute(create.format("v", "out/v", "").replace("SINK s", "SINK other"))
    connection.execute("DROP SINK s")
    connection.execute(create.format("v", "out/v", ""))
    check(connection, tmp_path / "out" / "v")


def test_contents_with_errors_wait_until_they_have_none(connection: Connection, table: Path) -> None:
    connection.execute("CREATE MATERIALIZED VIEW quotients AS SELECT 10 / a AS q FROM t")
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    connection.execute("CREATE SINK s FROM quotients INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    before = stands(connection)
    connection.execute("INSERT INTO t VALUES (0, 'x', NULL), (2, 'x', NULL)")
    (failed,) = step(connection).failures
    assert failed.error is not None
    says_what_to_do(failed.error, "division by zero", "corrected or deleted")
    assert written(table) == {(10,): 1}
    assert stands(connection) == before
    connection.execute("DELETE FROM t WHERE a = 0")
    assert not step(connection).failures
    check(connection, table, "quotients")
    assert written(table) == {(10,): 1, (5,): 1}


def test_a_table_that_others_changed_is_told_and_written_anew(connection: Connection, table: Path) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL), (2, 'y', NULL)")
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    assert not told(connection)
    DeltaTable(table).delete("a = 1")
    ((check_name, what),) = told(connection)
    assert (check_name, what.partition(", at")[0]) == ("sink-differs", "1 rows are missing, and 0 should not be there")
    connection.execute("DELETE FROM t WHERE a = 1")
    (failed,) = step(connection).failures
    assert isinstance(failed.error, SinkChanged)
    says_what_to_do(failed.error, "somebody else has changed the table", "ALTER SINK ... RESET")
    connection.execute("INSERT INTO t VALUES (3, 'z', NULL)")
    connection.execute("ALTER SINK s RESET")
    check(connection, table)
    connection.execute("DELETE FROM t WHERE a = 3")
    assert not step(connection).failures
    check(connection, table)
    connection.execute("CREATE SINK c FROM sums INTO DELTA (URI 'out/c') APPEND CHANGES")
    connection.execute("DELETE FROM t WHERE a = 2")
    step(connection)
    assert not told(connection)
    write_deltalake(table.parent / "c", DeltaTable(table.parent / "c").to_pyarrow_table().slice(0, 1), mode="append")
    assert [one for one, _ in told(connection)] == ["sink-differs"]
    shutil.rmtree(table.parent / "c")
    assert [one for one, _ in told(connection)] == ["sink-differs"]
    write_deltalake(table.parent / "c", pa.table({"a": [1]}))
    assert [one for one, _ in told(connection)] == ["sink-unreadable"]


def test_a_sink_that_is_ahead_of_the_catalog_says_so(connection: Connection, table: Path) -> None:
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    sink = connection.engine.definitions.sink(connection.engine.catalog.object(connection.engine.collection_of("s")))
    at = stands(connection)
    lost = pa.table({"a": [9], "b": ["lost"], "x": [None], "mz_timestamp": [at], "mz_diff": [1], "mz_error": [None]})
    sink.go_on(lost, at, at + 1_000)  # as in a life that a restored backup does not know
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    (failed,) = step(connection).failures
    assert failed.error is not None
    says_what_to_do(failed.error, "of which nothing is known here", "ALTER SINK ... RESET")
    connection.execute("ALTER SINK s RESET")
    assert not step(connection).failures
    check(connection, table)


def test_a_crash_leaves_a_sink_at_a_tick_also_where_what_it_writes_stays_behind(
    connection: Connection, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read has taken the view to a time between two ticks, where it stays as the step of the next one fails."""
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    step(connection)
    connection.execute("INSERT INTO t VALUES (2, 'x', NULL)")
    assert len(connection.execute("SELECT * FROM v").fetchall()) == 2
    connection.execute("INSERT INTO t VALUES (3, 'x', NULL)")
    advanced = Stepper._written

    def failing(stepper: Stepper, advance: Advance) -> Any:
        if advance.node.name == "v":
            raise OperationalError("the disk is full")
        return advanced(stepper, advance)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(Stepper, "_written", failing)
        patched.setattr(Sinks, "_seal", killed)
        step(connection)
    assert not step(connection).failures
    assert len(written(table)) == 3
    check(connection, table)


def test_a_sink_of_a_view_that_is_replaced_has_the_new_ones_rows(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "t.sql").write_text("CREATE TABLE t (a integer);")
    (assets / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT a FROM t;")
    (assets / "s.sql").write_text("-- What leaves.\nCREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT;")
    with opened(tmp_path) as connection:
        connection.engine.apply()
        connection.execute("INSERT INTO t VALUES (1), (2)")
        step(connection)
        check(connection, tmp_path / "out" / "v")
        (assets / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT a + 10 AS b FROM t WHERE a > 1;")
        connection.engine.apply()
        step(connection)
        assert DeltaTable(tmp_path / "out" / "v").to_pyarrow_table().to_pylist() == [{"b": 12}]


def test_a_sink_has_the_labels_that_values_have(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        for one in (
            "CREATE TYPE size AS ENUM ('s', 'l')",
            "CREATE TABLE shirts (z size)",
            "INSERT INTO shirts VALUES ('s'), ('l')",
            "CREATE MATERIALIZED VIEW v AS SELECT z FROM shirts",
            "CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT",
        ):
            connection.execute(one)
        connection.engine.step(TIMELINE, minted(connection))
        connection.execute("ALTER TYPE size RENAME VALUE 's' TO 'small'")
        connection.engine.step(TIMELINE, minted(connection))
        check(connection, tmp_path / "out" / "v")
        connection.execute("DELETE FROM shirts WHERE z = 'l'")
        connection.engine.step(TIMELINE, minted(connection))
        assert DeltaTable(tmp_path / "out" / "v").to_pyarrow_table().to_pylist() == [{"z": "small"}]


# ---- histories, kills, two writers


def change(connection: Connection, random: Random) -> None:
    values = ", ".join(
        f"({random.randrange(5)}, {random.choice(['NULL', repr('x'), repr('y')])}, "
        f"{random.choice(['NULL', '0.5', repr('NaN'), repr('-0') + '::float8'])})"
        for _ in range(random.randint(1, 4))
    )
    statements = [
        f"INSERT INTO t VALUES {values}",
        f"INSERT INTO t VALUES {values}",
        f"DELETE FROM t WHERE a = {random.randrange(5)}",
        f"UPDATE t SET a = a + 1 WHERE a = {random.randrange(4)}",
    ]
    connection.execute(random.choice(statements))


def follow(connection: Connection, table: Path, seed: int, changes: int) -> None:
    random = Random(seed)
    connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
    connection.execute("CREATE SINK c FROM v INTO DELTA (URI 'out/c') APPEND CHANGES")
    begun = stands(connection, "c") - 1
    for _ in range(changes):
        change(connection, random)
        if random.random() < 0.5:
            minted(connection)
        if random.random() < 0.5:
            step(connection)
            check(connection, table)
        if random.random() < 0.1:
            DeltaTable(table).optimize.compact()
    step(connection)  # to the newest open tick
    step(connection)
    check(connection, table)
    changed: Counter[tuple[Any, ...]] = Counter()
    for one in DeltaTable(table.parent / "c").to_pyarrow_table().to_pylist():
        changed[one["mz_timestamp"], one["a"], one["b"], repr(one["x"])] += one["mz_diff"]
    subscribed: Counter[tuple[Any, ...]] = Counter()
    for time, diff, a, b, x in connection.execute(f"SUBSCRIBE v AS OF {begun} UP TO {stands(connection, 'c')}"):
        subscribed[int(time), a, b, repr(x)] += diff
    assert changed == subscribed, "a sink is told what a subscription from its first time on is told"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_whatever_happens_the_table_is_the_view(connection: Connection, table: Path, seed: int) -> None:
    follow(connection, table, seed, 12)


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 110))
def test_whatever_happens_for_long_the_table_is_the_view(connection: Connection, table: Path, seed: int) -> None:
    follow(connection, table, seed, 200)


def step_until_killed(root: str, fail_point: str) -> None:
    """Is the process: steps the project, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    with opened(Path(root)) as connection:
        step(connection)


@pytest.mark.parametrize(
    "fail_point",
    [
        "sink.committed",
        "seal.in_transaction:2",
        *(pytest.param(one, marks=pytest.mark.deep) for one in ("sink.written", "sink.before_seal")),
    ],
)
def test_a_kill_anywhere_leaves_each_change_once(
    connection: Connection, table: Path, tmp_path: Path, fail_point: str
) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL), (1, 'x', NULL)")
    for name, envelope in (("s", "ENVELOPE UPSERT"), ("c", "APPEND CHANGES")):
        connection.execute(f"CREATE SINK {name} FROM v INTO DELTA (URI 'out/{'v' if name == 's' else 'c'}') {envelope}")
    connection.execute("DELETE FROM t")
    connection.execute("INSERT INTO t VALUES (2, 'y', NULL), (1, 'x', NULL)")
    process = forks().Process(target=step_until_killed, args=(str(tmp_path), fail_point))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    connection.execute("INSERT INTO t VALUES (3, 'z', NULL)")
    step(connection)  # to the tick that is open
    check(connection, table)
    step(connection)
    check(connection, table)
    assert written(table) == {(1, "x", None): 1, (2, "y", None): 1, (3, "z", None): 1}
    changes = DeltaTable(tmp_path / "out" / "c").to_pyarrow_table().to_pylist()
    assert Counter((one["a"], one["mz_diff"]) for one in changes) == {
        (1, 2): 1,
        (1, -2): 1,
        (1, 1): 1,
        (2, 1): 1,
        (3, 1): 1,
    }


def test_a_write_that_is_repeated_or_raced_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        for envelope in ("ENVELOPE UPSERT", "APPEND CHANGES"):
            name = envelope[:1]
            connection.execute(f"CREATE SINK {name} FROM v INTO DELTA (URI 'out/{name}') {envelope}")
            sink = connection.engine.definitions.sink(
                connection.engine.catalog.object(connection.engine.collection_of(name.lower()))
            )
            at = sink.stands_at()
            assert at is not None
            schema = pa.schema(
                [("a", pa.int32()), ("mz_timestamp", pa.int64()), ("mz_diff", pa.int64()), ("mz_error", pa.string())]
            )
            update = pa.Table.from_arrays([[7], [at], [1], [None]], schema=schema)
            for _ in range(2):
                sink.go_on(update, at, at + 5)
                assert sink.stands_at() == at + 5
                assert sink.table.opened().to_pyarrow_table().num_rows == 1
            with pytest.raises(SinkChanged, match="does not stand where"):
                sink.go_on(update, at + 1, at + 9)


@pytest.mark.parametrize("envelope", ["ENVELOPE UPSERT", "APPEND CHANGES"])
def test_of_two_writers_one_is_told_that_it_came_late(
    connection: Connection, table: Path, envelope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x', NULL)")
    connection.execute(f"CREATE SINK s FROM v INTO DELTA (URI 'out/v') {envelope}")
    connection.execute("UPDATE t SET a = 2")
    commit = DeltaTable.create_write_transaction
    raced: list[StepReport] = []

    def commit_late(opened: DeltaTable, *arguments: Any, **options: Any) -> None:
        if not raced:
            monkeypatch.undo()
            raced.append(StepReport(TIMELINE, 0, (), 0))
            with opened_again() as other:  # the other writer commits the same, in between
                raced[0] = step(other)
        commit(opened, *arguments, **options)

    def opened_again() -> Any:
        connection.engine.catalog.lead(TIMELINE, "other", 1)
        return opened(table.parents[1])

    engine = connection.engine
    node = engine.graph(TIMELINE).by_id[engine.collection_of("s")]
    assert isinstance(node, SinkNode)
    before = stands(connection)
    engine.poll(TIMELINE)
    tick = engine.catalog.last_tick(TIMELINE)
    assert tick is not None
    engine.step(TIMELINE, tick, only=engine.graph(TIMELINE).upstream(frozenset({node.input})))
    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_late)
    sinks = Sinks(engine.catalog, engine.shards, engine.holder, engine.project.lease_ms, engine.clock)
    (late,) = sinks.advance([node], tick, None, print, idle_only=False)
    assert late.outcome is Outcome.FAILED
    assert isinstance(late.error, SinkUnwritable)
    assert {one.name: one.outcome for one in raced[0].collections}["s"] is Outcome.ADVANCED
    assert stands(connection) > before
    assert not step(connection).failures
    if envelope == "ENVELOPE UPSERT":
        assert written(table) == {(2, "x", None): 1}
    else:
        changes = DeltaTable(table).to_pyarrow_table().to_pylist()
        assert Counter((one["a"], one["mz_diff"]) for one in changes) == {(1, 1): 1, (1, -1): 1, (2, 1): 1}


def test_a_backup_has_where_sources_stand_and_its_copy_leaves_the_tables_of_sinks_alone(tmp_path: Path) -> None:
    root, lake = tmp_path / "p", tmp_path / "p" / "lake"
    root.mkdir()
    write_deltalake(lake, pa.table({"a": [1, 2]}))
    with opened(root) as connection:
        connection.execute("CREATE SOURCE o FROM DELTA (URI 'lake')")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS a FROM o")
        step(connection)
        connection.execute("CREATE SINK s FROM v INTO DELTA (URI 'out/v') ENVELOPE UPSERT")
        project = connection.engine.project
    backup(project, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "again")
    shutil.copytree(lake, tmp_path / "again" / "lake", dirs_exist_ok=True)
    shutil.copytree(root / "out", tmp_path / "again" / "out", dirs_exist_ok=True)
    write_deltalake(tmp_path / "again" / "lake", pa.table({"a": [3]}), mode="append")
    with opened(tmp_path / "again") as connection:
        (failed,) = step(connection).failures
        assert isinstance(failed.error, SinkTaken), "they are the other project's"
        assert Counter(connection.execute("SELECT a FROM o").fetchall()) == {(1,): 1, (2,): 1, (3,): 1}
        (tmp_path / "again" / "out").rename(tmp_path / "kept")
        (failed,) = step(connection).failures
        assert isinstance(failed.error, SinkChanged)
        connection.execute("ALTER SINK s RESET")
        assert not step(connection).failures
        assert written(tmp_path / "again" / "out" / "v") == {(2,): 1, (3,): 1, (4,): 1}
