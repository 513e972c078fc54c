"""Rows that are dropped above because a column of theirs is NULL are not made: an outer join becomes an inner one.

    Filter x > 1 (Union (A join B) (Map x := null A'))   is   Filter x > 1 (A join B)

A filter drops a row if a predicate is not true where the column is NULL; an equivalence of a join, if it compares the
column and NULL equals nothing in it. What is so known of columns is carried down to the unions, whose inputs that have
nothing but NULL there go, and the rows of constants. Nothing of that is there to raise an error: who asks for a value
raises it.

Precondition: no two `Let`s bind the same id, which `share_subplans` sees to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import FUNCTIONS
from mz_dagster.plan.properties import let_through
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    OneInput,
    Projection,
    Relation,
    Threshold,
    Union,
    inputs_of,
)
from mz_dagster.plan.rewriting import can_fail, empty, substituted, with_inputs
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, columns_of, walk


def null_rejection(relation: Relation) -> Relation:
    """Returns `relation` without inputs of unions whose rows are all dropped for a NULL."""
    return _Rejection().without(relation, frozenset())


@dataclass(slots=True)
class _Rejection:
    """Carries what is known down a plan.

    Attributes:
        uses: For each shared subplan around, the columns in which each of its uses so far wants no NULL.
    """

    uses: dict[GlobalId, list[frozenset[int]]] = field(default_factory=dict)

    def without(self, relation: Relation, rejected: frozenset[int]) -> Relation:
        """Returns `relation`, in which rows with NULL in one of the columns `rejected` may be missing."""
        match relation:
            case Get():
                if relation.id in self.uses:
                    self.uses[relation.id].append(rejected)
                return relation
            case Constant():
                rows = tuple(row for row in relation.rows if all(row[one].value is not None for one in rejected))
                return relation if len(rows) == len(relation.rows) else Constant(rows, relation.relation_type)
            case Union():
                return self._union(relation, rejected)
            case Let():
                self.uses[relation.id] = []
                body = self.without(relation.body, rejected)
                uses = self.uses.pop(relation.id) or [frozenset()]
                return Let(relation.id, self.without(relation.value, frozenset.intersection(*uses)), body)
            case Join():
                return self._join(relation, rejected)
            case DependentJoin():
                return with_inputs(relation, [self.without(one, frozenset()) for one in inputs_of(relation)])
            case _:
                return with_inputs(relation, [self.without(relation.input, _below(relation, rejected))])

    def _union(self, relation: Union, rejected: frozenset[int]) -> Relation:
        inputs = tuple(one for one in relation.inputs if not any(_always_null(one, column) for column in rejected))
        if not inputs:
            return empty(relation.relation_type)
        kept = tuple(self.without(one, rejected) for one in inputs)
        return replace(relation, inputs=kept)

    def _join(self, relation: Join, rejected: frozenset[int]) -> Relation:
        wanted = set(rejected)
        for number, one in enumerate(relation.equivalences):
            if number not in relation.null_safe:
                wanted.update(*(_making_null(scalar) for scalar in one))
        inputs = []
        for offset, input in zip(relation.offsets, relation.inputs, strict=True):
            own = range(input.relation_type.arity)
            inputs.append(self.without(input, frozenset(column for column in own if offset + column in wanted)))
        return with_inputs(relation, inputs)


def _below(relation: OneInput, rejected: frozenset[int]) -> frozenset[int]:
    """Returns the columns of the input of `relation` in which no NULL is wanted."""
    match relation:
        case Map():
            arity = relation.input.relation_type.arity
            wanted = set(rejected)
            for position in sorted(rejected, reverse=True):
                if position >= arity:
                    wanted |= _making_null(relation.scalars[position - arity])
            return frozenset(one for one in wanted if one < arity)
        case Filter():
            return rejected.union(*(_refused(one) for one in relation.predicates))
        case FlatMap():
            return frozenset()
        case _:
            places = let_through(relation)
            return frozenset(places[one] for one in rejected if one in places)


def _making_null(scalar: Scalar) -> frozenset[int]:
    """Returns the columns that make `scalar` NULL, and nothing else, by being NULL."""
    return frozenset(one for one in columns_of(scalar) if _is_null(_with_null(scalar, one)))


def _refused(predicate: Scalar) -> frozenset[int]:
    """Returns the columns that keep `predicate` from being true, or from failing, by being NULL."""
    return frozenset(one for one in columns_of(predicate) if _never_true(_with_null(predicate, one)))


def _with_null(scalar: Scalar, position: int) -> Scalar:
    types = {one.position: one.type for one in walk(scalar) if isinstance(one, ColumnRef)}
    return fold_scalar(substituted(scalar, {position: Literal(None, types[position])}))


def _is_null(scalar: Scalar) -> bool:
    """Returns whether `scalar`, which is folded, can be nothing but NULL."""
    match scalar:
        case Literal():
            return scalar.value is None
        case If():
            return not can_fail(scalar.condition) and _is_null(scalar.then) and _is_null(scalar.otherwise)
        case Call():
            strict = FUNCTIONS[scalar.function].strict and not any(can_fail(one) for one in scalar.arguments)
            return strict and any(_is_null(one) for one in scalar.arguments)
        case _:
            return False


def _never_true(predicate: Scalar) -> bool:
    if isinstance(predicate, Call) and predicate.function == "and" and not can_fail(predicate):
        return any(_never_true(one) for one in predicate.arguments)
    if isinstance(predicate, Call) and predicate.function == "or":
        return all(_never_true(one) for one in predicate.arguments)
    return _is_null(predicate) or (isinstance(predicate, Literal) and predicate.value is not True)


def _always_null(relation: Relation, position: int) -> bool:
    """Returns whether the column at `position` is NULL in every row."""
    match relation:
        case Map():
            arity = relation.input.relation_type.arity
            if position < arity:
                return _always_null(relation.input, position)
            scalar = relation.scalars[position - arity]
            read = {one.position: one.type for one in walk(scalar) if isinstance(one, ColumnRef)}
            nulls = {one: Literal(None, type_) for one, type_ in read.items() if _always_null(relation, one)}
            return _is_null(fold_scalar(substituted(scalar, nulls)))
        case Projection():
            return _always_null(relation.input, relation.positions[position])
        case Filter() | Negate() | Threshold():
            return _always_null(relation.input, position)
        case Union():
            return all(_always_null(one, position) for one in relation.inputs)
        case Constant():
            return all(row[position].value is None for row in relation.rows)
        case Join():
            owner = relation.owner(position)
            return _always_null(relation.inputs[owner], position - relation.offsets[owner])
        case _:
            return False
