"""A replica of the catalog in memory: read once, and then brought up to date by the numbered changes.

What is asked for by each statement, step and poll is which objects there are, what they depend on and how far they are
known, and of all that little changes from one to the next. The database notes what does: triggers on the tables of
objects, names, dependencies and collections put the number of the change beside the object's id (`schema.CHANGED`), so
that nothing that writes can forget to. Writers queue, so the numbers grow in the order in which changes are committed,
and

    what changed after the change n  =  the rows of CHANGED with a number greater than n

in any committed state. A table that was emptied would count from 1 again, and who follows would miss what it notes; so
it has a mark (the row with the number 0), without which nothing is answered, and under another one all is read anew.

A `CatalogState` is one committed state, and never older than the moment at which it was asked for:
asking is one transaction, which reads what changed since the last one, of this process, and that only.

It holds what is not dropped; of dropped objects the other parts of the catalog tell. Values are made of rows when they
are first asked for, so that a row that is damaged is an error of those that ask for it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select

from mz_dagster.catalog.codec import frontier_of
from mz_dagster.catalog.contents import Contents
from mz_dagster.catalog.database import Database, Transactions, recalled
from mz_dagster.catalog.errors import ChangesLost, OracleBehind
from mz_dagster.catalog.frontiers import collection_of, collections_query, row_lattice, summed_frontiers
from mz_dagster.catalog.references import REFERENCES, STANDS_FOR, parents_of, stands_for
from mz_dagster.catalog.rows import CollectionRow, ObjectRow
from mz_dagster.catalog.schema import CHANGED, COLLECTION, OBJECT
from mz_dagster.catalog.stored_objects import dependencies_of, object_of, objects_query
from mz_dagster.catalog.timelines import lattice_of, timeline_row
from mz_dagster.formalism import Antichain, GlobalId

_Key = TypeVar("_Key", bound=str)

#: More rows than these are not asked for one by one: a statement names so many ids at most.
_PORTION = 500

_MARK = 0
"""The number of the row by which one knows the table of changes."""

_CHANGES = select(CHANGED.c.object, CHANGED.c.part, CHANGED.c.number).where(
    or_(CHANGED.c.number > bindparam("seen"), CHANGED.c.number == _MARK)
)
_LAST = select(select(CHANGED.c.part).where(CHANGED.c.number == _MARK).scalar_subquery(), func.max(CHANGED.c.number))
_THERE = select(OBJECT.c.id).where(OBJECT.c.dropped.is_(False))
_OBJECTS = objects_query().where(OBJECT.c.dropped.is_(False)).order_by(OBJECT.c.sequence)
_SOME_OBJECTS = _OBJECTS.where(OBJECT.c.id.in_(bindparam("wanted", expanding=True)))
_UPPERS = (
    select(COLLECTION.c.upper)
    .join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
    .where(COLLECTION.c.timeline == bindparam("timeline"), OBJECT.c.dropped.is_(False), OBJECT.c.kind != "collection")
    .distinct()
)
_COLLECTIONS = collections_query().where(OBJECT.c.dropped.is_(False))
_SOME_COLLECTIONS = _COLLECTIONS.where(COLLECTION.c.id.in_(bindparam("wanted", expanding=True)))


class _Known:
    """What is known of one object: its rows, and the values that were made of them.

    Its collection's row may be of an upper before the collection's.
    """

    __slots__ = ("_collection", "_object", "_upper", "collection_row", "dependencies", "object_row")

    def __init__(
        self,
        object_row: Any,
        dependencies: Mapping[str, GlobalId],
        collection_row: Any,
        upper: Antichain[int] | None = None,
    ) -> None:
        self.object_row = object_row
        self.dependencies = dependencies
        self.collection_row = collection_row
        self._upper = upper  # the collection's, where it is not its row's
        self._object: ObjectRow | None = None
        self._collection: CollectionRow | None = None

    def with_collection(self, row: Any, upper: Antichain[int] | None = None) -> _Known:
        """Returns the same object with another state of its collection."""
        other = _Known(self.object_row, self.dependencies, row, upper)
        other._object = self._object
        return other

    def at(self, upper: Antichain[int]) -> _Known:
        """Returns the same object with its collection at another upper."""
        return self.with_collection(self.collection_row, upper)

    @property
    def object(self) -> ObjectRow:
        if self._object is None:
            self._object = object_of(self.object_row, self.dependencies)
        return self._object

    @property
    def collection(self) -> CollectionRow:
        if self._collection is None:
            found = collection_of(self.collection_row)
            self._collection = found if self._upper is None else replace(found, upper=self._upper)
        return self._collection


class _Links:
    """What follows from how objects are defined alone, and not from how far they are known."""

    def __init__(self, known: Mapping[GlobalId, _Known]) -> None:
        self._known = known

    @cached_property
    def ids(self) -> Mapping[str, GlobalId]:
        return {one.object_row.name: id for id, one in self._known.items() if one.object_row.name is not None}

    @cached_property
    def owned(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        return _grouped((owner, id) for id, one in self._known.items() if (owner := one.object_row.owner) is not None)

    @cached_property
    def dependants(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        return self._depending(self._known)

    @cached_property
    def indexes(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        return self._depending(id for id, one in self._known.items() if one.object_row.kind == "index")

    @cached_property
    def referring(self) -> Mapping[str, tuple[GlobalId, ...]]:
        rows = ((id, one.object) for id, one in self._known.items() if f'"{REFERENCES}"' in one.object_row.options)
        return _grouped((parent, id) for id, row in rows for parent in parents_of(row))

    @cached_property
    def standing(self) -> Mapping[str, tuple[GlobalId, ...]]:
        rows = ((id, one.object) for id, one in self._known.items() if f'"{STANDS_FOR}"' in one.object_row.options)
        return _grouped((stands_for(row), id) for id, row in rows)

    def _depending(self, ids: Iterable[GlobalId]) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        return _grouped((on, id) for id in ids for on in dict.fromkeys(self._known[id].dependencies.values()))


class CatalogState:
    """One committed state of all objects that are not dropped, and of their collections.

    Attributes:
        mark: Of the table that numbers the changes.
        number: Of the last change in it.
        definitions: A number that is another whenever anything is but the frontiers of collections, and what else a
            step changes of them.
    """

    def __init__(
        self,
        mark: str,
        number: int,
        definitions: int,
        known: Mapping[GlobalId, _Known],
        closed: Mapping[str, int] | None = None,
        links: _Links | None = None,
    ) -> None:
        self.mark = mark
        self.number = number
        self.definitions = definitions
        self._known = known  # in order of creation
        #: By timeline, the greatest time that was readable in any of its collections, as far as that is known.
        self._closed = closed
        self._links = _Links(known) if links is None else links

    def object(self, id: GlobalId) -> ObjectRow | None:
        """Returns an object, None if there is none."""
        known = self._known.get(id)
        return None if known is None else known.object

    def objects(self, kind: str | None = None) -> tuple[ObjectRow, ...]:
        """Returns the objects, of one kind if given, in order of creation."""
        every = self._known.values()
        return tuple(one.object for one in every if kind is None or one.object_row.kind == kind)

    def collection(self, id: GlobalId) -> CollectionRow | None:
        """Returns the collection of an object, None if there is none or it has none."""
        known = self._known.get(id)
        return None if known is None or known.collection_row is None else known.collection

    def contents(self, id: GlobalId) -> Contents | None:
        """Returns what the live batches of a collection sum up to, None if there is no such collection."""
        row = self._known[id].collection_row if id in self._known else None
        return None if row is None else Contents(row.live_batches, row.live_rows, row.live_digest)

    def collections(self, timeline: str | None = None) -> tuple[CollectionRow, ...]:
        """Returns the collections, of one timeline if given, in order of creation."""
        rows = ((one, one.collection_row) for one in self._known.values())
        return tuple(one.collection for one, row in rows if row is not None and timeline in (None, row.timeline))

    def closed(self, timeline: str) -> int:
        """Returns the greatest time of a timeline at which a collection that was stepped or written is readable.

        The timeline's oracle was there when it was closed. It is -1 if there is none.
        """
        if self._closed is None:
            self._closed = _greatest({}, self._known.values())
        return self._closed.get(timeline, -1)

    @property
    def ids(self) -> Mapping[str, GlobalId]:
        """What each name stands for."""
        return self._links.ids

    @property
    def owned(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        """What serves an object, by the object, in order of creation."""
        return self._links.owned

    @property
    def dependants(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        """What depends on an object directly, by the object, in order of creation."""
        return self._links.dependants

    @property
    def indexes(self) -> Mapping[GlobalId, tuple[GlobalId, ...]]:
        """Which indexes depend on an object directly, by the object, in order of creation."""
        return self._links.indexes

    @property
    def referring(self) -> Mapping[str, tuple[GlobalId, ...]]:
        """Which tables refer to rows of another, by what their foreign keys tell it by, in order of creation."""
        return self._links.referring

    def standing(self, key: str) -> tuple[GlobalId, ...]:
        """Returns which tables foreign keys may mean that tell theirs by a key; a block has one in another's place."""
        first, others = GlobalId(key), self._links.standing.get(key, ())
        return (first, *others) if first in self._known else others

    def count(self, timeline: str) -> int:
        """Returns how many collections a timeline has."""
        rows = (one.collection_row for one in self._known.values())
        return sum(row is not None and row.timeline == timeline for row in rows)

    def advanced(self, timeline: str, upper: Antichain[int], number: int) -> CatalogState:
        """Returns the state that differs from this one in the upper of all collections of a timeline."""
        known = {
            id: one if (row := one.collection_row) is None or row.timeline != timeline else one.at(upper)
            for id, one in self._known.items()
        }
        closed = None if self._closed is None else {**self._closed, timeline: max((at - 1 for at in upper), default=-1)}
        return CatalogState(self.mark, number, self.definitions, known, closed, self._links)

    def after(self, connection: Connection, changes: Iterable[Any]) -> CatalogState:
        """Returns the state of a transaction, in which these rows of `CHANGED`, some, are newer than this one."""
        changes = list(changes)
        whole = [GlobalId(one.object) for one in changes if one.part == "object"]
        moved = [GlobalId(one.object) for one in changes if one.part == "collection"]
        number = max(one.number for one in changes)
        if len(whole) > _PORTION:
            return CatalogState.read(connection)
        known = dict(self._known)
        definitions = self.definitions
        if whole:
            definitions = number
            if "" in whole:  # rows went, and nobody knows whose
                there = set(connection.execute(_THERE).scalars())
                known = {id: one for id, one in known.items() if id in there}
            for id in whole:
                known.pop(id, None)
            known |= _read(connection, whole)
            known = dict(sorted(known.items(), key=lambda one: one[1].object_row.sequence))
        rest = [id for id in moved if id in known and id not in whole]
        rows = _collections(connection, rest) if rest else {}
        for id in rest:
            before, row = known[id].collection_row, rows.get(id)
            if _defined(before) != _defined(row):
                definitions = number
            known[id] = known[id].with_collection(row)
        told = [known[id] for id in {*whole, *rest} & known.keys()]
        closed = None if self._closed is None else _greatest(self._closed, told)
        links = self._links if definitions == self.definitions else None
        return CatalogState(self.mark, number, definitions, known, closed, links)

    @classmethod
    def read(cls, connection: Connection) -> CatalogState:
        """Returns the state of a transaction.

        Raises:
            ChangesLost: Nobody could follow it.
        """
        mark, number = last_change(connection)
        return cls(mark, number, number, _read(connection, None))


