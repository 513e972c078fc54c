"""Results leave as Arrow, pandas, Polars and files: every value exactly, or an error; never half a file."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from mz_dagster import Error, InterfaceError, connect
from mz_dagster.adapter import BadSettings, Connection, Project
from mz_dagster.adapter.copy_to_file import FileNotWritten, RepeatedColumn
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.fail_point import VARIABLE
from mz_dagster.storage.published import InfiniteMoment
from tests.postgres_server import Postgres

#: Of each type: its Arrow type, a value's SQL, and that value.
VALUES: dict[str, tuple[pa.DataType, str, Any]] = {
    "boolean": (pa.bool_(), "true", True),
    "smallint": (pa.int16(), "-32768", -32768),
    "integer": (pa.int32(), "7", 7),
    "bigint": (pa.int64(), "9223372036854775807", 2**63 - 1),
    "real": (pa.float32(), "1.5", 1.5),
    "double precision": (pa.float64(), "'-Infinity'", float("-inf")),
    "numeric(12, 2)": (pa.decimal128(38, 2), "1.5", Decimal("1.50")),
    "numeric": (pa.string(), "123456789012345678901234567890123456789012345.10", "1234567890123456789012345678901234567"
                "89012345.10"),
    "text": (pa.string(), "'é'", "é"),
    "varchar(3)": (pa.string(), "'ab'", "ab"),
    "char(3)": (pa.string(), "'é'", "é  "),
    "bytea": (pa.binary(), "'\\x00ff'", b"\0\xff"),
    "date": (pa.date32(), "'0999-12-31'", datetime.date(999, 12, 31)),
    "timestamp": (pa.timestamp("us"), "'2020-01-01 00:00:00.000001'", datetime.datetime(2020, 1, 1, 0, 0, 0, 1)),
    "timestamptz": (pa.timestamp("us", "UTC"), "'2020-01-01 12:00+02'",
                    datetime.datetime(2020, 1, 1, 10, tzinfo=datetime.UTC)),
    "time": (pa.time64("us"), "'23:59:59.999999'", datetime.time(23, 59, 59, 999999)),
    "interval": (pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())]),
                 "'1 mon -2 days 00:00:01'", {"months": 1, "days": -2, "microseconds": 1_000_000}),
    "uuid": (pa.string(), "'12345678-1234-5678-1234-567812345678'", "12345678-1234-5678-1234-567812345678"),
    "jsonb": (pa.string(), "'{\"b\": 1, \"a\": [null]}'", '{"a": [null], "b": 1}'),
    "json": (pa.string(), "' {\"b\":1}'", ' {"b":1}'),
    "mood": (pa.string(), "'happy'", "happy"),
    "integer[]": (pa.list_(pa.field("element", pa.int32())), "'{1,NULL}'", [1, None]),
    "time[]": (pa.list_(pa.field("element", pa.time64("us"))), "'{12:30}'", [datetime.time(12, 30)]),
    "mood[]": (pa.list_(pa.field("element", pa.string())), "'{sad,NULL}'", ["sad", None]),
}  # fmt: skip


def fill(connection: Connection) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    connection.execute(f"CREATE TABLE t (id integer, {', '.join(f'c{i} {one}' for i, one in enumerate(VALUES))})")
    connection.execute(f"INSERT INTO t VALUES (1, {', '.join(one[1] for one in VALUES.values())}), (2{', NULL' * 24})")


def test_each_type_has_its_arrow_type_and_values_are_exact(sparkless: Connection) -> None:
    fill(sparkless)
    found = sparkless.execute("SELECT * FROM t ORDER BY id").fetch_arrow_table()
    assert found.schema.types[1:] == [one[0] for one in VALUES.values()]
    first, second = found.drop(["id"]).to_pylist()
    assert list(first.values()) == [one[2] for one in VALUES.values()]
    assert set(second.values()) == {None}
    (records,) = sparkless.execute("SELECT ROW(1, '12:00'::time) AS r").fetch_arrow_table().to_pylist()
    assert records == {"r": {"f1": 1, "f2": datetime.time(12)}}


def test_frames_keep_the_types(sparkless: Connection) -> None:
    fill(sparkless)
    query = "SELECT c3 AS big, c6 AS money, c14 AS at, c21 AS many FROM t ORDER BY id"
    frame = sparkless.execute(query).df()
    assert list(map(str, frame.dtypes)) == [
        "int64[pyarrow]", "decimal128(38, 2)[pyarrow]", "timestamp[us, tz=UTC][pyarrow]",
        "list<element: int32>[pyarrow]",
    ]  # fmt: skip
    assert frame["big"][0] == 2**63 - 1
    assert frame["big"].isna().tolist() == [False, True]
    polars = sparkless.execute(query).pl()
    assert polars.schema["at"] == pl.Datetime("us", "UTC")
    assert polars.row(0) == (2**63 - 1, Decimal("1.50"), VALUES["timestamptz"][2], [1, None])
    assert sparkless.execute(f"SELECT * FROM ({query}) WHERE false").pl().schema == polars.schema


def test_batches_come_one_by_one_and_go_on_where_rows_were_fetched(sparkless: Connection) -> None:
    cursor = sparkless.execute("SELECT a FROM generate_series(1, 10) AS g(a) ORDER BY a")
    assert cursor.fetchone() == (1,)
    reader = cursor.fetch_record_batch(4)
    assert reader.schema.names == ["a"]
    assert [one.num_rows for one in reader] == [4, 4, 1]
    assert cursor.fetchall() == []
    reader = cursor.execute("SELECT 1 AS a").fetch_record_batch()
    cursor.execute("SELECT 2 AS a")
    with pytest.raises(InterfaceError, match="another result"):
        reader.read_next_batch()
    for wrong in ("CREATE TABLE u (a integer)", "INSERT INTO u VALUES (1)"):
        with pytest.raises(InterfaceError, match="no rows"):
            sparkless.execute(wrong).fetch_arrow_table()
    with pytest.raises(InterfaceError, match="no batch"):
        cursor.fetch_record_batch(0)


def test_a_subscription_streams_as_batches(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1), (2)")
    with_changes = sparkless.cursor().execute("SUBSCRIBE t").fetch_record_batch()
    assert sorted(with_changes.read_next_batch().column("a").to_pylist()) == [1, 2]
    sparkless.execute("DELETE FROM t WHERE a = 1")
    batch = with_changes.read_next_batch()
    assert batch.select(["mz_diff", "a"]).to_pylist() == [{"mz_diff": -1, "a": 1}]


def test_a_zone_is_that_of_the_session(sparkless: Connection) -> None:
    sparkless.execute("SET TIME ZONE 'Europe/Berlin'")
    found = sparkless.execute("SELECT '2020-07-01 12:00+02'::timestamptz AS at").fetch_arrow_table()
    assert found.schema.field("at").type == pa.timestamp("us", "Europe/Berlin")
    assert str(found.column("at")[0].as_py()) == "2020-07-01 12:00:00+02:00"


@pytest.mark.parametrize("value", ["'infinity'::date", "'-infinity'::timestamptz", "ARRAY['infinity'::timestamp]"])
def test_what_arrow_has_no_value_for_is_refused(sparkless: Connection, value: str) -> None:
    with pytest.raises(InfiniteMoment, match="infinity") as refused:
        sparkless.execute(f"SELECT {value} AS x").fetch_arrow_table()
    assert refused.value.sqlstate == "22008"
    with pytest.raises(RepeatedColumn, match="twice"):
        sparkless.execute("SELECT 1 AS a, 2 AS a").pl()
    assert sparkless.execute("SELECT 1 AS a, 2 AS a").fetch_arrow_table().num_columns == 2


# ---- COPY


TYPES = {name: one for name, one in VALUES.items() if "mood" not in name} | {
    "text[]": (None, "'{a,NULL,\"b c\"}'", None)
}
OTHERS = [
    "(3, false, 0, 0, 0, 'NaN', 1e-7, -0.01, 'NaN', E'tab\\tline\\nq\"\\\\', '', '', '', 'infinity', '-infinity',"
    " '0999-01-01', '00:00', '0', NULL, '\"x\\ny\"', E'[1,\\n2]', '{}', '{}', '{}')",
    "(4, NULL, 1, 1, 1, 1e30, 1e300, 1e9, 1e10, '\\.', 'x', 'x', 'x', '2020-02-29', '2020-02-29',"
    " '2020-02-29 23:59:59.5+05:30', '12:00', '-1 mon', NULL, 'null', '{}', '{1}', '{12:00}', '{\"\"}')",
]


def fill_both(connection: Connection, postgres: Postgres) -> Postgres:
    """Makes the same table here and in a new database of PostgreSQL's."""
    theirs = postgres.new_database()
    columns = ", ".join(f'"C {i}" {one}' for i, one in enumerate(TYPES))
    first = f"(1, {', '.join(one[1] for one in TYPES.values())})"
    statements = (
        f"CREATE TABLE t (id integer, {columns})",
        f"INSERT INTO t VALUES {first}, (2{', NULL' * len(TYPES)}), {', '.join(OTHERS)}",
    )
    for one in statements:
        connection.execute(one)
        theirs.run(one)
    return theirs


