"""Tables that a transaction block has altered under what reads them, and what stands in for them until it commits.

What is computed from a table is bound to it, so the table that the block reads and writes in its place does not get its
name. At the commit the table itself is altered in place (`alter_in_place`), to be what the other is by then, and holds
what that holds:

    updates  =  what the block wrote to the table before  +  what the other holds  -  what the table held, with that

What is computed from the table is computed in the block by its query, over the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mz_dagster.catalog import Alteration, ObjectRow, in_shard
from mz_dagster.plan.relation import Get, Map, Projection, Relation
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import UPDATE_FIELDS, update_schema, update_table
from mz_dagster.storage.consolidation import summed

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StandIn:
    """What a table that stands in for another makes of it.

    Attributes:
        table: The table that is altered.
        alteration: What it is altered to be.
        numbers: Where its sequences stood, by their columns; those of the one that stands in go on behind them.
        held: Its rows as they are stored, with what the block had written.
    """

    table: ObjectRow
    alteration: Alteration
    numbers: Mapping[str, int | None]
    held: Sequence[Row]

    @property
    def origins(self) -> Mapping[str, str]:
        """The columns of the table that is altered, by what takes over their values."""
        return {new: old for old, new in self.alteration.renamed.items()}

    @property
    def stored(self) -> tuple[Column, ...]:
        """The columns of the altered table as they are stored."""
        return in_shard(self.alteration.shapes.stored)

    @property
    def _places(self) -> tuple[int, ...]:
        """Where the columns of the one that stands in are among these."""
        return self.alteration.shapes.versions[-1].places

    def in_place_of(self, read: Get, other: Relation) -> Relation:
        """Returns what reads the table in an earlier shape of it, computed from the one that stands in.

        Args:
            read: What reads the table.
            other: What reads the one that stands in.
        """
        places, width, columns = self._places, len(other.relation_type.columns), read.relation_type.columns
        missing = [place for place in range(len(columns)) if place not in places]
        filled = other
        if missing:  # what is dropped by now, which nothing goes by that is read
            nulls = tuple(Literal(None, columns[place].type) for place in missing)
            filled = Map(other, nulls, tuple(columns[place].name for place in missing))
        sources = [
            places.index(place) if place in places else width + missing.index(place) for place in range(len(columns))
        ]
        return Projection(filled, tuple(sources))

    def updates(self, own: pa.Table | None, holds: pa.Table | None, time: int) -> pa.Table:
        """Returns the updates of the altered table at a time.

        Args:
            own: What the block wrote to it before, as updates of the columns that it stored then.
            holds: What the one that stands in holds, as updates.
            time: Their time.
        """
        columns = self.stored
        empty = [None] * len(columns)
        parts = [update_table(columns, [((*row, *empty[len(row) :]), time, -1) for row in self.held])]
        if own is not None:
            parts.append(self._placed(own, range(own.num_columns - len(UPDATE_FIELDS))))
        if holds is not None:
            parts.append(self._placed(holds, self._places))
        return summed(pa.concat_tables(parts).combine_chunks())

    def _placed(self, updates: pa.Table, places: Sequence[int]) -> pa.Table:
        """Returns updates with their columns at their places; those behind them are the updates' own."""
        schema = update_schema(self.stored)
        own = {place: updates.column(i) for i, place in enumerate(places)}
        columns = [
            own[place] if place in own else pa.nulls(len(updates), schema.field(place).type)
            for place in range(len(self.stored))
        ]
        return pa.Table.from_arrays([*columns, *updates.columns[len(places) :]], schema=schema)
