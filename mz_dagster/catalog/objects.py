"""Objects: names, definitions, dependencies, and their creation, swap and drop.

A GlobalId is made from a sequence that only grows and denotes one object for good, also after the object is
dropped. A name denotes one object at a time and may be rebound; dependants were bound to ids and do not
notice. Every change is one transaction: what is created together appears together, and what is no longer
needed (see `reachability`) goes with the change that made it so.

A `collection` may become a materialized view (see `maintaining`). It keeps its id, its shard and its readers; its place
in the order of creation is new, so that everything comes after what it depends on.

A dropped collection's since and upper become `{}`, unreadable and unwritable for good, and its batches `replaced`, so
that readers who list them finish and the sweep takes the rest; but since not before the last capability to read it that
others hold is given back or expires (`frontiers.close_dropped`). Once nothing is left of it, a tombstone takes the
place of the object's rows (`tombstones`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from mz_dagster.catalog.codec import (
    columns_text,
    frontier_of,
    frontier_text,
    json_text,
    keys_text,
    shapes_of,
    shapes_text,
)
from mz_dagster.catalog.database import RowsOf, Transactions, next_ids, recalled
from mz_dagster.catalog.errors import (
    NameTaken,
    Redefined,
    SinceBehindInput,
    StillNeeded,
    TableAltered,
    TypeAltered,
    UnknownObject,
    WrongDefinition,
)
from mz_dagster.catalog.frontiers import check_absent, close_dropped, frontiers
from mz_dagster.catalog.lease_liveness import is_live, moment_of
from mz_dagster.catalog.naming import check_names, give_name, take_names
from mz_dagster.catalog.reachability import Entry, needed
from mz_dagster.catalog.references import REFERENCES, check_references, note_references, rename_referenced
from mz_dagster.catalog.rows import (
    COMMENTS,
    KEEPER,
    KINDS,
    PRIVILEGES,
    VALUES,
    Alteration,
    NewObject,
    ObjectRow,
    Redefinition,
    Ref,
    TypeAlteration,
)
from mz_dagster.catalog.schema import COLLECTION, DEPENDENCY, HOLD, NAME, OBJECT, WRITER
from mz_dagster.catalog.sequences import alter_sequences, create_sequences, hand_over_sequences, numbers_of
from mz_dagster.catalog.shapes import ADDED_AT, bound_shapes
from mz_dagster.catalog.stored_objects import dependencies_of, object_of, objects_query
from mz_dagster.catalog.takeover import Takeover, check_as_looked, without_privileges
from mz_dagster.catalog.ticks import last_gain
from mz_dagster.catalog.timelines import lattice_of
from mz_dagster.catalog.tombstones import bury, is_buried
from mz_dagster.formalism import Antichain, GlobalId

#: Built once: building a statement takes longer than running it.
_ID_OF = select(NAME.c.object).where(NAME.c.name == bindparam("called"))
_NAMED = objects_query().where(NAME.c.name == bindparam("called"))
_OBJECTS = RowsOf(objects_query(), OBJECT.c.id)
_ALL_OBJECTS = objects_query().order_by(OBJECT.c.sequence)
_UNDROPPED = _ALL_OBJECTS.where(OBJECT.c.dropped.is_(False))
_INDEXES_ON = _UNDROPPED.where(
    OBJECT.c.kind == "index",
    OBJECT.c.id.in_(
        select(DEPENDENCY.c.dependant).where(DEPENDENCY.c.dependency.in_(bindparam("wanted", expanding=True)))
    ),
)
_KEEPERS = select(WRITER.c.id).where(is_live(WRITER))
_ENTRIES = (
    select(OBJECT.c.id, OBJECT.c.kind, NAME.c.name, OBJECT.c.created_as, OBJECT.c.owner, OBJECT.c.options)
    .outerjoin(NAME, NAME.c.object == OBJECT.c.id)
    .where(OBJECT.c.dropped.is_(False))
    .order_by(OBJECT.c.sequence)
)
_TIMELINES = RowsOf(select(COLLECTION.c.id, COLLECTION.c.timeline), COLLECTION.c.id)
_DEPEND = insert(DEPENDENCY)
_HOLD = insert(HOLD)
_LET_GO = delete(HOLD).where(HOLD.c.output == bindparam("the_id"))
_CHANGE = update(OBJECT).where(OBJECT.c.id == bindparam("the_id"))
_CHANGE_COLLECTION = update(COLLECTION).where(COLLECTION.c.id == bindparam("the_id"))
_VERSION_OF = select(OBJECT.c.shapes, OBJECT.c.options).where(OBJECT.c.id == bindparam("wanted"))


class Objects(Transactions):
    """The part of the catalog that names and defines things."""

    def create_object(self, new: NewObject) -> ObjectRow:
        """Creates one object; see `create_objects`."""
        return self.create_objects([new])[0]

    def create_objects(self, new: Sequence[NewObject]) -> tuple[ObjectRow, ...]:
        """Creates objects in one transaction, in order, and returns them.

        Raises:
            NameTaken: A name denotes something already, or is used twice.
            UnknownObject: A dependency does not exist, or was dropped.
            UnknownTimeline: A timeline was not declared.
            SinceBehindInput: An object would be readable where one of its inputs is not (constraint R).
            WrongDefinition: A description contradicts itself.
        """
        return self.swap(new, ())

    def swap(
        self,
        created: Sequence[NewObject],
        dropped: Collection[GlobalId],
        redefined: Mapping[GlobalId, Redefinition] = MappingProxyType({}),
        altered: TypeAlteration | None = None,
        references: int | None = None,
    ) -> tuple[ObjectRow, ...]:
        """Takes names from old objects and creates new ones, possibly under the same names, in one transaction.

        An old object that something outside of `dropped` still depends on lives on without a name until that goes too.
        What was granted on it is granted on the one that gets its name.
        Those that are redefined get other names and texts, and are what they were. A type may be given a value besides.
        If it matters who refers to what is dropped, `references` is their number when that was looked.

        Raises:
            NameTaken: A name denotes something that is not in `dropped`, or is used twice.
            UnknownObject: A dependency or an object to drop does not exist, or was dropped.
            UnknownTimeline: A timeline was not declared.
            SinceBehindInput: An object would be readable where one of its inputs is not (constraint R).
            WrongDefinition: A description contradicts itself.
            TypeAltered: A type, or what depends on it, is not what that was made up from.
            Redefined: A connection or secret is not what it was when it was to lead elsewhere.
            ReferencesChanged: A table has come to refer to another since it was looked.
        """
        check_new(created)
        with self._database.write() as connection:
            check_references(connection, references)
            if altered is not None:
                _give_value(connection, altered, self._now_ms())
            for id in (*dropped, *redefined):
                undropped(connection, id)
            granted = {row.name: row.privileges for row in (undropped(connection, id) for id in dropped)}
            take_names(connection, [*dropped, *redefined])
            ids = create_rows(connection, created)
            for id, one in redefined.items():
                _redefine(connection, id, one, ids)
            for id, one in redefined.items():
                if one.before is not None:
                    _bind_anew(connection, id, self._now_ms())
            for id, new in zip(ids, created, strict=True):
                if new.name is not None and granted.get(new.name):
                    set_privileges(connection, undropped(connection, id), granted[new.name])
            if dropped:
                entries = _entries(connection, self._now_ms())
                drop_rows(connection, entries.keys() - needed(entries, dropped), self._now_ms())
            return _objects(connection, ids)

    def drop_object(self, id: GlobalId, cascade: bool = False) -> tuple[GlobalId, ...]:
        """Drops one object; see `drop_objects`."""
        return self.drop_objects([id], cascade)

    def drop_objects(
        self, ids: Collection[GlobalId], cascade: bool = False, references: int | None = None
    ) -> tuple[GlobalId, ...]:
        """Drops objects with their indexes and arrangements, in one transaction; returns the ids of all that went.

        An index that a plan uses only loses its name, and goes when the plan does.

        Args:
            ids: The objects.
            cascade: Whether to drop their dependants too.
            references: As of `swap`.

        Raises:
            StillNeeded: Others depend on one of them, and `cascade` is False.
            UnknownObject: One does not exist, or was dropped.
            ReferencesChanged: A table has come to refer to another since it was looked.
        """
        with self._database.write() as connection:
            check_references(connection, references)
            return drop_named(connection, ids, self._now_ms(), cascade=cascade)

    def drop_unneeded(self) -> tuple[GlobalId, ...]:
        """Drops what nothing needs, because nobody keeps it any more; returns the ids that went."""
        with self._database.read() as connection:
            entries = _entries(connection, self._now_ms())
            if len(needed(entries)) == len(entries):
                return ()
        with self._database.write() as connection:
            entries = _entries(connection, self._now_ms())
            gone = entries.keys() - needed(entries)
            drop_rows(connection, gone, self._now_ms())
            return tuple(sorted(gone))

    def rename_object(self, id: GlobalId, name: str) -> None:
        """Gives an object another name; what depends on it is bound to its id and does not notice.

        Raises:
            NameTaken: The name denotes something already.
            UnknownObject: The object does not exist, was dropped, or has no name.
        """
        with self._database.write() as connection:
            row = undropped(connection, id)
            if row.name is None:
                raise UnknownObject(id)
            if connection.execute(select(NAME.c.name).where(NAME.c.name == name)).first() is not None:
                raise NameTaken(name)
            connection.execute(update(NAME).where(NAME.c.object == id).values(name=name))

    def add_columns(self, id: GlobalId, alteration: Alteration) -> None:
        """Gives a source columns, which what is bound to it from now on has.

        Raises:
            TableAltered: It has been altered since the alteration was made up, or what reads it has changed.
            UnknownObject: It does not exist, or was dropped.
        """
        with self._database.write() as connection:
            before = undropped(connection, id)
            check_as_looked(connection, before, alteration)
            alter_in_place(connection, id, alteration, self._now_ms())
            last = last_gain(connection, id)
            ticks = [0 if last is None else last + 1] * (len(alteration.columns) - len(before.columns))
            row = undropped(connection, id)
            options = {**row.options, ADDED_AT: [*row.options.get(ADDED_AT, ()), *ticks]}
            connection.execute(_CHANGE, {"the_id": id, "options": json_text(options)})

    def set_comment(self, id: GlobalId, column: str, comment: str | None) -> None:
        """Says something of an object, or of a column; nothing any more if that is None. The empty text is no column.

        Raises:
            UnknownObject: The object does not exist, or was dropped.
        """
        with self._database.write() as connection:
            row = undropped(connection, id)
            said = {name: text for name, text in row.comments.items() if name != column}
            said |= {} if comment is None else {column: comment}
            options = {name: value for name, value in row.options.items() if name != COMMENTS}
            options |= {COMMENTS: said} if said else {}
            connection.execute(_CHANGE, {"the_id": id, "options": json_text(options)})

    @recalled
    def resolve_name(self, name: str) -> ObjectRow | None:
        """Returns the object that a name denotes, or None.

        Raises:
            CatalogDamaged: None, and names are lost.
        """
        with self._database.read() as connection:
            row = connection.execute(_NAMED, {"called": name}).one_or_none()
            if row is not None:
                return _with_dependencies(connection, row)
            id = _id_of(connection, name)
            return None if id is None else _object(connection, id)

    @recalled
    def id_of(self, name: str) -> GlobalId | None:
        """Returns the id of the object that a name denotes, or None.

        Raises:
            CatalogDamaged: None, and names are lost.
        """
        with self._database.read() as connection:
            return _id_of(connection, name)

    def version_of(self, id: GlobalId) -> int:
        """Returns how often a table or source was altered in place; 0 of anything else, and of what is not there."""
        return self.versions_of(id)[0]

    @recalled
    def versions_of(self, id: GlobalId) -> tuple[int, int]:
        """Returns `version` and `values` of an object; 0 of what is not there."""
        with self._database.read() as connection:
            row = connection.execute(_VERSION_OF, {"wanted": id}).one_or_none()
        shapes = None if row is None else shapes_of(row.shapes)
        values = 0 if row is None else int(json.loads(row.options).get(VALUES, 0))
        return 0 if shapes is None else shapes.version, values

    @recalled
    def object(self, id: GlobalId) -> ObjectRow:
        """Returns an object, dropped or not.

        Raises:
            CatalogDamaged: Rows of it are lost.
            UnknownObject: No object ever had that id, or nothing is left of it.
        """
        with self._database.read() as connection:
            return _object(connection, id)

    def was_dropped(self, id: GlobalId) -> bool:
        """Returns whether an id denotes nothing any more, whatever is left of what it denoted; False if it never did.

        A right that others have to its contents may outlive it.
        """
        with self._database.read() as connection:
            dropped = connection.execute(select(OBJECT.c.dropped).where(OBJECT.c.id == id)).scalar_one_or_none()
            return is_buried(connection, id) if dropped is None else bool(dropped)

    @recalled
    def objects(self, kind: str | None = None, *, dropped: bool = False) -> tuple[ObjectRow, ...]:
        """Returns the objects, of one kind if given, in order of creation.

        Args:
            kind: One of `KINDS`.
            dropped: Whether to return dropped ones too.
        """
        query = _ALL_OBJECTS if dropped else _UNDROPPED
        if kind is not None:
            query = query.where(OBJECT.c.kind == kind)
        with self._database.read() as connection:
            dependencies = dependencies_of(connection)
            return tuple(object_of(row, dependencies.get(row.id, {})) for row in connection.execute(query))

    def dependants(self, id: GlobalId) -> tuple[GlobalId, ...]:
        """Returns the objects that depend on an object directly and are not dropped, in order of creation."""
        query = (
            select(OBJECT.c.id)
            .join(DEPENDENCY, DEPENDENCY.c.dependant == OBJECT.c.id)
            .where(DEPENDENCY.c.dependency == id, OBJECT.c.dropped.is_(False))
            .order_by(OBJECT.c.sequence)
            .distinct()
        )
        with self._database.read() as connection:
            return tuple(GlobalId(one) for one in connection.execute(query.add_columns(OBJECT.c.sequence)).scalars())

    def indexes_on(self, ids: Collection[GlobalId]) -> tuple[ObjectRow, ...]:
        """Returns the indexes that depend on some objects directly and are not dropped, in order of creation.

        Those on an object are among them, and those whose plans read it.
        """
        return self._indexes_on(tuple(sorted(ids))) if ids else ()

    @recalled
    def _indexes_on(self, ids: tuple[GlobalId, ...]) -> tuple[ObjectRow, ...]:
        with self._database.read() as connection:
            rows = connection.execute(_INDEXES_ON, {"wanted": ids}).all()
            dependencies = dependencies_of(connection, [GlobalId(row.id) for row in rows]) if rows else {}
            return tuple(object_of(row, dependencies.get(GlobalId(row.id), {})) for row in rows)


def _redefine(connection: Connection, id: GlobalId, other: Redefinition, created: Sequence[GlobalId]) -> None:
    """Gives an object, which has no name by now, another name and text."""
    row = _object(connection, id)
    if other.before not in (None, row.sql):
        raise Redefined(other.name)
    give_name(connection, other.name, id)
    kept = {key: value for key, value in row.options.items() if key in (COMMENTS, PRIVILEGES, REFERENCES, VALUES)}
    options = {**other.options, **kept}
    connection.execute(_CHANGE, {"the_id": id, "sql": other.sql, "options": json_text(options)})
    connection.execute(delete(DEPENDENCY).where(DEPENDENCY.c.dependant == id))
    for name, known in sorted(other.dependencies.items()):
        dependency = created[known.position] if isinstance(known, Ref) else known
        connection.execute(_DEPEND, {"dependant": id, "name": name, "dependency": dependency})


def _bind_anew(connection: Connection, id: GlobalId, now: int) -> None:
    """Has an object and all that depends on it be bound anew, wherever they are known, to what it stands for now."""
    (number,) = next_ids(connection, "object", 1)
    for one in (id, *_dependants(_entries(connection, now), id)):
        options = json_text({**_object(connection, one).options, VALUES: number})
        connection.execute(_CHANGE, {"the_id": one, "options": options})


def set_privileges(connection: Connection, row: ObjectRow, granted: Mapping[int, str]) -> None:
    """Has an object be what was granted on it: letters, by the numbers of roles."""
    options = {name: value for name, value in row.options.items() if name != PRIVILEGES}
    options |= {PRIVILEGES: {str(role): letters for role, letters in granted.items()}} if granted else {}
    connection.execute(_CHANGE, {"the_id": row.id, "options": json_text(options)})


def drop_named(
    connection: Connection, ids: Collection[GlobalId], now_ms: int, *, cascade: bool = False
) -> tuple[GlobalId, ...]:
    """Drops objects with their indexes and arrangements; see `Objects.drop_objects`."""
    rows = [undropped(connection, id) for id in ids]
    entries = _entries(connection, now_ms)
    doomed = set(ids)
    for row in rows:
        if row.kind in ("index", "arrangement"):
            continue
        if cascade:
            doomed |= _dependants(entries, row.id)
        elif row.id in needed(entries, doomed):
            raise StillNeeded(row.name or row.id, _blockers(entries, row.id, doomed))
    return _drop(connection, doomed, entries, now_ms)


def _drop(
    connection: Connection, doomed: Collection[GlobalId], entries: dict[GlobalId, Entry], now: int
) -> tuple[GlobalId, ...]:
    """Takes the names of objects away, and drops what nothing needs then; returns the ids of what went."""
    take_names(connection, doomed)
    entries |= {id: replace(entries[id], name=None) for id in doomed}
    gone = entries.keys() - needed(entries, doomed)
    drop_rows(connection, gone, now)
    return tuple(sorted(gone))


def lose_names(connection: Connection, names: Mapping[GlobalId, str]) -> None:
    """Takes the names of objects away, which are to get others in the same transaction.

    Raises:
        UnknownObject: One was dropped, or is not called so.
    """
    for id, name in names.items():
        if undropped(connection, id).name != name:
            raise UnknownObject(id)
    take_names(connection, names)


def check_new(new: Sequence[NewObject]) -> None:
    """Refuses descriptions that contradict themselves.

    Raises:
        WrongDefinition: One does.
    """
    for position, one in enumerate(new):
        if one.kind not in KINDS:
            raise WrongDefinition(f'no kind of object "{one.kind}"', hint=f"Use one of {', '.join(KINDS)}.")
        for dependency in one.dependencies.values():
            if isinstance(dependency, Ref) and not 0 <= dependency.position < position:
                raise WrongDefinition(f'"{one.name}" depends on an object that is not before it')
        if isinstance(one.owner, Ref) and not 0 <= one.owner.position < len(new):
            raise WrongDefinition(f'the owner of "{one.name}" is not in the list')
        if len({column.name for column in one.columns}) != len(one.columns):
            raise WrongDefinition(
                f'"{one.name}" has two columns of one name', hint="Give each column a name of its own, with AS."
            )


def create_rows(
    connection: Connection,
    new: Sequence[NewObject],
    sequence: Sequence[int] | None = None,
    *,
    into: Mapping[int, GlobalId] = MappingProxyType({}),
) -> list[GlobalId]:
    """Creates objects and returns their ids.

    Args:
        connection: A transaction that writes.
        new: What to create.
        sequence: Numbers that were handed out for the objects before; fresh ones if None.
        into: The collections that become some of the objects, by their positions in the list.
    """
    sequence = next_ids(connection, "object", len(new)) if sequence is None else sequence
    ids = [
        into.get(position) or GlobalId(f"{'s' if one.kind == 'source' else 'u'}{number}")
        for position, (number, one) in enumerate(zip(sequence, new, strict=True))
    ]

    def resolve(one: GlobalId | Ref) -> GlobalId:
        return ids[one.position] if isinstance(one, Ref) else one

    def put(table: Table, rows: Sequence[dict[str, Any]]) -> None:
        fresh = [row for row in rows if row["id"] not in become]
        for row in rows:
            if row["id"] in become:
                connection.execute(update(table).where(table.c.id == row["id"]).values(**row))
        if fresh:
            connection.execute(insert(table), fresh)

    become = set(into.values())
    made = set(ids) - become
    lattices = {timeline: lattice_of(connection, timeline) for timeline in {one.timeline for one in new}}
    put(
        OBJECT,
        [
            {
                "id": id,
                "sequence": number,
                "created_as": one.created_as or one.name,
                "kind": one.kind,
                "sql": one.sql,
                "timeline": one.timeline,
                "column_types": columns_text(one.columns),
                "unique_keys": keys_text(one.keys),
                "monotonic": one.monotonic,
                "options": json_text(dict(one.options)),
                "tags": json_text(list(one.tags)),
                "has_collection": one.has_collection,
                "dropped": False,
            }
            for number, id, one in zip(sequence, ids, new, strict=True)
        ],
    )
    read: dict[GlobalId, ObjectRow] = {}
    depends: list[dict[str, Any]] = []
    stored: list[dict[str, Any]] = []
    for id, one in zip(ids, new, strict=True):
        if one.name is not None:
            give_name(connection, one.name, id)
            note_references(connection, id)
        dependencies = {name: resolve(dependency) for name, dependency in one.dependencies.items()}
        depends += [
            {"dependant": id, "name": name, "dependency": dependency}
            for name, dependency in sorted(dependencies.items())
        ]
        # What is read through a plain view was bound as that was.
        named = {
            id for name, id in dependencies.items() if one.kind != "arrangement" and not name.startswith("collection ")
        }
        for dependency in set(dependencies.values()) - made:  # what is new is as it is
            if dependency not in read:
                read[dependency] = undropped(connection, dependency)
            if one.is_bound_before or dependency not in named:
                continue
            if bound_shapes(one.options).get(dependency, 0) != read[dependency].version:
                raise TableAltered(dependency, read[dependency].version)
            if one.values.get(dependency, 0) != read[dependency].values:
                raise TypeAltered(dependency, read[dependency].values)
        if one.has_collection:
            since, lattice = one.since, lattices[one.timeline]
            upper = Antichain.empty(lattice) if one.upper is None else Antichain.of(lattice, one.upper)
            stored.append(
                {
                    "id": id,
                    "timeline": one.timeline,
                    "since": frontier_text(Antichain.of(lattice, since)),
                    "upper": frontier_text(upper),
                    "shard": f"shards/{id}",
                    "retention_ms": one.retention_ms,
                }
            )
        create_sequences(connection, id, one.sequences)
    put(COLLECTION, stored)
    if depends:
        connection.execute(_DEPEND, depends)
    owned = [
        {"the_id": id, "owner": resolve(one.owner)} for id, one in zip(ids, new, strict=True) if one.owner is not None
    ]
    if owned:
        connection.execute(_CHANGE, owned)
    _hold_inputs(connection, ids, new)
    return ids


def _hold_inputs(connection: Connection, ids: Sequence[GlobalId], new: Sequence[NewObject]) -> None:
    """Records which collections the new ones are computed from, and checks constraint R."""
    depends: dict[GlobalId, dict[str, GlobalId]] = {}
    stored: set[GlobalId] = set()
    looked_at, waiting = set(ids), set(ids)
    while waiting:
        depends |= dependencies_of(connection, waiting)
        stored |= _stored(connection, waiting)
        beyond = {id for id in waiting if id in ids or id not in stored}
        waiting = {one for id in beyond for one in depends.get(id, {}).values()} - looked_at
        looked_at |= waiting

    def inputs(id: GlobalId) -> set[GlobalId]:
        found: set[GlobalId] = set()
        for dependency in depends.get(id, {}).values():
            found |= {dependency} if dependency in stored else inputs(dependency)
        return found

    edges = {(id, one) for id in ids if id in stored for one in inputs(id)}
    for id, one in zip(ids, new, strict=True):
        # An owner that is created with its arrangement is computed from it, unless it is the other way round.
        if isinstance(one.owner, Ref) and {id, ids[one.owner.position]} <= stored:
            owner = ids[one.owner.position]
            if owner != id and owner not in inputs(id):
                edges.add((owner, id))
    if not edges:
        return
    ends = {one for edge in edges for one in edge}
    known = frontiers(connection, ends)
    timelines = {row.id: row.timeline for row in _TIMELINES.rows(connection, ends)}
    for output, input in sorted(edges):
        # Two timelines may count alike, and their times never compare all the same. Constants are of none.
        if timelines[input] not in (None, timelines[output]):
            raise WrongDefinition(
                f'"{output}" and its input "{input}" are of timelines that never compare',
                detail=f'"{output}" is on timeline "{timelines[output]}", "{input}" on "{timelines[input]}".',
            )
        if not known[input][0] <= known[output][0]:
            raise SinceBehindInput(
                f'"{output}" cannot start at {known[output][0]}: its input "{input}" starts at {known[input][0]}',
                hint="Start it at a time at which all of its inputs are readable, and hold them there meanwhile.",
            )
    connection.execute(_HOLD, [{"output": output, "input": input} for output, input in sorted(edges)])


def _stored(connection: Connection, ids: Collection[GlobalId]) -> set[GlobalId]:
    """Returns which of some objects have collections."""
    return {GlobalId(row.id) for row in _TIMELINES.rows(connection, ids)}


def drop_rows(connection: Connection, ids: Iterable[GlobalId], now: int) -> None:
    """Drops objects that nothing needs, with names and holds; what others have a right to stays as long as that."""
    gone = [{"the_id": id} for id in sorted(ids)]
    if not gone:
        return
    connection.execute(_CHANGE, [{**one, "dropped": True} for one in gone])
    take_names(connection, [one["the_id"] for one in gone])
    connection.execute(_LET_GO, gone)
    connection.execute(_CHANGE_COLLECTION, [{**one, "failure": None, "poll_failure": None} for one in gone])
    for one in gone:
        close_dropped(connection, one["the_id"], now)
    bury(connection)


def take_over(connection: Connection, new: GlobalId, takeover: Takeover, time: int, now: int) -> None:
    """Drops a table in whose place another comes, which is readable from a time on.

    Raises:
        StillNeeded: Something depends on it that does not go with it.
        TableAltered: It is not what it was when the other was made up.
        UnknownObject: It does not exist, or was dropped.
    """
    row, looked = undropped(connection, takeover.old), takeover.looked
    entries = _entries(connection, now)
    going = {} if looked is None else looked.readers
    readers = _dependants(entries, row.id) - going.keys()
    if readers:
        raise StillNeeded(row.name or row.id, sorted(str(entries[one].name or one) for one in readers))
    if looked is None:
        hand_over_sequences(connection, row.id, new, takeover.columns)
    elif without_privileges(row) != without_privileges(looked.row) or numbers_of(connection, row.id) != looked.numbers:
        raise TableAltered(row.id, row.version)
    for id, name in going.items():
        if name is not None and (id not in entries or entries[id].name != name):
            raise TableAltered(row.id, row.version)
    if row.privileges:
        set_privileges(connection, undropped(connection, new), row.privileges)
    rename_referenced(connection, row, takeover.columns)
    # What a block has made over it by now begins with what it holds just before.
    uppers = select(COLLECTION.c.upper).where(COLLECTION.c.id.in_(_dependants(entries, new)))
    lattice = lattice_of(connection, row.timeline)
    begins = [each - 1 for upper in connection.execute(uppers).scalars() for each in frontier_of(lattice, upper)]
    since = frontier_text(Antichain.of(lattice, min([time, *begins])))
    connection.execute(_CHANGE_COLLECTION, {"the_id": new, "since": since})
    _drop(connection, {row.id, *(going.keys() & entries.keys())}, entries, now)


def alter_in_place(connection: Connection, id: GlobalId, alteration: Alteration, now: int) -> None:
    """Alters a table or source that others may read, and that was held against `check_as_looked`.

    Raises:
        TableAltered: What reads it has changed.
        UnknownObject: It does not exist, or was dropped.
    """
    row = undropped(connection, id)
    entries = _entries(connection, now)
    if _dependants(entries, id) != alteration.readers:
        raise TableAltered(id, row.version)
    if alteration.dropped:
        take_names(connection, alteration.dropped)
        entries = _entries(connection, now)
        drop_rows(connection, entries.keys() - needed(entries, alteration.dropped), now)
    options = {name: value for name, value in row.options.items() if name not in (COMMENTS, REFERENCES)}
    options |= {COMMENTS: dict(alteration.comments)} if alteration.comments else {}
    options |= {REFERENCES: list(alteration.references)} if alteration.references else {}
    changed = {
        "sql": alteration.sql,
        "column_types": columns_text(alteration.columns),
        "unique_keys": keys_text(alteration.keys),
        "shapes": shapes_text(alteration.shapes),
        "options": json_text(options),
    }
    connection.execute(_CHANGE, {"the_id": id, **changed})
    for name in alteration.types.keys() - row.dependencies.keys():
        connection.execute(_DEPEND, {"dependant": id, "name": name, "dependency": alteration.types[name]})
    alter_sequences(connection, id, alteration.renamed, alteration.sequences, alteration.claimed)
    note_references(connection, id)
    rename_referenced(connection, row, alteration.renamed)


def _give_value(connection: Connection, alteration: TypeAlteration, now: int) -> None:
    """Gives a type its values, in its own row and in those of all that depends on it; their contents stay."""
    row = undropped(connection, alteration.type)
    readers = _dependants(_entries(connection, now), row.id)
    if row.columns[0].type.enumeration != alteration.before or readers != alteration.readers:
        raise TypeAltered(row.id, row.values)
    (number,) = next_ids(connection, "object", 1)
    before, after = alteration.before, alteration.after
    for one in (row, *(_object(connection, id) for id in sorted(readers))):
        values: dict[str, Any] = {
            "column_types": columns_text(one.relation_type.with_values(before, after).columns),
            "options": json_text({**one.options, VALUES: number}),
        }
        if one.shapes is not None:
            values["shapes"] = shapes_text(one.shapes.with_values(before, after))
        if one.id in alteration.texts:
            values["sql"] = alteration.texts[one.id]
        connection.execute(_CHANGE, {"the_id": one.id, **values})


def _entries(connection: Connection, now: int) -> dict[GlobalId, Entry]:
    keepers = set(connection.execute(_KEEPERS, moment_of(connection, now)).scalars())
    dependencies = dependencies_of(connection)
    used = {one for each in dependencies.values() for one in each.values()}
    return {
        GlobalId(row.id): Entry(
            GlobalId(row.id),
            row.kind,
            row.name,
            row.created_as,
            None if row.owner is None else GlobalId(row.owner),
            frozenset(dependencies.get(row.id, {}).values()),
            row.id in used,
            KEEPER in row.options and json.loads(row.options).get(KEEPER) in keepers,
        )
        for row in connection.execute(_ENTRIES).all()
    }


def _dependants(entries: Mapping[GlobalId, Entry], id: GlobalId) -> set[GlobalId]:
    """Returns everything that depends on an object, directly or not."""
    reached, size = {id}, 0
    while size < len(reached):  # once, but for a connection that was given what is newer than it
        size = len(reached)
        for entry in entries.values():  # in order of creation, so dependants come after what they depend on
            if reached & set(entry.dependencies):
                reached.add(entry.id)
    return reached - {id}


def _blockers(entries: Mapping[GlobalId, Entry], id: GlobalId, doomed: Collection[GlobalId]) -> list[str]:
    """Returns the names, or ids, of what depends on an object and neither is dropped nor would simply go with it."""
    found = [entries[one] for one in _dependants(entries, id) - set(doomed)]
    return sorted(entry.name or entry.id for entry in found if entry.kind not in ("index", "arrangement"))


def undropped(connection: Connection, id: GlobalId) -> ObjectRow:
    """Returns an object that is there; raises `UnknownObject` if it was dropped."""
    row = _object(connection, id)
    if row.dropped:
        raise UnknownObject(id, dropped=True)
    return row


def _id_of(connection: Connection, name: str) -> GlobalId | None:
    id = connection.execute(_ID_OF, {"called": name}).scalar_one_or_none()
    if id is None:
        check_names(connection)
    return None if id is None else GlobalId(id)


def _object(connection: Connection, id: GlobalId) -> ObjectRow:
    rows = _OBJECTS.rows(connection, [id])
    if not rows:
        if is_buried(connection, id):
            raise UnknownObject(id, dropped=True)
        check_absent(connection, id)
        raise UnknownObject(id)
    return _with_dependencies(connection, rows[0])


def _with_dependencies(connection: Connection, row: Any) -> ObjectRow:
    return object_of(row, dependencies_of(connection, [row.id]).get(GlobalId(row.id), {}))


def _objects(connection: Connection, ids: Sequence[GlobalId]) -> tuple[ObjectRow, ...]:
    """Returns objects that are there, in the order of the ids."""
    rows = _OBJECTS.rows(connection, ids)
    depends = dependencies_of(connection, ids)
    found = {GlobalId(row.id): object_of(row, depends.get(GlobalId(row.id), {})) for row in rows}
    return tuple(found[id] for id in ids)
