"""Clients of other languages: node's `pg` and pgjdbc, by a program each that prints a line for each thing it tries.

`make test` fetches them (`setup/clients.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn, password_of

PROGRAMS = Path(__file__).with_name("clients")
FETCHED = Path(__file__).resolve().parents[2] / ".make" / "clients"

#: What pgjdbc's questions are made of.
QUESTIONS = (
    "SELECT r.n, (r.keys).x, (r.keys).n FROM (SELECT (information_schema._pg_expandarray(conkey)).n, "
    "information_schema._pg_expandarray(conkey) AS keys FROM pg_constraint WHERE conname = 'named') r ORDER BY 1",
    "SELECT a.attname FROM pg_attribute a JOIN (SELECT indrelid, information_schema._pg_expandarray(indkey) AS keys "
    "FROM pg_index WHERE indisprimary) i ON a.attnum = (i.keys).x AND a.attrelid = i.indrelid "
    "WHERE a.attrelid = 'two'::regclass ORDER BY (i.keys).n",
    "SELECT typname FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typname IN ('_int4', 'int4', "
    "'_text', 'int2vector') ORDER BY 1",
    "SELECT typinput FROM pg_type WHERE typname = '_text'",
)

#: What pgjdbc finds out, of what it tries.
BY_JDBC = {
    "insert": "[1|1|2.50|x|1970-01-01 00:00:00+00|t|7|null|00000000-0000-0000-0000-000000000007|"
    r"\x0001|2020-01-02|0.5]",
    "array": "1",
    "batch": "[1, 1, 1, 1, 1]",
    "fetch size": "[1, 2, 3, 4, 5, 6]",
    "savepoint": "[6]",
    "level": "8",
    "tables": "[DATABASE|public|j|TABLE|null|||||, DATABASE|public|two|TABLE|null|||||]",
    "pk": "[DATABASE|public|j|id|1|j_pkey]",
    "keys of two": "[DATABASE|public|two|b|1|named, DATABASE|public|two|a|2|named]",
    "index": "[DATABASE|public|j|f|null|j_pkey|3|1|id|A|0|0|null|null]",
    "indexes of two": "[DATABASE|public|two|f|null|named|3|1|b|A|0|0|null|null, "
    "DATABASE|public|two|f|null|named|3|2|a|A|0|0|null|null, DATABASE|public|two|t|null|two_c|3|1|c|A|0|0|null|null]",
    "imported": "[]",
    "bestRow": "[0|id|4|int4|10|null|0|1]",
    "meta": "int42false",
    "copy": "9\tz",
    "valid": "true",
}


def lines_of(*command: str) -> list[str]:
    """Returns what a program prints."""
    environment = os.environ | {"NODE_PATH": str(FETCHED / "node_modules"), "TZ": "UTC"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.fixture(autouse=True)
def fetched() -> None:
    assert FETCHED.is_dir(), "make test fetches the clients: .venv/bin/python setup/clients.py"


def test_node_is_told_what_postgres_tells_it(server: Server, postgres: Postgres) -> None:
    ours = {"host": "127.0.0.1", "port": server.port, "user": server.credentials.user, "password": password_of(server)}
    theirs = {"host": str(postgres.socket_dir), "user": postgres.user, "password": "none is asked for"}
    program = str(PROGRAMS / "node_pg.js")
    found = lines_of("node", program, json.dumps({**ours, "database": "shop"}))
    assert found == lines_of("node", program, json.dumps({**theirs, "database": postgres.database}))
    assert len(found) == 13


def test_what_pgjdbc_asks_is_answered_as_by_postgres(server: Server, postgres: Postgres) -> None:
    with postgres.connect() as theirs, psycopg.connect(dsn(server), autocommit=True) as ours:
        for connection in (theirs, ours):
            connection.execute("CREATE TABLE two (a integer, b text, c integer, CONSTRAINT named PRIMARY KEY (b, a))")
        for question in QUESTIONS:
            assert ours.execute(question).fetchall() == theirs.execute(question).fetchall(), question


def test_pgjdbc_reads_writes_and_finds_out_what_there_is(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        connection.execute("CREATE TABLE two (a integer, b text, c integer, CONSTRAINT named PRIMARY KEY (b, a))")
        connection.execute("CREATE INDEX two_c ON two (c)")
        ((database,),) = connection.execute("SELECT current_database()").fetchall()
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/shop"
    jar, program = str(FETCHED / "postgresql.jar"), str(PROGRAMS / "Jdbc.java")
    lines = lines_of("java", "-cp", jar, program, url, server.credentials.user, password_of(server))
    assert [line[:14] for line in lines if not line.startswith("OK")] == ["ERR error 4270"]
    told = [line.replace(database, "DATABASE") for line in lines]
    for step, expected in BY_JDBC.items():
        assert f"OK  {step} {expected}" in told, (step, told)
    (columns,) = (line for line in told if line.startswith("OK  columns"))
    assert columns.count("DATABASE|public|j|") == 12
    assert "|id|4|serial|10|" in columns
    (types,) = (line for line in told if line.startswith("OK  typeInfo"))
    assert "bool|-7|" in types
