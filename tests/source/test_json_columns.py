"""JSON lines read by columns are what each of them says by itself."""

from __future__ import annotations

import json
import random
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.scalars.types import BOOL, INT4, INT8, JSONB, TEXT, Column, Kind, numeric
from mz_dagster.storage.source.local import json_lines
from mz_dagster.storage.source.local.json_columns import columns_of_json
from tests.budgets import SetBudget

COLUMNS = (Column("id", INT8, False), Column("n", numeric(2)), Column("t", TEXT), Column("i", INT4), Column("b", BOOL))
TEXTS = ["x", "", "é", 'a"b', "\\", "a\nb", "{", "}", "\U0001f600"]
PUT_IN: list[str] = [
    *'{}[]",:\\1.e-\t \n\r\x0b\x00', "NaN", "-Infinity", "null", "\ufeff", "\u2028", '"t":"z",', '"t":null,',
    '{"id":1}', "\\u0000", "\\ud800", "1e999", "00", "true",
]  # fmt: skip


def random_value(dice: random.Random, name: str) -> str:
    if dice.random() < 0.1:
        return "null"
    match name:
        case "t":
            return json.dumps(dice.choice(TEXTS), ensure_ascii=False)
        case "n":
            return dice.choice(["1.5", "1", "-2.25", "0.00", "100"])
        case "b":
            return dice.choice(['"true"', '"f"'])
        case _:
            return str(dice.choice([0, 1, -5, 10**9, 2**40]))


def random_object(dice: random.Random, names: str) -> str:
    members = [f'"{name}": {random_value(dice, name)}' for name in names.split() if dice.random() < 0.95]
    members += ['"other": [1, {"t": 2}]'] if dice.random() < 0.2 else []
    return "{" + ", ".join(members) + "}"


def random_line(dice: random.Random, *, keyed: bool) -> str:
    if not keyed:
        return random_object(dice, "id n t i b")
    key = random_object(dice, "id") if dice.random() < 0.98 else "null"
    value = random_object(dice, "n t i b") if dice.random() < 0.95 else "null"
    return f'{{"key": {key}, "value": {value}}}' if dice.random() < 0.98 else f'{{"key": {key}}}'


def damaged(dice: random.Random, line: str, other: str) -> str:
    place = dice.randrange(len(line) + 1)
    match dice.randrange(4):
        case 0:
            return line[:place] + line[place + 1 :]
        case 1:
            return line[:place] + dice.choice(PUT_IN) + line[place:]
        case 2:
            return line + other
        case _:
            return line[:place] + line[dice.randrange(len(line)) :]


def read(content: bytes, key: tuple[str, ...] | None) -> list[tuple[Any, ...]]:
    """Returns all that is read of lines; numbers by their values, as their texts may have more zeros."""
    return [
        (
            list(one.numbers),
            [list(map(_plain, cells.cast(pa.string()).to_pylist(), [column.type.kind] * len(cells)))
             for cells, column in zip(one.columns, COLUMNS, strict=True)],
            dict(one.malformed), dict(one.value_malformed), set(one.null_keys), set(one.deleted),
            [dict(faults) for faults in one.faults],
        )
        for one in json_lines.cells_of_json([content], COLUMNS, key)
    ]  # fmt: skip


def _plain(text: str | None, kind: Kind) -> object:
    if text is None or kind in (Kind.TEXT, Kind.BOOL):
        return text
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


@pytest.mark.parametrize("seed", range(8))
def test_lines_read_at_once_are_those_read_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    set_budget(lines_at_once=1)
    dice = random.Random(seed)
    at_once = 0

    def counted(*of: Any) -> Any:
        nonlocal at_once
        found = columns_of_json(*of)
        at_once += found is not None
        return found

    for _ in range(120):
        key = dice.choice([None, ("id",)])
        lines = [random_line(dice, keyed=key is not None) for _ in range(dice.choice([1, 2, 20, 30]))]
        for _ in range(dice.choice([0, 0, 1, 3])):
            place = dice.randrange(len(lines))
            lines[place] = damaged(dice, lines[place], dice.choice(lines))
        content = "\n".join(lines).encode()
        monkeypatch.setattr(json_lines, "columns_of_json", counted)
        found = read(content, key)
        monkeypatch.setattr(json_lines, "columns_of_json", lambda *_: None)
        assert found == read(content, key), content
    assert at_once > 30


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1, "other": NaN}',
        '{"id": 1, "t": "\\u0000"}',
        '{"id": 1}{"id": 2}',
        '{"id": 1, "id": 2}',
        '{"id": 1.0}',
        '{"id": 99999999999999999999}',
        '{"id": 1, "t": 5}',
        '{"id": 1, "t": {"a": 1}}',
        '{"id": 1, "n": 1.005}',
        '{"id": 1, "other": ' + "[" * 3000 + "]" * 3000 + "}",
        '["id"]',
        '{"id": 1',
    ],
)
def test_a_line_that_arrow_reads_otherwise_is_read_by_itself(line: str) -> None:
    good = ['{"id": 1, "n": 1.5, "t": "x"}'] * 30
    assert columns_of_json(good, COLUMNS, None) is not None
    assert columns_of_json([*good, line], COLUMNS, None) is None


def test_json_as_it_stands_is_read_line_by_line() -> None:
    assert columns_of_json(['{"j": "x"}'] * 30, [Column("j", JSONB)], None) is None
