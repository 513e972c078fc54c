"""Processes for tests that kill some: forked by a server that has imported what these run."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

#: A process has one server, which imports what it is told when it starts, so it is told of everything.
_PRELOADED = (
    "mz_dagster.cli.output",
    "mz_dagster.orchestration.drive",
    "tests.storage.life",
    "tests.storage.kill_worker",
    "tests.storage.race_worker",
    "tests.storage.bucket_worker",
    "tests.adapter.test_kill",
    "pyspark.sql.connect.session",
)


def forks() -> ForkServerContext:
    """Returns what starts processes that have their imports, which take most of the time of a short life."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context
