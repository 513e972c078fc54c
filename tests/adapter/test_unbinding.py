"""A source of files goes on without files that changed, or went, between their tick and their step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine
from mz_dagster.adapter.engine import SecondRunner
from mz_dagster.catalog import Leadership, LeadershipLost, LedByAnother
from mz_dagster.operations.doctor import examine
from mz_dagster.operations.rereading import reread
from tests.opened import opened


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "in").mkdir()
    with opened(tmp_path) as connection:
        connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 'in') FORMAT CSV")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS total FROM s")
        yield connection


def land(root: Path, name: str, *numbers: int) -> None:
    (root / "in" / name).write_text("\n".join(["a", *map(str, numbers), ""]))


def poll(engine: Engine) -> int:
    tick = engine.poll("default").tick
    assert tick is not None
    return tick


def view(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT n, total FROM v").fetchall()


def test_what_is_there_now_is_read_and_what_was_read_stays(connection: Connection, tmp_path: Path) -> None:
    engine, id = connection.engine, connection.engine.collection_of("s")
    land(tmp_path, "0.csv", 100)
    assert view(connection) == [(1, 100)]
    for name, number in (("1.csv", 1), ("2.csv", 2), ("3.csv", 3)):
        land(tmp_path, name, number)
    tick = poll(engine)
    land(tmp_path, "1.csv", 10, 20)
    (tmp_path / "in" / "2.csv").unlink()
    assert "has changed" in str(engine.step("default", tick).failures[0].error)
    assert "ALTER SOURCE ... RESET" in str(engine.poll("default").failures[id])
    connection.execute("ALTER SOURCE s RESET")
    message = str(connection.messages[-1][1])
    assert 'source "s" goes on without 2 files that it had not read yet' in message
    assert '"1.csv": It had 4 bytes and has 8.' in message
    assert '"2.csv": The file is gone' in message
    assert view(connection) == [(4, 133)], "1.csv as it is now, and 3.csv, which had not changed"
    assert [[file.path for file in one.files] for one in engine.catalog.bindings(id)] == [
        ["0.csv"],
        ["3.csv"],
        ["1.csv"],
    ]
    connection.execute("ALTER SOURCE s RESET")
    assert "goes on without 0 files" in str(connection.messages[-1][1])
    land(tmp_path, "2.csv", 1000)
    assert view(connection) == [(5, 1133)]
    assert examine(tmp_path, deep=True).findings == ()
    assert reread(engine, "s").files == 4
    assert view(connection) == [(5, 1133)]


def test_what_a_step_has_read_before_is_not_sealed_behind(connection: Connection, tmp_path: Path) -> None:
    engine, id = connection.engine, connection.engine.collection_of("s")
    land(tmp_path, "1.csv", 1)
    poll(engine)
    with engine.lead("default") as lead:
        assert isinstance(lead, Leadership)
        with pytest.raises(SecondRunner, match="is led by"):
            connection.execute("ALTER SOURCE s RESET")
    with engine.lead("default") as other:
        assert not isinstance(other, LedByAnother)
        assert isinstance(engine.catalog.unbind(id, ["1.csv"], lead), LeadershipLost)
    assert view(connection) == [(1, 1)]
    with engine.lead("default") as lead:
        assert isinstance(lead, Leadership)
        assert engine.catalog.unbind(id, ["1.csv"], lead) == 0, "it is sealed"
    assert engine.catalog.bound_files(id).keys() == {"1.csv"}
