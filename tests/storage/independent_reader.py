"""Reads a project without the engine: the database's own driver for the catalog, a Delta log and Parquet by hand.

So that a test need not believe the code that it tests. It takes no lease. Instead it looks at the catalog once more
when it has read: if a batch of its list is gone by then, so may rows of it have been, and it reads again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.catalog.by_driver import one_state

Row = tuple[Any, ...]

TRIES = 50


class Listed(NamedTuple):
    """Is what the catalog says of a live batch: how many rows it has, and its updates if they are in the catalog."""

    rows: int
    payload: bytes | None


class Damaged(AssertionError):
    """Says that the files do not hold what the catalog lists."""


@dataclass(frozen=True)
class Contents:
    """What one collection held in one transaction of the catalog.

    Attributes:
        since: Its since.
        upper: Its upper.
        updates: All of its updates: row, time, diff.
    """

    since: int
    upper: int
    updates: tuple[tuple[Row, int, int], ...]

    def at(self, time: int) -> Counter[Row]:
        """Returns the rows at a time."""
        rows: Counter[Row] = Counter()
        for row, updated, diff in self.updates:
            if updated <= time:
                rows[row] += diff
        return Counter({row: count for row, count in rows.items() if count})


class IndependentReader:
    """Reads all collections of the project whose catalog has a URL, and whose shards are in a folder."""

    def __init__(self, url: str, shards: Path) -> None:
        self._url, self._shards = url, shards

    def look(self) -> Mapping[str, Contents]:
        """Returns what every collection that is not dropped holds, all in one state of the catalog."""
        for _ in range(TRIES):
            collections, listed = self._listed()
            try:
                found = {
                    id: Contents(since, upper, self._updates(shard, columns, listed.get(id, {})))
                    for id, (since, upper, shard, columns) in collections.items()
                }
            except (OSError, Damaged):
                if self._all_there(listed):
                    raise
                continue
            if self._all_there(listed):
                return found
        raise AssertionError(f"in {TRIES} tries no list could be read before it was swept")

    def ids(self) -> dict[str, str]:
        """Returns the ids that names denote."""
        with one_state(self._url) as connection:
            return dict(connection.execute("SELECT name, object FROM name").fetchall())

    def _listed(self) -> tuple[dict[str, tuple[int, int, str, list[str]]], dict[str, dict[int, Listed]]]:
        """Returns since, upper, folder and columns of the collections, and what is listed of their live batches."""
        with one_state(self._url) as connection:
            rows = connection.execute(
                "SELECT c.id, c.since, c.upper, c.shard, o.column_types FROM collection c JOIN object o ON o.id = c.id"
            ).fetchall()
            batches = connection.execute(
                "SELECT b.collection, b.id, b.rows, i.payload FROM batch b LEFT JOIN inlined i ON i.batch = b.id"
                " WHERE b.state = 'live'"
            ).fetchall()
        listed: dict[str, dict[int, Listed]] = {}
        for collection, id, count, payload in batches:
            listed.setdefault(collection, {})[id] = Listed(count, payload)
        collections = {
            id: (json.loads(since)[0], json.loads(upper)[0], shard, [column[0] for column in json.loads(columns)])
            for id, since, upper, shard, columns in rows
            if "[]" not in (since, upper)
        }
        return collections, listed

    def _all_there(self, listed: Mapping[str, Mapping[int, Listed]]) -> bool:
        with one_state(self._url) as connection:
            query = "SELECT id FROM batch WHERE state IN ('live', 'replaced')"
            there = {id for (id,) in connection.execute(query)}
        return all(id in there for batches in listed.values() for id in batches)

    def _updates(
        self, shard: str, columns: list[str], batches: Mapping[int, Listed]
    ) -> tuple[tuple[Row, int, int], ...]:
        is_stored = any(one.payload is None for one in batches.values())
        files = committed_files(self._shards / shard) if is_stored else {}
        updates: list[tuple[Row, int, int]] = []
        for batch, (expected, payload) in batches.items():
            count = 0
            if payload is None:
                tables = [pq.ParquetFile(path).read() for path in files.get(batch, ())]
            else:
                tables = [pa.ipc.open_stream(payload).read_all()]
            for table in tables:
                for one in table.to_pylist():
                    # A numeric of 18 digits at most is in a column of its own.
                    short = {name: one.get(f"mz_short_{name}") for name in columns}
                    row = tuple(one[name] if short[name] is None else short[name] for name in columns)
                    updates.append((row, one["mz_timestamp"], one["mz_diff"]))
                count += table.num_rows
            if count != expected:
                raise Damaged(f"batch {batch} in {shard} holds {count} rows and not {expected}")
        return tuple(updates)


def committed_files(table: Path) -> dict[int, list[Path]]:
    """Returns the data files in the newest state of a Delta table, by their batch."""
    log = table / "_delta_log"
    versions = sorted(path for path in log.iterdir() if re.fullmatch(r"\d{20}\.json", path.name))
    checkpoints = sorted(path for path in log.iterdir() if re.fullmatch(r"\d{20}\.checkpoint\.parquet", path.name))
    files: dict[str, int] = {}
    start = -1
    if checkpoints:
        start = int(checkpoints[-1].name[:20])
        for added in pq.ParquetFile(checkpoints[-1]).read(["add"]).column("add").to_pylist():
            if added is not None and added["path"] is not None:
                files[added["path"]] = int(dict(added["partitionValues"])["mz_batch"])
    later = [path for path in versions if int(path.name[:20]) > start]
    if [int(path.name[:20]) for path in later] != list(range(start + 1, start + 1 + len(later))):
        raise Damaged(f"the log of {table.name} has gaps")
    for path in later:
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[action["add"]["path"]] = int(action["add"]["partitionValues"]["mz_batch"])
            elif "remove" in action:
                files.pop(action["remove"]["path"], None)
    found: dict[int, list[Path]] = {}
    for file, batch in files.items():
        found.setdefault(batch, []).append(table / unquote(file))
    return found
