"""Forms of expressions that PostgreSQL spells in several ways: their values beside PostgreSQL's."""

from __future__ import annotations

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from tests.postgres_server import Postgres

_DOUBLES = ("2.675", "1.005", "-0.125", "1e-7", "123456789.987654321", "0.1 + 0.2", "1.0 / 3", "-2.5", "1e15 + 0.3")
_MOMENTS = ("2024-10-27 00:30:15.5+00", "2024-10-27 01:30:15.5+00", "2024-03-31 01:30+00", "1969-12-31 23:59:59.9+00")
_FIELDS = ("minute", "hours", "day", "week", "month", "quarter", "year", "second", "decade")
_ZONES = ("Europe/Berlin", "America/St_Johns", "UTC", "Asia/Kathmandu")

EXPRESSIONS = (
    *(f"round(({one})::float8::numeric, {digits})" for one in _DOUBLES for digits in (0, 1, 2, 8)),
    *(f"round(({one})::float4::numeric, 2)" for one in _DOUBLES),
    "round('2.345'::text::numeric, 2)",
    "round(CAST(('12' || '.5')::text AS numeric), 0)",
    "round(NULL::float8::numeric, 2)",
    *(
        f"date_trunc('{field}', timestamptz '{moment}', '{zone}')"
        for field in _FIELDS
        for moment in _MOMENTS
        for zone in _ZONES
    ),
    "date_trunc('day', timestamp '2024-05-05 23:00', 'Asia/Kathmandu')",
    "make_timestamptz(2024, 7, 1, 12, 30, 15.5, 'America/New_York')",
    "make_timestamptz(2024, 3, 31, 2, 30, 0, 'Europe/Berlin')",
    "2e38::float8",
    "-12345678901234567890123456789012345678901234567890::float8",
    "CAST(1e-300 AS float8)",
    "3.4e38::float4",
    "float8(3)",
    "int4(2.5)",
    "int8('12')",
    "text(1.50)",
    "date(timestamp '2024-05-05 23:00')",
    "'a'\n'b' || 'c'\n  'd'",
    "'a'\n'b' 'c'",
    "E'\\t'\n'b'",
    "'a'\n'b' || 'c'\n  -- and\n  'd'",
)
QUERIES = (
    "SELECT x FROM generate_series(1, 3) AS g(x) WHERE EXISTS (SELECT FROM generate_series(2, 3) AS h(y) WHERE x = y)",
    "SELECT x FROM generate_series(1, 3) AS g(x) WHERE NOT EXISTS (SELECT FROM (VALUES (2), (2)) AS h(y) "
    "WHERE x >= y GROUP BY y HAVING count(*) > 1)",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT 1 + 1 OFFSET 2 * 2",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT length('abc')",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT CASE WHEN 1 > 2 THEN 1 END OFFSET 7",
)


def test_forms_have_the_values_that_they_have_in_postgres(postgres: Postgres, evaluated: Connection) -> None:
    different = []
    for expression, answer in zip(EXPRESSIONS, postgres.attempt(EXPRESSIONS), strict=True):
        theirs = answer[:6] if answer is not None and answer.startswith("!") else answer
        try:
            ((value,),) = evaluated.execute(f"SELECT ({expression})::text").fetchall()
            ours = None if value is None else f"={value}"
        except Error as error:
            ours = f"!{error.sqlstate}"
        if ours != theirs and (ours, theirs) != ("!0A000", "!42601"):
            different.append(f"{expression}: {ours}, in PostgreSQL {answer}")
    assert not different, "\n".join(different)


def test_limits_may_be_expressions(postgres: Postgres, evaluated: Connection) -> None:
    with postgres.connect() as theirs:
        for query in QUERIES:
            assert evaluated.execute(query).fetchall() == theirs.execute(query).fetchall(), query
