"""What a statement returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import Dimensioned, NestedList
from mz_dagster.sql import ClientFormat

Rows = tuple[tuple[Any, ...], ...]


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
        rows: Its rows.
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
        return replace(self, rows=_rows_in_zone(self.rows, types, there), zone=zone)


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


def _rows_in_zone(rows: Rows, types: Sequence[ScalarType], zone: ZoneInfo) -> Rows:
    return tuple(tuple(_in_zone(cell, one, zone) for cell, one in zip(row, types, strict=True)) for row in rows)


def user_rows(rows: Iterable[tuple[Any, ...]], columns: Sequence[Column]) -> Rows:
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