class Replica(Transactions):
    """The part of the catalog that each process keeps a replica of: objects, names and frontiers."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._lock = threading.Lock()
        self._state: CatalogState | None = None

    @property
    def is_followed(self) -> bool:
        """Whether this process has asked for the state, so that to ask again costs little."""
        return self._state is not None

    @recalled
    def state(self) -> CatalogState:
        """Returns the objects and collections as they are now.

        Cost: one query, and what changed since this process asked last.

        Raises:
            ChangesLost: It is not known what changed.
        """
        with self._caught_up() as (_, state):
            return state

    @recalled
    def read_ts(self, timeline: str) -> int:
        """Returns the time at which a read observes every write applied so far; 0 on a fresh timeline.

        Cost: as of `state`; but of a process that has not asked for that, a query over the frontiers alone, a quarter
        of a microsecond for each.

        Raises:
            OracleBehind: It is not as late as what is readable, as which it was when that was closed.
        """
        if self._state is None:  # who only reads needs to know of no other objects
            with self._database.read() as connection:
                return checked_read_ts(connection, timeline, _closed(connection, timeline))
        with self._caught_up() as (connection, state):
            return checked_read_ts(connection, timeline, state.closed(timeline))

    def contents(self, collections: Sequence[GlobalId]) -> Mapping[GlobalId, Contents]:
        """Returns what the live batches of those of the collections that exist sum up to."""
        if self._state is None:
            with self._database.read() as connection:
                return {id: sums for id, (_, _, sums) in summed_frontiers(connection, collections).items()}
        state = self.state()
        return {id: sums for id in collections if (sums := state.contents(id)) is not None}

    def mark_changes(self) -> None:
        """Begins to number changes anew; whoever follows them reads everything again."""
        with self._database.write() as connection:
            mark_changes(connection)

    @contextmanager
    def _caught_up(self) -> Iterator[tuple[Connection, CatalogState]]:
        """Yields a transaction that reads, with the state that it sees; one at a time."""
        with self._lock, self._database.read() as connection:
            changes = [] if self._state is None else connection.execute(_CHANGES, {"seen": self._state.number}).all()
            if self._state is None or _mark_in(changes) != self._state.mark:
                self._state = CatalogState.read(connection)
            elif len(changes) > 1:
                self._state = self._state.after(connection, [one for one in changes if one.number != _MARK])
            yield connection, self._state

    def _keep_newer(self, before: CatalogState, after: CatalogState) -> None:
        """Keeps a state that this process has made of another, unless it has come to know of more meanwhile."""
        with self._lock:
            if self._state is before:
                self._state = after


def last_change(connection: Connection) -> tuple[str, int]:
    """Returns the mark of the table of changes, and the number of the last one.

    Raises:
        ChangesLost: There is no mark.
    """
    mark, number = connection.execute(_LAST).one()
    if mark is None:
        raise ChangesLost
    return str(mark), int(number)


def mark_changes(connection: Connection) -> None:
    """Gives the table of changes a mark that it never had."""
    connection.execute(delete(CHANGED).where(CHANGED.c.number == _MARK))
    connection.execute(insert(CHANGED).values(object="", part=secrets.token_hex(16), number=_MARK))


def _mark_in(changes: Iterable[Any]) -> str:
    mark = next((str(one.part) for one in changes if one.number == _MARK), None)
    if mark is None:
        raise ChangesLost
    return mark


def checked_read_ts(connection: Connection, timeline: str, closed: int) -> int:
    """Returns the oracle's read timestamp in a transaction; raises `OracleBehind` if it is before what is closed."""
    read_ts = int(timeline_row(connection, timeline).read_ts)
    if read_ts < closed:
        raise OracleBehind(timeline, read_ts, closed)
    return read_ts


