"""Incrementally maintained SQL views on Dagster, Spark and Delta Lake, exact at every time.

    import mz_dagster
    connection = mz_dagster.connect("path/to/folder")       # a PEP 249 connection; creates an embedded project
    frame = mz_dagster.read(spark, "departures", as_of)     # a view at a time, as a Spark DataFrame

What Dagster needs (`mz_assets`, `MzResource`, `build_frontier_sensor`, ...) is here too, and is imported only when it
is asked for, so that a session does not pay for Dagster.
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
from mz_dagster.version import __version__

if TYPE_CHECKING:
    from mz_dagster.adapter import Connection, Project, connect, read
    from mz_dagster.orchestration import (
        MzDagsterTranslator,
        MzResource,
        build_frontier_sensor,
        build_mz_asset_specs,
        mz_assets,
    )

#: PEP 249: threads may share the module, but not connections.
threadsafety = 1
#: PEP 249: the version of the interface.
apilevel = "2.0"
#: PEP 249: parameters are written `?`.
paramstyle = "qmark"


class Warning(Exception):
    """PEP 249's class for warnings; none is raised."""


_HOMES = {
    "Connection": "mz_dagster.adapter",
    "Project": "mz_dagster.adapter",
    "connect": "mz_dagster.adapter",
    "read": "mz_dagster.adapter",
    "MzDagsterTranslator": "mz_dagster.orchestration",
    "MzResource": "mz_dagster.orchestration",
    "build_frontier_sensor": "mz_dagster.orchestration",
    "build_mz_asset_specs": "mz_dagster.orchestration",
    "mz_assets": "mz_dagster.orchestration",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "MzDagsterTranslator",
    "MzResource",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Project",
    "Warning",
    "__version__",
    "apilevel",
    "build_frontier_sensor",
    "build_mz_asset_specs",
    "connect",
    "mz_assets",
    "paramstyle",
    "read",
    "threadsafety",
]
