"""Files that COPY writes: CSV, text, JSON lines and Parquet.

Invariant: under the name that was asked for there is what was there before, or the whole file, on disk. It is written
beside it under a name that sources do not read, and renamed; of a process that is killed meanwhile that file stays.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path
from typing import BinaryIO, Literal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.adapter.arrow_rows import record_batches
from mz_dagster.adapter.copy_lines import CopyLines
from mz_dagster.adapter.result import Result, Rows
from mz_dagster.disk import sync
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.fail_point import fail_point
from mz_dagster.functions.json_cell import json_row
from mz_dagster.sql import ClientFormat
from mz_dagster.storage.published import published_schema

#: How many rows a group of a Parquet file has at most.
_GROUP = 100_000


class FileNotWritten(OperationalError):
    """A file that cannot be written where it was asked for; what was there is as it was."""

    sqlstate = "58030"


class RepeatedColumn(ProgrammingError):
    """Several columns of one name where names tell them apart."""

    sqlstate = "42701"


def check_names(names: tuple[str, ...], what: str) -> None:
    """Raises if columns of a result cannot be told apart by their names.

    Raises:
        RepeatedColumn: Two have the same.
    """
    for name in names:
        if names.count(name) > 1:
            raise RepeatedColumn(
                f'column "{name}" is there twice, and {what} tells columns apart by name',
                hint="Give one of them another name: ... AS name.",
            )


def copy_to_file(path: Path, result: Result, format: ClientFormat | Literal["json", "parquet"], zone: str) -> None:
    """Writes the rows of a result as a file, in the place of one that is there.

    Raises:
        RepeatedColumn: The format tells columns apart by name, and two have the same.
        InfiniteMoment: Parquet has no value for a date or timestamp.
        FileNotWritten: The file cannot be written.
    """
    if format == "json" or format == "parquet":
        check_names(tuple(one.name for one in result.columns), format.upper() if format == "json" else "Parquet")
    lines = CopyLines(format, result.columns, ZoneInfo(zone)) if isinstance(format, ClientFormat) else None
    with written_whole(path) as file:
        if lines is not None:
            file.write(lines.header())
            file.writelines(map(lines.row, result.rows))
        elif format == "json":
            there = ZoneInfo(zone)
            file.writelines(f"{json_row(row, result.columns, there)}\n".encode() for row in result.rows)
        else:
            schema = published_schema(result.columns, zone)
            with pq.ParquetWriter(file, schema) as writer:
                for batch in record_batches(_portions(result.rows), result.columns, zone):
                    writer.write_batch(batch)


def _portions(rows: Rows) -> Iterator[Rows]:
    return takewhile(bool, (rows[start : start + _GROUP] for start in count(0, _GROUP)))


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that has its name once the block has ended without an error.

    Raises:
        FileNotWritten: It cannot be written.
    """
    path = path.resolve()  # of a link that which it leads to
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(beside, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            fail_point("copy.written")
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        sync(path.parent)
    except (OSError, pa.ArrowException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FileNotWritten(
            f'could not write file "{path}": {reason}',
            hint="Name a file, relative to the project, in a folder that is there and can be written; nothing was "
            "written.",
        ) from error
