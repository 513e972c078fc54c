"""Results of many rows stay in Arrow's columns: rows are made as they are taken, in the order and form of few rows."""

from __future__ import annotations

import datetime
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from mz_dagster import connect
from mz_dagster.adapter import Connection, Session
from mz_dagster.adapter.finished_rows import finished_rows
from mz_dagster.adapter.result import StreamedRows
from mz_dagster.cli.output import Output, OutputFormat
from mz_dagster.compute import StoredRows
from mz_dagster.compute.snapshot.stored_rows import AT_ONCE
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT4,
    INTERVAL,
    TEXT,
    TIMESTAMPTZ,
    Column,
    ScalarType,
    array_of,
    numeric,
    record_of,
)
from mz_dagster.scalars.types import (
    UUID as UUID_TYPE,
)
from mz_dagster.scalars.values import Interval, to_stored
from mz_dagster.sql.finishing import RowSetFinishing, ordered_rows
from mz_dagster.storage.arrow_schema import arrow_type
from tests.sparkless import refuse_spark

ROWS = 300_000
SERIES = f"SELECT g, 'name ' || g::text AS b FROM generate_series(1, {ROWS}) g"
MB = 1_000_000


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with pytest.MonkeyPatch.context() as monkeypatch, connect(tmp_path_factory.mktemp("streamed")) as opened:
        tried = refuse_spark(monkeypatch)
        yield opened
        assert not tried, tried[0]


