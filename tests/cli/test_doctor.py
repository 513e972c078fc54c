"""The doctor finds each planted corruption and nothing else, and repairs what is safe without losing anything.

Every corruption is a real one: a row or a file changed behind the engine's back.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import BatchState, Catalog, CollectionRow
from mz_dagster.catalog.contents import ListDamaged, contents_of
from mz_dagster.cli import main
from mz_dagster.errors import Error, OperationalError
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from mz_dagster.operations.doctor.surroundings import check_place
from mz_dagster.storage import sweep
from mz_dagster.storage.file_hashes import hash_file
from tests.cli.raw_catalog import copied, raw, url_of
from tests.cli.small_project import Contents, collection_named, contents, make_project, write
from tests.postgres_server import Postgres
from tests.storage.disks import small_disk


class DamagedProject:
    """Is a small project, and the hands that break it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = Project.load(root)

    def sql(self, statement: str, *values: object) -> None:
        """Changes the catalog without asking it."""
        with raw(self.root) as execute:
            assert execute(statement, *values).rowcount != 0, statement

    def sum_up(self) -> None:
        """Has every collection say that what its list holds now is what was written: as a bug of ours would."""
        with raw(self.root) as execute:
            live: dict[str, list[SimpleNamespace]] = {}
            rows = execute("SELECT * FROM batch WHERE state = 'live'")
            names = [column[0] for column in rows.description]
            for values in rows.fetchall():
                row = SimpleNamespace(**dict(zip(names, values, strict=True)))
                live.setdefault(row.collection, []).append(row)
            for (id,) in execute("SELECT id FROM collection").fetchall():
                found = contents_of(live.get(id, ()))
                execute(
                    "UPDATE collection SET live_batches = ?, live_rows = ?, live_digest = ? WHERE id = ?",
                    found.batches,
                    found.rows,
                    found.digest,
                    id,
                )

    def row(self, name: str) -> CollectionRow:
        catalog = Catalog.open_made(self.project.catalog_url)
        assert catalog is not None
        with catalog:
            return collection_named(catalog, name)

    def shard(self, name: str) -> Path:
        return self.root / ".mz" / self.row(name).shard

    def log(self, name: str) -> Path:
        return self.shard(name) / "_delta_log"

    def file(self, name: str) -> Path:
        """Returns the first data file of a collection."""
        return min(self.shard(name).glob("mz_batch=*/*/*.parquet"))

    def rewrite(self, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replaces a data file by one with other rows, and makes log and catalog agree with its size."""
        path = self.file(name)
        old = path.stat().st_size
        rows = pq.ParquetFile(path).read()
        changed = change(rows)
        pq.write_table(changed, path)
        batch = int(path.parent.parent.name.partition("=")[2])
        size = path.stat().st_size
        for entry in self.log(name).glob("*.json"):
            lines = entry.read_text().splitlines()
            entry.write_text(
                "\n".join(
                    line.replace(f'"size":{old},', f'"size":{size},') if path.name in line else line for line in lines
                )
            )
        listed = [[path.relative_to(self.shard(name)).as_posix(), rows.num_rows, 0, size, hash_file(path), None]]
        self.sql("UPDATE batch SET bytes = ?, file_list = ? WHERE id = ?", size, json.dumps(listed), batch)
        self.sum_up()

    def damage(self, path: Path, at: int, to: bytes) -> None:
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            file.write(to)


def expected_file_gone(damaged: DamagedProject) -> None:
    """Takes away a file that is sealed and has to stay all the same."""
    with (damaged.root / "mz.toml").open("a") as settings:
        settings.write("\n[sources]\nexpect_files = '1 d'\n")
    (damaged.root / "landing" / "0.jsonl").unlink()


@dataclass(frozen=True)
class Corruption:
    """Is a corruption, the check that must name it, and what becomes of it when the doctor repairs."""

    check: str
    plant: Callable[[DamagedProject], object]
    says: str = ""
    mended: bool = False
    deep: bool = False
    also: str = ""
    ours: bool = False


def by_sql(statement: str, *values: object) -> Callable[[DamagedProject], None]:
    return lambda damaged: damaged.sql(statement, *values)


def summed(statement: str, *values: object) -> Callable[[DamagedProject], None]:
    """Returns what changes the catalog, with the sums of the lists that it changes."""

    def plant(damaged: DamagedProject) -> None:
        damaged.sql(statement, *values)
        damaged.sum_up()

    return plant


def set_column(name: str, position: int, value: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        values[position] = value
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))

    return change


BATCH = "collection, lower, upper, rows, errors, files, bytes, file_list"


def extra_batch(damaged: DamagedProject, state: str) -> None:
    """Adds a batch of the table's last interval, of another state, of a writer that is gone."""
    damaged.sql(
        f"INSERT INTO batch (id, state, writer, {BATCH}) SELECT 500, ?, 77, {BATCH} FROM batch WHERE id = 1",
        state,
    )
    damaged.sum_up()
    damaged.sql("UPDATE counter SET last = 500 WHERE name = 'batch'")


def add_stray(damaged: DamagedProject) -> None:
    """Commits rows under a batch id that the catalog does not know, as a writer that woke up after its sweep does."""
    row = damaged.row("t")
    with Engine(damaged.project) as engine:
        batch = engine.catalog.batches(row.id, BatchState.LIVE)[0]
        frame = engine.shards.read(row, [batch])
        frame = frame.append_column("mz_batch", pa.array([400] * len(frame), pa.int64()))
        frame = frame.append_column("mz_bucket", pa.array(["all"] * len(frame)))
    write_deltalake(str(damaged.shard("t")), frame, mode="append")


def add_kept(damaged: DamagedProject) -> None:
    (damaged.root / ".mz" / "quarantine").mkdir()
    (damaged.root / ".mz" / "quarantine" / "x").write_text("x")


def add_dropped(damaged: DamagedProject) -> None:
    damaged.sql(
        "INSERT INTO object SELECT 'u9', 9, created_as, kind, sql, timeline, column_types, unique_keys, monotonic, "
        "owner, options, tags, false, true, shapes FROM object WHERE id = 'u2'"
    )
    damaged.sql("UPDATE counter SET last = 9 WHERE name = 'object'")


def folder_of_buried(damaged: DamagedProject) -> None:
    """Leaves the folder of what was dropped, as a writer that was paused makes it again."""
    damaged.sql("INSERT INTO tombstone VALUES ('u9', 9, 'default', 'shards/u9')")
    damaged.sql("UPDATE counter SET last = 9 WHERE name = 'object'")
    (damaged.root / ".mz" / "shards" / "u9" / "mz_batch=7").mkdir(parents=True)


def name_dropped(damaged: DamagedProject) -> None:
    add_dropped(damaged)
    damaged.sql("INSERT INTO name VALUES ('old', 'u9')")
    damaged.sql("UPDATE project SET names = names + 1")


def right_on_dropped(damaged: DamagedProject) -> None:
    drop_collection(damaged)
    damaged.sql(f"INSERT INTO capability ({CAPABILITY}) VALUES (1, 'h', false, 'u9', '[5]', 'me', NULL)")
    damaged.sql("UPDATE counter SET last = 1 WHERE name = 'capability'")


def drop_collection(damaged: DamagedProject) -> None:
    add_dropped(damaged)
    damaged.sql("UPDATE object SET has_collection = true WHERE id = 'u9'")
    damaged.sql(
        "INSERT INTO collection (id, timeline, since, upper, shard) VALUES ('u9', 'default', '[]', '[]', 'shards/u9')"
    )


def hold_of_dropped(damaged: DamagedProject) -> None:
    drop_collection(damaged)
    damaged.sql("INSERT INTO hold VALUES ('u9', 'u2')")


def needs_dropped(damaged: DamagedProject) -> None:
    drop_collection(damaged)
    damaged.sql("INSERT INTO hold VALUES ('u3', 'u9')")


def capability(damaged: DamagedProject, writes: bool, frontier: int) -> None:
    damaged.sql(
        f"INSERT INTO capability ({CAPABILITY}) VALUES (1, 'h', ?, 'u2', ?, 'me', NULL)", writes, f"[{frontier}]"
    )
    damaged.sql("UPDATE counter SET last = 1 WHERE name = 'capability'")


def leave_lease(damaged: DamagedProject, until_ms: int) -> None:
    damaged.sql("INSERT INTO lease (id, holder, until_ms) VALUES (1, 'me', ?)", until_ms)
    damaged.sql("UPDATE counter SET last = 1 WHERE name = 'lease'")


def forget_history(damaged: DamagedProject) -> None:
    """Moves the since of a table and its view past a capability."""
    capability(damaged, False, 5)
    damaged.sql("UPDATE collection SET since = '[6]' WHERE id IN ('u2', 'u3')")


def run_ahead(damaged: DamagedProject) -> None:
    """Closes a time in a view that is not closed in its input."""
    damaged.sql("UPDATE timeline SET read_ts = read_ts + 9, write_ts = write_ts + 9")
    damaged.sql("UPDATE collection SET upper = ? WHERE id = 'u4'", f"[{damaged.row('p').upper.only + 1}]")


def live_of_dropped(damaged: DamagedProject) -> None:
    drop_collection(damaged)
    extra_batch(damaged, "live")
    damaged.sql("UPDATE batch SET collection = 'u9' WHERE id = 500")
    damaged.sum_up()


def zero_diff(damaged: DamagedProject) -> None:
    damaged.rewrite("t", set_column("mz_diff", 0, 0))


def too_many_retractions(damaged: DamagedProject) -> None:
    damaged.rewrite("t", set_column("mz_diff", 0, -1))


def fill_page(damaged: DamagedProject) -> None:
    """Overwrites the pages of a file and leaves its footer."""
    path = damaged.file("t")
    damaged.damage(path, 4, b"\xff" * 60)


def miscounted_errors(damaged: DamagedProject) -> None:
    """Has the log say that a row of the table's first batch is an error."""
    entry = damaged.log("t") / f"{1:020d}.json"
    text = entry.read_text()
    assert '\\"mz_error\\":2' in text
    entry.write_text(text.replace('\\"mz_error\\":2', '\\"mz_error\\":1'))


def lost_commit(damaged: DamagedProject) -> None:
    entries = sorted(damaged.log("t").glob("*.json"))
    entries[-1].unlink()


def stale_server(damaged: DamagedProject) -> None:
    folder = damaged.root / ".mz" / "spark"
    folder.mkdir(parents=True)
    (folder / "server.json").write_text(
        '{"url": "sc://localhost:1", "token": "x", "pid": 4194304, "ui_url": "", "log": "l", "started": "0"}'
    )


def lose_sequence(damaged: DamagedProject) -> None:
    with Engine(damaged.project) as engine:
        Session(engine).execute("CREATE TABLE n (id integer GENERATED ALWAYS AS IDENTITY, a integer)")
    damaged.sql("DELETE FROM sequence")


CAPABILITY = "id, token_hash, writes, collection, frontier, holder, until_ms"
FAR = 253_402_300_800_000

CASES = [
    # the catalog's rows
    Corruption("dangling-reference", by_sql("DELETE FROM object WHERE id = 'u4'"), "'u4'"),
    Corruption("dangling-reference", by_sql("UPDATE dependency SET dependency = 'u77' WHERE dependant = 'u3'")),
    Corruption("wrong-id", by_sql("UPDATE object SET kind = 'source' WHERE id = 'u2'"), "u2"),
    Corruption("unreadable-value", by_sql("UPDATE collection SET upper = '[1' WHERE id = 'u4'"), "'[1'"),
    Corruption("unreadable-value", by_sql("UPDATE batch SET state = 'x' WHERE collection = 'u4'"), also="list-damaged"),
    Corruption("counter-behind", by_sql("UPDATE counter SET last = 2 WHERE name = 'batch'"), mended=True),
    Corruption("names-lost", by_sql("DELETE FROM name WHERE name = 't'"), "there should be 4 names"),
    Corruption("bindings-lost", by_sql("DELETE FROM bound_file WHERE path = '0.jsonl'"), "it has read 2 files"),
    Corruption("changes-lost", by_sql("DELETE FROM changed"), "was emptied", mended=True),
    Corruption("tick-lost", by_sql("DELETE FROM tick"), "is not among the ticks", mended=True),
    Corruption("sequence-lost", lose_sequence, 'column "id"'),
    Corruption("tombstone-of-living", by_sql("INSERT INTO tombstone VALUES ('u2', 2, NULL, NULL)"), "u2", mended=True),
    Corruption("name-of-dropped", name_dropped, 'name "old"', mended=True),
    Corruption("right-of-dropped", right_on_dropped, "capability 1 of me", mended=True),
    Corruption("right-of-dropped", hold_of_dropped, "u9", mended=True),
    Corruption("needs-dropped", needs_dropped, 'view "m"'),
    Corruption("missing-hold", by_sql("DELETE FROM hold WHERE output = 'u3'"), 'table "t"'),
    Corruption("catalog-version", by_sql("UPDATE alembic_version SET version_num = '9999'"), "9999"),
    Corruption("catalog-unreadable", lambda p: (p.root / ".mz" / "catalog.sqlite").write_bytes(b"no database" * 99)),
    Corruption("catalog-unreadable", lambda p: p.damage(p.root / ".mz" / "catalog.sqlite", 8192, b"\x55" * 40000)),
    Corruption("shards-of-another", by_sql("UPDATE project SET id = 'another'"), "project"),
    # frontiers and time
    Corruption("since-beyond-upper", by_sql("UPDATE collection SET since = ? WHERE id = 'u4'", f"[{FAR}]")),
    Corruption("since-beyond-capability", forget_history, "capability 1 of me"),
    Corruption("upper-beyond-capability", lambda p: capability(p, True, 5), "capability 1 of me"),
    Corruption("since-beyond-output", by_sql("UPDATE collection SET since = '[9]' WHERE id = 'u2'"), 'view "m"'),
    Corruption("upper-beyond-input", run_ahead, 'view "p"'),
    Corruption("oracle-behind", by_sql("UPDATE timeline SET read_ts = 7"), "at 7", mended=True),
    Corruption("oracle-ahead", by_sql("UPDATE timeline SET read_ts = ?, write_ts = ?", FAR, FAR), "minutes from now"),
    Corruption("lease-in-future", by_sql("UPDATE timeline SET holder = 'me', until_ms = ?", FAR), mended=True),
    Corruption("lease-in-future", lambda p: leave_lease(p, FAR), "lease 1", mended=True),
    Corruption("lease-expired", lambda p: leave_lease(p, 1), "of me", mended=True),
    # batches
    Corruption("list-damaged", by_sql("DELETE FROM batch WHERE id = 1"), "3 batches of 6", mended=True),
    Corruption("list-damaged", by_sql("DELETE FROM batch WHERE collection = 'u2'"), "and has 0"),
    Corruption("list-damaged", by_sql("UPDATE batch SET state = 'replaced' WHERE id = 3"), "has 2", mended=True),
    Corruption("list-damaged", by_sql("UPDATE batch SET upper = lower WHERE id = 1"), "not as it was", mended=True),
    Corruption("list-damaged", by_sql("UPDATE batch SET rows = 9, errors = 1 WHERE id = 1"), "has 3", mended=True),
    Corruption("list-damaged", by_sql("UPDATE batch SET file_list = NULL WHERE id = 1"), "not as it was", mended=True),
    Corruption("list-damaged", by_sql("UPDATE collection SET live_digest = 0 WHERE id = 'u2'"), "not as it was"),
    Corruption("quarantine", add_kept, "moved 1 files"),
    Corruption("batch-interval", summed("UPDATE batch SET upper = lower WHERE id = 1"), "batch 1 of table", ours=True),
    Corruption("batch-overlap", summed("UPDATE batch SET lower = '[0]' WHERE id = 3"), "of table", ours=True),
    Corruption("batch-beyond-upper", summed("UPDATE batch SET upper = ? WHERE id = 6", f"[{FAR}]"), ours=True),
    Corruption("batch-of-dropped", live_of_dropped, "u9"),
    Corruption("batch-unsealed", lambda p: extra_batch(p, "writing"), "batch 500", mended=True),
    Corruption("batch-replaced", lambda p: extra_batch(p, "replaced"), "replaced, and still there", mended=True),
    Corruption("batch-replaced", lambda p: extra_batch(p, "dead"), "dead, and still there: batch 500", mended=True),
    Corruption("batch-rows", summed("UPDATE batch SET rows = 9 WHERE id = 1"), "catalog says 9", ours=True),
    Corruption("batch-files", summed("UPDATE batch SET file_list = '[]' WHERE id = 1"), ours=True),
    Corruption("batch-unhashed", summed("UPDATE batch SET file_list = NULL WHERE id = 1"), "batch 1", ours=True),
    Corruption("batch-stats", miscounted_errors, "the log 1 errors", mended=True, also="file-damaged"),
    # shards
    Corruption("log-damaged", lambda p: shutil.rmtree(p.log("t")), "no log", mended=True),
    Corruption("log-damaged", lambda p: (p.log("t") / f"{1:020d}.json").unlink(), "version 1 is missing", mended=True),
    Corruption("log-damaged", lambda p: p.damage(p.log("t") / f"{2:020d}.json", 0, b"#!?"), "version 2", mended=True),
    Corruption("batch-rows", lost_commit, "holds 0 rows", mended=True),
    Corruption("file-missing", lambda p: p.file("t").unlink(), "is gone"),
    Corruption("file-size", lambda p: p.damage(p.file("t"), p.file("t").stat().st_size, b"more"), "bytes, and had"),
    Corruption("file-damaged", lambda p: p.damage(p.file("t"), -8, b"\xff" * 4), "cannot be read"),
    Corruption("file-damaged", lambda p: p.rewrite("t", lambda rows: rows.slice(0, 1)), "not the one", ours=True),
    Corruption("file-content", fill_page, "another content than was written"),
    Corruption("diff-zero", zero_diff, "diff 0", deep=True, ours=True),
    Corruption("negative-rows", too_many_retractions, "-1 times", deep=True, ours=True),
    Corruption("times-outside", summed("UPDATE batch SET upper = '[5]' WHERE id = 1"), "upper {5}", ours=True),
    Corruption("stray-files", folder_of_buried, "it is of what was dropped", mended=True),
    Corruption("stray-folder", lambda p: (p.root / ".mz" / "shards" / "u88").mkdir(), "u88"),
    # surroundings
    Corruption("settings-unreadable", lambda p: (p.root / "mz.toml").write_text("[project\n"), "is not TOML"),
    Corruption("project-files", lambda p: (p.root / "assets" / "bad.sql").write_text("CREATE TABEL x;"), "bad.sql"),
    Corruption("definitions-differ", lambda p: (p.root / "assets" / "u.sql").write_text("CREATE TABLE u (a integer);")),
    Corruption("no-dagster", lambda p: (p.root / "definitions.py").write_text("")),
    Corruption("spark-gone", stale_server, "server.json", mended=True),
    Corruption("bound-file-missing", expected_file_gone, "0.jsonl"),
    Corruption("bound-file-changed", lambda p: (p.root / "landing" / "0.jsonl").write_text("{}"), "had 24"),
    Corruption("bound-file-changed", lambda p: p.damage(p.root / "landing" / "0.jsonl", 5, b"7"), "content", deep=True),
]  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Contents]:
    """A project that nobody changes, and what is in it."""
    root = tmp_path_factory.mktemp("healthy") / "project"
    project = make_project(root)
    return root, contents(project)


