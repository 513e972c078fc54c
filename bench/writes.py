"""INSERTs in one long session, and how long each takes until a join-and-aggregate view shows it.

Goals: a median under 8 ms, and under 30 ms until the view shows it.
"""

from __future__ import annotations

from bench.harness import Bench, Timing, table, timed
from bench.small import small_project
from mz_dagster.adapter import Session

_WRITES = 60
_SQL = """
    CREATE TABLE t (k integer, v integer);
    CREATE TABLE d (k integer, name text);
    CREATE MATERIALIZED VIEW m AS
    SELECT d.name, count(*) AS n, sum(t.v) AS s FROM t JOIN d ON t.k = d.k GROUP BY d.name;
"""


def run(bench: Bench) -> None:
    """Measures INSERTs and the reads that follow them, prints and records."""
    with small_project(bench, _SQL, sources=()) as project:
        session = Session(project.engine)
        session.execute("INSERT INTO d VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')")
        inserts, shown = [], []
        for number in range(5 + _WRITES):
            insert, _ = timed(session.execute, f"INSERT INTO t VALUES ({number % 4}, {number})")
            select, result = timed(session.execute, "SELECT n, s FROM m")
            counts = [int(row[0]) for row in result.rows]
            assert sum(counts) == number + 1, "a write is shown at once"
            if number >= 5:
                inserts.append(insert)
                shown.append(insert + select)
    found = {"insert": Timing(tuple(inserts)), "shown": Timing(tuple(shown))}
    bench.results.record("writes", found)
    print(table(("", "median ms", "from", "to"), [
        (name, 1000 * one.median, *(1000 * bound for bound in one.spread)) for name, one in found.items()
    ]))  # fmt: skip
