"""A project of a few relations, as a resolver: what the tests of the binder and of plans read."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    Column,
    RelationType,
    numeric,
)
from mz_dagster.sql import BoundQuery, Select, bind_definition, bind_query, parse

T = RelationType(
    (
        Column("a", INT4, False),
        Column("b", INT4),
        Column("c", TEXT),
        Column("d", numeric(2)),
        Column("e", DATE),
        Column("f", BOOL),
    ),
    frozenset({frozenset({0})}),
)
U = RelationType((Column("a", INT8, False), Column("x", TEXT), Column("ts", TIMESTAMP)), monotonic=True)
V = RelationType((Column("k", INT4, False), Column("a", INT4), Column("g", FLOAT8)), frozenset({frozenset({0})}))


class Project:
    """Resolves the tables `t`, `u`, `v`, `w` (on another timeline), an index `i`, and views added to it."""

    def __init__(self) -> None:
        self.items = {
            "t": Item(GlobalId("u1"), "t", "table", T, "demo"),
            "u": Item(GlobalId("s2"), "u", "source", U, "demo"),
            "v": Item(GlobalId("u3"), "v", "table", V, "demo"),
            "w": Item(GlobalId("u4"), "w", "table", RelationType((Column("k", INT4),)), "other"),
            "i": Item(GlobalId("u5"), "i", "index", T, "demo"),
        }

    def add_view(self, name: str, query: str) -> None:
        """Adds a plain view."""
        (select,) = parse(query)
        assert isinstance(select, Select)
        bound = bind_definition(select.query, (), self)
        identity = GlobalId(f"u{len(self.items) + 1}")
        self.items[name] = Item(identity, name, "view", bound.relation_type, bound.timeline, bound.relation)

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.items.get(name[-1]) if name[:-1] in ((), ("public",)) else None

    def names(self) -> tuple[str, ...]:
        return tuple(self.items)


def bind(query: str, params: Sequence[object] = (), project: Project | None = None) -> BoundQuery:
    """Returns the query of the one SELECT in `query`, bound over the project."""
    (select,) = parse(query)
    assert isinstance(select, Select)
    return bind_query(select.query, project or Project(), params=params)
