"""Driving a project in one process: its own sensors and runs, without Dagster's daemon.

Evaluates the project's sensors as the daemon would, in their order, launches what they request in this
process, and records every run, materialization and tick in a Dagster instance below the project. A crash
loses nothing: the ticks are in the catalog, and the next drive goes on from there. What is no plain sensor, such as
that of automation conditions or of the status of runs, is left to the daemon.
"""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mz_dagster.adapter import Project
from mz_dagster.errors import Error, OperationalError, ProgrammingError, one_line
from mz_dagster.orchestration.kept_event_log import instance_keeping, told_together
from mz_dagster.orchestration.runs import TICK_TAG

#: Settings for low latency: a run starts when it is requested, instead of waiting in a queue that is looked at every
#: five seconds; and a sensor that watches for arrivals delays no other. A run that does not start is given up, so that
#: another is asked for. The sensors look every few seconds, so what they found is not kept for long if it was nothing.
DAGSTER_YAML = """\
telemetry:
  enabled: false
nux:
  enabled: false
run_coordinator:
  module: dagster.core.run_coordinator
  class: DefaultRunCoordinator
run_monitoring:
  enabled: true
  start_timeout_seconds: 180
  poll_interval_seconds: 30
sensors:
  use_threads: true
  num_workers: 16
retention:
  sensor:
    purge_after_days:
      skipped: 1
      failure: 30
"""

#: More of them where the project asks for warm runs.
LAUNCHER_YAML = """\
run_launcher:
  module: mz_dagster.orchestration.warm_launcher
  class: WarmRunLauncher
"""

AssetEvent = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

_MODULE = "definitions.py"
#: What a materialization of each asset of a project says.
_COST_KEY = "mz/outcome"
#: Where Dagster keeps what is not of one run alone, below its home, unless it is told otherwise.
_DATABASES = ("history/runs.db", "schedules/schedules.db")
#: How many events of a run that come together Dagster hands to its log together, unless it is told otherwise.
_TOGETHER = 100
#: The story of a run is printed by the caller; Dagster's own events are in the instance.
_CONSOLE_LEVEL = "CRITICAL"


@dataclass(frozen=True, slots=True)
class AssetCost:
    """What a run did for one asset, from its materialization's metadata."""

    name: str
    rows: int
    errors: int
    bytes: int
    seconds: float
    outcome: str
    engine: str


@dataclass(frozen=True, slots=True)
class RunDone:
    """A run that succeeded: its partition or range of them, its wall time, and what each asset of the project cost."""

    partition: str
    seconds: float
    assets: tuple[AssetCost, ...]


class RunFailed(OperationalError):
    """Dagster runs that did not succeed, or sensors that could not be evaluated; what they finished is kept."""


def dagster_home(project: Project) -> Path:
    """Returns the folder of the project's Dagster instance, with the settings that the project asks for.

    A `dagster.yaml` that somebody has edited is left as it is.
    """
    home = project.state / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    warm = project.warm_runs and sys.platform == "linux"
    wanted = DAGSTER_YAML + (LAUNCHER_YAML if warm else "")
    found = settings.read_text(encoding="utf-8") if settings.exists() else ""
    if found != wanted and found in {"", DAGSTER_YAML, DAGSTER_YAML + LAUNCHER_YAML}:
        new = home / f"dagster.yaml.{os.getpid()}"
        new.write_text(wanted, encoding="utf-8")
        new.replace(settings)
    return home


