"""The doctor finds each planted corruption and nothing else, and repairs what is safe without losing anything.

Every corruption is a real one: a row or a file changed behind the engine's back.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from mz_dagster.adapter import Engine, Project
from mz_dagster.adapter.doctor import CHECKS, Severity, examine
from mz_dagster.adapter.doctor.surroundings import check_place
from mz_dagster.catalog import BatchState, Catalog, CollectionRow
from mz_dagster.cli import main
from tests.cli.small_project import Contents, collection_named, contents, make_project, write


class Patient:
    """Is a small project, and the hands that break it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = Project.load(root)

    def sql(self, statement: str, *values: object) -> None:
        """Changes the catalog without asking it."""
        with closing(sqlite3.connect(self.root / ".mz" / "catalog.sqlite")) as connection, connection:
            done = connection.execute(statement, values)
            assert done.rowcount != 0, statement

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
        changed = change(pq.ParquetFile(path).read())
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
        self.sql("UPDATE batch SET bytes = ? WHERE id = ?", size, batch)

    def damage(self, path: Path, at: int, to: bytes) -> None:
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            file.write(to)


@dataclass(frozen=True)
class Corruption:
    """Is a corruption, the check that must name it, and what becomes of it when the doctor repairs."""

    check: str
    plant: Callable[[Patient], object]
    says: str = ""
    mended: bool = False
    deep: bool = False


def by_sql(statement: str, *values: object) -> Callable[[Patient], None]:
    return lambda patient: patient.sql(statement, *values)


def set_column(name: str, position: int, value: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        values[position] = value
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))

    return change


def extra_batch(patient: Patient, state: str) -> None:
    """Adds a batch of the table's last interval, of another state, of a writer that is gone."""
    patient.sql(
        "INSERT INTO batch SELECT 500, collection, lower, upper, ?, 77, rows, errors, files, bytes"
        " FROM batch WHERE id = 1",
        state,
    )
    patient.sql("UPDATE counter SET last = 500 WHERE name = 'batch'")


def add_stray(patient: Patient) -> None:
    """Commits rows under a batch id that the catalog does not know, as a writer that woke up after its sweep does."""
    row = patient.row("t")
    with Engine(patient.project) as engine:
        batch = engine.catalog.batches(row.id, BatchState.LIVE)[0]
        frame = engine.shards.read(row, [batch])
        frame = frame.append_column("mz_batch", pa.array([400] * len(frame), pa.int64()))
        frame = frame.append_column("mz_bucket", pa.array(["all"] * len(frame)))
    write_deltalake(str(patient.shard("t")), frame, mode="append")


def add_object(patient: Patient, number: int, dropped: int = 1) -> None:
    patient.sql(
        "INSERT INTO object SELECT ?, ?, created_as, kind, sql, timeline, column_types, unique_keys, monotonic, owner,"
        " options, tags, 0, ? FROM object WHERE id = 'u2'",
        f"u{number}",
        number,
        dropped,
    )
    patient.sql("UPDATE counter SET last = max(last, ?) WHERE name = 'object'", number)


def name_dropped(patient: Patient) -> None:
    add_object(patient, 9)
    patient.sql("INSERT INTO name VALUES ('old', 'u9')")


def right_on_dropped(patient: Patient) -> None:
    drop_collection(patient)
    patient.sql(f"INSERT INTO capability ({CAPABILITY}) VALUES (1, 'h', 0, 'u9', '[5]', 'me', NULL)")
    patient.sql("UPDATE counter SET last = 1 WHERE name = 'capability'")


def drop_collection(patient: Patient) -> None:
    add_object(patient, 9)
    patient.sql("UPDATE object SET has_collection = 1 WHERE id = 'u9'")
    patient.sql(
        "INSERT INTO collection (id, timeline, since, upper, shard) VALUES ('u9', 'default', '[]', '[]', 'shards/u9')"
    )


def hold_of_dropped(patient: Patient) -> None:
    drop_collection(patient)
    patient.sql("INSERT INTO hold VALUES ('u9', 'u2')")


def needs_dropped(patient: Patient) -> None:
    drop_collection(patient)
    patient.sql("INSERT INTO hold VALUES ('u3', 'u9')")


