"""TPC-DS's queries as views: each is what DuckDB makes of the same tables, also after a thousandth of them changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import Error
from mz_dagster.storage.spark import SparkConfig
from tests.tpcds import feed, texts

pytestmark = [pytest.mark.deep, pytest.mark.timeout(7200)]

#: Queries whose answer is another than DuckDB's, and why.
OTHERWISE = {
    "q78": "DuckDB rounds a quotient of floats",
    "q84": "PostgreSQL concatenates no NULLs with ||, as this does",
}


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with feed.generated(0.01) as opened:
        yield opened


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, spark_config: SparkConfig, duck: duckdb.DuckDBPyConnection
) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("tpcds")
    engine = Engine(Project.load(folder / "project"), spark=spark_config)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as opened:
        feed.load(duck, opened, folder)
        yield opened


def _plain(cell: Any) -> Any:
    """Returns a cell so that what both engines mean by it is equal: DuckDB divides numerics as floats."""
    match cell:
        case bool() | None:
            return cell
        case int() | float() | Decimal():
            return float(f"{float(cell):.9g}") + 0.0
        case str():
            return cell.rstrip()  # of a char(n)
        case datetime() | date() | timedelta():
            return str(cell)
        case _:
            return cell


def _rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    plain = [tuple(map(_plain, row)) for row in rows]
    return sorted(plain, key=lambda row: [(str(type(one)), one if one is not None else 0) for one in row])


def _differ(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> str:
    """Returns what the first difference is, beyond what is lost in floats; nothing if there is none."""
    mine, theirs = _rows(found), _rows(expected)
    if len(mine) != len(theirs):
        return f"{len(mine)} rows, not {len(theirs)}"
    for one, other in zip(mine, theirs, strict=True):
        for left, right in zip(one, other, strict=True):
            close = (
                isinstance(left, float) and isinstance(right, float) and abs(left - right) <= 1e-6 * max(1, abs(right))
            )
            if left != right and not close:
                return f"{one} is not {other}"
    return ""


def _compare(project: Connection, duck: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, str]:
    wrong = {}
    for name in names:
        try:
            found = project.execute(f"SELECT * FROM {name}").fetchall()
        except Error as error:
            wrong[name] = str(error).splitlines()[0]
            continue
        if differ := _differ(found, duck.execute(feed.query(name)).fetchall()):
            wrong[name] = differ
        print(name, len(found), wrong.get(name, "as DuckDB's"), flush=True)
    return {name: why for name, why in wrong.items() if name not in OTHERWISE}


def test_each_query_is_a_view_that_holds_what_duckdb_says(
    project: Connection, duck: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    refused, made = {}, []
    for name in texts.queries():
        try:
            project.execute(f"CREATE MATERIALIZED VIEW {name} AS {feed.query(name)}")
            made.append(name)
            print(name, "made", flush=True)
        except Error as error:
            refused[name] = str(error).splitlines()[0]
            print(name, refused[name], flush=True)
    assert _compare(project, duck, made) == {}
    assert refused == {}
    feed.change(project, duck, tmp_path)
    assert _compare(project, duck, made) == {}
