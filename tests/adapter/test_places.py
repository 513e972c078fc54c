"""Where a project lies: under any name, found from anywhere, and never another's files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.adapter import Connection, Engine, Project, connect
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.catalog import BadCatalogUrl, Catalog, CatalogUrl, OtherCatalog
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.storage.ownership import PlaceUnusable, ShardsElsewhere, owner_of
from mz_dagster.storage.shard_place import MARK, ShardFolder
from tests.budgets import SetBudget
from tests.postgres_server import Postgres

NAMES = (
    "with space",
    "what?x",
    "what?y",
    "a b",
    "ha#sh",
    "100%",
    "pct%zz",
    "%",
    "ünïcode",
    "emoji🎉",
    "q'uo\"te",
    "star*",
    "b{r}ace",
    "dollar$x",
    "${HOME}",
    "semi;colon",
    "c:olon",
    "a=b&c,d+e",
    "<angle>",
    "back`tick`",
    " lead and trail ",
    "sqlite:",
)
"""What a folder may be called, though it means something in a URL, a glob, a shell or a settings file."""
REFUSED = ("a%20b", "br[ack]et", "pi|pe", "ca^ret", "back\\slash", "new\nline", "a: what?")
"""What it may not be called, and is told so."""


def filled(folder: Path) -> Connection:
    connection = connect(folder)
    connection.execute("CREATE TABLE t (a text)")
    connection.execute("INSERT INTO t VALUES (?)", (str(folder),))
    return connection


def test_every_folder_is_a_project_of_its_own_whatever_its_name(tmp_path: Path) -> None:
    for name in NAMES:
        filled(tmp_path / name).close()
    assert sorted(os.listdir(tmp_path)) == sorted(NAMES)
    for name in NAMES:
        folder = tmp_path / name
        with connect(folder) as connection:
            assert connection.execute("SELECT a FROM t").fetchall() == [(str(folder),)]
        assert (folder / ".mz" / "catalog.sqlite").is_file()
        assert [one.severity for one in examine(folder, deep=True).findings] == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_that_cannot_be_written_in_is_refused_before_anything_is_made(name: str, tmp_path: Path) -> None:
    neighbour = filled(tmp_path / "a b")
    neighbour.close()
    for _ in range(2):
        with pytest.raises(PlaceUnusable) as refused:
            connect(tmp_path / name)
        assert refused.value.hint
    assert os.listdir(tmp_path) == ["a b"]
    with pytest.raises(PlaceUnusable):
        backup(Project.load(tmp_path / "a b"), tmp_path / name)
    backup(Project.load(tmp_path / "a b"), tmp_path / "backup")
    with pytest.raises(PlaceUnusable):
        restore(tmp_path / "backup", tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a b", "backup"]


@given(st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1).filter(str.strip))
def test_a_url_of_a_file_names_that_file(name: str) -> None:
    path = Path("/", name)
    url = CatalogUrl.of_file(path)
    assert url.file == path
    assert CatalogUrl.parse(url.url.render_as_string(hide_password=False)).file == path


def test_a_relative_catalog_is_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "p" / "mz.toml").write_text('[catalog]\nurl = "sqlite:///catalog.sqlite"\n')
    monkeypatch.chdir(tmp_path / "p")
    filled(tmp_path / "p").close()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with connect(tmp_path / "p") as connection:
        assert len(connection.execute("SELECT a FROM t").fetchall()) == 1
    backup(Project.load(tmp_path / "p"), tmp_path / "backup")
    assert not [one for one in (tmp_path / "backup" / "project").iterdir() if one.name != "mz.toml"]
    made = restore(tmp_path / "backup", tmp_path / "again", catalog_url="sqlite:///own.sqlite")
    assert (made.root / "own.sqlite").exists()
    with connect(made.root) as connection:
        assert len(connection.execute("SELECT a FROM t").fetchall()) == 1
    assert os.listdir(tmp_path / "elsewhere") == []


def catalog_at(root: Path, url: str) -> None:
    (root / "mz.toml").write_text(f'[catalog]\nurl = "{url}"\n')


def test_a_second_catalog_is_refused_and_not_made(tmp_path: Path) -> None:
    filled(tmp_path).close()
    catalog_at(tmp_path, "sqlite:///second.sqlite")
    with pytest.raises(OtherCatalog) as refused:
        connect(tmp_path)
    assert "second.sqlite" in refused.value.message
    assert not (tmp_path / "second.sqlite").exists()
    Catalog.open(f"sqlite:///{tmp_path}/second.sqlite").close()
    with pytest.raises(OtherCatalog):
        connect(tmp_path)
    found = examine(tmp_path, repair=True)
    assert [one.check for one in found.findings] == ["shards-of-another"]
    (tmp_path / "mz.toml").unlink()
    with connect(tmp_path) as connection:
        assert len(connection.execute("SELECT a FROM t").fetchall()) == 1


def test_on_postgresql_too_and_a_catalog_refuses_a_folder_without_its_shards(
    postgres_server: Postgres, tmp_path: Path, set_budget: SetBudget
) -> None:
    set_budget(inlined_rows=0)  # what is inlined is with the catalog, wherever that is
    urls = [
        f"postgresql+psycopg://{postgres_server.user}@/{postgres_server.new_database().database}"
        f"?host={postgres_server.socket_dir}"
        for _ in range(2)
    ]
    (tmp_path / "p").mkdir()
    (tmp_path / "q").mkdir()
    catalog_at(tmp_path / "p", urls[0])
    filled(tmp_path / "p").close()
    catalog_at(tmp_path / "p", urls[1])
    with pytest.raises(OtherCatalog):
        connect(tmp_path / "p")
    assert Catalog.open_made(urls[1]) is None
    catalog_at(tmp_path / "q", urls[0])
    with pytest.raises(ShardsElsewhere):
        connect(tmp_path / "q")


def test_a_lost_catalog_is_not_made_anew(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path in (tmp_path / ".mz").glob("catalog.sqlite*"):
        path.unlink()
    with pytest.raises(OtherCatalog, match="not the one"):
        connect(tmp_path)
    assert [one.check for one in examine(tmp_path).findings] == ["catalog-lost"]
    assert not (tmp_path / ".mz" / "catalog.sqlite").exists()


def test_a_project_from_before_gets_its_mark_when_it_is_opened(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / ".mz" / "shards" / MARK).unlink()
    with Engine(Project.load(tmp_path)) as engine:
        assert owner_of(ShardFolder(tmp_path / ".mz")) == engine.catalog.project_id()
    assert examine(tmp_path, deep=True).findings == ()


def test_what_is_restored_is_another_project(tmp_path: Path) -> None:
    filled(tmp_path / "p").close()
    backup(Project.load(tmp_path / "p"), tmp_path / "backup")
    made = restore(tmp_path / "backup", tmp_path / "q")
    one, other = owner_of(ShardFolder(tmp_path / "p" / ".mz")), owner_of(ShardFolder(made.root / ".mz"))
    assert None not in (one, other)
    assert one != other
    shutil.copy(tmp_path / "p" / ".mz" / "catalog.sqlite", made.root / ".mz" / "catalog.sqlite")
    with pytest.raises(OtherCatalog):
        connect(made.root)


def modes(root: Path) -> set[tuple[bool, int]]:
    found = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in root.rglob("*")}
    return found | {(True, stat.S_IMODE(root.stat().st_mode))}


PRIVATE = {(True, 0o700), (False, 0o600)}


def test_state_and_backups_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        filled(tmp_path / "p").close()
        backup(Project.load(tmp_path / "p"), tmp_path / "backup")
        restore(tmp_path / "backup", tmp_path / "again")
    finally:
        os.umask(before)
    for folder in (tmp_path / "p" / ".mz", tmp_path / "backup", tmp_path / "again" / ".mz"):
        assert modes(folder) <= PRIVATE, folder


def test_what_was_open_to_others_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path in (tmp_path / ".mz", tmp_path / ".mz" / "shards", tmp_path / ".mz" / "catalog.sqlite"):
        path.chmod(0o755)
    Engine(Project.load(tmp_path)).close()
    for path in (tmp_path / ".mz", tmp_path / ".mz" / "shards", tmp_path / ".mz" / "catalog.sqlite"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:hidden@host:port/db", "port"),
        ("postgresql://me:hidden@host:0/db", "port 0"),
        ("postgresql://me:hidden@host:99999/db", "port 99999"),
        ("mysql://me:hidden@host/db", "mysql"),
        ("hidden", "form of a URL"),
        ("sqlite://", "memory"),
        ("sqlite:///:memory:", "memory"),
        ("sqlite:///file:x?mode=memory&uri=true", "memory"),
    ],
)
def test_a_wrong_url_is_one_line_that_says_what_is_wrong(url: str, said: str, tmp_path: Path) -> None:
    catalog_at(tmp_path, url)
    with pytest.raises(BadSettings) as refused:
        connect(tmp_path)
    assert said in refused.value.message
    assert "catalog.url" in refused.value.message
    assert "hidden" not in str(refused.value)
    with pytest.raises(BadCatalogUrl):
        Catalog.open(url)


def test_the_wal_is_private_too(tmp_path: Path) -> None:
    with Engine(Project.load(tmp_path)), closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite")) as raw:
        raw.execute("SELECT * FROM project")
        assert modes(tmp_path / ".mz") <= PRIVATE
