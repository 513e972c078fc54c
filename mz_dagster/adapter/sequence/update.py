"""UPDATE: rows that are found at a time are replaced, if they are still there when that takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mz_dagster.adapter.constraints import Enforcement, shown
from mz_dagster.adapter.dml import ColumnUpdates, Updates, check_not_null
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.names import TargetFirst
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters, Row, least_matches, matches_once
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import StoredRows
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql import Update, bind_update


class AmbiguousUpdate(ProgrammingError):
    """An UPDATE whose FROM clause gives a row of the table several new values; nothing was written."""

    sqlstate = "21000"


def update(context: Context, statement: Update, parameters: Parameters) -> Result:
    """Updates the rows that the statement says."""
    return context.in_own_block(lambda: _updated(context, statement, parameters))


def _updated(context: Context, statement: Update, parameters: Parameters) -> Result:
    writes, circumstances = context.writes, context.circumstances()
    row, table = writes.table(statement)
    enforcement = Enforcement.of(row, TargetFirst(writes.names, row, writes.engine), circumstances)
    changes = {*enforcement.constraints.computed, *(one.column for one in statement.assignments)}
    looked = writes.looked(row, circumstances, adds=True, removes=True, changes=sorted(changes))
    bound = bind_update(
        statement,
        row.relation_type,
        writes.resolver(row),
        params=parameters,
        circumstances=circumstances,
        defaults=enforcement.constraints.defaults,
        identities=enforcement.constraints.identities,
        computed=enforcement.constraints.computed,
    )
    assert bound.matches is not None
    generate = GeneratedValues.of(writes.numbers, enforcement)
    defaulted = {one.column for one in statement.assignments if one.value is None}
    generated = [i for i, name in enumerate(row.relation_type.names) if name in defaulted & generate.columns]
    reading = [writes.peeks.planned(one) for one in ((bound.matches, bound.old) if bound.joins else (bound.matches,))]

    def decide(now: CollectionRow, time: int) -> tuple[Updates, Sequence[Row]]:
        arity = len(now.shown)
        found = [writes.peeks.found_at(one, time) for one in reading]
        matches = found[0]
        if isinstance(matches, StoredRows) and (not bound.joins or matches_once(matches, found[1], arity)):
            there = range(matches.table.num_columns)
            changed = generate.filled_columns(matches.arranged(there[arity:]), generated)
            changed = enforcement.completed_columns(changed, writes.reader(time))
            check_not_null(now.shown, statement.table.last, changed)
            return ColumnUpdates(changed.arranged(there[:arity]), matches.arranged(there[:arity])), changed
        pairs = _pairs([[*one] for one in found], arity)
        written = enforcement.completed(generate.filled([one for _, one in pairs], generated), writes.reader(time))
        new = [one[:arity] for one in written]
        check_not_null(now.shown, statement.table.last, new)
        return [(one, -1) for one, _ in pairs] + [(one, 1) for one in new], written

    returned = partial(writes.returned, statement, row, parameters, circumstances)
    return writes.changed("UPDATE", table, reading, decide, returned, enforcement, looked=looked)


def _pairs(found: Sequence[Sequence[Row]], arity: int) -> list[tuple[Row, Row]]:
    """Returns each row that an UPDATE changes with what takes its place and is joined, as often as the table has it.

    Args:
        found: Those rows, each followed by what takes its place and what is joined; and if others are joined, so that
            one is there for each match, the rows alone, too.
        arity: How many columns the table has.
    """
    matches, *others = found
    if not others:
        return [(one[:arity], one[arity:]) for one in matches]
    (old,) = others
    new = least_matches(matches, arity)
    for one in matches:
        if repr(new[repr(one[:arity])][:arity]) != repr(one[arity : 2 * arity]):
            raise AmbiguousUpdate(
                "FROM gives a row of the table several new values",
                detail=f"The row is {shown(one[:arity])}.",
                hint="Let each row match once, or aggregate what it matches.",
            )
    return [(one, new[repr(one)]) for one in old]
