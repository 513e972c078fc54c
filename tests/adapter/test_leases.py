"""Whoever led a timeline and is gone keeps nobody waiting: neither killed, nor asked to end."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster import cli
from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.adapter.engine import SecondRunner
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.clock import SYSTEM_CLOCK
from tests.command_line import Started


def lead(arguments: Sequence[str]) -> int:
    """Leads the timeline of a folder by a command of the command line, until a line comes."""

    def leads(options: argparse.Namespace) -> int:
        with Engine(Project.load(options.project), holder="a runner") as engine, engine.lead("default"):
            print("leads", flush=True)
            sys.stdin.readline()
        return 0

    cli._frontiers = leads
    return cli.main(["--project", *arguments, "frontiers"])


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "mz.toml").write_text("")
    with Engine(Project.load(tmp_path)) as opened:
        session = Session(opened)
        session.execute("CREATE TABLE t (a integer)")
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a > 0")
        session.execute("INSERT INTO t VALUES (1)")
        yield opened


@contextmanager
def leading(folder: Path) -> Iterator[Started]:
    """Runs a command of the command line that leads the timeline until it is ended."""
    with Started(lead, str(folder)) as it:
        assert it.stdout.readline() == "leads\n", it.stderr.read()
        yield it


def test_a_read_waits_for_no_killed_runner(engine: Engine) -> None:
    with leading(engine.project.root) as runner:
        runner.kill()
        runner.wait(30)
        begun = SYSTEM_CLOCK.monotonic_ms()
        assert Session(engine).execute("SELECT a FROM v").rows == ((1,),)
        assert SYSTEM_CLOCK.monotonic_ms() - begun < engine.project.lease_ms / 4


def test_a_command_that_is_terminated_gives_its_lease_back(engine: Engine) -> None:
    with leading(engine.project.root) as runner:
        assert engine.catalog.leader("default", engine.project.lease_ms) is not None
        runner.send_signal(signal.SIGTERM)
        _, errors = runner.communicate(60)
    assert (runner.poll(), errors) == (143, "terminated; what was acknowledged is durable\n")
    (row,) = engine.catalog.records()["timeline"]
    assert (row["holder"], row["until_ms"], row["process"]) == (None, None, None)


def test_who_waits_is_told_for_whom_and_how_long(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.catalog.apply_write("default", tick := engine.catalog.write_ts("default", 0))
    with leading(engine.project.root) as runner:
        with pytest.raises(SecondRunner, match="is led by a runner") as raised:
            engine.step("default", tick)
        assert raised.value.detail is not None
        assert 0 < int(raised.value.detail.removeprefix("Its lease ends in ").partition(" s ")[0]) <= 60
        assert raised.value.detail.endswith(" s unless it is renewed.")

        class Ending(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                runner.kill()
                runner.wait(30)

        logging.getLogger("mz_dagster.engine").addHandler(ending := Ending(logging.WARNING))
        try:
            assert Session(engine).execute("SELECT a FROM v").rows == ((1,),)
        finally:
            logging.getLogger("mz_dagster.engine").removeHandler(ending)
    (told,) = [one.getMessage() for one in caplog.records if "waiting" in one.getMessage()]
    assert told.startswith('waiting for a runner, who leads timeline "default": its lease ends in ')


def test_the_length_of_a_lease_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[leases]\nduration = '20 s'\n[writes]\ndeadline = '5 s'\n")
    project = Project.load(tmp_path)
    assert (project.lease_ms, project.write_deadline_ms) == (20_000, 5_000)
    with Engine(project) as engine, engine.lead("default"):
        led = engine.catalog.leader("default", 60_000)
        assert led is not None
        assert led.until_ms <= engine.clock.now_ms() + 20_000
    assert replace(project).lease_ms == 20_000
    for wrong in ("1 s", "2 h"):
        (tmp_path / "mz.toml").write_text(f"[leases]\nduration = '{wrong}'\n")
        with pytest.raises(BadSettings, match=r"leases\.duration"):
            Project.load(tmp_path)
