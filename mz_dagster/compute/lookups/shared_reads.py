"""What the collections of a step ask of storage alike: found once, and kept until the step is over.

Views over the same sources read the same changes, ask within which times the same histories lie, and check the same
files. What was found is told by the list of batches that it was found for, as an object: a collection that got another
batch meanwhile has another list.

Safe for use from several threads, which may find the same twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from mz_dagster.catalog import Batch

R = TypeVar("R")


class SharedReads:
    """Keeps what was found for lists of batches.

    Example:
        >>> reads, batches = SharedReads(), ()
        >>> reads.of("rows", batches, lambda: 1), reads.of("rows", batches, lambda: 2)
        (1, 1)
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Hashable, int], tuple[Sequence[Batch], Any]] = {}

    def of(self, asked: Hashable, batches: Sequence[Batch], find: Callable[[], R]) -> R:
        """Returns what was found, or finds it.

        Args:
            asked: What is asked of the batches.
            batches: They; the list is kept.
            find: Returns it.
        """
        key = asked, id(batches)
        known = self._found.get(key)
        if known is None or known[0] is not batches:
            known = batches, find()
            self._found[key] = known
        found: R = known[1]
        return found
