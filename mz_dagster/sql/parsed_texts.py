"""Texts that were parsed once, for whoever executes them again: of a text follows what it says, and nothing else.

Memory: of up to `_MOST` short texts the tokens and the statements; of the last long ones, which are asked for as they
are parsed, described and executed, too, some 30 MB of each at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.sql.lexer import Fragment, split
from mz_dagster.sql.parse_cache import kept_by_length
from mz_dagster.sql.statement_parser import parse_statement
from mz_dagster.sql.statements import Statement

_MOST = 512
_MOST_LONG = 2
_LONGEST = 262_144


@kept_by_length(most=_MOST, most_long=_MOST_LONG, longest=_LONGEST)
def fragments_of(text: str) -> tuple[Fragment, ...]:
    """Returns the statements of a text that are not empty, as `split` does."""
    return tuple(one for one in split(text) if one.tokens)


def statement_of(text: str, fragments: Sequence[Fragment], number: int = 0) -> Statement:
    """Returns the statement that is one of `fragments`, which are those of the text, as `parse_statement` does."""
    if len(text) > _LONGEST:
        return parse_statement(text, fragments[number])
    return _statement(text, number)


@kept_by_length(most=_MOST, most_long=_MOST_LONG, longest=_LONGEST)
def _statement(text: str, number: int) -> Statement:
    return parse_statement(text, fragments_of(text)[number])
