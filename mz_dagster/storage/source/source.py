"""The seam between what a collection is filled from and all that polls, steps and examines it.

A source is a *transport*, which says what is there and up to which offset, and reads between two offsets; a *format*,
which makes cells of what was read; and an *envelope*, which says what these do to the collection. What a transport
gains at a tick is bound in the catalog before anybody reads it: files one by one, or an offset, JSON that only the
transport understands. Everything that is read follows from bindings alone.

Two kinds differ in what they hand to a step: a `RecordSource` has records, which an envelope makes updates of; a
`ChangeSource` has updates, of what adds rows and takes them away by itself. `README.md` has the design.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mz_dagster.catalog import Binding, BoundFile, Catalog, CollectionRow, Offset
from mz_dagster.scalars.types import Column

if TYPE_CHECKING:
    import pyarrow as pa

Envelope = Literal["none", "upsert"]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a source has that no binding names, as a tick binds it.

    Attributes:
        files: Files, of a transport that is bound file by file.
        offset: Up to where there is something, of one that has offsets; None if there is nothing new.
        count: How many files will be read for it.
    """

    files: Sequence[BoundFile] = ()
    offset: Offset | None = None
    count: int = 0

    def __bool__(self) -> bool:
        return bool(self.files) or self.offset is not None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the catalog knows of a source: all that its transport needs to tell what is new.

    Attributes:
        catalog: The catalog.
        row: The source's collection.
        expect_files_ms: For how long after a tick is sealed what it bound has to stay, in the timeline's milliseconds.
    """

    catalog: Catalog
    row: CollectionRow
    expect_files_ms: int = 0

    @property
    def last(self) -> Binding | None:
        """The last binding of a transport with offsets."""
        return self.catalog.last_binding(self.row.id)

    def check(self) -> None:
        """Returns if all bindings of the source are there; raises as `Catalog.check_bindings`."""
        self.catalog.check_bindings(self.row.id)


class Source(ABC):
    """What fills a collection from outside."""

    #: The declared columns, in order.
    columns: tuple[Column, ...]

    @property
    @abstractmethod
    def envelope(self) -> Envelope:
        """What a record does to the collection."""

    @property
    @abstractmethod
    def operators(self) -> str:
        """What makes the collection, for people."""

    @property
    @abstractmethod
    def places(self) -> tuple[Path, ...]:
        """What looks different on disk once something has arrived, as far as that can be told cheaply."""

    @property
    @abstractmethod
    def places_show_all(self) -> bool:
        """Whether nothing arrives without one of `places` looking different."""

    @abstractmethod
    def gain(self, ledger: Ledger) -> Gain:
        """Returns what is there and not bound yet, on disk.

        Raises:
            SourceUnreadable: It cannot be told, or cannot be read; once that is mended the next poll succeeds.
            BoundFileChanged: What was bound is not what it was.
            OperationalError: Likewise, in the words of the transport.
        """

    @abstractmethod
    def size(self, bindings: Sequence[Binding]) -> int:
        """Returns how many bytes will be read for bindings, about."""

    @abstractmethod
    def described(self, bindings: Sequence[Binding]) -> str:
        """Returns what bindings name, for people."""

    @abstractmethod
    def lost(self, bindings: Sequence[Binding]) -> Mapping[str, str]:
        """Returns what of the bindings is not there as it was bound, by its name, with a sentence each.

        Raises:
            SourceUnreadable: Something is there and cannot be read.
        """


class RecordSource(Source):
    """A source of records, which its envelope makes updates of."""


class ChangeSource(Source):
    """A source of updates: what it is filled from adds rows, and takes rows away."""

    @abstractmethod
    def updates(
        self,
        bindings: Sequence[Binding],
        before: Binding | None,
        held: Callable[[pa.Table | None], pa.Table],
        columns: Sequence[Column],
    ) -> pa.Table:
        """Returns the updates that bindings make, each at its tick, consolidated.

        Args:
            bindings: Those of an interval, by tick.
            before: The last one before it.
            held: Returns what the collection holds before the interval, consolidated; at least of the keys in a table
                of columns as they are stored, if it is given one.
            columns: The collection's columns: those declared, by the names that its shard has for them.

        Raises:
            SourceUnreadable: It cannot be read.
            OperationalError: It is not there any more as it was bound.
        """

    @abstractmethod
    def insertions(self, binding: Binding, columns: Sequence[Column]) -> Iterator[pa.Table]:
        """Yields the updates that the first binding of all makes, portion by portion; equal ones are not summed.

        Raises:
            SourceUnreadable: As `updates`.
            OperationalError: As `updates`.
        """
