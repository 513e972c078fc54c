"""Capabilities beside the engine: what it shows of them, and what is written by right of one holds up no tick."""

from __future__ import annotations

import pytest

from mz_dagster.adapter import Connection, maintain_view
from mz_dagster.adapter.doctor import Severity, examine
from mz_dagster.catalog import FrontierNotHeld, InputNotHeld, Seal, UnknownCapability, UpperBeyondInput
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.plan.types import INT4, Column
from mz_dagster.storage import Description, Storage


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
    read, write = storage.create(storage.new_id(), Description("default", (Column("n", INT4),)))
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
    read, write = storage.create(storage.new_id(), Description("default", (Column("n", INT4),)))
    other = storage.clone_capability(write)
    storage.append(write, [((1,), 3, 1), ((2,), 8, 1)], Antichain.of(EPOCH_MS, 9))
    storage.append(other, [((3,), 4, 1)], Antichain.of(EPOCH_MS, 5))
    storage.downgrade_capability(read, Antichain.of(EPOCH_MS, 20))
    engine.catalog.allow_compaction("default")
    broken = [one for one in examine(engine.project.root, deep=True).findings if one.severity is Severity.BREAK]
    assert broken == []


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
