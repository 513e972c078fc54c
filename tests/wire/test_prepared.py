"""PREPARE, EXECUTE and DEALLOCATE do what they do in PostgreSQL; SQL and the protocol see each other's statements."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from mz_dagster.wire import Server
from tests.opened import opened
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        yield connection


STATEMENTS = (
    "CREATE TABLE t (a integer PRIMARY KEY, b varchar(3), c numeric(5, 2), d date, e char(3))",
    # of which types parameters are: as said, and as they stand
    "PREPARE ins AS INSERT INTO t VALUES ($1, $2, $3, $4, $5)",
    "EXECUTE ins(1, 'x', 1.255, '2024-02-29', 'a')",
    "EXECUTE ins(1 + 1, 'y' || 'z', 2, date '2024-02-28' + 1, NULL)",
    "EXECUTE ins(3, 'long', 1, NULL, NULL)",
    "EXECUTE ins(3, 'z', 12345, NULL, NULL)",
    "EXECUTE ins(1, 'z', 1, NULL, NULL)",
    "EXECUTE ins('4', 'z', '1.5', NULL, 'b')",
    "EXECUTE ins('x', 'z', 1, NULL, NULL)",
    "EXECUTE ins(5.5, 'z', 1, NULL, 'c')",
    "EXECUTE ins(true, 'z', 1, NULL, NULL)",
    "EXECUTE ins(7, 'z', 1, NULL)",
    "EXECUTE ins",
    "SELECT a, b, c, d, e FROM t ORDER BY a",
    "PREPARE q (int, text) AS SELECT a, b || $2 FROM t WHERE a >= $1 ORDER BY 1",
    "EXECUTE q(2, '!')",
    "EXECUTE q(NULL, '!')",
    "EXECUTE q((2), 'a,b)')",
    "PREPARE q AS SELECT 1",
    "PREPARE twice AS SELECT $1 + a, $1 FROM t WHERE a < $1 ORDER BY a",
    "EXECUTE twice(3)",
    "EXECUTE twice(3.6)",
    "PREPARE of_chars AS SELECT a FROM t WHERE e = $1",
    "EXECUTE of_chars('a')",
    "EXECUTE of_chars('a  ')",
    "PREPARE nothing AS SELECT count(*) FROM t",
    "EXECUTE nothing",
    "EXECUTE nothing()",
    "EXECUTE nothing(1)",
    "PREPARE untyped AS SELECT $1 IS NULL",
    "PREPARE untyped AS SELECT a FROM t WHERE $1 IS NOT NULL",
    "PREPARE tested (text) AS SELECT $1 IS NULL",
    "EXECUTE tested(NULL)",
    "PREPARE typed AS SELECT $1::integer IS NULL",
    "EXECUTE typed('7')",
    "PREPARE bare AS SELECT $1",
    "EXECUTE bare('it')",
    "PREPARE unused (integer, text) AS SELECT $1",
    "EXECUTE unused(1, 'x')",
    "PREPARE gap AS SELECT $2::integer",
    "PREPARE conflicting AS SELECT $1::integer, $1 || 'x'",
    "PREPARE vals AS VALUES ($1::integer, $2::text), (2, 'b')",
    "EXECUTE vals(1, 'a')",
    "PREPARE listed AS SELECT a FROM t WHERE a = ANY($1) ORDER BY a",
    "EXECUTE listed('{1,4}')",
    "EXECUTE listed(ARRAY[2])",
    "PREPARE limited AS SELECT a FROM t ORDER BY a LIMIT $1",
    "EXECUTE limited(1)",
    "PREPARE upd AS UPDATE t SET b = $2 WHERE a = $1 RETURNING b",
    "EXECUTE upd(1, 'new')",
    "PREPARE del AS DELETE FROM t WHERE a = $1",
    "EXECUTE del(4)",
    "PREPARE with_it AS WITH w AS (SELECT $1::integer AS n) SELECT n + 1 FROM w",
    "EXECUTE with_it(41)",
    # what is wrong with what is prepared is so when it is prepared
    "PREPARE lost AS SELECT * FROM nowhere",
    "PREPARE lost AS INSERT INTO nowhere VALUES (1)",
    "PREPARE lost AS INSERT INTO t (nothing) VALUES (1)",
    "PREPARE lost AS UPDATE t SET nothing = 1",
    "PREPARE lost AS CREATE TABLE u (a integer)",
    "PREPARE lost AS SELECT 1 +",
    "PREPARE lost (nothing) AS SELECT 1",
    "EXECUTE lost",
    # arguments
    "EXECUTE q((SELECT 1), 'x')",
    "EXECUTE q(count(*), 'x')",
    "EXECUTE q(a, 'x')",
    "EXECUTE q(1",
    "EXECUTE q(1, 'x') AS y",
    # it is not part of a transaction
    "BEGIN",
    "PREPARE kept AS SELECT 'kept'",
    "EXECUTE ins(9, 'nin', 9, NULL, NULL)",
    "EXECUTE nothing",
    "EXECUTE missing",
    "EXECUTE kept",
    "ROLLBACK",
    "EXECUTE kept",
    "EXECUTE nothing",
    "DEALLOCATE kept",
    "EXECUTE kept",
    "DEALLOCATE PREPARE kept",
    'PREPARE "Kept" AS SELECT 1',
    "EXECUTE kept",
    'EXECUTE "Kept"',
    "DEALLOCATE PREPARE ALL",
    "EXECUTE nothing",
    "PREPARE q AS SELECT 2",
    "DISCARD ALL",
    "EXECUTE q",
)


def outcomes(connection: psycopg.Connection[Any], statements: tuple[str, ...]) -> list[Any]:
    """Returns of each statement its rows, or its status, or its error's code."""
    found: list[Any] = []
    for one in statements:
        try:
            cursor = connection.execute(one.encode())
            found.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
        except psycopg.Error as error:
            found.append(error.sqlstate)
    return found


