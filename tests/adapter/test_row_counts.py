"""How many rows a collection has, from how many it had: what a SELECT counts, read from what came since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mz_dagster.adapter import Connection, RowCount, rows_at
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.local_shards import LocalShards
from tests.opened import opened


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS x FROM t")
        connection.execute("CREATE MATERIALIZED VIEW same AS SELECT * FROM t")
        connection.execute("CREATE SINK s FROM same INTO DELTA (URI 'out/t') ENVELOPE UPSERT")
        yield connection


def counted(connection: Connection, before: dict[GlobalId, RowCount]) -> dict[str, RowCount]:
    """Returns the counts of all at the latest time, by name."""
    engine = connection.engine
    named = {one.name: engine.catalog.collection(one.id) for one in engine.catalog.objects() if one.has_collection}
    found = rows_at(engine, [(row, row.upper.only - 1) for row in named.values()], before)
    return {str(name): found[row.id] for name, row in named.items() if row.id in found}


def test_a_count_goes_on_from_the_one_before(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    random, before = Random(7), dict[GlobalId, RowCount]()
    for number in range(12):
        values = ", ".join(f"({random.randrange(4)})" for _ in range(random.randint(1, 5)))
        connection.execute(random.choice([f"INSERT INTO t VALUES {values}", "DELETE FROM t WHERE a = 1"]))
        connection.execute("SELECT count(*) FROM t").fetchall()
        if number % 4 == 3:
            list(connection.engine.compact())
        found = counted(connection, before)
        assert "s" not in found, "what a sink has written is not in its collection"
        assert found == counted(connection, {})
        assert connection.execute(f"SELECT count(*) FROM t AS OF {found['t'].time}").fetchall() == [(found["t"].rows,)]
        before = {one.id: one for one in found.values()}
    read: list[int] = []
    original = LocalShards.read

    def noted(self: LocalShards, row: Any, batches: Any, **options: Any) -> Any:
        read.append(sum(one.stats.rows for one in batches))
        return original(self, row, batches, **options)

    monkeypatch.setattr(LocalShards, "read", noted)
    assert counted(connection, before)["t"] == before[connection.engine.collection_of("t")]
    assert read == [], "nothing came"
    connection.execute("INSERT INTO t VALUES (5), (5)")
    read.clear()
    assert counted(connection, before)["t"].rows == before[connection.engine.collection_of("t")].rows + 2
    assert sum(read) <= 2, "what came"


def test_errors_are_no_rows(connection: Connection) -> None:
    connection.execute("INSERT INTO t VALUES (0), (1), (1)")
    engine = connection.engine
    engine.reach("default", engine.catalog.read_ts("default"), frozenset({engine.collection_of("v")}))
    found = counted(connection, {})
    assert (found["t"].rows, found["v"].rows) == (3, 2)
