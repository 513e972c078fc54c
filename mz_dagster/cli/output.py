"""What statements return, as the command line prints it: as a table, CSV, JSON lines or Markdown."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from mz_dagster.adapter import Result
from mz_dagster.cli.tables import table_lines
from mz_dagster.functions.arrays.dimensions import nested_json
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import dimensioned_of

_NUMBERS = frozenset(
    (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.FLOAT4, Kind.FLOAT8)
)
_JSON = frozenset((Kind.JSON, Kind.JSONB))
_QUOTED = frozenset(',"\n\r')
_LISTEN_S = 0.5
"""How long to wait for the next row of a subscription before it is looked whether it was interrupted, in seconds."""

Row = tuple[Any, ...]


class OutputFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


@dataclass
class Output:
    """Prints results to standard output.

    Attributes:
        format: How rows are printed. Of JSON each is an object on a line of its own.
        expanded: Whether a table has a line for each cell.
        pages: Whether what is longer than the terminal goes through a pager.
    """

    format: OutputFormat = OutputFormat.TABLE
    expanded: bool = False
    pages: bool = False

    def show(self, result: Result) -> None:
        """Prints a result; of a subscription the rows as they come, until it ends or is interrupted."""
        if result.stream is not None:
            self._listen(result)
        elif result.columns:
            self._print(self._lines(result.columns, result.rows))
        else:
            print(result.tag)

    def _listen(self, result: Result) -> None:
        assert result.stream is not None
        begun, widths = False, [len(column.name) for column in result.columns]
        with closing(result.stream) as stream:
            while (rows := stream.next_rows(_LISTEN_S)) is not None:
                if not rows and begun:
                    continue
                for line in self._lines(result.columns, rows, goes_on=begun, widths=widths):
                    print(line)
                sys.stdout.flush()
                begun = True

    def _lines(
        self,
        columns: Sequence[Column],
        rows: Sequence[Row],
        *,
        goes_on: bool = False,
        widths: list[int] | None = None,
    ) -> Iterator[str]:
        """Yields the lines of rows.

        Args:
            columns: Their columns.
            rows: The rows.
            goes_on: Whether others were printed before them.
            widths: How wide a table's columns are at least, in characters; grows with the rows.
        """
        names = [column.name for column in columns]
        match self.format:
            case OutputFormat.JSON:
                for row in rows:
                    pairs = zip(columns, row, strict=True)
                    members = (f"{_string(one.name)}: {json_text(cell, one.type)}" for one, cell in pairs)
                    yield "{" + ", ".join(members) + "}"
            case OutputFormat.CSV:
                if not goes_on:
                    yield _csv_line(names)
                for row in rows:
                    (texts,) = _texts(columns, [row])
                    yield _csv_line([None if cell is None else text for cell, text in zip(row, texts, strict=True)])
            case OutputFormat.MARKDOWN:
                body = ([_in_markdown(cell) for cell in row] for row in _texts(columns, rows))
                rules = ["--:" if one.type.kind in _NUMBERS else "---" for one in columns]
                head = () if goes_on else ([_in_markdown(one) for one in names], rules)
                yield from (f"| {' | '.join(row)} |" for row in chain(head, body))
            case OutputFormat.TABLE if self.expanded:
                width = max(map(len, names), default=0)
                for number, cells in enumerate(_texts(columns, rows), 1):
                    yield f"-[ {number} ]-"
                    yield from (
                        f"{name.ljust(width)}  {cell}".rstrip() for name, cell in zip(names, cells, strict=True)
                    )
            case OutputFormat.TABLE:
                widths = [0] * len(names) if widths is None else widths
                for line in chain([names], _texts(columns, rows)):  # made once more below: they may be many
                    widths[:] = map(max, widths, map(len, line))
                right = [one.type.kind in _NUMBERS for one in columns]
                yield from table_lines(() if goes_on else names, _texts(columns, rows), right, widths)

    def _print(self, lines: Iterator[str]) -> None:
        """Prints lines as they are made, so many in a pager that they do not fit on the terminal."""
        pager = os.environ.get("PAGER", "less -FRSX")
        first = list(islice(lines, shutil.get_terminal_size().lines)) if self.pages and pager.strip() else []
        if first and len(first) == shutil.get_terminal_size().lines and self._page(pager, chain(first, lines)):
            return
        for line in chain(first, lines):
            print(line)
        sys.stdout.flush()

    @staticmethod
    def _page(pager: str, lines: Iterator[str]) -> bool:
        """Returns whether there is such a pager, which has got lines for as long as it took any."""
        try:
            process = subprocess.Popen(shlex.split(pager), stdin=subprocess.PIPE, text=True)
        except (OSError, ValueError):
            return False
        with suppress(BrokenPipeError), process:
            assert process.stdin is not None
            for line in lines:
                process.stdin.write(f"{line}\n")
        return True


def _texts(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[list[str]]:
    types = [column.type for column in columns]
    for row in rows:
        yield ["" if cell is None else cell_text(cell, one) for cell, one in zip(row, types, strict=True)]


def json_text(cell: Any, type_: ScalarType) -> str:
    """Returns a cell as JSON: numbers with all their digits, arrays, truth values; what JSON has no form of, as text.

    Example:
        >>> from mz_dagster.scalars.types import BOOL, FLOAT8, array_of, numeric
        >>> json_text(Decimal("1.50"), numeric(2)), json_text(float("nan"), FLOAT8)
        ('1.50', '"NaN"')
        >>> json_text([True, None], array_of(BOOL))
        '[true, null]'
    """
    if cell is None:
        return "null"
    if type_.kind is Kind.BOOL:
        return "true" if cell else "false"
    if type_.kind is Kind.ARRAY:
        return "[" + ", ".join(json_text(one, type_.parts[0]) for one in cell) + "]"
    if type_.kind is Kind.DIMENSIONED:
        elements, lengths, _ = dimensioned_of(cell)
        return nested_json([json_text(one, type_.parts[0].parts[0]) for one in elements], lengths, ", ", ", ")
    text = cell_text(cell, type_)
    if type_.kind in _JSON or (type_.kind in _NUMBERS and Decimal(text).is_finite()):
        return text
    return _string(text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _csv_line(cells: Sequence[str | None]) -> str:
    """Returns a line as COPY writes it: NULL is nothing, and an empty text is quoted."""
    return ",".join("" if one is None else one if one and not _QUOTED & set(one) else _in_quotes(one) for one in cells)


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _in_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
