"""The step, from outside: whole intervals at once, idle ticks, failures that stay where they are, and rivals.

Collections are filled through tables, so that a history of many exact times needs no Spark to be written; what views
hold is read in process and compared with a reference that evaluates the query in Python at each time.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, SecondRunner
from mz_dagster.adapter.graphs import Graphs
from mz_dagster.adapter.timestamps import NoValidTimestamp
from mz_dagster.catalog import BatchId, CatalogState, CollectionRow, Leadership
from mz_dagster.clock import ManualClock
from mz_dagster.compute import Outcome, StepLost, StepReport
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.sparkless import refuse_spark

Row = tuple[Any, ...]
Rows = Counter[Row]
#: The content of tables `r (a, b)`, `s (b, c)`.
Tables = dict[str, Rows]

TIMELINE = "default"
NOW = 1_700_000_000_000

VIEW = """
SELECT r.a, s.c, q.b AS other FROM r JOIN s ON s.b = r.b JOIN r q ON q.a = s.c WHERE r.a + s.c < 9
UNION ALL SELECT a, b, a * 10 FROM r WHERE b <> 2
UNION ALL SELECT b, c, NULL FROM s
"""


def view(tables: Tables) -> Rows:
    """Evaluates `VIEW`."""
    r, s = tables["r"], tables["s"]
    found: Rows = Counter()
    for (a, b), n in r.items():
        for (sb, c), m in s.items():
            for (qa, qb), k in r.items():
                if b == sb and qa == c and a + c < 9:
                    found[a, c, qb] += n * m * k
        if b != 2:
            found[a, b, a * 10] += n
    for (b, c), n in s.items():
        found[b, c, None] += n
    return found


class Story:
    """Writes a random history into the tables and remembers what they held at every time."""

    def __init__(self, connection: Connection, seed: int) -> None:
        self.connection = connection
        self.random = random.Random(seed)
        self.tables: Tables = {"r": Counter(), "s": Counter()}
        self.history: list[tuple[int, Tables]] = []
        connection.execute("CREATE TABLE r (a integer, b integer)")
        connection.execute("CREATE TABLE s (b integer, c integer)")

    def write(self) -> int:
        """Inserts rows or deletes all of a table's; returns the time of the write."""
        name = self.random.choice("rrs")
        if self.tables[name] and self.random.random() < 0.1:
            self.connection.execute(f"DELETE FROM {name}")
            self.tables = self.tables | {name: Counter()}
        else:
            written = [
                (self.random.randrange(5), self.random.randrange(5)) for _ in range(self.random.choice((1, 1, 2)))
            ]
            self.connection.cursor().execute(
                f"INSERT INTO {name} VALUES {', '.join(['(?, ?)'] * len(written))}", [v for row in written for v in row]
            )
            self.tables = self.tables | {name: self.tables[name] + Counter(written)}
        time = self.connection.engine.catalog.read_ts(TIMELINE)
        self.history.append((time, self.tables))
        return time

    def at(self, time: int) -> Tables:
        """Returns what the tables held at a time."""
        found: Tables = {"r": Counter(), "s": Counter()}
        for written, tables in self.history:
            if written <= time:
                found = tables
        return found


def rows_at(connection: Connection, name: str, time: int | None = None) -> Rows:
    """Returns a collection's rows at a time, counted."""
    at = "" if time is None else f" AS OF {time}"
    return Counter(connection.execute(f"SELECT * FROM {name}{at}").fetchall())


def row_of(engine: Engine, name: str) -> CollectionRow:
    return engine.catalog.collection(engine.collection_of(name))


def step(connection: Connection, **options: Any) -> StepReport:
    """Mints a tick and steps to it."""
    poll = connection.engine.poll(TIMELINE)
    assert poll.tick is not None, poll.reason
    return connection.engine.step(TIMELINE, poll.tick, **options)


def outcomes(report: StepReport) -> dict[str, Outcome]:
    return {one.name: one.outcome for one in report.collections}


