"""What statements tell beside their results reaches clients, programs and people, as PostgreSQL tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn

#: Executed one after the other.
STATEMENTS = (
    "CREATE TABLE t (a int, b int)",
    "CREATE TABLE IF NOT EXISTS t (a int)",
    "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a",
    "CREATE INDEX i ON t (a)",
    "CREATE INDEX IF NOT EXISTS i ON t (a)",
    "CREATE VIEW v AS SELECT a FROM t",
    "CREATE VIEW w AS SELECT a FROM v",
    "CREATE MATERIALIZED VIEW m AS SELECT a FROM w",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT a FROM w",
    "CREATE SCHEMA s",
    "CREATE SCHEMA IF NOT EXISTS s",
    "CREATE TABLE s.x (a int)",
    "CREATE TYPE e AS ENUM ('a')",
    "ALTER TYPE e ADD VALUE IF NOT EXISTS 'a'",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a int",
    "ALTER TABLE t DROP COLUMN IF EXISTS c",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS c",
    "ALTER TABLE IF EXISTS nothing ADD COLUMN c int",
    *(
        f"DROP {kind} IF EXISTS nothing"
        for kind in ("TABLE", "VIEW", "MATERIALIZED VIEW", "INDEX", "SCHEMA", "TYPE", "ROLE")
    ),
    "DROP TABLE IF EXISTS s.nothing, nothing",
    "DROP MATERIALIZED VIEW m CASCADE",
    "DROP VIEW v CASCADE",
    "CREATE VIEW v AS SELECT a FROM t",
    "CREATE VIEW w AS SELECT a FROM v",
    "DROP TABLE t CASCADE",
    "DROP SCHEMA s CASCADE",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "BEGIN",
    "SET LOCAL work_mem = '1MB'",
    "COMMIT",
    "SET LOCAL work_mem = '1MB'",
    "BEGIN; SET CONSTRAINTS ALL DEFERRED; COMMIT",
    "SET CONSTRAINTS ALL IMMEDIATE",
    "SET client_min_messages = warning",
    "DROP TABLE IF EXISTS nothing",
    "COMMIT",
    "SET client_min_messages = error",
    "COMMIT",
    "RESET client_min_messages",
    "DROP TABLE IF EXISTS nothing; SELECT 1 / 0",
)


def _told(client: psycopg.Connection[Any]) -> Iterator[tuple[Any, ...]]:
    told: list[tuple[Any, ...]] = []
    client.add_notice_handler(
        lambda one: told.append((one.severity, one.sqlstate, one.message_primary, one.message_detail))
    )
    for statement in STATEMENTS:
        try:
            client.execute(statement.encode())
        except psycopg.Error as error:
            told.append((error.sqlstate,))
        yield statement, *told
        told.clear()


def test_clients_are_told_what_postgres_tells(served: Server, postgres: Postgres) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as ours, postgres.new_database().connect() as theirs:
        theirs.autocommit = True
        different = [
            f"{found}, in PostgreSQL {wanted}"
            for found, wanted in zip(_told(ours), _told(theirs), strict=True)
            if found != wanted
        ]
    assert not different, "\n".join(different)


def test_extended_queries_are_told_too(served: Server) -> None:
    told: list[str | None] = []
    with psycopg.connect(dsn(served), autocommit=True) as client:
        client.add_notice_handler(lambda one: told.append(one.message_primary))
        with client.pipeline():
            client.execute("DROP TABLE IF EXISTS one")
            client.execute("DROP TABLE IF EXISTS two", prepare=True)
    assert told == ['table "one" does not exist, skipping', 'table "two" does not exist, skipping']
