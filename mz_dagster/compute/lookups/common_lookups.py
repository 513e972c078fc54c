"""Lookups by what changed: made once for all joins of a step that look the same up.

Keys of a lookup come, mostly, straight from a column of what changed; so the rows of a collection C whose columns K are
equal to columns of some update of a collection O hold all that such a join can meet, whatever else it asks of either.
As O's updates are few, their keys are read in this process (`lookup_keys`), and C is read once: with the columns that
anyone will use, only the rows of the keys. Of several joins the frame is cut off from how it came about. A join that
finds its lookup here reads it in the place of C's history, and filters and compares as it would have.

Of TPC-H's views over orders and lineitems ten look up the lineitems of the orders that changed, and ten the orders of
the lineitems that did. Others ask for the same lineitems by way of what they keep: of an order's sum that changed, its
lineitems. A group changes where a row of it does, and a join's row where a row of one of its sides does, so keys are
looked for in what the groups and joins are made of; and lookups in the same collection by the same columns are one, for
the keys of all of them, as far as these are known when it is made.

A *path* names such a lookup: C and K, O and its columns. `paths` finds those of a plan. They are made here where C is
large, and little of it will come: how much is told from the part of O that changed, as if all keys had equally many
rows.

Safe for use from several threads: who comes first makes the frame, the others wait for it.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, permutations
from typing import TYPE_CHECKING, Protocol, assert_never

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.compute.algebra.frame import META, by_position, positional, spark_type, with_positions
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.formalism import GlobalId
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.physical import (
    Accumulate,
    DeltaJoin,
    Linear,
    Physical,
    ReadCollection,
    Staged,
    collections_read,
    physical_inputs,
)
from mz_dagster.scalars.scalar import ColumnRef, Scalar, columns_of
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.arrow_schema import update_schema, without_errors
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.spark import checkpointed
from mz_dagster.storage.spark_shards import update_schema as spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


#: A join with so many times fewer keys looks them up by itself: the rows of all would only be filtered.
_FEWER = 4

#: A collection and columns of it: where rows are looked up, or where keys come from.
_Columns = tuple[GlobalId, tuple[int, ...]]


class KeyReader(Protocol):
    """What finds the updates of few keys of a collection in a step; see `step_reads.StepReads`."""

    def find(self, id: GlobalId, upper: int, keys: LookupKeys) -> DataFrame:
        """Returns the updates of few keys of a collection before `upper`; no job."""
        ...

    def find_table(self, id: GlobalId, upper: int, keys: LookupKeys, used: Collection[int]) -> pa.Table | None:
        """Returns what `find` does, read in this process; None if very many cells are to be decoded."""
        ...


@dataclass(frozen=True, slots=True)
class LookupPath:
    """A lookup by what changed.

    Attributes:
        read: The collection that is looked up.
        positions: Its columns that must be equal to those of what changed, ascending.
        changed: The collection whose updates the keys come from.
        keys: For each of `positions`, the column of what changed.
    """

    read: GlobalId
    positions: tuple[int, ...]
    changed: GlobalId
    keys: tuple[int, ...]

    @property
    def lookup(self) -> _Columns:
        """Where it looks rows up."""
        return self.read, self.positions

    @property
    def keyed(self) -> _Columns:
        """Where its keys come from."""
        return self.changed, self.keys


@dataclass(slots=True, eq=False)
class _Lookup:
    """A lookup that was made, or is being made, and where its keys come from.

    Attributes:
        frame: Its rows, where Spark has them; None if they are too many, and before it is asked for.
        is_framed: Whether the frame was asked for.
        known: Its keys, once they are known in this process.
        table: Its rows, where this process has them; None before they are asked for, and if they are too many.
        lock: Held by who makes one of these.
    """

    keys: frozenset[_Columns]
    frame: DataFrame | None = None
    is_framed: bool = False
    known: LookupKeys | None = None
    table: pa.Table | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)


def path(join: DeltaJoin, i: int, j: int) -> LookupPath | None:
    """Returns by what the term of input i looks up input j, None if no column of one simply is a column of the other.

    NULL is taken for equal to NULL, and other conditions of the join are left out: of what the join needs, nothing is.
    """
    return _paths_of(join).get((i, j))


@cached_by_object(most=20_000)
def _paths_of(join: DeltaJoin) -> dict[tuple[int, int], LookupPath]:
    """Returns by what the terms of a join look up its other inputs, by both, where there is a path."""
    pairs = permutations(range(len(join.inputs)), 2)
    return {(i, j): one for i, j in pairs if (one := _path(join, i, j)) is not None}


def _path(join: DeltaJoin, i: int, j: int) -> LookupPath | None:
    changed, read = leaf(join.inputs[i]), leaf(join.inputs[j])
    if changed is None or read is None:
        return None
    found: dict[int, int] = {}
    for equivalence in join.equivalences:
        if len({scalar.type for scalar in equivalence}) > 1:
            continue
        keys, positions = _columns(join, i, equivalence), _columns(join, j, equivalence)
        if keys:
            found |= dict.fromkeys(positions, keys[0])
    positions = sorted(found)
    return LookupPath(read.id, tuple(positions), changed.id, tuple(found[one] for one in positions)) if found else None


@cached_by_object(most=20_000)
def paths(plan: Physical) -> tuple[tuple[LookupPath, frozenset[int]], ...]:
    """Returns the lookups of a plan's joins that have a path, each with the columns of the collection that it uses."""
    own: list[tuple[LookupPath, frozenset[int]]] = []
    if isinstance(plan, DeltaJoin):
        own = [(one, used_columns(plan.inputs[j])) for (_, j), one in _paths_of(plan).items()]
    return (*own, *chain.from_iterable(map(paths, physical_inputs(plan))))


