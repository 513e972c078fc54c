r"""Every command of psql that asks a server something is answered, and as PostgreSQL answers it."""

from __future__ import annotations

import os
import subprocess

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn
from tests.wire.test_clients import psql
from tests.wire.tool_questions import SCHEMA

#: Commands that list something; those that show more with `+` have it.
LISTS = (
    *("d+", "da", "dA+", "dAc+", "dAf+", "dAo+", "dAp+", "db+", "dc+", "dconfig+", "dC+", "dd", "dD+", "ddp", "dE+"),
    *("des+", "det+", "deu+", "dew+", "df+", "dfa+", "dfn+", "dfp+", "dft+", "dfw+", "dF+", "dFd+", "dFp+", "dFt+"),
    *("dg+", "di+", "dl+", "dL+", "dm+", "dn+", "do+", "dO+", "dp", "dP+", "dPi+", "dPt+", "dPn+", "drds", "dRp+"),
    *("dRs+", "ds+", "dt+", "dT+", "du+", "dv+", "dx+", "dX", "dy+", "l+", "z", "dtvmsE+", "lo_list+", "dLS+", "ddS"),
)
OTHERS = r"""
dAc btree int4
dAf btree int4
dAo+ btree integer_ops
dAp+ btree integer_ops
do - int4 NONE
doS+ *int4*
da s*
df+ int4eq
df * text
df o*
dd lower
dL s*
dC+ int4
dconfig+ work_mem
dT+ sales.mood
dO+ C
sf+ int4eq
sv+ sales.big
d+ sales.big
d+ by_name
d+ pg_tables
d+ sales.orders_id_seq
drds * *
dt sales.orders|customers
""".strip().splitlines()
#: Commands that print the same here and there, but for who owns it.
SAME = r"""
dt sales.*
di
dAo btree integer_ops
dAp btree integer_ops
dAc btree int4
sf lower(text)
df int4eq
df row_number
dfn nothing
dc nothing
dD
dd
dRs
dX
dP+
des+
deu+
ddp
drds
dl
dconfig work_mem
dT+ sales.mood
dL nothing
d nothing
""".strip().splitlines()


@pytest.fixture(scope="module")
def both(served: Server, postgres_server: Postgres) -> Postgres:
    theirs = postgres_server.new_database()
    with psycopg.connect(dsn(served), autocommit=True) as ours, theirs.connect() as referee:
        for statement in SCHEMA:
            for one in (ours, referee):
                one.execute(statement.encode())
    return theirs


@pytest.mark.deep
def test_no_command_of_psql_fails(served: Server, both: Postgres) -> None:
    ran = psql(served, *(part for one in (*LISTS, *OTHERS) for part in ("-c", rf"\{one}")))
    failed = [line for line in ran.stderr.splitlines() if "ERROR" in line or "invalid" in line]
    assert failed == []