def capability(patient: Patient, writes: int, frontier: int) -> None:
    patient.sql(
        f"INSERT INTO capability ({CAPABILITY}) VALUES (1, 'h', ?, 'u2', ?, 'me', NULL)", writes, f"[{frontier}]"
    )
    patient.sql("UPDATE counter SET last = 1 WHERE name = 'capability'")


def leave_lease(patient: Patient, until_ms: int) -> None:
    patient.sql("INSERT INTO lease VALUES (1, 'me', ?)", until_ms)
    patient.sql("UPDATE counter SET last = 1 WHERE name = 'lease'")


def forget_history(patient: Patient) -> None:
    """Moves the since of a table and its view past a capability."""
    capability(patient, 0, 5)
    patient.sql("UPDATE collection SET since = '[6]' WHERE id IN ('u2', 'u3')")


def run_ahead(patient: Patient) -> None:
    """Closes a time in a view that is not closed in its input."""
    patient.sql("UPDATE timeline SET read_ts = read_ts + 9, write_ts = write_ts + 9")
    patient.sql("UPDATE collection SET upper = ? WHERE id = 'u4'", f"[{patient.row('p').upper.only + 1}]")


def live_of_dropped(patient: Patient) -> None:
    drop_collection(patient)
    extra_batch(patient, "live")
    patient.sql("UPDATE batch SET collection = 'u9' WHERE id = 500")


def zero_diff(patient: Patient) -> None:
    patient.rewrite("t", set_column("mz_diff", 0, 0))


def too_many_retractions(patient: Patient) -> None:
    patient.rewrite("t", set_column("mz_diff", 0, -1))


def fill_page(patient: Patient) -> None:
    """Overwrites the pages of a file and leaves its footer."""
    path = patient.file("t")
    patient.damage(path, 4, b"\xff" * 60)


def lost_commit(patient: Patient) -> None:
    entries = sorted(patient.log("t").glob("*.json"))
    entries[-1].unlink()


def stale_server(patient: Patient) -> None:
    folder = patient.root / ".mz" / "spark"
    folder.mkdir(parents=True)
    (folder / "server.json").write_text(
        '{"url": "sc://localhost:1", "token": "x", "pid": 4194304, "ui_url": "", "log": "l", "started": "0"}'
    )


CAPABILITY = "id, token_hash, writes, collection, frontier, holder, until_ms"
FAR = 253_402_300_800_000

