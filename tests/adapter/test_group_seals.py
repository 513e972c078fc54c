"""A heavy view holds back no seal of the others, and all stay readable at one common time; no Spark is needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.catalog import Catalog, CollectionRow, LedByAnother, Seal
from mz_dagster.compute import CollectionStep, Outcome, Stepper
from mz_dagster.compute.step.common_time import CommonTime
from mz_dagster.compute.step.graph import Node
from mz_dagster.compute.step.run import StepRun
from mz_dagster.formalism import GlobalId

TIMELINE = "default"


class Heavy:
    """Keeps a step in one collection until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        advance = Stepper._advance

        def waiting(stepper: Stepper, run: Any, node: Node, *rest: Any) -> Any:
            if node.name == name:
                self.begun.set()
                assert self.go_on.wait(60)
            return advance(stepper, run, node, *rest)

        monkeypatch.setattr(Stepper, "_advance", waiting)


def test_a_heavy_view_holds_back_no_seal_and_all_stay_readable_at_one_time(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sparkless.engine
    for sql in (
        "CREATE TABLE t (a integer)",
        "CREATE MATERIALIZED VIEW light AS SELECT a + 1 AS a FROM t",
        "CREATE MATERIALIZED VIEW lighter AS SELECT a + 1 AS a FROM light",
        "CREATE MATERIALIZED VIEW heavy AS SELECT a FROM light WHERE a > 0",
        "CREATE MATERIALIZED VIEW behind AS SELECT a FROM heavy",
        "INSERT INTO t VALUES (1)",
    ):
        sparkless.execute(sql)
    first = engine.poll(TIMELINE).tick
    assert first is not None
    engine.step(TIMELINE, first)
    sparkless.execute("INSERT INTO t VALUES (2)")
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    rows = {name: engine.collection_of(name) for name in ("t", "light", "lighter", "heavy", "behind")}
    heavy, sealed = Heavy(monkeypatch, "heavy"), threading.Event()
    stepper = Stepper(
        engine.catalog, engine.spark.open, holder="test", local=engine.shards, clock=engine.clock, seal_after_s=0.0
    )

    def told(line: str) -> None:
        uppers = {name: engine.catalog.collection(id).upper.only for name, id in rows.items()}
        if line.startswith("sealed") and uppers["light"] == uppers["lighter"] == tick + 1:
            sealed.set()

    with ThreadPoolExecutor() as pool, engine.lead(TIMELINE) as lead:
        assert not isinstance(lead, LedByAnother)
        done = pool.submit(stepper.run, engine.graph(TIMELINE), tick, leadership=lead, progress=told)
        try:
            assert sealed.wait(60), "the light ones are sealed while the heavy one is computed"
            assert heavy.begun.is_set()
            assert engine.catalog.collection(rows["heavy"]).upper.only == first + 1
            assert len(engine.catalog.capabilities()) > 0
            for line in engine.compact():  # whatever is allowed to go
                assert "could not" not in line
            assert sparkless.execute(f"SELECT a FROM lighter AS OF {tick}").fetchall() == [(3,), (4,)]
            common = "SELECT l.a, h.a FROM lighter l JOIN heavy h ON l.a = h.a + 1"
            engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
            assert engine.catalog.collection(rows["lighter"]).since.only == first
            assert sparkless.execute(f"{common} AS OF {first}").fetchall() == [(3, 2)]
        finally:
            heavy.go_on.set()
        report = done.result(60)
    assert {one.name: one.outcome for one in report.collections if one.name in ("heavy", "behind")} == {
        "heavy": Outcome.ADVANCED,
        "behind": Outcome.ADVANCED,
    }
    assert {engine.catalog.collection(id).upper.only for id in rows.values()} == {tick + 1}
    assert not [one for one in engine.catalog.capabilities() if one.label is not None], "nothing is held any more"
    engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
    assert engine.catalog.collection(rows["lighter"]).since.only == tick
    assert sparkless.execute("SELECT a FROM behind").fetchall() == [(2,), (3,)]


def test_what_finishes_while_others_are_held_is_not_sealed_unheld(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    for name in ("light", "heavy", "heaviest"):
        sparkless.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a FROM t WHERE a > 0")
    sparkless.execute("INSERT INTO t VALUES (1)")
    sparkless.execute("SELECT * FROM light, heavy, heaviest")
    sparkless.execute("INSERT INTO t VALUES (2)")
    heavy, heaviest = Heavy(monkeypatch, "heavy"), Heavy(monkeypatch, "heaviest")
    runs: list[StepRun] = []
    held: set[GlobalId] = set()
    sealed: list[set[GlobalId]] = []
    unsealed, hold, seal = StepRun.unsealed, CommonTime.hold, Catalog.seal

    def unsealed_of(run: StepRun) -> list[CollectionStep]:
        runs.append(run)
        return unsealed(run)

    def holding(common: CommonTime, rows: Iterable[CollectionRow], time: int) -> None:
        rows = list(rows)
        held.update(row.id for row in rows)
        hold(common, rows, time)
        heavy.go_on.set()
        while "heavy" not in {one.name for one in runs[0].done.values()}:
            threading.Event().wait(0.01)

    def sealing(catalog: Catalog, seals: Sequence[Seal], **rest: Any) -> Any:
        sealed.append({one.collection for one in seals} - held)
        heaviest.go_on.set()
        return seal(catalog, seals, **rest)

    monkeypatch.setattr(StepRun, "unsealed", unsealed_of)
    monkeypatch.setattr(CommonTime, "hold", holding)
    monkeypatch.setattr(Catalog, "seal", sealing)
    stepper = Stepper(engine.catalog, engine.spark.open, holder="test", local=engine.shards, seal_after_s=0.0)
    stepper.run(engine.graph(TIMELINE), engine.catalog.read_ts(TIMELINE))
    assert sealed[0] == set()
    assert engine.collection_of("light") in held
    assert sparkless.execute("SELECT a FROM heavy").fetchall() == [(1,), (2,)]
