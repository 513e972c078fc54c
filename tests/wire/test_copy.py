"""COPY from and to clients, byte by byte as PostgreSQL's; cursors by name step as its; SUBSCRIBE through both."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn
from tests.wire.test_clients import environment, psql, psql_command

TYPES = {
    "a": "integer", "b": "text", "c": "numeric", "d": "numeric(10, 2)", "e": "date", "f": "timestamptz", "g": "boolean",
    "h": "float8", "i": "bytea", "j": "jsonb", "k": "interval", "l": "integer[]", "m": "time", "n": "uuid",
    "o": "bigint", "p": "char(3)", "q": "integer[][]", "r": "text[][]",
}  # fmt: skip
ROWS = (
    "(1, 'plain', 1.50, 2.5, '2020-02-29', '2020-01-01 12:00+02', true, 1.5, '\\x00ff', '{\"a\": [1, 2]}',"
    " '1 mon -2 days', '{1,NULL,3}', '12:30', '12345678-1234-5678-1234-567812345678', 1, 'ab',"
    " '{{1,NULL},{3,4}}', '{{a,\"b c\"},{NULL,\"\"}}')",
    "(2, E'tab\\there\\nline\\\\back', 'NaN', -0.01, 'infinity', '-infinity', false, 'NaN', '', '\"x\"', '0', '{}',"
    " '00:00:00.000001', NULL, -9223372036854775808, '', '[0:1]={5,6}', '{}')",
    "(3, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(4, 'a,b \"c\" \\.', 123456789012345678901234567890.5, 0, '0999-12-31', '1970-01-01', NULL, '-Infinity', 'x',"
    " 'null', '00:00:01', '{-1}', '23:59:59.999999', NULL, 0, 'é', '{7}', NULL)",
    "(5, '\\N', 1e-10, 1, NULL, NULL, NULL, 1e300, NULL, '1.0', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(6, '\\.', 0, 1, NULL, NULL, NULL, 0.1, NULL, '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)
OPTIONS = [
    "",
    "WITH (FORMAT text, DELIMITER '|', NULL 'nothing', HEADER)",
    "WITH (FORMAT csv)",
    "WITH CSV HEADER DELIMITER ';' NULL 'nil' QUOTE '''' ESCAPE '!'",
    "WITH (FORMAT csv, FORCE_QUOTE (a, b), NULL '\\N')",
    "WITH (FORMAT csv, FORCE_QUOTE *)",
    "WITH (FORMAT binary)",
]

Client = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def both(server: Server, postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    """Connects to us and to a PostgreSQL."""
    with psycopg.connect(dsn(server), autocommit=True) as ours, postgres.new_database().connect() as theirs:
        theirs.autocommit = True
        yield ours, theirs


def create(client: Client, rows: tuple[str, ...] = ROWS) -> None:
    client.execute(f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, type_ in TYPES.items())})")
    if rows:
        client.execute(f"INSERT INTO t VALUES {', '.join(rows)}")


def copied_out(client: Client, statement: str) -> bytes:
    with client.cursor().copy(statement.encode()) as copy:
        return b"".join(copy)


def copied_in(client: Client, statement: str, data: bytes) -> str:
    """Returns how many rows there were, or the error."""
    try:
        with (cursor := client.cursor()).copy(statement.encode()) as copy:
            copy.write(data)
    except psycopg.Error as error:
        return str(error.sqlstate)
    return str(cursor.rowcount)


@pytest.mark.parametrize("options", OPTIONS)
def test_rows_leave_and_come_back_as_postgresqls(server: Server, postgres_server: Postgres, options: str) -> None:
    with both(server, postgres_server) as (ours, theirs):
        create(ours)
        create(theirs)
        query = f"COPY (SELECT * FROM t ORDER BY a) TO STDOUT {options}"
        written = copied_out(theirs, query)
        assert copied_out(ours, query) == written
        incoming = re.sub(r", FORCE_QUOTE (\*|\([^)]*\))", "", options)
        for one in (ours, theirs):
            one.execute("CREATE TABLE u AS SELECT * FROM t WHERE false")
            assert copied_in(one, f"COPY u FROM STDIN {incoming}", written) == str(len(ROWS))
        query = "COPY (SELECT * FROM u ORDER BY a) TO STDOUT"
        assert copied_out(ours, query) == copied_out(theirs, query)
        single = f"COPY t (b, a) TO STDOUT {options}"
        assert sorted(copied_out(ours, single).splitlines()) == sorted(copied_out(theirs, single).splitlines())


DATA = [
    ("", b"1\tx\n2\ty"),
    ("", b"1\tx\r\n2\ty\r\n"),
    ("", b"1\tx\n\\.\n2\ty\n"),
    ("", b"1\t\\x41\\102\\qA\\\\\n"),
    ("", b"1\t\\xc3\\xa9\n"),
    ("", b"1\t\\xff\n"),
    ("", b"1\tsplit\\\nline\n2\ty\n"),
    ("", b"1\n"),
    ("", b"1\tx\ty\n"),
    ("", b"one\tx\n"),
    ("", b"\\N\tx\n"),
    ("", b"1\t\xff\n"),
    ("", b""),
    ("", b"1\tx\n\n"),
    ("(DELIMITER ',')", b"1,a\\,b\n"),
    ("(FORMAT csv)", b'1,"a\n""b"""\n2,\n3,""\n'),
    ("(FORMAT csv)", b'1,"open\n'),
    ("(FORMAT csv)", b"1,x\n\\.\n"),
    ("(FORMAT csv, HEADER match)", b"a,b\n1,x\n"),
    ("(FORMAT csv, HEADER match)", b"a,c\n1,x\n"),
    ("(FORMAT binary)", b"nonsense"),
    ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\1"),
    ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"),  # without a trailer, as ADBC sends it
    ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\2\0\0\0\4\0\0\0\1\xff\xff\xff\xff"),
    ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\2\0\0\0\4\0\0\0\1\xff\xff\xff\xff\xff\xff"),
    ("(FORMAT nonsense)", b""),
    ("(DELIMITER 'ab')", b""),
    ("(QUOTE '''')", b""),
]


