"""Real clients of PostgreSQL's protocol: psql, psycopg and asyncpg."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import asyncpg
import psycopg
import pytest
from asyncpg.introspection import INTRO_LOOKUP_TYPES, INTRO_LOOKUP_TYPES_13

from mz_dagster.errors import ProgrammingError
from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn, open_server, password_of

TABLE = "CREATE TABLE t (a integer PRIMARY KEY, b numeric(10, 2), c text, d timestamptz)"


def environment(server: Server, password_file: Path | None = None) -> dict[str, str]:
    found = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**found, "PGPASSFILE": str(password_file or server.credentials.path)}


def psql_command(server: Server, *arguments: str) -> list[str]:
    where = ("-h", "127.0.0.1", "-p", str(server.port), "-U", server.credentials.user)
    return ["psql", "-X", *where, "shop", *arguments]


def psql(server: Server, *arguments: str, password_file: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        psql_command(server, *arguments),
        env=environment(server, password_file),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_psql_executes_statements_and_shows_where_one_is_wrong(server: Server) -> None:
    script = (
        "CREATE TABLE t (a integer PRIMARY KEY, b text)",
        "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, count(b) AS filled FROM t",
        "TABLE v",
        "BEGIN; DELETE FROM t WHERE a = 1; SELECT * FROM v; ROLLBACK",
        "SELECT b FROM t WHERE a = 'one'",
    )
    ran = psql(server, "-At", *(part for one in script for part in ("-c", one)))
    lines = ["CREATE TABLE", "INSERT 0 2", "CREATE MATERIALIZED VIEW", "2|1", "BEGIN", "DELETE 1", "1|0", "ROLLBACK"]
    assert ran.stdout.splitlines() == lines, ran.stderr
    assert 'invalid input syntax for type integer: "one"' in ran.stderr
    assert "LINE 1: SELECT b FROM t WHERE a = 'one'\n                                  ^" in ran.stderr
    assert ran.returncode == 1


def test_whoever_has_no_password_does_not_get_in(server: Server, tmp_path: Path) -> None:
    assert server.credentials.path.stat().st_mode & 0o777 == 0o600
    (wrong := tmp_path / "wrong").write_text("*:*:*:*:nothing\n")
    wrong.chmod(0o600)
    ran = psql(server, "-c", "SELECT 1", password_file=wrong)
    assert ran.returncode == 2
    assert "password authentication failed" in ran.stderr
    assert password_of(server) not in repr(server.credentials)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(dsn(server).replace(f"user={server.credentials.user}", "user=mallory"))


def test_psycopg_reads_writes_and_commits(server: Server) -> None:
    with psycopg.connect(dsn(server)) as connection:
        connection.execute("SELECT 1")
        connection.rollback()
        connection.autocommit = True
        connection.execute(TABLE)
        connection.autocommit = False
        moment = datetime(2021, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
        values = (1, Decimal("3.25"), "äöü", moment)
        assert connection.execute("INSERT INTO t VALUES (%s, %s, %s, %s) RETURNING *", values).fetchone() == values
        connection.commit()
        connection.execute("DELETE FROM t")
        connection.rollback()
        for binary in (False, True):
            found = connection.execute("SELECT * FROM t WHERE a = ANY(%s)", ([1, 2],), binary=binary).fetchall()
            assert found == [values]
        with connection.pipeline():
            first, second = connection.execute("SELECT 1"), connection.execute("SELECT count(*) FROM t")
        assert (first.fetchone(), second.fetchone()) == ((1,), (1,))
        with pytest.raises(psycopg.errors.UniqueViolation) as twice, connection.transaction():
            connection.execute("INSERT INTO t (a) VALUES (1)")
        diag = twice.value.diag
        assert (diag.schema_name, diag.table_name, diag.constraint_name) == ("public", "t", "t_pkey")
        with pytest.raises(psycopg.errors.NotNullViolation) as null, connection.transaction():
            connection.execute("INSERT INTO t (a) VALUES (NULL)")
        assert (null.value.diag.table_name, null.value.diag.column_name) == ("t", "a")
        with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
            connection.execute("SELECT nope FROM t")
        assert caught.value.diag.statement_position == "8"
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        for _ in range(7):  # psycopg prepares what is executed again and again
            assert connection.execute("SELECT a + %s FROM t", (1,)).fetchone() == (2,)
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t (a, c) VALUES (%s, %s)", [(10, "x"), (11, None)])
        connection.commit()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_psycopg_is_as_well_served_asynchronously(served: Server) -> None:
    async def work() -> list[object]:
        async with await psycopg.AsyncConnection.connect(dsn(served)) as connection:
            await connection.execute("CREATE TABLE later (a integer PRIMARY KEY, b text)")
            async with connection.pipeline():
                for n in range(3):
                    await connection.execute("INSERT INTO later VALUES (%s, %s)", [n, str(n)])
            async with connection.cursor() as cursor, cursor.copy("COPY later FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "text"])
                await copy.write_row((3, None))
            async with connection.cursor("large", binary=True) as cursor:
                await cursor.execute("SELECT * FROM later ORDER BY a DESC")
                first = await cursor.fetchmany(2)
                return [
                    *first,
                    *await cursor.fetchall(),
                    *[row async for row in connection.cursor().stream("SELECT 7")],
                ]

    assert asyncio.run(work()) == [(3, None), (2, "2"), (1, "1"), (0, "0"), (7,)]


def test_values_of_enumerations_are_parameters(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        connection.execute("CREATE TABLE t (a integer, m mood, ms mood[])")
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute("INSERT INTO t VALUES (1, %s, %s)", ("ok", ["ok", "sad"]))
            for asked, values in (
                ("m = %s", ("ok",)),
                ("m = ANY(%s)", (["ok", "sad"],)),
                ("m IN (%s, %s)", ("ok", "sad")),
                ("m > %b::mood", ("sad",)),
                ("%s = ANY(ms)", ("sad",)),
            ):
                found = cursor.execute(f"SELECT m, ms FROM t WHERE {asked}".encode(), values).fetchall()
                assert found == [("ok", ["ok", "sad"])], asked
            cursor.execute("UPDATE t SET m = %s WHERE m = %s", ("sad", "ok"))
            assert cursor.execute("DELETE FROM t WHERE m = %s", ("sad",)).rowcount == 1
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT m FROM t WHERE m = %s", ("glad",))


def test_what_a_session_has_kept_can_be_discarded(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True, prepare_threshold=0) as connection:
        connection.prepared_max = 2  # psycopg deallocates those beyond
        for number in range(5):
            assert connection.execute(f"SELECT {number} + %s", (1,)).fetchone() == (number + 1,)
        for what in ("all", "nothing"):
            with pytest.raises(psycopg.errors.InvalidSqlStatementName):
                connection.execute(f'DEALLOCATE PREPARE "{what}"')
        connection.execute("CREATE TEMPORARY TABLE mine (a integer)")
        connection.execute("SET timezone = 'Europe/Berlin'")
        connection.execute("SET application_name = 'x'")
        assert str(connection.info.timezone) == "Europe/Berlin"
        assert connection.info.parameter_status("application_name") == "x"
        connection.execute("DISCARD ALL")
        assert str(connection.info.timezone) == "UTC"
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("TABLE mine")
        with connection.transaction(), pytest.raises(psycopg.errors.ActiveSqlTransaction), connection.transaction():
            connection.execute("DISCARD ALL")


def test_two_writers_of_what_both_have_read_are_told_apart_by_40001(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as one, psycopg.connect(dsn(server)) as other:
        one.execute(TABLE)
        other.execute("SELECT count(*) FROM t")
        one.execute("INSERT INTO t (a) VALUES (1)")
        other.execute("INSERT INTO t (a) VALUES (2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.commit()


def test_asyncpg_learns_types_of_parameters_before_their_values(server: Server) -> None:
    async def use() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=server.port,
            user=server.credentials.user,
            password=password_of(server),
            database="shop",
            ssl=False,
            timeout=30,
        )
        try:
            await connection.execute(TABLE)
            moment = datetime(2022, 1, 1, tzinfo=UTC)
            await connection.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", 1, Decimal("1.55"), None, moment)
            assert await connection.fetchval(
                "SELECT b FROM t WHERE a = $1 AND d > $2", 1, datetime(2021, 1, 1, tzinfo=UTC)
            ) == Decimal("1.55")
            async with connection.transaction():
                await connection.execute("UPDATE t SET b = b + $1 WHERE a = $2", Decimal("0.45"), 1)
                assert await connection.fetchval("SELECT b FROM t") == Decimal("2.00")
            many = [(n, Decimal(n), str(n)) for n in range(10, 20)]
            await connection.executemany("INSERT INTO t VALUES ($1, $2, $3, now())", many)
            found = await connection.fetch(
                "SELECT a FROM t WHERE c BETWEEN $1 AND $2 ORDER BY a LIMIT $3", "12", "18", 3
            )
            assert [one["a"] for one in found] == [12, 13, 14]
            async with connection.transaction():
                cursor = connection.cursor("SELECT a FROM t ORDER BY a", prefetch=2)
                assert [one["a"] async for one in cursor] == [1, *range(10, 20)]
            values = await connection.fetchrow(
                "SELECT $1::date, $2::uuid, $3::bytea, $4::float8, $5::boolean",
                date(2020, 1, 1),
                UUID(int=7),
                b"\0",
                0.5,
                True,
            )
            assert tuple(values) == (date(2020, 1, 1), UUID(int=7), b"\0", 0.5, True)
            with pytest.raises(asyncpg.UniqueViolationError):
                await connection.execute("INSERT INTO t (a) VALUES ($1)", 1)
        finally:
            await connection.close()

    asyncio.run(use())


def test_asyncpg_learns_what_arrays_are_made_of_as_of_postgresql(server: Server, postgres: Postgres) -> None:
    where = {"host": "127.0.0.1", "port": server.port, "user": server.credentials.user, "database": "shop"}
    arrays = [
        ("integer[]", [1, None]), ("integer[]", [[1, 2], [3, 4]]), ("text[]", ["a", None, ""]),
        ("uuid[]", [UUID(int=7)]), ("numeric[]", [Decimal("1.50"), None]), ("bytea[]", [b"\0"]),
        ("timestamptz[]", [datetime(2022, 1, 1, tzinfo=UTC)]), ("date[]", [date(2020, 1, 1)]),
        ("double precision[]", [0.5]), ("boolean[]", []), ("bigint[]", None),
    ]  # fmt: skip

    async def use() -> None:
        theirs = await asyncpg.connect(host=str(postgres.socket_dir), user=postgres.user, database=postgres.database)
        ours = await asyncpg.connect(**where, password=password_of(server), ssl=False, timeout=30)
        try:
            ids = await theirs.fetch(
                "SELECT oid::int8 AS id, typname FROM pg_type WHERE oid IN (1007, 1009, 1231, 23, 19)"
            )
            for question in (INTRO_LOOKUP_TYPES, INTRO_LOOKUP_TYPES_13):
                asked = [one["id"] for one in ids]
                told, expected = [await one.fetch(question, asked) for one in (ours, theirs)]
                assert {tuple(one.items()) for one in told} == {tuple(one.items()) for one in expected}
            async with ours.transaction():
                await ours.execute("CREATE TABLE a (id integer, ids integer[])")
                await ours.execute("INSERT INTO a VALUES ($1, $2), ($3, NULL)", 1, [5, None], 2)
                assert await ours.fetch("SELECT id, ids FROM a WHERE id = ANY($1)", [1, 7]) == [(1, [5, None])]
                for type_, value in arrays:
                    assert await ours.fetchval(f"SELECT $1::{type_}", value) == value
            await ours.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await ours.execute("CREATE TABLE moods (m mood, ms mood[])")
            await ours.execute("INSERT INTO moods VALUES ($1, '{ok,sad}')", "ok")
            assert await ours.fetch("SELECT m, ms FROM moods WHERE m = $1", "ok") == [("ok", ["ok", "sad"])]
        finally:
            await ours.close()
            await theirs.close()

    asyncio.run(use())


def test_a_pool_of_asyncpg_resets_what_it_gets_back(server: Server) -> None:
    async def use() -> None:
        where = {"host": "127.0.0.1", "port": server.port, "user": server.credentials.user, "ssl": False}
        async with asyncpg.create_pool(
            **where, password=password_of(server), database="shop", min_size=1, max_size=1
        ) as pool:
            async with pool.acquire() as connection:
                await connection.execute("SET timezone = 'Europe/Berlin'")
                async with connection.transaction(isolation="repeatable_read"):
                    await connection.execute("CREATE TABLE t (a integer, b text)")
                    await connection.copy_records_to_table("t", records=[(1, "x"), (2, None)])
                async with connection.transaction(isolation="serializable", readonly=True):
                    assert await connection.fetchval("SELECT count(*) FROM t") == 2
            assert await pool.fetchval("SHOW timezone") == "UTC"

    asyncio.run(use())


def test_a_query_ends_when_it_is_cancelled_or_its_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[reads]\nas_of_deadline = '2 h'\n")
    with open_server(tmp_path) as server, psycopg.connect(dsn(server), autocommit=True) as connection:
        connection.execute(TABLE)
        waiting = f"SELECT * FROM t AS OF {time.time_ns() // 1_000_000 + 3_600_000}"
        with subprocess.Popen(
            psql_command(server, "-c", waiting), env=environment(server), stderr=-1, text=True
        ) as ran:
            until = time.monotonic() + 30
            while not any(one.cancellation._thread for one in server.backends()) and time.monotonic() < until:
                time.sleep(0.05)
            ran.send_signal(signal.SIGINT)  # psql asks for it on a connection of its own
            assert "canceling statement due to user request" in ran.communicate(timeout=30)[1]
        connection.execute("SET statement_timeout = '200 ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute(waiting.encode())
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("RESET statement_timeout")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_a_client_ends_what_others_do_by_their_process_ids(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[reads]\nas_of_deadline = '2 h'\n")
    with (
        open_server(tmp_path) as server,
        psycopg.connect(dsn(server), autocommit=True) as connection,
        psycopg.connect(dsn(server), autocommit=True, application_name="waits") as other,
        ThreadPoolExecutor(1) as pool,
    ):
        connection.execute(TABLE)
        waiting = pool.submit(
            other.execute, f"SELECT * FROM t AS OF {time.time_ns() // 1_000_000 + 3_600_000}".encode()
        )
        until = time.monotonic() + 30
        while sum(one.cancellation._thread is not None for one in server.backends()) == 0:
            assert time.monotonic() < until
            time.sleep(0.02)
        told = connection.execute("SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity "
                                  "WHERE application_name = %s", ("waits",))  # fmt: skip
        assert (told.description or [])[0].name == "done"
        assert told.fetchall() == [(True,)]
        with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
            waiting.result(timeout=30)
        assert other.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_cancel_backend(pg_backend_pid())")
        known = (
            "SELECT pg_cancel_backend(-1)",
            "SELECT pg_terminate_backend(NULL) c",
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = '2147483647'",
        )
        assert [connection.execute(one.encode()).fetchall() for one in known] == [[(False,)], [(None,)], []]
        connection.execute("CREATE USER ann PASSWORD 'one'")
        with psycopg.connect(dsn(server), user="ann", password="one", autocommit=True) as ann:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to terminate"):
                ann.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
            with psycopg.connect(dsn(server), user="ann", password="one") as own:
                assert ann.execute("SELECT pg_terminate_backend(%s)", (own.info.backend_pid,)).fetchall() == [(True,)]
                with pytest.raises(psycopg.OperationalError):
                    own.execute("SELECT 1")
        for refused in ("SELECT a, pg_cancel_backend(1) FROM t", "SELECT pg_cancel_backend(1) + 1"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="pg_cancel_backend"):
                connection.execute(refused.encode())
        connection.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")


def test_there_may_be_so_many_clients_and_no_more(tmp_path: Path) -> None:
    with open_server(tmp_path, connections=1) as server, psycopg.connect(dsn(server)) as first:
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(dsn(server))
        first.close()
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(dsn(server)).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < until
                time.sleep(0.05)


def test_beyond_this_machine_it_listens_with_tls_only(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="no certificate"), open_server(tmp_path, host="0.0.0.0"):
        pass
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subject = ("-days", "2", "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject],
        check=True,
        capture_output=True,
        timeout=60,
    )
    with open_server(tmp_path, host="0.0.0.0", certificate=(certificate, key)) as server:
        with psycopg.connect(f"{dsn(server)} sslmode=require") as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="TLS only"):
            psycopg.connect(f"{dsn(server)} sslmode=disable")


def raw(server: Server, *parts: bytes) -> bytes:
    """Returns what the server answers to bytes, until it closes or falls silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        for one in parts:
            client.sendall(one)
        client.shutdown(socket.SHUT_WR)
        found = b""
        while data := client.recv(65_536):
            found += data
        return found


