"""A session: statements in, results out, one after the other.

Sequences each statement into commands to the engine: what a statement says is bound here, at which time it reads is
decided by `timestamps`, and what it does is done by `peeks`, `dml`, `ddl` and the engine. Each statement is a
transaction of its own; when `execute` returns, it is acknowledged and durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from mz_dagster.adapter import ddl
from mz_dagster.adapter.dml import RowUpdate, append, check_not_null, read_and_append
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.shows import show
from mz_dagster.adapter.timestamps import AsOfTime, Isolation
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.errors import NotSupportedError, ProgrammingError
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.relation import Constant, Filter, Get, Map, Relation
from mz_dagster.plan.types import TEXT, Column
from mz_dagster.sql import (
    AlterRetainHistory,
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Name,
    Select,
    Show,
    Statement,
    Update,
    bind_as_of,
    bind_delete,
    bind_insert,
    bind_query,
    bind_update,
    parse,
)
from mz_dagster.sql.errors import UndefinedParameter, UndefinedTable, suggestion
from mz_dagster.sql.finishing import ordered_rows

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Is what a statement returned.

    Attributes:
        tag: The command tag, as PostgreSQL's: `SELECT 3`, `INSERT 0 1`, `CREATE TABLE`.
        columns: The result set's columns; empty if there is none.
        rows: Its rows.
        rowcount: Rows returned or changed; -1 if that means nothing for the statement.
    """

    tag: str
    columns: tuple[Column, ...] = ()
    rows: Rows = ()
    rowcount: int = -1


