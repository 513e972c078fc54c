"""Variances, regressions, bits and ordered sets say what PostgreSQL says: in groups, filtered, distinct, in frames."""

import random

import pytest

from tests.postgres_server import Postgres
from tests.sql.against_postgres import differences, ours, script, tables

VARIANCES = ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")
REGRESSIONS = (
    *("corr", "covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy"),
    *("regr_sxx", "regr_syy", "regr_sxy", "regr_r2", "regr_slope", "regr_intercept"),
)
BITS = ("bit_and", "bit_or", "bit_xor")
#: Arguments by the functions that take them; all exact to the digits that are compared.
NUMBERS = ("a", "s", "l", "d", "a::float8", "d::float8", "a::real", "(a * 0.1)::float8", "a - b")
INTEGERS = ("a", "s", "l", "a + b")
DOUBLES = ("a", "b", "d", "s::float8", "(b * 0.3)::float8")
FRACTIONS = ("0", "0.25", "0.5", "0.9", "1", "NULL::float8")
RANKS = ("rank", "dense_rank", "percent_rank", "cume_dist")
#: The values of a row that is not there, and the keys that they are compared with.
HYPOTHETICAL = (("1", "a"), ("NULL", "a"), ("1.5", "d"), ("0.5", "a"), ("'x'", "c"), ("'2020-01-02'", "e"))
FRAMES = (
    "ORDER BY id",
    "ORDER BY id ROWS 2 PRECEDING",
    "PARTITION BY b ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ORDER BY a GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
    "PARTITION BY f",
)


def call(pick: random.Random, *, distinct: bool = True) -> str:
    """Returns an aggregate of this file's."""
    kind = pick.randrange(4)
    if kind == 0:
        name, arguments = pick.choice(REGRESSIONS), f"{pick.choice(DOUBLES)}, {pick.choice(DOUBLES)}"
        distinct = False
    elif kind == 1:
        name, arguments = pick.choice(BITS), pick.choice(INTEGERS)
    elif kind == 2:
        name, arguments = pick.choice(("sum", "avg")), pick.choice(NUMBERS[:2] + NUMBERS[3:])
    else:
        name, arguments = pick.choice(VARIANCES), pick.choice(NUMBERS)
        # A numeric of 20 digits behind the point has 18 before it.
        name = name if arguments != "l" else "stddev"
    word = "DISTINCT " if distinct and pick.random() < 0.3 else ""
    condition = pick.choice(["", "", " FILTER (WHERE f)", " FILTER (WHERE a > b)"])
    return f"{name}({word}{arguments}){condition}"


def within_group(pick: random.Random) -> str:
    """Returns an aggregate of values in order, or the rank of a row that is not there."""
    order = pick.choice(["", " DESC", " DESC NULLS LAST", " NULLS FIRST"])
    condition = pick.choice(["", "", " FILTER (WHERE f)"])
    match pick.randrange(5):
        case 0:
            shown = f"percentile_cont({pick.choice(FRACTIONS)}) WITHIN GROUP (ORDER BY {pick.choice(NUMBERS)}{order})"
        case 1:
            value = pick.choice([*NUMBERS, "c", "e", "f"])
            shown = f"percentile_disc({pick.choice(FRACTIONS)}) WITHIN GROUP (ORDER BY {value}{order})"
        case 2:
            shown = f"mode() WITHIN GROUP (ORDER BY {pick.choice(['a', 'c', 'e', 'd', 'f', 'a::float8'])}{order})"
        case 3:
            name, (given, value) = pick.choice(RANKS), pick.choice(HYPOTHETICAL)
            shown = f"{name}({given}) WITHIN GROUP (ORDER BY {value}{order})"
        case _:
            name = pick.choice([one for one in RANKS if one != "dense_rank"])
            shown = f"{name}(1, 'x') WITHIN GROUP (ORDER BY a{order}, c)"
    return shown + condition


