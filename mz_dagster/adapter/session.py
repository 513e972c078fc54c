"""A session: statements in, results out, one after the other.

Sequences each statement into commands to the engine: what a statement says is bound here, at which time it reads is
decided by `timestamps`, and what it does is done by `peeks`, `writes`, `ddl` and the engine. Each statement is a
transaction of its own; when `execute` returns, it is acknowledged and durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from mz_dagster.adapter import ddl
from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import object_named
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.shows import show
from mz_dagster.adapter.timestamps import AsOfTime, Isolation
from mz_dagster.adapter.writes import Writes
from mz_dagster.errors import NotSupportedError, ProgrammingError
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.lowering import estimated_state
from mz_dagster.plan.physical import MaintainedPlan
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.types import TEXT, Column
from mz_dagster.sql import (
    AlterRename,
    AlterRetainHistory,
    Copy,
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
    SqlText,
    Statement,
    Update,
    bind_as_of,
    bind_query,
    parse,
)
from mz_dagster.sql.errors import StatementTooComplex, UndefinedParameter
from mz_dagster.sql.finishing import ordered_rows


class Session:
    """Is a series of statements on one engine.

    Args:
        engine: The project.
        isolation: What reads may miss.
    """

    def __init__(self, engine: Engine, isolation: Isolation = Isolation.STRICT_SERIALIZABLE) -> None:
        self._engine = engine
        self._peeks = Peeks(engine, isolation)
        self._writes = Writes(engine, self._peeks)

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
        try:
            return self.sequence(_only_statement(sql), parameters)
        except RecursionError:
            raise StatementTooComplex(
                "the statement is nested too deeply", hint="Split it into views or CTEs."
            ) from None

    def execute_many(self, sql: str, many: Sequence[Sequence[object]]) -> Result:
        """Executes a statement that writes with each of many sets of parameters.

        An INSERT is one batch, which is written whole or not at all. Of any other statement each set is a transaction
        of its own, and sees what those before it wrote.

        Raises:
            ProgrammingError: The statement returns rows; else as `execute`.
        """
        statement = _only_statement(sql)
        if not isinstance(statement, Insert | Delete | Update) or statement.returning is not None:
            raise ProgrammingError(
                "executemany() takes statements that write and return no rows",
                hint="Use execute() for this one.",
            )
        if isinstance(statement, Insert):
            for parameters in many:
                _check_count(statement, parameters)
            return self._writes.insert(statement, many, self._clock())
        total = sum(self.sequence(statement, parameters).rowcount for parameters in many)
        return Result(f"{statement.text.split(maxsplit=1)[0].upper()} {total}", rowcount=total)

    def sequence(self, statement: Statement, parameters: Sequence[object] = ()) -> Result:
        """Executes one parsed statement; see `execute`."""
        _check_count(statement, parameters)
        match statement:
            case Select():
                return self._select(statement, parameters)
            case Insert():
                return self._writes.insert(statement, [parameters], self._clock())
            case Delete():
                return self._writes.delete(statement, parameters, self._clock())
            case Update():
                return self._writes.update(statement, parameters, self._clock())
            case Copy():
                return self._writes.copy(statement)
            case CreateSource() | CreateTable() | CreateView() | CreateMaterializedView() | CreateIndex():
                return Result(ddl.create(self._engine, statement))
            case Drop():
                return Result(ddl.drop(self._engine, statement))
            case AlterRename():
                return Result(ddl.rename(self._engine, statement))
            case AlterRetainHistory():
                return Result(ddl.alter_retain_history(self._engine, statement))
            case Explain():
                return self._explain(statement, parameters)
            case Show():
                columns, rows = show(self._peeks, statement, parameters)
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
        relation, plan = self._explained(statement, parameters)
        parts = []
        if statement.stage in ("plan", "logical"):
            parts.append(explain_logical(relation))
        if statement.stage in ("plan", "physical"):
            parts.append(f"{explain_physical(plan)}\n{self._expected(plan)}")
        rows = tuple((line,) for line in "\n\n".join(parts).splitlines())
        return Result("EXPLAIN", (Column("plan", TEXT, False),), rows, len(rows))

    def _expected(self, plan: MaintainedPlan) -> str:
        """Returns how many rows a plan's states and its output will hold, by what its inputs hold now."""
        counts = self._engine.catalog.live_batch_counts()
        expected = estimated_state(plan, lambda id: counts[id][1].rows if id in counts else 0)
        return "rows expected: " + ", ".join(f"{name} about {rows}" for name, rows in expected.items())

    def _explained(self, statement: Explain, parameters: Sequence[object]) -> tuple[Relation, MaintainedPlan]:
        """Returns the optimized query that is to be explained, and how it is, or would be, maintained."""
        definitions, target = self._engine.definitions, statement.target
        if isinstance(target, SqlText):
            bound = bind_query(target, definitions, params=parameters, clock=self._clock())
            relation = optimize(bound.relation)
            shown = bound.relation_type.names
            return relation, lower_to_maintained_plan(relation, shown + relation.relation_type.names[len(shown) :])
        if isinstance(target, Name):
            definition = definitions.definition(object_named(self._engine, target).id)
        else:
            definition = define(target, definitions, default_timeline=self._engine.project.timeline)
        read = definition.relation
        if definition.on is not None:
            read = definition.on.expansion or Get(definition.on.id, definition.relation_type, definition.on.name)
        if read is None:
            raise ProgrammingError(
                f'"{target}" is no view',
                hint="EXPLAIN a view, a materialized view, an index or a query.",
                position=target.offset + 1,
            )
        relation = optimize(read)
        return relation, definition.plan or lower_to_maintained_plan(relation, definition.relation_type.names)


def _only_statement(sql: str) -> Statement:
    statements = parse(sql)
    if len(statements) != 1:
        raise ProgrammingError(
            f"{len(statements)} statements where one is expected", hint="Execute them one at a time."
        )
    return statements[0]


def _check_count(statement: Statement, parameters: Sequence[object]) -> None:
    if len(parameters) != statement.parameters:
        raise UndefinedParameter(
            f"{len(parameters)} values for {statement.parameters} parameters", hint="Give one value for each ?."
        )


def _refuse(statement: Statement) -> NoReturn:
    words = statement.text.split()
    raise NotSupportedError(
        f"{words[0].upper()} is not supported yet",
        detail="Each statement is a transaction of its own." if words[0].upper() in ("BEGIN", "COMMIT") else None,
        hint="See the README for the statements that are.",
        position=1,
    )
