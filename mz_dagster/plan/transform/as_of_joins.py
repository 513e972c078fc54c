"""The latest row of another relation as of each row is found by a range, not among all rows before it.

    TopK[a.k; order b.v desc, limit 1] (Filter (b.v <= a.t) (Join[a.c = b.c] A, B))

pairs each row of A, of which `k` is a unique key, with every earlier row of B, and keeps all of these pairs to know the
next one when the latest goes: rows of A times rows of B. Each row of B is the latest until the next one of its `c`:

    Filter (b.v <= a.t and (a.t < b.next or b.next is null)) (Join[a.c = b.c] A, B')
    B' = Window[c; order v; next := lead(v)] (TopK[c, v; the order behind v, limit 1] (Filter (b.v is not null) B))

pairs each with one. Likewise the first row behind each, `b.v >= a.t` in ascending order, by `lag`. So are planned the
lateral joins and scalar subqueries that take one row in the order of what they compare, and DISTINCT ON and
`row_number() = 1` by a unique key. The price is that a change of B computes the window of its `c` anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mz_dagster.plan.bounding import TURNED
from mz_dagster.plan.relation import (
    ColumnOrder,
    Filter,
    Join,
    Projection,
    Relation,
    TopK,
    Union,
    Window,
    WindowFunction,
)
from mz_dagster.plan.rewriting import bottom_up, can_fail, filtered, moved, projected_to, reference
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar, columns_of, reads_now
from mz_dagster.scalars.types import BOOL, Kind

#: What the next row must be, beside which the one that compares so is the last.
_BEYOND = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
#: Kinds of which casts to one another do not change the order of values.
_FAMILIES = (
    {Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.FLOAT4, Kind.FLOAT8},
    {Kind.DATE, Kind.TIMESTAMP},
)


def as_of_joins(relation: Relation) -> Relation:
    """Returns `relation` in which a row's latest of another relation is found by a range."""

    def rule(one: Relation) -> Relation:
        found = _latest(one) if isinstance(one, TopK) else None
        return one if found is None else found.by_range()

    return bottom_up(relation, rule)


@dataclass(frozen=True, slots=True)
class _Latest:
    """A relation's rows, each with the latest of another's.

    Attributes:
        top: Which rows are the latest.
        join: Of both sides.
        shown: Of which columns of the join those of the result are.
        side: Which input of the join the latest are looked for in.
        version: The column of the join that says which is later.
        keys: The columns of that side that must be equal to the other.
        compared: The version, or a cast of it.
        operation: How it compares with `other`.
        other: Over columns of the other side.
        kind: The kind of both, as functions name it.
    """

    top: TopK
    join: Join
    shown: tuple[int, ...]
    side: int
    version: int
    keys: tuple[int, ...]
    compared: Scalar
    operation: str
    other: Scalar
    kind: str

    @property
    def start(self) -> int:
        """Where the side's columns begin."""
        return self.join.offsets[self.side]

    @property
    def own(self) -> range:
        """The side's columns."""
        return range(self.start, self.start + self.join.inputs[self.side].relation_type.arity)

    def by_range(self) -> Relation:
        """Returns the same rows, found by a range."""
        # What is shown comes first: rows that are the same in the order go by that, as they did among all pairs.
        needed = dict.fromkeys((*(one for one in self.shown if one in self.own), *self.keys, self.version))
        places = {position: place for place, position in enumerate(needed)}
        window = self._versions(places)
        width, arity = window.relation_type.arity, len(self.own)
        moves = {
            position: (self.start + places[position] if position in places else -1)
            if position in self.own
            else position + (width - arity if position >= self.own.stop else 0)
            for position in range(self.join.relation_type.arity)
        }
        inputs = [window if number == self.side else one for number, one in enumerate(self.join.inputs)]
        classes = tuple(tuple(moved(scalar, moves) for scalar in one) for one in self.join.equivalences)
        joined = Join(tuple(inputs), classes, self.join.null_safe)
        compared, other = moved(self.compared, moves), moved(self.other, moves)
        next_ = reference(joined.relation_type, self.start + width - 1)
        beyond = replace(compared, arguments=(next_,), nullable=True) if isinstance(compared, Call) else next_
        predicates = (
            Call(f"{self.operation}_{self.kind}", (compared, other), BOOL, other.nullable),
            Call(
                "or",
                (
                    Call(f"{_BEYOND[self.operation]}_{self.kind}", (beyond, other), BOOL),
                    Call("is_null", (next_,), BOOL, False),
                ),
                BOOL,
            ),
        )
        found = projected_to(filtered(joined, predicates), [moves[one] for one in self.shown])
        # That there is one row of each group nobody else can know.
        return Union((found,), frozenset({frozenset(self.top.group)}))

    def _versions(self, places: Mapping[int, int]) -> Window:
        """Returns the first row of each version, with the version that follows as its last column.

        Args:
            places: The columns that are needed, and where they are among the result's, in this order.
        """
        rows = projected_to(self.join.inputs[self.side], [position - self.start for position in places])
        version = reference(rows.relation_type, places[self.version])
        if version.nullable:
            rows = filtered(rows, [Call("is_not_null", (version,), BOOL, False)])
        first, *rest = self.top.order
        order = [
            one.moved({one.position: places[position]})
            for one in rest
            if (position := self.shown[one.position]) in self.own and position not in (*self.keys, self.version)
        ]
        partition = tuple(places[position] for position in self.keys)
        firsts = TopK(rows, (*partition, version.position), tuple(order), 1)
        name = "lead" if first.descending else "lag"
        return Window(
            firsts,
            partition,
            (ColumnOrder(version.position, descending=False, nulls_first=False),),
            (WindowFunction(name, (version.position,), version.type),),
            ("next",),
        )