def test_commands_print_what_they_print_of_postgresql(served: Server, both: Postgres) -> None:
    commands = [part for one in SAME for part in ("-c", rf"\echo >>{one}", "-c", rf"\{one}")]
    ours = psql(served, "-A", *commands)
    theirs = subprocess.run(
        [both.psql, "-XA", "-h", str(both.socket_dir), "-U", both.user, "-d", both.database, *commands],
        env=os.environ | {"PGTZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    found, expected = (one.stdout.split(">>")[1:] for one in (ours, theirs))
    owner = served.credentials.user
    for command, one, other in zip(SAME, found, expected, strict=True):
        assert one == other.replace("referee", owner), command
    assert ours.stderr == theirs.stderr


#: What PostgreSQL has built in, by names: of what there is here each row is one of its rows.
BUILT_IN = {
    "operators": "SELECT oid, oprname, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult, oprcom, "
    "oprnegate, oprcode::oid, oprrest::text, oprjoin::text, tableoid, oprnamespace FROM pg_operator",
    "casts": "SELECT c.*, c.tableoid, p.proname FROM pg_cast c LEFT JOIN pg_proc p ON p.oid = castfunc",
    "families": "SELECT f.* FROM pg_opfamily f",
    "classes": "SELECT o.* FROM pg_opclass o",
    "operators of families": "SELECT a.* FROM pg_amop a",
    "functions of families": "SELECT oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid "
    "FROM pg_amproc",
    "functions": "SELECT oid, proname, prokind, proisstrict, proretset, provolatile, pronargs, prorettype, "
    "proargtypes::text FROM pg_proc WHERE oid < 6500 OR oid > 8500",
    "types": "SELECT oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typrelid, "
    "typelem, typarray, typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid, "
    "typanalyze::oid, typsubscript::oid, typalign, typstorage, typcollation, format_type(oid, NULL) FROM pg_type "
    "WHERE typnamespace = 11",
    "columns": "SELECT attrelid::regclass::text || attname, atttypid, attlen, attnum, attndims, atttypmod, attbyval, "
    "attalign, attstorage, attnotnull, attcollation FROM pg_attribute "
    "WHERE attrelid IN ('customers'::regclass, 'by_name'::regclass) AND attnum > 0",
    "indexes": "SELECT indexrelid::regclass::text, indkey::text, indclass::text, indcollation::text FROM pg_index "
    "WHERE indrelid = 'customers'::regclass",
}


@pytest.mark.parametrize("what", BUILT_IN)
def test_what_is_built_in_is_as_there(served: Server, both: Postgres, what: str) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as ours, both.connect() as referee:
        found, expected = (one.execute(BUILT_IN[what].encode()).fetchall() for one in (ours, referee))
    assert len(found) > 2
    assert len({one[0] for one in found}) == len(found)
    assert set(found) - set(expected) == set()


def test_functions_of_names_that_are_no_literals(served: Server, both: Postgres) -> None:
    questions = (
        "SELECT current_setting(name) FROM (VALUES ('work_mem'), ('WORK_MEM')) AS t (name)",
        "SELECT current_setting(name, true) FROM (VALUES ('work_mem'), ('nothing.here'), (NULL)) AS t (name)",
        "SELECT 'int4eq'::regproc, 'int4eq(integer, int4)'::regprocedure, '=(int4,integer)'::regoperator",
        "SELECT '-(NONE,int4)'::regoperator::oid, 65::regprocedure, 96::regoperator, 'trigger'::regtype",
        "SELECT typinput::oid, oid::int8, typname::text FROM pg_type WHERE oid = 23",
        "SELECT t.typname, t.typtype, t.typrelid::regclass::text, e.typname, format_type(t.oid, -1),"
        "t.oid::regtype::text, t.typcategory, t.typinput::text FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem "
        "WHERE t.typname IN ('customers', '_customers', 'big', '_big', 'totals') ORDER BY 1",
        "SELECT relname, reltype <> 0, pg_type_is_visible(reltype) FROM pg_class "
        "WHERE relname IN ('customers', 'orders', 'by_name', 'totals') ORDER BY 1",
        "SELECT 'customers'::regtype::text, 'sales.orders[]'::regtype::text",
        "SELECT * FROM pg_options_to_table(ARRAY['a=b=c', 'd'])",
        "SELECT * FROM pg_partition_tree('customers'::regclass)",
        "SELECT pg_size_pretty(sum(x)) FROM (VALUES (20000::bigint), (3)) AS t (x)",
        "SELECT tableoid::regclass, count(*) FROM pg_am WHERE pg_am.tableoid = 2601 AND amname = 'heap' GROUP BY 1",
        "SELECT a.*, b.tableoid FROM (SELECT 1 AS x) a LEFT JOIN pg_am b ON false",
    )
    typed = ("SELECT typname::text, oid::int8, typname, typtype::text, typlen FROM pg_type WHERE oid = 23",)
    with psycopg.connect(dsn(served), autocommit=True) as ours, both.connect() as referee:
        for one in (*questions, *typed):
            found, expected = ours.execute(one.encode()), referee.execute(one.encode())
            if one in typed:
                codes, known = ([column.type_code for column in each.description or ()] for each in (found, expected))
                assert codes == known, one
            assert found.fetchall() == expected.fetchall(), one
        for wrong in (
            "SELECT current_setting(name) FROM (VALUES ('nothing.here')) AS t (name)",
            "SELECT 'int4eq(text)'::regprocedure",
            "SELECT 'max'::regproc",
            "SELECT tableoid FROM pg_tables",
            "SELECT tableoid FROM pg_am, pg_class",
        ):
            told = []
            for connection in (ours, referee):
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute(wrong.encode())
                told.append((refused.value.sqlstate, refused.value.diag.message_primary))
            assert told[0] == told[1], wrong
