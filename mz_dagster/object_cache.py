"""Results of functions of immutable objects, kept by which object it is, not by what it equals.

Plans and lists of columns are deep: to hash one costs as much as what is asked of it. They live as long as their graph,
and each step asks the same of each of them again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def cached_by_object(most: int) -> Callable[[Callable[[A], R]], Callable[[A], R]]:
    """Returns a decorator for a function of one immutable object, whose results for up to `most` objects are kept.

    The objects are kept, too, so that none becomes another under its `id`. Of a list, which may change, nothing is
    kept. Threads may compute a result twice.

    Example:
        >>> @cached_by_object(most=2)
        ... def doubled(values):
        ...     print("computed")
        ...     return values * 2
        >>> one = (1,)
        >>> doubled(one), doubled(one)
        computed
        ((1, 1), (1, 1))
    """

    def decorator(function: Callable[[A], R]) -> Callable[[A], R]:
        known: dict[int, tuple[A, R]] = {}

        @wraps(function)
        def cached(one: A) -> R:
            found = known.get(id(one))
            if found is not None and found[0] is one:
                return found[1]
            result = function(one)
            if not isinstance(one, list):
                if len(known) >= most:
                    known.clear()
                known[id(one)] = one, result
            return result

        return cached

    return decorator
