"""Capabilities beside the engine: what it shows of them, what is written, and what is maintained by right of them."""

from __future__ import annotations

from collections import Counter

import pytest

from mz_dagster.adapter import Connection, Engine, maintain_view
from mz_dagster.adapter.dml import Autocommit, DecidedWrite, read_and_append
from mz_dagster.catalog import (
    FrontierNotHeld,
    InputNotHeld,
    ReadCapability,
    Seal,
    UnknownCapability,
    UpperBeyondInput,
    WrongDefinition,
)
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.operations.doctor import Severity, examine
from mz_dagster.scalars.types import INT4, INT8, Column
from mz_dagster.sql.errors import QueryOfTwoTimelines
from mz_dagster.storage import CollectionDescription, Storage, Updates
from tests.storage.crashing import Spot, crashing


def assert_healthy(engine: Engine) -> None:
    broken = [one for one in examine(engine.project.root, deep=True).findings if one.severity is Severity.BREAK]
    assert broken == []


def test_who_holds_what_can_be_queried(sparkless: Connection) -> None:
    engine = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    t, v = engine.collection_of("t"), engine.collection_of("v")
    storage = Storage(engine.catalog, engine.shards, holder="a report", lease_ms=60_000)
    read, write = storage.acquire_capabilities(t)
    assert write.frontier.is_empty  # sessions write tables, nobody else
    found = sparkless.execute(
        "SELECT capability, kind, frontier, holder, expires_at, live FROM mz_internal.mz_capabilities"
        f" WHERE object_id = '{t}' ORDER BY expires_at"
    ).fetchall()
    assert found[0] == (read.label, "read", 0, "a report", read.until_ms, True)
    assert [(one[0], one[3], one[5]) for one in found[1:]] == [(None, v, True)]


def test_a_collection_that_its_writers_leave_behind_holds_up_no_tick(sparkless: Connection) -> None:
    engine = sparkless.engine
    storage = Storage(engine.catalog, engine.shards, holder="a script", lease_ms=None)
    read, write = storage.create(storage.new_id(), CollectionDescription("default", (Column("n", INT4),)))
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    tick = engine.catalog.write_ts("default", engine.now("default"))
    engine.catalog.mint_tick("default", tick, {}, expected_last=None)
    assert engine.unsealed_ticks("default") == (tick,)
    engine.step("default", tick)
    assert engine.unsealed_ticks("default") == ()
    assert engine.catalog.collection(read.collection).upper == write.frontier
    storage.append(write, [((7,), 3, 1)], Antichain.of(EPOCH_MS, 5))
    list(engine.compact())
    assert engine.catalog.collection(read.collection).since == read.frontier


def test_a_collection_of_several_writers_and_readers_is_healthy(sparkless: Connection) -> None:
    engine = sparkless.engine
    storage = Storage(engine.catalog, engine.shards, holder="a script", lease_ms=None)
    read, write = storage.create(storage.new_id(), CollectionDescription("default", (Column("n", INT4),)))
    other = storage.clone_capability(write)
    storage.append(write, [((1,), 3, 1), ((2,), 8, 1)], Antichain.of(EPOCH_MS, 9))
    storage.append(other, [((3,), 4, 1)], Antichain.of(EPOCH_MS, 5))
    storage.downgrade_capability(read, Antichain.of(EPOCH_MS, 20))
    engine.catalog.allow_compaction("default")
    assert_healthy(engine)


def test_views_begin_at_no_maximum_over_two_timelines(sparkless: Connection) -> None:
    engine = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE TABLE far (a integer) IN TIMELINE other")
    storage = Storage(engine.catalog, engine.shards, holder="a script")
    reads = [storage.acquire_capabilities(engine.collection_of(name))[0] for name in ("t", "far")]
    with pytest.raises(QueryOfTwoTimelines, match="two timelines"):
        maintain_view(engine, reads, "CREATE MATERIALIZED VIEW v AS SELECT a FROM t")