@pytest.fixture
def damaged(healthy: tuple[Path, Contents], tmp_path: Path) -> DamagedProject:
    return DamagedProject(copied(healthy[0], tmp_path / "project", None))


@pytest.fixture(scope="module")
def healthy_on_postgres(tmp_path_factory: pytest.TempPathFactory, postgres_server: Postgres) -> tuple[Path, Contents]:
    root = tmp_path_factory.mktemp("healthy") / "project"
    project = make_project(root, f"[catalog]\nurl = '{url_of(postgres_server.new_database())}'\n")
    return root, contents(project)


def assert_never_answered_otherwise(damaged: DamagedProject, whole: Contents) -> None:
    """Checks that reading a collection gives what it gave before, or an error."""
    for name in whole:
        try:
            found = contents(damaged.project, [name])
        except Error:
            continue
        for time in found[name].keys() & whole[name].keys():
            assert found[name][time] == whole[name][time], (name, time)


#: Whatever a row of a list says otherwise, its sum tells, see `tests/catalog/test_contents.py`; the others are deep.
LISTS = [one for one in CASES if one.check == "list-damaged"]


@pytest.mark.parametrize(
    "one", [pytest.param(one, id=one.check, marks=pytest.mark.deep if one in LISTS[3:6] else ()) for one in CASES]
)
def test_it_names_exactly_what_was_broken_and_repairs_what_is_safe(
    one: Corruption, damaged: DamagedProject, healthy: tuple[Path, Contents]
) -> None:
    check_corruption(one, damaged, healthy[1])


