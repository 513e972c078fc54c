"""The ways back that the doctor names are run: for each corruption that no repair mends, one of them is a way back.

A way that does not help may leave things as they are, but never makes anything up.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mz_dagster.adapter import Project
from mz_dagster.cli import main
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from tests.cli.raw_catalog import copied, raw, url_of
from tests.cli.small_project import Contents, contents, make_project
from tests.cli.test_doctor import CASES, Corruption, DamagedProject
from tests.postgres_server import Postgres


@dataclass(frozen=True, slots=True)
class Sound:
    """Is a project that nobody changes, what is in it, and its backup."""

    root: Path
    saved: Path
    whole: Contents
    server: Postgres | None


def made(folder: Path, server: Postgres | None) -> Sound:
    settings = "" if server is None else f"[catalog]\nurl = '{url_of(server.new_database())}'\n"
    project = make_project(folder / "project", settings)
    backup(project, folder / "backup")
    return Sound(project.root, folder / "backup", contents(project), server)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return made(tmp_path_factory.mktemp("sound"), None)


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres_server: Postgres) -> Sound:
    return made(tmp_path_factory.mktemp("sound"), postgres_server)


def run(root: Path, *command: str) -> int:
    return main(["--project", str(root), *command])


def files_put_back(root: Path, sound: Sound) -> None:
    shutil.copytree(sound.root / "landing", root / "landing", dirs_exist_ok=True)


def value_put_back(table: str, column: str) -> Callable[[Path, Sound], None]:
    """Returns what gives a table's only row the value that it had."""

    def put_back(root: Path, sound: Sound) -> None:
        with raw(sound.root) as execute:
            ((value,),) = execute(f"SELECT {column} FROM {table}").fetchall()
        with raw(root) as execute:
            execute(f"UPDATE {table} SET {column} = ?", value)

    return put_back


#: What people correct by hand, as they are told to; what they cannot correct because it is gone, they drop.
BY_HAND: dict[str, Callable[[Path, Sound], object]] = {
    "settings-unreadable": lambda root, sound: shutil.copy(sound.root / "mz.toml", root),
    "project-files": lambda root, _: (root / "assets" / "bad.sql").unlink(),
    "bound-file-missing": files_put_back,
    "bound-file-changed": files_put_back,
    "shards-of-another": value_put_back("project", "id"),
    "catalog-version": value_put_back("alembic_version", "version_num"),
    "needs-dropped": lambda root, _: run(root, "sql", "-c", "DROP MATERIALIZED VIEW m"),
}
#: The commands that the doctor may name, those first that change least.
COMMANDS: dict[str, Callable[[Path, str, Path], object]] = {
    "mz-dagster rebuild": lambda root, name, _: run(root, "rebuild", name),
    "doctor --from-backup": lambda root, _, saved: run(root, "doctor", "--from-backup", str(saved)),
    "mz-dagster recover": lambda root, _, saved: run(root, "recover", "--damaged", str(saved)),
}
RESTORED = "restore the backup"

UNMENDED = [one for one in CASES if not one.mended and CHECKS[one.check].severity is Severity.BREAK]
#: One for each way; the others are deep.
SAMPLE = ("since-beyond-output", "file-content", "bound-file-missing")


def is_well(root: Path, whole: Contents, besides: str = "") -> bool:
    """Returns whether the doctor finds nothing broken, after checking that what is read then is what there was."""
    if any(one.severity is Severity.BREAK for one in examine(root, deep=True).findings):
        return False
    names = [name for name in whole if name != besides]
    found = contents(Project.load(root), names)
    for name in names:
        assert found[name][max(found[name])] == whole[name][max(whole[name])], name
    return True


def test_fifty_kinds_of_damage_are_planted_each_with_its_way_back() -> None:
    assert len(CASES) >= 50
    assert all(one.mended or one in UNMENDED or CHECKS[one.check].severity is Severity.NOTE for one in CASES)


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=f"{one.check}-{number}", marks=() if one.check in SAMPLE else pytest.mark.deep)
        for number, one in enumerate(UNMENDED)
    ],
)
def test_one_of_the_ways_that_are_named_leads_back(
    request: pytest.FixtureRequest, tmp_path: Path, one: Corruption, database: str
) -> None:
    if database == "postgresql" and one.check == "catalog-unreadable":
        return  # there is no file
    sound: Sound = request.getfixturevalue(f"on_{database}")
    root = copied(sound.root, tmp_path / "project", sound.server)
    settings = (root / "mz.toml").read_text()
    one.plant(DamagedProject(root))
    broken = [each for each in examine(root, deep=True).findings if each.severity is Severity.BREAK]
    assert one.check in {each.check for each in broken}
    if one.check in BY_HAND:
        BY_HAND[one.check](root, sound)
        if one.check == "settings-unreadable":
            (root / "mz.toml").write_text(settings)  # on PostgreSQL the catalog has another name
        assert is_well(root, sound.whole, "m" if one.check == "needs-dropped" else "")
        return
    told = " ".join(map(str, broken))
    named = [command for command in COMMANDS if command in told]
    assert named or RESTORED in told, told
    for command in named:
        for name in [each for each in ("m", "p") if f'"{each}"' in told] or ["t"]:
            COMMANDS[command](root, name, sound.saved)
        if is_well(root, sound.whole):
            return
    assert RESTORED in told, f"none of {named} led back: {told}"
    assert main(["restore", str(sound.saved), str(tmp_path / "restored")]) == 0
    assert is_well(tmp_path / "restored", sound.whole)
