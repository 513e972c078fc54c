"""A query with constants reads the files that may hold rows for it, and no other changes its answer.

What is held here is how many files the engine reads: each INSERT is one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.errors import DataError
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import StoredFile
from tests.budgets import SetBudget

MARCH = "d >= date '2024-03-01' AND d < date '2024-04-01'"


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each reading of a collection chose."""
    found: list[int] = []
    files = LocalShards.files

    def counted(
        self: LocalShards,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        where: Sequence[Scalar] = (),
        bounds: Sequence[Column] = (),
    ) -> tuple[StoredFile, ...]:
        chosen = files(self, collection, batches, where=where, bounds=bounds)
        found.append(len(chosen))
        return chosen

    monkeypatch.setattr(LocalShards, "files", counted)
    return found


def test_constant_predicates_skip_files_and_never_an_error(
    connection: Connection, files_read: list[int], set_budget: SetBudget
) -> None:
    set_budget(inlined_rows=0, unbounded_rows=0)

    def execute(sql: str) -> list[tuple[object, ...]]:
        files_read.clear()
        cursor = connection.execute(sql)
        return sorted(cursor.fetchall()) if cursor.description else []

    execute("CREATE TABLE t (k integer NOT NULL, d date, s text)")
    for month in (1, 2, 3, 4):
        execute(f"INSERT INTO t VALUES ({month}, date '2024-0{month}-10', 'in {month}'), ({month}, NULL, NULL)")
    assert execute(f"SELECT k FROM t WHERE {MARCH}") == [(3,)]
    assert files_read == [1]
    assert execute("SELECT k FROM t WHERE s IN ('in 1', 'in 2') OR d > '2024-04-09'") == [(1,), (2,), (4,)]
    assert files_read == [3]
    assert execute("SELECT k FROM t WHERE d > '2025-01-01'") == []
    assert files_read == [0]
    execute(f"CREATE MATERIALIZED VIEW march AS SELECT k, s FROM t WHERE {MARCH}")
    assert set(files_read) == {1}
    # A step over rows that the view does not want has nothing to compute.
    execute("INSERT INTO t VALUES (0, date '2024-05-10', 'in 5')")
    poll = connection.engine.poll("default")
    assert poll.tick is not None
    connection.engine.step("default", poll.tick)
    assert set(files_read) == {0}
    assert execute("SELECT * FROM march") == [(3, "in 3")]
    # Nor does a file with an error go unread, whatever is asked of the rows.
    execute("CREATE MATERIALIZED VIEW tenth AS SELECT 10 / k AS q, d FROM t")
    for predicate in (MARCH, "d > '2025-01-01'"):
        with pytest.raises(DataError, match="division by zero"):
            execute(f"SELECT q FROM tenth WHERE {predicate}")
    execute("DELETE FROM t WHERE k = 0")
    assert execute(f"SELECT q FROM tenth WHERE {MARCH}") == [(3,)]


def test_explain_says_by_what_files_are_skipped(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (k integer NOT NULL, d date)")
    query = "SELECT k FROM t WHERE 10 / k > 1 AND d < date '2024-04-01' AND k + 1 > 2"
    lines = [row[0] for row in connection.execute(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}").fetchall()]
    read = next(line for line in lines if "Read t" in line)
    assert "skipping files by (#1{d} < 2024-04-01::date) [" in read
