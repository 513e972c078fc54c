"""Relational expressions: the logical plan.

A small algebra of frozen nodes whose constructors refuse ill-formed plans. Each node is a
deterministic function from time-varying collections with errors to one; it knows its
`RelationType`: columns with types and nullability, unique keys, and whether it is monotonic.
Columns are referred to by position. `Let` binds a shared subplan to a name of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.scalar import Literal, Scalar, columns_of
from mz_dagster.plan.types import BOOL, Column, RelationType


@dataclass(frozen=True, slots=True)
class Get:
    """Reads the collection `id`, or the subplan that an enclosing `Let` bound to the local id `id`."""

    id: GlobalId
    relation_type: RelationType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """Is a fixed multiset of rows, there from the first time on."""

    rows: tuple[tuple[Literal, ...], ...]
    relation_type: RelationType

    def __post_init__(self) -> None:
        for row in self.rows:
            if tuple(cell.type for cell in row) != tuple(column.type for column in self.relation_type.columns):
                raise ValueError("a constant row does not fit its columns")


@dataclass(frozen=True, slots=True)
class Map:
    """Appends columns; a scalar may refer to the columns that earlier scalars appended."""

    input: Relation
    scalars: tuple[Scalar, ...]
    names: tuple[str, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if len(self.scalars) != len(self.names):
            raise ValueError("each mapped scalar needs one name")
        below = self.input.relation_type
        for offset, scalar in enumerate(self.scalars):
            _check_positions(scalar, below.arity + offset)
        added = tuple(Column(n, s.type, s.nullable) for n, s in zip(self.names, self.scalars, strict=True))
        object.__setattr__(self, "relation_type", RelationType(below.columns + added, below.keys, below.monotonic))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which every predicate is true."""

    input: Relation
    predicates: tuple[Scalar, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            if predicate.type != BOOL:
                raise ValueError(f"a predicate has type {predicate.type}")
            _check_positions(predicate, self.input.relation_type.arity)
        object.__setattr__(self, "relation_type", self.input.relation_type)


@dataclass(frozen=True, slots=True)
class Project:
    """Keeps the columns at `positions`, in that order; a position may repeat."""

    input: Relation
    positions: tuple[int, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        below = self.input.relation_type
        if any(not 0 <= position < below.arity for position in self.positions):
            raise ValueError(f"projection {self.positions} of {below.arity} columns")
        place = {position: new for new, position in reversed(list(enumerate(self.positions)))}
        keys = frozenset(frozenset(place[position] for position in key) for key in below.keys if key <= place.keys())
        columns = tuple(below.columns[position] for position in self.positions)
        object.__setattr__(self, "relation_type", RelationType(columns, keys, below.monotonic))


@dataclass(frozen=True, slots=True)
class Join:
    """Is the inner join of any number of inputs.

    Columns are all inputs' columns, concatenated. Each equivalence is a class of scalars over those columns
    that must be equal, and none of them NULL, for a row to be part of the result. Conditions that
    are not equalities stand in a `Filter` above.
    """

    inputs: tuple[Relation, ...]
    equivalences: tuple[tuple[Scalar, ...], ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise ValueError("a join has at least two inputs")
        columns = tuple(column for one in self.inputs for column in one.relation_type.columns)
        for equivalence in self.equivalences:
            if len(equivalence) < 2 or len({scalar.type for scalar in equivalence}) != 1:
                raise ValueError("an equivalence has two or more scalars of one type")
            for scalar in equivalence:
                _check_positions(scalar, len(columns))
        monotonic = all(one.relation_type.monotonic for one in self.inputs)
        object.__setattr__(
            self, "relation_type", RelationType(columns, join_keys(self.inputs, self.equivalences), monotonic)
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """The position of each input's first column."""
        return offsets_of(self.inputs)


@dataclass(frozen=True, slots=True)
class Negate:
    """Turns the sign of every multiplicity."""

    input: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation_type", RelationType(self.input.relation_type.columns))


@dataclass(frozen=True, slots=True)
class Union:
    """Is the sum of its inputs' multiplicities: UNION ALL."""

    inputs: tuple[Relation, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ValueError("a union has at least one input")
        first, *others = (one.relation_type for one in self.inputs)
        for other in others:
            if tuple(c.type for c in other.columns) != tuple(c.type for c in first.columns):
                raise ValueError("the inputs of a union differ in their columns' types")
        columns = tuple(
            Column(column.name, column.type, any(one.relation_type.columns[i].nullable for one in self.inputs))
            for i, column in enumerate(first.columns)
        )
        monotonic = all(one.relation_type.monotonic for one in self.inputs)
        object.__setattr__(self, "relation_type", RelationType(columns, frozenset(), monotonic))


@dataclass(frozen=True, slots=True)
class Let:
    """Binds `value` to the local id `id` within `body`, so that it is computed once."""

    id: GlobalId
    value: Relation
    body: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation_type", self.body.relation_type)


Relation = Get | Constant | Map | Filter | Project | Join | Negate | Union | Let


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Returns the direct inputs, in order."""
    match relation:
        case Get() | Constant():
            return ()
        case Map() | Filter() | Project() | Negate():
            return (relation.input,)
        case Join() | Union():
            return relation.inputs
        case Let():
            return (relation.value, relation.body)
        case _:
            assert_never(relation)


def offsets_of(inputs: tuple[Relation, ...]) -> tuple[int, ...]:
    """Returns, for the concatenation of the inputs' columns, the position of each input's first one."""
    offsets: list[int] = []
    position = 0
    for one in inputs:
        offsets.append(position)
        position += one.relation_type.arity
    return tuple(offsets)


def join_keys(inputs: tuple[Relation, ...], equivalences: tuple[tuple[Scalar, ...], ...]) -> frozenset[frozenset[int]]:
    """Returns unique keys of a join.

    Two sources of keys: one key of every input together; and, for an input all of whose other inputs are each
    determined, through equated columns, by what is already determined, that input's own keys.
    """
    from mz_dagster.plan.scalar import ColumnRef  # local: only this function looks inside scalars

    offsets = offsets_of(inputs)
    classes = [
        frozenset(scalar.position for scalar in equivalence if isinstance(scalar, ColumnRef))
        for equivalence in equivalences
    ]
    keys: set[frozenset[int]] = set()
    for start, relation in enumerate(inputs):
        known = set(range(offsets[start], offsets[start] + relation.relation_type.arity))
        reached = {start}
        grew = True
        while grew:
            grew = False
            equated = known | {member for one in classes if one & known for member in one}
            for i, other in enumerate(inputs):
                if i in reached:
                    continue
                if any({offsets[i] + position for position in key} <= equated for key in other.relation_type.keys):
                    reached.add(i)
                    known |= set(range(offsets[i], offsets[i] + other.relation_type.arity))
                    grew = True
        if len(reached) == len(inputs):
            keys |= {frozenset(offsets[start] + p for p in key) for key in relation.relation_type.keys}
    if not keys and all(one.relation_type.keys for one in inputs):
        combined: frozenset[int] = frozenset()
        for i, one in enumerate(inputs):
            smallest = min(one.relation_type.keys, key=lambda key: (len(key), sorted(key)))
            combined |= {offsets[i] + position for position in smallest}
        keys.add(combined)
    return frozenset(keys)


def _check_positions(scalar: Scalar, arity: int) -> None:
    out_of_range = [position for position in columns_of(scalar) if not 0 <= position < arity]
    if out_of_range:
        raise ValueError(f"columns {out_of_range} of a relation with {arity} columns")