def test_lines_are_postgresqls_byte_by_byte(sparkless: Connection, postgres_server: Postgres, tmp_path: Path) -> None:
    theirs = fill_both(sparkless, postgres_server)
    query = "SELECT * FROM t ORDER BY id"
    for options in (
        "",
        "(FORMAT csv, HEADER)",
        "(FORMAT csv, FORCE_QUOTE *)",
        "(FORMAT text, NULL 'x', DELIMITER '|')",
    ):
        cursor = sparkless.execute(f"COPY ({query}) TO 'out.x' {options}")
        assert (cursor.tag, cursor.rowcount, cursor.description) == ("COPY 4", 4, None)
        assert (tmp_path / "out.x").read_text() == theirs.run(f"COPY ({query}) TO STDOUT {options}")
    for zone in ("UTC", "Asia/Kolkata"):
        sparkless.execute(f"SET TIME ZONE '{zone}'")
        sparkless.execute(f"COPY ({query}) TO 'out.x' (FORMAT json)")
        lines = theirs.run(f"SET TIME ZONE '{zone}'; SELECT row_to_json(q) FROM ({query}) AS q")
        ours = (tmp_path / "out.x").read_text()
        assert ours == lines.replace("[1,\n2]", "[1, 2]")
    sparkless.execute("COPY t (id) TO 'ids' (FORMAT csv)")
    assert sorted((tmp_path / "ids").read_text().split()) == ["1", "2", "3", "4"]


