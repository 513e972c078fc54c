"""The times that mean something by themselves, on every timeline."""

from __future__ import annotations

#: The first time of every timeline, at which constants come.
FIRST_TIME = 0
#: Where operators put what was there before an interval: before every time.
PRIOR = -1
