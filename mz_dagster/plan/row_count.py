"""How many rows a plan has at least and at most, for all data; dependent plans: for each row of their arguments.

Owns the knowledge that an aggregate without GROUP BY has exactly one row, in the form the algebra has for it:
`R + default - default for each row of R`, where R has at most one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.properties import properties_of
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Get,
    Join,
    Let,
    Map,
    Negate,
    OneInput,
    Projection,
    Relation,
    Union,
)
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column, RelationType


def with_default(row: Relation, cells: Sequence[Literal], identity: GlobalId) -> Let:
    """Returns `row`, which has one row at most, with a row of `cells` while it has none.

    Args:
        row: The aggregates of a reduce by no key, or what is made of those.
        cells: The default, one for each column.
        identity: Of the local binding that is made.
    """
    rows = Get(identity, row.relation_type, str(identity))
    names = tuple(one.name for one in row.relation_type.columns)
    columns = tuple(Column(name, cell.type, cell.nullable) for name, cell in zip(names, cells, strict=True))
    default = Constant((tuple(cells),), RelationType(columns, frozenset({frozenset()}), True))
    width = len(cells)
    superseded = Projection(Map(rows, tuple(cells), names), tuple(range(width, 2 * width)))
    return Let(identity, row, Union((rows, default, Negate(superseded)), frozenset({frozenset()})))


def default_of(relation: Relation) -> tuple[Relation, Sequence[Literal]] | None:
    """Returns what `with_default` was made of; None if the plan is none of these."""
    match relation:
        case Let(body=Union(inputs=(Get() as row, Constant() as default, Negate())) as body) if _with_default(body):
            return (relation.value, default.rows[0]) if row.id == relation.id else None
        case _:
            return None


def at_most_one_row(relation: Relation) -> bool:
    """Returns whether there can never be two rows."""
    if frozenset() in relation.relation_type.keys or _with_default(relation):
        return True
    if isinstance(relation, OneInput):
        return at_most_one_row(relation.input) and properties_of(relation).no_more
    match relation:
        case Join():
            return all(at_most_one_row(one) for one in relation.inputs)
        case DependentJoin():
            return at_most_one_row(relation.left) and at_most_one_row(relation.right)
        case Let():
            return at_most_one_row(relation.body)
        case _:
            return False


def at_least_one_row(relation: Relation) -> bool:
    """Returns whether there is always a row."""
    if isinstance(relation, OneInput):
        return at_least_one_row(relation.input) and properties_of(relation).some
    match relation:
        case Constant():
            return bool(relation.rows)
        case Join():
            return not relation.equivalences and all(at_least_one_row(one) for one in relation.inputs)
        case DependentJoin():
            return at_least_one_row(relation.left) and at_least_one_row(relation.right)
        case Let():
            return at_least_one_row(relation.body)
        case _:
            return _with_default(relation)


def is_one_row(relation: Relation) -> bool:
    """Returns whether there is always exactly one row."""
    return at_most_one_row(relation) and at_least_one_row(relation)


def _with_default(relation: Relation) -> bool:
    """Returns whether `relation` is `R + default - default for each row of R`, where R has at most one row."""
    if not isinstance(relation, Union):
        return False
    negated = [one for one in relation.inputs if isinstance(one, Negate)]
    others = [one for one in relation.inputs if not isinstance(one, Negate)]
    defaults = [one for one in others if isinstance(one, Constant) and len(one.rows) == 1]
    rest = [one for one in others if one not in defaults]
    if len(negated) != 1 or len(defaults) != 1 or len(rest) != 1:
        return False
    below: Relation = negated[0].input
    while isinstance(below, Map | Projection) and below != rest[0]:
        below = below.input
    same = below == rest[0] or (isinstance(below, Get) and isinstance(rest[0], Get) and below.id == rest[0].id)
    return same and frozenset() in rest[0].relation_type.keys
