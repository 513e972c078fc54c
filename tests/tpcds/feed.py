"""TPC-DS's data for a project: what DuckDB generates, and a thousandth of it changed, in both alike."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from mz_dagster.adapter import Connection
from tests.tpcds import texts

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


def generated(scale: float) -> duckdb.DuckDBPyConnection:
    """Returns a database with the tables at a scale factor; of the large dimensions only what is referenced.

    Of customer_demographics and the calendar only rows are kept that some fact has, or some query may ask for: the
    others, two millions at any scale, would be most of the work.
    """
    duck = texts.connected()
    duck.execute(f"CALL dsdgen(sf = {scale})")
    _leave_referenced(duck)
    return duck


def _leave_referenced(duck: duckdb.DuckDBPyConnection) -> None:
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


def load(duck: duckdb.DuckDBPyConnection, project: Connection, folder: Path) -> None:
    """Creates the tables in a project, with the rows that they have in DuckDB.

    Args:
        duck: Whence.
        project: Where to.
        folder: For files on their way.
    """
    for statement in texts.tables().values():
        project.execute(statement)
    fill(duck, project, folder)


def fill(duck: duckdb.DuckDBPyConnection, project: Connection, folder: Path) -> None:
    """Gives tables that are there the rows that they have in DuckDB; arguments as for `load`."""
    for table in texts.tables():
        _copy(duck, project, f"SELECT * FROM {table}", table, folder)


def _copy(duck: duckdb.DuckDBPyConnection, project: Connection, query: str, table: str, folder: Path) -> None:
    path = folder / f"{table}.parquet"
    duck.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    project.execute(f"COPY {table} FROM '{path}' (FORMAT PARQUET)")


def query(name: str) -> str:
    """Returns a query without its last LIMIT: which rows of a tie are left out is nobody's to say."""
    return re.sub(r"\s+LIMIT\s+\d+\s*$", "", texts.queries()[name], flags=re.IGNORECASE)


def change(project: Connection, duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Deletes, updates and inserts a thousandth of each table of facts, in both."""
    for table, (key, column) in FACTS.items():
        changed = duck.execute(
            f"SELECT {', '.join(key)}, row_number() OVER (ORDER BY {', '.join(key)}) % 1000 AS n FROM {table} "
            "QUALIFY n IN (7, 13)"
        ).fetchall()
        for number, statement in ((7, f"DELETE FROM {table}"), (13, f"UPDATE {table} SET {column} = {column} + 1")):
            rows = [row[:-1] for row in changed if row[-1] == number]
            if rows:
                values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
                changed_rows = f"({', '.join(key)}) IN (SELECT * FROM (VALUES {values}) AS changed)"
                for one in (project, duck):
                    one.execute(f"{statement} WHERE {changed_rows}")
        replaced = f"{key[-1]}{'' if table == 'inventory' else ' + 1000000'} AS {key[-1]}"
        new = (
            f"SELECT * REPLACE ({replaced}) FROM {table} "
            f"QUALIFY row_number() OVER (ORDER BY {', '.join(key)}) % 1000 = 21"
        )
        duck.execute(f"CREATE OR REPLACE TEMP TABLE new_rows AS {new}")
        _copy(duck, project, "SELECT * FROM new_rows", table, folder)
        duck.execute(f"INSERT INTO {table} SELECT * FROM new_rows")
