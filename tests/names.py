"""Odd names, drawn: of what SQL's quotes, URLs, globs, shells, templates and file systems take for something else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mz_dagster.storage.ownership import PlaceUnusable, check_place

_LETTERS: tuple[str, ...] = (
    "a",
    "b",
    "x",
    "A",
    "Z",
    "_",
    "0",
    "7",
    "é",
    "ß",
    "İ",
    "ü",
    "u\u0308",
    "数",
    "🎉",
    "\u200b",
    "\u202e",
)
_SIGNS: tuple[str, ...] = (*" .,;:!?'\"`/\\|%&#$@*+-~^=<>()[]{}", "\t", "\n", "\r", "  ", "\u00a0")
_WORDS: tuple[str, ...] = (
    *("select", "order count", "Order Count", "NULL", "user", "group", "public", "default", "values", "key", "value"),
    *("mz_bucket", "mz_column_2", "mz_copies", "mz_path", "mz_short_a", "_delta_log", "part", "..", ".", "x.y", "x y"),
    *("a%20b", "%41", "%s", "%(a)s", "%%", "{}", "{0}", "${HOME}", "$1", "$$", "?", "--", "/*", "*/", "what?x", "#a"),
    *("br[ack]et", "[0]", "**", "*.json", "~", "a=b", "a&b", "x'--", "';--", '""', "''", "\\n", "\\u0041", "C:", "//"),
)
#: The most bytes of a name in PostgreSQL, which cuts off what is longer.
BYTES = 63
#: What no file is called.
_NO_FILES = frozenset(("", ".", ".."))


class Names:
    """Draws names, none twice.

    Args:
        pick: The source of chance.
        longest: How many bytes a name has at most.
    """

    def __init__(self, pick: random.Random, longest: int = BYTES) -> None:
        self._pick = pick
        self._longest = longest
        self._taken: list[str] = []

    def identifier(self) -> str:
        """Returns a name that a quoted identifier may be."""
        while True:
            name = self._drawn()
            if name and name not in self._taken and len(name.encode()) <= self._longest:
                self._taken.append(name)
                return name

    def file(self) -> str:
        """Returns a name that a file or a folder may have."""
        while True:
            name = self._drawn().replace("/", "")
            # What a file system holds to be equal is not drawn twice, nor what is hidden: no source looks at that.
            folded = {one.casefold() for one in self._taken}
            fits = 0 < len(name.encode()) <= 200 and name not in _NO_FILES and name.casefold() not in folded
            if fits and not name.startswith((".", "_")) and name.strip():
                self._taken.append(name)
                return name

    def project(self, parent: Path) -> Path:
        """Returns a folder in `parent` that a project may be in: some paths are refused."""
        while True:
            with suppress(PlaceUnusable):
                folder = parent / self.file()
                check_place(folder)
                return folder

    def _drawn(self) -> str:
        pick = self._pick
        match pick.randrange(8):
            case 0 if self._taken:  # differs from another in case, or in what is around it
                other = pick.choice(self._taken)
                return pick.choice((other.swapcase(), f" {other}", f"{other} ", other.lower(), f"{other}.{other}"))
            case 1:
                return pick.choice(_WORDS)
            case 2:
                again = pick.choice(("x", "é", " ", ".")) * pick.randrange(1, self._longest)
                return (pick.choice(_LETTERS) + again)[: self._longest]
            case 3:
                return pick.choice(_WORDS) + pick.choice(_SIGNS) + pick.choice(_WORDS)
            case _:
                kinds: list[Sequence[str]] = [
                    pick.choice((_LETTERS, _SIGNS, _WORDS)) for _ in range(pick.randrange(1, 6))
                ]
                return "".join([pick.choice(one) for one in kinds])


def quoted(name: str) -> str:
    """Returns a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def unquoted(text: str) -> str:
    """Returns the name that `quoted` was given."""
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
