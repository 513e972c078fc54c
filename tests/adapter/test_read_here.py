"""`mz_dagster.read` as Arrow, Polars and pandas: the same rows at any time, of which only what is asked for is read."""

from __future__ import annotations

import gc
import time
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mz_dagster
from mz_dagster.adapter import Connection, Cursor, NoValidTimestamp, reading
from mz_dagster.errors import DataError, InterfaceError, ProgrammingError

Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def project(sparkless: Connection) -> Path:
    sparkless.execute('CREATE TABLE t (a integer, "b.c" text, n numeric(9, 2), d date)')
    sparkless.execute('CREATE INDEX by_b ON t ("b.c")')
    sparkless.execute("CREATE SCHEMA other")
    sparkless.execute('CREATE MATERIALIZED VIEW other."My V" AS SELECT a, count(*) AS k FROM t GROUP BY a')
    sparkless.execute("INSERT INTO t VALUES (1, 'x', 1.5, '2024-01-01'), (1, 'x', 1.5, '2024-01-01')")
    return sparkless.engine.project.root


def rows(reader: str, found: Any) -> Rows:
    if reader == "arrow":
        assert isinstance(found, pa.RecordBatchReader)
        found = found.read_all().to_pylist()
    elif reader == "polars":
        assert isinstance(found, pl.DataFrame)
        found = found.to_dicts()
    else:
        assert isinstance(found, pd.DataFrame)
        found = pa.Table.from_pandas(found, preserve_index=False).to_pylist()
    return Counter(tuple(row.values()) for row in found)


@pytest.mark.parametrize("reader", ["arrow", "polars", "pandas"])
def test_rows_are_those_of_any_time_and_of_what_is_asked_for(sparkless: Connection, project: Path, reader: str) -> None:
    def read(name: str, *arguments: Any, **options: Any) -> Rows:
        return rows(reader, mz_dagster.read(reader, name, *arguments, project=project, **options))

    before = sparkless.engine.catalog.read_ts("default")
    sparkless.execute("INSERT INTO t VALUES (2, 'y', 2, NULL), (3, NULL, NULL, NULL)")
    row = (1, "x", Decimal("1.50"), date(2024, 1, 1))
    assert read("t", before) == {row: 2}
    assert read("t", columns=["b.c", "a"]) == {("x", 1): 2, ("y", 2): 1, (None, 3): 1}
    assert read("t", columns=["a"], where="\"b.c\" = 'y' OR a = 3 -- or not") == {(2,): 1, (3,): 1}
    assert read("t", before, columns=["a"], where="a > 1") == {}
    assert read("by_b", columns=["a"]) == {(1,): 2, (2,): 1, (3,): 1}
    now = sparkless.engine.catalog.read_ts("default")
    assert read('other."My V"', now, where="k = 2") == {(1, 2): 1}
    sparkless.execute("CREATE CHECK few ON t BLOCKING AS SELECT a FROM t WHERE a > 3")
    assert read("t", columns=["a"], where="a > 2", held=True) == {(3,): 1}
    sparkless.execute("INSERT INTO t VALUES (4, 'z', NULL, NULL)")
    assert read("t", columns=["a"], where="a > 2") == {(3,): 1, (4,): 1}
    with pytest.raises(NoValidTimestamp, match="did not hold"):
        read("t", held=True)


@pytest.mark.deep
def test_batches_are_made_one_by_one_and_what_they_hold_is_given_back(
    sparkless: Connection, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = Cursor.fetch_record_batch
    monkeypatch.setattr(Cursor, "fetch_record_batch", lambda cursor: fetched(cursor, 1000))
    sparkless.execute("INSERT INTO t SELECT i, NULL, NULL, NULL FROM generate_series(1, 5000) AS g(i)")
    gc.collect()
    others = set(reading._held)  # of tests before, which nobody has read to the end
    batches = mz_dagster.read("arrow", "t", columns=["a"], project=project)
    first = batches.read_next_batch()
    assert first.schema.names == ["a"]
    assert first.num_rows == 1000
    assert len(reading._held - others) == 1
    sparkless.execute("DELETE FROM t WHERE a < 10")
    assert first.num_rows + sum(one.num_rows for one in batches) == 5_002, "what came later is not in it"
    del batches
    unread = mz_dagster.read("arrow", "t", project=project)
    del unread
    gc.collect()
    deadline = time.monotonic() + 30
    while reading._held - others and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not reading._held - others


def test_what_cannot_be_read_is_told(sparkless: Connection, project: Path) -> None:
    for reader, name, options, error, text in (
        ("duckdb", "t", {}, InterfaceError, "nothing reads as"),
        ("arrow", "nope", {}, ProgrammingError, "nope"),
        ("arrow", "t", {"columns": ["nope"]}, ProgrammingError, "nope"),
        ("arrow", "t", {"where": "a = "}, ProgrammingError, "syntax"),
        (object(), "t", {"where": "a = 1"}, InterfaceError, "no condition in SQL"),
    ):
        with pytest.raises(error, match=text):
            mz_dagster.read(reader, name, project=project, **options)
    sparkless.execute("CREATE MATERIALIZED VIEW bad AS SELECT 1 / (a - 1) AS q FROM t")
    with pytest.raises(DataError, match="division by zero"):
        mz_dagster.read("arrow", "bad", project=project)
