"""TPC-H: all 22 queries as views, and each of them PostgreSQL's answer after every refresh.

The queries are verbatim, with the parameters by which the benchmark validates them; query 3 is there once more with the
clock in the place of its dates. What they read arrives in files, see `feed`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.postgres_server import Postgres
from tests.tpch.feed import Feed
from tests.tpch.referee import Referee, Row, as_multisets

PROJECT = Path(__file__).parent / "project"
#: Scale factors and how many refreshes follow the first load.
RUNS = ((0.01, 1), pytest.param(0.1, 4, marks=pytest.mark.deep))
#: What the refreshes change. After the first one of this seed every answer is another already.
SEED = 2
#: The refresh after which batches are merged.
COMPACTED = 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("scale", "refreshes"), RUNS)
def test_every_query_is_its_answer_after_every_refresh(
    tmp_path: Path,
    compiling_spark_config: SparkConfig,
    postgres: Postgres,
    set_budget: SetBudget,
    scale: float,
    refreshes: int,
) -> None:
    set_budget(common_lookup_rows=10_000)  # so that lookups are shared, as at larger scales
    root = tmp_path / "project"
    shutil.copytree(PROJECT, root)
    feed = Feed(root / "landing", tmp_path / "data", scale, SEED)
    found: dict[str, list[Counter[Row]]] = {}
    referee = Referee(postgres, root / "assets")
    with Engine(Project.load(root), spark=compiling_spark_config) as engine, closing(referee):
        engine.apply()
        session = Session(engine)
        assert referee.queries.keys() == {row.name for row in engine.catalog.objects("materialized view")}
        assert len(referee.queries) == 22 + 1
        for number in range(refreshes + 1):
            referee.apply(feed.refresh() if number else feed.load())
            poll = engine.poll("tpch")
            assert poll.tick is not None, poll.reason
            report = engine.step("tpch", poll.tick)
            assert not report.failures, report.failures
            for view in referee.queries:
                ours = session.execute(f"SELECT * FROM {view} AS OF {poll.tick}").rows
                mine, theirs = as_multisets(ours, referee.answer(view, poll.tick))
                assert mine == theirs, f"{view} after refresh {number}"
                found.setdefault(view, []).append(theirs)
            if number == COMPACTED and number < refreshes:
                list(engine.compact())
    assert [view for view, answers in found.items() if not all(answers)] == [], "an answer had no rows"
    assert [view for view, answers in found.items() if answers[0] == answers[-1]] == [], "an answer never changed"