VIEWS = """
CREATE MATERIALIZED VIEW doubled AS SELECT a * 2 AS b FROM t;
CREATE MATERIALIZED VIEW common AS SELECT t.a, u.c FROM t JOIN u ON u.c = t.a;
"""


def test_a_view_is_maintained_by_right_of_its_inputs_capabilities(connection: Connection) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE TABLE u (c integer)")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    connection.execute("INSERT INTO u VALUES (2)")
    connection.execute("SELECT a FROM t, u")  # so that both are known now
    storage = Storage(engine.catalog, engine.shards, holder="test", lease_ms=None)
    t, _ = storage.acquire_capabilities(engine.collection_of("t"))
    u, _ = storage.acquire_capabilities(engine.collection_of("u"))
    known = engine.catalog.read_ts("default")
    u = storage.downgrade_capability(u, Antichain.of(EPOCH_MS, known))
    outputs = maintain_view(engine, [t, u], VIEWS)
    assert [one.frontier for one in outputs] == [u.frontier] * 2  # inputs are read at one common time
    storage.drop_capability(t)
    storage.drop_capability(u)

    # R: the inputs' history that the views have yet to read is held, though nobody else keeps any.
    connection.execute("INSERT INTO t VALUES (3)")
    engine.reach("default", engine.catalog.read_ts("default"), frozenset({t.collection, u.collection}))
    engine.catalog.allow_compaction("default", retention_ms=0)
    assert engine.catalog.collection(t.collection).since == Antichain.of(EPOCH_MS, known - 1)
    # W: no view passes an input.
    output = engine.catalog.collection(outputs[0].collection)
    with pytest.raises(UpperBeyondInput):
        engine.catalog.seal([Seal(output.id, output.upper, Antichain.of(EPOCH_MS, known + 10**9))])

    assert sorted(connection.execute("SELECT b FROM doubled").fetchall()) == [(2,), (4,), (6,)]
    assert connection.execute("SELECT a, c FROM common").fetchall() == [(2, 2)]
    storage.drop_capability(outputs[0])
    storage.drop_capability(outputs[1])
    engine.catalog.allow_compaction("default", retention_ms=0)
    assert not engine.catalog.collection(t.collection).since.less_equal(known)


def test_what_is_not_held_is_not_maintained(sparkless: Connection) -> None:
    engine = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE TABLE u (c integer)")
    storage = Storage(engine.catalog, engine.shards, holder="test", lease_ms=None)
    t, _ = storage.acquire_capabilities(engine.collection_of("t"))
    u, _ = storage.acquire_capabilities(engine.collection_of("u"))
    with pytest.raises(InputNotHeld, match=f'"{u.collection}"'):
        maintain_view(engine, [t], VIEWS)
    with pytest.raises(FrontierNotHeld):
        maintain_view(engine, [], VIEWS)
    with pytest.raises(FrontierNotHeld, match="cannot be read at"):  # nobody knows t then
        maintain_view(engine, [t, storage.downgrade_capability(u, Antichain.of(EPOCH_MS, 10**15))], VIEWS)
    with pytest.raises(ProgrammingError, match="only a materialized view"):
        maintain_view(engine, [t], "CREATE VIEW v AS SELECT a FROM t")
    storage.drop_capability(t)
    with pytest.raises(UnknownCapability):
        maintain_view(engine, [t, u], VIEWS)
    assert sparkless.execute("SHOW MATERIALIZED VIEWS").fetchall() == []


WRITTEN = """
CREATE MATERIALIZED VIEW large AS SELECT k, v FROM t WHERE v > 4;
CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k;
"""
SUMS = (Column("k", INT4), Column("s", INT8), Column("n", INT8))
TIMELINE = "default"

Rows = Counter[tuple[int, ...]]


