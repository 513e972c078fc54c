"""Originals and their translations, run on the same data: what the other engine answers, and what is answered here.

The data are the project's own: all rows of what the imported queries read are put into the other engine, DuckDB in
this process or the project's Spark, so this is for data that fit into memory. Floats and decimals are one if their
first nine digits are; everything else has to be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from mz_dagster.adapter import Engine, Project, Result, Session
from mz_dagster.errors import Error, ProgrammingError, one_line
from mz_dagster.operations.importing.proposal import DIFFERS, WRITTEN, Imported, Proposal
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.translation import SourceDialect

Row = tuple[Any, ...]

#: The types that both engines hold as they are here, and what they call them.
_TYPES = {
    Kind.BOOL: ("boolean", pa.bool_()),
    Kind.INT2: ("smallint", pa.int16()),
    Kind.INT4: ("int", pa.int32()),
    Kind.INT8: ("bigint", pa.int64()),
    Kind.FLOAT4: ("float", pa.float32()),
    Kind.FLOAT8: ("double", pa.float64()),
    Kind.TEXT: ("string", pa.string()),
    Kind.VARCHAR: ("string", pa.string()),
    Kind.CHAR: ("string", pa.string()),
    Kind.DATE: ("date", pa.date32()),
    Kind.TIMESTAMP: ("timestamp", pa.timestamp("us")),
    Kind.TIMESTAMPTZ: ("timestamptz", pa.timestamp("us", "UTC")),
}


class _OtherEngine(Protocol):
    """An engine that runs the originals."""

    def put(self, name: str, table: pa.Table) -> None:
        """Makes a relation of rows."""
        ...

    def name(self, name: str, query: str) -> None:
        """Makes a relation of a query."""
        ...

    def rows(self, name: str) -> Sequence[Row]:
        """Returns the rows of a relation."""
        ...


def compared(project: Project, proposal: Proposal, dialect: SourceDialect, engine: Engine | None = None) -> Proposal:
    """Returns a proposal with what came of comparing each query that comes in.

    Args:
        project: Its data are compared on.
        proposal: What to compare.
        dialect: Decides on the engine that runs the originals.
        engine: The project's; by default it is opened.

    Raises:
        ProgrammingError: No engine for the dialect runs here.
    """
    with ExitStack() as opened:
        used = engine or opened.enter_context(Engine(project))
        other = opened.enter_context(_opened(dialect, used))
        session = opened.enter_context(closing(Session(used)))
        sides = _Engines(session, other, {one.name for one in proposal.imported if one.outcome == WRITTEN})
        return replace(proposal, imported=tuple(map(sides.compared, proposal.imported)))


class _Engines:
    """Both engines, and what they know by now."""

    def __init__(self, session: Session, other: _OtherEngine, imported: set[str]) -> None:
        self._session = session
        self._other = other
        self._imported = imported
        self._known: dict[str, str | None] = {}

    def compared(self, one: Imported) -> Imported:
        """Returns a query with what came of comparing it."""
        if one.outcome != WRITTEN or one.query is None:
            return one
        problem = self._prepared(one)
        self._known[one.name] = problem
        return replace(one, compared=problem or self._difference(one.name))

    def _prepared(self, one: Imported) -> str | None:
        """Makes the query a relation of each side; returns why that cannot be."""
        assert one.original is not None
        for name in one.reads:
            if name not in self._known:
                self._known[name] = self._put(name)
            if problem := self._known[name]:
                return f"not compared: {problem}"
        try:
            self._other.name(one.name, one.original)
        except Exception as error:  # the other engine's own
            return f"not compared: the original fails: {_first_line(error)}"
        try:
            self._session.execute(f"CREATE TEMPORARY VIEW {quoted(one.name)} AS {one.query}")
        except Error as error:
            return f"{DIFFERS}: here it fails: {one_line(error)}"
        return None

    def _put(self, name: str) -> str | None:
        """Gives the other side the rows of a relation of the project; returns why that cannot be."""
        try:
            found = self._session.execute(f"SELECT * FROM {quoted(name)}")
        except Error as error:
            return f'"{name}" cannot be read: {error.message}'
        for column in found.columns:
            if column.type.kind not in _TYPES and column.type.kind is not Kind.NUMERIC:
                return f'the other engine has no type for {column.type} of "{name}"'
        self._other.put(name, _table(found))
        return None

    def _difference(self, name: str) -> str:
        try:
            theirs = self._other.rows(name)
        except Exception as error:  # the other engine's own
            return f"not compared: the original fails: {_first_line(error)}"
        try:
            mine = self._session.execute(f"SELECT * FROM {quoted(name)}").rows
        except Error as error:
            return f"{DIFFERS}: here it fails: {one_line(error)}"
        return difference(mine, theirs)


def difference(mine: Sequence[Row], theirs: Sequence[Row]) -> str:
    """Returns whether two results have the same rows, in any order, and else where they begin to differ.

    Example:
        >>> difference([(1, None)], [(1.0, None)]), difference([(1,)], [(2,)])
        ('same, 1 rows', 'differs: here (1), there (2)')
    """
    if len(mine) != len(theirs):
        return f"{DIFFERS}: {len(mine)} rows here, {len(theirs)} there"
    ours, others = (
        sorted(((_plain_row(row), row) for row in rows), key=lambda one: _key(one[0])) for rows in (mine, theirs)
    )
    for (left, row), (right, other) in zip(ours, others, strict=True):
        if len(left) != len(right) or not all(map(_equal, left, right)):
            return f"{DIFFERS}: here {_shown(row)}, there {_shown(other)}"
    return f"same, {len(mine)} rows"


def _plain_row(row: Row) -> Row:
    return tuple(map(_plain, row))


def _plain(cell: Any) -> Any:
    match cell:
        case None | bool() | str():
            return cell
        case int() | float() | Decimal():
            return float(f"{float(cell):.9g}") + 0.0
        case datetime() | date() | time():
            moment = cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell
            return moment.isoformat().removesuffix("T00:00:00")
        case list() | tuple():
            return tuple(map(_plain, cell))
        case _:
            return str(cell)


def _key(row: Row) -> list[tuple[str, Any]]:
    return [(type(cell).__name__, 0 if cell is None else cell) for cell in row]


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (
            left == right or (left != left and right != right) or abs(left - right) <= 1e-8 * max(abs(left), abs(right))
        )
    return bool(left == right)


def _shown(row: Row) -> str:
    return f"({', '.join('NULL' if cell is None else str(cell) for cell in row)})"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _table(found: Result) -> pa.Table:
    fields = [(column.name, _arrow_type(column)) for column in found.columns]
    cells = zip(*found.rows, strict=True) if found.rows else [()] * len(fields)
    arrays = [pa.array(list(each), type_) for each, (_, type_) in zip(cells, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in fields])


def _arrow_type(column: Column) -> pa.DataType:
    if column.type.kind is Kind.NUMERIC:
        return pa.decimal128(38, column.type.scale)
    return _TYPES[column.type.kind][1]


def _rows(table: pa.Table) -> Sequence[Row]:
    """Returns a table's rows; its columns may share their names."""
    return list(zip(*(each.to_pylist() for each in table.columns), strict=True)) if table.num_columns else []