def load_definitions(project: Project) -> dg.Definitions:
    """Returns the `defs` of the project's `definitions.py`.

    Raises:
        ProgrammingError: There is no such file, it fails, or it defines no `defs`.
    """
    path = project.root / _MODULE
    if not path.is_file():
        raise ProgrammingError(f'"{path}" does not exist', hint="A project that Dagster can load defines `defs` there.")
    if str(project.root) not in sys.path:
        sys.path.insert(0, str(project.root))
    spec = importlib.util.spec_from_file_location("mz_project_definitions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except Exception as error:
        raise _failure(project, error) from error
    found = getattr(module, "defs", None)
    if not isinstance(found, dg.Definitions):
        raise ProgrammingError(f'"{path}" defines no `defs`', hint="Assign a dagster.Definitions to `defs`.")
    return found


def _failure(project: Project, error: Exception) -> ProgrammingError:
    """Returns what an exception of the project's own Python is to its user: the innermost line of theirs, and why."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        at = (error.filename, error.lineno)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        at = next(
            ((one.filename, one.lineno) for one in reversed(frames) if Path(one.filename).is_relative_to(project.root)),
            (str(project.root / _MODULE), None),
        )
    place = f'"{at[0]}"' if at[1] is None else f'"{at[0]}", line {at[1]},'
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    return ProgrammingError(
        f"{place} fails: {type(error).__name__}: {reason}",
        hint="Correct it. What the project maintains is in its SQL files: sql, plan and apply work without Python's.",
    )


@contextmanager
def instance_of(project: Project) -> Iterator[dg.DagsterInstance]:
    """Opens the project's Dagster instance."""
    home = dagster_home(project)
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(_TOGETHER))
    with instance_keeping(home) as instance, _held_open(home):
        yield instance


def tell(instance: dg.DagsterInstance, events: Sequence[AssetEvent]) -> None:
    """Tells an instance of what no run did; if that fails, of none of it, where the instance can."""
    if events:
        with told_together(instance):
            for event in events:
                instance.report_runless_asset_event(event)


@contextmanager
def _held_open(home: Path) -> Iterator[None]:
    """Holds open the databases that Dagster keeps in its home, if they are there.

    Dagster opens SQLite anew for each event. Whoever closes a database last moves its log into it and removes the log,
    which takes as long as the event.
    """
    with ExitStack() as held:
        for path in filter(Path.exists, map(home.joinpath, _DATABASES)):
            connection = held.enter_context(closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)))
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield


def drive(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    *,
    ticks: int,
    on_run: Callable[[RunDone], None],
    tell: Callable[[str], None] = lambda line: None,
    idle_rounds: int = 3,
) -> int:
    """Evaluates the sensors and carries out `ticks` of the runs that they ask for.

    A run that fails, or a sensor, keeps nothing else from being done: the other ticks and objects go on, and the
    failures are raised together at the end. What has failed is not tried again as long as exactly that is asked for.

    Args:
        definitions: The project's definitions.
        instance: Where runs are recorded.
        ticks: How many runs to carry out.
        on_run: Receives each finished run.
        tell: Receives lines for people: what is being done, and why a sensor asks for nothing when that changes.
        idle_rounds: After how many rounds in which no sensor asked for anything to stop.

    Returns:
        How many runs were carried out.

    Raises:
        RunFailed: Some runs, or evaluations of sensors, failed; all others are done.
    """
    repository = definitions.get_repository_def()
    cursors: dict[str, str | None] = {}
    told: dict[str, str | None] = {}
    failures: dict[object, str] = {}
    done = idle = 0
    while done < ticks and idle < idle_rounds:
        idle += 1
        for sensor in repository.sensor_defs:
            if type(sensor) is not dg.SensorDefinition:
                if sensor.name not in told:
                    tell(f"{sensor.name}: left to Dagster's daemon, which evaluates it in its own way")
                told[sensor.name] = None
                continue
            try:
                evaluated = _evaluate(sensor, definitions, instance, cursors.get(sensor.name))
            except Error as error:
                failures[sensor.name] = f"sensor {sensor.name} failed: {one_line(error).rstrip('.')}"
                continue
            failures.pop(sensor.name, None)
            cursors[sensor.name] = evaluated.cursor
            reason = None if evaluated.skip_reason is None else evaluated.skip_reason.skip_message
            if reason and reason != told.get(sensor.name):
                tell(f"{sensor.name}: {reason}")
            told[sensor.name] = reason
            for request in evaluated.run_requests or ():
                asked = sensor.name, _partition(request), frozenset(request.asset_selection or ())
                if asked in failures or done >= ticks:
                    continue
                idle = 0
                done += 1
                tell(f"{sensor.name}: run of {_partition(request)}")
                outcome = _carry_out(definitions, instance, request.job_name or sensor.job.name, request)
                if isinstance(outcome, RunDone):
                    on_run(outcome)
                else:
                    tell(outcome)
                    failures[asked] = outcome
    if failures:
        raise _joint(tuple(failures.values()), done)
    return done


