"""Reads Parquet rows in this process; the rules are those of `source.parquet_rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.source.faults import BAD_BYTES, MOMENTS, out_of_range
from mz_dagster.storage.source.local.cells import PORTION_ROWS, Cells, positions, without
from mz_dagster.storage.source.parquet_schema import named_if_damaged, possible_type

_RANGES = INTEGER_RANGES | {Kind.MZ_TIMESTAMP: (0, INTEGER_RANGES[Kind.INT8][1])}
#: The first day of the year 1 and the last one of 9999, since 1970.
_DAYS = (-719_162, 2_932_896)
_UNITS_IN_DAY = {"ms": 86_400_000, "us": 86_400_000_000}
_EXACT = Context(prec=200)


def cells_of_parquet(content: bytes | Path, path: str, columns: Sequence[Column]) -> Iterator[Cells]:
    """Yields the cells of a file, whose schema is known to fit the columns.

    Args:
        content: What it holds, or the folder that it is in: then it is read portion by portion.
        path: What it is called, in that folder.
        columns: The declared columns.

    Raises:
        SourceUnreadable: A page is damaged.
    """
    first = 1
    source = str(content / path) if isinstance(content, Path) else pa.BufferReader(content)
    with (
        named_if_damaged(path),
        pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False) as file,  # else all is kept
    ):
        there = [column.name for column in columns if column.name in file.schema_arrow.names]
        for batch in file.iter_batches(PORTION_ROWS, columns=there):
            found = [_values(batch, column) for column in columns]
            nulls = positions(reduce(pc.and_, (one.is_null() for one in found)))
            faults = [dict.fromkeys(untextual(values), BAD_BYTES) for values in found]
            yield Cells(
                numbers=range(first, first + batch.num_rows),
                columns=[without(values, of_column) for values, of_column in zip(found, faults, strict=True)],
                null_keys=nulls,
                deleted=nulls,
                faults=faults,
            )
            first += batch.num_rows


def _values(batch: pa.RecordBatch, column: Column) -> pa.Array:
    if column.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, possible_type(column))
    return plain_values(batch.column(column.name))


def converted(values: pa.Array, type_: ScalarType) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns values of an accepted physical type as ones of `type_`.

    Returns:
        The values, NULL for NULL and for what is out of range, and what is wrong with that, by position.
    """
    stored, kind = arrow_type(type_), type_.kind
    if (element := type_.array_element) is not None and element.kind in MOMENTS:
        rows = _rows_holding(values, lambda leaf: positions(pc.and_(leaf.is_valid(), _moments(leaf).is_null())))
        if rows:
            found, faults = converted(without(values, rows), type_)
            return found, {**faults, **dict.fromkeys(rows, out_of_range(element))}
    if kind in MOMENTS:
        found = _moments(values).cast(values.type).cast(stored)
    elif kind in _RANGES:
        found = _within(values.cast(pa.int64()), *_RANGES[kind]).cast(stored)
    elif kind is Kind.NUMERIC:
        found = _numerics(values, stored)
    elif kind is Kind.DIMENSIONED:
        found = _dimensioned(values, stored)
    else:
        return values.cast(stored), {}
    lost = positions(pc.and_(values.is_valid(), found.is_null()))
    return found, dict.fromkeys(lost, out_of_range(type_))


def plain_values(values: pa.Array) -> pa.Array:
    """Returns values in the one form that Arrow has of their type."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return plain_values(values.cast(type_.value_type))
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return values.cast(pa.string())
    if pa.types.is_large_binary(type_):
        return values.cast(pa.binary())
    if pa.types.is_large_list(type_) or pa.types.is_list(type_):
        values = values.cast(pa.list_(type_.value_type))
        return pa.ListArray.from_arrays(values.offsets, plain_values(values.values), mask=values.is_null())
    return values


def untextual(values: pa.Array) -> list[int]:
    """Returns the positions of strings that are no text: a writer need not check them, and Arrow's reader does not."""
    return _rows_holding(values, _untextual)


def _rows_holding(values: pa.Array, found: Callable[[pa.Array], list[int]]) -> list[int]:
    """Returns the positions of what is found, or of lists that hold it in whatever depth."""
    if not pa.types.is_list(values.type):
        return found(values)
    within = frozenset(_rows_holding(values.values, found))
    if not within:
        return []
    bounds = values.offsets.to_pylist()
    return [row for row in range(len(values)) if not within.isdisjoint(range(bounds[row], bounds[row + 1]))]


