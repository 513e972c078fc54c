"""SELECT: bound, planned unless it was before, peeked, and its rows as the session gets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mz_dagster.adapter import introspection
from mz_dagster.adapter.advisory_calls import AdvisoryCall
from mz_dagster.adapter.backend_signals import Signal
from mz_dagster.adapter.config_calls import ConfigCall
from mz_dagster.adapter.finished_rows import finished_rows
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks, as_of_time
from mz_dagster.adapter.planned_queries import DescribedQuery, PlannedQuery, QueryKey, with_types
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.result import Result, Rows, StreamedRows, user_rows
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence_calls import SequenceCall
from mz_dagster.adapter.system_catalogs.shown import has_names, named_columns, with_names
from mz_dagster.adapter.timestamps import AsOfTime
from mz_dagster.adapter.transaction import ReadOnlyTransaction
from mz_dagster.adapter.variables import Variables
from mz_dagster.compute import StoredRows
from mz_dagster.plan.rewriting import gets_of
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column
from mz_dagster.sql import BoundQuery, Select, SqlText, bind_query
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.finishing import ordered_rows


def select(context: Context, statement: Select, parameters: Sequence[object]) -> Result:
    """Returns the rows of a query."""
    return reads_of(context).select(statement, parameters)


def reads_of(context: Context) -> Reads:
    """Returns what executes the queries of a session."""
    return Reads(context.peeks, context.names, context.variables, context.circumstances)


@dataclass(frozen=True, slots=True)
class Reads:
    """Executes the queries of a session.

    Attributes:
        peeks: Reads plans.
        names: What names denote.
        variables: The session's settings.
        circumstances: Returns what a statement that begins now is to know.
    """

    peeks: Peeks
    names: Names
    variables: Variables
    circumstances: Callable[[], Circumstances]

    def select(self, statement: Select, parameters: Sequence[object]) -> Result:
        """Returns the rows of a query."""
        if (signal := Signal.of(statement.query)) is not None:
            asked = self.select(replace(statement, query=signal.query), parameters)
            return signal.sent(asked, self.peeks.engine.activity, self.circumstances().user)
        if (config := ConfigCall.of(statement.query)) is not None:
            asked = self.select(replace(statement, query=config.query), parameters)
            return config.carried_out(asked, self.variables)
        if (call := SequenceCall.of(statement.query)) is not None:
            block = self.variables.transaction
            if self.variables.read_only if block is None else block.read_only:
                raise ReadOnlyTransaction(
                    f"cannot execute {call.function}() in a read-only transaction", hint="Begin it with READ WRITE."
                )
            asked = self.select(replace(statement, query=call.query), parameters)
            return call.carried_out(asked, self.names, block or self.peeks.engine.catalog)
        if (locking := AdvisoryCall.of(statement.query)) is not None:
            asked = self.select(replace(statement, query=locking.query), parameters)
            locks = self.variables.locks_of(self.peeks.engine.activity.advisory_locks)
            result = locking.carried_out(asked, locks)
            if self.variables.transaction is None:
                locks.end_block()
            return result
        as_of = as_of_time(statement.as_of, parameters, self.circumstances)
        return self.selected(self.peeks, statement.query, parameters, as_of)

    def selected(self, peeks: Peeks, query: SqlText, parameters: Sequence[object], as_of: AsOfTime | None) -> Result:
        """Returns the rows of a query, as peeks read it."""
        plans = peeks.engine.planned_queries
        state = plans.state(peeks.engine.catalog)
        parameters = with_types(parameters)
        key = self._key(peeks, query, parameters)
        planned = None if key is None else plans.planned(key, state)
        found = None
        if planned is None:
            planned = self._planned(peeks, query, parameters, as_of)
            relation = planned.relation
            if key is not None and state is not None and self._is_for_all(peeks, planned.bound):
                plans.keep_planned(key, state, planned)
        elif planned.lookup is None:
            planned.note_tables()
            relation = planned.relation
        else:
            planned.note_tables()
            values = [one for one in parameters if isinstance(one, Literal)]
            relation = planned.lookup.relation(values)
            found = None if as_of is not None or state is None else peeks.look_up(planned.lookup, state, values)
        if found is None:
            found = peeks.peek_planned(relation, as_of)
        finishing, columns = planned.bound.finishing, planned.bound.relation_type.columns
        rows: Rows
        if isinstance(found, StoredRows) and not has_names(columns):
            rows = StreamedRows(finished_rows(found, finishing), partial(user_rows, columns=columns))
        else:
            rows = with_names(peeks.facts, user_rows(ordered_rows(found, finishing), columns), columns)
        return Result(f"SELECT {len(rows)}", planned.columns, rows, len(rows))

    def described(self, statement: Select, parameters: Sequence[object]) -> tuple[Column, ...]:
        """Returns the columns of a query; what it takes open parameters to be is noted in them."""
        if (signal := Signal.of(statement.query)) is not None:
            self.described(replace(statement, query=signal.query), parameters)
            return signal.columns
        if (config := ConfigCall.of(statement.query)) is not None:
            self.described(replace(statement, query=config.query), parameters)
            return config.columns
        if (call := SequenceCall.of(statement.query)) is not None:
            self.described(replace(statement, query=call.query), parameters)
            return call.columns
        if (locking := AdvisoryCall.of(statement.query)) is not None:
            self.described(replace(statement, query=locking.query), parameters)
            return locking.columns
        plans = self.peeks.engine.planned_queries
        state = plans.state(self.peeks.engine.catalog)
        key = self._key(self.peeks, statement.query, parameters)
        known = None if key is None else plans.get(("description", key), state, DescribedQuery)
        if known is not None:
            known.note_types(parameters)
            return known.columns
        bound = bind_query(statement.query, self.names, params=parameters, circumstances=self.circumstances())
        columns = named_columns(bound.relation_type.columns)
        if key is not None and not bound.is_of_moment:
            plans.keep(("description", key), state, DescribedQuery.of(columns, parameters))
        return columns

    def _planned(
        self, peeks: Peeks, query: SqlText, parameters: Sequence[object], as_of: AsOfTime | None
    ) -> PlannedQuery:
        """Binds and plans a query."""
        indexes = QueryIndexes(peeks.engine, peeks.asked_time(as_of), peeks.written)
        bound = bind_query(query, indexes.named(self.names), params=parameters, circumstances=self.circumstances())
        relation = indexes.by_key(peeks.planned(bound.relation))
        if peeks.report is not None:
            peeks.report.relation, peeks.report.planned_ms = relation, peeks.engine.clock.monotonic_ms()
        return PlannedQuery.of(bound, relation, named_columns(bound.relation_type.columns), parameters)

    def _key(self, peeks: Peeks, query: SqlText, parameters: Sequence[object]) -> QueryKey | None:
        """Returns under what the plan of a query is kept; None if it is none for others, or is to be told of."""
        if (
            peeks.report is not None
            or not self.names.is_shared
            or (peeks.transaction is not None and peeks.transaction.written)
        ):
            return None
        return QueryKey.of(query, parameters, self.names.reading(self.variables.zone))

    @staticmethod
    def _is_for_all(peeks: Peeks, bound: BoundQuery) -> bool:
        """Returns whether the plan of a query is the same until something is defined otherwise."""
        if bound.is_of_moment:
            return False
        named = {*bound.depends, *(get.id for get in gets_of(bound.relation))}
        if any(introspection.by_id(id) is not None for id in named):
            return False
        return not QueryIndexes(peeks.engine).may_serve(named)