def _latest(top: TopK) -> _Latest | None:
    """Returns what the first rows of groups are the latest of; None if they are none."""
    shown, below = _projected(top.input)
    match below:
        case Filter(input=compared, predicates=(Call(arguments=(_, _)) as predicate,)):
            positions, join = _projected(compared)
        case _:
            return None
    if not isinstance(join, Join) or len(join.inputs) != 2:
        return None
    if top.limit != 1 or top.offset or top.ties or not top.order or can_fail(predicate) or reads_now(predicate):
        return None
    shown = tuple(positions[one] for one in shown)
    one, other = (moved(scalar, dict(enumerate(positions))) for scalar in predicate.arguments)
    version = shown[top.order[0].position]
    side = 0 if version < join.offsets[1] else 1
    own = range(join.offsets[side], join.offsets[side] + join.inputs[side].relation_type.arity)
    operation, _, kind = predicate.function.partition("_")
    if _source(one) != version:
        one, other, operation = other, one, TURNED.get(operation, "")
    if _source(one) != version or not columns_of(other) or not columns_of(other).isdisjoint(own):
        return None
    if operation not in (("lt", "le") if top.order[0].descending else ("gt", "ge")):
        return None
    keys = _keys(join, own)
    if keys is None or not _are_single_rows(join, side, {keys.get(shown[one], shown[one]) for one in top.group}):
        return None
    return _Latest(top, join, shown, side, version, tuple(keys), one, operation, other, kind)


def _projected(relation: Relation) -> tuple[tuple[int, ...], Relation]:
    """Returns what projections show, and of what."""
    positions = tuple(range(relation.relation_type.arity))
    while isinstance(relation, Projection):
        positions, relation = tuple(relation.positions[one] for one in positions), relation.input
    return positions, relation


def _source(scalar: Scalar) -> int | None:
    """Returns of which column a scalar has the order; None if it is not known to have one's."""
    match scalar:
        case ColumnRef():
            return scalar.position
        case Call(arguments=(ColumnRef() as column,)) if scalar.function.startswith("cast_"):
            kinds = {column.type.kind, scalar.type.kind}
            return column.position if any(kinds <= family for family in _FAMILIES) else None
    return None


def _keys(join: Join, own: range) -> dict[int, int] | None:
    """Returns columns of one side that must be equal to the other, and a column of that each is equal to, or itself.

    None if more is asked of the side's rows than that some columns of theirs are equal to something.
    """
    found = {}
    for equivalence in join.equivalences:
        within = [one for one in equivalence if not columns_of(one).isdisjoint(own)]
        others = [one for one in equivalence if one not in within]
        if not all(map(columns_of, equivalence)) or not others or len(within) > 1:
            return None
        for one in within:
            if not isinstance(one, ColumnRef):
                return None
            equal = [other.position for other in others if isinstance(other, ColumnRef)]
            found[one.position] = equal[0] if equal else one.position
    return found


def _are_single_rows(join: Join, side: int, group: set[int]) -> bool:
    """Returns whether each group by some columns is of one row of the other side."""
    start, other = join.offsets[1 - side], join.inputs[1 - side].relation_type
    known = {position - start for position in group}
    return known <= set(range(other.arity)) and any(key <= known for key in other.keys)
