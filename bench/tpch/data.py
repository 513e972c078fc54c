"""TPC-H's data, and rounds of changes to it.

Of the orders those of the highest keys are held back. A round inserts some of them with their lineitems, 0.1 % of all
orders or as many as are asked for, and deletes as many old ones with theirs: spread over all keys (`random`), or one
range of keys (`clustered`). A round of `dimensions` changes 0.01 % of customers, parts and suppliers. Everything
follows from the scale factor and the size of a round: the same rounds are the same rows.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb

from tests.tpch.feed import KEYS

#: How many rounds of changes there are.
ROUNDS = 32
#: Of the orders, how many a round inserts, and how many it deletes: one in so many.
SHARE = 1000
#: Longest time that the generator may take, in seconds; scale factor 10 takes minutes.
_GENERATE_SECONDS = 3600

Kind = Literal["random", "clustered", "dimensions"]
#: A round's number, which no other round of the same project has, and what it changes.
Round = tuple[int, Kind]

#: What a round of dimensions changes, in SQL that DuckDB and Spark agree on.
CHANGES = {
    "supplier": {"s_nationkey": "(s_nationkey + 7) % 25", "s_acctbal": "s_acctbal + 100"},
    "customer": {"c_nationkey": "(c_nationkey + 7) % 25", "c_acctbal": "c_acctbal + 100", "c_mktsegment": "'BUILDING'"},
    "part": {"p_size": "p_size % 50 + 1", "p_brand": "'Brand#23'", "p_container": "'MED BOX'"},
}


@dataclass(frozen=True)
class Data:
    """Is the generated tables of one scale factor.

    Attributes:
        folder: Holds one Parquet file a table.
        scale: The scale factor.
        orders_per_round: How many orders a round inserts, and deletes, at most; by default one in a thousand.
    """

    folder: Path
    scale: float
    orders_per_round: int | None = None

    def generate(self) -> None:
        """Makes the tables, unless they are there."""
        if (self.folder / "done").exists():
            return
        program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        options = ["parquet", "--quiet", "--scale-factor", str(self.scale), "--output-dir", str(self.folder)]
        subprocess.run([str(program), *options], check=True, timeout=_GENERATE_SECONDS)
        (self.folder / "done").touch()

    def path(self, table: str) -> Path:
        """Returns a table's file."""
        return self.folder / f"{table}.parquet"

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Returns a connection to the tables, and to which orders come and go in each round.

        The larger rounds hold the smaller ones, so that what is held back does not depend on how large they are.
        """
        connection = duckdb.connect()
        for name in KEYS:
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{self.path(name)}')")
        (count,) = connection.execute("SELECT count(*) FROM orders").fetchone() or (0,)
        size = max(1, count // SHARE)
        held = count - ROUNDS * size
        # New orders have the highest keys; of the old ones the first few are deleted by range, the others by chance.
        connection.execute(f"""
            CREATE TABLE numbered AS SELECT o_orderkey, row_number() OVER (ORDER BY o_orderkey) - 1 AS n FROM orders;
            CREATE TABLE held AS SELECT o_orderkey, n - {held} AS n FROM numbered WHERE n >= {held};
            CREATE TABLE spread AS
                SELECT o_orderkey, row_number() OVER (ORDER BY (o_orderkey * 2654435761) % 4294967291) - 1 AS n
                FROM numbered WHERE n >= {ROUNDS * size} AND n < {held};
        """)
        limit = size if self.orders_per_round is None else min(size, self.orders_per_round)
        for name, table in (("come", "held"), ("gone_clustered", "numbered"), ("gone_random", "spread")):
            connection.execute(f"""
                CREATE TABLE {name} AS SELECT o_orderkey, n // {size} AS round FROM {table}
                WHERE n < {ROUNDS * size} AND n % {size} < {limit}
            """)
        return connection

    def place(self, landing: Path, number: int, kind: Kind) -> int:
        """Writes what a round changes into the landing folder; returns how many rows change."""
        with self.connect() as connection:
            if kind == "dimensions":
                return sum(_place_dimension(connection, landing, name, number) for name in CHANGES)
            return sum(_place_orders(connection, landing, name, number, kind) for name in ("orders", "lineitem"))

    def write_live(self, target: Path, rounds: Iterable[Round] = ()) -> None:
        """Writes the keys of the orders that are there after some rounds, or before all of them, as a Parquet file."""
        changing = [(number, kind) for number, kind in rounds if kind != "dimensions"]
        come = ", ".join(str(number) for number, _ in changing) or "-1"
        gone = [f"SELECT o_orderkey FROM gone_{kind} WHERE round = {number}" for number, kind in changing]
        with self.connect() as connection:
            connection.execute(f"""
                COPY (
                    (SELECT o_orderkey FROM orders EXCEPT SELECT o_orderkey FROM held)
                    UNION SELECT o_orderkey FROM come WHERE round IN ({come})
                    EXCEPT ({" UNION ".join(gone) or "SELECT NULL"})
                ) TO '{target}' (FORMAT parquet)
            """)


def _struct(columns: Iterable[str]) -> str:
    return f"{{{', '.join(f'{name}: {name}' for name in columns)}}}"


def is_changed(table: str, numbers: Iterable[int]) -> str:
    """Returns the condition, in SQL, that a row of a dimension is changed by one of some rounds; one in 10,000 is.

    Example:
        >>> is_changed("part", [0, 2])
        'p_partkey % 10000 IN (3, 17)'
    """
    return f"{KEYS[table][0]} % 10000 IN ({', '.join(str(7 * number + 3) for number in numbers)})"


def _place_orders(connection: duckdb.DuckDBPyConnection, landing: Path, table: str, number: int, kind: Kind) -> int:
    columns = [one[0] for one in connection.execute(f"DESCRIBE {table}").fetchall()]
    key = _struct(one for one in columns if one in KEYS[table])
    value = _struct(one for one in columns if one not in KEYS[table])
    order = KEYS[table][0]
    return _written(
        connection,
        f"""
            SELECT {key} AS key, {value} AS value FROM {table}
            WHERE {order} IN (SELECT o_orderkey FROM come WHERE round = {number})
            UNION ALL
            SELECT {key}, NULL FROM {table}
            WHERE {order} IN (SELECT o_orderkey FROM gone_{kind} WHERE round = {number})
        """,
        landing / table / f"{number}.jsonl",
        "FORMAT json",
    )


def _place_dimension(connection: duckdb.DuckDBPyConnection, landing: Path, table: str, number: int) -> int:
    changes = ", ".join(f"{value} AS {name}" for name, value in CHANGES[table].items())
    query = f"SELECT * REPLACE ({changes}) FROM {table} WHERE {is_changed(table, [number])}"
    return _written(connection, query, landing / table / f"{number}.csv", "FORMAT csv, HEADER")


def _written(connection: duckdb.DuckDBPyConnection, query: str, target: Path, options: str) -> int:
    """Writes a query's rows into a file that is renamed into place; returns how many they are."""
    draft = target.with_name(f".{target.name}.tmp")
    (count,) = connection.execute(f"COPY ({query}) TO '{draft}' ({options})").fetchone() or (0,)
    draft.rename(target)
    return int(count)
