"""Rows as COPY writes them in lines, by PostgreSQL's documentation of COPY: text and CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from mz_dagster.functions.cell_text import cell_text
from mz_dagster.scalars.types import Column
from mz_dagster.sql import ClientFormat
from mz_dagster.sql.errors import UndefinedColumn

_UNESCAPED = re.compile(r"[\\\b\f\n\r\t\v]")
_ESCAPES = {"\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


class CopyLines:
    """Writes rows as lines of text or CSV.

    Args:
        format: Which, and with which marks.
        columns: The rows' columns.
        zone: The session's time zone.

    Raises:
        UndefinedColumn: FORCE_QUOTE names a column that there is none of.
    """

    def __init__(self, format: ClientFormat, columns: Sequence[Column], zone: ZoneInfo) -> None:
        names = [one.name for one in columns]
        for name in format.force_quote or ():
            if name not in names:
                raise UndefinedColumn(f'FORCE_QUOTE column "{name}" not referenced by COPY', hint="Quote one of them.")
        self._format = format
        self._columns = columns
        self._zone = zone
        self._forced = [format.force_quote is None or name in format.force_quote for name in names]
        special = re.escape(format.delimiter + format.quote) + r"\r\n"
        self._needs_quotes = re.compile(f"[{special}]")

    def header(self) -> bytes:
        """Returns the line with the columns' names, if there is to be one."""
        if self._format.header == "no":
            return b""
        return self._line([one.name for one in self._columns], [False] * len(self._columns))

    def row(self, cells: Sequence[Any]) -> bytes:
        """Returns one row."""
        texts = [
            None if cell is None else cell_text(cell, column.type, self._zone)
            for cell, column in zip(cells, self._columns, strict=True)
        ]
        return self._line(texts, self._forced)

    def _line(self, texts: Sequence[str | None], forced: Sequence[bool]) -> bytes:
        written = self._csv if self._format.kind == "csv" else self._plain
        return (self._format.delimiter.join(map(written, texts, forced)) + "\n").encode()

    def _plain(self, text: str | None, _: bool) -> str:
        if text is None:
            return self._format.null
        found = _UNESCAPED.sub(lambda one: _ESCAPES[one[0]], text)
        delimiter = self._format.delimiter
        return found if delimiter in _ESCAPES else found.replace(delimiter, f"\\{delimiter}")

    def _csv(self, text: str | None, forced: bool) -> str:
        if text is None:
            return self._format.null
        alone = len(self._columns) == 1 and text == "\\."
        if not (forced or alone or text == self._format.null or self._needs_quotes.search(text)):
            return text
        quote, escape = self._format.quote, self._format.escape
        inner = text.replace(escape, escape * 2) if escape != quote else text
        return f"{quote}{inner.replace(quote, escape + quote)}{quote}"
