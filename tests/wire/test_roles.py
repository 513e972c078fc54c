r"""Roles over the wire: each may do what it was granted, and nothing else; PostgreSQL is asked the same."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.passwords import Verifier, verifier_text
from mz_dagster.catalog import Catalog
from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn, open_server
from tests.wire.test_clients import psql

Client = psycopg.Connection[tuple[Any, ...]]

SETUP = (
    "CREATE TABLE t (a integer PRIMARY KEY, b integer)",
    "CREATE TABLE u (a integer)",
    "CREATE VIEW v AS SELECT a FROM t WHERE a > 1",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t",
    "CREATE VIEW over_v AS SELECT * FROM v",
    "CREATE SCHEMA s",
    "CREATE TABLE s.w (a integer)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
    "REFRESH MATERIALIZED VIEW m",
)
ROLES = ("reader", "writer", "viewer", "nobody", "most", "heir")
GRANTS = (
    "GRANT SELECT ON t, m TO reader",
    "GRANT INSERT, UPDATE, DELETE ON TABLE t TO writer",
    "GRANT SELECT ON over_v TO viewer",
    "GRANT ALL PRIVILEGES ON ALL TABLES IN SCHEMA public TO most",
    "GRANT USAGE ON SCHEMA s TO reader, writer, viewer, nobody, most",
    "GRANT SELECT ON s.w TO PUBLIC",
    "REVOKE DELETE ON t FROM most",
    "GRANT reader, most TO writer, viewer",  # what is taken back below
    "REVOKE reader, most FROM writer, viewer",
    "GRANT writer TO most",
    "GRANT viewer, reader TO heir",
    "GRANT viewer TO nobody",
    "REVOKE viewer FROM nobody",
    "GRANT reader TO viewer",
    "REVOKE reader FROM nobody",
)
STATEMENTS = (
    "SELECT a FROM t",
    "SELECT n FROM m",
    "SELECT a FROM v",
    "SELECT a FROM over_v",
    "SELECT count(*) FROM s.w",
    "SELECT 1 WHERE EXISTS (SELECT FROM t)",
    "WITH x AS (SELECT a FROM t) SELECT 1 FROM x",
    "SELECT u.a FROM u JOIN t ON u.a = t.a",
    "INSERT INTO t VALUES (7, 7)",
    "INSERT INTO t VALUES (7, 7) RETURNING a",
    "INSERT INTO t VALUES (7, 7) RETURNING 1",
    "INSERT INTO t VALUES (7, 7) RETURNING *",
    "INSERT INTO t SELECT a + 100, a FROM u",
    "INSERT INTO t SELECT a + 100, b FROM t",
    "INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = 5",
    "UPDATE t SET b = 1",
    "UPDATE t SET b = b + 1",
    "UPDATE t SET b = 1 WHERE a = 1",
    "UPDATE t SET b = 1 FROM u",
    "UPDATE t SET b = 1 RETURNING b",
    "UPDATE t SET b = 1 RETURNING 1",
    "UPDATE t SET b = 1 RETURNING *",
    "UPDATE t SET b = 1 WHERE EXISTS (SELECT FROM t)",
    "UPDATE t AS x SET b = 1 WHERE EXISTS (SELECT FROM t)",
    "UPDATE t AS x SET b = 1 WHERE x.a > 1",
    "UPDATE t SET b = 1 FROM t AS other",
    "UPDATE t SET b = (SELECT 1)",
    "DELETE FROM t WHERE t IS NOT NULL",
    'DELETE FROM t WHERE "a" = 1',
    "DELETE FROM t AS x WHERE A = 1",
    "UPDATE t SET b = (SELECT max(a) FROM public.t)",
    "WITH x AS (SELECT 1 AS one FROM t) DELETE FROM t USING x",
    "DELETE FROM t",
    "DELETE FROM t WHERE a = 1",
    "DELETE FROM t WHERE true",
    "DELETE FROM t USING u",
    "DELETE FROM t RETURNING 1",
    "TRUNCATE t",
    "EXPLAIN SELECT a FROM t",
    "COPY t TO STDOUT",
    "COPY (SELECT a FROM t) TO STDOUT",
    "DECLARE c CURSOR FOR SELECT a FROM t",
    "CREATE TABLE public.made (a integer)",
    "CREATE VIEW public.made AS SELECT 1 AS one",
    "DROP TABLE u",
    "DROP VIEW over_v",
    "ALTER TABLE t ADD COLUMN c integer",
    "CREATE INDEX i ON t (b)",
    "REFRESH MATERIALIZED VIEW m",
    "COPY t FROM '/etc/hostname' (FORMAT CSV)",
    "COPY t TO '/tmp/written'",
    "CREATE ROLE another",
    "DROP ROLE reader",
    "SELECT rolpassword FROM pg_authid",
    "SELECT passwd FROM pg_shadow",
    "SELECT count(*) > 0 FROM pg_roles",
    "SELECT current_user, session_user, user",
    "SELECT DISTINCT application_name, client_addr, backend_start, state, query FROM pg_stat_activity "
    "WHERE usename <> current_user",
    "SELECT has_table_privilege('t', 'SELECT'), has_table_privilege('t', 'INSERT, DELETE'), "
    "has_table_privilege('m', 'SELECT WITH GRANT OPTION'), has_table_privilege('reader', 't', 'SELECT'), "
    "has_any_column_privilege('over_v', 'SELECT'), has_table_privilege('t', 'TRUNCATE'), "
    "has_table_privilege('s.w', 'SELECT'), has_schema_privilege('s', 'USAGE'), "
    "has_schema_privilege('public', 'CREATE')",
    "SELECT pg_has_role('reader', 'USAGE'), pg_has_role(current_user, 'MEMBER'), pg_has_role('viewer', 'MEMBER'), "
    "pg_has_role('heir', 'reader', 'USAGE'), pg_has_role('reader', 'MEMBER WITH ADMIN OPTION')",
    "SELECT r.rolname, m.rolname, admin_option FROM pg_auth_members JOIN pg_roles r ON r.oid = roleid "
    "JOIN pg_roles m ON m.oid = member WHERE r.rolname NOT LIKE 'pg\\_%' ORDER BY 1, 2",
    "SELECT role_name FROM information_schema.enabled_roles ORDER BY 1",
    "SELECT grantee, role_name, is_grantable FROM information_schema.applicable_roles ORDER BY 1, 2",
    "GRANT reader TO nobody",
    "SELECT grantee, table_schema, table_name, privilege_type, is_grantable, with_hierarchy "
    "FROM information_schema.table_privileges WHERE table_schema IN ('public', 's') AND table_name <> 'm' "
    "ORDER BY 1, 2, 3, 4",
    "SELECT count(*) FROM information_schema.role_table_grants WHERE table_schema = 's'",
)  # fmt: skip


def outcome(client: Client, statement: str) -> object:
    """Returns what a statement returns, or the SQLSTATE of its error; nothing of it stays."""
    try:
        with client.transaction(force_rollback=True):
            if statement.startswith("COPY") and "STDOUT" in statement:
                with client.cursor() as cursor, cursor.copy(statement) as copy:
                    return b"".join(copy)
            cursor = client.execute(statement)
            if statement.startswith("EXPLAIN"):
                return "a plan"
            return cursor.fetchall() if cursor.description else cursor.statusmessage
    except psycopg.Error as error:
        return error.sqlstate


@contextmanager
def connected(server: Server, user: str, password: str) -> Iterator[Client]:
    text = f"host=127.0.0.1 port={server.port} user={user} dbname=shop password={password} connect_timeout=30"
    with psycopg.connect(text, autocommit=True) as client:
        yield client


def test_each_role_may_do_what_it_may_in_postgres(postgres: Postgres, server: Server) -> None:
    with postgres.connect() as theirs, psycopg.connect(dsn(server), autocommit=True) as ours:
        for client in (theirs, ours):
            for statement in SETUP:
                client.execute(statement)
        for role in ROLES:
            theirs.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
            ours.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pass of {role}'")
        for client in (theirs, ours):
            for statement in GRANTS:
                client.execute(statement)
        acls = "SELECT relname, relacl::text[] FROM pg_class WHERE relname IN ('t', 'u', 'm', 'w', 'over_v') ORDER BY 1"

        def acl_of(client: Client, owner: str) -> list[tuple[str, list[str] | None]]:
            rows = client.execute(acls).fetchall()
            return [(name, acl and sorted(one.replace(owner, "OWNER") for one in acl)) for name, acl in rows]

        assert acl_of(ours, server.credentials.user) == acl_of(theirs, postgres.user)
        differing = []
        for role in ROLES:
            theirs.execute(f"SET SESSION AUTHORIZATION {role}")
            with connected(server, role, f"'pass of {role}'") as client:
                for statement in STATEMENTS:
                    expected, found = outcome(theirs, statement), outcome(client, statement)
                    if expected != found:
                        differing.append((role, statement, expected, found))
            theirs.execute("RESET SESSION AUTHORIZATION")
        theirs.execute(f"DROP OWNED BY {', '.join(ROLES)}; DROP ROLE {', '.join(ROLES)}")
        assert not differing, "\n".join(map(str, differing))


def test_a_role_lives_and_dies(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute("CREATE TABLE t (a integer)")
        owner.execute("CREATE USER ann PASSWORD 'one'")
        owner.execute("CREATE ROLE team NOLOGIN PASSWORD 'two'")
        with pytest.raises(psycopg.errors.DuplicateObject):
            owner.execute("CREATE ROLE ann")
        with pytest.raises(psycopg.errors.DuplicateObject):
            owner.execute(f'CREATE ROLE "{server.credentials.user}"')
        with pytest.raises(psycopg.errors.ReservedName):
            owner.execute("CREATE ROLE pg_all")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(dsn(server).replace(f"user={server.credentials.user}", "user=ann"))
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in"), connected(server, "team", "two"):
            pass
        with connected(server, "ann", "one") as ann:
            ann.execute("ALTER USER ann PASSWORD 'three'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("ALTER ROLE team PASSWORD 'mine'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("ALTER ROLE ann RENAME TO owner")
            assert ann.info.parameter_status("is_superuser") == "off"
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("SELECT a FROM t")
            owner.execute("GRANT SELECT ON t TO ann")
            assert ann.execute("SELECT a FROM t").fetchall() == []
            owner.execute("REVOKE ALL ON t FROM ann CASCADE")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table t"):
                ann.execute("SELECT a FROM t")
        with pytest.raises(psycopg.OperationalError), connected(server, "ann", "one"):
            pass
        owner.execute("ALTER ROLE ann RENAME TO beth")
        with connected(server, "beth", "three") as beth:
            assert beth.execute("SELECT current_user").fetchall() == [("beth",)]
        owner.execute("GRANT UPDATE ON t TO beth")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="privileges for table t"):
            owner.execute("DROP ROLE beth")
        owner.execute("REVOKE UPDATE ON t FROM beth")
        owner.execute("DROP ROLE beth, team")
        owner.execute("DROP USER IF EXISTS beth")
        with pytest.raises(psycopg.errors.UndefinedObject):
            owner.execute("DROP ROLE beth")
        with pytest.raises(psycopg.OperationalError), connected(server, "beth", "three"):
            pass
        for refused in (
            "CREATE ROLE x SUPERUSER",
            "GRANT ann TO x WITH ADMIN OPTION",
            "GRANT SELECT (a) ON t TO PUBLIC",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                owner.execute(refused)


def test_privileges_stay_with_what_takes_the_place_of_an_object(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        for statement in (
            "CREATE TABLE t (a integer, b integer)",
            "CREATE VIEW v AS SELECT a FROM t",
            "CREATE ROLE ann LOGIN PASSWORD 'one'",
            "GRANT SELECT ON t, v TO ann",
            "CREATE OR REPLACE VIEW v AS SELECT a, b FROM t",
            "ALTER TABLE t ADD COLUMN c integer",
            "CREATE TABLE u (a integer)",
            "INSERT INTO u VALUES (1)",
            "GRANT SELECT ON u TO ann",
            "ALTER TABLE u ALTER COLUMN a TYPE bigint",
            "ALTER TABLE t RENAME TO tt",
            "COMMENT ON TABLE tt IS 'renamed'",
        ):
            owner.execute(statement)
        with connected(server, "ann", "one") as ann:
            assert ann.execute("SELECT a, b, c FROM tt").fetchall() == []
            assert ann.execute("SELECT a, b FROM v").fetchall() == []
            assert ann.execute("SELECT a FROM u").fetchall() == [(1,)]
            owner.execute("DROP VIEW v")
            owner.execute("CREATE VIEW v AS SELECT 1 AS one")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("SELECT one FROM v")


def test_other_ways_to_rows_are_closed_too(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute("CREATE TABLE t (a integer)")
        owner.execute("CREATE VIEW v AS SELECT a, 1 / a AS x FROM t")
        owner.execute("CREATE INDEX i ON v (a)")
        owner.execute("CREATE ROLE ann LOGIN PASSWORD 'one'")
        owner.execute("GRANT SELECT ON v TO ann")
        owner.execute("INSERT INTO t VALUES (1)")
    with connected(server, "ann", "one") as ann:
        assert ann.execute("SELECT a, x FROM v WHERE a = 1").fetchall() == [(1, 1)]
        for statement in (
            "SUBSCRIBE TO t",
            "COPY (SUBSCRIBE TO t UP TO 9999999999999) TO STDOUT",
            "SUBSCRIBE (SELECT a FROM t)",
            "EXPLAIN SELECT * FROM t",
            "SELECT a FROM i",
            "TABLE t",
            "SELECT * FROM mz_internal.mz_errors",
            "SELECT * FROM mz_sessions",
            "SUBSCRIBE mz_internal.mz_errors",
            "CREATE TEMPORARY TABLE x (a integer)",
            "SELECT a INTO x FROM v",
            "COPY t FROM STDIN",
            "GRANT SELECT ON t TO ann",
            "COMMENT ON TABLE t IS 'mine'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute(statement)
        # What is prepared is held against what is granted when it is executed.
        ann.execute("SELECT a FROM v WHERE a = %s", (1,), prepare=True)
        with psycopg.connect(dsn(server), autocommit=True) as owner:
            owner.execute("REVOKE SELECT ON v FROM ann")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ann.execute("SELECT a FROM v WHERE a = %s", (1,), prepare=True)
        assert ann.execute("SELECT count(*) FROM mz_objects").fetchall() == [(3,)]


def test_members_act_by_what_their_roles_were_granted(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute("CREATE TABLE t (a integer)")
        owner.execute("CREATE USER ann PASSWORD 'one'")
        owner.execute("CREATE ROLE inner_team")
        owner.execute("CREATE ROLE team")
        owner.execute("GRANT SELECT ON t TO inner_team")
        with connected(server, "ann", "one") as ann:
            for statement, may in (
                ("GRANT inner_team TO team", False),
                ("GRANT team TO ann", True),
                ("GRANT team TO ann", True),
                ("REVOKE inner_team FROM team", False),
                ("GRANT inner_team TO GROUP team", True),
                ("REVOKE team FROM ann CASCADE", False),
                ("GRANT team, inner_team TO ann", True),
            ):
                done = owner.execute(statement)
                assert done.statusmessage == f"{statement.split()[0]} ROLE"
                for _ in range(2):  # once it is planned, too
                    if may:
                        assert ann.execute("SELECT a FROM t WHERE a = %s", (1,), prepare=True).fetchall() == []
                    else:
                        with pytest.raises(psycopg.errors.InsufficientPrivilege):
                            ann.execute("SELECT a FROM t WHERE a = %s", (1,), prepare=True)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("GRANT team TO ann")
        for circle in ("GRANT ann TO inner_team", "GRANT team TO team"):
            with pytest.raises(psycopg.errors.InvalidGrantOperation, match="is a member of role"):
                owner.execute(circle)
        with pytest.raises(psycopg.errors.UndefinedObject):
            owner.execute("GRANT nobody TO ann")
        listed = psql(server, "-c", r"\du").stdout
        assert "{inner_team,team}" in listed
        owner.execute("DROP ROLE ann")
        owner.execute("DROP ROLE team")
        assert owner.execute("SELECT * FROM pg_auth_members").fetchall() == []


def test_no_password_is_kept_or_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with open_server(tmp_path) as server, psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute("CREATE ROLE ann LOGIN PASSWORD 'tr0ub4dor&3'")
        owner.execute("ALTER ROLE ann PASSWORD 'tr0ub4dor&3'")
        with pytest.raises(psycopg.errors.DuplicateObject) as caught:
            owner.execute("CREATE ROLE ann LOGIN PASSWORD 'tr0ub4dor&3'")
        assert "tr0ub4dor" not in str(caught.value.diag.message_primary)
        with connected(server, "ann", "tr0ub4dor&3"):
            pass
        shown = owner.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'ann'").fetchall()
        assert shown == [("********",)]
        assert "tr0ub4dor" not in str(owner.execute("SHOW ALL").fetchall())
    assert "tr0ub4dor" not in caplog.text
    assert "SCRAM-SHA-256$" not in caplog.text
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"tr0ub4dor" not in path.read_bytes(), path


def test_psql_changes_a_password_that_never_leaves_it_and_lists_roles(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute("CREATE ROLE ann LOGIN PASSWORD 'one'")
        owner.execute("CREATE ROLE team")
    kept = verifier_text("zwei ü")
    with psycopg.connect(dsn(server), autocommit=True) as owner:
        owner.execute(f"ALTER ROLE ann PASSWORD '{kept}'")
    with connected(server, "ann", "'zwei ü'"):
        pass
    listed = psql(server, "-c", r"\du").stdout
    assert "ann" in listed
    assert "Cannot login" in listed
    assert (
        "ann=r/"
        in psql(server, "-c", "CREATE TABLE t (a integer)", "-c", "GRANT SELECT ON t TO ann", "-c", r"\dp t").stdout
    )


def test_roles_are_durable_and_in_backups(tmp_path: Path) -> None:
    with (
        Engine(Project.load(tmp_path)) as engine,
        Connection(engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False) as owner,
    ):
        owner.execute("CREATE TABLE t (a integer)")
        owner.execute("CREATE ROLE ann LOGIN PASSWORD 'one'")
        owner.execute("CREATE ROLE team")
        owner.execute("GRANT SELECT ON t TO team")
        owner.execute("GRANT team TO ann")
        copy = tmp_path / "copy.sqlite"
        engine.catalog.release_lease(engine.catalog.copy_to(copy, holder="test", ttl_ms=1000))
    with closing(sqlite3.connect(copy)) as connection:
        ((name, kept),) = connection.execute("SELECT name, verifier FROM role WHERE can_login")
    assert name == "ann"
    assert Verifier.of(kept) is not None
    with Catalog.open(f"sqlite:///{copy}") as catalog:
        (table,) = catalog.objects("table")
        ann_row, team = catalog.roles()
        assert ann_row.groups == {team.id}
        assert table.privileges == {team.id: "r"}
    with open_server(tmp_path) as server, connected(server, "ann", "one") as ann:
        assert ann.execute("SELECT a FROM t").fetchall() == []


def test_a_verifier_is_what_postgres_makes_of_a_password(postgres: Postgres) -> None:
    postgres.run("CREATE ROLE mz_verified PASSWORD 'sesam'")
    text = postgres.run("SELECT rolpassword FROM pg_authid WHERE rolname = 'mz_verified'").strip()
    postgres.run("DROP ROLE mz_verified")
    found = Verifier.of(text)
    assert found is not None
    assert found.text == text
    from scramp import ScramMechanism

    made = ScramMechanism().make_auth_info("sesam", found.iterations, found.salt)
    assert made == (found.salt, found.stored_key, found.server_key, found.iterations)
