"""What a driver asks of its own accord, in words that no query here has: said in words that mean the same.

asyncpg asks about every type that it does not know by itself, which each array is: by `WITH RECURSIVE` through domains,
ranges and rows down to what a type is made of. Here a type is made of an element at most, so a join says it. Before,
it switches off PostgreSQL's compiler for that question, which there is none of here. Such a question is known by how it
begins and by the columns that it wants; one that wants others is told that it cannot be answered, as any other.
"""

from __future__ import annotations

import re

#: `typeinfo_tree`'s columns, and what asyncpg selects beside them.
_TREE = re.compile(r"\s*WITH RECURSIVE typeinfo_tree\(([a-z_,\s]+)\)\s*AS \(", re.ASCII)
_BESIDE = ("basetype_name", "elemtype_name", "range_subtype_name")
_COLUMNS = {
    "oid": "t.oid",
    "ns": "n.nspname",
    "name": "t.typname",
    "kind": "t.typtype",
    "basetype": "NULL::oid",
    "elemtype": "t.typelem",
    "elemdelim": "e.typdelim",
    "range_subtype": "NULL::oid",
    "attrtypoids": "NULL::text[]",
    "attrnames": "NULL::text[]",
    "depth": "w.depth",
    "basetype_name": "NULL::text",
    "elemtype_name": "format_type(t.typelem, NULL)",
    "range_subtype_name": "NULL::text",
}
_TYPES = """
FROM (SELECT oid, 0 AS depth FROM pg_type WHERE oid = ANY($1)
      UNION ALL SELECT DISTINCT typelem, 1 FROM pg_type WHERE oid = ANY($1) AND typelem <> 0) AS w
JOIN pg_type AS t ON t.oid = w.oid JOIN pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_type AS e ON e.oid = t.typelem AND t.typlen = -1 AND t.typelem <> 0
ORDER BY depth DESC, 1"""
_COMPILER = "SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new"


def in_known_words(text: str) -> str:
    """Returns a statement that a query here can be, if one is known that means the same; else the statement.

    Example:
        >>> in_known_words("SELECT 1")
        'SELECT 1'
        >>> in_known_words("SELECT current_setting('jit') AS cur,  set_config('jit', 'off', false) AS new")
        "SELECT 'off' AS cur, 'off' AS new"
    """
    found = _TREE.match(text)
    if found is not None and "any($1::oid[])" in text:
        columns = [one.strip() for one in found[1].split(",")] + [one for one in _BESIDE if one in text]
        if all(one in _COLUMNS for one in columns):
            return f"SELECT {', '.join(f'{_COLUMNS[one]} AS {one}' for one in columns)}{_TYPES}"
    return "SELECT 'off' AS cur, 'off' AS new" if " ".join(text.split()) == _COMPILER else text
