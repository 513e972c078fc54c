"""Walking and rebuilding plans: what every transform is written in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import FUNCTIONS, Cast, cast
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Filter,
    Get,
    Join,
    Let,
    Map,
    OneInput,
    Projection,
    Relation,
    TemporalFilter,
    Union,
    inputs_of,
    query_of,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, Subquery, children, rewrite, substitute, walk
from mz_dagster.scalars.types import BOOL, RelationType


def with_inputs(relation: Relation, inputs: Sequence[Relation]) -> Relation:
    """Returns `relation` over other inputs, in the order of `inputs_of`; itself if they are the same."""
    old = inputs_of(relation)
    if len(inputs) == len(old) and all(map(operator.is_, inputs, old)):
        return relation
    if isinstance(relation, OneInput):
        return replace(relation, input=inputs[0])
    match relation:
        case Get() | Constant():
            return relation
        case Join():
            return replace(relation, inputs=tuple(inputs))
        case Union():
            return replace(relation, inputs=tuple(inputs))
        case Let():
            return Let(relation.id, inputs[0], inputs[1])
        case DependentJoin():
            return DependentJoin(inputs[0], inputs[1], relation.arguments)
        case _:
            assert_never(relation)


def nodes_of(relation: Relation) -> Iterator[Relation]:
    """Yields `relation` and all that is below, in order.

    A node that is there several times, as a view is that others read, is yielded once: a plan may have many more ways
    to a node than nodes.
    """
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += reversed(inputs_of(one))


def bottom_up(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
    """Returns `relation` with `rule` applied to every node, inputs first; once to one that is there several times."""
    found: dict[int, Relation] = {}

    def rebuilt(one: Relation) -> Relation:
        if id(one) not in found:
            found[id(one)] = rule(with_inputs(one, [rebuilt(each) for each in inputs_of(one)]))
        return found[id(one)]

    return rebuilt(relation)


def with_ids_of(relation: Relation, owner: GlobalId) -> Relation:
    """Returns a view's plan as others are to read it: no other plan binds its shared subplans by the same ids.

    A statement numbers its own from 1 on. Those of two would capture each other where one's plan comes to stand in the
    other's. As long as there is room, a plan is given for its owner once, so that it stays one however many read it.

    Args:
        relation: What the view's statement was bound to.
        owner: The view.
    """
    known = _by_owner(relation)
    if owner not in known:
        own = {one.id for one in nodes_of(relation) if isinstance(one, Let) and one.id.count(":") == 1}

        def renamed(one: Relation) -> Relation:
            if isinstance(one, Let | Get) and one.id in own:
                return replace(one, id=GlobalId(f"{one.id}:{owner}"))
            return one

        known[owner] = bottom_up(relation, renamed) if own else relation
    return known[owner]


def with_collections(relation: Relation, ids: Mapping[GlobalId, GlobalId]) -> Relation:
    """Returns `relation`, with its subqueries, with each collection in `ids` read under its new id.

    What is one node stays one.
    """
    found: dict[int, Relation] = {}

    def rebuilt(one: Relation) -> Relation:
        if id(one) not in found:
            made = with_inputs(one, [rebuilt(each) for each in inputs_of(one)])
            if isinstance(made, Get | Let):
                made = replace(made, id=_id_of_owner(made.id, ids))
            elif any(isinstance(part, Subquery) for scalar in scalars_of(made) for part in walk(scalar)):
                made = with_mapped_scalars(made, scalar)
            found[id(one)] = made
        return found[id(one)]

    def scalar(one: Scalar) -> Scalar:
        return substitute(
            one, lambda part: with_mapped_parts(part, rebuilt, scalar) if isinstance(part, Subquery) else None
        )

    return rebuilt(relation)


def _id_of_owner(id: GlobalId, ids: Mapping[GlobalId, GlobalId]) -> GlobalId:
    """Returns the id by which a collection is read, or a shared subplan, which may have its owner's (`with_ids_of`)."""
    if id in ids:
        return ids[id]
    *local, owner = id.split(":", 2)
    return GlobalId(":".join((*local, ids[GlobalId(owner)]))) if len(local) == 2 and owner in ids else id


@cached_by_object(most=20_000)
def _by_owner(_: Relation) -> dict[GlobalId, Relation]:
    return {}


def gets_of(relation: Relation) -> tuple[Get, ...]:
    """Returns the `Get`s of collections in `relation`: those that no `Let` in it binds.

    Precondition: what a `Let` binds is read within it only.
    """
    nodes = list(nodes_of(relation))
    bound = {one.id for one in nodes if isinstance(one, Let)}
    return tuple(one for one in nodes if isinstance(one, Get) and one.id not in bound)


def scalars_of(relation: Relation) -> tuple[Scalar, ...]:
    """Returns the scalars of the node itself."""
    match relation:
        case Map():
            return relation.scalars
        case Filter():
            return relation.predicates
        case Join():
            return tuple(scalar for one in relation.equivalences for scalar in one)
        case TemporalFilter():
            return relation.lower + relation.upper
        case DependentJoin():
            return relation.arguments
        case _:
            return ()


