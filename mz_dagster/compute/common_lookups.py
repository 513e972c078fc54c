"""Lookups that several joins of a step have in common, made once.

Of TPC-H's views over orders and lineitems ten look up the lineitems of the orders that changed, and ten the orders of
the lineitems that did. Keys of a lookup come, mostly, straight from a column of what changed; so the rows of a
collection C whose columns K are equal to columns of some update of a collection O hold all that such a join can meet,
whatever else it asks of either. They are read in one pass, with the columns that anyone will use, and cut off from how
they came about. A join that finds its lookup here reads them in the place of C's history, and filters and compares as
it would have.

A *path* names such a lookup: C and K, O and its columns. `paths` finds those of a plan; a step counts them over all
collections that it will work on, and makes those that are asked for at least twice in a large C. It is no use where
much of C would come: how much is told from the part of O that changed, as if all keys had equally many rows.

Safe for use from several threads: who comes first makes the frame, the others wait for it.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import ERROR, META, positional, spark_type, with_positions
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import DeltaJoin, Linear, Physical, ReadCollection, physical_inputs
from mz_dagster.plan.scalar import ColumnRef, Scalar, columns_of
from mz_dagster.plan.types import Column, RelationType
from mz_dagster.storage.spark import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mz_dagster.compute.step_reads import StepReads

#: A lookup in fewer rows than this is left to each join: to read them is little more than to plan it.
LARGE_ROWS = 50_000
#: More rows than this are not kept.
MOST_ROWS = 1_000_000
#: Up to so many rows are kept together, so that what joins or groups them needs no shuffle.
TOGETHER_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Path:
    """Is a lookup by what changed.

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


def path(join: DeltaJoin, i: int, j: int) -> Path | None:
    """Returns by what the term of input i looks up input j, None if no column of one simply is a column of the other.

    NULL is taken for equal to NULL, and other conditions of the join are left out: of what the join needs, nothing is.
    """
    changed, read = _leaf(join.inputs[i]), _leaf(join.inputs[j])
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
    return Path(read.id, tuple(positions), changed.id, tuple(found[one] for one in positions)) if found else None


def paths(plan: Physical) -> Iterator[tuple[Path, frozenset[int]]]:
    """Yields the lookups of a plan's joins that have a path, each with the columns of the collection that it uses."""
    if isinstance(plan, DeltaJoin):
        for i in range(len(plan.inputs)):
            for j in range(len(plan.inputs)):
                if i != j and (one := path(plan, i, j)) is not None:
                    yield one, _used(plan.inputs[j])
    for below in physical_inputs(plan):
        yield from paths(below)


class CommonLookups:
    """Makes the frames of the paths that several joins of one step have; use it as long as the step runs.

    Args:
        session: Where they live.
        plans: What the step will render.
        rows: Returns how many updates a collection has in `[lower, upper)`, None being no bound.
        columns: Returns a collection's columns.
    """

    def __init__(
        self,
        session: SparkSession,
        plans: Iterable[Physical],
        *,
        rows: Callable[[GlobalId, int | None, int], int],
        columns: Callable[[GlobalId], Sequence[Column]],
    ) -> None:
        self._session = session
        self._rows = rows
        self._columns = columns
        self._used: defaultdict[Path, frozenset[int]] = defaultdict(frozenset)
        counts: Counter[Path] = Counter()
        for plan in plans:
            for one, used in paths(plan):
                counts[one] += 1
                self._used[one] |= used
        self._wanted = frozenset(one for one, count in counts.items() if count > 1)
        self._lock = threading.Lock()
        self._made: dict[tuple[Path, int, int], Future[DataFrame]] = {}

    def of(self, path: Path, lower: int, upper: int, reads: StepReads) -> DataFrame | None:
        """Returns the rows of the path's collection before `upper` that its updates in `[lower, upper)` can meet.

        Args:
            path: Which lookup.
            lower: Where the updates begin.
            upper: Where they end.
            reads: What to read with.

        Returns:
            An operator's frame, in which columns that no plan uses are NULL; None if the lookup is not one to be made
            here.
        """
        if path not in self._wanted or not self._is_worth(path, lower, upper):
            return None
        with self._lock:
            known = self._made.get((path, lower, upper))
            made = self._made[path, lower, upper] = known or Future()
        if known is None:
            try:
                made.set_result(self._make(path, lower, upper, reads))
            except BaseException as error:
                made.set_exception(error)
        return made.result()

    def _is_worth(self, path: Path, lower: int, upper: int) -> bool:
        return self._rows(path.read, None, upper) > LARGE_ROWS and self._expected(path, lower, upper) <= MOST_ROWS

    def _expected(self, path: Path, lower: int, upper: int) -> int:
        """Returns about how many rows the updates will meet."""
        changed = self._rows(path.changed, lower, upper)
        return self._rows(path.read, None, upper) * changed // max(1, self._rows(path.changed, None, upper))

    def _make(self, path: Path, lower: int, upper: int, reads: StepReads) -> DataFrame:
        types = RelationType(tuple(self._columns(path.read)))
        changed = RelationType(tuple(self._columns(path.changed)))
        updates = with_positions(reads.read(path.changed, lower, upper), changed)
        own = [sf.col(f"c{p}").alias(f"k{p}") for p in sorted(set(path.keys))]
        keys = updates.where(sf.col(ERROR).isNull()).select(*own).distinct()
        used = self._used[path] | set(path.positions)
        by_position = {position: sf.col(f"k{key}") for position, key in zip(path.positions, path.keys, strict=True)}
        history = with_positions(reads.lookup(path.read, upper, keys, by_position), types)
        met = reduce(and_, (sf.col(f"c{position}").eqNullSafe(key) for position, key in by_position.items()))
        found = history.join(keys.hint("broadcast"), met, "left_semi")
        if self._expected(path, lower, upper) <= TOGETHER_ROWS:
            found = found.repartition(1)
        shown = [
            sf.col(name) if position in used else sf.lit(None).cast(spark_type(column.type)).alias(name)
            for position, (name, column) in enumerate(zip(positional(types.arity), types.columns, strict=True))
        ]
        with active(self._session):
            return found.select(*shown, *META).localCheckpoint()


def _leaf(node: Physical) -> ReadCollection | None:
    """Returns the collection of which a node is rows, with columns of their own added or left out; else None."""
    while isinstance(node, Linear):
        node = node.input
    return node if isinstance(node, ReadCollection) else None


def _columns(join: DeltaJoin, input: int, equivalence: tuple[Scalar, ...]) -> list[int]:
    """Returns the columns of an input's collection that stand, as they are, in an equivalence."""
    offset = sum(one.relation_type.arity for one in join.inputs[:input])
    arity = join.inputs[input].relation_type.arity
    own = [one.position - offset for one in equivalence if isinstance(one, ColumnRef)]
    found = (_below(join.inputs[input], position) for position in own if 0 <= position < arity)
    return [position for position in found if position is not None]


def _below(node: Physical, position: int) -> int | None:
    """Returns which column of its collection a node's column is, None if it is computed."""
    while isinstance(node, Linear):
        below = node.mfp.projection[position]
        if below >= node.mfp.arity:
            return None
        node, position = node.input, below
    return position


def _used(node: Physical) -> frozenset[int]:
    """Returns the columns that a node uses of its collection."""
    used = frozenset(range(node.relation_type.arity))
    while isinstance(node, Linear):
        mfp = node.mfp
        used = frozenset(p for p in mfp.projection if p < mfp.arity)
        used |= {p for _, scalar in mfp.steps for p in columns_of(scalar) if p < mfp.arity}
        node = node.input
    return used
