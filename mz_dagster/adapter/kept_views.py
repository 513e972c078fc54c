"""Plain views whose rows an index holds, and what is defined over them: it reads the index.

An index of a plain view is the one arrangement of the view's rows, maintained by right of the view's query. Whatever
is maintained over the view, directly or through other plain views, reads that collection instead of computing the view
for itself: a view that many read is computed once, in one state. So do joins, which look rows up by the index's key,
and further indexes of the view, which are copies.

    CREATE VIEW sums AS SELECT city, sum(n) AS n FROM orders GROUP BY city;
    CREATE INDEX sums_by_city ON sums (city);
    CREATE MATERIALIZED VIEW large AS SELECT city FROM sums WHERE n > 100;    -- reads sums_by_city

*What reads which index is decided when it is created*, and kept: it depends on the index (`collection u7` among its
dependencies), as a view depends on another. So indexes come and go without anything else being planned anew: one that
comes later serves what is created later, and one that is dropped only loses its name, and lives as long as something
reads it (`catalog.reachability`). What is made anew, by a rebuild, another release or a change of files, reads the
index that is made anew with it.

*The query stays the view's own*: a definition is bound as if there were no index, and bound again with the index in the
place of the view for its plan alone. So what it means to say the same, to be over altered tables, or which columns
derive from which, is asked of definitions without indexes; only steps go by the plan. The rows are the same at every
time. Errors are those of who reads a materialized view: one anywhere in the view is one of all that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mz_dagster.adapter.definition import Definable, Definition, define
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.resolver import Item, Resolver

#: What reads the index that holds a view's rows, by views.
Kept = Mapping[GlobalId, Get]


@dataclass(frozen=True, slots=True)
class KeptViews:
    """A resolver in which a plain view that an index keeps stands for what the index holds.

    Attributes:
        inner: What names stand for otherwise.
        kept: Returns the kept ones among a plain view and those that it reads.
        bound: Returns the plan of a plain view, bound with what is made of the resolver of its own names.
        read: The indexes that some name has stood for.
    """

    inner: Resolver
    kept: Callable[[GlobalId], Kept]
    bound: Callable[[GlobalId, Callable[[Resolver], Resolver]], Relation]
    read: set[GlobalId] = field(default_factory=set)

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        item = self.inner.resolve(name)
        if item is None or item.expansion is None:
            return item
        kept = self.kept(item.id)
        if not kept:
            return item
        if item.id in kept:
            self.read.add(kept[item.id].id)
            return replace(item, expansion=kept[item.id])
        return replace(item, expansion=self.bound(item.id, lambda inner: replace(self, inner=inner)))

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.inner.names()


def contents(on: Item, index: GlobalId, name: str) -> Get:
    """Returns what reads an index that holds the rows of a view.

    Args:
        on: The view.
        index: The index.
        name: What the index is called.
    """
    return Get(index, on.relation_type, f"{name} (index of {on.called})")


def reading(definition: Definition, statement: Definable, names: KeptViews) -> Definition:
    """Returns a definition with a plan that reads indexes.

    Args:
        definition: What is maintained, as it is without.
        statement: What it was defined by.
        names: What the names in that stand for.
    """
    assert definition.plan is not None, "it is maintained"
    other = define(statement, names, default_timeline=str(definition.timeline), name=definition.name)
    assert other.plan is not None, "it is what it was"
    indexes = tuple(sorted(names.read & other.reads))
    # What is known of its rows without the indexes is as true with them.
    plan = replace(other.plan, relation_type=definition.plan.relation_type)
    return replace(definition, plan=plan, indexes=indexes)
