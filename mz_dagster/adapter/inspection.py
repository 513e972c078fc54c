"""What introspection asks of an opened project, beside its catalog: its shards' errors, its sources, its activity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

from mz_dagster.adapter.activity import Activity
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.samples import all_errors_at
from mz_dagster.adapter.sink_versions import sink_versions
from mz_dagster.catalog import CollectionRow
from mz_dagster.errors import Error, one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source import Ledger

_AT_THE_END = 1 << 62
"""A time beyond all updates of a collection that is closed."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Looks at an opened project; see `system_catalogs.facts.Inspected`."""

    engine: Engine

    @property
    def activity(self) -> Activity:
        """What this process does with it."""
        return self.engine.activity

    def errors(self, row: CollectionRow) -> Mapping[str, int]:
        """Returns how often each error is in a collection, at the latest time at which it is complete."""
        if not row.is_hydrated:
            return {}
        return all_errors_at(self.engine, row, _AT_THE_END if row.upper.is_empty else row.upper.only - 1)

    def waiting(self, source: GlobalId) -> int | str:
        """Returns how many files or offsets a source has that are not bound; or why nobody knows, in one line."""
        engine = self.engine
        try:
            ledger = Ledger(engine.catalog, engine.catalog.collection(source), engine.project.expect_files_ms)
            return engine.definitions.source(source).gain(ledger).count
        except Error as error:
            return one_line(error)

    def sink_versions(self) -> Iterator[tuple[str | int | None, ...]]:
        """Yields what each sink has written: the attributes of `SinkVersions`."""
        return map(astuple, sink_versions(self.engine.catalog, self.engine.definitions))

    def indexed(self, index: GlobalId) -> GlobalId:
        """Returns what an index is on."""
        on = self.engine.definitions.definition(index).on
        assert on is not None, "every index is on something"
        return on.id
