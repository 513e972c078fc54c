"""Reads the schema of a Parquet file and proves its pages readable, without Spark.

Owns which physical types a declared column accepts: those whose values are all exact in it, and integers and decimals
of other widths, whose values are checked one by one when read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.errors import first_line
from mz_dagster.functions.arrays.limits import MOST_DIMENSIONS
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.source.absent_columns import absent_columns, listed
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.file_place import FilePlace

#: Kinds that a file holds as text, which is decoded as that of any other format; an unconstrained numeric may also be
#: an integer or a decimal there.
TEXTUAL = {
    Kind.VARCHAR, Kind.CHAR, Kind.UUID, Kind.JSON, Kind.JSONB, Kind.UNCONSTRAINED, Kind.ENUM, Kind.TIME, Kind.TIMETZ,
    Kind.INTERVAL,
}  # fmt: skip

_INTEGER_KINDS = {Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.NUMERIC}

#: What Arrow raises over bytes that are no Parquet: its own errors, names that are no text, sizes that nothing has.
_DAMAGE = (OSError, pa.ArrowException, ValueError, MemoryError, OverflowError)

#: What to do about a file that somebody dropped, and about one that is a table's own.
_MEND_FILE = "Replace the file by one with the source's columns, or move it away."
_MEND_TABLE = (
    "Have whoever writes the table put the file back whole, or write what it held anew; in that case ALTER SOURCE ... "
    "RESET goes on with the newest version."
)

#: How many of the integer types an array's elements may have.
_WIDTH = {Kind.INT2: 2, Kind.INT4: 3, Kind.INT8: 4}
_EXACT_KINDS = frozenset(
    {Kind.BOOL, Kind.FLOAT4, Kind.FLOAT8, Kind.TEXT, Kind.BYTEA, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)

#: Arrow's name of a readable type, and the Spark type by which Spark's own Parquet reader reads it.
_SPARK_NAMES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "string_view": "string",
    "date32[day]": "date",
}

#: Of the types in which a column may be there, those of which each column has one, by itself or in a list.
_POSSIBLE = (
    pa.string(), pa.binary(), pa.bool_(), pa.int8(), pa.float32(), pa.date32(), pa.timestamp("us"),
    pa.timestamp("us", "UTC"), pa.decimal128(1),
)  # fmt: skip


def read_schema(
    folder: Path, path: str, columns: Sequence[Column], content: bytes | None = None, *, called: str = "Parquet"
) -> tuple[tuple[str, str], ...]:
    """Returns the declared columns' names with the Spark types in which the file holds them.

    One that the file lacks and may lack (`absent_columns`) has a type in which it could be there: Spark reads NULL.

    Args:
        folder: Where the file is.
        path: The file.
        columns: The declared ones.
        content: The file's bytes, if they are at hand.
        called: The format that the file had before it was written as Parquet.

    Raises:
        SourceUnreadable: The file is not Parquet, lacks a column, or holds one in a type that does not fit.
    """
    try:
        schema = pq.read_schema(folder / path if content is None else pa.BufferReader(content))
        names = schema.names
    except _DAMAGE as error:
        raise _unreadable(path, f"It is not a Parquet file: {first_line(error)}.") from error
    absent_columns(columns, names, called, path)
    fields = []
    for column in columns:
        same = [name for name in names if name.casefold() == column.name.casefold()]
        if len({*same, column.name}) > 1:
            others = (
                f'which differs only in case from "{column.name}"' if len(same) == 1 else "which differ only in case"
            )
            raise _unreadable(path, f"It has {listed(same)}, {others}.", called)
        with named_if_damaged(path):  # a time zone may be no text
            found = schema.field(column.name).type if same else possible_type(column)
            name = _spark_name(found)
        if name is None or not holds(column, name):
            what = f'Its column "{column.name}" is {found}, which is not readable as {column.type}.'
            raise _unreadable(path, what, called)
        fields.append((column.name, name))
    return tuple(fields)


def row_count(place: FilePlace, path: str) -> int:
    """Returns how many rows a file says that it has, 0 if it is no Parquet: who reads it finds that out."""
    try:
        with place.opened(path) as file:
            return int(pq.read_metadata(file).num_rows)
    except _DAMAGE:
        return 0


def check_pages(folder: Path, path: str) -> None:
    """Decodes the whole file once, in bounded memory.

    Raises:
        SourceUnreadable: A page is damaged or missing.
    """
    with named_if_damaged(path), pq.ParquetFile(folder / path, page_checksum_verification=True) as file:
        found = 0
        for batch in file.iter_batches(batch_size=65_536):
            found += batch.num_rows
        check_rows(file, found)


def check_rows(file: pq.ParquetFile, found: int) -> None:
    """Makes sure that a file has as many rows as it says, by itself and of its parts; call in `named_if_damaged`.

    Raises:
        ValueError: It has not.
    """
    # Of its columns the damaged metadata must not be asked: Arrow aborts the process.
    groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    if not found == sum(groups) == file.metadata.num_rows:
        raise ValueError(
            f"it says that it has {file.metadata.num_rows} rows, its parts {sum(groups)}, and {found} are there"
        )


@contextmanager
def named_if_damaged(path: str, *, is_of_table: bool = False) -> Iterator[None]:
    """Names the file at `path` if it cannot be read in the block.

    Args:
        path: What to call it.
        is_of_table: Whether it is a table's own, which nobody may move away.

    Raises:
        SourceUnreadable: A page is damaged or missing.
    """
    try:
        yield
    except _DAMAGE as error:
        hint = _MEND_TABLE if is_of_table else _MEND_FILE
        raise _unreadable(path, f"It is damaged: {first_line(error)}.", hint=hint) from error


def _spark_name(type_: pa.DataType) -> str | None:
    if pa.types.is_dictionary(type_):
        return _spark_name(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit in ("ms", "us"):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    if pa.types.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = _spark_name(type_.value_type)
        return None if element is None else f"array<{element}>"
    return _SPARK_NAMES.get(str(type_))


def holds(column: Column, name: str) -> bool:
    """Returns whether values of a physical type, by Spark's name of it, can be read as a column's.

    Example:
        >>> from mz_dagster.scalars.types import FLOAT8
        >>> holds(Column("a", FLOAT8), "int"), holds(Column("a", FLOAT8), "bigint")
        (True, False)
    """
    match column.type.kind:
        case Kind.ARRAY:
            element = name.removeprefix("array<").removesuffix(">")
            return element != name and column.type.element is not None and _fits_element(column.type.element, element)
        case Kind.DIMENSIONED if column.type.array_element is not None:
            depth = dimensions_of(name)
            element = name.removeprefix("array<" * depth).removesuffix(">" * depth)
            return 0 < depth <= MOST_DIMENSIONS and _fits_element(column.type.array_element, element)
        case kind if kind in _INTEGER_KINDS:
            decimal = name.startswith("decimal") and kind is Kind.NUMERIC
            return decimal or name in ("tinyint", "smallint", "int", "bigint")
        case Kind.UNCONSTRAINED:
            return name in ("string", "tinyint", "smallint", "int", "bigint") or name.startswith("decimal")
        case Kind.FLOAT8:
            return name in ("float", "double", "tinyint", "smallint", "int")
        case Kind.FLOAT4:
            return name in ("float", "tinyint", "smallint")
        case kind if kind is Kind.TEXT or kind in TEXTUAL:
            return name == "string"
        case Kind.BYTEA:
            return name == "binary"
        case Kind.TIMESTAMP:
            return name == "timestamp_ntz"
        case Kind.TIMESTAMPTZ:
            return name == "timestamp"
        case _:
            return bool(name == column.type.kind.value)


def possible_type(column: Column) -> pa.DataType | None:
    """Returns a type in which a file could hold a column, if there is one.

    Example:
        >>> from mz_dagster.scalars.types import DATE, INT8, array_of
        >>> possible_type(Column("a", DATE)), possible_type(Column("a", array_of(INT8)))
        (DataType(date32[day]), ListType(list<item: int8>))
    """
    types = (type_ for one in _POSSIBLE for type_ in (one, pa.list_(one)))
    return next((type_ for type_ in types if holds(column, _spark_name(type_) or "")), None)


def dimensions_of(name: str) -> int:
    """Returns how many lists stand in one another in a type of Spark's name.

    Example:
        >>> dimensions_of("array<array<int>>"), dimensions_of("int")
        (2, 0)
    """
    return name.count("array<")


def _fits_element(type_: ScalarType, name: str) -> bool:
    """Returns whether every value of an accepted physical type is one of an array's element type: none is checked."""
    match type_.kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            widths = ("tinyint", "smallint", "int", "bigint")
            return name in widths[: _WIDTH[type_.kind]]
        case Kind.NUMERIC:
            digits = re.fullmatch(r"decimal\((\d+),(\d+)\)", name)
            if digits is None:
                return False
            precision, scale = map(int, digits.groups())
            return scale <= type_.scale and precision - scale <= 38 - type_.scale
        case kind if kind in _EXACT_KINDS:
            return holds(Column("", type_), name)
        case _:
            return False


def _unreadable(path: str, detail: str, called: str = "Parquet", hint: str = _MEND_FILE) -> SourceUnreadable:
    return SourceUnreadable(f'cannot read {called} file "{path}"', detail=detail, hint=hint)
