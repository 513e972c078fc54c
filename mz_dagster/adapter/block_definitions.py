"""What a transaction block has created, renamed and dropped, which nobody else sees before it commits.

What is created exists without a name, kept by the session's lease as a temporary object is; it gets its name with the
seal of what the block has written, or if it is temporary in the session, once that is sealed. What is renamed or
dropped keeps its name for all others until then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from mz_dagster.adapter.stand_ins import StandIn
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.sql import (
    AlterRename,
    AlterTable,
    Comment,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateUniqueIndex,
    CreateView,
    Drop,
)

#: Statements that a block may have, so that others see what they define when it commits; `sequence` refuses some of
#: their forms.
DEFINED_IN_BLOCKS = (
    CreateTable
    | CreateTableAs
    | CreateView
    | CreateMaterializedView
    | CreateIndex
    | CreateUniqueIndex
    | CreateSchema
    | CreateType
    | Drop
    | AlterRename
    | AlterTable
    | Comment
)


class ActiveTransaction(ProgrammingError):
    """A statement that is no part of a transaction block."""

    sqlstate = "25001"


class NoPartOfBlock(ActiveTransaction):
    """A statement that may be a transaction of its own; nothing of it was done."""


@dataclass(slots=True)
class BlockDefinitions:
    """What a block has defined.

    Attributes:
        named: What it has created and renamed, by the keys that the catalog will know them by.
        dropped: What it has dropped of what was there before.
        renamed: The keys by which the catalog knows what it has renamed.
        temporary: The temporary objects that it has created, by name.
        stand_ins: Which of the tables that it has created stand in for others, which are altered when it commits.
    """

    named: dict[str, GlobalId] = field(default_factory=dict)
    dropped: frozenset[GlobalId] = frozenset()
    renamed: dict[GlobalId, str] = field(default_factory=dict)
    temporary: dict[str, GlobalId] = field(default_factory=dict)
    stand_ins: dict[GlobalId, StandIn] = field(default_factory=dict)
    _made: list[GlobalId] = field(default_factory=list)
    _adopt: Callable[[str, GlobalId], None] | None = None

    def __bool__(self) -> bool:
        return bool(self.named or self.dropped)

    def create(self, key: str, id: GlobalId) -> None:
        """Notes that something was created, without a name yet."""
        self.named[key] = id
        self._made.append(id)

    def create_temporary(self, name: str, id: GlobalId, adopt: Callable[[str, GlobalId], None]) -> None:
        """Notes that a temporary object was created, whose name `adopt` gives to the session if the block commits."""
        self.temporary[name] = id
        self._adopt = adopt
        self._made.append(id)

    def rename(self, id: GlobalId, old: str, new: str) -> None:
        """Notes that something has another key from now on."""
        if self.named.pop(old, None) is None:
            self.renamed[id] = old
        self.named[new] = id

    def drop(self, id: GlobalId) -> None:
        """Notes that something is to be dropped."""
        self.named = {key: one for key, one in self.named.items() if one != id}
        self.renamed.pop(id, None)
        if id not in self._made:
            self.dropped |= {id}

    def stand_in(self, new: GlobalId, stands: StandIn) -> None:
        """Notes that a table that was created stands in for another; one that did is gone."""
        self.stand_ins = {id: one for id, one in self.stand_ins.items() if one.table.id != stands.table.id}
        self.stand_ins[new] = stands
        for id in sorted(stands.alteration.dropped):  # so that their names are free
            self.drop(id)

    def alter(self, new: GlobalId) -> StandIn:
        """Lets the table that another stands in for have its place and its name again; returns what it is to be."""
        stands = self.stand_ins.pop(new)
        key = next(key for key, id in self.named.items() if id == new)
        self.drop(new)
        self.dropped -= {stands.table.id}
        if key != stands.table.name:  # by which something else may be known to the block by now
            self.renamed[stands.table.id], self.named[key] = str(stands.table.name), stands.table.id
        return stands

    def standing_for(self, table: GlobalId) -> tuple[GlobalId, StandIn] | None:
        """Returns what stands in for a table, if something does."""
        return next(((new, one) for new, one in self.stand_ins.items() if one.table.id == table), None)

    def has_made(self, id: GlobalId) -> bool:
        """Returns whether something was created by the block."""
        return id in self._made

    def was_made_in_vain(self, id: GlobalId) -> bool:
        """Returns whether something was created by the block, and is gone again."""
        return self.has_made(id) and self.is_gone(id)

    def is_gone(self, id: GlobalId) -> bool:
        """Returns whether something is dropped as far as the block sees."""
        kept = (*self.named.values(), *self.temporary.values())
        return id in self.dropped or (id in self._made and id not in kept)

    def is_hidden(self, id: GlobalId) -> bool:
        """Returns whether something is no longer there as far as the block sees under the name that others know."""
        return id in self.renamed or self.is_gone(id)

    def saved(self) -> BlockDefinitions:
        """Returns what is defined now, for a savepoint."""
        return BlockDefinitions(
            dict(self.named), self.dropped, dict(self.renamed), dict(self.temporary), dict(self.stand_ins)
        )

    def restore(self, saved: BlockDefinitions) -> None:
        """Undoes what was defined since."""
        self.named, self.dropped, self.renamed = dict(saved.named), saved.dropped, dict(saved.renamed)
        self.temporary, self.stand_ins = dict(saved.temporary), dict(saved.stand_ins)

    def drop_gone(self, catalog: Catalog) -> frozenset[GlobalId]:
        """Drops what was made and is gone again, so that the commit can drop what that depends on; returns the ids."""
        gone = [*filter(self.was_made_in_vain, reversed(self._made))]
        for id in gone:
            with suppress(Error):
                catalog.drop_object(id)
                self._made.remove(id)
        return frozenset(gone)

    def commit(self) -> None:
        """Gives the session the temporary objects: the block has committed."""
        for name, id in self.temporary.items():
            assert self._adopt is not None
            self._adopt(name, id)
            self._made.remove(id)

    def end(self, catalog: Catalog) -> None:
        """Drops what was made and has got no name. A sweep does it, too."""
        for id in reversed(self._made):
            with suppress(Error):
                if catalog.object(id).name is None:
                    catalog.drop_object(id)
        self.named, self.dropped, self.renamed, self.temporary, self._made = {}, frozenset(), {}, {}, []
        self.stand_ins = {}
