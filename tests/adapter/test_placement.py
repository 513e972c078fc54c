"""Who computes each subtree, and by which size and threshold: in EXPLAIN, a step's report and Dagster's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, Session
from mz_dagster.compute.step.report import CollectionStep
from mz_dagster.orchestration.events import asset_metadata
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget

SMALL_THRESHOLDS = {"evaluated_updates": 10, "step_times": 5, "first_times": 10}
NAMES = (
    "SELECT s.name, o.w FROM small s JOIN other o USING (k) WHERE s.name <> '' "
    "UNION ALL SELECT l.v::text, l.v FROM large l"
)


@pytest.fixture
def engine(tmp_path: Path, set_budget: SetBudget) -> Iterator[Engine]:
    set_budget(**SMALL_THRESHOLDS)
    with Engine(Project.load(tmp_path)) as opened:
        fill(Session(opened), 200)
        yield opened


def fill(session: Session | Connection, large: int) -> None:
    session.execute("CREATE TABLE small (k int, name text)")
    session.execute("CREATE TABLE other (k int, w int)")
    session.execute("CREATE TABLE large (k int, v int)")
    insert(session, large)


def insert(session: Session | Connection, large: int) -> None:
    session.execute("INSERT INTO small VALUES (1, 'a'), (2, 'b')")
    session.execute("INSERT INTO other VALUES (1, 1), (2, 2), (3, 3)")
    session.execute(f"INSERT INTO large SELECT g, g FROM generate_series(1, {large}) AS g")


def explained(session: Session, target: str) -> dict[str, list[str]]:
    """Returns what EXPLAIN says of sizes and engines, by heading."""
    lines = [str(line) for (line,) in session.execute(f"EXPLAIN PHYSICAL PLAN FOR {target}").rows]
    found: dict[str, list[str]] = {}
    heading = ""
    for line in lines[lines.index("sizes:") :]:
        if line.startswith("  "):
            found[heading].append(line[2:])
        else:
            heading, _, rest = line.partition(":")
            found[heading] = [rest] if rest else []
    return found


def of_step(told: dict[str, list[str]]) -> list[str]:
    return told["maintained, in a step in which as much changes as the newest batch of each input has"]


def test_each_subtree_has_its_engine_and_the_size_and_threshold_that_decided(engine: Engine) -> None:
    told = explained(Session(engine), NAMES)
    sizes = {one.partition(" of ")[0] + one.partition(" bytes")[2] for one in told["sizes"]}
    assert sizes == {
        "small: 2 updates, 2 in the newest batch",
        "other: 3 updates, 3 in the newest batch",
        "large: 200 updates, 200 in the newest batch",
    }
    root = "DeltaJoin of 2 over small, other, large"
    from_start = f"{root}: Spark, since 205 updates are read, more than 100 (evaluated_updates * first_times)"
    assert told["as a query, all of it"] == [from_start]
    assert told["maintained, in a first load"] == [f"output, {from_start}"]
    assert of_step(told) == [
        f"output, {root}: Spark, since 205 updates changed, more than 50 (evaluated_updates * step_times)",
        "  of it, DeltaJoin of 2 over small, other: this process, since 5 updates changed, at most 50 "
        "(evaluated_updates * step_times)",
    ]
    (limits,) = told["decided while it is computed, by what is found"]
    assert "joined_rows" in limits
    assert "made_rows 1000000" in limits


def test_an_arrangement_is_told_by_its_expected_size_until_it_is_there(engine: Engine, set_budget: SetBudget) -> None:
    session = Session(engine)
    created = "MATERIALIZED VIEW sums AS SELECT k % 3 AS k, count(*) AS n FROM large GROUP BY k % 3"
    told = explained(session, f"CREATE {created}")
    assert "as a query, all of it" not in told
    assert "arrangement:1: about 200 updates, no batch yet" in told["sizes"]
    arrangement, output = told["maintained, in a first load"]
    assert arrangement.startswith(
        "arrangement:1, Accumulate by computed_1 over large: Spark, since 200 updates are read"
    )
    assert output.startswith("output, Linear over arrangement:1: Spark, since 200 updates are read")
    set_budget(first_times=20)
    session.execute(f"CREATE {created}")
    told = explained(session, "sums")
    (of_it,) = [one for one in told["sizes"] if one.startswith("arrangement:1: 3 updates of ")]
    assert of_it.endswith(" bytes, 3 in the newest batch")


def test_a_query_says_what_decided(engine: Engine) -> None:
    session = Session(engine)
    lines = [
        str(line).strip()
        for (line,) in session.execute("EXPLAIN ANALYZE SELECT name, count(*) FROM small GROUP BY 1").rows
    ]
    at = lines.index("computed by: this process")
    assert lines[at + 1].endswith("since 2 updates are read, at most 100 (evaluated_updates * first_times)")


def test_the_report_and_dagsters_metadata_say_what_decided_of_both_engines(
    tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget
) -> None:
    set_budget(**SMALL_THRESHOLDS)
    with Engine(Project.load(tmp_path), spark=spark_config) as engine:
        session = Connection(engine, Isolation.STRICT_SERIALIZABLE)
        fill(session, 5)
        session.execute(f"CREATE MATERIALIZED VIEW names AS {NAMES}")
        first = stepped(engine)
        assert [str(one) for one in first.placements] == [
            "DeltaJoin of 2 over small, other, large: this process, since 10 updates are read, at most 100 "
            "(evaluated_updates * first_times)"
        ]
        session.execute("BEGIN")
        insert(session, 60)
        session.execute("COMMIT")
        rows = session.execute("SELECT count(*) FROM names").fetchall()
        assert rows == [(4 + 4 + 5 + 60,)]
        told = of_step(explained(Session(engine), "names"))
        found = stepped(engine)
        # EXPLAIN said so before, of a step like this one.
        assert [line.strip().removeprefix("output, ").removeprefix("of it, ") for line in told] == [
            str(one) for one in found.placements
        ]
        assert [(one.is_spark, one.size, one.most, one.threshold) for one in found.placements] == [
            (True, 65, 50, "evaluated_updates * step_times"),
            (False, 5, 50, "evaluated_updates * step_times"),
        ]
        assert found.engine == "Spark: 65 updates changed, more than 50 (evaluated_updates * step_times)"
        assert found.handovers
        row = engine.catalog.collection(found.id)
        metadata = asset_metadata(engine, row, found.upper - 1, step=found)
        assert metadata["mz/placement"] == "\n".join(map(str, found.placements))


def stepped(engine: Engine) -> CollectionStep:
    """Returns what the newest step that had something to do with the view did with it."""
    steps = [step for one in engine.activity.steps() for step in one.report.collections if step.name == "names"]
    return [one for one in steps if one.placements][-1]
