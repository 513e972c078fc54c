"""sqlglot's parser as classes that can be inherited, however sqlglot is installed.

`sqlglot[rs]` and `sqlglot[c]`, which other packages ask for (dagster-dbt is one), put a compiled module beside each of
sqlglot's sources, and a class written in Python cannot inherit from a compiled one. So where the parser is compiled,
the sources of the three modules that hold it are run once more, as modules of this package, which nobody else sees: to
them alone the name of each stands for its interpreted form. All else, the classes of the trees above all, both share.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

#: The modules of the classes that are inherited, bases first.
_MODULES = ("sqlglot.parser", "sqlglot.parsers.postgres", "sqlglot.parsers.materialize")


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and not isinstance(spec.loader, SourceFileLoader)


def _source(name: str) -> Path:
    """Returns the file of a module's source: beside its compiled form, as both are installed into one folder.

    Raises:
        ImportError: There is none.
    """
    package, _, last = name.rpartition(".")
    for folder in importlib.import_module(package).__path__:
        path = Path(folder) / f"{last}.py"
        if path.is_file():
            return path
    raise ImportError(
        f"the source of {name} is not installed beside its compiled form; install sqlglot without [c] and [rs]",
        name=name,
    )


def _interpreted(names: tuple[str, ...]) -> dict[str, ModuleType]:
    """Returns the modules as run from their sources, each importing those before it in the place of the compiled."""
    found: dict[str, ModuleType] = {}

    def import_(
        name: str, names: Any = None, its: Any = None, wanted: tuple[str, ...] | None = (), level: int = 0
    ) -> Any:
        if level == 0 and wanted and name in found:
            return found[name]
        module = builtins.__import__(name, names, its, wanted or (), level)
        own = {last: found[path] for last in wanted or () if (path := f"{name}.{last}") in found}
        if not own:
            return module
        return SimpleNamespace(**{last: own.get(last, getattr(module, last, None)) for last in wanted or ()})

    for name in names:
        own = f"{__name__}.{name}"
        spec = spec_from_file_location(own, _source(name))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_}
        sys.modules[own] = module
        spec.loader.exec_module(module)
        found[name] = module
    return found


if TYPE_CHECKING:
    from sqlglot.parsers.materialize import MaterializeParser
elif any(_is_compiled(name) for name in _MODULES):
    MaterializeParser = _interpreted(_MODULES)[_MODULES[-1]].MaterializeParser
else:
    MaterializeParser = importlib.import_module(_MODULES[-1]).MaterializeParser

__all__ = ["MaterializeParser"]