@contextmanager
def opened(folder: Path, spark: SparkConfig, **settings: Any) -> Iterator[Connection]:
    project = replace(Project.load(folder), **settings)
    with Connection(Engine(project, spark=spark), Isolation.STRICT_SERIALIZABLE) as connection:
        yield connection


# ---- intervals


@pytest.mark.parametrize("steps", [4, pytest.param(100, marks=[pytest.mark.deep, pytest.mark.timeout(1200)])])
def test_an_interval_of_a_hundred_times_in_one_step_is_a_hundred_steps(connection: Connection, steps: int) -> None:
    """Two views of one query over one history: one is stepped again and again, the other once, at the end.

    The reference says what both must hold at each of the hundred times, so few steps tell as much as a hundred.
    """
    story = Story(connection, seed=7)
    for name in ("often", "once"):
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEW}")
    rows_at(connection, "once")  # hydrated while all is empty, so that all hundred times are one interval
    hydrated = row_of(connection.engine, "once").upper.only
    ids = [row_of(connection.engine, name).id for name in ("often", "once")]
    written: set[BatchId] = set()
    stepped = {99, *random.Random(1).sample(range(99), steps - 1)}
    for n in range(100):
        time = story.write()
        if n in stepped:
            assert rows_at(connection, "often") == view(story.tables)
            assert row_of(connection.engine, "often").upper.only == time + 1
            # Young batches are merged as they come, so not all that were written are there at the end.
            written |= {batch.id for batch in connection.engine.catalog.live_batches(ids)[ids[0]]}
    assert row_of(connection.engine, "once").upper.only == hydrated
    assert rows_at(connection, "once") == view(story.tables)
    assert steps // 2 < len(written)
    assert len(connection.engine.catalog.live_batches(ids)[ids[1]]) == 1
    assert len({time for time, _ in story.history}) == 100
    for time, tables in story.history:
        assert rows_at(connection, "once", time) == view(tables), time
        assert rows_at(connection, "often", time) == view(tables), time


def test_what_cancels_out_looks_nothing_up(sparkless: Connection) -> None:
    """A key that is there once more is as distinct as it was: what is made of the distinct keys reads no state."""
    sparkless.execute("CREATE TABLE t (k integer)")
    sparkless.execute("CREATE TABLE d (k integer)")
    sparkless.execute("INSERT INTO t SELECT k FROM generate_series(1, 100) k(k)")
    sparkless.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t EXCEPT SELECT k FROM d")
    for key, states in ((7, 1), (101, 2)):
        sparkless.execute(f"INSERT INTO t VALUES ({key})")
        read = sum(one.rows_read for one in step(sparkless).collections)
        assert states * 100 < read < states * 100 + 20
    assert rows_at(sparkless, "w") == Counter([(k,) for k in range(1, 102)])


# ---- constraints


