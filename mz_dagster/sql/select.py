"""Binds one SELECT: from its FROM clause through groups, windows and DISTINCT to its columns.

Owns the order in which clauses act: FROM, WHERE, GROUP BY, HAVING, windows, QUALIFY, DISTINCT. All expressions are
bound over what FROM offers; aggregates and windows in them are placeholders until their stage has given the plan
the columns. What follows a query (LIMIT, OFFSET) is left to the caller, except for what ORDER BY needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mz_dagster.functions import Unknown
from mz_dagster.plan.relation import ColumnOrder, Filter, Reduce, Relation, TopK
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.semijoin import ONE_ROW, with_scalars
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.sql.binding import BindingContext, Bound, only_parts, qualifier_of, unwrapped
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.collected_calls import AggregateCalls, SetCalls, SortKey, WindowCall, WindowCalls
from mz_dagster.sql.enclosing import all_named
from mz_dagster.sql.errors import InvalidColumnReference, InvalidSyntax, UnsupportedForm
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.grouping import (
    Grouped,
    all_items,
    check_distinguishable,
    group_key,
    grouped,
    with_dependent_keys,
)
from mz_dagster.sql.grouping_sets import GroupBy, group_by
from mz_dagster.sql.ordering import TAIL
from mz_dagster.sql.output_columns import OutputColumns
from mz_dagster.sql.output_names import FIRST_COLUMN, output_name
from mz_dagster.sql.pending import Pending
from mz_dagster.sql.placeholders import has_set, replaced, sets_in
from mz_dagster.sql.row_values import bind_all_fields
from mz_dagster.sql.scope import Scope
from mz_dagster.sql.set_functions import apply_sets
from mz_dagster.sql.windows import apply_windows, define_windows

_CLAUSES = ("expressions", "from_", "joins", "where", "kind", "group", "having", "windows", "qualify", "distinct")


@dataclass(slots=True)
class SelectBinder:
    """Binds what stands behind FROM of one SELECT.

    Attributes:
        binding: The statement's state.
        body: The text.
        scope: What FROM offers.
        order: Of the rows of FROM, over their columns.
        order_position: As of `OrderedRows`.
    """

    binding: BindingContext
    body: Body
    scope: Scope
    order: tuple[ColumnOrder, ...] = ()
    order_position: int | None = None

    def bind(self, node: exp.Select, relation: Relation, order: exp.Expr | None) -> Pending:
        """Returns the SELECT over `relation`, its rows in the order of the ORDER BY clause `order`."""
        sizes = self.body.group_sizes(node)
        given = tuple(
            SortKey(reference(relation.relation_type, one.position), one.descending, one.nulls_first)
            for one in self.order
        )
        aggregates, windows, sets = AggregateCalls(given), WindowCalls(given), SetCalls()
        where = node.args.get("where")
        condition = None if where is None else self._expressions("WHERE").boolean(where.this, "WHERE")
        binder = self._expressions("SELECT", aggregates, windows)
        definitions = node.args.get("windows") or []
        define_windows(replace(binder, clause="window definitions", windows=None), windows, definitions)
        binder = replace(binder, sets=sets)
        outputs = self._items(node, binder)
        outputs.expressions = replace(binder, clause="ORDER BY").typed
        having = self._condition(node, "having", "HAVING", aggregates, None)
        qualify = self._condition(node, "qualify", "QUALIFY", aggregates, windows)
        keys = outputs.order(order)
        distinct = node.args.get("distinct")
        if distinct is not None and not outputs.items:
            raise InvalidSyntax("syntax error: DISTINCT needs a column", position=self.body.position(node))
        outputs.expressions = replace(binder, clause="DISTINCT ON").typed
        on = self._distinct_on(distinct, outputs)
        group = node.args.get("group")
        is_grouped = group is not None or having is not None or bool(aggregates.calls)
        if given:
            resorted = not all(windows.is_sorted(one.spec) for one in windows.calls)
            if windows.takes_given is not None and (is_grouped or (resorted and self.order_position is not None)):
                raise self.binding.order_is_lost(self.order_position, windows.takes_given)
            if not (keys or is_grouped or resorted or distinct is not None):
                keys = outputs.given_order(given, node)
            elif windows.takes_given is None and aggregates.takes_given is None:
                # Ties go by the whole row, which is not to hold what only this order needs.
                relation = projected_to(relation, range(len(self.scope.visible)))
                if not keys and self.order_position is not None:
                    self.binding.lost_order = self.order_position
        if condition is not None:
            relation = Filter(relation, (condition,))
        groupings = GroupBy()
        if group is not None and not group.expressions:
            groupings = all_items(binder, outputs)
        elif group is not None:
            in_group = replace(self._expressions("GROUP BY"), sets=sets)
            taken: dict[int, Scalar] = {}
            groupings = group_by(self.body, group, lambda one: group_key(in_group, one, outputs, taken))
            check_distinguishable(self.body, groupings, taken, outputs)
        if aggregates.takes_given is not None and len(groupings.sets) > 1 and self.order_position is not None:
            raise self.binding.order_is_lost(self.order_position, aggregates.takes_given)
        calls = windows.calls
        if is_grouped:
            over_groups = [*outputs.typed_items, *sets.arrays, *(one for call in calls for one in call.scalars)]
            over_groups += [one for one in (having, qualify) if one is not None]
            groupings = with_dependent_keys(groupings, self.scope, over_groups)
            relation, columns = apply_sets(relation, sets, groupings.keys)
            found = grouped(
                self.binding, self.body, self.scope, relation, groupings, aggregates.calls, sizes.aggregate, columns
            )
            relation = found.relation
            outputs.items = [
                item if isinstance(item, Unknown) else found.rewritten(item, syntax)
                for item, syntax in zip(outputs.items, outputs.nodes, strict=True)
            ]
            calls = [_over_groups(found, call, syntax) for call, syntax in zip(calls, windows.syntax, strict=True)]
            if having is not None:
                condition = found.rewritten(having, node.args["having"].this)
                relation = Filter(relation, (condition,))
            if qualify is not None:
                qualify = found.rewritten(qualify, node.args["qualify"].this)
            for one in (one for level in sets.levels(outputs.typed_items) for one in level):
                sets.arrays[one] = found.rewritten(sets.arrays[one], sets.syntax[one])
        if calls:
            relation, columns = apply_windows(relation, calls)
            qualify = None if qualify is None else replaced(qualify, columns)
            outputs.items = [one if isinstance(one, Unknown) else replaced(one, columns) for one in outputs.items]
            sets.arrays = [replaced(one, columns) for one in sets.arrays]
        if qualify is not None:
            relation = Filter(relation, (qualify,))
        chosen = False
        if on is not None and distinct is not None:
            self._check_distinct_on(distinct, on, keys)
        if sets_in(outputs.typed_items):
            sorts = (outputs.items[one] for one in (*(on or ()), *(key.position for key in keys)))
            if on is not None and not has_set(one for one in sorts if not isinstance(one, Unknown)):
                # What rows are chosen by holds no such function: they become several afterwards.
                relation, chosen = _first_of_each(relation, outputs, on, keys, sizes.distinct_on), True
            relation, columns = apply_sets(relation, sets, outputs.typed_items)
            outputs.items = [one if isinstance(one, Unknown) else replaced(one, columns) for one in outputs.items]
        pending = Pending(
            self.body,
            [(relation, outputs.items)],
            [outputs.nodes],
            tuple(outputs.names),
            outputs.shown,
            keys,
            limit_size=sizes.limit,
            ordered_distinct=chosen,
            scope=self.scope,
            order_position=self.order_position,
        )
        if chosen:
            return pending
        if on is not None:
            return self._with_distinct_on(pending, on, sizes.distinct_on)
        return pending if distinct is None else self._with_distinct(pending)

    def _expressions(
        self, clause: str, aggregates: AggregateCalls | None = None, windows: WindowCalls | None = None
    ) -> Expressions:
        return Expressions(self.binding, self.body, self.scope, clause, aggregates=aggregates, windows=windows)

    def _condition(
        self, node: exp.Select, part: str, clause: str, aggregates: AggregateCalls, windows: WindowCalls | None
    ) -> Scalar | None:
        found = node.args.get(part)
        if found is None:
            return None
        only_parts(self.body, found, "this")
        return self._expressions(clause, aggregates, windows).boolean(found.this, clause)

    def _items(self, node: exp.Select, binder: Expressions) -> OutputColumns:
        items: list[Bound] = []
        nodes: list[exp.Expr] = []
        names: list[str] = []
        for item in node.expressions:
            star = self._star(item, binder)
            if star is not None:
                for name, value in star:
                    items.append(value)
                    nodes.append(item)
                    names.append(name)
                continue
            if isinstance(item, exp.Alias):
                self.body.check_name(item.args["alias"], label=True)
            items.append(binder.bind(item.this if isinstance(item, exp.Alias) else item))
            nodes.append(item)
            names.append(output_name(self.body, item))
        node.meta[FIRST_COLUMN] = names[0] if names else None
        return OutputColumns(self.body, names, items, nodes, None)

    def _star(self, item: exp.Expr, binder: Expressions) -> Sequence[tuple[str, Scalar]] | None:
        """Returns the columns that an item with a star stands for, with their names; None if it has no star.

        Another name for it names nothing, as in PostgreSQL.
        """
        if isinstance(item, exp.Star):
            only_parts(self.body, item, what="this form of *")
            if not self.scope.tables:
                raise InvalidSyntax("SELECT * with no tables specified is not valid", position=self.body.position(item))
            return [(column.name, column.reference) for column in self.scope.visible]
        item = unwrapped(item.this if isinstance(item, exp.Alias) else item)
        if isinstance(item, exp.Star):
            raise InvalidSyntax("syntax error: * stands alone or behind a name", position=self.body.position(item))
        if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star):
            return bind_all_fields(binder, item)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            only_parts(self.body, item, "this", "table", "db", what="this form of *")
            only_parts(self.body, item.this, what="this form of *")
            table = qualifier_of(item)
            assert table is not None, "* alone is no column"
            columns = all_named(self.scope, self.binding.enclosing, table, self.body.position(item))
            return [(column.name, column) for column in columns]
        return None

    def _distinct_on(self, distinct: exp.Expr | None, outputs: OutputColumns) -> list[int] | None:
        if distinct is None:
            return None
        only_parts(self.body, distinct, "on", what="this form of DISTINCT")
        on = distinct.args.get("on")
        if on is None:
            if len(outputs.items) > outputs.shown:
                raise InvalidColumnReference(
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position=self.body.position(outputs.nodes[outputs.shown]),
                )
            return None
        if not isinstance(on, exp.Tuple) or not on.expressions:
            raise InvalidSyntax("syntax error: DISTINCT ON needs expressions", position=self.body.position(on))
        return [outputs.place(one, "DISTINCT ON") for one in on.expressions]

    def _check_distinct_on(self, distinct: exp.Expr, on: list[int], keys: tuple[ColumnOrder, ...]) -> None:
        """Checks that the columns of DISTINCT ON come first in the order."""
        nodes = distinct.args["on"].expressions
        left = set(on)
        others = False
        for key in keys:
            if key.position not in on:
                others = True
            elif others and key.position in left:
                raise self._mismatch(nodes[on.index(key.position)])
            left.discard(key.position)
        if others and left:
            raise self._mismatch(next(one for one, place in zip(nodes, on, strict=True) if place in left))

    def _mismatch(self, node: exp.Expr) -> InvalidColumnReference:
        return InvalidColumnReference(
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            position=self.body.position(node),
        )

    def _with_distinct(self, pending: Pending) -> Pending:
        settled = pending.settled()
        relation, items = settled.rows[0]
        if pending.rows[0][0] is ONE_ROW:
            return pending
        columns = relation.relation_type.columns
        reduce = Reduce(relation, tuple(range(len(columns))), (), ())
        settled.rows = [(reduce, items)]
        return settled

    def _with_distinct_on(self, pending: Pending, on: list[int], group_size: int | None) -> Pending:
        settled = pending.settled()
        relation, items = settled.rows[0]
        group = tuple(dict.fromkeys(on))
        order = tuple(key for key in pending.order if key.position not in group)
        settled.rows = [(TopK(relation, group, order, 1, 0, group_size), items)]
        settled.ordered_distinct = True
        return settled


def _first_of_each(
    relation: Relation, outputs: OutputColumns, on: Sequence[int], keys: Sequence[ColumnOrder], group_size: int | None
) -> Relation:
    """Returns the first row, by `keys`, of each group of DISTINCT ON, with all columns that there are."""
    items = {one: outputs.items[one] for one in (*on, *(key.position for key in keys))}
    typed = {one: item for one, item in items.items() if not isinstance(item, Unknown)}
    relation, positions = with_scalars(relation, list(typed.values()), "key")
    places = dict(zip(typed, positions, strict=True))
    group = tuple(dict.fromkeys(places[one] for one in on if one in places))
    order = [replace(key, position=places[key.position]) for key in keys if key.position in places]
    return TopK(relation, group, tuple(key for key in order if key.position not in group), 1, 0, group_size)


def check_clauses(body: Body, node: exp.Select) -> None:
    """Refuses a SELECT with clauses that have no plan."""
    only_parts(body, node, *_CLAUSES, *TAIL, "with_")
    if node.args.get("kind"):
        raise UnsupportedForm("SELECT AS is not supported", position=body.position(node))


def _over_groups(found: Grouped, call: WindowCall, node: exp.Expr) -> WindowCall:
    """Returns the window function of a grouped query, over the groups."""

    def rewritten(scalar: Scalar) -> Scalar:
        return found.rewritten(scalar, node)

    spec = replace(
        call.spec,
        partition=tuple(dict.fromkeys(rewritten(one) for one in call.spec.partition)),
        order=tuple(SortKey(rewritten(key.scalar), key.descending, key.nulls_first) for key in call.spec.order),
    )
    condition = None if call.filter is None else rewritten(call.filter)
    return replace(call, spec=spec, arguments=tuple(rewritten(one) for one in call.arguments), filter=condition)
