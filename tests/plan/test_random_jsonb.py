"""Random JSON, sound and damaged, read, compared, searched and changed as PostgreSQL 15 does it; without Spark."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mz_dagster.functions.jsonb.jsonb import Node, parsed, read, write
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from tests.postgres_server import Postgres

NUMBERS = ["0", "-0", "1", "1.0", "-1", "2.50", "1e2", "1E-2", "10.0", "0.1", "12345678901234567890.5", "-0.00"]
STRINGS = ['""', '"a"', '"b"', '"ab"', '"1"', '"é"', '"\\u00e9"', '"\\n"', '"\\""', '"a.0"', '"\\ud83d\\ude00"']
KEYS = ["a", "b", "", "1", "é", "ab", "-1", "7"]
#: PostgreSQL's expression over jsonbs {a} and {b}, a path {p}, a key {k} and an index {i}, and the function with its
#: arguments.
OPERATIONS = {
    "{a} = {b}": ("eq_jsonb", "ab"),
    "{a} < {b}": ("lt_jsonb", "ab"),
    "{a} >= {b}": ("ge_jsonb", "ab"),
    "{a} @> {b}": ("contains_jsonb", "ab"),
    "{a} || {b}": ("concat_jsonb", "ab"),
    "{a} -> {k}": ("get_jsonb_text", "ak"),
    "{a} ->> {i}": ("get_text_jsonb_int4", "ai"),
    "{a} #> {p}": ("get_jsonb_path", "ap"),
    "{a} #>> {p}": ("get_text_jsonb_path", "ap"),
    "{a} ? {k}": ("has_key_jsonb", "ak"),
    "{a} ?| {p}": ("has_any_key_jsonb", "ap"),
    "{a} ?& {p}": ("has_all_keys_jsonb", "ap"),
    "{a} - {k}": ("subtract_jsonb_text", "ak"),
    "{a} - {i}": ("subtract_jsonb_int4", "ai"),
    "{a} - {p}": ("subtract_jsonb_path", "ap"),
    "{a} #- {p}": ("delete_path_jsonb", "ap"),
    "jsonb_set({a}, {p}, {b})": ("set_jsonb", "apb"),
    "jsonb_insert({a}, {p}, {b})": ("insert_jsonb", "apb"),
    "jsonb_pretty({a})": ("jsonb_pretty", "a"),
    "jsonb_strip_nulls({a})": ("jsonb_strip_nulls", "a"),
}


class Source:
    """Makes random values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, depth: int = 3) -> str:
        """Returns the text of a value."""
        pick = self.random
        kind = pick.random()
        if depth == 0 or kind < 0.45:
            return pick.choice([pick.choice(NUMBERS), pick.choice(STRINGS), "null", "true", "false"])
        space = pick.choice(["", " ", "\n\t"])
        parts = [self.text(depth - 1) for _ in range(pick.randint(0, 3))]
        if kind < 0.72:
            return f"[{space}{f',{space}'.join(parts)}]"
        return "{" + f"{space},".join(f"{pick.choice(STRINGS)}:{space}{one}" for one in parts) + "}"

    def damaged(self) -> str:
        """Returns the text of a value in which a character may be wrong or missing."""
        text = self.text()
        if self.random.random() < 0.7:
            return text
        at = self.random.randrange(len(text))
        wrong = self.random.choice(["", '"', ",", "[", "}", " ", "\\", "x", "0", ".", "-", ":", "\\u0000"])
        return text[:at] + wrong + text[at + self.random.randint(0, 1) :]

    def part(self, node: Node) -> Node:
        """Returns what a value contains, if nothing goes wrong."""
        if isinstance(node, dict):
            return {key: self.part(one) for key, one in node.items() if self.random.random() < 0.6}
        if isinstance(node, list):
            return [self.part(one) for one in self.random.sample(node, len(node)) if self.random.random() < 0.6]
        return node if self.random.random() < 0.9 else None

    def arguments(self) -> dict[str, Any]:
        """Returns values for the letters of `OPERATIONS`."""
        pick = self.random
        a = parsed(self.text())
        b = write(self.part(read(a))) if pick.random() < 0.4 else parsed(self.text())
        path = [pick.choice([*KEYS, None]) for _ in range(pick.randint(0, 3))]
        return {"a": a, "b": b, "p": path, "k": pick.choice(KEYS), "i": pick.randint(-4, 4)}


def quoted(letter: str, value: Any) -> str:
    """Returns a value in SQL."""
    if isinstance(value, list):
        return f"ARRAY[{', '.join('NULL' if one is None else quoted('k', one) for one in value)}]::text[]"
    text = str(value).replace("'", "''")
    return text if letter == "i" else f"'{text}'" + ("::jsonb" if letter in "ab" else "")


def outcome(function: str, *arguments: Any) -> str | None:
    """Returns what a function makes of its arguments, as `Postgres.attempt` shows it."""
    try:
        value = PURE[function](*arguments)
    except SqlFailure as failure:
        return f"!{failure}"
    return None if value is None else f"={str(value).lower() if isinstance(value, bool) else value}"


@pytest.mark.parametrize("count", [200, pytest.param(5000, marks=pytest.mark.deep)])
def test_random_texts_are_read_as_postgres_reads_them(postgres: Postgres, count: int) -> None:
    source = Source(count)
    texts = [source.damaged() for _ in range(count)]
    answers = postgres.attempt([quoted("a", text) for text in texts])
    found = {text: outcome("cast_text_to_jsonb", text) for text in texts}
    assert not [(text, found[text], one) for text, one in zip(texts, answers, strict=True) if found[text] != one]
    assert sum(one is not None and one[0] == "!" for one in answers) > count / 20, "hardly any text is damaged"


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.deep)])
def test_random_values_are_worked_on_as_postgres_does(postgres: Postgres, count: int) -> None:
    source = Source(-count)
    asked: list[str] = []
    found: list[str | None] = []
    for sql, (function, letters) in OPERATIONS.items():
        for _ in range(count):
            values = source.arguments()
            asked.append(sql.format(**{letter: quoted(letter, value) for letter, value in values.items()}))
            found.append(outcome(function, *(values[letter] for letter in letters)))
    answers = postgres.attempt(asked)
    wrong = [(one, ours, theirs) for one, ours, theirs in zip(asked, found, answers, strict=True) if ours != theirs]
    assert not wrong, wrong[:20]


def test_no_value_is_nested_deeper_than_recursion_goes() -> None:
    deepest = "[" * 200 + "]" * 200
    assert outcome("cast_text_to_jsonb", deepest) == f"={deepest}"
    for function in ("jsonb_pretty", "jsonb_strip_nulls", "ordered_jsonb", "comparable_jsonb", "jsonb_array_elements"):
        assert (outcome(function, deepest) or "").startswith("=")
    limit = "!54001 stack depth limit exceeded"
    for text in (f"[{deepest}]", "[" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000):
        assert outcome("cast_text_to_jsonb", text) == limit
    assert outcome("jsonb_build_array", deepest) == limit
    assert outcome("jsonb_build_object", "a", deepest) == limit
    assert outcome("concat_jsonb", "1", '{"a": ' * 200 + "1" + "}" * 200) == limit
    assert outcome("set_jsonb", "[[0]]", ["0", "0"], deepest) == limit
    assert outcome("insert_jsonb", "[[0]]", ["0", "0"], deepest) == limit
