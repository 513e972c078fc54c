"""Tombstones: what stays of a dropped object once nothing needs its rows any more.

An id never denotes anything else (`objects`), so that it was there is remembered for good: in one small row, which is
only ever looked up by its key. All else goes, so that no statement ever walks over what was dropped. Of a dropped
object everything stays as long as

- its collection's since or upper is not `{}`: others have a right to it (`frontiers.close_dropped`);
- there is a batch of its own in any state: a reader may list it, its writer wake up, its files be there (`sweeping`);
- an object that stays is computed from it, owned by it, or depends on it.

In the TVC map a buried collection is what it was before: one whose since and upper are `{}`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, union, union_all, update

from mz_dagster.catalog.database import in_portions
from mz_dagster.catalog.schema import (
    BATCH,
    BOUND_FILE,
    BOUND_OFFSET,
    CAPABILITY,
    COLLECTION,
    DEPENDENCY,
    HOLD,
    NAME,
    OBJECT,
    SEQUENCE,
    TOMBSTONE,
)
from mz_dagster.formalism import GlobalId

#: Built once: building a statement takes longer than running it.
_DROPPED = OBJECT.c.dropped.is_(True)
_CANDIDATES = (
    select(OBJECT.c.id, OBJECT.c.sequence, OBJECT.c.timeline, OBJECT.c.owner, COLLECTION.c.shard)
    .outerjoin(COLLECTION, COLLECTION.c.id == OBJECT.c.id)
    .where(_DROPPED)
)
_OF_DROPPED = select(OBJECT.c.id).where(_DROPPED)
_KEPT = union(
    *(
        select(column).where(column.in_(_OF_DROPPED))
        for column in (BATCH.c.collection, CAPABILITY.c.collection, NAME.c.object, HOLD.c.input, HOLD.c.output)
    ),
    select(COLLECTION.c.id).where(
        COLLECTION.c.id.in_(_OF_DROPPED), or_(COLLECTION.c.since != "[]", COLLECTION.c.upper != "[]")
    ),
)
_NEEDS = union_all(
    select(DEPENDENCY.c.dependant, DEPENDENCY.c.dependency).where(DEPENDENCY.c.dependency.in_(_OF_DROPPED)),
    select(OBJECT.c.id, OBJECT.c.owner).where(OBJECT.c.owner.in_(_OF_DROPPED)),
)
_BURY = insert(TOMBSTONE)
_GONE: Any = bindparam("gone", expanding=True)
_CLEAR = (
    *(
        delete(column.table).where(column.in_(_GONE))
        for column in (
            DEPENDENCY.c.dependant,
            BOUND_FILE.c.source,
            BOUND_OFFSET.c.source,
            SEQUENCE.c.object,
            COLLECTION.c.id,
        )
    ),
    update(OBJECT).where(OBJECT.c.id.in_(_GONE)).values(owner=None),
)
_DELETE = delete(OBJECT).where(OBJECT.c.id.in_(_GONE))
_BURIED = select(TOMBSTONE.c.id).where(TOMBSTONE.c.id == bindparam("wanted"))


def bury(connection: Connection) -> tuple[GlobalId, ...]:
    """Puts a tombstone in the place of each dropped object that nothing needs, and returns their ids.

    Cost: by the number of objects that are dropped and not yet buried.
    """
    rows = connection.execute(_CANDIDATES).all()
    if not rows:
        return ()
    kept = set(connection.execute(_KEPT).scalars())
    candidates = {row.id for row in rows}
    needs = [tuple(row) for row in connection.execute(_NEEDS)]
    size = -1
    while size != len(kept):
        size = len(kept)
        kept |= {needed for one, needed in needs if one not in candidates or one in kept}
    gone = [row for row in rows if row.id not in kept]
    for portion in in_portions(gone):
        connection.execute(
            _BURY,
            [{"id": row.id, "sequence": row.sequence, "timeline": row.timeline, "shard": row.shard} for row in portion],
        )
        for statement in _CLEAR:
            connection.execute(statement, {"gone": [row.id for row in portion]})
    for portion in in_portions(gone):  # after all that may refer to them
        connection.execute(_DELETE, {"gone": [row.id for row in portion]})
    return tuple(sorted(GlobalId(row.id) for row in gone))


def is_buried(connection: Connection, id: GlobalId) -> bool:
    """Returns whether an id denoted something of which nothing is left."""
    return connection.execute(_BURIED, {"wanted": id}).first() is not None