class CommonLookups:
    """Makes the frames of the lookups that joins of one step have; use it as long as the step runs.

    Args:
        plans: What the step will render.
        maintained: The plans of maintained collections.
        rows: The collections by their ids.
        listed: Returns the batches of a collection that may hold updates with `lower <= time < upper`, leased.
        is_written: Returns whether a collection's updates before a time are all there.
        local: Reads what changed, in this process.
    """

    def __init__(
        self,
        plans: Iterable[Physical],
        *,
        maintained: Mapping[GlobalId, Physical],
        rows: Mapping[GlobalId, CollectionRow],
        listed: Callable[[GlobalId, int | None, int], Sequence[Batch]],
        is_written: Callable[[GlobalId, int], bool],
        local: LocalShards,
    ) -> None:
        self._maintained = maintained
        self._rows = rows
        self._listed = listed
        self._is_written = is_written
        self._local = local
        self._asked: defaultdict[_Columns, Counter[_Columns]] = defaultdict(Counter)
        self._used: defaultdict[_Columns, frozenset[int]] = defaultdict(frozenset)
        for plan in plans:
            for one, used in paths(plan):
                self._asked[one.lookup][one.keyed] += 1
                self._used[one.lookup] |= used | set(one.positions)
        self._lock = threading.Lock()
        self._made: defaultdict[tuple[_Columns, int, int], list[_Lookup]] = defaultdict(list)

    def of(self, path: LookupPath, lower: int, upper: int, reads: KeyReader) -> DataFrame | None:
        """Returns the rows of the path's collection before `upper` that its updates in `[lower, upper)` can meet.

        Args:
            path: Which lookup.
            lower: Where the updates begin.
            upper: Where they end.
            reads: What to read with.

        Returns:
            An operator's frame, in which columns that no plan uses may be NULL; None if the lookup is not one to be
            made here.
        """
        made = self._made_of(path, lower, upper)
        return None if made is None else self._frame(made, path.lookup, lower, upper, reads)

    def table(
        self, path: LookupPath, lower: int, upper: int, reads: KeyReader, most: int, asked: int
    ) -> pa.Table | None:
        """Returns what `of` does, in this process; None also if only one join asks for it, or they may be too many.

        And if the join itself, which may have met others first, has much fewer keys left than all changes have.

        Args:
            path: As `of`.
            lower: As `of`.
            upper: As `of`.
            reads: As `of`.
            most: How many rows to expect at most.
            asked: How many keys the join asks for.
        """
        if self._is_alone(path.lookup) or self._expected(path.lookup, path.keyed, lower, upper) > most:
            return None
        made = self._made_of(path, lower, upper)
        if made is None:
            return None
        with made.lock:
            if made.known is None:
                made.known = self._keys(path.lookup, made.keys, lower, upper)
            if asked * _FEWER < len(made.known):
                return None
            if made.table is None:
                made.table = self._read(made, made.known, path.lookup, lower, upper, reads)
            return made.table

    def _read(
        self, made: _Lookup, keys: LookupKeys, lookup: _Columns, lower: int, upper: int, reads: KeyReader
    ) -> pa.Table | None:
        """Returns a lookup's rows, read in this process if that is less than to have Spark do it."""
        columns = by_position(RelationType(self._rows[lookup[0]].columns))
        if not made.is_framed:
            if not keys.are_few:
                return None
            found = reads.find_table(lookup[0], upper, keys, self._used[lookup])
            if found is not None:
                return found.rename_columns(update_schema(columns).names)
        frame = self._frame(made, lookup, lower, upper, reads)
        return None if frame is None else frame.to(spark_schema(columns)).toArrow().cast(update_schema(columns))

    def _frame(self, made: _Lookup, lookup: _Columns, lower: int, upper: int, reads: KeyReader) -> DataFrame | None:
        """Returns a lookup's rows on Spark; None if the keys are too many."""
        with made.lock:
            if not made.is_framed:
                made.frame = self._found(lookup, made.keys, lower, upper, reads)
                if made.frame is not None and not self._is_alone(lookup):
                    made.frame = self._kept(made.frame, lookup, made.keys, lower, upper)
                made.is_framed = True
            return made.frame

    def _made_of(self, path: LookupPath, lower: int, upper: int) -> _Lookup | None:
        """Returns the lookup, which was or will be made by who asks for it; None if it is not one to be made here."""
        lookup, keys = path.lookup, self._origins(path.keyed, lower, upper)
        if not self._is_worth(lookup, keys, lower, upper, is_alone=self._is_alone(lookup)):
            return None
        with self._lock:
            known = self._made[lookup, lower, upper]
            made = next((one for one in known if keys <= one.keys), None)
            if made is None:
                others = (self._origins(one, lower, upper) for one in self._asked[lookup])
                made = _Lookup(keys.union(*(one for one in others if self._is_ready(lookup, one, lower, upper))))
                known.append(made)
            return made

    def _origins(self, keys: _Columns, lower: int, upper: int) -> frozenset[_Columns]:
        """Returns where the keys of an interval's changes are found first: in what changed of what they are made of."""
        plan = self._maintained.get(keys[0])

        def may_change(id: GlobalId) -> bool:
            return not self._is_written(id, upper) or self._count(id, lower, upper) > 0

        below = None if plan is None else _made_of(plan, keys[1], may_change)
        if below is None:
            return frozenset({keys})
        return frozenset().union(*(self._origins(one, lower, upper) for one in below))

    def _is_alone(self, lookup: _Columns) -> bool:
        """Returns whether only one join asks for it."""
        return self._asked[lookup].total() < 2

    def _is_worth(self, lookup: _Columns, keys: Iterable[_Columns], lower: int, upper: int, *, is_alone: bool) -> bool:
        read, positions = lookup
        return (
            bool(positions)
            and self._count(read, None, upper) > (budget().pruned_rows if is_alone else budget().common_lookup_rows)
            and all(
                self._count(one[0], lower, upper) <= budget().kept_rows
                and self._expected(lookup, one, lower, upper)
                <= (budget().kept_rows_alone if is_alone else budget().kept_rows)
                for one in keys
            )
        )

    def _is_ready(self, lookup: _Columns, keys: Collection[_Columns], lower: int, upper: int) -> bool:
        """Returns whether keys are known by now, and worth being looked up with others."""
        known = all(self._is_written(id, upper) for id, _ in keys)
        return known and self._is_worth(lookup, keys, lower, upper, is_alone=False)

    def _count(self, id: GlobalId, lower: int | None, upper: int) -> int:
        return sum(batch.stats.rows for batch in self._listed(id, lower, upper))

    def _expected(self, lookup: _Columns, keys: _Columns, lower: int, upper: int) -> int:
        """Returns about how many rows the keys will find."""
        changed = self._count(keys[0], lower, upper)
        return self._count(lookup[0], None, upper) * changed // max(1, self._count(keys[0], None, upper))

    def _found(
        self, lookup: _Columns, keys: Iterable[_Columns], lower: int, upper: int, reads: KeyReader
    ) -> DataFrame | None:
        """Returns a lookup's rows; None if the keys are too many."""
        found = self._keys(lookup, keys, lower, upper)
        types = RelationType(self._rows[lookup[0]].columns)
        return with_positions(reads.find(lookup[0], upper, found), types) if found.are_few else None

    def _keys(self, lookup: _Columns, keys: Iterable[_Columns], lower: int, upper: int) -> LookupKeys:
        """Returns the keys of a lookup."""
        read, positions = lookup
        columns = self._rows[read].columns
        return LookupKeys.of(
            {position: columns[position] for position in positions},
            [self.keys_of(*one, lower, upper) for one in keys],
        )

    def keys_of(self, changed: GlobalId, columns: tuple[int, ...], lower: int, upper: int) -> pa.Table:
        """Returns some columns of a collection's updates in an interval."""
        row = self._rows[changed]
        names = [row.columns[position].name for position in columns]
        batches = self._listed(changed, lower, upper)
        asked = list(dict.fromkeys(names))
        updates = self._local.read(row, batches, lower=lower, upper=upper, columns=asked)
        found = without_errors(updates)
        return found.select([found.schema.get_field_index(name) for name in names])

    def _kept(self, frame: DataFrame, lookup: _Columns, keys: Iterable[_Columns], lower: int, upper: int) -> DataFrame:
        """Returns a lookup's rows, computed."""
        read, used = lookup[0], self._used[lookup]
        if sum(self._expected(lookup, one, lower, upper) for one in keys) <= budget().one_task_rows:
            frame = frame.repartition(1)
        columns = self._rows[read].columns
        shown = [
            sf.col(name) if position in used else sf.lit(None).cast(spark_type(column.type)).alias(name)
            for position, (name, column) in enumerate(zip(positional(len(columns)), columns, strict=True))
        ]
        return checkpointed(frame.select(*shown, *META))


