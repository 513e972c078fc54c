"""The catalog's tables, as SQLAlchemy Core sees them; `migrations/` brings a database to this shape.

Frontiers are canonical JSON text (see `codec`), clock times are epoch milliseconds, and every id that
must never be reused comes from `counter`. Only types that SQLite and PostgreSQL share are used.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    false,
    select,
    union_all,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

PROJECT = Table(
    "project",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("state_format", Integer, nullable=False, server_default="1"),
    Column("release", Text),
    Column("names", BigInteger, nullable=False, server_default="0"),
)
"""One row: the project's random id, its state's format, the newest release that wrote it, and how many names there are
(`naming`). On PostgreSQL it is also the write lock."""

COUNTER = Table(
    "counter",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("last", BigInteger, nullable=False),
)
"""The last id handed out, by kind of id."""

TIMELINE = Table(
    "timeline",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("lattice", Text, nullable=False),
    Column("read_ts", BigInteger, nullable=False),
    Column("write_ts", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", Text),
    Column("until_ms", BigInteger),
    Column("process", Text),
)
"""Timelines with their oracle and their writer's lease, and the process that holds that (`mz_dagster.liveness`)."""

TICK = Table(
    "tick",
    METADATA,
    Column("timeline", Text, ForeignKey("timeline.name"), primary_key=True),
    Column("tick", BigInteger, primary_key=True, autoincrement=False),
)
"""Minted ticks."""

OBJECT = Table(
    "object",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False, unique=True),
    Column("created_as", Text),
    Column("kind", Text, nullable=False),
    Column("sql", Text, nullable=False),
    Column("timeline", Text, ForeignKey("timeline.name")),
    Column("column_types", Text, nullable=False),
    Column("unique_keys", Text, nullable=False),
    Column("monotonic", Boolean, nullable=False),
    Column("owner", Text, ForeignKey("object.id")),
    Column("options", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("has_collection", Boolean, nullable=False),
    Column("dropped", Boolean, nullable=False),
    Column("shapes", Text),
    Index("ix_object_owner", "owner"),
)
"""Objects, with dropped ones of which something is left: an id never denotes anything else.

`column_types` and `unique_keys` are those of today; `shapes` has those of before, of a table that was altered in place.
"""

TOMBSTONE = Table(
    "tombstone",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False, unique=True),
    Column("timeline", Text, ForeignKey("timeline.name")),
    Column("shard", Text, unique=True),
)
"""Dropped objects of which nothing else is left (`tombstones`), and under which folder their shards were, if any."""

NAME = Table(
    "name",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("object", Text, ForeignKey("object.id"), nullable=False, unique=True),
)
"""The names that denote objects now."""

