"""What a statement returned."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Protocol, overload
from zoneinfo import ZoneInfo

from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.compute import StoredRows
from mz_dagster.compute.snapshot.stored_rows import AT_ONCE
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import Dimensioned, NestedList
from mz_dagster.sql import ClientFormat

Row = tuple[Any, ...]
#: Rows as a user gets them: a tuple of few, or `StreamedRows`.
Rows = Sequence[Row]


class RowStream(Protocol):
    """Rows that come for as long as somebody takes them; one thread may take while another closes."""

    def next_rows(self, wait_s: float | None) -> Rows | None:
        """Returns the rows that have come, at least one; none of them if none came in time, None at the end.

        Args:
            wait_s: For how long to wait for the first, in seconds; None for as long as it takes.
        """
        ...

    def close(self) -> None:
        """Ends the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement returned.

    Attributes:
        tag: The command tag, as PostgreSQL's: `SELECT 3`, `INSERT 0 1`, `CREATE TABLE`.
        columns: The result set's columns; empty if there is none.
        rows: Its rows; many are made as they are taken.
        rowcount: Rows returned or changed; -1 if that means nothing for the statement.
        stream: Of a subscription its rows, in the place of `rows`; whoever takes them closes it.
        sent_as: How a client is to get the rows that has asked for them by COPY; None for rows as of any statement.
        zone: By which time zone's clocks timestamps with a zone are shown.
        queued: What it has written and is not durable yet, which somebody waits for; see `Connection.acknowledged`.
    """

    tag: str
    columns: tuple[Column, ...] = ()
    rows: Rows = ()
    rowcount: int = -1
    stream: RowStream | None = None
    sent_as: ClientFormat | None = None
    zone: str = "UTC"
    queued: QueuedWrite | None = None

    def in_zone(self, zone: str) -> Result:
        """Returns the result with its timestamps as the clocks of a time zone show them."""
        held = frozenset({Kind.TIMESTAMPTZ})
        types = [one.type for one in self.columns]
        if not any(one.kind in held or one.holds(held) for one in types):
            return self
        there = ZoneInfo(zone)
        if self.stream is not None:
            return replace(self, stream=_StreamInZone(self.stream, types, there), zone=zone)
        shown = partial(_rows_in_zone, types=types, zone=there)
        rows = self.rows.shown_as(shown) if isinstance(self.rows, StreamedRows) else shown(self.rows)
        return replace(self, rows=rows, zone=zone)


class StreamedRows(Sequence[Row]):
    """Rows that stay in the Arrow columns in which they were computed, and are made by portions as they are taken.

    They hold nothing but those columns: no lease, no file and no thread. Any part of them is such rows again.

    Args:
        stored: The rows.
        shown: What a portion of them goes through before a user gets it.
        places: Which of them, in which order; all if that is not said.
    """

    def __init__(
        self,
        stored: StoredRows,
        shown: Callable[[Rows], Rows] | None = None,
        *,
        places: range | None = None,
    ) -> None:
        self._stored = stored
        self._shown = shown
        self._places = range(len(stored)) if places is None else places
        #: The portion that was made last, and where it begins, for who takes row by row.
        self._made: tuple[int, Rows] = (0, ())

    def shown_as(self, shown: Callable[[Rows], Rows]) -> StreamedRows:
        """Returns the rows as they are once portions of them have gone through one more function."""
        before = self._shown
        return StreamedRows(
            self._stored, shown if before is None else lambda rows: shown(before(rows)), places=self._places
        )

    @property
    def stored(self) -> StoredRows | None:
        """The rows as stored; None if what a user gets of them is in another order."""
        if self._places.step != 1:
            return None
        return replace(self._stored, table=self._stored.table.slice(self._places.start, len(self._places)))

    def portions(self, most: int = AT_ONCE) -> Iterator[Rows]:
        """Yields all rows, so many at a time."""
        for start in range(0, len(self), most):
            part = self._places[start : start + most]
            yield self._made_of(part.start, part.stop) if part.step == 1 else tuple(map(self._row, part))

    def _made_of(self, start: int, stop: int) -> Rows:
        rows: Rows = self._stored.rows(start, stop)
        return rows if self._shown is None else self._shown(rows)

    def _row(self, place: int) -> Row:
        begin, rows = self._made
        if not begin <= place < begin + len(rows):
            begin = place - place % AT_ONCE
            rows = self._made_of(begin, begin + AT_ONCE)
            self._made = begin, rows
        return rows[place - begin]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> Rows: ...

    def __getitem__(self, at: int | slice) -> Row | Rows:
        places = self._places[at]
        if isinstance(places, int):
            return self._row(places)
        if len(places) <= AT_ONCE:
            return tuple(map(self._row, places))
        return StreamedRows(self._stored, self._shown, places=places)

    def __iter__(self) -> Iterator[Row]:
        for one in self.portions():
            yield from one

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class _StreamInZone:
    stream: RowStream
    types: Sequence[ScalarType]
    zone: ZoneInfo

    def next_rows(self, wait_s: float | None) -> Rows | None:
        found = self.stream.next_rows(wait_s)
        return None if found is None else _rows_in_zone(found, self.types, self.zone)

    def close(self) -> None:
        self.stream.close()


def _rows_in_zone(rows: Iterable[Row], types: Sequence[ScalarType], zone: ZoneInfo) -> tuple[Row, ...]:
    return tuple(tuple(_in_zone(cell, one, zone) for cell, one in zip(row, types, strict=True)) for row in rows)


def user_rows(rows: Iterable[Row], columns: Sequence[Column]) -> tuple[Row, ...]:
    """Returns rows as a user gets them: `Decimal`s, times of Python's with their zone, arrays as lists in lists.

    Example:
        >>> from mz_dagster.scalars.types import INT4, UNCONSTRAINED, array_of
        >>> user_rows([(1, ["1.50", None])], (Column("a", INT4), Column("b", array_of(UNCONSTRAINED))))
        ((1, [Decimal('1.50'), None]),)
    """
    held = frozenset({Kind.UNCONSTRAINED, Kind.TIMETZ, Kind.DIMENSIONED})
    if not any(one.type.kind in held or one.type.holds(held) for one in columns):
        return tuple(rows)
    types = [one.type for one in columns]
    return tuple(tuple(map(_handed_out, row, types)) for row in rows)


def _handed_out(cell: Any, type_: ScalarType) -> Any:
    if cell is None:
        return None
    if type_.kind is Kind.UNCONSTRAINED:
        return Decimal(cell)
    if type_.kind is Kind.TIMETZ:
        return cell.time
    if type_.element is not None:
        return [_handed_out(one, type_.element) for one in cell]
    if type_.kind is Kind.DIMENSIONED:
        return NestedList(Dimensioned(*map(_handed_out, cell, type_.parts)))
    if type_.kind is Kind.RECORD:
        return tuple(map(_handed_out, cell, type_.parts))
    return cell


def _in_zone(cell: Any, type_: ScalarType, zone: ZoneInfo) -> Any:
    if type_.kind is Kind.TIMESTAMPTZ and isinstance(cell, datetime):
        return cell.astimezone(zone)
    if type_.element is not None and cell is not None:
        return [_in_zone(one, type_.element, zone) for one in cell]
    if type_.kind is Kind.DIMENSIONED and cell is not None:
        return NestedList(cell.array._replace(elements=_in_zone(cell.array.elements, type_.parts[0], zone)))
    if type_.kind is Kind.RECORD and cell is not None:
        return tuple(_in_zone(one, part, zone) for one, part in zip(cell, type_.parts, strict=True))
    return cell
