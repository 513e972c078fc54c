"""What a plan reads several times is computed once on Spark, in a query at one time and in a step, and is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mz_dagster.compute.algebra.frame import spark_schema
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.snapshot.content import snapshot
from mz_dagster.compute.spark.delta_join import DeltaJoinRendering
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    SharedPlan,
    SnapshotPlan,
    UnionAll,
)
from mz_dagster.scalars.scalar import ColumnRef, Scalar
from mz_dagster.scalars.types import INT4, Column, RelationType
from mz_dagster.storage.spark import SparkConfig, active, close_session, open_session

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import DataFrame, SparkSession

PAIR = RelationType((Column("a", INT4), Column("b", INT4)))
FOUR = RelationType(PAIR.columns * 2)
ONE = RelationType(PAIR.columns[:1])
T = ReadCollection(GlobalId("t"), PAIR, "t")
#: Rows of t whose b is an a.
JOIN = DeltaJoin((T, T), ((ColumnRef(1, INT4), ColumnRef(2, INT4)),), ((1,), (0,)), FOUR)
UPDATES = [(1, 2, 0, 1), (2, 3, 0, 1), (3, 3, 1, 2), (2, 3, 2, -1), (1, 9, 2, 1)]


def only(node: Physical, position: int) -> Linear:
    return Linear(node, MapFilterProject(node.relation_type.arity, (), (position,)), ONE)


def reading(session: SparkSession) -> DataFrame:
    rows = [(*row, None) for row in UPDATES]
    return session.createDataFrame(rows, spark_schema(PAIR, PAIR.names)).coalesce(1)


def totals(frame: DataFrame) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for *row, _, diff, error in (tuple(one) for one in frame.collect()):
        assert error is None
        found[tuple(row)] = found.get(tuple(row), 0) + diff
    return {row: n for row, n in found.items() if n}


def rows_at(time: int) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for a, b, t, diff in UPDATES:
        if t <= time:
            found[a, b] = found.get((a, b), 0) + diff
    return found


def expected(time: int) -> dict[tuple[int, ...], int]:
    """The first columns of the join's rows, and of `t` without those of them whose last column is theirs."""
    rows = rows_at(time)
    found: dict[tuple[int, ...], int] = {}
    for (a, b), n in rows.items():
        for (c, d), m in rows.items():
            if b == c:
                found[a,] = found.get((a,), 0) + n * m
                found[d,] = found.get((d,), 0) - n * m
    return {row: n for row, n in found.items() if n}


def test_a_shared_subplan_is_cut_off_and_read_like_a_collection(spark: SparkSession, spark_config: SparkConfig) -> None:
    frame = reading(spark)
    shared = ReadCollection(GlobalId("shared:1"), FOUR, "shared:1")
    output = UnionAll((only(shared, 0), NegateAll(only(shared, 3), ONE)), ONE)
    plan = SnapshotPlan((SharedPlan(shared.id, JOIN),), output)

    def read(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        assert id == T.id, "what is shared is no collection"
        return frame.where(f"mz_timestamp < {upper}")

    assert totals(snapshot(spark, read, plan, 2)) == expected(2)
    other = open_session(replace(spark_config, conf={"spark.sql.shuffle.partitions": "3"}))
    try:
        with active(other):  # as where a program has a session of its own, too
            assert totals(snapshot(spark, read, plan, 2)) == expected(2)
    finally:
        close_session(other)
    assert not [one.name for one in spark.catalog.listTables() if one.name.startswith("mz_shared")]


def test_what_a_step_shares_is_there_until_it_is_over(spark: SparkSession) -> None:
    shards: Any = None
    with StepReads(lambda: (spark, shards), {}, lambda _id, _lower, _upper: ()) as reads:
        given = reading(spark).where("a < 3")
        kept = reads.shared(given)
        levels = [given.storageLevel]
        assert totals(kept.unionAll(kept)) == {(1, 2): 2, (1, 9): 2}
    levels.append(given.storageLevel)
    assert [one.useMemory for one in levels] == [True, False]
    assert not [one.name for one in spark.catalog.listTables() if one.name.startswith("mz_shared")]


def test_equal_joins_of_a_collection_are_rendered_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from mz_dagster.compute.spark import content
    from mz_dagster.compute.spark import updates as updates_module

    frame, rendered = reading(spark), []

    class Counted(DeltaJoinRendering):
        def __init__(self, node: DeltaJoin) -> None:
            rendered.append(node)
            super().__init__(node)

    for module in (content, updates_module):
        monkeypatch.setattr(module, "DeltaJoinRendering", Counted)
    node = UnionAll((only(JOIN, 0), NegateAll(only(JOIN, 3), ONE)), ONE)

    def read(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        return frame.where(f"mz_timestamp >= {-1 if lower is None else lower} and mz_timestamp < {upper}")

    renderer = Renderer(spark, read)
    at_first = totals(renderer.snapshot(node, 0))
    assert (at_first, len(rendered)) == (expected(0), 1)
    updates = renderer.updates(node, 1, 3, lambda _: False)
    assert updates is not None
    assert len(rendered) == 2
    changes = totals(updates)
    after = {row: at_first.get(row, 0) + changes.get(row, 0) for row in at_first.keys() | changes.keys()}
    assert {row: n for row, n in after.items() if n} == expected(2)
