"""When Python looks for cycles of objects that nobody has."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: What so many modules made is worth to be left alone; who loads fewer may have garbage that would stay with it.
_MANY_MODULES = 100


@contextmanager
def without_collections() -> Iterator[None]:
    """Keeps Python from looking for cycles for the length of a block that makes many objects which stay.

    Plans are such: they have no cycles, and each look goes through all that were made so far.

    Example:
        >>> with without_collections():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    if not gc.isenabled():
        yield
        return
    try:  # first, as a statement that is cancelled is interrupted anywhere
        gc.disable()
        yield
    finally:
        gc.enable()


@contextmanager
def loading_modules() -> Iterator[None]:
    """Keeps Python from looking for cycles while a block loads modules, and from then on among what these have made.

    That is a million objects that stay: to look through them takes a sixth of the time of a short command, and whoever
    comes when all of them are looked through waits for half a second.

    Example:
        >>> with loading_modules():
        ...     import json
    """
    before = len(sys.modules)
    with without_collections():
        yield
        if len(sys.modules) - before >= _MANY_MODULES:
            gc.freeze()
