"""What is inlined is as well kept as what is in files: damage is found and named, and has its way back."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project
from mz_dagster.catalog import BatchState, Catalog
from mz_dagster.cli import main
from mz_dagster.errors import DamageError, Error, OperationalError
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.storage import PayloadDamaged
from tests.cli.raw_catalog import copied, raw, url_of
from tests.cli.small_project import Contents, contents, make_project, write
from tests.postgres_server import Postgres

ON_BOTH = pytest.mark.parametrize("healthy", ["sqlite", "postgresql"], indirect=True)
"""Has a test run on both catalogs, and not only when the deep ones do."""


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)])
def healthy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Contents, Postgres | None]:
    """A project all of whose batches are inlined, what is in it, and where its catalog is, unless it is SQLite."""
    root = tmp_path_factory.mktemp("inlined") / "project"
    server: Postgres | None = None if request.param == "sqlite" else request.getfixturevalue("postgres_server")
    settings = "" if server is None else f"[catalog]\nurl = '{url_of(server.new_database())}'\n"
    project = make_project(root, settings, inline_rows=1_000)
    assert not list(root.rglob("*.parquet"))
    return root, contents(project), server


@pytest.fixture
def root(healthy: tuple[Path, Contents, Postgres | None], tmp_path: Path) -> Path:
    return copied(healthy[0], tmp_path / "project", healthy[2])


@pytest.fixture
def whole(healthy: tuple[Path, Contents, Postgres | None]) -> Contents:
    """What is in the project."""
    return healthy[1]


def sql(root: Path, statement: str, *values: object) -> None:
    with raw(root) as execute:
        execute(statement, *values)


def first_batch(root: Path, name: str) -> int:
    catalog = Catalog.open_made(Project.load(root).catalog_url)
    assert catalog is not None
    with catalog:
        found = catalog.resolve_name(name)
        assert found is not None
        return int(catalog.batches(found.id, BatchState.LIVE)[0].id)


def flip(root: Path, batch: int, bit: int) -> None:
    """Flips a bit of a payload."""
    with raw(root) as execute:
        ((payload,),) = execute("SELECT payload FROM inlined WHERE batch = ?", batch).fetchall()
        changed = bytearray(payload)
        changed[bit // 8 % len(changed)] ^= 1 << bit % 8
        execute("UPDATE inlined SET payload = ? WHERE batch = ?", bytes(changed), batch)


def gone(root: Path, batch: int) -> None:
    sql(root, "DELETE FROM inlined WHERE batch = ?", batch)


def cut(root: Path, batch: int) -> None:
    sql(root, "UPDATE inlined SET payload = substr(payload, 1, 9) WHERE batch = ?", batch)


@ON_BOTH
def test_it_is_healthy_backed_up_and_restored(root: Path, whole: Contents, tmp_path: Path) -> None:
    assert examine(root, deep=True).findings == ()
    backup(Project.load(root), tmp_path / "backup")
    restored = restore(tmp_path / "backup", tmp_path / "restored")
    assert contents(Project.load(restored.root)) == whole
    assert examine(restored.root, deep=True).findings == ()


def test_a_flipped_bit_is_never_read_as_other_data(root: Path, whole: Contents) -> None:
    batch, project = first_batch(root, "t"), Project.load(root)
    chance = random.Random(20)
    for bit in (chance.randrange(8 * 300) for _ in range(40)):
        flip(root, batch, bit)
        with pytest.raises(PayloadDamaged, match=f'batch {batch} of "u2"') as caught:
            contents(project, ["t"])
        assert caught.value.sqlstate == "XX001"
        flip(root, batch, bit)
    assert contents(project) == whole


BREAKS = [
    ("payload-content", lambda root, batch: flip(root, batch, 99), "not what was written"),
    ("payload-content", cut, "It has 9 bytes"),
    ("payload-missing", gone, "has no updates of it"),
]


@pytest.mark.parametrize(
    ("healthy", "check", "damage", "says"),
    [
        *(("sqlite", *one) for one in BREAKS),
        ("postgresql", *BREAKS[0]),
        *(pytest.param("postgresql", *one, marks=pytest.mark.deep) for one in BREAKS[1:]),
    ],
    indirect=["healthy"],
)
def test_the_doctor_names_a_damaged_payload_and_puts_it_back_from_a_backup(
    root: Path,
    tmp_path: Path,
    check: str,
    damage: Callable[[Path, int], object],
    says: str,
) -> None:
    project, batch = Project.load(root), first_batch(root, "t")
    backup(project, tmp_path / "backup")
    with Engine(project) as engine:
        write(engine, 3)  # which the backup has not
    whole = contents(project)
    damage(root, batch)
    with pytest.raises((DamageError, OperationalError)):
        contents(project)
    with pytest.raises(Error):
        backup(project, tmp_path / "of damaged")
    (found,) = examine(root).findings
    assert (found.check, found.batch) == (check, batch)
    assert f'batch {batch} of table "t"' in str(found)
    assert says in str(found)
    assert "doctor --from-backup" in str(found)
    command = ["--project", str(root), "doctor", "--from-backup", str(tmp_path / "backup")]
    assert main(command) == 0
    assert contents(project) == whole
    kept = list((root / ".mz" / "quarantine").rglob("*.arrow"))
    assert [one.name for one in kept] == ([] if check == "payload-missing" else [f"{batch}.arrow"])


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM batch WHERE id = (SELECT min(id) FROM batch WHERE collection = 'u2')",
        "UPDATE batch SET state = 'replaced' WHERE id = (SELECT min(id) FROM batch WHERE collection = 'u2')",
        "UPDATE batch SET rows = 9 WHERE id = (SELECT min(id) FROM batch WHERE collection = 'u2')",
        "UPDATE batch SET file_list = NULL WHERE id = (SELECT min(id) FROM batch WHERE collection = 'u2')",
    ],
)
def test_a_batch_is_put_back_on_its_list(root: Path, whole: Contents, damage: str) -> None:
    sql(root, damage)
    (found,) = examine(root).findings
    assert found.check == "list-damaged"
    assert examine(root, repair=True).findings == ()
    assert contents(Project.load(root)) == whole


@ON_BOTH
def test_a_payload_of_no_batch_goes_to_the_quarantine(root: Path, whole: Contents) -> None:
    sql(root, "INSERT INTO inlined SELECT 900, payload FROM inlined LIMIT 1")
    (found,) = examine(root).findings
    assert found.check == "payload-stray"
    assert [one.check for one in examine(root, repair=True).findings] == ["quarantine"]
    assert [one.name for one in (root / ".mz" / "quarantine").rglob("*.arrow")] == ["900.arrow"]
    assert contents(Project.load(root)) == whole


def test_a_view_whose_payload_is_damaged_is_rebuilt(root: Path, whole: Contents) -> None:
    gone(root, first_batch(root, "m"))
    (found,) = examine(root).findings
    assert "mz-dagster rebuild m" in str(found)


def test_merges_move_what_has_grown_to_files_and_leave_nothing_behind(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", '[retention]\nkeep = "1 ms"\n', inline_rows=5)
    with Engine(project) as engine:
        for number in range(3, 6):
            write(engine, number)
        lines = list(engine.compact())
        assert any("merged" in line for line in lines), lines
        batches = [one for row in engine.catalog.collections() for one in engine.catalog.batches(row.id)]
        inlined = {one.id for one in batches if one.stats.inlined is not None}
        assert {one["batch"] for one in engine.catalog.records()["inlined"]} == inlined
        assert any(one.stats.files for one in batches)
        assert inlined
    assert examine(project.root, deep=True).findings == ()
