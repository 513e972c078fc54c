"""Random queries with groups, windows, set operations and limits, over the tables of `against_postgres.py`.

Every query has one right answer: where the order of rows matters, `id` makes it total.
"""

from __future__ import annotations

import random
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
            self.distinct_on,
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

    def distinct_on(self) -> str:
        on = self.pick.sample(["a", "f", "c", "b"], self.pick.randint(1, 2))
        order = ", ".join([*(self.key(one) for one in on), self.keys("id")])
        query = f"SELECT DISTINCT ON ({', '.join(on)}) id, a {self.source()} ORDER BY {order}"
        return f"SELECT x.id FROM ({query}) x" if self.pick.random() < 0.3 else query + self.maybe(" LIMIT 2")
