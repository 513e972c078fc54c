"""GROUP BY and what it leaves to the rest of a SELECT.

Owns the meaning of group keys (a number, a name, an expression: a column that is read goes before an output column of
that name), the plan of the groups, the row of a global aggregate over nothing, and the rule that everything
outside of aggregates is made of keys.

The groupings of a clause that has several (`grouping_sets`) are one reduce, of rows that are there once for each, by
the grouping's number and all keys, of which those are NULL that it does not group by. So they have one state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mz_dagster.functions import FUNCTIONS, Unknown
from mz_dagster.plan.relation import (
    Aggregate,
    ColumnOrder,
    Constant,
    Filter,
    FlatMap,
    Get,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    Union,
)
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.row_count import with_default
from mz_dagster.plan.semijoin import ONE_ROW, with_literals, with_scalars
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery
from mz_dagster.scalars.types import BOOL, INT4, TEXT, ScalarType, array_of
from mz_dagster.sql.aggregates import AGGREGATES
from mz_dagster.sql.binding import BindingContext, name_of
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.collected_calls import Core, Grouping
from mz_dagster.sql.errors import (
    AmbiguousColumn,
    GroupingError,
    InvalidColumnReference,
    UnsupportedForm,
    WindowingError,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.grouping_sets import GroupBy
from mz_dagster.sql.output_columns import OutputColumns, bare_name, ordinal_of
from mz_dagster.sql.placeholders import (
    AGGREGATE_BASE,
    has_aggregate,
    has_window,
    is_aggregate,
    is_set,
    is_window,
    replaced,
)
from mz_dagster.sql.scope import Scope


def group_key(binder: ExpressionBinder, node: exp.Expr, outputs: OutputColumns, taken: dict[int, Scalar]) -> Scalar:
    """Returns the key that an expression of a GROUP BY clause stands for, over what the query reads.

    Notes in `taken` which output column it is, if it is one: the first of several of one expression.
    """
    key, place = _group_key(binder, node, outputs)
    if place is None and key in outputs.items:
        place = outputs.items.index(key)
    if place is not None:
        taken[place] = key
    return key


def all_items(binder: ExpressionBinder, outputs: OutputColumns) -> GroupBy:
    """Returns what GROUP BY ALL means: the items that hold neither an aggregate nor a window function are the keys."""
    keys: list[Scalar] = []
    for place in range(outputs.shown):
        item = outputs.items[place]
        if isinstance(item, Unknown) or not (has_aggregate([item]) or has_window([item])):
            keys.append(_output(binder, outputs, place))
    keys = list(dict.fromkeys(keys))
    return GroupBy(tuple(keys), (tuple(range(len(keys))),))


def check_distinguishable(body: Body, groupings: GroupBy, taken: dict[int, Scalar], outputs: OutputColumns) -> None:
    """Refuses keys of several groupings that PostgreSQL tells apart by the output column they are, not by their value.

    Raises:
        UnsupportedForm: A key is a constant that a grouping leaves out, or two keys are outputs of one expression.
    """
    if len(groupings.sets) == 1:
        return
    everywhere = {groupings.keys[i] for i in set.intersection(*(set(one) for one in groupings.sets))}
    for place, key in taken.items():
        twice = list(taken.values()).count(key) > 1
        if twice or (isinstance(key, Literal) and key not in everywhere):
            raise UnsupportedForm(
                f"{'two outputs of one expression' if twice else 'a constant'} in GROUPING SETS is not supported",
                detail="Whether such an output is NULL would depend on more than its value.",
                hint="Group by columns, and select the constant or the copy from the grouped query.",
                position=body.position(outputs.nodes[place]),
            )


def _group_key(binder: ExpressionBinder, node: exp.Expr, outputs: OutputColumns) -> tuple[Scalar, int | None]:
    """Returns the key, and which output column it names."""
    body, position = binder.body, binder.body.position(node)
    ordinal = ordinal_of(body, node, "GROUP BY")
    if ordinal is not None:
        if not 1 <= ordinal <= outputs.shown:
            raise InvalidColumnReference(f"GROUP BY position {ordinal} is not in select list", position=position)
        return _output(binder, outputs, ordinal - 1), ordinal - 1
    name = bare_name(node)
    if name is not None and not any(column.name == name for column in binder.scope.visible):
        places = [i for i in range(outputs.shown) if outputs.names[i] == name]
        found = dict.fromkeys(_output(binder, outputs, i) for i in places)
        if len(found) > 1:
            raise AmbiguousColumn(f'GROUP BY "{name}" is ambiguous', position=position)
        if found:
            return next(iter(found)), places[0]
    return binder.typed(node), None


def _output(binder: ExpressionBinder, outputs: OutputColumns, place: int) -> Scalar:
    item, node = outputs.items[place], outputs.nodes[place]
    scalar = binder.literal(item, TEXT, node) if isinstance(item, Unknown) else item
    if has_aggregate([scalar]):
        position = binder.body.position(_first_call(node, windows=False) or node)
        raise GroupingError("aggregate functions are not allowed in GROUP BY", position=position)
    if has_window([scalar]):
        position = binder.body.position(_first_call(node, windows=True) or node)
        raise WindowingError("window functions are not allowed in GROUP BY", position=position)
    return scalar


def _first_call(node: exp.Expr, *, windows: bool) -> exp.Expr | None:
    for one in node.find_all(exp.Window if windows else exp.Anonymous, bfs=False):
        if windows or name_of(one.this) in AGGREGATES:
            found: exp.Expr = one
            return found
    return None


def with_dependent_keys(group: GroupBy, scope: Scope, scalars: Iterable[Scalar]) -> GroupBy:
    """Returns a clause that groups, too, by the columns that a table's key among its own keys decides.

    Args:
        group: The clause.
        scope: What the query reads.
        scalars: All that is over the groups; of other columns than it needs none becomes a key.
    """
    common = set.intersection(*map(set, group.sets))
    known = {key.position for i, key in enumerate(group.keys) if i in common and isinstance(key, ColumnRef)}
    decided = {
        column.position
        for table in scope.tables
        if any({table.columns[i].position for i in key} <= known for key in table.keys)
        for column in table.columns
    }
    found = dict.fromkeys(
        one for scalar in scalars for one in _ungrouped(scalar, group.keys) if one.position in decided
    )
    if not found:
        return group
    keys = (*group.keys, *found)
    added = tuple(range(len(group.keys), len(keys)))
    return GroupBy(keys, tuple((*one, *added) for one in group.sets))


def _ungrouped(scalar: Scalar, keys: Sequence[Scalar]) -> Iterator[ColumnRef]:
    """Yields the columns that a scalar is made of which are not within one of the keys."""
    if scalar in keys:
        return
    match scalar:
        case ColumnRef():
            yield scalar
        case If():
            for one in (scalar.condition, scalar.then, scalar.otherwise):
                yield from _ungrouped(one, keys)
        case Call() | Subquery():
            for one in scalar.arguments:
                yield from _ungrouped(one, keys)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A grouped query: one row per group.

    Attributes:
        relation: Keys, then aggregates.
        keys: What each key column is, over what the query reads.
        body: The text.
        scope: What the query reads, for errors.
    """

    relation: Relation
    keys: tuple[Scalar, ...]
    body: Body
    scope: Scope

    def rewritten(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """Returns `scalar`, over what the query reads, as one over the groups.

        Placeholders of windows and of functions that return rows stay.

        Raises:
            GroupingError: It depends on a column that is not the same for all rows of a group.
        """
        try:
            return self._rewritten(scalar)
        except _Ungrouped as ungrouped:
            raise self._error(ungrouped, node) from None

    def _rewritten(self, scalar: Scalar) -> Scalar:
        if isinstance(scalar, Literal | OuterColumn) or is_window(scalar):
            return scalar
        if scalar in self.keys:
            column = self.relation.relation_type.columns[self.keys.index(scalar)]
            return ColumnRef(self.keys.index(scalar), scalar.type, column.nullable, column.name)
        if is_set(scalar):
            return scalar
        match scalar:
            case ColumnRef():
                if not is_aggregate(scalar):
                    raise _Ungrouped(scalar)
                return replace(scalar, position=len(self.keys) + scalar.position - AGGREGATE_BASE)
            case If():
                parts = (scalar.condition, scalar.then, scalar.otherwise)
                return If(*(self._rewritten(one) for one in parts))
            case Call():
                arguments = tuple(self._rewritten(one) for one in scalar.arguments)
                # A key that a grouping leaves out is NULL there.
                lets_null = FUNCTIONS[scalar.function].nullability.of([one.nullable for one in arguments])
                return replace(scalar, arguments=arguments, nullable=scalar.nullable or lets_null)
            case Subquery():
                try:
                    return replace(scalar, arguments=tuple(self._rewritten(one) for one in scalar.arguments))
                except _Ungrouped as ungrouped:
                    raise _Ungrouped(ungrouped.reference, in_subquery=True) from None

    def _error(self, ungrouped: _Ungrouped, node: exp.Expr) -> GroupingError:
        reference = ungrouped.reference
        shown = reference.name
        for table in self.scope.tables:
            for column in table.columns:
                if column.position == reference.position and table.name is not None:
                    shown = f"{table.name}.{column.name}"
        message = f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function'
        if ungrouped.in_subquery:
            message = f'subquery uses ungrouped column "{shown}" from outer query'
        return GroupingError(message, position=self._position(reference, node))

    def _position(self, reference: ColumnRef, node: exp.Expr) -> int:
        for one in node.find_all(exp.Column, bfs=False):
            if not isinstance(one.this, exp.Identifier) or _within_aggregate(one, node):
                continue
            table = name_of(one.args["table"]) if one.args.get("table") is not None else None
            columns = self.scope.visible
            if table is not None:
                columns = tuple(c for known in self.scope.tables if known.name == table for c in known.columns)
            if any(c.name == name_of(one.this) and c.position == reference.position for c in columns):
                return self.body.position(one)
        return self.body.position(node)


class _Ungrouped(Exception):
    def __init__(self, reference: ColumnRef, *, in_subquery: bool = False) -> None:
        super().__init__(reference)
        self.reference, self.in_subquery = reference, in_subquery


def _within_aggregate(node: exp.Expr, root: exp.Expr) -> bool:
    child, parent = node, node.parent
    while child is not root and parent is not None:
        if isinstance(parent, exp.WithinGroup) and child is not parent.this:
            return True
        if isinstance(parent, exp.Anonymous) and name_of(parent.this) in AGGREGATES:
            above = parent.parent
            while isinstance(above, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                above = above.parent
            if not isinstance(above, exp.Window):
                return True
        child, parent = parent, parent.parent
    return False


def grouped(
    binding: BindingContext,
    body: Body,
    scope: Scope,
    relation: Relation,
    group: GroupBy,
    calls: Sequence[Core | Grouping],
    group_size: int | None,
    columns: Mapping[int, ColumnRef],
) -> Grouped:
    """Returns the groups of `relation`, in whose columns the rows of functions are that keys hold placeholders of.

    Grouping by no key makes one group, and one row even over nothing: where the reduce has no row a default stands in.

    Raises:
        GroupingError: GROUPING is asked for what is no key.
    """
    keys = group.keys
    masks = {call: _places(call, keys) for call in calls if isinstance(call, Grouping)}
    cores = [call for call in calls if isinstance(call, Core)]
    needed = [replaced(key, columns) for key in keys]
    for core in cores:
        needed += [*core.arguments, *([] if core.filter is None else [core.filter]), *(k.scalar for k in core.order)]
    below, positions = with_scalars(relation, needed, "computed")
    places = iter(positions)
    key_places = [next(places) for _ in keys]
    aggregates: list[Aggregate] = []
    for core in cores:
        arguments = tuple(next(places) for _ in core.arguments)
        condition = None if core.filter is None else next(places)
        order = tuple(ColumnOrder(next(places), key.descending, key.nulls_first) for key in core.order)
        aggregates.append(Aggregate(core.function, arguments, core.type, core.distinct, condition, order))
    names = tuple(core.function.value for core in cores)
    if len(group.sets) > 1:
        result = _by_sets(binding, below, key_places, group.sets, aggregates, names, group_size)
        at: dict[Core | Grouping, Scalar] = {
            core: reference(result.relation_type, 1 + len(keys) + place) for place, core in enumerate(cores)
        }
        number = reference(result.relation_type, 0)
        at |= {call: _of_set(number, [_mask(one, by) for by in group.sets], call.type) for call, one in masks.items()}
        columns_of_keys = [reference(result.relation_type, 1 + place) for place in range(len(keys))]
        result, positions = with_scalars(result, [*columns_of_keys, *(at[call] for call in calls)], "grouping")
        return Grouped(projected_to(result, positions), keys, body, scope)
    if not keys and not cores:
        return Grouped(ONE_ROW, keys, body, scope)  # whatever the input holds
    reduce = Reduce(below, tuple(key_places), tuple(aggregates), names, group_size)
    result = reduce if keys else with_default(reduce, _defaults(aggregates), binding.local_id())
    result = with_literals(result, [Literal(0, call.type) for call in masks], ["grouping" for _ in masks])
    given = [*cores, *masks]
    return Grouped(
        projected_to(result, [*range(len(keys)), *(len(keys) + given.index(call) for call in calls)]), keys, body, scope
    )


def _by_sets(
    binding: BindingContext,
    below: Relation,
    key_places: Sequence[int],
    sets: Sequence[Sequence[int]],
    aggregates: Sequence[Aggregate],
    names: Sequence[str],
    group_size: int | None,
) -> Relation:
    """Returns the groups of all groupings: the grouping's number, from 1 on, then all keys, then the aggregates.

    A key is NULL where the grouping is not by it. Each row is there once for each grouping, so that all are one reduce.
    """
    numbers = Literal(tuple(range(1, len(sets) + 1)), array_of(INT4))
    rows: Relation = FlatMap(Map(below, (numbers,), ("groupings",)))
    number = reference(rows.relation_type, below.relation_type.arity)
    chosen: list[Scalar] = [number]
    for one, place in enumerate(key_places):
        key = reference(rows.relation_type, place)
        is_by = [one in by for by in sets]
        chosen.append(key if all(is_by) else If(_of_set(number, is_by, BOOL), key, Literal(None, key.type)))
    rows, places = with_scalars(rows, chosen, "key")
    reduce = Reduce(rows, tuple(places), tuple(aggregates), tuple(names), group_size)
    by_nothing = [n for n, by in enumerate(sets, 1) if not by]
    if not by_nothing:
        return reduce
    # A row even over nothing.
    found = Get(binding.local_id(), reduce.relation_type)
    cells = [*(Literal(None, column.type) for column in reduce.relation_type.columns[1 : len(places)])]
    cells += _defaults(aggregates)
    default = Constant(tuple((Literal(n, INT4), *cells) for n in by_nothing), reduce.relation_type)
    number = reference(found.relation_type, 0)
    superseded = Filter(found, (_of_set(number, [not by for by in sets], BOOL),))
    arity, names = found.relation_type.arity, found.relation_type.names[1:]
    replaced_by = Projection(Map(superseded, tuple(cells), names), (0, *range(arity, 2 * arity - 1)))
    return Let(found.id, reduce, Union((found, default, Negate(replaced_by)), reduce.relation_type.keys))


def _of_set(number: ColumnRef, values: Sequence[object], type_: ScalarType) -> Scalar:
    """Returns which of the values, one for each grouping, is that of the grouping of a number."""
    return Call("array_subscript", (Literal(tuple(values), array_of(type_)), number), type_)


def _places(call: Grouping, keys: Sequence[Scalar]) -> tuple[int, ...]:
    """Returns which keys a GROUPING asks for."""
    for argument, position in zip(call.arguments, call.positions, strict=True):
        if argument not in keys:
            message = "arguments to GROUPING must be grouping expressions of the associated query level"
            raise GroupingError(message, position=position)
    return tuple(keys.index(argument) for argument in call.arguments)


def _mask(places: Sequence[int], by: Sequence[int]) -> int:
    """Returns a bit for each place, the last one lowest: 1 where the grouping is not by it.

    Example:
        >>> _mask((0, 1, 2), by=(1,))
        5
    """
    return sum(1 << shift for shift, place in enumerate(reversed(places)) if place not in by)


def _defaults(aggregates: Sequence[Aggregate]) -> list[Literal]:
    """Returns what the aggregates of no rows are."""
    return [Literal(one.function.of_nothing, one.type) for one in aggregates]
