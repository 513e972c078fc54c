"""Without any compaction a shard that is written again and again has few batches, and nobody fails for that."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, minor_compaction
from mz_dagster.budget import Budget
from mz_dagster.catalog import BatchState, LostRace, sweeping
from mz_dagster.catalog.batches import batch_of
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.storage import compact
from tests.budgets import SetBudget


def live(connection: Connection, id: GlobalId) -> list[int]:
    """Returns the rows of a collection's live batches, oldest first."""
    return [one.stats.rows for one in connection.engine.catalog.batches(id, BatchState.LIVE)]


def table_of(connection: Connection) -> GlobalId:
    connection.execute("CREATE TABLE t (a int)")
    return connection.engine.collection_of("t")


def insert(connection: Connection, *values: int) -> None:
    connection.execute(f"INSERT INTO t VALUES {', '.join(f'({one})' for one in values)}")


def contents(connection: Connection) -> list[int]:
    return sorted(row[0] for row in connection.execute("SELECT a FROM t").fetchall())


@pytest.mark.parametrize("inlined_rows", [*(pytest.param(one, marks=pytest.mark.deep) for one in (0, 8)), 1_000])
def test_a_table_that_is_only_written_has_few_batches_and_files(
    sparkless: Connection, set_budget: SetBudget, inlined_rows: int
) -> None:
    set_budget(inlined_rows=inlined_rows)
    id = table_of(sparkless)
    for number in range(1, 61):
        insert(sparkless, number)
        assert len(live(sparkless, id)) <= math.log2(number) + 1 + Budget().young_parts
    engine = sparkless.engine
    assert len(live(sparkless, id)) < 20
    assert contents(sparkless) == list(range(1, 61))
    # What the last merge replaced is there still, and nothing of what those before it did.
    folders = list(Path(engine.shards.path(engine.catalog.collection(id))).glob("mz_batch=*"))
    batches = engine.catalog.batches(id)
    assert len(batches) <= 20 + Budget().young_parts + 5
    inlined = {batch.id for batch in batches if batch.stats.inlined is not None}
    assert len(batches) == len(folders) + len(inlined)
    assert {one["batch"] for one in engine.catalog.records()["inlined"]} == inlined
    assert bool(folders) == (inlined_rows < 60), "what has grown is in files"


def test_large_batches_are_left_to_the_compaction_job(sparkless: Connection, set_budget: SetBudget) -> None:
    set_budget(young_parts=3, young_rows=10)
    id = table_of(sparkless)
    for _ in range(3):
        insert(sparkless, *range(8))
    for _ in range(6):
        insert(sparkless, 1)
    assert live(sparkless, id) == [8, 8, 8, 6]


def test_a_merge_that_fails_fails_no_write_and_is_left_to_the_compaction_job(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, set_budget: SetBudget
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("the disk is full")

    set_budget(young_parts=3)
    monkeypatch.setattr(minor_compaction, "compact", fail)
    table_of(sparkless)
    with caplog.at_level(logging.WARNING, "mz_dagster.engine"):
        for number in range(6):
            insert(sparkless, number)
    assert contents(sparkless) == list(range(6))
    assert [one.levelname for one in caplog.records] == ["WARNING"], "told once"


@pytest.mark.parametrize("what", ["compact", "sweep"])
def test_what_failed_for_a_while_is_done_afterwards(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, what: str
) -> None:
    failed: list[bool] = []

    def fail(*_: object, **__: object) -> None:
        failed.append(True)
        raise OperationalError("the disk is full")

    set_budget(young_parts=3)
    id = table_of(sparkless)
    with monkeypatch.context() as patched:
        patched.setattr(minor_compaction, what, fail)
        for number in range(9):
            insert(sparkless, number)
    assert failed == [True], "it is not tried again at once"
    now = sparkless.engine.clock.monotonic_ms()
    monkeypatch.setattr(type(sparkless.engine.clock), "monotonic_ms", lambda _: now + 3_600_000)
    for number in range(9, 20):
        insert(sparkless, number)
    assert len(live(sparkless, id)) <= 3 + 2
    assert len(sparkless.engine.catalog.batches(id)) <= 3 + 2 + 3 + 2, "and what was merged is swept"


def test_a_lost_race_is_tried_again(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    lost: list[bool] = []

    def lose(*_: object, **__: object) -> LostRace:
        monkeypatch.setattr(minor_compaction, "compact", real)
        lost.append(True)
        return LostRace(())

    real = compact
    set_budget(young_parts=3)
    monkeypatch.setattr(minor_compaction, "compact", lose)
    id = table_of(sparkless)
    for number in range(4):
        insert(sparkless, number)
    assert lost
    assert live(sparkless, id) == [4]


def test_nothing_is_leased_or_reserved_where_nothing_is_due(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of(sparkless)
    monkeypatch.setattr(minor_compaction, "compact", None)  # to call it would fail
    monkeypatch.setattr(minor_compaction, "sweep", None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sparkless.engine.catalog, "live_batches", None)
        for number in range(Budget().young_parts - 1):
            insert(sparkless, number)
    assert len(live(sparkless, sparkless.engine.collection_of("t"))) == Budget().young_parts - 1


@pytest.mark.parametrize("views", [16, pytest.param(30, marks=pytest.mark.deep)])
def test_of_what_is_due_together_a_part_is_merged_at_a_time(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, views: int
) -> None:
    set_budget(young_parts=4)
    looked_at: list[object] = []

    def noted(row: Any, lattice: Any) -> Any:
        looked_at.append(row)
        return batch_of(row, lattice)

    monkeypatch.setattr(sweeping, "batch_of", noted)
    table_of(sparkless)
    for number in range(views):
        sparkless.execute(f"CREATE MATERIALIZED VIEW m{number} AS SELECT a + {number} AS b FROM t")
    engine = sparkless.engine
    ids = [engine.collection_of(f"m{number}") for number in range(views)]
    counts = [[len(live(sparkless, id)) for id in ids]]
    for commit in range(12):
        insert(sparkless, commit)
        engine.poll("default")
        for tick in engine.unsealed_ticks("default"):
            engine.step("default", tick)
        counts.append([len(live(sparkless, id)) for id in ids])
        merged = sum(after <= before for after, before in zip(counts[-1], counts[-2], strict=True))
        assert merged <= views // 2, "half of them, where four batches are young"
    assert max(map(max, counts)) <= 4 + 2 + 2
    assert len(looked_at) <= views * 12, "each batch is looked at once, when it goes"
    assert sorted(sparkless.execute(f"SELECT b FROM m{views - 1}").fetchall()) == [
        (commit + views - 1,) for commit in range(12)
    ]


def test_a_view_that_is_stepped_again_and_again_has_few_batches(connection: Connection, set_budget: SetBudget) -> None:
    set_budget(young_parts=3)
    table_of(connection)
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM t")
    id = connection.engine.collection_of("m")
    for number in range(8):
        insert(connection, number)
        found = connection.execute("SELECT b FROM m").fetchall()
        assert sorted(found) == [(n + 1,) for n in range(number + 1)]
        assert len(live(connection, id)) <= math.log2(number + 1) + 1 + 3
    assert len(live(connection, id)) <= 5
