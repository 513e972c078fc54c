"""Rows of files, of which all are held where some come and others go, and the files are read several at once.

Arrow decodes without Python's lock, and a store answers several requests in the time of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.storage.source.unchanged_rows import net_rows

Portion = TypeVar("Portion")
#: Rows, each with its diff.
Rows: TypeAlias = tuple[pa.RecordBatch, NDArray[np.int64]]

#: How many files are read at once.
_AT_ONCE = 4


def rows_of_files(files: Sequence[Callable[[], Iterable[Rows]]], *, come_and_go: bool) -> Iterator[Rows]:
    """Yields the rows of files, about without those that equal ones of other files take away.

    Memory: a portion of one file, or if there can be such rows, all that they have.

    Args:
        files: What reads each.
        come_and_go: Whether rows of some come, and of others go.
    """
    return net_rows(read_together(files)) if come_and_go else chain.from_iterable(one() for one in files)


def read_together(files: Sequence[Callable[[], Iterable[Portion]]]) -> Iterator[Portion]:
    """Yields what files have, in their order; of what they raise, what comes first in it.

    Memory: all that they have.

    Args:
        files: What reads each, called in another thread.

    Example:
        >>> list(read_together([lambda: "ab", lambda: "c"]))
        ['a', 'b', 'c']
    """
    if len(files) < 2:
        for one in files:
            yield from one()
        return
    with ThreadPoolExecutor(min(len(files), _AT_ONCE), thread_name_prefix="mz-read") as pool:
        reading = [pool.submit(_all, one) for one in files]
        try:
            for found in reading:
                yield from found.result()
        finally:
            for found in reading:
                found.cancel()


def _all(file: Callable[[], Iterable[Portion]]) -> list[Portion]:
    return list(file())