def _made_of(
    plan: Physical, columns: Sequence[int], may_change: Callable[[GlobalId], bool]
) -> frozenset[_Columns] | None:
    """Returns columns of collections of which rows or groups are made, where some columns of a plan are theirs.

    So an update in which these columns have some values comes at the same time as one, of one of these collections, in
    which those have the same. Of a join's inputs those are left out that do not change.

    Args:
        plan: The plan.
        columns: Positions of the columns.
        may_change: Returns whether a collection may have updates at the times in question.
    """
    match plan:
        case ReadCollection():
            return frozenset({(plan.id, tuple(columns))})
        case Linear() | Accumulate() | Staged():
            below = [_grouped(plan, position) for position in columns]
            found = [position for position in below if position is not None]
            return _made_of(plan.input, found, may_change) if len(found) == len(below) else None
        case DeltaJoin():
            changing = [i for i, one in enumerate(plan.inputs) if any(map(may_change, collections_read(one)))]
            parts = [_joined(plan, i, columns, may_change) for i in changing]
            known = [one for one in parts if one is not None]
            return frozenset().union(*known) if len(known) == len(parts) else None
        case _:
            return None


def _joined(
    join: DeltaJoin, input: int, columns: Sequence[int], may_change: Callable[[GlobalId], bool]
) -> frozenset[_Columns] | None:
    """Returns, as `_made_of`, where rows of a join that an update of one input makes have some columns from."""
    offset = sum(one.relation_type.arity for one in join.inputs[:input])
    own = range(offset, offset + join.inputs[input].relation_type.arity)
    found = []
    for position in columns:
        equal = [position, *_equal(join, position)]
        mine = next((one - offset for one in equal if one in own), None)
        if mine is None:
            return None
        found.append(mine)
    return _made_of(join.inputs[input], found, may_change)


