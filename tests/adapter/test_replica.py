"""A replica computes beside whoever leads: who is faster seals, and nobody waits for the other; most need no Spark."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, Session
from mz_dagster.adapter.engine import SecondRunner
from mz_dagster.adapter.replica import Replica, ReplicaRunning
from mz_dagster.catalog import CatalogBusy
from mz_dagster.cli import main
from mz_dagster.compute import Outcome, StepLost, Stepper
from mz_dagster.compute.step.advance import Advance
from mz_dagster.compute.step.graph import Node
from mz_dagster.errors import OperationalError
from tests.adapter.test_serial_order import project_for_races
from tests.command_line import Started, mz_dagster

TIMELINE = "default"


class Held:
    """Keeps one stepper in the collections of one object until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stepper: Stepper, name: str) -> None:
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()
        advance = Stepper._advance

        def waiting(one: Stepper, run: Any, node: Node, *rest: Any) -> Any:
            if one is not stepper or not node.name.startswith(name):
                return advance(one, run, node, *rest)
            self.begun.set()
            assert self.go_on.wait(60)
            try:
                return advance(one, run, node, *rest)
            finally:
                self.ended.set()

        monkeypatch.setattr(Stepper, "_advance", waiting)


@contextmanager
def at_work(monkeypatch: pytest.MonkeyPatch, done: Any) -> Iterator[None]:
    """Has `done(stepper, name)` called before each computation of a collection."""
    written = Stepper._written

    def doing(stepper: Stepper, advance: Advance) -> Any:
        done(stepper, advance.node.name)
        return written(stepper, advance)

    with monkeypatch.context() as patched:
        patched.setattr(Stepper, "_written", doing)
        yield


def other_of(connection: Connection, holder: str = "another") -> Engine:
    """Returns the same project, opened as by another process."""
    return Engine(connection.engine.project, holder=holder)


def rows(session: Session | Connection, sql: str) -> Counter[Any]:
    found: Any = session.execute(sql)
    return Counter(found.rows if isinstance(session, Session) else found.fetchall())


def settled(replica: Replica) -> None:
    """Has a replica compute until there is nothing more to do."""
    deadline = monotonic() + 60
    while replica.turn():
        assert monotonic() < deadline