def test_what_clients_send_is_taken_or_refused_as_postgresql_does(server: Server, postgres_server: Postgres) -> None:
    with both(server, postgres_server) as (ours, theirs):
        found = []
        for one in (ours, theirs):
            one.execute("CREATE TABLE t (a integer NOT NULL, b text)")
            results = [copied_in(one, f"COPY t FROM STDIN {options}", data) for options, data in DATA]
            found.append([*results, *one.execute("SELECT a, b FROM t ORDER BY a, b").fetchall()])
        assert found[0] == found[1]


def gives_up() -> Iterator[bytes]:
    yield b"1\n"
    raise LookupError


def test_a_client_that_gives_up_has_written_nothing(server: Server) -> None:
    with psycopg.connect(dsn(server)) as client:
        client.execute("SET application_name = 'x'")
        client.commit()
        client.autocommit = True
        client.execute("CREATE TABLE t (a integer)")
        with suppress(LookupError), client.cursor().copy("COPY t FROM STDIN") as copy:
            for one in gives_up():
                copy.write(one)
        assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


STEPS = (
    "FETCH c; FETCH 2 FROM c; FETCH BACKWARD 1 c; FETCH PRIOR c; FETCH PRIOR c; FETCH PRIOR c; "
    "FETCH NEXT IN c; FETCH ABSOLUTE 3 c; FETCH RELATIVE -1 c; FETCH RELATIVE 0 c; FETCH 0 c; FETCH LAST c; "
    "FETCH c; FETCH c; FETCH BACKWARD ALL c; FETCH FORWARD 2 c; FETCH -2 c; FETCH ABSOLUTE -2 c; "
    "FETCH ABSOLUTE 0 c; FETCH ALL c; FETCH FIRST c; MOVE 2 c; FETCH c; MOVE BACKWARD ALL c; "
    "FETCH FORWARD ALL c; MOVE ABSOLUTE 9 c; FETCH PRIOR c; FETCH RELATIVE 5 c; FETCH BACKWARD 2 c; "
    "MOVE PRIOR c; "
)


