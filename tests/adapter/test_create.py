"""CREATE of a view that takes long: it says what it does, ends at its deadline, and leaves nothing if it is given up.

Its hydration is kept waiting, so none needs Spark.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Project, Session
from mz_dagster.adapter.engine import TimeNotReached
from mz_dagster.compute import Stepper
from mz_dagster.compute.step.graph import Node
from mz_dagster.errors import ProgrammingError
from tests.errors import says_what_to_do

CREATE = "CREATE MATERIALIZED VIEW slow AS SELECT a, count(*) AS n FROM t GROUP BY a"


@pytest.fixture
def stuck(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Keeps the view's hydration waiting, until the test is over."""
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    begun, go_on = threading.Event(), threading.Event()
    advance = Stepper._advance

    def waiting(stepper: Stepper, run: Any, node: Node, *rest: Any) -> Any:
        if node.name.startswith("slow"):
            begun.set()
            go_on.wait(60)
        return advance(stepper, run, node, *rest)

    monkeypatch.setattr(Stepper, "_advance", waiting)
    yield begun
    go_on.set()


def nothing_is_left(connection: Connection) -> None:
    engine = connection.engine
    assert engine.catalog.resolve_name("slow") is None
    assert [row.name for row in engine.catalog.objects()] == ["t"]
    with engine.lead("default") as lead:
        assert hasattr(lead, "epoch"), "nobody leads the timeline any more"
    with pytest.raises(ProgrammingError):
        connection.execute("SELECT * FROM slow")
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_view_that_is_not_hydrated_by_its_deadline_is_not_created(
    stuck: threading.Event, sparkless: Connection, tmp_path: Path
) -> None:
    (tmp_path / "mz.toml").write_text("[hydration]\ndeadline = '300 ms'\n")
    with Engine(Project.load(tmp_path)) as engine, pytest.raises(TimeNotReached) as late:
        Session(engine).execute(CREATE)
    says_what_to_do(late.value, '"slow" was not hydrated', "hydration.deadline")
    nothing_is_left(sparkless)


def test_an_interrupted_create_leaves_nothing_behind(stuck: threading.Event, sparkless: Connection) -> None:
    def press() -> None:
        stuck.wait(60)
        signal.raise_signal(signal.SIGINT)

    interrupt = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sparkless.execute(CREATE)
    finally:
        signal.signal(signal.SIGINT, before)
        interrupt.join()
    nothing_is_left(sparkless)


def test_what_it_does_is_told(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    told: list[str] = []
    Session(sparkless.engine, progress=told.append).execute(CREATE)
    assert any('"slow"' in line and "hydrating" in line for line in told)
    assert any(line.startswith("sealed") for line in told)
