"""The audit: a view as it is maintained against its query, computed once more from its inputs.

At a closed tick, a maintained collection must be exactly its query over its inputs as of that tick. `audit` computes
that query as a one-off, from the inputs' contents and by none of the view's arrangements, and compares the two as
multisets, on Spark or, if they are little, in this process. `negative_rows` finds rows of which there are fewer than
none, which no query over right inputs yields. Both read under a lease, and neither changes or repairs anything.

A sample is all copies of the rows whose hash falls into the share that was asked for, on both sides: a row is compared
exactly or not at all. It saves the comparison's shuffle, not the computation.

An optimizer may move an error, so of the error parts it only counts whether both are empty or neither is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.adapter.engine import Engine
from mz_dagster.budget import budget, engine_of
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.compute import Discrepancy, RowSample, SparkUse, content, discrepancy, negative_multiplicities
from mz_dagster.compute.snapshot.discrepancy import local_discrepancy, local_rows
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import gets_of, lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import snapshot_over_stored
from mz_dagster.plan.reading_time import at_time
from mz_dagster.plan.relation import Relation
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.read import HeldLease, check_readable, leased, overlapping
from mz_dagster.storage.shards import DIFF


class NothingToRecompute(ProgrammingError):
    """An audit of a collection that is not computed from others: a source or a table."""

    sqlstate = "42809"


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        tick: The time that was compared.
        columns: The names of the columns of the examples.
        found: How the collection differs from its query.
    """

    tick: int
    columns: tuple[str, ...]
    found: Discrepancy

    @property
    def passed(self) -> bool:
        """True if the collection is its query, as far as it was compared."""
        found = self.found
        same_errors = (found.errors_held == 0) == (found.errors_computed == 0)
        return found.missing.count == found.surplus.count == 0 and same_errors


@dataclass(frozen=True, slots=True)
class NegativeRows:
    """What was found of rows of which there are fewer than none.

    Attributes:
        tick: The time that was looked at.
        columns: The names of the columns of the examples.
        found: The rows, each as often as it lacks.
    """

    tick: int
    columns: tuple[str, ...]
    found: RowSample


def audit(engine: Engine, id: GlobalId, *, tick: int | None = None, share: float = 1.0, examples: int = 5) -> Audit:
    """Computes a view's query at a closed tick from its inputs and compares the view with it.

    Args:
        engine: The project.
        id: The collection of a materialized view or of an index that is a collection of its own.
        tick: When; by default the latest time at which it and its inputs are complete.
        share: Of the rows to compare, above 0 and up to 1.
        examples: How many rows of each kind to show.

    Raises:
        NothingToRecompute: It is a source or a table.
        ReadBeforeSince: The history at that time is forgotten, of it or of an input.
        ReadBeyondUpper: It is not complete at that time, or an input is not.
        OperationalError: Spark cannot be reached.
    """
    _check_share(share)
    relation = optimize(_query(engine, id))
    ids = frozenset(get.id for get in gets_of(relation)) | {id}
    with engine_of(engine.project.engine, unless_chosen=True), _contents(engine, ids, tick) as contents:
        altered = {row.id: row.columns for row in contents.rows.values() if row.version}
        plan = snapshot_over_stored(lower_to_snapshot_plan(at_time(relation, contents.time)), altered)
        spark = SparkUse(engine.spark.open)
        found: Discrepancy | str = f"a share of {share} of {contents.count(id)} updates is compared"
        if share == 1 and contents.count(id) <= budget().small_rows:
            found = local_discrepancy(
                spark, contents.count, contents.read_here, plan, id, contents.time, examples=examples
            )
        if isinstance(found, str):
            session, columns = spark.session(found), RelationType(contents.rows[id].columns)
            found = discrepancy(
                session, contents.read, plan, (id, columns), contents.time, share=share, examples=examples
            )
    return Audit(contents.time, contents.rows[id].names, found)


def negative_rows(
    engine: Engine, id: GlobalId, *, tick: int | None = None, share: float = 1.0, examples: int = 5
) -> NegativeRows:
    """Looks in a collection, at a closed tick, for rows of which there are fewer than none.

    A small collection is read in this process, a large one by Spark. For the arguments and errors see `audit`.
    """
    _check_share(share)
    chosen = engine_of(engine.project.engine, unless_chosen=True)
    with chosen, _contents(engine, frozenset({id}), tick) as contents:
        columns = RelationType(contents.rows[id].columns)
        if contents.count(id) <= budget().small_rows:
            total = consolidated(contents.read_here(id), contents.time)
            found = local_rows(total, pc.less(total.column(DIFF), 0), examples)
        else:
            frame = content(contents.read, (id, columns), contents.time)
            found = negative_multiplicities(frame, columns, share=share, examples=examples)
    return NegativeRows(contents.time, contents.rows[id].names, found)


@dataclass(frozen=True, slots=True)
class _Contents:
    """What is read, under a lease, at a time at which all of it is complete."""

    engine: Engine
    time: int
    rows: Mapping[GlobalId, CollectionRow]
    lease: HeldLease

    def batches(self, id: GlobalId) -> tuple[Batch, ...]:
        """The collection's batches that matter at the time."""
        return overlapping(self.lease.snapshots[id].batches, None, self.time + 1)

    def count(self, id: GlobalId) -> int:
        """How many updates the collection's batches have."""
        return sum(batch.stats.rows for batch in self.batches(id))

    def read_here(self, id: GlobalId) -> pa.Table:
        """The collection's updates up to the time, in this process: all, as `read`."""
        return self.engine.shards.read(self.rows[id], self.batches(id), upper=self.time + 1)

    def read(self, id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar] = ()) -> Any:
        """The collection's updates with `lower <= time < upper`, on Spark: all, since an audit trusts no statistics."""
        batches = overlapping(self.lease.snapshots[id].batches, lower, upper)
        return self.engine.spark.open()[1].read(self.rows[id], batches, lower=lower, upper=upper)


@contextmanager
def _contents(engine: Engine, ids: frozenset[GlobalId], tick: int | None) -> Iterator[_Contents]:
    rows = {id: engine.catalog.collection(id) for id in ids}
    with leased(engine.catalog, sorted(ids), holder=engine.holder, ttl_ms=engine.project.lease_ms) as lease:
        uppers = [listed.upper.only for listed in lease.snapshots.values() if not listed.upper.is_empty]
        time = min(uppers, default=0) - 1 if tick is None else tick
        for id, listed in lease.snapshots.items():
            check_readable(id, listed, time)
        yield _Contents(engine, time, rows, lease)


def _query(engine: Engine, id: GlobalId) -> Relation:
    """Returns what a collection is computed from its inputs by."""
    definition = engine.definitions.definition(id)
    if definition.relation is not None:
        return definition.relation
    if definition.on is not None:
        return definition.on.contents()
    raise NothingToRecompute(
        f'{definition.kind} "{definition.name}" is not computed from anything',
        hint="Audit the views that read it; its own rows can only be checked for negative multiplicities.",
    )


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise ProgrammingError(f"{share} is no share of the rows", hint="Give more than 0, and at most 1 for all rows.")