def check_constraints(engine: Engine) -> None:
    """Checks, for each output and input, W: no upper passes an input's, R: no input's since passes the output's."""
    rows = {row.id: row for row in engine.catalog.collections(TIMELINE)}
    edges = [(row, rows[input]) for row in rows.values() for input in engine.catalog.holds(row.id)]
    assert edges
    for output, input in edges:
        assert output.upper <= input.upper, f"W: {output.id} passed {input.id}"
        assert input.since <= output.since, f"R: {input.id} forgot what {output.id} can be read at"
        if output.is_hydrated:
            assert input.since.less_equal(output.upper.only - 1), f"{input.id} forgot what {output.id} steps from"


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep), pytest.param(3, marks=pytest.mark.deep)])
def test_w_and_r_hold_and_contents_stay_right_whatever_happens(
    tmp_path: Path, spark_config: SparkConfig, seed: int
) -> None:
    """Writes, steps of some collections, new views, forgetting all history and merging, in a random order."""
    with opened(tmp_path, spark_config, retention_ms=0) as connection:
        engine = connection.engine
        story = Story(connection, seed)
        chosen = story.random
        created = ["chain0"]
        connection.execute(f"CREATE MATERIALIZED VIEW chain0 AS {VIEW}")

        def at_least_written() -> None:
            for _ in range(chosen.randrange(1, 4)):
                story.write()

        def new_view() -> None:
            name = f"chain{len(created)}"
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a, c, other FROM {created[-1]}")
            created.append(name)

        def reach() -> None:
            rows_at(connection, chosen.choice(created))

        def compacted() -> None:
            list(engine.compact(thorough=False))

        def forgotten() -> None:
            engine.catalog.allow_compaction(TIMELINE, retention_ms=chosen.choice((0, 0, 20)))

        plan: list[Callable[[], None]] = [at_least_written] * 8 + [reach] * 5 + [new_view] * 2
        plan += [compacted] * 3 + [forgotten] * 5
        chosen.shuffle(plan)
        for act in (at_least_written, *plan, compacted):
            act()
            check_constraints(engine)
            check_readable_times(connection, story, created)
        latest = {name: rows_at(connection, name) for name in created}
        assert all(found == view(story.tables) for found in latest.values())
        assert row_of(engine, "r").since.only > story.history[0][0], "nothing was ever forgotten"


def check_readable_times(connection: Connection, story: Story, created: list[str]) -> None:
    """Reads collections where they are complete and everywhere right; and where they are not, which is refused."""
    engine = connection.engine
    for name in (*created, "r", "s"):
        row = row_of(engine, name)
        since, upper = row.since.only, row.upper.only
        times = {since, upper - 1, *(time for time, _ in story.history[-4:])}
        for time in sorted(time for time in times if since <= time < upper):
            tables = story.at(time)
            assert rows_at(connection, name, time) == (tables[name] if name in tables else view(tables)), (name, time)
        if since > 0:
            with pytest.raises(NoValidTimestamp, match=f"history before {since} is forgotten"):
                rows_at(connection, name, since - 1)
        with pytest.raises(NoValidTimestamp, match="is not known yet") as caught:
            rows_at(connection, name, max(upper, engine.catalog.read_ts(TIMELINE)) + 10**9)
        assert caught.value.hint


# ---- idle ticks


def test_an_idle_tick_over_fifty_collections_costs_next_to_nothing(
    tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, spark_config) as connection:
        for n in range(5):
            (tmp_path / f"in{n}").mkdir()
            connection.execute(f"CREATE SOURCE s{n} (a integer) FROM FILES (FOLDER 'in{n}') FORMAT JSON")
            connection.execute(f"CREATE TABLE t{n} (a integer)")
        connection.execute("INSERT INTO t0 VALUES (1), (2)")
        for n in range(40):
            connection.execute(
                f"CREATE MATERIALIZED VIEW v{n} AS SELECT s.a, t.a AS b FROM s{n % 5} s JOIN t{n % 5} t ON s.a = t.a"
                + (" UNION ALL SELECT a, a FROM t0" if n in (0, 7) else "")
            )
        (tmp_path / "in0" / "1.jsonl").write_text('{"a": 1}\n')
        assert not step(connection).failures
        assert rows_at(connection, "v0") == Counter([(1, 1), (1, 1), (2, 2)])

    refuse_spark(monkeypatch)
    nowhere = SparkConfig(state_dir=tmp_path / "no-spark")
    with opened(tmp_path, nowhere) as connection:
        engine = connection.engine
        assert len(engine.catalog.collections(TIMELINE)) == 50
        commits = sorted(tmp_path.rglob("_delta_log/*"))
        batches = engine.catalog.live_batch_counts()
        assert len(batches) >= 4
        costs: list[float] = []
        waits: list[float] = []
        for _ in range(7):
            tick = engine.catalog.write_ts(TIMELINE, engine.now(TIMELINE))
            engine.catalog.mint_tick(TIMELINE, tick, {}, expected_last=engine.catalog.last_tick(TIMELINE))
            start = process_time()
            report = engine.step(TIMELINE, tick)
            costs.append(1000 * (process_time() - start))
            waits.append(report.engine_ms)
            assert {one.outcome for one in report.collections} <= {Outcome.IDLE, Outcome.CURRENT}
            assert not report.had_work
            assert all(row.upper.only == tick + 1 for row in engine.catalog.collections(TIMELINE))
        poll = engine.poll(TIMELINE)  # finds nothing: no tick, but the frontiers move
        assert poll.tick is None
        assert all(row.upper.only > tick + 1 for row in engine.catalog.collections(TIMELINE)), poll.reason
        assert rows_at(connection, "v0") == Counter([(1, 1), (1, 1), (2, 2)])
        assert sorted(tmp_path.rglob("_delta_log/*")) == commits, "an idle tick committed to Delta"
        assert engine.catalog.live_batch_counts() == batches, "an idle tick wrote a batch"
    assert not nowhere.state_dir.exists()
    # Processor time, since other processes on the machine make a step wait; but it may not wait for anything else.
    assert statistics.median(costs) < 100, costs
    assert min(waits) < 500, waits


