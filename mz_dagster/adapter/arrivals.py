"""A cheap sign that a poll may find something: what lies in the sources' folders has changed.

It only says when to poll, never what is there: a sign that is missed costs the wait until the next regular poll. So it
looks at each folder itself, not at what is in it, and is blind to files that arrive in folders within, and to writes
to tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mz_dagster.adapter.engine import Engine

_State = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How a timeline's folders and its feed's clock looked, which `of` has seen.

    Taken before a poll, it leaves no moment at which something may arrive unseen.
    """

    paths: tuple[Path, ...]
    states: tuple[_State, ...]

    @classmethod
    def of(cls, engine: Engine, timeline: str) -> Self:
        """Returns how they look now."""
        folders = set(engine.folders(timeline))
        settings = engine.project.timelines.get(timeline)
        clock = () if settings is None or settings.clock is None else (settings.clock,)
        paths = (*sorted(folders), *clock)
        return cls(paths, _states(paths))

    def changed(self) -> bool:
        """Returns whether one looks different by now; one small system call for each."""
        return _states(self.paths) != self.states


def _states(paths: Iterable[Path]) -> tuple[_State, ...]:
    return tuple(map(_state, paths))


def _state(path: Path) -> _State:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
