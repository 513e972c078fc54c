"""Collections: the TVC map from GlobalIds to since, upper and shard, and logical compaction.

Frontiers only advance. `upper` moves in `batches` by a seal, or where write capabilities hold it by `settle_upper`;
`since` moves here, to what retention and capabilities allow:

    since'(c) = join(since(c), meet of
        { upper(c) - 1 - retention(c) }
        { frontier of each live read capability on c }
        { since'(o), upper(o) - 1  for each output o computed from c })

so outputs are visited before their inputs. An arrangement has no retention: nobody reads it but its owner's steps, so
its history is as old as those need. A closed collection (`upper = {}`) no longer moves by retention,
and a dropped output (`since = {}`) holds nothing. A `collection` without a retention of its own has none: its read
capabilities decide, and without any its since stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from graphlib import TopologicalSorter
from typing import Any

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from mz_dagster.catalog.codec import LATTICES, columns_of, frontier_of, frontier_text, keys_of, shapes_of
from mz_dagster.catalog.contents import Contents
from mz_dagster.catalog.database import RowsOf, Transactions, recalled
from mz_dagster.catalog.errors import CatalogDamaged, UnknownObject, UpperBeyondInput
from mz_dagster.catalog.rows import BatchState, CollectionRow
from mz_dagster.catalog.schema import BATCH, CAPABILITY, COLLECTION, HOLD, NAME, OBJECT, TIMELINE, TOMBSTONE
from mz_dagster.catalog.shard_names import in_shard
from mz_dagster.catalog.timelines import timeline_row
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId, IntegerTimes

IS_LIVE = or_(CAPABILITY.c.until_ms.is_(None), CAPABILITY.c.until_ms > bindparam("now"))
"""The condition that a capability has not expired at the clock's time, the parameter `now`."""


def collections_query() -> Any:
    """Returns the query for everything that `collection_of` needs, of collections that are not dropped or are."""
    return (
        select(COLLECTION, OBJECT.c.column_types, OBJECT.c.unique_keys, OBJECT.c.shapes, TIMELINE.c.lattice)
        .join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
        .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
    )


#: Built once: building a statement takes longer than running it.
_COLLECTION = collections_query().where(COLLECTION.c.id == bindparam("wanted"))
_FRONTIERS = RowsOf(
    select(
        *(COLLECTION.c[name] for name in ("id", "since", "upper", "live_batches", "live_rows", "live_digest")),
        TIMELINE.c.lattice,
    ).outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline),
    COLLECTION.c.id,
)
_BURIED = (
    select(TOMBSTONE.c.id, TOMBSTONE.c.timeline, TOMBSTONE.c.shard, TIMELINE.c.lattice)
    .outerjoin(TIMELINE, TIMELINE.c.name == TOMBSTONE.c.timeline)
    .where(TOMBSTONE.c.id.in_(bindparam("wanted", expanding=True)), TOMBSTONE.c.shard.is_not(None))
)
_COLLECTIONS = collections_query().order_by(OBJECT.c.sequence)
_UNDROPPED = _COLLECTIONS.where(OBJECT.c.dropped.is_(False))
_INPUTS = RowsOf(
    select(HOLD.c.output, HOLD.c.input, COLLECTION.c.upper, TIMELINE.c.lattice)
    .join(COLLECTION, COLLECTION.c.id == HOLD.c.input)
    .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline),
    HOLD.c.output,
)
_KIND = select(OBJECT.c.kind).where(OBJECT.c.id == bindparam("wanted"))
_KIND_OF_DROPPED = _KIND.where(OBJECT.c.dropped.is_(True))
_HELD_BY = select(CAPABILITY.c.frontier).where(CAPABILITY.c.collection == bindparam("on"), CAPABILITY.c.writes, IS_LIVE)
_RIGHTS = select(CAPABILITY.c.writes).where(CAPABILITY.c.collection == bindparam("on"), IS_LIVE)
_EXPIRED = delete(CAPABILITY).where(CAPABILITY.c.collection == bindparam("on"), ~IS_LIVE)
_CHANGE = update(COLLECTION).where(COLLECTION.c.id == bindparam("the_id"))
_REPLACE = (
    update(BATCH)
    .where(BATCH.c.collection == bindparam("of"), BATCH.c.state == BatchState.LIVE.value)
    .values(state=BatchState.REPLACED.value)
)


