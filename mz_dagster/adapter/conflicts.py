"""INSERT ... ON CONFLICT: what becomes of rows that are equal to others in a key.

Of the rows of a statement those that are there already, by the keys it names, change the table's rows or are left out;
so are those that an earlier row of the statement is equal to, where nothing is done with them. To change a row twice is
an error, as in PostgreSQL, since nothing says which change is the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mz_dagster.adapter.constraints import Enforcement, Read, Row
from mz_dagster.adapter.dml import ColumnUpdates, RowUpdate
from mz_dagster.compute import StoredRows
from mz_dagster.plan.relation import Relation
from mz_dagster.sql import Insert, OnConflict, SqlText, Update, bind_update
from mz_dagster.sql.constraints import OverRows, WrittenRows
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import UniqueKey
from mz_dagster.sql.errors import CardinalityViolation, InvalidColumnReference, UndefinedObject, UnsupportedForm


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Resolves the conflicts of an INSERT.

    Attributes:
        statement: The statement.
        enforcement: What its table demands.
        keys: The keys by which rows are found to be there.
        parameters: The values of its `?`.
    """

    statement: Insert
    enforcement: Enforcement
    keys: tuple[UniqueKey, ...]
    parameters: Sequence[object]

    @classmethod
    def of(cls, statement: Insert, enforcement: Enforcement, many: Sequence[Sequence[object]]) -> Conflicts:
        """Returns that of a statement that has an ON CONFLICT clause.

        Raises:
            InvalidColumnReference: No key is over the columns it names.
            UndefinedObject: No key bears the name it names.
            UnsupportedForm: It changes rows by parameters, and is executed with several sets of them.
        """
        clause = statement.conflict
        assert clause is not None
        generating = [one for one in clause.assignments if one.value is None]
        constraints = enforcement.constraints
        generating = [one for one in generating if one.column in {*constraints.identities, *constraints.by_chance}]
        if generating:
            raise UnsupportedForm(
                f'DEFAULT of column "{generating[0].column}" in ON CONFLICT DO UPDATE is not supported',
                detail="Its values are generated for new rows.",
                hint="Leave the row its value.",
                position=generating[0].offset + 1,
            )
        if clause.assignments and statement.parameters and len(many) > 1:
            raise UnsupportedForm(
                "executemany() of ON CONFLICT DO UPDATE is not supported",
                hint="Execute it once for each set of parameters, or with several rows in one VALUES list.",
                position=clause.offset + 1,
            )
        return cls(statement, enforcement, _named_keys(clause, enforcement), many[0] if many else ())

    @property
    def _clause(self) -> OnConflict:
        assert self.statement.conflict is not None
        return self.statement.conflict

    def reads(self) -> list[Relation]:
        """Returns the plans of what is read beside the table, whatever is inserted."""
        return [self._changes([]).relation] if self._clause.assignments else []

    def resolved(self, rows: Sequence[Row], read: Read) -> list[RowUpdate]:
        """Returns the updates that the rows make of the table.

        Raises:
            CheckViolation: One of them makes a condition false, even if it would be left out.
            CardinalityViolation: Two of them would change one row.
        """
        kept, changed = self._places(rows, read)
        updates: list[RowUpdate] = [(rows[i], 1) for i in kept]
        arity = self.enforcement.columns.arity
        for one in read(self._changes([rows[i] for i in changed])) if changed else ():
            updates += [(one[:arity], -1), (one[arity : 2 * arity], 1)]
        return updates

    def resolved_columns(self, rows: StoredRows, read: Read) -> ColumnUpdates:
        """Returns what `resolved` does of rows in columns."""
        kept, changed = self._places(rows, read)
        added = rows.taken(np.array(kept, np.int64))
        if not changed:
            return ColumnUpdates(added)
        columns, arity = self.enforcement.columns.columns, self.enforcement.columns.arity
        found = read(self._changes(rows.taken(np.array(changed, np.int64))))
        if not isinstance(found, StoredRows):
            found = StoredRows.of_rows([one[: 2 * arity] for one in found], (*columns, *columns))
        new = found.arranged(range(arity, 2 * arity))
        return ColumnUpdates(added.followed_by(new), found.arranged(range(arity)))

    def _places(self, rows: Sequence[Row], read: Read) -> tuple[list[int], list[int]]:
        """Returns the numbers of the rows that are added, and of those that change the table's."""
        self.enforcement.check(rows, read)
        present: set[int] = set()
        for key in self.keys:
            present.update(_numbers(self.enforcement.present(key, rows, read)))
        first = [self.enforcement.first_equal(key, rows, read) for key in self.keys]
        if self._clause.assignments:
            if any(number != group for one in first for number, group in enumerate(one)):
                raise CardinalityViolation(
                    "ON CONFLICT DO UPDATE command cannot affect row a second time",
                    hint="Ensure that no rows proposed for insertion within the same command have duplicate "
                    "constrained values.",
                )
            return [i for i in range(len(rows)) if i not in present], sorted(present)
        kept: list[int] = []
        taken: list[set[int]] = [set() for _ in self.keys]
        for i in range(len(rows)):
            groups = [one[i] for one in first]
            if i in present or any(group in others for group, others in zip(groups, taken, strict=True)):
                continue
            kept.append(i)
            for group, others in zip(groups, taken, strict=True):
                others.add(group)
        return kept, []

    def _changes(self, rows: Sequence[Row]) -> OverRows:
        """Returns the plan of the table's rows that are equal to given ones, each followed by what takes its place."""
        clause, (key,) = self._clause, self.keys
        table, offset = self.statement.table, self.statement.table.offset
        called = self.statement.alias or table.last
        parts = [one.value for one in clause.assignments] + [clause.predicate]
        before = min((one.parameters_before for one in parts if one is not None), default=0)
        same = " AND ".join(f"{quoted(called)}.{quoted(one)} = excluded.{quoted(one)}" for one in key.columns)
        predicate = SqlText(same, clause.offset, before)
        if (where := clause.predicate) is not None:
            opening = f"{same} AND ("
            predicate = SqlText(f"{opening}{where.text})", where.offset - len(opening), where.parameters_before)
        written = WrittenRows.of(self.enforcement.resolver, self.enforcement.columns, rows)
        named = f"{'.'.join(map(quoted, table.parts))} AS {quoted(called)}"
        update = Update(
            self.statement.text,
            self.statement.offset,
            self.statement.parameters,
            table,
            SqlText(named, offset, before),
            self.statement.alias,
            clause.assignments,
            SqlText(f"{quoted(WrittenRows.name)} AS excluded", clause.offset, before),
            predicate,
        )
        bound = bind_update(
            update,
            self.enforcement.columns,
            written,
            params=self.parameters,
            circumstances=self.enforcement.circumstances,
            defaults=self.enforcement.constraints.defaults,
            identities=self.enforcement.constraints.identities,
            computed=self.enforcement.constraints.computed,
        )
        assert bound.matches is not None
        return OverRows(bound.matches, written.given)


def _numbers(found: Sequence[Row]) -> list[int]:
    """Returns the numbers that stand before rows."""
    if isinstance(found, StoredRows):
        return [int(one) for one in found.table.column(0).to_pylist()]
    return [int(number) for number, *_ in found]


def _named_keys(clause: OnConflict, enforcement: Enforcement) -> tuple[UniqueKey, ...]:
    keys: tuple[UniqueKey, ...] = enforcement.constraints.keys
    if clause.constraint is not None:
        found = [key for key in keys if key.name == clause.constraint and not key.is_index]
        if not found:
            raise UndefinedObject(
                f'constraint "{clause.constraint}" for table "{enforcement.table.name}" does not exist',
                position=clause.offset + 1,
            )
        return (found[0],)
    if not clause.columns:
        return keys
    found = [key for key in keys if set(key.columns) == set(clause.columns)]
    if not found:
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            hint="Name the columns of a PRIMARY KEY or UNIQUE constraint of the table.",
            position=clause.offset + 1,
        )
    return (found[0],)