def grown(work: Callable[[], object]) -> tuple[float, float]:
    """Returns by how many bytes Python's objects grew during work, at its end and at most."""
    tracemalloc.start(1)
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = work()
        after, most = tracemalloc.get_traced_memory()
        del kept
        return after - before, most - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("order", "rows"), [("", ROWS), ("ORDER BY b DESC", ROWS // 5)], ids=["unordered", "ordered"])
def test_a_result_of_many_rows_makes_them_as_they_are_fetched(connection: Connection, order: str, rows: int) -> None:
    query = f"{SERIES.replace(str(ROWS), str(rows))} {order}"
    cursor = connection.cursor()
    held, _ = grown(lambda: cursor.execute(query))
    assert held < 2 * MB
    counts: list[int] = []
    _, most = grown(lambda: counts.extend(map(len, iter(lambda: cursor.fetchmany(1000), []))))
    assert (most < 2 * MB, sum(counts), cursor.rowcount) == (True, rows, rows)


def test_rows_come_in_their_order_however_they_are_taken(connection: Connection) -> None:
    expected = sorted(((n, f"name {n}") for n in range(1, 3001)), key=lambda row: row[1], reverse=True)
    query = "SELECT g, 'name ' || g::text AS b FROM generate_series(1, 3000) g ORDER BY b DESC"
    assert connection.execute(query).fetchall() == expected
    assert [*connection.execute(query)] == expected
    cursor = connection.execute(query)
    assert [cursor.fetchone(), *cursor.fetchmany(2000), *cursor.fetchall(), cursor.fetchone()] == [*expected, None]
    assert connection.execute(f"{query} LIMIT 1500 OFFSET 7").fetchall() == expected[7:1507]
    cursor = connection.execute(query)
    first = cursor.fetchmany(10)
    reader = cursor.fetch_record_batch(1700)
    sizes = [len(batch) for batch in reader]
    assert (first, sizes) == (expected[:10], [1700, 1290])


def test_cursors_of_sql_go_both_ways_over_many_rows(connection: Connection) -> None:
    with connection.transaction():
        connection.execute("DECLARE c SCROLL CURSOR FOR SELECT g FROM generate_series(1, 5000) g ORDER BY g")
        forward = connection.execute("FETCH 4000 FROM c").fetchall()
        backward = connection.execute("FETCH BACKWARD 3000 FROM c").fetchall()
        last = connection.execute("FETCH LAST FROM c").fetchall()
        every = connection.execute("FETCH BACKWARD ALL FROM c").fetchall()
    assert forward == [(n,) for n in range(1, 4001)]
    assert backward == [(n,) for n in range(3999, 999, -1)]
    assert (last, every) == ([(5000,)], [(n,) for n in range(4999, 0, -1)])


def test_what_is_still_to_be_fetched_holds_no_lease(connection: Connection) -> None:
    connection.execute("CREATE TABLE leased (a integer)")
    connection.execute("INSERT INTO leased SELECT g FROM generate_series(1, 5000) g")
    before = connection.execute("SELECT count(*) FROM mz_internal.mz_leases").fetchall()
    cursor = connection.execute("SELECT a, a FROM leased")
    taken = cursor.fetchmany(10)
    assert connection.execute("SELECT count(*) FROM mz_internal.mz_leases").fetchall() == before
    connection.execute("DELETE FROM leased")
    assert len(taken) + len(cursor.fetchall()) == 5000


@pytest.mark.parametrize("format", [OutputFormat.TABLE, OutputFormat.JSON])
def test_the_command_line_prints_rows_as_they_are_made(connection: Connection, format: OutputFormat) -> None:
    result = Session(connection.engine).execute(SERIES.replace(str(ROWS), "4000"))
    assert isinstance(result.rows, StreamedRows)

    class Counted:
        lines = 0

        def write(self, text: str) -> None:
            self.lines += text.count("\n")

        def flush(self) -> None: ...

    counted = Counted()
    with redirect_stdout(counted):  # type: ignore[type-var]
        _, most = grown(lambda: Output(format).show(result))
    assert (most < 0.6 * MB, counted.lines - 4_000 in (0, 2)) == (True, True)


@pytest.mark.parametrize("options", ["FORMAT csv, HEADER", "FORMAT parquet"])
def test_files_are_written_by_portions(connection: Connection, options: str) -> None:
    root, kind = connection.engine.project.root, options.split(",")[0].split()[1]
    (root / "out").mkdir(exist_ok=True)
    series = SERIES.replace(str(ROWS), "5000")
    _, most = grown(lambda: connection.execute(f"COPY ({series}) TO 'out/rows.{kind}' ({options})"))
    assert most < 0.8 * MB
    found = duckdb.sql(f"SELECT count(*), sum(g), min(b), max(b) FROM '{root}/out/rows.{kind}'").fetchall()
    assert found == [(5000, 5000 * 5001 // 2, "name 1", "name 999")]


# ---- every type

MOMENT = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
VALUES: list[tuple[ScalarType, list[Any]]] = [
    (INT4, [1, -5, 7]),
    (TEXT, ["", "a", "B", "é"]),
    (BOOL, [True, False]),
    (BYTEA, [b"", b"\xff", b"\0"]),
    (FLOAT8, [0.0, -0.0, float("nan"), float("inf"), float("-inf"), -1.5, 2.5]),
    (FLOAT4, [0.0, -0.0, float("nan"), 1.5]),
    (numeric(2), [Decimal("1.50"), Decimal("-3.00"), Decimal("0.00")]),
    (DATE, [datetime.date(2020, 1, 1), datetime.date(1960, 1, 1), INFINITY, NEGATIVE_INFINITY]),
    (TIMESTAMPTZ, [MOMENT, MOMENT - datetime.timedelta(microseconds=1), INFINITY]),
    (INTERVAL, [Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 0, 5)]),
    (UUID_TYPE, [UUID(int=5), UUID(int=1 << 120)]),
    (array_of(FLOAT8), [[0.0], [-0.0], [], [None], [1.0, None], [float("nan")]]),
    (record_of([("a", INT4), ("b", TEXT)]), [(1, None), (None, "x"), (1, "a")]),
]


def some_rows(seed: int, count: int) -> tuple[StoredRows, tuple[Column, ...]]:
    chance = random.Random(seed)
    columns = tuple(Column(f"c{n}", type_) for n, (type_, _) in enumerate(VALUES))
    picked = [[chance.choice([None, *values]) for _ in range(count)] for _, values in VALUES]
    arrays = [
        pa.chunked_array([pa.array([to_stored(one, type_) for one in cells], arrow_type(type_))])
        for cells, (type_, _) in zip(picked, VALUES, strict=True)
    ]
    return StoredRows.of(arrays, columns), columns


def told_apart(rows: list[tuple[Any, ...]]) -> list[str]:
    return [repr(one) for one in rows]


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_the_order_of_many_rows_is_that_of_few(place: int) -> None:
    rows, columns = some_rows(place, 60)
    types = tuple(one.type for one in columns)
    for descending, nulls_first in product((True, False), repeat=2):
        keys = (ColumnOrder(place, descending, nulls_first), ColumnOrder((place + 1) % 13, not descending, True))
        for order in (keys[:1], keys, ()):
            finishing = RowSetFinishing(order, 50, 5, (2, place), types)
            expected = told_apart(ordered_rows([*rows], finishing))
            assert told_apart([*finished_rows(rows, finishing)]) == expected, order


def test_many_rows_are_published_as_few(connection: Connection) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    columns = "a char(3), b mood, c timetz, d numeric, e time[], f timestamptz, g interval, h uuid"
    connection.execute(f"CREATE TABLE typed ({columns})")
    values = "'é', 'happy', '12:00+02', 1.50, '{12:30,NULL}', '2020-01-01', '1 mon 2 days', gen.id::uuid"
    source = "(VALUES ('12345678-1234-5678-1234-567812345678'), (NULL)) gen (id), generate_series(1, 1000) s"
    connection.execute(f"INSERT INTO typed SELECT {values} FROM {source}")
    many, few = (connection.execute(f"SELECT * FROM typed LIMIT {count}") for count in (AT_ONCE * 2 - 100, AT_ONCE))
    some = many.fetchmany(10)
    assert some == few.fetchmany(10)
    found, same = many.fetch_arrow_table(), few.fetch_arrow_table()
    assert found.schema == same.schema
    assert found.slice(0, len(same)).to_pylist() == same.to_pylist()
