"""Assets of others beside a project's: what they return is in tables once, and what they take is a view at a tick."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pyspark.sql
import pyspark.sql.connect.dataframe
import pytest

import mz_dagster
from mz_dagster import MzIOManager, MzResource, Project, StepResult, mz_assets
from mz_dagster.adapter import Connection
from mz_dagster.catalog import NO_ROWS
from mz_dagster.orchestration import partition_key
from mz_dagster.orchestration.io_manager import _named, _put
from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.adapter.test_delta_sinks import minted

SQL = """
CREATE TABLE rates (day date, currency text, rate numeric(10, 4));
CREATE MATERIALIZED VIEW highest AS SELECT currency, max(rate) AS rate FROM rates GROUP BY currency;
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    (tmp_path / "mz.toml").write_text("[project]\nengine = 'local'\n")
    return tmp_path


def materialized(root: Path, instance: dg.DagsterInstance, *assets: Any, **options: Any) -> dg.ExecuteInProcessResult:
    resources = {"mz_io": MzIOManager(project_dir=str(root)), "mz": MzResource(project_dir=str(root))}
    return dg.materialize(assets, resources=resources, instance=instance, raise_on_error=False, **options)


def held(root: Path, query: str = "SELECT day::text, currency, rate::text FROM rates ORDER BY 1, 2") -> list[Any]:
    with mz_dagster.connect(root) as connection:
        return connection.execute(query).fetchall()


def frame(kind: str, rows: list[tuple[str, str, float]]) -> Any:
    columns = dict(zip(("day", "currency", "rate"), map(list, zip(*rows, strict=True)), strict=True))
    match kind:
        case "pandas":
            return pd.DataFrame(columns)
        case "polars":
            return pl.DataFrame(columns)
        case "arrow":
            return pa.table(columns)
        case _:
            return pa.table(columns).to_reader()


@pytest.mark.parametrize(
    "kind", ["pandas", "batches", *(pytest.param(one, marks=pytest.mark.deep) for one in ("polars", "arrow"))]
)
def test_each_materialization_takes_the_place_of_the_one_before(
    root: Path, instance: dg.DagsterInstance, kind: str
) -> None:
    rows = [("2024-01-01", "EUR", 1.1), ("2024-01-01", "GBP", 1.25)]

    @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "rates"})
    def fetched() -> Any:
        return frame(kind, rows)

    for _ in range(2):
        ran = materialized(root, instance, fetched)
        assert ran.success
        assert held(root) == [("2024-01-01", "EUR", "1.1000"), ("2024-01-01", "GBP", "1.2500")]
    (event,) = ran.get_asset_materialization_events()
    assert event.materialization.metadata["dagster/row_count"].value == 2
    rows[1:] = [("2024-01-02", "USD", 1.0)]
    assert materialized(root, instance, fetched).success
    assert held(root) == [("2024-01-01", "EUR", "1.1000"), ("2024-01-02", "USD", "1.0000")]
    assert held(root, "SELECT currency FROM highest ORDER BY 1") == [("EUR",), ("USD",)]


def test_partition_by_partition(root: Path, instance: dg.DagsterInstance) -> None:
    factor = [1.0]
    partitions = dg.StaticPartitionsDefinition(["2024-01-01", "2024-01-02"])
    says = {"mz/partition_column": "day"}

    @dg.asset(io_manager_key="mz_io", partitions_def=partitions, metadata=says)
    def rates(context: dg.AssetExecutionContext) -> Any:
        return frame("polars", [(context.partition_key, "EUR", factor[0])])

    for key in ("2024-01-01", "2024-01-02", "2024-01-01"):
        assert materialized(root, instance, rates, partition_key=key).success
        factor[0] += 1
    assert held(root) == [("2024-01-01", "EUR", "3.0000"), ("2024-01-02", "EUR", "2.0000")]

    @dg.asset(name="rates", io_manager_key="mz_io", partitions_def=partitions, metadata=says)
    def wrong() -> Any:
        return frame("polars", [("2024-01-01", "EUR", 9.0), ("2024-01-02", "EUR", 9.0)])

    ran = materialized(root, instance, wrong, partition_key="2024-01-01")
    assert 'rows of asset "rates" are of another partition' in failure_of(ran)

    @dg.asset(name="rates", io_manager_key="mz_io", partitions_def=partitions)
    def unnamed() -> Any:
        return frame("polars", [("2024-01-01", "EUR", 9.0)])

    ran = materialized(root, instance, unnamed, partition_key="2024-01-01")
    assert "nothing says which rows are whose" in failure_of(ran)
    assert held(root) == [("2024-01-01", "EUR", "3.0000"), ("2024-01-02", "EUR", "2.0000")], "as it was"