def collection_of(row: Any) -> CollectionRow:
    """Returns the collection in a row of `collections_query`."""
    lattice = row_lattice(row)
    columns, keys, shapes = columns_of(row.column_types), keys_of(row.unique_keys), shapes_of(row.shapes)
    stored = in_shard(columns if shapes is None else shapes.stored)
    places: tuple[int, ...] = ()
    if shapes is not None:
        places, shown = shapes.places, dict(zip(shapes.places, columns, strict=True))
        keys = frozenset(frozenset(places[i] for i in key) for key in keys)
        stored = tuple(replace(one, nullable=i not in shown or shown[i].nullable) for i, one in enumerate(stored))
        columns = tuple(shown.get(i, replace(one, name="")) for i, one in enumerate(stored))
    return CollectionRow(
        GlobalId(row.id),
        row.timeline,
        frontier_of(lattice, row.since),
        frontier_of(lattice, row.upper),
        stored,
        keys,
        row.shard,
        row.failure,
        row.retention_ms,
        row.next_due,
        row.poll_failure,
        tuple(one.name for one in columns),
        places,
        0 if shapes is None else shapes.version,
    )


def row_lattice(row: Any) -> IntegerTimes:
    """Returns the lattice of a row that holds a `lattice` column, outer joined."""
    return EPOCH_MS if row.lattice is None else LATTICES[row.lattice]


def frontiers(connection: Connection, ids: Iterable[GlobalId]) -> dict[GlobalId, tuple[Antichain[int], Antichain[int]]]:
    """Returns since and upper of those of the collections that exist, dropped ones included."""
    return {id: (since, upper) for id, (since, upper, _) in summed_frontiers(connection, ids).items()}


def summed_frontiers(
    connection: Connection, ids: Iterable[GlobalId]
) -> dict[GlobalId, tuple[Antichain[int], Antichain[int], Contents]]:
    """Returns since, upper and the sums of the live batches of those of the collections that exist."""
    found = {}
    wanted = list(ids)
    for row in _FRONTIERS.rows(connection, wanted):
        lattice = row_lattice(row)
        contents = Contents(row.live_batches, row.live_rows, row.live_digest)
        found[GlobalId(row.id)] = frontier_of(lattice, row.since), frontier_of(lattice, row.upper), contents
    if missing := set(wanted) - found.keys():
        for buried in connection.execute(_BURIED, {"wanted": sorted(missing)}):
            nothing = Antichain.empty(row_lattice(buried))
            found[GlobalId(buried.id)] = nothing, nothing, Contents(0, 0, 0)
    return found


def check_absent(connection: Connection, id: GlobalId) -> None:
    """Returns if nothing in the catalog says that there is an object, or a collection, of which rows were not found.

    Raises:
        CatalogDamaged: Something does.
    """
    signs: Mapping[str, Any] = {
        "It is defined, and has no frontiers.": select(OBJECT.c.id).where(OBJECT.c.id == id, OBJECT.c.has_collection),
        "It has frontiers, and no definition.": select(COLLECTION.c.id).where(COLLECTION.c.id == id),
        "It has a name, and no definition.": select(NAME.c.name).where(
            NAME.c.object == id, NAME.c.object.not_in(select(OBJECT.c.id))
        ),
    }
    for sign, query in signs.items():
        if connection.execute(query).first() is not None:
            raise CatalogDamaged(f'the catalog has lost rows of "{id}"', detail=sign)


