"""Backup and restore: the same contents, whatever ran meanwhile, whichever database, and whenever it was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import Catalog, CatalogTaken, CatalogUrl, UnknownCapability
from mz_dagster.cli import main
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import Antichain
from mz_dagster.operations.backup import FolderInTheWay, backup, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.operations.manifest import MANIFEST, BackupUnusable, read_manifest
from mz_dagster.storage.ownership import ShardsElsewhere
from mz_dagster.storage.spark import SparkConfig
from tests.cli.raw_catalog import url_of
from tests.cli.small_project import Contents, contents, follow, land, make_project, write
from tests.command_line import python
from tests.postgres_server import Postgres
from tests.storage.power import PowerCut

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Contents]:
    """A project that nobody changes, with batches in files and inlined ones, and what is in it."""
    root = tmp_path_factory.mktemp("healthy") / "project"
    project = make_project(root, '[retention]\nkeep = "all"\n', inline_rows=2)
    with Engine(project) as engine:
        Session(engine).execute("INSERT INTO t VALUES (3, 'y'), (4, 'y'), (5, 'y')")
        follow(engine, "m", "t")
        for name in ("t", "m"):
            stats = [one.stats for one in engine.catalog.batches(engine.collection_of(name))]
            assert {one.inlined is None for one in stats} == {True, False}
    return project, contents(project)


@pytest.fixture(scope="module")
def saved(healthy: tuple[Project, Contents], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its backup, which nobody changes either."""
    target = tmp_path_factory.mktemp("saved") / "backup"
    backup(healthy[0], target)
    return target


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where a restored project has its catalog; None for where it has it by default."""
    if request.param == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres_server")
    return url_of(server.new_database())


@pytest.fixture
def project(url: str | None, saved: Path, tmp_path: Path) -> Project:
    """The same on either catalog, for one test to work on."""
    return Project.load(restore(saved, tmp_path / "project", catalog_url=url).root)


def test_a_restored_project_has_the_same_contents_and_goes_on(
    healthy: tuple[Project, Contents], saved: Path, tmp_path: Path
) -> None:
    made = restore(saved, tmp_path / "new")
    project = Project.load(made.root)
    assert contents(project) == healthy[1]
    assert examine(made.root, deep=True).findings == ()
    with Engine(project) as engine:
        write(engine, 7)  # reserves a batch id that was never used
        land(engine, 7)
        list(engine.compact())
    now = contents(project)
    last = max(now["m"])
    assert now["m"][last][7, "x"] == now["t"][max(now["t"])][7, "x"] == 1
    assert examine(made.root, deep=True).findings == ()


def test_what_belongs_to_processes_is_not_in_a_backup(healthy: tuple[Project, Contents], tmp_path: Path) -> None:
    root = shutil.copytree(healthy[0].root, tmp_path / "project")
    project = Project.load(root)
    with Engine(project) as engine:
        catalog, id = engine.catalog, engine.collection_of("t")
        row = catalog.collection(id)
        session = catalog.acquire_read(id, holder="a session", ttl_ms=60_000)
        durable = catalog.acquire_read(id, holder="a subscriber", ttl_ms=None)
        catalog.lease([id], "a reader", 60_000)
        catalog.lead("default", "a leader", 60_000)
        writer = catalog.register_writer("a writer", 60_000)
        later = Antichain.of(row.upper.lattice, row.upper.only + 1)
        catalog.reserve_batch(id, writer, row.upper, later)
    backup(project, tmp_path / "backup")
    made = restore(tmp_path / "backup", tmp_path / "new")
    with Engine(Project.load(made.root)) as engine:
        records = engine.catalog.records()
        assert [len(records[name]) for name in ("writer", "lease", "leased_batch")] == [0, 0, 0]
        assert {one["state"] for one in records["batch"]} == {"live"}
        assert [one["holder"] for one in records["timeline"]] == [None]
        assert [one["holder"] for one in records["capability"]] == ["a subscriber"]
        assert engine.catalog.validate(durable.token).frontier == durable.frontier
        with pytest.raises(UnknownCapability):
            engine.catalog.validate(session.token)
    # Of the old process nothing is lost either: the backup gave its own lease back.
    with Engine(project) as engine:
        assert [one["holder"] for one in engine.catalog.records()["lease"]] == ["a reader"]
        assert engine.catalog.validate(session.token)


@pytest.mark.parametrize("backups", [2, pytest.param(12, marks=pytest.mark.deep)])
def test_a_backup_while_everything_runs_is_of_one_moment(project: Project, backups: int, tmp_path: Path) -> None:
    over, failures, written = threading.Event(), list[BaseException](), list[int]()

    def work() -> None:
        try:
            with Engine(project) as engine:
                for number in range(10, 10_000):
                    write(engine, number)
                    written.append(number)
                    if number % 3 == 0:
                        list(engine.compact())
                    if over.is_set():
                        return
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        moments = []
        for number in range(backups):
            before = len(written)
            backup(project, tmp_path / f"backup{number}")
            moments.append((before, len(written) + 1))
    finally:
        over.set()
        worker.join(120)
    assert not failures
    now = contents(project)
    for number, (before, after) in enumerate(moments):
        made = restore(tmp_path / f"backup{number}", tmp_path / f"new{number}")
        assert examine(made.root, deep=True).findings == ()
        then = contents(Project.load(made.root))
        # At each time it has what the original has then, and all that was acknowledged before the backup began.
        for name in ("t", "m"):
            for time, rows in then[name].items():
                assert rows == at(now[name], time), (name, time)
        seen = {a for a, _ in then["t"][max(then["t"])] if a >= 10}
        assert seen == set(range(10, 10 + len(seen)))
        assert before <= len(seen) <= after


def at(history: dict[int, Counter[tuple[Any, ...]]], time: int) -> Counter[tuple[Any, ...]]:
    """Returns what a history says of a time: what it was at the last time before at which it changed."""
    return history[max(one for one in history if one <= time)]


def test_from_sqlite_to_postgresql_and_back(
    healthy: tuple[Project, Contents], saved: Path, postgres: Postgres, tmp_path: Path
) -> None:
    postgres.run("CREATE DATABASE moved")
    url = f"postgresql+psycopg://{postgres.user}:not-for-others@/moved?host={postgres.socket_dir}"
    made = restore(saved, tmp_path / "on-postgres", catalog_url=url)
    project = Project.load(made.root)
    assert project.catalog_url == CatalogUrl.parse(url)
    assert not (made.root / ".mz" / "catalog.sqlite").exists()
    assert contents(project) == healthy[1]
    with Engine(project) as engine:
        write(engine, 7)
    assert examine(made.root, deep=True).findings == ()
    expected = contents(project)
    manifest = backup(project, tmp_path / "backup")
    assert manifest.left_out == ("catalog.url",)
    back = restore(tmp_path / "backup", tmp_path / "back")
    assert Project.load(back.root).catalog_url.file == back.root / ".mz" / "catalog.sqlite"
    assert contents(Project.load(back.root)) == expected
    assert examine(back.root, deep=True).findings == ()
    with pytest.raises(CatalogTaken):
        restore(saved, tmp_path / "second", catalog_url=url)
    assert not (tmp_path / "second").exists()


def test_no_secret_is_in_a_backup(healthy: tuple[Project, Contents], tmp_path: Path) -> None:
    root = shutil.copytree(healthy[0].root, tmp_path / "project")
    settings = root / "mz.toml"
    url = f"sqlite:///{root}/.mz/catalog.sqlite"
    settings.write_text(
        f"""# once: url = "postgresql://me:hidden1@host/db"
