"""A process that opens a project again and again loads and applies it anew only if something changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import BadProjectFile, Engine, Project, Session, apply_changes, applying
from mz_dagster.adapter.project_files import load_project
from mz_dagster.budget import Budget, budget_of

TABLE = "CREATE TABLE t (a integer, b integer);"
VIEW = "CREATE MATERIALIZED VIEW m AS SELECT a, sum(b) AS s FROM t GROUP BY a;"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose files are as old as they seem."""
    monkeypatch.setattr("mz_dagster.disk._SETTLED_MS", 0)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text(TABLE)
    (tmp_path / "assets" / "m.sql").write_text(VIEW)
    return Project.load(tmp_path)


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines by which the project was applied."""
    found: list[Engine] = []
    real = applying.apply_project

    def counted(engine: Engine) -> object:
        found.append(engine)
        return real(engine)

    monkeypatch.setattr(applying, "apply_project", counted)
    return found


def opened(project: Project) -> list[str]:
    """Opens a project as Dagster's processes do; returns what it has."""
    with Engine(project) as engine:
        apply_changes(engine)
        assert engine.faults() == ()
        return sorted(str(row.name) for row in engine.catalog.objects() if row.kind != "arrangement")


def rewrite(path: Path, text: str) -> None:
    """Writes a file in place, with the times that it had."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_did_not_change_is_applied_once(project: Project, applied: list[Engine]) -> None:
    assert opened(project) == ["m", "t"]
    assert opened(project) == ["m", "t"]
    seen = len(applied)
    assert seen == 2, "the first has changed the catalog"
    with Engine(project) as engine:
        apply_changes(engine)
        Session(engine).execute("INSERT INTO t VALUES (1, 2)")
        assert Session(engine).execute("SELECT * FROM m").rows == ((1, 2),)
    assert opened(project) == ["m", "t"]
    assert len(applied) == seen


def test_each_change_is_applied(project: Project, applied: list[Engine]) -> None:
    """Of a file, even in as many bytes and with its time; of which there are; of the catalog; of the settings."""
    for _ in range(2):
        opened(project)
    view = project.assets / "m.sql"
    rewrite(view, VIEW.replace("sum", "max"))
    opened(project)
    with Engine(project) as engine:
        row = engine.catalog.resolve_name("m")
        assert row is not None
        assert "max" in row.sql
    (project.assets / "n.sql").write_text(VIEW.replace("m AS", "n AS"))
    assert opened(project) == ["m", "n", "t"]
    (project.assets / "n.sql").unlink()
    for _ in range(2):
        assert opened(project) == ["m", "n", "t"], "it is still read, and said to be an orphan"
    with Engine(project) as engine:
        Session(engine).execute("DROP MATERIALIZED VIEW m")
    assert opened(project) == ["m", "n", "t"], "it is made again"
    opened(project)
    seen = len(applied)
    opened(project)
    assert len(applied) == seen
    opened(replace(project, retention_ms=5000))
    assert len(applied) == seen + 1


def test_what_is_wrong_is_told_at_each_use(project: Project) -> None:
    for _ in range(2):
        opened(project)
    (project.assets / "m.sql").write_text(VIEW.replace("sum(b)", "sum(c)"))
    for _ in range(3):
        with Engine(project) as engine:
            with pytest.raises(BadProjectFile, match='column "c" does not exist'):
                apply_changes(engine)
            assert len(engine.faults()) == 1
    (project.assets / "m.sql").write_text(VIEW)
    assert opened(project) == ["m", "t"]


def test_young_files_are_read_again(project: Project, applied: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be written once more within what their times tell apart."""
    monkeypatch.setattr("mz_dagster.disk._SETTLED_MS", 3_600_000)
    for _ in range(3):
        opened(project)
    assert len(applied) == 3
    assert load_project(project) is not load_project(project)


def test_files_are_loaded_once(project: Project) -> None:
    """As long as they are those, and are planned as they were."""
    first = load_project(project)
    assert load_project(project) is first
    with budget_of(Budget(compared_constants=1)):
        assert load_project(project) is not first
    rewrite(project.assets / "m.sql", VIEW.replace("sum", "max"))
    changed = load_project(project)
    assert changed is not first
    assert "max" in changed.objects[-1].definition.text
    assert load_project(project, {project.assets / "m.sql": VIEW}).objects == first.objects
    assert load_project(project) is changed
