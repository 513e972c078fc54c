"""A run that is cancelled ends at once, although what it computes goes on in threads that nobody can end."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from mz_dagster import MzResource, Project, StepResult, connect, mz_assets
from mz_dagster.compute import Stepper
from mz_dagster.compute.step.graph import Node
from tests.forks import forks

#: For how long a view computes, and how soon a run that is interrupted has to be over, in seconds.
_COMPUTES_S, _SOON_S = 60, 20


def _run(root: Path) -> None:
    """Steps a project as a run's process does, and computes a view for long."""
    advance = Stepper._advance

    def slow(stepper: Stepper, run: Any, node: Node, *rest: Any) -> Any:
        if node.name == "doubled":
            (root / "begun").touch()
            time.sleep(_COMPUTES_S)
        return advance(stepper, run, node, *rest)

    setattr(Stepper, "_advance", slow)  # noqa: B010  # in a process of its own

    @mz_assets(project=Project.load(root))
    def stepped(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    resources = {"mz": MzResource(project_dir=str(root))}
    defs = dg.Definitions([stepped], resources=resources, executor=dg.in_process_executor)
    with dg.DagsterInstance.ephemeral() as instance:
        try:
            defs.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance, raise_on_error=False)
        finally:
            (run,) = instance.get_runs()
            (root / "status").write_text(run.status.value)


def test_a_cancelled_run_does_not_wait_for_what_it_computes(quiet: Project) -> None:
    (quiet.root / "landing" / "a" / "1.jsonl").write_text('{"key": {"id": 1}, "value": {}}\n')
    (quiet.root / "clock").write_text("1")
    process = forks().Process(target=_run, args=(quiet.root,))
    process.start()
    try:
        until = time.monotonic() + 60
        while not (quiet.root / "begun").exists():
            assert time.monotonic() < until, "the view was never computed"
            assert process.is_alive()
            time.sleep(0.05)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
        process.join(_SOON_S)
        assert process.exitcode == 128 + signal.SIGINT, "it waits for what it has given up"
    finally:
        process.kill()
        process.join()
    # Dagster has recorded it before; a run that Dagster is not asked to cancel has failed.
    assert (quiet.root / "status").read_text() == dg.DagsterRunStatus.FAILURE.value

    with connect(quiet.root) as connection:
        with connection.engine.lead("feed") as lead:
            assert hasattr(lead, "epoch"), "nobody leads the timeline any more"
        assert connection.execute("SELECT two FROM doubled").fetchall() == [(2,)]
