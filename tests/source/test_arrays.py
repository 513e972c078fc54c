"""Columns of arrays: of Parquet in element types whose every value fits, of texts as PostgreSQL reads them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from mz_dagster.functions.arrays.arrays import array_text, dimensioned_text, has_dimensions
from mz_dagster.scalars.types import (
    DATE,
    INT4,
    INT8,
    JSONB,
    TEXT,
    TIMESTAMPTZ,
    Column,
    Kind,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
)
from mz_dagster.scalars.values import moment_of
from mz_dagster.sql import parse
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.plain_cells import plain_cells
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.parquet_schema import read_schema
from tests.postgres_server import Postgres
from tests.source.landing import bind, drop, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_arrays_are_read_from_parquet_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": pa.array([1, 2, 3], pa.int32()),
            "n": pa.array([[1, None, 3], [], None], pa.list_(pa.int32())),
            "t": pa.array([["a", ""], [None], []], pa.large_list(pa.string())),
            "p": pa.array([[Decimal("1.5")], [Decimal("-0.1"), None], None], pa.list_(pa.decimal128(10, 1))),
        }
    )
    pq.write_table(table, tmp_path / "f")
    types = {"k": INT4, "n": array_of(INT8), "t": array_of(TEXT), "p": array_of(numeric(2))}
    source = FileSource(InFolder(tmp_path), "f", "parquet", tuple(Column(name, type_) for name, type_ in types.items()))
    found = records(spark, source, bind({1: [drop(tmp_path, "f", (tmp_path / "f").read_bytes())]}))
    assert [record[4:] for record in found] == [
        (None, 1, [1, None, 3], ["a", ""], [Decimal("1.50")]),
        (None, 2, [], [None], [Decimal("-0.10"), None]),
        (None, 3, None, [], None),
    ]


def test_moments_beyond_the_years_that_there_are_make_their_row_an_error(spark: SparkSession, tmp_path: Path) -> None:
    far = pa.array([2**31 - 1, None, 0], pa.int32()).cast(pa.date32())
    micros = pa.array([2**61, None, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    lists = [pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), one) for one in (far, micros)]
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), lists[0])
    types = {"d": array_of(DATE), "t": array_of(TIMESTAMPTZ), "n": dimensioned(DATE)}
    for (name, type_), cells in zip(types.items(), (*lists, nested), strict=True):
        pq.write_table(pa.table({"k": [1, 2, 3], name: cells}), tmp_path / name)
        source = FileSource(InFolder(tmp_path), name, "parquet", (Column("k", INT8), Column(name, type_)))
        found = records(spark, source, bind({1: [drop(tmp_path, name, (tmp_path / name).read_bytes())]}))
        word = "date" if name != "t" else "timestamp"
        assert [record[4] for record in found] == [
            f'22008 {word} out of range (file "{name}", row 1, column "{name}")', None, None,
        ]  # fmt: skip


def test_a_decimal_of_more_digits_than_its_type_makes_its_row_an_error(tmp_path: Path) -> None:
    digits = (10**38).to_bytes(16, "little") + (15).to_bytes(16, "little")
    cells = pa.Array.from_buffers(pa.decimal128(38, 2), 2, [None, pa.py_buffer(digits)])
    pq.write_table(pa.table({"n": cells}), tmp_path / "f")
    source = FileSource(InFolder(tmp_path), "f", "parquet", (Column("n", numeric(2)),))
    found = source.read_here(bind({1: [drop(tmp_path, "f", (tmp_path / "f").read_bytes())]}))
    assert found.column("n").to_pylist() == [None, Decimal("0.15")]
    assert found.column("mz_error").to_pylist() == [
        '22003 numeric field overflow (file "f", row 1, column "n")', None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("physical", "declared"),
    [
        (pa.list_(pa.int64()), INT4),
        (pa.list_(pa.decimal128(10, 3)), numeric(2)),
        (pa.list_(pa.decimal128(38, 2)), numeric(4)),
        (pa.list_(pa.list_(pa.int32())), INT4),
        (pa.int32(), INT4),
    ],
)
def test_elements_that_might_not_fit_are_refused(tmp_path: Path, physical: pa.DataType, declared: ScalarType) -> None:
    pq.write_table(pa.table({"n": pa.array([None], physical)}), tmp_path / "f")
    with pytest.raises(SourceUnreadable) as caught:
        read_schema(tmp_path, "f", [Column("n", array_of(declared))])
    assert caught.value.detail is not None
    assert f"not readable as {array_of(declared)}" in caught.value.detail


#: What columns `integer[]`, `integer[][]`, `text[][]`, `date[]` and `jsonb[][]` may have, as JSON.
CELLS = (
    *(
        "null",
        "[]",
        "[1, 2]",
        "[null]",
        "[[1,2],[3,4]]",
        "[[], []]",
        "[[[1]],[[2]]]",
        "[[1],[2,3]]",
        "[1,[2]]",
        "[[1],2]",
    ),
    *(
        "[[1],null]",
        "[[1],[null]]",
        "[[],[1]]",
        "[[[]]]",
        '"{1,2}"',
        '"{{1,NULL}, {3,4}}"',
        '"[0:1]={5,6}"',
        '"{1,{2}}"',
    ),
    *(
        '"[1,2]"',
        "5",
        "true",
        '{"a": 1}',
        '["1", "x"]',
        '["a b", "NULL", null, "", "{q,\\"", "\\\\"]',
        "[1.5]",
        "[1e2]",
    ),
    *(
        '[{"a":  [1]}, "s"]',
        '[["x"], [{"b": 2}]]',
        '["2024-02-29", null]',
        '["2024-02-30"]',
        '["\\u0000"]',
        '["\\ud800"]',
    ),
    *("[[[[[[[1]]]]]]]", "[99999999999]", "[true]", '[["a",["b"]],["c","d"]]', '["infinity"]', '" {1 , 2 } "', '""'),
)
TYPES = (array_of(INT4), dimensioned(INT4), dimensioned(TEXT), array_of(DATE), dimensioned(JSONB))
#: What PostgreSQL's column of lists takes, and ours of one dimension does not.
BEYOND_LISTS = "0A000"


def shown(cell: Any, type_: ScalarType) -> str:
    """Returns PostgreSQL's text of an array in its plain form."""
    elements, *shape = (cell,) if type_.kind is Kind.ARRAY else cell
    is_dates = type_.array_element == DATE
    texts = [None if one is None else str(moment_of(one, Kind.DATE) if is_dates else one) for one in elements]
    return dimensioned_text(texts, *shape) if shape else array_text(texts)


