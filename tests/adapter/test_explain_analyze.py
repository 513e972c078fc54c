"""EXPLAIN ANALYZE executes a query, and shows what it cost and who computed it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from mz_dagster.adapter import Connection, peeks
from mz_dagster.adapter.sequence import explain, select
from mz_dagster.errors import DataError

SETUP = """
CREATE TABLE t (a int, b text);
CREATE TABLE u (a int, c int);
INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 100) AS g;
INSERT INTO u SELECT g % 10, g FROM generate_series(1, 50) AS g
"""
QUERY = "SELECT t.b, sum(u.c) FROM t JOIN u USING (a) WHERE t.a < 7 GROUP BY t.b"


def lines(connection: Connection, statement: str, parameters: Sequence[object] = ()) -> list[str]:
    return [line for (line,) in connection.execute(statement, parameters).fetchall()]


def test_each_operator_has_its_rows_and_its_time(sparkless: Connection) -> None:
    sparkless.execute(SETUP)
    for form in ("EXPLAIN ANALYZE", "EXPLAIN (ANALYZE, FORMAT TEXT)", "EXPLAIN (ANALYZE on)"):
        found = lines(sparkless, f"{form} {QUERY}")
        assert found[0].startswith("Reduce")
        assert "computed by: this process" in found
        rows = {match[1]: int(match[2]) for one in found if (match := re.fullmatch(r"(.+?) +(\d+) +\d+\.\d{3}", one))}
        assert (rows["Read t"], rows["Read u"], rows["DeltaJoin of 2"], rows["Accumulate by b"]) == (100, 50, 30, 6)
        assert {"rows stored of what was read: t 100, u 50", "rows returned: 6"} <= {*found}
        assert [one.partition(":")[0] for one in found[-2:]] == ["planning time", "execution time"]
    assert not any("computed by" in one for one in lines(sparkless, f"EXPLAIN (ANALYZE off) {QUERY}"))


def test_what_is_simple_says_so(sparkless: Connection) -> None:
    sparkless.execute(SETUP)
    found = lines(sparkless, "EXPLAIN ANALYZE SELECT * FROM t WHERE a = ?", (5,))
    assert "computed by: this process, which reads the stored rows as they are" in found
    assert "rows returned: 1" in found
    assert "computed by: nothing: its rows are known when it is planned" in lines(sparkless, "EXPLAIN ANALYZE SELECT 1")
    with pytest.raises(DataError, match="division by zero"):
        sparkless.execute("EXPLAIN ANALYZE SELECT 1 / (a - 1) FROM t")


def test_a_query_is_bound_and_planned_once_and_shown_as_it_is_executed(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparkless.execute(SETUP)
    noted = []

    def noting(does: Callable[..., Any], *args: Any, **more: Any) -> Any:
        noted.append(does.__name__)
        return does(*args, **more)

    for module, name in ((explain, "bind_query"), (select, "bind_query"), (explain, "optimize"), (peeks, "optimize")):
        monkeypatch.setattr(module, name, partial(noting, getattr(module, name)))
    for _ in range(2):
        found = lines(sparkless, "EXPLAIN ANALYZE SELECT b FROM t WHERE a = 5")
        assert noted == ["bind_query", "optimize"]
        assert {"computed by: this process, which reads the stored rows as they are", "rows returned: 1"} <= {*found}
        noted.clear()


@pytest.mark.deep
def test_what_spark_computes_has_one_time(connection: Connection) -> None:
    connection.execute(SETUP)
    connection.execute("SET engine = spark")
    found = lines(connection, f"EXPLAIN ANALYZE {QUERY}")
    (by,) = [one for one in found if one.startswith("computed by")]
    assert by.startswith("computed by: Spark, as one plan, because ")
    assert {"rows stored of what was read: t 100, u 50", "rows returned: 6"} <= {*found}
