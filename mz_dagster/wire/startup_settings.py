"""The settings that a client asks for as it connects: parameters by themselves, and those of `options`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mz_dagster.errors import ProgrammingError

#: What a client says that is no setting.
_OTHERS = frozenset(("user", "database", "options", "replication"))
#: A word of `options`, in which a backslash stands before a blank that does not end it.
_WORD = re.compile(r"(?:\\.|[^\\\s])+", re.DOTALL)


class InvalidOptions(ProgrammingError):
    """Options of a client that are none."""

    sqlstate = "42601"


def startup_settings(params: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the settings that a client asks for, by their names in lower case; those of `options` first.

    Raises:
        InvalidOptions: They hold anything but settings.

    Example:
        >>> list(startup_settings({"user": "u", "options": "-c a=1 --work-mem=1MB", "DateStyle": "ISO"}))
        [('a', '1'), ('work_mem', '1MB'), ('datestyle', 'ISO')]
    """
    words = [re.sub(r"\\(.)", r"\1", one, flags=re.DOTALL) for one in _WORD.findall(params.get("options", ""))]
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            word = ""
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise InvalidOptions("invalid command-line argument in options", hint="Write -c name=value.")
        yield name.replace("-", "_").lower(), value
    for name, value in params.items():
        if name.lower() not in _OTHERS and not name.startswith("_pq_."):
            yield name.lower(), value.strip("'")  # asyncpg's are quoted
