"""The names of output columns that were given none, by PostgreSQL's rules (`FigureColname`)."""

from __future__ import annotations

from sqlglot import exp

from mz_dagster.functions.casts import short_name
from mz_dagster.sql.binding import is_prefixed, name_of
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.calls import trim_name
from mz_dagster.sql.session_values import WORDS
from mz_dagster.sql.type_names import type_name_of

#: What a SELECT that was bound notes in its node: the name of its first column, for which a star may stand.
FIRST_COLUMN = "first column"


def output_name(body: Body, node: exp.Expr) -> str:
    """Returns the name of the select item `node`, `?column?` if nothing suggests one."""
    if isinstance(node, exp.Alias):
        return name_of(node.args["alias"])
    name, _ = _figure(body, node)
    return name or "?column?"


def _first_of(body: Body, node: exp.Subquery) -> tuple[str | None, int]:
    """Returns the name of the one column of a subquery: that of the leftmost SELECT."""
    query: exp.Expr | None = node
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    if isinstance(query, exp.Values):
        return "column1", 2
    if not isinstance(query, exp.Select) or not query.expressions:
        return None, 0
    first = query.expressions[0]
    if isinstance(first.this if isinstance(first, exp.Column) else first, exp.Star):
        return query.meta.get(FIRST_COLUMN), 2
    return (name_of(first.args["alias"]), 2) if isinstance(first, exp.Alias) else _figure(body, first)


def _figure(body: Body, node: exp.Expr | None) -> tuple[str | None, int]:
    """Returns a name and how strongly it is meant: 2 is a name of the user's, 1 that of a type or of CASE."""
    match node:
        case exp.Paren():
            return _figure(body, node.this)
        case exp.Expr() if type(node) in WORDS:
            return WORDS[type(node)], 2
        case exp.Column(this=exp.Star()):  # a whole row as one value
            return name_of(node.args["table"]), 2
        case exp.Column():
            return name_of(node.this), 2
        case exp.Anonymous():
            return name_of(node.this), 2
        case exp.Window() | exp.Filter() | exp.WithinGroup() | exp.IgnoreNulls() | exp.RespectNulls():
            return _figure(body, node.this)
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return name_of(node.expression), 2
        case exp.Dot():
            return _figure(body, node.expression)
        case exp.Bracket():
            return _figure(body, node.this)
        case exp.Array():
            return "array", 2
        case exp.Exists():
            return "exists", 2
        case exp.Subquery():
            return _first_of(body, node)
        case exp.Tuple():
            return "row", 2
        case exp.Extract():
            return "extract", 2
        case exp.Substring():
            return "substring", 2
        case exp.StrPosition():
            return "position", 2
        case exp.Trim():
            return trim_name(node), 2
        case exp.Overlay():
            return "overlay", 2
        case exp.AtTimeZone():
            return "timezone", 2
        case exp.Overlaps():
            return "overlaps", 2
        case exp.Collate():
            return _figure(body, node.this)
        case exp.Case():
            name, strength = _figure(body, node.args.get("default"))
            return (name, strength) if strength > 1 else ("case", 1)
        case exp.Boolean():
            return "bool", 1
        case exp.Interval():
            return "interval", 1
        case exp.Cast():
            name, strength = _figure(body, node.this)
            if strength > 1:
                return name, strength
            if isinstance(node.this, exp.Cast) and is_prefixed(body, node):  # date '2020-01-01'::text
                return _figure(body, node.this)
            source = body.source(node.args["to"])
            named = type_name_of(source)
            return named.label or short_name(named.kind), 1
        case _:
            return None, 0
