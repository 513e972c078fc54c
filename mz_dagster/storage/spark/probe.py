"""Whether a Spark that somebody else runs can do what will be asked of it, found out when it is opened.

Owns two questions, each one small job: does it read and write the files that this process does, and does its Python
run what this process sends? A Spark on a cluster mostly fails one of them, which steps would tell minutes later, as a
file that was removed or a worker that was lost. Invariant: what passes was shown by an executor, not by its driver. A
pass is remembered beside the project for an hour, since each run is a process that opens Spark.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.storage.spark.causes import cause_of
from mz_dagster.storage.spark.deadline import is_lost
from mz_dagster.storage.spark.globs import escaped_glob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: For how long a pass is remembered.
PASS_SECONDS = 3600.0


def probe(session: SparkSession, folder: Path, address: str) -> None:
    """Checks that the executors of a Spark see a folder as this process does, and run its Python.

    Args:
        session: A session on it.
        folder: A folder of the project's; files are made in it and removed.
        address: What the Spark is called in errors; no token.

    Raises:
        OperationalError: They do not; says which, what they said, and what to do.
    """
    passed = folder / f"spark-{hashlib.sha256(_asked(address).encode()).hexdigest()[:16]}.passed"
    if not os.access(folder, os.W_OK):
        return  # of a project that may only be read, a probe could write nothing either
    if passed.exists() and SYSTEM_CLOCK.now_ms() / 1000 - passed.stat().st_mtime < PASS_SECONDS:
        return
    check_files(session, folder, address)
    check_python(session, address)
    passed.touch(mode=0o600)


def check_files(session: Any, folder: Path, address: str) -> None:
    """Checks that executors read what this process writes, and the other way round."""
    word = uuid.uuid4().hex
    written, copied = folder / f"probe-{word}.txt", folder / f"probe-{word}"
    try:
        written.write_text(word)
        try:
            session.read.text(escaped_glob(str(written))).write.text(str(copied))
        except Exception as error:
            if is_lost(error):
                raise
            raise _elsewhere(folder, address, f"It said: {cause_of(error)}.") from error
        parts = sorted(copied.glob("part-*")) if copied.is_dir() else []
        if "".join(part.read_text() for part in parts).strip() != word:
            raise _elsewhere(folder, address, "What it wrote there is not there for this process.")
    finally:
        written.unlink(missing_ok=True)
        shutil.rmtree(copied, ignore_errors=True)


def check_python(session: SparkSession, address: str) -> None:
    """Checks that executors have a Python of this version, with pyarrow."""

    # Nested, so that it is sent whole: executors need not have this package.
    def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import pyarrow as pa

        for batch in batches:
            found = ".".join(map(str, sys.version_info[:2]))
            yield pa.RecordBatch.from_arrays([pa.array([found] * batch.num_rows)], ["python"])

    try:
        ((python,),) = session.range(1).mapInArrow(versions, "python string").collect()
    except Exception as error:
        if is_lost(error):
            raise
        raise _other_python(address, cause_of(error)) from error
    if python != _version():
        raise _other_python(address, f"It is Python {python}")


def _elsewhere(folder: Path, address: str, detail: str) -> OperationalError:
    return OperationalError(
        f'the Spark at {address} does not have the project\'s folder "{folder}"',
        detail=detail,
        hint="Mount the folder under the same path on every machine where it runs, readable and writable for its user.",
    )


def _other_python(address: str, said: str) -> OperationalError:
    return OperationalError(
        f"the Python of the Spark at {address} cannot run what this process sends",
        detail=f"{said}.",
        hint=f"Install Python {_version()} with pyarrow on every executor, and name it by PYSPARK_PYTHON where the "
        "Spark is started.",
    )


def _version() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def _asked(address: str) -> str:
    return f"{address} {_version()} {pa.__version__}"
