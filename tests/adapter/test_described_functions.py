"""The descriptions of functions: each example has the result it is said to have."""

from __future__ import annotations

from decimal import Context, localcontext

from mz_dagster.adapter import Connection
from mz_dagster.functions import AGGREGATES
from mz_dagster.functions.descriptions import DESCRIPTIONS
from tests.postgres_server import Postgres


def test_every_example_has_its_result_here_and_in_postgres(postgres: Postgres, sparkless: Connection) -> None:
    examples = [one for one in DESCRIPTIONS.values() if one.example]
    theirs = postgres.attempt([f"({one.example})::text" for one in examples])
    wrong = []
    for one, their in zip(examples, theirs, strict=True):
        with localcontext(Context(prec=1)):  # what digits numbers have is not up to the caller
            ((ours,),) = sparkless.execute(f"SELECT ({one.example})::text").fetchall()
        if (f"={one.result}", one.result) != (their, ours):
            wrong.append(f"{one.example}: said to be {one.result!r}, here {ours!r}, in PostgreSQL {their!r}")
    assert not wrong, "\n".join(wrong)


def test_every_example_of_an_aggregate_has_its_result_here_and_in_postgres(
    postgres: Postgres, sparkless: Connection
) -> None:
    examples = [one.example for one in AGGREGATES.values() if one.example is not None]
    theirs = postgres.attempt([f"({one.query})::text" for one in examples])
    ours = [sparkless.execute(f"SELECT ({one.query})::text").fetchall()[0][0] for one in examples]
    assert [(f"={one.gives}", one.gives) for one in examples] == list(zip(theirs, ours, strict=True))
