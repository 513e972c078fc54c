"""How fast something grows with the size of what it is given: the exponent that fits measurements best."""

from __future__ import annotations

import cProfile
import math
import tracemalloc
from collections.abc import Callable, Sequence

import pyarrow as pa

#: Kept to the end, since what lives longer than a measurement is given back to the pool that it is from.
_POOLS: list[pa.MemoryPool] = []


def exponent(measure: Callable[[int], float], sizes: Sequence[int], *, times: int = 3) -> float:
    """Returns p where `measure(size)` grows as `size ** p`, by least squares over the logarithms.

    Args:
        measure: Returns what something of a size costs.
        sizes: Which sizes.
        times: How often each is measured; the least counts, as what else a machine does only adds.
    """
    points = [(math.log(size), math.log(max(1e-9, min(measure(size) for _ in range(times))))) for size in sizes]
    mean_x, mean_y = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) * (x - mean_x) for x, _ in points)


def calls(work: Callable[[], object]) -> int:
    """Returns how many calls of functions something makes in this thread, which is the same on every machine."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    return sum(one.callcount for one in profile.getstats())


def peak(compute: Callable[[], object]) -> float:
    """Returns how many bytes Python and Arrow hold at most while something is computed."""
    before = pa.default_memory_pool()
    own = pa.proxy_memory_pool(before)  # whose greatest size is its own
    _POOLS.append(own)
    tracemalloc.start()
    pa.set_memory_pool(own)
    try:
        compute()
        return tracemalloc.get_traced_memory()[1] + float(own.max_memory() or 0)
    finally:
        pa.set_memory_pool(before)
        tracemalloc.stop()
