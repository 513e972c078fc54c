"""Semijoins in the algebra, and the sharing of subplans: what outer joins and subqueries are spelled with.

A semijoin is a join with a distinct relation, so the left side's multiplicities are kept. What it leaves over is
`A - (A semijoin B)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Constant, Get, Join, Let, Map, Negate, Projection, Reduce, Relation, Union
from mz_dagster.plan.rewriting import projected_to
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import RelationType

#: The relation of one row without columns.
ONE_ROW = Constant(((),), RelationType((), frozenset({frozenset()}), True))
#: Gives out ids for shared subplans, none twice in a statement.
LocalId = Callable[[], GlobalId]


@dataclass(slots=True)
class Sharing:
    """Collects the subplans that occur several times in a plan.

    Attributes:
        local_id: Gives out their ids.
        lets: Each with its id; a later one may read those before it.
    """

    local_id: LocalId
    lets: list[tuple[GlobalId, Relation]] = field(default_factory=list)

    def shared(self, relation: Relation) -> Relation:
        """Returns what reads `relation`, which may then occur more than once."""
        return relation if isinstance(relation, Get | Constant) else self.named(relation)

    def named(self, relation: Relation) -> Get:
        """Returns what reads `relation` by an id of its own, though it may be no more than a read itself."""
        identity = self.local_id()
        self.lets.append((identity, relation))
        return Get(identity, relation.relation_type)

    def bound(self, body: Relation) -> Relation:
        """Returns `body` within the bindings of all that was shared."""
        for identity, value in reversed(self.lets):
            body = Let(identity, value, body)
        return body


def with_scalars(relation: Relation, scalars: Sequence[Scalar], name: str) -> tuple[Relation, tuple[int, ...]]:
    """Returns `relation` with columns appended where they are needed, and the position of each of `scalars` in it."""
    arity = relation.relation_type.arity
    added = [one for one in dict.fromkeys(scalars) if not isinstance(one, ColumnRef)]
    positions = tuple(one.position if isinstance(one, ColumnRef) else arity + added.index(one) for one in scalars)
    if added:
        relation = Map(relation, tuple(added), tuple(f"{name}_{i + 1}" for i in range(len(added))))
    return relation, positions


def distinct_of(relation: Relation, scalars: Sequence[Scalar]) -> Relation:
    """Returns the distinct rows of `scalars` over `relation`; of none: the empty row, if there is any row."""
    below, positions = with_scalars(relation, scalars, "key")
    return Reduce(Projection(below, positions), tuple(range(len(positions))), (), ())


def semijoin(relation: Relation, scalars: Sequence[Scalar], keys: Relation, *, null_safe: bool) -> Relation:
    """Returns the rows of `relation` whose `scalars` are a row of `keys`, which is distinct.

    Args:
        relation: Whose rows are kept, as often as they are there.
        scalars: Over `relation`, one for each column of `keys`.
        keys: What they are looked up in.
        null_safe: Whether NULL is found where NULL is.
    """
    arity = relation.relation_type.arity
    classes = tuple(
        (scalar, ColumnRef(arity + i, column.type, column.nullable, column.name))
        for i, (scalar, column) in enumerate(zip(scalars, keys.relation_type.columns, strict=True))
    )
    safe = frozenset(range(len(classes))) if null_safe else frozenset[int]()
    return projected_to(Join((relation, keys), classes, safe), range(arity))


def minus(relation: Relation, part: Relation) -> Relation:
    """Returns `relation` without `part`, whose rows it has as often at least."""
    return Union((relation, Negate(part)), relation.relation_type.keys)


def with_literals(relation: Relation, literals: Sequence[Literal], names: Sequence[str]) -> Relation:
    """Returns `relation` with a constant column appended for each of `literals`."""
    return Map(relation, tuple(literals), tuple(names)) if literals else relation
