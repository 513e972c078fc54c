"""What is stored and held: times, frontiers, batches, arrangements, leases and capabilities."""

from __future__ import annotations

from collections.abc import Iterable

from mz_dagster.adapter.introspection.relation import Row, relation, time_of
from mz_dagster.adapter.system_catalogs import Facts
from mz_dagster.catalog import NO_ROWS


def _timelines(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.timelines():
        yield (one.name, one.lattice, one.read_ts, one.write_ts)


def _leaders(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.leaders():
        yield (one.timeline, one.epoch, one.holder, one.until_ms)


def _ticks(facts: Facts) -> Iterable[Row]:
    for timeline in facts.catalog.timelines():
        for tick in facts.catalog.ticks(timeline.name):
            yield (timeline.name, tick)


def _frontiers(facts: Facts) -> Iterable[Row]:
    names = {one.id: one.name for one in facts.catalog.objects()}
    for row in facts.catalog.collections():
        yield (row.id, names.get(row.id), row.timeline, time_of(row.since), time_of(row.upper), row.reason)


def _lags(facts: Facts) -> Iterable[Row]:
    names = {one.id: one.name for one in facts.catalog.objects()}
    read = {one.name: one.read_ts for one in facts.catalog.timelines()}
    for row in facts.catalog.collections():
        if row.timeline is not None and not row.upper.is_empty:
            behind = max(0, read[row.timeline] - (row.upper.only - 1))
            yield (row.id, names.get(row.id), row.timeline, behind if row.is_hydrated else None)


def _shards(facts: Facts) -> Iterable[Row]:
    rows = facts.catalog.collections()
    batches = facts.catalog.live_batches(tuple(row.id for row in rows))
    for row in rows:
        stats = [batch.stats for batch in batches[row.id]]
        yield (
            row.id,
            row.shard,
            len(stats),
            sum(one.rows for one in stats),
            sum(one.errors for one in stats),
            sum(one.files for one in stats),
            sum(one.bytes for one in stats),
        )


def _batches(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.all_batches():
        stats = one.stats
        yield (
            one.id,
            one.collection,
            time_of(one.lower),
            time_of(one.upper),
            one.state.value,
            stats.rows,
            stats.errors,
            stats.files,
            stats.bytes,
            stats.inlined is not None,
        )


def _arrangements(facts: Facts) -> Iterable[Row]:
    counts = facts.catalog.live_batch_counts()
    for one in facts.catalog.objects():
        if one.kind == "arrangement" or (one.kind == "index" and one.has_collection):
            names = one.relation_type.names
            key = ", ".join(names[place] for place in one.options["key"])
            batches, stats = counts.get(one.id, (0, NO_ROWS))
            served = one.owner or facts.inspection.indexed(one.id)
            yield (one.id, one.kind, served, key, batches, stats.rows, stats.bytes)


def _replicas(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.replicas():
        yield (one.name, one.holder, one.engine, one.started_ms, one.until_ms)


def _leases(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.leases():
        yield (one.id, one.kind, one.holder, one.until_ms, one.is_live, one.batches)


def _capabilities(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.capabilities():
        yield (one.label, one.collection, one.right, time_of(one.frontier), one.holder, one.until_ms, one.is_live)


RELATIONS = (
    relation(
        "mz_internal",
        "mz_timelines",
        "The timelines with the times of their oracles.",
        """
        timeline  text    its name
        lattice   text    of what its times are
        read_ts   bigint  a strict serializable read that begins now is at this time or later
        write_ts  bigint  the last time that was handed out for a write
        """,
        _timelines,
    ),
    relation(
        "mz_internal",
        "mz_leaders",
        "Who steps which timeline now.",
        """
        timeline    text    the timeline
        epoch       bigint  how often it was led so far
        holder      text    who leads it
        expires_at  bigint  when the lease ends unless it is renewed, in milliseconds since 1970
        """,
        _leaders,
    ),
    relation(
        "mz_internal",
        "mz_replicas",
        "Processes that compute beside the leaders (`mz-dagster replica`), as far as they live.",
        """
        name        text    what it is called
        holder      text    who it is
        engine      text    who computes in it: `auto`, `local` or `spark`
        started_at  bigint  since when, in milliseconds since 1970
        expires_at  bigint  when it no longer counts unless it says that it is there, likewise
        """,
        _replicas,
    ),
    relation(
        "mz_internal",
        "mz_ticks",
        "The times at which timelines were closed.",
        """
        timeline  text    the timeline
        tick      bigint  the time
        """,
        _ticks,
    ),
    relation(
        "mz_internal",
        "mz_frontiers",
        "From when until before when each collection can be read.",
        """
        object_id       text     the collection
        name            text?    its name; NULL of an arrangement
        timeline        text?    its timeline; NULL if it never changes
        read_frontier   bigint?  the first time at which it can be read; NULL once it is dropped
        write_frontier  bigint?  the first time at which it is not known yet; NULL if it is closed for good
        failure         text?    why it stays behind, if that is not because of what it is computed from
        """,
        _frontiers,
    ),
    relation(
        "mz_internal",
        "mz_oracle_lag",
        "How far each collection is behind its timeline's oracle.",
        """
        object_id  text     the collection
        name       text?    its name; NULL of an arrangement
        timeline   text     its timeline
        lag        bigint?  how long the last time at which it is known is before the oracle's; NULL before it has any
        """,
        _lags,
    ),
    relation(
        "mz_internal",
        "mz_shards",
        "What is stored of each collection.",
        """
        object_id  text    the collection
        folder     text    its folder below the project's storage
        batches    bigint  how many batches it consists of
        updates    bigint  how many updates they have
        errors     bigint  how many of these are of the error part
        files      bigint  in how many files
        bytes      bigint  and bytes
        """,
        _shards,
    ),
    relation(
        "mz_internal",
        "mz_batches",
        "The batches of all collections.",
        """
        id         bigint   its id, which no other batch ever has
        object_id  text     the collection
        lower      bigint?  the first time of its updates
        upper      bigint?  the first time after them; NULL for the end of all times
        state      text     `live`; `writing` before it is sealed; `replaced` or `dead` until it is swept
        updates    bigint   how many updates it has
        errors     bigint   how many of these are of the error part
        files      bigint   in how many files
        bytes      bigint   and bytes
        inlined    boolean  whether they are in the catalog, and in no file
        """,
        _batches,
    ),
    relation(
        "mz_internal",
        "mz_arrangement_sizes",
        "The arrangements of plans, and the indexes that are copies.",
        """
        object_id  text    the arrangement
        type       text    `arrangement` or `index`
        served_id  text    the object that it serves, or that it is an index on
        key        text    its key
        batches    bigint  how many batches it consists of
        records    bigint  how many updates they have
        size       bigint  and bytes
        """,
        _arrangements,
    ),
    relation(
        "mz_internal",
        "mz_leases",
        "The leases by which processes read and write batches.",
        """
        id          bigint   its number among those of its kind
        kind        text     `read` or `write`
        holder      text     who has it
        expires_at  bigint   when it ends unless it is renewed, in milliseconds since 1970
        live        boolean  whether it counts: it has not run out, and its process is not known to be dead
        batches     bigint   how many batches it keeps from being swept
        """,
        _leases,
    ),
    relation(
        "mz_internal",
        "mz_capabilities",
        "What holds frontiers back, but for retention.",
        """
        capability  text?    its number, no part of its secret; NULL of what objects hold on each other
        object_id   text     the collection
        kind        text     `read` or `write`
        frontier    bigint?  the time that it holds
        holder      text     who has it
        expires_at  bigint?  when it ends unless it is renewed, in milliseconds since 1970; NULL for never
        live        boolean  whether it still holds anything back
        """,
        _capabilities,
    ),
)