def startup(**parameters: str) -> bytes:
    body = struct.pack("!i", 196_608) + b"".join(f"{key}\0{value}\0".encode() for key, value in parameters.items())
    return struct.pack("!i", len(body) + 5) + body + b"\0"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 64,
        b"\xff" * 5000,
        struct.pack("!ii", 8, 196_608),
        startup(user="x") + b"Q\0\0\0\x0dSELECT 1\0",
        startup(user="x") + b"p\0\0\0\x04",
        startup(user="x") + b"p" + struct.pack("!i", 2**30),
        startup(database="x"),
    ],
    ids=range(9),
)
def test_whatever_is_sent_instead_of_a_password_opens_nothing(server: Server, sent: bytes) -> None:
    answer = raw(server, sent)
    assert b"Z" not in answer[:1]
    assert b"server_version" not in answer
    with psycopg.connect(dsn(server)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("nothing", [";", "-- is anybody there?", " ; ; ", ""])
def test_nothing_is_a_statement_too(served: Server, nothing: str) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as connection:
        assert connection.execute(nothing.encode()).description is None
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_system_catalogs_are_found_whatever_the_search_path_is(served: Server) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as connection:
        connection.execute("SET search_path = elsewhere")
        assert connection.execute("SELECT typname FROM pg_type WHERE oid = 23").fetchone() == ("int4",)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT 1 FROM tables")


def test_a_prepared_statement_means_what_its_names_stand_for_now(server: Server) -> None:
    """Whatever is defined or set between two executions of it, by whichever session."""
    with (
        psycopg.connect(dsn(server), autocommit=True, prepare_threshold=0) as one,
        psycopg.connect(dsn(server), autocommit=True) as other,
    ):
        other.execute("CREATE TABLE points (id integer PRIMARY KEY, name text)")
        other.execute("INSERT INTO points VALUES (1, 'one'), (2, 'two')")
        lookup = "SELECT * FROM points WHERE id = %s"
        for id in (1, 2, "1", "2", 2**40):  # smallint, what its context says, and bigint
            for _ in range(2):
                found = one.execute(lookup, (id,)).fetchall()
                assert found == [row for row in ((1, "one"), (2, "two")) if row[0] == int(id)]
        other.execute("ALTER TABLE points ADD COLUMN more integer DEFAULT 7")
        cursor = one.execute(lookup, (1,))
        assert [column.name for column in cursor.description or ()] == ["id", "name", "more"]
        assert cursor.fetchall() == [(1, "one", 7)]
        other.execute("CREATE SCHEMA elsewhere")
        other.execute("CREATE TABLE elsewhere.points (id text PRIMARY KEY)")
        other.execute("INSERT INTO elsewhere.points VALUES ('1')")
        one.execute("SET search_path TO elsewhere")
        assert one.execute(lookup, ("1",)).fetchall() == [("1",)]
        with pytest.raises(psycopg.errors.UndefinedFunction):
            one.execute(lookup, (1,))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            other.execute(lookup, ("x",))
