"""Files as sources with a key read them, made of rows: what an asset returns becomes one.

Each file is read back as the rows that it is made of. What has no such file is refused before there is one: a source
stands still while one lies there that it cannot read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.errors import DataError
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.compression import codec_of
from mz_dagster.storage.source.described import is_of_lines
from mz_dagster.storage.source.parquet_schema import read_schema

_SUFFIXES = {"json": (".jsonl", ".json", ".ndjson"), "csv": (".csv", ".txt"), "parquet": (".parquet", ".pq")}


def suffixes(format_: str) -> Iterator[str]:
    """Yields the ends of names that files of a format may have, usual ones first; none if none can be made.

    Example:
        >>> list(suffixes("csv")), list(suffixes("orc"))
        (['.csv', '.txt', '.csv.gz', '.txt.gz', '.csv.zst', '.txt.zst'], [])
    """
    for packed in ("", ".gz", ".zst") if is_of_lines(format_) else ("",):
        for suffix in _SUFFIXES.get(format_, ()):
            yield suffix + packed


def csv_of(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> bytes:
    """Returns the file of some rows, whose values are texts as SQL writes them.

    Raises:
        DataError: One has a line feed, which no line holds.

    Example:
        >>> print(csv_of(["id", "name"], [["1", 'a "b" c'], ["2", ""], ["3", None]]).decode(), end="")
        "id","name"
        "1","a ""b"" c"
        "2",""
        "3",
    """
    lines = []
    for row in (names, *rows):
        line = ",".join("" if value is None else '"' + value.replace('"', '""') + '"' for value in row)
        if "\n" in line:
            raise DataError(
                "a value has a line feed, which files of CSV do not hold",
                detail=f"Its row is {line[:200]!r}.",
                hint="Take the line feed out of it, or have the source read FORMAT JSON or PARQUET.",
            )
        lines.append(f"{line}\n")
    return "".join(lines).encode()


def parquet_of(rows: pa.Table, columns: Sequence[Column]) -> bytes:
    """Returns the file of some rows.

    Args:
        rows: The rows, with texts where `described.is_typed` says that a file has no type of its own.
        columns: The source's, which must be able to read it.

    Raises:
        SourceUnreadable: One of them cannot.
    """
    file = BytesIO()
    pq.write_table(rows, file)
    read_schema(Path(), "what was returned", columns, file.getvalue())
    return file.getvalue()


def packed(content: bytes, name: str, format_: str) -> bytes:
    """Returns what a file of that name has: the content, compressed if the name says so."""
    codec = codec_of(name, format_)
    compressed: bytes = content if codec is None else pa.compress(content, codec=codec, asbytes=True)
    return compressed
