"""Incrementally maintained SQL views on Dagster, Spark and Delta Lake, exact at every time.

    import mz_dagster
    connection = mz_dagster.connect("path/to/folder")       # a PEP 249 connection; creates an embedded project
    frame = mz_dagster.read(spark, "departures", as_of)     # a view at a time, as a DataFrame of Spark or another

What PEP 249 wants of a module besides is in `mz_dagster.dbapi`.

What Dagster needs (`mz_assets`, `MzResource`, `MzProjectComponent`, ...) is here too, and is imported only when it is
asked for, so that a session does not pay for Dagster. `dg` asks for all of it: it looks through `dir(mz_dagster)` for
components.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mz_dagster.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from mz_dagster.garbage import without_collections
from mz_dagster.version import __version__

if TYPE_CHECKING:
    from mz_dagster.adapter import Connection, Project, connect, read
    from mz_dagster.orchestration import (
        MzDagsterTranslator,
        MzIOManager,
        MzProjectComponent,
        MzResource,
        StepResult,
        build_compaction_job,
        build_compaction_schedule,
        build_continuous_job,
        build_frontier_sensor,
        build_mz_asset_checks,
        build_mz_asset_specs,
        build_mz_definitions,
        build_retention_sensor,
        mz_assets,
        step_selection,
    )

_ORCHESTRATION = (
    "MzDagsterTranslator",
    "MzProjectComponent",
    "MzIOManager",
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
    "step_selection",
)
_HOMES = dict.fromkeys(("Connection", "Project", "connect", "read"), "mz_dagster.adapter")
_HOMES |= dict.fromkeys(_ORCHESTRATION, "mz_dagster.orchestration")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        with without_collections():  # else a seventh of the time that it takes
            return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "MzDagsterTranslator",
    "MzIOManager",
    "MzProjectComponent",
    "MzResource",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Project",
    "StepResult",
    "__version__",
    "build_compaction_job",
    "build_compaction_schedule",
    "build_continuous_job",
    "build_frontier_sensor",
    "build_mz_asset_checks",
    "build_mz_asset_specs",
    "build_mz_definitions",
    "build_retention_sensor",
    "connect",
    "mz_assets",
    "read",
    "step_selection",
]
