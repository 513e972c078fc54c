"""The columns of a source whose statement leaves them to its table.

They are decided once, when the source is created: those that the table has then are written into the statement, which
the catalog keeps. So the source stays as it is when the table gets columns, and whoever looks at it sees which it has.
A project's file goes on without them: as long as it says what the catalog does but for the columns, those of the
catalog are meant, and the table is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from mz_dagster.adapter.origins import declared_columns
from mz_dagster.adapter.project import Project
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error
from mz_dagster.plan.resolver import Resolver
from mz_dagster.sql import CreateSource, parse
from mz_dagster.sql.source_statement import with_columns_of, with_declared_columns


def stated(statement: CreateSource, resolver: Resolver, project: Project) -> tuple[CreateSource, str]:
    """Returns a statement with the columns that its table has now, and these alone.

    Raises:
        FolderNotAllowed: The table is where sources may not read.
        SourceUnreadable: There is no such table, it cannot be read, or it has a column that SQL has no type for.
        InvalidTableDefinition: The columns do not go with the key.
    """
    columns = declared_columns(statement, resolver, project)
    return _parsed(with_declared_columns(statement.text, columns)), columns


class StatedColumns:
    """The columns that a project's files leave to tables; the catalog is looked at once, if any do."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stored: Mapping[str, str] | None = None

    def of(
        self, statement: CreateSource, names: tuple[str, ...], resolver: Resolver
    ) -> tuple[CreateSource, str | None]:
        """Returns a statement with its columns, and these alone if it is now that they are decided.

        Args:
            statement: What a file says.
            names: What the catalog calls the source: the first that it knows counts.
            resolver: Of the names in the statement.

        Raises:
            Error: As `stated`.
        """
        if self._stored is None:
            self._stored = dict(_sources_of(self._project))
        there = next((self._stored[name] for name in names if name in self._stored), None)
        if there is not None and (found := with_columns_of(statement.text, there)) is not None:
            return _parsed(found), None
        return stated(statement, resolver, self._project)


def _parsed(text: str) -> CreateSource:
    (found,) = parse(text)
    assert isinstance(found, CreateSource)
    return found


def _sources_of(project: Project) -> Iterator[tuple[str, str]]:
    """Yields the sources that the catalog holds, with their statements; nothing if it cannot be looked at."""
    with suppress(Error):  # whoever applies the project is told
        catalog = Catalog.open_made(project.catalog_url)
        if catalog is not None:
            with catalog:
                yield from [(row.name, row.sql) for row in catalog.objects() if row.kind == "source" and row.name]
