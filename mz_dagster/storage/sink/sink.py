"""The seam between a step and what it writes for readers outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from mz_dagster.errors import DataError, OperationalError

if TYPE_CHECKING:
    import pyarrow as pa


SinkEnvelope = Literal["upsert", "append changes", "debezium"]


class SinkUnwritable(OperationalError):
    """Where a sink writes cannot be read or written; what was there is as it was."""

    sqlstate = "58030"


class SinkTaken(OperationalError):
    """Where a sink is to write there is something that no sink of the project has written; it is left alone."""

    sqlstate = "42P07"


class SinkChanged(OperationalError):
    """What a sink has written is gone, or others have changed it; nothing was written."""

    sqlstate = "55000"


class UnwritablePartition(DataError):
    """A value that no partition of a table can have."""

    sqlstate = "22023"


class Sink(ABC):
    """Writes updates of a collection to somewhere outside.

    What it has written belongs to the time before its upper, as far as what it wrote knows: `stands_at`. That is
    durable together with what was written, in one act, which is why a write can be repeated.
    """

    @property
    @abstractmethod
    def operators(self) -> str:
        """What it does with updates, for people."""

    @property
    @abstractmethod
    def keeps_times(self) -> bool:
        """Whether it writes updates with their times; else the rows that there are once an interval is over."""

    @abstractmethod
    def stands_at(self) -> int | None:
        """Returns the time before which all is written; None if nothing was written yet.

        Raises:
            SinkTaken: There is something of others in its place.
            SinkUnwritable: It cannot be told.
        """

    @abstractmethod
    def begin(self, updates: pa.Table, upper: int) -> None:
        """Writes a collection's contents in the place of whatever the project's sinks have written there before.

        Args:
            updates: What the collection holds, consolidated: its columns, time, diff and error.
            upper: Where it stands afterwards.

        Raises:
            SinkTaken: There is something of others in its place.
            SinkUnwritable: It cannot be written.
            InfiniteMoment: A value cannot be written.
        """

    @abstractmethod
    def go_on(self, updates: pa.Table, lower: int, upper: int) -> None:
        """Writes the updates of an interval, at once or not at all.

        Args:
            updates: Those of `[lower, upper)`, consolidated.
            lower: Where it stands.
            upper: Where it stands afterwards.

        Raises:
            SinkChanged: What was written before is not there any more.
            SinkUnwritable: It cannot be written.
            InfiniteMoment: A value cannot be written.
        """

    @property
    @abstractmethod
    def place(self) -> str:
        """What readers find by which it writes: a folder, or a URI."""

    @abstractmethod
    def version_at(self, time: int) -> int | None:
        """Returns the version in which readers find what the collection held at a time; None if none has that any more.

        Args:
            time: Before which the sink has written everything, or after it.

        Raises:
            SinkTaken: There is something of others in its place.
            SinkUnwritable: It cannot be told.
        """

    @abstractmethod
    def difference(self, contents: pa.Table) -> str | None:
        """Returns how what is written differs from what it should be, a clause; None if it does not.

        Args:
            contents: What the collection holds at the time before the sink's upper, consolidated.

        Raises:
            SinkUnwritable: What is written cannot be read.
        """