def _joint(failures: Sequence[str], done: int) -> RunFailed:
    hint = "What they finished is kept, and the runs' logs have the rest; run again to go on from there."
    first, *others = failures
    if not others:
        return RunFailed(first, hint=hint)
    detail = f"In their order: {'; '.join(failures)}."
    return RunFailed(f"{len(failures)} failures in {done} runs", detail=detail, hint=hint)


def _evaluate(
    sensor: dg.SensorDefinition, definitions: dg.Definitions, instance: dg.DagsterInstance, cursor: str | None
) -> dg.SensorResult:
    """Evaluates a sensor and carries out what it returns, but for its runs, in the daemon's order."""
    with dg.build_sensor_context(
        instance=instance,
        instance_ref=instance.get_ref(),
        definitions=definitions,
        sensor_name=sensor.name,
        cursor=cursor,
        resources=definitions.resources or {},
    ) as context:
        evaluated = sensor.evaluate_tick(context)
    tell(instance, evaluated.asset_events)
    for request in evaluated.dynamic_partitions_requests or ():
        if isinstance(request, dg.AddDynamicPartitionsRequest):
            instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
        else:
            for key in request.partition_keys:
                instance.delete_dynamic_partition(request.partitions_def_name, key)
    return dg.SensorResult(
        run_requests=evaluated.run_requests or [], skip_reason=evaluated.skip_message, cursor=evaluated.cursor
    )


def _carry_out(
    definitions: dg.Definitions, instance: dg.DagsterInstance, job_name: str, request: dg.RunRequest
) -> RunDone | str:
    """Carries a run out; returns what it did, or why it failed.

    Raises:
        KeyboardInterrupt: A signal interrupted it, which Dagster only records.
    """
    job = definitions.resolve_job_def(job_name)
    if request.asset_selection is not None:  # it is asked for its checks, too, which a run in this process cannot name
        checks = None if request.asset_check_keys is None else frozenset(request.asset_check_keys)
        job = job.get_subset(asset_selection=frozenset(request.asset_selection), asset_check_selection=checks)
    result = job.execute_in_process(
        instance=instance,
        partition_key=request.partition_key,
        # Without the tick's tag, the frontier sensor does not count such a run: who runs by hand need not wait.
        tags={key: value for key, value in request.tags.items() if key != TICK_TAG},
        run_config={"loggers": {"console": {"config": {"log_level": _CONSOLE_LEVEL}}}},
        raise_on_error=False,
    )
    if _was_interrupted(result):
        raise KeyboardInterrupt
    if not result.success:
        return f"run {result.run_id} of {_partition(request)} failed: {_why(result)}"
    record = instance.get_run_record_by_id(result.run_id)
    seconds = 0.0
    if record is not None and record.start_time is not None and record.end_time is not None:
        seconds = record.end_time - record.start_time
    costs: dict[str, AssetCost] = {}
    made = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    for materialization in sorted(made, key=lambda one: one.partition or ""):  # of a range the newest tells all
        name = materialization.asset_key.to_user_string()
        if _COST_KEY in materialization.metadata:  # which assets of others, downstream in the same job, have not
            costs[name] = _cost(name, materialization)
    return RunDone(_partition(request), seconds, tuple(costs.values()))


def _partition(request: dg.RunRequest) -> str:
    """Returns a request's partition, or range of them."""
    ends = (request.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    return request.partition_key or "..".join(end for end in ends if end) or "no partition"


def _was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Returns whether a signal ended a run, which to Dagster is a failure of the step at work."""
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(one is not None and one.cls_name == dg.DagsterExecutionInterruptedError.__name__ for one in errors)


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Returns the reason of a failed run: what our own failure says, else the first error's message."""
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data is not None and data.user_failure_data.description:
                return data.user_failure_data.description
            error = data.error
            while error is not None and error.cause is not None:
                error = error.cause
            if error is not None:
                return error.message.strip()
    return "it gave no reason"


def _cost(name: str, materialization: dg.AssetMaterialization) -> AssetCost:
    value = {key: one.value for key, one in materialization.metadata.items()}
    return AssetCost(
        name,
        int(str(value["mz/rows_out"])),
        int(str(value["mz/errors"])),
        int(str(value["mz/bytes"])),
        float(str(value["mz/spark_s"])),
        str(value[_COST_KEY]),
        str(value["mz/engine"]),
    )