def _untextual(values: pa.Array) -> list[int]:
    if not pa.types.is_string(values.type):
        return []
    try:
        values.validate(full=True)
        if not pc.any(pc.match_substring(values, "\0")).as_py():
            return []
    except pa.ArrowInvalid:
        pass
    return [row for row, one in enumerate(values.cast(pa.binary()).to_pylist()) if not _is_text(one)]


def _is_text(value: bytes | None) -> bool:
    if value is None:
        return True
    try:
        return "\0" not in value.decode()
    except UnicodeDecodeError:
        return False


def _moments(values: pa.Array) -> pa.Array:
    """Returns the numbers that dates or timestamps are, NULL for those beyond the years that SQL has."""
    is_date = pa.types.is_date(values.type)
    units = 1 if is_date else _UNITS_IN_DAY[values.type.unit]
    numbers = values.cast(pa.int32() if is_date else pa.int64())
    return _within(numbers, _DAYS[0] * units, (_DAYS[1] + 1) * units - 1)


def _within(numbers: pa.Array, least: int, greatest: int) -> pa.Array:
    """Returns numbers, NULL for those out of a range."""
    is_in = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, greatest))
    return pc.if_else(is_in, numbers, pa.scalar(None, numbers.type))


def _dimensioned(values: pa.Array, stored: pa.StructType) -> pa.Array:
    """Returns lists in lists as arrays of so many dimensions, NULL where lists beside each other differ in length."""
    leaf, levels = values, []
    while pa.types.is_list(leaf.type):
        levels.append(leaf)
        leaf = leaf.values
    numbers = pa.array(range(len(leaf)), pa.int64())
    for level in reversed(levels):
        numbers = pa.ListArray.from_arrays(level.offsets, numbers, mask=level.is_null())
    shapes = [None if row is None else _shape(row, len(levels)) for row in numbers.to_pylist()]
    elements = [number for shape in shapes if shape is not None for number in shape[0]]
    ends = np.cumsum([0, *(0 if shape is None else len(shape[0]) for shape in shapes)])
    missing = pa.array([shape is None for shape in shapes], pa.bool_())
    listed, lengths, lowers = (one.type for one in stored)
    cells = leaf.take(pa.array(elements, pa.int64())).cast(listed.value_type)
    parts = [
        pa.ListArray.from_arrays(pa.array(ends, pa.int32()), cells, type=listed, mask=missing),
        pa.array([None if shape is None else shape[1] for shape in shapes], lengths),
        pa.array([None if shape is None else [1] * len(shape[1]) for shape in shapes], lowers),
    ]
    return pa.StructArray.from_arrays(parts, fields=list(stored), mask=missing)


def _shape(row: list[Any], depth: int) -> tuple[list[int], list[int]] | None:
    """Returns the members of lists in lists, row by row, and the lists' lengths; None if those differ.

    Example:
        >>> _shape([[1, 2], [3, 4]], 2), _shape([[], []], 2), _shape([[1], [2, 3]], 2), _shape([[1], None], 2)
        (([1, 2, 3, 4], [2, 2]), ([], []), None, None)
    """
    lengths = [len(row)]
    for _ in range(depth - 1):
        if None in row or len(set(map(len, row))) > 1:
            return None
        lengths.append(len(row[0]) if row else 0)
        row = [member for one in row for member in one]
    return row, lengths if row else []


def _numerics(values: pa.Array, stored: pa.Decimal128Type) -> pa.Array:
    """Returns integers or decimals rounded half away from zero to a scale, NULL for what has too many digits."""
    place, end = Decimal(1).scaleb(-stored.scale), Decimal(10) ** (38 - stored.scale)
    try:
        found = values.cast(stored)
        bounds = pc.min_max(found).as_py().values()  # a damaged file may hold more digits than its type has
        if all(one is None or one.copy_abs() < end for one in bounds):
            return found
    except pa.ArrowInvalid:  # one has too many digits, before the point or behind it
        pass
    encoded = values.dictionary_encode()
    rounded = [Decimal(one).quantize(place, ROUND_HALF_UP, _EXACT) for one in encoded.dictionary.to_pylist()]
    return pa.array([one if one.copy_abs() < end else None for one in rounded], stored).take(encoded.indices)
