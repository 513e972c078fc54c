"""What is computed on columns takes memory as its rows do: an exponent of one."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.compute.local.linear import mapped
from mz_dagster.compute.local.matching import SortedKeys, matches, sorted_matches
from mz_dagster.compute.local.sums import Sums, summed_by_key
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, TEXT, Column, numeric
from mz_dagster.storage.arrow_schema import UPDATE_FIELDS, update_schema
from tests.growth import exponent, peak

SIZES = (10_000, 40_000, 160_000)
INPUT = (Column("c0", INT4), Column("c1", INT8), Column("c2", numeric(2)), Column("c3", TEXT))


def frame(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    data = [
        pa.array((numbers % 100).astype(np.int32)),
        pa.array(numbers),
        pa.array([Decimal(one).scaleb(-2) for one in range(rows)], pa.decimal128(38, 2)),
        pa.array([f"text {one % 1000}" for one in range(rows)]),
    ]
    meta = [pa.array(numbers % 3), pa.array(np.ones(rows, np.int64)), pa.nulls(rows, pa.string())]
    return pa.Table.from_arrays([*data, *meta], schema=update_schema(INPUT))


def evaluated(given: pa.Table) -> object:
    group, number, amount, text = (ColumnRef(place, one.type) for place, one in enumerate(INPUT))
    steps: tuple[tuple[str, Scalar], ...] = (
        ("filter", Call("gt_int4", (group, Literal(3, INT4)), BOOL)),
        ("map", Call("divide_int8", (number, Literal(7, INT8)), INT8)),
        ("map", If(Call("lt_int4", (group, Literal(50, INT4)), BOOL), amount, Literal(Decimal("0.00"), numeric(2)))),
        ("map", Call("md5_text", (text,), TEXT)),
    )
    made = (*INPUT[:1], Column("c1", INT8), Column("c2", numeric(2)), Column("c3", TEXT))
    return mapped(given, MapFilterProject(4, steps, (0, 4, 5, 6)), update_schema(made))


def summed(given: pa.Table) -> object:
    state = pa.schema([given.schema.field(0), pa.field("c1", pa.int64()), pa.field("c2", pa.int64()), *UPDATE_FIELDS])
    changes = given.select([0, 1, 4, 5, 6])
    return summed_by_key(changes, state.empty_table(), Sums(1, state))


def matched(given: pa.Table) -> object:
    return matches([(given.column(1), given.column(1))], len(given), len(given), 10 * len(given))


def searched(given: pa.Table) -> object:
    keys = SortedKeys.of(given.column(1))
    assert keys is not None
    return sorted_matches(given.column(1), keys, 10 * len(given))


@pytest.mark.parametrize("compute", [evaluated, summed, matched, searched])
def test_memory_grows_as_the_rows_do(compute: Callable[[pa.Table], object]) -> None:
    frames = {size: frame(size) for size in SIZES}

    def memory(size: int) -> float:
        return peak(partial(compute, frames[size]))

    memory(SIZES[0])
    assert exponent(memory, SIZES, times=1) <= 1.1
