"""A real process is killed at every fail point of poll, step, compaction and sweep; then another simply does it again.

One project lives through all crashes: a source, a table, a join of both, a view and an index over that, maintained by
the test run's own Spark. New data arrive, children are killed on their way, one after the other, and after each crash,
before anything is repaired, every readable time must show exactly what it should. In the end the same commands are
simply done once more. Writes are acknowledged before the crashes, so each of them must be there, once.

Children are forked from a process that has imported everything and connected to nothing, which saves seconds for each.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import BatchState
from mz_dagster.clock import SystemClock
from mz_dagster.fail_point import FAIL_POINTS, VARIABLE
from mz_dagster.storage.spark import SparkConfig, close_sessions, ensure_server
from tests.cli.raw_catalog import url_of
from tests.postgres_server import Postgres

Rows = Counter[tuple[Any, ...]]
Children = Callable[..., int]

ROOT = Path(__file__).resolve().parents[2]

TIMELINE = "feed"
SETTINGS = "[project]\ntimeline = 'feed'\n[timelines.feed]\nclock = 'clock'\n"
SQL = """
CREATE SOURCE orders (id integer NOT NULL, customer text, amount integer, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing') FORMAT JSON ENVELOPE UPSERT;
CREATE TABLE customers (name text NOT NULL, city text);
CREATE MATERIALIZED VIEW placed AS
SELECT o.id, o.amount, c.city FROM orders o JOIN customers c ON c.name = o.customer;
CREATE MATERIALIZED VIEW dear AS SELECT city, amount * 2 AS twice FROM placed WHERE amount > 25;
CREATE INDEX placed_by_id ON placed (id);
"""

#: A leaseholder that was killed is only waited for by the clock; each process runs an hour after the one before.
LATER_MS = 3_600_000

#: Rounds of kills, each `name` or `name:passage` counted from the child's start. New data arrive before a round; its
#: children follow each other, each going on from where the one before was killed. So in the first round every durable
#: write of a life is the last one of some process; the first seal closes the table, the second seals the step. The
#: first two rounds pass every fail point; the others crash a project that has lived longer. Nothing is inlined in the
#: first, and everything in those that follow.
ROUNDS = (
    (
        "tick.before_mint",
        "tick.minted",
        "seal.in_transaction",
        "seal.sealed",
        "append.before_reserve",
        "append.reserved:2",
        "append.written",
        "append.written:3",
        "append.before_seal",
        "seal.in_transaction",
        "seal.sealed",
        "compact.before_reserve",
        "compact.reserved",
        "compact.written",
        "compact.replaced",
        "sweep.before_dead",
        "sweep.dead",
        "sweep.deleted",
        "sweep.forgotten",
    ),
    ("append.inlined:2", "compact.inlined", "catalog.before_commit:5", "catalog.committed:4"),
    ("catalog.before_commit:6", "compact.replaced", "catalog.committed:3"),
    ("seal.in_transaction:2", "sweep.deleted"),
)


def test_every_fail_point_is_passed_by_some_kill() -> None:
    assert {kill.partition(":")[0] for kills in ROUNDS[:2] for kill in kills} == set(FAIL_POINTS)


class LaterClock(SystemClock):
    """Is the machine's clock, set forward."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


def advance(engine: Engine) -> None:
    """Does all that the project's runs and sensors do: what is killed here is repeated as it is."""
    engine.poll(TIMELINE)
    for tick in engine.unsealed_ticks(TIMELINE):
        report = engine.step(TIMELINE, tick)
        if report.failures:
            raise report.failures[0].error or AssertionError(report.failures)
    for _ in engine.compact():
        pass


def live(root: str, state_dir: str, ahead_ms: str, kill: str) -> None:
    """Is the child: it arms the fail point and advances."""
    os.environ[VARIABLE] = kill
    spark = SparkConfig(state_dir=Path(state_dir))
    clock = LaterClock(int(ahead_ms))
    with Engine(Project.load(Path(root)), holder=f"child {kill}", clock=clock, spark=spark) as engine:
        advance(engine)
    close_sessions()


def fork_children() -> None:
    """Is the process that children are forked from: for each line of arguments it prints how the child ended."""
    importlib.import_module("pyspark.sql.connect.session")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(*json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


@dataclass
class World:
    """Writes to the project's inputs, and knows what they hold at each time.

    Attributes:
        orders: The source's content by tick.
        customers: The table's content by time.
    """

    root: Path
    url: str
    spark: SparkConfig
    orders: dict[int, dict[int, tuple[str, int]]] = field(default_factory=dict)
    customers: dict[int, Rows] = field(default_factory=dict)
    round: int = 0
    processes: int = 0

    def inline(self, rows: int) -> None:
        """Decides of how many updates batches are inlined from here on."""
        catalog = f"[catalog]\nurl = '{self.url}'\n"
        (self.root / "mz.toml").write_text(f"{SETTINGS}{catalog}[writes]\ninline_rows = {rows}\n")

    def later_ms(self) -> int:
        """Returns how far ahead the clock of the next process is: beyond all leases of those before it."""
        self.processes += 1
        return self.processes * LATER_MS

    @contextmanager
    def opened(self) -> Iterator[Engine]:
        with Engine(Project.load(self.root), clock=LaterClock(self.later_ms()), spark=self.spark) as engine:
            yield engine

    def arrive(self) -> int:
        """Lets a round's data arrive: acknowledged inserts, then a file; returns the time of the file."""
        self.round += 1
        time = 1000 * self.round
        (self.root / "clock").write_text(str(time))
        rows = max(self.customers.items(), default=(0, Counter()))[1]
        with self.opened() as engine:
            for n in range(4):
                row = (f"c{n}", f"city {self.round % 3}")
                Session(engine).execute("INSERT INTO customers VALUES (?, ?)", row)
                rows = rows + Counter([row])
                self.customers[engine.catalog.read_ts(TIMELINE)] = rows
        orders = dict(max(self.orders.items(), default=(0, {}))[1])
        lines = []
        for id in range(self.round % 4, 12, 4):
            deleted = (id + self.round) % 5 == 0
            value = None if deleted else {"customer": f"c{id % 5}", "amount": 10 * self.round + id}
            lines.append(json.dumps({"key": {"id": id}, "value": value}))
            orders.pop(id, None)
            if value is not None:
                orders[id] = (f"c{id % 5}", 10 * self.round + id)
        (self.root / "landing" / f"{self.round:03}.jsonl.tmp").write_text("\n".join(lines) + "\n")
        (self.root / "landing" / f"{self.round:03}.jsonl.tmp").rename(self.root / "landing" / f"{self.round:03}.jsonl")
        time += 500
        (self.root / "clock").write_text(str(time))
        self.orders[time] = orders
        return time

    def at(self, time: int) -> dict[str, Rows]:
        """Returns what every collection holds at a time."""
        orders = max((one for one in self.orders.items() if one[0] <= time), default=(0, {}))[1]
        customers = max((one for one in self.customers.items() if one[0] <= time), default=(0, Counter()))[1]
        placed: Rows = Counter()
        for (name, city), n in customers.items():
            for id, (customer, amount) in orders.items():
                if name == customer:
                    placed[id, amount, city] += n
        dear: Rows = Counter()
        for (_, amount, city), n in placed.items():
            if amount > 25:
                dear[city, amount * 2] += n
        sources = Counter([(id, *order) for id, order in orders.items()])
        return {"orders": sources, "customers": customers, "placed": placed, "dear": dear}

    def check(self, engine: Engine, *, newest: int | None = None) -> None:
        """Compares every collection at every time at which something happened and that it can be read at.

        Args:
            newest: Look at so many of the latest times only, and some of the others.
        """
        session = Session(engine)
        times = sorted({*self.orders, *self.customers})
        looked = times if newest is None else [*times[:-newest:7], *times[-newest:]]
        for name in ("orders", "customers", "placed", "dear"):
            row = engine.catalog.collection(engine.collection_of(name))
            for time in looked:
                if row.is_readable_at(time):
                    found = Counter(session.execute(f"SELECT * FROM {name} AS OF {time}").rows)
                    assert found == self.at(time)[name], f"{name} at {time}"


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of the catalog, on SQLite or on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/crash/.mz/catalog.sqlite"
    server: Postgres = request.getfixturevalue("postgres_server")
    return url_of(server.new_database())


@pytest.fixture
def world(tmp_path: Path, url: str, spark_config: SparkConfig) -> World:
    root = tmp_path / "crash"
    root.mkdir()
    for folder in ("assets", "landing"):
        (root / folder).mkdir()
    (root / "assets" / "all.sql").write_text(SQL)
    (root / "clock").write_text("1")
    ensure_server(spark_config)
    made = World(root, url, spark_config)
    made.inline(0)
    with made.opened() as engine:
        engine.apply()
    made.arrive()
    with made.opened() as engine:
        advance(engine)
        made.check(engine)
    return made


@pytest.fixture
def children() -> Iterator[Children]:
    """Runs `live` in a child with the arguments given; returns how it ended."""
    command = "from tests.adapter.test_crash import fork_children; fork_children()"
    with subprocess.Popen(
        [sys.executable, "-c", command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        lines, ends = parent.stdin, parent.stdout

        def run(*arguments: str) -> int:
            print(json.dumps(arguments), file=lines, flush=True)
            return int(ends.readline())

        yield run


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("url", "rounds", "each"),
    [
        ("sqlite", 2, 4),
        pytest.param("postgresql", 2, 3, marks=pytest.mark.deep),
        pytest.param("sqlite", len(ROUNDS), 1, marks=pytest.mark.deep),
        pytest.param("postgresql", len(ROUNDS), 1, marks=pytest.mark.deep),
    ],
    indirect=["url"],
)
def test_a_crash_anywhere_loses_and_doubles_nothing(world: World, children: Children, rounds: int, each: int) -> None:
    for number, kills in enumerate(ROUNDS[:rounds]):
        world.inline(1_000 if number else 0)
        time = world.arrive()
        for kill in kills[::each]:
            ended = children(str(world.root), str(world.spark.state_dir), str(world.later_ms()), kill)
            assert ended == -signal.SIGKILL, f"{kill}: the child ended with {ended}"
            with world.opened() as engine:
                world.check(engine, newest=6)  # before anything is repaired
        with world.opened() as engine:
            advance(engine)
            assert engine.catalog.ticks(TIMELINE)[-1] == time
            assert engine.unsealed_ticks(TIMELINE) == ()
            world.check(engine, newest=6)
    assert len(world.orders) == rounds + 1
    with world.opened() as engine:
        for _ in engine.compact():
            pass
        world.check(engine)
        assert engine.catalog.sweepable() == ()
        for row in engine.catalog.collections():
            batches = engine.catalog.batches(row.id)
            assert {batch.state for batch in batches} == {BatchState.LIVE}
            assert engine.shards.stored_batches(row) == {batch.id for batch in batches if batch.stats.files}
            assert row.failure is None
        assert [file.path for file in engine.catalog.bindings(engine.collection_of("orders"))[-1].files] == [
            f"{rounds + 1:03}.jsonl"
        ]
