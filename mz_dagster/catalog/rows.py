"""The catalog's values: what its methods take and return, frozen and free of SQL.

Rows say what the catalog held in one transaction; outcomes (`Sealed`, `CollectionUpperMismatch`, ...) say what a
compare-and-set found. An expected outcome is a value, so that a caller must look at it; only a broken
rule is an exception. Nothing here reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NewType, TypeAlias

from mz_dagster.catalog.shapes import Shapes
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.scalars.types import Column, Enumeration, RelationType

BatchId = NewType("BatchId", int)
"""Names one attempt to write a batch; never reused, so two attempts never share rows."""

WriterId = NewType("WriterId", int)
"""Names a process's lease to write batches."""

KINDS = (
    "source", "table", "view", "materialized view", "index", "arrangement", "collection", "schema", "type", "sink",
    "check", "secret", "connection",
)  # fmt: skip
"""What an object can be; a `collection` has no SQL: it is written through capabilities, and by nothing else."""

KEEPER = "keeper"
"""The option of an object that is about to get its name, or never will, as a session's own: the writer whose lease
keeps it as long as it has none."""

COMMENTS = "comments"
"""The option of an object that says its comments, by column; by the empty text its own."""

PRIVILEGES = "privileges"
"""The option of an object that says what was granted on it: PostgreSQL's letters, by the numbers of roles."""

LETTERS = "arwdDxt"
"""PostgreSQL's letters of privileges: INSERT, SELECT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER."""

SCHEMA = "schema"
"""The option of an object that says its schema, if that is not `public`."""

VALUES = "values"
"""The option of an object that says `ObjectRow.values`."""

Keys = frozenset[frozenset[int]]
"""Sets of column positions that are each unique at every time."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A timeline: its name, the name of its lattice, and how far its oracle has come."""

    name: str
    lattice: str
    read_ts: int
    write_ts: int


@dataclass(frozen=True, slots=True)
class BoundFile:
    """A file that a binding made part of a source, with what proves that it has not changed since.

    Attributes:
        path: Relative to the source's folder.
        size: In bytes.
        sha256: Of its content.
        identity: What changes whenever the file is written or replaced, as it was when its content was last hashed. A
            file that still has it need not be hashed again. None if nobody knows; two bound files are equal whatever it
            is.
    """

    path: str
    size: int
    sha256: str
    identity: str | None = field(default=None, compare=False)


Offset = Mapping[str, object]
"""Where a source stands: JSON of its transport's own making, which nobody else looks into."""
#: What an offset of a source of files has, by which its errors end: how many they were.
DROPPED_ERRORS = "dropped_errors"


@dataclass(frozen=True, slots=True)
class Binding:
    """The durable fact of what a source gains at `tick`, beyond all earlier bindings: files, or all up to an offset.

    Attributes:
        source: The source.
        tick: The time at which that takes effect.
        files: In the order in which they are to be read.
        offset: Up to where it is read; None if its transport has no offsets. Of a source of files, that its errors end.
    """

    source: GlobalId
    tick: int
    files: tuple[BoundFile, ...] = ()
    offset: Offset | None = None

    @property
    def drops_errors(self) -> bool:
        """Whether it is the end of the errors that the source had before it."""
        return self.offset is not None and DROPPED_ERRORS in self.offset


@dataclass(frozen=True, slots=True)
class TickMinted:
    """Says that a tick was minted, with its bindings, in one transaction."""

    timeline: str
    tick: int


