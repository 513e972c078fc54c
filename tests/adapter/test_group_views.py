"""Views of groups through SQL: extremes, first rows and gathered values, at every time of an interval.

Many writes lie in one interval, which one read then steps over; each of its times is read by itself afterwards.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from mz_dagster.adapter import Connection

Row = tuple[Any, ...]

VIEWS = {
    "extremes": "SELECT k, min(v) AS low, max(v) AS high, max(s) AS last FROM t GROUP BY k",
    "best": "SELECT DISTINCT ON (k) k, v, s FROM t ORDER BY k, v DESC NULLS LAST, s",
    "two": "SELECT g.k, x.v FROM (SELECT DISTINCT k FROM t) AS g, "
    "LATERAL (SELECT v FROM t WHERE t.k = g.k ORDER BY v NULLS LAST LIMIT 2) AS x",
    "lists": "SELECT k, array_agg(v ORDER BY v) AS vs, string_agg(s, '-' ORDER BY s DESC) AS ss FROM t GROUP BY k",
}


def number_first(value: int | None) -> tuple[bool, int]:
    return value is None, value or 0


def expected(view: str, rows: list[Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    found: list[Row] = []
    for k, group in groups.items():
        numbers = sorted((row[1] for row in group), key=number_first)
        present = [v for v in numbers if v is not None]
        texts = sorted((row[2] for row in group if row[2] is not None), reverse=True)
        match view:
            case "extremes":
                found.append(
                    (k, *((present[0], present[-1]) if present else (None, None)), texts[0] if texts else None)
                )
            case "best":
                most = max((row[1] for row in group if row[1] is not None), default=None)
                found.append(
                    min((row for row in group if row[1] == most), key=lambda row: (row[2] is None, row[2] or ""))
                )
            case "two":
                found += [(k, v) for v in numbers[:2] if k is not None]
            case _:
                found.append((k, numbers, "-".join(texts) if texts else None))
    return sorted(found, key=repr)


def test_views_of_groups_are_their_queries_at_every_time(connection: Connection) -> None:
    source = random.Random(5)
    connection.execute("CREATE TABLE t (k text, v int, s text)")
    table: list[Row] = [("a", 1, "x"), ("a", 2, "y"), ("a", 2, "y"), ("b", None, None), (None, 7, "z")]
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?, ?)", table)
    for name, query in VIEWS.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for name, query in VIEWS.items():
        assert sorted(connection.execute(query).fetchall(), key=repr) == expected(name, table), name
    contents: dict[int, list[Row]] = {}
    for i in range(6):
        match i % 3:
            case 0:
                new = [
                    (
                        source.choice(["a", "b", "c", None]),
                        source.choice([None, 0, 2, 9]),
                        source.choice([None, "", "é"]),
                    )
                    for _ in range(3)
                ]
                connection.cursor().executemany("INSERT INTO t VALUES (?, ?, ?)", new)
                table = [*table, *new]
            case 1:
                lost = source.choice([row[1] for row in table if row[1] is not None])
                connection.execute("DELETE FROM t WHERE v = ?", [lost])
                table = [row for row in table if row[1] != lost]
            case _:
                connection.execute("UPDATE t SET v = 3 WHERE k = 'b'")
                table = [(row[0], 3, row[2]) if row[0] == "b" else row for row in table]
        contents[connection.engine.catalog.read_ts("default")] = table
    for name in VIEWS:
        for time, rows in reversed(contents.items()):
            answer = connection.execute(f"SELECT * FROM {name} AS OF {time}").fetchall()
            assert sorted(answer, key=repr) == expected(name, rows), f"{name} at {time}"