def _closed(connection: Connection, timeline: str) -> int:
    """Returns what `CatalogState.closed` does of the state of a transaction."""
    lattice = lattice_of(connection, timeline)
    uppers = connection.execute(_UPPERS, {"timeline": timeline}).scalars()
    return max((upper - 1 for text in uppers for upper in frontier_of(lattice, text)), default=-1)


def _greatest(before: Mapping[str, int], known: Iterable[_Known]) -> dict[str, int]:
    """Returns, by timeline, the greatest time closed in some collections, or in others before.

    Those that only holders of capabilities write are at times of their own.
    """
    greatest = dict(before)
    for one in known:
        row = one.collection_row
        if row is None or row.timeline is None or one.object_row.kind == "collection":
            continue
        for upper in frontier_of(row_lattice(row), row.upper):
            greatest[row.timeline] = max(upper - 1, greatest.get(row.timeline, -1))
    return greatest


def _defined(row: Any) -> object:
    """Returns what of a collection's row steps, merges and the forgetting of history do not change."""
    return None if row is None else (row.timeline, row.shard, row.poll_failure, row.retention_ms)


def _read(connection: Connection, ids: Sequence[GlobalId] | None) -> dict[GlobalId, _Known]:
    """Returns what is there of some objects, or of all, in order of creation."""
    dependencies, collections = dependencies_of(connection, ids), _collections(connection, ids)
    rows = _asked(connection, _OBJECTS, _SOME_OBJECTS, ids)
    return {row.id: _Known(row, dependencies.get(row.id, {}), collections.get(row.id)) for row in rows}


def _collections(connection: Connection, ids: Sequence[GlobalId] | None) -> dict[GlobalId, Any]:
    """Returns the rows of the collections of some objects, or of all."""
    return {row.id: row for row in _asked(connection, _COLLECTIONS, _SOME_COLLECTIONS, ids)}


def _asked(connection: Connection, every: Any, some: Any, ids: Sequence[GlobalId] | None) -> Sequence[Any]:
    """Returns the rows of all objects, or of some."""
    rows = connection.execute(every) if ids is None else connection.execute(some, {"wanted": ids})
    return rows.all()  # at once: rows one by one cost twice as much


def _grouped(pairs: Iterable[tuple[_Key, GlobalId]]) -> dict[_Key, tuple[GlobalId, ...]]:
    found: dict[_Key, list[GlobalId]] = {}
    for group, one in pairs:
        found.setdefault(group, []).append(one)
    return {group: tuple(every) for group, every in found.items()}
