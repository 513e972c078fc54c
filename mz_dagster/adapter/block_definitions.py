"""What a transaction block has created and dropped, which nobody else sees before it commits.

What is created exists without a name, kept by the session's lease as a temporary object is; it gets its name with the
seal of what the block has written. What is dropped keeps its name for all others until then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId


class ActiveTransaction(ProgrammingError):
    """A statement that is no part of a transaction block."""

    sqlstate = "25001"


@dataclass(slots=True)
class BlockDefinitions:
    """What a block has defined.

    Attributes:
        created: What it has created, by the keys that the catalog will know them by.
        dropped: What it has dropped of what was there before.
    """

    created: dict[str, GlobalId] = field(default_factory=dict)
    dropped: frozenset[GlobalId] = frozenset()
    _made: list[GlobalId] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.created or self.dropped)

    def create(self, key: str, id: GlobalId) -> None:
        """Notes that something was created, without a name yet."""
        self.created[key] = id
        self._made.append(id)

    def drop(self, id: GlobalId) -> None:
        """Notes that something is to be dropped."""
        if id in self._made:
            self.created = {key: one for key, one in self.created.items() if one != id}
        else:
            self.dropped |= {id}

    def is_gone(self, id: GlobalId) -> bool:
        """Returns whether something is dropped as far as the block sees."""
        return id in self.dropped or (id in self._made and id not in self.created.values())

    def saved(self) -> BlockDefinitions:
        """Returns what is defined now, for a savepoint."""
        return BlockDefinitions(dict(self.created), self.dropped)

    def restore(self, saved: BlockDefinitions) -> None:
        """Undoes what was defined since."""
        self.created, self.dropped = dict(saved.created), saved.dropped

    def end(self, catalog: Catalog) -> None:
        """Drops what was made and has got no name. A sweep does it, too."""
        for id in reversed(self._made):
            with suppress(Error):
                if catalog.object(id).name is None:
                    catalog.drop_object(id)
        self.created, self.dropped, self._made = {}, frozenset(), []