class Session:
    """Is a series of statements on one engine.

    Args:
        engine: The project.
        isolation: What reads may miss.
    """

    def __init__(self, engine: Engine, isolation: Isolation = Isolation.STRICT_SERIALIZABLE) -> None:
        self._engine = engine
        self._peeks = Peeks(engine, isolation)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Executes one statement.

        Args:
            sql: The statement; a semicolon at its end is allowed.
            parameters: A value for each `?`.

        Raises:
            ProgrammingError: It is no statement, or more than one, or does not bind.
            NotSupportedError: It is refused, with position and reason.
            DataError: What it read is an error of the data.
            OperationalError: The outside world failed.
        """
        statements = parse(sql)
        if len(statements) != 1:
            raise ProgrammingError(
                f"{len(statements)} statements where one is expected", hint="Execute them one at a time."
            )
        return self.sequence(statements[0], parameters)

    def sequence(self, statement: Statement, parameters: Sequence[object] = ()) -> Result:
        """Executes one parsed statement; see `execute`."""
        if len(parameters) != statement.parameters:
            raise UndefinedParameter(
                f"{len(parameters)} values for {statement.parameters} parameters", hint="Give one value for each ?."
            )
        match statement:
            case Select():
                return self._select(statement, parameters)
            case Insert():
                return self._insert(statement, parameters)
            case Delete():
                return self._delete(statement, parameters)
            case Update():
                return self._update(statement, parameters)
            case CreateSource() | CreateTable() | CreateView() | CreateMaterializedView() | CreateIndex():
                return Result(ddl.create(self._engine, statement))
            case Drop():
                return Result(ddl.drop(self._engine, statement))
            case AlterRetainHistory():
                return Result(ddl.alter_retain_history(self._engine, statement))
            case Explain():
                return self._explain(statement, parameters)
            case Show():
                columns, rows = show(self._engine, statement)
                return Result("SHOW", columns, rows, len(rows))
            case _:
                _refuse(statement)

    def _clock(self) -> datetime:
        """Returns the time of a statement that begins now, which is what `now()` says throughout it."""
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self._engine.clock.now_ms())

    # ---- reads

    def _select(self, statement: Select, parameters: Sequence[object]) -> Result:
        bound = bind_query(statement.query, self._engine.definitions, params=parameters, clock=self._clock())
        as_of = None
        if statement.as_of is not None:
            as_of = AsOfTime(bind_as_of(statement.as_of, params=parameters), statement.as_of.at_least)
        rows = ordered_rows(self._peeks.peek(bound.relation, as_of), bound.finishing)
        return Result(f"SELECT {len(rows)}", bound.relation_type.columns, tuple(rows), len(rows))

    def _explain(self, statement: Explain, parameters: Sequence[object]) -> Result:
        definitions = self._engine.definitions
        if isinstance(statement.target, Name):
            item = definitions.resolve(statement.target.parts)
            definition = None if item is None or item.kind == "introspection" else definitions.definition(item.id)
            if definition is None or definition.relation is None:
                raise ProgrammingError(
                    f'"{statement.target}" is no view',
                    hint="EXPLAIN a view, a materialized view or a query.",
                    position=statement.target.offset + 1,
                )
            relation, names = definition.relation, definition.relation_type.names
        else:
            bound = bind_query(statement.target, definitions, params=parameters, clock=self._clock())
            relation, names = bound.relation, bound.relation.relation_type.names
        optimized = optimize(relation)
        parts = []
        if statement.stage in ("plan", "logical"):
            parts.append(explain_logical(optimized))
        if statement.stage in ("plan", "physical"):
            parts.append(explain_physical(lower_to_maintained_plan(optimized, names)))
        rows = tuple((line,) for line in "\n\n".join(parts).splitlines())
        return Result("EXPLAIN", (Column("plan", TEXT, False),), rows, len(rows))

    # ---- writes

    def _insert(self, statement: Insert, parameters: Sequence[object]) -> Result:
        row, table = self._table(statement.table)
        definitions, clock = self._engine.definitions, self._clock()
        bound = bind_insert(statement, row.relation_type, definitions, params=parameters, clock=clock)
        relation = optimize(bound.relation)
        # Rows that were read are written strictly later; the table's own upper guards only the table, which is
        # enough as long as reads and the write may be ordered by their timestamps.
        if isinstance(relation, Constant):
            rows = [tuple(cell.value for cell in one) for one in relation.rows]
        else:
            rows = self._peeks.peek(relation, None)
        check_not_null(table, statement.table.last, rows)
        if rows:
            append(self._engine, table.id, [(one, 1) for one in rows])
        return Result(f"INSERT 0 {len(rows)}", rowcount=len(rows))

    def _delete(self, statement: Delete, parameters: Sequence[object]) -> Result:
        row, table = self._table(statement.table)
        predicate = bind_delete(statement, row.relation_type, params=parameters, clock=self._clock())
        get = Get(table.id, row.relation_type, statement.table.last)
        relation: Relation = get if predicate is None else Filter(get, (predicate,))
        count = 0

        def decide(now: CollectionRow) -> list[RowUpdate]:
            nonlocal count
            rows = self._peeks.peek_before(relation, now)
            count = len(rows)
            return [(one, -1) for one in rows]

        self._write(table, decide)
        return Result(f"DELETE {count}", rowcount=count)

    def _update(self, statement: Update, parameters: Sequence[object]) -> Result:
        row, table = self._table(statement.table)
        bound = bind_update(statement, row.relation_type, params=parameters, clock=self._clock())
        arity = row.relation_type.arity
        relation: Relation = Get(table.id, row.relation_type, statement.table.last)
        if bound.predicate is not None:
            relation = Filter(relation, (bound.predicate,))
        relation = Map(relation, bound.values, tuple(f"new_{name}" for name in row.relation_type.names))
        count = 0

        def decide(now: CollectionRow) -> list[RowUpdate]:
            nonlocal count
            rows = self._peeks.peek_before(relation, now)
            count = len(rows)
            check_not_null(now, statement.table.last, [one[arity:] for one in rows])
            return [(one[:arity], -1) for one in rows] + [(one[arity:], 1) for one in rows]

        self._write(table, decide)
        return Result(f"UPDATE {count}", rowcount=count)

    def _write(self, table: CollectionRow, decide: Any) -> None:
        if table.upper.only > 0:
            read_and_append(self._engine, table.id, decide)

    def _table(self, name: Name) -> tuple[ObjectRow, CollectionRow]:
        row = self._engine.catalog.resolve_name(name.last)
        if row is None:
            raise UndefinedTable(
                f'relation "{name}" does not exist',
                hint=suggestion(name.last, self._engine.definitions.names()),
                position=name.offset + 1,
            )
        if row.kind != "table":
            raise ProgrammingError(
                f'cannot change "{name}"',
                detail=f"It is a {row.kind}.",
                hint="Only tables are written by INSERT, UPDATE and DELETE.",
                position=name.offset + 1,
            )
        return row, self._engine.catalog.collection(row.id)


def _refuse(statement: Statement) -> NoReturn:
    words = statement.text.split()
    raise NotSupportedError(
        f"{words[0].upper()} is not supported yet",
        detail="Each statement is a transaction of its own." if words[0].upper() in ("BEGIN", "COMMIT") else None,
        hint="See the README for the statements that are.",
        position=1,
    )
