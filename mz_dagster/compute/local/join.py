"""The delta join in this process: `spark.delta_join` on Arrow's tables.

A term of a join costs Spark a query to find the keys of each lookup, and a plan that grows with each. Where the updates
are few, and so is what they meet, all of it fits here: the rows of each lookup are fetched by themselves, by keys that
are known then, and joined (`matching`). The result is the one of `spark.delta_join`, update for update.

Rows are equal by columns of theirs, by scalars over one input, which are computed as further columns of it, and by
constants, which such columns must equal. A scalar over several inputs is computed where the last of them is joined; its
error has the joined row's diff. Values are told apart by what is stored, floats by their bits, of which zeros
and NaN are given one form each. An input is looked up by its columns. What a scalar fails at
is an error of the input's update, which passes as any other.

Until the end, what is joined is numbers of rows of each input (`joined_rows`). What is made of an input's table is kept
as long as the table is: what joins look up whole is the same one in each step.

Of n inputs whose rows of one key were replaced at h times in the interval, a term would make h^(n-1) rows of each
update, which cancel. So what makes many rows is joined for the earlier times first, then for the later ones, with what
each meets as it then was: the less times at once, the less cancels.

What is asked for right above the join says which rows are joined, if that is a range of what is computed of a side,
where nothing must be equal, or where many rows are (`compared_pairs`). Too many rows are `Declined`, and left to Spark.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.delta_terms import lookup_order
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, by_position
from mz_dagster.compute.local.declined import Declined, TooManyMade
from mz_dagster.compute.local.error_part import failed
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.local.expressions.outcome import as_mask, first_errors
from mz_dagster.compute.local.joined_rows import JoinedRows, JoinSide
from mz_dagster.compute.local.linear import mapped
from mz_dagster.compute.local.matching import RowPairs, numbered_keys
from mz_dagster.compute.local.ranges import Side, compared_pairs
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.bounding import NUMBERED_KINDS, Comparison
from mz_dagster.plan.physical import DeltaJoin, MapFilterProject
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar, columns_of, rewrite
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.arrow_schema import arrow_type, no_updates, update_schema, without_error_data, without_errors
from mz_dagster.storage.consolidation import consolidated, summed
from mz_dagster.storage.plain_cells import plain_cells
from mz_dagster.storage.row_numbers import distinct_rows, equal_rows, whole

_FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})
_ONE_ZERO = ("unsigned_zero_float4", "unsigned_zero_float8")


@dataclass(frozen=True, slots=True)
class ValueBound:
    """What is asked of a column: that it compares so with a value, in plain form (`plain_cells`)."""

    column: int
    operation: str
    value: Any


@dataclass(frozen=True, slots=True)
class Sought:
    """What a join asks of the rows of an input that it looks up; values of different keys are those of as many rows.

    Attributes:
        columns: The values that columns must equal, by position.
        computed: Scalars over the columns, with the values that these must equal.
        within: What columns must compare with, where nothing must be equal.
    """

    columns: Mapping[int, pa.ChunkedArray]
    computed: Sequence[tuple[Scalar, pa.ChunkedArray]] = ()
    within: Sequence[ValueBound] = ()


#: Returns, for the term of input i, the updates of input j that it may meet, and perhaps others.
Lookup = Callable[[int, int, Sought], pa.Table]


def join_updates(
    node: DeltaJoin,
    changes: Sequence[pa.Table],
    meeting: frozenset[int],
    lookup: Lookup,
    compared: Sequence[Comparison] = (),
    failing: Collection[int] | None = None,
    *,
    sums: bool = True,
) -> pa.Table:
    """Returns the updates that the inputs' `changes` make of a join, not consolidated.

    Args:
        node: The join.
        changes: Each input's updates in the interval: columns `c0`, `c1`, ..., then time, diff and error.
        meeting: The terms in which anything is met (`delta_join.meeting_terms`).
        lookup: Returns updates of an input before the end of the interval.
        compared: What rows are asked for; others may be missing.
        failing: The inputs whose errors pass; None for all.
        sums: Whether, if too much is made of the updates one by one, equal ones are summed first: what a cross join
            makes of n copies of a row and m of another is one row then, not n * m.

    Raises:
        TooManyMade: It is more than `Budget.joined_rows`.
        MultiplicityOverflow: The diffs' product is beyond a bigint.
    """
    told = range(len(changes)) if failing is None else failing

    def made(changes: Sequence[pa.Table], lookup: Lookup) -> pa.Table:
        try:
            return _joined(node, changes, meeting, lookup, compared, told, budget().joined_rows)
        except TooManyMade:
            if not sums:
                raise
        once = [summed(one) for one in changes]
        return _joined(node, once, meeting, lambda *asked: summed(lookup(*asked)), compared, told, budget().joined_rows)

    def of_times(times: Sequence[int], changes: Sequence[pa.Table], lookup_then: Lookup) -> pa.Table:
        if len(times) < 2 or not any(map(_takes_back, changes)):
            return made(changes, lookup_then)
        try:
            most = min(budget().joined_at_once, budget().joined_rows)
            return _joined(node, changes, meeting, lookup_then, compared, told, most)
        except TooManyMade:
            middle = len(times) // 2
        parts = []
        for some in (times[:middle], times[middle:]):
            within = [_between(one, some[0], some[-1]) for one in changes]
            parts.append(of_times(some, within, _lookup_between(lookup, some[0], some[-1])))
        return pa.concat_tables(parts)

    return of_times(_times(changes) if any(map(_takes_back, changes)) else (), changes, lookup)


def _times(changes: Sequence[pa.Table]) -> list[int]:
    """Returns the times of updates, in order."""
    found = (pc.unique(one.column(TIME)).to_pylist() for one in changes)
    return sorted({time for times in found for time in times})


def _takes_back(updates: pa.Table) -> bool:
    return bool((pc.min(updates.column(DIFF)).as_py() or 0) < 0)


def _between(updates: pa.Table, first: int, last: int) -> pa.Table:
    times = updates.column(TIME)
    return updates.filter(pc.and_(pc.greater_equal(times, first), pc.less_equal(times, last)))


def _lookup_between(lookup: Lookup, first: int, last: int) -> Lookup:
    """Returns what looks up what updates from a first to a last time may meet, with what was taken back before gone."""
    #: By input: what was looked up last, and what was made of it; the same table is asked for again and again.
    known: dict[int, tuple[pa.Table, pa.Table]] = {}

    def found(i: int, j: int, sought: Sought) -> pa.Table:
        every = lookup(i, j, sought)
        if j not in known or known[j][0] is not every:
            until = every.filter(pc.less_equal(every.column(TIME), last))
            known[j] = every, compacted(until, first - 1)
        return known[j][1]

    return found


def _joined(
    node: DeltaJoin,
    changes: Sequence[pa.Table],
    meeting: frozenset[int],
    lookup: Lookup,
    compared: Sequence[Comparison],
    told: Collection[int],
    most: int,
) -> pa.Table:
    join = _join_of(node)
    parts = []
    for i, change in ((i, join.extended(i, one)) for i, one in enumerate(changes) if one.num_rows):
        if i in told and change.column(ERROR).null_count < change.num_rows:
            parts.append(failed(change, join.schema))
        if i in meeting and (found := _term(join, i, change, lookup, compared, most)) is not None:
            parts.append(found)
    return pa.concat_tables(parts) if parts else no_updates(join.schema)


def compacted(updates: pa.Table, time: int) -> pa.Table:
    """Returns updates in which what was taken back by `time` is gone; those before it are at it.

    Of n inputs whose rows of one key were replaced h times each, a join would make h^n rows, which cancel.
    """
    if (pc.min(updates.column(DIFF)).as_py() or 0) >= 0:
        return updates
    return consolidated(updates, time, only_before=True)


class _Join:
    """What the terms of a join need to know of it, which depends on the plan alone.

    Attributes:
        node: The join.
        owners: For each of its columns: its input, and which column of that it is.
        keys: By input: for each class that has scalars over it, the names of its columns that must be equal.
        late: Of classes that have scalars over several inputs: these, and the constants of the class.
        inputs_of: The inputs that each of those classes has scalars over.
        schema: Of its updates.
    """

    def __init__(self, node: DeltaJoin) -> None:
        self.node = node
        arities = [one.relation_type.arity for one in node.inputs]
        self.owners = owners = [(i, k) for i, arity in enumerate(arities) for k in range(arity)]
        self.keys: list[dict[int, list[str]]] = [{} for _ in node.inputs]
        #: By input: what is computed of it besides its columns, as columns `k0`, `k1`, ...
        self._computed: list[list[Scalar]] = [[] for _ in node.inputs]
        self.late: dict[int, list[Scalar]] = {}
        self.inputs_of: dict[int, frozenset[int]] = {}
        for number, equivalence in enumerate(node.equivalences):
            constants = [scalar for scalar in equivalence if not columns_of(scalar)]
            for scalar in equivalence:
                read = {owners[position][0] for position in columns_of(scalar)}
                if len(read) > 1:
                    self.late.setdefault(number, list(constants)).append(scalar)
                for i in read if len(read) == 1 else ():
                    self.keys[i].setdefault(number, []).append(self._key(i, scalar))
            for i in range(len(node.inputs)):
                if number in self.keys[i]:
                    self.keys[i][number] += [self._key(i, one) for one in constants]
            if number in self.late:
                positions = frozenset[int]().union(*map(columns_of, equivalence))
                self.inputs_of[number] = frozenset(owners[position][0] for position in positions)
        self.schema = update_schema(by_position(node.relation_type))

    def _key(self, i: int, scalar: Scalar) -> str:
        """Returns the name of an input's column that a scalar over the joined columns is, or is computed as."""
        own = rewrite(_bare(scalar), lambda ref: replace(ref, position=self.owners[ref.position][1]))
        if isinstance(own, ColumnRef) and own.type.kind not in _FLOATS:
            return f"c{own.position}"
        if own not in self._computed[i]:
            self._computed[i].append(own)
        return f"k{self._computed[i].index(own)}"

    def positions_of(self, inputs: Collection[int]) -> frozenset[int]:
        """Returns the positions of the columns of some inputs."""
        return frozenset(position for position, (i, _) in enumerate(self.owners) if i in inputs)

    def sought(
        self, j: int, keys: Mapping[int, pa.ChunkedArray]
    ) -> tuple[dict[int, pa.ChunkedArray], list[tuple[Scalar, pa.ChunkedArray]]]:
        """Returns what an input's columns, and what is computed of them, must equal, given the values of classes."""
        named = [(name, values) for number, values in keys.items() for name in self.keys[j][number]]
        columns = {int(name[1:]): values for name, values in named if name.startswith("c")}
        return columns, [(self._computed[j][int(name[1:])], values) for name, values in named if name.startswith("k")]

    def extended(self, i: int, frame: pa.Table) -> pa.Table:
        """Returns an input's updates with what is computed of them; where that fails, errors."""
        if not self._computed[i]:
            return frame
        arity = self.node.inputs[i].relation_type.arity
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
                found = found.set_column(place, fields[place], one_form(found.column(place)))
        return found

    def matchable(self, i: int, frame: pa.Table) -> tuple[JoinSide, NDArray[np.bool_] | None]:
        """Returns an input's good rows, of its updates with what is computed of them.

        And which of them may match something; None if all may.
        """
        frame = without_errors(frame)
        asked = []
        for number, (first, *others) in self.keys[i].items():
            key = frame.column(first)
            if number not in self.node.null_safe and key.null_count:
                asked.append(pc.is_valid(key))
            asked += [pa.array(equal_rows(whole(key), whole(frame.column(other)))) for other in others]
        return JoinSide(frame), as_mask(reduce(pc.and_, asked)) if asked else None

    def side(self, j: int, table: pa.Table) -> JoinSide:
        """Returns what `matchable` makes of an input's updates, the same as long as their table and the plan are."""
        name = id(table), id(self), j
        if (known := _sides.get(name)) is not None and known[0]() is table and known[1] is self:
            return known[2]
        made, may_match = self.matchable(j, self.extended(j, table))
        if may_match is not None:
            made = made.only(may_match)
        _sides[name] = weakref.ref(table, lambda _: _sides.pop(name, None)), self, made
        return made


