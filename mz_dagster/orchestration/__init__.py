"""Dagster: a project's timelines as assets, ticks as partitions, sensors that push the frontiers.

Owns everything that imports Dagster. The invariant: a partition is materialized exactly when its time is readable, so
what the UI shows is what a query would find; and Dagster's storage is never asked what is true, only the catalog is.
Losing the whole Dagster instance loses history, not data.

- `assets.py`: `mz_assets`, the decorator, and `build_mz_asset_specs`.
- `translator.py`: `MzDagsterTranslator`, how an object looks as an asset.
- `events.py`: what an asset's events carry.
- `frontier_checks.py`, `checks.py`: the checks that come with each step; those that read the data.
- `data_checks.py`: the project's own, which are maintained.
- `resource.py`: `MzResource`, what ops and sensors use; the op's body.
- `io_manager.py`: `MzIOManager`, tables that assets of others fill, and views that they take.
- `ticks.py`: ticks and partition keys.
- `sensors.py`: the frontier and the retention sensor, on `runs.py` (which run is live, what was tried in vain) and
  `recording.py` (what is readable and not yet recorded).
- `warm_launcher.py`, `warm_process.py`: how runs get their workers, in a fraction of a second.
- `compaction.py`: the compaction job and its schedule.
- `continuous.py`: a timeline driven in one process.
- `project_definitions.py`, `component.py`: all of it by one call, and as a component. `scaffold.py`: new projects.
- `drive.py`: sensors and runs in one process, without the daemon, on `kept_event_log.py`: events without preparing
  anything anew for each.

It plans nothing, steps nothing and stores nothing itself; that is the adapter's engine.

The front door imports what is asked for, so that `mz-dagster init` does not wait for Dagster.

Open to other layers beside this front door: `continuous`, `drive`, `recording`, `scaffold`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mz_dagster.orchestration.assets import build_mz_asset_specs, mz_assets
    from mz_dagster.orchestration.checks import build_mz_asset_checks, step_selection
    from mz_dagster.orchestration.compaction import build_compaction_job, build_compaction_schedule
    from mz_dagster.orchestration.component import MzProjectComponent
    from mz_dagster.orchestration.continuous import build_continuous_job
    from mz_dagster.orchestration.io_manager import MzIOManager
    from mz_dagster.orchestration.project_definitions import build_mz_definitions
    from mz_dagster.orchestration.resource import MzResource, StepResult
    from mz_dagster.orchestration.sensors import build_frontier_sensor, build_retention_sensor
    from mz_dagster.orchestration.ticks import partition_key, partitions_of, tick_of
    from mz_dagster.orchestration.translator import MzDagsterTranslator

_HOMES = {
    "assets": ("build_mz_asset_specs", "mz_assets"),
    "checks": ("build_mz_asset_checks", "step_selection"),
    "compaction": ("build_compaction_job", "build_compaction_schedule"),
    "component": ("MzProjectComponent",),
    "continuous": ("build_continuous_job",),
    "io_manager": ("MzIOManager",),
    "project_definitions": ("build_mz_definitions",),
    "resource": ("MzResource", "StepResult"),
    "sensors": ("build_frontier_sensor", "build_retention_sensor"),
    "ticks": ("partition_key", "partitions_of", "tick_of"),
    "translator": ("MzDagsterTranslator",),
}
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})


__all__ = [
    "MzDagsterTranslator",
    "MzIOManager",
    "MzProjectComponent",
    "MzResource",
    "StepResult",
    "build_compaction_job",
    "build_compaction_schedule",
    "build_continuous_job",
    "build_frontier_sensor",
    "build_mz_asset_checks",
    "build_mz_asset_specs",
    "build_mz_definitions",
    "build_retention_sensor",
    "mz_assets",
    "partition_key",
    "partitions_of",
    "step_selection",
    "tick_of",
]
