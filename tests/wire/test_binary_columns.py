"""COPY in binary is read column by column as cell by cell: the same values, or left to that where one is wrong."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mz_dagster.errors import Error
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
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.sql import ClientFormat
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.wire import copying

BINARY = ClientFormat(kind="binary")
CELLS: dict[ScalarType, list[str]] = {
    INT2: ["0", "-32768", "32767"],
    INT4: ["0", "-2147483648", "2147483647"],
    INT8: ["9223372036854775807", "-5"],
    numeric(2): ["1.50", "-0.07", "99999999999999999999"],
    FLOAT4: ["1.5", "-0", "1e10", "Infinity", "NaN", "271.54688"],
    FLOAT8: ["0.1", "-1e-300", "-0", "NaN", "1e308"],
    BOOL: ["t", "f"],
    DATE: ["2024-02-29", "0001-01-01", "9999-12-31", "1999-12-31"],
    TIMESTAMP: ["2024-01-01 10:00:00.123456", "0001-01-01", "9999-12-31 23:59:59.999999"],
    TIMESTAMPTZ: ["2024-01-01 10:00:00+02", "1969-12-31 23:59:59.5Z"],
    TEXT: ["", "é", "a\tb\\", "\\N"],
    UUID: ["12345678-1234-1234-1234-123456789abc"],
    BYTEA: ["\\x00ff", ""],
    JSONB: ['{"a": [1, null]}', "1.50"],
    array_of(INT4): ["{1,2,NULL}", "{}"],
}
INFINITE = {DATE: "infinity", TIMESTAMP: "-infinity", TIMESTAMPTZ: "infinity"}


def sent(rows: Sequence[Sequence[str | None]], columns: Sequence[Column]) -> bytes:
    encoder = copying.Encoder(BINARY, columns, ZoneInfo("UTC"))
    values: list[list[Any]] = []
    for row in rows:
        found = [
            None if one is None else literal_of(one, column.type) for one, column in zip(row, columns, strict=True)
        ]
        assert not any(isinstance(one, Failure) for one in found)
        values.append([None if one is None or isinstance(one, Failure) else one.value for one in found])
    return b"".join([*map(encoder.row, values), encoder.end()])


def read(data: bytes, columns: Sequence[Column]) -> list[str] | str:
    try:
        found = [moments_as_numbers(one) for one in copying.received(data, BINARY, columns)]
        return [f"{one.type} {one.to_pylist()!r}" for one in found]
    except Error as error:
        return f"{error.sqlstate} {error.message} {error.detail}"


@pytest.mark.parametrize("seed", range(30))
def test_columns_are_what_their_cells_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    columns = [Column(f"c{i}", one) for i, one in enumerate(chosen.sample(list(CELLS), chosen.randrange(1, 6)))]
    rows = [
        [None if chosen.random() < 0.2 else chosen.choice(CELLS[one.type]) for one in columns]
        for _ in range(chosen.choice([0, 1, 30]))
    ]
    data = sent(rows, columns)
    asked: list[bytes] = []
    monkeypatch.setattr(copying, "_binary_records", lambda data, _: asked.append(data))
    found = read(data, columns)
    assert not asked
    monkeypatch.undo()
    monkeypatch.setattr(copying, "binary_columns", lambda *_: None)
    assert found == read(data, columns)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_wrong_is_told_as_cell_by_cell(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    columns = [Column(f"c{i}", one) for i, one in enumerate(chosen.sample(list(CELLS), 3))]
    rows = [[chosen.choice(CELLS[one.type]) for one in columns] for _ in range(5)]
    if seed % 2:
        rows[3] = [INFINITE.get(one.type, CELLS[one.type][0]) for one in columns]
    data = bytearray(sent(rows, columns))
    for _ in range(chosen.choice([0, 1, 3])):
        data[chosen.randrange(19, len(data))] = chosen.choice([0, 1, 255, chosen.randrange(256)])
    if chosen.random() < 0.3:
        del data[-chosen.randrange(1, 30) :]
    found = read(bytes(data), columns)
    monkeypatch.setattr(copying, "binary_columns", lambda *_: None)
    assert found == read(bytes(data), columns)


def test_cells_of_other_sizes_are_told() -> None:
    head = copying._HEAD
    rows = struct.pack("!hi3shi5s", 1, 3, b"abc", 1, 5, b"abcde") + struct.pack("!h", -1)
    assert "incorrect binary data format" in read(head + rows, [Column("a", INT4)])
