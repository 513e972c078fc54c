"""The values that a table's columns generate, for the statements that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from mz_dagster.adapter.constraints import Enforcement
from mz_dagster.catalog import ObjectRow
from mz_dagster.compute import StoredRows
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.types import Column
from mz_dagster.scalars.values import all_to_stored
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import bind_defaults
from mz_dagster.sql.errors import UnsupportedForm
from mz_dagster.sql.statements import Identity, SqlText
from mz_dagster.storage.arrow_schema import arrow_type

Row = tuple[Any, ...]


class Numbers(Protocol):
    """Hands out the numbers of columns' sequences: the catalog, or a transaction block."""

    def claim_numbers(
        self, table: GlobalId, column: str, definition: SequenceDefinition, count: int, name: str
    ) -> tuple[int, ...]:
        """Returns the next numbers of a sequence, which nobody else gets; see `Catalog.claim_numbers`."""
        ...

    def restart_numbers(self, table: GlobalId, column: str, last: int | None) -> None:
        """Lets a sequence go on behind a number, or begin anew."""
        ...


@dataclass(frozen=True, slots=True)
class GeneratedValues:
    """Makes the values that columns of a table generate; what is claimed of a sequence and not written is a gap.

    Attributes:
        numbers: What hands out the numbers of sequences.
        table: The table.
        identities: How its columns generate their values.
        by_chance: The defaults that are another value for each row, by column.
        circumstances: When and by whom the statement is executed.
    """

    numbers: Numbers
    table: ObjectRow
    identities: Mapping[str, Identity]
    by_chance: Mapping[str, SqlText]
    circumstances: Circumstances

    @classmethod
    def of(cls, numbers: Numbers, enforcement: Enforcement) -> GeneratedValues:
        """Returns those of the table that a statement writes."""
        constraints = enforcement.constraints
        return cls(numbers, enforcement.table, constraints.identities, constraints.by_chance, enforcement.circumstances)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that generate their values."""
        return frozenset(self.identities) | frozenset(self.by_chance)

    def claim(self, column: str, count: int) -> Sequence[int]:
        """Returns so many values of a column, which nobody else gets.

        Raises:
            SequenceExhausted: There are fewer.
        """
        name = f"{self.table.created_as}_{column}_seq"
        sequence = self.identities[column].sequence
        return self.numbers.claim_numbers(self.table.id, column, sequence, count, name)

    def filled(self, rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
        """Returns rows of the table with values of their own in those columns at some places that generate them."""
        found = list(rows)
        for place in places if rows else ():
            column = self.table.relation_type.columns[place]
            if column.name not in self.columns:
                continue
            values = self._values(column, len(rows))
            found = [(*row[:place], value, *row[place + 1 :]) for row, value in zip(found, values, strict=True)]
        return found

    def filled_columns(self, rows: StoredRows, places: Sequence[int]) -> StoredRows:
        """Returns what `filled` does of rows in columns."""
        for place in places if rows else ():
            column = self.table.relation_type.columns[place]
            if column.name in self.columns:
                cells = all_to_stored(self._values(column, len(rows)), column.type)
                rows = rows.with_column(place, pa.array(cells, arrow_type(column.type)))
        return rows

    def _values(self, column: Column, count: int) -> Sequence[Value]:
        """Returns so many values of a column.

        Raises:
            UnsupportedForm: One of chance is made of it by what this process does not compute.
        """
        if column.name in self.identities:
            return self.claim(column.name, count)
        found: list[Value] = []
        for one in bind_defaults(column, self.by_chance[column.name], self.circumstances, count):
            folded = fold_scalar(one)
            if not isinstance(folded, Literal):
                raise UnsupportedForm(
                    f'the DEFAULT of column "{column.name}" is not supported',
                    detail="What it makes of a value of chance fails, or is not computed in this process.",
                    hint="Give the column a value.",
                )
            found.append(folded.value)
        return found
