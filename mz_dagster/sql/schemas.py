"""Schemas: by which text the catalog names what is in one, and what a search path says.

An object of the schema `public` is called by its name alone, one of another by both, as SQL writes them; a schema
itself by its name and a dot. So names of different schemas never meet, and what is printed can be pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.lexer import TokenKind, tokens_of

PUBLIC = "public"
#: Schemas that are there and are nobody's to create or to drop.
BUILT_IN = (PUBLIC, "pg_temp", "pg_catalog", "information_schema", "mz_catalog", "mz_internal")


def key_of(schema: str, name: str) -> str:
    """Returns what the catalog calls an object.

    Example:
        >>> key_of("public", "My T"), key_of("sales", "My T")
        ('My T', 'sales."My T"')
    """
    return name if schema == PUBLIC else f"{quoted(schema)}.{quoted(name)}"


def parts_of(text: str) -> tuple[str, ...]:
    """Returns the parts of a name as SQL writes it; nothing if it is none.

    Example:
        >>> parts_of('Sales."My T"'), parts_of("a b")
        (('sales', 'My T'), ())
    """
    *tokens, _ = tokens_of(text)
    parts, dots = tokens[::2], tokens[1::2]
    is_name = all(one.kind in (TokenKind.WORD, TokenKind.QUOTED) for one in parts)
    return tuple(one.value for one in parts) if is_name and all(one.is_symbol(".") for one in dots) else ()


def schema_key(schema: str) -> str:
    """Returns what the catalog calls a schema."""
    return f"{quoted(schema)}."


def written(schema: str, key: str) -> str:
    """Returns what SQL calls an object of a schema, given what the catalog calls it.

    Example:
        >>> written("public", "My T"), written("sales", 'sales."My T"')
        ('"My T"', 'sales."My T"')
    """
    return quoted(key) if schema == PUBLIC else key


def last_of(schema: str, key: str) -> str:
    """Returns the name that an object has in its schema, given what the catalog calls it.

    Example:
        >>> last_of("public", "a.b"), last_of("sales", 'sales."My T"')
        ('a.b', 'My T')
    """
    return key if schema == PUBLIC else names_in(key)[-1]


@lru_cache(256)
def names_in(path: str) -> tuple[str, ...]:
    """Returns the schemas that a search path names, in order.

    Example:
        >>> names_in('sales, "My S", public')
        ('sales', 'My S', 'public')
    """
    return tuple(one.value for one in tokens_of(path) if one.kind in (TokenKind.WORD, TokenKind.QUOTED))


def path_of(schemas: Sequence[str]) -> str:
    """Returns the search path that names schemas."""
    return ", ".join(map(quoted, schemas))
