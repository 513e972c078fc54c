"""What a collection consists of, summed in its own row: how many live batches, how many updates, a digest of the list.

Every transaction that changes which batches are live changes these sums with them, and whoever takes a list compares.
So a list is never short of a batch, nor has one too many or one that is not as it was written; and a gap between the
batches of a list is known to be empty, because its collection's row leaves no room for a batch there.

    digest = xor over the live batches of hash(id, collection, lower, upper, rows, errors, files, bytes, file list)

The order of the batches means nothing, and a batch is taken out as it was put in. The digest is of 63 bits, so that
both databases hold it as a number; it tells accidents, not forgeries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import xxhash
from sqlalchemy import BigInteger, Connection, bindparam, update

from mz_dagster.catalog.schema import COLLECTION
from mz_dagster.errors import DamageError
from mz_dagster.formalism import GlobalId

_MASK = 2**63 - 1


class ListDamaged(DamageError):
    """The catalog's list of a collection's live batches is not the one that was written.

    Attributes:
        collection: The collection's id.
    """

    def __init__(self, collection: str, said: Contents, found: Contents) -> None:
        detail = "A batch on it is not as it was written."
        if (said.batches, said.rows) != (found.batches, found.rows):
            detail = f"It should have {said.batches} batches of {said.rows} updates, and has {found.batches} of "
            detail += f"{found.rows}."
        super().__init__(f'the list of the batches of "{collection}" is damaged', detail=detail)
        self.collection = collection


@dataclass(frozen=True, slots=True)
class Contents:
    """What a collection's row says of its live batches.

    Attributes:
        batches: How many there are.
        rows: How many updates they hold.
        digest: Of the list.
    """

    batches: int
    rows: int
    digest: int


def digest_of(row: Any) -> int:
    """Returns the digest of a batch, of a row of the table `batch` or of what has its columns for attributes."""
    text = (
        f"{row.id} {row.collection} {row.lower} {row.upper} {row.rows} {row.errors} {row.files} {row.bytes} "
        f"{row.file_list}"
    )
    return xxhash.xxh3_64_intdigest(text.encode()) & _MASK


def contents_of(rows: Iterable[Any]) -> Contents:
    """Returns what live batches sum up to, of their rows of the table `batch`."""
    batches = updates = digest = 0
    for row in rows:
        batches += 1
        updates += row.rows
        digest ^= digest_of(row)
    return Contents(batches, updates, digest)


def check_list(collection: GlobalId, said: Contents, rows: Iterable[Any]) -> None:
    """Returns if the live batches of a collection are those that its row says.

    Args:
        collection: The collection.
        said: What its row says.
        rows: The rows of its live batches, of the same transaction.

    Raises:
        ListDamaged: They are not.
    """
    found = contents_of(rows)
    if found != said:
        raise ListDamaged(collection, said, found)


def change_contents(
    connection: Connection, added: Mapping[GlobalId, Contents], removed: Mapping[GlobalId, Contents] | None = None
) -> None:
    """Records that batches became live, and that others are live no more, by collection."""
    none = Contents(0, 0, 0)
    removed = removed or {}
    changes = []
    for id in sorted({*added, *removed}):
        more, less = added.get(id, none), removed.get(id, none)
        change = {
            "the_id": id,
            "batches": more.batches - less.batches,
            "rows": more.rows - less.rows,
            "digest": more.digest ^ less.digest,
        }
        changes.append(change)
    if changes:
        connection.execute(_CHANGE, changes)


_COLUMN, _DIGEST = COLLECTION.c, bindparam("digest", type_=BigInteger)
_CHANGE = (
    update(COLLECTION)
    .where(_COLUMN.id == bindparam("the_id"))
    .values(
        live_batches=_COLUMN.live_batches + bindparam("batches", type_=BigInteger),
        live_rows=_COLUMN.live_rows + bindparam("rows", type_=BigInteger),
        # Exclusive or, in operators that both databases have.
        live_digest=_COLUMN.live_digest.op("|")(_DIGEST) - _COLUMN.live_digest.op("&")(_DIGEST),
    )
)
