"""The columns of a table, and what SQL makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.errors import ColumnsChanged
from mz_dagster.storage.source.parquet_schema import holds

#: SQL's names of types by Spark's.
_SQL_NAMES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column.

    Attributes:
        shown: What its type is called; None if that is nested, and more than an array.
        read_as: Spark's name of the type that values are read as; None if they are not read.
        sql: How SQL declares it.
        physical: By which name files have it.
    """

    shown: str | None
    read_as: str | None
    sql: str
    physical: str

    @classmethod
    def of(cls, type_: str | None, physical: str) -> TableColumn:
        """Returns a column of a type that Spark has a name for, if it can be read."""
        return cls(type_, type_, "" if type_ is None else sql_name(type_), physical)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table at a version.

    Attributes:
        table: What it is called, with its kind.
        columns: By their names, in order.
    """

    table: str
    columns: Mapping[str, TableColumn]

    def names_of(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """Returns by which names the files have columns.

        Raises:
            ColumnsChanged: The table has one of them not, or as a type whose values do not become the column's.
        """
        for column in columns:
            if column.name not in self.columns:
                has = ", ".join(self.columns)
                raise ColumnsChanged(
                    f'{self.table} has no column "{column.name}"',
                    detail=f"Its columns are {has}.",
                    hint="Give the table the column back, or create the source anew with those that it has.",
                )
            found = self.columns[column.name]
            if found.read_as is None or not holds(column, found.read_as):
                raise ColumnsChanged(
                    f'column "{column.name}" of {self.table} is {found.shown or "of a nested type"}, which is not '
                    f"readable as {column.type}",
                    hint="Create the source anew with another type for it, or without it.",
                )
        return tuple(self.columns[column.name].physical for column in columns)

    def declaration(self) -> str:
        """Returns the columns as CREATE SOURCE declares them.

        Raises:
            ColumnsChanged: A column has a type that SQL has not.

        Example:
            >>> columns = {"a b": TableColumn.of("int", "x"), "c": TableColumn.of("array<decimal(5,2)>", "c")}
            >>> TableColumns("table", columns).declaration()
            '("a b" integer, "c" numeric(5,2)[])'
        """
        shown = []
        for name, column in self.columns.items():
            if column.read_as is None:
                raise ColumnsChanged(
                    f'column "{name}" of {self.table} is of {column.shown or "a nested type"}, which SQL has not',
                    hint="State the columns that there are to be: CREATE SOURCE name (column type, ...) FROM ...",
                )
            quoted = name.replace('"', '""')
            shown.append(f'"{quoted}" {column.sql}')
        return f"({', '.join(shown)})"


def sql_name(name: str) -> str:
    """Returns SQL's name of a type that Spark has a name for."""
    if name.startswith("array<"):
        return f"{sql_name(name.removeprefix('array<').removesuffix('>'))}[]"
    return name.replace("decimal", "numeric") if name.startswith("decimal(") else _SQL_NAMES[name]
