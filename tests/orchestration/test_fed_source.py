"""A source with a key that an asset feeds has what was returned, once, whatever was killed."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
import pytest

import mz_dagster
from mz_dagster import MzIOManager
from mz_dagster.errors import Error, OperationalError
from mz_dagster.fail_point import LANDING_FAIL_POINTS, VARIABLE
from mz_dagster.orchestration.fed_source import Replaced, feed, source_of
from mz_dagster.storage.source import Landing, landing
from tests.forks import forks

SOURCE = """
CREATE SOURCE rates (day date, currency text, rate numeric(6, 4), also jsonb, PRIMARY KEY (day, currency))
FROM FILES (FOLDER 'landing/rates') FORMAT JSON ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW highest AS SELECT currency, max(rate) AS rate FROM rates GROUP BY currency;
"""
ONE, TWO = "2024-01-01", "2024-01-02"
DAYS = dg.StaticPartitionsDefinition([ONE, TWO])
Row = tuple[str, str, str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(SOURCE)
    (tmp_path / "mz.toml").write_text("[project]\nengine = 'local'\n")
    return tmp_path


def table(rows: list[Row]) -> pa.Table:
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(("day", "currency", "rate"))})


def held(root: Path) -> list[Any]:
    with mz_dagster.connect(root) as connection:
        return connection.execute("SELECT day::text, currency, rate::text FROM rates ORDER BY 1, 2").fetchall()


def files(root: Path) -> list[str]:
    return sorted(one.name for one in (root / "landing" / "rates").glob("[!.]*"))


def fed(root: Path, rows: list[Row], day: str | None = None) -> int | None:
    """Does as a materialization does."""
    replaced = Replaced() if day is None else Replaced(" WHERE day IN (?)", (day,))
    with mz_dagster.connect(root) as connection:
        if connection.engine.catalog.resolve_name("rates") is None:
            connection.engine.apply()
        source = source_of(connection.engine, "rates")
        assert source is not None
        return feed(connection, source, "rates", table(rows).to_batches(), replaced, "rates-run")


def materialized(root: Path, instance: dg.DagsterInstance, asset: Any, key: str | None = None) -> Any:
    resources = {"mz_io": MzIOManager(project_dir=str(root))}
    return dg.materialize([asset], resources=resources, instance=instance, raise_on_error=False, partition_key=key)


def failure_of(ran: dg.ExecuteInProcessResult) -> str:
    (event,) = ran.get_step_failure_events()
    return str(event.step_failure_data.error_display_string)


def test_a_materialization_takes_the_place_of_its_partitions_rows(root: Path, instance: dg.DagsterInstance) -> None:
    returned = {ONE: [("EUR", 1.5), ("GBP", 1.25)], TWO: [("EUR", 2.5)]}

    @dg.asset(io_manager_key="mz_io", partitions_def=DAYS, metadata={"mz/partition_column": "day"})
    def rates(context: dg.AssetExecutionContext) -> pd.DataFrame:
        rows = returned[context.partition_key]
        return pd.DataFrame(
            {
                "day": [context.partition_key] * len(rows),
                "currency": [one for one, _ in rows],
                "rate": [one for _, one in rows],
                "also": ['{"a": [1, 1.50]}'] * len(rows),
            }
        )

    for day in (ONE, TWO, ONE):
        ran = materialized(root, instance, rates, day)
        assert ran.success
    assert len(files(root)) == 2, "what is there already is not written again"
    (event,) = ran.get_asset_materialization_events()
    assert event.materialization.metadata["dagster/partition_row_count"].value == 2
    assert held(root) == [(ONE, "EUR", "1.5000"), (ONE, "GBP", "1.2500"), (TWO, "EUR", "2.5000")]
    returned[ONE] = [("EUR", 1.75)]
    assert materialized(root, instance, rates, ONE).success
    assert held(root) == [(ONE, "EUR", "1.7500"), (TWO, "EUR", "2.5000")]
    assert (root / "landing" / "rates" / files(root)[-1]).read_text().count("\n") == 2
    with mz_dagster.connect(root) as connection:
        assert connection.execute("SELECT also->'a'->>1 FROM rates WHERE day = '2024-01-01'").fetchall() == [("1.50",)]
    returned[ONE] = []
    assert materialized(root, instance, rates, ONE).success
    assert held(root) == [(TWO, "EUR", "2.5000")]


def test_without_partitions_it_takes_the_place_of_all_or_of_the_same_keys(
    root: Path, instance: dg.DagsterInstance
) -> None:
    def asset(rows: list[Row], by: list[str] | None = None) -> Any:
        says: dict[str, Any] = {} if by is None else {"mz/upsert_by": by}

        @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "public.rates", **says})
        def fetched() -> pa.Table:
            return table(rows)

        return fetched

    assert materialized(root, instance, asset([(ONE, "EUR", "1.5"), (TWO, "GBP", "2")])).success
    assert materialized(root, instance, asset([(ONE, "EUR", "1.6")])).success
    assert held(root) == [(ONE, "EUR", "1.6000")]
    by = ["day", "currency"]
    assert materialized(root, instance, asset([(ONE, "USD", "1"), (ONE, "EUR", "1.6")], by)).success
    assert held(root) == [(ONE, "EUR", "1.6000"), (ONE, "USD", "1.0000")]
    assert "key of source" in failure_of(materialized(root, instance, asset([(ONE, "USD", "1")], ["day"])))


def test_what_the_source_could_not_read_is_refused_and_nothing_is_there(root: Path) -> None:
    assert fed(root, [(ONE, "EUR", "1.5")]) == 1
    assert fed(root, [(ONE, "EUR", "1.5"), (TWO, "EUR", "1.5")], ONE) is None
    for rows, text in (
        ([(ONE, "EUR", "100")], "numeric field overflow"),
        ([("never", "EUR", "1")], "invalid input syntax for type date"),
        ([(ONE, "EUR", "1"), (ONE, "EUR", "2")], "duplicate key"),
    ):
        with pytest.raises(Error, match=text):
            fed(root, rows)
    assert held(root) == [(ONE, "EUR", "1.5000")]
    assert len(files(root)) == 1
    for said in ("FORMAT CSV ENVELOPE UPSERT", "FORMAT PARQUET ENVELOPE UPSERT", "FORMAT JSON ENVELOPE DEBEZIUM"):
        with mz_dagster.connect(root) as connection:
            connection.execute(f"CREATE SOURCE u (a integer, PRIMARY KEY (a)) FROM FILES (FOLDER 'u') {said}")
            other = source_of(connection.engine, '"u"')
            assert other is not None
            with pytest.raises(dg.Failure, match='source "u" cannot be fed'):
                feed(connection, other, "u", (), Replaced(), "x")
            connection.execute("DROP SOURCE u")


def test_several_at_once_go_one_after_the_other(root: Path) -> None:
    assert fed(root, []) == 0
    days = [f"2024-02-0{n}" for n in range(1, 5)]
    with ThreadPoolExecutor() as others:
        list(others.map(lambda day: fed(root, [(day, "EUR", "1.5")], day), days))
    assert [day for day, *_ in held(root)] == days
    assert len(set(files(root))) == len(days)


def test_who_waits_for_very_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "_MOST_MS", 60)
    with (
        Landing.opened(tmp_path),
        pytest.raises(OperationalError, match="fed by somebody else") as told,
        Landing.opened(tmp_path),
    ):
        raise AssertionError("two have it")
    assert told.value.hint
    with Landing.opened(tmp_path) as again:
        assert again.put(b"x", "y", ".jsonl")


def killed(root: str, point: str) -> None:
    os.environ[VARIABLE] = point
    fed(Path(root), [(ONE, "EUR", "2.5")], ONE)


@pytest.mark.parametrize("point", LANDING_FAIL_POINTS)
def test_one_that_is_killed_and_tried_again_is_there_once(root: Path, point: str) -> None:
    fed(root, [(ONE, "EUR", "1.5"), (ONE, "GBP", "1.5"), (TWO, "EUR", "1.5")])
    process = forks().Process(target=killed, args=(str(root), point))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    was_there = point == "landing.dropped"
    assert len(files(root)) == 1 + was_there
    after = [(ONE, "EUR", "2.5000"), (TWO, "EUR", "1.5000")]
    assert (held(root) == after) is was_there
    for _ in range(2):
        assert fed(root, [(ONE, "EUR", "2.5")], ONE) == 1
        assert held(root) == after
        assert len(files(root)) == 2
    assert not list((root / "landing" / "rates").glob("*.draft"))
