"""Keeps foreign keys: no row refers to one that is not there.

A key of a foreign key is *broken* if a row of the table that refers has it, and no row of the other:

    broken(k)   child has a row with k, and parent has none

Only keys that a statement touches can become broken by it: those of rows that come to refer, and those of rows that go
from what is referred to. They are looked up in both tables as the statement leaves them, in the transaction block that
it is part of: at its end, or for constraints that are deferred when the block commits. What was looked up has not
changed by the time at which the block takes effect, as for everything that a block reads. So of a row that goes and one
that comes to refer to it, whoever writes them and wherever, one transaction fails.

Where rows that refer are to go, too, or to refer to none or another, they do so in the same block, and what refers to
them after them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.constraints import Enforcement, hashable_cell, shown, values_of
from mz_dagster.adapter.deferred_constraints import TouchedKeys
from mz_dagster.adapter.dml import DecidedWrite, check_not_null, read_and_append
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import Names, TargetFirst
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.table_references import Link, TableReferences, columns_of, name_in_schema
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.catalog import CollectionRow, ObjectRow, stands_for
from mz_dagster.compute import StoredRows
from mz_dagster.functions import CastContext, Failure, cast
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.scalar import ColumnRef
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import MATCHED, OverRows, bind_matching
from mz_dagster.sql.errors import ForeignKeyViolation, ProgramLimitExceeded, UnsupportedForm

Row = tuple[Any, ...]


#: How often rows follow others in a statement; where tables refer to each other, keys that are swapped never end.
_MOST_UPDATES = 1_000


class NeedsBlock(Exception):
    """A statement that has to be part of a transaction block, and of which nothing was done yet."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What becomes of a table's rows.

    Attributes:
        table: The table.
        gone: The rows that go.
        new: The rows that come.
        is_paired: Whether each row that comes takes the place of the one that goes at its place.
    """

    table: ObjectRow
    gone: Sequence[Row]
    new: Sequence[Row]
    is_paired: bool = False

    def keys_lost(self, places: Sequence[int]) -> dict[Row, Row]:
        """Returns the cells of rows that go in some columns, unless rows that come are equal in them."""
        left = keys_of(self.new, places)
        return {known: key for known, key in keys_of(self.gone, places).items() if known not in left}

    def keys_changed(self, places: Sequence[int]) -> dict[Row, Row]:
        """Returns those of rows that get others there, if it is known which; rows may have theirs instead."""
        if not self.is_paired:
            return self.keys_lost(places)
        pairs = zip(cells_of(self.gone, places), cells_of(self.new, places), strict=True)
        changed = (old for old, new in pairs if repr(old) != repr(new) and None not in old)
        return {_known(one, range(len(places))): one for one in changed}


@dataclass(frozen=True, slots=True)
class LookedReferences:
    """Whether a statement may break foreign keys.

    Attributes:
        number: How often tables had come to refer to others before that was looked (`ReadSet.references`); None of one
            that takes no rows away.
        circumstances: When and by whom it is executed.
        may_break: Whether it may.
    """

    number: int | None
    circumstances: Circumstances
    may_break: bool = False

    @classmethod
    def of(
        cls,
        names: Names,
        table: ObjectRow,
        circumstances: Circumstances,
        *,
        adds: bool = False,
        removes: bool = False,
        changes: Sequence[str] | None = None,
    ) -> LookedReferences:
        """Returns that of a statement that writes a table.

        Args:
            names: What names denote in its session.
            table: The table.
            circumstances: When and by whom it is executed.
            adds: Whether it may add rows.
            removes: Whether it may take rows away.
            changes: The columns of which alone rows get others; None if rows come or go.
        """
        number = names.engine.catalog.number_of_references() if removes else None
        links = TableReferences(names)
        own = [one for one in links.of(table) if _meet(changes, one.key.columns)] if adds else []
        others = [one for one in links.to(table) if _meet(changes, one.key.referenced)] if removes else []
        return cls(number, circumstances, any(one.key.is_enforced for one in (*own, *others)))


def _meet(changes: Sequence[str] | None, columns: Sequence[str]) -> bool:
    return changes is None or not set(changes).isdisjoint(columns)


@dataclass(frozen=True, slots=True)
class References:
    """Keeps the foreign keys of what a transaction block writes.

    Attributes:
        engine: The project.
        names: What names denote in the session.
        peeks: What reads in the block.
        block: The block.
        circumstances: When and by whom it is written.
    """

    engine: Engine
    names: Names
    peeks: Peeks
    block: Transaction
    circumstances: Circumstances

    def keep(self, change: TableChange) -> None:
        """Returns if what a statement has written breaks no key, once rows that refer have followed.

        Raises:
            ForeignKeyViolation: A key is broken.
        """
        links = TableReferences(self.names)
        pending, touched, updates = [change], list[TouchedKeys](), 0
        while pending:
            one = pending.pop(0)
            touched += [*self._referring(links, one)]
            for link in links.to(one.table):
                if not link.key.is_enforced:
                    continue
                places = _places(one.table, link.key.referenced)
                action = link.key.on_update if one.new else link.key.on_delete
                keys = one.keys_lost(places) if action == "a" else one.keys_changed(places)
                if not keys:
                    continue
                if action in ("c", "n"):
                    followed = self._followed(link, one, keys, sets_null=action == "n")
                    pending += [] if followed is None else [followed]
                    updates += followed is not None and bool(followed.new)
                    if updates > _MOST_UPDATES:
                        raise ProgramLimitExceeded(
                            f"rows followed others whose keys changed more than {_MOST_UPDATES} times",
                            detail=f'The last were those of table "{name_in_schema(link.child)}".',
                        )
                    continue
                found = TouchedKeys(stands_for(link.child), link.key.name, tuple(keys.values()), by_parent=True)
                if action == "r":
                    self._check(link, found, anyway=True)
                else:
                    touched.append(found)
        for each in touched:
            self._check_or_defer(links, each)

    def _referring(self, links: TableReferences, change: TableChange) -> list[TouchedKeys]:
        """Returns the keys by which rows refer that come."""
        found = []
        for link in links.of(change.table):
            if not link.key.is_enforced:
                continue
            places = _places(change.table, link.key.columns)
            if link.key.is_full:
                check_full(link, change.new, places)
            before = keys_of(change.gone, places) if change.is_paired else {}
            keys = tuple(key for known, key in keys_of(change.new, places).items() if known not in before)
            if keys:
                found.append(TouchedKeys(stands_for(link.child), link.key.name, keys, by_parent=False))
        return found

    def check_deferred(self, *, at_commit: bool) -> None:
        """Returns if what was put off until now breaks no key; what is still to be put off is, unless it commits.

        Raises:
            ForeignKeyViolation: A key is broken.
        """
        touched, self.block.constraints.touched = self.block.constraints.touched, []
        if touched:
            links = TableReferences(self.names)
            for each in touched:
                self._check_or_defer(links, each, at_commit=at_commit)

    def _check_or_defer(self, links: TableReferences, touched: TouchedKeys, *, at_commit: bool = False) -> None:
        for link in links.named(touched.child, touched.name):
            if not at_commit and self.block.constraints.is_deferred(touched.child, link.key):
                self.block.constraints.touched.append(touched)
            else:
                self._check(link, touched)

    def _check(self, link: Link, touched: TouchedKeys, *, anyway: bool = False) -> None:
        """Raises ForeignKeyViolation if a key is broken; or if rows refer by it, whatever they refer to."""
        key, keys = link.key, touched.keys
        types = columns_of(link.parent, key.referenced) if touched.by_parent else columns_of(link.child, key.columns)
        found = () if anyway else self._matching(link.parent, key.referenced, keys, types, whole=False)
        there = {number for (number,) in found}
        missing = [one for number, one in enumerate(keys) if number not in there]
        if not missing:
            return
        broken = self._matching(link.child, key.columns, missing, types, whole=False)
        if broken:
            raise violation(link, missing[min(number for (number,) in broken)], by_parent=touched.by_parent)

    def _followed(
        self, link: Link, change: TableChange, keys: Mapping[Row, Row], *, sets_null: bool
    ) -> TableChange | None:
        """Has the rows that refer to some that go follow them; returns what that made of their table, if anything."""
        known, cells = [*keys], [*keys.values()]
        types = columns_of(link.parent, link.key.referenced)
        found = self._matching(link.child, link.key.columns, cells, types, whole=True)
        if not found:
            return None
        child, gone = link.child, [row for _, *row in found]
        old = [tuple(row) for row in gone]
        new: list[Row] = []
        if change.new or sets_null:
            referred = {known[number] for number, *_ in found}
            by_key = {} if sets_null else self._taking_over(link, change, referred)
            places = _places(child, link.key.columns)
            for (number, *_), row in zip(found, gone, strict=True):
                values = (None,) * len(places) if sets_null else by_key[known[number]]
                for place, value in zip(places, values, strict=True):
                    row[place] = value
            new = [tuple(row) for row in gone]
        enforcement = Enforcement.of(child, TargetFirst(self.names, child, self.engine), self.circumstances)

        def decide(row: CollectionRow) -> DecidedWrite:
            nonlocal new
            read = partial(self._found, child)
            new = enforcement.completed(new, read)
            check_not_null(row.shown, name_in_schema(child), new)
            updates = [(one, -1) for one in old] + [(one, 1) for one in new]
            enforcement.enforce(updates, read)
            return DecidedWrite(updates)

        note_table(child.id, child.version)
        read_and_append(self.block, child.id, decide)
        return TableChange(child, old, new, is_paired=bool(new))

    def _taking_over(self, link: Link, change: TableChange, keys: Collection[Row]) -> dict[Row, Row]:
        """Returns what rows that refer to others have in the place of keys of those from here on."""
        if not change.is_paired:
            raise UnsupportedForm(
                f'ON CONFLICT DO UPDATE of columns that "{name_in_schema(link.child)}" refers to ON UPDATE CASCADE '
                "is not supported",
                hint="UPDATE the rows in a statement of its own.",
            )
        places = _places(link.parent, link.key.referenced)
        pairs = zip(cells_of(change.gone, places), cells_of(change.new, places), strict=True)
        moved = {known: new for old, new in pairs if (known := _known(old, range(len(places)))) in keys}
        return dict(zip(moved, self._assigned(link, [*moved.values()]), strict=True))

    def _assigned(self, link: Link, keys: Sequence[Row]) -> list[Row]:
        """Returns keys of the table that is referred to as what columns that refer to it have in their place.

        Raises:
            DataError: One does not fit.
        """
        theirs = RelationType(tuple(columns_of(link.parent, link.key.referenced)))
        found = [list(one) for one in keys]
        for place, own in enumerate(columns_of(link.child, link.key.columns)):
            one = theirs.columns[place]
            to = cast(one.type, own.type, CastContext.ASSIGNMENT)
            assert not isinstance(to, Failure), "types that compare are assigned to each other"
            scalar = to.apply(ColumnRef(place, one.type, one.nullable, one.name))
            values = values_of(scalar, theirs, keys, partial(self._found, link.child))
            for row, value in zip(found, values, strict=True):
                row[place] = value
        return [*map(tuple, found)]

    def _matching(
        self, table: ObjectRow, columns: tuple[str, ...], keys: Sequence[Row], types: Sequence[Column], *, whole: bool
    ) -> Sequence[Row]:
        """Returns the numbers of the keys that rows of a table have, as often as they do, with the rows if wanted."""
        note_table(table.id, table.version)
        item = self.engine.definitions.item(table.id, table.version, table.values)
        return self._found(table, bind_matching(columns, keys, types, Matched(item), whole=whole))

    def _found(self, table: ObjectRow, over: OverRows) -> Sequence[Row]:
        """Returns the rows of a bound plan over a table in the block, which notes what it has read."""
        plan = self.peeks.planned(over.relation)
        reads, _ = self.peeks.reads_for(self.engine.catalog.collection(table.id), [plan])
        return self.peeks.found_at(plan, 0 if reads is None else reads.time, over.given)


@dataclass(frozen=True, slots=True)
class Matched:
    """Resolves `MATCHED` to a table, and nothing else."""

    item: Item

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns the table."""
        return self.item if name == (MATCHED,) else None

    def names(self) -> tuple[str, ...]:
        """Returns no names."""
        return ()


