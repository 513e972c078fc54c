"""What the shell is told beside SQL: commands that begin with a backslash, as psql's do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter import Session
from mz_dagster.cli.output import Output, OutputFormat
from mz_dagster.disk import path_of
from mz_dagster.errors import ProgrammingError

HELP = r"""
\?                this list
\q                leave, as Ctrl-D does
\d                all objects
\d NAME           the columns of one, its indexes, and how it was created
\dt \dv \dm \ds    tables, views, materialized views, sources
\di \dn \dT       indexes, schemas, types
                  with a pattern, those whose names it matches: * any text, ? any character
\i FILE           execute a file's statements, one by one
\format FORMAT    print rows as a table, as csv, json (a line for each row) or markdown
\x [on | off]     a line for each cell of a table
\timing [on | off] how long each statement took
""".strip()

_LISTS: Mapping[str, str] = {
    "d": "OBJECTS",
    "dt": "TABLES",
    "dv": "VIEWS",
    "dm": "MATERIALIZED VIEWS",
    "ds": "SOURCES",
    "di": "INDEXES",
    "dn": "SCHEMAS",
    "dT": "TYPES",
}


class Left(Exception):
    """The shell is to be left."""


@dataclass
class ShellCommands:
    """The commands of one shell, and what they have set.

    Attributes:
        session: What is asked.
        output: How it prints.
        execute_file: Executes the statements of a file.
        timing: Whether the shell tells how long each statement took.
    """

    session: Session
    output: Output
    execute_file: Callable[[Path], None]
    timing: bool = False

    def run(self, line: str) -> None:
        """Carries out a line that begins with a backslash.

        Raises:
            Left: It says that the shell is to be left.
            ProgrammingError: There is no such command, or it takes no such argument.
        """
        command, _, argument = line.strip().removeprefix("\\").partition(" ")
        argument = argument.strip().rstrip(";").rstrip()
        match command:
            case "q":
                raise Left
            case "?":
                print(HELP)
            case "x":
                self.output.expanded = _switched(self.output.expanded, argument)
                print(f"Expanded display is {'on' if self.output.expanded else 'off'}.")
            case "timing":
                self.timing = _switched(self.timing, argument)
                print(f"Timing is {'on' if self.timing else 'off'}.")
            case "format":
                self.output.format = _format(argument)
                print(f"Rows are printed as {self.output.format}.")
            case "i" if argument:
                self.execute_file(path_of(argument))
            case "d" if argument and not {"*", "?"} & set(argument):
                self._describe(argument)
            case _ if command in _LISTS:
                self._list(_LISTS[command], argument)
            case _:
                raise ProgrammingError(f"there is no command \\{command}", hint="\\? lists those there are.")

    def _list(self, what: str, pattern: str) -> None:
        like = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%").replace("?", "_")
        wanted = " LIKE '{}'".format(like.replace("'", "''")) if pattern else ""
        self._show(f"SHOW {what}{wanted}")

    def _describe(self, name: str) -> None:
        self._show(f"SHOW COLUMNS FROM {name}")
        if self.session.execute(f"SHOW INDEXES ON {name}").rows:
            print()
            self._show(f"SHOW INDEXES ON {name}")
        kinds = self.session.execute("SHOW OBJECTS WHERE name = ?", [name.strip('"')]).rows
        for _, kind in kinds:
            print()
            for _, text in self.session.execute(f"SHOW CREATE {kind.upper()} {name}").rows:
                print(text)

    def _show(self, statement: str) -> None:
        self.output.show(self.session.execute(statement))


def _switched(value: bool, argument: str) -> bool:
    if argument not in ("", "on", "off"):
        raise ProgrammingError(f'"{argument}" is neither on nor off')
    return not value if not argument else argument == "on"


def _format(argument: str) -> OutputFormat:
    try:
        return OutputFormat(argument)
    except ValueError:
        raise ProgrammingError(
            f'there is no format "{argument}"', hint=f"There are {', '.join(OutputFormat)}."
        ) from None
