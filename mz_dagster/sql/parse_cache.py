"""Keeps what texts were parsed into: of short ones many, of long ones the last few, of longer ones nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from mz_dagster.budget import budget
from mz_dagster.sql.statements import SqlText

_P = ParamSpec("_P")
_Parsed = TypeVar("_Parsed")

#: A text of so many characters at most is a short one.
_SHORT = 4_096


def kept_by_length(
    *, most: int, most_long: int, longest: int
) -> Callable[[Callable[_P, _Parsed]], Callable[_P, _Parsed]]:
    """Returns a decorator of what parses a text, its first argument, that keeps the results.

    Args:
        most: Of how many short texts.
        most_long: Of how many long ones.
        longest: How many characters a text has at most that is kept.
    """

    def decorated(parse: Callable[_P, _Parsed]) -> Callable[_P, _Parsed]:
        def parsed(_: int, *args: _P.args, **kwargs: _P.kwargs) -> _Parsed:
            return parse(*args, **kwargs)

        short, long = lru_cache(most)(parsed), lru_cache(most_long)(parsed)

        @wraps(parse)
        def found(*args: _P.args, **kwargs: _P.kwargs) -> _Parsed:
            text = args[0]
            length = len(text.text if isinstance(text, SqlText) else str(text))
            if length > longest:
                return parse(*args, **kwargs)
            known = short if length <= _SHORT else long
            return known(budget().compared_constants, *args, **kwargs)  # type: ignore[arg-type]  # which the lexer goes by

        return found

    return decorated
