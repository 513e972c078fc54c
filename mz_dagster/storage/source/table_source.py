"""What sources of tables share: a table has versions, each bound version is what the collection is at its tick.

A transport says what leads from one version to another (`_groups`); what becomes of that with a key and without one,
and what RESET does, is here: an offset that says `"reset": true` is reached from what the collection holds, whatever
was bound between.

With a key the collection is what the commits, one after the other, say of each key (`envelope.table_upsert`): it does
not depend on which versions are bound.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import Binding
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.envelope import table_upsert
from mz_dagster.storage.shards import DIFF, TIME
from mz_dagster.storage.source.errors import TableReplaced, VersionsLost
from mz_dagster.storage.source.source import ChangeSource, Envelope, Gain
from mz_dagster.storage.source.table_rows import ReadColumn


class TableSource(ChangeSource):
    """A table that others write. An offset names a version; it has how many `files` are read for it, and `bytes`."""

    #: What SQL calls tables of this kind.
    kind: ClassVar[str]
    #: What a version is called, which is also where in an offset it is.
    version: ClassVar[str]

    #: The columns that tell what a row replaces, of an upsert source. Without them the table's rows are the
    #: collection's.
    key: tuple[str, ...]

    @property
    @abstractmethod
    def called(self) -> str:
        """What people call the table."""

    @property
    def envelope(self) -> Envelope:
        """What the rows that commits add do to the collection."""
        return "upsert" if self.key else "none"

    @property
    def operators(self) -> str:
        """What makes the collection, for people."""
        return f"{self.kind}, ENVELOPE UPSERT" if self.key else self.kind

    # ---- what is there

    @abstractmethod
    def declaration(self) -> str:
        """Returns all columns of the table as CREATE SOURCE declares them; raises as `gain`."""

    @abstractmethod
    def begun(self) -> Gain:
        """Returns the version with which the source begins, to be read whole; raises as `gain`."""

    @abstractmethod
    def newest(self) -> Gain:
        """Returns the newest version, to be read whole; raises as `gain`."""

    def reset(self) -> Gain:
        """Returns the newest version, to be reached from whatever the collection holds; raises as `gain`."""
        found = self.newest()
        assert found.offset is not None
        return Gain(offset={**found.offset, "reset": True}, count=found.count)

    # ---- what it says

    def size(self, bindings: Sequence[Binding]) -> int:
        """Returns how many bytes the files have that will be read for bindings, about."""
        return sum(cast(int, (one.offset or {}).get("bytes", 0)) for one in bindings)

    def described(self, bindings: Sequence[Binding]) -> str:
        """Returns up to which version bindings lead, for people."""
        files = sum(cast(int, (one.offset or {}).get("files", 0)) for one in bindings)
        versions = ", ".join(str(version_of(one, self.version)) for one in bindings)
        return f"{self.version} {versions}, {files} file{'' if files == 1 else 's'}, {self.size(bindings)} bytes"

    def lost(self, bindings: Sequence[Binding]) -> Mapping[str, str]:
        """Returns which of the bound versions cannot be read again, with why."""
        found: dict[str, str] = {}
        bindings = bindings[_last_reset(bindings) or 0 :]  # what came before needs to be read no more
        for before, one in zip((None, *bindings), bindings, strict=False):
            try:
                for _ in self._between(before, one, ()):
                    pass
            except (VersionsLost, TableReplaced) as error:
                named = f"{self.version} {version_of(one, self.version)}"
                found[named] = f"{error.message[:1].upper()}{error.message[1:]}. {error.detail}"
        return found

    def updates(
        self,
        bindings: Sequence[Binding],
        before: Binding | None,
        held: Callable[[pa.Table | None], pa.Table],
        columns: Sequence[Column],
    ) -> pa.Table:
        """Returns the updates that bindings make; see `ChangeSource.updates`.

        Raises:
            TableReplaced: A bound version is not there as it was bound.
            VersionsLost: What a bound version changed is gone.
            SourceUnreadable: A file cannot be read.
        """
        parts = [update_schema(columns).empty_table()]
        reset = _last_reset(bindings)
        if reset is not None:
            start = bindings[reset]
            gone = held(None)
            taken = [pc.negate_checked(gone.column(DIFF)), pa.repeat(pa.scalar(start.tick, pa.int64()), len(gone))]
            for name, values in zip((DIFF, TIME), taken, strict=True):
                gone = gone.set_column(gone.schema.get_field_index(name), name, values)
            parts.append(gone.select(parts[0].column_names))
            bindings, before = bindings[reset:], None
        if self.key:
            parts += self._upserts(bindings, before, held, columns)
        else:
            for one in bindings:
                parts += self._between(before, one, columns)
                before = one
        return summed(pa.concat_tables(parts).combine_chunks())

    def insertions(self, binding: Binding, columns: Sequence[Column]) -> Iterator[pa.Table]:
        """Yields the rows of the first bound version; see `ChangeSource.insertions`.

        All that the table's library is asked for is asked before the first portion: others may come when it is asked to
        write.
        """
        found = self._between(None, binding, columns)
        first = next(found, None)
        return found if first is None else chain((first,), found)

    def _upserts(
        self,
        bindings: Sequence[Binding],
        before: Binding | None,
        held: Callable[[pa.Table | None], pa.Table],
        columns: Sequence[Column],
    ) -> Iterator[pa.Table]:
        """Yields the updates that bindings make of the states of keys, commit by commit."""
        empty = update_schema(columns).empty_table()
        key = [stored for one, stored in zip(self.columns, columns, strict=True) if one.name in self.key]
        first: pa.Table | None = None
        if before is None:
            before, bindings = bindings[0], bindings[1:]
            rows = summed(pa.concat_tables([empty, *self._between(None, before, columns)]).combine_chunks())
            first = table_upsert.first_states(rows, key=key)
            yield first
        found: list[pa.Table] = []
        for one in bindings:
            for portions in self._groups(before, one, columns):
                found.append(summed(pa.concat_tables([empty, *portions]).combine_chunks()))
            before = one
        if found:
            prior = held(pa.concat_tables(found).select([one.name for one in key])) if first is None else first
            yield table_upsert.updates(found, prior, key=key)

    def _between(self, before: Binding | None, binding: Binding, columns: Sequence[Column]) -> Iterator[pa.Table]:
        """Yields the updates that lead from one binding to the next; see `_groups`."""
        for portions in self._groups(before, binding, columns):
            yield from portions

    @abstractmethod
    def _groups(
        self, before: Binding | None, binding: Binding, columns: Sequence[Column]
    ) -> Iterator[Iterator[pa.Table]]:
        """Yields the updates that lead from one binding to the next, in portions; from nothing, all of the table.

        With a key, those of each commit are by themselves. With no columns it only looks whether it could.
        """

    def _read_columns(self, names: Mapping[str, str], columns: Sequence[Column]) -> list[ReadColumn]:
        """Returns the declared columns as they are to be read, none if there are no `columns`.

        Args:
            names: The files' names of the columns, by the declared ones, of those that differ.
            columns: Them as they are stored.
        """
        return [
            ReadColumn(one, stored, names.get(one.name, one.name))
            for one, stored in zip(self.columns, columns, strict=bool(columns))
        ]


def _last_reset(bindings: Sequence[Binding]) -> int | None:
    """Returns the place of the last binding that is reached from what the collection holds."""
    return max((place for place, one in enumerate(bindings) if (one.offset or {}).get("reset")), default=None)


def version_of(binding: Binding, name: str) -> int:
    """Returns the version that a binding names."""
    assert binding.offset is not None, "a table is bound by its versions"
    return cast(int, binding.offset[name])
