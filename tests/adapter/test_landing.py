"""What may become of files that a source has read: needed until they are sealed, and then forgotten bit by bit.

What a step would write is appended by hand, so none needs Spark.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source.folder import hash_file
from tests.cli.small_project import append

TIMELINE = "default"


def opened(root: Path) -> Engine:
    engine = Engine(Project.load(root))
    engine.apply()
    return engine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "landing").mkdir()
    sql = "CREATE SOURCE s (a integer, b text) FROM FILES (FOLDER 'landing') FORMAT JSON"
    (tmp_path / "assets" / "s.sql").write_text(sql)
    (tmp_path / "mz.toml").write_text("[retention]\nkeep = '0 ms'\n")
    return tmp_path


@pytest.fixture
def engine(root: Path) -> Iterator[Engine]:
    with opened(root) as engine:
        yield engine


def drop(engine: Engine, name: str, a: int = 1) -> Path:
    path = engine.project.root / "landing" / name
    path.write_text(f'{{"a": {a}, "b": "x"}}\n')
    return path


def bind(engine: Engine) -> int:
    """Polls, and returns the tick of what is new."""
    poll = engine.poll(TIMELINE)
    assert not poll.failures, poll.reason
    assert poll.tick is not None
    return poll.tick


def seal(engine: Engine, tick: int) -> None:
    append(engine, "s", [((1, "x"), tick, 1)], tick + 1)


def failure(engine: Engine) -> Error | None:
    poll = engine.poll(TIMELINE)
    return next(iter(poll.failures.values()), None)


def source(engine: Engine) -> GlobalId:
    return engine.collection_of("s")


def test_a_file_may_go_once_it_is_sealed_and_is_not_bound_again_if_it_comes_back(engine: Engine, root: Path) -> None:
    path = drop(engine, "1.jsonl")
    tick = bind(engine)
    content = path.read_bytes()
    path.unlink()
    gone = failure(engine)
    assert gone is not None, "a step has yet to read it"
    assert "1.jsonl" in gone.message
    path.write_bytes(content)
    assert failure(engine) is None
    seal(engine, tick)
    path.unlink()
    assert failure(engine) is None
    drop(engine, "2.jsonl")
    seal(engine, bind(engine))
    path.write_bytes(content)
    with opened(root) as another:
        assert another.poll(TIMELINE).files == 0
    engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
    assert engine.poll(TIMELINE).files == 0, "nor once it is retired"


def test_a_setting_says_for_how_long_files_have_to_stay(engine: Engine, root: Path) -> None:
    path = drop(engine, "1.jsonl")
    seal(engine, bind(engine))
    (root / "mz.toml").write_text("[sources]\nexpect_files = '1 d'\n")
    with opened(root) as strict:
        assert failure(strict) is None
        path.unlink()
        gone = failure(strict)
        assert gone is not None
        assert "1.jsonl" in gone.message
    assert failure(engine) is None


@pytest.mark.parametrize("sealed", [False, True])
def test_a_file_rewritten_in_its_size_is_noticed_by_every_process(sealed: bool, engine: Engine, root: Path) -> None:
    path = drop(engine, "1.jsonl", a=1)
    tick = bind(engine)
    if sealed:
        append(engine, "s", [((1, "x"), tick, 1)], tick + 1)
    was = path.stat()
    path.write_text(path.read_text().replace("1", "2"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))  # as tools do that keep times
    assert path.stat().st_size == was.st_size
    for _ in range(2):
        with opened(root) as another:
            changed = failure(another)
            assert changed is not None
            assert "has changed" in changed.message
    drop(engine, "1.jsonl", a=1)
    assert failure(engine) is None, "it is as it was"


class Looks:
    """Counts looks at files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stats, self.hashes = 0, 0
        stat = os.stat

        def counted_stat(*args: Any, **named: Any) -> Any:
            self.stats += str(args[0]).endswith(".jsonl")
            return stat(*args, **named)

        def counted_hash(*args: Any) -> Any:
            self.hashes += 1
            return hash_file(*args)

        monkeypatch.setattr(os, "stat", counted_stat)
        monkeypatch.setattr("mz_dagster.storage.source.folder.hash_file", counted_hash)


def test_a_poll_looks_at_no_file_that_is_retired_and_hashes_none_that_nobody_touched(
    engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        drop(engine, f"{number}.jsonl")
    seal(engine, bind(engine))
    looks = Looks(monkeypatch)
    with opened(root) as another:
        assert failure(another) is None
        assert (looks.stats, looks.hashes) == (20, 0)
    drop(engine, "new.jsonl")
    seal(engine, bind(engine))
    engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
    looks.stats = looks.hashes = 0
    with opened(root) as another:
        assert failure(another) is None
        assert looks.stats <= 2, "of the newest tick alone"
        assert looks.hashes == 0


def test_what_an_older_version_bound_is_hashed_once(
    engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(engine, "1.jsonl")
    seal(engine, bind(engine))
    with closing(sqlite3.connect(root / ".mz" / "catalog.sqlite")) as connection, connection:
        connection.execute("UPDATE bound_file SET identity = NULL")
    looks = Looks(monkeypatch)
    for _ in range(2):
        with opened(root) as another:
            assert failure(another) is None
    assert looks.hashes == 1
