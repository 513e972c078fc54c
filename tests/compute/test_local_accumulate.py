"""The state of counts and sums, advanced in this process, has the updates that its definition gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.compute.local.accumulate import accumulate_updates
from mz_dagster.formalism import NATURAL, Antichain, Update, compact_updates
from mz_dagster.scalars.types import INT4, INT8, INTERVAL, TEXT, Column, numeric
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.shards import MultiplicityOverflow
from tests.compute.contents import exact
from tests.compute.test_accumulate import DISTINCT, GLOBAL, TIMES, Told, accumulation, expected, random_updates

KEYED = accumulation([INT4, TEXT, numeric(2)], [INT8, numeric(4)])
NODES = {"keyed": KEYED, "without a key": GLOBAL, "without sums": DISTINCT}


def table(columns: tuple[Column, ...], updates: Iterable[Told]) -> pa.Table:
    named = [Column(f"c{i}", column.type) for i, column in enumerate(columns)]
    rows = []
    for one in updates:
        is_error = one.data[:1] == ("error",)
        cells = (None,) * len(columns) if is_error else one.data
        data = [
            Interval(*cell) if column.type == INTERVAL and cell is not None else cell
            for cell, column in zip(cells, columns, strict=True)
        ]
        rows.append((data, one.time, one.diff, one.data[1] if is_error else None))
    return update_table(named, rows)


def told(found: pa.Table) -> Counter[Told]:
    updates: Counter[Any] = Counter()
    for *cells, time, diff, error in zip(*(column.to_pylist() for column in found.columns), strict=True):
        data = exact(tuple(cells))
        updates[data if error is None else ("error", error), time] += diff
    return Counter({Update(data, time, diff): 1 for (data, time), diff in updates.items() if diff})


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(one, marks=pytest.mark.deep) for one in (2, 3))])
def test_the_updates_are_those_of_the_definition_wherever_the_interval_begins(name: str, seed: int) -> None:
    node = NODES[name]
    given = random_updates(random.Random(seed), node, 30)
    every = expected(given, node)
    for lower in range(TIMES):
        before = [one for one in every if one.time < lower]
        for state in (before, compact_updates(before, Antichain.of(NATURAL, lower // 2))):
            changes = table(node.input.relation_type.columns, [one for one in given if one.time >= lower])
            made = told(accumulate_updates(changes, table(node.relation_type.columns, state), node))
            assert set(made) == {one for one in every if one.time >= lower}


def test_sums_out_of_range_are_told_here() -> None:
    node = accumulation([INT4], [numeric(0)])
    large = Decimal(6 * 10**37)
    columns = node.input.relation_type.columns
    accumulate_updates(table(columns, [Update((1, large), 3, 1)]), table(node.relation_type.columns, []), node)
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        accumulate_updates(table(columns, [Update((1, large), 3, 2)]), table(node.relation_type.columns, []), node)