@cached_by_object(most=20_000)
def _join_of(node: DeltaJoin) -> _Join:
    return _Join(node)


#: By the addresses of a table and a join, and the number of an input: what was made of the table for it.
_sides: dict[tuple[int, int, int], tuple[weakref.ref[pa.Table], _Join, JoinSide]] = {}


def _term(
    join: _Join, i: int, change: pa.Table, lookup: Lookup, compared: Sequence[Comparison], most: int
) -> pa.Table | None:
    """Returns what one input's updates, with what is computed of them, meet; None if that is nothing."""
    first, may_match = join.matchable(i, change)
    joined = JoinedRows(i, first)
    if may_match is not None:
        joined.keep(may_match)
    representatives = {number: (i, names[0]) for number, names in join.keys[i].items()}
    for j in lookup_order(join.node, i):
        if not joined.length:
            return None
        keys = {number: joined.column(*representatives[number]) for number in join.keys[j] if number in representatives}
        columns, computed = join.sought(j, keys)
        within = () if columns else _within(join, j, joined, compared)
        side = join.side(j, lookup(i, j, Sought(columns, computed, within)))
        pairs = [(values, join.keys[j][number][0]) for number, values in keys.items()]
        joined.meet_rows(j, side, *_met(join, j, joined, side, pairs, compared, most))
        for number, names in join.keys[j].items():
            representatives.setdefault(number, (j, names[0]))
        for number, inputs in join.inputs_of.items():
            if j in inputs and inputs <= joined.sides.keys():
                _meet_late(join, number, joined, representatives)
    return _shaped(join, joined) if joined.length else None


