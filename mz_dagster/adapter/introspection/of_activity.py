"""What is going on: sessions, transactions, subscriptions and steps of this process; sources and errors."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mz_dagster.adapter.activity import moment
from mz_dagster.adapter.introspection.relation import Row, relation
from mz_dagster.adapter.system_catalogs import Facts


def _sessions(facts: Facts) -> Iterable[Row]:
    for id, began_ms, one in facts.inspection.activity.sessions():
        known_by = (None, None) if one.client is None else (one.client.process_id, one.client.address)
        yield (id, known_by[0], one.role, known_by[1], one.application, moment(began_ms))


def _transactions(facts: Facts) -> Iterable[Row]:
    for id, _, session in facts.inspection.activity.sessions():
        if (one := session.transaction) is not None:
            state = "failed" if one.is_failed else "open"
            began = moment(one.began_ms)
            yield (id, state, one.isolation, one.read_only, began, one.timeline, one.time, one.written)


def _subscriptions(facts: Facts) -> Iterable[Row]:
    for id, began_ms, one in facts.inspection.activity.subscriptions():
        yield (id, one.session, one.collection, moment(began_ms), one.frontier)


def _steps(facts: Facts) -> Iterable[Row]:
    for one in facts.inspection.activity.steps():
        report = one.report
        advanced = sum(1 for step in report.collections if step.outcome.value == "advanced")
        yield (
            one.number,
            report.timeline,
            report.tick,
            moment(one.ended_ms),
            report.engine_ms,
            advanced,
            len(report.failures),
        )


def _step_collections(facts: Facts) -> Iterable[Row]:
    for one in facts.inspection.activity.steps():
        for step in one.report.collections:
            yield (
                one.number,
                step.id,
                step.name,
                step.outcome.value,
                step.lower,
                step.upper,
                step.rows_in,
                step.rows_read,
                step.stats.rows,
                step.stats.bytes,
                step.spark_ms,
                step.engine or None,
                step.reason or None,
            )


def _step_operators(facts: Facts) -> Iterable[Row]:
    for one in facts.inspection.activity.steps():
        for step in one.report.collections:
            for place, cost in enumerate(step.costs, start=1):
                yield (one.number, step.id, place, cost.operator, "this process", cost.ms, cost.updates)
            if step.spark_because:
                place = len(step.costs) + 1
                yield (one.number, step.id, place, step.operators, "Spark", step.spark_ms, None)


def _sources(facts: Facts) -> Iterable[Row]:
    catalog = facts.catalog
    names = {one.id: one.name for one in catalog.objects("source")}
    for row in catalog.collections():
        if row.id not in names:
            continue
        upper = None if row.upper.is_empty else row.upper.only
        counts = catalog.bound_counts(row.id, upper)
        newest, last = catalog.last_binding(row.id), catalog.last_binding(row.id, upper)
        waiting = None if catalog.is_read_only else facts.inspection.waiting(row.id)
        yield (
            row.id,
            names[row.id],
            counts.sealed,
            counts.bound - counts.sealed,
            waiting if isinstance(waiting, int) else None,
            counts.newest,
            upper,
            None if last is None else json.dumps(last.offset),
            None if newest is None else json.dumps(newest.offset),
            waiting if isinstance(waiting, str) else row.poll_failure,
        )


def _sink_versions(facts: Facts) -> Iterable[Row]:
    yield from facts.inspection.sink_versions()


def _errors(facts: Facts) -> Iterable[Row]:
    objects = {one.id: one for one in facts.catalog.objects() if one.kind != "arrangement"}
    for row in facts.catalog.collections():
        if row.id in objects:
            for text, count in sorted(facts.inspection.errors(row).items()):
                code, _, message = text.partition(" ")
                yield (row.id, objects[row.id].name, code, message, count)


RELATIONS = (
    relation(
        "mz_internal",
        "mz_sessions",
        "The sessions of this process.",
        """
        id                bigint       its number in this process
        connection_id     bigint?      by what number its client could cancel it; NULL of one that Python opened here
        role              text         whose it is
        client_ip         text?        where its client is; NULL of one that Python opened here
        application_name  text         what its client calls itself
        connected_at      timestamptz  when it began
        """,
        _sessions,
    ),
    relation(
        "mz_internal",
        "mz_transactions",
        "The transaction blocks that are open in this process.",
        """
        session_id       bigint       whose it is
        state            text         `open`, or `failed` until it is rolled back
        isolation        text         its isolation level
        read_only        boolean      whether it may not write
        began_at         timestamptz  when it began
        timeline         text?        the timeline that it reads and writes; NULL before it has chosen one
        read_timestamp   bigint?      the time at which it reads; NULL before it has read
        tables_written   bigint       how many tables it will write
        """,
        _transactions,
    ),
    relation(
        "mz_internal",
        "mz_subscriptions",
        "The subscriptions of this process.",
        """
        id          bigint       its number in this process
        session_id  bigint?      whose it is
        object_id   text?        the collection that it listens to; NULL of one that executes its query every second
        created_at  timestamptz  when it began
        frontier    bigint?      all before this time was told; NULL before anything was
        """,
        _subscriptions,
    ),
    relation(
        "mz_internal",
        "mz_steps",
        "The newest 256 steps that this process has made.",
        """
        id           bigint       its number in this process
        timeline     text         the timeline
        tick         bigint       the time to which it went
        finished_at  timestamptz  when it ended
        duration_ms  double       how long it took
        advanced     bigint       how many collections it computed
        failed       bigint       how many failed
        """,
        _steps,
    ),
    relation(
        "mz_internal",
        "mz_step_collections",
        "What those steps did with each collection.",
        """
        step_id        bigint  the step
        object_id      text    the collection
        name           text    what to call it
        outcome        text    `advanced`; `idle` or `current` if there was nothing to do; `blocked` or `failed`
        lower          bigint  where it was known up to before
        upper          bigint  and after
        rows_in        bigint  how many updates came to what it is defined over
        rows_read      bigint  how many rows it read of its inputs and its own state
        rows_written   bigint  how many updates it wrote
        bytes_written  bigint  in how many bytes
        duration_ms    double  how long that took
        engine         text?   who computed it, and why if it was Spark; NULL if nobody had to
        reason         text?   why it did not advance
        """,
        _step_collections,
    ),
    relation(
        "mz_internal",
        "mz_step_operators",
        "What each operator of their plans cost.",
        """
        step_id      bigint   the step
        object_id    text     the collection
        position     bigint   its place in the order in which they were computed: inputs come before what reads them
        operator     text     its name; what Spark computes is one plan to it, and one row here
        engine       text     `this process` or `Spark`
        duration_ms  double   how long it took, without its inputs
        rows_out     bigint?  how many updates it made; NULL of Spark's
        """,
        _step_operators,
    ),
    relation(
        "mz_internal",
        "mz_source_statistics",
        "What each source contains, and what there is that it does not contain yet. Asks them, as a poll does.",
        """
        id               text     the source
        name             text?    its name
        bindings_read    bigint   how many files, or offsets, it contains, and how often its errors were dropped
        bindings_unread  bigint   how many are bound to ticks that no step has closed yet
        waiting          bigint?  how many there are that no tick binds; NULL if that cannot be told
        bound_at         bigint?  the newest tick at which anything is bound
        write_frontier   bigint?  the first time at which it is not known yet
        offset_read      text?    up to where it contains what it reads, of one that has offsets: JSON of its transport
        offset_bound     text?    up to where it is bound
        failure          text?    why it cannot be told what is there
        """,
        _sources,
    ),
    relation(
        "mz_internal",
        "mz_sink_versions",
        "Which versions of what sinks write belong together. Asks what they have written.",
        """
        object_id       text     the sink
        name            text     its name
        timeline        text     the timeline of its times
        place           text     where it writes: a folder or a URI
        tick            bigint?  the time at which it stands; NULL before it has written anything
        version         bigint?  the version that has what its view held then; NULL if that cannot be told
        common_tick     bigint?  the latest time to which all sinks of the timeline came; NULL if one has none
        common_version  bigint?  the version that has what its view held then; NULL if there is none any more
        """,
        _sink_versions,
    ),
    relation(
        "mz_internal",
        "mz_errors",
        "The errors of the data that each collection contains, at the latest time at which it is known. Reads them.",
        """
        object_id  text    the collection
        name       text?   its name
        code       text    the error's SQLSTATE
        message    text    what it says
        count      bigint  how often it is there
        """,
        _errors,
    ),
)
