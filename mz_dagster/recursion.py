"""How deep calls may be nested: plans are walked by recursion, and are as deep as their statements."""

from __future__ import annotations

import sys

#: A parenthesis takes some sixty calls to parse.
_DEPTH = 8_000


def allow_deep_calls() -> None:
    """Lets calls be nested as deep as statements and their plans take; whoever is given a plan asks for it.

    It is never taken back: another thread may be deep in a plan of its own.

    Example:
        >>> allow_deep_calls()
        >>> sys.getrecursionlimit() >= 8_000
        True
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEPTH))
