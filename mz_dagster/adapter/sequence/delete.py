"""DELETE: rows that are found at a time are retracted, if they are still there when that takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mz_dagster.adapter.dml import Updates, removed
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters, Row, least_matches, matches_once
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import StoredRows
from mz_dagster.sql import Delete, bind_delete


def delete(context: Context, statement: Delete, parameters: Parameters) -> Result:
    """Deletes the rows that the statement says."""
    return context.in_own_block(lambda: _deleted(context, statement, parameters))


def _deleted(context: Context, statement: Delete, parameters: Parameters) -> Result:
    writes, circumstances = context.writes, context.circumstances()
    row, table = writes.table(statement)
    looked = writes.looked(row, circumstances, removes=True)
    names = writes.resolver(row)
    bound = bind_delete(statement, row.relation_type, names, params=parameters, circumstances=circumstances)
    plans = [bound.old] if bound.matches is None else [bound.matches, bound.old]
    reading = [writes.peeks.planned(one) for one in plans]

    def decide(now: CollectionRow, time: int) -> tuple[Updates, Sequence[Row]]:
        *matches, gone = (writes.peeks.found_at(one, time) for one in reading)
        if not matches:
            return removed(gone), gone
        arity = len(now.shown)
        if matches_once(matches[0], gone, arity):
            assert isinstance(matches[0], StoredRows), "it is in columns"
            return removed(matches[0].arranged(range(arity))), matches[0]
        rows = [*gone]
        return removed(rows), _with_joined(rows, [*matches[0]], arity)

    returned = partial(writes.returned, statement, row, parameters, circumstances)
    return writes.changed("DELETE", table, reading, decide, returned, looked=looked)


def _with_joined(rows: Sequence[Row], matches: Sequence[Row], arity: int) -> list[Row]:
    """Returns rows of a table, each with what it was joined with."""
    joined = least_matches(matches, arity)
    return [(*one, *joined[repr(one)]) for one in rows]
