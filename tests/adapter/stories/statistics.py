"""Views of statistics, bits, percentiles and sums over frames."""

from dataclasses import replace

from tests.adapter.stories import Story

#: Columns of a view of `m`, and what follows them.
_COLUMNS: dict[str, tuple[list[str], str]] = {
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


def _query(columns: list[str], behind: str) -> str:
    return f"SELECT {', '.join(f'{one} AS c{i}' for i, one in enumerate(columns))} FROM m {behind}"


ALL_STATISTICS = Story(
    table="CREATE TABLE m (id int, k text, i int, l bigint, n numeric(10,2), f double precision)",
    views={name: _query(*shape) for name, shape in _COLUMNS.items()},
    writes=(
        "INSERT INTO m VALUES (1, 'a', 1, 1099511627776, 1.50, '0.1'), (2, 'a', 2, 3, 2.50, '0.2'),"
        " (3, 'a', 2, NULL, -1.25, '0.3'), (4, 'b', NULL, 5, NULL, '1e10'), (5, 'b', 6, 9, 4.00, '-1e10'),"
        " (6, NULL, 3, 1, 0.01, NULL)",
        "INSERT INTO m VALUES (7, 'a', 5, 1, 2.50, '1e16'), (8, 'c', 7, 1, 9.99, '3.5'), (9, 'c', 7, -8, 9.99, '3.5')",
        "DELETE FROM m WHERE id IN (4, 5, 7)",
        "INSERT INTO m VALUES (10, 'b', 4, 4, 1.00, 'Infinity'), (11, NULL, 2, 1, 1.00, 'NaN'),"
        " (12, 'c', 1, 0, 0, '0.25')",
        "UPDATE m SET f = i * 0.5, i = i + 1 WHERE k = 'a' OR k = 'b'",
        "DELETE FROM m WHERE k = 'c' OR k IS NULL",
        "DELETE FROM m",
    ),
)

#: A few of them, whose states are kept in most different ways.
STATISTICS = replace(
    ALL_STATISTICS,
    views={
        "regressions": _query(["corr(f, i)", "covar_samp(f, n)", "regr_avgx(f, i)", "regr_count(f, i)"], ""),
        "bits": ALL_STATISTICS.views["bits"],
    },
    writes=ALL_STATISTICS.writes[:3],
)
