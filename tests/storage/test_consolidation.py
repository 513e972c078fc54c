"""Equal updates are summed, whatever of their columns tells them apart, and however many are alone."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mz_dagster.scalars.types import DATE, FLOAT8, INT4, INT8, TEXT, Column, array_of, numeric
from mz_dagster.storage import consolidation, row_hashes
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.consolidation import summed
from tests.budgets import SetBudget

COLUMNS = [
    Column("i", INT4),
    Column("big", INT8),
    Column("n", numeric(2)),
    Column("day", DATE),
    Column("t", TEXT),
    Column("f", FLOAT8),
    Column("a", array_of(INT4)),
]


def updates(chosen: random.Random, rows: int, values: int) -> list[Any]:
    def row() -> Any:
        n = chosen.randrange(values)
        wide = Decimal(10**25 + n % 3)
        cells = (
            chosen.choice([None, n]),
            chosen.choice([None, 0, n - values // 2]),
            chosen.choice([None, Decimal(0), Decimal(n) / 4, wide, -wide]),
            chosen.choice([None, 0, n]),
            chosen.choice([None, "", f"t{n % 7}"]),
            chosen.choice([None, 0.0, -0.0, float("nan"), float(n)]),
            chosen.choice([None, [], [n % 3]]),
        )
        return cells, chosen.choice([3, 4]), chosen.choice([1, 1, -1, 2])

    made = [row() for _ in range(rows)]
    # Some again, and of some as much goes as came.
    again = [chosen.choice(made) for _ in range(rows // 5)]
    return made + again + [(cells, time, -diff) for cells, time, diff in chosen.sample(made, rows // 5)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rows", "values"), [(60, 4), (900, 2), (3_000, 10_000), (6_000, 40)])
def test_equal_updates_are_summed(seed: int, rows: int, values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "AT_ONCE", random.Random(seed).choice([1, 7, 1_000, 100_000]))
    given = updates(random.Random(seed), rows, values)
    expected: Counter[str] = Counter()
    for cells, time, diff in given:
        expected[repr((*map(str, cells), time))] += diff
    frame = update_table(COLUMNS, [(tuple(cells), time, diff) for cells, time, diff in given])
    stored = Counter[str]()
    found = summed(frame)
    for row in found.to_pylist():
        stored[repr(tuple(map(repr, list(row.values())[:-2])))] += 1
    assert max(stored.values()) == 1, "equal updates were left"
    assert sorted(found.column("mz_diff").to_pylist()) == sorted(n for n in expected.values() if n)


def test_updates_whose_hashes_meet_are_told_apart(set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is alone is looked for by hashes of some columns; these may say too much, never too little."""
    given = updates(random.Random(1), 2_000, 10_000)
    frame = update_table(COLUMNS, given)
    expected = sorted(map(repr, summed(frame).to_pylist()))
    set_budget(numbered_rows=10**9)
    assert sorted(map(repr, summed(frame).to_pylist())) == expected
    set_budget(numbered_rows=10)
    monkeypatch.setattr(row_hashes, "_FACTOR", np.uint64(1 << 55))
    assert sorted(map(repr, summed(frame).to_pylist())) == expected
