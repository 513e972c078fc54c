"""The delta join in this process: `spark.delta_join` on Arrow's tables.

A term of a join costs Spark a query to find the keys of each lookup, and a plan that grows with each. Where the updates
are few, and so is what they meet, all of it fits here: the rows of each lookup are fetched by themselves, by keys that
are known then, and joined (`matching`). The result is the one of `spark.delta_join`, update for update.

Rows are equal by columns of theirs, by scalars over one input, which are computed as further columns of it, and by
constants, which such columns must equal. A scalar over several inputs is computed where the last of them is joined; its
error has the joined row's diff. Values are told apart by what is stored, floats by their bits, of which zeros
and NaN are given one form each. An input is looked up by its columns. What a scalar fails at
is an error of the input's update, which passes as any other.

Too many rows are `Declined`, and left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.delta_terms import lookup_order
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.algebra.frame import DIFF, ERROR, by_position
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.error_part import failed
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.local.expressions.outcome import as_mask, first_errors
from mz_dagster.compute.local.linear import mapped
from mz_dagster.compute.local.matching import matches
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import DeltaJoin, MapFilterProject
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar, columns_of, rewrite
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.arrow_schema import arrow_type, update_schema, without_error_data
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.plain_cells import plain_cells
from mz_dagster.storage.row_numbers import distinct_rows, equal_rows, whole

_FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})
#: The column of the errors of joined rows.
_FAILED = "failed"
_ONE_ZERO = ("unsigned_zero_float4", "unsigned_zero_float8")


@dataclass(frozen=True, slots=True)
class ValueBound:
    """What is asked of a column: that it compares so with a value, in plain form (`plain_cells`)."""

    column: int
    operation: str
    value: Any


#: Returns, for the term of input i, the updates of input j that it may meet, and perhaps others: told the values that
#: columns of j must equal, by their positions, and within what others of them must be.
Lookup = Callable[[int, int, Mapping[int, pa.ChunkedArray], Sequence[ValueBound]], pa.Table]


def join_updates(
    node: DeltaJoin,
    changes: Sequence[pa.Table],
    meeting: frozenset[int],
    lookup: Lookup,
    compared: Sequence[Comparison] = (),
    failing: Collection[int] | None = None,
) -> pa.Table:
    """Returns the updates that the inputs' `changes` make of a join, not consolidated.

    Args:
        node: The join.
        changes: Each input's updates in the interval: columns `c0`, `c1`, ..., then time, diff and error.
        meeting: The terms in which anything is met (`delta_join.meeting_terms`).
        lookup: Returns updates of an input before the end of the interval.
        compared: What rows are asked for; others may be missing.
        failing: The inputs whose errors pass; None for all.

    Raises:
        TooManyMade: It is more than `Budget.joined_rows`.
        Declined: The diffs' product is beyond a bigint.
    """
    told = range(len(changes)) if failing is None else failing
    return _Join(node, compared).updates(changes, meeting, lookup, told)


def compacted(updates: pa.Table, time: int) -> pa.Table:
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
        #: By input: for each class that has scalars over it, the names of its columns that must be equal.
        self._keys: list[dict[int, list[str]]] = [{} for _ in node.inputs]
        #: By input: what is computed of it besides its columns, as columns `k0`, `k1`, ...
        self._computed: list[list[Scalar]] = [[] for _ in node.inputs]
        #: Of classes that have scalars over several inputs: these, and the constants of the class.
        self._late: dict[int, list[Scalar]] = {}
        for number, equivalence in enumerate(node.equivalences):
            constants = [scalar for scalar in equivalence if not columns_of(scalar)]
            for scalar in equivalence:
                read = {owners[position][0] for position in columns_of(scalar)}
                if len(read) > 1:
                    self._late.setdefault(number, list(constants)).append(scalar)
                for i in read if len(read) == 1 else ():
                    self._keys[i].setdefault(number, []).append(self._key(i, scalar))
            for i in range(len(node.inputs)):
                if number in self._keys[i]:
                    self._keys[i][number] += [self._key(i, one) for one in constants]
        self._schema = update_schema(by_position(node.relation_type))
        self._names = [f"p{i}_c{k}" for i, k in owners]

    def _key(self, i: int, scalar: Scalar) -> str:
        """Returns the name of an input's column that a scalar over the joined columns is, or is computed as."""
        own = rewrite(_bare(scalar), lambda ref: replace(ref, position=self._owners[ref.position][1]))
        if isinstance(own, ColumnRef) and own.type.kind not in _FLOATS:
            return f"c{own.position}"
        if own not in self._computed[i]:
            self._computed[i].append(own)
        return f"k{self._computed[i].index(own)}"

    def _extended(self, i: int, frame: pa.Table) -> pa.Table:
        """Returns an input's updates with what is computed of them; where that fails, errors."""
        if not self._computed[i]:
            return frame
        arity = self._node.inputs[i].relation_type.arity
        mfp = MapFilterProject(
            arity, tuple(("map", one) for one in self._computed[i]), tuple(range(arity + len(self._computed[i])))
        )
        if len(frame) > budget().frame_rows:
            raise Declined("what is computed of many rows to join them is Spark's")
        fields = [
            *list(frame.schema)[:arity],
            *(pa.field(f"k{m}", arrow_type(one.type)) for m, one in enumerate(self._computed[i])),
        ]
        schema = pa.schema([*fields, *list(frame.schema)[arity:]])
        if not frame.num_rows:
            return schema.empty_table()
        found = mapped(frame, mfp, schema)
        for place in range(arity, len(fields)):
            if pa.types.is_floating(fields[place].type):
                found = found.set_column(place, fields[place], _one_form(found.column(place)))
        return found

    def updates(
        self, changes: Sequence[pa.Table], meeting: frozenset[int], lookup: Lookup, failing: Collection[int]
    ) -> pa.Table:
        parts = [self._schema.empty_table()]
        for i, change in ((i, self._extended(i, one)) for i, one in enumerate(changes) if one.num_rows):
            if i in failing:
                parts.append(failed(change, self._schema))
            if i in meeting and (found := self._term(i, change, lookup)) is not None:
                parts.append(found)
        return pa.concat_tables(parts)

    def _term(self, i: int, change: pa.Table, lookup: Lookup) -> pa.Table | None:
        """Returns what one input's updates meet, None if that is nothing."""
        joined = self._matchable(i, change)
        representatives = {number: f"p{i}_{names[0]}" for number, names in self._keys[i].items()}
        bound = {i}
        for j in lookup_order(self._node, i):
            if not joined.num_rows:
                return None
            classes = [number for number in self._keys[j] if number in representatives]
            by = {
                int(name[1:]): joined.column(representatives[number])
                for number in classes
                for name in self._keys[j][number]
                if name.startswith("c")
            }
            found = lookup(i, j, by, () if by else self._within(j, joined))
            other = self._matchable(j, self._extended(j, found))
            pairs = [(representatives[number], f"p{j}_{self._keys[j][number][0]}") for number in classes]
            joined = self._matched(joined, other, pairs)
            compare = pc.less_equal if j < i else pc.less
            joined = joined.filter(compare(joined.column(f"p{j}_time"), joined.column(f"p{i}_time")))
            for number, names in self._keys[j].items():
                representatives.setdefault(number, f"p{j}_{names[0]}")
            bound.add(j)
            for number in self._late:
                if self._inputs_of(number) <= bound and not self._inputs_of(number) <= bound - {j}:
                    joined = self._met_late(number, joined, representatives)
        return self._shaped(joined, i) if joined.num_rows else None

    def _inputs_of(self, number: int) -> set[int]:
        """Returns the inputs that a class has scalars over."""
        scalars = self._node.equivalences[number]
        return {self._owners[position][0] for scalar in scalars for position in columns_of(scalar)}

    def _met_late(self, number: int, joined: pa.Table, representatives: Mapping[int, str]) -> pa.Table:
        """Returns the joined rows of which a class's scalars over several inputs are equal, and those that fail."""
        scalars = self._late[number]
        if len(joined) > budget().frame_rows:
            raise Declined("what is computed of many rows to join them is Spark's")
        batch = RowBatch(len(joined), lambda position: whole(joined.column(self._names[position])))
        outcomes = [evaluated(one, batch) for one in scalars]
        values = [one.array(len(joined)) for one in outcomes]
        if number in representatives:
            values.append(whole(joined.column(representatives[number])))
        first, *others = values
        kept = np.full(len(joined), True) if number in self._node.null_safe else as_mask(first.is_valid())
        for other in others:
            kept &= equal_rows(first, other)
        errors = first_errors(outcomes)
        if errors is not None:
            kept |= as_mask(errors.is_valid())
            if _FAILED in joined.column_names:
                errors = pc.coalesce(joined.column(_FAILED), errors)
                joined = joined.drop_columns([_FAILED])
            joined = joined.append_column(_FAILED, errors)
        return joined.filter(pa.array(kept))

    def _within(self, j: int, joined: pa.Table) -> list[ValueBound]:
        """Returns within what columns of an input are in the rows that are asked for with what is joined so far."""
        found = []
        for one in self._compared:
            owner, column = self._owners[one.column.position]
            names = {position: self._names[position] for position in columns_of(one.other)}
            if owner != j or not names.keys() or not {*names.values()} <= {*joined.column_names}:
                continue
            distinct = distinct_rows(joined.select(list(names.values())))
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
                    found.append(ValueBound(column, one.operation, min(present)))
                case "lt" | "le":
                    found.append(ValueBound(column, one.operation, max(present)))
                case _:
                    found += [ValueBound(column, "ge", min(present)), ValueBound(column, "le", max(present))]
        return found

    def _matchable(self, i: int, frame: pa.Table) -> pa.Table:
        """Returns an input's good rows that may match something, under the names of the joined ones."""
        errors = frame.column(ERROR)
        if errors.null_count < len(errors):
            frame = frame.filter(pc.is_null(errors))
        frame = frame.drop_columns([ERROR])
        data = frame.column_names[:-2]
        frame = frame.rename_columns([*(f"p{i}_{name}" for name in data), f"p{i}_time", f"p{i}_diff"])
        for number, (first, *others) in self._keys[i].items():
            is_null_safe = number in self._node.null_safe
            key = frame.column(f"p{i}_{first}")
            if not is_null_safe and key.null_count:
                frame = frame.filter(pc.is_valid(key))
            for other in others:
                equal = equal_rows(whole(frame.column(f"p{i}_{first}")), whole(frame.column(f"p{i}_{other}")))
                frame = frame.filter(pa.array(equal))
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
        errors = joined.column(_FAILED) if _FAILED in joined.column_names else pa.nulls(len(joined), pa.string())
        found = pa.Table.from_arrays([*data, joined.column(f"p{i}_time"), diff, errors], schema=self._schema)
        return without_error_data(found)


def _bare(scalar: Scalar) -> Scalar:
    """Returns of a float whose zeros have been given one form that float: here all are."""
    return scalar.arguments[0] if isinstance(scalar, Call) and scalar.function in _ONE_ZERO else scalar


def _one_form(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns floats of which zeros, and those that are no number, are the same bits."""
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
    column = pc.if_else(pc.fill_null(pc.equal(column, zero), False), zero, column)
    return pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
