"""Sequences of tables' columns: the last number of each that was handed out.

Numbers are claimed in a transaction of their own, before what is written with them: so none is ever handed out twice,
whoever writes and whoever is killed, and what was claimed and not written is a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.errors import CatalogDamaged, UnknownObject
from mz_dagster.catalog.schema import OBJECT, SEQUENCE
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.sequence import SequenceDefinition

#: Built once: building a statement takes longer than running it.
_OWN = SEQUENCE.c.object == bindparam("table"), SEQUENCE.c.column == bindparam("of")
_LAST = select(SEQUENCE.c.last).where(*_OWN)
_MOVE = update(SEQUENCE).where(*_OWN)
_NUMBERS = select(SEQUENCE.c.column, SEQUENCE.c.last).where(SEQUENCE.c.object == bindparam("table"))


class Sequences(Transactions):
    """The part of the catalog that hands out numbers."""

    def claim_numbers(
        self, table: GlobalId, column: str, definition: SequenceDefinition, count: int, name: str
    ) -> tuple[int, ...]:
        """Returns the next numbers of a column's sequence, which nobody else gets.

        Args:
            table: The column's table.
            column: The column.
            definition: Which numbers there are.
            count: How many are wanted.
            name: The sequence's, for the error.

        Raises:
            SequenceExhausted: There are fewer; none was handed out.
            UnknownObject: The table was dropped.
            CatalogDamaged: Nobody knows which number was the last.
        """
        own = {"table": table, "of": column}
        with self._database.write() as connection:
            row = connection.execute(_LAST, own).one_or_none()
            if row is None:
                dropped = connection.execute(select(OBJECT.c.dropped).where(OBJECT.c.id == table)).scalar_one_or_none()
                if dropped is not False:
                    raise UnknownObject(table, dropped=True)
                raise CatalogDamaged(f'the catalog does not say any more which number was the last of "{name}"')
            found = definition.following(row.last, count, name)
            if found:
                connection.execute(_MOVE, {**own, "last": found[-1]})
            return found

    def restart_numbers(self, table: GlobalId, column: str, last: int | None) -> None:
        """Lets a column's sequence go on behind a number, or begin anew.

        Raises:
            UnknownObject: The table was dropped, or the column generates nothing any more.
        """
        with self._database.write() as connection:
            if not connection.execute(_MOVE, {"table": table, "of": column, "last": last}).rowcount:
                raise UnknownObject(table, dropped=True)

    def continue_numbers(self, old: GlobalId, new: GlobalId, columns: Mapping[str, str]) -> Mapping[str, int | None]:
        """Lets columns of a table go on where those of another stand, by these; returns where all of the other's do."""
        with self._database.write() as connection:
            hand_over_sequences(connection, old, new, columns)
            return numbers_of(connection, old)

    def numbers(self, table: GlobalId) -> Mapping[str, int | None]:
        """Returns the last number that each sequence of a table has handed out, None if none, by its column."""
        with self._database.read() as connection:
            return numbers_of(connection, table)

    def last_numbers(self) -> Mapping[tuple[GlobalId, str], int | None]:
        """Returns the last number that each sequence has handed out, None if none, by table and column."""
        with self._database.read() as connection:
            rows = connection.execute(select(SEQUENCE.c.object, SEQUENCE.c.column, SEQUENCE.c.last))
            return {(GlobalId(row.object), row.column): row.last for row in rows}


def create_sequences(connection: Connection, table: GlobalId, columns: Collection[str]) -> None:
    """Begins the sequences of a table's columns."""
    if columns:
        connection.execute(
            insert(SEQUENCE), [{"object": table, "column": one, "last": None} for one in sorted(columns)]
        )


def numbers_of(connection: Connection, table: GlobalId) -> dict[str, int | None]:
    """Returns the last number that each sequence of a table has handed out, None if none, by its column."""
    rows = connection.execute(_NUMBERS, {"table": table})
    return {row.column: row.last for row in rows}


def hand_over_sequences(connection: Connection, old: GlobalId, new: GlobalId, columns: Mapping[str, str]) -> None:
    """Lets columns of a table go on where those of another stand whose values they take over, by these."""
    for row in connection.execute(select(SEQUENCE).where(SEQUENCE.c.object == old)).all():
        if row.column in columns:
            connection.execute(_MOVE, {"table": new, "of": columns[row.column], "last": row.last})


def alter_sequences(
    connection: Connection,
    table: GlobalId,
    renamed: Mapping[str, str],
    columns: Collection[str],
    claimed: Mapping[str, int | None],
) -> None:
    """Lets the sequences of a table be those of some columns.

    One goes on behind the last number that was claimed; else, if its column was kept, under whatever name, as it was.
    """
    known = numbers_of(connection, table)
    last = {renamed[column]: number for column, number in known.items() if column in renamed}
    connection.execute(delete(SEQUENCE).where(SEQUENCE.c.object == table))
    if columns:
        rows = [{"object": table, "column": one, "last": claimed.get(one, last.get(one))} for one in sorted(columns)]
        connection.execute(insert(SEQUENCE), rows)


def restart_sequences(connection: Connection, table: GlobalId, numbers: Mapping[str, int | None]) -> None:
    """Lets all sequences of a table begin anew, or go on behind what they have handed out since, by columns."""
    connection.execute(update(SEQUENCE).where(SEQUENCE.c.object == table).values(last=None))
    for column, last in numbers.items():
        connection.execute(_MOVE, {"table": table, "of": column, "last": last})
