"""Statements that the command line executes, one by one, and what it prints of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from mz_dagster.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from mz_dagster.adapter import Session
    from mz_dagster.cli.output import Output

#: After how long a statement says what it is about, in milliseconds.
_SLOW_MS = 2000


class Progress:
    """Prints, beside the results, what a statement is about that is not done at once."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Notes that a statement begins."""
        self._begun_ms = SYSTEM_CLOCK.monotonic_ms()

    @property
    def elapsed_ms(self) -> float:
        """How long ago the statement began, in milliseconds."""
        return SYSTEM_CLOCK.monotonic_ms() - self._begun_ms

    def __call__(self, line: str) -> None:
        """Prints a line if the statement has taken long."""
        if self.elapsed_ms >= _SLOW_MS:
            print(line, file=sys.stderr, flush=True)


def execute(
    session: Session, text: str, progress: Progress, output: Output, timing: Callable[[], bool] = lambda: False
) -> None:
    """Executes the statements of a text one by one, up to the first error, and prints what each returns."""
    progress.begin()
    try:
        for result in session.execute_each(text):
            elapsed_ms = progress.elapsed_ms
            _tell(session)
            output.show(result)
            if timing():
                print(f"Time: {elapsed_ms:.3f} ms")
            progress.begin()
    finally:
        _tell(session)


def _tell(session: Session) -> None:
    """Prints what statements have told beside their results."""
    for notice in session.notices():
        print(notice, file=sys.stderr, flush=True)
