"""dbt-postgres: its `debug`, `seed` and `run`, by dbt itself and by what it asks.

dbt is heavy, so `setup/clients.py --deep` installs it into an environment of its own (`.make/clients/dbt`), and the
test that runs it is a deep one. What it asked then is replayed here, statement by statement and as it sends them: by
simple queries, all within transactions.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.sparkless import refuse_spark
from tests.wire.conftest import dsn, open_server, password_of
from tests.wire.test_other_languages import FETCHED, PROGRAMS

PROJECT = PROGRAMS / "dbt_project"
TABLE = '"shop"."seeded"."cities"'
ROWS: list[tuple[str | None, ...]] = [
    ("1", "Rome", "0753-04-21", "1285.3", "t"),
    ("2", "Reggio, Emilia", None, "230.7", "f"),
    ("3", "Ouagadougou", "1441-01-01", None, "t"),
]

SCHEMAS = "select distinct nspname from pg_namespace"
RELATIONS = """select 'shop' as database, tablename as name, schemaname as schema, 'table' as type
    from pg_tables where schemaname ilike 'seeded'
    union all
    select 'shop' as database, viewname as name, schemaname as schema, 'view' as type
    from pg_views where schemaname ilike 'seeded'
    union all
    select 'shop' as database, matviewname as name, schemaname as schema, 'materialized_view' as type
    from pg_matviews where schemaname ilike 'seeded'
    union all
    select distinct 'shop' as database, proname as name, ns.nspname as schema, 'function' as type
    from pg_proc join pg_namespace as ns on pronamespace = ns.oid where ns.nspname ilike 'seeded'"""
DEPENDENCIES = r"""select distinct
        dependent_namespace.nspname as dependent_schema,
        dependent_class.relname as dependent_name,
        referenced_namespace.nspname as referenced_schema,
        referenced_class.relname as referenced_name
    from pg_class as dependent_class
    join pg_namespace as dependent_namespace on dependent_namespace.oid = dependent_class.relnamespace
    join pg_depend as dependent_depend on dependent_depend.refobjid = dependent_class.oid
        and dependent_depend.classid = 'pg_rewrite'::regclass
        and dependent_depend.refclassid = 'pg_class'::regclass
        and dependent_depend.deptype = 'i'
    join pg_depend as joining_depend on joining_depend.objid = dependent_depend.objid
        and joining_depend.classid = 'pg_rewrite'::regclass
        and joining_depend.refclassid = 'pg_class'::regclass
        and joining_depend.refobjid != dependent_depend.refobjid
    join pg_class as referenced_class on referenced_class.oid = joining_depend.refobjid
    join pg_namespace as referenced_namespace on referenced_namespace.oid = referenced_class.relnamespace
        and referenced_namespace.nspname != 'information_schema'
        and referenced_namespace.nspname not like 'pg\_%'
    order by dependent_schema, dependent_name, referenced_schema, referenced_name;"""
CREATE = f"""create table {TABLE} ("id" integer,"name" text,"founded" date,"area" float8,"is_capital" boolean)"""
INSERT = f"""insert into {TABLE} ("id", "name", "founded", "area", "is_capital") values
          (1,'Rome','0753-04-21'::date,1285.3,true),(2,'Reggio, Emilia',NULL,230.7,false),
          (3,'Ouagadougou','1441-01-01'::date,NULL,true)"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of a project by the name that dbt knows as the database's."""
    tried = refuse_spark(monkeypatch)
    with open_server(tmp_path / "shop") as opened:
        yield opened
    assert not tried, tried[0]


def seeded(server: Server) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn(server)) as connection, connection.cursor() as cursor:
        shown = "SELECT id::text, name, founded::text, area::text, is_capital::text::char(1) FROM seeded.cities"
        return cursor.execute(f"{shown} ORDER BY id").fetchall()


def test_what_dbt_asks_to_seed_is_answered(shop: Server) -> None:
    with psycopg.connect(dsn(shop), cursor_factory=psycopg.ClientCursor) as connection:
        assert connection.execute("select 1 as id").fetchall() == [(1,)]
        connection.rollback()
        assert ("seeded",) not in connection.execute(SCHEMAS).fetchall()
        connection.execute('create schema if not exists "seeded"')
        connection.commit()
        assert ("seeded",) in connection.execute(SCHEMAS).fetchall()
        connection.rollback()
        for refresh in ([CREATE], [f"truncate table {TABLE}"], [f"drop table if exists {TABLE} cascade", CREATE]):
            assert len(connection.execute(RELATIONS).fetchall()) == (0 if refresh == [CREATE] else 1)
            assert connection.execute(DEPENDENCIES).fetchall() == []
            connection.rollback()
            for statement in (*refresh, INSERT):
                connection.execute(statement)
            connection.commit()
            assert seeded(shop) == ROWS
        assert connection.execute(RELATIONS).fetchall() == [("shop", "cities", "seeded", "table")]


def test_the_database_of_a_name_is_the_project(shop: Server) -> None:
    with psycopg.connect(dsn(shop), autocommit=True) as connection:
        connection.execute("CREATE TABLE shop.public.t (a integer)")
        connection.execute("CREATE VIEW shop.public.v AS SELECT t.a FROM shop.public.t WHERE t.a > 1")
        connection.execute("INSERT INTO shop.public.t VALUES (1), (2)")
        assert connection.execute("SELECT v.a FROM shop.public.v").fetchall() == [(2,)]
        for name in ("other.public.t", "shop.other.t", "shop.t"):
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute(f"SELECT a FROM {name}".encode())


