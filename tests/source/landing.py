"""What the source tests share: writing files, binding them, reading records back as plain tuples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mz_dagster.catalog import Binding, BoundFile
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source import FileSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drop(folder: Path, path: str, content: str | bytes) -> BoundFile:
    """Writes a file and returns what a binding says of it."""
    data = content.encode() if isinstance(content, str) else content
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return BoundFile(path, len(data), hashlib.sha256(data).hexdigest())


def bind(files: Mapping[int, Sequence[BoundFile]]) -> tuple[Binding, ...]:
    """Returns one binding per tick."""
    return tuple(Binding(GlobalId("s1"), tick, tuple(files[tick])) for tick in sorted(files))


def records(spark: SparkSession, source: FileSource, bindings: Sequence[Binding]) -> list[tuple[Any, ...]]:
    """Returns `(tick, path, row, deleted, error, *data)` of every record in ingestion order."""
    frame = source.read(spark, bindings)
    names = [column.name for column in source.columns]
    rows = frame.select("mz_timestamp", "mz_path", "mz_row", "mz_deleted", "mz_error", *names, "mz_block").collect()
    ordered = sorted(rows, key=lambda row: (row["mz_timestamp"], row["mz_path"], row["mz_block"], row["mz_row"]))
    return [tuple(row)[:-1] for row in ordered]