class Frontiers(Transactions):
    """The part of the catalog that maps GlobalIds to what is known of their collections."""

    @recalled
    def collection(self, id: GlobalId) -> CollectionRow:
        """Returns a collection, dropped or not; one of which nothing is left has no columns any more.

        Raises:
            CatalogDamaged: Rows of it are lost.
            UnknownObject: No collection ever had that id.
        """
        with self._database.read() as connection:
            row = connection.execute(_COLLECTION, {"wanted": id}).one_or_none()
            if row is not None:
                return collection_of(row)
            buried = connection.execute(_BURIED, {"wanted": [id]}).one_or_none()
            if buried is None:
                check_absent(connection, id)
                raise UnknownObject(id)
        nothing = Antichain.empty(row_lattice(buried))
        return CollectionRow(id, buried.timeline, nothing, nothing, (), frozenset(), buried.shard, None)

    def collections(self, timeline: str | None = None, *, dropped: bool = False) -> tuple[CollectionRow, ...]:
        """Returns the collections of a timeline, or of all, in order of creation.

        Args:
            timeline: Only collections of this timeline, if given.
            dropped: Whether to return dropped ones, too, of which something is left.
        """
        query = _COLLECTIONS if dropped else _UNDROPPED
        if timeline is not None:
            query = query.where(COLLECTION.c.timeline == timeline)
        with self._database.read() as connection:
            return tuple(collection_of(row) for row in connection.execute(query))

    def note_polls(self, failures: Mapping[GlobalId, str | None]) -> None:
        """Records how the polls of sources went: why one failed, or None.

        What its last step said of a source that could not be polled is forgotten with it.
        """
        if not failures:
            return
        with self._database.write() as connection:
            told = [{"the_id": id, "failure": None, "poll_failure": text} for id, text in failures.items()]
            connection.execute(_CHANGE, told)

    def set_retention(self, id: GlobalId, retention_ms: int | None) -> None:
        """Sets how much history a collection keeps readable behind its upper; None means the project's default.

        Raises:
            UnknownObject: There is no such collection, or it was dropped.
        """
        if retention_ms is not None and retention_ms < 0:
            raise ProgrammingError("retention cannot be negative", hint="Use 0 to keep the newest time only.")
        own = COLLECTION.c.id == id
        with self._database.write() as connection:
            query = select(OBJECT.c.dropped).join(COLLECTION, COLLECTION.c.id == OBJECT.c.id).where(own)
            dropped = connection.execute(query).scalar_one_or_none()
            if dropped is not False:
                raise UnknownObject(id, dropped=dropped is True)
            connection.execute(update(COLLECTION).where(own).values(retention_ms=retention_ms))

    def holds(self, id: GlobalId) -> tuple[GlobalId, ...]:
        """Returns the collections that a collection is computed from, in order of their ids."""
        query = select(HOLD.c.input).where(HOLD.c.output == id)
        with self._database.read() as connection:
            return tuple(sorted(GlobalId(one) for one in connection.execute(query).scalars()))

    def allow_compaction(self, timeline: str, *, retention_ms: int | None = None) -> Mapping[GlobalId, Antichain[int]]:
        """Advances the since of every collection of a timeline as far as retention and capabilities allow.

        An upper that only expired write capabilities held back moves, too, and what is dropped and was held only by
        expired capabilities ends.

        Args:
            timeline: The timeline.
            retention_ms: How much history a collection without a retention of its own keeps; None keeps all.

        Returns:
            The new since of each collection whose since moved.
        """
        now = self._now_ms()
        with self._database.write() as connection:
            held_on = OBJECT.c.dropped.is_(True), or_(COLLECTION.c.since != "[]", COLLECTION.c.upper != "[]")
            ended = select(COLLECTION.c.id).join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
            for id in connection.execute(ended.where(COLLECTION.c.timeline == timeline, *held_on)).scalars().all():
                close_dropped(connection, id, now)
            lattice = LATTICES[str(timeline_row(connection, timeline).lattice)]
            undropped = COLLECTION.c.timeline == timeline, OBJECT.c.dropped.is_(False)
            kinds = select(COLLECTION.c.id).join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
            by_capability = set(connection.execute(kinds.where(*undropped, OBJECT.c.kind == "collection")).scalars())
            for id in by_capability:
                settle_upper(connection, id, now)
            query = collections_query().where(*undropped)
            rows = {row.id: row for row in map(collection_of, connection.execute(query))}
            held = _held(connection, lattice, rows, now)
            moved: dict[GlobalId, Antichain[int]] = {}
            owned = OBJECT.c.kind == "arrangement", OBJECT.c.owner.is_not(None)
            states = set(connection.execute(kinds.where(*undropped, *owned)).scalars())
            outputs: dict[GlobalId, set[GlobalId]] = {id: set() for id in rows}
            for edge in connection.execute(select(HOLD.c.output, HOLD.c.input)):
                if edge.input in rows and edge.output in rows:
                    outputs[edge.input].add(edge.output)
            for id in TopologicalSorter(outputs).static_order():
                row = rows[id]
                retention = row.retention_ms if row.retention_ms is not None else retention_ms
                if id in states and outputs[id]:
                    retention = 0
                limits = list(held.get(id, ()))
                if id in by_capability and row.retention_ms is None:
                    if not limits:
                        continue  # who comes next finds what there was
                elif retention is None or row.upper.is_empty:
                    continue
                else:
                    limits.append(before(row.upper, 1 + retention))
                for output in outputs[id]:
                    limits.append(moved.get(output, rows[output].since))
                    limits.append(before(rows[output].upper, 1))
                since = row.since.join(reduce(lambda left, right: left.meet(right), limits))
                if since != row.since:
                    moved[id] = since
            if moved:
                rows_moved = [{"the_id": id, "since": frontier_text(since)} for id, since in moved.items()]
                connection.execute(_CHANGE, rows_moved)
            return moved


