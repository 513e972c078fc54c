"""PostgreSQL 15 as the referee of a world: it runs the same statements, and answers for every time again.

After each write it keeps a copy of the tables, so that any query can be asked of any of the world's states. Of a
query whose errors are determined it tells which rows are errors, with which SQLSTATE, and the answer without them: by
a function for each SELECT that evaluates its expressions one by one, each in a block that catches.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg

from mz_dagster.functions.moments.interval_text import text_of_interval
from mz_dagster.scalars.values import Interval
from tests.oracle.dialects import theirs
from tests.oracle.scope import Arm, Query, Relation
from tests.postgres_server import Postgres

Rows = Counter[str]


@dataclass(frozen=True)
class Answer:
    """Is what a query gives: rows, or an error.

    Attributes:
        rows: By their spelling; of a failed query the rows that are no errors, or None if that is not known.
        codes: The SQLSTATEs that the failed query may raise; empty if it did not fail.
    """

    rows: Rows | None
    codes: frozenset[str] = frozenset()


def spelled(rows: Sequence[Sequence[Any]], types: Sequence[str]) -> Rows:
    """Returns rows by a spelling in which NaN equals NaN, 0.0 differs from -0.0 and 1.0 equals 1.00 if numeric."""
    return Counter(repr(tuple(_spelled(v, t) for v, t in zip(row, types, strict=True))) for row in rows)


def _spelled(value: Any, type_: str) -> object:
    if value is None or type_ == "text":
        return value
    if isinstance(value, Interval):
        return text_of_interval(value)
    if type_.startswith("numeric") or type_ == "mz_timestamp":
        return _trimmed(Decimal(value))
    if type_ == "real":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _trimmed(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Referee:
    """Is a schema of the server's own for one world.

    Args:
        server: The server.
        schema: The schema's name.
    """

    def __init__(self, server: Postgres, schema: str) -> None:
        self._connection = server.connect()
        #: Tables, each with what the table of its states is called.
        self._tables: list[tuple[Relation, str]] = []
        self._schemas = [schema]
        self._states = 0
        self._functions: dict[Arm, str] = {}
        self.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        self.run(f"SET search_path = {schema}; SET TimeZone = 'UTC'")
        # It groups by a hash, then, which keeps the order of a derived table's rows within a group.
        self.run("SET enable_sort = off")
        self.run("CREATE DOMAIN mz_timestamp AS numeric(20,0)")
        self.run(
            "CREATE FUNCTION mz_now() RETURNS numeric LANGUAGE sql STABLE"
            " AS $$ SELECT current_setting('mz.now')::numeric $$"
        )
        self.set_now(0)

    def close(self) -> None:
        """Drops the schemas."""
        for schema in self._schemas:
            self.run(f"DROP SCHEMA {schema} CASCADE")
        self._connection.close()

    def run(self, text: str) -> int:
        """Executes statements; returns how many rows the last one touched."""
        return self._connection.execute(theirs(text).encode()).rowcount

    def try_run(self, text: str) -> str | None:
        """Executes a statement; returns its SQLSTATE if it fails."""
        try:
            self.run(text)
        except psycopg.Error as error:
            return error.sqlstate or "?"
        return None

    def set_now(self, time: int) -> None:
        """Sets what `mz_now()` says."""
        self.run(f"SET mz.now = '{time}'")

    # ---- states

    def create_schema(self, schema: str) -> None:
        """Creates a schema of the world, anew if one that was given up has left it."""
        self.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        self._schemas.append(schema)

    def create_table(self, table: Relation, definition: str) -> None:
        """Creates a table of the world."""
        old = f"old_{len(self._tables)}"
        self.run(definition)
        self.run(f"CREATE TABLE {old} AS SELECT 0 AS old_state, * FROM {table.name}")
        self._tables.append((table, old))

    def keep_state(self) -> int:
        """Keeps what the tables hold now; returns the state's number."""
        self._states += 1
        for table, old in self._tables:
            self.run(f"INSERT INTO {old} SELECT {self._states}, * FROM {table.name}")
        return self._states

    def restore(self, state: int) -> None:
        """Makes the tables hold what they held."""
        for table, old in self._tables:
            columns = ", ".join(one.name for one in table.columns)
            self.run(f"DELETE FROM {table.name}")
            self.run(f"INSERT INTO {table.name} SELECT {columns} FROM {old} WHERE old_state = {state}")

    # ---- answers

    def answer(self, query: Query, text: str) -> Answer:
        """Returns the answer of `text`, which is `query` or reads it."""
        types = [one.type for one in query.columns]
        try:
            return Answer(spelled(self._fetch(text), types))
        except psycopg.Error as error:
            if not query.arms:
                return Answer(None, frozenset({error.sqlstate or "?"}))
        rows: Rows | None = Counter()
        codes: set[str] = set()
        names = [one.name for one in query.columns]
        for arm in query.arms:
            call = self._check(arm)
            try:
                right = spelled(self._fetch(query.prefix + arm.text(names, f"{call} = '{{}}'")), types)
                rows = None if rows is None else rows + right
            except psycopg.Error:
                rows = None  # what is constant it computes when it plans, whatever guards it
            found = self._fetch(f"{query.prefix}SELECT DISTINCT unnest({call}) FROM {arm.scope.text}")
            codes |= {str(one) for (one,) in found} - {"skip"}
        # None, if PostgreSQL fails when it plans, by what is constant and no row asks for.
        return Answer(rows, frozenset(codes))

    def _check(self, arm: Arm) -> str:
        """Returns a call that yields the SQLSTATEs with which a row of the scope fails."""
        if arm not in self._functions:
            name = f"check_{len(self._functions)}"
            parameters = ", ".join(f"p{i} {one.type}" for i, one in enumerate(arm.scope.columns))

            def spell(one: Any) -> str:
                return str(one.with_columns(lambda n: f"p{n}"))

            lines = []
            if arm.where is not None:
                lines.append(f"BEGIN ok := {spell(arm.where)}; EXCEPTION WHEN OTHERS THEN RETURN ARRAY[SQLSTATE]; END;")
                lines.append("IF ok IS NOT TRUE THEN RETURN ARRAY['skip']; END IF;")
            for one in arm.items:
                lines.append(f"BEGIN PERFORM {spell(one)}; EXCEPTION WHEN OTHERS THEN codes := codes || SQLSTATE; END;")
            body = "\n".join(lines)
            self.run(
                f"CREATE FUNCTION {name}({parameters}) RETURNS text[] LANGUAGE plpgsql AS $check$ "
                f"DECLARE ok boolean; codes text[] := '{{}}'; BEGIN {body} RETURN codes; END $check$"
            )
            self._functions[arm] = name
        return f"{self._functions[arm]}({', '.join(arm.scope.spelled)})"

    def _fetch(self, text: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(theirs(text).encode()).fetchall()
