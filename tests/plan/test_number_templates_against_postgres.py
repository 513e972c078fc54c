"""`to_char` of numbers with random templates shows what PostgreSQL shows; `to_number` reads what it reads."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from decimal import Decimal

import pytest

from mz_dagster.functions.numbers import number_templates
from mz_dagster.functions.numbers.number_reading import number_by_template, scale_of_template
from mz_dagster.functions.registry import SqlFailure
from tests.postgres_server import Postgres

_PIECES = ["9", "0", ",", ".", "9", "FM", "S", "MI", "PL", "SG", "PR", "TH", "th", "G", "D", "L", '"a"', "b", " ", "x"]
_WHOLE = ["0", "1", "-1", "12", "-12", "485", "-485", "1234567"]
_BROKEN = ["0.5", "-0.5", "0.001", "1234.567", "99.995", "-0.004"]
#: (type, value, template)
Case = tuple[str, str, str]


def template(pick: random.Random) -> str:
    if pick.random() < 0.5:
        return "".join(pick.choice(_PIECES) for _ in range(pick.randint(0, 7)))
    before = "".join(pick.choice("99990,G") for _ in range(pick.randint(1, 6)))
    after = pick.choice(["", "", ".", "D99", "." + "".join(pick.choice("990") for _ in range(3))])
    prefix = pick.choice(["", "FM", "FM", "S", "MI", "PL", "SG", "L", '"x"', "$"])
    return prefix + before + after + pick.choice(["", "", "S", "MI", "PL", "SG", "PR", "th", "TH", " x"])


def cases(seed: int, templates: int) -> Iterator[Case]:
    pick = random.Random(seed)
    for _ in range(templates):
        text = template(pick)
        for _ in range(3):
            kind = pick.choice(["numeric(38,3)", "integer", "bigint", "double precision", "real"])
            whole = kind in ("integer", "bigint") or pick.random() < 0.5
            yield kind, pick.choice(_WHOLE if whole else _BROKEN), text


def ours(case: Case) -> str:
    kind, value, text = case
    try:
        match kind:
            case "numeric(38,3)":
                return "=" + number_templates.numeric_text(Decimal(value).quantize(Decimal("0.001")), text)
            case "double precision":
                return "=" + number_templates.float8_text(float(value), text)
            case "real":
                (single,) = struct.unpack("f", struct.pack("f", float(value)))
                return "=" + number_templates.float4_text(single, text)
            case _:
                return "=" + number_templates.integer_text(int(value), text)
    except SqlFailure as failure:
        return f"!{failure}"


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_shown_as_postgres_shows_them(postgres: Postgres, seed: int) -> None:
    every = list(cases(seed, 1000))
    answers = postgres.attempt([f"to_char('{value}'::{kind}, '{text}')" for kind, value, text in every])
    wrong = [
        f"{case}: {mine!r}, PostgreSQL {theirs!r}"
        for case, mine, theirs in zip(every, map(ours, every), answers, strict=True)
        if mine != theirs and not mine.startswith("!0A000")
    ]
    assert not wrong, f"{len(wrong)} of {len(every)} differ:\n" + "\n".join(wrong[:20])


_TEXT_PIECES = [*"01234567899", ".", ",", "-", "+", " ", "<", ">", "$", "x", "th"]


def number_read(text: str, template: str) -> Decimal | str | None:
    try:
        return number_by_template(text, template, scale_of_template(template))
    except SqlFailure as failure:
        return f"!{failure}"


def test_numbers_are_read_as_postgres_reads_them(postgres: Postgres) -> None:
    pick = random.Random(7)
    every = [
        tuple("".join(pick.choice(pieces) for _ in range(pick.randint(0, 7))) for pieces in (_TEXT_PIECES, _PIECES))
        for _ in range(1500)
    ]
    answers = postgres.attempt([f"to_number('{text}', '{template}')" for text, template in every])
    wrong = []
    for (text, template), theirs in zip(every, answers, strict=True):
        mine = number_read(text, template)
        expected = Decimal(theirs[1:]) if theirs is not None and theirs.startswith("=") else theirs
        if mine != expected and not str(mine).startswith("!0A000"):
            wrong.append(f"to_number('{text}', '{template}'): {mine!r}, PostgreSQL {theirs!r}")
    assert not wrong, f"{len(wrong)} of {len(every)} differ:\n" + "\n".join(wrong[:20])
