"""The laws of the algebra of aggregates: however rows are parted, and however often each is there at once."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from mz_dagster.functions import AGGREGATES
from mz_dagster.functions.aggregates.algebra import AggregateClass, Algebra
from mz_dagster.scalars.types import (
    BYTEA,
    FLOAT4,
    FLOAT8,
    INT8,
    INTERVAL,
    TEXT,
    UNCONSTRAINED,
    ScalarType,
    array_of,
    numeric,
)

_FLOATS = (0.1, -1e300, 1e300, 2.5, -0.0, float("inf"), float("nan"))
_TEXTS = ("", "a", "é", "ab")
CASES = [
    ("count", INT8, [(1, None)]),
    ("sum", INT8, [(3, -7, None)]),
    ("sum", numeric(2), [(Decimal("1.50"), Decimal("-0.25"), None)]),
    ("sum", UNCONSTRAINED, [("1.50", "-2.125", "Infinity", None)]),
    ("sum", FLOAT8, [(*_FLOATS, None)]),
    ("sum", FLOAT4, [(0.5, 0.25, -3.0, None)]),
    ("exact_sum", TEXT, [(*_FLOATS, None), (*_FLOATS, None)]),
    ("min", FLOAT8, [(1.0, -2.0, float("nan"), None)]),
    ("max", TEXT, [(*_TEXTS, None)]),
    ("max", INTERVAL, [((0, 30, 1), (1, 0, 0), (0, 0, 5), None)]),
    *((f"bit_{name}", INT8, [(6, 3, -1, None)]) for name in ("and", "or", "xor")),
    ("array_agg", array_of(INT8), [(1, 2, None)]),
    ("string_agg", TEXT, [(*_TEXTS, None), (",", "", None)]),
    ("string_agg", BYTEA, [(b"a", b"", None), (b"-", None)]),
]


def _rows(pick: random.Random, pools: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(map(pick.choice, pools)) for _ in range(pick.randrange(9))]


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@pytest.mark.parametrize(("name", "type_", "pools"), CASES, ids=[f"{name} {type_}" for name, type_, _ in CASES])
def test_an_aggregate_is_that_of_its_parts(name: str, type_: ScalarType, pools: Sequence[Sequence[Any]]) -> None:
    made = AGGREGATES[name].algebra
    assert made is not None
    algebra, pick = made(type_), random.Random(1)
    is_accumulable = AGGREGATES[name].aggregate_class is AggregateClass.ACCUMULABLE
    if AGGREGATES[name].aggregate_class is AggregateClass.HIERARCHICAL:
        assert all(_same(algebra.value([((cell,), 1)]), cell) for cell in pools[0]), "of one row it is the value"
    for _ in range(30):
        rows = _rows(pick, pools)
        whole = algebra.value([(row, 1) for row in rows])
        assert _same(whole, _of_two_parts(algebra, rows, pick.randrange(len(rows) + 1)))
        frames = [sorted(pick.randrange(1, len(rows) + 2) for _ in range(4)) for _ in rows]
        frames = [[a, b - 1, b, c] if c <= len(rows) else [a, b - 1] for a, b, c, _ in frames]
        filtered = [row if pick.random() < 0.7 else None for row in rows]
        expected = []
        for frame in frames:
            seen = [filtered[lo - 1 : hi] for lo, hi in zip(frame[::2], frame[1::2], strict=True)]
            expected.append(algebra.value([(row, 1) for span in seen for row in span if row is not None]))
        assert _same(algebra.of_frames(filtered, frames), expected)
        if is_accumulable:
            others = _rows(pick, pools)
            undone = [*((row, 1) for row in others), *((row, 1) for row in rows), *((row, -1) for row in others)]
            assert _same(whole, algebra.value(undone))
        copies = [(row, pick.randrange(1, 4)) for row in rows]
        assert _same(algebra.value(copies), algebra.value([(row, 1) for row, n in copies for _ in range(n)]))


def _of_two_parts(algebra: Algebra, rows: Sequence[Sequence[Any]], split: int) -> Any:
    parts = [[algebra.partial(row, 1) for row in part if algebra.counts(row)] for part in (rows[:split], rows[split:])]
    merged = [functools.reduce(algebra.merge, part) for part in parts if part]
    return algebra.finish(functools.reduce(algebra.merge, merged)) if merged else algebra.value([])


def test_each_aggregate_of_the_algebra_is_tried() -> None:
    assert {name for name, _, _ in CASES} == {name for name, one in AGGREGATES.items() if one.algebra is not None}