#: What dbt's models make of the seed: two capitals, of which one is large, and one city that is none.
BUILT = [("capitals", ["Ouagadougou", "Rome"]), ("large_capitals", ["Rome"]), ("provincial", ["Reggio, Emilia"])]


def built(server: Server) -> list[tuple[str, list[str]]]:
    found = []
    with psycopg.connect(dsn(server)) as connection:
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') ORDER BY 1"
        ).fetchall():
            if name in dict(BUILT) or name.endswith(("__dbt_tmp", "__dbt_backup")):
                rows = connection.execute(f"SELECT name FROM seeded.{name} ORDER BY 1".encode()).fetchall()
                found.append((name, [one for (one,) in rows]))
    return found


TEMPORARY, BACKUP = '"shop"."seeded"."capitals__dbt_tmp"', '"shop"."seeded"."capitals__dbt_backup"'
#: As dbt sends them for a table, and then for a view of it, the first time and again: statements and their commits.
CAPITALS = (
    f"drop table if exists {TEMPORARY} cascade",
    f"drop table if exists {BACKUP} cascade",
    f"create table {TEMPORARY} as ( select id, name, area from {TABLE} where is_capital );",
)
SET_ASIDE = 'alter table "shop"."seeded"."capitals" rename to "capitals__dbt_backup"'
INTO_PLACE = f'alter table {TEMPORARY} rename to "capitals"'
VIEW = (
    'create view "shop"."seeded"."large_capitals__dbt_tmp" as ( '
    'select name from "shop"."seeded"."capitals" where area > 1000 );'
)
VIEW_ASIDE = 'alter table "shop"."seeded"."large_capitals" rename to "large_capitals__dbt_backup"'
VIEW_INTO_PLACE = 'alter table "shop"."seeded"."large_capitals__dbt_tmp" rename to "large_capitals"'


def test_what_dbt_asks_to_run_is_done(shop: Server) -> None:
    with psycopg.connect(dsn(shop), cursor_factory=psycopg.ClientCursor) as connection:
        for statement in ('create schema "seeded"', CREATE, INSERT):
            connection.execute(statement.encode())
        connection.commit()
        for is_there in (False, True):
            for statement in (*CAPITALS, *([SET_ASIDE] if is_there else []), INTO_PLACE):
                connection.execute(statement.encode())
            connection.commit()
            connection.execute(f"drop table if exists {BACKUP} cascade".encode())  # and the view of it
            connection.commit()
            assert built(shop) == BUILT[:1]
            for statement in (VIEW, VIEW_INTO_PLACE):
                connection.execute(statement.encode())
            connection.commit()
            assert built(shop) == BUILT[:2]
        for statement in (VIEW, VIEW_ASIDE, VIEW_INTO_PLACE):
            connection.execute(statement.encode())
        connection.execute('drop view if exists "shop"."seeded"."large_capitals__dbt_backup" cascade')
        connection.commit()
        assert built(shop) == BUILT[:2]


#: An incremental model when it runs again, and a snapshot, whose columns are qualified by the database, too.
INCREMENT = (
    'create temporary table "areas__dbt_tmp1" as ( select id, area from "shop"."seeded"."cities" where id > 1 );',
    'delete from "shop"."seeded"."areas" as DBT_INTERNAL_DEST where (id) in ( select distinct id '
    'from "areas__dbt_tmp1" as DBT_INTERNAL_SOURCE );',
    'insert into "shop"."seeded"."areas" ("id", "area") ( select "id", "area" from "areas__dbt_tmp1" )',
)
SNAPSHOT = (
    'create temporary table "areas_staging" as ( select id as dbt_id, area + 1 as area from "shop"."seeded"."areas" );',
    'update "shop"."seeded"."areas" set area = DBT_INTERNAL_SOURCE.area from "areas_staging" as DBT_INTERNAL_SOURCE '
    'where DBT_INTERNAL_SOURCE.dbt_id::text = "shop"."seeded"."areas".id::text '
    'and "shop"."seeded"."areas".area is not null',
)


def test_what_dbt_asks_of_increments_and_snapshots_is_done(shop: Server) -> None:
    with psycopg.connect(dsn(shop), cursor_factory=psycopg.ClientCursor) as connection:
        for statement in ('create schema "seeded"', CREATE, INSERT):
            connection.execute(statement.encode())
        connection.execute('create table "shop"."seeded"."areas" as ( select id, area from "shop"."seeded"."cities" )')
        connection.commit()
        for statement in (*INCREMENT, *SNAPSHOT):
            connection.execute(statement.encode())
        connection.commit()
        found = connection.execute("SELECT id, area::text FROM seeded.areas ORDER BY id").fetchall()
    assert found == [(1, "1286.3"), (2, "231.7"), (3, None)]


@pytest.mark.deep
def test_dbt_debugs_seeds_and_runs(shop: Server, tmp_path: Path) -> None:
    python = FETCHED / "dbt" / "bin" / "python"
    assert python.exists(), "make test-deep fetches dbt: .venv/bin/python setup/clients.py --deep"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "PGPORT": str(shop.port),
        "PGUSER": shop.credentials.user,
        "PGPASSWORD": password_of(shop),
        "PGDATABASE": "shop",
        "DBT_TARGET_PATH": str(tmp_path / "target"),
        "DBT_LOG_PATH": str(tmp_path / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    command = [str(python), str(PROGRAMS / "dbt_commands.py"), str(PROJECT)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stdout.splitlines() if line.startswith(("OK", "ERR"))]
    commands = ("debug", "seed", "run", "seed", "run", "seed --full-refresh", "run")
    assert told == [f"OK {one} " for one in commands], f"{ran.stdout}{ran.stderr}"
    assert seeded(shop) == ROWS
    assert built(shop) == BUILT