def with_mapped_scalars(relation: Relation, rule: Callable[[Scalar], Scalar]) -> Relation:
    """Returns the node over the same inputs with what `rule` makes of each of its scalars (`scalars_of`)."""

    def mapped(scalars: Sequence[Scalar]) -> tuple[Scalar, ...]:
        return tuple(rule(one) for one in scalars)

    match relation:
        case Map():
            return replace(relation, scalars=mapped(relation.scalars))
        case Filter():
            return replace(relation, predicates=mapped(relation.predicates))
        case Join():
            return replace(relation, equivalences=tuple(mapped(one) for one in relation.equivalences))
        case TemporalFilter():
            return replace(relation, lower=mapped(relation.lower), upper=mapped(relation.upper))
        case DependentJoin():
            return replace(relation, arguments=mapped(relation.arguments))
        case _:
            return relation


def with_mapped_parts(
    subquery: Subquery, query: Callable[[Relation], Relation], scalar: Callable[[Scalar], Scalar]
) -> Subquery:
    """Returns a subquery with what `query` makes of its query, and `scalar` of each of its arguments and its test."""
    return replace(
        subquery,
        relation=query(query_of(subquery)),
        arguments=tuple(map(scalar, subquery.arguments)),
        test=None if subquery.test is None else scalar(subquery.test),
    )


def moved(scalar: Scalar, places: Mapping[int, int]) -> Scalar:
    """Returns `scalar` with each column at the place that `places` gives it."""
    return rewrite(scalar, lambda ref: ColumnRef(places[ref.position], ref.type, ref.nullable, ref.name))


def shifted(scalar: Scalar, by: int) -> Scalar:
    """Returns `scalar` with each column `by` places on."""
    return rewrite(scalar, lambda ref: ColumnRef(ref.position + by, ref.type, ref.nullable, ref.name))


def substituted(scalar: Scalar, values: Mapping[int, Scalar]) -> Scalar:
    """Returns `scalar` with the columns in `values` replaced by those scalars."""
    return rewrite(scalar, lambda ref: values.get(ref.position, ref))


def can_fail(scalar: Scalar, but: Collection[str] = ()) -> bool:
    """Returns whether evaluating `scalar` can have an error as its outcome, `but` for those of some functions.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> a = ColumnRef(0, INT4)
        >>> can_fail(Call("divide_int4", (a, Literal(2, INT4)), INT4)), can_fail(Call("divide_int4", (a, a), INT4))
        (False, True)
    """
    if isinstance(scalar, Call) and scalar.function in ("without_error", "error_of"):
        return False
    own = isinstance(scalar, Call) and scalar.function not in but and _fails(scalar)
    return own or any(can_fail(one, but) for one in children(scalar))


def _fails(call: Call) -> bool:
    """Returns whether the function itself can fail; a literal argument may exclude what would make it."""
    if not FUNCTIONS[call.function].fallible:
        return False
    if call.function.startswith("cast_"):
        known = cast(call.arguments[0].type, call.type)
        return not isinstance(known, Cast) or known.function != call.function or known.fallible
    last = call.arguments[-1] if call.arguments else None
    if not isinstance(last, Literal) or last.value is None:
        return True
    if isinstance(last.value, str) and call.function in _PATTERNS:
        return "\\" in last.value
    if isinstance(last.value, int) and call.function.startswith(("divide_int", "modulo_int")):
        return last.value in (0, -1)
    if isinstance(last.value, int) and call.function in ("substring_text_from_for", "substring_bytea_from_for"):
        return last.value < 0
    return True


_PATTERNS = ("like_text", "not_like_text", "ilike_text", "not_ilike_text")


def conjuncts(predicate: Scalar) -> tuple[Scalar, ...]:
    """Returns the predicates that must all be true for `predicate` to be."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(one for argument in predicate.arguments for one in conjuncts(argument))
    return (predicate,)


def conjunction(predicates: Sequence[Scalar]) -> Scalar:
    """Returns the one predicate that is true where all of `predicates`, of which there is one at least, are."""
    if len(predicates) == 1:
        return predicates[0]
    return Call("and", tuple(predicates), BOOL, any(one.nullable for one in predicates))


def reference(relation_type: RelationType, position: int) -> ColumnRef:
    """Returns the scalar that reads the column at `position`."""
    column = relation_type.columns[position]
    return ColumnRef(position, column.type, column.nullable, column.name)


def references(relation: Relation, positions: Iterable[int]) -> tuple[ColumnRef, ...]:
    """Returns the scalars that read the columns at `positions` of a plan."""
    return tuple(reference(relation.relation_type, one) for one in positions)


def filtered(relation: Relation, predicates: Sequence[Scalar]) -> Relation:
    """Returns `relation` under a filter, if there is anything to filter by."""
    return Filter(relation, tuple(predicates)) if predicates else relation


def projected_to(relation: Relation, positions: Sequence[int]) -> Relation:
    """Returns `relation` under a projection, if that changes anything."""
    if tuple(positions) == tuple(range(relation.relation_type.arity)):
        return relation
    return Projection(relation, tuple(positions))


def empty(relation_type: RelationType) -> Constant:
    """Returns the relation of no rows with these columns."""
    return Constant((), RelationType(relation_type.columns, frozenset({frozenset()}), True))


def is_true(scalar: Scalar) -> bool:
    """Returns whether `scalar` is the literal true."""
    return isinstance(scalar, Literal) and scalar.value is True


def is_not_true(scalar: Scalar) -> bool:
    """Returns whether `scalar` is the literal false or NULL."""
    return isinstance(scalar, Literal) and scalar.value is not True