def test_cursors_step_as_postgresqls(server: Server, postgres_server: Postgres) -> None:
    with both(server, postgres_server) as (ours, theirs):
        found: list[list[object]] = []
        for client in (ours, theirs):
            client.execute("CREATE TABLE t (a integer)")
            client.execute("INSERT INTO t SELECT g FROM generate_series(1, 5) g")
            steps: list[object] = []
            with client.transaction():
                client.execute("DECLARE c SCROLL CURSOR FOR SELECT a FROM t ORDER BY a")
                client.execute('DECLARE "held" NO SCROLL CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a')
                for one in STEPS.split("; ")[:-1]:
                    cursor = client.execute(one)
                    steps.append((one, cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            for one in ("FETCH 2 held", "FETCH PRIOR held", "FETCH c", "DECLARE d CURSOR FOR SELECT 1", "CLOSE held",
                        "CLOSE held", "CLOSE ALL"):  # fmt: skip
                try:
                    steps.append((one, client.execute(one).statusmessage))
                except psycopg.Error as error:
                    steps.append((one, error.sqlstate))
            found.append(steps)
        assert found[0] == found[1]


def test_psycopgs_server_cursors_read_portion_by_portion(server: Server) -> None:
    with psycopg.connect(dsn(server)) as client:
        with client.cursor("named") as cursor:
            cursor.execute("SELECT g FROM generate_series(1, 10) g ORDER BY 1")
            assert cursor.fetchmany(2) == [(1,), (2,)]
            cursor.scroll(3)
            assert [row[0] for row in cursor] == [6, 7, 8, 9, 10]
        with client.cursor("held", withhold=True, scrollable=True) as cursor:
            cursor.execute("SELECT g FROM generate_series(1, 3) g ORDER BY 1")
            client.commit()
            assert cursor.fetchall() == [(1,), (2,), (3,)]
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchone() == (1,)


def test_psql_is_told_what_changes_until_it_cancels(server: Server) -> None:
    setup = ("-c", "CREATE TABLE t (a integer, b text)", "-c", "INSERT INTO t VALUES (1, 'x')")
    assert psql(server, *setup).returncode == 0
    statement = "COPY (SUBSCRIBE (SELECT b, count(*) AS n FROM t GROUP BY b)) TO STDOUT"
    listening = subprocess.Popen(
        ["stdbuf", "-oL", *psql_command(server, "-c", statement)],
        env=environment(server), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert listening.stdout is not None
        assert listening.stdout.readline().split("\t")[1:] == ["1", "x", "1\n"]
        with psycopg.connect(dsn(server), autocommit=True) as client:
            client.execute("INSERT INTO t VALUES (2, 'x')")
            lines = [listening.stdout.readline().split("\t")[1:] for _ in range(2)]
            assert lines == [["-1", "x", "1\n"], ["1", "x", "2\n"]]
            listening.send_signal(signal.SIGINT)
            _, told = listening.communicate(timeout=30)
            assert "canceling statement due to user request" in told
            left = client.execute("SELECT name FROM mz_catalog.mz_objects").fetchall()
            assert left == [("t",)], "what was maintained for it is gone"
    finally:
        listening.kill()
        listening.communicate()


def test_a_cursor_over_a_subscription_waits_as_long_as_it_is_told(server: Server) -> None:
    with (
        psycopg.connect(dsn(server), autocommit=True) as client,
        psycopg.connect(dsn(server), autocommit=True) as other,
    ):
        client.execute("CREATE TABLE t (a integer)")
        client.execute("INSERT INTO t VALUES (1), (2), (3)")
        with client.transaction():
            client.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITHIN TIMESTAMP ORDER BY a")
            assert [row[2] for row in client.execute("FETCH 2 c").fetchall()] == [1, 2]
            assert [row[2] for row in client.execute("FETCH ALL c").fetchall()] == [3]
            assert client.execute("FETCH ALL c WITH (timeout = '50 ms')").fetchall() == []
            other.execute("INSERT INTO t VALUES (4)")
            assert [row[2] for row in client.execute("FETCH ALL c").fetchall()] == [4]
        rows = client.cursor().stream("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY a DESC")
        assert [next(rows)[2] for _ in range(3)] == [4, 3, 2]
        client.cancel_safe(timeout=10)
        with pytest.raises(psycopg.errors.QueryCanceled):
            list(rows)
        assert client.execute("SELECT count(*) FROM t").fetchone() == (4,)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("", "1\tx\n2\ty\n3\t\\N\n4\t\\N\n"),
        ("", "1\tx\n-2\ty\n"),
        ("", "1\tx\n2\ty\n1\tz\n"),
        ("", "1\tx\n10\ty\n"),
        ("CSV HEADER", "a,b\n1,x\n2,\n"),
        ("CSV", '1,x\n"-7","y z"'),
        ("", "1\tx\n-1\t" + "y" * 200 + "\n"),
    ],
)
def test_the_line_that_breaks_a_constraint_is_told(
    server: Server, postgres_server: Postgres, options: str, data: str
) -> None:
    told = []
    with both(server, postgres_server) as clients:
        for client in clients:
            client.execute("CREATE TABLE t (a integer PRIMARY KEY CHECK (a > 0), b text NOT NULL)")
            client.execute("INSERT INTO t VALUES (10, 'here')")
            with (
                pytest.raises(psycopg.IntegrityError) as refused,
                client.cursor().copy(f"COPY t FROM STDIN {options}") as copy,
            ):
                copy.write(data)
            told.append((refused.value.sqlstate, refused.value.diag.context))
    assert told[0] == told[1]


def test_no_line_is_told_where_a_row_has_several(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as client:
        client.execute("CREATE TABLE t (a integer CHECK (a > 0), b text)")
        with (
            pytest.raises(psycopg.IntegrityError) as refused,
            client.cursor().copy("COPY t FROM STDIN CSV") as copy,
        ):
            copy.write('1,"x\ny"\n-1,z\n')
        assert refused.value.diag.context is None


def test_rows_are_asked_for_before_a_sync(server: Server, postgres_server: Postgres) -> None:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def kinds(stream: Any, last: bytes) -> list[bytes]:
        found: list[bytes] = []
        while not found or found[-1] != last:
            found.append(stream.read(1))
            stream.read(struct.unpack("!i", stream.read(4))[0] - 4)
        return found

    asked = message(b"P", b"\0COPY t FROM STDIN\0\0\0") + message(b"B", b"\0" * 8) + message(b"E", b"\0" * 5)
    told = []
    with both(server, postgres_server) as clients:
        for client in clients:
            client.execute("CREATE TABLE t (a integer)")
            with socket.socket(fileno=os.dup(client.pgconn.socket)) as raw:
                raw.settimeout(20)
                with raw.makefile("rwb") as stream:
                    stream.write(asked)
                    stream.flush()
                    before = kinds(stream, b"G")
                    stream.write(message(b"d", b"1\n2\n") + message(b"c", b"") + message(b"S", b""))
                    stream.flush()
                    told.append((before, kinds(stream, b"Z"), client.execute("SELECT sum(a) FROM t").fetchall()))
    assert told[0] == told[1]
