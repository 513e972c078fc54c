"""Has the database note which objects and collections changed, and in which order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

#: What is noted of an object whose row in a table changes.
_NOTED = (
    ("object", "id", "object"),
    ("name", "object", "object"),
    ("dependency", "dependant", "object"),
    ("collection", "id", "collection"),
)
_NUMBER = "(SELECT coalesce(max(number), 0) + 1 FROM changed)"


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "changed",
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("object", "part", name="pk_changed"),
    )
    op.create_index("ix_changed_number", "changed", ["number"])
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for table, column, part in _NOTED:
        for event in ("insert", "update", "delete"):
            told = [f"old.{column}"] if event == "delete" else [f"new.{column}"]
            if event == "update" and table == "name":
                told.append(f"old.{column}")  # a name may be given to another object
            notes = [_note(id, part) for id in told]
            if (table, event) == ("object", "delete"):
                # What was noted of it goes with it. That it went is noted of no object, and is read as: of any.
                notes = [_note("''", part), "DELETE FROM changed WHERE object = old.id"]
            (_on_sqlite if is_sqlite else _on_postgresql)(f"{table}_{event}", table, event, notes)


def _note(id: str, part: str) -> str:
    return (
        f"INSERT INTO changed (object, part, number) VALUES ({id}, '{part}', {_NUMBER}) "
        "ON CONFLICT (object, part) DO UPDATE SET number = excluded.number"
    )


def _on_sqlite(name: str, table: str, event: str, notes: list[str]) -> None:
    op.execute(f"CREATE TRIGGER note_{name} AFTER {event} ON {table} BEGIN {'; '.join(notes)}; END")


def _on_postgresql(name: str, table: str, event: str, notes: list[str]) -> None:
    body = f"BEGIN {'; '.join(notes)}; RETURN NULL; END"
    op.execute(f"CREATE FUNCTION note_{name}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    op.execute(f"CREATE TRIGGER note_{name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION note_{name}()")
