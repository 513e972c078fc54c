"""What a reader of files has to know of the source that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.file_place import FilePlace
from mz_dagster.storage.source.parquet_schema import TEXTUAL


class Described(Protocol):
    """What of a source says how its files are read; see `files.FileSource`."""

    @property
    def place(self) -> FilePlace:
        """Where they are."""
        ...

    @property
    def copies(self) -> str:
        """What their names have at their ends that those of records do not."""
        ...

    @property
    def format(self) -> str:
        """Of every file."""
        ...

    @property
    def columns(self) -> Sequence[Column]:
        """What is declared."""
        ...

    @property
    def key(self) -> Sequence[str] | None:
        """The key's columns, of a source whose records replace others."""
        ...

    @property
    def debezium(self) -> bool:
        """Whether a record is a change as Debezium writes it."""
        ...

    @property
    def partition(self) -> Sequence[str]:
        """The columns whose values folders say."""
        ...

    @property
    def file_columns(self) -> Sequence[Column]:
        """The others, which files have."""
        ...


def is_of_lines(format_: str) -> bool:
    """Returns whether files of a format are lines of text, not rows of typed columns."""
    return format_ in ("json", "csv")


def unit_of(source: Described) -> str:
    """Returns what a record is called by its place in a file."""
    return "line" if is_of_lines(source.format) else "row"


def is_typed(source: Described, column: Column) -> bool:
    """Returns whether files hold a column's cells in a type of theirs, not as text that is decoded."""
    is_text = is_of_lines(source.format) or column.name in source.partition or column.type.kind in TEXTUAL
    return not is_text
