"""The registry of functions in plain Python, and how one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Implementations by their names in the table of functions.
PURE: dict[str, Callable[..., Any]] = {}


class SqlFailure(Exception):
    """An error of the data, with PostgreSQL's SQLSTATE and message."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate} {message}")


#: Those that take the scale of their result, a numeric, as a last argument.
SCALED: set[str] = set()


def pure(*names: str, scaled: bool = False) -> Callable[[F], F]:
    """Registers the decorated function as the implementation of `names`; `scaled` as `SCALED` says."""

    def register(function: F) -> F:
        for name in names:
            PURE[name] = function
            if scaled:
                SCALED.add(name)
        return function

    return register
