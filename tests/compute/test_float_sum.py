"""Sums of floats through their digits are the exact sums, rounded once, whatever was added and taken out before."""

from __future__ import annotations

import math
import random
import struct
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.functions.aggregates.statistics import spread
from mz_dagster.functions.aggregates.sums import PRODUCT_DIGITS, exact_sums_of_frames
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, TEXT, array_of
from tests.compute.test_accumulation import evaluated
from tests.plan.reference import float_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

MOST = 1.7976931348623157e308
LEAST = 5e-324
EDGES = (MOST, -MOST, LEAST, -LEAST, 2.0**-1022, 2.0**53, 1.0, -1.0, 0.1, 1e16, 0.0, -0.0)


def random_float(pick: random.Random) -> float:
    kind = pick.randrange(4)
    if kind == 0:
        return pick.choice(EDGES)
    if kind == 1:
        return pick.uniform(-1, 1)
    while True:
        mask = 0xFFFFFFFFFFFFFFFF if kind == 2 else 0x800FFFFFFFFFFFFF  # any, or below 2^-1022
        value: float = struct.unpack("d", struct.pack("Q", pick.getrandbits(64) & mask))[0]
        if math.isfinite(value):
            return value


def cases(pick: random.Random, count: int) -> list[list[float | None]]:
    """Returns lists of floats, some with what takes part of them out again, and some half way between two doubles."""
    found: list[list[float | None]] = [
        [],
        [None],
        [0.0],
        [-0.0, None],
        [MOST, MOST],
        [MOST, MOST, -MOST],
        [LEAST, LEAST],
    ]
    found += [[math.nan, 1.0], [math.inf, 1.0], [-math.inf, MOST], [math.inf, -math.inf], [None, math.inf]]
    for _ in range(count):
        values = [random_float(pick) for _ in range(pick.randint(1, 6))]
        if pick.random() < 0.5:
            values += [-one for one in pick.sample(values, pick.randrange(len(values)))]
        if pick.random() < 0.3:
            tied = pick.choice([1.0, -1.5, 2.0**-1000, 2.0**60 + 2.0**8])
            values += [tied, math.ulp(tied) / 2, *([LEAST] if pick.random() < 0.5 else [])]
        found.append([*values])
    return found


def summed_here(values: Sequence[float | None], state: dict[int, list[int]]) -> tuple[object, str | None]:
    """Returns the sum as this process works it out, whose digits must be those in `state`, which Spark made."""
    x = ColumnRef(0, FLOAT8)
    parts = [compiled(Call("limb_float8", (x,), INT4))]
    parts += [compiled(Call("digit_float8", (x, Literal(i, INT4)), INT8)) for i in range(4)]
    own: dict[int, list[int]] = {}
    for value in values:
        limb, *digits = (one((value,)) for one in parts)
        sums = own.setdefault(-4 if limb is None else limb, [0, 0, 0, 0])
        for i, digit in enumerate(digits):
            sums[i] += digit or 0
    assert own == state
    columns = [list(one) for one in zip(*((limb, *sums) for limb, sums in sorted(own.items())), strict=True)]
    arguments = (ColumnRef(0, array_of(INT4)), *(ColumnRef(1 + i, array_of(INT8)) for i in range(4)))
    try:
        return repr(compiled(Call("whole_float8", arguments, FLOAT8))(columns)), None
    except SqlFailure as failure:
        return None, str(failure)


