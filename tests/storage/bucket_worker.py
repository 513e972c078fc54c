"""Processes that write to a project whose shards are in a bucket."""

from __future__ import annotations

import os

import mz_dagster
from mz_dagster.fail_point import VARIABLE


def insert(root: str, secret: str, killed_at: str) -> None:
    """Is the process: it inserts a row, and is killed at a fail point.

    Args:
        root: The project, with a table `t`.
        secret: What the variable `STORE_SECRET` is to hold.
        killed_at: The fail point.
    """
    os.environ |= {"STORE_SECRET": secret, VARIABLE: killed_at}
    with mz_dagster.connect(root) as connection:
        connection.execute("INSERT INTO t VALUES (5, 'z')")


def insert_many(root: str, secret: str, number: int, count: int) -> None:
    """Is one of several processes: it inserts `count` rows, one by one, that no other does.

    Args:
        root: The project, with a table `t`.
        secret: What the variable `STORE_SECRET` is to hold.
        number: The process's own.
        count: How many rows.
    """
    os.environ["STORE_SECRET"] = secret
    with mz_dagster.connect(root) as connection:
        for row in range(number * count, (number + 1) * count):
            connection.execute(f"INSERT INTO t VALUES ({row})")
