"""What a statement, a step and a poll cost is told by what they reach: work is counted, never timed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection as Transaction
from sqlalchemy import event

from mz_dagster.adapter import Engine, Project, Session, catalog_definitions
from mz_dagster.catalog import Leadership, replica
from mz_dagster.catalog.database import Database
from mz_dagster.clock import ManualClock
from mz_dagster.compute import Graph
from mz_dagster.compute.step import stepper
from mz_dagster.compute.step.run import StepRun
from tests.opened import opened
from tests.sparkless import refuse_spark

TIMELINE = "default"
#: How many views nobody asks for; and how many there are in the larger project.
FEW, MANY = 3, 60


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture(autouse=True)
def sparkless(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_spark(monkeypatch)


def project(folder: Path, others: int) -> Project:
    """Returns a project with a table, a view of it, a view of that, and others that read the same table."""
    (folder / "assets").mkdir(parents=True)
    views = [f"CREATE MATERIALIZED VIEW other{n} AS SELECT a, count(*) AS n FROM t GROUP BY a" for n in range(others)]
    text = [
        "CREATE TABLE t (a integer, b integer)",
        "CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a",
        "CREATE MATERIALIZED VIEW w AS SELECT a FROM v WHERE s > 2",
        "CREATE VIEW plain AS SELECT * FROM w",
        *views,
    ]
    (folder / "assets" / "all.sql").write_text(";\n".join(text) + ";\n")
    found = Project.load(folder)
    with Engine(found) as engine:
        engine.apply()
    return found


@contextmanager
def work(engine: Engine, patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts the catalog's statements, the rows made into values, what is bound and planned, what a step looks at."""
    counts: Counter[str] = Counter()

    def counting(what: str, whole: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **others: object) -> object:
            counts[what] += 1
            return whole(*args, **others)

        return counted

    def run_of(graph: Graph, *others: Any) -> StepRun:
        counts["stepped"] += len(graph.nodes)
        return StepRun(graph, *others)

    asking = threading.get_ident()

    def note(*_: object) -> None:
        if threading.get_ident() == asking:  # others renew leases, as often as their turn comes
            counts["statements"] += 1

    with patch.context() as patched:
        for module, name in (
            (catalog_definitions, "define_stored"),
            (replica, "object_of"),
            (replica, "collection_of"),
            (replica, "_read"),
        ):
            patched.setattr(module, name, counting(name, getattr(module, name)))
        patched.setattr(stepper, "StepRun", run_of)
        database = engine.catalog._database.engine
        event.listen(database, "after_cursor_execute", note)
        try:
            yield counts
        finally:
            event.remove(database, "after_cursor_execute", note)


def assert_same(many: Counter[str], few: Counter[str]) -> None:
    """Compares the work in the larger project with that in the smaller one.

    A lease may have to be renewed by the way, which is a few statements more; one for each view would be many.
    """
    others = [{what: count for what, count in one.items() if what != "statements"} for one in (many, few)]
    assert others[0] == others[1]
    assert abs(many["statements"] - few["statements"]) <= (MANY - FEW) // 5


