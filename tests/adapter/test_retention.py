"""History goes away as promised, by itself: in states, in sessions, and where nothing comes any more, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import BadSettings, Engine, Project, Session
from mz_dagster.clock import SystemClock
from mz_dagster.formalism import GlobalId
from tests.budgets import SetBudget

TIMELINE = "default"
DAY_MS = 86_400_000


class Ahead(SystemClock):
    """Is the system's clock, ahead by what a test says."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.ahead_ms


@pytest.fixture
def clock() -> Ahead:
    return Ahead()


@pytest.fixture
def engine(tmp_path: Path, clock: Ahead) -> Iterator[Engine]:
    with Engine(Project.load(tmp_path), clock=clock) as opened:
        yield opened


def updates(engine: Engine, id: GlobalId) -> int:
    return sum(batch.stats.rows for batch in engine.catalog.live_batches([id])[id])


def test_a_day_of_history_is_kept_by_default(tmp_path: Path) -> None:
    assert Project.load(tmp_path).retention_ms == DAY_MS
    for said, kept in (("all", None), ("0 s", 0), ("7 d", 7 * DAY_MS)):
        (tmp_path / "mz.toml").write_text(f"[retention]\nkeep = '{said}'\n")
        assert Project.load(tmp_path).retention_ms == kept
    (tmp_path / "mz.toml").write_text("[retention]\nkeep = 'ever'\n")
    with pytest.raises(BadSettings, match="a duration"):
        Project.load(tmp_path)


def test_the_retention_of_a_view_reaches_its_states_and_what_they_hold(engine: Engine, clock: Ahead) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE t (a integer, until timestamptz) WITH (RETAIN HISTORY FOR '1 second')")
    session.execute(
        "CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1 second') AS "
        "SELECT a, count(*) AS n FROM t WHERE mz_now() < until GROUP BY a"
    )
    view, table = engine.collection_of("v"), engine.collection_of("t")
    states = [row.id for row in engine.catalog.objects("arrangement") if row.owner == view]
    assert states
    for number in range(20):
        session.execute("INSERT INTO t SELECT g, now() + interval '1 hour' FROM generate_series(1, 25) g")
        session.execute("DELETE FROM t")
        session.execute("SELECT * FROM v")
        if number % 5 == 4:
            list(engine.compact())
    for _ in range(2):  # what a since passed is merged by the one, what that made of it by the other
        clock.ahead_ms += 10_000
        engine.catalog.apply_write(TIMELINE, engine.now(TIMELINE))
        session.execute("SELECT * FROM v")
        list(engine.compact())
    upper = engine.catalog.collection(view).upper.only
    for id in (view, table, *states):
        row = engine.catalog.collection(id)
        assert row.since.only >= upper - 1001, f"{id} keeps history that nobody asked for"
        assert updates(engine, id) <= 100, f"of {id}, which has no row that is valid"


def test_a_quiet_collection_forgets_by_itself_while_others_are_written(engine: Engine, clock: Ahead) -> None:
    session = Session(engine)
    for name in ("quiet", "busy"):
        session.execute(f"CREATE TABLE {name} (a integer)")
    session.execute("INSERT INTO quiet SELECT * FROM generate_series(1, 500)")
    session.execute("DELETE FROM quiet")
    quiet = engine.collection_of("quiet")
    session.execute("INSERT INTO busy VALUES (1)")
    assert updates(engine, quiet) == 1000
    clock.ahead_ms += 2 * DAY_MS
    session.execute("INSERT INTO busy VALUES (2)")
    engine.poll(TIMELINE)  # closes the tables at the present
    clock.ahead_ms += 120_000
    session.execute("INSERT INTO busy VALUES (3)")
    assert updates(engine, quiet) == 0
    assert session.execute("SELECT count(*) FROM quiet").rows == ((0,),)
    assert session.execute("SELECT count(*) FROM busy").rows == ((3,),)


@pytest.mark.parametrize("inlined_rows", [0, 1_000])
def test_what_was_dropped_goes_by_itself_with_its_files(
    engine: Engine, clock: Ahead, set_budget: SetBudget, inlined_rows: int
) -> None:
    set_budget(inlined_rows=inlined_rows)
    session = Session(engine)
    session.execute("CREATE TABLE busy (a integer)")
    session.execute("INSERT INTO busy VALUES (1)")
    shards = engine.project.state / "shards"

    def there() -> tuple[set[str], dict[str, int]]:
        rows = {name: len(rows) for name, rows in engine.catalog.records().items()}
        rows["changed"] = sum(row["object"] != "" for row in engine.catalog.records()["changed"])
        assert rows["inlined"] == (rows["batch"] if inlined_rows else 0)
        del rows["tombstone"], rows["batch"], rows["inlined"]
        return {one.name for one in shards.iterdir()}, rows

    before = there()
    for number in range(3):
        session.execute("CREATE TABLE t (a integer)")
        session.execute(f"INSERT INTO t VALUES ({number})")
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        session.execute("DROP TABLE t CASCADE")
    clock.ahead_ms += 120_000
    session.execute("INSERT INTO busy VALUES (2)")
    assert there() == before
    assert engine.catalog.dropped() == frozenset()