def test_what_did_not_change_is_no_update_and_others_at_once_wait(root: Path, instance: dg.DagsterInstance) -> None:
    batch = pa.table({"day": ["2024-01-01"] * 9, "currency": list("abcdefghi"), "rate": [1.5] * 9})
    with MzResource(project_dir=str(root)).engine("test"):
        """The files are applied."""
    with mz_dagster.connect(root) as connection:
        updates = [_updates(connection)]
        for rows in (batch, batch, batch.slice(1)):
            assert _put(connection, "rates", rows.to_batches(), "", ()) == len(rows)
            updates.append(_updates(connection))
    assert updates == [0, 9, 9, 10]

    def put(day: str) -> None:
        rows = pa.table({"day": [day], "currency": ["EUR"], "rate": [1.5]})
        with mz_dagster.connect(root) as connection:
            assert _put(connection, "rates", rows.to_batches(), " WHERE day IN (?)", (day,)) == 1

    days = [f"2024-02-0{n}" for n in range(1, 5)]
    with ThreadPoolExecutor() as others:
        list(others.map(put, days))
    assert [day for day, *_ in held(root)][-4:] == days


@pytest.mark.parametrize("by", [["day", "currency"], pytest.param(["currency"], marks=pytest.mark.deep)], ids=len)
def test_rows_take_the_place_of_those_with_their_key(root: Path, instance: dg.DagsterInstance, by: list[str]) -> None:
    (root / "assets" / "all.sql").write_text(
        f"CREATE TABLE rates (day date, currency text, rate numeric(10, 4), PRIMARY KEY ({', '.join(by)}));"
    )

    @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "rates", "mz/upsert_by": by if len(by) > 1 else by[0]})
    def fetched() -> Any:
        return frame("polars", rows)

    rows = [("2024-01-01", "EUR", 1.1), ("2024-01-01", "GBP", 1.25)]
    assert materialized(root, instance, fetched).success
    rows = [("2024-01-01", "EUR", 2.1), ("2024-01-01", "USD", 1.0)]
    for _ in range(2):
        assert materialized(root, instance, fetched).success
    assert held(root, "SELECT currency, rate::text FROM rates ORDER BY 1") == [
        ("EUR", "2.1000"),
        ("GBP", "1.2500"),
        ("USD", "1.0000"),
    ]
    many = pa.table({"day": ["2024-01-01"] * 1200, "currency": [f"c{n}" for n in range(1200)], "rate": [1.5] * 1200})
    with mz_dagster.connect(root) as connection:
        before = _updates(connection)
        for rate, added in ((1.5, 1200), (1.5, 0)):
            again = many.set_column(2, "rate", [[rate] * 1200])
            assert _put(connection, "rates", again.to_batches(), "", (), by) == 1200
            assert _updates(connection) == before + added, "what is the same is no update"
            before += added

    @dg.asset(name="fetched", io_manager_key="mz_io", metadata={"mz/table": "rates", "mz/upsert_by": "other"})
    def wrong() -> Any:
        return frame("polars", rows)

    assert 'no column "other"' in failure_of(materialized(root, instance, wrong))


def _updates(connection: Connection) -> int:
    engine = connection.engine
    return engine.catalog.live_batch_counts().get(engine.collection_of("rates"), (0, NO_ROWS))[1].rows


def failure_of(ran: dg.ExecuteInProcessResult) -> str:
    assert not ran.success
    (event,) = ran.get_step_failure_events()
    return str(event.step_failure_data.error_display_string)


def test_what_is_no_table_fails_and_changes_nothing(root: Path, instance: dg.DagsterInstance) -> None:
    @dg.asset(io_manager_key="mz_io")
    def rates() -> Any:
        return 7

    assert "an asset returned a int" in failure_of(materialized(root, instance, rates))

    @dg.asset(name="rates", io_manager_key="mz_io")
    def other() -> Any:
        return pa.table({"day": ["2024-01-01"], "other": [1]})

    assert 'column "other"' in failure_of(materialized(root, instance, other))
    assert held(root) == []