def test_statements_cost_the_same_in_projects_of_all_sizes(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process's first SELECT, an INSERT, and the SELECT that has to step what it wrote."""
    found: dict[int, dict[str, Counter[str]]] = {}
    for others in (FEW, MANY):
        found[others] = {}
        with Engine(project(tmp_path / str(others), others), clock=clock) as engine:
            session = Session(engine)
            for what, statement in (
                ("first select", "SELECT * FROM plain"),
                ("first insert", "INSERT INTO t VALUES (1, 2), (1, 3)"),
                ("first step", "SELECT * FROM plain"),
                ("insert", "INSERT INTO t VALUES (2, 5)"),
                ("step", "SELECT * FROM plain"),
                ("select", "SELECT * FROM plain"),
                ("insert beside polls", "INSERT INTO t VALUES (3, 5)"),
                ("step beside polls", "SELECT * FROM plain"),
            ):
                clock.advance(10)
                if what == "insert beside polls":
                    settle(engine, clock)  # by now the process knows the graph of everything
                with work(engine, monkeypatch) as counts:
                    rows = session.execute(statement).rows
                found[others][what] = counts
            assert sorted(rows) == [(1,), (2,), (3,)]
    for what, counts in found[MANY].items():
        assert_same(counts, found[FEW][what])
    assert 0 < found[MANY]["first select"]["define_stored"] <= 5
    assert not any(found[MANY][what]["define_stored"] for what in ("insert", "step", "select"))


def test_a_new_process_reads_of_the_catalog_what_its_statements_reach(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(project(tmp_path, FEW), clock=clock) as engine:
        settle(engine, clock)
    for statement in ("SELECT * FROM plain", "INSERT INTO t VALUES (1, 2)"):
        with Engine(Project.load(tmp_path), clock=clock) as engine, work(engine, monkeypatch) as counts:
            Session(engine).execute(statement)
        assert counts["_read"] == 0
        assert counts["statements"] > 0


def test_a_graph_that_is_asked_for_again_costs_nothing(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(project(tmp_path, FEW), clock=clock) as engine:
        session = Session(engine)
        first = engine.graph(TIMELINE)
        with work(engine, monkeypatch) as counts:
            assert engine.graph(TIMELINE) is first
        assert not counts  # the file says that nothing was committed
        session.execute("INSERT INTO t VALUES (1, 1)")
        assert engine.graph(TIMELINE) is first  # frontiers are not of it
        session.execute("ALTER MATERIALIZED VIEW w RENAME TO u")
        session.execute("CREATE MATERIALIZED VIEW x AS SELECT * FROM u")
        with work(engine, monkeypatch) as counts:
            graph = engine.graph(TIMELINE)
        assert counts["define_stored"] == 0  # x was planned when it was created, the others before
        before = {node.id: node for node in first}
        assert {node.name for node in graph if before.get(node.id) is not node} == {"u", "x"}


def test_a_graph_of_what_is_wanted_has_what_that_is_computed_from(tmp_path: Path, clock: ManualClock) -> None:
    with Engine(project(tmp_path, FEW), clock=clock) as engine:
        whole = engine.graph(TIMELINE)
    with Engine(Project.load(tmp_path), clock=clock) as engine:
        for node in whole:
            reached = whole.upstream(frozenset({node.id}))
            graph = engine._graphs.graph(TIMELINE, {node.id})
            assert reached <= graph.by_id.keys()
            assert [graph.by_id[one] for one in reached] == [whole.by_id[one] for one in reached]
            assert all("other" not in one.name for one in graph) or "other" in node.name


# ---- idle polls


def test_an_idle_poll_costs_the_same_in_projects_of_all_sizes(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks as often whatever there is, and looks at no collection for itself."""
    found = {}
    for others in (FEW, MANY):
        with Engine(project(tmp_path / str(others), others), clock=clock) as engine:
            settle(engine, clock)
            clock.advance(50)
            with work(engine, monkeypatch) as counts:
                assert "frontiers stand" in engine.poll(TIMELINE).reason
            assert {row.upper.only for row in engine.catalog.collections()} == {clock.now_ms() + 1}
            found[others] = counts
    assert_same(found[MANY], found[FEW])
    assert found[MANY].keys() == {"statements"}


def settle(engine: Engine, clock: ManualClock) -> None:
    """Brings all collections to now, and has a poll find out that there is nothing to do."""
    for _ in range(2):
        clock.advance(50)
        engine.poll(TIMELINE)
        for tick in engine.unsealed_ticks(TIMELINE):
            assert not engine.step(TIMELINE, tick).failures
    clock.advance(50)
    assert "frontiers stand" in engine.poll(TIMELINE).reason


def test_what_another_process_does_between_idle_polls_is_seen(tmp_path: Path, clock: ManualClock) -> None:
    """A write, a new view, a tick, a drop: none of them is passed over."""
    with Engine(project(tmp_path, 1), clock=clock) as engine, Engine(Project.load(tmp_path), clock=clock) as other:
        session = Session(other)

        def mint() -> None:
            tick = other.catalog.write_ts(TIMELINE, clock.now_ms())
            other.catalog.mint_tick(TIMELINE, tick, {}, other.catalog.last_tick(TIMELINE))

        for change in (
            lambda: session.execute("INSERT INTO t VALUES (7, 7)"),
            lambda: session.execute("CREATE MATERIALIZED VIEW later AS SELECT * FROM v"),
            mint,
            lambda: session.execute("DROP MATERIALIZED VIEW later"),
            lambda: session.execute("CREATE MATERIALIZED VIEW due AS SELECT a FROM t WHERE mz_now() <= 9000000"),
        ):
            settle(engine, clock)
            clock.advance(50)
            change()
            clock.advance(50)
            engine.poll(TIMELINE)
            settle(engine, clock)
            now = clock.now_ms()
            assert {row.upper.only for row in engine.catalog.collections()} == {now + 1}
            for view, query in (("v", "SELECT a, sum(b) FROM t GROUP BY a"), ("w", "SELECT a FROM v WHERE s > 2")):
                at = f"AS OF {now}"
                assert sorted(session.execute(f"SELECT * FROM {view} {at}").rows) == sorted(
                    session.execute(f"{query} {at}").rows
                )
        assert session.execute(f"SELECT a FROM due AS OF {now}").rows == ((7,),)


def test_what_is_due_is_not_passed_over(tmp_path: Path, clock: ManualClock) -> None:
    with Engine(project(tmp_path, 1), clock=clock) as engine:
        session = Session(engine)
        session.execute("CREATE MATERIALIZED VIEW short AS SELECT a FROM t WHERE mz_now() <= b")
        session.execute(f"INSERT INTO t VALUES (1, {clock.now_ms() + 1000})")
        settle(engine, clock)
        while engine.poll(TIMELINE).tick is None:
            assert clock.now_ms() < 1_002_000
            clock.advance(100)
        engine.step(TIMELINE, engine.catalog.last_tick(TIMELINE) or 0)
        assert session.execute("SELECT * FROM short").rows == ()


def test_time_is_passed_over_only_by_who_leads_and_knows_all(tmp_path: Path, clock: ManualClock) -> None:
    """The transaction refuses whoever does not lead any more, and whoever has missed a change or a tick."""
    with Engine(project(tmp_path, 1), clock=clock) as engine:
        settle(engine, clock)
        catalog, upper = engine.catalog, clock.now_ms() + 1
        rows = catalog.collections()

        def passed(leadership: Leadership, time: int) -> bool:
            return catalog.pass_over(TIMELINE, state, upper, time, leadership) is not None

        state = catalog.state()
        lost = catalog.lead(TIMELINE, "first", 1000)
        assert isinstance(lost, Leadership)
        catalog.resign(lost)
        lead = catalog.lead(TIMELINE, "second", 1_000_000)
        assert isinstance(lead, Leadership)
        assert not passed(lost, upper + 5)
        catalog.set_retention(rows[0].id, 5)
        assert not passed(lead, upper + 5)
        state = catalog.state()
        catalog.mint_tick(TIMELINE, upper + 2, {}, catalog.last_tick(TIMELINE))
        assert not passed(lead, upper + 5)
        assert [row.upper for row in catalog.collections()] == [row.upper for row in rows]


def test_a_read_that_steps_a_view_writes_the_catalog_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes the tables and takes the lead, leases what it reads, and seals, which ends both."""
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a > 1")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        begun: list[None] = []
        write = Database.write

        def counted(database: Database, *, until_power_cut: bool = False) -> AbstractContextManager[Transaction]:
            begun.append(None)
            return write(database, until_power_cut=until_power_cut)

        monkeypatch.setattr(Database, "write", counted)
        assert connection.execute("SELECT a FROM v").fetchall() == [(2,)]
        assert len(begun) == 3