@dataclass(frozen=True, slots=True)
class TickMoved:
    """Says that nothing was minted, because the timeline is not where the caller believed.

    Attributes:
        timeline: The timeline.
        last: Its last tick, or None.
        read_ts: Its oracle's read timestamp; a new tick must be greater than both.
    """

    timeline: str
    last: int | None
    read_ts: int


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands, in a list of objects to be created together, for the id of the one at `position`."""

    position: int


@dataclass(frozen=True, slots=True)
class NewObject:
    """Describes an object to be created.

    Attributes:
        name: The name to bind to it; None for an arrangement that no name denotes.
        kind: One of `KINDS`.
        sql: The statement that defines it, or text for display.
        timeline: The timeline of its times; None if it depends on none.
        columns: Its columns.
        keys: Sets of column positions, each unique.
        monotonic: Whether it is proven never to retract.
        dependencies: What it reads, by the names used when it was bound. A `Ref` denotes an earlier object of the
            same list.
        owner: The object that it serves and with which it goes; a `Ref` may denote any object of the list.
        options: Anything JSON-able.
        tags: For display and selection.
        has_collection: Whether it has contents of its own (a plain view has none).
        since: Where its collection starts to be readable.
        upper: Where its collection is not known yet; None for `{}`, closed from the start.
        retention_ms: How much history its collection keeps readable behind its upper; None for the project's default.
        created_as: The name that it had when it was first made; None for `name`.
        sequences: The columns that generate their values.
        is_bound_before: Whether it is bound as an older object was, so that a table that it reads may have been altered
            since.
        values: By what it depends on: `ObjectRow.values` as it was bound to, if that was not 0.
    """

    name: str | None
    kind: str
    sql: str
    timeline: str | None
    columns: tuple[Column, ...]
    keys: Keys = frozenset()
    monotonic: bool = False
    dependencies: Mapping[str, GlobalId | Ref] = field(default_factory=dict)
    owner: GlobalId | Ref | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    has_collection: bool = True
    since: int = 0
    upper: int | None = 0
    retention_ms: int | None = None
    created_as: str | None = None
    sequences: frozenset[str] = frozenset()
    is_bound_before: bool = False
    values: Mapping[GlobalId, int] = field(default_factory=dict)

    def begun_at(self, time: int) -> NewObject:
        """Returns it with contents that are readable from a time on, which are to be computed."""
        return replace(self, since=time, upper=time) if self.has_collection else self


@dataclass(frozen=True, slots=True)
class Alteration:
    """Says that a table is altered in place, from the time of a batch of its own on; or a source, at once.

    Attributes:
        looked: What it was when that was made up; it has to be so still, but for its name and what is granted on it.
        sql: Its definition from then on.
        columns: Its columns.
        keys: Its keys.
        shapes: Its shapes; the last one is new.
        renamed: The columns that it keeps, by what they were called.
        sequences: The columns that generate their values.
        claimed: The last number that rows have got, by the columns that do not just go on.
        comments: What is said of it, and of its columns.
        readers: All that depended on it, directly or not, when that was looked at.
        dropped: What of it goes with the alteration.
        types: The types that were created and that its columns are of, by their names.
        references: Its foreign keys, as its options have them.
        numbers: Where its sequences must stand before, by their columns; None: anywhere.
        indexes: What is created over it as it is from then on.
    """

    looked: ObjectRow
    sql: str
    columns: tuple[Column, ...]
    keys: Keys
    shapes: Shapes
    renamed: Mapping[str, str]
    sequences: frozenset[str]
    comments: Mapping[str, str]
    readers: frozenset[GlobalId]
    dropped: frozenset[GlobalId] = frozenset()
    claimed: Mapping[str, int | None] = field(default_factory=dict)
    types: Mapping[str, GlobalId] = field(default_factory=dict)
    references: Sequence[Mapping[str, Any]] = ()
    numbers: Mapping[str, int | None] | None = None
    indexes: tuple[NewObject, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeAlteration:
    """Says that a type that was created gets another value, or one of its values another label.

    Attributes:
        type: The type.
        texts: Definitions from then on: its own, and those of readers that say the label.
        before: Its values.
        after: Its values from then on.
        readers: All that depends on it, directly or not.
    """

    type: GlobalId
    texts: Mapping[GlobalId, str]
    before: Enumeration
    after: Enumeration
    readers: frozenset[GlobalId]


@dataclass(frozen=True, slots=True)
class Redefinition:
    """Another name and text of an object that is what it was; or of a connection or a secret, which leads elsewhere.

    Attributes:
        name: Its name.
        sql: Its definition.
        dependencies: What it reads, as before, by the names used in that. Of a connection it may be another, and a
            `Ref` denotes one that is created with it.
        options: Its options, but for comments and privileges.
        before: The definition of one that leads elsewhere, as it was; what depends on it is bound anew. Else None.
    """

    name: str
    sql: str
    dependencies: Mapping[str, GlobalId | Ref]
    options: Mapping[str, Any]
    before: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """A created object: `name`, `dropped`, comments and privileges change; what it is, if a collection becomes a view.

    Of a table that is altered in place all changes that an alteration says; and where a type is given a value, this and
    all that depends on it know more values.

    Attributes:
        id: Its GlobalId, never reused.
        name: The name that denotes it now; None if none does, because it never had one or lost it.
        created_as: The name under which it was created.
        kind: One of `KINDS`.
        sql: The statement that defines it.
        timeline: The timeline of its times, or None.
        columns: Its columns.
        keys: Sets of column positions, each unique.
        monotonic: Whether it is proven never to retract.
        dependencies: What it reads, by the names used when it was bound.
        owner: The object that it serves, or None.
        options: As created, and the comments and privileges.
        tags: As created.
        has_collection: Whether it has contents of its own.
        dropped: Whether it is gone; its id and row remain.
        shapes: Of a table or source that was altered in place: the shapes that it had; else None.
    """

    id: GlobalId
    name: str | None
    created_as: str | None
    kind: str
    sql: str
    timeline: str | None
    columns: tuple[Column, ...]
    keys: Keys
    monotonic: bool
    dependencies: Mapping[str, GlobalId]
    owner: GlobalId | None
    options: Mapping[str, Any]
    tags: tuple[str, ...]
    has_collection: bool
    dropped: bool
    shapes: Shapes | None = None

    @property
    def schema(self) -> str:
        """The schema that it is in."""
        return str(self.options.get(SCHEMA, "public"))

    @property
    def version(self) -> int:
        """How often a table or source was altered in place."""
        return 0 if self.shapes is None else self.shapes.version

    @property
    def places(self) -> Sequence[int]:
        """The places of its columns among those that are stored of it, by which an index on it says its key."""
        return range(len(self.columns)) if self.shapes is None else self.shapes.places

    @property
    def values(self) -> int:
        """The number of the last time that a type it depends on, or it itself, was given a value; 0 if none was."""
        return int(self.options.get(VALUES, 0))

    @property
    def privileges(self) -> Mapping[int, str]:
        """What was granted on it: PostgreSQL's letters, by the numbers of roles; that of all is 0."""
        granted: Mapping[str, str] = self.options.get(PRIVILEGES, {})
        return {int(role): letters for role, letters in granted.items()}

    @property
    def comments(self) -> Mapping[str, str]:
        """What sessions said of it: by column, and by the empty text of itself."""
        said: Mapping[str, str] = self.options.get(COMMENTS, {})
        return said

    @property
    def relation_type(self) -> RelationType:
        """Columns, keys and monotonicity, as the planner wants them."""
        return RelationType(self.columns, self.keys, self.monotonic)


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """What the catalog knows of a collection.

    Attributes:
        id: Its object's GlobalId.
        timeline: The timeline of its times, or None for constants.
        since: Reads are right at times beyond it; `{}` once dropped.
        upper: Times beyond it are not known yet; `{}` once closed.
        columns: Its data columns, under their names in its shard (`shard_names`).
        keys: Sets of column positions, each unique.
        shard: The shard's folder below the storage root.
        failure: Why its last step did not finish, or None.
        poll_failure: Of a source: why nobody knows what it contains by now, in one line; None if its last poll went
            well. It stays where it is until one does.
        retention_ms: Its own retention, or None for the project's.
        next_due: The least time, not before its upper, at which it may change although no input does: a row of a
            temporal filter becomes valid or ceases to be. None if there is none.
        called: What SQL calls the columns; empty if that is as in the shard.
        places: Of a table that was altered in place: which of the columns are its own by now, in their order; the
            others were dropped. Empty for all.
        version: How often a table was altered in place.
    """

    id: GlobalId
    timeline: str | None
    since: Antichain[int]
    upper: Antichain[int]
    columns: tuple[Column, ...]
    keys: Keys
    shard: str
    failure: str | None
    retention_ms: int | None = None
    next_due: int | None = None
    poll_failure: str | None = None
    called: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    version: int = 0

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that SQL sees, under its names."""
        places = self.places or range(len(self.columns))
        return tuple(replace(self.columns[i], name=self.names[i]) for i in places)

    def stored(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Returns a row of the columns that SQL sees as the collection has it."""
        if not self.places:
            return tuple(row)
        cells: list[Any] = [None] * len(self.columns)
        for place, cell in zip(self.places, row, strict=True):
            cells[place] = cell
        return tuple(cells)

    @property
    def names(self) -> tuple[str, ...]:
        """What SQL calls the columns."""
        return self.called or tuple(one.name for one in self.columns)

    @property
    def reason(self) -> str | None:
        """Why it stays behind, if that is not because of what it is computed from, in one line."""
        return self.poll_failure or self.failure

    @property
    def is_hydrated(self) -> bool:
        """Whether it is readable at all: `since < upper`; a new collection begins with both equal."""
        return self.since < self.upper

    def is_readable_at(self, time: int) -> bool:
        """Returns whether `since <= time` and not `upper <= time`."""
        return self.since.less_equal(time) and not self.upper.less_equal(time)

    def is_due(self, upper: int) -> bool:
        """Returns whether it may change before `upper` although no input does."""
        return self.next_due is not None and self.next_due < upper


