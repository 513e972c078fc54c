"""In a process that goes on, a step decodes nothing that the last one read or wrote; the rows are the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mz_dagster.adapter import BadSettings, Connection, Engine, Isolation, Project
from mz_dagster.compute.step import stepper
from mz_dagster.compute.step.turns import Turn, Turns
from mz_dagster.errors import InternalError
from tests.budgets import SetBudget
from tests.sparkless import refused

VIEWS = {
    "summed": "SELECT u.name, count(*) AS n, sum(t.v) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.name",
    "newest": "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v DESC",
    "ranked": "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS place FROM t",
}


def fill(connection: Connection) -> None:
    """Makes the tables that the views read, one of them as large as the other."""
    rows = ", ".join(f"({n % 25}, {n})" for n in range(200))
    connection.execute("CREATE TABLE t (k integer, v integer)")
    connection.execute("CREATE TABLE u (k integer, name text)")
    connection.execute(f"INSERT INTO u SELECT k, chr(97 + k % 5) FROM (VALUES {rows}) AS s (k, v)")
    connection.execute(f"INSERT INTO t VALUES {rows}")


def history(root: Path, hot_bytes: int | None) -> tuple[list[int], list[object]]:
    """Returns how many rows each step decoded, and what the views held after it."""
    root.mkdir()
    reads = "" if hot_bytes is None else f"[reads]\nhot_bytes = {hot_bytes}\n"
    (root / "mz.toml").write_text(f"[writes]\ninline_rows = 0\n{reads}")
    dice, decoded, seen = random.Random(7), list[int](), list[object]()
    with (
        Engine(Project.load(root), session=refused) as engine,
        Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
    ):
        connection.execute("CREATE TABLE t (k integer, v integer)")
        connection.execute("CREATE TABLE u (k integer, name text)")
        connection.execute(f"INSERT INTO u VALUES {', '.join(f'({n}, chr({97 + n % 5}))' for n in range(20))}")
        connection.execute(f"INSERT INTO t VALUES {', '.join(f'({n % 25}, {n})' for n in range(200))}")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for number in range(3):
            before = engine.shards.rows_decoded
            if number == 1:
                connection.execute(f"DELETE FROM t WHERE k = {dice.randrange(25)}")
            connection.execute(f"INSERT INTO t VALUES ({dice.randrange(25)}, {dice.randrange(999)})")
            seen += [sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in VIEWS]
            decoded.append(engine.shards.rows_decoded - before)
        for name, query in VIEWS.items():
            assert seen[-len(VIEWS) + list(VIEWS).index(name)] == sorted(connection.execute(query).fetchall())
    return decoded, seen


def test_a_step_decodes_nothing_that_is_in_memory(tmp_path: Path, set_budget: SetBudget) -> None:
    set_budget(whole_rows=0)
    cold, without = history(tmp_path / "cold", 0)
    hot, within = history(tmp_path / "hot", None)
    assert without == within
    assert min(cold) > 200
    assert hot == [0] * len(cold)


@pytest.mark.parametrize("decoded_bytes", [0, pytest.param(10**8, marks=pytest.mark.deep)])
def test_the_first_step_of_a_process_maps_what_others_have_decoded(
    tmp_path: Path, set_budget: SetBudget, decoded_bytes: int
) -> None:
    set_budget(whole_rows=0, decoded_rows=0)
    (tmp_path / "mz.toml").write_text(f"[writes]\ninline_rows = 0\n[reads]\ndecoded_bytes = {decoded_bytes}\n")
    decoded = list[int]()
    for number in range(4):
        with (
            Engine(Project.load(tmp_path), session=refused) as engine,
            Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
        ):
            if not number:
                fill(connection)
                for name, query in VIEWS.items():
                    connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            connection.execute(f"INSERT INTO t VALUES ({number}, {number})")
            found = {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in VIEWS}
            decoded.append(engine.shards.rows_decoded)
            assert found == {name: sorted(connection.execute(query).fetchall()) for name, query in VIEWS.items()}
    assert min(decoded[1:3]) > 1_000, "the second reads the files, the third what it keeps of them"
    assert decoded[3] > 1_000 if decoded_bytes == 0 else decoded[3] < 100
    assert (tmp_path / ".mz" / "decoded").exists() == (decoded_bytes > 0)


@pytest.mark.parametrize("decoded_bytes", [0, 10**8])
def test_what_is_much_to_decode_is_sparks_unless_it_finds_room_on_disk(
    tmp_path: Path, set_budget: SetBudget, decoded_bytes: int
) -> None:
    (tmp_path / "mz.toml").write_text(f"[writes]\ninline_rows = 0\n[reads]\ndecoded_bytes = {decoded_bytes}\n")
    for number in range(3):
        with (
            Engine(Project.load(tmp_path), session=refused) as engine,
            Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
        ):
            if not number:
                fill(connection)
                connection.execute(f"CREATE MATERIALIZED VIEW summed AS {VIEWS['summed']}")
                continue
            set_budget(whole_rows=0, decoded_rows=0, decoded_cells=0)
            connection.execute(f"INSERT INTO t VALUES ({number}, {number})")
            if decoded_bytes:
                found = sorted(connection.execute("SELECT * FROM summed").fetchall())
                assert (engine.shards.rows_decoded > 200) == (number == 1)
                set_budget(decoded_cells=10**9)
                assert found == sorted(connection.execute(VIEWS["summed"]).fetchall())
            else:
                with pytest.raises(InternalError, match="Spark is not needed"):
                    connection.execute("SELECT * FROM summed")


def test_little_is_stepped_alone_once_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    alone: list[bool] = []

    def noted(turns: Turns, *, is_alone: bool) -> Turn:
        alone.append(is_alone)
        return Turn(turns, is_alone=is_alone)

    monkeypatch.setattr(stepper, "Turn", noted)
    with (
        Engine(Project.load(tmp_path), session=refused) as engine,
        Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
    ):
        connection.execute("CREATE TABLE t (k integer, v integer)")
        connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        for rows, is_alone in (1, False), (1, True), (5, False), (1, True):
            set_budget(serial_rows=4)
            alone.clear()
            connection.execute(f"INSERT INTO t VALUES {', '.join(['(1, 2)'] * rows)}")
            connection.execute("SELECT * FROM sums").fetchall()
            assert alone
            assert alone[0] == is_alone


def test_the_setting_is_a_number(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[reads]\nhot_bytes = -1\n")
    with pytest.raises(BadSettings, match=r"reads\.hot_bytes"):
        Project.load(tmp_path)
