"""Reads the header row of a CSV file, without Spark."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.absent_columns import absent_columns, listed
from mz_dagster.storage.source.errors import SourceUnreadable

#: No sane header is longer; a file without any line feed must not be read whole to say that it has none.
LONGEST_HEADER = 1 << 20


def read_header(folder: Path, path: str, columns: Sequence[Column], content: bytes | None = None) -> tuple[str, ...]:
    """Returns the names in the file's header row, in any order; of an empty file none.

    Columns that are not declared are left out, and those that it lacks are NULL, as `absent_columns` has it.

    Args:
        folder: Where the file is.
        path: The file.
        columns: The declared ones.
        content: The file's bytes, if they are at hand.

    Raises:
        SourceUnreadable: The first line is no header row, or does not name what it has to.
    """
    try:
        with open(folder / path, "rb") if content is None else BytesIO(content) as file:
            line = file.readline(LONGEST_HEADER)
    except OSError as error:
        raise _unreadable(path, f"it cannot be opened: {error.strerror}.") from error
    if not line:
        return ()
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
        names = tuple(next(csv.reader([text], strict=True), []))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, f"Its first line is no header row: {error}.") from error
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _unreadable(path, f"Its header row repeats {listed(twice)}.")
    if absent_columns(columns, names, "CSV", path, "Its header row") and not line.endswith(b"\n"):
        raise _unreadable(path, "Its header row has no end: it is not known whether it has all of its columns.")
    return names


def _unreadable(path: str, detail: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'cannot read CSV file "{path}"',
        detail=detail,
        hint="Replace the file by one whose first line names the source's columns, or move it away.",
    )
