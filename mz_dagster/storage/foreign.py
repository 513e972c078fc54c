"""The boundary to other people's code: whatever their libraries raise becomes an error of the one hierarchy.

PEP 249 promises that `except mz_dagster.Error` catches all. Libraries raise what they like: delta-rs panics, which are
no `Exception` at all, protobuf's `DecodeError`, Arrow's `ValueError`s, traces of Java, errors of SQLAlchemy. Where more
is known of a failure than that it happened, it is told apart closer to its place; what gets here gets its cause told.

Interrupts and exits are nobody's errors, and pass.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mz_dagster.errors import DatabaseError, Error, InternalError, OperationalError
from mz_dagster.sql.errors import StatementTooComplex
from mz_dagster.storage.shards import BATCH, FileDamaged, MultiplicityOverflow
from mz_dagster.storage.spark.causes import cause_of, chain
from mz_dagster.storage.spark.deadline import heap_full, is_lost, lost_spark, vanished_file

_PANIC = "PanicException"  # of `pyo3_runtime`, a module that nobody can import

#: What Spark says of a sum or a product of multiplicities: no scalar that it is sent fails so.
_OVERFLOW = ("[ARITHMETIC_OVERFLOW]", "[NUMERIC_VALUE_OUT_OF_RANGE")
_READING = re.compile(r"while reading file (\S+?)\.?\s+SQLSTATE")

_DATABASE = "a database, the catalog's or Dagster's,"

_LIBRARIES = {
    "pyspark": "Spark",
    "py4j": "Spark",
    "grpc": "Spark's client",
    "google": "Spark's client",
    "deltalake": "the library of Delta tables",
    "_internal": "the library of Delta tables",
    "pyo3_runtime": "the library of Delta tables",
    "pyiceberg": "the library of Iceberg tables",
    "pyarrow": "Arrow",
    "sqlalchemy": _DATABASE,
    "sqlite3": _DATABASE,
    "psycopg": _DATABASE,
    "alembic": "the catalog's migration",
}
"""Whom to name, by the package that an error's class is of."""

_BY_ERRNO = {
    errno.ENOSPC: "Free space on that disk, then try again.",
    errno.EDQUOT: "Free space of this user's quota, then try again.",
    errno.EROFS: "That file system cannot be written: mount it writable.",
    errno.EACCES: "Give this user the right to it.",
    errno.EPERM: "Give this user the right to it.",
    errno.EMFILE: "Raise the number of files that a process may have open (ulimit -n).",
}


@contextmanager
def only_our_errors(*, writing: bool = False) -> Iterator[None]:
    """Lets out of its block, or of the function that it decorates, no errors but those of the one hierarchy.

    Args:
        writing: Whether what runs inside may have changed durable state before it failed.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise as_error(error, writing=writing) from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise as_error(error, writing=writing) from error


def as_error(error: BaseException, *, writing: bool = False) -> DatabaseError:
    """Returns the error of ours that reports a foreign one."""
    if is_lost(error):
        return lost_spark(error, writing=writing)
    if (gone := vanished_file(error)) is not None:
        return gone
    if (full := heap_full(error, writing=writing)) is not None:
        return full
    if (unread := unread_file(error)) is not None:
        return unread
    if any(text in str(one) for one in chain(error) for text in _OVERFLOW):
        return MultiplicityOverflow(f"{cause_of(error)}.")
    system = next((one for one in chain(error) if isinstance(one, OSError) and one.errno is not None), None)
    if system is not None:
        name = "" if system.filename is None else f'"{system.filename}": '
        return OperationalError(
            f"{name}{system.strerror or type(system).__name__}",
            hint=_BY_ERRNO.get(system.errno or 0, "Look at what is named there, then try again."),
            may_have_taken_effect=writing,
        )
    if isinstance(error, RecursionError):
        return StatementTooComplex("the statement is nested too deeply", hint="Split it into views or CTEs.")
    if isinstance(error, MemoryError):
        return OperationalError(
            "this process has no memory left",
            hint="Read or write less at once, or give the process more.",
            may_have_taken_effect=writing,
        )
    library = _LIBRARIES.get(type(error).__module__.partition(".")[0])
    if library is None:
        return InternalError(
            f"unexpected {type(error).__name__}: {cause_of(error)}", hint="This is a fault of mz_dagster: report it."
        )
    if type(error).__name__ == "DecodeError":
        return OperationalError(
            "what was to be computed is too large for one plan of Spark's",
            detail=f"{cause_of(error)}.",
            hint="Split it: make a view of a part of the query.",
            may_have_taken_effect=writing,
        )
    hint = "If it fails again, see the logs: those of an embedded Spark are in .mz/spark."
    if any(text in str(one) for one in chain(error) for text in ("No space left", "disk is full")):
        hint = "Free space where the shards are, and where Spark keeps its temporary files; then try again."
        if library == _DATABASE:
            hint = "Free space on the disk of the project and of Dagster's instance, then try again."
    return OperationalError(f"{library} failed: {cause_of(error)}", hint=hint, may_have_taken_effect=writing)


def unread_file(error: BaseException) -> FileDamaged | None:
    """Returns what reports a data file of a shard that Spark could not read; None if `error` does not say so.

    Pages that were damaged since this process compared the file with its hash fail by their own checksums.

    Example:
        >>> text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        >>> text += "file:///p%20q/.mz/shards/u1/mz_batch=3/mz_bucket=-/x.parquet. SQLSTATE: KD001"
        >>> unread_file(RuntimeError(text)).message
        'data file "/p q/.mz/shards/u1/mz_batch=3/mz_bucket=-/x.parquet" of "u1" is damaged'
    """
    texts = [str(one) for one in chain(error)]
    named = next((found for text in texts if (found := _READING.search(text)) is not None), None)
    if named is None or any("Permission denied" in text for text in texts):
        return None
    path = Path(unquote(urlsplit(named[1]).path))
    in_batch = next((folder for folder in path.parents if folder.name.startswith(f"{BATCH}=")), None)
    if in_batch is None:
        return None
    return FileDamaged(path, f"Spark cannot read it: {cause_of(error)}", in_batch.parent.name)
