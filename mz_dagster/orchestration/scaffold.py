"""Scaffolding: a new project's files, from the templates beside this file.

Owns what `mz-dagster init` and `dg scaffold defs mz_dagster.MzProjectComponent` write. A template is the file itself,
under its name and `.tmpl`, so that no tool takes it for a part of this package; `{{ name }}` in it is the project's
name, and a leading `dot.` of its name stands for `.`. Nothing that is there is ever overwritten, and what is refused
writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from mz_dagster.errors import OperationalError, ProgrammingError

_SUFFIX = ".tmpl"
#: What a project of its own needs, and one within a Dagster project does not: Dagster loads the component.
_STANDALONE = (".py", "workspace.yaml", "pyproject.toml", "README.md")


class FilesInTheWay(ProgrammingError):
    """A project cannot be scaffolded, because files of it are there already."""

    sqlstate = "58P02"


def scaffold_project(folder: Path, *, name: str | None = None) -> tuple[Path, ...]:
    """Writes a new project into a folder, which is made if need be, and returns the paths of its files, sorted.

    Args:
        folder: The project's root.
        name: The project's name; by default the folder's.

    Raises:
        FilesInTheWay: One of the files is there already; nothing was written.
        ProgrammingError: The name is none for a Python package.
        OperationalError: A file cannot be written.
    """
    return write_files(folder, project_files(name or folder.resolve().name))


def project_files(name: str, *, standalone: bool = True) -> Mapping[str, str]:
    """Returns the contents of a new project's files by their paths below its root, sorted.

    Args:
        name: The project's name.
        standalone: Whether Dagster loads the project itself; else a component does, of a project around it.

    Raises:
        ProgrammingError: The name is none for a Python package.
    """
    if not name.replace("-", "_").isidentifier() or not name.isascii():
        raise ProgrammingError(
            f'"{name}" is no name for a project',
            detail="It becomes the name of a Python package.",
            hint="Begin with a letter, go on with letters, digits, _ and -, or name it with --name.",
        )
    found = dict(_templates(files("mz_dagster.orchestration") / "templates", ""))
    return {
        path: text.replace("{{ name }}", name)
        for path, text in sorted(found.items())
        if standalone or not path.endswith(_STANDALONE)
    }


def _templates(folder: Traversable, prefix: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= _templates(one, f"{prefix}{one.name}/")
        elif one.name.endswith(_SUFFIX):
            name = one.name.removesuffix(_SUFFIX)
            name = "." + name.removeprefix("dot.") if name.startswith("dot.") else name
            found[prefix + name] = one.read_text(encoding="utf-8")
    return found


def write_files(root: Path, contents: Mapping[str, str]) -> tuple[Path, ...]:
    """Writes files below a folder, which is made if need be, and returns their paths.

    Raises:
        FilesInTheWay: One of the files is there already; nothing was written.
        OperationalError: A file cannot be written.
    """
    there = [path for path in contents if (root / path).exists() or (root / path).is_symlink()]
    if there:
        raise FilesInTheWay(
            f'"{root}" holds files of a project already: {", ".join(there)}',
            detail="Nothing was written.",
            hint="Name another folder, or move those files away.",
        )
    try:
        for path, text in contents.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise OperationalError(
            f'cannot write "{error.filename}": {error.strerror}', hint="Name a folder in which files can be made."
        ) from error
    return tuple(root / path for path in contents)
