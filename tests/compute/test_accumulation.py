"""The functions that lowering alone calls: multiplicities, zeros, and sums of numerics that pass beyond 38 digits."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import pytest

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.compute.spark.expressions import Emitter
from mz_dagster.functions.evaluation import Evaluate, compiled, is_evaluable
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar
from mz_dagster.scalars.types import FLOAT8, INT8, high_part_type, numeric

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 10**38 - 1
SCALES = (0, 2, 18, 19, 20, 37, 38)


def evaluated(frame: DataFrame, scalars: list[Scalar]) -> list[tuple[object, ...]]:
    """Returns the rows of each scalar's value and error, which are the same in this process as on Spark."""
    from pyspark.sql import functions as sf

    names = frame.columns
    emitter = Emitter([sf.col(name) for name in names])
    emitted = [emitter.emit(scalar) for scalar in scalars]
    frame = emitter.stage(frame)
    columns = []
    for n, one in enumerate(emitted):
        columns.append(one.value.alias(f"v{n}"))
        columns.append((sf.lit(None).cast("string") if one.error is None else one.error).alias(f"e{n}"))
    found = [tuple(row) for row in frame.select(*names, *columns).collect()]
    here = {n: compiled(scalar) for n, scalar in enumerate(scalars) if is_evaluable(scalar)}
    for row in found:
        for n, value_of in here.items():
            at = len(names) + 2 * n
            assert repr(outcome(value_of, row)) == repr(row[at : at + 2]), (scalars[n], row[: len(names)])
    return [row[len(names) :] for row in found]


def outcome(value_of: Evaluate, row: tuple[object, ...]) -> tuple[object, str | None]:
    try:
        return value_of(row), None
    except SqlFailure as failure:
        return None, str(failure)


def test_a_negative_multiplicity_is_an_error_and_zeros_have_one_sign(spark: SparkSession) -> None:
    ensure_exact(spark)
    rows = [(3, -0.0), (0, 0.0), (-1, float("nan")), (None, None)]
    frame = spark.createDataFrame(rows, "n bigint, x double").coalesce(1)
    count = Call("multiplicity_int8", (ColumnRef(0, INT8),), INT8)
    zero = Call("unsigned_zero_float8", (ColumnRef(1, FLOAT8),), FLOAT8)
    found = evaluated(frame, [count, zero])
    error = "XX001 a row has a negative multiplicity"
    assert [row[:2] for row in found] == [(3, None), (0, None), (None, error), (None, None)]
    assert [repr(row[2]) for row in found] == ["0.0", "0.0", "nan", "None"]


def test_sums_of_parts_are_sums_and_heal_from_overflow(spark: SparkSession) -> None:
    """Any partial sum may pass beyond 38 digits; what counts is whether the whole fits."""
    ensure_exact(spark)
    rng = random.Random(4)
    edges = [0, 1, -1, MOST, -MOST, 10**19, 10**19 - 1, -(10**19), 1 - 10**19, 5 * 10**37, 12345678901234567890123]
    cases = [[one] for one in edges] + [[MOST, 1], [MOST, 1, -1], [-MOST, -1], [MOST, MOST, -MOST], [10**19, -1]]
    cases += [[MOST, MOST, 1 - MOST, 3 - MOST], [-MOST, 5, MOST], [-MOST, -MOST, MOST]]
    cases += [[rng.choice(edges) * rng.choice((1, -1)) for _ in range(rng.randint(1, 5))] for _ in range(60)]
    rows = [(n, x) for n, case in enumerate(cases) for x in case]
    with localcontext() as context:
        context.prec = 100
        frames = [[(n, *(Decimal(x).scaleb(-scale) for scale in SCALES)) for n, x in rows]]
    frame = spark.createDataFrame(
        [(n, *map(str, xs)) for n, *xs in frames[0]], "n int, " + ", ".join(f"t{s} string" for s in SCALES)
    ).selectExpr(*(f"cast(t{s} as decimal(38,{s})) as x{s}" for s in SCALES), "n")
    scalars: list[Scalar] = []
    for place, scale in enumerate(SCALES):
        argument = ColumnRef(place, numeric(scale))
        scalars.append(Call("high_part_numeric", (argument,), high_part_type(scale)))
        scalars.append(Call("low_part_numeric", (argument,), numeric(scale)))
    scalars.append(ColumnRef(len(SCALES), INT8))
    sums: dict[int, list[Decimal]] = {}
    with localcontext() as context:
        context.prec = 100
        for row in evaluated(frame, scalars):
            values = row[::2]
            assert row[1::2] == (None,) * len(values)
            key = values[-1]
            assert isinstance(key, int)
            total = sums.setdefault(key, [Decimal(0)] * (2 * len(SCALES)))
            for i, value in enumerate(values[:-1]):
                assert isinstance(value, Decimal)
                assert len(value.as_tuple().digits) <= 19
                total[i] += value
        wholes = [(n, *map(str, total)) for n, total in sums.items()]
    types = [t for scale in SCALES for t in (high_part_type(scale).scale, scale)]
    texts = ", ".join(f"t{i} string" for i in range(len(types)))
    parts = spark.createDataFrame(wholes, f"n int, {texts}").selectExpr(
        *(f"cast(t{i} as decimal(38,{scale})) as x{i}" for i, scale in enumerate(types)), "n"
    )
    wanted: list[Scalar] = [
        Call("whole_numeric", (ColumnRef(2 * i, high_part_type(s)), ColumnRef(2 * i + 1, numeric(s))), numeric(s))
        for i, s in enumerate(SCALES)
    ]
    for row in evaluated(parts, [*wanted, ColumnRef(len(types), INT8)]):
        number = row[-2]
        assert isinstance(number, int)
        expected = sum(cases[number])
        for value, error, scale in zip(row[:-2:2], row[1:-2:2], SCALES, strict=True):
            if abs(expected) > MOST:
                assert (value, error) == (None, "22003 numeric field overflow")
            else:
                with localcontext() as context:
                    context.prec = 100
                    assert (value, error) == (Decimal(expected).scaleb(-scale), None), (cases[number], scale)


def test_a_widened_numeric_is_the_number_or_null_where_it_does_not_fit(spark: SparkSession) -> None:
    ensure_exact(spark)
    values = [0, 7, -7, 10**36 - 1, 10**36, 1 - 10**36, MOST, -MOST]
    frame = spark.createDataFrame([(str(one),) for one in values], "t string").selectExpr("cast(t as decimal(38,0)) x")
    scalars: list[Scalar] = [Call("widened_numeric", (ColumnRef(0, numeric(0)),), numeric(scale)) for scale in (2, 19)]
    with localcontext() as context:
        context.prec = 100
        wanted = [
            tuple(cell for scale in (2, 19) for cell in (Decimal(one) if abs(one) < 10 ** (38 - scale) else None, None))
            for one in values
        ]
        assert evaluated(frame, scalars) == wanted
    assert all(map(is_evaluable, scalars))


@pytest.mark.parametrize("scale", SCALES)
def test_the_high_part_has_the_digits_that_the_low_part_leaves(scale: int) -> None:
    assert high_part_type(scale) == numeric(max(0, scale - 19))
