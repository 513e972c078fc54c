"""Columns are called what SQL lets them be called: with blanks, signs, in another case, as what shards have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mz_dagster
from mz_dagster.adapter import Connection, Engine, Isolation, Project, updates_written
from mz_dagster.budget import Budget
from mz_dagster.catalog import in_shard, shard_names
from mz_dagster.compute import CollectionStep, Outcome
from mz_dagster.errors import Error
from mz_dagster.scalars.types import INT4, TEXT, Column
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = [
    "order count", "Order Count", "a", "A", ".x", "/y", "..", "a.b", "x`y", 'x"y', "mz_bucket", "mz_column_2", "a\nb\t",
    "{}(;=,)", "é ü", "%41", "[0]", "*", " ", "mz_copies",
]  # fmt: skip
DECLARED = ", ".join(f"{one} integer" for one in ('"' + name.replace('"', '""') + '"' for name in ODD))
ROW = tuple(range(len(ODD)))


def test_a_name_that_a_shard_has_had_stays() -> None:
    for names in (["a", "b"], ["a.b", "/x", "mz_path", "é", "A", 'x"', "x`y"], ["mz_column_1", "x"]):
        assert shard_names(names) == tuple(names)
    odd = shard_names(ODD)
    assert shard_names(odd) == odd
    assert len({name.lower() for name in odd}) == len(ODD)
    assert [one.type for one in in_shard([Column("a b", INT4), Column("A B", TEXT)])] == [INT4, TEXT]


@pytest.fixture(params=["default", pytest.param("spark alone", marks=pytest.mark.deep)])
def connection(
    request: pytest.FixtureRequest, tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget
) -> Iterator[Connection]:
    if request.param == "spark alone":
        set_budget(Budget.spark_alone())
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def called(connection: Connection, query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    cursor = connection.execute(query)
    assert cursor.description is not None
    return [one[0] for one in cursor.description], sorted(cursor.fetchall(), key=repr)


def test_tables_views_and_indexes_have_columns_of_any_name(connection: Connection, spark: SparkSession) -> None:
    engine = connection.engine
    connection.execute(f"CREATE TABLE t ({DECLARED})")
    connection.execute(f"INSERT INTO t VALUES ({', '.join(map(str, ROW))}), ({', '.join(['7'] * len(ROW))})")
    connection.execute("CREATE MATERIALIZED VIEW whole AS SELECT * FROM t")
    connection.execute(
        'CREATE MATERIALIZED VIEW m AS SELECT x."order count" AS "Order Count", count(*) AS "how many", '
        'max(y."A") AS "MAX", min(y."a") AS "max" FROM t AS x JOIN t AS y USING ("Order Count") '
        'GROUP BY x."order count"'
    )
    connection.execute('CREATE MATERIALIZED VIEW top AS SELECT ".x", "/y" FROM t ORDER BY "order count" LIMIT 1')
    connection.execute('CREATE INDEX "by count" ON t ("order count", "A")')
    assert called(connection, "SELECT * FROM t") == (ODD, [ROW, (7,) * len(ROW)])
    assert called(connection, "SELECT * FROM whole") == (ODD, [ROW, (7,) * len(ROW)])
    connection.execute('UPDATE t SET "Order Count" = 9, "mz_bucket" = "order count" WHERE ".x" = 7')
    connection.execute('DELETE FROM t WHERE "order count" = 0')
    wanted = tuple(9 if name == "Order Count" else 7 for name in ODD)
    assert called(connection, 'SELECT * FROM t WHERE "A" = 7') == (ODD, [wanted])
    assert called(connection, "SELECT * FROM whole") == (ODD, [wanted])
    assert called(connection, "SELECT * FROM m") == (["Order Count", "how many", "MAX", "max"], [(7, 1, 7, 7)])
    assert called(connection, "SELECT * FROM top") == ([".x", "/y"], [(7, 7)])
    for name in ("t", "whole", "by count"):
        frame = mz_dagster.read(spark, name, project=engine.project.root)
        assert frame.columns == ODD
        assert [tuple(row) for row in frame.collect()] == [wanted]
    list(engine.compact())
    row = engine.catalog.collection(engine.collection_of("whole"))
    batch = engine.catalog.live_batches([row.id])[row.id][-1]
    step = CollectionStep(row.id, "whole", Outcome.ADVANCED, 0, 7, batch.stats, batch.id)
    assert updates_written(engine, row, step, 1).columns[: len(ODD)] == tuple(ODD)
    connection.execute('CREATE TABLE n ("order count" integer NOT NULL)')
    with pytest.raises(Error, match='null value in column "order count" of relation "n"'):
        connection.execute('INSERT INTO n SELECT nullif("A", 7) FROM t')
    with Connection(Engine(Project.load(engine.project.root)), Isolation.STRICT_SERIALIZABLE) as again:
        assert called(again, "SELECT * FROM whole") == (ODD, [wanted])


@pytest.mark.parametrize("format_", ["JSON", "CSV", "PARQUET"])
def test_sources_have_columns_of_any_name(connection: Connection, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    names = ["order id", "order count", "mz_bucket", ".x"] + ["Order Count"] * (format_ != "PARQUET")
    declared = ", ".join(f'"{name}" integer' for name in names)
    envelope = "ENVELOPE NONE" if format_ == "CSV" else "ENVELOPE UPSERT"
    connection.execute(
        f"CREATE SOURCE s ({declared}, PRIMARY KEY (\"order id\")) FROM FILES (FOLDER 'landing', PATTERN '*') "
        f"FORMAT {format_} {envelope}"
        if format_ != "CSV"
        else f"CREATE SOURCE s ({declared}) FROM FILES (FOLDER 'landing', PATTERN '*') FORMAT CSV {envelope}"
    )
    connection.execute('CREATE MATERIALIZED VIEW v AS SELECT sum("order count") AS "the sum" FROM s')
    values = list(range(1, len(names) + 1))
    for tick in range(2):
        data = dict(zip(names, values, strict=True))
        match format_:
            case "JSON":
                inner = ", ".join(f'"{name}": {one}' for name, one in list(data.items())[1:])
                (folder / f"{tick}").write_text(f'{{"key": {{"order id": 1}}, "value": {{{inner}}}}}\n')
            case "CSV":
                (folder / f"{tick}").write_text(f"{','.join(names)}\n{','.join(map(str, values))}\n")
            case _:
                pq.write_table(pa.table({name: pa.array([one], pa.int32()) for name, one in data.items()}),
                               folder / f"{tick}")  # fmt: skip
        minted = connection.engine.poll("default").tick
        assert minted is not None
        connection.engine.step("default", minted)
        values[1] += 10
    found, rows = called(connection, "SELECT * FROM s")
    assert found == names
    last = tuple(12 if name == "order count" else i for i, name in enumerate(names, 1))
    first = tuple(range(1, len(names) + 1))
    assert rows == ([last] if format_ != "CSV" else sorted([first, last], key=repr))
    assert called(connection, "SELECT * FROM v") == (["the sum"], [(12 if format_ != "CSV" else 14,)])


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "mz_diff", "mz_timestamp"])
def test_a_name_that_nothing_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    with mz_dagster.connect(tmp_path) as connection, pytest.raises(Error) as caught:
        connection.execute(f'CREATE TABLE t ("{name}" integer)')
    assert ("column" if name.startswith("mz_") else "invalid byte sequence") in caught.value.message
    assert not list((tmp_path / "shards").glob("*"))


def test_a_sources_column_is_not_called_as_a_place(tmp_path: Path) -> None:
    with mz_dagster.connect(tmp_path) as connection, pytest.raises(Error, match='column name "mz_row" is reserved'):
        connection.execute("CREATE SOURCE s (mz_row integer) FROM FILES (FOLDER 'landing') FORMAT JSON")
