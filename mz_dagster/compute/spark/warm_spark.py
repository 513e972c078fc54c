"""The Spark that an engine uses: opened when there is work for it, never before.

Idle ticks, frontiers and introspection need no JVM, so nothing opens a session until `open` is called. What is
opened stays with the process (`storage.spark` owns sessions); a Spark that has gone since is found out and
replaced at the next call. A session that somebody else opened may be lent instead; it is theirs to close.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.budget import EngineSetting, engine_setting
from mz_dagster.errors import NotSupportedError
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.spark import SparkConfig, borrowed_session, open_session, server_status
from mz_dagster.storage.spark_shards import SparkShards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LeftToSpark(NotSupportedError):
    """What this process does not compute, where the setting `engine` says that Spark is not to be started."""

    sqlstate = "0A000"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"not computed without Spark: {why}",
            detail='The setting "engine" is "local", under which Spark is never started.',
            hint='Let it be "auto" or "spark": in mz.toml, or in this session by SET engine.',
        )


def refuse_if_local(why: str) -> None:
    """Returns if Spark may be used.

    Args:
        why: What it is needed for.

    Raises:
        LeftToSpark: The setting `engine` is `local`.
    """
    if engine_setting() is EngineSetting.LOCAL:
        raise LeftToSpark(why)


class WarmSpark:
    """Opens the configured Spark on demand, with the project's shards on it.

    Args:
        config: Which Spark.
        root: The storage root, as Spark sees it.
        local: The project's shards in this process.
        lend: Returns somebody else's session, to be used instead of one that `config` says how to open; asked only when
            there is work.
    """

    def __init__(
        self, config: SparkConfig, root: Path, local: LocalShards, lend: Callable[[], SparkSession] | None = None
    ) -> None:
        self._config = config
        self._root = root
        self._local = local
        self._lend = lend
        self._lock = threading.Lock()
        self._opened: dict[bool, tuple[SparkSession, SparkShards]] = {}

    def open(self, *, smaller_pieces: bool = False) -> tuple[SparkSession, SparkShards]:
        """Returns a session that answers, and the shards on it. Safe from any thread.

        Args:
            smaller_pieces: Whether it is for what filled Spark's heap: see `SparkConfig`.

        Raises:
            OperationalError: Spark cannot be started or reached within its deadline.
            ProgrammingError: The session that was lent cannot write Delta tables.
            LeftToSpark: The setting `engine` is `local`.
        """
        refuse_if_local("it is read or written by Spark")
        with self._lock:
            config = replace(self._config, smaller_pieces=smaller_pieces)
            session = open_session(config) if self._lend is None else borrowed_session(self._lend(), config)
            opened = self._opened.get(smaller_pieces)
            if opened is None or opened[0] is not session:
                opened = self._opened[smaller_pieces] = (session, SparkShards(self._root, session, self._local))
            return opened

    def ui_url(self) -> str | None:
        """Returns the address of Spark's UI, if the embedded server runs and has one; starts nothing."""
        if self._lend is not None or not self._config.embedded:
            return None
        server = server_status(self._config.state_dir)
        return None if server is None else server.ui_url or None
