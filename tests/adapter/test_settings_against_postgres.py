"""Settings are set and shown as in PostgreSQL, or refused where another value would have to change something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.adapter.session_settings import SETTINGS
from mz_dagster.errors import Error, NotSupportedError
from tests.postgres_server import Postgres

#: Values of settings, right and wrong ones.
VALUES = {
    "statement_timeout": ("'5 s'", "1500", "'0.5min'", "0", "'2h'", "x", "'5 parsecs'", "-1", "DEFAULT"),
    "lock_timeout": ("'5s'", "10", "'1d'", "'10us'"),
    "client_min_messages": ("warning", "'ERROR'", "debug1", "loud"),
    "extra_float_digits": ("3", "2", "1", "x"),
    "bytea_output": ("hex",),
    "datestyle": ("ISO", "'ISO, MDY'"),
    "intervalstyle": ("postgres",),
    "application_name": ("'a b'", "word"),
    "row_security": ("off", "'yes'", "1", "maybe"),
    "transaction_read_only": ("off",),
    "default_transaction_read_only": ("on", "off"),
    "default_transaction_isolation": ("serializable", "'repeatable read'", "loose"),
    "standard_conforming_strings": ("on", "'true'"),
    "check_function_bodies": ("false", "on"),
    "synchronous_commit": ("off", "local", "remote_apply", "sometimes"),
    "work_mem": ("'64MB'", "65536", "'1 GB'", "1000", "'1.5GB'", "1", "'64mb'"),
    "jit": ("on", "off"),
    "enable_seqscan": ("off", "DEFAULT"),
    "max_parallel_workers_per_gather": ("0", "4", "-1"),
    "search_path": ("public", "public, other"),
    "nothing_known": ("1",),
    "shop.tenant": ("'a b'", "5", "'x'", "DEFAULT"),
    "is_superuser": ("DEFAULT",),
    "join_collapse_limit": ("1", "0", "DEFAULT"),
    "backslash_quote": ("safe_encoding",),
}


def _told(execute: Any, statements: Sequence[str], failure: type[Exception]) -> list[Any]:
    found: list[Any] = []
    for one in statements:
        try:
            cursor = execute(one)
            found.append(cursor.fetchall() if cursor.description else None)
        except failure as error:
            found.append(getattr(error, "sqlstate", None))
    return found


def test_settings_are_set_and_shown_as_in_postgres(sparkless: Connection, postgres: Postgres) -> None:
    different = []
    with postgres.new_database().connect() as connection:
        connection.autocommit = True
        for name, values in VALUES.items():
            ways = [[f"SET {name} = {value}", f"SHOW {name}", f"SELECT current_setting('{name}')"] for value in values]
            ways += [
                [f"SELECT set_config('{name}', '{value.strip(chr(39))}', false)", f"SHOW {name}"]
                for value in values
                if value != "DEFAULT"
            ]
            for statements in ways:
                wanted = _told(connection.execute, statements, psycopg.Error)
                found = _told(sparkless.execute, statements, Error)
                if found != wanted:
                    different.append(f"{statements}: {found}, in PostgreSQL {wanted}")
    assert not different, "\n".join(different)


#: What clients set for themselves, and how settings are called, one after the other.
OWN = (
    "SET my.var = 'x'",
    "SELECT current_setting('My.Var') || 'y'",
    "SET my.var = 'z'",
    "SELECT current_setting('my.var')",
    "RESET my.var",
    "SHOW my.var",
    "SELECT current_setting('your.var', true)",
    "SELECT current_setting('your.var')",
    "SHOW your.var",
    "SELECT set_config('your.var', 'y', false)",
    "SELECT set_config('work_mem', '1MB', false) AS a, pg_catalog.set_config('work_mem' , (SELECT '3MB'), false) , "
    "set_config('search_path', 'public', false) b WHERE 1 < 2",
    "SHOW work_mem",
    "SELECT set_config('work_mem', '1MB', false), set_config('jit', 'off')",
    "BEGIN",
    "SET LOCAL third.var = '1'",
    "SHOW third.var",
    "COMMIT",
    "SHOW third.var",
    "BEGIN",
    "SET your.var = 'inner'",
    "ROLLBACK",
    "SHOW your.var",
    "RESET ALL",
    "SHOW your.var",
    "SET a.b.c = 1",
    "SHOW a.b.c",
    "SET NAMES 'UTF8'",
    "SHOW is_superuser",
    "SHOW timezone",
    "SHOW datestyle",
    "SELECT name, setting FROM pg_settings WHERE name IN ('TimeZone', 'IntervalStyle', 'my.var', 'timezone')",
)


def test_settings_of_a_client_s_own_are_kept_for_it(sparkless: Connection, postgres: Postgres) -> None:
    def told(execute: Any, failure: type[Exception]) -> list[Any]:
        found: list[Any] = []
        for one in OWN:
            try:
                cursor = execute(one)
                found.append((one, cursor.description and [cursor.description[0][0], cursor.fetchall()]))
            except failure as error:
                found.append((one, getattr(error, "sqlstate", None)))
        return found

    with postgres.new_database().connect() as connection:
        connection.autocommit = True
        wanted = told(connection.execute, psycopg.Error)
    assert told(sparkless.execute, Error) == wanted


def test_what_is_described_of_all_settings_is_what_they_are_shown_in(sparkless: Connection) -> None:
    shown = sparkless.execute("SHOW ALL")
    assert shown.description is not None
    described = sparkless.describe("SHOW ALL")
    assert described is not None
    assert [one.name for one in described] == [one[0] for one in shown.description]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("bytea_output", "escape"), ("datestyle", "German"), ("intervalstyle", "iso_8601")),
        *(
            ("standard_conforming_strings", "off"),
            ("client_encoding", "latin1"),
            ("session_replication_role", "replica"),
        ),
        *(("idle_session_timeout", "5s"), ("idle_in_transaction_session_timeout", "5s")),
    ],
)
def test_a_setting_that_is_as_it_is_takes_no_other_value(sparkless: Connection, name: str, value: str) -> None:
    for statement in (f"SET {name} = '{value}'", f"SELECT set_config('{name}', '{value}', false)"):
        with pytest.raises(NotSupportedError, match=name):
            sparkless.execute(statement)
    assert sparkless.execute(f"SHOW {name}").fetchall() == [(SETTINGS[name].default,)]


def test_what_is_set_for_a_transaction_ends_with_it(sparkless: Connection) -> None:
    for end, before in (("ROLLBACK", "0"), ("COMMIT", "0")):
        sparkless.execute("SET work_mem = '8MB'")
        sparkless.execute("BEGIN")
        sparkless.execute("SET LOCAL work_mem = '16MB'")
        assert sparkless.execute("SHOW work_mem").fetchall() == [("16MB",)]
        assert sparkless.execute("SELECT set_config('search_path', 'other', true) AS path").fetchall() == [("other",)]
        sparkless.execute("SET LOCAL lock_timeout = 7")
        sparkless.execute("SET lock_timeout = 8")
        sparkless.execute(end)
        assert sparkless.execute("SHOW work_mem").fetchall() == [("8MB",)]
        assert sparkless.execute("SHOW search_path").fetchall() == [("public",)]
        assert sparkless.execute("SHOW lock_timeout").fetchall() == [("8ms" if end == "COMMIT" else before,)]
    sparkless.execute("SET LOCAL work_mem = '16MB'")
    assert sparkless.execute("SHOW work_mem").fetchall() == [("8MB",)]


def test_what_is_set_after_a_savepoint_is_undone_with_it(sparkless: Connection, postgres: Postgres) -> None:
    statements = (
        "BEGIN", "SET work_mem = '8MB'", "SAVEPOINT a", "SET work_mem = '9MB'", "SET LOCAL lock_timeout = 5",
        "SAVEPOINT b", "SET work_mem = '10MB'", "SHOW work_mem", "ROLLBACK TO b", "SHOW work_mem", "SAVEPOINT a",
        "SET work_mem = '11MB'", "ROLLBACK TO a", "SHOW work_mem", "RELEASE a", "SET work_mem = '12MB'",
        "ROLLBACK TO a", "SHOW work_mem", "SHOW lock_timeout", "COMMIT", "SHOW work_mem", "SHOW lock_timeout",
    )  # fmt: skip
    with postgres.new_database().connect() as connection:
        connection.autocommit = True
        wanted = _told(connection.execute, statements, psycopg.Error)
    assert _told(sparkless.execute, statements, Error) == wanted


def test_all_settings_are_listed_with_what_they_are(sparkless: Connection) -> None:
    sparkless.execute("SET work_mem = '64MB'")
    shown = sparkless.execute("SHOW ALL").fetchall()
    assert {name.lower() for name, _, _ in shown} == set(SETTINGS)
    assert all(about for _, _, about in shown)
    listed = sparkless.execute(
        "SELECT name, setting, unit, vartype, boot_val, short_desc <> '' FROM pg_settings WHERE name LIKE '%work_mem'"
    )
    assert sorted(listed.fetchall()) == [
        ("maintenance_work_mem", "65536", "kB", "integer", "65536", True),
        ("work_mem", "65536", "kB", "integer", "4096", True),
    ]
    rows = sparkless.execute(
        "SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('jit', 'row_security')"
    )
    assert rows.fetchall() == [("off",), ("off",)]
