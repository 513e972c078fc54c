"""Outer joins, spelled in the algebra: the inner join, and the rows without a partner beside NULLs.

    A LEFT JOIN B ON p  =  A join[p] B  +  unmatched(A) x NULLs of B
    unmatched(A)        =  A - (A semijoin the rows of A that have a partner)

Multiplicities are kept. If `p` is a conjunction of equalities between the sides and of conditions on one side alone,
the semijoin is with the distinct equated values of the other side's rows that pass. Else it depends on the columns that
`p` reads whether a row has a partner, and the semijoin is with their distinct values, or a unique key, in what found
one, told apart by their representation. NULL keys find none.

A table function that is joined to every row (`LEFT JOIN LATERAL f(a) ON true`) has a row of NULLs where it has none.

Cost: for each side that is preserved, a distinct and a join with it. Sides that occur several times are bound by `Let`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.equality import equated
from mz_dagster.plan.relation import (
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Relation,
    Union,
    inputs_of,
    join_keys,
)
from mz_dagster.plan.representations import by_representation
from mz_dagster.plan.rewriting import conjuncts, filtered, is_true, reference, shifted
from mz_dagster.plan.semijoin import LocalId, Sharing, distinct_of, minus, semijoin, with_literals
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, Subquery, columns_of, walk
from mz_dagster.scalars.types import BOOL, INT4


@dataclass(frozen=True, slots=True)
class SplitCondition:
    """A condition of a join, taken apart.

    Attributes:
        pairs: Scalars over the left and over the right side alone, that are equal; both over their own columns.
        left: What must be true of the left side's row.
        right: What must be true of the right side's, over its own columns.
    """

    pairs: tuple[tuple[Scalar, Scalar], ...]
    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]


def outer_join(
    left: Relation,
    right: Relation,
    arguments: tuple[Scalar, ...],
    predicates: Sequence[Scalar],
    keeps: tuple[bool, bool],
    local_id: LocalId,
) -> Relation:
    """Returns the join of two sides that keeps, beside NULLs, the rows that have no partner.

    Args:
        left: One side.
        right: The other.
        arguments: What `right` takes from `left`, if it depends on it: it is then not preserved.
        predicates: Over both sides' columns; two rows are partners if all of them are true.
        keeps: Whether the left, whether the right side is preserved.
        local_id: Gives out ids for shared subplans.
    """
    predicates = [one for predicate in predicates for one in conjuncts(predicate)]
    if keeps == (True, False) and all(is_true(one) for one in predicates):
        never_empty = _with_row_of_nulls(right)
        if never_empty is not None:
            return DependentJoin(left, never_empty, arguments) if arguments else Join((left, never_empty), ())
    sharing = Sharing(local_id)
    # By ids of their own, by which `preserved` knows them.
    a = sharing.named(left)
    b = right if arguments else sharing.named(right)
    joined: Relation = DependentJoin(a, b, arguments) if arguments else Join((a, b), ())
    matched = filtered(joined, predicates)
    condition = None if arguments else split_condition(predicates, left.relation_type.arity)
    if condition is None:
        matched = sharing.shared(matched)
    parts = [matched]
    nulls = [[Literal(None, column.type) for column in one.relation_type.columns] for one in (left, right)]
    width, other = left.relation_type.arity, right.relation_type.arity
    read = {position for one in (*predicates, *arguments) for position in columns_of(one)}
    if keeps[0]:
        found = _matched_rows(a, matched, 0, read) if condition is None else _matched_keys(a, b, condition)
        parts.append(with_literals(minus(a, found), nulls[1], right.relation_type.names))
    if keeps[1]:
        turned = None if condition is None else _turned(condition)
        found = _matched_rows(b, matched, width, read) if turned is None else _matched_keys(b, a, turned)
        unmatched = with_literals(minus(b, found), nulls[0], left.relation_type.names)
        parts.append(Projection(unmatched, (*range(other, other + width), *range(other))))
    return sharing.bound(Union(tuple(parts), _keys(a, b, condition, keeps)))


@dataclass(frozen=True, slots=True)
class Preserved:
    """What `outer_join` has made, keeping the rows of one side.

    Attributes:
        side: The id to which that side is bound. Who keeps some of its rows alone may as well keep them of the join.
        columns: Where its columns are in the join.
        other: The id to which the other side is bound; None if it depends on the first.
        equal: By column of the join that is the side's: the column of the other side that it is equal to in partners.
    """

    side: GlobalId
    columns: range
    other: GlobalId | None
    equal: Mapping[int, int]


def preserved(relation: Relation) -> Preserved | None:
    """Returns what `relation` was made of by `outer_join`; None if it is no such join, or one that keeps both sides."""
    bound: dict[GlobalId, Relation] = {}
    while isinstance(relation, Let):
        bound[relation.id] = relation.value
        relation = relation.body
    match relation:
        case Union(inputs=(matched, Map(input=Union(inputs=(Get() as side, Negate()))))):
            is_left = True
        case Union(inputs=(matched, Projection(input=Map(input=Union(inputs=(Get() as side, Negate())))))):
            is_left = False
        case _:
            return None
    if isinstance(matched, Get):
        matched = bound.get(matched.id, matched)
    predicates: list[Scalar] = []
    while isinstance(matched, Filter):
        predicates += (one for each in matched.predicates for one in conjuncts(each))
        matched = matched.input
    if not isinstance(matched, Join | DependentJoin) or len(inputs_of(matched)) != 2 or side.id not in bound:
        return None
    left, right = inputs_of(matched)
    found, other = (left, right) if is_left else (right, left)
    if not isinstance(found, Get) or found.id != side.id:
        return None
    width = left.relation_type.arity
    columns = range(width) if is_left else range(width, matched.relation_type.arity)
    if not isinstance(matched, Join) or not isinstance(other, Get) or other.id not in bound:
        return Preserved(side.id, columns, None, {})
    equal: dict[int, int] = {}
    for one in predicates:
        match equated(one):
            case (ColumnRef(position=first, type=type_), ColumnRef(position=second, type=same)) if type_ == same:
                for own, theirs in ((first, second), (second, first)):
                    if own in columns and theirs not in columns:
                        equal[own] = theirs - width if is_left else theirs
    return Preserved(side.id, columns, other.id, equal)


def _keys(
    a: Relation, b: Relation, condition: SplitCondition | None, keeps: tuple[bool, bool]
) -> frozenset[frozenset[int]]:
    """Returns unique keys of the outer join of `a` and `b`: those of the inner one that tell what is preserved apart.

    A row without a partner is there by itself, and NULL in the other side's columns. If both sides have such rows, a
    column that is never NULL tells whose it is.
    """
    width = a.relation_type.arity
    pairs = () if condition is None else condition.pairs
    classes = tuple((left, shifted(right, width)) for left, right in pairs)
    sides = [
        (a.relation_type, range(width), keeps[0]),
        (b.relation_type, range(width, width + b.relation_type.arity), keeps[1]),
    ]
    found: set[frozenset[int]] = set()
    inner = join_keys((a, b), classes)
    for key in sorted({one | other for one in inner for other in inner}, key=sorted):
        parts = [frozenset(own.index(one) for one in key if one in own) for _, own, _ in sides]
        told = all(
            any(one <= part for one in known.keys) for (known, _, kept), part in zip(sides, parts, strict=True) if kept
        )
        apart = not all(keeps) or any(
            not known.columns[one].nullable for (known, _, _), part in zip(sides, parts, strict=True) for one in part
        )
        if told and apart:
            found.add(key)
    return frozenset(found)


def _with_row_of_nulls(relation: Relation) -> Relation | None:
    """Returns a table function that has a row of NULLs where it has none else; None if `relation` is something else."""
    match relation:
        case Projection():
            below = _with_row_of_nulls(relation.input)
            return None if below is None else Projection(below, relation.positions)
        case Map() if all(isinstance(one, Call) and one.function == "field" for one in relation.scalars):
            below = _with_row_of_nulls(relation.input)
            return None if below is None else Map(below, relation.scalars, relation.names)
        case FlatMap(input=Map(scalars=(array,)) as mapped, ordinality=False):
            count = Call("cardinality", (array,), INT4, array.nullable)
            some = Call("gt_int4", (count, Literal(0, INT4)), BOOL, array.nullable)
            padded = If(some, array, Literal((None,), array.type))
            return FlatMap(Map(mapped.input, (padded,), mapped.names))
        case _:
            return None


def split_condition(predicates: Sequence[Scalar], arity: int) -> SplitCondition | None:
    """Returns the condition, over a left side of `arity` columns and a right one, taken apart; None if it cannot be."""
    pairs: list[tuple[Scalar, Scalar]] = []
    left: list[Scalar] = []
    right: list[Scalar] = []
    for one in predicates:
        match _side(one, arity):
            case "left":
                left.append(one)
            case "right":
                right.append(shifted(one, -arity))
            case _:
                pair = _pair(one, arity)
                if pair is None:
                    return None
                pairs.append(pair)
    return SplitCondition(tuple(pairs), tuple(left), tuple(right))


def _side(scalar: Scalar, arity: int) -> str | None:
    positions = columns_of(scalar)
    if all(position < arity for position in positions):
        return "left"
    return "right" if all(position >= arity for position in positions) else None


def _pair(scalar: Scalar, arity: int) -> tuple[Scalar, Scalar] | None:
    sides = equated(scalar)
    if sides is None or any(isinstance(one, Subquery) for one in walk(scalar)):
        return None
    first, second = sides
    match _side(first, arity), _side(second, arity):
        case "left", "right":
            return first, shifted(second, -arity)
        case "right", "left":
            return second, shifted(first, -arity)
        case _:
            return None


def _turned(condition: SplitCondition) -> SplitCondition:
    return SplitCondition(tuple((b, a) for a, b in condition.pairs), condition.right, condition.left)


def _matched_keys(a: Relation, b: Relation, condition: SplitCondition) -> Relation:
    """Returns the rows of `a` that have a partner in `b`, by the distinct keys of `b`."""
    keys = distinct_of(filtered(b, condition.right), [right for _, right in condition.pairs])
    return semijoin(filtered(a, condition.left), [left for left, _ in condition.pairs], keys, null_safe=False)


def _matched_rows(a: Relation, matched: Relation, offset: int, read: set[int]) -> Relation:
    """Returns the rows of `a` that are in `matched`, where its columns begin at `offset`.

    Args:
        a: One side.
        matched: The partners.
        offset: Where the columns of `a` begin there.
        read: On which columns of `matched` it depends whether a row has a partner.
    """
    columns = range(offset, offset + a.relation_type.arity)
    asked = [one - offset for one in columns if one in read]
    keys = sorted((len(key), sorted(key)) for key in a.relation_type.keys)
    positions = keys[0][1] if keys and len(keys[0][1]) <= len(asked) else asked
    # Equal rows may be told apart by the condition.
    own = [by_representation(reference(a.relation_type, one)) for one in positions]
    found = distinct_of(matched, [shifted(one, offset) for one in own])
    return semijoin(a, own, found, null_safe=True)
