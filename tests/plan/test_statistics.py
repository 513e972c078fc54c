"""What statistics are computed from may be sums of different times, while a step joins them: nothing may raise."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from mz_dagster.functions import FUNCTIONS
from mz_dagster.functions.aggregates import statistics
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind

NAMES = [name for name, one in PURE.items() if one.__module__ == statistics.__name__]
SUMS = ("0p0", "1p0", "-1p0", "3p-1", "-5p3", "NaN", "Infinity", "-Infinity", "1p1023", "fp1000", "1p-1074", "1p-2148")
NUMERICS = tuple(map(Decimal, ("0", "1.00", "-3.25", "9" * 38, "0.01", "-1E+37")))


def argument(pick: random.Random, kind: Kind) -> Any:
    values: dict[Kind, tuple[Any, ...]] = {
        Kind.INT8: (0, 1, 2, 3, 10**6),
        Kind.TEXT: SUMS,
        Kind.NUMERIC: NUMERICS,
        Kind.INT4: (20,),
    }
    return pick.choice(values[kind])


@pytest.mark.parametrize("name", NAMES)
def test_any_sums_give_a_result_or_an_error_of_the_data(name: str) -> None:
    pick = random.Random(1)
    for _ in range(1000):
        arguments = [argument(pick, kind) for kind in FUNCTIONS[name].arguments]
        assert outcome(name, arguments) in ("a value", "22003")


def outcome(name: str, arguments: list[Any]) -> str:
    try:
        found = PURE[name](*arguments)
    except SqlFailure as failure:
        return str(failure)[:5]
    return "a value" if found is None or isinstance(found, float | Decimal) else repr(found)


@pytest.mark.parametrize(
    ("n", "total", "squares", "deviation"),
    [(3, "4.25", "10.5325", "1.5019431857874429"), (2, "1.00", "1.0000", "0.70710678118654752440"), (4, "0", "0", "0")],
)
def test_a_deviation_has_the_digits_of_postgres(n: int, total: str, squares: str, deviation: str) -> None:
    """As `SELECT stddev(x)` shows it for rows of these sums."""
    found = statistics.numeric_stddev_samp(n, Decimal(total), Decimal(squares), 20)
    assert found is not None
    assert found == Decimal(deviation)
    assert found.as_tuple().exponent == -20
