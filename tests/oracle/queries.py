"""Random queries: joins of all forms, derived tables, CTEs, VALUES, UNION ALL.

Whether an error of an expression reaches the answer may depend on the plan: PostgreSQL may evaluate conditions in any
order and leaves out what nobody reads. A query is *strict* if it leaves no such choice: it reads only what cannot
fail, and itself can fail only in the items of its outermost SELECT, or in the WHERE of a single relation. Of a strict
query the referee tells exactly which rows are errors, and which.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle.expressions import COMPARISONS, Column, Expr, Scalars, literal


@dataclass(frozen=True)
class Relation:
    """Is a table or view that queries may read.

    Attributes:
        safe: Whether reading it cannot fail.
    """

    name: str
    columns: tuple[Column, ...]
    safe: bool = True


@dataclass(frozen=True)
class Arm:
    """Is one SELECT.

    Attributes:
        source: What stands after FROM.
        spelled: How each column of the scope is written.
        columns: The scope's columns.
        where: The condition, or None.
        items: The output.
    """

    source: str
    spelled: tuple[str, ...]
    columns: tuple[Column, ...]
    where: Expr | None
    items: tuple[Expr, ...]

    def text(self, names: Sequence[str], condition: str | None = None) -> str:
        """Returns the SELECT; `condition` stands instead of its own."""
        items = ", ".join(f"{self.spell(one)} AS {name}" for one, name in zip(self.items, names, strict=True))
        if condition is None and self.where is not None:
            condition = self.spell(self.where)
        return f"SELECT {items} FROM {self.source}" + (f" WHERE {condition}" if condition else "")

    def spell(self, one: Expr) -> str:
        """Returns an expression with the scope's names."""
        return one.with_columns(lambda n: self.spelled[n])


@dataclass(frozen=True)
class Query:
    """Is a query.

    Attributes:
        text: Its SQL.
        columns: Its output.
        safe: Whether it cannot fail.
        strict: Whether its errors are determined.
        prefix: WITH, if there is one.
        arms: What UNION ALL adds up; empty if it is not strict.
    """

    text: str
    columns: tuple[Column, ...]
    safe: bool
    strict: bool
    prefix: str = ""
    arms: tuple[Arm, ...] = ()


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
        if safe is None:
            safe = source.random() < 0.5
        prefix, named = "", []
        if depth > 0 and source.random() < 0.2:
            inner = self.query(depth - 1, safe=True)
            named = [Relation("w", inner.columns)]
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
        return Query(text, tuple(columns), not fallible, bool(kept) or not fallible, prefix, kept)

    # ---- FROM

    def _arm(
        self, depth: int, types: Sequence[str] | None, *, safe: bool, loose: bool, named: list[Relation]
    ) -> tuple[Arm, bool]:
        """Returns a SELECT, and whether its errors are determined."""
        source = self.source
        count = source.choices((1, 2, 3), (5, 4, 1 if depth else 0))[0]
        text, spelled, columns = "", [], []
        strict = True
        for n in range(count):
            item, own, own_safe = self._item(depth, f"t{n}", need_safe=not loose, named=named)
            strict = strict and own_safe
            mine = [f"t{n}.{one.name}" for one in own]
            if n == 0:
                text, spelled, columns = item, mine, list(own)
                continue
            before = len(columns)
            shared = [one.name for one in own if any(s == f"t{n - 1}.{one.name}" and c.type == one.type
                      for s, c in zip(spelled, columns, strict=True))]  # fmt: skip
            ambiguous = [s.split(".")[-1] for s in spelled]
            shared = [name for name in shared if ambiguous.count(name) == 1]
            both = Scalars(source, (*columns, *own))
            spelled, columns = [*spelled, *mine], [*columns, *own]
            if shared and source.random() < 0.4:
                using = shared[: source.choice((1, 2))]
                text += f" JOIN {item} USING ({', '.join(using)})"
                continue
            form = source.random()
            if form < 0.12:
                text += f" CROSS JOIN {item}"
            else:
                condition = self._join_condition(both, columns, before, safe=not loose)
                strict = strict and not condition.fallible
                text += f" JOIN {item} ON {condition.with_columns(spelled.__getitem__)}"
        scalars = Scalars(source, columns)
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
        return Arm(text, tuple(spelled), tuple(columns), where, tuple(items)), strict

    def _join_condition(self, scalars: Scalars, columns: Sequence[Column], before: int, *, safe: bool) -> Expr:
        source = self.source
        pairs = [
            (i, j)
            for i in range(before)
            for j in range(before, len(columns))
            if columns[i].type == columns[j].type
        ]  # fmt: skip
        parts: list[Expr] = []
        for i, j in source.sample(pairs, min(len(pairs), source.choice((1, 1, 2)))):
            roll = source.random()
            if roll < 0.8:
                parts.append(Expr(f"⟦{i}⟧ = ⟦{j}⟧", "boolean"))
            elif roll < 0.9:
                parts.append(Expr(f"⟦{i}⟧ {source.choice(COMPARISONS)} ⟦{j}⟧", "boolean"))
            else:
                of = columns[i].type
                left = Scalars(source, columns[:before]).expression(of, 1, safe=safe)
                parts.append(Expr(f"{left.text} = ⟦{j}⟧", "boolean", 1, left.fallible))
        if not parts or source.random() < 0.2:
            parts.append(scalars.predicate(1, safe=safe))
        return Expr(" AND ".join(one.text for one in parts), "boolean", 1, any(one.fallible for one in parts))

    def _item(
        self, depth: int, alias: str, *, need_safe: bool, named: list[Relation]
    ) -> tuple[str, tuple[Column, ...], bool]:
        """Returns an item of FROM, its columns, and whether reading it cannot fail."""
        source = self.source
        roll = source.random()
        if named and roll < 0.6:
            return f"{named[0].name} AS {alias}", named[0].columns, True
        if depth > 0 and roll < 0.15:
            inner = self.query(depth - 1, safe=True if need_safe else None)
            return f"({inner.text}) AS {alias}", inner.columns, inner.safe
        if roll < 0.22:
            types = [source.choice(("integer", "text", "boolean", "date", "numeric(38,2)", "double precision"))
                     for _ in range(source.randrange(1, 4))]  # fmt: skip
            rows = ", ".join(
                f"({', '.join(literal(source, t, null=0.2) for t in types)})" for _ in range(source.randrange(1, 4))
            )
            columns = tuple(Column(f"v{i}", t) for i, t in enumerate(types))
            return f"(VALUES {rows}) AS {alias} ({', '.join(c.name for c in columns)})", columns, True
        relations = [one for one in self.relations if one.safe] if need_safe else self.relations
        # The earlier ones more often: what is stacked ten views deep takes Spark long to plan.
        one = relations[int(len(relations) * source.random() ** 2)]
        return f"{one.name} AS {alias}", one.columns, one.safe