@contextmanager
def _opened(dialect: SourceDialect, engine: Engine) -> Iterator[_OtherEngine]:
    if dialect.name == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise ProgrammingError("DuckDB is not installed", hint="Install it: pip install duckdb.") from None
        with duckdb.connect() as connection:
            yield _DuckDb(connection)
    elif dialect.is_spark:
        yield _Spark(engine.spark.open()[0])
    else:
        raise ProgrammingError(
            f"no engine for {dialect.name} runs here",
            hint="Results are compared for duckdb and spark; leave --check out.",
        )


class _DuckDb:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def put(self, name: str, table: pa.Table) -> None:
        self._connection.register(name, table)

    def name(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE VIEW {quoted(name)} AS {query}")

    def rows(self, name: str) -> Sequence[Row]:
        return _rows(self._connection.execute(f"SELECT * FROM {quoted(name)}").to_arrow_table())


class _Spark:
    """The project's Spark; relations are temporary views, under names of their own until they are dropped."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def put(self, name: str, table: pa.Table) -> None:
        self._session.createDataFrame(table).createOrReplaceTempView(name)

    def name(self, name: str, query: str) -> None:
        self._session.sql(query).createOrReplaceTempView(name)

    def rows(self, name: str) -> Sequence[Row]:
        return _rows(self._session.table(name).toArrow())
