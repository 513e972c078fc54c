"""The catalogs' type "char", made of numbers and of texts, and read as a number: as in PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mz_dagster.errors import Error
from tests.opened import opened
from tests.postgres_server import Postgres

EXPRESSIONS = (
    '65::"char"',
    '(60 + 5)::"char"',
    "0::\"char\" = ''",
    '127::"char"::text',
    '128::"char"',
    'CAST(NULL::integer AS "char")',
    "'abc'::\"char\"",
    "'65'::\"char\"",
    "'abc'::text::\"char\"",
    '65::bigint::"char"',
    '65::smallint::"char"',
    '1.5::"char"',
    'true::"char"',
    "'A'::\"char\"::integer",
    "''::\"char\"::integer",
    'a::"char"',
    "(a - a)::\"char\" = ''",
    '(a + 63)::"char"',
    '(a + 10000000)::"char"',
    'a::"char"::integer + 1',
)


def test_it_is_as_in_postgres(tmp_path: Path, postgres: Postgres) -> None:
    found: list[list[Any]] = [[], []]
    with opened(tmp_path) as ours, postgres.new_database().connect() as theirs:
        theirs.autocommit = True
        for execute, outcomes, failure in (
            (theirs.execute, found[0], Exception),
            (ours.execute, found[1], Error),
        ):
            execute("CREATE TABLE t (a integer)")
            execute("INSERT INTO t VALUES (65)")
            for one in EXPRESSIONS:
                try:
                    outcomes.append(execute(f"SELECT {one} FROM t").fetchall())
                except failure as error:
                    outcomes.append(getattr(error, "sqlstate", error))
    different = [one for one in zip(EXPRESSIONS, *found, strict=True) if one[1] != one[2]]
    assert not different, "\n".join(map(str, different))
    assert found[0].count("22003") == 3