def _equal(join: DeltaJoin, position: int) -> Iterator[int]:
    """Yields the columns of a join that have the same value as the one at `position`, in all its rows."""
    for equivalence in join.equivalences:
        plain = [one.position for one in equivalence if isinstance(one, ColumnRef)]
        if position in plain and len({one.type for one in equivalence}) == 1:
            yield from plain


def _grouped(node: Linear | Accumulate | Staged, position: int) -> int | None:
    """Returns which column of its input an operator's column is, None if it is not the same in all rows of a group."""
    match node:
        case Linear():
            return node.mfp.passed(position)
        case Accumulate():
            return position if position < node.key_arity else None
        case Staged():
            return position - 2 if position - 2 in node.group else None
        case _:
            assert_never(node)


def leaf(node: Physical) -> ReadCollection | None:
    """Returns the collection of which a node is rows, with columns of their own added or left out; else None."""
    while isinstance(node, Linear):
        node = node.input
    return node if isinstance(node, ReadCollection) else None


def _columns(join: DeltaJoin, input: int, equivalence: tuple[Scalar, ...]) -> list[int]:
    """Returns the columns of an input's collection that stand, as they are, in an equivalence."""
    offset = sum(one.relation_type.arity for one in join.inputs[:input])
    arity = join.inputs[input].relation_type.arity
    own = [one.position - offset for one in equivalence if isinstance(one, ColumnRef)]
    found = (passed_down(join.inputs[input], position) for position in own if 0 <= position < arity)
    return [position for position in found if position is not None]


def passed_down(node: Physical, position: int) -> int | None:
    """Returns which column of its collection a node's column is, None if it is computed."""
    while isinstance(node, Linear):
        below = node.mfp.passed(position)
        if below is None:
            return None
        node, position = node.input, below
    return position


@cached_by_object(most=20_000)
def used_columns(node: Physical) -> frozenset[int]:
    """Returns the columns that a node uses of its collection."""
    used = frozenset(range(node.relation_type.arity))
    while isinstance(node, Linear):
        mfp = node.mfp
        used = frozenset(p for p in mfp.projection if p < mfp.arity)
        used |= {p for _, scalar in mfp.steps for p in columns_of(scalar) if p < mfp.arity}
        node = node.input
    return used
