"""The tables that a statement's names stood for when it was bound, each in one of its shapes.

A table may be altered while a statement reads or writes it. What was read before is right; what is read or written
after has to be bound anew. So each statement notes what it was bound to, and looks again once it has read, and when it
writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mz_dagster.catalog import Catalog, CollectionRow, TableAltered
from mz_dagster.formalism import GlobalId

_BOUND: ContextVar[dict[GlobalId, int] | None] = ContextVar("bound tables", default=None)


@contextmanager
def noting_tables() -> Iterator[None]:
    """Notes, in the block, what `note_table` is told."""
    token = _BOUND.set({})
    try:
        yield
    finally:
        _BOUND.reset(token)


def note_table(id: GlobalId, version: int) -> None:
    """Notes that a name stood for a table that had been altered so often; the first time counts."""
    bound = _BOUND.get()
    if bound is not None:
        bound.setdefault(id, version)


def noted_tables() -> dict[GlobalId, int]:
    """Returns the tables that were noted, each with how often it had been altered."""
    return dict(_BOUND.get() or {})


def check_unaltered(catalog: Catalog) -> None:
    """Returns if no table was altered since it was noted.

    Raises:
        TableAltered: One was.
    """
    for id, version in (_BOUND.get() or {}).items():
        now = catalog.version_of(id)
        if now != version:
            raise TableAltered(id, now)


def check_as_bound(row: CollectionRow) -> None:
    """Returns if a table is what it was when it was noted, if it was.

    Raises:
        TableAltered: It was altered since.
    """
    if (_BOUND.get() or {}).get(row.id, row.version) != row.version:
        raise TableAltered(row.id, row.version)
