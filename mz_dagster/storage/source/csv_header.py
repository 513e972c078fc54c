"""Reads the header row of a CSV file, without Spark."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.errors import SourceUnreadable

#: No sane header is longer; a file without any line feed must not be read whole to say that it has none.
LONGEST_HEADER = 1 << 20


def read_header(folder: Path, path: str, columns: Sequence[Column], content: bytes | None = None) -> tuple[str, ...]:
    """Returns the names in the file's header row, a permutation of the declared ones; of an empty file none.

    Args:
        folder: Where the file is.
        path: The file.
        columns: The declared ones.
        content: The file's bytes, if they are at hand.

    Raises:
        SourceUnreadable: The first line is no header row, or does not name exactly the declared columns.
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
    declared = [column.name for column in columns]
    missing = [name for name in declared if name not in names]
    extra = [name for name in names if name not in declared]
    twice = sorted({name for name in names if names.count(name) > 1})
    for what, which in (("lacks", missing), ("has the undeclared", extra), ("repeats", twice)):
        if which:
            listed = ", ".join(f'"{name}"' for name in which)
            raise _unreadable(path, f"Its header row {what} column{'s' * (len(which) > 1)} {listed}.")
    return names


def _unreadable(path: str, detail: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'cannot read CSV file "{path}"',
        detail=detail,
        hint="Replace the file by one whose first line names the source's columns, or move it away.",
    )
