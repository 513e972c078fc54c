"""The values that a table's columns generate, for the statements that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.adapter.constraints import Enforcement
from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import ObjectRow
from mz_dagster.sql.statements import Identity

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GeneratedValues:
    """Claims the values that columns of a table generate; what is claimed and not written is a gap.

    Attributes:
        engine: The project.
        table: The table.
        identities: How its columns generate their values.
    """

    engine: Engine
    table: ObjectRow
    identities: Mapping[str, Identity]

    @classmethod
    def of(cls, engine: Engine, enforcement: Enforcement) -> GeneratedValues:
        """Returns those of the table that a statement writes."""
        return cls(engine, enforcement.table, enforcement.constraints.identities)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that generate their values."""
        return frozenset(self.identities)

    def claim(self, column: str, count: int) -> Sequence[int]:
        """Returns so many values of a column, which nobody else gets.

        Raises:
            SequenceExhausted: There are fewer.
        """
        name = f"{self.table.created_as}_{column}_seq"
        sequence = self.identities[column].sequence
        return self.engine.catalog.claim_numbers(self.table.id, column, sequence, count, name)

    def filled(self, rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
        """Returns rows of the table with values of their own in the columns at some places."""
        found = list(rows)
        for place in places if rows else ():
            values = self.claim(self.table.relation_type.names[place], len(rows))
            found = [(*row[:place], value, *row[place + 1 :]) for row, value in zip(found, values, strict=True)]
        return found