def grouped_query(pick: random.Random) -> str:
    calls = ", ".join(pick.choice([call, within_group])(pick) for _ in range(3))
    table, by = (
        pick.choice(["t", "t", "z"]),
        pick.choice(["", " GROUP BY b", " GROUP BY f, c", " GROUP BY CUBE (b, f)"]),
    )
    return f"SELECT {calls} FROM {table}{by}"


def windowed_query(pick: random.Random) -> str:
    calls = ", ".join(f"{call(pick, distinct=False)} OVER w" for _ in range(3))
    return f"SELECT id, {calls} FROM t WINDOW w AS ({pick.choice(FRAMES)})"


def check(postgres: Postgres, seeds: range, queries: int) -> None:
    for seed in seeds:
        data, pick = tables(seed), random.Random(seed)
        postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
        asked = [one(pick) for _ in range(queries) for one in (grouped_query, windowed_query)]
        assert differences(postgres, data, asked) == []


@pytest.mark.parametrize(
    ("seed", "queries"), [(1, 40), *(pytest.param(one, 60, marks=pytest.mark.deep) for one in (1, 2))]
)
def test_statistics_say_what_postgres_says(postgres: Postgres, seed: int, queries: int) -> None:
    check(postgres, range(seed, seed + 1), queries)


#: In places where they are not a matter of course.
QUERIES = (
    "SELECT s, percentile_disc(CASE WHEN s > 0 THEN 0.5 ELSE 0.1 END) WITHIN GROUP (ORDER BY a) FROM t GROUP BY s",
    "SELECT b FROM t GROUP BY b HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY a) > 1 OR stddev(a) IS NULL",
    "SELECT id FROM t WHERE a > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t)",
    "SELECT id, (SELECT var_pop(x.a) FROM v x WHERE x.k = t.a) FROM t",
    "SELECT id, (SELECT mode() WITHIN GROUP (ORDER BY x.c) FROM v x WHERE x.k >= t.a) FROM t",
    "SELECT b, max(var_pop(a)) OVER (), rank() OVER (ORDER BY var_pop(a)) FROM t GROUP BY b",
    "SELECT f, corr(a, b) FROM t GROUP BY f ORDER BY regr_count(a, b), f",
    "SELECT count(*) FROM (SELECT bit_xor(a) AS x FROM t GROUP BY b) q WHERE x > 0",
    "SELECT percentile_cont(ARRAY[0, 0.5, NULL, 1]) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT b, percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY c DESC) FROM t GROUP BY b",
    "SELECT b, (percentile_cont(0.3) WITHIN GROUP (ORDER BY INTERVAL '1 mon -3 days' * a))::text FROM t GROUP BY b",
    "SELECT (percentile_cont(ARRAY[0, 0.7]) WITHIN GROUP (ORDER BY INTERVAL '1 day 01:00' * a DESC))[2]::text FROM t",
    "SELECT (percentile_cont(0.1) WITHIN GROUP (ORDER BY TIME '01:00' + INTERVAL '1 hour' * a))::text FROM t",
    "SELECT percentile_disc(ARRAY[0.1, 2]) WITHIN GROUP (ORDER BY a) FROM z",
    "SELECT stddev(a), corr(a, b), bit_or(a), rank(1) WITHIN GROUP (ORDER BY a) FROM z",
    "SELECT stddev(DISTINCT a ORDER BY a), corr(a, b ORDER BY a), regr_count('1', '2'), corr(NULL, a) FROM t",
    "SELECT string_agg(c::varchar(2), ','::char(1) ORDER BY id), min(c::varchar(2)), max(c::varchar(2)) FROM t",
    "SELECT f, sum(var_pop(a)) OVER (ORDER BY f ROWS 1 PRECEDING) FROM t GROUP BY f",
)


def test_statistics_stand_wherever_aggregates_do(postgres: Postgres) -> None:
    for seed in (1, 2):
        data = tables(seed)
        postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
        assert differences(postgres, data, QUERIES) == []


