"""Rows in columns are sent byte by byte as they are row by row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from mz_dagster.adapter.result import user_rows
from mz_dagster.compute import StoredRows
from mz_dagster.functions import Failure, literal_of
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNCONSTRAINED,
    UUID,
    Column,
    Enumeration,
    Kind,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.wire import row_columns
from mz_dagster.wire.answers import cell_encoder, data_rows
from mz_dagster.wire.row_columns import row_messages

NUMBERS = ["0", "1", "-1", "0.5", "-0.05", "10000", "9999.99", "123456789012.345678", "100000000", "-99990000.0001"]
MOMENTS = ["2024-02-29 10:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.5"]
CELLS: dict[ScalarType, list[str]] = {
    BOOL: ["t", "f"],
    INT2: ["0", "-32768", "32767"],
    INT4: ["0", "-2147483648", "2147483647"],
    INT8: ["0", "-9223372036854775808", "9223372036854775807"],
    numeric(0): ["0", "-7", "10000", "12340000", "99999999999999999999999999999999999999"],
    numeric(2): [*NUMBERS, "92233720368547758.07", "-92233720368547758.08", "99999999999999999999"],
    numeric(4): [*NUMBERS, "0.0001"],
    numeric(6): NUMBERS,
    numeric(9): [*NUMBERS, "0.000000001", "-0.000000000"],
    numeric(16): ["0", "0.0000000000000001", "-922.3372036854775807", "5"],
    numeric(20): [*NUMBERS, "0.00000000000000000001"],
    UNCONSTRAINED: [*NUMBERS, "NaN", "1e-10", "1.500"],
    FLOAT4: ["1.5", "-0", "0", "1e10", "1e20", "Infinity", "NaN", "271.54688"],
    FLOAT8: ["0.1", "-1e-300", "-0", "0", "NaN", "-Infinity", "1e15", "123456789"],
    TEXT: ["", "é", "a\tb\\", "x" * 300],
    ScalarType(Kind.VARCHAR, length=3): ["", "é"],
    ScalarType(Kind.CHAR, length=3): ["", "é", "abc"],
    ScalarType(Kind.ENUM, enumeration=Enumeration.of("mood", ["sad", "very happy"])): ["sad", "very happy"],
    JSON: ['{"a": 1}', " 1 "],
    JSONB: ['{"a": [1, null]}', "1.50"],
    UUID: ["12345678-1234-1234-1234-123456789abc", "00000000-0000-0000-0000-000000000000"],
    BYTEA: ["\\x00ff", ""],
    DATE: [one[:10] for one in MOMENTS],
    TIMESTAMP: MOMENTS,
    TIMESTAMPTZ: [f"{one}+00" for one in (MOMENTS[0], MOMENTS[3], "2024-07-01 01:02:03.000001")],
    TIME: ["10:00:00", "23:59:59.999999"],
    TIMETZ: ["10:00:00+02", "23:59:59.9-03:30"],
    INTERVAL: ["1 mon -2 days", "00:00:01.5"],
    array_of(INT4): ["{1,2,NULL}", "{}"],
    array_of(UNCONSTRAINED): ["{1.50,NULL}"],
}
INFINITE = {DATE: "infinity", TIMESTAMP: "-infinity", TIMESTAMPTZ: "infinity"}


def stored(cells: Sequence[str | None], type_: ScalarType) -> pa.Array:
    found = [None if one is None else literal_of(one, type_) for one in cells]
    assert not any(isinstance(one, Failure) for one in found)
    values = [None if one is None or isinstance(one, Failure) else to_stored(one.value, type_) for one in found]
    return pa.array(values, arrow_type(type_))


def check(rows: StoredRows, formats: Sequence[int], zone: ZoneInfo) -> None:
    encoders = [cell_encoder(one.type, form == 1, zone) for one, form in zip(rows.columns, formats, strict=True)]
    expected = list(data_rows(user_rows(rows, rows.columns), encoders))
    assert b"".join(row_messages(rows, rows.columns, formats, zone)) == b"".join(expected)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("binary", [0, 1])
def test_cells_of_each_type_are_sent_as_they_are_alone(binary: int, zone: str) -> None:
    for type_, spelled in CELLS.items():
        several: list[list[str | None]] = [[*spelled, None], [*spelled, INFINITE.get(type_)], [None, None], []]
        several += [[one] for one in spelled]
        for cells in several:
            rows = StoredRows.of([stored(cells, type_)], [Column("a", type_)])
            check(rows, [binary], ZoneInfo(zone))


def test_what_has_a_kernel_is_not_written_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_columns, "_one_by_one", None)
    monkeypatch.setattr(row_columns, "data_rows", None)
    for type_ in (BOOL, INT4, INT8, numeric(2), TEXT, UUID, DATE, TIMESTAMP, TIMESTAMPTZ, JSON):
        rows = StoredRows.of([stored([*CELLS[type_][:2], None], type_)], [Column("a", type_)])
        for binary in (0, 1):
            check(rows, [binary], ZoneInfo("UTC"))


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_sent_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    monkeypatch.setattr(row_columns, "_MOST_ROWS", chosen.choice([1, 7, 1_000]))
    monkeypatch.setattr(row_columns, "_PIECE", chosen.choice([100, row_columns._PIECE]))
    columns = [Column(f"c{i}", one) for i, one in enumerate(chosen.choices(list(CELLS), k=chosen.randrange(7)))]
    count = chosen.choice([0, 1, 40])
    spelled = [[chosen.choice([None, *CELLS[one.type]]) for _ in range(count)] for one in columns]
    rows = StoredRows.of([stored(cells, one.type) for cells, one in zip(spelled, columns, strict=True)], columns)
    check(rows, [chosen.randrange(2) for _ in columns], ZoneInfo("UTC"))
    if count and columns:
        part = StoredRows(rows.table.slice(1, count // 2), rows.columns)
        check(part, [chosen.randrange(2) for _ in columns], ZoneInfo("Asia/Kolkata"))