@pytest.mark.deep
def test_a_view_is_readable_as_soon_as_the_faster_of_two_has_hydrated_it(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (k integer, a integer)")
    sparkless.execute("INSERT INTO t SELECT x % 3, x FROM generate_series(1, 10) g(x)")
    held = Held(monkeypatch, leading.stepper, "heavy")
    with ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        made = pool.submit(
            Session(leading).execute, "CREATE MATERIALIZED VIEW heavy AS SELECT k, sum(a) AS n FROM t GROUP BY k"
        )
        try:
            assert held.begun.wait(60)
            replica = Replica(other, "big")
            settled(replica)
            made.result(30)  # while the leader's own work is held still
            assert not held.ended.is_set()
            assert rows(Session(leading), "SELECT * FROM heavy") == Counter({(0, 18): 1, (1, 22): 1, (2, 15): 1})
            # And it follows what comes: by whoever is faster, which the held one is not.
            sparkless.execute("INSERT INTO t VALUES (0, 100)")
            read = pool.submit(rows, Session(leading), "SELECT n FROM heavy WHERE k = 0")
            while not read.done():
                settled(replica)
            assert read.result() == Counter({(118,): 1})
        finally:
            held.go_on.set()
    sparkless.execute("INSERT INTO t VALUES (0, 1)")
    assert rows(sparkless, "SELECT n FROM heavy WHERE k = 0") == Counter({(119,): 1})
    assert not [one for one in leading.catalog.leases() if one.batches], "what was dropped holds nothing"


def test_what_is_overtaken_costs_nothing_else_its_work(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    for name, read in (("light", "t"), ("heavy", "light"), ("behind", "heavy"), ("beside", "light")):
        sparkless.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a + 1 AS a FROM {read}")
    sparkless.execute("INSERT INTO t VALUES (1)")
    tick = leading.poll(TIMELINE).tick
    assert tick is not None
    told: list[str] = []
    held = Held(monkeypatch, leading.stepper, "heavy")
    monkeypatch.setattr(leading.stepper, "_seal_after_s", 0.0)
    with ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        step = pool.submit(leading.step, TIMELINE, tick, progress=told.append)
        try:
            assert held.begun.wait(60)
            deadline = monotonic() + 30
            replica = Replica(other, "big")
            while not step.done():
                settled(replica)  # once the leader has sealed what "heavy" reads
                assert monotonic() < deadline
        finally:
            held.go_on.set()
        report = step.result()
    outcomes = {one.name: one.outcome for one in report.collections}
    assert outcomes["light"] is outcomes["beside"] is Outcome.ADVANCED, "computed once, by the leader"
    assert outcomes["heavy"] is Outcome.CURRENT
    assert any(line.startswith("another was faster with") and '"heavy"' in line for line in told)
    assert sum(line.startswith('"light"') and "wrote" in line for line in told) == 1
    for name, value in (("light", 2), ("heavy", 3), ("behind", 4), ("beside", 3)):
        assert rows(sparkless, f"SELECT a FROM {name} AS OF {tick}") == Counter([(value,)])
        (id,) = {leading.collection_of(name)}
        assert len(leading.catalog.live_batches([id])[id]) == 1


def test_a_replica_goes_on_where_a_leader_died(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    sparkless.execute("INSERT INTO t VALUES (1)")
    tick = leading.poll(TIMELINE).tick
    assert tick is not None
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
    assert not isinstance(leading.catalog.lead(TIMELINE, "who dies", 3_600_000), type(None))  # and keeps the lead
    with other_of(sparkless) as other:
        settled(Replica(other, "spare"))
        assert leading.catalog.collection(leading.collection_of("m")).upper.only == tick + 1
        assert rows(sparkless, f"SELECT a FROM m AS OF {tick}") == Counter([(2,)])


def test_what_fails_in_a_replica_is_its_own_affair(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    sparkless.execute("CREATE MATERIALIZED VIEW n AS SELECT a + 2 AS a FROM t")
    sparkless.execute("INSERT INTO t VALUES (1)")
    tick = leading.poll(TIMELINE).tick
    assert tick is not None
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
    tried: list[str] = []

    def fail(stepper: Stepper, name: str) -> None:
        if stepper is not leading.stepper and name == "m":
            tried.append(name)
            raise OperationalError("this replica has no disk")

    with at_work(monkeypatch, fail), other_of(sparkless) as other:
        replica = Replica(other, "poor")
        settled(replica)
        assert tried == ["m"], "it is not tried again and again"
        assert leading.catalog.collection(leading.collection_of("m")).failure is None
        assert leading.catalog.collection(leading.collection_of("n")).upper.only == tick + 1
    assert rows(sparkless, "SELECT a FROM m") == Counter([(2,)])


def test_a_replica_looks_again_at_what_an_error_kept_it_from(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    sparkless.execute("INSERT INTO t VALUES (1)")
    leading = sparkless.engine
    tick = leading.poll(TIMELINE).tick
    assert tick is not None
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
    with other_of(sparkless) as other:
        replica = Replica(other, "waiting")
        with monkeypatch.context() as patched:
            patched.setattr(other.catalog, "read_ts", raising(CatalogBusy("the catalog is busy")))
            with pytest.raises(CatalogBusy):
                replica.turn()
        settled(replica)
    assert leading.catalog.collection(leading.collection_of("m")).upper.only == tick + 1


def raising(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_what_goes_well_in_a_replica_has_failed_no_more(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    sparkless.execute("INSERT INTO t VALUES (1)")
    tick = leading.poll(TIMELINE).tick
    assert tick is not None

    def fail(stepper: Stepper, name: str) -> None:
        if stepper is leading.stepper and name == "m":
            raise OperationalError("the leader has no disk")

    with at_work(monkeypatch, fail):
        assert [one.name for one in leading.step(TIMELINE, tick).failures] == ["m"]
    assert leading.catalog.collection(leading.collection_of("m")).failure == "the leader has no disk"
    with other_of(sparkless) as other:
        settled(Replica(other, "rich"))
    assert leading.catalog.collection(leading.collection_of("m")).failure is None
    assert rows(sparkless, f"SELECT a FROM m AS OF {tick}") == Counter([(2,)])


def test_two_of_one_name_are_not_there_at_once(sparkless: Connection) -> None:
    def seen() -> list[tuple[Any, ...]]:
        return sparkless.execute("SELECT name, engine FROM mz_replicas").fetchall()

    with other_of(sparkless, "one") as one, other_of(sparkless, "two") as two, ThreadPoolExecutor() as pool:
        over = threading.Event()
        running = pool.submit(Replica(one, "big").run, over.is_set)
        try:
            deadline = monotonic() + 30
            while not seen():
                assert monotonic() < deadline
            assert seen() == [("big", "auto")]
            with pytest.raises(ReplicaRunning, match='"big" is running already: one'):
                Replica(two, "big").run(lambda: True)
        finally:
            over.set()
            running.result(30)
    assert seen() == []


@pytest.mark.parametrize(
    ("catalog", "seed"),
    [
        ("sqlite", 0),
        *(pytest.param("sqlite", seed, marks=pytest.mark.deep) for seed in range(1, 10)),
        *(pytest.param("postgresql", seed, marks=pytest.mark.deep) for seed in range(5)),
    ],
)
def test_whoever_computes_views_are_their_queries(
    request: pytest.FixtureRequest, tmp_path: Path, no_spark: None, catalog: str, seed: int
) -> None:
    """Three replicas and three leaders race each other over random writes and new views."""
    project = project_for_races(request, tmp_path, catalog)
    with Connection(Engine(project), Isolation.STRICT_SERIALIZABLE) as connection:
        race(connection, random.Random(seed))


def race(sparkless: Connection, rng: random.Random) -> None:
    for table in ("a", "b"):
        sparkless.execute(f"CREATE TABLE {table} (k integer, v integer)")
    queries = {
        "sums": "SELECT k, sum(v) AS v FROM a GROUP BY k",
        "joined": "SELECT a.k, a.v, b.v AS w FROM a JOIN b USING (k)",
        "missing": "SELECT DISTINCT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "top": "SELECT k, v FROM joined ORDER BY v DESC, k LIMIT 3",
        "counted": "SELECT count(*) AS n, max(v) AS v FROM sums",
    }
    over = threading.Event()

    def drive(engine: Engine) -> None:
        while not over.is_set():
            try:
                engine.poll(TIMELINE)
                for tick in engine.unsealed_ticks(TIMELINE):
                    engine.step(TIMELINE, tick)
            except (SecondRunner, StepLost):
                sleep(0.01)

    with ExitStack() as opened:
        engines = [opened.enter_context(other_of(sparkless, f"e{n}")) for n in range(5)]
        with ThreadPoolExecutor() as pool:
            replicas = [Replica(one, f"r{n}") for n, one in enumerate(engines[:3])]
            running = [pool.submit(one.run, over.is_set) for one in replicas]
            running += [pool.submit(drive, one) for one in engines[3:]]
            try:
                session = Session(sparkless.engine)
                made = list(queries.items())
                for number in range(30):
                    if made and number % 5 == 0:
                        name, query = made.pop(0)
                        session.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
                    table, k, v = rng.choice("ab"), rng.randrange(4), rng.randrange(9)
                    if rng.random() < 0.7:
                        session.execute(f"INSERT INTO {table} VALUES ({k}, {v})")
                    else:
                        session.execute(f"DELETE FROM {table} WHERE k = {k} AND v > {v}")
                for name, query in made:
                    session.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
                for name, query in queries.items():
                    session.execute("BEGIN")
                    assert rows(session, f"SELECT * FROM {name}") == rows(session, query), name
                    session.execute("COMMIT")
            finally:
                over.set()
            for one in running:
                one.result(60)
    for row in sparkless.engine.catalog.collections():
        assert row.failure is None


def test_a_process_that_is_one_comes_computes_and_goes(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("")
    with Engine(Project.load(tmp_path)) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE t (a integer)")
        session.execute("INSERT INTO t VALUES (1), (2)")
        with Started(main, "--project", str(tmp_path), "replica", "big", "--engine", "local") as first:
            assert first.stdout.readline() == 'replica "big" is there\n'
            assert rows(session, "SELECT name, engine FROM mz_replicas") == Counter([("big", "local")])
            # An object that nobody else steps: what is applied from files, for example.
            engine.change(lambda: session.execute("CREATE VIEW sums AS SELECT sum(a) AS n FROM t"))
            session.execute("CREATE INDEX of_sums ON sums (n)")
            assert rows(session, "SELECT n FROM sums") == Counter([(3,)])
            second = mz_dagster(["--project", str(tmp_path), "replica", "big"], tmp_path)
            assert (second.returncode, "is running already" in second.stderr) == (1, True)
            os.kill(first.pid, signal.SIGKILL)
            first.wait(30)
        assert rows(session, "SELECT name FROM mz_replicas") == Counter(), "one that is dead is not there"
        assert mz_dagster(["--project", str(tmp_path), "replica", "big", "--for", "0.5"], tmp_path).returncode == 0
        assert not engine.catalog.replicas()


def test_who_has_lost_the_name_to_another_ends(sparkless: Connection) -> None:
    catalog = sparkless.engine.catalog
    short = replace(sparkless.engine.project, lease_ms=60)
    with Engine(short, holder="one") as one, ThreadPoolExecutor() as pool:
        running = pool.submit(Replica(one, "big").run, lambda: False)
        deadline = monotonic() + 30
        while not (found := catalog.replicas()):
            assert monotonic() < deadline
        catalog.remove_replica(found[0])  # as who registers does with one that ran out
        with pytest.raises(ReplicaRunning, match='another replica "big" is running by now'):
            running.result(30)
