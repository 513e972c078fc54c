"""What a transaction block has yet to hold its tables to: foreign keys that it looks at when it commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mz_dagster.sql.declared_keys import ForeignKey

Cells = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TouchedKeys:
    """Keys by which rows may refer to none by now.

    Attributes:
        child: The table with the foreign key, by what it stands for.
        name: The foreign key's name.
        keys: The keys, none of whose cells is NULL.
        by_parent: Whether rows with these keys have gone from the other table; else rows came that refer to some.
    """

    child: str
    name: str
    keys: tuple[Cells, ...]
    by_parent: bool


@dataclass(slots=True)
class DeferredConstraints:
    """What a block is to look at when it commits, and which constraints it says are looked at then.

    Attributes:
        touched: What is to be looked at.
        said: What SET CONSTRAINTS said of constraints, by the table's and their own name.
        said_of_all: What it said last of all of them, if it did.
    """

    touched: list[TouchedKeys] = field(default_factory=list)
    said: dict[tuple[str, str], bool] = field(default_factory=dict)
    said_of_all: bool | None = None

    def saved(self) -> DeferredConstraints:
        """Returns what it is now, for a savepoint."""
        return DeferredConstraints([*self.touched], dict(self.said), self.said_of_all)

    def renamed(self, child: str, old: str, new: str) -> None:
        """Goes on under another name with a constraint of a table, which is told by what it stands for."""
        self.touched = [
            replace(one, name=new) if (one.child, one.name) == (child, old) else one for one in self.touched
        ]
        if (child, old) in self.said:
            self.said[child, new] = self.said.pop((child, old))

    def set(self, constraints: Iterable[tuple[str, str]] | None, *, deferred: bool) -> None:
        """Has constraints, or all, be looked at when the block commits, or at the end of each statement."""
        if constraints is None:
            self.said.clear()
            self.said_of_all = deferred
        else:
            self.said |= dict.fromkeys(constraints, deferred)

    def is_deferred(self, child: str, key: ForeignKey) -> bool:
        """Returns whether a foreign key is looked at when the block commits."""
        if not key.is_deferrable:
            return False
        by_default = key.is_deferred if self.said_of_all is None else self.said_of_all
        return self.said.get((child, key.name), by_default)
