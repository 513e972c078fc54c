"""Files that a poll has accepted and Spark cannot read: which one it is.

A poll decodes every page of a Parquet file, with Arrow. A damaged header may be one that Arrow reads and Spark does
not, whose error often names no file. So where Spark fails while it reads what was bound, it is found out by halves
which file it cannot read alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding
from mz_dagster.errors import Error
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.files import FileSource
from mz_dagster.storage.spark.causes import cause_of
from mz_dagster.storage.spark.deadline import heap_full, is_lost, vanished_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def named_if_unreadable(spark: SparkSession, source: FileSource, bindings: Sequence[Binding]) -> Iterator[None]:
    """Names the bound file that Spark cannot read, if an error of the block came from one.

    Cost: nothing, unless the block fails; then what is bound is read twice.

    Raises:
        SourceUnreadable: There is such a file.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if source.format != "parquet" or _is_sparks_own(error):
            raise
        found = _unread(spark, source, bindings)
        if found is None:
            raise
        path, cause = found
        raise SourceUnreadable(
            f'Spark cannot read Parquet file "{path}"',
            detail=f"It is damaged: {cause}.",
            hint='This process may be able to: let the setting "engine" be "local" for a step. Else drop the source, '
            "replace the file by one that is whole, and create the source again.",
        ) from error


def _is_sparks_own(error: Exception) -> bool:
    """Returns whether an error says nothing of what was read."""
    return is_lost(error) or vanished_file(error) is not None or heap_full(error, writing=False) is not None


def _unread(spark: SparkSession, source: FileSource, bindings: Sequence[Binding]) -> tuple[str, str] | None:
    """Returns a file that Spark cannot read, and why; None if it reads them all."""
    suspects = [replace(binding, files=(file,)) for binding in bindings for file in binding.files]
    cause = _failure(spark, source, suspects)
    while cause is not None and len(suspects) > 1:
        first, second = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
        of_first = _failure(spark, source, first)
        suspects, cause = (second, _failure(spark, source, second)) if of_first is None else (first, of_first)
    return None if cause is None else (suspects[0].files[0].path.removesuffix(source.copies), cause)


def _failure(spark: SparkSession, source: FileSource, bindings: Sequence[Binding]) -> str | None:
    try:
        source.read(spark, bindings).write.format("noop").mode("overwrite").save()
    except Error:
        raise
    except Exception as error:
        if _is_sparks_own(error):
            raise
        return cause_of(error)
    return None
