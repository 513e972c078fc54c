"""How often a row is there is said exactly, or not at all; values that nest are found among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.compute.local.coded_rows import NULL, CodedRows
from mz_dagster.compute.local.multiplicities import opposites, products, totals
from mz_dagster.storage.shards import MultiplicityOverflow

MOST = 2**63 - 1


def test_sums_and_products_are_exact_or_an_error() -> None:
    numbers = np.array([0, 0, 0, 1])
    assert totals(numbers, np.array([MOST, MOST, -MOST, -MOST - 1])).tolist() == [MOST, -MOST - 1]
    assert opposites(pa.chunked_array([[MOST, -3]])).to_pylist() == [-MOST, 3]
    for failing in (
        lambda: totals(numbers, np.array([MOST, 1, 0, 0])),
        lambda: totals(numbers, np.array([-MOST, -MOST, 0, 0])),
        lambda: products(pa.array([2**32]), pa.array([2**31])),
        lambda: opposites(pa.chunked_array([[-MOST - 1]])),
    ):
        with pytest.raises(MultiplicityOverflow) as told:
            failing()
        assert told.value.sqlstate == "22003"


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ([[1], [2, None], None], [[2, None], [3], None, [3], [1]]),
        ([{"a": 1}, {"a": None}, None], [{"a": None}, {"a": 3}, None, {"a": 3}, {"a": 1}]),
        ([1.5, -0.0, None], [-0.0, 7.0, None, 7.0, 1.5]),
        (["x", "y", None], ["y", "z", None, "z", "x"]),
    ],
)
def test_values_of_every_type_are_looked_up_by_code(known: list[Any], new: list[Any]) -> None:
    rows = CodedRows(pa.table({"c0": pa.array(known)}), len(known))
    codes = rows.coded_values(0, pa.array(new, rows.table.column(0).type))
    assert rows.decoded(0, codes).to_pylist() == new
    assert codes[1] == codes[3]
    assert codes[2] == NULL
    assert codes[4] == rows.columns[0][0]
    assert rows.comparable(0, codes)[1] == codes[1]
