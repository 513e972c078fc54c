"""SELECT and SUBSCRIBE of a session: bound, executed, and their rows as the session gets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter import introspection
from mz_dagster.adapter.access import InsufficientPrivilege
from mz_dagster.adapter.backend_signals import Signal
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.config_calls import ConfigCall
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks, as_of_time
from mz_dagster.adapter.planned_queries import DescribedQuery, PlannedQuery, QueryKey, with_types
from mz_dagster.adapter.polled_subscription import PolledRows
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.result import Result, user_rows
from mz_dagster.adapter.subscribe_envelopes import Envelope
from mz_dagster.adapter.subscriptions import subscribe
from mz_dagster.adapter.system_catalogs.shown import named_columns, with_names
from mz_dagster.adapter.timestamps import AsOfTime
from mz_dagster.adapter.variables import Variables
from mz_dagster.compute import Progress
from mz_dagster.errors import Error, NotSupportedError
from mz_dagster.plan.rewriting import gets_of
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column
from mz_dagster.sql import (
    BoundQuery,
    CopyToClient,
    CopyToFile,
    Name,
    Select,
    SqlText,
    Subscribe,
    bind_query,
    bind_time,
)
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.finishing import ordered_rows
from mz_dagster.sql.query_clauses import table_query


@dataclass(frozen=True, slots=True)
class Reads:
    """Executes what a session reads.

    Attributes:
        peeks: Reads plans.
        names: What names denote.
        variables: The session's settings.
        circumstances: Returns what a statement that begins now is to know.
        progress: Receives the story of what takes long.
    """

    peeks: Peeks
    names: Names
    variables: Variables
    circumstances: Callable[[], Circumstances]
    progress: Progress

    def select(self, statement: Select, parameters: Sequence[object]) -> Result:
        """Returns the rows of a query."""
        if (signal := Signal.of(statement.query)) is not None:
            asked = self.select(replace(statement, query=signal.query), parameters)
            return signal.sent(asked, self.peeks.engine.activity, self.circumstances().user)
        if (config := ConfigCall.of(statement.query)) is not None:
            asked = self.select(replace(statement, query=config.query), parameters)
            return config.carried_out(asked, self.variables)
        return self._selected(self.peeks, statement.query, parameters, as_of_time(statement.as_of, parameters))

    def subscribe(self, statement: Subscribe, parameters: Sequence[object]) -> Result:
        """Returns the rows of a subscription.

        Raises:
            ActiveTransaction: The block that is open has written, which the subscription would not tell.
        """
        if self.peeks.transaction is not None and self.peeks.transaction.written:
            raise ActiveTransaction(
                "SUBSCRIBE cannot run in a transaction that has written",
                detail="Nobody but the transaction sees what it writes before it commits.",
                hint="COMMIT first.",
            )
        target = statement.target
        query = target if isinstance(target, SqlText) else table_query(target)
        timeline = self._timeline_of_own(query, parameters)
        if timeline is not None:
            return self._polled(statement, query, parameters, timeline)
        return subscribe(self.peeks, self.names, statement, parameters, self.progress)

    def _selected(self, peeks: Peeks, query: SqlText, parameters: Sequence[object], as_of: AsOfTime | None) -> Result:
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
        rows = ordered_rows(found, planned.bound.finishing)
        columns = planned.bound.relation_type.columns
        shown = with_names(peeks.facts, user_rows(rows, columns), columns)
        return Result(f"SELECT {len(rows)}", planned.columns, shown, len(rows))

    def described(self, statement: Select, parameters: Sequence[object]) -> tuple[Column, ...]:
        """Returns the columns of a query; what it takes open parameters to be is noted in them."""
        if (signal := Signal.of(statement.query)) is not None:
            self.described(replace(statement, query=signal.query), parameters)
            return signal.columns
        if (config := ConfigCall.of(statement.query)) is not None:
            self.described(replace(statement, query=config.query), parameters)
            return config.columns
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
        indexes = QueryIndexes(peeks.engine, peeks.asked_time(as_of))
        bound = bind_query(query, indexes.named(self.names), params=parameters, circumstances=self.circumstances())
        relation = indexes.by_key(peeks.planned(bound.relation))
        return PlannedQuery.of(bound, relation, named_columns(bound.relation_type.columns), parameters)

    def _key(self, peeks: Peeks, query: SqlText, parameters: Sequence[object]) -> QueryKey | None:
        """Returns under what the plan of a query is kept; None if it is none for others."""
        if not self.names.is_shared or (peeks.transaction is not None and peeks.transaction.written):
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

    def _timeline_of_own(self, query: SqlText, parameters: Sequence[object]) -> str | None:
        """Returns the timeline of a query that reads the catalog's own relations; None of any other query.

        It is that of what the query reads beside them, or else the project's. What does not bind is no such query: the
        error is told by who maintains it.
        """
        engine = self.peeks.engine
        try:
            bound = bind_query(query, self.names, params=parameters, circumstances=self.circumstances())
        except InsufficientPrivilege:
            raise
        except Error:
            return None
        read = {get.id for get in gets_of(bound.relation)}
        if not any(introspection.by_id(id) is not None for id in read):
            return None
        state = engine.catalog.state()
        timelines = {row.timeline for id in read if (row := state.collection(id)) is not None}
        return min(filter(None, timelines), default=engine.project.timeline)

    def _polled(self, statement: Subscribe, query: SqlText, parameters: Sequence[object], timeline: str) -> Result:
        """Returns the rows of a subscription to what has no history.

        Raises:
            NotSupportedError: They are asked for as of a time.
        """
        if statement.as_of is not None:
            raise NotSupportedError(
                "a subscription to the catalog's own relations has no AS OF",
                detail="They say what is there now, and nothing of any other time.",
                hint="Leave AS OF away.",
            )

        def execute(time: AsOfTime) -> Result:
            peeks = replace(self.peeks, facts=self.peeks.facts.anew(), transaction=None)
            return self._selected(peeks, query, parameters, time)

        bound = bind_query(query, self.names, params=parameters, circumstances=self.circumstances())
        shown = named_columns(bound.relation_type.columns)
        envelope = Envelope.of(statement.envelope, shown, with_progress=statement.progress)
        stream = PolledRows(
            self.peeks.engine,
            timeline,
            execute,
            envelope,
            snapshot=statement.snapshot,
            up_to=None if statement.up_to is None else bind_time(statement.up_to, params=parameters),
            session=self.names.session,
        )
        return Result("SUBSCRIBE", envelope.columns, stream=stream)


def copied_query(statement: CopyToClient | CopyToFile) -> Select | Subscribe:
    """Returns the query of what a COPY writes."""
    source = statement.source
    if not isinstance(source, Name):
        return source
    return Select(statement.text, statement.offset, 0, table_query(source, statement.columns), None)