def test_parquet_is_read_by_others_and_comes_back_as_it_was(sparkless: Connection, tmp_path: Path) -> None:
    fill(sparkless)
    assert sparkless.execute("COPY t TO 'sub.parquet' (FORMAT parquet)").tag == "COPY 2"
    columns = [f"c{i}" for i, one in enumerate(VALUES) if "[]" not in one or one == "integer[]"]
    sparkless.execute(f"CREATE TABLE u AS SELECT id, {', '.join(columns)} FROM t WHERE false")
    sparkless.execute("COPY u FROM 'sub.parquet' (FORMAT parquet)")
    query = f"SELECT id, {', '.join(columns)} FROM {{}} ORDER BY id"
    assert sparkless.execute(query.format("u")).fetchall() == sparkless.execute(query.format("t")).fetchall()
    duck = duckdb.sql(f"SELECT c3, c6, c15, c21 FROM '{tmp_path / 'sub.parquet'}' ORDER BY id").fetchone()
    assert duck == (2**63 - 1, Decimal("1.50"), datetime.time(23, 59, 59, 999999), [1, None])


def test_a_file_is_whole_or_as_it_was(sparkless: Connection, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    sparkless.execute("COPY (SELECT 1) TO 'out.csv' (FORMAT csv)")
    for wrong, error in (
        ("SELECT 'infinity'::date AS d", InfiniteMoment),
        ("SELECT 1 AS a, 2 AS a", RepeatedColumn),
        ("SELECT 1 / 0 AS a", Error),
    ):
        with pytest.raises(error):
            sparkless.execute(f"COPY ({wrong}) TO 'out.csv' (FORMAT parquet)")
    command = "import mz_dagster as m; m.connect('.').execute(\"COPY (SELECT 2) TO 'out.csv' (FORMAT csv)\")"
    environment = os.environ | {VARIABLE: "copy.written", "PYTHONPATH": os.getcwd()}
    ended = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, env=environment, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_text() == "1\n"
    (left,) = [one.name for one in tmp_path.iterdir() if one.name not in ("out.csv", ".mz")]
    assert left.startswith(".out.csv.")
    assert left.endswith(".tmp")
    (tmp_path / "folder").mkdir()
    for place in ("missing/x.csv", "folder"):
        with pytest.raises(FileNotWritten):
            sparkless.execute(f"COPY (SELECT 2) TO '{place}' (FORMAT csv)")


def test_a_tilde_is_home_before_a_slash_alone(sparkless: Connection, tmp_path: Path) -> None:
    """Names that begin with one were those of users' homes, or failed if there was no such user."""
    sparkless.execute("CREATE TABLE t (a integer)")
    for name in ("~", "~root", "~nobody knows.csv"):
        sparkless.execute(f"COPY (SELECT 1) TO '{name}' (FORMAT csv)")
        assert (tmp_path / name).read_text() == "1\n"
        sparkless.execute(f"COPY t FROM '{name}' (FORMAT csv)")
    assert sparkless.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    with pytest.raises(FolderNotAllowed):
        sparkless.execute("COPY (SELECT 1) TO '~/of mz_dagster.csv' (FORMAT csv)")


def test_copy_writes_where_the_project_lets_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "p", tmp_path / "out side"
    for folder in (root / "assets", outside / "deeper"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(outside)
    refused = [".mz/x", "assets/x.sql", "mz.toml", "link/x", "../x", str(outside / "x"), "link/../p/.mz/x", "/"]
    copy = "COPY (SELECT 1) TO '{}' (FORMAT csv)"
    with connect(root) as connection:
        for one in refused:
            with pytest.raises(FolderNotAllowed) as error:
                connection.execute(copy.format(one))
            assert (error.value.sqlstate, error.value.position) == ("42501", 20)
    (root / "mz.toml").write_text(f'[outputs]\nfolders = ["{outside}"]\n')
    with connect(root) as connection:
        for place in (outside / "x", outside / "deeper" / "x", Path("link/y")):
            connection.execute(copy.format(place))
        with pytest.raises(FolderNotAllowed):
            connection.execute(copy.format("mz.toml"))
    assert (outside / "y").read_text() == "1\n"
    (root / "mz.toml").write_text('[outputs]\nfolders = "x"\n')
    with pytest.raises(BadSettings, match="list of texts"):
        Project.load(root)
