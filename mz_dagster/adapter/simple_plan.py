"""Plans that this process can run by itself, without Spark: one leaf, of whose rows some are kept and shown.

A *simple plan* reads a collection or constant rows, keeps the rows that some predicates ask for, leaves out columns and
adds constants. It runs here if little has to be read: of a collection that is asked for all of its rows, if that is
small; of one that is asked by key (`storage.lookup`), if the files that may hold it are. Predicates of any other kind
are left to Spark, and so is everything that could fail on some row: nothing is evaluated here but equality.

Exactness: what is read is consolidated, and errors and negative multiplicities are raised as by any peek, errors of
rows that nobody asked for included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import CollectionRow, ListedBatches
from mz_dagster.compute import Found, StoredRows, found_rows
from mz_dagster.plan.physical import ConstantRows, Linear, ReadCollection, SnapshotPlan
from mz_dagster.scalars.scalar import Literal, Scalar, columns_of
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.arrow_schema import without_error_data
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.lookup import Lookup
from mz_dagster.storage.read import check_readable, overlapping
from mz_dagster.storage.shards import DIFF, ERROR, StoredFile

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SimplePlan:
    """What a simple plan does.

    Attributes:
        leaf: What it reads.
        lookup: Which of its rows; None for all.
        cells: Of each of them: a column of the leaf or a constant.
    """

    leaf: ReadCollection | ConstantRows
    lookup: Lookup | None
    cells: tuple[int | Literal, ...]

    @classmethod
    def of(cls, plan: SnapshotPlan, rows: Sequence[CollectionRow]) -> SimplePlan | None:
        """Returns what a plan does, if it is that simple; `rows` are the collections that it reads."""
        output = plan.output
        if plan.shared:
            return None
        if not isinstance(output, Linear):
            cells = tuple(range(output.relation_type.arity))
            return cls(output, None, cells) if isinstance(output, ReadCollection | ConstantRows) else None
        row: list[int | Literal] = [*range(output.mfp.arity)]
        predicates: list[Scalar] = []
        for kind, scalar in output.mfp.steps:
            if kind == "filter" and max(columns_of(scalar), default=0) < output.mfp.arity:
                predicates.append(scalar)
            elif kind == "map" and isinstance(scalar, Literal):
                row.append(scalar)
            else:
                return None
        leaf, lookup = output.input, None
        if not isinstance(leaf, ReadCollection) and (predicates or not isinstance(leaf, ConstantRows)):
            return None
        if predicates and (lookup := Lookup.of(predicates, rows[0].columns)) is None:
            return None
        return cls(leaf, lookup, tuple(row[one] for one in output.mfp.projection))

    def constant_rows(self) -> list[Row] | None:
        """Returns the rows, if they are constant."""
        if not isinstance(self.leaf, ConstantRows):
            return None
        return [tuple(shown(row[one] if isinstance(one, int) else one) for one in self.cells) for row in self.leaf.rows]

    def read(self, shards: LocalShards, row: CollectionRow, listed: ListedBatches, time: int) -> Found | None:
        """Returns the rows at a time, each as often as its multiplicity says, in no order; None if it is too much.

        Args:
            shards: Where from.
            row: The collection that is read.
            listed: Its batches. Without a lease on them the answer is exact all the same, or an error.
            time: When.

        Raises:
            ReadBeforeSince: It is not readable at that time any more.
            ReadBeyondUpper: Not yet.
            BatchIncomplete: A batch was swept before it was read.
            DataError: Its content is an error, or a multiplicity is negative.
        """
        assert isinstance(self.leaf, ReadCollection)
        check_readable(row.id, listed, time)
        batches = overlapping(listed.batches, None, time + 1)
        lookup = self.lookup
        if lookup is None and sum(batch.stats.rows for batch in batches) > budget().small_rows:
            return None
        files: Sequence[StoredFile] = shards.files(row, batches, bounds=() if lookup is None else lookup.bounds)
        if lookup is not None:
            files = lookup.files(files)
            if sum(one.rows for one in files) > budget().searched_rows:
                return None
        positions = [one for one in self.cells if isinstance(one, int)]
        names = list(dict.fromkeys(row.columns[i].name for i in positions))
        condition, over, key = (None,) * 3 if lookup is None else (lookup.condition, lookup.over, lookup.key)
        total = shards.read_files(
            row, batches, files, upper=time + 1, columns=names, condition=condition, over=over, key=key
        )
        if not _is_of_rows(total):
            total = shards.consolidate(row, without_error_data(total), time, columns=names)
        found = found_rows(total, [row.columns[i].name for i in positions], tuple(row.columns[i] for i in positions))
        if len(positions) == len(self.cells):
            return found
        places = [positions.index(one) if isinstance(one, int) else one for one in self.cells]
        if isinstance(found, StoredRows):
            return found.arranged(places)
        return [tuple(data[one] if isinstance(one, int) else shown(one) for one in places) for data in found]


def _is_of_rows(frame: pa.Table) -> bool:
    """Returns whether a frame is of few updates, each of which says that a row is there: nothing cancels another."""
    if len(frame) > budget().compared_updates:
        return False
    return frame.column(ERROR).null_count == len(frame) and all(one == 1 for one in frame.column(DIFF).to_pylist())


def shown(literal: Literal) -> Any:
    """Returns the Python form of a literal, in whose plan an array is a tuple, and a `char(n)` may lack its blanks."""
    value = literal.value
    if literal.type.kind is Kind.CHAR and isinstance(value, str):
        return value.ljust(literal.type.length)
    return list(value) if literal.type.element is not None and isinstance(value, tuple) else value
