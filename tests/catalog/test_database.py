"""Opening, migrating and sharing the catalog's database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect

import mz_dagster.catalog.upgrade as upgrade_module
from mz_dagster.catalog import (
    BatchStats,
    Catalog,
    CatalogBusy,
    CatalogTooNew,
    CatalogTooOld,
    CatalogUnavailable,
    NewObject,
    Seal,
    StateTooNew,
    StateTooOld,
    state_format,
)
from mz_dagster.catalog import database as database_module
from mz_dagster.catalog.database import Database
from mz_dagster.catalog.schema import METADATA
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.version import __version__
from tests.catalog.connected import connected
from tests.catalog.older import take_back
from tests.command_line import Started, script

OPEN = """
import sys
from mz_dagster.catalog import Catalog
with Catalog.open(sys.argv[1]) as catalog:
    catalog.declare_timeline("t")
    for _ in range(50):
        print(catalog.write_ts("t", 0))
    print(catalog.project_id())
"""


def shape(connection: Connection) -> dict[str, Any]:
    """Returns what a database has: of each table all that is said of it and its number of rows, and the triggers."""
    found, names = inspect(connection), inspect(connection).get_table_names()
    told: dict[str, Any] = {
        name: {
            "columns": sorted(repr(one) for one in found.get_columns(name)),
            "primary key": found.get_pk_constraint(name),
            "foreign keys": sorted(map(repr, found.get_foreign_keys(name))),
            "unique": sorted(map(repr, found.get_unique_constraints(name))),
            "checks": sorted(map(repr, found.get_check_constraints(name))),
            "indexes": sorted(map(repr, found.get_indexes(name))),
        }
        for name in names
    }
    for name in {"changed", "alembic_version"} & {*names}:
        told[name]["rows"] = connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar()
    if connection.dialect.name == "sqlite":
        of_triggers = "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1"
    else:
        of_triggers = (
            "SELECT pg_get_triggerdef(t.oid), pg_get_functiondef(tgfoid) FROM pg_trigger t "
            "JOIN pg_class c ON tgrelid = c.oid WHERE relnamespace = current_schema::regnamespace AND NOT tgisinternal "
            "ORDER BY 1"
        )
    told["triggers"] = [tuple(row) for row in connection.exec_driver_sql(of_triggers)]
    return told


def take_away(connection: Connection) -> None:
    """Takes all of a catalog out of its database."""
    if connection.dialect.name == "postgresql":
        for table in ("object", "name", "dependency", "collection"):
            for event in ("insert", "update", "delete"):
                connection.exec_driver_sql(f"DROP FUNCTION note_{table}_{event} CASCADE")
    METADATA.drop_all(connection)
    connection.exec_driver_sql("DROP TABLE alembic_version")


def test_migrations_lead_to_what_a_new_catalog_has(url: str) -> None:
    Catalog.open(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        made = shape(connection)
        take_away(connection)
    with engine.begin() as connection:
        assert shape(connection).keys() == {"triggers"}
        upgrade_module._run_migrations(connection)
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        assert shape(connection) == made
        assert len(made) == len(METADATA.tables) + 2, "the tables, Alembic's, and the triggers"
        assert len(made["triggers"]) == 12
    engine.dispose()
    scripts = ScriptDirectory(str(Path(upgrade_module.__file__).parent / "migrations"))
    assert scripts.get_current_head() == upgrade_module.HEAD


def test_opening_again_finds_the_same_project(url: str) -> None:
    with Catalog.open(url) as catalog:
        project = catalog.project_id()
    with Catalog.open(url) as catalog:
        assert catalog.project_id() == project


def test_a_crashed_migration_leaves_nothing_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade_module, "COUNTERS", (None,))
    with pytest.raises(CatalogUnavailable):
        Catalog.open(url)
    monkeypatch.undo()
    with Catalog.open(url) as catalog:
        assert catalog.timelines() == ()


def test_an_older_catalog_is_migrated_and_what_it_granted_still_holds(url: str) -> None:
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
        held = catalog.acquire_read(table, holder="session", ttl_ms=None)
    with connected(url) as raw:
        take_back(raw.exec_driver_sql, "0002", on_postgresql=url.startswith("postgresql"))
    with Catalog.open(url) as catalog:
        assert catalog.validate_read(held.token) == held


def test_a_catalog_of_a_newer_version_is_refused(url: str) -> None:
    Catalog.open(url).close()
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(CatalogTooNew) as error:
        Catalog.open(url)
    assert error.value.message == "the catalog has a newer schema than this version's", "the release is the same"
    assert "Upgrade" in str(error.value.hint)


def test_a_newer_catalog_says_which_release_wrote_it(url: str) -> None:
    Catalog.open(url).close()
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        raw.exec_driver_sql("UPDATE project SET release = '7.8.9'")
    with pytest.raises(CatalogTooNew, match=f"release 7.8.9, and this is {__version__}"):
        Catalog.open(url)


def test_a_state_of_another_format_is_refused_by_the_release_that_wrote_it(url: str) -> None:
    Catalog.open(url).close()
    for found, expected in ((99, StateTooNew), (0, StateTooOld)):
        with connected(url) as raw:
            raw.exec_driver_sql(f"UPDATE project SET state_format = {found}, release = '7.8.9'")
        for opened in (Catalog.open, Catalog.open_made):
            with pytest.raises(expected, match=r"release 7\.8\.9") as error:
                opened(url)
            assert error.value.hint
            assert str(found) in str(error.value.detail)


def test_a_state_of_an_older_format_is_migrated_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    steps, now = [], state_format.FORMAT

    def to_last(connection: Connection) -> None:
        steps.append(now + 1)
        connection.exec_driver_sql("UPDATE object SET tags = '[\"migrated\"]'")

    monkeypatch.setattr(state_format, "FORMAT", now + 2)
    monkeypatch.setattr(upgrade_module, "FORMAT", now + 2)
    monkeypatch.setattr(state_format, "STEPS", {now: lambda _: steps.append(now), now + 1: to_last})
    with pytest.raises(CatalogTooOld):
        Catalog.open_made(url)
    for _ in range(2):
        with Catalog.open(url) as catalog:
            assert catalog.object(table).tags == ("migrated",)
    assert steps == [now, now + 1]


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_text("this is no database, but it is longer than a header of one, which has a hundred bytes" * 2)
    with pytest.raises(CatalogUnavailable) as error:
        Catalog.open(f"sqlite:///{path}")
    assert error.value.hint
    for url in ("sqlite://", "nonsense", "what://x", "mysql://x/y", "postgresql+psycopg2://x/y"):
        with pytest.raises(ProgrammingError):
            Catalog.open(url)


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.deep)])
def test_processes_share_one_oracle_from_the_first_moment(url: str, processes: int) -> None:
    running = [Started(script, OPEN, url) for _ in range(processes)]
    outputs = []
    for process in running:
        out, err = process.communicate(120)
        assert process.poll() == 0, err
        outputs.append(out.split())
    assert len({lines[-1] for lines in outputs}) == 1
    times = [int(one) for lines in outputs for one in lines[:-1]]
    assert sorted(times) == list(range(1, 50 * processes + 1))
    for lines in outputs:
        assert lines[:-1] == sorted(lines[:-1], key=int)


def test_threads_share_one_catalog(catalog: Catalog) -> None:
    found: list[int] = []

    def run() -> None:
        for _ in range(20):
            found.append(catalog.write_ts("t", 0))
            catalog.read_ts("t")

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 121))


def test_a_stuck_writer_makes_others_fail_in_time_without_effect(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "WAIT_MS", 200)
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        with connected(url) as raw:
            # As any writer begins.
            sqlite = url.startswith("sqlite")
            raw.exec_driver_sql("UPDATE counter SET last = last" if sqlite else "SELECT id FROM project FOR UPDATE")
            assert catalog.read_ts("t") == 0  # readers do not wait
            with pytest.raises(CatalogBusy) as error:
                catalog.write_ts("t", 0)
            assert not error.value.may_have_taken_effect
        assert catalog.write_ts("t", 0) == 1


def test_a_read_sees_one_state(catalog: Catalog) -> None:
    with catalog._database.read() as connection:
        before = connection.exec_driver_sql("SELECT write_ts FROM timeline").scalar_one()
        catalog.write_ts("t", 100)
        assert connection.exec_driver_sql("SELECT write_ts FROM timeline").scalar_one() == before


def test_what_is_under_way_when_it_is_closed_is_closed_behind(url: str) -> None:
    """Nothing is left to the interpreter to close."""
    with Catalog.open(url) as catalog:
        database = catalog._database
        with database.read() as first, database.read() as second:
            drivers: list[Any] = [one.connection.driver_connection for one in (first, second)]
            database.close()
            assert first.exec_driver_sql("SELECT count(*) FROM project").scalar_one() == 1
    with database.write() as late:  # as a thread does that finds out later
        drivers.append(late.connection.driver_connection)
    for one in drivers:
        with pytest.raises(Exception, match="closed"):
            one.execute("SELECT 1")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_is_found_without_a_driver_and_under_any_default_isolation(url: str) -> None:
    with connected(url) as raw:
        database = raw.exec_driver_sql("SELECT current_database()").scalar_one()
        raw.exec_driver_sql(f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
    try:
        with Catalog.open(url.replace("+psycopg", "")) as catalog:
            test_threads_share_one_catalog(_with_timeline(catalog))
    finally:  # psql shows the settings of all databases of a server, which other tests use, too
        with connected(url) as raw:
            raw.exec_driver_sql(f"ALTER DATABASE {database} RESET ALL")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_restarted_server_is_found_again(url: str) -> None:
    with Catalog.open(url) as catalog:
        assert _with_timeline(catalog).write_ts("t", 0) == 1
        with connected(url) as raw:
            raw.exec_driver_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert catalog.write_ts("t", 0) == 2


def _with_timeline(catalog: Catalog) -> Catalog:
    catalog.declare_timeline("t")
    return catalog


def test_what_must_outlive_a_power_cut_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool] = []
    begin = Database._begin_write

    def noted(self: Database, entered: ExitStack, *, until_power_cut: bool) -> Connection:
        connection = begin(self, entered, until_power_cut=until_power_cut)
        waits.append(connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2)
        return connection

    def does_wait(command: Callable[[], object]) -> bool:
        waits.clear()
        found.append(command())
        assert waits
        return all(waits)

    found: list[Any] = []
    monkeypatch.setattr(Database, "_begin_write", noted)
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.sqlite") as catalog:
        assert does_wait(lambda: catalog.declare_timeline("t"))
        assert does_wait(lambda: catalog.create_object(NewObject("x", "table", "", "t", ())))
        id, (lower, upper) = found[-1].id, (Antichain.of(EPOCH_MS, time) for time in (0, 9))
        assert not does_wait(lambda: catalog.lead("t", "me", 1_000))
        assert not does_wait(lambda: catalog.resign(found[-1]))
        assert not does_wait(lambda: catalog.write_ts("t", 5))
        assert not does_wait(lambda: catalog.lease([id], "me", 1_000))
        assert not does_wait(lambda: catalog.release_lease(found[-1].id))
        assert not does_wait(lambda: catalog.register_writer("me", 1_000))
        assert does_wait(lambda: catalog.reserve_batch(id, found[-1], lower, upper))
        stats = BatchStats(1, 0, 1, 9)
        assert does_wait(lambda: catalog.seal([Seal(id, lower, upper, found[-1], stats)], apply=("t", 8)))
        assert does_wait(lambda: catalog.close_tables("t", 20, [id]))
