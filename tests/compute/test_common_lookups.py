"""Lookups that several joins of a step make alike: which they are, that they are made once, and that nothing lacks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute import StepReport, common_lookups
from mz_dagster.compute.common_lookups import CommonLookups, path, paths
from mz_dagster.compute.common_lookups import Path as LookupPath
from mz_dagster.errors import DataError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import DeltaJoin, Linear, MapFilterProject, NegateAll, Physical, ReadCollection
from mz_dagster.plan.scalar import ColumnRef, Scalar
from mz_dagster.plan.types import INT4, INT8, Column, RelationType, ScalarType
from mz_dagster.storage.spark import SparkConfig

A, B = GlobalId("u1"), GlobalId("u2")


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


def test_a_lookup_is_made_for_several_joins_over_much_of_which_little_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommonLookups, "_make", lambda *_: "made")
    alike = join(read(A, INT4), read(B, INT4), (0, 0))
    by_a = path(alike, 0, 1)
    assert by_a is not None

    def found(plans: int, changed: int, before: int, much: int) -> object:
        rows = {(A, 5): changed, (A, None): before, (B, None): much}
        common = CommonLookups(
            None,  # type: ignore[arg-type]
            [alike] * plans,
            rows=lambda id, lower, _: rows[id, lower],
            columns=lambda _: (),
        )
        return common.of(by_a, 5, 6, None)  # type: ignore[arg-type]

    assert found(2, 10, 1000, 100_000) == "made"
    assert found(1, 10, 1000, 100_000) is None, "nobody else asks"
    assert found(2, 10, 1000, common_lookups.LARGE_ROWS) is None, "there is little to read"
    assert found(2, 10, 20, 10 * common_lookups.MOST_ROWS) is None, "half of it would come"


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
def test_views_that_look_the_same_up_hold_what_their_queries_say(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common_lookups, "LARGE_ROWS", 0)
    monkeypatch.setattr(common_lookups, "MOST_ROWS", 10**9)
    made: list[LookupPath] = []
    make = CommonLookups._make

    def counted(self: CommonLookups, path: LookupPath, *others: object) -> object:
        made.append(path)
        return make(self, path, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(CommonLookups, "_make", counted)
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
        stepped(connection)
        assert len(made) == len(set(made)), "a lookup was made twice"
        assert {(one.changed, one.read) for one in made} >= {
            (connection.engine.collection_of(one), connection.engine.collection_of(other))
            for one, other in (("a", "b"), ("b", "a"))
        }
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
def test_what_two_views_look_up_is_read_once(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_lookups, "LARGE_ROWS", 1000)
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
