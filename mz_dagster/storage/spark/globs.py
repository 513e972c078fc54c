"""Paths as Spark's readers take them: as globs, whether or not they are meant so."""

from __future__ import annotations

_SIGNS = frozenset("*?[]{}\\")


def escaped_glob(path: str) -> str:
    r"""Returns a path in which no sign means others.

    What is read as a glob is also looked for part by part, which fails where a name in it has a colon.

    Example:
        >>> print(escaped_glob("/what?/{a,b}"))
        /what\?/\{a,b\}
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in path)
