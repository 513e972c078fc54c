"""Results of many rows leave the server as they are made: no client, however slow, has it hold them as rows."""

from __future__ import annotations

import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.wire.conftest import dsn, open_server
from tests.wire.test_clients import psql

ROWS = 60_000
SERIES = f"SELECT g, 'name ' || g::text AS b FROM generate_series(1, {ROWS}) g"
#: More than the buffers of two sockets hold.
WIDE = f"SELECT g, repeat('x', 500) AS b FROM generate_series(1, {ROWS}) g"
MB = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("served")) as opened:
        yield opened


def most_held(work: Callable[[], object]) -> int:
    """Returns how many bytes of Python's objects there were more during work, at most."""
    tracemalloc.start(1)
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("query", ["{}", "{} ORDER BY b", "COPY ({}) TO STDOUT"], ids=["rows", "ordered", "copy"])
def test_a_large_result_leaves_as_it_is_made(server: Server, query: str) -> None:
    sql = query.format(SERIES.replace(str(ROWS), "20000"))
    found: list[subprocess.CompletedProcess[str]] = []
    most = most_held(lambda: found.append(psql(server, "-qAt", "-o", "/dev/null", "-c", sql)))
    assert (found[0].returncode, found[0].stderr) == (0, "")
    assert most < 2.5 * MB, "what computes the series, and the numbers of an order, among them"


def test_a_cursor_of_many_rows_is_fetched_by_portions(server: Server) -> None:
    with psycopg.connect(dsn(server)) as connection, connection.cursor("large") as cursor:
        cursor.itersize = 1000
        cursor.execute(SERIES)
        found: list[int] = []
        assert most_held(lambda: found.append(sum(1 for _ in cursor))) < 2 * MB
        assert found == [ROWS]


def test_a_client_that_takes_nothing_has_the_server_hold_no_rows(server: Server) -> None:
    with psycopg.connect(dsn(server)) as connection, psycopg.connect(dsn(server)) as other:
        rows = connection.cursor().stream(WIDE)

        def stall() -> None:
            assert next(rows)[0] == 1
            time.sleep(0.3)
            assert other.execute("SELECT 1").fetchall() == [(1,)]

        assert most_held(stall) < 5 * MB
        connection.close()


def test_a_client_that_goes_midway_leaves_nothing(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as other:
        alone = other.execute("SELECT count(*) FROM mz_internal.mz_sessions").fetchall()
        connection = psycopg.connect(dsn(server))
        rows = connection.cursor().stream(WIDE)
        assert next(rows)[0] == 1
        connection.close()
        count = "SELECT count(*) FROM mz_internal.mz_sessions"
        assert eventually(lambda: other.execute(count).fetchall() == alone)
        assert other.execute("SELECT count(*) FROM mz_internal.mz_leases").fetchall() == [(0,)]


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_what_ends_a_statement_midway_is_told_behind_its_rows(server: Server, how: str) -> None:
    started = time.monotonic()
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        next(connection.cursor().stream(WIDE))
    timeout_s = 0.5 + 5 * (time.monotonic() - started)  # the first rows come before it, however busy the machine is
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        if how == "timeout":
            connection.execute(f"SET statement_timeout = '{round(timeout_s * 1000)}ms'")
        rows = connection.cursor().stream(WIDE)
        got = [*islice(rows, 10)]
        if how == "timeout":
            time.sleep(timeout_s + 0.1)
        else:
            with psycopg.connect(dsn(server)) as other:
                other.execute("SELECT pg_cancel_backend(%s)", [connection.info.backend_pid])
        with pytest.raises(psycopg.errors.QueryCanceled, match="timeout" if how == "timeout" else "user request"):
            got.extend(rows)
        assert 10 < len(got) < ROWS
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def eventually(holds: Callable[[], bool]) -> bool:
    """Returns whether something holds within some seconds."""
    until = time.monotonic() + 20
    while not (found := holds()) and time.monotonic() < until:
        time.sleep(0.02)
    return found
