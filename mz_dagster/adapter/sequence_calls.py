"""`nextval` and `setval`: a query that takes numbers of columns' sequences, or says where these go on.

A query reads and does nothing else. So they are no functions that expressions could have, but forms of `SELECT`, whose
only item is the call:

    SELECT setval('orders_id_seq', max(id)) FROM orders;
    SELECT setval(pg_get_serial_sequence('orders', 'id'), 42, false);
    SELECT nextval('orders_id_seq');

Its arguments are what is queried; each row of that then moves a sequence, which is called after its table and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.generated_values import Numbers
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.select_call import SelectCall
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import ObjectRow
from mz_dagster.errors import DataError
from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.scalars.types import INT8, Column
from mz_dagster.sql import Name, SqlText
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import UndefinedFunction, UndefinedTable
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.schemas import names_in

_SEQUENCE_OF_COLUMN = "pg_get_serial_sequence"


class ValueOutOfBounds(DataError):
    """A number that a sequence does not have."""

    sqlstate = "22003"


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """A query that moves sequences.

    Attributes:
        function: `nextval` or `setval`.
        column: What its column is called.
        query: What says which sequences, and their numbers.
    """

    function: str
    column: str
    query: SqlText

    @classmethod
    def of(cls, query: SqlText) -> SequenceCall | None:
        """Returns what a query is if it is of the form, else None.

        Example:
            >>> SequenceCall.of(SqlText("SELECT setval('t_id_seq', 7)")).query.text
            "SELECT        't_id_seq', 7 "
        """
        call = SelectCall.of(query.text, ("nextval", "setval"), several=True)
        if call is None:
            return None
        return cls(call.function, call.column, replace(query, text=_with_names(call.asked)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return (Column(self.column, INT8),)

    def carried_out(self, asked: Result, names: Names, numbers: Numbers) -> Result:
        """Returns the result once the sequences have moved.

        Args:
            asked: What the query returned.
            names: What names denote.
            numbers: What hands out the numbers of sequences.

        Raises:
            UndefinedFunction: It was called with other arguments.
            UndefinedTable: There is no such sequence.
            ValueOutOfBounds: It has no such number.
            SequenceExhausted: It has no further one.
        """
        counts = (1,) if self.function == "nextval" else (2, 3)
        if len(asked.columns) not in counts:
            raise UndefinedFunction(f"function {self.function}() of {len(asked.columns)} arguments does not exist")
        rows = tuple((None if None in row else self._moved(row, names, numbers),) for row in asked.rows)
        return Result(asked.tag, self.columns, rows, len(rows))

    def _moved(self, row: Sequence[object], names: Names, numbers: Numbers) -> int:
        path, *arguments = row
        table, column = _found(str(path), names)
        names.access.check(table, "w")
        sequence = constraints_of(table.sql).identities[column].sequence
        called = f"{table.created_as}_{column}_seq"
        if not arguments:
            return numbers.claim_numbers(table.id, column, sequence, 1, called)[0]
        number = int(str(arguments[0]))
        if not sequence.minimum <= number <= sequence.maximum:
            bounds = f"{sequence.minimum}..{sequence.maximum}"
            raise ValueOutOfBounds(f'setval: value {number} is out of bounds for sequence "{called}" ({bounds})')
        is_called = arguments[1:] != [False]
        numbers.restart_numbers(table.id, column, number if is_called else before(sequence, number))
        return number


def before(sequence: SequenceDefinition, number: int) -> int | None:
    """Returns what the last number of a sequence has to be, so that a number is next."""
    return None if number == sequence.start else number - sequence.increment


def _with_names(text: str) -> str:
    """Returns a query in which calls that ask for a column's sequence are its name."""
    tokens = tokens_of(text)
    for number in reversed(range(len(tokens) - 5)):
        word, opening, table, comma, column, closing = tokens[number : number + 6]
        is_call = word.is_word(_SEQUENCE_OF_COLUMN) and opening.is_symbol("(") and closing.is_symbol(")")
        if is_call and comma.is_symbol(",") and table.kind is column.kind is TokenKind.STRING:
            *schemas, last = names_in(table.value) or ("",)
            path = ".".join(map(quoted, (*schemas, f"{last}_{column.value}_seq"))).replace("'", "''")
            name = f"'{path}'"
            text = text[: word.start] + name.ljust(closing.end - word.start) + text[closing.end :]
    return text


def _found(path: str, names: Names) -> tuple[ObjectRow, str]:
    """Returns the table and the column of a sequence."""
    parts = names_in(path)
    pieces = parts[-1].removesuffix("_seq").split("_") if parts else []
    for at in range(1, len(pieces)):
        table, column = "_".join(pieces[:at]), "_".join(pieces[at:])
        row = names.find(Name((*parts[:-1], table), 0))
        if row is not None and row.kind == "table" and column in constraints_of(row.sql).identities:
            return row, column
    raise UndefinedTable(
        f'relation "{path}" does not exist',
        hint="A sequence is called after its table and column: orders_id_seq.",
    )
