"""INSERT, UPDATE, DELETE and COPY: what each reads, decides and appends, for a session.

Each is one batch of its table and takes effect at one time. What reads before it writes reads all at one time, not
before any write that was acknowledged when the statement began, and nothing of it has changed when the write takes
effect; see `dml`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from mz_dagster.adapter.access import needed_to_write
from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.conflicts import Conflicts
from mz_dagster.adapter.constraints import Enforcement, shown
from mz_dagster.adapter.dml import Appender, DecidedWrite, RowUpdate, append_columns, check_not_null, read_and_append
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.names import Names, TargetFirst
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.planned_queries import PlannedInsert, QueryKey, with_types
from mz_dagster.adapter.result import Result, user_rows
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.plan.relation import Constant, Map, Relation
from mz_dagster.plan.resolver import Resolver
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.scalars.values import from_stored
from mz_dagster.sql import (
    BoundQuery,
    Copy,
    CopyFromClient,
    Delete,
    Insert,
    SqlText,
    TableConstraints,
    Truncate,
    Update,
    bind_delete,
    bind_insert_many,
    bind_returning,
    bind_update,
    ordered_rows,
)
from mz_dagster.sql.circumstances import Circumstances, zone_of
from mz_dagster.sql.constraints import bind_default
from mz_dagster.sql.errors import DuplicateColumn, UndefinedColumn, suggestion
from mz_dagster.storage.copy_csv import read_csv, stored_columns
from mz_dagster.storage.copy_parquet import read_parquet
from mz_dagster.storage.plain_cells import moments_as_numbers

Row = tuple[Any, ...]
Parameters = Sequence[object]


class AmbiguousUpdate(ProgrammingError):
    """An UPDATE whose FROM clause gives a row of the table several new values; nothing was written."""

    sqlstate = "21000"


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

    def insert(self, statement: Insert, many: Sequence[Parameters], circumstances: Circumstances) -> Result:
        """Inserts the rows that the statement says with each of the sets of parameters, as one batch.

        Rows that a set makes the statement read are those before any of the sets wrote.
        """
        name = statement.table.last
        many = [*map(with_types, many)]
        plans = self.engine.planned_queries
        state = plans.state(self.engine.catalog)
        key = self._key(statement, many, circumstances)
        known = None if key is None else plans.get(key, state, PlannedInsert)
        if known is not None:
            note_table(known.table.id, known.table.version)
            made = known.of_values(many[0])

            def decide_known(now: CollectionRow, _: int) -> tuple[list[RowUpdate], list[Row]]:
                check_not_null(now.shown, name, made)
                return [(one, 1) for one in made], made

            return self._changed("INSERT 0", known.table, [], decide_known, lambda _: None)
        row, table = self._table(statement)
        enforcement = Enforcement.of(row, TargetFirst(self.names, row, self.engine), circumstances)
        conflict = None if statement.conflict is None else Conflicts.of(statement, enforcement, many)
        constraints, generate = enforcement.constraints, GeneratedValues.of(self.engine, enforcement)
        generated: tuple[int, ...] = ()
        parts: list[Sequence[Row] | Relation] = []
        for bound, places in bind_insert_many(
            statement,
            row.relation_type,
            self.names,
            many,
            circumstances=circumstances,
            defaults=constraints.defaults,
            identities=constraints.identities,
            claim=generate.claim if constraints.identities else None,
        ):
            generated = places  # the same for all sets
            if key is not None and enforcement.is_free and table.version == row.version:
                planned = PlannedInsert.of(bound, table, many[0])
                if planned is not None:
                    plans.keep(key, state, planned)
            if isinstance(bound.relation, Constant):
                parts.append([tuple(cell.value for cell in one) for one in bound.relation.rows])
            else:
                parts.append(self.peeks.planned(bound.relation))
        reading = [one for one in parts if isinstance(one, Relation)]

        def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
            rows: list[Row] = []
            for one in parts:
                rows += self.peeks.peek_at(one, time) if isinstance(one, Relation) else one
            rows = generate.filled(rows, generated)
            check_not_null(now.shown, name, rows)
            if conflict is None:
                return [(one, 1) for one in rows], rows
            updates = conflict.resolved(rows, self._reader(time))
            written = [one for one, diff in updates if diff > 0]
            check_not_null(now.shown, name, written)
            return updates, written

        returned = partial(self._returned, statement, row, many[0] if many else (), circumstances)
        reading += [] if conflict is None else conflict.reads()
        return self._changed("INSERT 0", table, reading, decide, returned, enforcement)

    def _key(self, statement: Insert, many: Sequence[Parameters], circumstances: Circumstances) -> Hashable | None:
        """Returns under what the rows of an INSERT are kept; None if they are none for others."""
        if len(many) != 1 or not self.names.is_shared or statement.query is None:
            return None
        if statement.conflict is not None or statement.returning is not None:
            return None
        settings = self.names.reading(circumstances.settings["timezone"])
        key = QueryKey.of(SqlText(statement.text), many[0], settings)
        return None if key is None or key.types is None else ("insert", key.query, key.types)

    def delete(self, statement: Delete, parameters: Parameters, circumstances: Circumstances) -> Result:
        """Deletes the rows that the statement says."""
        row, table = self._table(statement)
        names = self._resolver(row)
        bound = bind_delete(statement, row.relation_type, names, params=parameters, circumstances=circumstances)
        plans = [bound.old] if bound.matches is None else [bound.matches, bound.old]
        reading = [self.peeks.planned(one) for one in plans]

        def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
            *matches, gone = (self.peeks.peek_at(one, time) for one in reading)
            written = _with_joined(gone, matches[0], len(now.shown)) if matches else gone
            return [(one, -1) for one in gone], written

        returned = partial(self._returned, statement, row, parameters, circumstances)
        return self._changed("DELETE", table, reading, decide, returned)

    def truncate(self, statement: Truncate, circumstances: Circumstances) -> Result:
        """Deletes all rows, and lets the table's sequences begin anew if that is said."""
        row, table = self._table(statement)
        common = statement.text, statement.offset, statement.parameters
        everything = Delete(*common, statement.table, statement.target, alias=None, using=None, predicate=None)
        bound = bind_delete(everything, row.relation_type, self._resolver(row), circumstances=circumstances)
        plan = self.peeks.planned(bound.old)

        def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
            gone = self.peeks.peek_at(plan, time)
            return [(one, -1) for one in gone], gone

        self._changed("TRUNCATE", table, [plan], decide, lambda _: None, restarts=statement.restarts)
        return Result("TRUNCATE TABLE")

    def update(self, statement: Update, parameters: Parameters, circumstances: Circumstances) -> Result:
        """Updates the rows that the statement says."""
        row, table = self._table(statement)
        enforcement = Enforcement.of(row, TargetFirst(self.names, row, self.engine), circumstances)
        bound = bind_update(
            statement,
            row.relation_type,
            self._resolver(row),
            params=parameters,
            circumstances=circumstances,
            defaults=enforcement.constraints.defaults,
            identities=enforcement.constraints.identities,
        )
        assert bound.matches is not None
        generate = GeneratedValues.of(self.engine, enforcement)
        defaulted = {one.column for one in statement.assignments if one.value is None}
        generated = [i for i, name in enumerate(row.relation_type.names) if name in defaulted & generate.columns]
        reading = [self.peeks.planned(one) for one in ((bound.matches, bound.old) if bound.joins else (bound.matches,))]

        def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
            arity = len(now.shown)
            pairs = _pairs([self.peeks.peek_at(one, time) for one in reading], arity)
            written = generate.filled([one for _, one in pairs], generated)
            new = [one[:arity] for one in written]
            check_not_null(now.shown, statement.table.last, new)
            return [(one, -1) for one, _ in pairs] + [(one, 1) for one in new], written

        returned = partial(self._returned, statement, row, parameters, circumstances)
        return self._changed("UPDATE", table, reading, decide, returned, enforcement)

    def copy(self, statement: Copy, circumstances: Circumstances) -> Result:
        """Appends the rows of a file, as one batch."""
        row, table = self._table(statement)
        names = statement.columns or row.relation_type.names
        read = _columns(row.relation_type, names, statement)
        path = self.engine.project.root / Path(statement.path).expanduser()
        with zone_of(circumstances):
            if (csv := statement.csv) is None:
                found = read_parquet(path, read)
            else:
                found = read_csv(path, read, header=csv.header, delimiter=csv.delimiter, quote=csv.quote,
                                 escape=csv.escape, null=csv.null)  # fmt: skip
        return self._copied(row, table, statement, names, found, circumstances)

    def copy_from_client(self, statement: CopyFromClient, client: WireClient, circumstances: Circumstances) -> Result:
        """Appends the rows that a client sends, as one batch."""
        row, table = self._table(statement)
        names = statement.columns or row.relation_type.names
        columns = _columns(row.relation_type, names, statement)
        with zone_of(circumstances):
            found = stored_columns(client.receive(statement.format, columns), columns, statement.format.header)
        return self._copied(row, table, statement, names, found, circumstances)

    def _copied(
        self,
        row: ObjectRow,
        table: CollectionRow,
        statement: Copy | CopyFromClient,
        names: Sequence[str],
        found: Sequence[pa.Array],
        circumstances: Circumstances,
    ) -> Result:
        """Appends columns that were read."""
        count = len(found[0]) if found else 0
        constraints = constraints_of(row.sql)
        if constraints or any(name not in names for name in (*constraints.defaults, *constraints.identities)):
            return self._copy_rows(row, table, statement, dict(zip(names, found, strict=True)), count, circumstances)
        append_columns(self.appender, table, statement.table.last, dict(zip(names, found, strict=True)), count)
        return Result(f"COPY {count}", rowcount=count)

    def _copy_rows(
        self,
        row: ObjectRow,
        table: CollectionRow,
        statement: Copy | CopyFromClient,
        found: Mapping[str, pa.Array],
        count: int,
        circumstances: Circumstances,
    ) -> Result:
        """Appends the rows of a file to a table that demands more of them than types."""
        enforcement = Enforcement.of(row, TargetFirst(self.names, row, self.engine), circumstances)
        given = {
            one.name: [from_stored(cell, one.type) for cell in moments_as_numbers(found[one.name]).to_pylist()]
            for one in row.relation_type.columns
            if one.name in found
        }
        rest = [one for one in row.relation_type.columns if one.name not in given]
        omitted = self._defaults(rest, enforcement.constraints, circumstances)
        columns = [given[name] if name in given else [omitted[name]] * count for name in row.relation_type.names]
        generate = GeneratedValues.of(self.engine, enforcement)
        generated = [i for i, name in enumerate(row.relation_type.names) if name in generate.columns - given.keys()]
        rows = generate.filled([*zip(*columns, strict=True)], generated)

        def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
            check_not_null(now.shown, statement.table.last, rows)
            return [(one, 1) for one in rows], rows

        return self._changed("COPY", table, [], decide, lambda _: None, enforcement)

    def _defaults(
        self, columns: Sequence[Column], constraints: TableConstraints, circumstances: Circumstances
    ) -> dict[str, Any]:
        """Returns what each of some columns is that a row does not say."""
        scalars = tuple(
            bind_default(one, constraints.defaults[one.name], circumstances)
            if one.name in constraints.defaults
            else Literal(None, one.type)
            for one in columns
        )
        names = tuple(one.name for one in columns)
        ((*values,),) = self.peeks.peek_at(self.peeks.planned(Map(ONE_ROW, scalars, names)), 0)
        return dict(zip(names, values, strict=True))

    def _changed(
        self,
        command: str,
        table: CollectionRow,
        reading: Sequence[Relation],
        decide: Callable[[CollectionRow, int], tuple[list[RowUpdate], list[Row]]],
        returned: Callable[[Sequence[Row]], BoundQuery | None],
        enforcement: Enforcement | None = None,
        *,
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
            restarts: Whether the table's sequences begin anew.
        """
        result = Result(command)
        none_yet = returned([])
        reading = [*reading, *(() if none_yet is None else (none_yet.relation,))]
        reading += [] if enforcement is None else enforcement.reads()

        def decided(now: CollectionRow) -> DecidedWrite:
            nonlocal result
            reads, write_at = self.peeks.reads_for(now, reading) if reading else (None, None)
            time = 0 if reads is None else reads.time  # what reads nothing is the same at all times
            updates, rows = decide(now, time)
            if enforcement is not None:
                enforcement.enforce(updates, self._reader(time))
            result = Result(f"{command} {len(rows)}", rowcount=len(rows))
            bound = returned(rows)
            if bound is not None:
                shown = ordered_rows(self.peeks.peek_at(self.peeks.planned(bound.relation), time), bound.finishing)
                columns = bound.relation_type.columns
                result = replace(result, columns=columns, rows=user_rows(shown, columns))
            return DecidedWrite(updates, reads, write_at, restarts=restarts)

        read_and_append(self.appender, table.id, decided)
        return result

    def _reader(self, time: int) -> Callable[[Relation], Sequence[Row]]:
        """Returns what reads bound plans at a time."""
        return lambda plan: self.peeks.peek_at(self.peeks.planned(plan), time)

    def _returned(
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
            statement, row.relation_type, rows, self._resolver(row), params=parameters, circumstances=circumstances
        )

    def _resolver(self, row: ObjectRow) -> Resolver:
        """Returns what resolves names beside a table that is written, which a role need not be able to read for that.

        Whether what the statement says of the table reads it was looked at before (`needed_to_write`).
        """
        return self.names if self.names.access.is_owner else TargetFirst(self.names, row, self.engine)

    def _table(
        self, statement: Insert | Update | Delete | Copy | CopyFromClient | Truncate
    ) -> tuple[ObjectRow, CollectionRow]:
        row = self.names.table(statement.table)
        if not self.names.access.is_owner:
            self.names.access.check(row, needed_to_write(statement, row))
        return row, self.engine.catalog.collection(row.id)


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
    new = _least_matches(matches, arity)
    for one in matches:
        if repr(new[repr(one[:arity])][:arity]) != repr(one[arity : 2 * arity]):
            raise AmbiguousUpdate(
                "FROM gives a row of the table several new values",
                detail=f"The row is {shown(one[:arity])}.",
                hint="Let each row match once, or aggregate what it matches.",
            )
    return [(one, new[repr(one)]) for one in old]


def _with_joined(rows: Sequence[Row], matches: Sequence[Row], arity: int) -> list[Row]:
    """Returns rows of a table, each with what it was joined with."""
    joined = _least_matches(matches, arity)
    return [(*one, *joined[repr(one)]) for one in rows]


def _least_matches(matches: Sequence[Row], arity: int) -> dict[str, Row]:
    """Returns what follows each row in its matches; of several the least, where PostgreSQL takes any.

    By the row as text: 0.0 is not -0.0 there, and NaN is NaN.
    """
    found: dict[str, Row] = {}
    for one in sorted(matches, key=repr):
        found.setdefault(repr(one[:arity]), one[arity:])
    return found


def _columns(target: RelationType, names: Sequence[str], statement: Copy | CopyFromClient) -> list[Column]:
    position = statement.table.offset + 1
    for name in names:
        if name not in target.names:
            raise UndefinedColumn(
                f'column "{name}" of relation "{statement.table}" does not exist',
                hint=suggestion(name, target.names),
                position=position,
            )
        if names.count(name) > 1:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=position)
    return [target.columns[target.names.index(name)] for name in names]
