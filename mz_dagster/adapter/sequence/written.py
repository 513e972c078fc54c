"""What INSERT, UPDATE, DELETE, TRUNCATE and COPY have in common: the reading, deciding and appending of a write.

Each is one batch of its table and takes effect at one time. What reads before it writes reads all at one time, not
before any write that was acknowledged when the statement began, and nothing of it has changed when the write takes
effect; see `dml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mz_dagster.adapter.access import needed_to_write
from mz_dagster.adapter.constraints import Enforcement, Read
from mz_dagster.adapter.dml import Appender, ColumnUpdates, DecidedWrite, Updates, read_and_append
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.finished_rows import finished_rows
from mz_dagster.adapter.generated_values import Numbers
from mz_dagster.adapter.keeping_references import LookedReferences, NeedsBlock, References, TableChange
from mz_dagster.adapter.names import Names, TargetFirst
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result, Rows, StreamedRows, user_rows
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.compute import Found, StoredRows, stored_projection
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Resolver
from mz_dagster.sql import (
    BoundQuery,
    Copy,
    CopyFromClient,
    Delete,
    Insert,
    Truncate,
    Update,
    bind_returning,
    ordered_rows,
)
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.storage.row_numbers import firsts, numbered, whole

Row = tuple[Any, ...]
Parameters = Sequence[object]


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes tables, for a session.

    Attributes:
        engine: The project.
        peeks: What reads for it.
        names: What names denote in it.
        appender: Takes what is written.
    """

    engine: Engine
    peeks: Peeks
    names: Names
    appender: Appender

    @property
    def numbers(self) -> Numbers:
        """What hands out the numbers of sequences."""
        return self.appender if isinstance(self.appender, Transaction) else self.engine.catalog

    def changed(
        self,
        command: str,
        table: CollectionRow,
        reading: Sequence[Relation],
        decide: Callable[[CollectionRow, int], tuple[Updates, Sequence[Row]]],
        returned: Callable[[Sequence[Row]], BoundQuery | None],
        enforcement: Enforcement | None = None,
        *,
        looked: LookedReferences | None = None,
        restarts: bool = False,
    ) -> Result:
        """Appends what a statement makes of what it reads.

        Args:
            command: What it is called.
            table: The table.
            reading: The plans of what it reads.
            decide: Given the table's row and the time to read at, returns updates, and the rows that are written, each
                with the columns of what it was joined with.
            returned: Given rows that are written, returns what RETURNING makes of them; None if it was not said.
            enforcement: What the updates are held against; None if they add no rows.
            looked: Which foreign keys they may break; None if none was looked for, as there is none.
            restarts: Whether the table's sequences begin anew.
        """
        result = Result(command)
        changes: Updates = ()
        none_yet = returned([])
        reading = [*reading, *(() if none_yet is None else (none_yet.relation,))]
        reading += [] if enforcement is None else enforcement.reads()

        def decided(now: CollectionRow) -> DecidedWrite:
            nonlocal result, changes
            reads, write_at = self.peeks.reads_for(now, reading) if reading else (None, None)
            time = 0 if reads is None else reads.time  # what reads nothing is the same at all times
            updates, rows = decide(now, time)
            changes = updates
            if reads is not None and looked is not None:
                reads = replace(reads, references=looked.number)
            if enforcement is not None:
                enforcement.enforce(updates, self.reader(time))
            result = Result(f"{command} {len(rows)}", rowcount=len(rows))
            if none_yet is not None:
                columns = none_yet.relation_type.columns
                result = replace(result, columns=columns, rows=self._shown(none_yet, rows, returned, time))
            return DecidedWrite(updates, reads, write_at, restarts=restarts)

        read_and_append(self.appender, table.id, decided)
        if looked is not None and looked.may_break:
            assert isinstance(self.appender, Transaction), "it is open"
            row = self.engine.catalog.object(table.id)
            references = References(self.engine, self.names, self.peeks, self.appender, looked.circumstances)
            references.keep(_change(self.names.as_named(row), changes, is_paired=command == "UPDATE"))
        return result

    def looked(
        self,
        row: ObjectRow,
        circumstances: Circumstances,
        *,
        adds: bool = False,
        removes: bool = False,
        changes: Sequence[str] | None = None,
    ) -> LookedReferences:
        """Returns whether a statement may break foreign keys, before anything of it is done; see `LookedReferences.of`.

        Raises:
            NeedsBlock: It may break some, and no block is open.
        """
        found = LookedReferences.of(self.names, row, circumstances, adds=adds, removes=removes, changes=changes)
        if found.may_break and not isinstance(self.appender, Transaction):
            raise NeedsBlock
        return found

    def _shown(
        self,
        none_yet: BoundQuery,
        rows: Sequence[Row],
        returned: Callable[[Sequence[Row]], BoundQuery | None],
        time: int,
    ) -> Rows:
        """Returns what RETURNING shows of rows that are written, given what it is of none."""
        columns, finishing = none_yet.relation_type.columns, none_yet.finishing
        stored = stored_projection(none_yet.relation, rows) if isinstance(rows, StoredRows) else None
        if stored is not None:
            return StreamedRows(finished_rows(stored, finishing), partial(user_rows, columns=columns))
        bound = returned(rows)
        assert bound is not None, "it was said"
        found = self.peeks.peek_at(self.peeks.planned(bound.relation), time)
        return user_rows(ordered_rows(found, bound.finishing), columns)

    def reader(self, time: int) -> Read:
        """Returns what reads bound plans at a time."""
        return lambda plan: self.peeks.found_at(self.peeks.planned(plan.relation), time, plan.given)

    def returned(
        self,
        statement: Insert | Update | Delete,
        row: ObjectRow,
        parameters: Parameters,
        circumstances: Circumstances,
        rows: Sequence[Row],
    ) -> BoundQuery | None:
        """Returns the query that RETURNING is over rows that are written; None if it was not said."""
        if statement.returning is None:
            return None
        return bind_returning(
            statement, row.relation_type, rows, self.resolver(row), params=parameters, circumstances=circumstances
        )

    def resolver(self, row: ObjectRow) -> Resolver:
        """Returns what resolves names beside a table that is written, which a role need not be able to read for that.

        Whether what the statement says of the table reads it was looked at before (`needed_to_write`).
        """
        return self.names if self.names.access.is_owner else TargetFirst(self.names, row, self.engine)

    def table(
        self, statement: Insert | Update | Delete | Copy | CopyFromClient | Truncate
    ) -> tuple[ObjectRow, CollectionRow]:
        """Returns the table that a statement writes, if the session may write it so."""
        row = self.names.table(statement.table)
        if not self.names.access.is_owner:
            self.names.access.check(row, needed_to_write(statement, row))
        return row, self.engine.catalog.collection(row.id)


def _change(table: ObjectRow, updates: Updates, *, is_paired: bool) -> TableChange:
    """Returns what updates make of a table's rows."""
    if isinstance(updates, ColumnUpdates):
        return TableChange(table, updates.removed or (), updates.added or (), is_paired)
    gone = [row for row, diff in updates if diff < 0]
    return TableChange(table, gone, [row for row, diff in updates if diff > 0], is_paired)


def matches_once(matches: Found, old: Found, arity: int) -> bool:
    """Returns whether rows of a table are in columns, and each has one match and is there once."""
    if not isinstance(matches, StoredRows) or len(matches) != len(old):
        return False
    columns = [whole(matches.table.column(place)) for place in range(arity)]
    return len(firsts(numbered(columns, len(matches))[0])) == len(matches)


def least_matches(matches: Sequence[Row], arity: int) -> dict[str, Row]:
    """Returns what follows each row in its matches; of several the least, where PostgreSQL takes any.

    By the row as text: 0.0 is not -0.0 there, and NaN is NaN.
    """
    found: dict[str, Row] = {}
    for one in sorted(matches, key=repr):
        found.setdefault(repr(one[:arity]), one[arity:])
    return found
