"""When Python looks for cycles of objects that nobody has."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
