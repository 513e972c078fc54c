"""The compiled forms of the catalog's statements, which all of a process's catalogs share.

SQLAlchemy compiles a statement once for each engine, by a key that begins with the engine's dialect, an object. Of a
process that opens several projects, as Dagster's code servers and the tests do, each compiled all statements anew. What
a statement's text depends on is the dialect's class and the release of the database.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from sqlalchemy.util import LRUCache

#: How many statements are kept: several times as many as the catalog has.
_KEPT = 2_000


class CompiledStatements(MutableMapping[tuple[Any, ...], Any]):
    """Compiled statements by SQLAlchemy's keys, in which dialects that compile alike are one."""

    def __init__(self) -> None:
        self._kept = LRUCache[tuple[Any, ...], Any](_KEPT)

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return self._kept[_by_class(key)]

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._kept[_by_class(key)] = compiled

    def __delitem__(self, key: tuple[Any, ...]) -> None:
        del self._kept[_by_class(key)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _by_class(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    return type(dialect), dialect.server_version_info, *statement


#: Those of this process.
COMPILED_STATEMENTS = CompiledStatements()
