"""The module that PEP 249 describes: `connect`, its errors, and the types of columns and parameters.

from mz_dagster import dbapi
with dbapi.connect("path/to/folder") as connection:
    cursor = connection.cursor()
    cursor.execute("SELECT name, until FROM offers WHERE until > ?", (dbapi.Date(2026, 1, 1),))
    names = [one[0] for one in cursor.description if one[1] == dbapi.STRING]
"""

from __future__ import annotations

import datetime

from mz_dagster.adapter import Connection, connect
from mz_dagster.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY

#: The version of the interface.
apilevel = "2.0"
#: Threads may share the module, but not connections.
threadsafety = 1
#: Parameters are written `?`.
paramstyle = "qmark"


class TypeObject:
    """What the type codes of a kind equal: the names of SQL types, whatever their length or precision.

    Example:
        >>> [one for one in ("numeric(12,2)", "text", "bigint", "integer[]") if one == NUMBER]
        ['numeric(12,2)', 'bigint']
    """

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        """Returns whether a type code is one of this kind."""
        if isinstance(other, TypeObject):
            return self.names == other.names
        return isinstance(other, str) and not other.endswith("]") and other.partition("(")[0] in self.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"TypeObject({', '.join(sorted(self.names))})"


STRING = TypeObject("text", "character varying", "character", "uuid", "jsonb")
BINARY = TypeObject("bytea")
NUMBER = TypeObject("smallint", "integer", "bigint", "numeric", "real", "double precision", "mz_timestamp")
DATETIME = TypeObject("date", "time", "timetz", "timestamp", "timestamptz", "interval")
#: Rows have no number of their own.
ROWID = TypeObject()

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Returns the date, in UTC, of a time in seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:
    """Returns the time of day, in UTC, of a time in seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Returns the moment, in UTC and without a zone, of a time in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks, datetime.UTC).replace(tzinfo=None)


__all__ = [
    "BINARY",
    "DATETIME",
    "INFINITY",
    "NEGATIVE_INFINITY",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeObject",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
