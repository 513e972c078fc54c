"""Lookups by constants: exactly the rows that pass are found, and no file that may hold one is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats, CollectionRow
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.functions.plain import to_plain
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    Kind,
    ScalarType,
    numeric,
)
from mz_dagster.scalars.types import UUID as UUID_TYPE
from mz_dagster.storage import BatchIncomplete, LocalShards, update_table
from mz_dagster.storage.clustering import Bucket
from mz_dagster.storage.key_hash import key_hash
from mz_dagster.storage.known_files import KnownFiles
from mz_dagster.storage.lookup import Lookup
from mz_dagster.storage.numerics import shortened
from mz_dagster.storage.shards import StoredFile

_COLUMNS = (Column("a", INT2), Column("b", INT8), Column("n", numeric(1)), Column("x", TEXT), Column("t", BOOL))
_POOLS: list[list[Any]] = [
    [None, 0, 1, 2, -(2**15)],
    [None, 0, 1, 2, 2**40],
    [None, Decimal("0.0"), Decimal("1.0"), Decimal("1.5")],
    [None, "", "a", "é"],
    [None, True, False],
]
_CONSTANTS: list[list[Literal]] = [
    [Literal(one, INT4) for one in (0, 1, 2, 40_000, None)],
    [Literal(one, INT8) for one in (0, 1, 2**40, None)],
    [Literal(Decimal(one), numeric(2)) for one in ("0", "1.00", "1.50", "1.55")],
    [Literal(one, TEXT) for one in ("", "a", "b", "é")],
    [Literal(one, BOOL) for one in (True, False, None)],
]
_FUNCTIONS = ("eq_int4", "eq_int8", "eq_numeric", "eq_text", "eq_bool")


def _column(position: int) -> Scalar:
    reference = ColumnRef(position, _COLUMNS[position].type)
    return Call("cast_int2_to_int4", (reference,), INT4) if position == 0 else reference


@st.composite
def _equalities(draw: st.DrawFn) -> Scalar:
    position = draw(st.integers(0, len(_COLUMNS) - 1))
    constant = draw(st.sampled_from(_CONSTANTS[position]))
    sides = (_column(position), constant)
    return Call(_FUNCTIONS[position], sides if draw(st.booleans()) else sides[::-1], BOOL)


_ATOMS = st.one_of(
    _equalities(),
    st.integers(0, 3).map(lambda one: Call("is_null", (ColumnRef(one, _COLUMNS[one].type),), BOOL, False)),
    st.just(ColumnRef(4, BOOL)),
    st.sampled_from([Literal(None, BOOL), Literal(False, BOOL)]),
)
_PREDICATES = st.recursive(
    _ATOMS,
    lambda parts: st.tuples(st.sampled_from(["and", "or"]), st.lists(parts, min_size=1, max_size=4)).map(
        lambda drawn: Call(drawn[0], tuple(drawn[1]), BOOL)
    ),
    max_leaves=8,
)
_ROWS = st.lists(st.tuples(*(st.sampled_from(pool) for pool in _POOLS)), max_size=12)


def _evaluated(predicate: Scalar, row: Sequence[Any]) -> Any:
    """Returns what a predicate is by SQL's logic of three values."""
    match predicate:
        case ColumnRef():
            return row[predicate.position]
        case Literal():
            return predicate.value
        case Call(function="cast_int2_to_int4"):
            return _evaluated(predicate.arguments[0], row)
        case Call(function="is_null"):
            return _evaluated(predicate.arguments[0], row) is None
        case Call(function="and" | "or"):
            found = [_evaluated(one, row) for one in predicate.arguments]
            decides = predicate.function == "or"
            return decides if decides in found else None if None in found else not decides
        case Call():
            left, right = (_evaluated(one, row) for one in predicate.arguments)
            return None if left is None or right is None else left == right
    raise AssertionError(predicate)


