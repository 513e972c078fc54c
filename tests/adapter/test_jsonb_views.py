"""Views over a table of jsonb: at every time what PostgreSQL says of its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mz_dagster.adapter import Connection
from tests.postgres_server import Postgres, running_postgres

#: Each with its columns: functions that return rows; groups of equal values, and an order.
VIEWS = {
    "parts": (
        "id n a name",
        "SELECT id, n, e -> 'a' AS a, j ->> 'name' AS name"
        " FROM d, jsonb_array_elements(j -> 'parts') WITH ORDINALITY AS p (e, n) WHERE e <> '7'",
    ),
    "sizes": (
        "size n names o",
        "SELECT jsonb_typeof(j -> 'size') AS size, count(*) AS n,"
        " jsonb_agg(j -> 'name' ORDER BY j -> 'name' DESC, id) AS names,"
        " jsonb_object_agg(id, j #> '{size,0}') AS o FROM d GROUP BY j -> 'size'",
    ),
}
ROWS = [
    (1, '{"name": "x", "size": [1.0, 2], "parts": [{"a": 1}, {"b": null, "a": "é"}]}'),
    (2, '{"size": [1, 2.00], "name": "y", "parts": []}'),
    (3, '{"name": null, "size": null}'),
    (4, None),
]
WRITES = [
    """INSERT INTO d VALUES (5, '{"size": [10], "parts": [{"a": [true, {}]}, 7]}'), (6, '{"size": [1.000, 2]}')""",
    """UPDATE d SET j = jsonb_set(j, '{size}', '[10.0]') || '{"name": "z"}' WHERE j ? 'name' AND id < 3""",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def test_views_of_jsonb_are_those_of_postgres_at_every_time(connection: Connection, postgres: Postgres) -> None:
    postgres.run("CREATE TABLE d (id int, j jsonb)")
    connection.execute("CREATE TABLE d (id int, j jsonb)")
    for row in ROWS:
        postgres.run(f"INSERT INTO d VALUES ({row[0]}, {'NULL' if row[1] is None else repr(row[1])})")
    connection.cursor().executemany("INSERT INTO d VALUES (?, ?)", ROWS)
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
            texts = [[None if cell is None else str(cell) for cell in row] for row in found]
            assert sorted(texts, key=repr) == sorted(answer, key=repr), f"{name} at {time}"


def _theirs(postgres: Postgres, name: str) -> list[list[str | None]]:
    """Returns the rows that PostgreSQL finds, each cell as its text."""
    columns, query = VIEWS[name]
    cells = ", ".join(f"{column}::text" for column in columns.split())
    return [
        json.loads(line)
        for line in postgres.run(f"SELECT array_to_json(ARRAY[{cells}]) FROM ({query}) AS q").splitlines()
    ]
