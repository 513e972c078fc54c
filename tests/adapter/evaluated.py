"""A session without Spark: what Spark would compute is evaluated naively, plan and all, over the shards' rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mz_dagster.adapter import peeks
from mz_dagster.adapter.simple_plan import shown
from mz_dagster.compute.snapshot.peek import rows_of as rows_read
from mz_dagster.errors import DataError
from mz_dagster.plan.relation import Constant, Relation
from mz_dagster.scalars.scalar import Literal
from mz_dagster.sql.constraints import GivenRows
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.storage.read import leased
from tests.plan.reference import Rows
from tests.sparkless import refuse_spark
from tests.sql.evaluation import Failed, rows_of


class ErrorOfTheData(DataError):
    """Is an error that the evaluator found.

    Attributes:
        sqlstate: PostgreSQL's code.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.sqlstate = message[:5]


def _hashable(cell: Any) -> Any:
    return tuple(cell) if isinstance(cell, list) else cell


def evaluate_peeks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets sessions evaluate queries in this process; whatever else needs Spark fails."""

    def run(
        self: peeks.Peeks, plan: Relation, time: int, rows: list[Any], given: GivenRows | None
    ) -> list[tuple[Any, ...]]:
        if isinstance(plan, Constant):
            return [tuple(shown(cell) for cell in row) for row in plan.rows]
        engine = self.engine
        collections: dict[str, Rows] = {}
        if given is not None:
            collections[given.id] = Counter(tuple(map(_hashable, one)) for one in given.rows)
        with leased(engine.catalog, tuple(row.id for row in rows), holder=engine.holder) as lease:
            for row in rows:
                frame = engine.shards.read(row, lease.snapshots[row.id].batches, upper=time + 1)
                total = engine.shards.consolidate(row, frame, time)
                data = [moments_as_numbers(total.column(one.name)).to_pylist() for one in row.columns]
                updates = zip(
                    *data, total.column("mz_diff").to_pylist(), total.column("mz_error").to_pylist(), strict=True
                )
                collections[row.id] = Counter(tuple(map(_hashable, one)) for one in rows_read(updates, row.columns))
        try:
            types = [column.type for column in plan.relation_type.columns]
            found = rows_of(plan, collections).elements()
            return [tuple(shown(Literal(*one)) for one in zip(row, types, strict=True)) for row in found]
        except Failed as failed:
            raise ErrorOfTheData(str(failed)) from failed

    refuse_spark(monkeypatch)
    monkeypatch.setattr(peeks, "lower_to_snapshot_plan", lambda relation: relation)
    monkeypatch.setattr(peeks.Peeks, "_run", run)