# ---- failures


def test_a_failure_stays_where_it_is_says_why_and_heals(connection: Connection, set_budget: SetBudget) -> None:
    set_budget(inlined_rows=0)  # so that there is a folder to be in the way
    engine, execute = connection.engine, connection.execute
    execute("CREATE TABLE t (a integer)")
    for name, query in (
        ("good", "SELECT a + 1 AS a FROM t"),
        ("bad", "SELECT a + 2 AS a FROM t"),
        ("above", "SELECT a + 3 AS a FROM bad"),
        ("top", "SELECT l.a, r.a AS b FROM above l JOIN good r ON l.a = r.a + 4"),
    ):
        execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for name in ("good", "top"):
        assert rows_at(connection, name) == Counter()
    before = row_of(engine, "bad").upper
    folder = engine.project.state / row_of(engine, "bad").shard
    assert not folder.exists()
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("not a shard")
    execute("INSERT INTO t VALUES (1)")

    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    for _ in range(2):  # the second attempt fails in the same way
        report = engine.step(TIMELINE, tick)
        assert outcomes(report)["bad"] is Outcome.FAILED
        assert {outcomes(report)[name] for name in ("above", "top")} == {Outcome.BLOCKED}
        reasons = {one.name: one.reason for one in report.collections}
        assert reasons["above"] == 'waits for "bad"'
        assert reasons["top"] == 'waits for "above"'
        (failed,) = report.failures
        assert failed.error is not None
        assert failed.error.hint
        assert row_of(engine, "good").upper.only == report.tick + 1
        assert row_of(engine, "bad").upper == before
    assert rows_at(connection, "good") == Counter([(2,)])
    told = dict(connection.execute("SELECT name, failure FROM mz_internal.mz_frontiers").fetchall())
    assert told["bad"] == failed.reason
    assert told["good"] is told["above"] is told["t"] is None
    with pytest.raises(Error) as caught:
        rows_at(connection, "top")
    assert caught.value.hint

    folder.unlink()
    assert rows_at(connection, "top") == Counter([(6, 2)])
    assert rows_at(connection, "bad") == Counter([(3,)])
    assert row_of(engine, "bad").failure is None


# ---- rivals


def test_a_second_runner_is_told_who_leads_and_does_nothing(
    connection: Connection, tmp_path: Path, spark_config: SparkConfig
) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a * 2 AS b FROM t")
    connection.execute("INSERT INTO t VALUES (1)")
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    with Engine(Project.load(tmp_path), holder="the other", spark=spark_config) as second:
        told: list[SecondRunner] = []

        def rival(line: str) -> None:
            if "maintaining" in line:
                with pytest.raises(SecondRunner) as caught:
                    second.step(TIMELINE, tick)
                told.append(caught.value)

        report = engine.step(TIMELINE, tick, progress=rival)
        assert outcomes(report)["v"] is Outcome.ADVANCED
        (error,) = told
        assert engine.holder in error.message
        assert error.hint
        assert not error.may_have_taken_effect
        assert set(outcomes(second.step(TIMELINE, tick)).values()) == {Outcome.CURRENT}
    assert rows_at(connection, "v") == Counter([(2,)])


