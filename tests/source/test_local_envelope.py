"""The envelopes in this process against the same definitions as Spark's; without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from mz_dagster.scalars.types import FLOAT8, INT4, INT8, INTERVAL, TEXT, Column, array_of, numeric
from mz_dagster.storage.envelope.local import insertions, upserts
from tests.source.test_upsert import KEY, Record, Row, State, histories, reference

COLUMNS = (Column("salt", INT4), Column("k", INT4), Column("l", TEXT), Column("v", TEXT), Column("w", FLOAT8))
_DATA = pa.schema(
    [("salt", pa.int32()), ("k", pa.int32()), ("l", pa.string()), ("v", pa.string()), ("w", pa.float64())]
)


def table(records: Sequence[Record]) -> pa.Table:
    """Returns records in ingestion order."""
    ordered = sorted(records, key=lambda one: one.place)
    data = [(*one.key, *(one.state or (None, None, None))) for one in ordered]
    columns = [pa.array([row[i] for row in data], field.type) for i, field in enumerate(_DATA)]
    rest = {
        "mz_timestamp": pa.array([one.place[0] for one in ordered], pa.int64()),
        "mz_deleted": pa.array([one.state is None for one in ordered], pa.bool_()),
        "mz_error": pa.array([row[5] for row in data], pa.string()),
    }
    return pa.table(dict(zip(_DATA.names, columns, strict=True)) | rest)


def prior(state: State) -> pa.Table:
    rows = [(*key, *values) for key, values in state.items()]
    schema = pa.schema([*_DATA, ("mz_error", pa.string())])
    return pa.table([pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)], schema=schema)


def sums(updates: pa.Table) -> Counter[Row]:
    """Returns the updates summed; an update that another of the same tick undoes would vanish, so none may be there."""
    found: Counter[Row] = Counter()
    for *data, tick, diff, error in (tuple(row.values()) for row in updates.to_pylist()):
        key = (*data, tick, error)
        assert key not in found, f"two updates of one row at one time: {key}"
        found[key] = diff
    return found


@pytest.mark.parametrize("seed", range(5))
def test_any_split_into_intervals_gives_the_differences_of_the_states(seed: int) -> None:
    rng = random.Random(seed)
    records = histories(rng, 300)
    cuts = [0, *sorted(rng.sample(range(1, 30), rng.randrange(4))), 30]
    state: State = {}
    for lower, upper in pairwise(cuts):
        interval = [record for record in records if lower <= record.place[0] < upper]
        before = prior(state) if lower else None
        assert sums(upserts(table(interval), before, columns=COLUMNS, key=KEY)) == reference(state, interval)


def test_insertions_are_all_records_at_their_ticks() -> None:
    twice = [Record((0, 1, "x"), (5, "a", 0, i), ("a", 1.0, None)) for i in range(2)]
    broken = Record((0, None, None), (6, "a", 0, 0), (None, None, "22P02 bad"))
    found = insertions(table([*twice, broken]), columns=COLUMNS).to_pylist()
    assert [(row["v"], row["mz_timestamp"], row["mz_diff"], row["mz_error"]) for row in found] == [
        ("a", 5, 1, None),
        ("a", 5, 1, None),
        (None, 6, 1, "22P02 bad"),
    ]


def test_keys_are_equal_as_values_are_and_states_as_they_are_shown() -> None:
    """0.0 and -0.0 are one key and two states, all NaN are one of each; what nests and numerics are compared, too."""
    columns = (Column("k", FLOAT8), Column("n", numeric(2)), Column("a", array_of(INT8)), Column("i", INTERVAL))
    interval = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
    span = {"months": 1, "days": 2, "microseconds": 3}
    rows = [
        (0.0, Decimal("1.00"), [1], span, 1),
        (-0.0, Decimal("1.00"), [1], span, 2),
        (-0.0, Decimal("1.00"), [1], span, 3),
        (float("nan"), None, [None], None, 1),
        (float("nan"), None, [None], None, 2),
        (float("nan"), None, [], None, 3),
    ]
    rows.sort(key=lambda row: row[4])
    types = [pa.float64(), pa.decimal128(38, 2), pa.list_(pa.field("element", pa.int64())), interval, pa.int64()]
    names = ["k", "n", "a", "i", "mz_timestamp"]
    given = {name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(names)}
    nothing = {"mz_deleted": pa.array([False] * len(rows)), "mz_error": pa.nulls(len(rows), pa.string())}
    found = upserts(pa.table(given | nothing), None, columns=columns, key=("k",)).to_pylist()
    assert sorted((repr(row["k"]), row["a"], row["mz_timestamp"], row["mz_diff"]) for row in found) == [
        ("-0.0", [1], 2, 1),
        ("0.0", [1], 1, 1),
        ("0.0", [1], 2, -1),
        ("nan", [], 3, 1),
        ("nan", [None], 1, 1),
        ("nan", [None], 3, -1),
    ]
