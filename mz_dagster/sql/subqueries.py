"""Binds subqueries in expressions: scalar ones, EXISTS, IN, ANY and ALL.

Owns what they mean in the algebra: a value, whether there are rows, or whether a test is true for any of them, with
SQL's third truth value. `x IN q` is `x = ANY q`, `NOT IN` its negation, and `x < ALL q` is `NOT x >= ANY q`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from mz_dagster.functions import Unknown
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.arrays.dimensioned import accumulated
from mz_dagster.plan.relation import Aggregate, Map, Projection, Reduce, Relation
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.scalars.record import field, record
from mz_dagster.scalars.scalar import Call, Literal, Scalar, Subquery, SubqueryKind
from mz_dagster.scalars.types import ScalarType, array_of, dimensioned
from mz_dagster.scalars.values import Dimensioned
from mz_dagster.sql.aggregates import bind_aggregate
from mz_dagster.sql.array_forms import bind_quantified_array, bind_quantified_constants
from mz_dagster.sql.binding import Bound, OrderedRows, name_of
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.coercions import implicit
from mz_dagster.sql.constant_lists import constant_array, list_of_values
from mz_dagster.sql.enclosing import Enclosing, enclosed
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.refusals import refusal_of
from mz_dagster.sql.row_comparison import compared_rows
from mz_dagster.sql.row_values import bind_row, row_nodes

_INVERSE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class _Query:
    """A bound subquery and the row it is asked for, to which arguments may still be added."""

    relation: Relation
    row: Enclosing


def bind_scalar_subquery(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Returns the one value of the query `node`."""
    query = _query(binder, node)
    if query.relation.relation_type.arity != 1:
        raise InvalidSyntax("subquery must return only one column", position=_opening(binder.body, node))
    return Subquery(SubqueryKind.SCALAR, query.relation, tuple(query.row.arguments))