class BatchState(Enum):
    """Where a batch stands; the arrows are the only moves.

    `writing -> live -> replaced -> dead -> (forgotten)` and `writing -> dead -> (forgotten)`.
    """

    WRITING = "writing"
    LIVE = "live"
    REPLACED = "replaced"
    DEAD = "dead"


Payload: TypeAlias = bytes
"""The updates of an inlined batch."""

INLINED = "inlined"
"""What the list of files of a batch names in the place of a path if its updates are in the catalog (`inlined`)."""


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A data file of a batch, with what proves that it is the one that was written.

    Attributes:
        path: Relative to the shard's folder; `INLINED` if it is no file but a payload in the catalog.
        rows: How many updates it holds.
        errors: How many of them are of the error part.
        bytes: Its size.
        hash: Of all its bytes: XXH3 of 128 bits, in hexadecimal.
        times: The least and the greatest time of its updates; None if one has no time.
    """

    path: str
    rows: int
    errors: int
    bytes: int
    hash: str
    times: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class BatchStats:
    """What a batch holds.

    Attributes:
        rows: How many updates.
        errors: How many of them are of the error part.
        files: In how many files.
        bytes: And how many bytes.
        file_list: The files; None for a batch of a version that did not list them. Stats are equal whatever it is.
        payload: The updates themselves, of a batch that is to be inlined, until it is sealed; None if they are stored.
    """

    rows: int
    errors: int
    files: int
    bytes: int
    file_list: tuple[BatchFile, ...] | None = field(default=None, compare=False)
    payload: Payload | None = field(default=None, compare=False, repr=False)

    @property
    def inlined(self) -> BatchFile | None:
        """What is known of the payload in the catalog; None if the updates are in files."""
        return next((one for one in self.file_list or () if one.path == INLINED), None)


NO_ROWS = BatchStats(0, 0, 0, 0)
"""The stats of an append that had nothing to write."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The updates of one collection in `[lower, upper)`, stored in its shard under `mz_batch = id`."""

    id: BatchId
    collection: GlobalId
    lower: Antichain[int]
    upper: Antichain[int]
    state: BatchState
    stats: BatchStats


