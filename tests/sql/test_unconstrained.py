"""Numerics without a scale are PostgreSQL's, value and digits; without Spark."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.functions.numbers import unconstrained, unconstrained_functions, unconstrained_sums
from mz_dagster.functions.registry import SqlFailure
from tests.adapter.stories.unconstrained import UNCONSTRAINED as STORY
from tests.opened import Connect
from tests.postgres_server import Postgres

#: What is asked of the story's table; all of it is worked out in this process.
QUERIES = [
    "SELECT id, a, b, f FROM amounts ORDER BY id",
    "SELECT id, a::text, b::text FROM amounts ORDER BY a DESC NULLS LAST, b, id",
    "SELECT id, (a + 1)::text, (a * b)::text, round(a, g)::text, (a % 7)::text, (a / nullif(b, 0))::text, scale(a),"
    " trim_scale(b)::text, greatest(a, b, g)::text, coalesce(b, 0.5)::text, a IS DISTINCT FROM b,"
    " cast(t AS numeric) < a, a BETWEEN -5 AND 1e30 FROM amounts ORDER BY id",
    "SELECT id FROM amounts WHERE a IN (1, 'NaN', 2.5) ORDER BY id",
    "SELECT 12345678901234567890 / 123, 1e40 * 1.5, 3.14159265358979323846264338327950288419716939937510::text,"
    " 2 ^ 200.0, 1 / 3e30, 'NaN'::numeric = 'nan'::numeric, '-inf'::numeric, -1e-39, '-1e-39'::numeric < 0.0,"
    " coalesce(0.5, '123e-40'), 2e38::float8, float8(2), '{1.5,NaN}'::numeric[], 0.5 + '1e-39'",
]


def told(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Returns rows in which numbers are texts, so that their digits count, and NaN equals itself."""

    def text(cell: Any) -> Any:
        if isinstance(cell, list):
            return [text(one) for one in cell]
        return f"{cell:f}" if isinstance(cell, Decimal) else str(cell) if isinstance(cell, float) else cell

    return [tuple(map(text, row)) for row in rows]


def test_rows_are_those_of_postgres(postgres: Postgres, tmp_path: Path, connect: Connect) -> None:
    cursor = connect(tmp_path).cursor()
    with postgres.new_database().connect() as referee:
        for statement in (STORY.table, STORY.writes[0], STORY.writes[1], STORY.writes[2]):
            cursor.execute(statement)
            referee.execute(statement.encode())
        for query in QUERIES:
            found, wanted = cursor.execute(query).fetchall(), referee.execute(query.encode()).fetchall()
            assert told(found) == told(wanted), query


def test_parameters_keep_their_digits(tmp_path: Path, connect: Connect) -> None:
    cursor = connect(tmp_path).cursor()
    cursor.execute("CREATE TABLE kept (a numeric)")
    values = [Decimal("1.500"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1e45"), Decimal("-1.5e-45"), None, 7]
    cursor.executemany("INSERT INTO kept VALUES (?)", [(one,) for one in values])
    found = {str(row[0]) for row in cursor.execute("SELECT a FROM kept").fetchall()}
    wanted = {"1.500", "NaN", "-Infinity", "1" + 45 * "0", "-1.5E-45", "None", "7"}
    assert found == wanted
    assert cursor.description is not None
    assert cursor.description[0][1] == "numeric"


def test_sums_are_exact_whatever_comes_and_goes() -> None:
    chance = random.Random(1)
    for _ in range(200):
        values = [
            f"{Decimal(chance.randint(-(10**30), 10**30)).scaleb(-chance.randint(0, 25)):f}"
            for _ in range(chance.randint(1, 8))
        ]
        sums: dict[int, int] = {}
        for value in values:
            for place, digits in zip(
                unconstrained_sums.sum_places(value), unconstrained_sums.sum_digits(value), strict=True
            ):
                sums[place] = sums.get(place, 0) + digits
        wanted = Decimal(0)
        for value in values:
            wanted = unconstrained.EXACT.add(wanted, Decimal(value))
        assert unconstrained_sums.total([*sums], [*sums.values()]) == unconstrained.text_of(wanted)


def test_the_order_of_bytes_is_that_of_numbers() -> None:
    chance = random.Random(2)
    texts = ["NaN", "Infinity", "-Infinity", "0", "0.00", "1", "1.0"]
    texts += [f"{Decimal(chance.randint(-999, 999)).scaleb(chance.randint(-30, 30)):f}" for _ in range(100)]
    texts = [unconstrained.of_text(one) for one in texts]
    for left in texts:
        for right in texts:
            less = unconstrained.less(left, right)
            assert (unconstrained.order(left) < unconstrained.order(right)) is less
            equal = unconstrained.equal(left, right)
            assert (unconstrained.comparable(left) == unconstrained.comparable(right)) is equal
        assert unconstrained.restored(unconstrained.ordered(left)) == left


def test_what_has_too_many_digits_is_an_error() -> None:
    with pytest.raises(SqlFailure, match="22003 value overflows numeric format"):
        unconstrained_functions.multiply("1" + 100_000 * "0", "1" + 100_000 * "0")
