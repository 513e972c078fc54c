"""Numerics too small for their scale have PostgreSQL's digits or are an error, never zeros; without Spark.

Of literals, which are known when a query is bound, what does not fit a scale has none.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import mz_dagster
from mz_dagster.functions.errors import NUMERIC_UNDERFLOW
from tests.opened import Connect
from tests.postgres_server import Postgres

EXPRESSIONS = [
    "12.3 ^ (-45.6)", "32.1 ^ (-9.8)", "7.5 ^ -12.25", "2.0 ^ (-50)", "10.0 ^ (-17)", "0.0 ^ 2.0", "12.3 ^ 0.5",
    "exp(-30.5)", "exp(-40.0)", "exp(-100.1)", "exp(-7000.0)", "exp(2.5)", "sqrt(2e-30)", "1.0 / 1e17", "0.0 / 7",
    "sqrt(0.00000000000000000002)", "ln(1.00000000000001)", "log(1.00000000000001)", "log(2.0, 1.0000000001)",
    "1.0 / 3e10", "1 / 3e18", "-1 / 3e18", "1 / 7.0", "2.0 / 3",
]  # fmt: skip
#: Bases with exponents, or dividends with divisors; of columns nothing is known but their scale.
PAIRS = [
    ("12.3", "-45.6"), ("32.1", "-9.8"), ("2", "0.5"), ("1", "30000000000000000000"), ("1", "30000"), ("7.5", "-8.5"),
    ("0", "7.5"), ("1", "10000000000000000"), ("-1", "30000000000000000000"), ("1.5", "200000000000"),
]  # fmt: skip
UNDERFLOW = NUMERIC_UNDERFLOW.partition(" ")[2]
#: The scales of `power` and `/` over columns, and the digits that are left of what is cut off.
SCALES = {"^": 16, "/": 20}
LEAST = 6


def said(cursor: mz_dagster.Cursor, query: str) -> list[Decimal] | str:
    try:
        cursor.execute(query)
        return [row[0] for row in cursor.fetchall()]
    except mz_dagster.Error as error:
        return error.message


def test_literals_have_the_digits_of_postgres(postgres_server: Postgres, tmp_path: Path, connect: Connect) -> None:
    cursor = connect(tmp_path).cursor()
    wanted = [Decimal(str(one)[1:]) for one in postgres_server.attempt(EXPRESSIONS)]
    found = [said(cursor, f"SELECT {one}") for one in EXPRESSIONS]
    assert found == [[value] for value in wanted]


@pytest.mark.parametrize("operator", ["^", "/"])
def test_columns_keep_digits_or_fail(
    postgres_server: Postgres, tmp_path: Path, connect: Connect, operator: str
) -> None:
    cursor = connect(tmp_path).cursor()
    cursor.execute("CREATE TABLE t (a numeric(38,1), b numeric(38,1))")
    scale = SCALES[operator]
    theirs = postgres_server.attempt([f"({a}::numeric {operator} {b}::numeric)" for a, b in PAIRS])
    failed = cut = 0
    for (a, b), one in zip(PAIRS, theirs, strict=True):
        assert one is not None
        cursor.execute("DELETE FROM t")
        cursor.execute("INSERT INTO t VALUES (?, ?)", (Decimal(a), Decimal(b)))
        found = said(cursor, f"SELECT a {operator} b FROM t")
        if one.startswith("!"):
            assert isinstance(found, str)
        elif found == UNDERFLOW:
            failed += 1
            assert Decimal(0) < abs(Decimal(one[1:])) < Decimal(1).scaleb(LEAST - scale)
        else:
            assert isinstance(found, list)
            cut += found[0] != Decimal(one[1:])
            assert abs(found[0] - Decimal(one[1:])) <= Decimal(1).scaleb(-scale) / 2
            assert found[0] == Decimal(one[1:]) or abs(found[0]) >= Decimal(1).scaleb(LEAST - 1 - scale)
    assert failed
    assert cut
