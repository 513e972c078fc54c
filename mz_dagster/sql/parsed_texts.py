"""Texts that were parsed once, for whoever executes them again: of a text follows what it says, and nothing else.

Memory: of up to `_MOST` texts of at most `_LONGEST` characters the tokens and the statements.
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


def fragments_of(text: str) -> tuple[Fragment, ...]:
    """Returns the statements of a text that are not empty, as `split` does."""
    if len(text) > _LONGEST:
        return _fragments(text)
    return _known_fragments(text, budget().compared_constants)  # which the lexer goes by


def statement_of(text: str, fragments: Sequence[Fragment], number: int = 0) -> Statement:
    """Returns the statement that is one of `fragments`, which are those of the text, as `parse_statement` does."""
    if len(text) > _LONGEST:
        return parse_statement(text, fragments[number])
    return _known_statement(text, number, budget().compared_constants)


def _fragments(text: str) -> tuple[Fragment, ...]:
    return tuple(one for one in split(text) if one.tokens)


@lru_cache(_MOST)
def _known_fragments(text: str, _: int) -> tuple[Fragment, ...]:
    return _fragments(text)


@lru_cache(_MOST)
def _known_statement(text: str, number: int, _: int) -> Statement:
    return parse_statement(text, fragments_of(text)[number])