CASES = [
    # the catalog's rows
    Corruption("dangling-reference", by_sql("DELETE FROM object WHERE id = 'u4'"), "'u4'"),
    Corruption("dangling-reference", by_sql("UPDATE dependency SET dependency = 'u77' WHERE dependant = 'u3'")),
    Corruption("wrong-id", by_sql("UPDATE object SET kind = 'source' WHERE id = 'u2'"), "u2"),
    Corruption("unreadable-value", by_sql("UPDATE collection SET upper = '[1' WHERE id = 'u4'"), "'[1'"),
    Corruption("unreadable-value", by_sql("UPDATE batch SET state = 'lost' WHERE collection = 'u4'"), "'lost'"),
    Corruption("counter-behind", by_sql("UPDATE counter SET last = 2 WHERE name = 'batch'"), mended=True),
    Corruption("name-of-dropped", name_dropped, 'name "old"', mended=True),
    Corruption("right-of-dropped", right_on_dropped, "capability 1 of me", mended=True),
    Corruption("right-of-dropped", hold_of_dropped, "u9", mended=True),
    Corruption("needs-dropped", needs_dropped, 'view "m"'),
    Corruption("missing-hold", by_sql("DELETE FROM hold WHERE output = 'u3'"), 'table "t"'),
    Corruption("catalog-version", by_sql("UPDATE alembic_version SET version_num = '9999'"), "newer version"),
    Corruption("catalog-unreadable", lambda p: (p.root / ".mz" / "catalog.sqlite").write_bytes(b"no database" * 99)),
    Corruption("catalog-unreadable", lambda p: p.damage(p.root / ".mz" / "catalog.sqlite", 8192, b"\x55" * 40000)),
    # frontiers and time
    Corruption("since-beyond-upper", by_sql("UPDATE collection SET since = ? WHERE id = 'u4'", f"[{FAR}]")),
    Corruption("since-beyond-capability", forget_history, "capability 1 of me"),
    Corruption("upper-beyond-capability", lambda p: capability(p, 1, 5), "capability 1 of me"),
    Corruption("since-beyond-output", by_sql("UPDATE collection SET since = '[9]' WHERE id = 'u2'"), 'view "m"'),
    Corruption("upper-beyond-input", run_ahead, 'view "p"'),
    Corruption("oracle-behind", by_sql("UPDATE timeline SET read_ts = 7"), "at 7", mended=True),
    Corruption("lease-in-future", by_sql("UPDATE timeline SET holder = 'me', until_ms = ?", FAR), mended=True),
    Corruption("lease-in-future", lambda p: leave_lease(p, FAR), "lease 1", mended=True),
    Corruption("lease-expired", lambda p: leave_lease(p, 1), "of me", mended=True),
    # batches
    Corruption("batch-interval", by_sql("UPDATE batch SET upper = lower WHERE id = 1"), "batch 1 of table"),
    Corruption("batch-overlap", by_sql("UPDATE batch SET lower = '[0]' WHERE id = 3"), "of table"),
    Corruption("batch-beyond-upper", by_sql("UPDATE batch SET upper = ? WHERE id = 6", f"[{FAR}]"), "batch 6"),
    Corruption("batch-of-dropped", live_of_dropped, "u9"),
    Corruption("batch-unsealed", lambda p: extra_batch(p, "writing"), "batch 500", mended=True),
    Corruption("batch-replaced", lambda p: extra_batch(p, "replaced"), "replaced, and still there", mended=True),
    Corruption("batch-replaced", lambda p: extra_batch(p, "dead"), "dead, and still there: batch 500", mended=True),
    Corruption("batch-rows", by_sql("UPDATE batch SET rows = 9 WHERE id = 1"), "catalog says 9"),
    Corruption("batch-stats", by_sql("UPDATE batch SET bytes = 1 WHERE id = 1"), "1 bytes", mended=True),
    # shards
    Corruption("log-damaged", lambda p: shutil.rmtree(p.log("t")), "no log", mended=True),
    Corruption("log-damaged", lambda p: (p.log("t") / f"{1:020d}.json").unlink(), "version 1 is missing", mended=True),
    Corruption("log-damaged", lambda p: p.damage(p.log("t") / f"{2:020d}.json", 0, b"#!?"), "version 2", mended=True),
    Corruption("batch-rows", lost_commit, "holds 0 rows", mended=True),
    Corruption("file-missing", lambda p: p.file("t").unlink(), "is gone"),
    Corruption("file-size", lambda p: p.damage(p.file("t"), p.file("t").stat().st_size, b"more"), "bytes, and had"),
    Corruption("file-damaged", lambda p: p.damage(p.file("t"), -8, b"\xff" * 4), "cannot be read"),
    Corruption("file-damaged", lambda p: p.rewrite("t", lambda rows: rows.slice(0, 1)), "not the one"),
    Corruption("file-content", fill_page, "cannot be read", deep=True),
    Corruption("diff-zero", zero_diff, "diff 0", deep=True),
    Corruption("negative-rows", too_many_retractions, "-1 times", deep=True),
    Corruption("times-outside", by_sql("UPDATE batch SET upper = '[5]' WHERE id = 1"), "upper {5}"),
    Corruption("stray-files", add_stray, "no batch for: 400", mended=True),
    Corruption("stray-folder", lambda p: (p.root / ".mz" / "shards" / "u88").mkdir(), "u88"),
    # surroundings
    Corruption("settings-unreadable", lambda p: (p.root / "mz.toml").write_text("[project\n"), "is not TOML"),
    Corruption("project-files", lambda p: (p.root / "assets" / "bad.sql").write_text("CREATE TABEL x;"), "bad.sql"),
    Corruption("definitions-differ", lambda p: (p.root / "assets" / "u.sql").write_text("CREATE TABLE u (a integer);")),
    Corruption("no-dagster", lambda p: (p.root / "definitions.py").write_text("")),
    Corruption("spark-gone", stale_server, "server.json", mended=True),
    Corruption("bound-file-missing", lambda p: (p.root / "landing" / "0.jsonl").unlink(), "0.jsonl"),
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
def patient(healthy: tuple[Path, Contents], tmp_path: Path) -> Patient:
    return Patient(shutil.copytree(healthy[0], tmp_path / "project"))


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.check)
def test_it_names_exactly_what_was_broken_and_repairs_what_is_safe(
    one: Corruption, patient: Patient, healthy: tuple[Path, Contents]
) -> None:
    one.plant(patient)
    found = examine(patient.root, deep=one.deep)
    assert {finding.check for finding in found.findings} == {one.check}, list(map(str, found.findings))
    assert one.says in str(found.findings[0])
    assert found.healthy == (CHECKS[one.check].severity is not Severity.BREAK)
    repaired = examine(patient.root, deep=one.deep, repair=True)
    if one.mended:
        assert repaired.findings == (), repaired
        assert repaired.repaired
        assert contents(patient.project) == healthy[1]
    else:
        assert list(map(str, repaired.findings)) == list(map(str, found.findings))


