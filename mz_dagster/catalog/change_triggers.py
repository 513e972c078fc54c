"""Triggers by which the database notes which objects and collections changed, and in which order (`following`).

Both a new catalog and migration 0011 make them of this text, which databases of released versions have: another text
needs a migration of its own, and this one a copy there.
"""

from __future__ import annotations

from collections.abc import Iterator

#: What is noted of an object whose row in a table changes.
_NOTED = (
    ("object", "id", "object"),
    ("name", "object", "object"),
    ("dependency", "dependant", "object"),
    ("collection", "id", "collection"),
)
_NUMBER = "(SELECT coalesce(max(number), 0) + 1 FROM changed)"


def triggers(*, sqlite: bool) -> Iterator[str]:
    """Yields the statements that create them, on SQLite or on PostgreSQL."""
    for table, column, part in _NOTED:
        for event in ("insert", "update", "delete"):
            told = [f"old.{column}"] if event == "delete" else [f"new.{column}"]
            if event == "update" and table == "name":
                told.append(f"old.{column}")  # a name may be given to another object
            notes = [_note(id, part) for id in told]
            if (table, event) == ("object", "delete"):
                # What was noted of it goes with it. That it went is noted of no object, and is read as: of any.
                notes = [_note("''", part), "DELETE FROM changed WHERE object = old.id"]
            yield from (_on_sqlite if sqlite else _on_postgresql)(f"{table}_{event}", table, event, notes)


def _note(id: str, part: str) -> str:
    return (
        f"INSERT INTO changed (object, part, number) VALUES ({id}, '{part}', {_NUMBER}) "
        "ON CONFLICT (object, part) DO UPDATE SET number = excluded.number"
    )


def _on_sqlite(name: str, table: str, event: str, notes: list[str]) -> Iterator[str]:
    yield f"CREATE TRIGGER note_{name} AFTER {event} ON {table} BEGIN {'; '.join(notes)}; END"


def _on_postgresql(name: str, table: str, event: str, notes: list[str]) -> Iterator[str]:
    body = f"BEGIN {'; '.join(notes)}; RETURN NULL; END"
    yield f"CREATE FUNCTION note_{name}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"
    yield f"CREATE TRIGGER note_{name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION note_{name}()"
