"""The forms in which SUBSCRIBE tells the changes at one time: with their diffs, or by key, as upserts or Debezium's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mz_dagster.functions.value_order import nullable_key, order_key
from mz_dagster.scalars.types import BOOL, INT8, MZ_TIMESTAMP, TEXT, Column
from mz_dagster.sql import SubscribeEnvelope
from mz_dagster.sql.errors import UndefinedColumn, suggestion

Row = tuple[Any, ...]
#: A row and how many there are more of it, negative for fewer.
Change = tuple[Row, int]

PROGRESS = "mz_progressed"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the rows of a subscription look like.

    Attributes:
        columns: Its columns.
        with_progress: Whether rows tell how far it has come.
        tell: Returns the cells behind time and progress of the changes at one time.
    """

    columns: tuple[Column, ...]
    with_progress: bool
    tell: Callable[[Sequence[Change]], Iterator[Row]]

    @classmethod
    def of(cls, asked: SubscribeEnvelope, columns: Sequence[Column], *, with_progress: bool) -> Envelope:
        """Returns what is asked for of an object with some columns.

        Raises:
            UndefinedColumn: It has no such column.
        """
        first = [Column("mz_timestamp", MZ_TIMESTAMP, False)]
        if with_progress:
            first.append(Column(PROGRESS, BOOL, False))
        if asked.kind == "none":
            diff = Column("mz_diff", INT8)
            shown = [*first, diff, *_nullable(columns)] if with_progress else [*first, diff, *columns]
            return cls(tuple(shown), with_progress, _with_diffs(asked, columns))
        places = [_place(name, columns, asked.position) for name in asked.key]
        key = [columns[i] for i in places]
        rest = [i for i in range(len(columns)) if i not in places]
        values = _nullable([columns[i] for i in rest])
        first.append(Column("mz_state", TEXT, with_progress))
        keyed = _ByKey(places, rest, [nullable_key(order_key(one.type)) for one in key])
        if asked.kind == "upsert":
            return cls((*first, *key, *values), with_progress, keyed.upserts)
        before, after = ([Column(f"{which}_{one.name}", one.type) for one in values] for which in ("before", "after"))
        return cls((*first, *key, *before, *after), with_progress, keyed.debezium)

    def rows(self, time: int, changes: Sequence[Change]) -> Iterator[Row]:
        """Yields the rows that tell the changes at a time."""
        start: Row = (time, False) if self.with_progress else (time,)
        for row in self.tell(changes):
            yield (*start, *row)

    def progress(self, time: int) -> Row:
        """Returns the row that says that all changes before a time have been told."""
        return (time, True, *[None] * (len(self.columns) - 2))


def _with_diffs(asked: SubscribeEnvelope, columns: Sequence[Column]) -> Callable[[Sequence[Change]], Iterator[Row]]:
    """Tells each row with its diff: in the order asked for, else what goes before what comes."""
    places = [_place(one.column, columns, one.position) for one in asked.order]

    def tell(changes: Sequence[Change]) -> Iterator[Row]:
        found = sorted(changes, key=lambda one: one[1])
        for place, order in reversed(list(zip(places, asked.order, strict=True))):
            key = order_key(columns[place].type)
            there = [one for one in found if one[0][place] is not None]
            there.sort(key=lambda one: key(one[0][place]), reverse=order.descending)
            nulls = [one for one in found if one[0][place] is None]
            found = [*nulls, *there] if order.nulls_first else [*there, *nulls]
        for row, diff in found:
            yield (diff, *row)

    return tell


@dataclass(frozen=True, slots=True)
class _ByKey:
    """Tells what becomes of each key: at one time it loses at most one row, and gets at most one."""

    key: Sequence[int]
    rest: Sequence[int]
    comparable: Sequence[Callable[[Any], Any]]

    def upserts(self, changes: Sequence[Change]) -> Iterator[Row]:
        """Yields state, key and values."""
        for key, gone, come in self._by_key(changes):
            if len(gone) > 1 or len(come) > 1:
                yield ("key_violation", *key, *self._nothing())
            elif come:
                yield ("upsert", *key, *come[0])
            else:
                yield ("delete", *key, *self._nothing())

    def debezium(self, changes: Sequence[Change]) -> Iterator[Row]:
        """Yields state, key, values before and values after."""
        for key, gone, come in self._by_key(changes):
            before, after = (one[0] if one else self._nothing() for one in (gone, come))
            if len(gone) > 1 or len(come) > 1:
                yield ("key_violation", *key, *self._nothing(), *self._nothing())
            elif come and gone:
                yield ("upsert", *key, *before, *after)
            else:
                yield ("insert" if come else "delete", *key, *before, *after)

    def _nothing(self) -> Row:
        return (None,) * len(self.rest)

    def _by_key(self, changes: Iterable[Change]) -> Iterable[tuple[Row, list[Row], list[Row]]]:
        """Returns each key with the values that it loses and those that it gets, each as often as that is."""
        found: dict[Row, tuple[Row, list[Row], list[Row]]] = {}
        for row, diff in changes:
            key = tuple(row[i] for i in self.key)
            compared = tuple(of(cell) for of, cell in zip(self.comparable, key, strict=True))
            _, gone, come = found.setdefault(compared, (key, [], []))
            values = tuple(row[i] for i in self.rest)
            (come if diff > 0 else gone).extend([values] * abs(diff))
        return found.values()


def _place(name: str, columns: Sequence[Column], position: int | None) -> int:
    names = [one.name for one in columns]
    if name not in names:
        raise UndefinedColumn(f'column "{name}" does not exist', hint=suggestion(name, names), position=position)
    return names.index(name)


def _nullable(columns: Sequence[Column]) -> list[Column]:
    return [replace(one, nullable=True) for one in columns]