#: Found by the tests below, because no file or row alone makes them.
ELSEWHERE = {"not-writable", "disk-full", "no-catalog", "step-failed", "source-unknown"}


def test_every_check_is_planted() -> None:
    assert {one.check for one in CASES} | ELSEWHERE == CHECKS.keys()


def test_a_folder_that_cannot_be_written(patient: Patient) -> None:
    folder = patient.root / ".mz" / "shards"
    folder.chmod(0o555)
    mine = os.geteuid()
    for one in (patient.root, *patient.root.parents):
        if one.stat().st_uid == mine and one.is_relative_to("/tmp") and one != Path("/tmp"):
            one.chmod(one.stat().st_mode | 0o055)
    shutil.chown(patient.root / ".mz", 65534)
    try:
        if mine == 0:
            os.seteuid(65534)
        found = list(check_place(patient.project))
    finally:
        os.seteuid(mine)
    assert [(one.check, one.where) for one in found] == [("not-writable", str(folder))]


def test_a_disk_that_is_nearly_full(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(patient.root).free
    monkeypatch.setattr("mz_dagster.adapter.doctor.surroundings.LEAST_FREE", free * 2)
    assert [one.check for one in examine(patient.root).findings] == ["disk-full"]


def test_an_empty_folder_is_no_broken_project(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert [one.check for one in found.findings] == ["no-catalog"]
    assert found.healthy
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_failed_and_a_source_that_is_unknown(patient: Patient) -> None:
    patient.sql("UPDATE collection SET failure = 'out of luck' WHERE id = 'u3'")
    patient.sql("UPDATE object SET sql = 'CREATE SOURCE' WHERE id = 's1'")
    found = {one.check: one for one in examine(patient.root).findings}
    assert found.keys() == {"step-failed", "source-unknown", "definitions-differ"}
    assert "out of luck" in str(found["step-failed"])


def test_the_doctor_changes_nothing_unless_asked(patient: Patient) -> None:
    extra_batch(patient, "replaced")

    def state() -> dict[str, tuple[int, int]]:
        return {
            str(one): (one.stat().st_mtime_ns, one.stat().st_size)
            for one in patient.root.rglob("*")
            if one.is_file() and not one.name.endswith(("-shm", "-wal"))
        }

    before = state()
    examine(patient.root, deep=True)
    assert state() == before


def test_merged_and_swept_it_is_as_healthy(patient: Patient) -> None:
    """Updates before since were moved to since, beyond the upper of their batch."""
    settings = patient.root / "mz.toml"
    settings.write_text(settings.read_text() + '[retention]\nkeep = "1 ms"\n')
    with Engine(Project.load(patient.root)) as engine:
        for number in range(3, 6):
            write(engine, number)
        lines = list(engine.compact())
        assert any("merged" in line for line in lines), lines
    assert examine(patient.root, deep=True).findings == ()


def test_nothing_is_found_while_the_project_is_at_work(patient: Patient) -> None:
    over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        number = 10
        try:
            with Engine(patient.project) as engine:
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
        found = [one for _ in range(6) for one in examine(patient.root, deep=True).findings]
    finally:
        over.set()
        worker.join(60)
    assert not failures
    # What a merge has just replaced waits for the sweep that follows it.
    assert [one for one in found if one.check != "batch-replaced"] == []


def test_on_the_command_line(patient: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--project", str(patient.root), "doctor"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "healthy"
    patient.sql("UPDATE timeline SET read_ts = 7")
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "broken: timeline" in said
    assert "could land at a time that was read already" in said
    assert "--repair" in said
    assert main([*command, "--repair", "--deep"]) == 0
    assert "repair: the oracle of timeline" in capsys.readouterr().out
    (patient.root / "mz.toml").write_text("[")
    assert main(command) == 1