DEPENDENCY = Table(
    "dependency",
    METADATA,
    Column("dependant", Text, ForeignKey("object.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("dependency", Text, ForeignKey("object.id"), nullable=False),
    Index("ix_dependency_dependency", "dependency"),
)
"""What an object reads, by the names used when it was bound."""

COLLECTION = Table(
    "collection",
    METADATA,
    Column("id", Text, ForeignKey("object.id"), primary_key=True),
    Column("timeline", Text, ForeignKey("timeline.name")),
    Column("since", Text, nullable=False),
    Column("upper", Text, nullable=False),
    Column("shard", Text, nullable=False, unique=True),
    Column("failure", Text),
    Column("retention_ms", BigInteger),
    Column("next_due", BigInteger),
    Column("poll_failure", Text),
    Column("live_batches", BigInteger, nullable=False, server_default="0"),
    Column("live_rows", BigInteger, nullable=False, server_default="0"),
    Column("live_digest", BigInteger, nullable=False, server_default="0"),
    Column("bound_files", BigInteger, nullable=False, server_default="0"),
)
"""The TVC map: frontiers of collections; what their live batches sum up to (`contents`), and how many files and offsets
were bound (`ticks`)."""

SEQUENCE = Table(
    "sequence",
    METADATA,
    Column("object", Text, ForeignKey("object.id"), primary_key=True),
    Column("column", Text, primary_key=True),
    Column("last", BigInteger),
)
"""The last number that each column of a table has generated; NULL if none was (`sequences`)."""

HOLD = Table(
    "hold",
    METADATA,
    Column("output", Text, ForeignKey("collection.id"), primary_key=True),
    Column("input", Text, ForeignKey("collection.id"), primary_key=True),
    Index("ix_hold_input", "input"),
)
"""Which collection is computed from which: the capabilities that never expire.

The output holds its input's since at its own since (constraint R) and at its upper - 1, and its upper never
passes the input's (constraint W). The frontiers held are not stored but follow from the output's own.
"""

CHANGED = Table(
    "changed",
    METADATA,
    Column("object", Text, primary_key=True),
    Column("part", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Index("ix_changed_number", "number"),
)
"""When the rows of an object changed last (`following`), by which of them: `object` for it, its names and what it
depends on, `collection` for its collection. Only triggers write it; of rows that are gone the object is the empty text.

One row has the number 0, which no change has: its part is a random text, by which one knows that the numbers still
count from where they did.
"""

BOUND_FILE = Table(
    "bound_file",
    METADATA,
    Column("source", Text, ForeignKey("object.id"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("tick", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("identity", Text),
    Index("ix_bound_file_source_tick", "source", "tick", "position"),
)
"""Bindings: which files a source gained at which tick, and in which order they are read."""

BOUND_OFFSET = Table(
    "bound_offset",
    METADATA,
    Column("source", Text, ForeignKey("object.id"), primary_key=True),
    Column("tick", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Text, nullable=False),
)
"""Bindings of sources whose transports have offsets: up to which one each was read at which tick, as JSON that only the
transport understands."""

BOUND = union_all(
    select(BOUND_FILE.c.source, BOUND_FILE.c.tick), select(BOUND_OFFSET.c.source, BOUND_OFFSET.c.tick)
).subquery("bound")
"""At which ticks sources gained something."""

WRITER = Table(
    "writer",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Column("process", Text),
)
"""Leases to write batches, and the process that holds each (`mz_dagster.liveness`)."""

BATCH = Table(
    "batch",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("collection", Text, ForeignKey("collection.id"), nullable=False),
    Column("lower", Text, nullable=False),
    Column("upper", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("writer", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("file_list", Text),
    Index("ix_batch_collection_state", "collection", "state"),
    Index("ix_batch_state", "state"),
    Index("ix_batch_writer", "writer"),
)
"""Batches of all states; a forgotten batch has no row.

`file_list` names the files with their hashes (`codec.file_list_text`), once the batch is written; it is NULL in batches
of versions that did not list them.
"""

INLINED_BATCH = Table(
    "inlined",
    METADATA,
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)
"""The updates of inlined batches, whose `file_list` has their hash. They come and go with the rows of their batches."""

LEASE = Table(
    "lease",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Column("process", Text),
)
"""Leases to read, and the process that holds each."""

COMPUTE_REPLICA = Table(
    "compute_replica",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Column("process", Text),
)
"""Processes that compute beside the leaders."""

LEASED_BATCH = Table(
    "leased_batch",
    METADATA,
    Column("lease", BigInteger, ForeignKey("lease.id"), primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Index("ix_leased_batch_batch", "batch"),
)
"""Which batches a lease lists."""

ROLE = Table(
    "role",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("can_login", Boolean, nullable=False),
    Column("verifier", Text),
)
"""Who may connect besides the owner, and what SCRAM compares the password with; NULL if there is none.

What a role may do is an option of the objects (`PRIVILEGES`).
"""

MEMBERSHIP = Table(
    "membership",
    METADATA,
    Column("role", BigInteger, ForeignKey("role.id"), primary_key=True, autoincrement=False),
    Column("member", BigInteger, ForeignKey("role.id"), primary_key=True, autoincrement=False),
)
"""Which roles have what a role was granted, besides their own."""

CAPABILITY = Table(
    "capability",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("token_hash", Text, nullable=False),
    Column("writes", Boolean, nullable=False, server_default=false()),
    Column("collection", Text, ForeignKey("collection.id"), nullable=False),
    Column("frontier", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger),
    Index("ix_capability_collection", "collection"),
)
"""Capabilities of sessions, subscribers and whoever else presents their tokens: to read, or to write."""
