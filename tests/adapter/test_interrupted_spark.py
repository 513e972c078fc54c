"""Who interrupts a CREATE, or is faster with it, ends Spark's part of it, too: nothing computes on for nobody."""

from __future__ import annotations

import json
import signal
import threading
import time
from urllib.request import urlopen

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from mz_dagster.catalog import Seal, Sealed
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import Antichain
from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.budgets import SetBudget

_TAG = "interrupted"


def _running(ui: str) -> set[int]:
    """Returns which of the server's running jobs are of the step that is interrupted."""
    with urlopen(f"{ui}/api/v1/applications", timeout=30) as answer:
        (application,) = json.load(answer)
    with urlopen(f"{ui}/api/v1/applications/{application['id']}/jobs?status=running", timeout=30) as answer:
        return {job["jobId"] for job in json.load(answer) if any(_TAG in tag for tag in job["jobTags"])}


def busy(ui: str) -> bool:
    """Returns whether Spark is at it, once it is: at a job that is none of the short ones; False after two minutes."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        before = _running(ui)
        time.sleep(2)
        if before & _running(ui):
            return True
    return False


def wait_until_idle(ui: str) -> None:
    end = time.monotonic() + 60
    while _running(ui):
        assert time.monotonic() < end, "Spark goes on"
        time.sleep(0.2)


@pytest.mark.timeout(300)
def test_an_interrupted_create_ends_what_spark_does_for_it(
    connection: Connection, spark_config: SparkConfig, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mz_dagster.compute.step.run.secrets.token_hex", lambda _: _TAG)
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t SELECT g FROM generate_series(1, 1300) g")
    set_budget(Budget.spark_alone())
    ui = ensure_server(spark_config).ui_url
    seen = threading.Event()

    def press() -> None:
        if busy(ui):
            seen.set()
        signal.raise_signal(signal.SIGINT)

    interrupt = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):  # of two billion rows, after which a task ends that Spark cannot stop
            connection.execute(
                "CREATE MATERIALIZED VIEW slow AS SELECT count(*) AS n FROM t x, t y, t z WHERE x.a + y.a <> z.a"
            )
    finally:
        signal.signal(signal.SIGINT, before)
        interrupt.join()
    assert seen.is_set(), "Spark was at it"
    wait_until_idle(ui)
    with pytest.raises(ProgrammingError):
        connection.execute("SELECT * FROM slow")


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_what_another_is_faster_with_ends_here_and_is_not_waited_for(
    connection: Connection, spark_config: SparkConfig, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mz_dagster.compute.step.run.secrets.token_hex", lambda _: _TAG)
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t SELECT g FROM generate_series(1, 1300) g")
    set_budget(Budget.spark_alone())
    ui = ensure_server(spark_config).ui_url
    catalog = connection.engine.catalog
    ended: list[float] = []

    def be_faster() -> None:
        assert busy(ui)
        row = catalog.collection(connection.engine.collection_of("slow"))
        upper = Antichain.of(row.upper.lattice, catalog.read_ts("default") + 1)
        assert isinstance(catalog.seal([Seal(row.id, row.upper, upper, None, None)]), Sealed)
        ended.append(time.monotonic())

    faster = threading.Thread(target=be_faster)
    faster.start()
    try:  # of two billion rows, none of which passes
        connection.execute(
            "CREATE MATERIALIZED VIEW slow AS SELECT x.a FROM t x, t y, t z WHERE x.a + y.a + z.a < x.a + y.a"
        )
        waited = time.monotonic() - ended[0]
    finally:
        faster.join()
    assert waited < 20, "it is not waited for"
    wait_until_idle(ui)
    assert connection.execute("SELECT * FROM slow").fetchall() == []
