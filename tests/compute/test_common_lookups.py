"""Lookups that several joins of a step make alike: which they are, that they are made once, and that nothing lacks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats
from mz_dagster.compute import StepReport
from mz_dagster.compute.lookups.common_lookups import CommonLookups, LookupPath, path, paths
from mz_dagster.errors import DataError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    Staged,
    TopRows,
)
from mz_dagster.scalars.scalar import ColumnRef, Scalar
from mz_dagster.scalars.types import INT4, INT8, Column, RelationType, ScalarType
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget

_Columns = tuple[GlobalId, tuple[int, ...]]

A, B, C = GlobalId("u1"), GlobalId("u2"), GlobalId("u3")


def read(id: GlobalId, *types: ScalarType) -> ReadCollection:
    return ReadCollection(id, RelationType(tuple(Column(f"x{n}", type_) for n, type_ in enumerate(types))))


def linear(node: Physical, projection: tuple[int, ...], *steps: tuple[str, Scalar]) -> Linear:
    arity = node.relation_type.arity
    columns = [*node.relation_type.columns, *(Column("m", scalar.type) for kind, scalar in steps if kind == "map")]
    return Linear(node, MapFilterProject(arity, steps, projection), RelationType(tuple(columns[p] for p in projection)))


def join(left: Physical, right: Physical, *equal: tuple[int, int]) -> DeltaJoin:
    """Joins two inputs by equality of columns, each by its position in its own input."""
    columns = (*left.relation_type.columns, *right.relation_type.columns)
    offset = left.relation_type.arity
    classes = tuple((ColumnRef(i, columns[i].type), ColumnRef(offset + j, columns[offset + j].type)) for i, j in equal)
    return DeltaJoin((left, right), classes, ((1,), (0,)), RelationType(columns))


def test_a_path_leads_through_projections_to_the_collections_columns() -> None:
    left = linear(read(A, INT4, INT4, INT4), (2, 0))
    right = linear(linear(read(B, INT4, INT4, INT4), (1, 2)), (1,))
    assert path(join(left, right, (0, 0)), 0, 1) == LookupPath(B, (2,), A, (2,))
    assert path(join(left, right, (0, 0)), 1, 0) == LookupPath(A, (2,), B, (2,))


def test_positions_are_in_order_whatever_the_order_of_the_conditions() -> None:
    left, right = read(A, INT4, INT4), read(B, INT4, INT4)
    wanted = LookupPath(B, (0, 1), A, (1, 0))
    assert path(join(left, right, (1, 0), (0, 1)), 0, 1) == wanted
    assert path(join(left, right, (0, 1), (1, 0)), 0, 1) == wanted


def test_there_is_no_path_by_computed_columns_other_types_or_through_other_operators() -> None:
    plain = read(B, INT4, INT8)
    computed = linear(read(A, INT4, INT4), (2,), ("map", ColumnRef(1, INT4)))
    negated = NegateAll(read(A, INT4), read(A, INT4).relation_type)
    assert path(join(computed, plain, (0, 0)), 0, 1) is None
    assert path(join(negated, plain, (0, 0)), 0, 1) is None
    assert path(join(read(A, INT4), plain, (0, 1)), 0, 1) is None
    assert path(join(read(A, INT4), plain), 0, 1) is None


def test_used_are_the_columns_that_any_step_or_the_projection_reads() -> None:
    left = read(A, INT4)
    right = linear(read(B, INT4, INT4, INT4, INT4), (1, 4), ("map", ColumnRef(3, INT4)))
    found = dict(paths(linear(join(left, right, (0, 0)), (0,))))
    assert found == {LookupPath(B, (1,), A, (0,)): {1, 3}, LookupPath(A, (0,), B, (1,)): {0}}


class Asked:
    """Is lookups without Spark: what would be read, where it was decided that it would.

    Args:
        plans: Of the step.
        rows: By collection: how many updates it has, and how many of them in the interval, which is `[5, 6)`.
        maintained: The plans of collections.
        unwritten: Collections whose updates are not all there.
    """

    def __init__(
        self,
        plans: Iterable[Physical],
        rows: Mapping[GlobalId, tuple[int, int]],
        maintained: Mapping[GlobalId, Physical] | None = None,
        unwritten: frozenset[GlobalId] = frozenset(),
    ) -> None:
        self.read: list[tuple[_Columns, set[_Columns]]] = []

        def listed(id: GlobalId, lower: int | None, _: int) -> list[Batch]:
            stats = BatchStats(rows[id][0 if lower is None else 1], 0, 1, 1)
            return [Batch(BatchId(1), id, at(0), at(6), BatchState.LIVE, stats)]

        columns = tuple(Column(f"x{n}", INT4) for n in range(4))
        self.common = CommonLookups(
            plans,
            maintained=maintained or {},
            rows={id: _Row(columns) for id in rows},  # type: ignore[misc]
            listed=listed,
            is_written=lambda id, _: id not in unwritten,
            local=None,  # type: ignore[arg-type]
        )

    def of(self, path: LookupPath, monkeypatch: pytest.MonkeyPatch) -> object:
        def found(_: object, lookup: Any, keys: Any, *__: object) -> object:
            self.read.append((lookup, set(keys)))
            return "found"

        monkeypatch.setattr(CommonLookups, "_found", found)
        monkeypatch.setattr(CommonLookups, "_kept", lambda *_: "kept")
        return self.common.of(path, 5, 6, None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Row:
    columns: tuple[Column, ...]


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def test_a_lookup_is_made_where_there_is_much_of_which_little_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = join(read(A, INT4), read(B, INT4), (0, 0))
    by_a = path(alike, 0, 1)
    assert by_a is not None

    def found(plans: int, changed: int, before: int, much: int) -> object:
        return Asked([alike] * plans, {A: (before, changed), B: (much, 0)}).of(by_a, monkeypatch)

    assert found(2, 10, 1000, 100_000) == "kept"
    assert found(1, 10, 1000, 100_000) is None, "to read it is no more than to look the keys up"
    assert found(1, 10, 1000, 300_000) == "found"
    assert found(2, 10, 1000, Budget().common_lookup_rows) is None, "there is little to read"
    assert found(2, 10, 20, 10 * Budget().kept_rows) is None, "half of it would come"
    assert found(1, 10, 20, 10 * Budget().kept_rows_alone) is None, "half of it would come"
    many = Budget().kept_rows + 1
    assert found(2, many, 100 * many, 100_000) is None, "there are too many keys"


def test_keys_of_all_who_look_alike_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [join(read(A, INT4), read(B, INT4), (0, 0)), join(read(C, INT4), read(B, INT4), (0, 0))]
    by_a, by_c = (path(one, 0, 1) for one in plans)
    assert by_a is not None
    assert by_c is not None
    rows = {A: (1000, 10), B: (100_000, 0), C: (1000, 10)}
    asked = Asked(plans, rows)
    assert [asked.of(one, monkeypatch) for one in (by_a, by_c, by_a)] == ["kept"] * 3
    assert asked.read == [((B, (0,)), {(A, (0,)), (C, (0,))})]
    late = Asked(plans, rows, unwritten=frozenset({C}))
    assert [late.of(one, monkeypatch) for one in (by_a, by_c, by_a)] == ["kept"] * 3
    assert late.read == [((B, (0,)), {(A, (0,))}), ((B, (0,)), {(A, (0,)), (C, (0,))})], "C was not known at first"


def test_keys_of_groups_are_those_of_what_they_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    below = linear(read(A, INT4, INT4, INT4), (2, 1))
    counted = RelationType((Column("key", INT4), Column("n", INT8)))
    groups = Accumulate(below, 1, counted)
    plan = join(read(C, INT4, INT8), read(B, INT4), (0, 0))
    by_c = path(plan, 0, 1)
    assert by_c is not None
    rows = {A: (1000, 10), B: (300_000, 0), C: (1000, 10)}

    def keys(made_of: Physical, changed_b: int = 0) -> object:
        asked = Asked([plan], rows | {B: (300_000, changed_b)}, {C: made_of})
        assert asked.of(by_c, monkeypatch) == "found"
        ((_, found),) = asked.read
        return found

    assert keys(groups) == {(A, (2,))}
    assert keys(linear(groups, (0, 1))) == {(A, (2,))}
    placed = RelationType((Column("level", INT4), Column("bucket", INT8), Column("key", INT4), Column("v", INT4)))
    staged = Staged(below, (0,), TopRows((), 1), (1,), monotonic=False, relation_type=placed)
    assert keys(linear(staged, (2, 3))) == {(A, (2,))}
    assert keys(linear(staged, (3, 2))) == {(C, (0,))}, "a row that comes up may have come long ago"
    assert keys(linear(groups, (1, 0))) == {(C, (0,))}, "a number of rows is no key"
    assert keys(NegateAll(groups, counted)) == {(C, (0,))}
    a, b = read(A, INT4, INT4), read(B, INT4, INT4)
    assert keys(join(a, b, (0, 1))) == {(A, (0,))}
    assert keys(linear(join(a, b, (0, 1)), (3, 0))) == {(A, (0,))}, "what is equal to it"
    assert keys(linear(join(a, b, (0, 1)), (1, 0))) == {(A, (1,))}, "what is of the side that changes"
    assert keys(linear(join(a, b, (0, 1)), (2, 0))) == {(C, (0,))}, "the other side's rows are old"
    assert keys(linear(join(a, b, (0, 1)), (3, 0)), 10) == {(A, (0,)), (B, (1,))}
    assert keys(linear(join(a, b, (0, 1)), (1, 0)), 10) == {(C, (0,))}, "a row of B finds old ones of A"


@pytest.fixture
def connection(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def stepped(connection: Connection) -> StepReport:
    engine = connection.engine
    poll = engine.poll("default")
    assert poll.tick is not None, poll.reason
    report = engine.step("default", poll.tick)
    assert not report.failures, report.failures
    return report


#: Each looks `a` up by what changed of `b`, and the other way round; a row of `a` with y = 0 makes `divided` fail.
VIEWS = {
    "joined": "SELECT a.x, a.y, b.z FROM a JOIN b ON a.x = b.x",
    "same": "SELECT a.y, b.z FROM a JOIN b ON a.x IS NOT DISTINCT FROM b.x",
    "divided": "SELECT a.x, 12 / a.y AS q FROM a JOIN b ON a.x = b.x WHERE b.z = 0",
    "thrice": "SELECT a.y, count(*) AS n FROM a JOIN b ON a.x = b.x JOIN c ON c.z = b.z AND c.y = a.y GROUP BY a.y",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "threshold",
    [pytest.param("evaluated_updates", marks=pytest.mark.deep), "whole_rows"],
    ids=["by Spark", "here"],
)
def test_views_that_look_the_same_up_hold_what_their_queries_say(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, threshold: str
) -> None:
    stepping = {"common_lookup_rows": 0, "pruned_rows": 0, "kept_rows": 10**9, "kept_rows_alone": 10**9, threshold: 0}
    made: list[tuple[object, object]] = []
    look_up = CommonLookups._keys

    def counted(self: CommonLookups, lookup: Any, keys: Any, *others: Any) -> object:
        made.extend((lookup, one) for one in keys)
        return look_up(self, lookup, keys, *others)

    monkeypatch.setattr(CommonLookups, "_keys", counted)
    chosen = random.Random(5)

    def insert(table: str, rows: int) -> None:
        keys = ["NULL" if chosen.random() < 0.2 else str(chosen.randrange(4)) for _ in range(rows)]
        values = ", ".join(f"({key}, {chosen.randrange(1, 5)})" for key in keys)
        connection.execute(f"INSERT INTO {table} VALUES {values}")

    connection.execute("CREATE TABLE a (x integer, y integer)")
    connection.execute("CREATE TABLE b (x integer, z integer)")
    connection.execute("CREATE TABLE c (y integer, z integer)")
    for table in ("a", "b", "c"):
        insert(table, 12)
    for name, query in VIEWS.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    changes = (
        "INSERT INTO a VALUES (1, 0)",
        "UPDATE b SET z = 0 WHERE x = 1",
        "DELETE FROM b WHERE x IS NULL",
        "DELETE FROM a WHERE y = 0",
    )
    failed = 0
    for change in changes:
        connection.execute(change)
        for table in ("a", "b"):
            insert(table, 2)
        made.clear()
        set_budget(**stepping)
        stepped(connection)
        set_budget(Budget())  # what was made is compared in this process
        assert len(made) == len(set(made)), "a lookup was made twice"
        a, b = (connection.engine.collection_of(one) for one in ("a", "b"))
        assert set(made) >= {((b, (0,)), (a, (0,))), ((a, (0,)), (b, (0,)))}
        for name, query in VIEWS.items():
            held, asked = (_rows(connection, text) for text in (f"SELECT * FROM {name}", query))
            assert held == asked, (change, name)
            failed += held is None
    assert 0 < failed < len(changes), "an error came and went"


def _rows(connection: Connection, query: str) -> Counter[tuple[object, ...]] | None:
    """Returns a query's rows, None if they are an error of the data."""
    try:
        return Counter(connection.execute(query).fetchall())
    except DataError:
        return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("threshold", ["evaluated_updates", "whole_rows"])
def test_what_two_views_look_up_is_read_once(connection: Connection, set_budget: SetBudget, threshold: str) -> None:
    """Whether Spark joins, or this process does."""
    set_budget(common_lookup_rows=1000, **{threshold: 0})
    connection.execute("CREATE TABLE a (x integer, y integer)")
    connection.execute("CREATE TABLE b (x integer)")
    connection.execute(f"INSERT INTO a VALUES {', '.join(f'({n}, {n % 7})' for n in range(3000))}")
    for number in range(3):
        connection.execute(
            f"CREATE MATERIALIZED VIEW v{number} AS SELECT a.x FROM a JOIN b ON a.x = b.x WHERE a.y <> {number}"
        )
    connection.execute("INSERT INTO b VALUES (5), (6)")
    report = stepped(connection)
    assert [one.stats.rows for one in report.collections if one.name.startswith("v")] == [2, 2, 2]
    assert 3000 <= sum(one.rows_read for one in report.collections) < 3100
