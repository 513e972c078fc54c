"""How an introspection relation is declared: its name, what it says, its columns, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mz_dagster.adapter.system_catalogs import Facts
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.types import BOOL, FLOAT8, INT8, TEXT, TIMESTAMPTZ, Column, RelationType, ScalarType

Row = tuple[Value, ...]
Fill = Callable[[Facts], Iterable[Row]]

_TYPES: Mapping[str, ScalarType] = {
    "bigint": INT8,
    "boolean": BOOL,
    "double": FLOAT8,
    "text": TEXT,
    "timestamptz": TIMESTAMPTZ,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class IntrospectionRelation:
    """One introspection relation.

    Attributes:
        schema: Its schema.
        name: Its name.
        about: What it says, in a sentence.
        columns: Its columns.
        says: What each of them says.
        rows: Yields its rows.
    """

    schema: str
    name: str
    about: str
    columns: tuple[Column, ...]
    says: tuple[str, ...]
    rows: Fill

    @property
    def id(self) -> GlobalId:
        """An id outside the catalog's sequence."""
        return GlobalId(f"mz:{self.name}")

    @property
    def relation_type(self) -> RelationType:
        """Its columns; nothing is promised about keys."""
        return RelationType(self.columns)

    def item(self) -> Item:
        """Returns what its name stands for."""
        return Item(self.id, self.name, "introspection", self.relation_type, None)

    def constant(self, facts: Facts) -> Constant:
        """Returns its rows now, as a plan."""
        rows = tuple(
            tuple(Literal(value, column.type) for value, column in zip(row, self.columns, strict=True))
            for row in self.rows(facts)
        )
        return Constant(rows, self.relation_type)


def relation(schema: str, name: str, about: str, columns: str, rows: Fill) -> IntrospectionRelation:
    """Returns a relation.

    Args:
        schema: Its schema.
        name: Its name.
        about: What it says.
        columns: A line for each column: its name, its type, with `?` if it may be NULL, and what it says.
        rows: Yields its rows.
    """
    lines = [line.split(maxsplit=2) for line in columns.strip().splitlines()]
    return IntrospectionRelation(
        schema,
        name,
        about,
        tuple(Column(column, _TYPES[type_.removesuffix("?")], type_.endswith("?")) for column, type_, _ in lines),
        tuple(says for _, _, says in lines),
        rows,
    )


def time_of(frontier: Antichain[int]) -> int | None:
    """Returns a frontier's time, or NULL for the empty one, which is closed for good."""
    return None if frontier.is_empty else frontier.only