def test_arrays_of_texts_are_those_of_postgres(postgres: Postgres, tmp_path: Path) -> None:
    """Of JSON what `json_populate_record` makes of it, of CSV what its text is."""
    different = []
    with postgres.new_database().connect() as theirs:
        theirs.autocommit = True
        formats: tuple[Format, ...] = ("json", "csv")
        for format_, type_ in product(formats, TYPES):
            theirs.execute(f"DROP TYPE IF EXISTS r; CREATE TYPE r AS (a {type_})".encode())
            quoted = ['"' + cell.replace('"', '""') + '"' for cell in CELLS]
            lines = [f'{{"a": {cell}}}' for cell in CELLS] if format_ == "json" else ["a", *quoted]
            file = drop(tmp_path, "f", "\n".join(lines))
            found = FileSource(InFolder(tmp_path), "f", format_, (Column("a", type_),)).read_here(bind({1: [file]}))
            cells, errors = plain_cells(found.column("a"), type_), found.column("mz_error").to_pylist()
            query = f"SELECT %s::{type_}::text"
            if format_ == "json":
                query = "SELECT (json_populate_record(NULL::r, json_build_object('a', %s::json))).a::text"
            for said, ours, why in zip(CELLS, cells, errors, strict=True):
                try:
                    ((wanted,),) = theirs.execute(query.encode(), [said]).fetchall()
                    is_value = True
                except psycopg.Error as error:
                    wanted, is_value = error.sqlstate, False
                told = why[:5] if why else None if ours is None else shown(ours, type_)
                # Of lists the shape is looked at before the elements.
                is_list = type_.kind is Kind.ARRAY and why is not None
                is_beyond = is_list and told == BEYOND_LISTS and has_dimensions(wanted or "")
                if told != wanted and not is_beyond and not (is_list and not is_value):
                    different.append(f"{format_} {type_} {said}: {told} {why}, in PostgreSQL {wanted}")
    assert not different, "\n".join(different)


