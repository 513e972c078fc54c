"""Delta tables that Spark writes, with what delta-rs does not write: deletion vectors, mapped columns, wider types."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mz_dagster.adapter import Connection
from tests.errors import says_what_to_do
from tests.object_store import BUCKET, running_store
from tests.opened import opened

CREATE = "CREATE SOURCE t (a bigint, p text, at timestamptz, n bigint) FROM DELTA (URI 'lake/t')"


def held(connection: Connection) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute("SELECT a, p, to_char(at, 'YYYY-MM-DD HH24:MI:SS.US'), n FROM t").fetchall())


VECTORS = "'delta.enableDeletionVectors' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true', 'delta.enableTypeWidening' = 'true'"


@pytest.mark.parametrize(
    ("properties", "most"),
    [(VECTORS, 2), pytest.param(VECTORS, 99, marks=pytest.mark.deep), pytest.param(FEED, 99, marks=pytest.mark.deep)],
)
def test_whatever_spark_does_to_its_table_the_source_is_the_table(
    spark: SparkSession, tmp_path: Path, properties: str, most: int
) -> None:
    table = f"delta.`{tmp_path / 'lake' / 't'}`"
    spark.sql(
        f"CREATE TABLE {table} (a BIGINT, p STRING, at TIMESTAMP, n INT) USING DELTA PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties}, 'delta.columnMapping.mode' = 'name')"
    )
    rows = "(1, 'x', '0001-01-01 00:00:00', 1), (2, 'x', '9999-12-31 23:59:59.999999', 2), (3, 'a/b', NULL, 3)"
    changes = [
        f"INSERT INTO {table} VALUES (4, NULL, '2020-01-01 12:00:00', 4), (5, 'x', NULL, NULL), (6, 'x', NULL, 6)",
        f"DELETE FROM {table} WHERE a = 2",
        f"UPDATE {table} SET n = n + 10 WHERE p = 'x'",
        f"DELETE FROM {table} WHERE a = 6",
        f"OPTIMIZE {table}",
        f"MERGE INTO {table} t USING (SELECT 1L AS a UNION ALL SELECT 9L) s ON t.a = s.a WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (a, p) VALUES (s.a, 'm')",
        f"ALTER TABLE {table} ADD COLUMN more INT",
        f"INSERT INTO {table} VALUES (7, 'x', NULL, 7, 8)",
        f"RESTORE TABLE {table} TO VERSION AS OF 3",
        f"INSERT OVERWRITE {table} SELECT a + 100, p, at, n FROM {table} WHERE a < 5",
    ]
    if "Widening" in properties:
        changes.insert(5, f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
        changes.insert(6, f"INSERT INTO {table} VALUES (8, 'x', NULL, 5000000000)")
    spark.sql(f"INSERT INTO {table} VALUES {rows}")
    with opened(tmp_path) as connection:
        connection.execute(CREATE)
        for number, change in enumerate(["SELECT 1", *changes[:most]]):
            spark.sql(change)
            if number % 3 == 1:
                continue  # several commits come with one tick
            shown = "date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
            wanted = Counter(map(tuple, spark.sql(f"SELECT a, p, {shown}, n FROM {table}").collect()))
            assert held(connection) == wanted, change
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN n TO other")
        (failure,) = connection.engine.poll("default").failures.values()
        says_what_to_do(failure, 'has no column "n"')
        spark.sql(f"ALTER TABLE {table} ADD COLUMN n INT")
        (failure,) = connection.engine.poll("default").failures.values()
        says_what_to_do(failure, "has other columns under the names", "ALTER SOURCE ... RESET")
        connection.execute("ALTER SOURCE t RESET")
        assert {n for _, _, _, n in held(connection)} == {None}
        connection.execute("CREATE MATERIALIZED VIEW leaving AS SELECT a, p, at FROM t")
        connection.execute("CREATE SINK s FROM leaving INTO DELTA (URI 'out/s') ENVELOPE UPSERT")
        found = spark.sql(f"SELECT a, p, date_format(at, 'yyyy') FROM delta.`{tmp_path / 'out' / 's'}`").collect()
        kept = connection.execute("SELECT a, p, to_char(at, 'YYYY') FROM t").fetchall()
        assert Counter(map(tuple, found)) == Counter(kept)


@pytest.mark.deep
def test_deletion_vectors_are_found_in_an_object_store(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "a b"
    of = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {of} (a BIGINT, p STRING) USING DELTA PARTITIONED BY (p) TBLPROPERTIES ({VECTORS})")
    spark.sql(f"INSERT INTO {of} SELECT id, if(id < 5, 'x y', 'z/%') FROM range(10)")
    with running_store() as store, opened(tmp_path) as connection:
        monkeypatch.setenv("STORE_SECRET", store.secret)

        def put() -> None:
            for path in table.rglob("*"):
                if path.is_file():
                    key = f"some-where/{path.relative_to(table).as_posix()}"
                    store.client().put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())

        spark.sql(f"DELETE FROM {of} WHERE a IN (1, 7)")
        put()
        for statement in store.statements:
            connection.execute(statement)
        connection.execute(f"CREATE SOURCE t FROM DELTA (URI 's3://{BUCKET}/some-where', CONNECTION store)")
        for change in ("SELECT 1", f"DELETE FROM {of} WHERE a = 2", f"UPDATE {of} SET a = 99 WHERE a = 8"):
            spark.sql(change)
            put()
            wanted = Counter(map(tuple, spark.sql(f"SELECT * FROM {of}").collect()))
            assert Counter(connection.execute("SELECT * FROM t").fetchall()) == wanted, change
