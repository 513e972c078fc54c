"""The launcher that is shipped: workers forked from a warm process are launched, ended, killed and found out."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from mz_dagster.errors import OperationalError
from mz_dagster.orchestration.runs import KILLED_TAG
from mz_dagster.orchestration.warm_launcher import WarmRunLauncher
from mz_dagster.orchestration.warm_process import WORKER_TAG
from mz_dagster.process import ProcessIdentity
from tests.orchestration.instances import own_instance

SETTINGS = {
    "run_launcher": {"module": "mz_dagster.orchestration.warm_launcher", "class": "WarmRunLauncher"},
    "run_coordinator": {"module": "dagster.core.run_coordinator", "class": "DefaultRunCoordinator"},
    "run_monitoring": {"enabled": True},
}
DEFINITIONS = """
import json, os, sys, time
from pathlib import Path

import dagster as dg
import numpy as np

HERE = Path(__file__).parent


@dg.op
def tell(context):
    told = {"pid": os.getpid(), "parent": os.getppid(), "version": "VERSION", "random": np.random.random(),
            "command": Path("/proc/self/cmdline").read_text(), "warm": "pyspark.sql.connect.session" in sys.modules,
            "storage": type(context.instance.event_log_storage).__name__}
    (HERE / context.run_id).write_text(json.dumps(told))
    while (HERE / "stay").exists():
        time.sleep(0.05)


@dg.job(executor_def=dg.in_process_executor)
def telling():
    tell()


defs = dg.Definitions(jobs=[telling])
"""

pytestmark = pytest.mark.timeout(180)


class Launched:
    """An instance with the launcher, and a project of one job whose op stays while a file `stay` is there."""

    def __init__(self, instance: dg.DagsterInstance, folder: Path) -> None:
        self.instance, self.folder = instance, folder
        self.define("1")

    @property
    def launcher(self) -> WarmRunLauncher:
        launcher = self.instance.run_launcher
        assert isinstance(launcher, WarmRunLauncher)
        return launcher

    def define(self, version: str) -> None:
        (self.folder / "definitions.py").write_text(DEFINITIONS.replace("VERSION", version))

    def stay(self) -> None:
        (self.folder / "stay").touch()

    def go_on(self) -> None:
        (self.folder / "stay").unlink(missing_ok=True)

    def create(self, executable: str | None = None) -> str:
        path = str(self.folder / "definitions.py")
        job = ReconstructableRepository.for_file(path, "defs", str(self.folder)).get_reconstructable_job("telling")
        origin = job.get_python_origin()
        if executable is not None:
            origin = origin._replace(repository_origin=origin.repository_origin._replace(executable_path=executable))
        run = self.instance.create_run_for_job(job.get_definition(), job_code_origin=origin)
        return run.run_id

    def launch(self) -> str:
        run_id = self.create()
        self.instance.launch_run(run_id, None)  # type: ignore[arg-type]  # the launcher needs no workspace
        return run_id

    def run(self, run_id: str) -> dg.DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def told(self, run_id: str) -> dict[str, Any]:
        """Returns what the run's op tells, once it does."""
        path = self.folder / run_id
        until(lambda: path.exists() and path.read_text().endswith("}"), self.said(run_id))
        told: dict[str, Any] = json.loads(path.read_text())
        return told

    def ends(self, run_id: str, status: dg.DagsterRunStatus, seconds: float = 60) -> None:
        until(lambda: self.run(run_id).is_finished, self.said(run_id), seconds)
        assert self.run(run_id).status == status, self.said(run_id)()

    def said(self, run_id: str) -> Callable[[], str]:
        return lambda: "\n".join(one.user_message or one.message for one in self.instance.all_logs(run_id))


def until(done: Callable[[], bool], why: Callable[[], str], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    """One warm process for the tests that leave it alive."""
    with own_instance(**SETTINGS) as instance:
        yield Launched(instance, tmp_path_factory.mktemp("project"))


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Launched]:
    with own_instance(**SETTINGS) as instance:
        made = Launched(instance, tmp_path)
        yield made
        made.go_on()


def test_runs_are_workers_of_one_warm_process_with_definitions_as_they_are_on_disk(launched: Launched) -> None:
    launched.define("1")
    first = launched.launch()
    launched.ends(first, dg.DagsterRunStatus.SUCCESS)
    launched.define("2")
    second = launched.launch()
    launched.ends(second, dg.DagsterRunStatus.SUCCESS)
    one, two = launched.told(first), launched.told(second)
    assert (one["version"], two["version"]) == ("1", "2")
    assert one["warm"]
    assert one["storage"] == "KeptEventLog", "to open a database for each event takes most of a tick's time"
    assert one["parent"] == two["parent"] != os.getpid()
    assert len({one["pid"], two["pid"], one["parent"]}) == 3
    assert one["random"] != two["random"]
    # What is in a command line, all users of the machine can read.
    _, *command, descriptor, started, end = one["command"].split("\0")
    assert command == ["-P", "-m", "mz_dagster.orchestration.warm_process"]
    assert descriptor.isdigit()
    assert started.isdigit()
    assert not end


def test_any_process_of_the_instance_can_terminate_a_run(launched: Launched) -> None:
    launched.stay()
    run_id = launched.launch()
    told = launched.told(run_id)
    with dg.DagsterInstance.from_ref(launched.instance.get_ref()) as other:  # as the webserver's
        assert other.run_launcher is not launched.launcher
        assert other.run_launcher.terminate(run_id)
        launched.ends(run_id, dg.DagsterRunStatus.CANCELED)
        assert not other.run_launcher.terminate(run_id)
    until(lambda: ProcessIdentity.of(told["pid"]) is None, launched.said(run_id))
    launched.go_on()


