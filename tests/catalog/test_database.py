"""Opening, migrating and sharing the catalog's database."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import mz_dagster.catalog.upgrade as upgrade_module
from mz_dagster.catalog import Catalog, CatalogBusy, CatalogTooNew, CatalogUnavailable, NewObject
from mz_dagster.catalog import database as database_module
from mz_dagster.catalog.schema import METADATA
from mz_dagster.errors import ProgrammingError
from tests.catalog.connected import connected

ROOT = Path(__file__).resolve().parents[2]

OPEN = """
import sys
from mz_dagster.catalog import Catalog
with Catalog.open(sys.argv[1]) as catalog:
    catalog.declare_timeline("t")
    for _ in range(50):
        print(catalog.write_ts("t", 0))
    print(catalog.project_id())
"""


def test_migrations_lead_to_the_schema(url: str) -> None:
    Catalog.open(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
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
        raw.exec_driver_sql("ALTER TABLE capability DROP COLUMN writes")
        raw.exec_driver_sql("UPDATE alembic_version SET version_num = '0002'")
    with Catalog.open(url) as catalog:
        assert catalog.validate_read(held.token) == held


def test_a_catalog_of_a_newer_version_is_refused(url: str) -> None:
    Catalog.open(url).close()
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(CatalogTooNew) as error:
        Catalog.open(url)
    assert "Upgrade" in str(error.value.hint)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_text("this is no database, but it is longer than a header of one, which has a hundred bytes" * 2)
    with pytest.raises(CatalogUnavailable) as error:
        Catalog.open(f"sqlite:///{path}")
    assert error.value.hint
    for url in ("sqlite://", "nonsense", "what://x", "mysql://x/y", "postgresql+psycopg2://x/y"):
        with pytest.raises(ProgrammingError):
            Catalog.open(url)


def test_processes_share_one_oracle_from_the_first_moment(url: str) -> None:
    command = [sys.executable, "-c", OPEN, url]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(4)
    ]
    outputs = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        outputs.append(out.split())
    assert len({lines[-1] for lines in outputs}) == 1
    times = [int(one) for lines in outputs for one in lines[:-1]]
    assert sorted(times) == list(range(1, 201))
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


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_is_found_without_a_driver_and_under_any_default_isolation(url: str) -> None:
    with connected(url) as raw:
        database = raw.exec_driver_sql("SELECT current_database()").scalar_one()
        raw.exec_driver_sql(f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
    with Catalog.open(url.replace("+psycopg", "")) as catalog:
        test_threads_share_one_catalog(_with_timeline(catalog))


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