@dataclass(frozen=True, slots=True)
class Reservation:
    """Asks for a batch id under which the updates of `[lower, upper)` of a collection will be written."""

    collection: GlobalId
    lower: Antichain[int]
    upper: Antichain[int]


@dataclass(frozen=True, slots=True)
class Seal:
    """Moves a collection's upper from `lower` to `upper`.

    Attributes:
        collection: The collection.
        lower: The upper that it is expected to have.
        upper: The upper that it gets.
        batch: The batch with the updates of `[lower, upper)`; None if there are none.
        stats: The batch's stats as its append returned them; with no rows the batch is as good as None. If they carry
            the updates, nothing needs to be reserved under its id.
    """

    collection: GlobalId
    lower: Antichain[int]
    upper: Antichain[int]
    batch: BatchId | None = None
    stats: BatchStats | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """Says that every seal took effect, in one transaction."""

    collections: tuple[GlobalId, ...]


@dataclass(frozen=True, slots=True)
class TimelineHold:
    """The right to read everything on a timeline that could be read at a time, at that time.

    Attributes:
        timeline: The timeline.
        time: The time.
        collections: What could be read then.
        first: The least number of its capabilities, one for each collection.
        last: The greatest.
        secret: What its holder shows.
    """

    timeline: str
    time: int
    collections: frozenset[GlobalId]
    first: int
    last: int
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a write has read: some collections, all at one time.

    Attributes:
        time: The time.
        collections: What was read, directly; what that is computed from counts, too.
        references: How often tables had come to refer to others when it was looked which ones do; None if it was not.
    """

    time: int
    collections: frozenset[GlobalId]
    references: int | None = None


@dataclass(frozen=True, slots=True)
class ReadChanged:
    """Says that nothing was sealed, because this collection, which decides what was read, is not what it was then."""

    collection: GlobalId


@dataclass(frozen=True, slots=True)
class ComputeReplica:
    """A process that computes beside the leaders.

    Attributes:
        name: What it is called.
        holder: Who it is, in words that help to find it.
        engine: Who computes in it, for people.
        started_ms: Since when, in milliseconds of the wall clock.
        until_ms: Until when it counts as live unless it says that it is, likewise.
    """

    name: str
    holder: str
    engine: str
    started_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class CollectionUpperMismatch:
    """Says that nothing was sealed, because this collection's upper is not as expected.

    Once dropped, a collection has the upper `{}`.
    """

    collection: GlobalId
    expected: Antichain[int]
    found: Antichain[int]


@dataclass(frozen=True, slots=True)
class BatchNotWriting:
    """Says that nothing was sealed or replaced, because this batch is not `writing` any more.

    Attributes:
        batch: The batch.
        state: Its state; None if it was swept and forgotten.
    """

    batch: BatchId
    state: BatchState | None


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """Says that nothing was sealed, because another holder leads the timeline now, or nobody does."""

    timeline: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """Says that one batch took the place of its parts."""

    batch: BatchId


@dataclass(frozen=True, slots=True)
class LostRace:
    """Says that nothing was replaced: these parts are not live any more, or are not neighbours."""

    parts: tuple[BatchId, ...]


@dataclass(frozen=True, slots=True)
class ListedBatches:
    """A collection's live batches in one transaction; gaps between them are known to be empty.

    Attributes:
        since: The collection's since.
        upper: The collection's upper.
        batches: By lower.
    """

    since: Antichain[int]
    upper: Antichain[int]
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to read the listed batches until it is released or expires."""

    id: int
    snapshots: Mapping[GlobalId, ListedBatches]


