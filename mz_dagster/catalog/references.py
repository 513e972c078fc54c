"""What tables refer to rows of other tables by, as the catalog keeps it.

A table's foreign keys are an option of it, each an object of JSON (`sql.declared_keys.ForeignKey`). It tells the
other table by what that *stands for*: the id of the first of those of which each took the last one's place, so that
whoever alters a table by putting another in its place leaves what refers to it alone. A foreign key whose other table
is dropped is none any more.

How often a table that refers to others became visible, or came to refer to one, is counted. A write that takes rows
away looks which tables refer to its own, and is sealed only if the count is still as it was before it looked: so of a
row that goes and a reference to it that is declared meanwhile, one knows of the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from mz_dagster.catalog.codec import json_text
from mz_dagster.catalog.database import next_ids
from mz_dagster.catalog.errors import ReferencesChanged
from mz_dagster.catalog.rows import ObjectRow
from mz_dagster.catalog.schema import COUNTER, OBJECT
from mz_dagster.formalism import GlobalId

REFERENCES = "references"
"""The option of a table that says its foreign keys."""

STANDS_FOR = "stands_for"
"""The option of a table that took another's place: the id of the first of those that did."""

_COUNTER = "reference"

#: Built once: building a statement takes longer than running it.
_NUMBER = select(COUNTER.c.last).where(COUNTER.c.name == _COUNTER)
_OPTIONS = select(OBJECT.c.options).where(OBJECT.c.id == bindparam("wanted"))


def stands_for(row: ObjectRow) -> str:
    """Returns what foreign keys tell a table by."""
    return str(row.options.get(STANDS_FOR, row.id))


def parents_of(row: ObjectRow) -> list[str]:
    """Returns by what the foreign keys of a table tell the tables that they refer to, each once."""
    return [*dict.fromkeys(str(one["parent"]) for one in row.options.get(REFERENCES, ()))]


def number_of_references(connection: Connection) -> int:
    """Returns how often a table came to refer to another, as far as others see."""
    found: int = connection.execute(_NUMBER).scalar_one()
    return found


def check_references(connection: Connection, number: int | None) -> None:
    """Returns if as many tables refer to others as when it was looked, if it was.

    Raises:
        ReferencesChanged: One has come to refer to another since.
    """
    if number is not None and number != (now := number_of_references(connection)):
        raise ReferencesChanged(now)


def note_references(connection: Connection, id: GlobalId) -> None:
    """Counts that others see an object from now on, if it is a table that refers to others."""
    options = connection.execute(_OPTIONS, {"wanted": id}).scalar_one()
    if REFERENCES in options and json.loads(options).get(REFERENCES):
        next_ids(connection, _COUNTER, 1)


def rename_referenced(connection: Connection, row: ObjectRow, renamed: Mapping[str, str]) -> None:
    """Has foreign keys tell the columns of a table by what they are called from now on."""
    own, moved = stands_for(row), {old: new for old, new in renamed.items() if old != new}
    if not moved:
        return
    query = select(OBJECT.c.id, OBJECT.c.options).where(OBJECT.c.dropped.is_(False), OBJECT.c.options.contains(own))
    for id, text in connection.execute(query).all():
        options = json.loads(text)
        kept = options.get(REFERENCES, [])
        now = [*_renamed(kept, own, moved)]
        if now != kept:
            values = json_text({**options, REFERENCES: now})
            connection.execute(update(OBJECT).where(OBJECT.c.id == id).values(options=values))


def _renamed(kept: list[dict[str, Any]], parent: str, moved: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for one in kept:
        is_moved = one["parent"] == parent
        yield {**one, "referenced": [moved.get(name, name) for name in one["referenced"]]} if is_moved else one
