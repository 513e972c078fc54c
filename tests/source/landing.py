"""What the source tests share: writing files, binding them, reading records back as plain tuples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mz_dagster.adapter import Connection
from mz_dagster.catalog import Binding, BoundFile
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source import FileSource

if TYPE_CHECKING:
    import pyarrow as pa
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


def poll(connection: Connection) -> None:
    """Binds what is new, and raises what is wrong with a source."""
    for error in connection.engine.poll("default").failures.values():
        raise error


def records(
    spark: SparkSession, source: FileSource, bindings: Sequence[Binding], here: pa.Table | None = None
) -> list[tuple[Any, ...]]:
    """Returns `(tick, path, row, deleted, error, *data)` of every record in ingestion order.

    Both ways of reading give them, bit for bit.

    Args:
        spark: The session to read with.
        source: What they are records of.
        bindings: What names them.
        here: What is read in this process, if not of the same files.
    """
    frame = source.read(spark, bindings)
    place = ["mz_timestamp", "mz_path", "mz_row"]
    names = [*place, "mz_deleted", "mz_error", *(column.name for column in source.columns)]
    found = frame.orderBy("mz_timestamp", "mz_path", "mz_block", "mz_row").select(*names).toArrow()
    here = (source.read_here(bindings) if here is None else here).select(names)
    wanted = here.schema
    rows = [tuple(row.values()) for row in found.cast(wanted).to_pylist()]
    local = [tuple(row.values()) for row in here.to_pylist()]
    # Told apart by their texts, as 0.0 and -0.0 are.
    for by_spark, by_us in zip(rows, local, strict=True):
        assert repr(by_us) == repr(by_spark), "what is decoded in this process is another record"
    return rows
