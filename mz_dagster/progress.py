"""How far long work is: rows or bytes done of how many, the rate, and the time left.

Who works opens a `task`, and whatever does a part of it calls `advance`, which goes to the innermost task of its
thread, or of the thread whose context it has a copy of. Who watches is chosen by whoever calls all that: `reported_to`
adds a reporter: `Bars` for a person at a terminal, `Lines` for logs and Dagster's events. What is over soon has none.
What is long is shown every second, so that also a task is seen of which no part is done for a while.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Thread
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from mz_dagster.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: What the amounts of a task are.
Unit = Literal["rows", "bytes", "collections"]

#: How often a line tells of a task, in seconds; one that is over earlier has none.
LINE_S = 10.0
#: After how long a task gets a bar, in seconds.
BAR_AFTER_S = 1.0
#: How often open tasks are shown that nobody advances, in seconds.
_LOOK_S = 1.0

_SIZES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


class Task:
    """A piece of long work, which several threads may advance.

    Attributes:
        name: What is done, for people.
        total: How much there is to do.
        unit: What is counted.
        is_over: Whether it has ended; who shows it then forgets it.
    """

    def __init__(self, name: str, total: int, unit: Unit, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self.is_over = False
        self._advanced = 0
        self._shares: dict[str, tuple[int, int]] = {}
        self._reporters = _reporters.get()
        self._clock = clock
        self._begun_ms = clock.monotonic_ms()
        self._lock = Lock()

    @property
    def done(self) -> int:
        """How much is done, at most `total`."""
        parts, of = (sum(each) for each in zip(*self._shares.values(), strict=True)) if self._shares else (0, 0)
        return min(self.total, max(self._advanced, self.total * parts // of if of else 0))

    @property
    def elapsed_s(self) -> float:
        """For how long it has been at work, in seconds."""
        return (self._clock.monotonic_ms() - self._begun_ms) / 1000

    def advance(self, amount: int) -> None:
        """Adds to what is done."""
        with self._lock:
            self._advanced += amount
        self.show()

    def advance_share(self, job: str, parts: int, of: int) -> None:
        """Says how many parts of how many a job of another engine has done; all jobs together do the whole task."""
        with self._lock:
            self._shares = {**self._shares, job: (parts, of)}
        self.show()

    def end(self) -> None:
        """Shows it no more: it is over, or has failed."""
        self.is_over = True
        for one in self._reporters:
            one.end(self)

    def show(self) -> None:
        """Shows it as it is."""
        for one in self._reporters:
            one.show(self)

    def __str__(self) -> str:
        """How much of how much is done, the rate and the time left, for people.

        Example:
            >>> from mz_dagster.clock import ManualClock
            >>> task = Task("backup", 3_000_000_000, "bytes", clock=(clock := ManualClock()))
            >>> clock.advance(10_000)
            >>> task.advance(1_000_000_000)
            >>> str(task)
            '1.0 GB of 3.0 GB, 100.0 MB/s, 20 s left'
        """
        done, elapsed_s = self.done, self.elapsed_s
        told = f"{_amount(done, self.unit)} of {_amount(self.total, self.unit)}"
        told += "" if self.unit == "bytes" else f" {self.unit}"
        if not done or not elapsed_s:
            return told
        rate = done / elapsed_s
        if self.unit != "collections":
            told += f", {_amount(int(rate), self.unit)}{'' if self.unit == 'bytes' else f' {self.unit}'}/s"
        return f"{told}, {_time((self.total - done) / rate)} left"


class Reporter(Protocol):
    """Shows tasks; called by any thread."""

    def show(self, task: Task) -> None:
        """Shows how far a task is, unless it is over."""

    def end(self, task: Task) -> None:
        """Shows a task no more."""


class Lines:
    """Tells of each task every so often in a line, as logs want it.

    Args:
        tell: Receives the lines.
        every_s: How often, in seconds; by default `LINE_S`.
    """

    def __init__(self, tell: Callable[[str], None], every_s: float | None = None) -> None:
        self._tell = tell
        self._every_s = LINE_S if every_s is None else every_s
        self._told_at: dict[Task, float] = {}
        self._lock = Lock()

    def show(self, task: Task) -> None:
        """Tells how far a task is, unless it was told a little while ago."""
        elapsed_s = task.elapsed_s
        with self._lock:
            if task.is_over or elapsed_s - self._told_at.get(task, 0.0) < self._every_s:
                return
            self._told_at[task] = elapsed_s
        self._tell(f"{task.name}: {task}")

    def end(self, task: Task) -> None:
        """Forgets a task."""
        with self._lock:
            self._told_at.pop(task, None)


class Bars:
    """Shows a bar for each task on a terminal, which goes when the task is over.

    Args:
        file: The terminal.
        after_s: After how long a task gets a bar, in seconds.
    """

    def __init__(self, file: TextIO, after_s: float = BAR_AFTER_S) -> None:
        self._file = file
        self._after_s = after_s
        self._shown: Progress | None = None
        self._bars: dict[Task, TaskID] = {}
        self._lock = Lock()

    def show(self, task: Task) -> None:
        """Shows how far a task is."""
        if task.elapsed_s < self._after_s:
            return
        with self._lock:
            if task.is_over:
                return
            if self._shown is None:
                self._shown = _opened(self._file)
            if task in self._bars:
                self._shown.update(self._bars[task], completed=task.done, told=str(task))
            else:
                self._bars[task] = self._shown.add_task(
                    task.name, total=task.total, completed=task.done, told=str(task)
                )

    def end(self, task: Task) -> None:
        """Removes a task's bar, and with the last one all that was drawn."""
        with self._lock:
            bar = self._bars.pop(task, None)
            if self._shown is None or bar is None:
                return
            self._shown.remove_task(bar)
            if not self._bars:
                self._shown.stop()
                self._shown = None


