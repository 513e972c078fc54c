"""Reads JSON lines in this process: by the rules of `source.json_lines`, a line by `json_record` as there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.source import json_record
from mz_dagster.storage.source.faults import BAD_BYTES
from mz_dagster.storage.source.local.cells import PORTION_ROWS, Cells, text_lines, texts


def cells_of_json(content: bytes, columns: Sequence[Column], key: Sequence[str] | None) -> Iterator[Cells]:
    """Yields the cells of lines that are rows, or with `key`, a key with its value."""
    keep_json = [column.type.kind is Kind.JSONB for column in columns]
    read = json_record.reader([column.name for column in columns], keep_json, key)
    portion = _Portion(len(columns))
    for number, line in text_lines(content):
        if line is None:
            portion.add(number, (BAD_BYTES, None, True, False, None, None))
        elif line.strip(" \t\r"):
            portion.add(number, read(line))
        if len(portion.numbers) == PORTION_ROWS:
            yield portion.cells()
            portion = _Portion(len(columns))
    if portion.numbers:
        yield portion.cells()


class _Portion:
    """Gathers what lines say."""

    def __init__(self, width: int) -> None:
        self.numbers: list[int] = []
        self._rows: list[Sequence[str | None]] = []
        self._nothing = (None,) * width
        self._malformed: dict[int, str] = {}
        self._value_malformed: dict[int, str] = {}
        self._null_keys: set[int] = set()
        self._deleted: set[int] = set()
        self._faults: list[dict[int, str]] = [{} for _ in range(width)]

    def add(self, number: int, record: json_record.JsonRecord) -> None:
        malformed, value_malformed, is_null_key, is_deleted, cells, faults = record
        row = len(self.numbers)
        self.numbers.append(number)
        self._rows.append(self._nothing if cells is None else cells)
        if cells is not None and not (value_malformed or is_null_key or is_deleted or faults):
            return
        if malformed is not None:
            self._malformed[row] = malformed
        if value_malformed is not None:
            self._value_malformed[row] = value_malformed
        if is_null_key:
            self._null_keys.add(row)
        if is_deleted:
            self._deleted.add(row)
        if faults is not None:
            for of_column, fault in zip(self._faults, faults, strict=True):
                if fault is not None:
                    of_column[row] = fault

    def cells(self) -> Cells:
        return Cells(
            numbers=self.numbers,
            columns=texts(list(zip(*self._rows, strict=True))),
            malformed=self._malformed,
            value_malformed=self._value_malformed,
            null_keys=self._null_keys,
            deleted=self._deleted,
            faults=self._faults,
        )
