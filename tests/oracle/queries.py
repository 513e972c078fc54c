"""Random queries: joins of all forms, derived tables, CTEs, VALUES, UNION ALL, temporal filters; and other shapes.

Whether an error of an expression reaches the answer may depend on the plan: PostgreSQL may evaluate conditions in any
order and leaves out what nobody reads. A query is *strict* if it leaves no such choice: it reads only what cannot
fail, and itself can fail only in the items of its outermost SELECT, or in the WHERE of a single relation. Of a strict
query the referee tells exactly which rows are errors, and which.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle.dialects import both
from tests.oracle.expressions import COMPARISONS, Column, Expr, Scalars, literal
from tests.oracle.scope import Arm, Query, Relation, Scope
from tests.oracle.shapes import Shapes
from tests.oracle.subqueries import Subqueries


@dataclass
class Queries:
    """Makes queries over relations.

    Attributes:
        source: Of randomness.
        relations: What can be read.
    """

    source: random.Random
    relations: list[Relation] = field(default_factory=list)

    def query(self, depth: int = 1, *, safe: bool | None = None) -> Query:
        """Returns a query; with `safe`, one that cannot fail."""
        source = self.source
        if safe is not False and source.random() < (0.65 if depth > 0 else 0.2):
            return self._shaped(depth)
        if safe is None:
            safe = source.random() < 0.5
        prefix, named = "", []
        if depth > 0 and source.random() < 0.2:
            inner = self.query(depth - 1, safe=True)
            named = [Relation("w", inner.columns, True, inner.temporal)]
            prefix = f"WITH w AS ({inner.text}) "
        loose = not safe and source.random() < 0.4
        arms = [self._arm(depth, None, safe=safe, loose=loose, named=named)]
        types = [one.type for one in arms[0][0].items]
        while source.random() < 0.25 and len(arms) < 3:
            arms.append(self._arm(depth, types, safe=safe, loose=loose, named=named))
        names = [f"c{i}" for i in range(len(types))]
        parts = [arm.text(names) for arm, _ in arms]
        columns = [
            Column(name, type_, max(arm.items[i].bound for arm, _ in arms))
            for i, (name, type_) in enumerate(zip(names, types, strict=True))
        ]
        if source.random() < 0.1:
            rows = ", ".join(f"({', '.join(literal(source, t, null=0.2) for t in types)})" for _ in range(2))
            parts.append(f"VALUES {rows}")
        text = prefix + " UNION ALL ".join(parts)
        strict = all(one for _, one in arms)
        fallible = not all(one for _, one in arms) or any(
            one.fallible for arm, _ in arms for one in (*arm.items, *([arm.where] if arm.where else []))
        )
        values = parts[len(arms) :]
        kept = tuple(arm for arm, _ in arms) if strict and not values else ()
        temporal = any(arm.scope.temporal for arm, _ in arms)
        return Query(text, tuple(columns), not fallible, bool(kept) or not fallible, prefix, kept, temporal)

    def _shaped(self, depth: int) -> Query:
        """Returns a query of another shape, which cannot fail."""

        def scope(most: int, prefix: str) -> Scope:
            return self._from(depth - 1, self.source.randrange(1, most + 1), loose=False, named=[], prefix=prefix)[0]

        def subqueries(columns: Sequence[Column]) -> Subqueries:
            return Subqueries(self.source, columns, [one for one in self.relations if one.safe and not one.temporal])

        return Shapes(self.source, scope, subqueries).query()

    # ---- FROM

    def _from(
        self, depth: int, count: int, *, loose: bool, named: list[Relation], prefix: str = "t"
    ) -> tuple[Scope, bool]:
        """Returns a FROM of `count` items, and whether errors of reading it are determined."""
        source = self.source
        text, spelled, columns = "", [], []
        strict, temporal = True, False
        for n in range(count):
            one = self._item(depth, f"{prefix}{n}", need_safe=not loose, named=named)
            item, own, mine = one.text, one.columns, list(one.spelled)
            strict, temporal = strict and one.safe, temporal or one.temporal
            if n == 0:
                text, spelled, columns = item, mine, list(own)
                continue
            before = len(columns)
            shared = [one.name for one in own if any(s == f"{prefix}{n - 1}.{one.name}" and c.type == one.type
                      for s, c in zip(spelled, columns, strict=True))]  # fmt: skip
            ambiguous = [s.split(".")[-1] for s in spelled]
            shared = [name for name in shared if ambiguous.count(name) == 1]
            both_sides = Scalars(source, (*columns, *own))
            spelled, columns = [*spelled, *mine], [*columns, *own]
            form = source.choices(("", "LEFT ", "RIGHT ", "FULL "), (6, 2, 1, 1))[0]
            if shared and source.random() < 0.4:
                using = shared[: source.choice((1, 2))]
                text += f" {form}JOIN {item} USING ({', '.join(using)})"
            elif form == "FULL ":
                condition = self._equality(columns, before)
                text += f" {form}JOIN {item} ON {condition.with_columns(spelled.__getitem__) if condition else 'true'}"
            elif not form and source.random() < 0.12:
                text += f" CROSS JOIN {item}"
            else:
                condition = self._join_condition(both_sides, columns, before, safe=not loose)
                strict = strict and not condition.fallible
                text += f" {form}JOIN {item} ON {condition.with_columns(spelled.__getitem__)}"
        return Scope(text, tuple(spelled), tuple(columns), strict, temporal), strict

    def _equality(self, columns: Sequence[Column], before: int) -> Expr | None:
        """Returns an equality of columns: all that PostgreSQL's FULL JOIN can do."""
        pairs = _pairs(columns, before)
        if not pairs:
            return None
        i, j = self.source.choice(pairs)
        return Expr(f"⟦{i}⟧ = ⟦{j}⟧", "boolean")

    def _arm(
        self, depth: int, types: Sequence[str] | None, *, safe: bool, loose: bool, named: list[Relation]
    ) -> tuple[Arm, bool]:
        """Returns a SELECT, and whether its errors are determined."""
        source = self.source
        count = source.choices((1, 2, 3), (5, 4, 1 if depth else 0))[0]
        scope, strict = self._from(depth, count, loose=loose, named=named)
        scalars = Scalars(source, scope.columns)
        where = None
        if source.random() < 0.6:
            where = scalars.predicate(1, safe=safe or not (loose or count == 1))
            strict = strict and (not where.fallible or count == 1)
        free = types is None
        if types is None:
            types = [scalars.some_type() for _ in range(source.randrange(1, 6))]
        items = []
        for type_ in types:
            made = scalars.field() if type_ == "bigint" and source.random() < 0.3 else None
            items.append(made or scalars.expression(type_, source.randrange(3), safe=safe, null=0.05))
        failing = scalars.failing() if not safe and source.random() < 0.8 else None
        if failing is not None and (free or failing.type == items[-1].type):
            items[-1] = failing
        return Arm(scope, where, tuple(items)), strict

    def _join_condition(self, scalars: Scalars, columns: Sequence[Column], before: int, *, safe: bool) -> Expr:
        source = self.source
        pairs = _pairs(columns, before)
        parts: list[Expr] = []
        for i, j in source.sample(pairs, min(len(pairs), source.choice((1, 1, 2)))):
            roll = source.random()
            if roll < 0.7:
                parts.append(Expr(f"⟦{i}⟧ = ⟦{j}⟧", "boolean"))
            elif roll < 0.8:
                parts.append(Expr(f"⟦{i}⟧ {source.choice(COMPARISONS)} ⟦{j}⟧", "boolean"))
            elif roll < 0.9:  # a range, or what overlaps
                for k, m in ((i, j), source.choice(pairs)):
                    parts.append(Expr(f"⟦{k}⟧ {source.choice(('<', '<=', '>', '>='))} ⟦{m}⟧", "boolean"))
            else:
                of = columns[i].type
                left = Scalars(source, columns[:before]).expression(of, 1, safe=safe)
                parts.append(Expr(f"{left.text} = ⟦{j}⟧", "boolean", 1, left.fallible))
        if not parts or source.random() < 0.2:
            parts.append(scalars.predicate(1, safe=safe))
        return Expr(" AND ".join(one.text for one in parts), "boolean", 1, any(one.fallible for one in parts))

    def _item(self, depth: int, alias: str, *, need_safe: bool, named: list[Relation]) -> Scope:
        """Returns an item of FROM."""
        source = self.source
        roll = source.random()
        if named and roll < 0.6:
            return _item(f"{named[0].name} AS {alias}", alias, named[0].columns, True, named[0].temporal)
        if depth > 0 and roll < 0.15:
            inner = self.query(depth - 1, safe=True if need_safe else None)
            return _item(f"({inner.text}) AS {alias}", alias, inner.columns, inner.safe, inner.temporal)
        if roll < 0.2:
            types = [source.choice(("integer", "text", "boolean", "date", "numeric(38,2)", "double precision"))
                     for _ in range(source.randrange(1, 4))]  # fmt: skip
            rows = ", ".join(
                f"({', '.join(literal(source, t, null=0.2) for t in types)})" for _ in range(source.randrange(1, 4))
            )
            columns = tuple(Column(f"v{i}", t) for i, t in enumerate(types))
            return _item(f"(VALUES {rows}) AS {alias} ({', '.join(c.name for c in columns)})", alias, columns)
        relations = [one for one in self.relations if one.safe] if need_safe else self.relations
        # The earlier ones more often: what is stacked ten views deep takes Spark long to plan.
        one = relations[int(len(relations) * source.random() ** 2)]
        condition = self._validity(one)
        if condition is not None and source.random() < 0.25:
            text = f"(SELECT * FROM {one.name} AS m WHERE {condition}) AS {alias}"
            return _item(text, alias, one.columns, one.safe, temporal=True)
        return _item(f"{one.name} AS {alias}", alias, one.columns, one.safe, one.temporal)

    def _validity(self, relation: Relation) -> str | None:
        """Returns a temporal filter over columns of a relation called `m`, or None if no column lends itself."""
        source = self.source
        moments = [f"m.{one.name}" for one in relation.columns if one.type == "mz_timestamp"]
        for one in relation.columns:
            if one.type in ("timestamp", "timestamptz"):
                epoch = f"floor(extract(epoch FROM m.{one.name}) * 1000)"
                moments.append(both(f"m.{one.name}", epoch))
                moments.append(f"(CAST({epoch} AS bigint) + {source.choice((0, 500, 1000))})")
        if not moments:
            return None
        first = source.choice(moments)
        now, symbol = f"mz_now() {source.choice(('<', '<=', '>', '>='))} {first}", source.choice(("<=", "<"))
        between = f"{first} {symbol} mz_now() AND {source.choice(moments)} >= mz_now()"
        return source.choice((now, f"{first} <= mz_now()", between))


def _item(text: str, alias: str, columns: tuple[Column, ...], safe: bool = True, temporal: bool = False) -> Scope:
    return Scope(text, tuple(f"{alias}.{one.name}" for one in columns), columns, safe, temporal)


def _pairs(columns: Sequence[Column], before: int) -> list[tuple[int, int]]:
    """Returns the pairs of columns of one type on both sides of a join."""
    return [
        (i, j)
        for i in range(before)
        for j in range(before, len(columns))
        if columns[i].type == columns[j].type
    ]  # fmt: skip
