"""What a function or operator is for, in a sentence, and an example with its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Description:
    """A function or operator for its reader.

    Attributes:
        text: What it returns, as a sentence.
        example: An expression of SQL that calls it; empty for one that is refused.
        result: The text of the example's value.
    """

    text: str
    example: str
    result: str
