"""Damage to one collection of a project, done behind the engine's back, and what the doctor calls broken."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from mz_dagster.adapter import Engine, Project
from mz_dagster.catalog import ObjectRow
from mz_dagster.operations.doctor import Diagnosis, Severity


def objects(root: Path) -> list[ObjectRow]:
    with Engine(Project.load(root)) as engine:
        return list(engine.catalog.objects())


def object_named(root: Path, name: str) -> ObjectRow:
    return next(row for row in objects(root) if name in (row.name, row.id))


def arrangement_of(root: Path, name: str) -> ObjectRow:
    owner = object_named(root, name).id
    return next(row for row in objects(root) if row.owner == owner)


def flip(root: Path, row: ObjectRow) -> None:
    """Flips a bit in the middle of each data file of a collection."""
    paths = sorted((root / ".mz" / "shards" / row.id).glob("mz_batch=*/*/*.parquet"))
    assert paths
    for path in paths:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 16
        path.write_bytes(content)


def take_away(root: Path, row: ObjectRow) -> None:
    for path in (root / ".mz" / "shards" / row.id).glob("mz_batch=*/*/*.parquet"):
        path.unlink()


def lose_log(root: Path, row: ObjectRow) -> None:
    for path in (root / ".mz" / "shards" / row.id / "_delta_log").iterdir():
        path.unlink()


def unlist(root: Path, row: ObjectRow) -> None:
    """Deletes a collection's live batches from the catalog: nobody can tell what was on the list."""
    with closing(sqlite3.connect(root / ".mz" / "catalog.sqlite")) as connection, connection:
        assert connection.execute("DELETE FROM batch WHERE collection = ?", (row.id,)).rowcount


def forget_frontiers(root: Path, row: ObjectRow) -> None:
    """Deletes a collection's own row: nobody can tell how far it is known, nor what is on its list."""
    with closing(sqlite3.connect(root / ".mz" / "catalog.sqlite")) as connection, connection:
        assert connection.execute("DELETE FROM collection WHERE id = ?", (row.id,)).rowcount


def breaks(found: Diagnosis) -> list[str]:
    return [str(one) for one in found.findings if one.severity is Severity.BREAK]
