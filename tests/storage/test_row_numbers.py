"""Arrays are told apart by their elements, whatever these are, NULLs and the order among them."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.storage.row_numbers import numbered

DAY = dt.date(2024, 2, 29)
ELEMENTS: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "smallint": (pa.int16(), (0, 1, -1, 256)),
    "bigint": (pa.int64(), (0, 1, 2**62, -(2**62))),
    "real": (pa.float32(), (0.0, -0.0, 1.5, math.inf)),
    "double": (pa.float64(), (0.0, -0.0, 1.5, -math.inf)),
    "date": (pa.date32(), (DAY, DAY.replace(day=1))),
    "timestamp": (pa.timestamp("us"), (dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 1))),
    "text": (pa.string(), ("", "a", "b", "ab")),
    "bytea": (pa.binary(), (b"", b"\0", b"\0\0")),
    "boolean": (pa.bool_(), (True, False)),
    "numeric": (pa.decimal128(38, 2), (0, 1, 10**20)),
    "array": (pa.list_(pa.int32()), ([], [0], [None], [0, 0])),
}
#: Of which there are two that are one and the same.
_NANS = tuple(struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, (0x7FF8 << 48) + 1))


@pytest.mark.parametrize("with_nulls", [False, True], ids=["no NULLs", "NULLs"])
@pytest.mark.parametrize("signs", [True, False], ids=["signs", "no signs"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_arrays_have_one_number_where_their_elements_are_equal(kind: str, signs: bool, with_nulls: bool) -> None:
    rng = random.Random(kind)
    type_, known = ELEMENTS[kind]
    values = [*known, *(_NANS if kind in ("real", "double") else ()), *((None,) if with_nulls else ())]
    lists = [rng.choices(values, k=rng.randrange(4)) for _ in range(400)]
    rows = [None if with_nulls and rng.random() < 0.05 else one for one in lists]
    # What stands before a slice is none of its elements.
    column = pa.array([[values[0]], *rows], pa.list_(type_)).slice(1)
    numbers, bound = numbered([column], len(column), signs=signs)
    equal = [None if row is None else tuple(_compared(one, signs) for one in row) for row in rows]
    assert len(set(equal)) > 5
    assert len(set(zip(numbers.tolist(), equal, strict=True))) == len(set(numbers.tolist())) == len(set(equal))
    assert 0 <= int(np.min(numbers)) <= int(np.max(numbers)) < bound


def _compared(value: Any, signs: bool) -> Hashable:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, signs and math.copysign(1, value))
    return tuple(value) if isinstance(value, list) else value