@settings(max_examples=260)
@given(st.lists(_PREDICATES, min_size=1, max_size=3), _ROWS)
def test_a_lookup_finds_exactly_the_rows_that_pass(predicates: list[Scalar], rows: list[tuple[Any, ...]]) -> None:
    lookup = Lookup.of(predicates, _COLUMNS)
    assert lookup is not None
    table = update_table(_COLUMNS, [(row, n, 1) for n, row in enumerate(rows)])
    stored = ds.dataset(shortened(table, _COLUMNS))
    found = stored.to_table(filter=lookup.condition).column("mz_timestamp").to_pylist()
    wanted = [n for n, row in enumerate(rows) if all(_evaluated(one, row) is True for one in predicates)]
    assert found == wanted
    for number in wanted:
        for position, values in lookup.values.items():
            assert to_plain(rows[number][position], _COLUMNS[position].type) in values
    for key in ((1,), (0, 3), (0, 1, 2, 3, 4)):
        files = [_file(Bucket(key, 16, number)) for number in range(16)]
        chosen = {one.bucket.number for one in lookup.files(files) if one.bucket is not None}
        types = [_COLUMNS[position].type for position in key]
        for number in wanted:
            cells = [to_plain(rows[number][position], _COLUMNS[position].type) for position in key]
            assert key_hash(cells, types) % 16 in chosen
        if set(key) <= lookup.values.keys():
            assert len(chosen) <= math.prod(len(lookup.values[position]) for position in key)
        else:
            assert len(chosen) == 16


def _file(bucket: Bucket | None, errors: int = 0) -> StoredFile:
    return StoredFile("f", 10, errors, 100, (0, 0), bucket)


def test_files_without_layout_and_with_errors_are_always_read() -> None:
    lookup = Lookup.of([Call("eq_int8", (ColumnRef(1, INT8), Literal(7, INT8)), BOOL)], _COLUMNS)
    assert lookup is not None
    own = key_hash([7], [INT8]) % 4
    files = [_file(Bucket((1,), 4, n)) for n in range(4)]
    others = [_file(None), _file(Bucket((0,), 4, 1)), _file(Bucket((0, 1), 4, 1)), _file(Bucket((1,), 4, own ^ 1), 1)]
    assert lookup.files([*files, *others]) == [files[own], *others]


_SAME: list[tuple[str, ScalarType, list[Any]]] = [
    ("bool", BOOL, [True, False]),
    ("int2", INT2, [1, -2]),
    ("int4", INT4, [1, 2**31 - 1]),
    ("int8", INT8, [1, -(2**63)]),
    ("mz_timestamp", MZ_TIMESTAMP, [1, 2**50]),
    ("text", TEXT, ["a", "a "]),
    ("text", ScalarType(Kind.VARCHAR, length=9), ["a", "A"]),
    ("bpchar", ScalarType(Kind.CHAR, length=3), ["a  ", "b  "]),
    ("uuid", UUID_TYPE, [UUID(int=1), UUID(int=2**127)]),
    ("bytea", BYTEA, [b"", b"\x00\xff"]),
    ("date", DATE, [date(1, 1, 1), date(2024, 2, 29)]),
    ("time", TIME, [time(0), time(23, 59, 59, 999999)]),
    ("timestamp", TIMESTAMP, [datetime(1, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4)]),
    ("timestamptz", TIMESTAMPTZ, [datetime(1, 1, 2, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC)]),
    ("numeric", numeric(3), [Decimal("-0.001"), Decimal(10**35 - 1)]),
]


@pytest.mark.parametrize(("name", "type_", "values"), _SAME, ids=lambda one: str(one))
def test_each_kind_is_found_by_its_values(name: str, type_: ScalarType, values: list[Any]) -> None:
    columns = (Column("k", type_),)
    table = update_table(columns, [((one,), n, 1) for n, one in enumerate([*values, None])])
    stored = ds.dataset(shortened(table, columns))
    for number, value in enumerate(values):
        lookup = Lookup.of([Call(f"eq_{name}", (ColumnRef(0, type_), Literal(value, type_)), BOOL)], columns)
        assert lookup is not None
        found = stored.to_table(filter=lookup.condition).column("mz_timestamp").to_pylist()
        assert found == [number]


def test_more_alternatives_than_can_be_told_are_no_lookup() -> None:
    equal = [Call("eq_int8", (ColumnRef(1, INT8), Literal(n, INT8)), BOOL) for n in range(2000)]
    lookup = Lookup.of([Call("or", tuple(equal), BOOL)], _COLUMNS)
    assert lookup is not None  # those of one column are one
    assert len(lookup.files([_file(Bucket((1,), 4, n)) for n in range(4)])) == 4
    pairs = [Call("and", (one, Call("is_null", (ColumnRef(0, INT2),), BOOL)), BOOL) for one in equal]
    assert Lookup.of([Call("or", tuple(pairs[:64]), BOOL)], _COLUMNS) is not None
    assert Lookup.of([Call("or", tuple(pairs[:65]), BOOL)], _COLUMNS) is None


