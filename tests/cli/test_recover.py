"""A project whose catalog is lost is what a backup says again; nothing that was there is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project
from mz_dagster.catalog import Catalog
from mz_dagster.cli import main
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import examine
from tests.cli.damage import breaks
from tests.cli.small_project import contents, land, make_project, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project").root


def lose_catalog(root: Path) -> None:
    for path in (root / ".mz").glob("catalog.sqlite*"):
        path.unlink()


def test_a_lost_catalog_comes_from_a_backup_and_new_files_are_read_again(root: Path, tmp_path: Path) -> None:
    project = Project.load(root)
    backup(project, tmp_path / "backup")
    before = contents(project)
    with Engine(project) as engine:
        write(engine, 7)
        land(engine, 7)
    newer = {path.name: path.read_bytes() for path in (root / ".mz" / "shards").rglob("*.parquet")}
    lose_catalog(root)
    (lost,) = breaks(examine(root))
    assert "[catalog-lost]" in lost
    assert "mz-dagster recover" in lost
    Catalog.open(project.catalog_url).close()  # as one leaves it that was killed before it filled it
    assert main(["--project", str(root), "recover", str(tmp_path / "backup")]) == 0
    assert contents(project) == before
    assert examine(root, deep=True).healthy
    kept = {path.name: path.read_bytes() for path in (root / ".mz" / "quarantine").rglob("*.parquet")}
    assert kept == newer
    assert not list((root / ".mz").glob(".*restoring*"))
    with Engine(project) as engine:
        write(engine, 8)
        assert engine.poll("default").files == 1  # the one that came after the backup
        assert engine.poll("default").files == 0


def test_a_catalog_that_is_there_is_never_replaced(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project.load(root)
    backup(project, tmp_path / "backup")
    before = contents(project)
    assert main(["--project", str(root), "recover", str(tmp_path / "backup")]) == 1
    assert "the project has a catalog" in capsys.readouterr().err
    assert contents(project) == before


def test_nothing_is_touched_if_the_backup_is_damaged(root: Path, tmp_path: Path) -> None:
    project = Project.load(root)
    backup(project, tmp_path / "backup")
    next((tmp_path / "backup").rglob("*.parquet")).unlink()
    lose_catalog(root)
    before = sorted((root / ".mz").rglob("*"))
    assert main(["--project", str(root), "recover", str(tmp_path / "backup")]) == 1
    assert sorted((root / ".mz").rglob("*")) == before
