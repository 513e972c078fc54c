"""A cheap sign of whether anything was committed to a SQLite file.

SQLite tells a connection whether others have committed since it looked last (`PRAGMA data_version`), for three
microseconds and without a transaction. Of a connection that never writes that is every commit, of this process or of
another: two numbers that are equal say that the file is between them as it was. A number may change for nothing.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path


class Commits:
    """Tells whether anything was committed. Safe for use from several threads.

    Args:
        file: The SQLite file, which is there when it is first asked.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_over = False

    def number(self) -> int | None:
        """Returns a number that is greater once anything has been committed; None if that cannot be told.

        Once it was None it stays so: who reads the file finds out what is wrong with it.
        """
        with self._lock:
            if self._is_over:
                return None
            try:
                if self._connection is None:
                    uri = f"{self._file.absolute().as_uri()}?mode=rw"
                    self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
                return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:
                self._end()
                return None

    def close(self) -> None:
        """Closes the connection; from then on nothing is told."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
