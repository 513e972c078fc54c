"""What sqlglot would write with another meaning, written so that the meaning stays, or refused.

Each rewriting is exact. Where it needs to know more than the text tells, there is none, and `differences` says so.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mz_dagster.sql.translation.dialect import SourceDialect
from mz_dagster.sql.translation.originals import Untranslatable

#: Digits in all and behind the point of a decimal that says none.
_DECIMALS = {
    "duckdb": (18, 3), "hive": (10, 0), "spark2": (10, 0), "spark": (10, 0), "databricks": (10, 0),
    "snowflake": (38, 0), "bigquery": (38, 9), "mysql": (10, 0), "tsql": (18, 0), "redshift": (18, 0),
    "trino": (38, 0), "presto": (38, 0), "athena": (38, 0),
}  # fmt: skip
#: Integers that are not PostgreSQL's, and the type that holds all of each.
_WIDER = {
    exp.DataType.Type.UTINYINT: "SMALLINT",
    exp.DataType.Type.USMALLINT: "INT",
    exp.DataType.Type.UINT: "BIGINT",
    exp.DataType.Type.UBIGINT: "DECIMAL(20, 0)",
    exp.DataType.Type.INT128: "DECIMAL(38, 0)",
    exp.DataType.Type.UINT128: "DECIMAL(38, 0)",
    exp.DataType.Type.INT256: "DECIMAL(77, 0)",
    exp.DataType.Type.UINT256: "DECIMAL(78, 0)",
}
_AGGREGATES = (exp.AggFunc, exp.Filter)
_TEXTS = (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)


def rewritten(tree: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    """Returns a copy of a tree of which sqlglot writes what it means.

    Raises:
        Untranslatable: It holds what PostgreSQL cannot say.
    """
    tree = tree.copy()
    for node in reversed(list(tree.walk())):  # what is within a node before it
        made = _rewritten(node, dialect)
        if made is not node:
            node.replace(made)
    return tree


def _rewritten(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    if isinstance(node, exp.Identifier):
        text, quoted = dialect.folded(node)
        node.set("this", text)
        node.set("quoted", quoted)
        return node
    rewrite = _REWRITINGS.get(type(node))
    return node if rewrite is None else rewrite(node, dialect)


def _data_type(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    if node.this in _WIDER:
        return exp.DataType.build(_WIDER[node.this])
    if node.this == exp.DataType.Type.DECIMAL and not node.expressions and dialect.name in _DECIMALS:
        return exp.DataType.build("DECIMAL({}, {})".format(*_DECIMALS[dialect.name]))
    return node


def _try_cast(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    if node.args.get("safe") and not _is_always_cast(node):
        raise Untranslatable(
            f"{dialect.shown(node)} is NULL where the cast fails, which PostgreSQL cannot say",
            hint="Write a CASE that casts only what can be cast.",
        )
    return exp.Cast(this=node.this, to=node.args["to"])


def _is_always_cast(node: exp.Expr) -> bool:
    return node.args["to"].this in _TEXTS


def _substring(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    start = _number(node.args.get("start"))
    if start is None or dialect.is_postgres:
        return node
    if start < 0 and node.args.get("length") is None:
        return exp.Right(this=node.this, expression=exp.Literal.number(-start))
    if start == 0 and dialect.name != "duckdb":
        node.set("start", exp.Literal.number(1))
    return node


def _number(node: exp.Expr | None) -> int | None:
    """Returns the whole number that is written, if one is."""
    sign, digits = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    return sign * int(digits.name) if isinstance(digits, exp.Literal) and digits.is_int else None


def _extreme(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    """Returns GREATEST or LEAST, NULL if one of its arguments is, where that is the dialect's rule."""
    if dialect.of.LEAST_GREATEST_IGNORES_NULLS:
        return node
    missing = [exp.Is(this=one.copy(), expression=exp.Null()) for one in (node.this, *node.expressions)]
    return exp.Case(ifs=[exp.If(this=exp.or_(*missing), true=exp.Null())], default=node.copy())


def _count_if(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    """Returns a count, which is 0 of no rows; sqlglot writes a sum, which is NULL of none."""
    return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=node.this))


def _round(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    """Returns a quotient rounded as a numeric: PostgreSQL rounds no double precision to digits."""
    if node.args.get("decimals") is not None and not dialect.of.TYPED_DIVISION and node.this.find(exp.Div):
        node.set("this", exp.Cast(this=node.this, to=exp.DataType.build("DECIMAL")))
    return node


def _group(node: exp.Expr, dialect: SourceDialect) -> exp.Expr:
    """Returns the keys that GROUP BY ALL means: what is selected and holds no aggregate."""
    if not node.args.get("all") or node.expressions:
        return node
    keys = []
    for one in node.parent.selects if isinstance(node.parent, exp.Select) else ():
        key = one.unalias()
        if one.is_star:
            raise Untranslatable("GROUP BY ALL of * is not translated", hint="Name the keys.")
        if key.find(*_AGGREGATES, exp.Window) is None:
            keys.append(key.copy())
        elif key.find(exp.Window) or any(not column.find_ancestor(*_AGGREGATES) for column in key.find_all(exp.Column)):
            raise Untranslatable(
                f"GROUP BY ALL of {dialect.shown(key)}, which is no key and no aggregate", hint="Name the keys."
            )
    return exp.Group(expressions=keys)


_REWRITINGS: dict[type[exp.Expr], Callable[[exp.Expr, SourceDialect], exp.Expr]] = {
    exp.DataType: _data_type,
    exp.TryCast: _try_cast,
    exp.Substring: _substring,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.CountIf: _count_if,
    exp.Group: _group,
    exp.Round: _round,
}
