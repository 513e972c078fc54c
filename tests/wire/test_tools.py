"""What BI tools and database browsers ask is answered as by PostgreSQL, or by an error that says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn
from tests.wire.tool_questions import SCHEMA, TOOLS

Connection = psycopg.Connection[Any]

#: What is refused, with its SQLSTATE: nothing is answered that is not so.
REFUSED = {
    ("pgAdmin", "user"): "0A000",  # WITH RECURSIVE
    ("pgAdmin", "recovery"): "42883",  # pg_is_wal_replay_paused()
    ("pgAdmin", "encryption"): "0A000",  # pg_stat_ssl
    ("pgAdmin", "dashboard"): "0A000",  # pg_stat_database
}
#: What is told otherwise, and is so here: rows of ours that PostgreSQL does not have, and the reverse.
OTHERWISE: dict[tuple[str, str], tuple[set[Any], set[Any]]] = {
    # Views have columns that are never NULL.
    ("Metabase", "fields"): (
        {("id", "int8", 0, "sales", "big", False, None, True, False)}
        | {("amount", "numeric", 1, "sales", "big", False, None, True, False)},
        {("id", "int8", 0, "sales", "big", False, None, False, False)}
        | {("amount", "numeric", 1, "sales", "big", False, None, False, False)},
    ),
    # No schema has the name of who asks.
    ("DBeaver", "search path"): ({("public",)}, {('"$user", public',)}),
    # What PostgreSQL brings along has no comments here.
    ("DBeaver", "schemas"): ({("public", None)}, {("public", "standard public schema")}),
    ("pgAdmin", "schemas"): ({("public", True, True, None)}, {("public", True, True, "standard public schema")}),
    ("DBeaver", "types"): (
        {("int4", None, None, None), ("text", None, None, None)},
        {("int4", None, None, "-2 billion to 2 billion integer, 4-byte storage")}
        | {("text", None, None, "variable-length string, no limit specified")},
    ),
    # A default is shown as it was written.
    ("DBeaver", "columns"): (
        {("orders", "note", 5, False, "", "'none'", "Said by the customer", True)},
        {("orders", "note", 5, False, "", "'none'::text", "Said by the customer", True)},
    ),
    ("DBeaver", "tablespaces"): (set(), {("pg_global",)}),
}


@pytest.fixture(scope="module")
def both(served: Server, postgres_server: Postgres) -> Iterator[tuple[Connection, Connection]]:
    with psycopg.connect(dsn(served), autocommit=True) as ours, postgres_server.new_database().connect() as theirs:
        for statement in SCHEMA:
            for one in (ours, theirs):
                one.execute(statement.encode())
        yield ours, theirs


def answers(connection: Connection, question: str) -> list[Any]:
    cursor = connection.execute(question.encode())
    found: list[Any] = []
    while True:
        found.append(cursor.statusmessage if cursor.description is None else cursor.fetchall())
        if not cursor.nextset():
            return found


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_answered(both: tuple[Connection, Connection], tool: str) -> None:
    ours, theirs = both
    for name, question in TOOLS[tool].items():
        where = f"{tool}: {name}"
        expected = answers(theirs, question)
        if (sqlstate := REFUSED.get((tool, name))) is not None:
            with pytest.raises(psycopg.Error) as refused:
                answers(ours, question)
            assert refused.value.sqlstate == sqlstate, where
            continue
        found = answers(ours, question)
        if (tool, name) not in OTHERWISE:
            assert found == expected, where
            continue
        ((ours_rows,), (their_rows,)) = found, expected
        assert (set(ours_rows) - set(their_rows), set(their_rows) - set(ours_rows)) == OTHERWISE[tool, name], where


def test_a_session_knows_its_process_and_who_else_is_there(served: Server) -> None:
    with (
        psycopg.connect(dsn(served), autocommit=True) as first,
        psycopg.connect(dsn(served), autocommit=True, application_name="another") as second,
    ):
        own = [one.execute("SELECT pg_backend_pid()").fetchall()[0][0] for one in (first, second)]
        assert own == [first.info.backend_pid, second.info.backend_pid]
        second.execute("BEGIN")
        asked = "SELECT pid, application_name, state, datname = current_database() FROM pg_stat_activity"
        told = {pid: rest for pid, *rest in first.execute(f"{asked} WHERE usename = current_user").fetchall()}
        assert told[own[0]] == ["", None, True]
        assert told[own[1]] == ["another", "idle in transaction", True]


def test_how_much_there_is_of_each_table(served: Server, both: tuple[Connection, Connection]) -> None:
    ours, _ = both
    assert ours.execute("SELECT count(*) FROM totals").fetchall() == [(1,)]
    counted = "SELECT relname, n_live_tup FROM pg_stat_user_tables ORDER BY 1"
    assert ours.execute(counted).fetchall() == [("customers", 1), ("orders", 2), ("totals", 1)]


def test_nobody_is_another_user(both: tuple[Connection, Connection]) -> None:
    ours, _ = both
    for statement in (
        "SET ROLE NONE",
        "RESET ROLE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "RESET SESSION AUTHORIZATION",
    ):
        assert answers(ours, statement) in (["SET"], ["RESET"])
    assert answers(ours, "SHOW role") == [[("none",)]]
    ((own,),) = ours.execute("SELECT current_user").fetchall()
    for statement in (f"SET ROLE '{own}'", f'SET SESSION ROLE "{own}"'):  # as Flyway ends a migration
        assert answers(ours, statement) == ["SET"]
    assert answers(ours, "SHOW role") == [[(own,)]]
    assert answers(ours, "RESET ROLE; SHOW role") == ["RESET", [("none",)]]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match='Connect as "somebody"'):
        ours.execute("SET ROLE somebody")
    for style in ("ISO", "'ISO, MDY'"):
        assert answers(ours, f"SET DateStyle = {style}") == ["SET"]
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        ours.execute("SET DateStyle = German")