@dataclass(frozen=True, slots=True)
class Leadership:
    """The right to write a timeline; the epoch fences off every earlier holder."""

    timeline: str
    epoch: int
    holder: str


@dataclass(frozen=True, slots=True)
class LedByAnother:
    """Says that another holder leads the timeline until (at least) `until_ms`."""

    timeline: str
    holder: str
    until_ms: int

    def ending(self, now_ms: int) -> str:
        """Returns when the lease ends, for people: it is renewed as long as its holder works.

        Example:
            >>> LedByAnother("t", "host process 7", 61_500).ending(50_000)
            'its lease ends in 12 s unless it is renewed'
        """
        return f"its lease ends in {max(0, -(-(self.until_ms - now_ms) // 1000))} s unless it is renewed"


@dataclass(frozen=True, slots=True)
class _Capability:
    """What every capability has.

    Attributes:
        token: The unguessable bearer id; the catalog keeps only its hash.
        collection: The collection.
        frontier: Where it holds a frontier of the collection back; `{}` if it grants nothing.
        until_ms: When it expires unless renewed; None for never.
    """

    token: str = field(repr=False)
    collection: GlobalId
    frontier: Antichain[int]
    until_ms: int | None

    @property
    def label(self) -> str:
        """What it may be called before people: the part of the token that is no secret."""
        return capability_label(self.token)


@dataclass(frozen=True, slots=True)
class ReadCapability(_Capability):
    """A durable right that holds a collection's since back: it can be read at every time beyond the frontier."""


@dataclass(frozen=True, slots=True)
class WriteCapability(_Capability):
    """A durable right that holds a collection's upper back: it may be appended to at times beyond the frontier."""


Capability = ReadCapability | WriteCapability


def capability_label(token: str) -> str:
    """Returns what a token may be called before people: never more than its number.

    Example:
        >>> capability_label("r12.c2VjcmV0"), capability_label("c2VjcmV0")
        ('r12', '?')
    """
    head = token.partition(".")[0]
    return head if re.fullmatch(r"[rw]\d{1,18}", head) else "?"


@dataclass(frozen=True, slots=True)
class RoleRow:
    """Somebody who may connect, or whom others are allowed something by.

    Attributes:
        id: Its number, which no other role ever has.
        name: Its name.
        can_login: Whether it may connect.
        verifier: What SCRAM compares its password with, as PostgreSQL writes it; None if it has no password.
        groups: The numbers of the roles that it is a member of by a grant of its own.
    """

    id: int
    name: str
    can_login: bool
    verifier: str | None = field(repr=False)
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    """What may be shown of a capability.

    Attributes:
        label: Its number, `r12` or `w12`; None for what the catalog's objects hold on each other, which has no token.
        collection: The collection that it is on.
        right: `read` or `write`.
        frontier: Where it holds since or upper back.
        holder: Who asked for it and for what, in words; the id of the object that holds it, if it has no token.
        until_ms: When it expires unless renewed; None for never.
        is_live: Whether it still holds anything back.
    """

    label: str | None
    collection: GlobalId
    right: str
    frontier: Antichain[int]
    holder: str
    until_ms: int | None
    is_live: bool