#: A sample of what is planted on PostgreSQL, the first of each; the others are deep.
SAMPLE = ("list-damaged", "tombstone-of-living", "changes-lost")
ON_POSTGRESQL = [next(one for one in CASES if one.check == check and one.mended) for check in SAMPLE]


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one.check, marks=() if one in ON_POSTGRESQL else pytest.mark.deep)
        for one in CASES
        if one.check != "catalog-unreadable"  # there is no file
    ],
)
def test_it_does_so_on_postgresql(
    one: Corruption, healthy_on_postgres: tuple[Path, Contents], postgres_server: Postgres, tmp_path: Path
) -> None:
    root, whole = healthy_on_postgres
    check_corruption(one, DamagedProject(copied(root, tmp_path / "project", postgres_server)), whole)


def told(finding: object) -> str:
    """Returns what is said of a finding, but for how many minutes it is until then, which a minute may pass by."""
    return re.sub(r"\d+ minutes from now", "minutes from now", str(finding))


def check_corruption(one: Corruption, damaged: DamagedProject, whole: Contents) -> None:
    one.plant(damaged)
    found = examine(damaged.root, deep=one.deep)
    assert {finding.check for finding in found.findings} == {one.check, one.also} - {""}, list(map(str, found.findings))
    assert one.says in str(found.findings[0])
    if not one.ours:
        assert_never_answered_otherwise(damaged, whole)
    assert found.healthy == (CHECKS[one.check].severity is not Severity.BREAK)
    repaired = examine(damaged.root, deep=one.deep, repair=True)
    if one.mended:
        assert repaired.findings == (), repaired
        assert repaired.repaired
        assert contents(damaged.project) == whole
    else:
        assert list(map(told, repaired.findings)) == list(map(told, found.findings))


