"""Columns of arrays are read from Parquet, in element types whose every value fits; other formats have none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, ScalarType, array_of, numeric
from mz_dagster.sql import parse
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.parquet_schema import read_schema
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


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_formats_have_no_arrays(format_: str) -> None:
    with pytest.raises(InvalidTableDefinition, match=f"cannot be read from {format_.upper()}") as caught:
        parse(f"CREATE SOURCE s (n int[]) FROM FILES (FOLDER 'x') FORMAT {format_}")
    assert (caught.value.position, caught.value.hint) == (
        18,
        "Declare the column as text or jsonb, and cast it in a view.",
    )