def violation(link: Link, key: Sequence[Any], *, by_parent: bool) -> ForeignKeyViolation:
    """Returns the error of a key that is broken."""
    child, parent = name_in_schema(link.child), name_in_schema(link.parent)
    if by_parent:
        error = ForeignKeyViolation(
            f'update or delete on table "{parent}" violates foreign key constraint "{link.key.name}" '
            f'on table "{child}"',
            detail=f"Key ({', '.join(link.key.referenced)})={shown(tuple(key))} is still referenced from table "
            f'"{child}".',
        )
    else:
        error = ForeignKeyViolation(
            f'insert or update on table "{child}" violates foreign key constraint "{link.key.name}"',
            detail=f'Key ({", ".join(link.key.columns)})={shown(tuple(key))} is not present in table "{parent}".',
        )
    error.about(schema=link.child.schema, table=child, constraint=link.key.name)
    return error


def check_full(link: Link, rows: Sequence[Row], places: Sequence[int]) -> None:
    """Raises ForeignKeyViolation if a row has a NULL in some of the columns of a key alone."""
    for row in rows:
        nulls = sum(row[place] is None for place in places)
        if 0 < nulls < len(places):
            error = ForeignKeyViolation(
                f'insert or update on table "{name_in_schema(link.child)}" violates foreign key constraint '
                f'"{link.key.name}"',
                detail="MATCH FULL does not allow mixing of null and nonnull key values.",
            )
            error.about(schema=link.child.schema, table=name_in_schema(link.child), constraint=link.key.name)
            raise error


def _places(table: ObjectRow, columns: Sequence[str]) -> list[int]:
    return [table.relation_type.names.index(one) for one in columns]


def _known(row: Row, places: Sequence[int]) -> Row:
    """Returns what is the same of rows that are equal in some columns."""
    return tuple(hashable_cell(row[place]) for place in places)


def keys_of(rows: Sequence[Row], places: Sequence[int]) -> dict[Row, Row]:
    """Returns the different cells of rows in some columns, where none is NULL, by what is the same of equal ones."""
    found: dict[Row, Row] = {}
    for cells in cells_of(rows, places):
        if None not in cells:
            found.setdefault(_known(cells, range(len(places))), cells)
    return found


def cells_of(rows: Sequence[Row], places: Sequence[int]) -> Iterator[Row]:
    """Yields the cells of rows in some columns."""
    if isinstance(rows, StoredRows):
        rows, places = rows.arranged(places), range(len(places))
    for row in rows:
        yield tuple(row[place] for place in places)