def test_it_is_as_in_postgres(server: Server, postgres: Postgres) -> None:
    with postgres.new_database().connect() as theirs, psycopg.connect(dsn(server), autocommit=True) as ours:
        theirs.autocommit = True
        expected, found = outcomes(theirs, STATEMENTS), outcomes(ours, STATEMENTS)
    different = [one for one in zip(STATEMENTS, expected, found, strict=True) if one[1] != one[2]]
    assert not different, "\n".join(map(str, different))
    assert sum(isinstance(one, str) for one in expected) > 25


def result(raw: psycopg.pq.abc.PGconn) -> psycopg.pq.abc.PGresult | None:
    """Returns the next result once it has come."""
    while raw.is_busy():
        select.select([raw.socket], [], [])
        raw.consume_input()
    return raw.get_result()


def test_sql_and_the_protocol_have_one_name_space(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        raw = connection.pgconn
        raw.prepare(b"proto", b"SELECT $1::integer + 1, $2")
        assert connection.execute("EXECUTE proto(1, 'x')").fetchall() == [(2, "x")]
        connection.execute("PREPARE by_sql AS SELECT $1::integer * $2::integer")
        found = raw.exec_prepared(b"by_sql", [b"6", b"7"])
        assert found.get_value(0, 0) == b"42"
        raw.send_describe_prepared(b"by_sql")  # what waits for it by itself keeps the server, too, from going on
        raw.flush()
        described, nothing = result(raw), result(raw)
        assert described is not None
        assert nothing is None
        assert [described.param_type(i) for i in range(described.nparams)] == [23, 23]
        assert described.ftype(0) == 23
        for name in ("proto", "by_sql"):
            with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
                connection.execute(f"PREPARE {name} AS SELECT 1")
        assert raw.prepare(b"by_sql", b"SELECT 1").error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42P05"
        for name in ("proto", "by_sql"):
            connection.execute(f"DEALLOCATE {name}")
            with pytest.raises(psycopg.errors.InvalidSqlStatementName):
                connection.execute(f"EXECUTE {name}(1, 2)")
        # The extended protocol, too, prepares and executes: parameters within are those of what is prepared.
        connection.execute("PREPARE extended AS SELECT $1::integer + 1", prepare=True, binary=True)
        assert connection.execute("EXECUTE extended(%s)", (41,), binary=True).fetchall() == [(42,)]


def test_parameters_are_described_as_their_client_has_given_them(server: Server, postgres_server: Postgres) -> None:
    given = [1043, 705, 20, 0, 1042]  # as pgjdbc gives a NULL: it breaks off at another of varchar
    found: list[list[int]] = []
    with psycopg.connect(dsn(server), autocommit=True) as ours, postgres_server.new_database().connect() as theirs:
        for client in (ours, theirs):
            client.execute("CREATE TABLE given (a text, b text, c integer, d integer, e varchar(3))")
            client.pgconn.prepare(b"", b"INSERT INTO given VALUES ($1, $2, $3, $4, $5)", given)
            client.pgconn.send_describe_prepared(b"")
            client.pgconn.flush()
            described, nothing = result(client.pgconn), result(client.pgconn)
            assert described is not None
            assert nothing is None
            found.append([described.param_type(i) for i in range(described.nparams)])
    assert found == [[1043, 25, 20, 23, 1042]] * 2


def test_a_program_prepares_as_a_client_does(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    connection.execute("PREPARE ins (integer) AS INSERT INTO t VALUES ($1, $2 || $2)")
    assert connection.execute("EXECUTE ins(1, 'x')").rowcount == 1
    assert connection.execute("EXECUTE ins(?, ?)", (2, "y")).rowcount == 1
    connection.execute("PREPARE found AS SELECT a, b FROM t WHERE a >= $1 ORDER BY a")
    executed = connection.execute("EXECUTE found(?)", (1,))
    assert [one[0] for one in executed.description or ()] == ["a", "b"]
    assert executed.fetchall() == [(1, "xx"), (2, "yy")]
    with pytest.raises(Error) as refused:
        connection.execute("PREPARE marked AS SELECT ?::integer", (1,))
    assert refused.value.sqlstate == "42601"
    assert "$1" in str(refused.value.hint)
    with pytest.raises(Error) as refused:
        connection.execute("EXECUTE found('x' || a)")
    assert refused.value.sqlstate == "42703"
    assert "at character 22" in str(refused.value)
    with pytest.raises(Error) as refused:
        connection.execute("PREPARE wrong AS SELECT nothing FROM t")
    assert "at character 25" in str(refused.value)


def test_what_it_stands_for_may_change_meanwhile(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("PREPARE found AS SELECT count(*) FROM t")
    connection.execute("DROP TABLE t")
    with pytest.raises(Error) as lost:
        connection.execute("EXECUTE found")
    assert lost.value.sqlstate == "42P01"
    connection.execute("CREATE TABLE t (a integer)")
    assert connection.execute("EXECUTE found").fetchall() == [(0,)]


def test_what_is_prepared_and_declared_is_told(server: Server, postgres_server: Postgres) -> None:
    told = []
    with psycopg.connect(dsn(server), autocommit=True) as ours, postgres_server.new_database().connect() as theirs:
        for client in (ours, theirs):
            client.execute("PREPARE p (integer, text) AS SELECT $1, $2, 'é'")
            client.execute("PREPARE q AS SELECT 1")
            client.execute("SELECT %s::integer + %s", (1, 2), prepare=True)
            client.execute("BEGIN")
            client.execute("DECLARE c SCROLL CURSOR FOR SELECT 1")
            client.execute("DECLARE d NO SCROLL CURSOR WITH HOLD FOR SELECT 2")
            asked = (
                "SELECT name, statement, parameter_types, from_sql, prepare_time < clock_timestamp() + interval '1 s' "
                "FROM pg_prepared_statements ORDER BY name",
                "SELECT name, statement, is_holdable, is_binary, is_scrollable, creation_time IS NULL FROM pg_cursors "
                "WHERE name <> '' ORDER BY name",
            )
            found = [client.execute(one.replace("clock_timestamp()", "now()")).fetchall() for one in asked]
            client.execute("COMMIT")
            client.execute("DEALLOCATE p")
            after = "SELECT array_agg(name ORDER BY name) FROM {}"
            found += [client.execute(after.format(one)).fetchall() for one in ("pg_prepared_statements", "pg_cursors")]
            told.append(found)
    assert told[0] == told[1]
