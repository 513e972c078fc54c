"""A column of jsonb or json takes any JSON exactly: in CSV and Parquet its text, in JSON lines the value itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.scalars.types import INT4, JSON, JSONB, Column
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Format = Literal["json", "csv", "parquet"]
COLUMNS = (Column("k", INT4, nullable=False), Column("j", JSONB))
#: The text of a value, and its canonical text, or the error.
VALUES = [
    ('{"bb": 1e2, "a": [1.50, -0], "bb": 3}', '{"a": [1.50, 0], "bb": 3}'),
    ('"text, \\u00e9 \\" 1e2"', '"text, é \\" 1e2"'),
    ("true", "true"),
    ('"true"', '"true"'),
    ("12345678901234567890.123456789012345678901234567890", "12345678901234567890.123456789012345678901234567890"),
    ("[]", "[]"),
    ('"\\ud83d\\ude00"', '"😀"'),
    ('{"x": "\\u0000"}', "!22P05 unsupported Unicode escape sequence"),
    ('["\\ud83d"]', "!22P02 invalid input syntax for type json"),
    ("1e131072", "!22003 value overflows numeric format"),
]


def expected(unit: str = "line", first: int = 1) -> list[tuple[int, str | None, str | None]]:
    """Returns for each value its number, the value and the error of the record."""
    found: list[tuple[int, str | None, str | None]] = []
    for number, (_, value) in enumerate(VALUES):
        place = f' (file "f", {unit} {number + first}, column "j")'
        found.append((number, None, value[1:] + place) if value[0] == "!" else (number, value, None))
    return found


def read(spark: SparkSession, folder: Path, format_: Format, *, upsert: bool = False) -> list[tuple[int, str, str]]:
    """Returns the number of each record, its value and its error."""
    ensure_exact(spark)
    source = FileSource(InFolder(folder), "f", format_, COLUMNS, *((("k",), "upsert") if upsert else ()))
    found = records(spark, source, bind({1: [drop(folder, "f", (folder / "f").read_bytes())]}))
    return [(row if k is None else k, j, error) for row, (_, _, _, _, error, k, j) in enumerate(found)]


@pytest.mark.deep
def test_json_lines_hold_jsonb_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    drop(tmp_path, "f", "\n".join(f'{{"k": {i}, "j": {text}}}' for i, (text, _) in enumerate(VALUES)))
    assert read(spark, tmp_path, "json") == expected()


def test_json_upserts_hold_jsonb_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{{"value": {{"j": {text}}}, "key": {{"k": {i}}}}}' for i, (text, _) in enumerate(VALUES)]
    lines += ['{"value": {"j": null}, "key": {"k": 90}}', '{"value": {}, "key": {"k": 91}}']
    drop(tmp_path, "f", "\n".join(lines))
    assert read(spark, tmp_path, "json", upsert=True) == [*expected(), (90, None, None), (91, None, None)]


def test_csv_and_parquet_hold_the_text_of_jsonb(spark: SparkSession, tmp_path: Path) -> None:
    rows = ['{},"{}"'.format(i, text.replace('"', '""')) for i, (text, _) in enumerate(VALUES)]
    drop(tmp_path, "f", "\n".join(["k,j", *rows, "90,"]))
    assert read(spark, tmp_path, "csv") == [*expected(first=2), (90, None, None)]
    table = pa.table({"k": pa.array(range(len(VALUES)), pa.int32()), "j": [text for text, _ in VALUES]})
    pq.write_table(table, tmp_path / "f")
    assert read(spark, tmp_path, "parquet") == expected("row")


def test_a_json_is_the_text_that_a_file_holds(spark: SparkSession, tmp_path: Path) -> None:
    ensure_exact(spark)
    texts = ['{"b":  1e2,"a":[1.50 ], "b" : 3}', '"\\u0000"', '["\\ud83d"]', "true"]
    drop(tmp_path, "f", "\n".join([*(f'{{"j": {text} , "k": {i}}}' for i, text in enumerate(texts)), '{"k": 9}']))
    columns = (Column("k", INT4, nullable=False), Column("j", JSON))
    bound = bind({1: [drop(tmp_path, "f", (tmp_path / "f").read_bytes())]})
    found = records(spark, FileSource(InFolder(tmp_path), "f", "json", columns), bound)
    assert [row[-2:] for row in found] == [*enumerate(texts), (9, None)]
    lines = ['{},"{}"'.format(i, text.replace('"', '""')) for i, text in enumerate([*texts, "{a}"])]
    bound = bind({1: [drop(tmp_path, "f", "\n".join(["k,j", *lines]))]})
    found = records(spark, FileSource(InFolder(tmp_path), "f", "csv", columns), bound)
    assert [row[-2:] for row in found if row[4] is None] == [*enumerate(texts)]
    assert [row[4] for row in found if row[4] is not None] == [
        '22P02 invalid input syntax for type json (file "f", line 6, column "j")'
    ]
