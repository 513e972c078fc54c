"""Reads JSON lines in this process, by the rules of `source.json_lines`.

Many are read at once (`json_columns`); what is to be read by itself, a line by `json_record` as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source import json_record
from mz_dagster.storage.source.faults import BAD_BYTES
from mz_dagster.storage.source.local.cells import Cells, line_portions, positions, text_lines, texts
from mz_dagster.storage.source.local.json_columns import columns_of_json

#: What JSON may have around it.
_BLANKS = " \t\r"


def cells_of_json(
    pieces: Iterable[bytes], columns: Sequence[Column], key: Sequence[str] | None, *, debezium: bool = False
) -> Iterator[Cells]:
    """Yields the cells of lines that are rows; with `key`, a key with its value, or a change that Debezium writes."""
    forms = [json_record.form_of(column.type) for column in columns]
    read = json_record.reader([column.name for column in columns], forms, key, debezium=debezium)
    lines = ((number, line) for number, line in text_lines(pieces) if line is None or line.strip(_BLANKS))
    for portion in line_portions(lines):
        yield _cells(portion, columns, key, read, by_columns=not debezium)


def _cells(
    portion: Sequence[tuple[int, str | None]],
    columns: Sequence[Column],
    key: Sequence[str] | None,
    read: json_record.Reader,
    *,
    by_columns: bool,
) -> Cells:
    """Returns the cells of lines, read by columns as far as that is exact."""
    texts_only = [line.strip(_BLANKS) for _, line in portion if line is not None]
    at_once = columns_of_json(texts_only, columns, key) if by_columns and len(texts_only) == len(portion) else None
    found = _Portion(len(columns))
    for number, line in portion if at_once is None else compress(portion, at_once[1].to_pylist()):
        found.add(number, (BAD_BYTES, None, True, False, None, None, None) if line is None else read(line))
    if at_once is None:
        return found.cells()
    cells, apart = at_once
    return found.cells_among(cells, apart, [number for number, _ in portion])


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
        self._places: dict[int, str] = {}

    def add(self, number: int, record: json_record.JsonRecord) -> None:
        malformed, value_malformed, is_null_key, is_deleted, cells, faults, place = record
        if malformed == json_record.NO_RECORD:
            return
        row = len(self.numbers)
        self.numbers.append(number)
        self._rows.append(self._nothing if cells is None else cells)
        if place is not None:
            self._places[row] = place
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

    def cells_among(self, cells: Sequence[pa.Array], apart: pa.Array, numbers: Sequence[int]) -> Cells:
        """Returns the cells of lines of which these are only some.

        Args:
            cells: Of all lines, for each column.
            apart: Which lines these are.
            numbers: Of all lines.
        """
        own = self.cells()
        rows = positions(apart)
        return Cells(
            numbers=numbers,
            columns=[
                pc.replace_with_mask(one.cast(pa.string()), apart, other)
                for one, other in zip(cells, own.columns, strict=True)
            ]
            if rows
            else cells,
            malformed={rows[row]: why for row, why in own.malformed.items()},
            value_malformed={rows[row]: why for row, why in own.value_malformed.items()},
            null_keys={rows[row] for row in own.null_keys},
            deleted={rows[row] for row in own.deleted},
            faults=[{rows[row]: why for row, why in one.items()} for one in own.faults],
        )

    def cells(self) -> Cells:
        return Cells(
            numbers=self.numbers,
            columns=texts(list(zip(*self._rows, strict=True)) or [()] * len(self._nothing)),
            malformed=self._malformed,
            value_malformed=self._value_malformed,
            null_keys=self._null_keys,
            deleted=self._deleted,
            faults=self._faults,
            places=self._places,
        )
