"""Number literals, signed and beside others without a space, are PostgreSQL's: value, whether integers, and errors."""

from __future__ import annotations

import random
from decimal import Context, Decimal
from pathlib import Path

import psycopg
import pytest

import mz_dagster
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.literals import literal_of
from mz_dagster.scalars.types import FLOAT8, numeric
from tests.postgres_server import Postgres

_EXACT = Context(prec=200)
#: Once read as one number with what follows, or as integers.
KNOWN = [
    "1.5e4+1", "1.5e4-1.5e4", "5.e4+1", ".5e4+1", "1e4--1\n+1", "1e4.5", "1e4 2", "1.5.2", "1..2", "1e", "1e+", "1e4e4",
    "-1e1/4", "-7./2", "-7/2", "- -7e0/2", "-2147483648/3", "-2147483649/2", "-9223372036854775808/3",
    "1 IN (1e0+0, 2)", "2147483648-1e0", "-9223372036854775809+1",
    "-123456789012345678901234567889", "- 12345678901234567890123456789012345678",
    "1 - -123456789012345678901234567.25", "-0.1234567890123456789012345678901234",
    "width_bucket(-1234567890123456789012345678901, 0, -2e30, 1000000000)",
    "0.1234567890123456789012345678901 < 0.12345678901234567890123456789",
    "1.5000001192092895507812500000001::float4::float8",
]  # fmt: skip


def a_number(draw: random.Random) -> str:
    whole, part = str(draw.choice((0, 1, 7, 42, 2147483648, 9223372036854775807))), str(draw.randrange(100))
    mantissa = draw.choice((whole, f"{whole}.", f".{part}", f"{whole}.{part}"))
    exponent = f"{draw.choice('eE')}{draw.choice(('', '+', '-'))}{draw.randrange(8)}"
    return mantissa + draw.choice(("", exponent))


def an_expression(draw: random.Random) -> str:
    """Returns numbers between operators, with spaces or without, and at times junk; or one of many digits."""
    if draw.random() < 0.1:
        digits = draw.randrange(1, 10**38)
        point = draw.randrange(1, len(str(digits)))
        return draw.choice(("-", "", "- -", "-+")) + f"{str(digits)[:point]}.{str(digits)[point:]}"
    text = draw.choice(("", "-", "+", "- ")) + a_number(draw)
    for _ in range(draw.randrange(1, 4)):
        joint = draw.choice(("+", "-", "*", " + ", "+-", "- -", " - ", "+(", ",", "<"))
        text += joint + a_number(draw) + (")" if joint.endswith("(") else "")
    return text + draw.choice(("", "", "", "", "x", "e", ".1", "::numeric"))


def found(
    cursor: mz_dagster.Cursor | psycopg.Cursor[tuple[object, ...]], query: str
) -> list[tuple[object, type]] | str:
    """Returns the cells of a row and whether each is a whole number's; or that there is an error."""
    try:
        cursor.execute(query)
        (row,) = cursor.fetchall()
    except (mz_dagster.Error, psycopg.Error):
        return "error"
    return [(one, type(one)) if not isinstance(one, Decimal) else (one.normalize(_EXACT), Decimal) for one in row]


def test_numbers_are_read_as_postgresql_reads_them(postgres: Postgres, tmp_path: Path) -> None:
    compare(postgres, tmp_path, 250)


@pytest.mark.deep
def test_many_numbers_are_read_as_postgresql_reads_them(postgres: Postgres, tmp_path: Path) -> None:
    compare(postgres, tmp_path, 20_000)


def compare(postgres: Postgres, folder: Path, count: int) -> None:
    draw = random.Random(25)
    expressions = [*KNOWN, *(an_expression(draw) for _ in range(count))]
    with mz_dagster.connect(folder) as ours, postgres.connect() as theirs:
        one, other = ours.cursor(), theirs.cursor()
        for expression in expressions:
            query = f"SELECT {expression}"
            own, wanted = found(one, query), found(other, query)
            assert own == wanted or (own == "error" and is_too_long(wanted)), query


def is_too_long(cells: list[tuple[object, type]] | str) -> bool:
    """Returns whether a cell is a numeric of more digits than there are here."""
    return not isinstance(cells, str) and any(
        isinstance(one, Decimal) and len(one.as_tuple().digits) > 38 for one, _ in cells
    )


@pytest.mark.timeout(20)
def test_long_digits_that_are_no_number_are_told_at_once() -> None:
    for type_ in (numeric(2), FLOAT8):
        assert isinstance(literal_of("0" * 200_000 + "x", type_), Failure)