def test_a_killed_worker_is_noticed_at_once(launched: Launched) -> None:
    launched.stay()
    run_id = launched.launch()
    os.kill(launched.told(run_id)["pid"], signal.SIGKILL)
    launched.ends(run_id, dg.DagsterRunStatus.FAILURE, seconds=10)
    assert "SIGKILL" in launched.said(run_id)()
    assert KILLED_TAG in launched.run(run_id).tags
    launched.go_on()


def test_run_monitoring_finds_a_worker_that_died_unseen(launched: Launched) -> None:
    launched.stay()
    run_id = launched.launch()
    worker = launched.told(run_id)["pid"]
    run = launched.run(run_id)
    named = json.loads(run.tags[WORKER_TAG])
    assert named["pid"] == worker
    assert launched.launcher.supports_check_run_worker_health
    assert launched.launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    # The number is somebody else's by now.
    recycled = run.with_tags({**run.tags, WORKER_TAG: json.dumps(named | {"started": "0"})})
    assert launched.launcher.check_run_worker_health(recycled).status == WorkerStatus.FAILED
    # Launched from elsewhere: nothing speaks against it.
    elsewhere = run.with_tags({**run.tags, WORKER_TAG: json.dumps(named | {"host": "elsewhere", "pid": 1})})
    assert launched.launcher.check_run_worker_health(elsewhere).status == WorkerStatus.RUNNING
    assert launched.launcher.check_run_worker_health(run.with_tags({})).status == WorkerStatus.RUNNING
    launched.go_on()
    launched.ends(run_id, dg.DagsterRunStatus.SUCCESS)
    until(lambda: ProcessIdentity.of(worker) is None, launched.said(run_id))
    assert launched.launcher.check_run_worker_health(run).status == WorkerStatus.FAILED


@pytest.mark.deep
def test_workers_outlive_their_warm_process_and_are_watched_still(own: Launched) -> None:
    own.stay()
    kept, killed = own.launch(), own.launch()
    warm = own.told(kept)["parent"]
    assert own.told(killed)["parent"] == warm
    os.kill(warm, signal.SIGKILL)
    os.kill(own.told(killed)["pid"], signal.SIGKILL)
    own.ends(killed, dg.DagsterRunStatus.FAILURE, seconds=20)
    third = own.launch()
    assert own.told(third)["parent"] != warm
    assert not own.run(kept).is_finished
    own.go_on()
    for run_id in (kept, third):
        own.ends(run_id, dg.DagsterRunStatus.SUCCESS)


def test_a_warm_process_ends_with_its_launcher_and_a_worker_with_its_run(own: Launched) -> None:
    own.stay()
    run_id = own.launch()
    told = own.told(run_id)
    own.launcher.dispose()
    until(lambda: ProcessIdentity.of(told["parent"]) is None, own.said(run_id))
    assert ProcessIdentity.of(told["pid"]) is not None
    own.go_on()
    own.ends(run_id, dg.DagsterRunStatus.SUCCESS)


@pytest.mark.deep
def test_a_changed_library_needs_a_new_warm_process(
    own: Launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library" / "sitecustomize.py"  # which each interpreter imports when it starts
    library.parent.mkdir()
    library.touch()
    monkeypatch.setenv("PYTHONPATH", str(library.parent))
    own.stay()
    before = own.launch()
    warm = own.told(before)["parent"]
    library.write_text("# another version")
    after = own.launch()
    assert own.told(after)["parent"] not in (warm, os.getpid())
    assert ProcessIdentity.of(warm) is not None  # it has a worker still
    own.go_on()
    for run_id in (before, after):
        own.ends(run_id, dg.DagsterRunStatus.SUCCESS)
    until(lambda: ProcessIdentity.of(warm) is None, own.said(before))


def test_what_cannot_be_launched_here_fails_and_says_why(own: Launched, tmp_path: Path) -> None:
    run_id = own.create(executable="/nowhere/python")
    with pytest.raises(OperationalError, match="cannot be run here") as failure:
        own.instance.launch_run(run_id, None)  # type: ignore[arg-type]
    assert "run_launcher" in str(failure.value.hint)
    own.ends(run_id, dg.DagsterRunStatus.FAILURE)
    without = own.create(executable="/bin/false")  # it starts, and no warm process comes of it
    with pytest.raises(OperationalError, match="started no worker"):
        own.launcher.launch_run(LaunchRunContext(own.run(without), None))
    deaf = tmp_path / "python"
    deaf.write_text("#!/bin/sh\nsleep 1\n")  # it ends before it has read what it was told
    deaf.chmod(0o700)
    unheard = own.create(executable=str(deaf))
    with pytest.raises(OperationalError, match="started no worker"):
        own.launcher.launch_run(LaunchRunContext(own.run(unheard), None))


@pytest.mark.deep
@pytest.mark.deep
def test_a_library_that_changes_while_it_is_imported_is_imported_again(
    own: Launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library" / "sitecustomize.py"
    library.parent.mkdir()
    # The first interpreter that imports it finds it changed since.
    library.write_text("open(__file__, 'w').write('# another version')")
    monkeypatch.setenv("PYTHONPATH", str(library.parent))
    processes: list[int] = []
    started = subprocess.Popen.__init__

    def counted(self: Any, *args: Any, **keywords: Any) -> None:
        started(self, *args, **keywords)
        processes.append(self.pid)

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    run_id = own.launch()
    own.ends(run_id, dg.DagsterRunStatus.SUCCESS)
    first, second = processes
    assert own.told(run_id)["parent"] == second != first
