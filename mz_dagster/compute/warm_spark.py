"""The Spark that an engine uses: opened when there is work for it, never before.

Idle ticks, frontiers and introspection need no JVM, so nothing opens a session until `open` is called. What is
opened stays with the process (`storage.spark` owns sessions); a Spark that has gone since is found out and
replaced at the next call.
"""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql import SparkSession

from mz_dagster.storage.spark import SparkConfig, open_session
from mz_dagster.storage.spark_shards import SparkShards


class WarmSpark:
    """Opens the configured Spark on demand, with the project's shards on it.

    Args:
        config: Which Spark.
        root: The storage root, as Spark sees it.
    """

    def __init__(self, config: SparkConfig, root: Path) -> None:
        self._config = config
        self._root = root
        self._lock = threading.Lock()
        self._opened: tuple[SparkSession, SparkShards] | None = None

    def open(self) -> tuple[SparkSession, SparkShards]:
        """Returns a session that answers, and the shards on it. Safe from any thread.

        Raises:
            OperationalError: Spark cannot be started or reached within its deadline.
        """
        with self._lock:
            session = open_session(self._config)
            if self._opened is None or self._opened[0] is not session:
                self._opened = (session, SparkShards(self._root, session))
            return self._opened