#: Found by the tests below, because no file or row alone makes them.
ELSEWHERE = {
    "payload-missing",
    "payload-content",
    "payload-stray",
    "not-writable",
    "shards-unreachable",
    "disk-full",
    "catalog-unreachable",
    "no-catalog",
    "catalog-lost",
    "step-failed",
    "poll-failed",
    "input-behind",
    "sink-differs",
    "sink-unreadable",
    "cannot-be-planned",
}


def test_what_a_repair_cannot_prove_to_be_garbage_is_kept(
    damaged: DamagedProject, healthy: tuple[Path, Contents], capsys: pytest.CaptureFixture[str]
) -> None:
    add_stray(damaged)
    assert [one.check for one in examine(damaged.root).findings] == ["stray-files"]
    assert [one.check for one in examine(damaged.root, repair=True).findings] == ["quarantine"]
    assert contents(damaged.project) == healthy[1]
    command = ["--project", str(damaged.root), "quarantine"]
    assert main(command) == 0
    assert "mz_batch=400" in capsys.readouterr().out
    assert main([*command, "--empty"]) == 0
    assert "deleted 1 files" in capsys.readouterr().out
    assert examine(damaged.root).findings == ()


def test_nothing_is_swept_of_a_collection_whose_list_is_damaged(damaged: DamagedProject) -> None:
    before = sorted(damaged.shard("t").rglob("*.parquet"))
    damaged.sql("DELETE FROM batch WHERE id = 1")
    damaged.sql("UPDATE batch SET state = 'replaced' WHERE id = 3")
    with Engine(damaged.project) as engine:
        sweep(engine.catalog, engine.shards, thorough=True)
        with pytest.raises(ListDamaged):
            engine.catalog.listed([damaged.row("t").id])
    assert sorted(damaged.shard("t").rglob("*.parquet")) == before