def sums(rows: Rows) -> Rows:
    total: dict[int, tuple[int, int]] = {}
    for (k, v), count in rows.items():
        s, n = total.get(k, (0, 0))
        total[k] = (s + v * count, n + count)
    return Counter([(k, s, n) for k, (s, n) in total.items() if n])


def known_now(connection: Connection, storage: Storage, name: str) -> ReadCapability:
    """Returns a capability to read a table from the present on."""
    connection.execute(f"SELECT * FROM {name}")
    engine = connection.engine
    read, _ = storage.acquire_capabilities(engine.collection_of(name))
    return storage.downgrade_capability(read, Antichain.of(EPOCH_MS, engine.catalog.read_ts(TIMELINE)))


def step(engine: Engine, crash: Spot | None) -> None:
    """Mints a tick and steps to it, or to one that a crash has left; nobody waits for the lead of one who crashed."""
    with crashing(crash) as machine:
        engine.poll(TIMELINE)
        for tick in engine.unsealed_ticks(TIMELINE):
            assert not engine.stepper.run(engine.graph(TIMELINE), tick).failures
    assert machine.crashed == (crash is not None)


@pytest.mark.timeout(300)
def test_a_collection_has_the_contents_of_the_view_that_is_written_to_it(connection: Connection) -> None:
    engine = connection.engine
    storage = Storage(engine.catalog, engine.shards, holder="test", lease_ms=None)
    connection.execute("CREATE TABLE t (k integer, v integer)")
    connection.execute("INSERT INTO t VALUES (1, 2), (1, 5), (2, 7)")
    t = known_now(connection, storage, "t")
    begin = t.frontier.only
    read, write = storage.create(storage.new_id(), CollectionDescription(TIMELINE, SUMS, start=begin))
    outputs = maintain_view(engine, [t], WRITTEN, [None, write])
    assert engine.collection_of("sums") == read.collection == outputs[1].collection
    assert engine.collection_of("large") == outputs[0].collection
    storage.drop_capability(t)

    contents: dict[int, Rows] = {begin: Counter({(1, 2): 1, (1, 5): 1, (2, 7): 1})}

    def change(*updates: tuple[tuple[int, int], int]) -> None:
        rows = contents[max(contents)].copy()
        for row, diff in updates:
            rows[row] += diff
        time = read_and_append(Autocommit(engine), t.collection, lambda _: DecidedWrite(updates))
        assert time is not None
        contents[time] = +rows

    def check() -> None:
        row = engine.catalog.collection(read.collection)
        for time, rows in contents.items():
            if row.is_readable_at(time):
                found = Counter(connection.execute(f"SELECT * FROM sums AS OF {time}").fetchall())
                assert found == sums(rows), f"at {time}"

    crashes = (("append.inlined", 2), ("seal.in_transaction", 2), ("seal.sealed", 2))  # the first seal closes the table
    for n, crash in enumerate((*crashes, None)):
        change(((1, 10 * n), 1), ((3, n), 1))
        change(((1, 10 * n), -1), ((2, 7), 1 if n % 2 else -1))
        if crash is not None:
            step(engine, crash)
            check()  # before anything is repaired
        step(engine, None)
        check()
    last = max(contents)
    assert engine.catalog.collection(read.collection).is_readable_at(last)

    # Whoever could read the collection before sees each of its contents, and nothing else.
    with storage.subscribe_at(read, up_to=last + 1) as messages:
        seen = [one for message in messages if isinstance(message, Updates) for one in message.frame.to_pylist()]
    for time, rows in contents.items():
        found: Rows = Counter()
        for one in seen:
            if one["mz_timestamp"] <= time:
                found[one["k"], one["s"], one["n"]] += one["mz_diff"]
        assert +found == sums(rows), f"at {time}"

    with pytest.raises(UnknownCapability, match=write.label):  # whose it was cannot write any more
        storage.append(write, [((1, 1, 1), begin, 1)], Antichain.of(EPOCH_MS, begin + 1))
    again, over = storage.acquire_capabilities(read.collection)
    assert over.frontier.is_empty
    upper = engine.catalog.collection(read.collection).upper
    with pytest.raises(UpperBeyondInput):
        engine.catalog.seal([Seal(read.collection, upper, Antichain.of(EPOCH_MS, upper.only + 10**9))])
    engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
    assert engine.catalog.collection(t.collection).since.less_equal(begin)  # which readers of the views hold
    storage.drop_capability(outputs[0])
    storage.drop_capability(outputs[1])
    storage.drop_capability(read)
    list(engine.compact())
    check()
    step(engine, None)
    assert_healthy(engine)
    connection.execute("DROP MATERIALIZED VIEW sums")
    assert not engine.catalog.collection(read.collection).since.is_empty  # somebody may read it yet
    storage.drop_capability(again)
    assert engine.catalog.collection(read.collection).since.is_empty
    with pytest.raises(UnknownCapability):
        storage.renew_capability(read)