def _meet_late(join: _Join, number: int, joined: JoinedRows, representatives: Mapping[int, tuple[int, str]]) -> None:
    """Leaves the joined rows of which a class's scalars over several inputs are equal, and those that fail."""
    if joined.length > budget().frame_rows:
        raise Declined("what is computed of many rows to join them is Spark's")
    batch = RowBatch(joined.length, lambda position: whole(_joined_column(join, joined, position)))
    outcomes = [evaluated(one, batch) for one in join.late[number]]
    values = [one.array(joined.length) for one in outcomes]
    if number in representatives:
        values.append(whole(joined.column(*representatives[number])))
    first, *others = values
    kept = np.full(joined.length, True) if number in join.node.null_safe else as_mask(first.is_valid())
    for other in others:
        kept &= equal_rows(first, other)
    errors = first_errors(outcomes)
    if errors is not None:
        kept |= as_mask(errors.is_valid())
        joined.fail(errors)
    joined.keep(kept)


def _met(
    join: _Join,
    j: int,
    joined: JoinedRows,
    side: JoinSide,
    pairs: Sequence[tuple[pa.ChunkedArray, str]],
    compared: Sequence[Comparison],
    most: int,
) -> RowPairs:
    """Returns the pairs of joined rows and an input's whose keys are equal; what does not compare so may be missing.

    To compare costs an order of the rows. So where keys must be equal, it is done if by these alone there are several
    times as many pairs as rows.
    """
    # Of what else fails no error may be lost.
    if not compared or join.late:
        return joined.matches(side, pairs, most)
    if pairs:
        try:
            return joined.matches(side, pairs, min(most, budget().pairs_per_row * (joined.length + side.rows)))
        except TooManyMade:
            pass
    left = Side(
        RowBatch(joined.length, lambda position: whole(_joined_column(join, joined, position))),
        join.positions_of(joined.sides),
    )
    right = Side(
        RowBatch(side.rows, lambda position: whole(side.column(f"c{join.owners[position][1]}"))),
        join.positions_of([j]),
    )
    keys = numbered_keys([(one, side.column(name)) for one, name in pairs]) if pairs else None
    found = compared_pairs(left, right, compared, keys, most)
    return joined.matches(side, pairs, most) if found is None else found


