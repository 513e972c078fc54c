"""Files of ORC, which are read as the Parquet that a process of its own writes them as (`orc_reader`).

Arrow's reader ends its process over some damaged files. So it is in another one, which is started for the first file
and takes one after the other. If it dies over a file, or comes to no end, the file is the one that is wrong, and the
next one has a new process.

Their types become Arrow's, and from there on all is as for Parquet. Columns that are not declared are left out.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, BinaryIO

import pyarrow as pa

from mz_dagster.errors import NotSupportedError, OperationalError
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.absent_columns import absent_columns
from mz_dagster.storage.source.errors import SourceUnreadable

#: The first of Arrow's releases that tells moments which it cannot hold, where earlier ones have other moments.
_LEAST_ARROW = 26
#: How long a file may take: some seconds, and so many bytes in each further one.
_SECONDS, _BYTES_A_SECOND = 120, 1 << 20


def ensure_orc_is_read() -> None:
    """Makes sure that files of ORC can be read here.

    Raises:
        NotSupportedError: The library is too old, or was built without.
    """
    release = int(pa.__version__.partition(".")[0])
    if release < _LEAST_ARROW or find_spec("pyarrow._orc") is None:
        raise NotSupportedError(
            f"files of ORC need pyarrow {_LEAST_ARROW} or later, built with ORC",
            detail="Releases before have other moments in the place of those that they cannot hold.",
            hint=f"Install it where this process runs: pip install 'pyarrow>={_LEAST_ARROW}'.",
        )


def write_as_parquet(file: BinaryIO, path: str, columns: Sequence[Column], target: BinaryIO) -> None:
    """Writes the declared columns of a file as Parquet.

    Args:
        file: The file.
        path: What it is called.
        columns: Those declared.
        target: Where to.

    Raises:
        SourceUnreadable: It is damaged, or has a value that is not read.
        OperationalError: There is no room for it.
    """
    with TemporaryDirectory(prefix="mz_orc_") as folder:
        written = Path(folder) / "parquet"
        answer = _asked(file, path, Path(folder), written, [column.name for column in columns])
        absent_columns(columns, answer["names"], "ORC", path)
        with open(written, "rb") as found:
            shutil.copyfileobj(found, target)


def row_count(file: BinaryIO, path: str) -> int:
    """Returns how many rows a file says that it has, 0 if it is none: who reads it finds that out."""
    with suppress(SourceUnreadable), TemporaryDirectory(prefix="mz_orc_") as folder:
        return int(_asked(file, path, Path(folder), None, [])["rows"])
    return 0


def _asked(file: BinaryIO, path: str, folder: Path, target: Path | None, names: list[str]) -> dict[str, Any]:
    """Has a file written as Parquet, if there is a target, and returns what the reader says of it."""
    stored = folder / "orc"
    with open(stored, "wb") as copy:
        shutil.copyfileobj(file, copy)
    seconds = _SECONDS + stored.stat().st_size / _BYTES_A_SECOND
    answer = _reader.answer([str(stored), None if target is None else str(target), names], seconds)
    if "full" in answer:
        raise OperationalError(
            f'cannot decode ORC file "{path}": {answer["full"]}',
            detail=f'What is made of it is written to "{folder.parent}".',
            hint="Make room there, or let TMPDIR name another folder; nothing was read.",
        )
    if "refused" in answer:
        raise SourceUnreadable(
            f'cannot read ORC file "{path}"',
            detail=f"It is damaged, or has what is not read: {answer['refused']}.",
            hint="Replace the file by one with the source's columns, or move it away.",
        )
    return answer


class _Reader:
    """The process that reads files, one at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def answer(self, request: Any, seconds: float) -> dict[str, Any]:
        """Returns what the process says to a request, or as `refused` that it died or had no end."""
        with self._lock:
            while True:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                with suppress(BrokenPipeError):
                    print(json.dumps(request), file=process.stdin, flush=True)
                with selectors.DefaultSelector() as selector:
                    selector.register(process.stdout, selectors.EVENT_READ)
                    if not selector.select(seconds):
                        self._end()
                        return {"refused": f"reading it has no end after {seconds:.0f} s"}
                if said := process.stdout.readline():
                    return dict(json.loads(said))
                ended = self._end()
                if ended:
                    how = f"by signal {-ended}" if ended < 0 else f"with exit code {ended}"
                    return {"refused": f"the process that read it ended, {how}"}
                # else it ended because nothing was asked for long, and did not see the request

    def close(self) -> None:
        """Ends the process, if there is one of this process."""
        with self._lock:
            if self._process is not None and self._owner == os.getpid():
                self._end()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is not None:
            self._end()  # somebody else has ended it meanwhile
        if self._process is None or self._owner != os.getpid():
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("orc_reader.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is for who asks
            )
            self._owner = os.getpid()
        return self._process

    def _end(self) -> int:
        """Ends the process, and returns how it ended: 0 if by itself, since there was nothing to do."""
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            ended = process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
        process.stdout.close()
        return ended


_reader = _Reader()
atexit.register(_reader.close)
