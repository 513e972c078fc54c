"""Random conditions and values with subqueries: EXISTS, IN, ANY, ALL, scalars; correlated, over several levels.

What a subquery names of the queries around it stands as `⟦n⟧`, as in every expression; its own columns stand by name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.oracle.expressions import COMPARISONS, EXTREMES, INTEGERS, NUMERICS, Column, Expr, Scalars, plain_text
from tests.oracle.scope import Relation


class Subqueries:
    """Makes conditions and values over the columns of a scope.

    Args:
        source: Of randomness.
        columns: What `⟦n⟧` stands for.
        relations: What subqueries may read; none of them can fail.
    """

    def __init__(self, source: random.Random, columns: Sequence[Column], relations: Sequence[Relation]) -> None:
        self._source = source
        self._columns = columns
        self._relations = relations
        self._count = 0

    def predicate(self, depth: int = 1) -> Expr:
        """Returns a condition that cannot fail, with a subquery in it."""
        source = self._source
        made = self._test(depth)
        roll = source.random()
        if roll < 0.2:
            return Expr(f"(NOT {made})", "boolean")
        if roll < 0.4:
            other = Scalars(source, self._columns).predicate(1)
            return Expr(f"({made} {source.choice(('OR', 'AND'))} {other.text})", "boolean")
        if roll < 0.5:
            return Expr(f"({made} IS {source.choice(('', 'NOT '))}{source.choice(('NULL', 'TRUE'))})", "boolean")
        return Expr(made, "boolean")

    def value(self) -> Expr:
        """Returns a value that cannot fail: a subquery of one row, or none."""
        relation, alias = self._read()
        column = self._source.choice(relation.columns)
        where = self._where(relation, alias, 0)
        own = f"{alias}.{column.name}"
        roll = self._source.random()
        if roll < 0.3:
            counted = f"(SELECT count(*) FROM {relation.name} AS {alias}{where})"
            if column.type not in INTEGERS or self._source.random() < 0.5:
                return Expr(counted, "bigint", 1e6)
            return Expr(self._asked_by_nobody(counted, f"1 / ({own} - {own})", relation, alias, where), "bigint", 1e6)
        if roll < 0.5 and column.type in EXTREMES:
            extreme = self._source.choice(("min", "max"))
            return Expr(f"(SELECT {extreme}({own}) FROM {relation.name} AS {alias}{where})", column.type, column.bound)
        if roll < 0.7 and column.type in INTEGERS:
            return Expr(f"(SELECT CAST(sum({own}) AS numeric(38,0)) FROM {relation.name} AS {alias}{where})",
                        "numeric(38,0)", 1e12)  # fmt: skip
        if roll < 0.7 and column.type in NUMERICS and column.bound <= 1e6:
            return Expr(f"(SELECT sum({own}) FROM {relation.name} AS {alias}{where})", column.type, 1e12)
        order = ", ".join(f"{alias}.{one.name}" for one in (column, *relation.columns))
        own = plain_text(own, column.type)
        text = f"(SELECT {own} FROM {relation.name} AS {alias}{where} ORDER BY {order} LIMIT 1)"
        return Expr(text, column.type, column.bound)

    def _asked_by_nobody(self, value: str, failing: str, relation: Relation, alias: str, where: str) -> str:
        """Returns a value, never NULL nor negative, beside a subquery that fails and is not asked."""
        other, one = self._read()
        first = f"{alias}.{relation.columns[0].name}"
        below = self._source.choice(
            (
                f"max({failing}) FROM {relation.name} AS {alias}{where}",
                f"count(*) FROM {relation.name} AS {alias} JOIN {other.name} AS {one} ON {failing} > 0",
                f"count(*) FROM {relation.name} AS {alias} LEFT JOIN {other.name} AS {one} ON {failing} > 0{where}",
                f"max(q) FROM (SELECT sum({failing}) AS q FROM {relation.name} AS {alias}{where} GROUP BY {first}) g",
            )
        )
        if self._source.random() < 0.5:
            return f"coalesce({value}, (SELECT {below}))"
        return f"CASE WHEN {value} < 0 THEN (SELECT {below}) ELSE {value} END"

    def _test(self, depth: int) -> str:
        source = self._source
        relation, alias = self._read()
        where = self._where(relation, alias, depth)
        of = f"FROM {relation.name} AS {alias}{where}"
        found = self._comparable(relation)
        roll = source.random()
        if found is None or roll < 0.3:
            return f"{source.choice(('', 'NOT '))}EXISTS (SELECT 1 {of})"
        own, outer = found
        column = f"{alias}.{relation.columns[own].name}"
        if roll < 0.55:
            return f"(⟦{outer}⟧ {source.choice(('', 'NOT '))}IN (SELECT {column} {of}))"
        if roll < 0.8:
            symbol, word = source.choice(COMPARISONS), source.choice(("ANY", "ALL", "SOME"))
            return f"(⟦{outer}⟧ {symbol} {word} (SELECT {column} {of}))"
        if relation.columns[own].type not in EXTREMES:
            return f"EXISTS (SELECT {column} {of})"
        extreme = source.choice(("min", "max"))
        return f"(⟦{outer}⟧ {source.choice(COMPARISONS)} (SELECT {extreme}({column}) {of}))"

    def _where(self, relation: Relation, alias: str, depth: int) -> str:
        """Returns a condition of the subquery: over its own columns, often correlated, perhaps with one within."""
        source = self._source
        parts = []
        found = self._comparable(relation)
        if found is not None and source.random() < 0.7:
            own, outer = found
            symbol = "=" if source.random() < 0.7 else source.choice(COMPARISONS)
            parts.append(f"{alias}.{relation.columns[own].name} {symbol} ⟦{outer}⟧")
        if source.random() < 0.4:
            inner = Scalars(source, relation.columns).predicate(1)
            parts.append(inner.with_columns(_named(relation, alias)))
        if depth > 0 and source.random() < 0.4:
            parts.append(self._test(depth - 1))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _comparable(self, relation: Relation) -> tuple[int, int] | None:
        """Returns the positions of an own column and an outer one of one type, or None."""
        pairs = [
            (i, j)
            for i, own in enumerate(relation.columns)
            for j, outer in enumerate(self._columns)
            if own.type == outer.type
        ]
        return self._source.choice(pairs) if pairs else None

    def _read(self) -> tuple[Relation, str]:
        self._count += 1
        return self._source.choice(self._relations), f"s{self._count}"


def _named(relation: Relation, alias: str) -> Callable[[int], str]:
    return lambda n: f"{alias}.{relation.columns[n].name}"