@pytest.mark.parametrize("usurper_steps", [False, True])
def test_a_runner_that_lost_the_lead_seals_nothing(
    tmp_path: Path, spark_config: SparkConfig, usurper_steps: bool
) -> None:
    """As after a pause longer than the lease: another has taken over, and may have done the step already."""
    with opened(tmp_path, spark_config) as connection:
        engine = connection.engine
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a * 2 AS b FROM t")
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT b + 1 AS c FROM v")
        connection.execute("INSERT INTO t VALUES (1)")
        tick = engine.poll(TIMELINE).tick
        assert tick is not None
        before = row_of(engine, "v").upper
        later = ManualClock(engine.clock.now_ms() + 3_600_000)
        with Engine(Project.load(tmp_path), holder="usurper", spark=spark_config, clock=later) as usurper:
            told: list[str] = []

            def pause(line: str) -> None:
                told.append(line)
                if '"v"' in line and "updates in" in line:  # v is written, w is not
                    if usurper_steps:
                        assert not usurper.step(TIMELINE, tick).failures
                    else:
                        assert isinstance(usurper.catalog.lead(TIMELINE, "usurper", 1000), Leadership)
                    engine.clock.sleep(0.2)  # it asks now and then

            with pytest.raises(StepLost) as caught:
                engine.step(TIMELINE, tick, progress=pause)
            assert "run again" in str(caught.value.hint)
            assert not caught.value.may_have_taken_effect
            assert not [line for line in told if line.startswith('"w"')], "it went on although it had lost the lead"
            if not usurper_steps:
                assert row_of(engine, "v").upper == before
                assert row_of(engine, "w").upper.less_equal(tick)
                later.advance(10_000)
            assert not usurper.step(TIMELINE, tick).failures
        assert rows_at(connection, "v", tick) == Counter([(2,)])
        assert rows_at(connection, "w", tick) == Counter([(3,)])
        assert len(engine.catalog.live_batches([row_of(engine, "v").id])[row_of(engine, "v").id]) == 1


def test_a_step_to_a_time_that_nothing_decided_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    with pytest.raises(Error, match="is no tick of timeline") as caught:
        connection.engine.step(TIMELINE, NOW * 2)
    assert "Poll its sources first" in str(caught.value.hint)
    assert row_of(connection.engine, "t").upper.only == 0


def test_a_subset_is_stepped_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    for name in ("v", "w"):
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a FROM t WHERE a > 0")
    connection.execute("INSERT INTO t VALUES (1), (-1)")
    before = row_of(connection.engine, "w").upper
    wanted: frozenset[GlobalId] = frozenset({row_of(connection.engine, "v").id, row_of(connection.engine, "t").id})
    report = step(connection, only=wanted)
    assert outcomes(report) == {"t": Outcome.CURRENT, "v": Outcome.ADVANCED}
    assert row_of(connection.engine, "w").upper == before
    assert rows_at(connection, "v") == rows_at(connection, "w") == Counter([(1,)])


def test_a_graph_is_of_the_numbering_of_changes_that_there_is(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a repair of the catalog changes are numbered anew, and a number may come again."""
    engine = sparkless.engine
    graphs = Graphs(engine.catalog, engine.definitions)
    sparkless.execute("CREATE TABLE t (a integer)")
    before = engine.catalog.state()
    assert len(graphs.graph("default").nodes) == 1
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    after = engine.catalog.state()
    anew = CatalogState("another mark", after.number, before.definitions, after._known)
    monkeypatch.setattr(engine.catalog, "state", lambda: anew)
    assert len(graphs.graph("default").nodes) == 2
