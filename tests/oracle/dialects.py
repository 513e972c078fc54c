"""Texts in two dialects at once: where we and PostgreSQL spell a thing differently, a text holds both spellings."""

from __future__ import annotations

import re

_BOTH = re.compile("⟪([^⟪‖⟫]*)‖([^⟪‖⟫]*)⟫")


def both(ours: str, theirs: str) -> str:
    """Returns a text that says `ours` to us and `theirs` to PostgreSQL."""
    return f"⟪{ours}‖{theirs}⟫"


def ours(text: str) -> str:
    """Returns a text as we are told it.

    Example:
        >>> ours(f"SELECT {both('mz_now()', 'now()')}")
        'SELECT mz_now()'
    """
    return _spelled(text, 1)


def theirs(text: str) -> str:
    """Returns a text as PostgreSQL is told it."""
    return _spelled(text, 2)


def _spelled(text: str, group: int) -> str:
    while "⟪" in text:
        text = _BOTH.sub(lambda found: found.group(group), text)
    return text
