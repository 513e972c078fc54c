"""Temporal filters in a session, on a clock that the test moves: the seed's session, windows, edits, idle time.

What a view must hold at a time is reckoned here from the rows that were written, and read back through AS OF at every
edge of every row's interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.clock import ManualClock
from mz_dagster.compute import Outcome
from mz_dagster.storage.compact import Merge, compact
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.sparkless import refuse_spark

Row = tuple[Any, ...]
START = 1_627_380_750_000


class Session:
    """A connection to a new project whose clock stands still until it is moved."""

    def __init__(self, connection: Connection, clock: ManualClock) -> None:
        self.connection = connection
        self.clock = clock

    @property
    def engine(self) -> Engine:
        return self.connection.engine

    def at(self, now: int) -> Session:
        self.clock.advance(now - self.clock.now_ms())
        return self

    def execute(self, sql: str, *parameters: object) -> str:
        return self.connection.execute(sql, parameters).tag

    def rows(self, sql: str) -> list[Row]:
        return sorted(self.connection.execute(sql).fetchall(), key=repr)

    def next_dues(self) -> list[int]:
        return [row.next_due for row in self.engine.catalog.collections() if row.next_due is not None]


@pytest.fixture
def session(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Session]:
    clock = ManualClock(START)
    engine = Engine(Project.load(tmp_path), spark=spark_config, clock=clock)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        yield Session(connection, clock)


#: Where the states are advanced: in this process, or by Spark.
WHERE = pytest.mark.parametrize("most_here", [Budget().evaluated_updates, 0], ids=["here", "by Spark"])


def edges(intervals: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the milliseconds before, at and after each edge."""
    return sorted({time + by for interval in intervals for time in interval for by in (-1, 0, 1)})


SELECT_VALID = (
    "SELECT content, insert_ts, delete_ts FROM events "
    "WHERE mz_logical_timestamp() >= insert_ts AND mz_logical_timestamp() < delete_ts"
)


def test_the_seeds_session(session: Session) -> None:
    session.execute("CREATE TABLE events (content text, insert_ts numeric(38, 0), delete_ts numeric(38, 0))")
    session.execute(f"CREATE MATERIALIZED VIEW valid AS {SELECT_VALID}")
    session.execute(
        "CREATE MATERIALIZED VIEW valid_events AS SELECT content, count(*) FROM events "
        "WHERE mz_logical_timestamp() >= insert_ts AND mz_logical_timestamp() < delete_ts GROUP BY content"
    )
    shown = session.connection.execute("SELECT *, mz_logical_timestamp() FROM valid")
    assert [column[0] for column in shown.description or ()] == [
        "content", "insert_ts", "delete_ts", "mz_logical_timestamp",
    ]  # fmt: skip
    assert shown.fetchall() == []
    written = {"hello": (1627380752528, 5000), "welcome": (1627380752530, 10000), "goodbye": (1627380752533, 15000)}
    for content, (now, length) in written.items():
        session.at(now).execute(
            f"INSERT INTO events VALUES ('{content}', extract(epoch from now()) * 1000,"
            f" (extract(epoch from now()) * 1000) + {length})"
        )

    def valid(time: int) -> list[Row]:
        found = [(c, Decimal(now), Decimal(now + length)) for c, (now, length) in written.items()]
        return sorted((row for row in found if row[1] <= time < row[2]), key=repr)

    moments = [1627380754223, 1627380755249, 1627380755920, 1627380757989, 1627380762667, 1627380767600]
    for moment, count in zip(moments, [3, 3, 3, 2, 1, 0], strict=True):
        expected = [(*row, moment) for row in valid(moment)]
        assert len(expected) == count
        assert session.at(moment).rows("SELECT *, mz_logical_timestamp() FROM valid") == expected
        assert session.rows("SELECT * FROM valid_events") == [(row[0], 1) for row in valid(moment)]
    times = edges((now, now + length) for now, length in written.values())
    for time in times:
        assert session.rows(f"SELECT * FROM valid AS OF {time}") == valid(time), time
    for time in (*moments[2:5], *edges([(1627380757528, 1627380757528)])):
        assert session.rows(f"{SELECT_VALID} AS OF {time}") == valid(time), time


