"""Several statements of a simple query, and a pipeline up to its Sync, are one transaction, as in PostgreSQL.

The same messages go to both, and what comes back is compared: results, errors, notices, the transaction's status, and
what is in the tables afterwards.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import pq

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn, password_of

TABLES = ("CREATE TABLE t (a integer)", "CREATE TABLE k (a integer PRIMARY KEY, b text)")
CONTENTS = ("TABLE t", "TABLE k", "SHOW statement_timeout", "SELECT count(*) FROM pg_tables WHERE tablename = 'n'")

#: Texts of one simple query each, whose statements are one transaction.
SIMPLE = (
    "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
    "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); SELECT 1/0",
    "INSERT INTO t VALUES (1); SELECT 1/0; INSERT INTO t VALUES (2)",
    "INSERT INTO t VALUES (1); SELECT count(*) FROM t; DELETE FROM t; SELECT count(*) FROM t",
    "INSERT INTO k VALUES (1, 'x'); INSERT INTO k VALUES (2, 'y'); INSERT INTO k VALUES (1, 'z')",
    "INSERT INTO t VALUES (1); SELEC 2",
    "BEGIN; INSERT INTO t VALUES (1); COMMIT; SELEC 2",
    "BEGIN; INSERT INTO t VALUES (1); COMMIT; SELECT 1 +; SELECT 3",
    "SELECT 1; COMMIT; UPDATE t SET a = 1 + WHERE a = 2",
    "SELECT 1; COMMIT; DELETE FROM t WHERE a = = 2",
    "SELECT 1; COMMIT; INSERT INTO t VALUES (1,) RETURNING a",
    "SELECT 1; COMMIT; INSERT INTO t VALUES (1) RETURNING a +",
    "SELECT 1; COMMIT; PREPARE q AS SELECT 1 +",
    "SELECT 1; COMMIT; DECLARE c CURSOR FOR SELECT (1",
    "SELECT 1; COMMIT; CREATE VIEW w AS SELECT 1 1",
    "SELECT 1; COMMIT; UPDATE t SET a = 1 FROM k, WHERE true",
    "INSERT INTO t VALUES (1); SELECT nothing FROM t",
    "INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT 1/0",
    "INSERT INTO t VALUES (1); ROLLBACK; INSERT INTO t VALUES (2)",
    "INSERT INTO t VALUES (1); COMMIT AND CHAIN; INSERT INTO t VALUES (2)",
    "COMMIT; INSERT INTO t VALUES (2)",
    "BEGIN; INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT 1/0",
    "BEGIN; INSERT INTO t VALUES (1); ROLLBACK; INSERT INTO t VALUES (2)",
    "INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); COMMIT; SELECT 1/0",
    "INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); ROLLBACK; SELECT 1/0",
    "INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2)",
    "INSERT INTO t VALUES (1); BEGIN; SELECT 1/0",
    "INSERT INTO t VALUES (1); BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (2)",
    "SELECT 1; BEGIN READ ONLY; INSERT INTO t VALUES (2)",
    "SAVEPOINT s; INSERT INTO t VALUES (1)",
    "INSERT INTO t VALUES (1); SAVEPOINT s",
    "INSERT INTO t VALUES (1); ROLLBACK TO s",
    "INSERT INTO t VALUES (1); RELEASE s",
    "INSERT INTO t VALUES (1); BEGIN; SAVEPOINT s; INSERT INTO t VALUES (2); ROLLBACK TO s; COMMIT",
    "SET statement_timeout = '5s'; SELECT 1",
    "SET statement_timeout = '7s'; SELECT 1/0",
    "SET LOCAL statement_timeout = '8s'; SHOW statement_timeout",
    "SET LOCAL statement_timeout = '8s'",
    "SET TRANSACTION READ ONLY; INSERT INTO t VALUES (1)",
    "SET TRANSACTION READ ONLY; SELECT 1",
    "INSERT INTO t VALUES (1); VACUUM",
    "VACUUM; SELECT 1",
    "INSERT INTO t VALUES (1); DISCARD ALL",
    "DECLARE c CURSOR FOR SELECT 7; FETCH ALL c; FETCH ALL c",
    "FETCH ALL c",
    "CREATE TABLE n (a integer); INSERT INTO n VALUES (1); SELECT * FROM n; SELECT 1/0",
    "CREATE TABLE n (a integer); CREATE VIEW v AS SELECT a + 1 AS b FROM n; INSERT INTO n VALUES (1); TABLE v",
    "DROP VIEW v; DROP TABLE n; SELECT 1/0",
    "DROP VIEW v; DROP TABLE n",
    "PREPARE p AS INSERT INTO t VALUES ($1); EXECUTE p(1); EXECUTE p(2); EXECUTE p('x')",
    "EXECUTE p(5); EXECUTE p(6)",
    "TRUNCATE t, k; SELECT 1/0",
    "SELECT 1;; SELECT 2;",
    ";",
)
SYNC, FLUSH = "sync", "flush"
#: Pipelines: statements, and where a Sync is; one is at the end of each.
PIPELINES: tuple[tuple[str, ...], ...] = (
    ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"),
    ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)", "SELECT 1/0", "INSERT INTO t VALUES (3)"),
    ("INSERT INTO t VALUES (1)", SYNC, "INSERT INTO t VALUES (2)", "SELECT 1/0", SYNC, "INSERT INTO t VALUES (3)"),
    ("INSERT INTO t VALUES (1)", "SELECT nothing", "INSERT INTO t VALUES (2)"),
    ("INSERT INTO t VALUES (1)", "SELECT count(*) FROM t", "DELETE FROM t", "SELECT count(*) FROM t"),
    ("INSERT INTO k VALUES (1, 'x')", "INSERT INTO k VALUES (2, 'x')", "INSERT INTO k VALUES (1, 'x')"),
    ("INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)"),
    ("INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)", SYNC, "INSERT INTO t VALUES (3)"),
    (
        "INSERT INTO t VALUES (1)",
        "BEGIN",
        "INSERT INTO t VALUES (2)",
        "COMMIT",
        "INSERT INTO t VALUES (3)",
        "SELECT 1/0",
    ),
    ("INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)", "SELECT 1/0"),
    ("INSERT INTO t VALUES (1)", "ROLLBACK", "INSERT INTO t VALUES (2)"),
    ("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)"),
    ("COMMIT", "INSERT INTO t VALUES (2)"),
    ("INSERT INTO t VALUES (1)", "SAVEPOINT s"),
    ("INSERT INTO t VALUES (1)", FLUSH, "INSERT INTO t VALUES (2)", FLUSH, "SELECT 1/0"),
    ("INSERT INTO t VALUES (1)", FLUSH),
    ("SET statement_timeout = '5s'", "SELECT 1"),
    ("SET statement_timeout = '6s'", "SELECT 1/0"),
    ("SELECT 1", "VACUUM"),
    ("VACUUM", "SELECT 1"),
    ("INSERT INTO t VALUES (1)", "DISCARD ALL"),
    ("CREATE TABLE n (a integer)", "INSERT INTO n VALUES (1)", "TABLE n", "SELECT 1/0"),
    ("CREATE TABLE n (a integer)", "INSERT INTO n VALUES (1)", "TABLE n"),
    ("DROP TABLE n", "SELECT 1"),
    ("SELECT 1/0",),
    (SYNC, SYNC),
)


def next_result(raw: pq.abc.PGconn) -> pq.abc.PGresult | None:
    """Returns the next result once it has come, while whom it comes from in this process goes on."""
    while raw.flush() or raw.is_busy():
        select.select([raw.socket], [], [], 1)
        raw.consume_input()
    return raw.get_result()


@dataclass
class Client:
    """A connection by libpq alone, whose conversation is all that came back."""

    raw: pq.abc.PGconn
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.raw.notice_handler = self._hear

    def _hear(self, notice: pq.abc.PGresult) -> None:
        if notice.error_field(pq.DiagnosticField.SEVERITY) == b"WARNING":
            self.notices.append((notice.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())

    def _told(self, result: pq.abc.PGresult) -> tuple[Any, ...]:
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        rows = [[result.get_value(i, j) for j in range(result.nfields)] for i in range(result.ntuples)]
        told, self.notices[:] = [*self.notices], []
        return pq.ExecStatus(result.status).name, result.command_status, code, sorted(map(str, rows)), told

    def simple(self, text: str) -> list[Any]:
        """Returns what comes back of a simple query."""
        self.raw.send_query(text.encode())
        found = []
        while (result := next_result(self.raw)) is not None:
            found.append(self._told(result))
        return [*found, pq.TransactionStatus(self.raw.transaction_status).name, [*self.notices]]

    def pipeline(self, steps: Sequence[str]) -> list[Any]:
        """Returns what comes back of a pipeline, with a Sync at its end."""
        self.raw.enter_pipeline_mode()
        steps = [*steps, SYNC]
        for one in steps:
            if one == SYNC:
                self.raw.pipeline_sync()
            elif one == FLUSH:
                self.raw.send_flush_request()
            else:
                self.raw.send_query_params(one.encode(), None)
        self.raw.flush()
        found: list[Any] = []
        left = sum(one == SYNC for one in steps)
        while left:
            result = next_result(self.raw)
            if result is None:
                continue
            found.append(self._told(result))
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                found.append(pq.TransactionStatus(self.raw.transaction_status).name)
                left -= 1
        self.raw.exit_pipeline_mode()
        return found

    def state(self) -> list[Any]:
        """Returns what is in the tables after the conversation, whose transaction is rolled back if it is open."""
        self.simple("ROLLBACK")
        self.notices.clear()
        found = [self.simple(one)[0] for one in CONTENTS]
        self.simple("TRUNCATE t; TRUNCATE k; SET statement_timeout = 0")
        return found


@contextmanager
def both(server: Server, postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    """Yields clients of PostgreSQL and of ours, with the same empty tables."""
    theirs, ours = postgres.new_database().connect(), psycopg.connect(dsn(server), autocommit=True)
    with theirs, ours:
        for one in TABLES:
            theirs.execute(one.encode())
            ours.execute(one.encode())
        yield Client(theirs.pgconn), Client(ours.pgconn)


def test_statements_of_a_simple_query_are_one_transaction(server: Server, postgres: Postgres) -> None:
    with both(server, postgres) as (theirs, ours):
        for text in SIMPLE:
            expected = theirs.simple(text), theirs.state()
            assert (ours.simple(text), ours.state()) == expected, text


@pytest.mark.deep
def test_a_pipeline_is_one_transaction_up_to_its_sync(server: Server, postgres: Postgres) -> None:
    with both(server, postgres) as (theirs, ours):
        for steps in PIPELINES:
            expected = theirs.pipeline(steps), theirs.state()
            assert (ours.pipeline(steps), ours.state()) == expected, steps


@pytest.fixture
def ours(server: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        for one in TABLES:
            connection.execute(one.encode())
        yield connection


def rows(connection: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()


def test_what_cannot_be_part_of_a_transaction_commits_what_is_before_it(ours: psycopg.Connection[Any]) -> None:
    for number, alone in enumerate(
        (
            "CREATE ROLE who",
            "CREATE VIEW over AS SELECT a FROM t; ALTER TABLE t ADD COLUMN b text; CREATE VIEW w AS SELECT b FROM t",
            "CREATE SCHEMA s; DROP SCHEMA s",
            "CREATE TEMP TABLE x (a integer); DROP TABLE k, x",
        ),
        1,
    ):
        text = f"INSERT INTO t (a) VALUES ({number}); {alone}; INSERT INTO t (a) VALUES (-{number}); SELECT 1/0"
        with pytest.raises(psycopg.errors.DivisionByZero):
            ours.execute(text.encode())
        assert rows(ours, "SELECT max(a), min(a) FROM t") == [(number, 1)], alone
    assert rows(ours, "SELECT count(*) FROM pg_tables WHERE tablename IN ('k', 'x')") == [(0,)]
    steps = ("INSERT INTO t VALUES (7)", "DROP ROLE who", "INSERT INTO t VALUES (8)", "SELECT 1/0")
    assert [one[2] for one in Client(ours.pgconn).pipeline(steps)[:4]] == [None, None, None, b"22012"]
    assert rows(ours, "SELECT max(a) FROM t") == [(7,)]


def test_each_reads_at_the_time_that_it_says(ours: psycopg.Connection[Any]) -> None:
    ours.execute("INSERT INTO t VALUES (1)")
    ((time,),) = rows(ours, "SELECT mz_now()")
    ours.execute("INSERT INTO t VALUES (2)")
    text = (
        f"INSERT INTO t VALUES (3); SELECT count(*) FROM t AS OF {time}; SELECT count(*) FROM t; "
        f"SELECT count(*) FROM t AS OF {time}; INSERT INTO t VALUES (4)"
    )
    client = Client(ours.pgconn)
    assert [one[3] for one in client.simple(text)[:5]] == [[], ["[b'1']"], ["[b'3']"], ["[b'1']"], []]
    assert client.simple("SELECT count(*) FROM t")[0][3] == ["[b'4']"]


def test_a_cursor_is_declared_in_a_pipeline(ours: psycopg.Connection[Any]) -> None:
    """As in PostgreSQL since version 18; before, a pipeline was no block to it."""
    with ours.pipeline():
        ours.execute("SELECT 1")
        ours.execute("DECLARE c CURSOR FOR SELECT 7")
        assert ours.execute("FETCH ALL c").fetchall() == [(7,)]
    with pytest.raises(psycopg.errors.InvalidCursorName):
        ours.execute("FETCH ALL c")


def test_executemany_is_one_batch(server: Server, ours: psycopg.Connection[Any]) -> None:
    batches = "SELECT count(*) FROM mz_internal.mz_batches"
    ((before,),) = rows(ours, batches)
    ours.cursor().executemany("INSERT INTO t VALUES (%s)", [(i,) for i in range(200)])
    ours.cursor().executemany("INSERT INTO k VALUES (%s, 'x')", [(i,) for i in range(20)])
    ((after,),) = rows(ours, batches)
    assert after - before == 2
    assert rows(ours, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM k)") == [(200, 20)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        ours.cursor().executemany("INSERT INTO k VALUES (%s, 'x')", [(30,), (31,), (30,)])
    assert rows(ours, "SELECT count(*) FROM k") == [(20,)]

    async def with_asyncpg() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=server.port,
            user=server.credentials.user,
            password=password_of(server),
            database="shop",
        )
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.executemany("INSERT INTO k VALUES ($1, $2)", [(40, "x"), (41, "x"), (40, "x")])
        assert await connection.fetchval("SELECT count(*) FROM k") == 20
        await connection.executemany("UPDATE k SET b = $2 WHERE a = $1", [(1, "one"), (2, "two")])
        assert await connection.fetchval("SELECT string_agg(b, ',' ORDER BY a) FROM k WHERE b <> 'x'") == "one,two"
        await connection.close()

    asyncio.run(with_asyncpg())


def test_who_has_read_what_others_wrote_meanwhile_is_told_at_the_end(
    server: Server, ours: psycopg.Connection[Any]
) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as other:
        ours.pgconn.enter_pipeline_mode()
        ours.pgconn.send_query_params(b"INSERT INTO t SELECT count(*) FROM t", None)
        ours.pgconn.send_flush_request()
        result = next_result(ours.pgconn)
        assert result is not None
        assert result.command_status == b"INSERT 0 1"
        other.execute("INSERT INTO t VALUES (7)")
        ours.pgconn.pipeline_sync()
        found = [one for _ in range(4) if (one := next_result(ours.pgconn)) is not None]
        assert [one.error_field(pq.DiagnosticField.SQLSTATE) for one in found] == [b"40001", None]
        assert found[-1].status == pq.ExecStatus.PIPELINE_SYNC
        ours.pgconn.exit_pipeline_mode()
        assert rows(ours, "TABLE t") == [(7,)]


def test_a_statement_waits_for_what_follows_it(server: Server, ours: psycopg.Connection[Any]) -> None:
    raw = ours.pgconn
    raw.enter_pipeline_mode()
    raw.send_query_params(b"INSERT INTO t VALUES (1)", None)
    raw.flush()
    with psycopg.connect(dsn(server), autocommit=True) as other:
        assert rows(other, "TABLE t") == []
        raw.pipeline_sync()
        assert (first := next_result(raw)) is not None
        assert first.command_status == b"INSERT 0 1"
        assert [next_result(raw) for _ in range(2)][1] is not None
        raw.exit_pipeline_mode()
        assert rows(other, "TABLE t") == [(1,)]
        # and who goes before it has said that it is all has done nothing
        raw.enter_pipeline_mode()
        for one in (b"INSERT INTO t VALUES (2)", b"INSERT INTO t VALUES (3)"):
            raw.send_query_params(one, None)
        raw.send_flush_request()
        assert next_result(raw) is not None
        ours.close()
        assert rows(other, "TABLE t") == [(1,)]


def test_copy_with_extended_queries_is_part_of_it(ours: psycopg.Connection[Any]) -> None:
    with ours.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
        copy.write_row((1,))
    raw = ours.pgconn
    raw.send_query_params(b"COPY t FROM STDIN", None)
    assert (begun := next_result(raw)) is not None
    assert begun.status == pq.ExecStatus.COPY_IN
    raw.put_copy_data(b"2\n3\n")
    raw.put_copy_end()
    assert (done := next_result(raw)) is not None
    assert done.command_status == b"COPY 2"
    assert next_result(raw) is None
    assert rows(ours, "SELECT count(*) FROM t") == [(3,)]
    raw.send_query_params(b"COPY t TO STDOUT", None)
    assert (begun := next_result(raw)) is not None
    assert begun.status == pq.ExecStatus.COPY_OUT
    sent: list[bytes] = []
    while (got := raw.get_copy_data(1))[0] >= 0:
        sent += [bytes(got[1])] if got[0] else []
        select.select([raw.socket], [], [], 0.1)
        raw.consume_input()
    assert sorted(sent) == [b"1\n", b"2\n", b"3\n"]
    assert (done := next_result(raw)) is not None
    assert done.command_status == b"COPY 3"
    assert next_result(raw) is None
    assert rows(ours, "SELECT count(*) FROM t") == [(3,)]


def test_an_error_of_the_protocol_fails_the_transaction(ours: psycopg.Connection[Any], postgres: Postgres) -> None:
    with postgres.new_database().connect() as theirs:
        for one in (theirs, ours):
            one.execute("BEGIN")
            one.pgconn.send_query_params(b"SELECT $1::integer", [b"x"])
            assert (failed := next_result(one.pgconn)) is not None
            assert failed.error_field(pq.DiagnosticField.SQLSTATE) == b"22P02"
            assert next_result(one.pgconn) is None
            assert one.info.transaction_status == pq.TransactionStatus.INERROR
            one.execute("ROLLBACK")