def check_inputs(connection: Connection, uppers: Mapping[GlobalId, Antichain[int]]) -> None:
    """Holds constraint W: an output's upper is not beyond the upper of any of its inputs.

    Raises:
        UpperBeyondInput: One of these would be.
    """
    passed = set()  # most have come as far as most others
    for row in _INPUTS.rows(connection, uppers):
        asked = uppers[row.output], row.lattice, row.upper
        if asked in passed:
            continue
        upper = frontier_of(row_lattice(row), row.upper)
        # A dropped or closed input has the upper {}, which nothing passes.
        if uppers[row.output] <= upper:
            passed.add(asked)
        else:
            raise UpperBeyondInput(
                f'the upper of "{row.output}" would pass that of its input "{row.input}"',
                detail=f"From {uppers[row.output]} one cannot see beyond {upper}.",
            )


def settle_upper(connection: Connection, collection: GlobalId, now: int, *, may_end: bool = False) -> None:
    """Moves the upper of what is written by capabilities to the meet of the live ones.

    Args:
        connection: A transaction that writes.
        collection: Any collection; one that the engine writes stays as it is.
        now: The clock's time.
        may_end: Whether the collection is complete if there is none.

    Raises:
        UpperBeyondInput: It is computed from others, and would pass an upper of theirs (constraint W).
    """
    if not is_written_by_capability(connection, collection):
        return
    _, upper = frontiers(connection, [collection])[collection]
    texts = connection.execute(_HELD_BY, {"on": collection, "now": now}).scalars()
    held = [frontier_of(upper.lattice, text) for text in texts]  # type: ignore[arg-type]
    if not held and not may_end:
        return
    moved = upper.join(reduce(lambda left, right: left.meet(right), held, Antichain.empty(upper.lattice)))
    if moved != upper:
        connection.execute(_CHANGE, {"the_id": collection, "upper": frontier_text(moved)})
        check_inputs(connection, {collection: moved})


def is_written_by_capability(connection: Connection, collection: GlobalId) -> bool:
    """Returns whether a collection is no source, table or view, which the engine writes."""
    return bool(connection.execute(_KIND, {"wanted": collection}).scalar_one_or_none() == "collection")


def close_dropped(connection: Connection, collection: GlobalId, now: int) -> None:
    """Ends what nobody has a right to any more of a dropped collection; does nothing to one that is not dropped.

    Without a live capability to read it, its since is `{}` and its batches are garbage. Without one to write it, its
    upper is, too, unless it is read and was computed or ingested: how that would have gone on nobody knows.
    """
    kind: str | None = connection.execute(_KIND_OF_DROPPED, {"wanted": collection}).scalar_one_or_none()
    if kind is None:
        return
    held = set(connection.execute(_RIGHTS, {"on": collection, "now": now}).scalars())
    if False not in held:
        nothing = {"since": "[]", "live_batches": 0, "live_rows": 0, "live_digest": 0}
        connection.execute(_CHANGE, {"the_id": collection, **nothing})
        connection.execute(_REPLACE, {"of": collection})
    if True not in held and (False not in held or kind in ("table", "collection")):
        connection.execute(_CHANGE, {"the_id": collection, "upper": "[]"})
    connection.execute(_EXPIRED, {"on": collection, "now": now})


def set_failures(connection: Connection, failures: Mapping[GlobalId, str | None]) -> None:
    """Records the failures of collections."""
    if failures:
        connection.execute(_CHANGE, [{"the_id": id, "failure": text} for id, text in failures.items()])


def set_next_dues(connection: Connection, dues: Mapping[GlobalId, int | None]) -> None:
    """Records when collections change next by themselves."""
    if dues:
        connection.execute(_CHANGE, [{"the_id": id, "next_due": due} for id, due in dues.items()])


def _held(
    connection: Connection, lattice: IntegerTimes, rows: Mapping[GlobalId, CollectionRow], now: int
) -> dict[GlobalId, list[Antichain[int]]]:
    """Returns the frontiers of the live read capabilities on the collections."""
    capability = CAPABILITY.c
    query = select(capability.collection, capability.frontier).where(~capability.writes, IS_LIVE)
    held: dict[GlobalId, list[Antichain[int]]] = {}
    for row in connection.execute(query, {"now": now}):
        if row.collection in rows:
            held.setdefault(GlobalId(row.collection), []).append(frontier_of(lattice, row.frontier))
    return held


def before(upper: Antichain[int], distance: int) -> Antichain[int]:
    """Returns the frontier `distance` before an upper, not before the first time; `{}` before `{}`."""
    return Antichain.of(upper.lattice, *(max(upper.lattice.minimum, time - distance) for time in upper))
