"""What every error that a user sees has to say."""

from __future__ import annotations

from mz_dagster.errors import Error


def says_what_to_do(error: Error, *parts: str) -> None:
    """Checks that an error's message has PostgreSQL's grammar, and that the error as shown has the parts and a hint."""
    assert error.hint, error
    assert error.hint.endswith("."), error.hint
    assert not error.message.endswith("."), error.message
    assert "\n" not in error.message, error.message
    for part in parts:
        assert part in str(error), error
