"""Each table of the catalog, emptied or dropped: the doctor says so, nothing is answered from what is left, and a
backup makes the project what it was.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog.schema import METADATA
from mz_dagster.cli import main
from mz_dagster.errors import Error
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import Severity, examine
from tests.cli.raw_catalog import copied, raw, url_of
from tests.cli.small_project import Contents, contents, make_project, write
from tests.postgres_server import Postgres

#: What is empty here anyway: nobody holds, reads or computes anything, nothing was dropped or is inlined, no source is
#: a table, and there are no roles.
EMPTY = {
    "lease", "leased_batch", "writer", "capability", "tombstone", "inlined", "role", "membership", "bound_offset",
    "compute_replica",
}  # fmt: skip
LOST = [
    (table, how)
    for table in (*(one.name for one in METADATA.sorted_tables), "alembic_version")
    for how in ("emptied", "dropped")
    if not (how == "emptied" and table in EMPTY)
]
SAMPLE = {
    "sqlite": {("bound_file", "emptied"), ("collection", "dropped")},
    "postgresql": set[tuple[str, str]](),
}
#: What can be answered without it, or is told by others, so that reads go on.
NOT_READ = {"tick", "hold", "counter", "role"}


class Small:
    """Is a small project that nobody changes, its backup, and what is in it."""

    def __init__(self, folder: Path, server: Postgres | None) -> None:
        self.server = server
        self.root = folder / "project"
        settings = "" if server is None else f"[catalog]\nurl = '{url_of(server.new_database())}'\n"
        project = make_project(self.root, settings)
        with Engine(project) as engine:
            Session(engine).execute("CREATE TABLE n (id integer GENERATED ALWAYS AS IDENTITY, a integer)")
        self.backup = folder / "backup"
        backup(project, self.backup)
        self.contents: Contents = contents(project)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("small"), None)


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres_server: Postgres) -> Small:
    return Small(tmp_path_factory.mktemp("small"), postgres_server)


def test_what_is_emptied_held_something(on_sqlite: Small) -> None:
    with raw(on_sqlite.root) as execute:
        counts = {one.name: execute(f"SELECT count(*) FROM {one.name}").fetchone() for one in METADATA.sorted_tables}
    assert {name for name, count in counts.items() if count == (0,)} == EMPTY


@pytest.mark.parametrize(
    ("database", "table", "how"),
    [
        pytest.param(database, *lost, marks=() if lost in SAMPLE[database] else pytest.mark.deep)
        for database in SAMPLE
        for lost in LOST
    ],
)
def test_a_lost_table_is_found_never_answered_from_and_comes_back(
    database: str, table: str, how: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    small: Small = request.getfixturevalue(f"on_{database}")
    root = copied(small.root, tmp_path / "project", small.server)
    with raw(root) as execute:
        execute(f"DELETE FROM {table}" if how == "emptied" else f"DROP TABLE {table}" + " CASCADE" * bool(small.server))
    found = examine(root)
    breaks = [one for one in found.findings if one.severity is Severity.BREAK]
    assert breaks
    told = " ".join(map(str, breaks))
    assert "recover" in told or "--repair" in told or "rebuild" in told or "mz-dagster reread" in told, told
    for name, whole in small.contents.items():
        rows = None
        with suppress(Error), Engine(Project.load(root)) as engine:
            rows = sorted(map(repr, Session(engine).execute(f"SELECT a, b FROM {name}").rows))
        if rows is not None or (table in NOT_READ and how == "emptied"):
            assert rows == sorted(map(repr, whole[max(whole)].elements()))
    assert main(["--project", str(root), "recover", "--damaged", str(small.backup)]) == 0
    project = Project.load(root)
    assert contents(project) == small.contents
    assert {one.check for one in examine(root, deep=True).findings} <= {"quarantine"}
    with Engine(project) as engine:
        write(engine, 7)
        assert engine.poll("default").files == 0
