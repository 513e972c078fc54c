"""Random histories of a lakehouse, for long: tables that others write, views of them, sinks of the views, and kills.

Two tables are delta-rs's, with and without change data, one is Spark's, with deletion vectors or change data. After
some commits a process polls and steps that dies at a fail point, then one that does not. Then each source is its table,
each view its query over the tables, as DuckDB answers it, and each sink its view.

`MZ_LONG_SECONDS` says for how long, by default ten minutes in all.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from mz_dagster.adapter import Connection
from mz_dagster.fail_point import OUTPUT_FAIL_POINTS, VARIABLE
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from tests.forks import forks
from tests.opened import opened
from tests.source.test_delta import ROWS, TIMELINE, Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Counter[tuple[Any, ...]]
SECONDS = float(os.environ.get("MZ_LONG_SECONDS", "600"))
FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
TABLES = ("t1", "t2", "t3")
VIEWS = {
    "v1": "SELECT p, count(*) AS n, sum(a)::bigint AS s FROM t1 GROUP BY p",
    "v2": "SELECT a, count(*) AS n FROM t2 GROUP BY a",
    "v3": "SELECT t1.a, t1.p, t2.p AS q FROM t1 JOIN t2 ON t1.a = t2.a",
    "v4": "SELECT DISTINCT p FROM t1",
    "v5": "SELECT a FROM t1 WHERE p = 'x' EXCEPT SELECT a FROM t2",
    "v6": "SELECT p, max(a) AS most, min(a) AS least FROM t3 GROUP BY p",
    "v7": "SELECT a, p FROM t1 UNION ALL SELECT a, p FROM t3",
    "v8": "SELECT t1.a, count(t3.a) AS n FROM t1 LEFT JOIN t3 ON t1.a = t3.a GROUP BY t1.a",
    "v9": "SELECT count(*) AS n FROM t1 WHERE a IN (SELECT a FROM t3)",
    "v10": "SELECT p, s FROM v1 WHERE n > 1",
    "v11": "SELECT a, p, count(*) OVER (PARTITION BY p) AS n FROM t2",
    "v12": "SELECT a, p, x FROM t2 WHERE x IS NOT NULL",
}
SINKS = {
    "v1": "KEY (p) ENVELOPE UPSERT", "v2": "KEY (a) ENVELOPE DEBEZIUM", "v3": "ENVELOPE UPSERT", "v7": "APPEND CHANGES",
    "v12": "ENVELOPE UPSERT",
}  # fmt: skip
#: What is said of how a sink's table lies there.
LAYOUTS = {"v3": ", PARTITION COLUMNS (p)", "v7": ", PARTITION COLUMNS (p)"}
#: What steps as small as these pass.
KILLS = [
    f"{point}:{nth}"
    for point in (
        "catalog.before_commit", "catalog.committed", "tick.before_mint", "tick.minted", "append.inlined",
        "append.before_seal", "seal.in_transaction", "seal.sealed", *OUTPUT_FAIL_POINTS,
    )
    for nth in (1, 2, 3)
    if point != "copy.written" and (nth == 1 or not point.startswith("tick"))
]  # fmt: skip


class SparkWriter:
    """Does at random to a table what only Spark does in its way."""

    def __init__(self, spark: SparkSession, table: Path, random: Random, properties: str) -> None:
        self.spark, self.random, self.path, self.columns = spark, random, table, 0
        self.table = f"delta.`{table}`"
        spark.sql(f"CREATE TABLE {self.table} (a BIGINT, p STRING, x DOUBLE) USING DELTA TBLPROPERTIES ({properties})")
        self.write("insert")

    def write(self, name: str | None = None) -> str:
        """Commits something, and returns what."""
        random, table, version = self.random, self.table, DeltaTable(self.path).version()
        key, p = random.randrange(8), random.choice(["'x'", "'y'", "NULL"])
        earlier = random.randrange(max(min(1, version), version - 2), version + 1)
        values = ", ".join(f"({random.randrange(8)}, {p}, {random.choice(['NULL', '0.5'])})" for _ in range(3))
        changes = {
            "insert": f"INSERT INTO {table} (a, p, x) VALUES {values}",
            "delete": f"DELETE FROM {table} WHERE a = {key}",
            "update": f"UPDATE {table} SET a = a + 1 WHERE p = 'x'",
            "merge": f"MERGE INTO {table} t USING (SELECT {key}L AS a UNION ALL SELECT {key + 1}L) s ON t.a = s.a "
            "WHEN MATCHED AND t.p = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET p = 'm' "
            "WHEN NOT MATCHED THEN INSERT (a, p) VALUES (s.a, 'n')",
            "overwrite": f"INSERT OVERWRITE {table} (a, p, x) VALUES {values}",
            "optimize": f"OPTIMIZE {table}",
            "restore": f"RESTORE TABLE {table} TO VERSION AS OF {earlier}",
            "column": f"ALTER TABLE {table} ADD COLUMN more{self.columns} INT",
        }
        name = name or random.choice(list(changes))
        self.columns += name == "column"
        self.spark.sql(changes[name])
        return name

    def content(self) -> pa.Table:
        """Returns the rows of the newest version."""
        found = self.spark.sql(f"SELECT a, p, x FROM {self.table}").collect()
        return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in found], ROWS)


def live(root: str, kill: str) -> None:
    """Polls and steps, as far as it comes."""
    os.environ[VARIABLE] = kill
    with opened(Path(root)) as connection:
        advance(connection)


def advance(connection: Connection) -> None:
    engine = connection.engine
    engine.poll(TIMELINE)
    tick = engine.catalog.last_tick(TIMELINE)
    assert tick is not None
    report = engine.step(TIMELINE, tick)
    assert not report.failures, report.failures


def counted(found: pa.Table) -> Rows:
    """Returns rows as what they look like, so that 0.0 is not -0.0."""
    return Counter(tuple(map(repr, row)) for row in zip(*(one.to_pylist() for one in found.columns), strict=True))


def held(connection: Connection, name: str) -> Rows:
    return Counter(tuple(map(repr, row)) for row in connection.execute(f"SELECT * FROM {name}").fetchall())


def check(connection: Connection, tables: dict[str, pa.Table], root: Path, done: list[str]) -> None:
    """Compares all that is held and written with the tables."""
    with duckdb.connect() as other:
        for name, content in tables.items():
            assert held(connection, name) == counted(content), (name, done)
            other.register(name, content)
        for name, query in VIEWS.items():
            other.execute(f"CREATE VIEW {name} AS {query}")
            found = Counter(tuple(map(repr, row)) for row in other.execute(query).fetchall())
            assert held(connection, name) == found, (name, done)
    for name, envelope in SINKS.items():
        written = DeltaTable(root / "out" / name).to_pyarrow_table()
        if envelope == "APPEND CHANGES":
            rows: Rows = Counter()
            for *row, _, diff in zip(*(one.to_pylist() for one in written.columns), strict=True):
                rows[tuple(map(repr, row))] += diff
            assert +rows == held(connection, name), (name, done)
        elif envelope.endswith("DEBEZIUM"):
            rows = Counter()
            for event in written.to_pylist():
                for side, diff in ((event["before"], -1), (event["after"], 1)):
                    rows[tuple(map(repr, (side or {}).values()))] += diff * (side is not None)
            assert +rows == held(connection, name), (name, done)
        else:
            assert counted(written) == held(connection, name), (name, done)


@pytest.mark.deep
@pytest.mark.timeout(1200 + 2 * SECONDS)
@pytest.mark.parametrize(("seed", "properties"), [(1, VECTORS), (2, FEED), (3, f"{VECTORS}, {FEED}")])
def test_whatever_is_written_and_killed_all_is_what_the_tables_say(
    spark: SparkSession, tmp_path: Path, seed: int, properties: str
) -> None:
    random, begin = Random(seed), monotonic()
    lake = tmp_path / "lake"
    ours = {name: Writer(lake / name, random, feed=name == "t1") for name in ("t1", "t2")}
    theirs = SparkWriter(spark, lake / "t3", random, properties)
    with opened(tmp_path) as connection:
        for name in TABLES:
            connection.execute(
                f"CREATE SOURCE {name} (a bigint, p text, x double precision) FROM DELTA (URI 'lake/{name}')"
            )
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for name, envelope in SINKS.items():
            into = f"DELTA (URI 'out/{name}'{LAYOUTS.get(name, '')}) {envelope}"
            connection.execute(f"CREATE SINK out_{name} FROM {name} INTO {into}")
    done: list[str] = []
    killed: Counter[str] = Counter()
    rounds = 0
    while monotonic() - begin < SECONDS / 3 or rounds < 3:
        rounds += 1
        for _ in range(random.randrange(1, 4)):
            name = random.choice(TABLES)
            done.append(f"{name} {(theirs if name == 't3' else ours[name]).write()}")
        kill = random.choice(KILLS)
        process = forks().Process(target=live, args=(str(tmp_path), kill))
        process.start()
        process.join(120)
        assert process.exitcode in (0, -signal.SIGKILL), (kill, process.exitcode)
        killed[kill.partition(":")[0]] += process.exitcode != 0
        done.append(f"kill at {kill}")
        tables = {name: DeltaTable(one.table).to_pyarrow_table().select(ROWS.names) for name, one in ours.items()}
        with opened(tmp_path) as connection:
            advance(connection)
            check(connection, {**tables, "t3": theirs.content()}, tmp_path, done)
    print(f"{rounds} rounds, {len(done) - rounds} commits, killed at {dict(+killed)}")
    broken = [one for one in examine(tmp_path, deep=True).findings if CHECKS[one.check].severity is Severity.BREAK]
    assert not broken