def test_an_asset_gets_its_view_at_the_tick_of_the_run(root: Path, instance: dg.DagsterInstance) -> None:
    got: dict[str, Any] = {}

    @mz_assets(project=Project.load(root))
    def project(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    takes = {"highest": dg.AssetIn(input_manager_key="mz_io")}

    @dg.asset(ins=takes)
    def of_pandas(highest: pd.DataFrame) -> None:
        got["pandas"] = highest

    @dg.asset(ins=takes, partitions_def=project.partitions_def)
    def of_polars(highest: pl.DataFrame) -> None:
        got["polars"] = highest

    @dg.asset(ins=takes)
    def of_arrow(highest) -> None:  # type: ignore[no-untyped-def]
        got["arrow"] = highest

    @dg.asset(ins=takes)
    def of_int(highest: int) -> None: ...

    @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "rates"})
    def fetched() -> pa.Table:
        return frame("arrow", rows)

    ticks: list[str] = []
    for rate in (1.5, 2.5):
        rows = [("2024-01-01", "EUR", rate)]
        assert materialized(root, instance, fetched).success
        with mz_dagster.connect(root) as connection:
            ticks.append(partition_key(minted(connection)))
        instance.add_dynamic_partitions(str(project.partitions_def.name), ticks[-1:])  # type: ignore[union-attr]
    with mz_dagster.connect(root) as connection:
        instance.add_dynamic_partitions(  # of which nothing is known yet
            str(project.partitions_def.name),  # type: ignore[union-attr]
            [partition_key(connection.engine.now("default") + 3_600_000)],
        )
    everything = [project, of_pandas, of_polars, of_arrow, of_int]
    for key, shown in zip(ticks, ("1.5000", "2.5000"), strict=True):
        ran = materialized(root, instance, *everything, selection=[project], partition_key=key)
        assert ran.success
        counts = {
            one.asset_key.to_user_string(): one.materialization.metadata["dagster/row_count"].value  # type: ignore[union-attr]
            for one in ran.get_asset_materialization_events()
        }
        assert counts == {"rates": 1, "highest": 1}
        assert materialized(root, instance, *everything, selection=[of_polars], partition_key=key).success
        assert [tuple(map(str, row)) for row in got["polars"].rows()] == [("EUR", shown)]
    assert materialized(root, instance, *everything, selection=[of_pandas, of_arrow]).success
    assert [str(one) for one in got["pandas"]["rate"]] == ["2.5000"]
    assert isinstance(got["arrow"], pa.Table)
    assert "cannot be had as builtins.int" in failure_of(materialized(root, instance, *everything, selection=[of_int]))


@pytest.mark.deep
def test_an_asset_gets_its_view_as_a_frame_of_spark(
    root: Path, instance: dg.DagsterInstance, spark: Any, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ensure_server(spark_config)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    (root / "mz.toml").write_text(f"[spark]\nremote = '{server.url}'\n")

    @mz_assets(project=Project.load(root))
    def project(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    got: dict[str, Any] = {}
    takes = {"highest": dg.AssetIn(input_manager_key="mz_io")}

    @dg.asset(ins=takes, partitions_def=project.partitions_def)
    def at_tick(highest: pyspark.sql.DataFrame) -> None:
        got["tick"] = highest

    @dg.asset(ins=takes)
    def of_connect(highest: pyspark.sql.connect.dataframe.DataFrame) -> None:
        got["connect"] = highest

    @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "rates"})
    def fetched() -> pa.Table:
        return pa.table({"day": ["2024-01-01"], "currency": ["EUR"], "rate": [rate]})

    @dg.asset(ins={"fetched": dg.AssetIn(input_manager_key="mz_io")})
    def of_table(fetched: pyspark.sql.DataFrame) -> None:
        got["table"] = fetched

    ticks: list[str] = []
    for rate in (1.5, 2.5):  # noqa: B007 - which the asset returns
        assert materialized(root, instance, fetched).success
        with mz_dagster.connect(root) as connection:
            ticks.append(partition_key(minted(connection)))
        instance.add_dynamic_partitions(str(project.partitions_def.name), ticks[-1:])  # type: ignore[union-attr]
    everything = [project, at_tick, of_connect]
    for key in ticks:
        assert materialized(root, instance, *everything, selection=[project], partition_key=key).success
    for key, shown in zip(ticks, ("1.5000", "2.5000"), strict=True):
        assert materialized(root, instance, *everything, selection=[at_tick], partition_key=key).success
        assert [tuple(map(str, row)) for row in got["tick"].collect()] == [("EUR", shown)]
    assert materialized(root, instance, *everything, selection=[of_connect]).success
    assert [str(row.rate) for row in got["connect"].select("rate").collect()] == ["2.5000"]
    rate = 3.5
    assert materialized(root, instance, fetched, of_table).success
    assert [str(row.rate) for row in got["table"].collect()] == ["3.5000"], "what the run wrote before"

    @dg.asset(name="fetched", io_manager_key="mz_io", metadata={"mz/table": "rates"})
    def of_spark() -> Any:
        return got["table"].selectExpr("day", "currency", "CAST(rate + 1 AS DECIMAL(10, 4)) AS rate")

    for shown in ("4.5000", "4.5000"):
        assert materialized(root, instance, of_spark).success
        assert held(root) == [("2024-01-01", "EUR", shown)]
    classic = pytest.importorskip("pyspark.sql.classic.dataframe").DataFrame
    assert _named(classic) == _named(pyspark.sql.DataFrame), "for projects whose Spark is a classic one"
