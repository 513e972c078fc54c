"""Rows in order, and rows that meet: where they are many, as where they are few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.compute.local.coded_rows import NULL, CodedRows
from mz_dagster.compute.local.declined import TooManyMade
from mz_dagster.compute.local.matching import SortedKeys, matches, sorted_matches
from mz_dagster.storage.row_numbers import compact, firsts, numbered, order_by, ranked

GREATEST = 2**63 - 1
#: By name: so many integers, drawn.
DRAWN: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "few": lambda chosen, rows: chosen.integers(0, 5, rows),
    "close": lambda chosen, rows: chosen.integers(-rows, 3 * rows, rows),
    "close to the end": lambda chosen, rows: GREATEST - chosen.integers(0, rows, rows),
    "far": lambda chosen, rows: chosen.choice(chosen.integers(-GREATEST - 1, GREATEST, rows), rows),
    "sentinels": lambda chosen, rows: chosen.choice([-(2**62), 2**62, 1, 3], rows),
    "first and last": lambda chosen, rows: chosen.choice([-GREATEST - 1, GREATEST], rows),
    "narrow": lambda chosen, rows: chosen.choice([-(2**31), 2**31 - 1, 0, 7], rows).astype(np.int32),
    "one": lambda chosen, rows: np.zeros(rows, np.int64),
}


@pytest.mark.parametrize("rows", [1, 2, 499, 500, 3000])
def test_rows_are_in_order_and_numbered_as_numpy_has_them(rows: int) -> None:
    chosen = np.random.default_rng(rows)
    for _ in range(40):
        columns = [DRAWN[name](chosen, rows) for name in chosen.choice(list(DRAWN), chosen.integers(1, 7))]
        assert order_by(columns).tolist() == np.lexsort([*reversed(columns)]).tolist()
        distinct, places, numbers = np.unique(columns[0], return_index=True, return_inverse=True)
        assert [one.tolist() for one in ranked(columns[0])] == [distinct.tolist(), numbers.tolist()]
        found, count = compact(columns[0])
        assert (found.tolist(), count) == (numbers.tolist(), len(distinct))
        assert firsts(columns[0]).tolist() == places.tolist()


def met(pairs: Sequence[tuple[list[Any], list[Any]]]) -> tuple[list[int], list[int]]:
    """Returns the rows that meet, one list for each side, by a dictionary."""
    by_key = defaultdict(list)
    for place, key in enumerate(zip(*(other for _, other in pairs), strict=True)):
        by_key[key].append(place)
    places = [by_key.get(key, []) for key in zip(*(one for one, _ in pairs), strict=True)]
    return [row for row, found in enumerate(places) for _ in found], list(chain.from_iterable(places))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("rows", [0, 1, 7, 600])
def test_keys_in_order_are_met_as_others(name: str, rows: int) -> None:
    chosen = np.random.default_rng(rows)
    for other in DRAWN:
        for is_distinct in (False, True):
            own = DRAWN[name](chosen, rows)
            own = chosen.permutation(np.unique(own)) if is_distinct else own
            asked = np.concatenate([DRAWN[other](chosen, 50).astype(own.dtype), own[: rows // 2]])
            column, looked_up = pa.chunked_array([pa.array(own)]), pa.chunked_array([pa.array(asked)])
            keys = SortedKeys.of(column)
            assert keys is not None
            found = sorted_matches(looked_up, keys, 10**6)
            assert found is not None
            assert tuple(one.tolist() for one in found) == met([(asked.tolist(), own.tolist())])


#: Types of columns, and what cell of one an integer stands for.
TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "smallint": (pa.int16(), lambda number: number),
    "integer": (pa.int32(), lambda number: number * 200_000),
    "bigint": (pa.int64(), lambda number: number << 49),
    "date": (pa.date32(), lambda number: date(2024, 1, 1) + timedelta(number)),
    "time": (pa.time64("us"), lambda number: time(abs(number) % 24, 3, 0, abs(number))),
    "timestamp": (pa.timestamp("us"), lambda number: datetime(2024, 1, 1) + timedelta(number, microseconds=number)),
    "numeric": (pa.decimal128(38, 2), lambda number: Decimal(number).scaleb(-2)),
    "wide numeric": (pa.decimal128(38, 2), lambda number: Decimal(number).scaleb(30 if number % 3 == 0 else -2)),
    "text": (pa.string(), lambda number: f"é{number}"),
    "boolean": (pa.bool_(), lambda number: number > 0),
}


@pytest.mark.parametrize("rows", [0, 1, 7, 499, 500, 2000])
@pytest.mark.parametrize("name", TYPES)
def test_values_of_a_column_are_numbered_and_coded_in_their_order(name: str, rows: int) -> None:
    (type_, cell_of), chosen = TYPES[name], np.random.default_rng(rows)
    for span in (3, max(rows, 1), 10_000):
        drawn = chosen.integers(-span, span, rows).tolist()
        for has_nulls in (False, True):
            cells = [None if has_nulls and one % 4 == 0 else cell_of(one) for one in drawn]
            column = pa.array([None, *cells, None], type_).slice(1, rows)
            numbers, bound = numbered([column], rows)
            distinct = set(cells)
            assert len(set(zip(numbers.tolist(), cells, strict=True))) == len(set(numbers.tolist())) == len(distinct)
            assert all(0 <= one < bound for one in numbers)
            coded = CodedRows(pa.table({"c0": column}), rows)
            places = {cell: place for place, cell in enumerate(sorted(one for one in distinct if one is not None))}
            assert coded.columns[0].tolist() == [places.get(cell, NULL) for cell in cells]
            decoded = coded.decoded(0, coded.columns[0])
            assert (decoded.to_pylist(), decoded.type) == (cells, type_)


@pytest.mark.parametrize("sizes", [(3, 0), (0, 3), (7, 900), (600, 2500), (2500, 600)])
@pytest.mark.parametrize("names", [*((name,) for name in DRAWN), ("close", "far"), ("narrow", "few"), ("far", "nulls")])
def test_the_rows_that_meet_are_those_of_equal_keys(names: tuple[str, ...], sizes: tuple[int, int]) -> None:
    chosen = np.random.default_rng(1)
    left, right = sizes
    pairs = []
    for name in names:
        values = pa.array(DRAWN["few" if name == "nulls" else name](chosen, left + right))
        if name == "nulls":
            values = pa.array([one or None for one in values.to_pylist()], pa.int64())
        pairs.append((pa.chunked_array([values[:left]]), pa.chunked_array([values[left:]])))
    wanted = met([(one.to_pylist(), other.to_pylist()) for one, other in pairs])
    found = matches(pairs, left, right, count := len(wanted[0]))
    assert tuple(one.tolist() for one in found) == wanted
    if count:
        with pytest.raises(TooManyMade):
            matches(pairs, left, right, count - 1)
