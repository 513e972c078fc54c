"""The delta join in this process: `spark.delta_join` on Arrow's tables.

A term of a join costs Spark a query to find the keys of each lookup, and a plan that grows with each. Where the updates
are few, and so is what they meet, all of it fits here: the rows of each lookup are fetched by themselves, by keys that
are known then, and joined (`matching`). The result is the one of `spark.delta_join`, update for update.

A join qualifies if its equivalences are of columns of one type whose values are equal exactly where their stored forms
are (`lookup_keys.is_key`): no expressions, no constants, no floats. Too many rows are `Declined`, and left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.delta_terms import lookup_order
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, by_position
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.matching import matches
from mz_dagster.compute.lookups.lookup_keys import is_key
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.pure import SqlFailure
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import DeltaJoin
from mz_dagster.scalars.scalar import ColumnRef, columns_of
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.plain_cells import plain_cells


@dataclass(frozen=True, slots=True)
class Within:
    """What is asked of a column: that it compares so with a value, in plain form (`plain_cells`)."""

    column: int
    operation: str
    value: Any


#: Returns, for the term of input i, the updates of input j that it may meet, and perhaps others: told the values that
#: columns of j must equal, by their positions, and within what others of them must be.
Lookup = Callable[[int, int, Mapping[int, pa.ChunkedArray], Sequence[Within]], pa.Table]


def can_join(node: DeltaJoin) -> bool:
    """Returns whether a join is one that `join_updates` evaluates."""
    columns = node.relation_type.columns
    return all(
        len({scalar.type for scalar in one}) == 1
        and all(isinstance(scalar, ColumnRef) and is_key(columns[scalar.position]) for scalar in one)
        for one in node.equivalences
    )


def join_updates(
    node: DeltaJoin,
    changes: Sequence[pa.Table],
    meeting: frozenset[int],
    lookup: Lookup,
    compared: Sequence[Comparison] = (),
) -> pa.Table:
    """Returns the updates that the inputs' `changes` make of a join that `can_join`, not consolidated.

    Args:
        node: The join.
        changes: Each input's updates in the interval: columns `c0`, `c1`, ..., then time, diff and error.
        meeting: The terms in which anything is met (`delta_join.meeting_terms`).
        lookup: Returns updates of an input before the end of the interval.
        compared: What rows are asked for; others may be missing.

    Raises:
        Declined: It is more than `Budget.joined_rows`, or the diffs' product is beyond a bigint.
    """
    return _Join(node, compared).updates(changes, meeting, lookup)


def settled(updates: pa.Table, time: int) -> pa.Table:
    """Returns updates in which what was taken back by `time` is gone; those before it are at it.

    Of n inputs whose rows of one key were replaced h times each, a join would make h^n rows, which cancel.
    """
    if (pc.min(updates.column(DIFF)).as_py() or 0) >= 0:
        return updates
    return consolidated(updates, time, only_before=True)


class _Join:
    def __init__(self, node: DeltaJoin, compared: Sequence[Comparison]) -> None:
        self._node = node
        self._compared = compared
        arities = [one.relation_type.arity for one in node.inputs]
        self._owners = owners = [(i, k) for i, arity in enumerate(arities) for k in range(arity)]
        #: By input: for each class that has columns of it, their positions.
        self._keys: list[dict[int, list[int]]] = [{} for _ in node.inputs]
        for number, equivalence in enumerate(node.equivalences):
            for scalar in equivalence:
                assert isinstance(scalar, ColumnRef)
                i, k = owners[scalar.position]
                self._keys[i].setdefault(number, []).append(k)
        self._schema = update_schema(by_position(node.relation_type))
        self._names = [f"p{i}_c{k}" for i, k in owners]

    def updates(self, changes: Sequence[pa.Table], meeting: frozenset[int], lookup: Lookup) -> pa.Table:
        parts = [self._schema.empty_table()]
        for i, change in enumerate(changes):
            parts.append(failed(change, self._schema))
            if i in meeting and (found := self._term(i, change, lookup)) is not None:
                parts.append(found)
        return pa.concat_tables(parts)

    def _term(self, i: int, change: pa.Table, lookup: Lookup) -> pa.Table | None:
        """Returns what one input's updates meet, None if that is nothing."""
        joined = self._matchable(i, change)
        representatives = {number: f"p{i}_c{positions[0]}" for number, positions in self._keys[i].items()}
        for j in lookup_order(self._node, i):
            if not joined.num_rows:
                return None
            classes = [number for number in self._keys[j] if number in representatives]
            by = {k: joined.column(representatives[number]) for number in classes for k in self._keys[j][number]}
            other = self._matchable(j, lookup(i, j, by, () if by else self._within(j, joined)))
            pairs = [(representatives[number], f"p{j}_c{self._keys[j][number][0]}") for number in classes]
            joined = self._matched(joined, other, pairs)
            compare = pc.less_equal if j < i else pc.less
            joined = joined.filter(compare(joined.column(f"p{j}_time"), joined.column(f"p{i}_time")))
            for number, positions in self._keys[j].items():
                representatives.setdefault(number, f"p{j}_c{positions[0]}")
        return self._shaped(joined, i) if joined.num_rows else None

    def _within(self, j: int, joined: pa.Table) -> list[Within]:
        """Returns within what columns of an input are in the rows that are asked for with what is joined so far."""
        found = []
        for one in self._compared:
            owner, column = self._owners[one.column.position]
            names = {position: self._names[position] for position in columns_of(one.other)}
            if owner != j or not names.keys() or not {*names.values()} <= {*joined.column_names}:
                continue
            distinct = joined.select(list(names.values())).group_by(list(names.values())).aggregate([])
            if len(distinct) > budget().compared_rows or not is_exact_in_python(one.other):
                continue
            types = [self._node.relation_type.columns[position].type for position in names]
            cells = [plain_cells(of_one, type_) for of_one, type_ in zip(distinct.columns, types, strict=True)]
            other = compiled(one.other)
            try:
                values = [other(dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)]
            except SqlFailure:
                continue  # an error of every row
            # What is compared with NULL does not pass.
            present = [value for value in values if value is not None]
            if not present:
                continue
            match one.operation:
                case "gt" | "ge":
                    found.append(Within(column, one.operation, min(present)))
                case "lt" | "le":
                    found.append(Within(column, one.operation, max(present)))
                case _:
                    found += [Within(column, "ge", min(present)), Within(column, "le", max(present))]
        return found

    def _matchable(self, i: int, frame: pa.Table) -> pa.Table:
        """Returns an input's good rows that may match something, under the names of the joined ones."""
        frame = frame.filter(pc.is_null(frame.column(ERROR))).drop_columns([ERROR])
        data = frame.column_names[:-2]
        frame = frame.rename_columns([*(f"p{i}_{name}" for name in data), f"p{i}_time", f"p{i}_diff"])
        for number, (first, *others) in self._keys[i].items():
            is_null_safe = number in self._node.null_safe
            key = frame.column(f"p{i}_c{first}")
            if not is_null_safe and key.null_count:
                frame = frame.filter(pc.is_valid(key))
            for other in others:
                left, right = frame.column(f"p{i}_c{first}"), frame.column(f"p{i}_c{other}")
                equal = pc.fill_null(pc.equal(left, right), False)
                if is_null_safe:
                    equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
                frame = frame.filter(equal)
        return frame

    def _matched(self, left: pa.Table, right: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        """Returns the pairs of rows whose columns are equal."""
        keys = [(left.column(one), right.column(other)) for one, other in pairs]
        lefts, rights = matches(keys, len(left), len(right), budget().joined_rows)
        left, right = left.take(pa.array(lefts)), right.take(pa.array(rights))
        return pa.table([*left.columns, *right.columns], [*left.column_names, *right.column_names])

    def _shaped(self, joined: pa.Table, i: int) -> pa.Table:
        diff = joined.column("p0_diff")
        try:
            for j in range(1, len(self._node.inputs)):
                diff = pc.multiply_checked(diff, joined.column(f"p{j}_diff"))
        except pa.ArrowInvalid as error:
            raise Declined("a diff is out of range, which is Spark's to tell") from error
        data = [joined.column(name) for name in self._names]
        none = pa.nulls(len(joined), pa.string())
        return pa.Table.from_arrays([*data, joined.column(f"p{i}_time"), diff, none], schema=self._schema)


def failed(changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the updates of the error part, which pass, as updates of something else."""
    errors = changes.filter(pc.is_valid(changes.column(ERROR)))
    columns = [
        errors.column(field.name) if field.name in META else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
