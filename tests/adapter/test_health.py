"""One unhealthy object keeps back itself and what depends on it, says why everywhere, and heals by itself.

Whatever is wrong with one of them, each test has a table with a view that goes on. None needs Spark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.catalog import BoundFile
from mz_dagster.cli import main
from mz_dagster.compute import FailedNode, Outcome, StepReport
from mz_dagster.errors import Error, OperationalError
from mz_dagster.operations.doctor import examine
from tests.errors import says_what_to_do

TIMELINE = "default"


@pytest.fixture
def engine(sparkless: Connection, tmp_path: Path) -> Engine:
    """Sources `s` and `quiet` in folders of their own, `v` over `s`, `w` over `v`; table `t` and `m` over it."""
    for name in ("s", "quiet"):
        (tmp_path / name).mkdir()
        sparkless.execute(f"CREATE SOURCE {name} (a integer) FROM FILES (FOLDER '{name}') FORMAT CSV")
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE a > 1")
    sparkless.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v")
    return sparkless.engine


Move = Callable[[], StepReport]


@pytest.fixture
def move(engine: Engine, sparkless: Connection) -> Move:
    """Writes to the table, polls and steps to the newest tick."""

    def moved() -> StepReport:
        sparkless.execute("INSERT INTO t VALUES (1)")
        engine.poll(TIMELINE)
        return engine.step(TIMELINE, engine.unsealed_ticks(TIMELINE)[-1])

    return moved


def outcomes(report: StepReport) -> dict[str, Outcome]:
    return {one.name: one.outcome for one in report.collections if one.owner is None}


def findings(root: Path) -> dict[str, str]:
    return {one.check: str(one) for one in examine(root).findings}


def gone(folder: Path) -> None:
    folder.rmdir()


def wrong_header(folder: Path) -> None:
    (folder / "1.csv").write_text("b\n1\n")


def not_a_folder(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (wrong_header, "1.csv"),
        pytest.param(gone, "does not exist", marks=pytest.mark.deep),
        pytest.param(not_a_folder, "is not a folder", marks=pytest.mark.deep),
    ],
)
def test_a_source_that_cannot_be_polled_stays_behind_alone_and_heals_by_itself(
    harm: Callable[[Path], None],
    says: str,
    engine: Engine,
    move: Move,
    sparkless: Connection,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not move().failures
    s = engine.collection_of("s")
    harm(tmp_path / "s")
    poll = engine.poll(TIMELINE)
    assert poll.changed == poll.failures.keys() == {s}
    assert says in poll.reason
    assert engine.poll(TIMELINE).changed == frozenset(), "told once"
    for _ in range(2):  # each write gets its tick, although the one before is open for the source
        report = move()
        expected = {"s": Outcome.FAILED, "v": Outcome.BLOCKED, "w": Outcome.BLOCKED, "quiet": Outcome.IDLE}
        found = outcomes(report)
        assert {name: found[name] for name in expected} == expected
        assert found["m"] is Outcome.ADVANCED
    assert sparkless.execute("SELECT count(*) FROM m").fetchall() == [(3,)]
    with pytest.raises(OperationalError) as caught:
        sparkless.execute("SELECT * FROM v")
    says_what_to_do(caught.value, '"s" could not be polled', says, "every poll tries again", "AS OF")
    told = findings(tmp_path)
    assert says in told["poll-failed"]
    assert 'waits for "s"' in told["input-behind"]
    main(["--project", str(tmp_path), "frontiers"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert says in lines["s"]
    assert 'waits for "s"' in lines["v"]
    assert 'waits for "s"' in lines["w"]
    assert "waits" not in lines["m"]

    if (tmp_path / "s").is_dir():
        (tmp_path / "s" / "1.csv").unlink()
    else:
        (tmp_path / "s").unlink(missing_ok=True)
        (tmp_path / "s").mkdir()
    assert engine.poll(TIMELINE).healed == {s}
    assert not move().failures
    assert engine.reasons() == {}
    assert not engine.unsealed_ticks(TIMELINE)
    assert sparkless.execute("SELECT n FROM w").fetchall() == [(0,)]
    assert not {"poll-failed", "step-failed", "input-behind"} & findings(tmp_path).keys()


def test_a_tick_of_files_of_one_source_is_minted_although_another_cannot_be_polled(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "s").rmdir()
    (tmp_path / "quiet" / "1.csv").write_text("a\n1\n")
    poll = engine.poll(TIMELINE)
    assert (poll.tick is not None, poll.files) == (True, 1)
    assert engine.catalog.bound_files(engine.collection_of("quiet"))


def test_a_bound_file_that_is_gone_stops_its_source_alone(engine: Engine, move: Move, tmp_path: Path) -> None:
    s = engine.collection_of("s")
    lost = BoundFile("lost.csv", 4, "0" * 64)
    last = engine.catalog.last_tick(TIMELINE)
    engine.catalog.mint_tick(TIMELINE, engine.catalog.write_ts(TIMELINE, 0), {s: [lost]}, last)
    report = move()
    assert outcomes(report)["m"] is Outcome.ADVANCED
    (failed,) = report.failures
    assert (failed.name, "lost.csv" in failed.reason) == ("s", True)


def spoil(root: Path, name: str, sql: str) -> None:
    """Makes a stored definition one that does not bind, as another version of the code may find it."""
    with closing(sqlite3.connect(root / ".mz" / "catalog.sqlite")) as connection, connection:
        done = connection.execute("UPDATE object SET sql = ? WHERE created_as = ?", (sql, name))
        assert done.rowcount == 1


@pytest.mark.parametrize("kind", ["v", "s"])
def test_an_object_that_binds_no_more_stays_behind_alone(
    kind: str, engine: Engine, move: Move, sparkless: Connection, tmp_path: Path
) -> None:
    assert not move().failures
    good = engine.catalog.object(engine.collection_of(kind)).sql
    spoil(tmp_path, kind, "CREATE MATERIALIZED VIEW v AS SELECT nobody FROM s")
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as other:
        opened = other.engine
        failed = [node.name for node in opened.graph(TIMELINE) if isinstance(node, FailedNode)]
        assert failed == [kind]
        other.execute("INSERT INTO t VALUES (1)")
        tick = opened.poll(TIMELINE).tick
        assert tick is not None
        found = outcomes(opened.step(TIMELINE, tick))
        behind = {"v": {"v": Outcome.FAILED, "w": Outcome.BLOCKED}, "s": {"s": Outcome.FAILED, "v": Outcome.BLOCKED}}
        assert behind[kind].items() <= found.items()
        assert found["m"] is Outcome.ADVANCED
        assert other.execute("SELECT count(*) FROM m").fetchall() == [(2,)]
        with pytest.raises(Error, match=r"nobody|does not bind|is no source|has lost what"):
            other.execute("SELECT * FROM w")
        assert "nobody" in opened.reasons()[opened.collection_of("w")] or kind == "s"
        if kind == "v":
            ((_, shown),) = other.execute("SHOW CREATE MATERIALIZED VIEW v").fetchall()
            assert shown.splitlines()[1] == "CREATE MATERIALIZED VIEW v AS SELECT nobody FROM s"
            assert shown.startswith("-- It does not bind"), "it can be read still, to be mended"
    assert ("cannot-be-planned" if kind == "v" else "poll-failed") in findings(tmp_path)
    spoil(tmp_path, kind, good)
    with Engine(Project.load(tmp_path)) as healed:
        healed.poll(TIMELINE)
        for tick in healed.unsealed_ticks(TIMELINE)[-1:]:
            assert not healed.step(TIMELINE, tick).failures
        assert healed.reasons() == {}


def test_a_collection_without_frontiers_is_an_error_at_once_and_the_others_go_on(
    engine: Engine, move: Move, sparkless: Connection, tmp_path: Path
) -> None:
    assert not move().failures
    v = engine.collection_of("v")
    with closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite")) as connection, connection:
        assert connection.execute("DELETE FROM collection WHERE id = ?", (v,)).rowcount == 1
    found = outcomes(move())
    assert found["m"] is Outcome.ADVANCED
    assert found["w"] is Outcome.FAILED
    assert "v" not in found
    started = engine.clock.monotonic_ms()
    for name in "vw":
        with pytest.raises(Error, match=v if name == "v" else 'no frontiers of "v"'):
            sparkless.execute(f"SELECT * FROM {name}")
    with pytest.raises(Error):
        engine.reach(TIMELINE, engine.catalog.read_ts(TIMELINE), frozenset({v}))
    assert engine.clock.monotonic_ms() - started < 10_000


def test_a_step_that_comes_to_nothing_leaves_no_batch_behind(
    engine: Engine, move: Move, sparkless: Connection, tmp_path: Path
) -> None:
    assert not move().failures
    sparkless.execute("CREATE MATERIALIZED VIEW none AS SELECT a FROM t WHERE a > 100")
    sparkless.execute("CREATE MATERIALIZED VIEW constant AS SELECT 1 AS one FROM t")
    sparkless.execute("UPDATE t SET a = 2")  # a row less and a row more of the same
    assert not move().failures
    assert sparkless.execute("SELECT * FROM none").fetchall() == []
    assert "batch-unsealed" not in findings(tmp_path)