[catalog]
url = "{url}" # a comment
[spark]
remote = "sc://host:15002/;use_ssl=true;token=hidden2"
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "hidden3"
"spark.executor.memory" = "4g"
"""
    )
    (root / ".env").write_text("PASSWORD=hidden4")
    (root / ".mz" / "spark").mkdir()
    (root / ".mz" / "spark" / "server.json").write_text('{"token": "hidden5"}')
    manifest = backup(Project.load(root), tmp_path / "backup")
    assert len(manifest.left_out) == 3
    for path in (tmp_path / "backup").rglob("*"):
        assert not path.is_file() or b"hidden" not in path.read_bytes(), path
    made = restore(tmp_path / "backup", tmp_path / "new")
    project = Project.load(made.root)
    assert project.spark.remote == "sc://host:15002/;use_ssl=true"
    assert project.spark.conf == {"spark.executor.memory": "4g"}
    assert contents(project) == healthy[1]


def damaged(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "damaged")


@pytest.mark.parametrize("kind", ["catalog", "parquet", "log", "project", "manifest", "no manifest", "missing"])
def test_a_damaged_backup_is_refused_before_anything_is_made(kind: str, saved: Path, tmp_path: Path) -> None:
    folder = damaged(saved, tmp_path)
    patterns = {
        "catalog": "catalog.sqlite",
        "parquet": "state/**/*.parquet",
        "log": "state/**/*.json",
        "project": "project/mz.toml",
        "manifest": MANIFEST,
    }
    if kind == "no manifest":
        (folder / MANIFEST).unlink()
    elif kind == "missing":
        next(folder.glob("state/**/*.parquet")).unlink()
    else:
        path = next(folder.glob(patterns[kind]))
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(BackupUnusable) as refused:
        restore(folder, tmp_path / "new")
    assert refused.value.hint
    assert sorted(one.name for one in tmp_path.iterdir()) == ["damaged"]


def test_folders_in_the_way_are_refused(healthy: tuple[Project, Contents], saved: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(FolderInTheWay):
        backup(healthy[0], tmp_path / "full")
    with pytest.raises(FolderInTheWay):
        restore(saved, tmp_path / "full")
    with pytest.raises(FolderInTheWay):
        backup(healthy[0], healthy[0].root / "backup")
    assert not (healthy[0].root / "backup").exists()
    (tmp_path / "empty").mkdir()
    assert restore(saved, tmp_path / "empty").root == tmp_path / "empty"


#: At which of the files that it opens, folders that it makes or renames a process is killed.
MOMENTS = (*range(1, 95, 6), 20, 95)
LAST = 1_000_000


def moments(often: str) -> list[ParameterSet]:
    """Returns catalogs and moments: in every run one, on the catalog that is named."""
    return [
        pytest.param(catalog, moment, marks=() if (catalog, moment) == (often, 95) else pytest.mark.deep)
        for catalog in ("sqlite", "postgresql")
        for moment in MOMENTS
    ]


KILLED = """
import os, signal, sys
from pathlib import Path
from mz_dagster.adapter import Project
from mz_dagster.operations import backup as module
count = 0
def die(name, arguments):
    global count
    count += 1
    if count == int(sys.argv[4]) or (name == "os.rename" and str(arguments[1]) == sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
# Every file that is opened for reading or writing is a moment to die at; the last one is when a restore gets its name.
sys.addaudithook(lambda *event: die(*event) if event[0] in ("open", "os.rename", "os.mkdir") else None)
if sys.argv[1] == "backup":
    module.backup(Project.load(Path(sys.argv[2])), Path(sys.argv[3]))
else:
    module.restore(Path(sys.argv[2]), Path(sys.argv[3]), catalog_url=(*sys.argv[5:], None)[0])
"""


def killed(*arguments: str) -> bool:
    """Runs a backup or a restore in a process that kills itself at the nth file; returns whether it got so far."""
    done = python(KILLED, ROOT, *arguments)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize(("url", "moment"), moments("postgresql"), indirect=["url"])
def test_a_killed_backup_is_refused_and_harms_nobody(
    project: Project, moment: int, healthy: tuple[Project, Contents], tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    assert killed("backup", str(project.root), str(target), str(moment))
    if target.exists():
        with pytest.raises(BackupUnusable, match="did not finish"):
            read_manifest(target)
    assert contents(project) == healthy[1]
    assert examine(project.root).findings == ()
    assert backup(project, tmp_path / "second").files


@pytest.mark.parametrize(("url", "moment"), moments("sqlite"), indirect=["url"])
def test_a_killed_restore_has_not_happened_and_can_be_repeated(
    url: str | None, moment: int, healthy: tuple[Project, Contents], saved: Path, tmp_path: Path
) -> None:
    assert killed("restore", str(saved), str(tmp_path / "new"), str(moment), *([url] if url else []))
    assert not (tmp_path / "new").exists()
    assert contents(Project.load(restore(saved, tmp_path / "new", catalog_url=url).root)) == healthy[1]
    assert [path.name for path in tmp_path.iterdir()] == ["new"], "what the killed one left"


@pytest.mark.parametrize("moments", [(LAST,), pytest.param((LAST, 95, LAST), marks=pytest.mark.deep)])
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_restore_that_was_killed_once_its_catalog_was_filled_is_repeated(
    url: str, moments: Sequence[int], healthy: tuple[Project, Contents], saved: Path, tmp_path: Path
) -> None:
    for moment in moments:
        assert killed("restore", str(saved), str(tmp_path / "new"), str(moment), url)
        assert not (tmp_path / "new").exists()
    (tmp_path / "another").mkdir()
    (tmp_path / "another" / "mz.toml").write_text(f'[catalog]\nurl = "{url}"\n')
    with pytest.raises(ShardsElsewhere, match="did not finish"), Engine(Project.load(tmp_path / "another")):
        pass
    assert contents(Project.load(restore(saved, tmp_path / "new", catalog_url=url).root)) == healthy[1]
    with pytest.raises(CatalogTaken):
        restore(saved, tmp_path / "third", catalog_url=url)
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_restore_that_failed_once_its_catalog_was_filled_is_repeated_into_any_folder(
    url: str, healthy: tuple[Project, Contents], saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("mz_dagster.operations.backup.sync_files", full)
        with pytest.raises(OperationalError, match="No space left"):
            restore(saved, tmp_path / "new", catalog_url=url)
    assert not any(tmp_path.iterdir())
    assert contents(Project.load(restore(saved, tmp_path / "other", catalog_url=url).root)) == healthy[1]


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_restored_project_whose_catalog_did_not_hear_of_it_is_completed_when_it_is_opened(
    url: str, healthy: tuple[Project, Contents], saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put_in_place(self: Catalog, id: str, name: Callable[[], object] = lambda: None) -> None:
        name()

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "complete_restore", put_in_place)
        made = restore(saved, tmp_path / "new", catalog_url=url).root
    with Engine(Project.load(made)):
        assert contents(Project.load(made)) == healthy[1]
    with pytest.raises(CatalogTaken):
        restore(saved, tmp_path / "third", catalog_url=url)


def test_a_restore_leaves_alone_what_a_living_one_makes(saved: Path, tmp_path: Path) -> None:
    for name in ("dead", "living"):
        (tmp_path / f".new.restoring-{name}").mkdir()
    living = os.open(tmp_path / ".new.restoring-living", os.O_RDONLY)
    try:
        fcntl.flock(living, fcntl.LOCK_EX)
        restore(saved, tmp_path / "new")
    finally:
        os.close(living)
    assert {path.name for path in tmp_path.iterdir()} == {"new", ".new.restoring-living"}


@pytest.mark.parametrize("early", [True, False])
def test_backups_and_restores_that_are_done_outlive_a_power_cut(
    early: bool, healthy: tuple[Project, Contents], tmp_path: Path
) -> None:
    power = PowerCut(tmp_path / "disk")
    power.root.mkdir()
    with power.noting():
        backup(healthy[0], power.root / "backups" / "today")
        left = power.left(tmp_path / "left", early=early)
        made = restore(left / "backups" / "today", power.root / "projects" / "shop").root
        again = power.left(tmp_path / "again", early=early)
    project = again / made.relative_to(power.root)
    # What SQLite forces to disk is not noted here.
    shutil.copy(made / ".mz" / "catalog.sqlite", project / ".mz" / "catalog.sqlite")
    assert contents(Project.load(project)) == healthy[1]


def test_what_spark_maintains_is_restored_and_maintained_on(spark_config: SparkConfig, tmp_path: Path) -> None:
    queries = ("SELECT * FROM totals ORDER BY 1", "SELECT * FROM big ORDER BY 1", "SELECT * FROM t ORDER BY 1, 2")

    def rows(root: Path, *statements: str) -> list[list[tuple[Any, ...]]]:
        with Engine(Project.load(root), spark=spark_config) as engine:
            session = Session(engine)
            for one in statements:
                session.execute(one)
            return [list(session.execute(query).rows) for query in queries]

    expected = rows(
        tmp_path / "old",
        "CREATE TABLE t (a integer, b text)",
        "CREATE MATERIALIZED VIEW totals AS SELECT b, count(*) AS n, max(a) AS most FROM t GROUP BY b",
        "CREATE MATERIALIZED VIEW big AS SELECT t.a, s.n FROM t JOIN totals s ON s.b = t.b WHERE s.n > 1",
        "CREATE INDEX by_n ON totals (n)",
        "INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')",
        "DELETE FROM t WHERE a = 1",
        "INSERT INTO t VALUES (5, 'y')",
    )
    assert examine(tmp_path / "old", deep=True).findings == ()
    backup(Project.load(tmp_path / "old"), tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "new")
    assert rows(tmp_path / "new") == expected
    change = "UPDATE t SET b = 'y' WHERE a = 2"
    assert rows(tmp_path / "new", change) == rows(tmp_path / "old", change)
    assert examine(tmp_path / "new", deep=True).findings == ()


def test_the_command_line(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", str(saved), str(tmp_path / "new")]) == 0
    assert "restored small in" in capsys.readouterr().out
    assert main(["--project", str(tmp_path / "new"), "backup", str(tmp_path / "again")]) == 0
    assert "backed up small: " in capsys.readouterr().out
    assert main(["restore", str(tmp_path / "new"), str(tmp_path / "third")]) == 1
    assert "is no backup" in capsys.readouterr().err
