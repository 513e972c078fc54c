"""Rows as the command line prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain


def print_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under their columns' names, numbers to the right; None is empty."""
    body = [["" if cell is None else str(cell) for cell in row] for row in rows]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(names))]
    for line in table_lines(names, body, right, widths_of([names, *body])):
        print(line)


def table_lines(
    names: Sequence[str], body: Iterable[Sequence[str]], right: Sequence[bool], widths: Sequence[int]
) -> Iterator[str]:
    """Yields the lines of a table: its columns' names, if any are given, and its rows.

    Args:
        names: Of the columns; none for a table that goes on.
        body: The rows' cells.
        right: Which columns are flush right.
        widths: Of the columns, in characters.
    """
    head = [list(names), ["-" * width for width in widths]] if names else []
    for row in chain(head, body):
        cells = (cell.rjust(w) if flush else cell.ljust(w) for cell, w, flush in zip(row, widths, right, strict=True))
        yield "  ".join(cells).rstrip()


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Returns the width of each column of at least one row, in characters."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))
