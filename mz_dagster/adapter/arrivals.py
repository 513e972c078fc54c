"""A cheap sign that a poll may find something: what lies in the sources' folders has changed.

It only says when to poll, never what is there. It looks at each folder itself, not at what is in it, and is blind to
files that arrive in folders within, and to writes to tables. Who only wants to poll soon may miss a sign: that costs
the wait until the next regular poll. Who must not miss anything asks whether more is ruled out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mz_dagster.storage.source import Source

_State = tuple[int, int] | None

#: What changes a folder again within so long of its last change may leave it with the same time, in nanoseconds: some
#: file systems know only every other second.
_SAME_TIME_NS = 2_500_000_000


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How a timeline's folders and its feed's clock looked, which `of` has seen.

    Taken before a poll, it leaves no moment at which something may arrive unseen.

    Attributes:
        paths: What it looked at.
        states: How each looked.
        shows_all: Whether whatever arrives from then on makes one of them look different.
    """

    paths: tuple[Path, ...]
    states: tuple[_State, ...]
    shows_all: bool

    @classmethod
    def of(cls, sources: Iterable[Source], clock: Path | None, now_ms: int) -> Self:
        """Returns how the folders of sources and a feed's clock look now."""
        sources = list(sources)
        paths = (*sorted({place for one in sources for place in one.places}), *([] if clock is None else [clock]))
        states = _states(paths)
        latest = now_ms * 1_000_000 - _SAME_TIME_NS
        is_old = all(state is not None and state[1] < latest for state in states)
        return cls(paths, states, is_old and all(one.places_show_all for one in sources))

    def changed(self) -> bool:
        """Returns whether one looks different by now; one small system call for each."""
        return _states(self.paths) != self.states

    def rule_out_more(self) -> bool:
        """Returns whether nothing can have arrived since."""
        return self.shows_all and not self.changed()


def _states(paths: Iterable[Path]) -> tuple[_State, ...]:
    return tuple(map(_state, paths))


def _state(path: Path) -> _State:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
