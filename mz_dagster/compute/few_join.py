"""The delta join over few updates, in this process: `delta_join` on Arrow's tables.

A term of a join costs Spark a query to find the keys of each lookup, and a plan that grows with each. Where the updates
are few, and so is what they meet, all of it fits here: the rows of each lookup are fetched by themselves, by keys that
are known then, and Arrow joins them. The result is the one of `delta_join`, update for update.

A join qualifies if its equivalences are of columns of one type whose values are equal exactly where their stored forms
are (`lookup_keys.is_key`): no expressions, no constants, no floats. What turns out to be many is `NotFew`, and left to
Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.delta_join import lookup_order
from mz_dagster.compute.frame import ERROR, META, by_position
from mz_dagster.compute.lookup_keys import is_key
from mz_dagster.plan.physical import DeltaJoin
from mz_dagster.plan.scalar import ColumnRef
from mz_dagster.storage.local_shards import update_schema

#: More rows are not joined here.
MOST_JOINED = 200_000

#: Returns, for the term of input i, the updates of input j that it may meet, and perhaps others: told the values that
#: columns of j must equal, by their positions.
Lookup = Callable[[int, int, Mapping[int, pa.ChunkedArray]], pa.Table]


class NotFew(Exception):
    """Says that something is left to Spark."""


def is_joined_here(node: DeltaJoin) -> bool:
    """Returns whether a join is one that `few_join` evaluates."""
    columns = node.relation_type.columns
    return all(
        len({scalar.type for scalar in one}) == 1
        and all(isinstance(scalar, ColumnRef) and is_key(columns[scalar.position]) for scalar in one)
        for one in node.equivalences
    )


def few_join(node: DeltaJoin, changes: Sequence[pa.Table], meeting: frozenset[int], lookup: Lookup) -> pa.Table:
    """Returns the updates that the inputs' `changes` make of a join that `is_joined_here`, not consolidated.

    Args:
        node: The join.
        changes: Each input's updates in the interval: columns `c0`, `c1`, ..., then time, diff and error.
        meeting: The terms in which anything is met (`delta_join.meeting_terms`).
        lookup: Returns updates of an input before the end of the interval.

    Raises:
        NotFew: It is more than `MOST_JOINED`, or the diffs' product is beyond a bigint.
    """
    return _Join(node).updates(changes, meeting, lookup)


class _Join:
    def __init__(self, node: DeltaJoin) -> None:
        self._node = node
        arities = [one.relation_type.arity for one in node.inputs]
        owners = [(i, k) for i, arity in enumerate(arities) for k in range(arity)]
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
            other = self._matchable(j, lookup(i, j, by))
            pairs = [(representatives[number], f"p{j}_c{self._keys[j][number][0]}") for number in classes]
            joined = self._matched(joined, other, pairs)
            compare = pc.less_equal if j < i else pc.less
            joined = joined.filter(compare(joined.column(f"p{j}_time"), joined.column(f"p{i}_time")))
            for number, positions in self._keys[j].items():
                representatives.setdefault(number, f"p{j}_c{positions[0]}")
        return self._shaped(joined, i) if joined.num_rows else None

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
        keys = [(left.column(one), right.column(other)) for one, other in pairs] or [(_zeros(left), _zeros(right))]
        if any(one.null_count and other.null_count for one, other in keys):
            raise NotFew("NULLs that are equal are Spark's to join")  # otherwise they would not be here
        names = [f"mz_key{n}" for n in range(len(keys))]
        lefts = pa.table([*(one for one, _ in keys), _numbers(left)], [*names, "mz_left"])
        rights = pa.table([*(other for _, other in keys), _numbers(right)], [*names, "mz_right"])
        # Before it is there: one key may have many rows on both sides.
        counts = rights.group_by(names, use_threads=False).aggregate([([], "count_all")])
        met = lefts.join(counts, names, join_type="inner", use_threads=False)
        if (pc.sum(met.column("count_all")).as_py() or 0) > MOST_JOINED:
            raise NotFew("too many rows are joined")
        # Numbers of rows, not rows: Arrow joins no lists.
        found = lefts.join(rights, names, join_type="inner", use_threads=False)
        left, right = left.take(found.column("mz_left")), right.take(found.column("mz_right"))
        return pa.table([*left.columns, *right.columns], [*left.column_names, *right.column_names])

    def _shaped(self, joined: pa.Table, i: int) -> pa.Table:
        diff = joined.column("p0_diff")
        try:
            for j in range(1, len(self._node.inputs)):
                diff = pc.multiply_checked(diff, joined.column(f"p{j}_diff"))
        except pa.ArrowInvalid as error:
            raise NotFew("a diff is out of range, which is Spark's to tell") from error
        data = [joined.column(name) for name in self._names]
        none = pa.nulls(len(joined), pa.string())
        return pa.Table.from_arrays([*data, joined.column(f"p{i}_time"), diff, none], schema=self._schema)


def _zeros(table: pa.Table) -> pa.Array:
    return pa.array([0] * len(table), pa.int8())


def _numbers(table: pa.Table) -> pa.Array:
    return pa.array(range(len(table)), pa.int64())


def failed(changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the updates of the error part, which pass, as updates of something else."""
    errors = changes.filter(pc.is_valid(changes.column(ERROR)))
    columns = [
        errors.column(field.name) if field.name in META else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
