"""SUBSCRIBE: what an object or a query contains at a time, and every later change, for as long as somebody listens.

    session    binds the statement, chooses the time as a SELECT does, and holds the collection readable from there on
    stream     each time that somebody asks for rows: makes readable what was acknowledged (`Engine.reach`, which steps
               if nobody else does), and takes from the collection's batches what is new (`storage.Subscription`)
    envelope   tells the changes of one time after the other (`subscribe_envelopes`)

What is a collection is listened to where it lies. A query, and a view that is not maintained, becomes a materialized
view without a name that is the subscription's own: it is dropped when that ends, and by the next sweep if its process
was killed. Nothing is computed while nobody asks, and a slow reader holds back nothing but history: the capability
follows what was told.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, repeat
from operator import itemgetter

import pyarrow as pa

from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks, as_of_time
from mz_dagster.adapter.plan_limit import ensure_within_limit
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.result import Result, Rows, user_rows
from mz_dagster.adapter.subscribe_envelopes import Envelope, Row
from mz_dagster.adapter.system_catalogs.shown import named_columns
from mz_dagster.adapter.timestamps import AsOfTime
from mz_dagster.adapter.watched_rows import WatchedRows
from mz_dagster.catalog import CollectionRow, FrontierNotHeld, ReadCapability, StillNeeded, UnknownObject
from mz_dagster.compute import Progress
from mz_dagster.compute.snapshot.peek import CollectionHasErrors, cells
from mz_dagster.errors import OperationalError, one_line
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.scalars.types import Column
from mz_dagster.scalars.values import from_stored
from mz_dagster.sql import (
    CreateMaterializedView,
    Name,
    SqlText,
    Subscribe,
    bind_query,
    bind_time,
    parse,
)
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.errors import InvalidParameterValue, UnsupportedForm, WrongObjectKind
from mz_dagster.sql.query_clauses import table_query
from mz_dagster.storage import SubscribeDeadline, Subscription, Updates
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import DIFF, ERROR, TIME

logger = logging.getLogger("mz_dagster.subscribe")

_MOVE_S = 1.0
"""How often time moves on, for what changes with the clock or is at rest, and the capability follows, in seconds."""
_TRIES = 10


def subscribe(
    peeks: Peeks,
    names: Names,
    statement: Subscribe,
    parameters: Sequence[object],
    progress: Progress,
    circumstances: Callable[[], Circumstances],
) -> Result:
    """Returns the rows of a subscription, as a stream.

    Raises:
        UndefinedTable: There is no object of the name.
        WrongObjectKind: It is an index, whose rows are those of what it is on.
        NoValidTimestamp: It cannot be read at the time asked for.
        UndefinedColumn: A key or an order names a column that there is none of.
    """
    as_of = as_of_time(statement.as_of, parameters, circumstances)
    up_to = None
    if statement.up_to is not None:
        up_to = bind_time(statement.up_to, params=parameters, circumstances=circumstances())
    with ExitStack() as held:
        block = None if peeks.transaction is None else peeks.transaction.as_of
        id = _collection(names, statement, block or as_of, held, progress)
        row = names.engine.catalog.collection(id)
        envelope = Envelope.of(statement.envelope, row.shown, with_progress=statement.progress)
        time, capability = _held_at(peeks, row, as_of, held)
        if _is_constant(names.engine, id):
            up_to = min(time + 1, time + 1 if up_to is None else up_to)
        if up_to is not None and up_to < time:
            assert statement.up_to is not None
            raise InvalidParameterValue(
                f"UP TO {up_to} is before the time of the subscription, {time}", position=statement.up_to.offset + 1
            )
        subscription = Subscription(
            names.engine.catalog,
            names.engine.shards,
            capability,
            time,
            snapshot=statement.snapshot,
            up_to=up_to,
            holder=names.engine.holder,
            poll_s=0.0,
            deadline_s=0.0,
            ttl_ms=names.engine.project.lease_ms,
            clock=names.engine.clock,
        )
        stream = SubscribedRows(names.engine, row, subscription, capability, envelope, up_to, held.pop_all())
        stream.note(names.session)
    return Result("SUBSCRIBE", envelope.columns, stream=stream)


def subscribed_columns(names: Names, statement: Subscribe, circumstances: Circumstances) -> tuple[Column, ...]:
    """Returns the columns of a subscription, without beginning it; raises as `subscribe`."""
    target = statement.target
    query = target if isinstance(target, SqlText) else table_query(target)
    columns = bind_query(query, names, circumstances=circumstances).relation_type.columns
    return Envelope.of(statement.envelope, named_columns(columns), with_progress=statement.progress).columns


def _is_constant(engine: Engine, id: GlobalId) -> bool:
    """Returns whether nothing will ever change what a collection contains."""
    definition = engine.definitions.definition(id)
    return definition.plan is not None and not definition.reads and not definition.is_temporal


def _collection(
    names: Names, statement: Subscribe, as_of: AsOfTime | None, held: ExitStack, progress: Progress
) -> GlobalId:
    """Returns the collection that is listened to, which may be made for it."""
    target = statement.target
    if isinstance(target, Name):
        row = names.readable(target)
        if row.kind == "index":
            raise WrongObjectKind(
                f'"{target}" is an index', hint="Subscribe to what it is on.", position=target.offset + 1
            )
        if row.has_collection:
            return row.id
        time = None if as_of is None or as_of.at_least else as_of.time
        index = QueryIndexes(names.engine, time).of_view(row.id)
        if index is not None:
            return index.id
        query = table_query(target)
    else:
        query = target
        if statement.parameters:
            raise UnsupportedForm(
                "a parameter in the query of SUBSCRIBE is not supported",
                detail="The query is maintained under its own text.",
                hint="Write the value into it.",
                position=target.offset + 1,
            )
    return _maintained(names, query, statement.offset, as_of, held, progress)


def _maintained(
    names: Names, query: SqlText, offset: int, as_of: AsOfTime | None, held: ExitStack, progress: Progress
) -> GlobalId:
    """Creates a materialized view without a name, of the session's own; it is dropped with what is held."""
    engine = names.engine
    text = f"CREATE TEMPORARY MATERIALIZED VIEW mz_subscribed AS {query.text}"
    (statement,) = parse(text)
    assert isinstance(statement, CreateMaterializedView)
    statement = replace(statement, query=query, offset=offset)
    definition = define(statement, names, default_timeline=engine.project.timeline)
    time = None if as_of is None else as_of.time
    planned = QueryIndexes(engine, time).over(definition, statement, names)
    ensure_within_limit(planned, engine.project)
    new = engine.definitions.new_objects(planned, as_of=time)
    created = engine.catalog.create_objects(names.kept(new))[-1]
    held.callback(_drop, engine, created.id)
    if created.timeline is not None:
        engine.reach(
            created.timeline,
            engine.catalog.read_ts(created.timeline),
            frozenset({created.id}),
            deadline_s=engine.project.hydration_deadline_ms / 1000,
            progress=progress,
        )
    return created.id


