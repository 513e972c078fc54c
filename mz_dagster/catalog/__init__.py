"""The catalog: a project's names, ids, frontiers, batches, bindings, leases and oracle, in a SQL database.

Owns the durable state that everything else follows from, and the only consensus: SQLAlchemy Core on SQLite
by default, PostgreSQL in production. Every method of `Catalog` is one transaction, states what it
expected to find, and is on disk when it returns.

The invariants:

- a GlobalId, and a batch id, denotes one thing for good; since, upper, ticks, timestamps and epochs only grow;
- a collection's content is its live batches, and a batch becomes live, or gives way to a merged one, in the
  transaction that says so, or never;
- a batch on a live lease's list, or that its writer could still seal, is not declared dead; one that was
  declared dead is never sealed or listed again;
- clocks decide when to try, never what is safe.

In the order of import:

- `rows`, `errors`, `codec`: values, errors, and how values are written as text;
- `schema`, `database`, `migrations/`, `upgrade`: tables, transactions, and how a database gets the tables;
- `timelines`, `ticks`: lattices, the oracle, the writer's lease; ticks and bindings;
- `frontiers`: since and upper, retention, logical compaction;
- `reachability`, `objects`: definitions and names;
- `batches`, `listings`, `sweeping`: the life of a batch;
- `capabilities`, `appends`, `maintaining`: rights to read and to write, and what is written and computed by right of
  tokens;
- `leases`: what is being read;
- `records`, `repairs`: its rows as they are, and copies of them; what may be mended in them;
- `catalog`: all of it in one class.

It does not read or write shards, parse SQL, or know what an object's definition means.
"""

from mz_dagster.catalog.batches import interval_of
from mz_dagster.catalog.catalog import Catalog
from mz_dagster.catalog.errors import (
    CapabilityExpired,
    CatalogBusy,
    CatalogTaken,
    CatalogTooNew,
    CatalogTooOld,
    CatalogUnavailable,
    FileAlreadyBound,
    FrontierNotHeld,
    InputNotHeld,
    NameTaken,
    SinceBehindInput,
    StillNeeded,
    TimelineDiffers,
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
from mz_dagster.catalog.rows import (
    KINDS,
    NO_ROWS,
    Batch,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    Binding,
    BoundFile,
    Capability,
    CapabilityRow,
    CollectionRow,
    Keys,
    Leadership,
    LeadershipLost,
    Lease,
    Led,
    ListedBatches,
    LostRace,
    Minted,
    NewObject,
    ObjectRow,
    ReadCapability,
    Ref,
    Replaced,
    Reservation,
    Seal,
    Sealed,
    TickMoved,
    TimelineRow,
    UpperMismatch,
    WriteCapability,
    WriterId,
)

__all__ = [
    "KINDS",
    "NO_ROWS",
    "Batch",
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
    "CatalogTaken",
    "CatalogTooNew",
    "CatalogTooOld",
    "CatalogUnavailable",
    "CollectionRow",
    "FileAlreadyBound",
    "FrontierNotHeld",
    "InputNotHeld",
    "Keys",
    "Leadership",
    "LeadershipLost",
    "Lease",
    "Led",
    "ListedBatches",
    "LostRace",
    "Minted",
    "NameTaken",
    "NewObject",
    "ObjectRow",
    "ReadCapability",
    "Ref",
    "Replaced",
    "Reservation",
    "Seal",
    "Sealed",
    "SinceBehindInput",
    "StillNeeded",
    "TickMoved",
    "TimelineDiffers",
    "TimelineRow",
    "UnknownCapability",
    "UnknownLease",
    "UnknownObject",
    "UnknownTimeline",
    "UnknownWriter",
    "UpperBeyondInput",
    "UpperMismatch",
    "WriteCapability",
    "WriterId",
    "WrongDefinition",
    "WrongRight",
    "WrongSeal",
    "interval_of",
]
