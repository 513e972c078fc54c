"""The version, read by the build and by Dagster's library registry, and the order of versions."""

from __future__ import annotations

import re

__version__ = "0.1.0"


def is_later(version: str, than: str) -> bool:
    """Returns whether one version comes after another, by the numbers that they begin with.

    Example:
        >>> is_later("0.10.0", "0.9.2"), is_later("1.0", "1.0.0"), is_later("0.1.0", "0.1.0")
        (True, False, False)
    """

    def numbers(text: str) -> list[int]:
        found = re.match(r"\d+(\.\d+)*", text)
        parts = [int(one) for one in found.group().split(".")] if found else []
        while parts and not parts[-1]:
            parts.pop()
        return parts

    return numbers(version) > numbers(than)
