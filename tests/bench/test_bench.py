"""The benchmarks' harness works: at a tiny scale, counting and comparing, never timing."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from bench import column_operators
from bench.__main__ import BENCHMARKS
from bench.column_exactness import told
from bench.column_limits import joined
from bench.harness import Bench, Ratio, Results, Timing
from bench.small import small_project, source, spark_work, upsert
from bench.tpch import project as tpch
from bench.tpch.data import ROUNDS, Data, Kind
from bench.tpch.plain import Plain, query_of
from bench.tpch.steps import alone, together
from mz_dagster.budget import Budget, budget_of
from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.tpch.feed import KEYS

SCALE = 0.001


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    data = Data(tmp_path_factory.mktemp("tpch"), 0.01)
    data.generate()
    return data


@pytest.fixture
def bench(tmp_path: Path, spark_config: SparkConfig) -> Bench:
    ensure_server(spark_config)
    (tmp_path / "work").mkdir()
    results = Results(tmp_path / "results.json")
    return Bench(tmp_path / "kept", tmp_path / "work", results, spark_config, SCALE, repetitions=1)


def keys(path: Path) -> set[int]:
    return {key for (key,) in duckdb.sql(f"SELECT o_orderkey FROM read_parquet('{path}')").fetchall()}


@pytest.mark.parametrize("kind", ["random", "clustered"])
def test_a_round_brings_new_orders_with_their_lineitems_and_takes_old_ones_with_theirs(
    tmp_path: Path, data: Data, kind: Kind
) -> None:
    for table in ("orders", "lineitem"):
        (tmp_path / table).mkdir()
    count = data.place(tmp_path, 3, kind)
    data.write_live(tmp_path / "before")
    data.write_live(tmp_path / "after", [(3, kind)])
    before, after = keys(tmp_path / "before"), keys(tmp_path / "after")
    records = {
        table: [json.loads(line) for line in (tmp_path / table / "3.jsonl").read_text().splitlines()]
        for table in ("orders", "lineitem")
    }
    assert sum(map(len, records.values())) == count
    for table, of_table in records.items():
        come = {one["key"][KEYS[table][0]] for one in of_table if one["value"]}
        gone = {one["key"][KEYS[table][0]] for one in of_table if one["value"] is None}
        assert (come, gone) == (after - before, before - after)
        assert len(come) == len(gone) == 15
    if kind == "clustered":
        assert gone == set(sorted(before)[3 * 15 : 4 * 15])


def test_all_rounds_differ_and_smaller_rounds_are_parts_of_larger_ones(tmp_path: Path, data: Data) -> None:
    whole, small = tmp_path / "whole", tmp_path / "small"
    for rounds in ([(number, "random") for number in range(ROUNDS)], [(0, "clustered")]):
        for path, one in ((whole, data), (small, replace(data, orders_per_round=2))):
            one.write_live(path, rounds)
        data.write_live(tmp_path / "none")
        assert len(keys(whole) - keys(tmp_path / "none")) == 15 * len(rounds)
        assert len(keys(small) - keys(tmp_path / "none")) == 2 * len(rounds)
        assert keys(small) - keys(tmp_path / "none") <= keys(whole)


@pytest.fixture
def few_views(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Leaves two views of the 22, wherever benchmarks go through them."""
    views = ("q01", "q13")
    for module in ("tpch.project", "tpch.steps", "tpch.plain", "tpch_views", "dimensions", "hydration", "state"):
        monkeypatch.setattr(f"bench.{module}.VIEWS", views)
    return views


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_a_stepped_project_is_what_the_queries_say(bench: Bench, few_views: tuple[str, ...]) -> None:
    with tpch.opened(bench) as project:
        all_together = together(project, "random", 1, warmups=0)
        by_themselves = alone(project, lambda: project.place("dimensions"), 1, warmups=0)
        assert by_themselves.tick > all_together.tick
        # 0.01 % of 150 customers changes none of q13; nothing of it is in q01.
        assert "q01" not in by_themselves.changed
        plain = Plain(bench, project)
        refreshes, by_duckdb = plain.refreshes(1), plain.duckdb_refreshes(1)
        plain.check(by_themselves.tick)
        assert set(refreshes) == set(by_duckdb) == set(few_views)
        assert project.rounds == [(0, "random"), (1, "dimensions")]
    with tpch.opened(bench) as project:
        assert project.rounds == [], "the next run begins with the project as it was kept"
        assert project.place("clustered")
        assert project.step(project.ingest()).had_work


def test_every_query_of_a_view_is_found() -> None:
    queries = {view: query_of(view) for view in tpch.VIEWS}
    assert [view for view, query in queries.items() if query.view] == ["q15"]
    assert all(query.text.startswith("select") for query in queries.values())


@pytest.mark.deep  # it starts a server of its own
def test_sparks_work_is_counted(bench: Bench) -> None:
    sql = source("s", "id integer NOT NULL, v integer", key="id") + "CREATE MATERIALIZED VIEW v AS SELECT v FROM s;"
    with budget_of(Budget.spark_alone()), small_project(bench, sql, sources=["s"]) as project:
        project.drop("s", "0", [upsert({"id": 1, "v": 2}, key="id")])
        before = spark_work(bench)
        assert project.step(project.poll()).had_work
        work = spark_work(bench) - before
    assert work.jobs > 0
    assert work.executions > 0


def test_results_keep_what_another_run_measured(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    Results(path).record("tpch.sf1.together", {"ratio": Ratio(Timing((6.0,)), Timing((2.0,)))})
    Results(path).record("tpch.sf1.views.q1.ratio", 2.5)
    held = Results(path).load()["tpch"]["sf1"]
    assert held["together"] == {"ratio": 3.0, "ratio_spread": [3.0, 3.0]}
    assert held["views"]["q1"]["ratio"] == 2.5


@pytest.mark.deep
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_measures(
    bench: Bench, few_views: tuple[str, ...], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    import_module(BENCHMARKS[name].module).run(bench)
    assert bench.results.load()[name]
    assert capsys.readouterr().out


def test_all_engines_of_columns_give_one_answer_and_are_measured() -> None:
    few, many = 60, 700
    given, names = column_operators.Tables.of(few, many), column_operators.installed()
    for operator in column_operators.OPERATORS:
        runs = {name: column_operators.ENGINES[name](operator, given) for name in names}
        answers = {name: rows_of(run(), in_order=operator == "sort") for name, run in runs.items() if run is not None}
        assert len(answers) > 1
        assert all(one == answers[column_operators.OURS] for one in answers.values()), operator
    timings = column_operators.measured(few, many, 1)
    assert set(timings) == set(column_operators.OPERATORS)
    assert all(one.median > 0 for of_one in timings.values() for one in column_operators.over_ours(of_one).values())


def test_our_columns_are_exact() -> None:
    assert {case: one["ours"] for case, one in told().items() if one["ours"] != "right"} == {}


@pytest.mark.deep
def test_what_a_join_takes_of_memory_is_told_by_a_process_of_its_own(tmp_path: Path) -> None:
    assert joined("ours", 60, 700, 32, tmp_path)["ends"].endswith(" rows")


def rows_of(table: pa.Table, *, in_order: bool) -> list[tuple[object, ...]]:
    rows = list(zip(*(one.to_pylist() for one in table.columns), strict=True))
    return rows if in_order else sorted(rows, key=str)
