"""Dagster's instances for tests, each a copy of one: to make the tables of one takes ten times as long."""

import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import dagster as dg


@contextmanager
def own_instance(**overrides: Any) -> Iterator[dg.DagsterInstance]:
    """Opens an instance of its own, empty; `overrides` are settings of its `dagster.yaml`."""
    # What a worker says after the end of its run may come while the folder goes.
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        shutil.copytree(_empty(), home, dirs_exist_ok=True)
        with dg.instance_for_test(overrides=overrides, temp_dir=home) as opened:
            yield opened


@cache
def _empty() -> str:
    """Returns the folder of an instance in which nothing has happened."""
    home = mkdtemp(prefix="mz-dagster-instance-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    with dg.instance_for_test(temp_dir=home):
        pass
    (Path(home) / "dagster.yaml").unlink()
    return home
