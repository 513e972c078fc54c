"""Bad input as the user of an engine meets it: what stands still, what goes on, what the error says to do, and how
it heals.

What a single source, parser or setting refuses is tested beside it; here it has gone through the whole engine.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import BadSettings, Connection, Engine, Isolation, Project, SecondRunner
from mz_dagster.catalog import LedByAnother
from mz_dagster.compute import Outcome, StepReport
from mz_dagster.errors import DataError, Error, OperationalError, ProgrammingError
from mz_dagster.storage.spark import SparkConfig, ensure_server, server_status, stop_server
from tests.budgets import SetBudget
from tests.errors import says_what_to_do

TIMELINE = "default"
ORDERS = (
    "CREATE SOURCE orders (id integer NOT NULL, amount integer, PRIMARY KEY (id)) "
    "FROM FILES (FOLDER 'orders') FORMAT JSON ENVELOPE UPSERT"
)

Drop = Callable[..., Path]


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    """Drops a file of lines into the folder of `orders`, renamed into place."""

    def dropped(name: str, *lines: str) -> Path:
        path = tmp_path / "orders" / name
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".tmp").write_text("".join(line + "\n" for line in lines))
        return path.with_suffix(".tmp").rename(path)

    return dropped


def order(id: object, amount: object) -> str:
    return f'{{"key": {{"id": {id}}}, "value": {{"amount": {amount}}}}}'


def step(engine: Engine) -> StepReport:
    """Polls and steps to what that minted."""
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    return engine.step(TIMELINE, tick)


def unpolled(engine: Engine) -> Error:
    """Polls, and returns why the one source that could not be polled could not."""
    (failure,) = engine.poll(TIMELINE).failures.values()
    return failure


def rows(connection: Connection, name: str, time: int | None = None) -> list[tuple[Any, ...]]:
    at = "" if time is None else f" AS OF {time}"
    return sorted(connection.execute(f"SELECT * FROM {name}{at}").fetchall())


# ---- folders and files


def test_a_missing_folder_is_named_and_nothing_is_minted(connection: Connection, drop: Drop, tmp_path: Path) -> None:
    connection.execute(ORDERS)
    engine = connection.engine
    says_what_to_do(unpolled(engine), str(tmp_path / "orders"), "does not exist", "Create the folder")
    assert engine.catalog.ticks(TIMELINE) == ()
    (tmp_path / "orders").write_text("a file")
    says_what_to_do(unpolled(engine), "is not a folder")
    (tmp_path / "orders").unlink()
    drop("1.jsonl", order(1, 10))
    assert engine.poll(TIMELINE).files == 1


def test_a_half_written_file_waits_until_it_is_renamed(connection: Connection, drop: Drop) -> None:
    connection.execute(ORDERS)
    engine = connection.engine
    path = drop("1.jsonl", order(1, 10))
    half = path.rename(path.with_name("1.jsonl.part"))
    assert engine.poll(TIMELINE).files == 0
    half.rename(path)
    assert engine.poll(TIMELINE).files == 1
    assert engine.poll(TIMELINE).files == 0


def test_an_unreadable_file_binds_nothing_and_is_named(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE SOURCE p (a integer) FROM FILES (FOLDER 'p') FORMAT PARQUET")
    connection.execute("CREATE SOURCE c (a integer) FROM FILES (FOLDER 'c') FORMAT CSV")
    for name in "pc":
        (tmp_path / name).mkdir()
    (tmp_path / "c" / "good.csv").write_text("a\n1\n")
    bad = tmp_path / "p" / "cut.parquet"
    bad.write_bytes(b"PAR1 and no more")
    engine = connection.engine
    says_what_to_do(unpolled(engine), "cut.parquet")
    assert set(engine.catalog.bound_files(engine.collection_of("c"))) == {"good.csv"}, "others go on"
    bad.unlink()
    (tmp_path / "c" / "better.csv").write_text("a\n1\n")
    (tmp_path / "c" / "wrong.csv").write_text("b\n1\n")
    says_what_to_do(unpolled(engine), "wrong.csv")
    assert set(engine.catalog.bound_files(engine.collection_of("c"))) == {"good.csv"}
    (tmp_path / "c" / "wrong.csv").unlink()
    assert engine.poll(TIMELINE).files == 1


# ---- rows


def test_a_malformed_row_is_an_error_of_the_data_until_it_is_corrected(connection: Connection, drop: Drop) -> None:
    engine = connection.engine
    connection.execute(ORDERS)
    connection.execute("CREATE MATERIALIZED VIEW twice AS SELECT id, amount * 2 AS n FROM orders")
    connection.execute("CREATE MATERIALIZED VIEW pairs AS SELECT l.id, r.n FROM orders l JOIN twice r ON l.id = r.id")
    drop("1.jsonl", order(1, 10))
    first = step(engine)
    assert not first.failures
    drop("2.jsonl", order(2, '"many"'), order(3, 30))
    second = step(engine)
    assert not second.failures, "a bad row never fails a run"
    told = connection.execute("SELECT name, failure FROM mz_internal.mz_frontiers").fetchall()
    assert {failure for _, failure in told} == {None}
    for name in ("orders", "twice", "pairs"):
        with pytest.raises(DataError) as caught:
            rows(connection, name)
        says_what_to_do(caught.value, "amount", "its next record takes it back")
        assert caught.value.sqlstate == "22P02"
    drop("3.jsonl", order(2, 20))
    third = step(engine)
    assert rows(connection, "orders") == [(1, 10), (2, 20), (3, 30)]
    assert rows(connection, "twice") == rows(connection, "pairs") == [(1, 20), (2, 40), (3, 60)]
    assert rows(connection, "pairs", first.tick) == [(1, 20)]
    with pytest.raises(DataError):
        rows(connection, "pairs", second.tick)
    assert third.tick > second.tick


def test_a_null_key_is_an_error_of_the_data_and_not_of_the_run(connection: Connection, drop: Drop) -> None:
    connection.execute(ORDERS)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT amount FROM orders WHERE id > 0")
    drop("1.jsonl", order("null", 10), order(1, 11))
    assert not step(connection.engine).failures
    for name in ("orders", "v"):
        with pytest.raises(DataError) as caught:
            rows(connection, name)
        says_what_to_do(caught.value, 'null value in column "id"', "1.jsonl", "line 1", "its next record takes it back")
    # No later row can have that key, so there is a record that withdraws what was under it.
    drop("2.jsonl", '{"key": null, "value": null}')
    assert not step(connection.engine).failures
    assert rows(connection, "orders") == [(1, 11)]
    assert rows(connection, "v") == [(11,)]


def test_a_changed_bound_file_stops_its_source_and_nothing_else(connection: Connection, drop: Drop) -> None:
    engine = connection.engine
    connection.execute(ORDERS)
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW seen AS SELECT id FROM orders")
    connection.execute("CREATE MATERIALIZED VIEW other AS SELECT a + 1 AS a FROM t")
    connection.execute("INSERT INTO t VALUES (1)")
    path = drop("1.jsonl", order(1, 10))
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    bound = path.read_text()
    path.write_text(order(1, 11) + "\n")  # as long as before
    report = engine.step(TIMELINE, tick)
    outcomes = {one.name: one.outcome for one in report.collections}
    assert (outcomes["orders"], outcomes["seen"]) == (Outcome.FAILED, Outcome.BLOCKED)
    assert outcomes["other"] is Outcome.ADVANCED
    assert rows(connection, "other", tick) == [(2,)]
    (failed,) = report.failures
    assert failed.error is not None
    says_what_to_do(failed.error, "1.jsonl", "has changed", "Restore the file")
    with pytest.raises(OperationalError) as caught:
        rows(connection, "seen", tick)
    says_what_to_do(caught.value, "1.jsonl", "has changed", "Restore the file")
    path.write_text(bound)
    assert not engine.step(TIMELINE, tick).failures
    assert rows(connection, "seen", tick) == [(1,)]


# ---- SQL


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("CREATE TABLE t (a integr)", ('type "integr" does not exist', "at character 19", "integer")),
        ("CREATE MATERIALIZED VIEW v AS SELECT b FROM known", ('column "b" does not exist', "at character 38")),
        ("SELECT amout FROM known", ("at character 8", 'Perhaps you meant "amount".')),
        ("SELECT * FROM knwn", ("at character 15", 'Perhaps you meant "known".')),
        ("INSERT INTO knwn VALUES (1)", ("at character 13", 'Perhaps you meant "known".')),
        ("DROP TABLE knwn", ("at character 12", 'Perhaps you meant "known".')),
        ("INSERT INTO v VALUES (1)", ("at character 13", "Only tables are written")),
        ("CREATE TABLE known (a integer)", ('name "known" is taken', "Choose another name")),
    ],
)
def test_sql_that_does_not_parse_or_bind_says_where_and_what(
    connection: Connection, sql: str, parts: tuple[str, ...]
) -> None:
    connection.execute("CREATE TABLE known (amount integer)")
    if sql.startswith("INSERT INTO v"):
        connection.execute("CREATE VIEW v AS SELECT amount FROM known")
    with pytest.raises(ProgrammingError) as caught:
        connection.execute(sql)
    for part in parts:
        assert part in str(caught.value)


def test_a_project_with_a_wrong_file_is_applied_without_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.sql").write_text("CREATE TABLE t (a integer);")
    (tmp_path / "assets" / "b.sql").write_text("CREATE VIEW v AS\nSELECT b FROM t;")
    with Engine(Project.load(tmp_path)) as engine:
        with pytest.raises(ProgrammingError) as caught:
            engine.apply()
        assert 'b.sql:2:8: column "b" does not exist (in "v")' in caught.value.message
        assert [one.name for one in engine.catalog.objects()] == ["t"]


# ---- the world


def test_a_second_runner_is_told_to_wait(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    engine = connection.engine
    with Engine(Project.load(tmp_path), holder="the other") as other:
        lead = other.catalog.lead(TIMELINE, "the other", 60_000)
        assert not isinstance(lead, LedByAnother)
        tick = engine.catalog.write_ts(TIMELINE, engine.now(TIMELINE))
        engine.catalog.apply_write(TIMELINE, tick)
        with pytest.raises(SecondRunner) as caught:
            engine.step(TIMELINE, tick)
        says_what_to_do(caught.value, "is led by the other", "Wait until it has finished")
        with pytest.raises(OperationalError) as late:
            engine.reach(TIMELINE, tick, frozenset({engine.collection_of("m")}), deadline_s=0.2)
        says_what_to_do(late.value, "the other", "AS OF")
        other.catalog.resign(lead)
    assert {one.outcome for one in engine.step(TIMELINE, tick).collections} == {Outcome.CURRENT, Outcome.IDLE}


@pytest.mark.parametrize("what", ["garbage", "folder"])
def test_an_unreadable_catalog_is_named(tmp_path: Path, what: str) -> None:
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (a integer)")
    catalog = tmp_path / ".mz" / "catalog.sqlite"
    for extra in tmp_path.glob(".mz/catalog.sqlite-*"):
        extra.unlink()
    kept = catalog.rename(tmp_path / "kept")
    if what == "garbage":
        catalog.write_bytes(b"this is no database" * 1000)
    else:
        catalog.mkdir()
    with pytest.raises(OperationalError) as caught:
        Engine(Project.load(tmp_path))
    says_what_to_do(caught.value, "catalog", "Check that the database is there")
    shutil.rmtree(catalog) if what == "folder" else catalog.unlink()
    kept.rename(catalog)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
        assert rows(connection, "t") == []


def test_a_damaged_shard_is_an_error_and_never_fewer_rows(connection: Connection, set_budget: SetBudget) -> None:
    set_budget(inlined_rows=0)
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("INSERT INTO t VALUES (2)")
    engine = connection.engine
    shard = engine.project.state / engine.catalog.collection(engine.collection_of("t")).shard
    lost = min(shard.rglob("mz_batch=*/**/*.parquet"))
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(OperationalError) as caught:
        rows(connection, "t")
    says_what_to_do(caught.value, "is incomplete", "damaged")
    lost.write_bytes(kept)
    assert rows(connection, "t") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (b"[project\n", "is not TOML"),
        (b"\xff\xfe\x00", "cannot read"),
        (b"[project]\nnam = 'x'\n", 'unknown setting "project.nam"'),
        (b"[catalog]\nurl = 3\n", 'setting "catalog.url"'),
        (b"[writes]\ninline_rows = '9'\n", 'setting "writes.inline_rows"'),
        (b"[writes]\ninline_bytes = -1\n", 'setting "writes.inline_bytes"'),
        (b"[retention]\nkeep = 'long'\n", 'setting "retention.keep"'),
    ],
)
def test_corrupted_settings_name_the_file_and_say_what_to_do(tmp_path: Path, settings: bytes, message: str) -> None:
    (tmp_path / "mz.toml").write_bytes(settings)
    with pytest.raises(BadSettings) as caught:
        Project.load(tmp_path)
    assert message in caught.value.message
    assert str(tmp_path / "mz.toml") in caught.value.message
    assert caught.value.hint or "must be" in caught.value.message


def test_a_file_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSettings) as caught:
        Project.load(tmp_path / "file")
    says_what_to_do(caught.value, "is not a folder")


# ---- Spark


@pytest.fixture
def own_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConfig]:
    """A Spark that a test may kill."""
    config = SparkConfig(state_dir=tmp_path_factory.mktemp("own-spark"), driver_memory="1g")
    yield config
    stop_server(config.state_dir)


@pytest.mark.deep
@pytest.mark.timeout(400)
def test_a_spark_that_goes_in_the_middle_is_reported_and_replaced(
    tmp_path: Path, own_spark: SparkConfig, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    """Killed between two views of a step, and within a SELECT: an error with a hint; then all goes on, on a new one."""
    set_budget(evaluated_updates=0)
    project = Project.load(tmp_path)
    with Connection(Engine(project, spark=own_spark), Isolation.STRICT_SERIALIZABLE) as connection:
        engine = connection.engine
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a * 2 AS b FROM t")
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT b + 1 AS c FROM v")
        connection.execute("INSERT INTO t VALUES (1)")
        tick = engine.poll(TIMELINE).tick
        assert tick is not None
        server = ensure_server(own_spark)

        def pull_the_plug(line: str) -> None:
            if line.startswith('"w"') and "maintaining" in line:
                os.kill(server.pid, signal.SIGKILL)

        report = engine.step(TIMELINE, tick, progress=pull_the_plug)
        outcomes = {one.name: one.outcome for one in report.collections}
        assert (outcomes["v"], outcomes["w"]) == (Outcome.ADVANCED, Outcome.FAILED)
        (failed,) = report.failures
        assert isinstance(failed.error, OperationalError)
        says_what_to_do(failed.error, "Spark", "mz-dagster spark status")
        assert rows(connection, "v") == [(2,)]  # sealed, and small enough to need no Spark
        assert rows(connection, "w") == [(3,)]
        second = server_status(own_spark.state_dir)
        assert second is not None
        assert second.pid != server.pid

        with monkeypatch.context() as patched:
            take = engine.spark.open

            def take_and_kill() -> Any:
                taken = take()
                os.kill(second.pid, signal.SIGKILL)
                return taken

            patched.setattr(engine.spark, "open", take_and_kill)
            with pytest.raises(OperationalError) as caught:
                connection.execute("SELECT b + 1 FROM v WHERE b > 0")
        says_what_to_do(caught.value, "Spark", "mz-dagster spark status")
        assert connection.execute("SELECT b + 1 FROM v WHERE b > 0").fetchall() == [(3,)]
