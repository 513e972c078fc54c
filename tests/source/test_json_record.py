"""JSON lines, sound and damaged, say what PostgreSQL's `->>` says of them; without Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mz_dagster.scalars.types import INT4, JSONB, TEXT, Column
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.json_record import reader
from tests.postgres_server import Postgres
from tests.source.landing import bind, drop, records
from tests.source.mutations import mutated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SURROGATE = "22P02 invalid input syntax for type json"
#: A member of an object, and the text of its value, or the error.
MEMBERS = [
    (r'"\uffff12"', "\uffff12"),
    ('"\uffff12"', "\uffff12"),
    (r'{"a":"\uffff3"}', r'{"a":"\uffff3"}'),
    ('{"a" :  "\uffff3", "a": 1e5}', '{"a" :  "\uffff3", "a": 1e5}'),
    (r'"\ud800"', "!" + SURROGATE),
    (r'"\udc00x"', "!" + SURROGATE),
    (r'"\ud800\ud800"', "!" + SURROGATE),
    (r'"\ud834\udd1e"', "\U0001d11e"),
    (r'"a\u0000"', "!22P05 unsupported Unicode escape sequence"),
    (r'{"x": "\ud800"}', r'{"x": "\ud800"}'),
    (r'"\\ud800"', r"\ud800"),
    ('"?"', "?"),
    ("-0", "-0"),
    ("1E+400", "1E+400"),
    ("[1 ,\t2]", "[1 ,\t2]"),
    ("true", "true"),
    ('"true"', "true"),
    ("null", None),
    ('""', ""),
    ("[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
]
#: Lines that are no JSON, or no object.
MALFORMED = ["NaN", '{"a": NaN}', '{"a": [Infinity]}', '{"a": -Infinity}', '{"a": 1', "[]", '"a"', '{"a": "\t"}', "{}}"]
#: The errors that PostgreSQL may say in other words.
CODES = 6


def test_members_are_texts_as_they_stand(postgres_server: Postgres) -> None:
    read = reader(["a"], ["text"], None)
    for text, wanted in MEMBERS:
        _, _, _, _, cells, faults, _ = read(f'{{"b": 1, "a": {text}, "c": "\\ud800"}}')
        assert cells is not None
        found = f"!{faults[0]}" if faults else cells[0]
        assert found == wanted, text
    # PostgreSQL looks at all strings of the line, also at those of other members and of what is nested.
    alone = [(text, wanted) for text, wanted in MEMBERS if text[0] != "{"]
    said = postgres_server.attempt([f"$j${{\"a\": {text}}}$j$::json ->> 'a'" for text, _ in alone])
    shown = [one if one is None or one.startswith("!") else f"={one}" for _, one in alone]
    assert [verdict(one) for one in said] == [verdict(one) for one in shown]


def verdict(said: str | None) -> str | None:
    """Returns what the referee says, of an error its code."""
    return said[:CODES] if said is not None and said.startswith("!") else said


@pytest.mark.parametrize("line", MALFORMED)
def test_what_is_no_object_is_malformed(line: str) -> None:
    for read in (reader(["a"], ["json"], None), reader(["a"], ["text"], None), reader(["a"], ["json"], ["a"])):
        assert read(line) == (
            f'22P02 invalid input syntax for type json: "{line}"',
            None,
            True,
            False,
            None,
            None,
            None,
        )


def test_nesting_that_no_jsonb_holds_is_an_error() -> None:
    for depth in (202, 5_000, 200_000):
        malformed, *_ = reader(["a"], ["json"], None)('{"a": ' + "[" * depth + "]" * depth + "}")
        assert malformed == "54001 stack depth limit exceeded"


def test_damaged_lines_say_what_postgres_says(postgres_server: Postgres) -> None:
    rng = random.Random(20)
    sound = [f'{{"a": {text}, "b": {{"a": "\\u00e9", "c": [1.5e3, null]}}}}' for text, _ in MEMBERS[:-1]]
    lines: list[str] = []
    while len(lines) < 3_000:
        try:
            line = mutated(rng, rng.choice(sound).encode()).decode()
        except UnicodeDecodeError:
            continue
        if "\0" not in line and "\n" not in line and "$j$" not in line:
            lines.append(line)
    typed = postgres_server.attempt([f"json_typeof($j${line}$j$)" for line in lines])
    texts = postgres_server.attempt([f"$j${line}$j$::json ->> 'a'" for line in lines])
    read = reader(["a"], ["text"], None)
    malformed_too = faulty_too = 0
    for line, type_, text in zip(lines, typed, texts, strict=True):
        malformed, _, _, _, cells, faults, _ = read(line)
        assert (malformed is None) == (type_ == "=object"), line
        if cells is None:
            malformed_too += 1
        elif faults:
            faulty_too += 1
            assert verdict(text) == verdict(f"!{faults[0]}"), line
        elif text is None or text[0] == "=" or "\\u" not in line:
            assert text == (None if cells[0] is None else f"={cells[0]}"), line
    assert faulty_too > 50
    assert 300 < malformed_too < 2_700


@pytest.mark.deep
def test_spark_reads_lines_so(spark: SparkSession, tmp_path: Path) -> None:
    """The same texts through a source, for a row and for a key with its value; NaN is an error under the NULL key."""
    columns = (Column("k", INT4), Column("a", TEXT), Column("j", JSONB))
    rows = [f'{{"k": {i}, "a": {text}}}' for i, (text, _) in enumerate(MEMBERS)]
    upserts = [f'{{"key": {{"k": {i}}}, "value": {{"a": {text}}}}}' for i, (text, _) in enumerate(MEMBERS)]
    for key, lines in ((None, rows), (("k",), upserts)):
        source = FileSource(InFolder(tmp_path), "*", "json", columns, key, "upsert" if key else "none")
        found = records(spark, source, bind({1: [drop(tmp_path, "a", "\n".join(lines))]}))
        for i, ((_, _, row, deleted, error, k, a, j), (_, wanted)) in enumerate(zip(found, MEMBERS, strict=True)):
            place = f' (file "a", line {i + 1}, column "a")'
            failed = wanted is not None and wanted.startswith("!")
            assert (row, deleted, j) == (i + 1, False, None)
            assert error == (f"{wanted[1:]}{place}" if failed and wanted else None)
            assert (k, a) == (i if key or not failed else None, None if failed else wanted)
    damaged = ['{"key": {"k": 1}, "value": {"j": NaN}}', '{"key": {"k": 1}, "value": {"j": 1}}', *MALFORMED, "a\0"]
    source = FileSource(InFolder(tmp_path), "*", "json", columns, ("k",), "upsert")
    found = records(spark, source, bind({1: [drop(tmp_path, "a", "\n".join(damaged))]}))
    errors = [(row, error, k, j) for _, _, row, _, error, k, _, j in found]
    syntax = '22P02 invalid input syntax for type json: "{1}" (file "a", line {0})'
    assert errors == [
        (1, syntax.format(1, damaged[0]), None, None),
        (2, None, 1, "1"),
        *((i, syntax.format(i, line), None, None) for i, line in enumerate(MALFORMED, 3)),
        (len(damaged), f'22021 invalid byte sequence for encoding "UTF8" (file "a", line {len(damaged)})', None, None),
    ]
