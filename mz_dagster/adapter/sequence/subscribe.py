"""SUBSCRIBE: a query is maintained for as long as somebody listens, or asked again if it has no history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter import introspection
from mz_dagster.adapter.access import InsufficientPrivilege
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.polled_subscription import PolledRows
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.select import reads_of, select
from mz_dagster.adapter.subscribe_envelopes import Envelope
from mz_dagster.adapter.subscriptions import subscribe as maintained_subscription
from mz_dagster.adapter.system_catalogs.shown import named_columns
from mz_dagster.adapter.timestamps import AsOfTime
from mz_dagster.errors import Error, NotSupportedError
from mz_dagster.plan.rewriting import gets_of
from mz_dagster.sql import Select, SqlText, Subscribe, bind_query, bind_time
from mz_dagster.sql.query_clauses import table_query


def subscribe(context: Context, statement: Subscribe, parameters: Sequence[object]) -> Result:
    """Returns the rows of a subscription.

    Raises:
        ActiveTransaction: The block that is open has written, which the subscription would not tell.
    """
    if context.peeks.transaction is not None and context.peeks.transaction.written:
        raise ActiveTransaction(
            "SUBSCRIBE cannot run in a transaction that has written",
            detail="Nobody but the transaction sees what it writes before it commits.",
            hint="COMMIT first.",
        )
    target = statement.target
    query = target if isinstance(target, SqlText) else table_query(target)
    timeline = _timeline_of_own(context, query, parameters)
    if timeline is not None:
        return _polled(context, statement, query, parameters, timeline)
    return maintained_subscription(
        context.peeks, context.names, statement, parameters, context.progress, context.circumstances
    )


def _timeline_of_own(context: Context, query: SqlText, parameters: Sequence[object]) -> str | None:
    """Returns the timeline of a query that reads the catalog's own relations; None of any other query.

    It is that of what the query reads beside them, or else the project's. What does not bind is no such query: the
    error is told by who maintains it.
    """
    engine = context.peeks.engine
    try:
        bound = bind_query(query, context.names, params=parameters, circumstances=context.circumstances())
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


def _polled(
    context: Context, statement: Subscribe, query: SqlText, parameters: Sequence[object], timeline: str
) -> Result:
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
        peeks = replace(context.peeks, facts=context.peeks.facts.anew(), transaction=None)
        return reads_of(context).selected(peeks, query, parameters, time)

    circumstances = context.circumstances()
    bound = bind_query(query, context.names, params=parameters, circumstances=circumstances)
    up_to = None
    if statement.up_to is not None:
        up_to = bind_time(statement.up_to, params=parameters, circumstances=circumstances)
    shown = named_columns(bound.relation_type.columns)
    envelope = Envelope.of(statement.envelope, shown, with_progress=statement.progress)
    stream = PolledRows(
        context.peeks.engine,
        timeline,
        execute,
        envelope,
        snapshot=statement.snapshot,
        up_to=up_to,
        session=context.names.session,
    )
    return Result("SUBSCRIBE", envelope.columns, stream=stream)


def queried(context: Context, query: Select | Subscribe, parameters: Sequence[object]) -> Result:
    """Returns the rows of a query or a subscription."""
    if isinstance(query, Select):
        return select(context, query, parameters)
    return subscribe(context, query, parameters)