@pytest.mark.parametrize(
    "predicate",
    [
        Call("eq_float8", (ColumnRef(0, FLOAT8), Literal(0.0, FLOAT8)), BOOL),
        Call("eq_interval", (ColumnRef(0, INTERVAL), Literal(None, INTERVAL)), BOOL),
        Call("eq_jsonb", (ColumnRef(0, JSONB), Literal("1", JSONB)), BOOL),
        Call("is_null", (ColumnRef(0, FLOAT8),), BOOL),
        Call("lt_int4", (ColumnRef(0, INT4), Literal(1, INT4)), BOOL),
        Call("eq_int4", (ColumnRef(0, INT4), ColumnRef(0, INT4)), BOOL),
        Call("eq_int4", (Call("add_int4", (ColumnRef(0, INT4), Literal(1, INT4)), INT4), Literal(1, INT4)), BOOL),
        Call("not", (ColumnRef(0, BOOL),), BOOL),
        Literal(True, BOOL),
    ],
    ids=lambda one: getattr(one, "function", "true"),
)
def test_what_is_no_equality_of_provable_kinds_is_no_lookup(predicate: Scalar) -> None:
    (type_,) = {one.type for one in getattr(predicate, "arguments", ()) if isinstance(one, ColumnRef)} or {INT4}
    columns = (Column("k", type_),)
    equality = Call("is_null", (ColumnRef(1, INT4),), BOOL)
    assert Lookup.of([predicate], columns) is None
    for function in ("and", "or"):
        assert Lookup.of([Call(function, (equality, predicate), BOOL)], (*columns, Column("i", INT4))) is None


# ---- which files a batch has


_LOWER, _UPPER = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 9)


def _collection() -> CollectionRow:
    return CollectionRow(GlobalId("u1"), "t", _LOWER, _UPPER, _COLUMNS[:2], frozenset(), "shards/u1", None)


def _batch(id: int, stats: BatchStats) -> Batch:
    return Batch(BatchId(id), GlobalId("u1"), _LOWER, _UPPER, BatchState.LIVE, stats)


def test_a_batch_swept_after_its_files_were_known_is_incomplete_and_forgotten(tmp_path: Path) -> None:
    shards, others, collection = LocalShards(tmp_path), LocalShards(tmp_path), _collection()
    batches = []
    for id in (1, 2):
        frame = update_table(collection.columns, [((id, n), 0, 1) for n in range(3)])
        stats = shards.append(collection, BatchId(id), frame)
        batches.append(_batch(id, replace(stats, file_list=None)))  # of a version that did not list them

    def read(*wanted: Batch) -> pa.Table:
        return shards.read_files(collection, wanted, shards.files(collection, wanted))

    assert read(*batches).num_rows == 6
    assert read(*batches).num_rows == 6
    others.delete(collection, [BatchId(1)])
    assert read(batches[1]).num_rows == 3
    with pytest.raises(BatchIncomplete, match='batch 1 of "u1"'):
        read(*batches)
    # What is forgotten is asked of the log again, which has no such batch.
    with pytest.raises(BatchIncomplete, match='batch 1 of "u1"'):
        shards.files(collection, batches)
    assert read(batches[1]).num_rows == 3


def test_no_more_files_are_remembered_than_may_be_and_the_last_ones_stay() -> None:
    known = KnownFiles(most=4)
    asked: list[int] = []

    def files(*ids: int, bounds: tuple[str, ...] = ()) -> list[int]:
        def ask(missing: Sequence[Batch]) -> list[tuple[StoredFile, ...]]:
            asked.extend(int(one.id) for one in missing)
            return [(_file(None), _file(None, int(one.id))) for one in missing]

        batches = [_batch(id, BatchStats(20, 0, 2, 200)) for id in ids]
        found = known.of("shards/u1", batches, bounds, ask)
        return [one.errors for batch in batches for one in found[batch.id]]

    assert files(1, 2) == [0, 1, 0, 2]
    assert files(2, 1) == [0, 2, 0, 1]
    assert asked == [1, 2]
    assert files(3) == [0, 3]  # 2 goes
    assert files(1, 3) == [0, 1, 0, 3]
    assert asked == [1, 2, 3]
    assert files(2, 3) == [0, 2, 0, 3]  # 1 goes
    assert asked == [1, 2, 3, 2]
    assert files(3, bounds=("a",)) == [0, 3]
    assert asked == [1, 2, 3, 2, 3]