def test_a_repair_that_waits_for_another_is_not_told_to_have_failed(
    damaged: DamagedProject, healthy: tuple[Path, Contents]
) -> None:
    extra_batch(damaged, "dead")
    shutil.rmtree(damaged.log("t"))
    assert {one.check for one in examine(damaged.root).findings} == {"batch-replaced", "log-damaged"}
    repaired = examine(damaged.root, repair=True)
    assert repaired.findings == ()
    assert not [one for one in repaired.repaired if "could not" in one], repaired.repaired
    assert contents(damaged.project) == healthy[1]


@pytest.mark.parametrize("break_file", [lambda path: path.unlink(), lambda path: path.write_bytes(b"PAR1" * 99)])
def test_a_file_is_put_back_from_a_backup(
    damaged: DamagedProject, healthy: tuple[Path, Contents], tmp_path: Path, break_file: Callable[[Path], object]
) -> None:
    backup(damaged.project, tmp_path / "backup")
    with Engine(damaged.project) as engine:
        write(engine, 3)  # which the backup has not
    whole = contents(damaged.project)
    break_file(damaged.file("t"))
    with pytest.raises(OperationalError):
        contents(damaged.project)
    assert not examine(damaged.root).healthy
    command = ["--project", str(damaged.root), "doctor", "--from-backup", str(tmp_path / "backup")]
    assert main(command) == 0
    assert contents(damaged.project) == whole


