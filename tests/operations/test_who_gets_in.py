"""What others may put in the way: forged backups, links out of landing folders, folders outside of the project."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session, connect
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.manifest import MANIFEST, BackupUnusable, read_manifest
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import FileSource, SourceUnreadable
from tests.cli.small_project import make_project


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    backup(make_project(folder / "p"), folder / "backup")
    return folder / "backup"


def forged(saved: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Returns a backup whose manifest was changed, and has the checksum that befits it."""
    shutil.copytree(saved, folder)
    body = json.loads((folder / MANIFEST).read_text())
    del body["sha256"]
    change(body)
    checksum = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps({"sha256": checksum, **body}))
    return folder


def naming(path: str) -> Callable[[dict[str, Any]], None]:
    """Returns what adds a file to a manifest, with the content of the file of that path as seen from the backup."""
    content = b"forged"
    entry = {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return lambda body: body["files"].append(entry)


ABROAD = [
    "project/../../victim",
    "state/../../victim",
    "../victim",
    "/victim",
    "project//victim",
    "project/./victim",
    "project/.mz/catalog.sqlite",
    "project/.mz/spark/server.json",
    "state/shards/.project",
    "state/",
    "project",
    "elsewhere/victim",
    "manifest.json",
    "",
    "project/a\0b",
]


@pytest.mark.parametrize("path", ABROAD)
def test_a_manifest_that_names_what_no_backup_holds_is_refused(path: str, saved: Path, tmp_path: Path) -> None:
    backup_ = forged(saved, tmp_path / "backup", naming(path))
    content = Path(os.path.normpath(f"{backup_}/{path}"))
    if "\0" not in path and content.is_relative_to(tmp_path) and not content.exists():
        content.parent.mkdir(exist_ok=True, parents=True)
        content.write_bytes(b"forged")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BackupUnusable):
        restore(backup_, tmp_path / "new")
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_that_lies_there_is_overwritten(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    backup_ = forged(saved, tmp_path / "deep" / "backup", naming("project/../../victim"))
    (backup_.parent / "victim").write_bytes(b"forged")
    with pytest.raises(BackupUnusable):
        restore(backup_, tmp_path / "new")
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("files"),
        lambda body: body.update(files="x"),
        lambda body: body["files"].append({"path": 1}),
        lambda body: body["files"].append(dict(body["files"][0])),
        lambda body: body.update(more=1),
    ],
)
def test_a_manifest_of_another_form_is_refused(
    change: Callable[[dict[str, Any]], None], saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackupUnusable):
        restore(forged(saved, tmp_path / "backup", change), tmp_path / "new")
    assert os.listdir(tmp_path) == ["backup"]


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe", "device", "folder"])
def test_only_files_of_a_backups_own_are_read(kind: str, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "backup")
    path = folder / "project" / "assets" / "all.sql"
    if kind == "link to a folder":
        shutil.move(path.parent, tmp_path / "assets")
        path.parent.symlink_to(tmp_path / "assets")
    else:
        shutil.move(path, tmp_path / "all.sql")
    if kind == "link to a file":
        path.symlink_to(tmp_path / "all.sql")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(BackupUnusable):
        restore(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_pipe_in_place_of_the_manifest_is_no_backup(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MANIFEST)
    with pytest.raises(BackupUnusable):
        read_manifest(tmp_path)


def test_a_catalog_that_names_folders_outside_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "backup")
    with closing(sqlite3.connect(folder / "catalog.sqlite")) as connection, connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("UPDATE collection SET shard = 'shards/../../../victim' WHERE id = 'u2'")
    content = (folder / "catalog.sqlite").read_bytes()

    def described(body: dict[str, Any]) -> None:
        for one in body["files"]:
            if one["path"] == "catalog.sqlite":
                one.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())

    with pytest.raises(BackupUnusable, match="shard"):
        restore(forged(folder, tmp_path / "forged", described), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_live_catalog_is_not_copied_as_a_file_whatever_its_url_is_called(tmp_path: Path) -> None:
    for number, url in enumerate(
        ("sqlite:///live.sqlite", "sqlite+pysqlite:///./live.sqlite", "sqlite:///sub/../live.sqlite")
    ):
        root = tmp_path / f"p{number}"
        make_project(root, f'[catalog]\nurl = "{url}"\n')
        backup(Project.load(root), tmp_path / f"backup{number}")
        assert not list((tmp_path / f"backup{number}").rglob("live.sqlite*")), url


# ---- landing folders


SOURCE = "CREATE SOURCE s (a integer) FROM FILES (FOLDER '{}') FORMAT JSON"


def test_a_link_out_of_a_landing_folder_is_refused_and_one_within_is_read(tmp_path: Path) -> None:
    (tmp_path / "p" / "in").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text('{"a": 7}\n')
    with connect(tmp_path / "p") as connection:
        connection.execute(SOURCE.format("in"))
        source = connection.engine.definitions.source(connection.engine.collection_of("s"))
        assert isinstance(source, FileSource)
        (tmp_path / "p" / "in" / "1.jsonl").write_text('{"a": 1}\n')
        (tmp_path / "p" / "in" / "2.jsonl").symlink_to("1.jsonl")
        assert [one.path for one in source.poll({})] == ["1.jsonl", "2.jsonl"]
        (tmp_path / "p" / "in" / "3.jsonl").symlink_to(tmp_path / "secret.jsonl")
        with pytest.raises(SourceUnreadable, match="link out of its folder"):
            source.poll({})


@pytest.mark.parametrize("pattern", ["../*.jsonl", "/etc/*", "a/../../*.jsonl", ".."])
def test_a_pattern_cannot_leave_its_folder(pattern: str, tmp_path: Path) -> None:
    with connect(tmp_path) as connection, pytest.raises(InvalidTableDefinition, match="cannot leave"):
        connection.execute(SOURCE.format(f"in', PATTERN '{pattern}"))


def test_a_folder_outside_of_the_project_is_named_in_its_settings_first(tmp_path: Path) -> None:
    root, outside = tmp_path / "p", tmp_path / "out side"
    for folder in (root, outside / "deeper"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(outside)
    for folder in (outside, outside / "deeper", Path("..", "out side"), Path("link")):
        with connect(root) as connection, pytest.raises(FolderNotAllowed) as refused:
            connection.execute(SOURCE.format(folder))
        assert "mz.toml" in (refused.value.hint or "")
        with connect(root) as connection:
            assert connection.engine.catalog.resolve_name("s") is None
    for allowed in (f'["{outside}"]', '["../out side"]'):
        (root / "mz.toml").write_text(f"[sources]\nfolders = {allowed}\n")
        with connect(root) as connection:
            for number, folder in enumerate((outside, outside / "deeper", Path("link"))):
                name = f"s{number}"
                connection.execute(SOURCE.format(folder).replace("SOURCE s", f"SOURCE {name}"))
                connection.execute(f"DROP SOURCE {name}")
    with connect(root) as connection:
        connection.execute(SOURCE.format(outside))
    (root / "mz.toml").unlink()
    with Engine(Project.load(root)) as engine:  # as a project from before
        assert "outside of the project" in str(engine.poll("default")) + str(
            Session(engine).execute("SHOW SOURCES").rows
        )


def test_the_engines_own_folder_is_no_source(tmp_path: Path) -> None:
    with connect(tmp_path) as connection, pytest.raises(FolderNotAllowed):
        connection.execute(SOURCE.format(".mz/spark"))


def test_folders_are_a_list_of_texts(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text('[sources]\nfolders = "x"\n')
    with pytest.raises(BadSettings, match="list of texts"):
        Project.load(tmp_path)
