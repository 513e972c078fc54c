"""What a reader of files has to know of the source that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.file_place import FilePlace


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
