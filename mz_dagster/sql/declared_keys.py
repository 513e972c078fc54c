"""Keys that tables declare, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A constraint: no two rows of a table are equal in these columns. Rows with a NULL there are never equal.

    Attributes:
        name: Of the constraint.
        columns: Their names.
        primary: Whether it is the primary key, whose columns are not NULL.
        offset: Where it is said.
        is_index: Whether it is an index, as CREATE UNIQUE INDEX makes one, and no constraint by its name.
    """

    name: str
    columns: tuple[str, ...]
    primary: bool
    offset: int = 0
    is_index: bool = False


#: What becomes of rows whose referenced row goes, by PostgreSQL's letters: nothing, so that it must not; nothing, and
#: at once; they go, too; their columns become NULL.
ReferenceAction = Literal["a", "r", "c", "n"]

#: What refers to rows of its own table.
SELF = "self"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A constraint: a row without a NULL in these columns has one of another table that is equal in others.

    Attributes:
        name: Of the constraint.
        columns: Its table's columns.
        referenced: The other table's columns, one for each; none before it is known which, for its primary key.
        parent: Which other table, by what it stands for (`catalog.references`), or `SELF`; empty before it is known.
        table: The other table's name as it was written, by its parts.
        on_delete: What becomes of rows whose referenced row is deleted.
        on_update: What becomes of rows whose referenced row gets others in those columns.
        is_full: Whether no row may have a NULL in some of the columns alone (MATCH FULL).
        is_deferrable: Whether it may be held at the end of a transaction only.
        is_deferred: Whether it is, unless a transaction says otherwise.
        is_enforced: Whether it is held at all.
        is_of_files: Whether it is there because a project's files declare it, and goes when they no longer do.
        offset: Where it is said.
    """

    name: str
    columns: tuple[str, ...]
    referenced: tuple[str, ...] = ()
    parent: str = ""
    table: tuple[str, ...] = ()
    on_delete: ReferenceAction = "a"
    on_update: ReferenceAction = "a"
    is_full: bool = False
    is_deferrable: bool = False
    is_deferred: bool = False
    is_enforced: bool = True
    is_of_files: bool = False
    offset: int = 0

    def as_json(self) -> dict[str, Any]:
        """Returns what the catalog keeps of it; the other table's name is whatever that is called by then."""
        left_out = ("table", "offset", *(() if self.is_of_files else ("is_of_files",)))
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> ForeignKey:
        """Returns what the catalog has kept."""
        return cls(**{**kept, "columns": tuple(kept["columns"]), "referenced": tuple(kept["referenced"])})

    def renamed(self, old: str, new: str) -> ForeignKey:
        """Returns it with another name of a column of its own table."""
        named = tuple(new if one == old else one for one in self.columns)
        others = self.referenced
        if self.parent == SELF:
            others = tuple(new if one == old else one for one in others)
        return replace(self, columns=named, referenced=others)
