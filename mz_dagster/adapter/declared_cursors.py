"""Cursors that a session names: DECLARE, FETCH, MOVE and CLOSE.

A cursor has all rows of its query from its declaration on, as PostgreSQL's insensitive ones; one over a subscription
has what has come. Its place is that of a row, from 1 on; 0 is before the first one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from mz_dagster.adapter.result import Result, Rows
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.clock import Clock
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.sql import Fetch

_Row = tuple[Any, ...]


class UndefinedCursor(ProgrammingError):
    """The name of a cursor that there is none of."""

    sqlstate = "34000"


class DuplicateCursor(ProgrammingError):
    """The name of a cursor that there is one of already."""

    sqlstate = "42P03"


class ForwardOnly(OperationalError):
    """A step back of a cursor that cannot go back."""

    sqlstate = "55000"


@dataclass(slots=True)
class DeclaredCursor:
    """A cursor.

    Attributes:
        result: What its query returned.
        block: The transaction block that it was declared in.
        holds: Whether it outlives that.
        scrolls: Whether it may go back; None for as far as it can.
        text: The statement that declared it.
        kept_ms: When it did, in milliseconds of the wall clock.
    """

    result: Result
    block: Transaction | None
    holds: bool
    scrolls: bool | None
    text: str
    kept_ms: int
    _place: int = 0
    _come: deque[_Row] = field(default_factory=deque)

    def close(self) -> None:
        """Ends its subscription, if it is over one."""
        if self.result.stream is not None:
            self.result.stream.close()

    def fetch(self, statement: Fetch, clock: Clock) -> Rows:
        """Returns the rows that FETCH asks for, and moves behind them.

        Raises:
            ForwardOnly: It asks for rows behind those that it was given, and the cursor cannot go back.
        """
        is_forward = statement.step == "forward"
        if (self.scrolls is False or self.result.stream is not None) and not is_forward:
            raise ForwardOnly(
                "cursor can only scan forward",
                detail="What a subscription has told is gone." if self.result.stream is not None else None,
                hint=None if self.result.stream is not None else "Declare it with SCROLL.",
            )
        if self.result.stream is not None:
            return self._next_of_stream(statement.count, statement.timeout_ms, clock)
        rows, last = self.result.rows, len(self.result.rows)
        count = statement.count
        match statement.step:
            case "forward" if count != 0:
                start = self._place
                end = last if count is None else min(start + count, last)
                self._place = last + 1 if count is None or start + count > last else end
                return rows[start:end]
            case "backward" if count != 0:
                end = max(min(self._place, last + 1) - 1, 0)
                start = 0 if count is None else max(end - count, 0)
                self._place = 0 if count is None or end - count < 0 else start + 1
                return rows[start:end][::-1]
            case "absolute":
                assert count is not None, "the grammar has it so"
                wanted = count if count >= 0 else last + 1 + count
            case _:
                wanted = self._place + (count or 0)
        self._place = max(0, min(wanted, last + 1))
        return rows[self._place - 1 : self._place] if 0 < self._place <= last else ()

    def _next_of_stream(self, count: int | None, timeout_ms: int | None, clock: Clock) -> Rows:
        """Returns rows that have come: at least one unless time is up first, at most so many."""
        stream = self.result.stream
        assert stream is not None
        until = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        while not self._has(count):
            # With a timeout it is waited for all that was asked for; else only for the first.
            left_s = None if until is None else max(0.0, (until - clock.monotonic_ms()) / 1000)
            some = stream.next_rows(0.0 if until is None and self._come else left_s)
            if not some:
                break
            self._come.extend(some)
        most = len(self._come) if count is None else min(count, len(self._come))
        return tuple(self._come.popleft() for _ in range(most))

    def _has(self, count: int | None) -> bool:
        return count is not None and len(self._come) >= count
