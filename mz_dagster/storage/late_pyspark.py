"""What of PySpark renders plans, imported when it is used first: a process that needs no Spark does not wait for it.

`functions`, `types` and `Window` are those of `pyspark.sql`. Each stands for its name there until an attribute of it is
asked for, which then is PySpark's own. What Spark's workers run of ours is sent to them by value from then on: they
need no `mz_dagster`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

#: Packages, with all below them, and modules of which functions run on workers.
_BY_VALUE = (
    "mz_dagster.scalars",
    "mz_dagster.functions",
    "mz_dagster.plan",
    "mz_dagster.storage.source.input_functions",
    "mz_dagster.storage.source.json_record",
    "mz_dagster.storage.envelope.log_place",
)

if TYPE_CHECKING:
    from pyspark.sql import Window, functions, types
else:

    class _Late:
        """Stands for a name of a module."""

        def __init__(self, module: str, name: str) -> None:
            self._place = module, name

        def __getattr__(self, name: str) -> Any:
            module, of = self._place
            found = getattr(getattr(import_module(module), of), name)
            _send_by_value()
            setattr(self, name, found)  # found without this method from now on
            return found

        def __reduce__(self) -> tuple[type[_Late], tuple[str, str]]:
            return _Late, self._place

    @cache
    def _send_by_value() -> None:
        from pyspark import cloudpickle

        for name in _BY_VALUE:
            cloudpickle.register_pickle_by_value(import_module(name))

    functions, types, Window = (_Late("pyspark.sql", name) for name in ("functions", "types", "Window"))

__all__ = ["Window", "functions", "types"]