def test_every_check_is_planted() -> None:
    assert {one.check for one in CASES} | ELSEWHERE == CHECKS.keys()


def test_a_folder_that_cannot_be_written(damaged: DamagedProject) -> None:
    folder = damaged.root / ".mz" / "shards"
    folder.chmod(0o555)
    mine, temporary = os.geteuid(), Path(tempfile.gettempdir())
    for one in (damaged.root, *damaged.root.parents):
        if one.stat().st_uid == mine and one.is_relative_to(temporary) and one != temporary:
            one.chmod(one.stat().st_mode | 0o055)
    shutil.chown(damaged.root / ".mz", 65534)
    try:
        if mine == 0:
            os.seteuid(65534)
        found = list(check_place(damaged.project))
    finally:
        os.seteuid(mine)
    assert [(one.check, one.where) for one in found] == [("not-writable", str(folder))]


def test_a_disk_that_is_nearly_full(damaged: DamagedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(damaged.root).free
    monkeypatch.setattr("mz_dagster.operations.doctor.surroundings.LEAST_FREE", free * 2)
    assert [one.check for one in examine(damaged.root).findings] == ["disk-full"]


def test_a_catalog_that_is_whole_is_not_given_up_for_a_disk_without_room(
    damaged: DamagedProject, healthy: tuple[Path, Contents], tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        root = disk.root / "project"
        shutil.copytree(damaged.root, root)
        with disk.full():  # SQLite makes a file beside it even where it only reads
            (found,) = (one for one in examine(root).findings if one.check != "disk-full")
        assert found.check == "catalog-unreachable"
        assert "free space" in str(found)
        assert "recover" not in str(found)
        assert contents(Project.load(root)) == healthy[1]


def test_an_empty_folder_is_no_broken_project(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert [one.check for one in found.findings] == ["no-catalog"]
    assert found.healthy
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_failed_and_a_source_that_is_unknown(damaged: DamagedProject) -> None:
    damaged.sql("UPDATE collection SET failure = 'out of luck' WHERE id = 'u3'")
    damaged.sql("UPDATE object SET sql = 'CREATE SOURCE' WHERE id = 's1'")
    found = {one.check: one for one in examine(damaged.root).findings}
    assert found.keys() == {"step-failed", "cannot-be-planned", "definitions-differ"}
    assert "out of luck" in str(found["step-failed"])


def test_what_cannot_be_polled_and_what_waits_for_it_are_told(damaged: DamagedProject) -> None:
    damaged.sql("UPDATE collection SET poll_failure = 'no such folder' WHERE id = 's1'")
    found = {one.check: str(one) for one in examine(damaged.root).findings}
    assert "no such folder" in found["poll-failed"]
    assert 'waits for "s": no such folder' in found["input-behind"]


def test_the_doctor_changes_nothing_unless_asked(damaged: DamagedProject) -> None:
    extra_batch(damaged, "replaced")

    def state() -> dict[str, tuple[int, int]]:
        return {
            str(one): (one.stat().st_mtime_ns, one.stat().st_size)
            for one in damaged.root.rglob("*")
            if one.is_file() and not one.name.endswith(("-shm", "-wal"))
        }

    before = state()
    examine(damaged.root, deep=True)
    assert state() == before


def test_merged_and_swept_it_is_as_healthy(damaged: DamagedProject) -> None:
    """Updates before since were moved to since, beyond the upper of their batch."""
    settings = damaged.root / "mz.toml"
    settings.write_text(settings.read_text() + '[retention]\nkeep = "1 ms"\n')
    with Engine(Project.load(damaged.root)) as engine:
        for number in range(3, 6):
            write(engine, number)
        lines = list(engine.compact())
        assert any("merged" in line for line in lines), lines
    assert examine(damaged.root, deep=True).findings == ()


def test_nothing_is_found_while_the_project_is_at_work(damaged: DamagedProject) -> None:
    over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        number = 10
        try:
            with Engine(damaged.project) as engine:
                while not over.is_set():
                    write(engine, number)
                    if number % 4 == 0:
                        list(engine.compact())
                    number += 1
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        found = [one for _ in range(6) for one in examine(damaged.root, deep=True).findings]
    finally:
        over.set()
        worker.join(60)
    assert not failures
    # What a merge has just replaced waits for the sweep that follows it.
    assert [one for one in found if one.check != "batch-replaced"] == []


@pytest.mark.parametrize(
    ("name", "way_back"),
    [
        ("m", '"mz-dagster rebuild m" makes it anew from what it reads; or "mz-dagster doctor --from-backup FOLDER"'),
        ("s", '"mz-dagster reread s", if all files that it has read are still there; or "mz-dagster doctor --from-'),
        ("t", 'its rows exist nowhere else; "mz-dagster doctor --from-backup FOLDER" puts its files back, or restore'),
    ],
)
def test_it_names_the_way_back_of_the_right_kind(damaged: DamagedProject, name: str, way_back: str) -> None:
    damaged.file(name).unlink()
    (found,) = examine(damaged.root).findings
    assert found.check == "file-missing"
    assert way_back in str(found)
    damaged.sql("DELETE FROM batch WHERE collection = ?", damaged.row(name).id)
    (found,) = (one for one in examine(damaged.root).findings if one.check == "list-damaged")
    assert way_back in str(found)


@pytest.mark.parametrize(
    ("check", "name"), [("missing-hold", "m"), ("since-beyond-output", "m"), ("upper-beyond-input", "p")]
)
def test_an_output_that_contradicts_its_input_is_rebuilt(damaged: DamagedProject, check: str, name: str) -> None:
    next(one for one in CASES if one.check == check).plant(damaged)
    (found,) = examine(damaged.root).findings
    assert found.check == check
    assert '"mz-dagster rebuild"' in str(found)
    assert main(["--project", str(damaged.root), "rebuild", name]) == 0
    assert examine(damaged.root, deep=True, repair=True).findings == ()


def test_on_the_command_line(damaged: DamagedProject, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--project", str(damaged.root), "doctor"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "healthy"
    damaged.sql("UPDATE timeline SET read_ts = 7")
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "broken: timeline" in said
    assert "could land at a time that was read already" in said
    assert "--repair" in said
    assert main([*command, "--repair", "--deep"]) == 0
    assert "repair: the oracle of timeline" in capsys.readouterr().out
    (damaged.root / "mz.toml").write_text("[")
    assert main(command) == 1


def test_the_doctor_calls_nothing_healthy_where_there_is_no_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--project", str(tmp_path), "doctor"]) == 1
    assert f'no project in "{tmp_path}"' in capsys.readouterr().err