def _drop(engine: Engine, id: GlobalId) -> None:
    try:
        with suppress(UnknownObject, StillNeeded):
            engine.catalog.drop_object(id)
    except OperationalError as failure:
        logger.warning("could not drop what a subscription maintained, until its lease runs out: %s", failure)


def _held_at(peeks: Peeks, row: CollectionRow, as_of: AsOfTime | None, held: ExitStack) -> tuple[int, ReadCapability]:
    """Returns the time of the first rows, and a capability that holds the collection readable there."""
    catalog, ttl_ms = peeks.engine.catalog, peeks.engine.project.lease_ms
    for attempt in range(1, _TRIES + 1):
        time = peeks.time_for(row.id, as_of)
        try:
            frontier = Antichain.of(row.since.lattice, time)
            capability = catalog.acquire_read(
                row.id, frontier, holder=f"SUBSCRIBE of {peeks.engine.holder}", ttl_ms=ttl_ms
            )
        except FrontierNotHeld:
            if attempt == _TRIES or (as_of is not None and not as_of.at_least):
                raise
            continue
        held.callback(_give_back, peeks.engine, capability.token)
        held.enter_context(Renewal(partial(catalog.renew, capability.token, ttl_ms), every_ms=ttl_ms // 3))
        return time, capability
    raise AssertionError("the last attempt returns or raises")


def _give_back(engine: Engine, token: str) -> None:
    try:
        engine.catalog.drop(token)
    except OperationalError as failure:
        logger.warning("could not give back what a subscription held, until its lease runs out: %s", failure)


class SubscribedRows(WatchedRows):
    """The rows of a subscription; see `RowStream`.

    Args:
        engine: The project.
        row: The collection that is listened to.
        subscription: Its updates.
        capability: By what right.
        envelope: How they are told.
        up_to: The first time that is not told; None to go on for good.
        held: What is let go of at the end.
    """

    def __init__(
        self,
        engine: Engine,
        row: CollectionRow,
        subscription: Subscription,
        capability: ReadCapability,
        envelope: Envelope,
        up_to: int | None,
        held: ExitStack,
    ) -> None:
        super().__init__(engine.clock)
        self._engine = engine
        self._row = row
        self._subscription = subscription
        self._capability = capability
        self._envelope = envelope
        self._up_to = up_to
        self._held = held
        self._is_temporal = engine.definitions.is_temporal(row.id)
        self._seen: int | None = None
        self._moved_ms = -math.inf
        self._not_polled: str | None = None
        self._closing = threading.Lock()
        self._number: int | None = None
        self.session: int | None = None
        self.frontier: int | None = None

    @property
    def collection(self) -> GlobalId:
        """What it listens to."""
        return self._row.id

    def note(self, session: int | None) -> None:
        """Has the engine know of it, and of whose it is."""
        self.session = session
        self._number = self._engine.activity.begin_subscription(self)

    def close(self) -> None:
        """Ends the subscription, and lets go of all that it held."""
        with self._closing:
            self._is_closed = True
            if self._number is not None:
                self._engine.activity.end(self._number)
            self._subscription.close()
            self._held.close()

    def _check_not_dropped(self) -> None:
        """Returns unless the end is none that was asked for.

        Raises:
            UnknownObject: What was listened to was dropped.
        """
        if self._engine.catalog.object(self._row.id).dropped:
            raise UnknownObject(self._row.id, dropped=True)

    def _look(self) -> Rows | None:
        found = self._new_rows()
        if found is None:
            self._check_not_dropped()
            return None
        return user_rows(found, self._envelope.columns) if found else ()

    def _new_rows(self) -> list[Row] | None:
        """Returns the rows of what is new, if somebody has written since, or it is time to look; None at the end."""
        engine, timeline = self._engine, self._row.timeline
        now_ms = engine.clock.monotonic_ms()
        is_due = now_ms - self._moved_ms >= _MOVE_S * 1000
        if timeline is not None:
            if is_due:
                self._poll(timeline)
            written = engine.catalog.read_ts(timeline)
            if written == self._seen and not is_due:
                return []
            self._reach(timeline, written, is_due)
            self._seen = written
        found, frontier = self._next_messages()
        if is_due and frontier is not None:
            self._follow(frontier)
        if is_due:
            self._moved_ms = now_ms
        return found

    def _poll(self, timeline: str) -> None:
        """Has the sources asked what is new, as a SELECT does; one that cannot tell holds up what it would tell."""
        engine, failure = self._engine, None
        if engine.project.polls_for_reads and not engine.catalog.is_read_only:
            try:
                engine.poll_for(timeline, [self._row.id])
            except OperationalError as error:
                failure = one_line(error)
        if failure is not None and failure != self._not_polled:
            logger.warning("a subscription goes on without what is new in a source: %s", failure)
        self._not_polled = failure

    def _reach(self, timeline: str, written: int, is_due: bool) -> None:
        """Makes readable what was acknowledged, and now and then what has come by the clock."""
        engine, time = self._engine, written
        if is_due and (self._is_temporal or (self._up_to is not None and self._up_to > written + 1)):
            time = engine.reading_time(timeline)
        if self._up_to is not None:
            time = min(time, self._up_to - 1)
        row = engine.catalog.collection(self._row.id)
        if row.upper.less_equal(time):
            if time > written:
                engine.catalog.apply_write(timeline, time)  # what is written from here on is later
            engine.reach(timeline, time, frozenset({row.id}))

    def _next_messages(self) -> tuple[list[Row] | None, Antichain[int] | None]:
        """Returns the rows of all messages that there are, None if there will be no more; and up to where they go."""
        rows: list[Row] = []
        frontier: Antichain[int] | None = None
        try:
            for message in self._subscription:
                if isinstance(message, Updates):
                    rows.extend(self._rows(message.frame))
                    continue
                frontier = message.frontier
                self.frontier = None if frontier.is_empty else frontier.only
                if self._envelope.with_progress and not frontier.is_empty:
                    rows.append(self._envelope.progress(frontier.only))
        except SubscribeDeadline:
            return rows, frontier
        return rows or None, None

    def _rows(self, frame: pa.Table) -> Iterator[Row]:
        """Yields the rows that tell updates, time by time.

        Raises:
            CollectionHasErrors: An error is among them.
        """
        row = self._row
        errors = [one for one in frame.column(ERROR).to_pylist() if one is not None]
        if errors:
            raise CollectionHasErrors(min(errors), len(errors) - 1)
        places = row.places or range(len(row.columns))
        types = [row.columns[i].type for i in places]
        columns = [cells(frame.column(row.columns[i].name)) for i in places]
        data = [[from_stored(cell, type_) for cell in column] for column, type_ in zip(columns, types, strict=True)]
        updates = zip(
            frame.column(TIME).to_pylist(),
            zip(*data, strict=True) if data else repeat(()),
            frame.column(DIFF).to_pylist(),
            strict=False,
        )
        by_time = sorted(updates, key=itemgetter(0))
        for time, there in groupby(by_time, key=itemgetter(0)):
            yield from self._envelope.rows(time, [(cells_, diff) for _, cells_, diff in there])

    def _follow(self, frontier: Antichain[int]) -> None:
        """Lets history go that was told, but for the last time, from which on updates can be told."""
        if not frontier.is_empty:
            told = Antichain.of(self._row.since.lattice, frontier.only - 1)
            self._engine.catalog.downgrade(self._capability.token, told)
