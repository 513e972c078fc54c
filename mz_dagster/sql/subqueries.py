"""Binds subqueries in expressions: scalar ones, EXISTS, IN, ANY and ALL.

Owns what they mean in the algebra: a value, whether there are rows, or whether a test is true for any of them, with
SQL's third truth value. `x IN q` is `x = ANY q`, `NOT IN` its negation, and `x < ALL q` is `NOT x >= ANY q`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from mz_dagster.plan.functions import Unknown
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.rewriting import reference
from mz_dagster.plan.scalar import Literal, Scalar, Subquery, SubqueryKind
from mz_dagster.sql.binding import Bound, name_of
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.enclosing import Enclosing, enclosed
from mz_dagster.sql.errors import InvalidSyntax, UnsupportedForm
from mz_dagster.sql.refusals import refusal_of

if TYPE_CHECKING:
    from mz_dagster.sql.expressions import Expressions

_INVERSE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class _Query:
    """Is a bound subquery and the row it is asked for, to which arguments may still be added."""

    relation: Relation
    row: Enclosing


def bind_scalar_subquery(binder: Expressions, node: exp.Expr) -> Scalar:
    """Returns the one value of the query `node`."""
    query = _query(binder, node)
    if query.relation.relation_type.arity != 1:
        raise InvalidSyntax("subquery must return only one column", position=_opening(binder.body, node))
    return Subquery(SubqueryKind.SCALAR, query.relation, tuple(query.row.arguments))


def bind_exists(binder: Expressions, node: exp.Expr) -> Scalar:
    """Returns whether the query in `EXISTS (...)` has rows."""
    query = _query(binder, node.this if isinstance(node, exp.Exists) else node.expressions[0])
    return Subquery(SubqueryKind.EXISTS, query.relation, tuple(query.row.arguments))


def is_exists(node: exp.Expr) -> bool:
    """Returns whether a call is `EXISTS` of a query that was read as a function's argument."""
    if not isinstance(node, exp.Anonymous) or name_of(node.this) != "exists" or len(node.expressions) != 1:
        return False
    return is_query(node.expressions[0])


def is_query(node: exp.Expr | None) -> bool:
    """Returns whether `node` is a query."""
    return isinstance(node, exp.Query | exp.Values)


def bind_in_subquery(binder: Expressions, node: exp.In, query: exp.Expr) -> Scalar:
    """Returns `x IN (query)`."""
    position = _operator_position(binder.body, node, query)
    return _any(binder, node.this, "=", query, position, negated=False)


def bind_quantified(binder: Expressions, node: exp.Binary, symbol: str) -> Scalar:
    """Returns `x op ANY (query)` or `x op ALL (query)`."""
    quantified = node.expression
    query = quantified.this
    if symbol not in _INVERSE or not is_query(query):
        raise refusal_of(binder.body, quantified)
    position = _operator_position(binder.body, node, query)
    if isinstance(quantified, exp.Any):
        return _any(binder, node.this, symbol, query, position, negated=False)
    return _any(binder, node.this, symbol, query, position, negated=True)


def _any(
    binder: Expressions, left: exp.Expr, symbol: str, query_node: exp.Expr, position: int, *, negated: bool
) -> Scalar:
    """Returns whether `left symbol row` is true for any row; negated: for all."""
    query = _query(binder, query_node)
    nodes = _row_of(left)
    if len(nodes) > 1 and symbol not in ("=", "<>"):
        raise UnsupportedForm(
            f"a row of several values {symbol} ANY or ALL is not supported",
            detail="There are no record types yet.",
            hint="Compare the columns one by one, in EXISTS.",
            position=position,
        )
    width = query.relation.relation_type.arity
    if width != len(nodes):
        few = "few" if width < len(nodes) else "many"
        raise InvalidSyntax(f"subquery has too {few} columns", position=position)
    outers = [_argument(query, binder.bind(one)) for one in nodes]

    def tested(operator: str) -> Scalar:
        tests = [
            binder.operator(operator, [outer, reference(query.relation.relation_type, i)], position, [one])
            for i, (outer, one) in enumerate(zip(outers, nodes, strict=True))
        ]
        joined = "and" if operator == "=" else "or"
        return tests[0] if len(tests) == 1 else binder.operator(joined, tests, position)

    test = tested(symbol)
    if negated:
        test = tested(_INVERSE[symbol])
    found = Subquery(SubqueryKind.ANY, query.relation, tuple(query.row.arguments), test)
    return binder.operator("not", [found], position) if negated else found


def _argument(query: _Query, bound: Bound) -> Bound:
    """Returns what stands for a tested value within the subquery; a constant stands for itself."""
    return bound if isinstance(bound, Unknown | Literal) else query.row.column(bound)


def _row_of(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and name_of(node.this) == "row"):
        return list(node.expressions)
    return [node]


def _query(binder: Expressions, node: exp.Expr) -> _Query:
    """Binds the query in parentheses, for a row of what `binder` can name."""
    binding = binder.binding
    if binding.bind_query is None:
        raise refusal_of(binder.body, node)
    row = Enclosing(binder.scope)
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
