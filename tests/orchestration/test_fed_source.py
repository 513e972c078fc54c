"""A source with a key that an asset feeds has what was returned, once, whatever was killed."""

import os
import signal
from collections.abc import Callable, Iterator
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
from mz_dagster.storage.source.bucket import InBucket
from tests.forks import forks
from tests.object_store import BUCKET, SECRET, Store, running_store

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


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture
def far(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Has the source read from a bucket, and returns what lists it."""
    monkeypatch.setenv("STORE_SECRET", store.secret)
    prefix = root.name
    place = f"URI 's3://{BUCKET}/{prefix}', CONNECTION store"
    said = [*store.statements, SOURCE.replace("FOLDER 'landing/rates'", place)]
    (root / "assets" / "all.sql").write_text(";\n".join(said))

    def listed() -> list[str]:
        found = store.client().list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/").get("Contents", [])
        return [one["Key"].removeprefix(f"{prefix}/") for one in found]

    return listed


def table(rows: list[Row]) -> pa.Table:
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(("day", "currency", "rate"))})


def held(root: Path) -> list[Any]:
    with mz_dagster.connect(root) as connection:
        return connection.execute("SELECT day::text, currency, rate::text FROM rates ORDER BY 1, 2").fetchall()


def files(root: Path) -> list[str]:
    return sorted(one.name for one in (root / "landing" / "rates").glob("[!.]*"))


def fed(root: Path, rows: list[Row], day: str | None = None, key: tuple[str, ...] = ()) -> int | None:
    """Does as a materialization does."""
    replaced = Replaced(key=key) if day is None else Replaced(" WHERE day IN (?)", (day,))
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
    for said in ("FORMAT ORC ENVELOPE UPSERT", "FORMAT JSON ENVELOPE DEBEZIUM"):
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


def killed(root: str, point: str, secret: str = "") -> None:
    os.environ |= {VARIABLE: point, "STORE_SECRET": secret}
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


ALL_TYPES = {
    "integer": "7", "numeric(6, 4)": "1.5000", "numeric": "12.250", "text": 'a "b",\tc', "varchar(9)": "",
    "boolean": "t", "date": ONE, "timestamptz": "2024-01-01 12:00:00.000001+00", "time": "12:00:01.5",
    "interval": "1 mon 2 days",
    "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "jsonb": '{"a": [1, 1.50]}', "bytea": "\\x00ff", "float8": "NaN",
    "integer[]": "{1,NULL,3}", "text[]": '{"a b",c}',
}  # fmt: skip


@pytest.mark.parametrize("ending", [pytest.param(".csv", marks=pytest.mark.deep), ".parquet", ".jsonl.zst", ".csv.gz"])
def test_each_format_has_what_was_returned(root: Path, ending: str) -> None:
    names = [f"c{n}" for n in range(len(ALL_TYPES))]
    declared = ", ".join(f"{name} {type_}" for name, type_ in zip(names, ALL_TYPES, strict=True))
    said = ending.split(".")[1].upper().removesuffix("L")
    first: list[str | None] = ["1", *ALL_TYPES.values()]
    last: list[str | None] = ["2", *(None for _ in names)]
    with mz_dagster.connect(root) as connection:
        connection.execute(
            f'CREATE SOURCE every ("an Id" integer, {declared}, PRIMARY KEY ("an Id")) '
            f"FROM FILES (FOLDER 'landing/every', PATTERN '*{ending}') FORMAT {said} ENVELOPE UPSERT"
        )
        source = source_of(connection.engine, "every")
        assert source is not None
        columns = [list(one) for one in zip(first, last, strict=True)]
        rows = pa.table(dict(zip(["an Id", *names], columns, strict=True)))
        texts = ", ".join(f"{name}::text" for name in ['"an Id"', *names])
        for some in (rows, rows, rows.slice(1)):
            with mz_dagster.connect(root) as one:
                assert feed(one, source, "every", some.to_batches(), Replaced(key=["an Id"]), "x") == len(some)
        found = connection.execute(f"SELECT {texts} FROM every ORDER BY 1").fetchall()
        first[first.index("t")] = "true"
        assert found == [tuple(first), tuple(last)]
        (file,) = (root / "landing" / "every").glob("[!.]*")
        assert file.name.endswith(f"-x{ending}")


def test_what_a_format_cannot_say_is_refused_and_no_file_is_there(root: Path) -> None:
    (root / "assets" / "all.sql").write_text(SOURCE.replace("JSON", "CSV"))
    both = [(ONE, "EUR", "1.5"), (ONE, "GBP", "1.25")]
    assert fed(root, both) == 2
    with pytest.raises(dg.Failure, match="reads CSV, whose records delete no row, and 1 of its rows were not returned"):
        fed(root, both[1:])
    with pytest.raises(Error, match="a value has a line feed"):
        fed(root, [(ONE, "A\nB", "1")], key=("day", "currency"))
    assert fed(root, [(ONE, "EUR", "1.6")], key=("day", "currency")) == 1
    assert held(root) == [(ONE, "EUR", "1.6000"), (ONE, "GBP", "1.2500")]
    assert len(files(root)) == 2


def test_a_source_in_a_bucket_is_fed_once_whoever_is_faster(
    root: Path, far: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fed(root, [(ONE, "EUR", "1.5"), (TWO, "EUR", "1.5")]) == 2
    create, before = InBucket.create, [lambda: fed(root, [(ONE, "GBP", "9")], ONE)]

    def overtaken(self: InBucket, path: str, content: bytes) -> bool:
        if before:
            before.pop()()
        return create(self, path, content)

    monkeypatch.setattr(InBucket, "create", overtaken)
    for _ in range(2):
        assert fed(root, [(ONE, "USD", "2")], ONE) == 1
    assert held(root) == [(ONE, "USD", "2.0000"), (TWO, "EUR", "1.5000")]
    names = far()
    assert len(names) == 3
    assert names == sorted(names)
    assert all(name.endswith("-fed.jsonl") for name in names)


@pytest.mark.parametrize(
    "point", [LANDING_FAIL_POINTS[1], pytest.param(LANDING_FAIL_POINTS[0], marks=pytest.mark.deep)]
)
def test_one_that_is_killed_beside_a_bucket_and_tried_again_is_there_once(
    root: Path, far: Callable[[], list[str]], point: str
) -> None:
    fed(root, [(ONE, "EUR", "1.5"), (ONE, "GBP", "1.5"), (TWO, "EUR", "1.5")])
    process = forks().Process(target=killed, args=(str(root), point, SECRET))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert len(far()) == 1 + (point == "landing.dropped")
    for _ in range(2):
        assert fed(root, [(ONE, "EUR", "2.5")], ONE) == 1
        assert held(root) == [(ONE, "EUR", "2.5000"), (TWO, "EUR", "1.5000")]
        assert len(far()) == 2
