"""What is evaluated in this process is what Spark makes of the same updates: rows, errors, times and diffs."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import spark_schema
from mz_dagster.compute.local.linear_operators import is_simple
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.walk.local_plans import LocalContents, LocalUpdates
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    ConstantRows,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, INT8, TEXT, Column, RelationType, numeric
from mz_dagster.storage.arrow_schema import update_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

HIGH, LOW = numeric(0), numeric(2)
FINE_HIGH, FINE_LOW = numeric(2), numeric(21)
INPUT = RelationType(
    (
        Column("level", INT4), Column("n", INT8), Column("high", HIGH), Column("low", LOW), Column("name", TEXT),
        Column("fine_high", FINE_HIGH), Column("fine_low", FINE_LOW), Column("whole", HIGH),
    )
)  # fmt: skip
READ = ReadCollection(GlobalId("in"), INPUT, "in")
LOWER, UPPER = 3, 9


def column(position: int) -> ColumnRef:
    return ColumnRef(position, INPUT.columns[position].type)


def linear(input: Physical, steps: Sequence[tuple[Any, Scalar]], *projection: int) -> Linear:
    mapped = [scalar.type for kind, scalar in steps if kind == "map"]
    types = [*(one.type for one in input.relation_type.columns), *mapped]
    columns = tuple(Column(f"r{n}", types[position]) for n, position in enumerate(projection))
    return Linear(input, MapFilterProject(input.relation_type.arity, tuple(steps), projection), RelationType(columns))


LIVE = Call("gt_int8", (Call("multiplicity_int8", (column(1),), INT8), Literal(0, INT8)), BOOL)
RESULT = Call("eq_int4", (column(0), Literal(2, INT4)), BOOL)
WHOLE = Call("whole_numeric", (column(2), column(3)), LOW)
FINE = Call("whole_numeric", (column(5), column(6)), FINE_LOW)
ROUNDED = Call("cast_numeric_to_int8", (column(7),), INT8)
PLANS: dict[str, Physical] = {
    "the rows themselves": READ,
    "a tournament's result": linear(READ, [("filter", RESULT)], 4, 1),
    "sums": linear(READ, [("filter", LIVE), ("map", WHOLE), ("map", FINE), ("map", ROUNDED)], 8, 9, 10, 4),
    "errors before predicates": linear(READ, [("map", WHOLE), ("filter", LIVE), ("filter", RESULT)], 8),
    "predicates before errors": linear(READ, [("filter", RESULT), ("map", FINE), ("filter", LIVE)], 8, 1),
    "a row of nothing": UnionAll(
        (
            linear(READ, [("filter", RESULT), ("map", Literal("x", TEXT)), ("map", Literal(None, INT8))], 4, 8, 9),
            NegateAll(linear(READ, [("map", Literal(7, INT8))], 4, 4, 8), RelationType((Column("a", TEXT),) * 3)),
        ),
        RelationType((Column("a", TEXT), Column("b", TEXT), Column("c", INT8))),
    ),
}


def updates(seed: int) -> list[tuple[tuple[Any, ...], int, int, str | None]]:
    chosen = random.Random(seed)
    digits = 10**38 - 1

    def number(scale: int, *bounds: int) -> Decimal | None:
        bound = chosen.choice([*bounds, 10, 10**19])
        unscaled = chosen.choice([None, 0, bound, -bound, chosen.randrange(-bound, bound)])
        return None if unscaled is None else Decimal(unscaled).scaleb(-scale, Context(prec=60))

    found: list[tuple[tuple[Any, ...], int, int, str | None]] = []
    for _ in range(400):
        row = (
            chosen.choice([None, 1, 2, 2]), chosen.choice([None, -1, 0, 1, 2**62]), number(0, 10**17, digits),
            number(2, digits), chosen.choice([None, "", "é"]), number(2, 10**17, digits), number(21, digits),
            number(0, 2**63 - 1, 2**63, digits),
        )  # fmt: skip
        found.append((row, chosen.randrange(LOWER, UPPER), chosen.choice([-1, 1, 3]), None))
    found.append(((None,) * INPUT.arity, 5, -1, "22000 bad record"))
    return found


@pytest.mark.parametrize("name", PLANS)
def test_it_is_what_spark_makes_of_the_updates(spark: SparkSession, name: str) -> None:
    plan, given = PLANS[name], updates(len(name))

    def read(_: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        rows = [(*row, time, diff, error) for row, time, diff, error in given]
        return spark.createDataFrame(rows, spark_schema(INPUT, INPUT.names))

    by_spark = Renderer(spark, read).updates(plan, LOWER, UPPER, lambda _: False)
    assert by_spark is not None
    contents = LocalContents(
        SparkUse(no_spark), lambda _: len(given), lambda *_: [update_table(INPUT.columns, given)], LOWER, UPPER
    )
    here = contents.updates(plan)
    assert here is not None
    assert counted(here) == counted(by_spark.toArrow())
    assert sum(counted(here).values()) > 0


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def no_spark() -> Any:
    raise AssertionError("this needs no Spark")


def test_what_needs_spark_is_left_to_it() -> None:
    def is_here(scalar: Scalar) -> bool:
        return is_simple(linear(READ, [("map", scalar)], 8).mfp)

    assert not is_here(Call("sin_float8", (Literal(0.5, FLOAT8),), FLOAT8))
    assert is_here(Call("regexp_like_text", (column(4), column(4)), BOOL))
    # Spark multiplies before it rounds, and that may overflow.
    assert not is_here(Call("multiply_numeric", (column(3), column(3)), numeric(2)))
    assert is_here(Call("multiply_numeric", (column(3), column(3)), numeric(4)))
    assert is_here(Literal(0.5, FLOAT8))


def test_constants_do_not_change() -> None:
    one = RelationType((Column("a", INT4),))
    reads: Any = None
    found = LocalUpdates(SparkUse(no_spark), reads, LOWER, UPPER, READ).updates(
        ConstantRows(((Literal(1, INT4),),), one)
    )
    assert found is not None
    assert (found.num_rows, found.column_names) == (0, ["c0", "mz_timestamp", "mz_diff", "mz_error"])
