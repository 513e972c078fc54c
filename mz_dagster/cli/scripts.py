r"""Texts of statements and commands, as `sql -f`, `-c` and `\i` have them: executed one by one, up to the first error.

A line that begins with a backslash where no statement has begun is a command of the shell.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mz_dagster.adapter import Session
from mz_dagster.cli.output import Output
from mz_dagster.cli.shell_commands import Left, ShellCommands
from mz_dagster.cli.statements import Progress, execute
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.sql import split
from mz_dagster.sql.errors import InvalidSyntax


def commands_of(session: Session, progress: Progress, output: Output) -> ShellCommands:
    """Returns the commands of one shell, or of one call of `sql`."""
    commands = ShellCommands(session, output, lambda path: execute_file(commands, path, progress))
    return commands


def execute_text(commands: ShellCommands, text: str, progress: Progress) -> None:
    """Executes what a text consists of, and prints what each statement returns.

    Args:
        commands: Carries out the commands, and has the session and its output.
        text: The text.
        progress: Is told of each statement that begins.
    """
    try:
        for part, is_command in parts_of(text):
            if is_command:
                commands.run(part)
            else:
                execute(commands.session, part, progress, commands.output, lambda: commands.timing)
    except Left:
        return


def execute_file(commands: ShellCommands, path: Path, progress: Progress) -> None:
    """Executes a file's text likewise; its errors say where in it."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # each end of a line as it is: it may be one in a literal
    except (OSError, UnicodeDecodeError) as error:
        raise ProgrammingError(f'cannot read "{path}": {error}', hint="Name a readable UTF-8 file.") from error
    try:
        execute_text(commands, text, progress)
    except Error as error:
        error.point_out_file(str(path))
        raise


def parts_of(text: str) -> Iterator[tuple[str, bool]]:
    r"""Yields the parts of a text, and whether each is a command; statements stand in the lines where they stood.

    Example:
        >>> list(parts_of("SELECT 1;\n\\x\nSELECT '\n\\x';"))
        [('SELECT 1;\n', False), ('\\x', True), ("\n\nSELECT '\n\\x';", False)]
    """
    begun = at = 0
    for line in text.split("\n"):
        end = min(len(text), at + len(line) + 1)
        if line.lstrip().startswith("\\") and is_complete(text[begun:at]):
            if text[begun:at].strip():
                yield "\n" * text.count("\n", 0, begun) + text[begun:at], False
            yield line, True
            begun = end
        at = end
    if text[begun:].strip():
        yield "\n" * text.count("\n", 0, begun) + text[begun:], False


def is_complete(text: str) -> bool:
    r"""Returns whether nothing has to follow what was entered: it is a command, blank, or ends with its semicolon.

    Example:
        >>> is_complete("SELECT ';'"), is_complete("SELECT 1 -- ;"), is_complete("SELECT 1; -- one")
        (False, False, True)
    """
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    try:
        return not split(text)[-1].tokens
    except InvalidSyntax as error:
        return not error.message.startswith("unterminated")
