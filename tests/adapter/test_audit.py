"""The audit passes on what the engine maintains, and finds what was written behind its back, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mz_dagster.adapter import Connection, NothingToRecompute, audit, negative_rows
from mz_dagster.catalog import Sealed
from mz_dagster.compute import Outcome, RowSample
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import Antichain
from mz_dagster.storage import ReadBeyondUpper, compare_and_append, update_table
from tests.budgets import SetBudget

TIMELINE = "default"


def corrupt(connection: Connection, name: str, tick: int, updates: Sequence[tuple[tuple[Any, ...], int]]) -> None:
    """Closes a collection at a tick with updates that no step computed, once what it reads is closed there."""
    engine = connection.engine
    id = engine.collection_of(name)
    others = frozenset(engine.graph(TIMELINE).by_id) - {id}
    if others:
        assert not engine.step(TIMELINE, tick, only=others).failures
    row = engine.catalog.collection(id)
    frame = update_table(row.columns, [(data, tick, diff) for data, diff in updates])
    upper = Antichain.of(row.upper.lattice, tick + 1)
    sealed = compare_and_append(engine.catalog, engine.shards, row, row.upper, upper, frame, holder="a test")
    assert isinstance(sealed, Sealed)


def tick(connection: Connection) -> int:
    minted = connection.engine.poll(TIMELINE).tick
    assert minted is not None
    return minted


@pytest.fixture(params=["here", "spark"])
def compared(request: pytest.FixtureRequest, set_budget: SetBudget) -> None:
    """Has both ways of comparing give the same."""
    if request.param == "spark":
        set_budget(small_rows=0)


@pytest.mark.usefixtures("compared")
def test_an_audit_passes_on_a_good_view_and_finds_each_wrong_row(connection: Connection) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE sales (city text, amount integer)")
    connection.execute("CREATE MATERIALIZED VIEW per_city AS SELECT city, count(*) AS n FROM sales GROUP BY city")
    id = engine.collection_of("per_city")
    connection.execute("INSERT INTO sales VALUES ('Oslo', 1), ('Oslo', 5), ('Rome', 7), (NULL, 8), (NULL, 8)")
    first = tick(connection)
    assert not engine.step(TIMELINE, first).failures
    good = audit(engine, id)
    assert good.passed
    assert good.tick == first
    assert good.found.held == 3
    assert good.found.missing == good.found.surplus == RowSample(0)

    # The next tick is closed with a row that the query does not have, and without those that it has.
    connection.execute("INSERT INTO sales VALUES ('Rome', 9)")
    second = tick(connection)
    corrupt(connection, "per_city", second, [(("Bergen", 4), 2)])
    report = engine.step(TIMELINE, second)
    assert {one.name: one.outcome for one in report.collections}["per_city"] is Outcome.CURRENT
    bad = audit(engine, id, examples=2)
    assert not bad.passed
    assert (bad.tick, bad.columns) == (second, ("city", "n"))
    assert bad.found.missing == RowSample(1, ((("Rome", "2"), 1),))
    assert bad.found.surplus == RowSample(3, ((("Bergen", "4"), 2), (("Rome", "1"), 1)))
    assert bad.found.held == 5
    assert audit(engine, id, tick=first).passed, "what was right stays right"

    with pytest.raises(ReadBeyondUpper):
        audit(engine, id, tick=second + 1)
    with pytest.raises(NothingToRecompute, match='table "sales"'):
        audit(engine, engine.collection_of("sales"))
    with pytest.raises(ProgrammingError, match="no share"):
        audit(engine, id, share=0.0)


@pytest.mark.usefixtures("compared")
def test_errors_are_audited_as_a_part_of_the_content(connection: Connection) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS b FROM t")
    connection.execute("INSERT INTO t VALUES (0), (2)")
    first = tick(connection)
    assert not engine.step(TIMELINE, first).failures
    found = audit(engine, engine.collection_of("v"))
    assert found.passed
    assert (found.found.held, found.found.errors_held, found.found.errors_computed) == (1, 1, 1)
    connection.execute("DELETE FROM t WHERE a = 0")
    second = tick(connection)
    corrupt(connection, "v", second, [])  # it should have taken its error back
    found = audit(engine, engine.collection_of("v"))
    assert not found.passed
    assert (found.found.held, found.found.errors_held, found.found.errors_computed) == (1, 1, 0)


def test_a_sample_compares_some_rows_and_those_exactly(connection: Connection) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a, a % 7 AS b FROM t")
    rows = ", ".join(f"({n})" for n in range(400))
    connection.execute(f"INSERT INTO t VALUES {rows}")
    first = tick(connection)
    assert not engine.step(TIMELINE, first).failures
    id = engine.collection_of("v")
    sampled = audit(engine, id, share=0.25)
    assert sampled.passed
    assert 50 < sampled.found.held < 150

    # Each row once too often: what is found wrong is exactly what is compared, half of the copies held.
    connection.execute("INSERT INTO t VALUES (-1)")
    second = tick(connection)
    corrupt(connection, "v", second, [((n, n % 7), 1) for n in range(400)])
    wrong = audit(engine, id, share=0.25)
    assert wrong.found.surplus.count == sampled.found.held
    assert wrong.found.held == 2 * sampled.found.held


def test_a_negative_multiplicity_is_found_here_as_on_spark(connection: Connection, set_budget: SetBudget) -> None:
    engine = connection.engine
    connection.execute("CREATE TABLE t (a integer, b text)")
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    time = engine.catalog.read_ts(TIMELINE) + 1
    corrupt(connection, "t", time, [((1, "x"), -1), ((2, "y"), -3), ((3, None), -1)])
    id = engine.collection_of("t")
    here = negative_rows(engine, id)
    assert here.found == RowSample(3, ((("2", "y"), 2), (("3", None), 1)))
    assert negative_rows(engine, id, tick=time - 1).found == RowSample(0)
    set_budget(small_rows=0)
    assert negative_rows(engine, id) == here
