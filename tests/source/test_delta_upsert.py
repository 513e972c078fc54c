"""ENVELOPE UPSERT over Delta tables: what the last commit says of a key is its row, whichever versions are bound.

The reference takes each version whole, as delta-rs reads it, and makes the states of keys of their differences.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mz_dagster import Error
from mz_dagster.adapter import Connection
from tests.budgets import SetBudget
from tests.source.test_delta import TIMELINE, Writer, held, last_tick, rows, vacuum

SOURCE = "CREATE SOURCE t (a bigint, p text, x double precision, PRIMARY KEY (a)) FROM DELTA (URI 'lake/t') "
BEGINS = "ENVELOPE UPSERT WITH (START VERSION 0)"


def append(table: Path, *values: tuple[int, str | None, float | None]) -> None:
    write_deltalake(table, rows(*values), mode="append")


def test_the_last_row_of_a_key_is_its_row(connection: Connection, table: Path) -> None:
    append(table, (1, "x", 0.5), (2, "x", None))
    connection.execute(SOURCE + "ENVELOPE UPSERT")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM t GROUP BY p")
    assert held(connection) == {(1, "x", 0.5): 1, (2, "x", None): 1}
    first = last_tick(connection)
    append(table, (1, "y", 0.5))
    append(table, (1, "z", 0.5), (3, "x", 0.0))
    assert held(connection) == {(1, "z", 0.5): 1, (2, "x", None): 1, (3, "x", 0.0): 1}
    assert held(connection, "v") == {("x", 2): 1, ("z", 1): 1}
    DeltaTable(table).optimize.compact()
    DeltaTable(table).delete("p = 'x' and a = 1")  # what was replaced long ago
    assert held(connection) == {(1, "z", 0.5): 1, (2, "x", None): 1, (3, "x", 0.0): 1}
    DeltaTable(table).delete("a = 2")
    DeltaTable(table).update(updates={"p": "'u'"}, predicate="a = 3")
    assert held(connection) == {(1, "z", 0.5): 1, (3, "u", 0.0): 1}
    assert held(connection, at=first) == {(1, "x", 0.5): 1, (2, "x", None): 1}
    assert connection.execute("SELECT p FROM t WHERE a = 3").fetchall() == [("u",)]


def test_a_key_alone_is_stated_beside_the_tables_columns(connection: Connection, table: Path) -> None:
    append(table, (1, "x", 0.5))
    connection.execute("CREATE SOURCE t (PRIMARY KEY (a, p)) FROM DELTA (URI 'lake/t') ENVELOPE UPSERT")
    (made,) = connection.execute("SHOW CREATE SOURCE t").fetchall()
    assert '("a" bigint, "p" text, "x" double precision, PRIMARY KEY (a, p))' in made[-1]
    assert held(connection) == {(1, "x", 0.5): 1}
    append(table, (1, "x", 1.5), (1, "y", 2.5))
    assert held(connection) == {(1, "x", 1.5): 1, (1, "y", 2.5): 1}
    with pytest.raises(Error, match='column "b" named in key does not exist'):
        connection.execute("CREATE SOURCE u (PRIMARY KEY (b)) FROM DELTA (URI 'lake/t') ENVELOPE UPSERT")


def test_several_rows_of_a_key_at_once_are_an_error_until_one_is_left(connection: Connection, table: Path) -> None:
    append(table, (1, "x", 0.5), (1, "y", 0.5), (2, "z", None))
    connection.execute(SOURCE + "ENVELOPE UPSERT")
    with pytest.raises(Error, match=r"several rows of one key at once: \(a\)=\(1\)") as raised:
        held(connection)
    assert raised.value.sqlstate == "23505"
    DeltaTable(table).delete("p = 'x'")
    assert held(connection) == {(1, "y", 0.5): 1, (2, "z", None): 1}
    append(table, (1, "u", 1.0), (1, "u", 1.0), (3, "u", 1.0))
    with pytest.raises(Error, match="several rows of one key"):
        held(connection)
    append(table, (1, "v", 2.0))
    assert held(connection) == {(1, "v", 2.0): 1, (2, "z", None): 1, (3, "u", 1.0): 1}


def test_a_value_that_is_none_is_an_error_of_its_key(connection: Connection, table: Path) -> None:
    append(table, (1, "x", 0.5))
    connection.execute(
        "CREATE SOURCE t (a smallint, p varchar(1), PRIMARY KEY (a)) FROM DELTA (URI 'lake/t') ENVELOPE UPSERT"
    )
    assert held(connection) == {(1, "x"): 1}
    append(table, (1, "long", None))
    with pytest.raises(Error, match=r'too long.*"p"'):
        held(connection)
    append(table, (1, "y", None), (70_000, "x", None))
    with pytest.raises(Error, match=r'out of range.*"a"'):
        held(connection)
    DeltaTable(table).delete("a = 70000")
    assert held(connection) == {(1, "y"): 1}


def test_a_reset_takes_what_is_there(connection: Connection, table: Path) -> None:
    append(table, (1, "x", 0.5), (2, "x", None))
    connection.execute(SOURCE + "ENVELOPE UPSERT")
    held(connection)
    DeltaTable(table).update(updates={"p": "'y'"}, predicate="a = 1")
    DeltaTable(table).delete("a = 2")
    vacuum(table)
    assert "cannot be read any more" in str(*connection.engine.poll(TIMELINE).failures.values())
    connection.execute("ALTER SOURCE t RESET")
    assert held(connection) == {(1, "y", 0.5): 1}
    append(table, (1, "z", 0.5))
    assert held(connection) == {(1, "z", 0.5): 1}


def test_what_keys_held_is_looked_up_in_much(connection: Connection, table: Path, set_budget: SetBudget) -> None:
    append(table, *((n, "x", None) for n in range(2_000)))
    connection.execute(SOURCE + "ENVELOPE UPSERT")
    held(connection)
    set_budget(whole_rows=10)
    append(table, (7, "y", None), (3_000, "y", None))
    assert connection.execute("SELECT a FROM t WHERE p = 'y' ORDER BY a").fetchall() == [(7,), (3_000,)]
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2_001,)]


# ---- random histories


class OneOfEach(Writer):
    """Does at random what others do to a table, most commits with one row of each key."""

    def some(self, most: int) -> pa.Table:
        found = super().some(most)
        if self.random.random() < 0.1:
            return found
        last = {key: place for place, key in enumerate(found.column("a").to_pylist())}
        return found.take(list(last.values()))

    def update(self) -> None:
        DeltaTable(self.table).update(updates={"x": "x + 1"}, predicate="p = 'x'")


class States:
    """The states of keys by the differences of versions."""

    def __init__(self, table: Path | str) -> None:
        self.table = table
        self.version = -1
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.of: dict[Any, Counter[tuple[Any, ...]]] = {}

    def advance(self) -> None:
        newest = DeltaTable(self.table).version()
        for version in range(self.version + 1, newest + 1):
            found = DeltaTable(self.table, version=version).to_pyarrow_table().select(["a", "p", "x"])
            there = Counter(
                (a, p, repr(x)) for a, p, x in zip(*(one.to_pylist() for one in found.columns), strict=True)
            )
            comes, goes = there - self.rows, self.rows - there
            for key in {row[0] for row in [*comes, *goes]}:
                new, gone = (Counter({row: n for row, n in one.items() if row[0] == key}) for one in (comes, goes))
                self.of[key] = new or self.of.get(key, Counter()) - gone
            self.rows, self.version = there, version


def follow(
    connection: Connection, table: Path | str, seed: int, commits: int, delta: str = "DELTA (URI 'lake/t')"
) -> tuple[int, int]:
    random = Random(seed)
    writer, states = OneOfEach(table, random, feed=random.random() < 0.5), States(table)
    connection.execute(SOURCE.replace("DELTA (URI 'lake/t')", delta) + BEGINS)
    connection.engine.poll(TIMELINE)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM t GROUP BY p")
    done: list[str] = []
    equal = wrong = 0
    for _ in range(commits):
        done.append(writer.write())
        if random.random() < 0.5:
            continue
        states.advance()
        if any(one.total() > 1 for one in states.of.values()):
            wrong += 1
            with pytest.raises(Error, match="several rows of one key"):
                held(connection)
            continue
        equal += 1
        wanted: Counter[tuple[Any, ...]] = sum(states.of.values(), Counter())
        assert Counter((a, p, repr(x)) for a, p, x in held(connection).elements()) == wanted, done
        assert held(connection, "v") == dict.fromkeys(Counter(p for _, p, _ in wanted).items(), 1), done
    return equal, wrong


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 5))])
def test_whatever_is_committed_keys_have_their_last_rows(connection: Connection, table: Path, seed: int) -> None:
    equal, wrong = follow(connection, table, seed, 40)
    assert equal > 3
    assert wrong > 0


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 110))
def test_whatever_is_committed_for_long_keys_have_their_last_rows(
    connection: Connection, table: Path, seed: int
) -> None:
    follow(connection, table, seed, 300)