#: Frames of an interval's width over dates, timestamps and times of day.
DISTANCES = ("'1 day'", "INTERVAL '1 day'", "'0'", "INTERVAL '1 month -27 days'", "INTERVAL '1 day 01:00'")
KEYS = ("e", "e::timestamp", "e::timestamptz", "e - INTERVAL '1 hour' * a", "TIME '01:00' + INTERVAL '1 hour' * a")


def ranged_query(pick: random.Random) -> str:
    key, (low, high) = pick.choice(KEYS), (pick.choice(DISTANCES) for _ in range(2))
    bounds = pick.choice(
        [f"{low} PRECEDING", f"BETWEEN {low} PRECEDING AND {high} FOLLOWING", f"BETWEEN {low} FOLLOWING AND UNBOUNDED "
         f"FOLLOWING", f"BETWEEN CURRENT ROW AND {high} FOLLOWING EXCLUDE CURRENT ROW"]
    )  # fmt: skip
    order = pick.choice(["", " DESC", " NULLS FIRST"])
    return f"SELECT id, count(*) OVER w, sum(a) OVER w FROM t WINDOW w AS (ORDER BY {key}{order} RANGE {bounds})"


def test_ranges_of_intervals_say_what_postgres_says(postgres: Postgres) -> None:
    data, pick = tables(1), random.Random(1)
    postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
    assert differences(postgres, data, [ranged_query(pick) for _ in range(60)]) == []


#: Queries and their errors, as in PostgreSQL.
WRONG = (
    "SELECT sum(a) OVER (ORDER BY e RANGE 1 PRECEDING) FROM t",
    "SELECT sum(a) OVER (ORDER BY e RANGE '-1 day' PRECEDING) FROM t",
    "SELECT sum(a) OVER (ORDER BY e RANGE 'x' PRECEDING) FROM t",
    "SELECT sum(a) OVER (ORDER BY TIME '10:00' RANGE INTERVAL '-1 hour' PRECEDING) FROM t",
    "SELECT percentile_disc(0.5) FROM t",
    "SELECT sum(a) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) OVER () FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY c) FROM t",
    "SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_cont(0.5, 1) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_cont('x') WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a, b) FROM t",
    "SELECT percentile_disc(NULL) WITHIN GROUP (ORDER BY e) FROM t",
    "SELECT mode() WITHIN GROUP (ORDER BY a, b) FROM t",
    "SELECT mode(1) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT rank() WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT rank(1) WITHIN GROUP (ORDER BY a, b) FROM t",
    "SELECT rank('x') WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT rank(1) WITHIN GROUP (ORDER BY c) FROM t",
    "SELECT percentile_disc(a) WITHIN GROUP (ORDER BY b) FROM t",
    "SELECT lower(c) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY sum(a)) FROM t",
    "SELECT 1 FROM t WHERE percentile_disc(0.5) WITHIN GROUP (ORDER BY a) > 1",
    "SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM t",
    "SELECT bit_and(c) FROM t",
    "SELECT bit_or(d) FROM t",
    "SELECT bit_xor(NULL) FROM t",
    "SELECT corr(a, c) FROM t",
    "SELECT corr(a) FROM t",
    "SELECT stddev(c) FROM t",
    "SELECT regr_slope(a, b, a) FROM t",
    "SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT percentile_cont(-1) WITHIN GROUP (ORDER BY a) FROM z",
    "SELECT stddev(1e300::float8 * a) FROM t",
)


def test_errors_are_those_of_postgres(postgres: Postgres) -> None:
    data = tables(1)
    postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
    assert all(ours(query, data).error for query in WRONG)
    assert differences(postgres, data, WRONG) == []


@pytest.mark.deep
def test_many_statistics_say_what_postgres_says(postgres: Postgres) -> None:
    check(postgres, range(3, 8), 120)
