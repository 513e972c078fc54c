"""Tables that take others' places.

Attributes of the other go over in the transaction that drops it. Who made the new one up long before that, as a block
does, says what the other was then: if that has changed, nothing is taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from mz_dagster.catalog.errors import TableAltered
from mz_dagster.catalog.rows import PRIVILEGES, Alteration, ObjectRow
from mz_dagster.catalog.sequences import numbers_of
from mz_dagster.formalism import GlobalId


@dataclass(frozen=True, slots=True)
class Looked:
    """What a table was when another was made for its place.

    Attributes:
        row: The table.
        numbers: Where its sequences stood, by their columns; those of the other go on behind them already.
        readers: What depended on it and goes with it, directly or not, and its name; what has none may be gone before.
    """

    row: ObjectRow
    numbers: Mapping[str, int | None]
    readers: Mapping[GlobalId, str | None]


@dataclass(frozen=True, slots=True)
class Takeover:
    """Says that a table takes another's place: its name, from the time of its first batch on, and its sequences.

    Attributes:
        old: The other, which is dropped.
        columns: The columns that take over the values of others, by those.
        looked: What the other has to be still; None if it is anything that nothing depends on.
    """

    old: GlobalId
    columns: Mapping[str, str]
    looked: Looked | None = None


def without_privileges(row: ObjectRow) -> ObjectRow:
    """Returns a row without what is granted on its object."""
    return replace(row, options={name: value for name, value in row.options.items() if name != PRIVILEGES})


def check_as_looked(connection: Connection, row: ObjectRow, alteration: Alteration) -> None:
    """Returns if a table or source that is altered in place is what it was when its alteration was made up.

    Raises:
        TableAltered: It is not, or its sequences stand elsewhere.
    """
    looked = alteration.looked
    if without_privileges(replace(row, name=looked.name)) != without_privileges(looked):
        raise TableAltered(row.id, row.version)
    if alteration.numbers is not None and numbers_of(connection, row.id) != alteration.numbers:
        raise TableAltered(row.id, row.version)
