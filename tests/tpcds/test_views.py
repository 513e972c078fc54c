"""TPC-DS's queries as views: each is what DuckDB makes of the same tables, also after a step of a thousandth of them.

Of customer_demographics and the calendar only rows are kept that some fact has, or some query may ask for: the others,
two millions at any scale, would be most of the work.
"""

from __future__ import annotations

import re
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
from tests.tpcds import texts

pytestmark = [pytest.mark.deep, pytest.mark.timeout(7200)]

#: Of each table of facts: its key, and a column that is updated.
FACTS = {
    "store_sales": (("ss_item_sk", "ss_ticket_number"), "ss_ext_sales_price"),
    "store_returns": (("sr_item_sk", "sr_ticket_number"), "sr_return_amt"),
    "catalog_sales": (("cs_item_sk", "cs_order_number"), "cs_ext_sales_price"),
    "catalog_returns": (("cr_item_sk", "cr_order_number"), "cr_return_amount"),
    "web_sales": (("ws_item_sk", "ws_order_number"), "ws_ext_sales_price"),
    "web_returns": (("wr_item_sk", "wr_order_number"), "wr_return_amt"),
    "inventory": (("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"), "inv_quantity_on_hand"),
}

#: Queries whose answer is another than DuckDB's, and why.
OTHERWISE = {
    "q78": "DuckDB rounds a quotient of floats",
    "q84": "PostgreSQL concatenates no NULLs with ||, as this does",
}


def _referenced(duck: duckdb.DuckDBPyConnection) -> None:
    """Leaves of the large dimensions what is referenced."""
    demographics = " UNION ".join(
        f"SELECT {column} FROM {table}"
        for table, column in (
            ("store_sales", "ss_cdemo_sk"),
            ("catalog_sales", "cs_bill_cdemo_sk"),
            ("catalog_sales", "cs_ship_cdemo_sk"),
            ("web_returns", "wr_refunded_cdemo_sk"),
            ("web_returns", "wr_returning_cdemo_sk"),
            ("store_returns", "sr_cdemo_sk"),
            ("customer", "c_current_cdemo_sk"),
        )
    )
    duck.execute(
        f"DELETE FROM customer_demographics WHERE cd_demo_sk NOT IN (SELECT * FROM ({demographics}) WHERE 1 = 1)"
    )
    duck.execute("DELETE FROM date_dim WHERE d_year NOT BETWEEN 1997 AND 2004")
    duck.execute("DELETE FROM time_dim WHERE t_time_sk NOT IN (SELECT ss_sold_time_sk FROM store_sales UNION "
                 "SELECT ws_sold_time_sk FROM web_sales UNION SELECT cs_sold_time_sk FROM catalog_sales)")  # fmt: skip


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with texts.connected() as opened:
        opened.execute("CALL dsdgen(sf = 0.01)")
        _referenced(opened)
        yield opened


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, spark_config: SparkConfig, duck: duckdb.DuckDBPyConnection
) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("tpcds")
    engine = Engine(Project.load(folder / "project"), spark=spark_config)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as opened:
        for table, statement in texts.tables().items():
            opened.execute(statement)
            _copy(duck, opened, f"SELECT * FROM {table}", table, folder)
        yield opened


def _copy(duck: duckdb.DuckDBPyConnection, project: Connection, query: str, table: str, folder: Path) -> None:
    path = folder / f"{table}.parquet"
    duck.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    project.execute(f"COPY {table} FROM '{path}' (FORMAT PARQUET)")


def _query(name: str) -> str:
    """Returns a query without its last LIMIT: which rows of a tie are left out is nobody's to say."""
    return re.sub(r"\s+LIMIT\s+\d+\s*$", "", texts.queries()[name], flags=re.IGNORECASE)


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
        if differ := _differ(found, duck.execute(_query(name)).fetchall()):
            wrong[name] = differ
        print(name, len(found), wrong.get(name, "as DuckDB's"), flush=True)
    return {name: why for name, why in wrong.items() if name not in OTHERWISE}


def _change(project: Connection, duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Deletes, updates and inserts a thousandth of each table of facts, in both."""
    for table, (key, column) in FACTS.items():
        changed = duck.execute(
            f"SELECT {', '.join(key)}, row_number() OVER (ORDER BY {', '.join(key)}) % 1000 AS n FROM {table} "
            "QUALIFY n IN (7, 13)"
        ).fetchall()
        for number, statement in ((7, f"DELETE FROM {table}"), (13, f"UPDATE {table} SET {column} = {column} + 1")):
            rows = [row[:-1] for row in changed if row[-1] == number]
            if rows:
                met = " OR ".join(
                    "(" + " AND ".join(f"{name} = {value}" for name, value in zip(key, row, strict=True)) + ")"
                    for row in rows
                )
                for one in (project, duck):
                    one.execute(f"{statement} WHERE {met}")
        replaced = f"{key[-1]}{'' if table == 'inventory' else ' + 1000000'} AS {key[-1]}"
        new = (
            f"SELECT * REPLACE ({replaced}) FROM {table} "
            f"QUALIFY row_number() OVER (ORDER BY {', '.join(key)}) % 1000 = 21"
        )
        duck.execute(f"CREATE OR REPLACE TEMP TABLE new_rows AS {new}")
        _copy(duck, project, "SELECT * FROM new_rows", table, folder)
        duck.execute(f"INSERT INTO {table} SELECT * FROM new_rows")


def test_each_query_is_a_view_that_holds_what_duckdb_says(
    project: Connection, duck: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    refused, made = {}, []
    for name in texts.queries():
        try:
            project.execute(f"CREATE MATERIALIZED VIEW {name} AS {_query(name)}")
            made.append(name)
            print(name, "made", flush=True)
        except Error as error:
            refused[name] = str(error).splitlines()[0]
            print(name, refused[name], flush=True)
    assert _compare(project, duck, made) == {}
    assert refused == {}
    _change(project, duck, tmp_path)
    assert _compare(project, duck, made) == {}
