"""The catalog: a project's names, ids, frontiers, batches, bindings, leases and oracle, in a SQL database.

Owns the durable state that everything else follows from, and the only consensus: SQLAlchemy Core on SQLite
by default, PostgreSQL in production. Every method of `Catalog` is one transaction, states what it
expected to find, and is on disk when it returns, but for what a power cut ends anyway (`Database.write`).

The invariants:

- a GlobalId, and a batch id, denotes one thing for good; since, upper, ticks, timestamps and epochs only grow;
- a collection's content is its live batches, and a batch becomes live, or gives way to a merged one, in the
  transaction that says so, or never;
- a batch on a live lease's list, or that its writer could still seal, is not declared dead; one that was
  declared dead is never sealed or listed again;
- clocks decide when to try, never what is safe.

In the order of import:

- `rows`, `errors`, `codec`: values, errors, and how values are written as text;
- `url`, `schema`, `change_triggers`, `database`, `migrations/`, `upgrade`: where the database is; tables and triggers,
  transactions, and how it gets the tables; `state_format`: the format of what lies beside them;
- `timelines`, `ticks`: lattices, the oracle, the writer's lease; ticks and bindings;
- `contents`: what a collection consists of, summed in its own row, and compared by whoever takes a list;
- `frontiers`: since and upper, retention, logical compaction;
- `reachability`, `tombstones`, `naming`, `references`, `stored_objects`, `objects`: definitions and names, what tables
  refer to, and what stays of dropped ones;
- `replica`: objects and frontiers in the memory of a process, kept from one question to the next;
- `payloads`: the updates of batches that are stored with their seals;
- `reads`, `batches`, `listings`, `sweeping`: the life of a batch, and what its seal expects;
- `capabilities`, `appends`, `maintaining`: rights to read and to write, and what is written and computed by right of
  tokens;
- `leases`: what is being read;
- `compute_replicas`: who computes beside the leaders;
- `idle_advance`: time in which nothing happens;
- `roles`: who may connect, and what is granted on objects;
- `overview`: what others hold and have written, to be shown;
- `records`, `repairs`: its rows as they are, and copies of them; what may be mended in them;
- `moved_tables`: what becomes of one that cannot be repaired;
- `catalog`: all of it in one class.

It does not read or write shards, look into payloads, parse SQL, or know what an object's definition means.

Open to other layers beside this front door: `codec`, `contents`, `moved_tables`, `records`, `schema`, `shard_names`,
`sweeping`, `url`.
"""

from mz_dagster.catalog.batches import interval_of
from mz_dagster.catalog.catalog import Catalog
from mz_dagster.catalog.errors import (
    CapabilityExpired,
    CatalogBusy,
    CatalogDamaged,
    CatalogTaken,
    CatalogTooNew,
    CatalogTooOld,
    CatalogUnavailable,
    FileAlreadyBound,
    FrontierNotHeld,
    InputNotHeld,
    NameTaken,
    OtherCatalog,
    Redefined,
    SinceBehindInput,
    StateTooNew,
    StateTooOld,
    StillNeeded,
    TableAltered,
    TimelineDiffers,
    TypeAltered,
    UnknownCapability,
    UnknownLease,
    UnknownObject,
    UnknownTimeline,
    UnknownWriter,
    UpperBeyondInput,
    WrongDefinition,
    WrongRight,
    WrongSeal,
)
from mz_dagster.catalog.listings import Moment
from mz_dagster.catalog.payloads import payloads_in
from mz_dagster.catalog.references import REFERENCES, STANDS_FOR, stands_for
from mz_dagster.catalog.replica import CatalogState
from mz_dagster.catalog.roles import EVERYBODY
from mz_dagster.catalog.rows import (
    COMMENTS,
    DROPPED_ERRORS,
    INLINED,
    KEEPER,
    KINDS,
    LETTERS,
    NO_ROWS,
    PRIVILEGES,
    SCHEMA,
    Alteration,
    Batch,
    BatchFile,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    Binding,
    BoundFile,
    Capability,
    CapabilityRow,
    CollectionRow,
    CollectionUpperMismatch,
    ComputeReplica,
    Keys,
    Leadership,
    LeadershipLost,
    Lease,
    LedByAnother,
    ListedBatches,
    LostRace,
    NewObject,
    ObjectRow,
    Offset,
    ReadCapability,
    ReadChanged,
    ReadSet,
    Redefinition,
    Ref,
    Replaced,
    Reservation,
    RoleRow,
    Seal,
    Sealed,
    TickMinted,
    TickMoved,
    TimelineHold,
    TimelineRow,
    TypeAlteration,
    WriteCapability,
    WriterId,
)
from mz_dagster.catalog.shapes import ADDED_AT, BOUND_SHAPES, Shape, Shapes, bound_shapes, first_shape, free_name
from mz_dagster.catalog.shard_names import in_shard, shard_names
from mz_dagster.catalog.takeover import Looked, Takeover
from mz_dagster.catalog.timelines import LostLeader
from mz_dagster.catalog.url import BadCatalogUrl, CatalogUrl

__all__ = [
    "ADDED_AT",
    "BOUND_SHAPES",
    "COMMENTS",
    "DROPPED_ERRORS",
    "EVERYBODY",
    "INLINED",
    "KEEPER",
    "KINDS",
    "LETTERS",
    "NO_ROWS",
    "PRIVILEGES",
    "REFERENCES",
    "SCHEMA",
    "STANDS_FOR",
    "Alteration",
    "BadCatalogUrl",
    "Batch",
    "BatchFile",
    "BatchId",
    "BatchNotWriting",
    "BatchState",
    "BatchStats",
    "Binding",
    "BoundFile",
    "Capability",
    "CapabilityExpired",
    "CapabilityRow",
    "Catalog",
    "CatalogBusy",
    "CatalogDamaged",
    "CatalogState",
    "CatalogTaken",
    "CatalogTooNew",
    "CatalogTooOld",
    "CatalogUnavailable",
    "CatalogUrl",
    "CollectionRow",
    "CollectionUpperMismatch",
    "ComputeReplica",
    "FileAlreadyBound",
    "FrontierNotHeld",
    "InputNotHeld",
    "Keys",
    "Leadership",
    "LeadershipLost",
    "Lease",
    "LedByAnother",
    "ListedBatches",
    "Looked",
    "LostLeader",
    "LostRace",
    "Moment",
    "NameTaken",
    "NewObject",
    "ObjectRow",
    "Offset",
    "OtherCatalog",
    "ReadCapability",
    "ReadChanged",
    "ReadSet",
    "Redefined",
    "Redefinition",
    "Ref",
    "Replaced",
    "Reservation",
    "RoleRow",
    "Seal",
    "Sealed",
    "Shape",
    "Shapes",
    "SinceBehindInput",
    "StateTooNew",
    "StateTooOld",
    "StillNeeded",
    "TableAltered",
    "Takeover",
    "TickMinted",
    "TickMoved",
    "TimelineDiffers",
    "TimelineHold",
    "TimelineRow",
    "TypeAlteration",
    "TypeAltered",
    "UnknownCapability",
    "UnknownLease",
    "UnknownObject",
    "UnknownTimeline",
    "UnknownWriter",
    "UpperBeyondInput",
    "WriteCapability",
    "WriterId",
    "WrongDefinition",
    "WrongRight",
    "WrongSeal",
    "bound_shapes",
    "first_shape",
    "free_name",
    "in_shard",
    "interval_of",
    "payloads_in",
    "shard_names",
    "stands_for",
]