@pytest.mark.parametrize("spot", ["catalog.before_commit", "catalog.committed"])
def test_a_collection_is_handed_over_whole_or_not_at_all(sparkless: Connection, spot: str) -> None:
    engine = sparkless.engine
    storage = Storage(engine.catalog, engine.shards, holder="test", lease_ms=None)
    sparkless.execute("CREATE TABLE t (k integer, v integer)")
    t, _ = storage.acquire_capabilities(engine.collection_of("t"))
    _, write = storage.create(storage.new_id(), CollectionDescription(TIMELINE, SUMS, start=t.frontier.only))
    with crashing((spot, 1)) as machine:
        maintain_view(engine, [t], WRITTEN, [None, write])
    assert machine.crashed
    views = sparkless.execute("SHOW MATERIALIZED VIEWS").fetchall()
    if spot == "catalog.committed":
        assert len(views) == 2
        assert engine.collection_of("sums") == write.collection
        with pytest.raises(UnknownCapability):
            storage.renew_capability(write)
    else:
        assert views == []
        assert storage.renew_capability(write) == write
        assert len(maintain_view(engine, [t], WRITTEN, [None, write])) == 2
    assert_healthy(engine)


def test_what_cannot_be_written_to_is_refused(sparkless: Connection) -> None:
    engine = sparkless.engine
    storage = Storage(engine.catalog, engine.shards, holder="test", lease_ms=None)
    sparkless.execute("CREATE TABLE t (k integer, v integer)")
    t, of_engine = storage.acquire_capabilities(engine.collection_of("t"))
    with pytest.raises(FrontierNotHeld, match="grants no right to write"):
        maintain_view(engine, [t], WRITTEN, [of_engine])
    _, write = storage.create(storage.new_id(), CollectionDescription(TIMELINE, SUMS, start=t.frontier.only))
    with pytest.raises(WrongDefinition, match="columns or keys differ") as refused:
        maintain_view(engine, [t], WRITTEN, [write])
    assert "(k integer, v integer); the collection was created with (k integer, s bigint, n bigint)" in str(
        refused.value.detail
    )
    with pytest.raises(UnknownCapability):  # one is good for one view
        maintain_view(engine, [t], WRITTEN.replace("k, v", "k, 1::bigint AS s, 2::bigint AS n"), [write, write])
    ahead = storage.downgrade_capability(write, Antichain.of(EPOCH_MS, 10**15))
    with pytest.raises(FrontierNotHeld, match=rf"from \{{{10**15}\}} on"):  # its reader may ask for all before
        maintain_view(engine, [t], WRITTEN, [None, ahead])
    write = storage.append(ahead, [((1, 2, 3), 10**15, 1)], Antichain.of(EPOCH_MS, 10**15 + 1))
    with pytest.raises(WrongDefinition, match="holds updates already"):
        maintain_view(engine, [t], WRITTEN, [None, write])
    assert storage.renew_capability(write) == write
