"""A catalog's server that goes away and comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from mz_dagster.catalog import Catalog, CatalogUnavailable, Leadership
from mz_dagster.catalog import database as database_module
from mz_dagster.clock import SYSTEM_CLOCK
from tests.postgres_server import Postgres, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server that these tests may stop."""
    with running_postgres() as running:
        yield running


def test_a_server_that_goes_away_is_waited_for_where_nothing_has_happened_yet(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql+psycopg://{server.user}@/{server.database}?host={server.socket_dir}"
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        lead = catalog.lead("t", "a", 60_000)
        assert isinstance(lead, Leadership)

        # Away for a while: readers and writers wait, several at once, and what they do is done once.
        server.stop()
        found: list[int] = []
        works = [lambda: found.append(catalog.write_ts("t", 0)), lambda: found.append(catalog.read_ts("t"))] * 2
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        SYSTEM_CLOCK.sleep(1)
        assert not found
        server.start()
        for thread in threads:
            thread.join(60)
        assert sorted(found) == [0, 0, 1, 2]
        assert catalog.renew_leadership(lead, 60_000) == lead

        # In the middle of a transaction it is an error, which says that nothing happened.
        def lose(statement: str | None) -> None:
            with catalog._database.write() as connection:
                connection.exec_driver_sql("UPDATE timeline SET write_ts = 3")
                server.stop()
                if statement is not None:
                    connection.exec_driver_sql(statement)

        with pytest.raises(CatalogUnavailable) as lost:
            lose("UPDATE timeline SET write_ts = 4")
        assert not lost.value.may_have_taken_effect

        # In a commit nobody knows.
        server.start()
        with pytest.raises(CatalogUnavailable) as unknown:
            lose(None)
        assert unknown.value.may_have_taken_effect
        assert "may have taken effect" in str(unknown.value.hint)

        # Away for too long, and not there from the beginning.
        monkeypatch.setattr(database_module, "AWAY_MS", 300)
        with pytest.raises(CatalogUnavailable) as away:
            catalog.write_ts("t", 0)
        with pytest.raises(CatalogUnavailable) as missing:
            Catalog.open(url)
        for caught in (lost, unknown, away, missing):
            assert "\n" not in caught.value.message
            assert "Check that the database is there" in str(caught.value.hint)

        # Not there yet: one that comes is waited for, and a host that nobody knows is not.
        monkeypatch.setattr(database_module, "AWAY_MS", 60_000)
        with pytest.raises(CatalogUnavailable, match="resolve host"):
            Catalog.open("postgresql+psycopg://u@no-such-host.invalid/d")
        starting = threading.Timer(0.5, server.start)
        starting.start()
        with Catalog.open(url) as opened:
            assert opened.timelines()
        starting.join()
        assert catalog.write_ts("t", 0) == 3
        assert catalog.renew_leadership(lead, 60_000) == lead
