"""REFRESH MATERIALIZED VIEW, of one that is what its query says at every time."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.sql import Refresh


def refresh(context: Context, statement: Refresh, _: Sequence[object]) -> Result:
    """Does nothing, once it is clear that there is such a view."""
    context.names.object(statement.name, "materialized view")
    return Result("REFRESH MATERIALIZED VIEW")
