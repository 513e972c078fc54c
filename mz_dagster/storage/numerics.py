"""How numerics are stored: as integers of 64 bits, but for those that are longer.

A numeric has 38 digits, for which Parquet takes 16 bytes, and of a scan of lineitem more than half of the time went to
decoding them. Hardly a value is that long. So a column `x` of a scale of up to 18 is stored as two, of which one has
the value, and neither if it is NULL:

    mz_short_x    decimal(18, s), which Parquet keeps as an integer: if the value has no more than 18 digits
    x             decimal(38, s): if it has more

Above the shards nobody sees that: their frames have `x`. Files from before have `x` alone, and are read as they are;
their tables get the other column with the next append.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.object_cache import cached_by_object
from mz_dagster.scalars.types import Column, Kind

#: The most digits of a decimal that Parquet keeps in 64 bits.
SHORT_DIGITS = 18


@cached_by_object(most=20_000)
def short_names(columns: Sequence[Column]) -> Mapping[str, str]:
    """Returns the names of the columns for short values, by those of the columns of a collection that have one.

    Example:
        >>> from mz_dagster.scalars.types import INT4, numeric
        >>> short_names([Column("a", INT4), Column("b", numeric(2)), Column("c", numeric(20))])
        {'b': 'mz_short_b'}
    """
    taken = {column.name.lower() for column in columns}
    found = {}
    for column in columns:
        if column.type.kind is Kind.NUMERIC and column.type.scale <= SHORT_DIGITS:
            name = f"mz_short_{column.name}"
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            found[column.name] = name
    return found


def short_fields(columns: Sequence[Column]) -> list[pa.Field]:
    """Returns the Arrow fields of a collection's columns for short values."""
    scales = {column.name: column.type.scale for column in columns}
    return [pa.field(short, pa.decimal128(SHORT_DIGITS, scales[name])) for name, short in short_names(columns).items()]


def shortened(frame: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Returns a frame as it is stored: with the columns for short values, which follow all others.

    Args:
        frame: Has all columns of the collection, among others.
        columns: Of the collection.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> wide = pa.decimal128(38, 0)
        >>> frame = pa.table({"n": pa.array([Decimal(5), Decimal(10**18), None], wide)})
        >>> shortened(frame, [Column("n", numeric(0))]).to_pydict()
        {'n': [None, Decimal('1000000000000000000'), None], 'mz_short_n': [Decimal('5'), None, None]}
    """
    for name, short in short_names(columns).items():
        position = frame.schema.get_field_index(name)
        values, type_ = frame.column(position), frame.schema.field(position).type
        if all(map(_are_short, values.chunks)):
            short_values, longs = values, pa.chunked_array([pa.nulls(len(values), type_)])
        else:
            end = pa.scalar(Decimal(10 ** (SHORT_DIGITS - type_.scale)), type_)
            fits = pc.and_(pc.less(values, end), pc.greater(values, pc.negate(end)))
            nothing = pa.scalar(None, type_)
            short_values, longs = pc.if_else(fits, values, nothing), pc.if_else(fits, nothing, values)
        frame = frame.set_column(position, name, longs)
        frame = frame.append_column(short, of_precision(short_values, SHORT_DIGITS))
    return frame


def halves(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the lower and the upper 64 bits of decimals of 128, those of NULLs being any."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    return found[:, 0], found[:, 1]


def of_precision(values: pa.ChunkedArray, precision: int) -> pa.ChunkedArray:
    """Returns decimals of 128 bits as those of a precision that all of them fit, at their scale, in the same memory.

    Example:
        >>> short = pa.chunked_array([[Decimal("1.25"), None]], pa.decimal128(3, 2))
        >>> of_precision(short.slice(1), 38).type, of_precision(short, 38).to_pylist()
        (Decimal128Type(decimal128(38, 2)), [Decimal('1.25'), None])
    """
    type_ = pa.decimal128(precision, values.type.scale)
    chunks = [
        pa.Array.from_buffers(type_, len(one), one.buffers(), one.null_count, one.offset) for one in values.chunks
    ]
    return pa.chunked_array(chunks, type_)


def _are_short(values: pa.Array) -> bool:
    """Returns whether no decimal has more than `SHORT_DIGITS` digits; it may say no where what NULLs hide has."""
    low, high = halves(values)
    if not len(low):
        return True
    ends = -(10**SHORT_DIGITS), 10**SHORT_DIGITS
    return bool(ends[0] < low.min() and low.max() < ends[1] and np.array_equal(high, low >> 63))


def stored_names(names: Iterable[str], columns: Sequence[Column]) -> list[str]:
    """Returns the names of the columns to read for some of a frame's: theirs, and those for short values."""
    names, shorts = list(names), short_names(columns)
    return [*names, *(shorts[name] for name in names if name in shorts)]


def whole(frame: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Returns a frame without its columns for short values, whose values are where they belong.

    Args:
        frame: As it is stored; columns may be missing.
        columns: Of the collection.
    """
    present = set(frame.column_names)
    shorts = {name: short for name, short in short_names(columns).items() if name in present and short in present}
    if not shorts:
        return frame
    found = {field.name: (field, values) for field, values in zip(frame.schema, frame.columns, strict=True)}
    for name, short in shorts.items():
        field, longs = found[name]
        values = of_precision(found[short][1], field.type.precision)
        found[name] = field, values if longs.null_count == len(longs) else pc.coalesce(values, longs)
        del found[short]
    fields, arrays = zip(*found.values(), strict=True)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def stored_value(column: Column, columns: Sequence[Column]) -> pc.Expression:
    """Returns the value of a column of a collection, over the columns as they are stored."""
    short = short_names(columns).get(column.name)
    if short is None:
        return pc.field(column.name)
    return pc.coalesce(pc.field(short).cast(pa.decimal128(38, column.type.scale)), pc.field(column.name))
