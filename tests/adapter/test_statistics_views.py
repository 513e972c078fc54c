"""Views of statistics, bits, percentiles and sums over frames: at every time what PostgreSQL says of its rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from tests.postgres_server import Postgres, running_postgres

#: Columns of a view of `m`, and what follows them.
VIEWS: dict[str, tuple[list[str], str]] = {
    "variances": (
        [
            "k", "var_samp(i)", "var_pop(n)", "stddev(n)", "variance(f)", "stddev_pop(f) FILTER (WHERE i > 1)",
            "sum(f)", "avg(f)",
        ],
        "GROUP BY k",
    ),
    "distinct_values": (["stddev(DISTINCT n)", "var_pop(DISTINCT f)", "avg(DISTINCT f)", "bit_xor(DISTINCT i)"], ""),
    "regressions": (
        [
            "corr(f, i)", "covar_samp(f, n)", "regr_slope(f, i)", "regr_intercept(f, i)", "regr_r2(f, i)",
            "regr_avgx(f, i)", "regr_avgy(f, i)", "regr_sxx(f, i)", "regr_syy(f, i)", "regr_sxy(f, i)",
            "covar_pop(n, i)", "regr_count(f, i)",
        ],
        "",
    ),
    "bits": (
        ["k", "bit_and(i)", "bit_or(i)", "bit_xor(i)", "bit_xor(l)", "bit_or(l) FILTER (WHERE i > 1)",
         "encode(string_agg(k::bytea, ',' ORDER BY id), 'hex')"],
        "GROUP BY k",
    ),
    "places": (
        [
            "k", "percentile_cont(0.5) WITHIN GROUP (ORDER BY f)",
            "percentile_disc(0.3) WITHIN GROUP (ORDER BY n DESC)",
            "mode() WITHIN GROUP (ORDER BY i)", "rank(2) WITHIN GROUP (ORDER BY i)",
            "dense_rank(2) WITHIN GROUP (ORDER BY i DESC)", "percent_rank(2) WITHIN GROUP (ORDER BY i)",
            "cume_dist(2) WITHIN GROUP (ORDER BY i)",
        ],
        "GROUP BY k",
    ),
    "frames": (
        [
            "id", "sum(f) OVER w", "avg(f) OVER (w ROWS 1 PRECEDING)", "stddev(f) OVER (PARTITION BY k)",
            "stddev(n) OVER w", "corr(f, i) OVER (w ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW)",
            "encode(string_agg(k::bytea, '-') OVER w, 'hex')", "bit_or(i) OVER w",
            "bit_xor(i) OVER (w GROUPS 1 PRECEDING EXCLUDE TIES)",
        ],
        "WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
}  # fmt: skip
COLUMNS = "id int, k text, i int, l bigint, n numeric(10,2), f double precision"
ROWS = [
    (1, "a", 1, 2**40, Decimal("1.50"), 0.1),
    (2, "a", 2, 3, Decimal("2.50"), 0.2),
    (3, "a", 2, None, Decimal("-1.25"), 0.3),
    (4, "b", None, 5, None, 1e10),
    (5, "b", 6, 9, Decimal("4.00"), -1e10),
    (6, None, 3, 1, Decimal("0.01"), None),
]
WRITES = [
    "INSERT INTO m VALUES (7, 'a', 5, 1, 2.50, 1e16), (8, 'c', 7, 1, 9.99, 3.5), (9, 'c', 7, -8, 9.99, 3.5)",
    "DELETE FROM m WHERE id IN (4, 5, 7)",
    "INSERT INTO m VALUES (10, 'b', 4, 4, 1.00, 'Infinity'), (11, NULL, 2, 1, 1.00, 'NaN'), (12, 'c', 1, 0, 0, 0.25)",
    "UPDATE m SET f = i * 0.5, i = i + 1 WHERE k = 'a' OR k = 'b'",
    "DELETE FROM m WHERE k = 'c' OR k IS NULL",
    "DELETE FROM m",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def query(view: str) -> str:
    columns, behind = VIEWS[view]
    return f"SELECT {', '.join(f'{one} AS c{i}' for i, one in enumerate(columns))} FROM m {behind}"


def answer(postgres: Postgres, view: str) -> list[tuple[Any, ...]]:
    """Returns the rows that PostgreSQL finds."""
    out = postgres.run(f"SELECT to_json(q) FROM ({query(view)}) AS q")
    return [tuple(json.loads(line, parse_float=Decimal).values()) for line in out.splitlines()]


def normal(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row whose numbers are equal if they are to eleven digits."""
    return tuple(_normal(cell) for cell in row)


def _normal(cell: Any) -> Any:
    if isinstance(cell, str) and cell in ("NaN", "Infinity", "-Infinity"):
        cell = float(cell)
    if isinstance(cell, int | float | Decimal):
        if cell != 0 and math.isfinite(cell):
            return f"{Decimal(cell) + 0:.11g}".rstrip("0")
        return str(float(cell) + 0.0)
    return cell


#: Sets of views, and how many of the writes follow.
CASES = [
    (("regressions", "bits"), 2),
    pytest.param(("regressions", "bits", "variances"), len(WRITES), marks=pytest.mark.deep),
    pytest.param(("distinct_values", "places", "frames"), len(WRITES), marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("views", "writes"), CASES)
def test_views_of_statistics_are_those_of_postgres_at_every_time(
    connection: Connection, postgres: Postgres, views: tuple[str, ...], writes: int
) -> None:
    connection.execute(f"CREATE TABLE m ({COLUMNS})")
    postgres.run(f"DROP TABLE IF EXISTS m; CREATE TABLE m ({COLUMNS})")
    connection.cursor().executemany("INSERT INTO m VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    for row in ROWS:
        cells = ", ".join("NULL" if cell is None else f"'{cell}'" for cell in row)
        postgres.run(f"INSERT INTO m VALUES ({cells})")
    for view in views:
        connection.execute(f"CREATE MATERIALIZED VIEW {view} AS {query(view)}")
    expected: dict[int, dict[str, list[tuple[Any, ...]]]] = {}
    for write in WRITES[:writes]:
        connection.execute(write)
        postgres.run(write)
        time = connection.engine.catalog.read_ts("default")
        expected[time] = {view: answer(postgres, view) for view in views}
    for time, answers in reversed(expected.items()):
        for view, rows in answers.items():
            found = connection.execute(f"SELECT * FROM {view} AS OF {time}").fetchall()
            assert sorted(map(normal, found), key=repr) == sorted(map(normal, rows), key=repr), f"{view} at {time}"
