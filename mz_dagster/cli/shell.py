"""The shell's terminal: statements with a history, colours, and completion of keywords and names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from mz_dagster.cli.scripts import is_complete
from mz_dagster.disk import make_private_file
from mz_dagster.sql.cursor import RESERVED, quoted

_PROMPT, _MORE = "mz> ", "  > "
#: Words of statements that are completed beside those that are reserved.
_WORDS = """
    add alter asc begin by column comment commit conflict connection copy cross delete drop emit escape exists explain
    filter first following full history if ilike index inner insert is join key last left like materialized natural
    nothing nulls of ordinality outer over partition preceding progress range recursive rename replace retain right
    rollback rollup row rows schema secret set show sink snapshot source subscribe temporary ties truncate unbounded
    update up values view
"""
_BEGUN = re.compile(r'"[^"]*$|[^\W\d][\w$]*$')


class SqlCompleter(Completer):
    """Completes what has been begun of a keyword, or of the name of an object, a column or a function.

    Args:
        names: Returns the names that there are now.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self._keywords = sorted({*RESERVED, *_WORDS.split()})

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yields what may be meant, names first; keywords as they were begun, in capitals or small letters."""
        begun = _BEGUN.search(document.text_before_cursor)
        if begun is None:
            return
        text = begun[0]
        spelled = sorted({quoted(name) for name in self._names()})
        keywords = (word.upper() if text[0].isupper() else word for word in self._keywords)
        for one in (*spelled, *keywords):
            if one.lower().startswith(text.lower()) or one.lower().startswith(f'"{text.lower()}'):
                yield Completion(one, start_position=-len(text))


def read_statements(history: Path, names: Callable[[], Iterable[str]]) -> Iterator[str]:
    """Yields what is entered at the terminal, statements up to a semicolon or a command, until the input ends.

    Args:
        history: The file that remembers statements from one shell to the next; closed to other users.
        names: Returns what is completed beside keywords.
    """
    # Enter ends what is complete, and else begins a line.
    goes_on = Condition(lambda: not is_complete(get_app().current_buffer.text))
    session = PromptSession[str](
        _PROMPT,
        completer=SqlCompleter(names),
        complete_while_typing=False,
        history=_history(history),
        lexer=PygmentsLexer(PostgresLexer),
        multiline=goes_on,
        prompt_continuation=_MORE,
    )
    while True:
        try:
            text = session.prompt()
        except EOFError:
            return
        except KeyboardInterrupt as interrupt:
            if type(interrupt) is not KeyboardInterrupt:
                raise  # the process is to end
            continue
        if text.strip():
            yield text


def _history(path: Path) -> History:
    """Returns the history in a file; one that lasts as long as the shell where no file can be written."""
    try:
        make_private_file(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path) if os.access(path, os.W_OK) else InMemoryHistory()