NESTED = pa.table(
    {
        "k": pa.array(range(8), pa.int32()),
        "n": pa.array(
            [[[1, None], [3, 4]], [], None, [[], []], [[1], [2, 3]], [[1], None], [[7]], [[1, 2, 3]]],
            pa.list_(pa.large_list(pa.int16())),
        ),
        "t": pa.array([["a"], [None], [], None, ["b", ""], ["c"], ["d"], ["e"]], pa.list_(pa.string())),
        "d": pa.array(
            [[[[date(2024, 2, 29)]]], *[None] * 7], pa.list_(pa.list_(pa.list_(pa.date32())))
        ),
    }
)  # fmt: skip
DIMENSIONS = (
    Column("k", INT4), Column("n", dimensioned(INT4)), Column("t", dimensioned(TEXT)), Column("d", dimensioned(DATE)),
)  # fmt: skip
UNEVEN = "2202E multidimensional arrays must have array expressions with matching dimensions"


@pytest.mark.parametrize(("format_", "write"), [("parquet", pq.write_table), ("orc", orc.write_table)])
def test_lists_in_lists_are_dimensions(
    tmp_path: Path, format_: Format, write: Callable[[pa.Table, Path], None]
) -> None:
    write(NESTED, tmp_path / "f")
    source = FileSource(InFolder(tmp_path), "f", format_, DIMENSIONS, spool=tmp_path / "copies")
    found = source.read_here(bind({1: source.poll({})})).to_pylist()
    empty: dict[str, list[int]] = {"f1": [], "f2": [], "f3": []}
    assert [one["mz_error"] for one in found] == [
        f'{UNEVEN} (file "f", row {row + 1}, column "n")' if row in (4, 5) else None for row in range(8)
    ]
    assert [one["n"] for one in found] == [
        {"f1": [1, None, 3, 4], "f2": [2, 2], "f3": [1, 1]}, empty, None, empty, None, None,
        {"f1": [7], "f2": [1, 1], "f3": [1, 1]}, {"f1": [1, 2, 3], "f2": [1, 3], "f3": [1, 1]},
    ]  # fmt: skip
    assert found[0]["d"] == {"f1": [date(2024, 2, 29)], "f2": [1, 1, 1], "f3": [1, 1, 1]}
    assert found[1]["t"] == {"f1": [None], "f2": [1], "f3": [1]}


def test_both_engines_read_the_same_arrays(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(NESTED, tmp_path / "f")
    nested = FileSource(InFolder(tmp_path), "f", "parquet", DIMENSIONS)
    assert len(records(spark, nested, bind({1: [drop(tmp_path, "f", (tmp_path / "f").read_bytes())]}))) == 8
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate((*TYPES[1:], dimensioned(TIMESTAMPTZ))))
    moments = ('[["2024-02-29 10:00:00.5Z"]]', '"{NaN,-0,1e300}"')
    cells = [cell for cell in (*CELLS, *moments) if "infinity" not in cell]  # of which Python has no date
    lines = [f'{{"c{i}": {cell}}}' for i in range(len(columns)) for cell in cells]
    json = FileSource(InFolder(tmp_path), "j", "json", columns)
    assert len(records(spark, json, bind({1: [drop(tmp_path, "j", "\n".join(lines))]}))) == len(lines)


@pytest.mark.parametrize("physical", [pa.int32(), pa.list_(pa.list_(pa.int64())), pa.struct([("f1", pa.int32())])])
def test_what_are_no_such_lists_is_refused(tmp_path: Path, physical: pa.DataType) -> None:
    pq.write_table(pa.table({"n": pa.array([None], physical)}), tmp_path / "f")
    with pytest.raises(SourceUnreadable):
        read_schema(tmp_path, "f", [Column("n", dimensioned(INT4))])


def test_no_array_is_part_of_a_key_or_said_by_folders() -> None:
    for type_ in ("int[]", "int[][]"):
        with pytest.raises(InvalidTableDefinition, match="cannot be part of a key"):
            parse(f"CREATE SOURCE s (n {type_} PRIMARY KEY) FROM FILES (FOLDER 'x') FORMAT JSON ENVELOPE UPSERT")
        with pytest.raises(InvalidTableDefinition, match="cannot be said by a folder"):
            parse(f"CREATE SOURCE s (n {type_}, m int) FROM FILES (FOLDER 'x', PARTITION COLUMNS (n)) FORMAT CSV")
