"""Settings of clients of the wire: as they connect, and how long they may be idle."""

from __future__ import annotations

import time

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn


def test_settings_of_the_connection_hold_from_the_start(served: Server) -> None:
    options = r"-c statement_timeout=5s --work-mem=64MB -csearch_path=a,\ b -c application_name=told\ later"
    with psycopg.connect(dsn(served), options=options, application_name="shop") as client:
        for name, value in (("statement_timeout", "5s"), ("work_mem", "64MB"), ("search_path", "a, b")):
            assert client.execute(f"SHOW {name}").fetchone() == (value,)
        assert client.execute("SHOW application_name").fetchone() == ("shop",)
        client.execute("SET work_mem = '1MB'")
        client.execute("RESET work_mem")
        assert client.execute("SELECT current_setting(%s)", ["work_mem"]).fetchone() == ("64MB",)
        found = client.execute("SELECT set_config('work_mem', %s, false) AS mem", ["2MB"])
        assert found.fetchone() == ("2MB",)
    wrongs = (("-c nothing=1", "nothing"), ("-c bytea_output=escape", "always hex"), ("x", "argument in options"))
    for wrong, why in wrongs:
        with pytest.raises(psycopg.OperationalError, match=why):
            psycopg.connect(dsn(served), options=wrong)


def test_a_client_that_is_idle_for_too_long_is_ended(server: Server) -> None:
    with (
        psycopg.connect(dsn(server), autocommit=True) as client,
        psycopg.connect(dsn(server), autocommit=True, options="-c idle_session_timeout=200") as idle,
        psycopg.connect(dsn(server), autocommit=True) as other,
    ):
        client.execute("CREATE TABLE t (a int)")
        client.execute("SET idle_in_transaction_session_timeout = '400ms'")
        time.sleep(0.5)  # it is in no transaction
        client.execute("BEGIN")
        for _ in range(5):
            client.execute("INSERT INTO t VALUES (1)")
            time.sleep(0.1)
        time.sleep(0.5)
        with pytest.raises(psycopg.Error, match="idle-in-transaction timeout"):
            client.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(psycopg.Error, match="idle-session timeout"):
            idle.execute("SELECT 1")
        assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
        pids = other.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").fetchone()
        assert pids == (1,)


@pytest.mark.parametrize(("block", "sqlstate"), [(True, "25P03"), (False, "57P05")])
def test_an_idle_client_is_told_why(server: Server, block: bool, sqlstate: str) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as client:
        name = "idle_in_transaction_session_timeout" if block else "idle_session_timeout"
        client.execute(f"{'BEGIN; ' if block else ''}SET {name} = 50".encode())
        time.sleep(0.2)
        with pytest.raises(psycopg.Error) as told:
            client.execute("SELECT 1")
        assert told.value.sqlstate == sqlstate


OFFSETS = (
    "INTERVAL '+00:00' HOUR TO MINUTE",  # as Sequelize sends it
    "INTERVAL '-08:00' HOUR TO MINUTE",
    "INTERVAL '3' HOUR",
    "INTERVAL '3 hours'",
    "2",
    "-11",
    "'2'",
    "INTERVAL '1 day'",
    "INTERVAL 'nonsense'",
)


def test_a_time_zone_may_be_an_offset(served: Server, postgres: Postgres) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as ours, postgres.connect() as theirs:
        for offset in OFFSETS:
            found = []
            for client in (ours, theirs):
                try:
                    client.execute(f"SET TIME ZONE {offset}".encode())
                    found.append(client.execute("SELECT '2024-01-01 00:00+00'::timestamptz::text").fetchone())
                except psycopg.Error as error:
                    found.append((error.sqlstate,))
            assert found[0] == found[1], offset
        with pytest.raises(psycopg.Error, match="invalid value") as told:
            ours.execute("SET TIME ZONE INTERVAL '5:30' HOUR TO MINUTE")
        assert told.value.sqlstate == "22023"


def test_a_definition_takes_utc_by_each_of_its_names(served: Server) -> None:
    for number, zone in enumerate(("Etc/UTC", "etc/utc", "GMT", "Etc/GMT", "0")):
        with psycopg.connect(dsn(served), autocommit=True, options=f"-c timezone={zone}") as client:
            client.execute(f"CREATE TABLE noted{number} (at timestamp DEFAULT now())".encode())
