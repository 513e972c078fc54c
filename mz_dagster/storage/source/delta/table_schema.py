"""The columns of a Delta table, and what each is in SQL.

| Delta | SQL |
|---|---|
| byte, short | smallint |
| integer, long | integer, bigint |
| float, double | real, double precision |
| decimal(p,s) | numeric(p,s) |
| string, binary, boolean, date | text, bytea, boolean, date |
| timestamp | timestamptz |
| timestamp_ntz | timestamp |
| array of these, but of decimals wider than numeric's | array |

A source may declare a column otherwise, as far as its values can be read: an integer or a decimal as any other number,
whose values are checked one by one, and text as what it spells (uuid, jsonb, varchar(n), an enum, numeric). Structs,
maps and variants have no type in SQL: a source leaves them out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.errors import ColumnsChanged, UnknownFeature
from mz_dagster.storage.source.parquet_schema import holds

#: Delta's primitive types by the names that Spark and SQL have for them.
_NAMES = {
    "byte": ("tinyint", "smallint"),
    "short": ("smallint", "smallint"),
    "integer": ("int", "integer"),
    "long": ("bigint", "bigint"),
    "float": ("float", "real"),
    "double": ("double", "double precision"),
    "string": ("string", "text"),
    "binary": ("binary", "bytea"),
    "boolean": ("boolean", "boolean"),
    "date": ("date", "date"),
    "timestamp": ("timestamp", "timestamptz"),
    "timestamp_ntz": ("timestamp_ntz", "timestamp"),
}

#: What a table may ask of its readers, as far as it is known here; delta-rs reads checkpoints and deletion vectors.
_FEATURES = {
    "timestampNtz",
    "columnMapping",
    "deletionVectors",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_READER = 3
_MAPPING = "delta.columnMapping.mode"
_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table at a version.

    Attributes:
        table: What it is called.
        id: Of the table, which another one in its place does not have.
        types: Delta's types by the columns' names, in order; of a type that has no name here None.
        physical: By which names the files have the columns.
    """

    table: str
    id: str
    types: Mapping[str, str | None]
    physical: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, table: str, id: str, schema: str, configuration: Mapping[str, str | None]) -> TableSchema:
        """Returns the columns that a `metaData` action of a log describes.

        Raises:
            UnknownFeature: Files have the columns by number.
        """
        mode = configuration.get(_MAPPING) or "none"
        if mode not in ("none", "name"):
            raise UnknownFeature(
                f'Delta table "{table}" maps its columns by "{mode}", which is not read',
                hint="Have it written with delta.columnMapping.mode = 'name'.",
            )
        fields: Sequence[dict[str, Any]] = json.loads(schema)["fields"]
        physical = {one["name"]: one["metadata"].get(_PHYSICAL, one["name"]) for one in fields}
        return cls(table, id, {one["name"]: _named(one["type"]) for one in fields}, physical)

    def names_of(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """Returns by which names the files have columns.

        Raises:
            ColumnsChanged: The table has one of them not, or as a type whose values do not become the column's.
        """
        for column in columns:
            if column.name not in self.types:
                has = ", ".join(self.types)
                raise ColumnsChanged(
                    f'Delta table "{self.table}" has no column "{column.name}"',
                    detail=f"Its columns are {has}.",
                    hint="Give the table the column back, or create the source anew with those that it has.",
                )
            type_ = self.types[column.name]
            if type_ is None or not holds(column, type_):
                raise ColumnsChanged(
                    f'column "{column.name}" of Delta table "{self.table}" is {type_ or "of a nested type"}, which is '
                    f"not readable as {column.type}",
                    hint="Create the source anew with another type for it, or without it.",
                )
        return tuple(self.physical.get(column.name, column.name) for column in columns)

    def declaration(self) -> str:
        """Returns the columns as CREATE SOURCE declares them.

        Raises:
            ColumnsChanged: A column has a type that SQL has not.

        Example:
            >>> table = TableSchema("t", "", {"a b": "int", "c": "array<decimal(5,2)>"})
            >>> table.declaration()
            '("a b" integer, "c" numeric(5,2)[])'
        """
        shown = []
        for name, type_ in self.types.items():
            if type_ is None:
                raise ColumnsChanged(
                    f'column "{name}" of Delta table "{self.table}" is of a nested type, which SQL has not',
                    hint="State the columns that there are to be: CREATE SOURCE name (column type, ...) FROM DELTA ...",
                )
            quoted = name.replace('"', '""')
            shown.append(f'"{quoted}" {_sql_name(type_)}')
        return f"({', '.join(shown)})"


def check_protocol(table: str, reader: int, features: Sequence[str]) -> None:
    """Raises if a table cannot be read here.

    Raises:
        UnknownFeature: It asks of its readers what this one does not know.
    """
    unknown = sorted(set(features) - _FEATURES)
    if "deletionVectors" in features and any(one.startswith("typeWidening") for one in features):
        unknown.append("deletionVectors with typeWidening")
    if reader > _READER or unknown:
        asked = f"features {', '.join(unknown)}" if unknown else f"version {reader} of the protocol"
        raise UnknownFeature(
            f'Delta table "{table}" asks its readers for {asked}, which this one does not know',
            hint="Have it written without, or drop the feature from the table; nothing was read.",
        )


def _named(type_: Any) -> str | None:
    """Returns Spark's name of a type of the log's, None if it is no scalar and no array of them."""
    if isinstance(type_, str):
        return type_ if type_.startswith("decimal(") else _NAMES[type_][0] if type_ in _NAMES else None
    if isinstance(type_, dict) and type_.get("type") == "array":
        element = type_["elementType"]
        named = _named(element) if isinstance(element, str) else None
        return None if named is None else f"array<{named}>"
    return None


def _sql_name(name: str) -> str:
    if name.startswith("array<"):
        return f"{_sql_name(name.removeprefix('array<').removesuffix('>'))}[]"
    if name.startswith("decimal("):
        return name.replace("decimal", "numeric")
    return next(sql for spark, sql in _NAMES.values() if spark == name)