def _opened(file: TextIO) -> Progress:
    """Returns bars on a terminal; the library is loaded once something takes long."""
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(file=file)
    redirects = console.is_terminal and sys.stdout.isatty()
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[told]}", markup=False),
        console=console,
        transient=True,
        redirect_stdout=redirects,
    )
    bars.start()
    return bars


_reporters: ContextVar[tuple[Reporter, ...]] = ContextVar(
    "mz_reporters", default=(Lines(logging.getLogger("mz_dagster.progress").info),)
)
_current: ContextVar[Task | None] = ContextVar("mz_task", default=None)


@contextmanager
def reported_to(reporter: Reporter) -> Iterator[None]:
    """Adds a reporter of what this thread does, and threads with a copy of its context, until the block ends."""
    token = _reporters.set((*_reporters.get(), reporter))
    try:
        yield
    finally:
        _reporters.reset(token)


class _OpenTasks:
    """The tasks of this process, shown every so often by a thread that is there while there are any."""

    def __init__(self) -> None:
        self._tasks: set[Task] = set()
        self._lock = Lock()
        self._thread: Thread | None = None

    def add(self, task: Task) -> None:
        with self._lock:
            self._tasks.add(task)
            if self._thread is None:
                self._thread = Thread(target=self._look, name="mz-progress", daemon=True)
                self._thread.start()

    def remove(self, task: Task) -> None:
        with self._lock:
            self._tasks.discard(task)

    def _look(self) -> None:
        while True:
            SYSTEM_CLOCK.sleep(_LOOK_S)
            with self._lock:
                if not self._tasks:
                    self._thread = None
                    return
                tasks = list(self._tasks)
            for one in tasks:
                try:
                    one.show()
                except Exception:  # a reporter's: the others' tasks are shown all the same
                    _logger.exception("cannot show how far %s is", one.name)
                    self.remove(one)


_logger = logging.getLogger("mz_dagster.progress")
_open = _OpenTasks()


def _begin_anew() -> None:
    """Forgets what a fork has copied: another process's tasks, and a lock that a thread of it may hold."""
    global _open
    _open = _OpenTasks()


os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def task(name: str, total: int, unit: Unit) -> Iterator[Task]:
    """Opens a task, the innermost of this thread until the block ends.

    Example:
        >>> told = []
        >>> with reported_to(Lines(told.append, every_s=0)), task("compaction", 20, "rows"):
        ...     advance(5, "rows")
        >>> told[0].partition(",")[0]
        'compaction: 5 of 20 rows'
    """
    opened, around = Task(name, total, unit), _current.get()
    try:
        _current.set(opened)
        _open.add(opened)
        yield opened
    finally:
        _current.set(around)
        _open.remove(opened)
        opened.end()


def advance(amount: int, unit: Unit) -> None:
    """Adds to what is done of the innermost task, if that counts such things."""
    current = _current.get()
    if current is not None and current.unit == unit:
        current.advance(amount)


def current_task() -> Task | None:
    """Returns the innermost task."""
    return _current.get()


def _amount(number: int, unit: Unit) -> str:
    """Returns a number for people."""
    if unit != "bytes":
        return f"{number:,}"
    name, size = next((one for one in _SIZES if number >= one[1]), ("bytes", 1))
    return f"{number} bytes" if size == 1 else f"{number / size:.1f} {name}"


def _time(seconds: float) -> str:
    """Returns a length of time for people.

    Example:
        >>> _time(11.4), _time(200), _time(9000)
        ('11 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
