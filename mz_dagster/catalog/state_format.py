"""The format of a project's state: what is in shards and in the options of objects, beyond the catalog's own schema.

The schema has its migrations (`upgrade`); how updates, arrangements and options are written has this number. A release
reads what has its own format. What has an older one it brings to its own, step by step, in the transaction that
migrates the schema; what is newer, or older than any step, it refuses, and says which release wrote it.

A change of what is written that older releases would misread gets the next number here, and a step from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sqlalchemy import Connection, insert, select, update

from mz_dagster.catalog.errors import CatalogDamaged, StateTooNew, StateTooOld
from mz_dagster.catalog.schema import COUNTER, PROJECT
from mz_dagster.version import __version__, is_later

FORMAT = 8
"""The format that this release reads and writes."""


def _may_inline(_: Connection) -> None:
    """Changes nothing: from format 2 on batches may be inlined, and none is yet."""


def _may_remember(_: Connection) -> None:
    """Changes nothing: from format 3 on sources of changes may have a memory of their keys, and none has yet."""


def _may_drop_errors(_: Connection) -> None:
    """Changes nothing: from format 4 on sources of files may have bindings that end errors, and none has yet."""


def _may_add_columns(_: Connection) -> None:
    """Changes nothing: from format 5 on sources may have columns that were added to them, and none has yet."""


def _may_have_unique_indexes(_: Connection) -> None:
    """Changes nothing: from format 6 on definitions of tables may have unique indexes, and none has yet."""


def _may_have_references(connection: Connection) -> None:
    """Counts the references of tables to others: from format 7 on there may be some, and there is none yet."""
    if connection.execute(select(COUNTER.c.last).where(COUNTER.c.name == "reference")).first() is None:
        connection.execute(insert(COUNTER).values(name="reference", last=0))


def _may_have_references_of_files(_: Connection) -> None:
    """Changes nothing: from format 8 on references of tables may be those of a project's files, and none is yet."""


_STATE = select(PROJECT.c.state_format, PROJECT.c.release)

STEPS: Mapping[int, Callable[[Connection], None]] = MappingProxyType(
    {
        1: _may_inline,
        2: _may_remember,
        3: _may_drop_errors,
        4: _may_add_columns,
        5: _may_have_unique_indexes,
        6: _may_have_references,
        7: _may_have_references_of_files,
    }
)
"""What brings a state of each older format to the next one, by that format."""


def format_of(connection: Connection) -> int:
    """Returns the format of the state.

    Raises:
        CatalogDamaged: Nothing says it any more.
        StateTooNew: It is one that this release does not know.
        StateTooOld: It is one from which no steps lead to this release's.
    """
    return _found(connection)[0]


def is_current(connection: Connection) -> bool:
    """Returns whether nothing is to be done: the state is of this format, and no older release wrote it last.

    Raises:
        StateTooNew: It is of a format that this release does not know.
        StateTooOld: It is of a format from which no steps lead to this one.
    """
    found, release = _found(connection)
    return found == FORMAT and release is not None and not is_later(__version__, release)


def migrate(connection: Connection) -> None:
    """Brings the state to this release's format, and notes the release; for who has the catalog to itself.

    Raises:
        StateTooNew: It is of a format that this release does not know.
        StateTooOld: It is of a format from which no steps lead to this one.
    """
    found, release = _found(connection)
    for one in range(found, FORMAT):
        STEPS[one](connection)
    if release is None or is_later(__version__, release):
        release = __version__
    connection.execute(update(PROJECT), {"state_format": FORMAT, "release": release})


def _found(connection: Connection) -> tuple[int, str | None]:
    row = connection.execute(_STATE).one_or_none()
    if row is None:
        raise CatalogDamaged("the catalog does not say any more of which project it is")
    found = int(row.state_format)
    if found > FORMAT:
        raise StateTooNew(found, row.release)
    if any(one not in STEPS for one in range(found, FORMAT)):
        raise StateTooOld(found, row.release)
    return found, row.release
