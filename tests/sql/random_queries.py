"""Random queries over the tables of `against_postgres.py`.

Of groups, windows, set operations and limits; of subqueries, some of which are not asked for by every row; of chains of
outer joins, long lists, large numbers, and equal values that are stored differently.

Every query has one right answer: where the order of rows matters, `id` makes it total.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_KEYS = ("a", "b", "c", "f", "e", "s", "d", "a + 1", "c IS NULL", "a % 2", "coalesce(b, 0)", "upper(c)")
_NUMBERS = ("a", "b", "s", "d", "a + b", "d * 2", "b - s")
_ANY = (*_NUMBERS, "c", "e", "l")
_CONDITIONS = ("f", "a > 0", "b IS NOT NULL", "c = 'x' OR f", "NOT f", "s <> 1", "d < 2")


@dataclass
class Queries:
    """Makes queries.

    Attributes:
        pick: The source of chance.
    """

    pick: random.Random

    def query(self) -> str:
        """Returns one query of any kind."""
        kinds = (
            self.grouped,
            self.grouped,
            self.windowed,
            self.windowed,
            self.combined,
            self.limited,
            self.given,
            self.distinct_on,
            self.asking,
            self.guarded,
            self.chained,
            self.listed,
            self.represented,
            self.large,
        )
        return self.pick.choice(kinds)()

    def maybe(self, text: str, chance: float = 0.3) -> str:
        """Returns `text` or nothing."""
        return text if self.pick.random() < chance else ""

    def condition(self) -> str:
        return self.pick.choice(_CONDITIONS)

    def source(self) -> str:
        """Returns FROM and WHERE; all columns but `a` and `c` belong to `t` alone."""
        table = self.pick.choice(["t"] * 8 + ["z"])
        return f"FROM {table}{self.maybe(f' WHERE {self.condition()}')}"

    def aggregate(self, *, over: bool = False) -> str:
        """Returns an aggregate call; one over a window takes no DISTINCT and no ORDER BY."""
        distinct = "" if over else self.maybe("DISTINCT ")
        name = self.pick.choice(
            [
                "count(*)",
                "count",
                "sum",
                "avg",
                "min",
                "max",
                "bool_and",
                "bool_or",
                "variance",
                "var_pop",
                "texts",
                "array",
            ]
        )
        call: str
        match name:
            case "count(*)":
                call = "count(*)"
            case "count" | "min" | "max":
                call = f"{name}({distinct}{self.pick.choice(_ANY)})"
            case "bool_and" | "bool_or":
                call = f"{name}({distinct}{self.pick.choice(['f', 'a > b', 'c IS NULL'])})"
            case "texts":
                order = "" if over else " ORDER BY c" if distinct else f" ORDER BY {self.keys('id')}"
                call = f"string_agg({distinct}c, '-'{order})"
            case "array":
                order = "" if over or distinct else f" ORDER BY {self.keys('id')}"
                call = f"array_agg({distinct}{self.pick.choice(['a', 'c', 'd'])}{order})"
            case _:
                call = f"{name}({distinct}{self.pick.choice(_NUMBERS)})"
        return call + self.maybe(f" FILTER (WHERE {self.condition()})")

    def keys(self, last: str, n: int = 2) -> str:
        """Returns keys of an order, ended by `last`."""
        found = [self.key(one) for one in self.pick.sample(["a", "b", "c", "f", "d"], self.pick.randint(0, n))]
        return ", ".join([*found, last])

    def key(self, column: str) -> str:
        return column + self.maybe(" DESC") + self.pick.choice(["", "", " NULLS FIRST", " NULLS LAST"])

    def groupings(self, keys: list[str]) -> str:
        """Returns a GROUP BY clause of `keys`, each named in it at least once."""
        listed = ", ".join(keys)
        return self.pick.choice(
            [
                listed,
                listed,
                f"ROLLUP ({listed})",
                f"CUBE ({listed})",
                f"GROUPING SETS (({listed}), {keys[0]}, ())",
                f"GROUPING SETS (ROLLUP ({listed}), CUBE ({keys[-1]}))",
                f"{keys[0]}, ROLLUP ({listed})",
                f"DISTINCT ROLLUP ({listed}), CUBE ({keys[0]})",
            ]
        )

    def grouped(self) -> str:
        keys = self.pick.sample(_KEYS, self.pick.randint(0, 2))
        aggregates = [self.aggregate() for _ in range(self.pick.randint(0 if keys else 1, 3))]
        items = [*keys, *aggregates]
        if aggregates and self.pick.random() < 0.2:
            items.append("CASE WHEN count(*) > 2 THEN sum(a) ELSE max(b) + 1 END")
        if keys and self.pick.random() < 0.2:
            items.append(f"rank() OVER (ORDER BY {keys[0]})")
        group = f" GROUP BY {self.groupings(keys)}" if keys else ""
        if keys and self.pick.random() < 0.5:
            items.append(f"grouping({', '.join(self.pick.sample(keys, self.pick.randint(1, len(keys))))})")
        having = self.maybe(
            f" HAVING {self.pick.choice(['count(*) > 1', 'sum(a) > 0', 'max(c) IS NOT NULL', 'bool_or(f)'])}"
        )
        return f"SELECT {self.maybe('DISTINCT ', 0.1)}{', '.join(items)} {self.source()}{group}{having}"

    def windowed(self) -> str:
        functions = [self.window() for _ in range(self.pick.randint(1, 3))]
        inner = f"SELECT id, {', '.join(functions)} {self.source()}"
        return inner + self.maybe(" ORDER BY id LIMIT 5", 0.1)

    def window(self) -> str:
        partition = self.maybe(f"PARTITION BY {self.pick.choice(['a', 'f', 'c', 'a, f', 'b > 0'])}", 0.6)
        kind = self.pick.choice(["rows", "peers", "aggregate", "aggregate", "value"])
        total = f"ORDER BY {self.keys('id')}"
        match kind:
            case "rows":
                call = self.pick.choice(
                    [
                        "row_number()",
                        "ntile(3)",
                        "lag(b)",
                        "lead(c, 2)",
                        "lag(a, 1, -1)",
                        "lead(d, -1, 0.5)",
                        "lag(a, b)",
                    ]
                )
                return f"{call} OVER ({partition} {total})"
            case "peers":
                call = self.pick.choice(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"])
                order = self.pick.choice(["", "ORDER BY a", "ORDER BY c DESC, f", total])
                return f"{call} OVER ({partition} {order})"
            case "value":
                call = self.pick.choice(["first_value(b)", "last_value(c)", "nth_value(a, 2)", "first_value(d)"])
                return f"{call} OVER ({partition} {total} {self.frame('ROWS')})"
        call = self.aggregate(over=True)
        if call.startswith(("string_agg", "array_agg")):
            return f"{call} OVER ({partition} {total} {self.frame('ROWS')})"
        unit = self.pick.choice(["", "ROWS", "RANGE", "GROUPS"])
        if unit == "ROWS":
            return f"{call} OVER ({partition} {total} {self.frame(unit)})"
        order = f"ORDER BY {self.key(self.pick.choice('abds'))}"
        return f"{call} OVER ({partition} {order} {self.frame(unit) if unit else ''})"

    def frame(self, unit: str) -> str:
        """Returns a frame whose start is not behind its end."""
        bounds = [
            "UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING",
            "UNBOUNDED FOLLOWING",
        ]  # fmt: skip
        start = self.pick.randint(0, 5)
        exclude = self.maybe(f" EXCLUDE {self.pick.choice(['CURRENT ROW', 'GROUP', 'TIES', 'NO OTHERS'])}")
        if start <= 3 and self.pick.random() < 0.3:
            return f"{unit} {bounds[start]}{exclude}"
        end = self.pick.randint(max(start, 1), 6)
        return f"{unit} BETWEEN {bounds[start]} AND {bounds[end]}{exclude}"

    def combined(self) -> str:
        n = self.pick.randint(1, 2)
        query = self.arm(n)
        for _ in range(self.pick.randint(1, 3)):
            word = self.pick.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.maybe(" ALL", 0.5)
            other = self.arm(n)
            query = f"({query}) {word} {other}" if self.pick.random() < 0.5 else f"{other} {word} ({query})"
        return query + self.maybe(f" ORDER BY {', '.join(str(i + 1) for i in range(n))} LIMIT 4", 0.2)

    def arm(self, n: int) -> str:
        columns = self.pick.choice(
            [("a", "c"), ("b", "c"), ("s", "c"), ("a + 1", "upper(c)"), ("d", "NULL"), ("NULL", "c")]
        )
        table = self.pick.choice(["t", "t", "z"]) if columns != ("a", "c") else self.pick.choice(["t", "v", "z"])
        distinct = self.maybe("DISTINCT ", 0.2)
        return f"SELECT {distinct}{', '.join(columns[:n])} FROM {table}{self.maybe(' WHERE a > 0')}"

    def limited(self) -> str:
        tail = self.pick.choice(["LIMIT 3", "LIMIT 4 OFFSET 2", "OFFSET 9", "FETCH FIRST 2 ROWS ONLY", "LIMIT 0"])
        inner = f"SELECT a, b, c, f, d, id {self.source()} ORDER BY {self.keys('id')} {tail}"
        if self.pick.random() < 0.5:
            return f"SELECT x.id, x.a FROM ({inner}) x"
        return f"WITH x AS ({inner}) SELECT x.f, count(*), sum(x.a) FROM x GROUP BY x.f"

    def given(self) -> str:
        """Returns a query whose rows come in the order of its derived table, which nothing else orders."""
        inner = f"SELECT a, b, c, f, d, s {self.source()} ORDER BY {self.keys('id')}{self.maybe(' LIMIT 5')}"
        if self.pick.random() < 0.3:
            inner = f"SELECT b, s, f, d, c, a FROM ({inner}) w{self.maybe(f' WHERE {self.condition()}')}"
        source = f"FROM ({inner}) x{self.maybe(f' WHERE {self.condition()}')}"
        with_, source = (f"WITH x AS ({inner}) ", "FROM x") if self.pick.random() < 0.2 else ("", source)
        calls = [
            "array_agg(a)",
            "string_agg(c, '-')",
            "array_agg(d) FILTER (WHERE f)",
            "json_agg(c)::text",
            "jsonb_agg(b)::text",
        ]
        rows = [
            "row_number()",
            "lag(b)",
            "first_value(c)",
            "last_value(d)",
            "nth_value(a, 2)",
            "ntile(3)",
            "array_agg(a)",
        ]
        match self.pick.randrange(4):
            case 0:
                return f"{with_}SELECT {', '.join(self.pick.sample(calls, 2))} {source}"
            case 1:
                key = self.pick.choice(["f", "a % 2", "c"])
                return f"{with_}SELECT {key}, {self.pick.choice(calls)}, max(b) {source} GROUP BY {key}"
            case 2:
                frame = self.pick.choice(["", "ROWS 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING"])
                return f"{with_}SELECT b, {self.pick.choice(rows)} OVER ({frame}), rank() OVER () {source}"
            case _:
                return f"{with_}SELECT a, c, b {source} {self.pick.choice(['LIMIT 2', 'OFFSET 1 LIMIT 3', 'LIMIT 4'])}"

    def distinct_on(self) -> str:
        on = self.pick.sample(["a", "f", "c", "b"], self.pick.randint(1, 2))
        order = ", ".join([*(self.key(one) for one in on), self.keys("id")])
        query = f"SELECT DISTINCT ON ({', '.join(on)}) id, a {self.source()} ORDER BY {order}"
        return f"SELECT x.id FROM ({query}) x" if self.pick.random() < 0.3 else query + self.maybe(" LIMIT 2")

    def value(self, row: str) -> str:
        """Returns a scalar subquery with one row at most for each row of `row`."""
        tie = self.pick.choice(
            [f"v.a = {row}.a", f"v.k > {row}.b", f"v.c = {row}.c", f"v.a = {row}.a AND v.k < 3", "true"]
        )
        what = self.pick.choice(
            ["count(*)", "sum(v.k)", "max(v.c)", "min(v.a + v.k)", "count(DISTINCT v.a)", "bool_or(v.k > 1)"]
        )
        if self.pick.random() < 0.3:
            return f"(SELECT v.k FROM v WHERE {tie} ORDER BY v.k, v.a, v.c LIMIT 1)"
        return f"(SELECT {what} FROM v WHERE {tie})"

    def asking(self) -> str:
        """Returns a query with several scalar subqueries."""
        items = [self.value("t") for _ in range(self.pick.randint(2, 5))]
        where = self.maybe(f" WHERE coalesce({self.value('t')}::text, 'x') <> '1' OR t.a = 1")
        if self.pick.random() < 0.3:
            return f"SELECT x.n, count(*) FROM (SELECT {items[0]} AS n, {items[1]} AS m FROM t{where}) x GROUP BY x.n"
        return f"SELECT t.id, {', '.join(items)} FROM t{where}"

    def failing(self) -> str:
        """Returns a subquery that fails for a row of which a is 0 or no number."""
        return self.pick.choice(
            [
                "(SELECT 12 / t.a)",
                "(SELECT max(12 / (v.a - v.a + t.a)) FROM v)",
                "(SELECT v.k FROM v WHERE v.k <> t.b)",
                "(SELECT sum(12 / v.a) FROM v WHERE v.a = t.a)",
                "(SELECT count(*) FROM v WHERE v.a = t.a AND 12 / v.a > 2)",
                "(SELECT v.k FROM v WHERE v.a = t.a ORDER BY 12 / v.a, v.k LIMIT 1)",
                "(SELECT (t.b::text || t.c)::integer)",
                "(SELECT max(q) FROM (SELECT ntile(v.a) OVER (ORDER BY v.k DESC) AS q FROM v WHERE v.k = t.a) s)",
                "(SELECT sum(q) FROM (SELECT nth_value(v.k, v.a) OVER (ORDER BY v.k) AS q FROM v WHERE v.k = t.b) s)",
                "(SELECT sum((v.k || 'e307')::float8) FROM v WHERE v.a = t.a)",
                "(SELECT sum(DISTINCT (v.k || 'e307')::float8) FROM v)",
                "(SELECT avg((v.k || 'e307')::float8) FROM v WHERE v.a = t.a)",
                "(SELECT sum(DISTINCT 12.0 / v.a) + count(DISTINCT v.k) FROM v WHERE v.a = t.a)",
            ]
        )

    def guarded(self) -> str:
        """Returns a query with subqueries that fail for rows that do not ask for them."""
        value, other = self.failing(), self.value("t")
        never = self.pick.choice(["t.id < 0", "t.a IS NULL AND t.a = 1", "t.id > 99"])
        item = self.pick.choice(
            [
                f"CASE WHEN {never} THEN {value} ELSE {self.pick.randint(0, 3)} END",
                f"CASE WHEN t.id >= 0 THEN t.b WHEN {never} THEN {value} END",
                f"coalesce(t.id, {value})",
                f"coalesce(NULL, t.id, {value}, 1)",
                f"{never} AND {value} = 1",
                f"t.id >= 0 OR {value} > 0",
                f"CASE WHEN {never} THEN EXISTS (SELECT 1 FROM v WHERE v.k = {value}) END",
                f"CASE WHEN {never} THEN t.b IN (SELECT v.k + {value} FROM v) END",
                f"CASE WHEN {never} THEN t.b NOT IN (SELECT v.k / {value} FROM v) END",
                f"CASE WHEN {never} THEN (t.a, t.b) NOT IN (SELECT v.k, 12 / v.a FROM v) END",
                f"CASE WHEN {never} THEN t.b > ALL (SELECT 12 / v.a + {value} FROM v) END",
                f"CASE WHEN {never} THEN EXISTS (SELECT 1 FROM v JOIN z ON 12 / v.a = z.a + {value}) END",
                "CASE WHEN t.a <> 0 THEN (SELECT 12 / t.a) END",
                "CASE WHEN t.a > 0 THEN (SELECT max(12 / t.a + v.k) FROM v WHERE v.a = t.a) END",
            ]
        )
        return f"SELECT t.id, {item}{self.maybe(f', {other}')} FROM t{self.maybe(f' WHERE {item} IS NOT NULL', 0.2)}"

    def chained(self) -> str:
        """Returns a chain of outer joins."""
        joins, before = [], {"t": "t"}
        for n in range(self.pick.randint(2, 4)):
            left, name, table = self.pick.choice([*before]), f"x{n}", self.pick.choice(["v", "v", "z", "t"])
            mine, other = (self.pick.choice(["a", "k" if one == "v" else "b"]) for one in (table, before[left]))
            more = self.maybe(f" AND {name}.c <> 'x'") + self.maybe(f" AND {left}.a > 0")
            kind = self.pick.choice(["LEFT", "LEFT", "LEFT", "LEFT" if more else "FULL", "INNER"])
            joins.append(f"{kind} JOIN {table} {name} ON {name}.{mine} = {left}.{other}{more}")
            before[name] = table
        names = [*before]
        shown = [f"{one}.a" for one in names] + [f"{names[-1]}.c"]
        where = self.maybe(f" WHERE {self.pick.choice(names)}.a {self.pick.choice(['IS NULL', '> 0', 'IS NOT NULL'])}")
        return f"SELECT {', '.join(shown)} FROM t {' '.join(joins)}{where}"

    def listed(self) -> str:
        """Returns a query with a long list, or many alternatives."""
        kinds: list[tuple[str, Callable[[int], str]]] = [
            ("a", str),
            ("b", lambda n: str(n - 50)),
            ("l", lambda n: str(n * 2**33)),
            ("d", lambda n: f"{n}.{n % 100:02}"),
            ("d", lambda n: f"{n}.5"),
            ("c", lambda n: f"'{'xyZ'[n % 3] * (n % 4)}'"),
            ("e", lambda n: f"'2020-01-{n % 28 + 1:02}'"),
            ("s::float8", lambda n: f"{n}e0"),
            ("c::char(3)", lambda n: f"'{'xyZ'[n % 3] * (n % 4)}  '"),
            ("a + b", str),
            ("a::text", lambda n: f"'{n}'"),
        ]
        column, made = self.pick.choice(kinds)
        items = [made(self.pick.randint(0, 90)) for _ in range(self.pick.choice([3, 17, 40, 200]))]
        if self.pick.random() < 0.2:
            items.insert(self.pick.randrange(len(items)), "NULL")
        listed = ", ".join(items)
        test = self.pick.choice(
            [
                f"{column} IN ({listed})",
                f"{column} NOT IN ({listed})",
                f"{column} = ANY (ARRAY[{listed}])",
                f"{column} <> ALL (ARRAY[{listed}])",
                f"{column} IN (VALUES ({listed.replace(', ', '), (')}))",
                f"{column} <> ALL (VALUES ({listed.replace(', ', '), (')}))",
                "(" + " OR ".join(f"{column} = {one}" for one in items[:90]) + ")",
                "(" + " AND ".join(f"{column} <> {one}" for one in items[:90]) + ")",
            ]
        )
        if self.pick.random() < 0.5:
            return f"SELECT id, {test} FROM t"
        return f"SELECT id FROM t WHERE {test}{self.maybe(' OR f')}"

    def represented(self) -> str:
        """Returns a query over equal values that are stored differently; it shows none that stands for others."""
        value = self.pick.choice(
            [
                "(q.a::text || CASE WHEN q.f THEN '.0' ELSE '' END)::jsonb",
                "('[' || q.a::text || CASE WHEN q.f THEN '.00]' ELSE ']' END)::jsonb",
                "CASE WHEN q.f THEN q.a * interval '1 mon' ELSE q.a * interval '30 days' END",
                "CASE WHEN q.f THEN q.a * interval '24 hours' ELSE q.a * interval '1 day' END",
                "(q.c || CASE WHEN q.f THEN ' ' ELSE '' END)::char(4)",
            ]
        )
        return self.over(value)

    def stored_apart(self) -> str:
        """Returns such a query over values that are equal and look different; of zeros the naive evaluator sees one."""
        value = self.pick.choice(
            [
                "CASE WHEN q.f THEN '-0'::float8 * abs(q.a) ELSE q.a * 0.0::float8 END",
                "CASE WHEN q.f THEN '-0'::real ELSE 0 END",
                "ARRAY[CASE WHEN q.f THEN '-0'::float8 ELSE 0 END, q.a]",
                "CASE WHEN q.f THEN '1'::jsonb ELSE '1.0' END",
                "CASE WHEN q.f THEN interval '1 mon' ELSE '30 days' END",
                "ARRAY[CASE WHEN q.f THEN '1'::jsonb ELSE '1.0' END, NULL]",
                "ARRAY[CASE WHEN q.f THEN interval '1 mon' ELSE '30 days' END, q.a * interval '1 day']",
                "ARRAY[(q.a::text || CASE WHEN q.f THEN '.0' ELSE '' END)::text::numeric]",
            ]
        )
        return self.over(value)

    def over(self, value: str) -> str:
        """Returns a query over the rows of `q` and a value of each."""
        rows = f"(SELECT q.id, {value} AS x FROM t q)"
        return self.pick.choice(
            [
                f"SELECT count(*), min(w.id) FROM {rows} w GROUP BY w.x",
                f"SELECT count(DISTINCT w.x), count(w.x) FROM {rows} w",
                f"SELECT l.id, r.id FROM {rows} l JOIN {rows} r ON l.x = r.x",
                f"SELECT l.id, r.id FROM {rows} l LEFT JOIN {rows} r ON l.x = r.x AND l.x::text < r.x::text",
                f"SELECT l.id, r.id FROM {rows} l FULL JOIN {rows} r ON l.x = r.x AND l.id < r.id",
                f"SELECT w.id, w.x::text FROM {rows} w",
                f"SELECT w.id, rank() OVER (ORDER BY w.x), count(*) OVER (PARTITION BY w.x) FROM {rows} w",
                f"SELECT w.id, w.x::text, lag(w.x) OVER (ORDER BY w.id)::text FROM {rows} w",
                f"SELECT w.id, w.x::text FROM (SELECT * FROM {rows} y ORDER BY id LIMIT 7) w",
                f"SELECT DISTINCT ON (w.x) w.id FROM {rows} w ORDER BY w.x, w.id",
                f"SELECT w.id, (SELECT count(*) FROM {rows} y WHERE y.x = w.x) FROM {rows} w",
                f"SELECT w.id, (SELECT max(y.id) FROM {rows} y WHERE y.x::text = w.x::text) FROM {rows} w",
                f"SELECT w.id FROM {rows} w WHERE w.x IN (SELECT y.x FROM {rows} y WHERE y.id < 5)",
                f"SELECT count(*) FROM (SELECT x FROM {rows} w EXCEPT ALL SELECT x FROM {rows} y WHERE y.id < 6) u",
                f"SELECT count(*) FROM (SELECT x FROM {rows} w UNION SELECT x FROM {rows} y) u",
            ]
        )

    def large(self) -> str:
        """Returns a query with numbers at the ends of their types, or beyond."""
        number = self.pick.choice(
            [
                *("2147483647", "-2147483648", "2147483648", "9223372036854775807", "-9223372036854775808"),
                *("9223372036854775808", "32767::smallint", "99999999999999999999.5", "-0.000000000000000001"),
                *("1e15", "123456789012345678901234567890", "'1e15'::float8", "'-1e-9'::float8"),
            ]
        )
        column = self.pick.choice(["a", "b", "s", "l", "d"])
        operation = self.pick.choice(["+", "-", "=", "<", ">=", "<>", "IS DISTINCT FROM"])
        if self.pick.random() < 0.5:
            return f"SELECT id FROM t WHERE {column} {self.pick.choice(['=', '<', '>=', '<>'])} {number}"
        return f"SELECT id, {column} {operation} {number}, {number} FROM t"
