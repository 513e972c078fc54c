"""What a reader of files has to know of the source that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mz_dagster.scalars.types import Column


class Described(Protocol):
    """What of a source says how its files are read; see `files.FileSource`."""

    @property
    def folder(self) -> Path:
        """Where they are."""
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
