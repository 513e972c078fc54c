"""Columns of a collection as those of a Delta table: the types of `published`, but for what Delta has none for.

A time of day is the text that PostgreSQL shows; everything else is as `published` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from mz_dagster.errors import NotSupportedError
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.scalars.types import TIME, Column, Kind, ScalarType
from mz_dagster.storage.published import published, published_type

#: What column names may not have, unless a table maps them.
_UNNAMABLE = re.compile(r"[ ,;{}()\n\t=]")
#: By what tables are partitioned: what the log, which has texts, and readers understand alike.
_PARTITIONING = {
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.DATE, Kind.TEXT, Kind.VARCHAR, Kind.UUID, Kind.ENUM,
}  # fmt: skip
#: What tells changes of rows, of a sink that writes these.
TIMES = (pa.field("mz_timestamp", pa.int64()), pa.field("mz_diff", pa.int64()))


def check_columns(columns: Sequence[Column], *, keeps_times: bool) -> None:
    """Raises if a Delta table cannot have these columns.

    Raises:
        NotSupportedError: Two have the same name, one has a name that Delta does not allow, or times of day are nested.
    """
    taken = {one.name for one in TIMES} if keeps_times else set()
    seen: set[str] = set(taken)
    for column in columns:
        if _UNNAMABLE.search(column.name) or not column.name:
            raise NotSupportedError(
                f'a Delta table has no column "{column.name}"',
                detail='Names have no blanks, and none of the characters ",;{}()=".',
                hint="Give it another name in a view.",
            )
        if column.name.lower() in seen:
            raise NotSupportedError(
                f'a Delta table has no second column "{column.name}"',
                detail="Names that differ in case only are the same there.",
                hint="Give it another name in a view.",
            )
        if column.type.holds(frozenset({Kind.TIME})):
            raise NotSupportedError(
                f"a Delta table has no column of type {column.type}",
                hint="Make texts of the times of day in a view.",
            )
        seen.add(column.name.lower())


def check_partition(partition: Sequence[str], columns: Sequence[Column], *, are_nested: bool) -> None:
    """Raises if a Delta table cannot be partitioned by some of its columns.

    Args:
        partition: Their names.
        columns: All that there are.
        are_nested: Whether they are within others there.

    Raises:
        NotSupportedError: One is of a type whose values are not told apart there, or the table has no other column.
    """
    if are_nested or set(partition) >= {one.name for one in columns} or len(set(partition)) < len(partition):
        raise NotSupportedError(
            "a Delta table is not partitioned by " + ("what events hold" if are_nested else "all of its columns"),
            hint="Leave PARTITION COLUMNS away, or name fewer.",
        )
    for column in columns:
        if column.name in partition and column.type.kind not in _PARTITIONING:
            raise NotSupportedError(
                f'a Delta table is not partitioned by column "{column.name}" of type {column.type}',
                hint="Partition it by texts, integers, dates or booleans, which a view may make of it.",
            )


def delta_schema(columns: Sequence[Column], *, keeps_times: bool) -> pa.Schema:
    """Returns the schema of the table."""
    fields = [pa.field(one.name, _type(one.type)) for one in columns]
    return pa.schema([*fields, *(TIMES if keeps_times else ())])


def delta_values(values: pa.Array, column: Column) -> pa.Array:
    """Returns stored values of a column as those of the table.

    Raises:
        InfiniteMoment: One is an infinite date or timestamp.

    Example:
        >>> delta_values(pa.array([60_000_000, None]), Column("at", TIME)).to_pylist()
        ['00:01:00', None]
    """
    found = published(values, column)
    if column.type.kind is not Kind.TIME:
        return found
    encoded = found.dictionary_encode()
    texts = [cell_text(one, TIME) for one in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _type(type_: ScalarType) -> pa.DataType:
    return pa.string() if type_.kind is Kind.TIME else published_type(type_)