def test_what_is_due_makes_a_step_and_little_needs_no_spark(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.execute("CREATE TABLE t (a integer, starts bigint, ends bigint)")
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE mz_now() BETWEEN starts AND ends")
    session.execute(f"INSERT INTO t VALUES (1, {START + 100}, {START + 200}), (2, {START + 150}, NULL)")
    assert session.rows("SELECT * FROM v") == []
    assert session.next_dues() == [START + 100]
    with monkeypatch.context() as patch:
        refuse_spark(patch)
        session.execute(f"INSERT INTO t VALUES (3, {START + 900}, {START + 950})")
        assert session.rows("SELECT * FROM v") == []
        session.execute("DELETE FROM t WHERE a = 3")
        assert session.at(START + 99).rows("SELECT * FROM v") == []
        assert session.rows("SELECT mz_now()") == [(START + 99,)]
        poll = session.engine.poll("default")
        assert poll.tick is None
        assert session.at(START + 100).rows("SELECT * FROM v") == [(1,)]
    assert session.next_dues() == [START + 201]
    # No reader asks, and no data comes: the poll itself mints a tick for what is due.
    assert session.at(START + 200).engine.poll("default").tick is None
    poll = session.at(START + 300).engine.poll("default")
    assert poll.tick == START + 300
    report = session.engine.step("default", poll.tick)
    assert not report.failures
    assert [one.outcome for one in report.collections if one.name.startswith("v")] == [Outcome.ADVANCED] * 2
    # What was deleted before it began is still looked at then: the time kept is a bound from below.
    assert session.next_dues() == [START + 900]
    with monkeypatch.context() as patch:
        refuse_spark(patch)
        assert session.rows("SELECT * FROM v") == []
        assert session.rows(f"SELECT * FROM v AS OF {START + 200}") == [(1,)]
        assert session.rows(f"SELECT * FROM v AS OF {START + 201}") == []


def test_the_state_holds_only_what_is_or_will_be_valid(session: Session) -> None:
    session.execute("CREATE TABLE t (a integer, starts bigint, ends bigint)")
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE mz_now() >= starts AND mz_now() < ends")
    gone = ", ".join(f"({a}, {START}, {START + 50})" for a in range(40))
    late = ", ".join(f"({a}, {START - 9}, {START - 1})" for a in range(40))
    session.execute(f"INSERT INTO t VALUES {gone}")
    session.execute(f"INSERT INTO t VALUES {late}, (100, {START}, {START + 900}), (101, {START + 500}, {START + 900})")
    assert len(session.rows("SELECT * FROM v")) == 41
    assert session.at(START + 60).rows("SELECT * FROM v") == [(100,)]
    session.execute("INSERT INTO t VALUES (102, 0, 1)")  # moves every frontier on
    assert session.rows("SELECT * FROM v") == [(100,)]
    catalog = session.engine.catalog
    catalog.allow_compaction("default", retention_ms=0)
    (state,) = (row.id for row in catalog.objects() if row.kind == "arrangement")
    assert catalog.live_batch_counts()[state][1].rows == 82
    merge = compact(catalog, session.engine.shards, catalog.collection(state), holder="test", least_parts=1)
    assert isinstance(merge, Merge)
    assert catalog.live_batch_counts()[state][1].rows == 2
    assert session.at(START + 500).rows("SELECT * FROM v") == [(100,), (101,)]
    assert session.at(START + 900).rows("SELECT * FROM v") == []


@WHERE
def test_edited_events_leave_early_stay_longer_and_are_replaced(
    session: Session, set_budget: SetBudget, most_here: int
) -> None:
    set_budget(evaluated_updates=most_here)
    session.execute("CREATE TABLE t (a integer, starts bigint, ends bigint)")
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT a, ends FROM t WHERE mz_now() >= starts AND mz_now() < ends")
    at = START + 1000
    session.execute(
        f"INSERT INTO t VALUES (1, {at}, {at + 500}), (2, {at}, {at + 500}), (3, {at}, {at + 500}),"
        f" (4, {at + 500}, {at})"
    )
    assert session.at(at + 10).rows("SELECT * FROM v") == [(a, at + 500) for a in (1, 2, 3)]
    session.at(at + 100).execute("DELETE FROM t WHERE a = 1")
    session.at(at + 200).execute(f"UPDATE t SET ends = {at + 700} WHERE a = 2")
    session.at(at + 300).execute(f"UPDATE t SET a = 5, starts = {at + 400}, ends = {at + 600} WHERE a = 3")
    session.at(at + 800).rows("SELECT * FROM v")
    held = {
        (1, at + 500): [(at, at + 100)],
        (2, at + 500): [(at, at + 200)],
        (2, at + 700): [(at + 200, at + 700)],
        (3, at + 500): [(at, at + 300)],
        (5, at + 600): [(at + 400, at + 600)],
    }
    for time in edges(interval for intervals in held.values() for interval in intervals):
        expected = [row for row, intervals in held.items() if any(low <= time < high for low, high in intervals)]
        assert session.rows(f"SELECT * FROM v AS OF {time}") == sorted(expected), time - at


WINDOWS: dict[str, tuple[str, str, Callable[[int], tuple[int, int]]]] = {
    "slides": ("at_ms", "at_ms + 5000", lambda t: (t, t + 5000)),
    "hops": (
        "1000 * (at_ms / 1000)",
        "1000 * (at_ms / 1000) + 5000",
        lambda t: (t // 1000 * 1000, t // 1000 * 1000 + 5000),
    ),
    "tumbles": (
        "1000 * (at_ms / 1000)",
        "1000 * (at_ms / 1000) + 1000",
        lambda t: (t // 1000 * 1000, t // 1000 * 1000 + 1000),
    ),
    # The quotient of numerics is exact, so this slides.
    "numerics": ("1000 * (exact / 1000)", "1000 * (exact / 1000) + 1000", lambda t: (t, t + 1000)),
}


def test_sliding_hopping_and_tumbling_windows(session: Session) -> None:
    session.execute("CREATE TABLE t (content text, at_ms bigint, exact numeric(38, 0))")
    for name, (low, high, _) in WINDOWS.items():
        session.execute(
            f"CREATE MATERIALIZED VIEW {name} AS SELECT content, count(*) AS n FROM t "
            f"WHERE mz_now() >= {low} AND mz_now() < {high} GROUP BY content"
        )
    base = START + 10_000
    arrivals = [(name, base + by) for name, by in zip("aabacab", (3, 700, 700, 999, 1000, 1001, 2500), strict=True)]
    session.execute("INSERT INTO t VALUES " + ", ".join(f"('{name}', {at}, {at})" for name, at in arrivals))
    session.at(base + 9000).rows("SELECT * FROM slides, hops, tumbles, numerics")
    for name, (_, _, interval) in WINDOWS.items():
        held = [(content, interval(at)) for content, at in arrivals]
        for time in edges(one for _, one in held):
            counted = Counter(content for content, (low, high) in held if low <= time < high)
            assert session.rows(f"SELECT * FROM {name} AS OF {time}") == sorted(counted.items()), (name, time - base)
    # Each record is in one tumbling window, so the windows add up to all of them.
    totals = [session.rows(f"SELECT * FROM tumbles AS OF {base + 1000 * i}") for i in range(3)]
    assert sum(n for window in totals for _, n in window) == len(arrivals)


@WHERE
def test_views_over_temporal_views_and_their_errors(session: Session, set_budget: SetBudget, most_here: int) -> None:
    """Joins of temporal relations, not-equal as a union, and a bound that is no time until its row is corrected."""
    set_budget(evaluated_updates=most_here)
    session.execute("CREATE TABLE t (k integer, starts bigint, ends numeric(38, 1))")
    session.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT k, starts FROM t WHERE mz_now() >= starts AND mz_now() < ends"
    )
    session.execute(
        "CREATE VIEW other AS SELECT k FROM t WHERE mz_now() < starts UNION ALL SELECT k FROM t WHERE mz_now() > starts"
    )
    session.execute("CREATE MATERIALIZED VIEW differs AS SELECT k FROM other")
    session.execute(
        "CREATE MATERIALIZED VIEW pairs AS SELECT v.k, w.k AS other FROM v JOIN v AS w ON v.starts < w.starts"
    )
    at = START + 1000
    session.execute(f"INSERT INTO t VALUES (1, {at}, {at + 30}), (2, {at + 10}, {at + 20}), (3, {at + 15}, NULL)")
    session.at(at + 100).rows("SELECT 1 FROM pairs, differs")
    for time in (at + 9, at + 10, at + 19, at + 20, at + 30):
        assert session.rows(f"SELECT * FROM pairs AS OF {time}") == ([(1, 2)] if at + 10 <= time < at + 20 else [])
    for time in (at - 1, at, at + 1, at + 10, at + 15):
        expected = [(k,) for k, starts in ((1, at), (2, at + 10), (3, at + 15)) if time != starts]
        assert session.rows(f"SELECT * FROM differs AS OF {time}") == expected
    session.execute("INSERT INTO t VALUES (4, 0, 2000000000000.5)")
    with pytest.raises(Exception, match="mz_timestamp out of range"):
        session.rows("SELECT * FROM v")
    session.execute("UPDATE t SET ends = 2000000000000 WHERE k = 4")
    assert session.rows("SELECT * FROM v") == [(4, 0)]


@pytest.mark.deep
def test_query_3_of_the_benchmark_as_time_goes_by(session: Session) -> None:
    """Q3 with the reader's time for its date: unshipped orders by value, kept only as long as they can count."""
    session.execute("CREATE TABLE customer (c_custkey integer, c_mktsegment text)")
    session.execute("CREATE TABLE orders (o_orderkey integer, o_custkey integer, o_orderdate date)")
    session.execute("CREATE TABLE lineitem (l_orderkey integer, l_price numeric(38, 2), l_shipdate date)")
    session.execute(
        "CREATE MATERIALIZED VIEW q3 AS SELECT o_orderkey, o_orderdate, sum(l_price) AS revenue "
        "FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey "
        "AND l_orderkey = o_orderkey AND o_orderdate < mz_logical_timestamp() AND l_shipdate > mz_logical_timestamp() "
        "AND o_orderdate + '90 days' > mz_logical_timestamp() GROUP BY o_orderkey, o_orderdate"
    )
    session.execute("INSERT INTO customer VALUES (1, 'BUILDING'), (2, 'MACHINERY')")
    session.execute("INSERT INTO orders VALUES (10, 1, '2021-07-20'), (11, 1, '2021-08-01'), (12, 2, '2021-07-20')")
    session.execute(
        "INSERT INTO lineitem VALUES (10, 5, '2021-07-29'), (10, 7, '2021-12-01'), (11, 9, '2021-12-01'),"
        " (12, 1, '2021-12-01'), (10, 100, '2021-07-01')"
    )

    def revenues(day: str, before: int = 0) -> list[Row]:
        (midnight,) = session.rows(f"SELECT extract(epoch from timestamptz '{day} 00:00:00Z') * 1000")[0]
        found = session.at(int(midnight) - before).rows("SELECT o_orderkey, revenue FROM q3")
        return [(key, float(revenue)) for key, revenue in found]

    assert revenues("2021-07-28") == [(10, 12.0)]
    assert revenues("2021-07-29", before=1) == [(10, 12.0)]
    assert revenues("2021-07-29") == [(10, 7.0)]
    assert revenues("2021-08-02") == [(10, 7.0), (11, 9.0)]
    assert revenues("2021-10-18", before=1) == [(10, 7.0), (11, 9.0)]
    assert revenues("2021-10-18") == [(11, 9.0)]
    assert revenues("2021-12-02") == []