def test_a_sum_is_the_exact_sum_rounded_once(spark: SparkSession) -> None:
    ensure_exact(spark)
    pick = random.Random(1)
    wanted = [case for case in cases(pick, 100) if case]
    rows = [(n, x) for n, case in enumerate(wanted) for x in case]
    frame = spark.createDataFrame(rows, "n int, x double").coalesce(1)
    x = ColumnRef(1, FLOAT8)
    limb: Scalar = Call("limb_float8", (x,), INT4)
    digits = [Call("digit_float8", (x, Literal(i, INT4)), INT8) for i in range(4)]
    # case -> limb -> the sums of its digits: what the state of a group holds.
    state: dict[int, dict[int, list[int]]] = {n: {} for n in range(len(wanted))}
    for row in evaluated(frame, [ColumnRef(0, INT4), limb, *digits]):
        n, limb_, *parts = row[::2]
        assert isinstance(n, int)
        assert set(row[1::2]) == {None}
        sums = state[n].setdefault(-4 if limb_ is None else int(str(limb_)), [0, 0, 0, 0])
        for i, part in enumerate(parts):
            sums[i] += 0 if part is None else int(str(part))
    lists = [
        (n, *(list(one) for one in zip(*((limb, *sums) for limb, sums in sorted(limbs.items())), strict=True)))
        for n, limbs in state.items()
    ]
    shape = "n int, l array<int>, " + ", ".join(f"d{i} array<bigint>" for i in range(4))
    stored = spark.createDataFrame(lists, shape).coalesce(1)
    arguments = (ColumnRef(1, array_of(INT4)), *(ColumnRef(2 + i, array_of(INT8)) for i in range(4)))
    found = evaluated(stored, [ColumnRef(0, INT4), Call("whole_float8", arguments, FLOAT8)])
    assert len(found) == len(wanted)
    for n, _, value, error in found:
        assert isinstance(n, int)
        shown = None if error else repr(value)
        assert (shown, error) == summed_here(wanted[n], state[n]), wanted[n]
        present = [one for one in wanted[n] if one is not None]
        expected = float_sum(present) if present else None
        if present and expected is None:
            assert (value, error) == (None, "22003 value out of range: overflow"), wanted[n]
        else:
            assert (repr(value), error) == (repr(0.0 if expected == 0 else expected), None), wanted[n]


def test_sums_of_products_and_what_is_computed_of_them_are_exact(spark: SparkSession) -> None:
    ensure_exact(spark)
    pick = random.Random(2)
    wanted = [[(x, y) for x, y in zip(one, reversed(one), strict=True)] for one in cases(pick, 50) if one]
    rows = [(n, x, y) for n, case in enumerate(wanted) for x, y in case]
    frame = spark.createDataFrame(rows, "n int, x double, y double").coalesce(1)
    digits: Scalar = Call("product_digits_float8", (ColumnRef(1, FLOAT8), ColumnRef(2, FLOAT8)), array_of(INT8))
    state: dict[int, dict[int, list[int]]] = {n: {} for n in range(len(wanted))}
    for n, _, found, error in evaluated(frame, [ColumnRef(0, INT4), digits]):
        assert error is None
        assert isinstance(n, int)
        limb, *parts = found if isinstance(found, list) else [-4, *[0] * PRODUCT_DIGITS]
        sums = state[n].setdefault(limb, [0] * PRODUCT_DIGITS)
        for i, part in enumerate(parts):
            sums[i] += part
    lists = [
        (n, *(list(one) for one in zip(*((limb, *sums) for limb, sums in sorted(limbs.items())), strict=True)))
        for n, limbs in state.items()
    ]
    shape = "n int, l array<int>, " + ", ".join(f"d{i} array<bigint>" for i in range(PRODUCT_DIGITS))
    stored = spark.createDataFrame(lists, shape).coalesce(1)
    arguments = (ColumnRef(1, array_of(INT4)), *(ColumnRef(2 + i, array_of(INT8)) for i in range(PRODUCT_DIGITS)))
    total = Call("exact_product_sum_float8", arguments, TEXT)
    one = Literal(1, INT8)
    found_rows = evaluated(stored, [ColumnRef(0, INT4), total, Call("regr_sxx_float8", (one, total, total), FLOAT8)])
    assert len(found_rows) == len(wanted)
    for n, _, text, error, *spread_and_error in found_rows:
        assert error is None
        xs, ys = (list(side) for side in zip(*wanted[int(str(n))], strict=True))
        (expected,) = exact_sums_of_frames(xs, ys, [[1, len(xs)]])
        assert text == expected, wanted[int(str(n))]
        if text is not None:
            assert repr(tuple(spread_and_error)) == repr(outcome(text))


def outcome(total: str) -> tuple[float | None, str | None]:
    """Returns the spread of one value whose sum and square are both `total`, or its error."""
    try:
        return spread(1, total, total), None
    except SqlFailure as failure:
        return None, str(failure)
