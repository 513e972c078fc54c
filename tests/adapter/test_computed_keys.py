"""Joins by what is computed of a large side's rows: a step evaluates what is new, and the rows are the query's."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute.local import computed_keys
from tests.budgets import SetBudget
from tests.sparkless import refused

ROWS = 400
VIEWS = {
    "lowered": "SELECT t.id, u.name FROM t JOIN u ON lower(t.s) = u.name",
    "concatenated": "SELECT t.id, u.id AS other FROM t JOIN u ON t.k::text || '-' || t.c::text = u.code",
    "added": "SELECT t.id, u.name FROM t LEFT JOIN u ON t.k + 1 = u.k",
    "text": "SELECT t.id, u.id AS other FROM t JOIN u ON t.s = u.name",
    "tenant": "SELECT t.id, u.id AS other FROM t JOIN u ON t.c = u.id % 5 AND t.s = u.name",
    "null_safe": "SELECT t.id, u.id AS other FROM t JOIN u ON nullif(t.k, 3) IS NOT DISTINCT FROM u.k",
    "two": "SELECT t.id, u.id AS other FROM t JOIN u ON t.k + 1 = u.k AND lower(t.s) = lower(u.name)",
    "mapped": "SELECT x.id, u.id AS other FROM (SELECT id, k * 2 AS d FROM t WHERE c > 0) x JOIN u ON x.d + 1 = u.k",
    "numeric": "SELECT t.id, u.id AS other FROM t JOIN u ON t.n * 2 = u.n",
    "float": "SELECT t.id, u.id AS other FROM t JOIN u ON t.k * -0.5::float8 = u.n::float8 / -2",
    "day": "SELECT t.id, u.id AS other FROM t JOIN u ON t.at::date = u.day",
    "either": "SELECT x.id FROM (SELECT id, k AS a FROM t UNION ALL SELECT id, c FROM t) x JOIN u ON x.a % 7 = u.k",
    "document": "SELECT t.id, u.id AS other FROM t JOIN u ON t.j->>'key' = u.name",
    "quotient": "SELECT t.id, u.id AS other FROM t JOIN u ON 60 / t.d = u.k",
}


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Engine, Connection]]:
    with (
        Engine(Project.load(folder), session=refused) as engine,
        Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
    ):
        yield engine, connection


def fact(number: int) -> str:
    k = "NULL" if number % 11 == 0 else number % 13
    return (
        f"({number}, {k}, {number % 5}, '{'aBcDe'[number % 5]}{number % 9}', {number % 7}.5, "
        f"timestamp '2026-01-01' + interval '{number % 40} hours', jsonb '{{\"key\": \"a{number % 9}\"}}', "
        f"{number % 6 + 1})"
    )


def dimension(number: int) -> str:
    k = "NULL" if number % 5 == 0 else number % 13
    return (
        f"({number}, '{'abcde'[number % 5]}{number % 9}', '{number % 13}-{number % 5}', {k}, {number % 15}.0, "
        f"date '2026-01-01' + {number % 3})"
    )


def fill(connection: Connection, views: Iterable[str] = VIEWS) -> None:
    connection.execute(
        "CREATE TABLE t (id integer, k integer, c integer, s text, n numeric(8, 1), at timestamp, j jsonb, d integer)"
    )
    connection.execute("CREATE TABLE u (id integer, name text, code text, k integer, n numeric(8, 1), day date)")
    connection.execute(f"INSERT INTO t VALUES {', '.join(map(fact, range(ROWS)))}")
    connection.execute(f"INSERT INTO u VALUES {', '.join(map(dimension, range(12)))}")
    for name in views:
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")


def check(connection: Connection, views: Iterable[str] = VIEWS) -> None:
    for name in views:
        found = sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
        assert found == sorted(connection.execute(VIEWS[name]).fetchall(), key=repr), name


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Of how many rows a key was computed, and which, each time that one was."""
    found: list[tuple[int, str]] = []
    numbers = computed_keys._numbers

    def noted(table: pa.Table, *others: object) -> pa.Array:
        found.append((len(table), repr(others)))
        return numbers(table, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(computed_keys, "_numbers", noted)
    return found


@pytest.mark.parametrize(
    ("decoded_rows", "views"),
    [
        (0, list(VIEWS)[::2]),
        pytest.param(0, list(VIEWS), marks=pytest.mark.deep),
        pytest.param(10**9, list(VIEWS), marks=pytest.mark.deep),
    ],
    ids=["on disk", "all on disk", "all in memory"],
)
def test_a_step_evaluates_no_key_of_what_it_has_met(
    tmp_path: Path, set_budget: SetBudget, evaluated: list[tuple[int, str]], decoded_rows: int, views: list[str]
) -> None:
    set_budget(whole_rows=0, ordered_rows=0, decoded_rows=decoded_rows)
    (tmp_path / "mz.toml").write_text("[writes]\ninline_rows = 0\n")
    dice = random.Random(11)
    with opened(tmp_path) as (_, connection):
        fill(connection, views)
        for number in range(4):
            if number == 1:
                of_all = [key for rows, key in evaluated if rows == ROWS]
                assert len(of_all) == len(set(of_all)) >= len(views), "each key of the first file is computed once"
            evaluated.clear()
            changed = 12 if number == 0 else dice.randrange(12)
            connection.execute("BEGIN")
            connection.execute(
                "UPDATE u SET k = k + 1, name = upper(name), code = replace(code, '1-', '2-'), n = n + 1, day = day + 1"
                f" WHERE id = {changed} OR {number} = 0"
            )
            if number == 2:
                connection.execute(f"DELETE FROM t WHERE id = {dice.randrange(ROWS)}")
                connection.execute(f"INSERT INTO t VALUES {fact(ROWS)}")
                connection.execute(f"INSERT INTO u VALUES {dimension(12)}")
            connection.execute("COMMIT")
            check(connection, views)
            if number > 0:
                assert sum(rows for rows, _ in evaluated) < ROWS, "only those of what was written since are computed"
    if not decoded_rows:
        with opened(tmp_path) as (_, connection):
            evaluated.clear()
            connection.execute("UPDATE u SET k = k + 1 WHERE id = 3")
            check(connection, views)
            assert sum(rows for rows, _ in evaluated) < ROWS, "another process finds what the first has computed"


def test_a_row_whose_key_fails_is_an_error_until_it_is_gone(tmp_path: Path, set_budget: SetBudget) -> None:
    set_budget(whole_rows=0, ordered_rows=0, decoded_rows=0)
    (tmp_path / "mz.toml").write_text("[writes]\ninline_rows = 0\n")
    with opened(tmp_path) as (_, connection):
        fill(connection, ["quotient"])
        connection.execute(f"INSERT INTO t (id, d) VALUES {', '.join(f'({1_000 + n}, {n})' for n in range(50))}")
        for number in range(3):
            connection.execute(f"UPDATE u SET k = k + 1 WHERE id = {number}")
            with pytest.raises(Exception, match="division by zero"):
                connection.execute("SELECT * FROM quotient")
        connection.execute("DELETE FROM t WHERE d = 0")
        connection.execute("UPDATE u SET k = k + 1 WHERE id = 4")
        check(connection, ["quotient"])
