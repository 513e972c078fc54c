"""Texts that were parsed once, for whoever executes them again: of a text follows what it says, and nothing else.

Memory: of up to `_MOST` texts of at most `_LONGEST` characters the tokens and the statements; of the last longer ones,
which are asked for as they are parsed, described and executed, too, some 30 MB of each at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mz_dagster.budget import budget
from mz_dagster.sql.lexer import Fragment, split
from mz_dagster.sql.statement_parser import parse_statement
from mz_dagster.sql.statements import Statement

_MOST = 512
_LONGEST = 4_096
_MOST_LONG = 2
_LONGEST_LONG = 262_144


def fragments_of(text: str) -> tuple[Fragment, ...]:
    """Returns the statements of a text that are not empty, as `split` does."""
    if len(text) > _LONGEST_LONG:
        return _fragments(text)
    known = _known_fragments if len(text) <= _LONGEST else _known_long_fragments
    return known(text, budget().compared_constants)  # which the lexer goes by


def statement_of(text: str, fragments: Sequence[Fragment], number: int = 0) -> Statement:
    """Returns the statement that is one of `fragments`, which are those of the text, as `parse_statement` does."""
    if len(text) > _LONGEST_LONG:
        return parse_statement(text, fragments[number])
    known = _known_statement if len(text) <= _LONGEST else _known_long_statement
    return known(text, number, budget().compared_constants)


def _fragments(text: str) -> tuple[Fragment, ...]:
    return tuple(one for one in split(text) if one.tokens)


@lru_cache(_MOST)
def _known_fragments(text: str, _: int) -> tuple[Fragment, ...]:
    return _fragments(text)


@lru_cache(_MOST_LONG)
def _known_long_fragments(text: str, _: int) -> tuple[Fragment, ...]:
    return _fragments(text)


@lru_cache(_MOST)
def _known_statement(text: str, number: int, _: int) -> Statement:
    return parse_statement(text, fragments_of(text)[number])


@lru_cache(_MOST_LONG)
def _known_long_statement(text: str, number: int, _: int) -> Statement:
    return parse_statement(text, fragments_of(text)[number])