def _within(join: _Join, j: int, joined: JoinedRows, compared: Sequence[Comparison]) -> list[ValueBound]:
    """Returns within what columns of an input are in the rows that are asked for with what is joined so far."""
    found = []
    for one in compared:
        if one.null_passes or not isinstance(one.scalar, ColumnRef) or one.scalar.type.kind not in NUMBERED_KINDS:
            continue
        owner, column = join.owners[one.scalar.position]
        positions = sorted(columns_of(one.other))
        if owner != j or not all(join.owners[position][0] in joined.sides for position in positions):
            continue
        asked = {str(position): _joined_column(join, joined, position) for position in positions}
        distinct = distinct_rows(pa.table(asked))
        if len(distinct) > budget().compared_rows or not is_exact_in_python(one.other):
            continue
        types = [join.node.relation_type.columns[position].type for position in positions]
        cells = [plain_cells(of_one, type_) for of_one, type_ in zip(distinct.columns, types, strict=True)]
        other = compiled(one.other)
        try:
            values = [other(dict(zip(positions, row, strict=True))) for row in zip(*cells, strict=True)]
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


def _joined_column(join: _Join, joined: JoinedRows, position: int) -> pa.ChunkedArray:
    """Returns a column of the join, of the joined rows."""
    i, k = join.owners[position]
    return joined.column(i, f"c{k}")


def _shaped(join: _Join, joined: JoinedRows) -> pa.Table:
    data = [_joined_column(join, joined, position) for position in range(len(join.owners))]
    errors = pa.nulls(joined.length, pa.string()) if joined.failed is None else joined.failed
    found = pa.Table.from_arrays([*data, joined.times(), joined.diffs(), errors], schema=join.schema)
    return found if joined.failed is None else without_error_data(found)


def _bare(scalar: Scalar) -> Scalar:
    """Returns of a float whose zeros have been given one form that float: here all are."""
    return scalar.arguments[0] if isinstance(scalar, Call) and scalar.function in _ONE_ZERO else scalar


def one_form(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns floats of which zeros, and those that are no number, are the same bits."""
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
    column = pc.if_else(pc.fill_null(pc.equal(column, zero), False), zero, column)
    return pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
