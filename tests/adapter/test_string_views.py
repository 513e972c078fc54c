"""Views over strings with a length, uuids and bytes: at every time what PostgreSQL says of its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import DataError
from tests.postgres_server import Postgres, running_postgres

TABLE = "id int, c char(3), v varchar(5), u uuid, b bytea"
#: Each with its columns: groups of equal values, an order, a join over two types, functions that see blanks.
VIEWS = {
    "groups": (
        "c n m b",
        "SELECT c, count(*) AS n, max(c) AS m, count(DISTINCT b) AS b FROM s GROUP BY c HAVING c <> 'zz '",
    ),
    "pairs": (
        "id other shown",
        "SELECT x.id, y.id AS other, concat('<', x.c, '>', x.v) AS shown FROM s AS x, s AS y WHERE x.c = y.v",
    ),
    "found": (
        "id p w h",
        "SELECT id, regexp_replace(v, '(a|ab)(c|bcd)?', '[\\1-\\2]', 'g') AS p, v SIMILAR TO '[a-c]+' AS w,"
        " encode(sha256(b), 'hex') AS h FROM s WHERE c LIKE 'a %' OR v ~ '^a.c'",
    ),
}
ROWS = [
    (1, "a", "abc", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", b"\x00\xff"),
    (2, "a  ", "a", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", b""),
    (3, "abc", "abcd", None, b"\x80"),
    (4, None, None, "00000000-0000-0000-0000-000000000000", None),
    (5, "a\t", "a\t", None, b"\x7f"),
]
WRITES = [
    "INSERT INTO s VALUES (6, 'ab', 'ab   ', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\\x00ff'), (7, '', '', NULL, '')",
    "DELETE FROM s WHERE c = 'a' OR u = 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def test_views_of_strings_are_those_of_postgres_at_every_time(connection: Connection, postgres: Postgres) -> None:
    postgres.run(f"CREATE TABLE s ({TABLE})")
    connection.execute(f"CREATE TABLE s ({TABLE})")
    for row in ROWS:
        cells = ", ".join("NULL" if cell is None else _quoted(cell) for cell in row)
        postgres.run(f"INSERT INTO s VALUES ({cells})")
    connection.cursor().executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?)", ROWS)
    for name, (_, query) in VIEWS.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    expected: dict[int, dict[str, list[list[str | None]]]] = {}
    for write in WRITES:
        connection.execute(write)
        postgres.run(write)
        time = connection.engine.catalog.read_ts("default")
        expected[time] = {name: _theirs(postgres, name) for name in VIEWS}
    for time, answers in reversed(expected.items()):
        for name, answer in answers.items():
            found = connection.execute(f"SELECT * FROM {name} AS OF {time}").fetchall()
            texts = [[_text(cell) for cell in row] for row in found]
            assert sorted(texts, key=repr) == sorted(answer, key=repr), f"{name} at {time}"
    with pytest.raises(DataError, match=r"value too long for type character\(3\)"):
        connection.execute("INSERT INTO s SELECT id, 'ab' || v FROM s WHERE id = 5")


def _quoted(cell: object) -> str:
    return f"'\\x{cell.hex()}'" if isinstance(cell, bytes) else f"'{cell}'"


def _text(cell: object) -> str | None:
    match cell:
        case None:
            return None
        case bool():
            return "t" if cell else "f"
        case bytes():
            return f"\\x{cell.hex()}"
        case _:
            return str(cell)


def _theirs(postgres: Postgres, name: str) -> list[list[str | None]]:
    """Returns the rows that PostgreSQL finds, each cell as it shows it."""
    columns, query = VIEWS[name]
    cells = ", ".join(f"CASE WHEN {one} IS NOT NULL THEN format('%s', {one}) END" for one in columns.split())
    return [
        json.loads(line)
        for line in postgres.run(f"SELECT array_to_json(ARRAY[{cells}]) FROM ({query}) AS q").splitlines()
    ]
