"""Random queries of every shape beyond the plain SELECT: groups, DISTINCT, limits, windows, set operations, LATERAL.

None of them can fail: they read what cannot fail through expressions that cannot. Nor can two rows that are equal be
told apart in what they answer: what is ordered is ordered by everything, and 0.0 is never beside -0.0 where rows are
compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.oracle.expressions import EXTREMES, INTEGERS, Column, Expr, Scalars, plain, plain_text
from tests.oracle.scope import Query, Scope
from tests.oracle.subqueries import Subqueries

#: Types whose equal values may be stored differently, and samples of them.
_MANIFOLD = ("interval", "real", "double precision")
_SAMPLES = (
    "(SELECT * FROM (VALUES ('1'::jsonb), ('1.0'), ('[1.50]'), ('[1.5]'), (NULL), ('1')) AS s (v))",
    "(SELECT * FROM (VALUES ('1 mon'::interval), ('30 days'), ('720:00'), (NULL), ('1 day')) AS s (v))",
    "(SELECT * FROM (VALUES ('0'::float8), ('-0'), ('NaN'), (NULL), ('0')) AS s (v))",
)

#: Makes a FROM of up to so many relations, whose aliases begin with a letter.
MakeScope = Callable[[int, str], Scope]


class Shapes:
    """Makes queries over scopes.

    Args:
        source: Of randomness.
        scope: Makes a FROM that cannot fail.
        subqueries: Makes subqueries over columns.
    """

    def __init__(
        self, source: random.Random, scope: MakeScope, subqueries: Callable[[Sequence[Column]], Subqueries]
    ) -> None:
        self._source = source
        self._scope = scope
        self._subqueries = subqueries
        self._shapes: dict[str, tuple[int, Callable[[], Query]]] = {
            "grouped": (5, self._grouped),
            "distinct": (2, self._distinct),
            "distinct on": (2, self._distinct_on),
            "limit": (3, self._limited),
            "window": (3, self._windowed),
            "first of each": (2, self._first_of_each),
            "given order": (2, self._in_given_order),
            "set operation": (3, self._set_operation),
            "subquery": (5, self._with_subqueries),
            "lateral": (2, self._lateral),
            "table function": (2, self._table_function),
            "by representation": (2, self._by_representation),
        }

    def query(self) -> Query:
        """Returns a query of some shape."""
        names = list(self._shapes)
        (name,) = self._source.choices(names, [self._shapes[one][0] for one in names])
        return replace(self._shapes[name][1](), shape=name)

    # ---- parts

    def _items(self, scope: Scope, count: int) -> list[Expr]:
        """Returns expressions that may be compared with each other: floats among them are never -0.0."""
        scalars = Scalars(self._source, scope.columns)
        return [plain(scalars.expression(scalars.some_type(), self._source.randrange(2))) for _ in range(count)]

    def _where(self, scope: Scope, likely: float = 0.5) -> str:
        if self._source.random() >= likely:
            return ""
        if self._source.random() < 0.15:
            return f" WHERE {scope.spell(self._subqueries(scope.columns).predicate(0))}"
        return f" WHERE {scope.spell(Scalars(self._source, scope.columns).predicate(1))}"

    def _derived(self, alias: str, count: int = 4) -> Scope:
        """Returns a derived table of expressions, which cannot be told apart when they are equal."""
        scope = self._scope(2, "t")
        items = self._items(scope, self._source.randrange(2, count + 1))
        listed = ", ".join(f"{scope.spell(one)} AS d{i}" for i, one in enumerate(items))
        columns = tuple(Column(f"d{i}", one.type, one.bound) for i, one in enumerate(items))
        text = f"(SELECT {listed} FROM {scope.text}{self._where(scope)}) AS {alias}"
        return Scope(text, tuple(f"{alias}.{one.name}" for one in columns), columns, True, scope.temporal)

    # ---- shapes

    def _grouped(self) -> Query:
        source, scope = self._source, self._scope(3, "t")
        beside = source.random() < 0.15
        if beside:
            scope = self._beside_total(scope)
        keys = self._items(scope, source.choice((0, 1, 1, 2, 3)))
        # A constant is no key: a number alone would be a position.
        keys = [one for one in keys if one.has_column]
        aggregates = [self._aggregate(scope) for _ in range(source.randrange(0 if keys else 1, 4))]
        if beside:
            last = scope.columns[-1]
            aggregates.append(
                Expr(f"{source.choice(('min', 'max'))}(⟦{len(scope.columns) - 1}⟧)", last.type, last.bound)
            )
        names = [f"c{i}" for i in range(len(keys) + len(aggregates))]
        items = [*keys, *aggregates]
        listed = ", ".join(f"{scope.spell(one)} AS {name}" for one, name in zip(items, names, strict=True))
        text = f"SELECT {listed} FROM {scope.text}{self._where(scope)}"
        if keys:
            text += f" GROUP BY {self._grouping([scope.spell(one) for one in keys])}"
        if source.random() < 0.25:
            tested = self._aggregate(scope)
            other = self._aggregate_of(scope, tested.type) or Expr("NULL", tested.type)
            text += f" HAVING {scope.spell(tested)} {source.choice(('>=', '<>', '<'))} {scope.spell(other)}"
        return self._made(text, items, scope)

    def _beside_total(self, scope: Scope) -> Scope:
        """Returns a FROM with a column more: an aggregate of other rows, or NULL, in a single row beside all others."""
        other, made = self._scope(1, "u"), None
        while made is None:
            type_ = self._source.choice(sorted(EXTREMES))
            made = Expr("max(CAST(NULL AS integer))", "integer", 1) if self._source.random() < 0.1 else (
                self._aggregate_of(other, type_))  # fmt: skip
        total = f"(SELECT {other.spell(made)} AS s0 FROM {other.text}{self._where(other)}) AS s"
        columns = (*scope.columns, Column("s0", made.type, made.bound))
        spelled = (*scope.spelled, "s.s0")
        return Scope(f"{scope.text} CROSS JOIN {total}", spelled, columns, True, scope.temporal or other.temporal)

    def _grouping(self, keys: list[str]) -> str:
        source, listed = self._source, ", ".join(keys)
        match source.randrange(8):
            case 0:
                return f"ROLLUP ({listed})"
            case 1 if len(keys) < 3:
                return f"CUBE ({listed})"
            case 2:
                return f"GROUPING SETS (({listed}), ({keys[0]}), ())"
            case _:
                return listed

    def _aggregate(self, scope: Scope) -> Expr:
        while True:
            type_ = self._source.choice(("bigint", "numeric(38,0)", "numeric(38,4)", "boolean", "text", *INTEGERS,
                                         *(one.type for one in scope.columns)))  # fmt: skip
            made = self._aggregate_of(scope, type_)
            if made is not None:
                return made

    def _aggregate_of(self, scope: Scope, type_: str) -> Expr | None:
        """Returns an aggregate that yields `type_`, or None if none is made for it now."""
        source, scalars = self._source, Scalars(self._source, scope.columns)

        def argument(of: str) -> str:
            return plain(scalars.expression(of, 1)).text

        condition = f" FILTER (WHERE {scalars.predicate(1).text})" if source.random() < 0.2 else ""
        distinct = "DISTINCT " if source.random() < 0.2 else ""
        match type_:
            case "bigint" if source.random() < 0.3:
                return Expr(f"count(*){condition}", type_, 1e6)
            case "bigint" if source.random() < 0.5:
                return Expr(f"count({distinct}{argument(scalars.some_type())}){condition}", type_, 1e6)
            case "bigint" if source.random() < 0.7:
                return Expr(
                    f"sum({distinct}{argument(source.choice(('smallint', 'integer')))}){condition}", type_, 1e14
                )
            case "numeric(38,0)" if source.random() < 0.7:
                return Expr(f"CAST(sum({distinct}{argument('bigint')}){condition} AS {type_})", type_, 1e24)
            case "numeric(38,4)" if source.random() < 0.7:
                call = source.choice(("avg", "sum", "var_pop", "stddev_samp"))
                of = source.choice((*INTEGERS[:2], "numeric(38,2)"))
                return Expr(f"CAST({call}({distinct}{self._small(scope, of)}){condition} AS {type_})", type_, 1e8)
            case "boolean":
                call = source.choice(("bool_and", "bool_or", "every"))
                return Expr(f"{call}({argument('boolean')}){condition}", type_, 1)
            case "text" if source.random() < 0.5:
                of = argument("text")
                return Expr(f"string_agg({distinct}{of}, ',' ORDER BY {of}){condition}", type_, 1000)
            case "integer[]" | "text[]":
                of = argument(type_[:-2])
                return Expr(f"array_agg({distinct}{of} ORDER BY {of}){condition}", type_)
            case "jsonb":
                of = argument(source.choice(("integer", "text")))
                return Expr(f"jsonb_agg({distinct}{of} ORDER BY {of}){condition}", type_)
            case "interval" if source.random() < 0.5:
                return Expr(f"justify_interval(sum({argument(type_)}){condition})", type_)
            case _ if type_ in EXTREMES:
                one = plain(scalars.expression(type_, 1))
                return Expr(f"{source.choice(('min', 'max'))}({one.text}){condition}", type_, one.bound)
            case _:
                return None

    def _small(self, scope: Scope, of: str) -> str:
        """Returns an argument whose squares have few digits: a column of the tables' usual values, or a constant."""
        found = [i for i, one in enumerate(scope.columns) if one.type == of and one.bound <= 100]
        return f"⟦{self._source.choice(found)}⟧" if found else f"CAST({self._source.randrange(5)} AS {of})"

    def _distinct(self) -> Query:
        scope = self._scope(3, "t")
        items = self._items(scope, self._source.randrange(1, 4))
        listed = ", ".join(f"{scope.spell(one)} AS c{i}" for i, one in enumerate(items))
        return self._made(f"SELECT DISTINCT {listed} FROM {scope.text}{self._where(scope)}", items, scope)

    def _distinct_on(self) -> Query:
        source, scope = self._source, self._derived("t0")
        first = scope.spelled[: source.randrange(1, len(scope.spelled))]
        order = ", ".join([*first, *self._ordered(scope.spelled[len(first) :])])
        listed = ", ".join(f"{one} AS c{i}" for i, one in enumerate(scope.spelled))
        text = f"SELECT DISTINCT ON ({', '.join(first)}) {listed} FROM {scope.text} ORDER BY {order}"
        return self._made(text, self._all(scope), scope)

    def _limited(self) -> Query:
        source, scope = self._source, self._derived("t0")
        listed = ", ".join(f"{one} AS c{i}" for i, one in enumerate(scope.spelled))
        order = ", ".join(self._ordered(source.sample(scope.spelled, len(scope.spelled))))
        text = f"SELECT {listed} FROM {scope.text} ORDER BY {order}"
        text += source.choice((" LIMIT 1", " LIMIT 3", " LIMIT 5 OFFSET 1", " OFFSET 2", " FETCH FIRST 2 ROWS ONLY"))
        return self._made(text, self._all(scope), scope)

    def _ordered(self, spelled: Sequence[str]) -> list[str]:
        return [f"{one}{self._source.choice(('', '', ' DESC', ' ASC NULLS FIRST', ' DESC NULLS LAST'))}"
                for one in spelled]  # fmt: skip

    def _in_given_order(self) -> Query:
        """Returns a query whose rows come in the order of its derived table: of all columns, so that it is total."""
        source, inner = self._source, self._derived("t0")
        names = [one.name for one in inner.columns]
        order = ", ".join(self._ordered(source.sample(names, len(names))))
        text = f"(SELECT * FROM {inner.text} ORDER BY {order}) AS t1"
        scope = replace(inner, text=text, spelled=tuple(f"t1.{one}" for one in names))
        column = source.choice(scope.columns)
        own = Expr(f"⟦{scope.columns.index(column)}⟧", column.type, column.bound)
        if source.random() < 0.4:
            items, tail = self._all(scope), source.choice(("", "", " LIMIT 2"))
            while not tail:  # to equal rows a function may give other values, and no order says whose come first
                made = self._window_function(scope, "")
                if "RANGE" not in made.text and "GROUPS" not in made.text:
                    items.append(made)
                    break
        else:
            keys, items = self._items(scope, source.choice((0, 1, 1))), []
            items += [one for one in keys if one.has_column]
            tail = f" GROUP BY {scope.spell(items[0])}" if items else ""
            if column.type in ("integer", "text"):
                items.append(Expr(f"array_agg({own.text})", f"{column.type}[]"))
            items.append(Expr(f"jsonb_agg({own.text})", "jsonb") if column.type in ("integer", "text", "boolean")
                         else Expr(f"string_agg(CAST({own.text} AS text), ',')", "text", 1000))  # fmt: skip
        listed = ", ".join(f"{scope.spell(one)} AS c{i}" for i, one in enumerate(items))
        return self._made(f"SELECT {listed} FROM {scope.text}{tail}", items, scope)

    def _windowed(self) -> Query:
        source, scope = self._source, self._derived("t0")
        items = self._all(scope)
        partition = source.sample(scope.spelled, source.randrange(0, 2))
        order = ", ".join(self._ordered(source.sample(scope.spelled, len(scope.spelled))))
        over = (f"PARTITION BY {', '.join(partition)} " if partition else "") + f"ORDER BY {order}"
        listed = [f"{one} AS c{i}" for i, one in enumerate(scope.spelled)]
        for _ in range(source.randrange(1, 3)):
            made = self._window_function(scope, over)
            listed.append(f"{scope.spell(made)} AS c{len(items)}")
            items.append(made)
        return self._made(f"SELECT {', '.join(listed)} FROM {scope.text}", items, scope)

    def _first_of_each(self) -> Query:
        """Returns rows whose numbers, or ranks, in their partitions are low; by ranks the order may leave ties."""
        source, scope = self._source, self._derived("t0")
        items = self._all(scope)
        partition = source.sample(scope.spelled, source.randrange(0, 2))
        call = source.choice(("row_number()", "rank()", "dense_rank()"))
        columns = len(scope.spelled) if call == "row_number()" else source.randrange(1, len(scope.spelled) + 1)
        order = ", ".join(self._ordered(source.sample(scope.spelled, columns)))
        over = (f"PARTITION BY {', '.join(partition)} " if partition else "") + f"ORDER BY {order}"
        listed = ", ".join(f"{one} AS c{i}" for i, one in enumerate(scope.spelled))
        shown = ", ".join(f"c{i}" for i in range(len(items)))
        if source.random() < 0.5:
            shown += f", place AS c{len(items)}"
            items.append(Expr("place", "bigint", 1e6))
        most = source.randrange(1, 4)
        condition = source.choice((f"place <= {most}", f"place < {most}", f"place = {most}", f"{most} >= place"))
        numbered = f"SELECT {listed}, {call} OVER ({over}) AS place FROM {scope.text}"
        return self._made(f"SELECT {shown} FROM ({numbered}) AS numbered WHERE {condition}", items, scope)

    def _window_function(self, scope: Scope, over: str) -> Expr:
        source = self._source
        position = source.randrange(len(scope.columns))
        column, own = scope.columns[position], f"⟦{position}⟧"
        frame = source.choice((
            "", "", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW",
        ))  # fmt: skip
        match source.randrange(6):
            case 0:
                call = source.choice(("row_number()", "rank()", "dense_rank()"))
                return Expr(f"{call} OVER ({over})", "bigint", 1e6)
            case 1:
                call = source.choice((f"lag({own})", f"lead({own}, 2)", f"lag({own}, 1, {own})"))
                return Expr(f"{call} OVER ({over})", column.type, column.bound)
            case 2:
                call = source.choice((f"first_value({own})", f"last_value({own})", f"nth_value({own}, 2)"))
                return Expr(f"{call} OVER ({over}{frame})", column.type, column.bound)
            case 3 if column.type in EXTREMES:
                return Expr(f"{source.choice(('min', 'max'))}({own}) OVER ({over}{frame})", column.type, column.bound)
            case 4 if column.type in ("smallint", "integer"):
                return Expr(f"sum({own}) OVER ({over}{frame})", "bigint", 1e14)
            case _:
                call = source.choice(("count(*)", f"count({own})", "ntile(3)"))
                cast = f"CAST({call} OVER ({over}{'' if 'ntile' in call else frame}) AS bigint)"
                return Expr(cast, "bigint", 1e6)

    def _set_operation(self) -> Query:
        source = self._source
        first = self._scope(2, "t")
        items = self._items(first, source.randrange(1, 4))
        types = [one.type for one in items]
        parts = [self._part(first, items)]
        temporal, bounds = first.temporal, [one.bound for one in items]
        for _ in range(source.choice((1, 1, 2))):
            scope = self._scope(2, "t")
            own = [plain(Scalars(source, scope.columns).expression(one, source.randrange(2))) for one in types]
            word = source.choice(("UNION", "INTERSECT", "EXCEPT")) + source.choice(("", " ALL"))
            parts.append(f"{word} {self._part(scope, own)}")
            temporal = temporal or scope.temporal
            bounds = [max(a, b.bound) for a, b in zip(bounds, own, strict=True)]
        columns = tuple(Column(f"c{i}", t, b) for i, (t, b) in enumerate(zip(types, bounds, strict=True)))
        return Query(" ".join(parts), columns, True, True, temporal=temporal)

    def _part(self, scope: Scope, items: Sequence[Expr]) -> str:
        listed = ", ".join(f"{scope.spell(one)} AS c{i}" for i, one in enumerate(items))
        return f"(SELECT {listed} FROM {scope.text}{self._where(scope)})"

    def _with_subqueries(self) -> Query:
        source, scope = self._source, self._scope(2, "t")
        asked = self._subqueries(scope.columns)
        items = self._items(scope, source.randrange(1, 4))
        if source.random() < 0.3:
            items.append(plain(asked.value()))
        if source.random() < 0.2:
            items.append(asked.predicate(0))
        text = self._part(scope, items)[1:-1] if source.random() < 0.2 else (
            f"SELECT {', '.join(f'{scope.spell(one)} AS c{i}' for i, one in enumerate(items))} FROM {scope.text} "
            f"WHERE {scope.spell(asked.predicate(1))}"
        )  # fmt: skip
        return self._made(text, items, scope)

    def _lateral(self) -> Query:
        source, scope = self._source, self._scope(1, "t")
        inner = self._scope(1, "u")
        renamed = [f"l{i}" for i in range(len(inner.columns))]
        listed = ", ".join(f"{plain_text(s, c.type)} AS {n}" for s, c, n in
                           zip(inner.spelled, inner.columns, renamed, strict=True))  # fmt: skip
        pairs = [(i, j) for i, a in enumerate(inner.columns) for j, b in enumerate(scope.columns) if a.type == b.type]
        where = ""
        if pairs:
            i, j = source.choice(pairs)
            where = f" WHERE {inner.spelled[i]} {source.choice(('=', '=', '<='))} {scope.spelled[j]}"
        order = ", ".join(str(n + 1) for n in range(len(renamed)))
        limit = source.choice(("", f" ORDER BY {order} LIMIT 2"))
        if pairs and source.random() < 0.4:  # the latest, or the first behind
            (i, j), (k, m) = source.choice(pairs), source.choice(pairs)
            operation, way = source.choice((("<=", "DESC"), ("<", "DESC"), (">=", "ASC"), (">", "ASC")))
            where = f" WHERE {inner.spelled[i]} {operation} {scope.spelled[j]}"
            where += f" AND {inner.spelled[k]} = {scope.spelled[m]}" if source.random() < 0.5 else ""
            limit = f" ORDER BY {inner.spelled[i]} {way}, {order} LIMIT 1"
        derived = f"(SELECT {listed} FROM {inner.text}{where}{limit}) AS x"
        join = source.choice((f"{scope.text}, LATERAL {derived}", f"{scope.text} LEFT JOIN LATERAL {derived} ON true"))
        columns = (*scope.columns, *(replace(c, name=n) for c, n in zip(inner.columns, renamed, strict=True)))
        joined = Scope(join, (*scope.spelled, *(f"x.{n}" for n in renamed)), columns, True,
                       scope.temporal or inner.temporal)  # fmt: skip
        return self._made(f"SELECT {', '.join(f'{s} AS c{i}' for i, s in enumerate(joined.spelled))} FROM {join}",
                          self._all(joined), joined)  # fmt: skip

    def _table_function(self) -> Query:
        """Returns rows beside what a function makes of them."""
        source, scope = self._source, self._scope(2, "t")
        call, column = self._set_of(scope)
        ordinality = source.random() < 0.4
        added = (column, Column("o", "bigint", 100)) if ordinality else (column,)
        names = ", ".join(one.name for one in added)
        item = f"{call}{' WITH ORDINALITY' if ordinality else ''} AS f ({names})"
        text = source.choice(
            (f"{scope.text} CROSS JOIN LATERAL {item}", f"{scope.text} LEFT JOIN LATERAL {item} ON true")
        )
        spelled = (*scope.spelled, *(f"f.{one.name}" for one in added))
        joined = Scope(text, spelled, (*scope.columns, *added), True, scope.temporal)
        items = [*self._items(joined, 2), Expr(f"⟦{len(scope.columns)}⟧", column.type, column.bound)]
        listed = ", ".join(f"{joined.spell(one)} AS c{i}" for i, one in enumerate(items))
        return self._made(f"SELECT {listed} FROM {text}{self._where(joined)}", items, joined)

    def _by_representation(self) -> Query:
        """Returns what tells equal values apart that are stored differently: 0 and -0, a month and 30 days."""
        source, scope = self._source, self._scope(1, "t")
        found = [s for s, one in zip(scope.spelled, scope.columns, strict=True) if one.type in _MANIFOLD]
        table = f"(SELECT {source.choice(found)} AS v FROM {scope.text})" if found else source.choice(_SAMPLES)
        x, y = f"{table} AS x", f"{table} AS y"
        shown, other = "CAST(x.v AS text)", "CAST(y.v AS text)"
        join = source.choice(("LEFT", "RIGHT", "FULL", "LEFT"))
        text = source.choice(
            (
                f"SELECT {shown} AS c0, {other} AS c1 FROM {x} {join} JOIN {y} ON x.v = y.v AND {shown} < {other}",
                f"SELECT {shown} AS c0, (SELECT max({other}) FROM {y} WHERE {other} < {shown}) AS c1 FROM {x}",
                f"SELECT {shown} AS c0, CASE WHEN (SELECT count(*) FROM {y} WHERE y.v = x.v) = 1 THEN"
                f" (SELECT {other} FROM {y} WHERE y.v = x.v) ELSE {shown} END AS c1 FROM {x}",
                f"SELECT {shown} AS c0, coalesce({shown}, (SELECT 'b' FROM {y} WHERE y.v = x.v)) AS c1 FROM {x}",
            )
        )
        columns = (Column("c0", "text"), Column("c1", "text"))
        return Query(text, columns, True, True, temporal=bool(found) and scope.temporal)

    def _set_of(self, scope: Scope) -> tuple[str, Column]:
        """Returns a call that makes rows of a row, and their column."""
        source, calls = self._source, [("generate_series(1, 3)", Column("e", "integer"))]
        for spelled, one in zip(scope.spelled, scope.columns, strict=True):
            match one.type:
                case "integer":
                    calls.append((f"generate_series({spelled} % 3, 2)", Column("e", "integer")))
                case "text":
                    calls.append((f"string_to_table({spelled}, 'a')", Column("e", "text")))
                    calls.append((f"regexp_split_to_table({spelled}, '[ab]')", Column("e", "text")))
                case "integer[]" | "text[]":
                    calls += [(f"unnest({spelled})", Column("e", one.type[:-2]))] * 3
                case "jsonb":
                    array = f"CASE jsonb_typeof({spelled}) WHEN 'array' THEN {spelled} END"
                    calls += [(f"jsonb_array_elements({array})", Column("e", "jsonb"))] * 2
        return source.choice(calls)

    def _all(self, scope: Scope) -> list[Expr]:
        return [Expr(f"⟦{i}⟧", one.type, one.bound) for i, one in enumerate(scope.columns)]

    def _made(self, text: str, items: Sequence[Expr], scope: Scope) -> Query:
        columns = tuple(Column(f"c{i}", one.type, one.bound) for i, one in enumerate(items))
        return Query(text, columns, True, True, temporal=scope.temporal)
