"""Statistics over columns are what they are group by group, value and error, and few groups are left to the reference.

The sums are those that updates come to, also in the middle of a step: counts below zero, squares that do not fit their
sums, infinities, NaN, NULL, what is too large for a double or for a numeric.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.compute.local.expressions import STRICT, RowBatch, evaluated, evaluator, statistics
from mz_dagster.functions.aggregates.sums import PRODUCT_DIGITS, ExactSum, nearest_float8, parsed, shown
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, TEXT, ScalarType, array_of, numeric
from mz_dagster.storage.plain_cells import stored_cells
from tests.compute.test_kernels import assert_same

ROWS = 200
VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
#: Functions of exact sums, by which sums they take: of x, of y, and of products.
OF_SUMS = {
    **{f"{name}_float8": ("x", "xx") for name in (*VARIANCES, "regr_sxx")},
    **{f"{name}_float8": ("x", "y", "xy") for name in ("regr_sxy", "covar_pop", "covar_samp")},
    **{f"{name}_float8": ("x", "y", "xx", "xy") for name in ("regr_slope", "regr_intercept")},
    **{f"{name}_float8": ("x", "y", "xx", "yy", "xy") for name in ("corr", "regr_r2")},
}
EXTREMES = (0.0, -0.0, 1.0, -3.0, 0.1, 5e-324, -5e-324, 1e-200, 2.0**-1022, 1e154, -1e160, 1e308, -1.7e308)
SPECIAL = (math.nan, math.inf, -math.inf)


def called(name: str, types: Sequence[ScalarType], type_: ScalarType, *literals: Literal) -> Call:
    columns: list[Scalar] = [ColumnRef(place, one) for place, one in enumerate(types)]
    return Call(name, (*columns, *literals), type_)


def some_double(chosen: random.Random) -> float:
    kind = chosen.random()
    if kind < 0.03:
        return chosen.choice(SPECIAL)
    if kind < 0.2:
        return chosen.choice(EXTREMES)
    return chosen.choice([chosen.randint(-9, 9) * 1.0, chosen.gauss(0, 1), chosen.gauss(1e6, 1e-3)])


def sums_of_a_group(chosen: random.Random) -> dict[str, Any]:
    """Returns the count and the exact sums of some pairs, of which some may be taken out more often than they came."""
    is_constant = chosen.random() < 0.2
    x, y = some_double(chosen), some_double(chosen)
    pairs = [
        (
            x if is_constant else some_double(chosen),
            chosen.choice([y, some_double(chosen)]),
            chosen.choice([1, 1, 2, -1]),
        )
        for _ in range(chosen.choice([0, 1, 2, 3, 8]))
    ]

    def total(of: Callable[[float, float], tuple[float, float]]) -> str | None:
        found = ExactSum(0)
        for one, other, times in pairs:
            found += ExactSum.of(*of(one, other), times)
        return found.text

    of = {"x": lambda a, _: (a, 1.0), "y": lambda _, b: (b, 1.0), "xx": lambda a, _: (a, a),
          "yy": lambda _, b: (b, b), "xy": lambda a, b: (a, b)}  # fmt: skip
    return {"n": sum(times for _, _, times in pairs), **{name: total(one) for name, one in of.items()}}


@pytest.mark.parametrize("name", OF_SUMS)
def test_a_statistic_of_doubles_is_that_of_the_reference(name: str) -> None:
    chosen = random.Random(len(name))
    groups = [sums_of_a_group(chosen) for _ in range(ROWS)]
    terms = OF_SUMS[name]
    rows = [[chosen.choice([one["n"]] * 9 + [None]), *(one[term] for term in terms)] for one in groups]
    # What a spread is in the middle of a step: any number, of any sign.
    rows += [[chosen.randint(0, 3), *(chosen.choice(groups)[term] for term in terms)] for _ in range(ROWS)]
    assert assert_same(called(name, (INT8, *(TEXT for _ in terms)), FLOAT8), (INT8, *(TEXT for _ in terms)), rows)


@pytest.mark.parametrize("name", VARIANCES)
@pytest.mark.parametrize(
    "scales", [(0, 0, 16), (2, 4, 16), (2, 4, 20), (0, 3, 0), (12, 24, 30), (38, 38, 38), (5, 2, 4)]
)
def test_a_variance_of_numerics_is_that_of_the_reference(name: str, scales: tuple[int, int, int]) -> None:
    chosen = random.Random(sum(scales))
    own, of_squares, scale = scales
    exact = Context(prec=80)
    rows: list[list[Any]] = []
    for _ in range(ROWS):
        most = 10 ** chosen.choice([1, 2, 5, 9, 18, 30])
        values = [chosen.randint(-most, most) for _ in range(chosen.choice([1, 2, 3, 9]))] * chosen.choice([1, 1, 400])
        total, squares = sum(values), sum(one * one for one in values)
        units = squares * 10 ** max(0, of_squares - 2 * own) // 10 ** max(0, 2 * own - of_squares)
        given = chosen.choice([units, units, units, units + chosen.randint(-3, 3), -units])
        if max(abs(total), abs(given)) < 10**38:
            count = chosen.choice([len(values)] * 6 + [0, 1, -2, 2**62])
            rows.append([count, Decimal(total).scaleb(-own, exact), Decimal(given).scaleb(-of_squares, exact)])
    rows += [[None, Decimal(0), Decimal(0)], [3, None, Decimal(0)], [3, Decimal(0), None]]
    types = (INT8, numeric(own), numeric(of_squares))
    assert_same(called(f"{name}_numeric", types, numeric(scale), Literal(scale, INT4)), types, rows)


def test_the_digits_of_products_are_those_of_the_reference() -> None:
    chosen = random.Random(4)
    values = [*EXTREMES, *SPECIAL, None, 2.0**53 - 1, 1 / 3, -1e-310]
    rows = [[one, other] for one in values for other in values]
    rows += [[math.ldexp(chosen.uniform(-1, 1), chosen.randint(-1070, 1023)) for _ in range(2)] for _ in range(ROWS)]
    assert_same(called("product_digits_float8", (FLOAT8, FLOAT8), array_of(INT8)), (FLOAT8, FLOAT8), rows)
    one = Call("product_digits_float8", (ColumnRef(0, FLOAT8), Literal(-0.75, FLOAT8)), array_of(INT8))
    assert_same(one, (FLOAT8,), [[value] for value in values])


@pytest.mark.parametrize(
    ("name", "digits"), [("exact_sum_float8", 4), ("whole_float8", 4), ("exact_product_sum_float8", PRODUCT_DIGITS)]
)
@pytest.mark.parametrize("has_special", [False, True])
def test_an_exact_sum_of_digits_is_that_of_the_reference(name: str, digits: int, *, has_special: bool) -> None:
    chosen = random.Random(digits)
    most = 88 if digits == 4 else 178
    # -4 is the place of what is NULL.
    places = [*range(most), -4, -4, *((-1, -2, -3) if has_special else ())]
    rows: list[list[Any]] = []
    for _ in range(ROWS):
        limbs = sorted(chosen.sample(places, chosen.choice([1, 1, 2, 5])))
        sizes = [2 ** chosen.choice([1, 24, 24, 60]) for _ in limbs]
        lists = [[0 if limb < 0 else chosen.randint(-size, size - 1) for limb, size in zip(limbs, sizes, strict=True)]
                 for _ in range(digits)]  # fmt: skip
        rows.append([limbs, *lists])
    rows += [[[-4], *([0],) * digits], [[40, 40], *([7, -7],) * digits], [None, *([0],) * digits]]
    types = (array_of(INT4), *(array_of(INT8) for _ in range(digits)))
    call = called(name, types, FLOAT8 if name == "whole_float8" else TEXT)
    assert_same(call, types, rows[: -1 if not has_special else None])


def test_the_double_nearest_to_an_exact_sum_is_that_of_the_reference() -> None:
    chosen = random.Random(5)
    sizes = [1, 2**53 - 1, 2**53 + 1, 2**54 + 1, 3**40, 2**1100 + 1, 5**500]
    texts = [shown(sign * size, chosen.randint(-2148, 1100)) for size in sizes for sign in (1, -1) for _ in range(40)]
    texts += [shown(3, one) for one in (-1076, -1075, -1074, 1022, 1023)]  # beside the least and the greatest
    rows: list[list[Any]] = [[one] for one in (*texts, "0p0", "NaN", "Infinity", "-Infinity", None)]
    assert assert_same(called("nearest_float8", (TEXT,), FLOAT8), (TEXT,), rows)
    for (text,) in rows[: len(texts)]:  # and of that what fractions say
        value = parsed(text)
        assert isinstance(value, Fraction)
        try:
            wanted = float(value)
        except OverflowError:
            with pytest.raises(SqlFailure, match="overflow"):
                nearest_float8(text)
        else:
            assert nearest_float8(text) == wanted


def test_every_kernel_of_statistics_is_tested() -> None:
    own = {name for name, kernel in STRICT.items() if kernel.__module__ == statistics.__name__}
    tested = {*OF_SUMS, *(f"{name}_numeric" for name in VARIANCES), "product_digits_float8", "nearest_float8"}
    assert own == tested | {"exact_sum_float8", "whole_float8", "exact_product_sum_float8"}


def test_statistics_of_plain_numbers_are_not_computed_group_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(1)
    monkeypatch.setattr(evaluator, "evaluated_by_row", None)
    groups = []
    for _ in range(50):
        total, product = ExactSum(0), ExactSum(0)
        for _ in range(5):
            value = chosen.gauss(0, 100)
            total, product = total + ExactSum.of(value, 1.0, 1), product + ExactSum.of(value, value, 1)
        groups.append((5, total.text, product.text))
    columns = [
        stored_cells(one, type_) for one, type_ in zip(zip(*groups, strict=True), (INT8, TEXT, TEXT), strict=True)
    ]
    found = evaluated(called("stddev_samp_float8", (INT8, TEXT, TEXT), FLOAT8), RowBatch(50, columns.__getitem__))
    assert found.errors is None
    types = (INT8, numeric(2), numeric(4))
    given: list[pa.Array] = [pa.array([3] * 50, pa.int64())]
    given += [stored_cells([Decimal(chosen.randint(0, 10**6)).scaleb(-2) for _ in range(50)], types[1])]
    given += [stored_cells([Decimal(chosen.randint(0, 10**14)).scaleb(-4) for _ in range(50)], types[2])]
    call = called("stddev_samp_numeric", types, numeric(16), Literal(16, INT4))
    assert evaluated(call, RowBatch(50, given.__getitem__)).errors is None
