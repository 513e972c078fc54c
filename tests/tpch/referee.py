"""PostgreSQL's answers to the project's queries over the same rows."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from tests.postgres_server import Postgres
from tests.tpch.feed import KEYS, Refresh

#: What PostgreSQL's own plans need to be quick.
_INDEXES = ("orders (o_custkey)", "lineitem (l_partkey, l_suppkey)", "partsupp (ps_suppkey)")

Row = tuple[Any, ...]


class Referee:
    """Holds the eight tables, and answers.

    Args:
        server: The server.
        assets: The folder of the project's SQL files. Its sources become tables, its views stay views.

    Attributes:
        queries: The text of each materialized view's query, by the view's name.
    """

    def __init__(self, server: Postgres, assets: Path) -> None:
        self._connection = server.connect()
        self.queries: dict[str, str] = {}
        self._execute("DROP SCHEMA IF EXISTS tpch CASCADE; CREATE SCHEMA tpch; SET search_path = tpch")
        for statement in _statements(assets):
            if source := re.search(r"CREATE SOURCE (\w+ \(.*\))\nFROM FILES", statement, re.DOTALL):
                self._execute(f"CREATE TABLE {source[1]}")
            elif view := re.search(r"CREATE MATERIALIZED VIEW (\w+) AS\n", statement):
                self.queries[view[1]] = statement[view.end() :]
            else:
                self._execute(statement)
        for one in _INDEXES:
            self._execute(f"CREATE INDEX ON {one}")

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def apply(self, refresh: Refresh) -> None:
        """Makes the tables hold what a refresh leaves."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for name, keys in refresh.deletes.items():
                condition = " AND ".join(f"{key} = %s" for key in KEYS[name])
                cursor.executemany(f"DELETE FROM {name} WHERE {condition}".encode(), keys)
            for name, rows in refresh.upserts.items():
                cursor.execute(f"CREATE TEMP TABLE come (LIKE {name})".encode())
                with cursor.copy(f"COPY come ({', '.join(rows[0])}) FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row(tuple(row.values()))
                same = " AND ".join(f"old.{key} = come.{key}" for key in KEYS[name])
                cursor.execute(f"DELETE FROM {name} AS old USING come WHERE {same}".encode())
                cursor.execute(f"INSERT INTO {name} SELECT * FROM come; DROP TABLE come".encode())
        self._execute("ANALYZE")

    def answer(self, view: str, time: int) -> list[Row]:
        """Returns the rows of a view's query, of which mz_now() is `time`."""
        moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=time)
        text = self.queries[view].replace("mz_now()", f"timestamp '{moment:%Y-%m-%d %H:%M:%S.%f}'")
        return self._connection.execute(text.encode()).fetchall()

    def _execute(self, text: str) -> None:
        self._connection.execute(text.encode())


def _statements(assets: Path) -> Iterator[str]:
    """Yields the statements of all files, those that make sources first."""
    for path in sorted(assets.glob("*.sql"), key=lambda one: (one.stem != "sources", one.stem)):
        yield from filter(None, (one.strip() for one in path.read_text(encoding="utf-8").split(";\n")))


def as_multisets(*answers: Sequence[Row]) -> list[Counter[Row]]:
    """Returns answers, their rows counted, with numerics to as many digits as all of them have.

    A numeric column has one scale here; PostgreSQL gives each quotient and average the digits that it thinks fit.

    Example:
        >>> mine, theirs = as_multisets([(Decimal("0.6667"),)], [(Decimal("0.66666667"),)])
        >>> mine == theirs
        True
    """
    digits: dict[int, int] = {}
    for row in (row for rows in answers for row in rows):
        for i, cell in enumerate(row):
            if isinstance(cell, Decimal):
                digits[i] = min(digits.get(i, 38), max(0, -int(cell.as_tuple().exponent)))
    return [Counter(_rounded(rows, digits)) for rows in answers]


def _rounded(rows: Iterable[Row], digits: dict[int, int]) -> Iterator[Row]:
    for row in rows:
        yield tuple(
            cell.quantize(Decimal(1).scaleb(-digits[i]), ROUND_HALF_UP) if isinstance(cell, Decimal) else cell
            for i, cell in enumerate(row)
        )
