"""Rows that are in a file before and after it is rewritten: a pair may be missed, and what is left is the difference.

Held against counting rows one by one, over each type that files have, for what writers make of a file: the same order
with rows changed, taken out and put in, pieces of several files, and no order at all.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.storage.source.unchanged_rows import net_rows

#: Values of each type, in which equal ones are easily taken for others and others for equal ones.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63), None],
    pa.int16(): [0, 1, -1, None],
    pa.bool_(): [True, False, None],
    pa.float64(): [0.0, -0.0, float("nan"), float("inf"), 5e-324, None],
    pa.float32(): [0.0, -0.0, float("nan"), 1.5, None],
    pa.string(): ["", "a", "a\0", "b" * 8, "b" * 9, "c" * 32, None],
    pa.binary(): [b"", b"\0", b"\0\0", b"x" * 40, b"x" * 39 + b"y", None],
    pa.decimal128(38, 2): [Decimal(0), Decimal("0.01"), Decimal(2**70), Decimal(-(2**70)), None],
    pa.date32(): [0, -1, None],
    pa.timestamp("us", "UTC"): [0, 1, None],
    pa.list_(pa.float64()): [[], [0.0], [-0.0], [None], [0.0, 0.0], None],
    pa.list_(pa.list_(pa.string())): [[], [[]], [None], [["a"], ["b"]], [["a", "b"]], None],
    pa.struct([("x", pa.int8()), ("y", pa.string())]): [{"x": 1, "y": ""}, {"x": 1, "y": None}, {"x": None}, None],
    pa.map_(pa.string(), pa.int8()): [[("a", 1)], [], None],
    pa.null(): [None],
}


def told_apart(value: Any) -> Any:
    """Returns what is the same for the same value only: floats by their bits."""
    match value:
        case float():
            return "nan" if value != value else struct.pack("<d", value)
        case list() | tuple():
            return tuple(map(told_apart, value))
        case dict():
            return tuple(told_apart(one) for one in value.values())
    return value


def counted(batch: pa.RecordBatch, diffs: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, diff in zip(zip(*(one.to_pylist() for one in batch.columns), strict=True), diffs.tolist(), strict=True):
        found[told_apart(row)] += diff
    return found


def net(portions: list[tuple[pa.RecordBatch, Any]]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for batch, diffs in portions:
        for row, diff in counted(batch, diffs).items():
            found[row] += diff
    return Counter({row: diff for row, diff in found.items() if diff})


def in_files(random: Random, rows: pa.RecordBatch, diff: int) -> list[tuple[pa.RecordBatch, Any]]:
    """Returns rows as portions of several files, which begin anywhere in what Arrow holds."""
    cuts = sorted({0, rows.num_rows, *(random.randrange(rows.num_rows + 1) for _ in range(3))})
    return [(rows.slice(i, j - i), np.full(j - i, diff, np.int64)) for i, j in pairwise(cuts)]


def rewritten(random: Random, count: int, most: int) -> list[int | None]:
    """Returns what becomes of rows: which of them are there, in which order; None for another one."""
    order: list[int | None] = []
    for row in range(count):
        draw = random.random()
        order += [None] if draw < 0.01 else [] if draw < 0.02 else [row, None] if draw < 0.03 else [row]
    match random.randrange(3):
        case 0:
            random.shuffle(order)
        case 1:
            cut = random.randrange(len(order) or 1)
            order = order[cut:] + order[:cut]
    return order[:most]


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_what_is_left_makes_the_difference(type_: pa.DataType) -> None:
    random = Random(str(type_))
    for count in (1, 40, 1500):
        for spread in (3, 10 * count):  # many times the same row, and nearly none twice
            picked = [random.choice(VALUES[type_]) for _ in range(count)]
            numbers = [random.randrange(spread) for _ in range(count)]
            before = pa.record_batch({"n": pa.array(numbers, pa.int32()), "v": pa.array(picked, type_)})
            order = rewritten(random, count, 10 * count)
            of_other = [random.choice(VALUES[type_]) for _ in order]
            after = pa.record_batch(
                {
                    "n": pa.array([numbers[row] if row is not None else 0 for row in order], pa.int32()),
                    "v": pa.array(
                        [picked[row] if row is not None else other for row, other in zip(order, of_other, strict=True)],
                        type_,
                    ),
                }
            )
            portions = in_files(random, before, -1) + in_files(random, after, 1)
            found = list(net_rows(portions))
            assert net(found) == net(portions)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda rows: np.where(np.arange(len(rows)) % 1000 == 7, rows + 10**6, rows), 20),
        (lambda rows: np.delete(rows, slice(None, None, 1000)), 20),
        (lambda rows: np.insert(rows, slice(None, None, 1000), -1), 20),
        (lambda rows: np.concatenate([rows[7000:], rows[3000:7000], rows[:3000]]), 0),
        (lambda rows: np.random.default_rng(1).permutation(rows), 1200),
    ],
    ids=["changed", "taken out", "put in", "in pieces", "in no order"],
)
def test_little_is_left_of_what_is_the_same(change: Callable[[Any], Any], most: int) -> None:
    rows = np.arange(10_000)
    sides = [(rows[:5000], -1), (rows[5000:], -1), (change(rows), 1)]
    portions = [(pa.record_batch({"a": one}), np.full(len(one), diff)) for one, diff in sides]
    found = list(net_rows(portions))
    assert sum(batch.num_rows for batch, _ in found) <= most
    assert net(found) == net(portions)


def test_of_many_files_the_first_rows_may_have_changed() -> None:
    before = [np.arange(first, first + 1000) for first in range(0, 40_000, 1000)]
    after = np.concatenate([np.where(np.arange(1000) == 0, -one - 1, one) for one in reversed(before)])
    portions = [(pa.record_batch({"a": one}), np.full(len(one), -1)) for one in before]
    portions.append((pa.record_batch({"a": after}), np.full(len(after), 1)))
    found = list(net_rows(portions))
    assert sum(batch.num_rows for batch, _ in found) == 80
    assert net(found) == net(portions)


def test_rows_that_count_otherwise_pass_as_they_are() -> None:
    rows = pa.record_batch({"a": [1, 2, 3]})
    portions = [(rows, np.array([2, -1, 1])), (rows, np.array([-1, 1, 1])), (rows.slice(0, 0), np.array([], np.int64))]
    assert net(list(net_rows(portions))) == {(1,): 1, (3,): 2}
    other = pa.record_batch({"a": pa.array([1, 2, 3], pa.int32())})
    unlike = [(rows, np.array([-1, -1, -1])), (other, np.array([1, 1, 1]))]
    assert sum(batch.num_rows for batch, _ in net_rows(unlike)) == 6, "types differ: what they are is found out later"