def bind_exists(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Returns whether the query in `EXISTS (...)` has rows; it may be `SELECT FROM ...`, without columns."""
    asked = node.this if isinstance(node, exp.Exists) else node.expressions[0]
    select = asked.unnest() if isinstance(asked, exp.Subquery) else asked
    if isinstance(select, exp.Select) and not select.expressions:
        select.set("expressions", [exp.true()])
    query = _query(binder, asked)
    relation = query.relation
    while isinstance(relation, Map | Projection):  # nobody asks for what its SELECT computes
        relation = relation.input
    return Subquery(SubqueryKind.EXISTS, projected_to(relation, ()), tuple(query.row.arguments))


def is_exists(node: exp.Expr) -> bool:
    """Returns whether a call is `EXISTS` of a query that was read as a function's argument."""
    if not isinstance(node, exp.Anonymous) or name_of(node.this) != "exists" or len(node.expressions) != 1:
        return False
    return is_query(node.expressions[0])


def is_array_query(node: exp.Expr) -> bool:
    """Returns whether a call is `ARRAY(query)`."""
    if not isinstance(node, exp.Anonymous) or name_of(node.this) != "array" or len(node.expressions) != 1:
        return False
    return is_query(node.expressions[0])


def bind_array_query(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Returns `ARRAY(query)`: what the query's one column holds, in its order."""
    binding = binder.binding
    (query,) = node.expressions
    if binding.bind_ordered is None:
        raise refusal_of(binder.body, query)
    row = Enclosing(binder.scope, aggregate=partial(bind_aggregate, binder))
    with enclosed(binding.enclosing, row):
        ordered = binding.bind_ordered(query)
    if len(ordered.names) != 1:
        raise InvalidSyntax("subquery must return only one column", position=_opening(binder.body, query))
    if not ordered.order:
        binding.order_reader = "ARRAY()"
    type_ = ordered.relation.relation_type.columns[0].type
    if type_.array_element is not None:
        return _array_of_arrays(ordered, type_, tuple(row.arguments))
    gathered = Aggregate(AggregateFunction.ARRAY_AGG, (0,), array_of(type_), order=ordered.order)
    found = Subquery(SubqueryKind.SCALAR, Reduce(ordered.relation, (), (gathered,), ("array",)), tuple(row.arguments))
    return Call("coalesce", (found, Literal((), array_of(type_))), array_of(type_), False)


def _array_of_arrays(ordered: OrderedRows, type_: ScalarType, arguments: tuple[Scalar, ...]) -> Scalar:
    """Returns `ARRAY(query)` of arrays, which has one more dimension."""
    element = type_.array_element
    assert element is not None
    whole = dimensioned(element)
    column = implicit(reference(ordered.relation.relation_type, 0), whole)
    width = ordered.relation.relation_type.arity
    rows = Map(ordered.relation, (column,), ("array",))
    gathered = Aggregate(AggregateFunction.ARRAY_AGG, (width,), array_of(whole), order=ordered.order)
    found = Subquery(SubqueryKind.SCALAR, Reduce(rows, (), (gathered,), ("array",)), arguments)
    return Call("coalesce", (accumulated(found, element), Literal(Dimensioned(), whole)), whole, False)


def is_query(node: exp.Expr | None) -> bool:
    """Returns whether `node` is a query."""
    return isinstance(node, exp.Query | exp.Values)


def bind_in_subquery(binder: ExpressionBinder, node: exp.In, query: exp.Expr) -> Scalar:
    """Returns `x IN (query)`."""
    position = _operator_position(binder.body, node, query)
    return _any(binder, node.this, "=", query, position, negated=False)


def quantified_by(node: exp.Expr) -> tuple[bool, exp.Expr] | None:
    """Returns what ANY or ALL stands before, with whether it is ALL; None if `node` is neither."""
    if isinstance(node, exp.Any | exp.All):
        inner: exp.Expr = node.this
        return isinstance(node, exp.All), inner
    if isinstance(node, exp.Anonymous) and name_of(node.this) in ("any", "some", "all") and len(node.expressions) == 1:
        return name_of(node.this) == "all", node.expressions[0]
    return None


def bind_quantified(binder: ExpressionBinder, node: exp.Binary, symbol: str) -> Scalar:
    """Returns `x op ANY (y)` or `x op ALL (y)`, where y is a query or an array."""
    found = quantified_by(node.expression)
    assert found is not None
    every, operand = found
    position = _operator_position(binder.body, node, operand)
    if not is_query(operand):
        return bind_quantified_array(binder, node.this, symbol, operand, position, every=every)
    if symbol not in _INVERSE:
        raise refusal_of(binder.body, node.expression)
    return _any(binder, node.this, symbol, operand, position, negated=every)


def bind_row_subquery(binder: ExpressionBinder, node: exp.Expr, width: int) -> list[Scalar]:
    """Returns the columns of the one row of a query, NULL if it has none, for a comparison with `width` values."""
    query = _query(binder, node)
    columns = query.relation.relation_type.columns
    if len(columns) != width:
        few = "few" if len(columns) < width else "many"
        raise InvalidSyntax(f"subquery has too {few} columns", position=_opening(binder.body, node))
    row = record([reference(query.relation.relation_type, i) for i in range(width)])
    single = Projection(Map(query.relation, (row,), ("row",)), (width,))
    value = Subquery(SubqueryKind.SCALAR, single, tuple(query.row.arguments))
    return [field(value, i) for i in range(width)]


def _any(
    binder: ExpressionBinder, left: exp.Expr, symbol: str, query_node: exp.Expr, position: int, *, negated: bool
) -> Scalar:
    """Returns whether `left symbol row` is true for any row; negated: for all."""
    constants = list_of_values(query_node)
    if constants is not None and row_nodes(left) is None:
        array = constant_array(constants, None, "VALUES")
        if array is not None:
            return bind_quantified_constants(binder, binder.bind(left), symbol, array, position, every=negated)
    query = _query(binder, query_node)
    values = [(binder.bind(left), left)] if row_nodes(left) is None else bind_row(binder, left)
    width = query.relation.relation_type.arity
    if width != len(values):
        few = "few" if width < len(values) else "many"
        raise InvalidSyntax(f"subquery has too {few} columns", position=position)
    outers = [_argument(query, bound) for bound, _ in values]
    inners = [reference(query.relation.relation_type, i) for i in range(width)]

    def compare(operator: str, outer: Bound, inner: Bound) -> Scalar:
        nodes = [values[outers.index(outer)][1]] if outer in outers else []
        return binder.operator(operator, [outer, inner], position, nodes)

    test = compared_rows(symbol, outers, inners, compare)
    if negated:
        test = compared_rows(_INVERSE[symbol], outers, inners, compare)
    found = Subquery(SubqueryKind.ANY, query.relation, tuple(query.row.arguments), test)
    return binder.operator("not", [found], position) if negated else found


def _argument(query: _Query, bound: Bound) -> Bound:
    """Returns what stands for a tested value within the subquery; a constant stands for itself."""
    return bound if isinstance(bound, Unknown | Literal) else query.row.column(bound)


def _query(binder: ExpressionBinder, node: exp.Expr) -> _Query:
    """Binds the query in parentheses, for a row of what `binder` can name."""
    binding = binder.binding
    if binding.bind_query is None:
        raise refusal_of(binder.body, node)
    row = Enclosing(binder.scope, aggregate=partial(bind_aggregate, binder))
    with enclosed(binding.enclosing, row):
        relation = binding.bind_query(node)
    return _Query(relation, row)


def _operator_position(body: Body, node: exp.Expr, query: exp.Expr) -> int:
    """Returns the position of the first word between the tested value and the subquery."""
    left, right = body.span(node.this), body.span(query)
    for token in body.tokens:
        if left and right and left[1] <= token.start < right[0] and not token.is_symbol(")"):
            return body.text.offset + token.start + 1
    return body.position(node)


def _opening(body: Body, query: exp.Expr) -> int:
    """Returns the position of the parenthesis that opens a subquery."""
    span = body.span(query)
    before = [token for token in body.tokens if span is not None and token.start <= span[0] and token.is_symbol("(")]
    return body.text.offset + before[-1].start + 1 if before else body.position(query)
