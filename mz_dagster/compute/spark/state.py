"""The state of a keyed operator, as the operator reads it: its own collection before the interval of the step.

A state operator's output is its state. It never sees batches: it asks for the rows of the keys that its changes touch,
and how little of the shard is read for them is decided here and in storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import and_
from typing import TYPE_CHECKING, Protocol

from mz_dagster.budget import budget
from mz_dagster.catalog import in_shard
from mz_dagster.compute.algebra.frame import ERROR, with_positions
from mz_dagster.compute.lookups.lookup_keys import LookupKeys, fetched
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.balanced import balanced
from mz_dagster.compute.spark.broadcast import broadcast
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import Column, RelationType, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class OwnState(Protocol):
    """What a state operator's collection held before the interval."""

    def lookup(self, keys: DataFrame, positions: Sequence[int]) -> DataFrame:
        """Returns the state's updates whose columns at `positions` equal some row of `keys`; NULL equals NULL.

        Others may be among them, where telling them apart would cost more than to work on them in vain.

        Args:
            keys: One column per position, `k0`, `k1`, ...; rows may repeat.
            positions: Columns of the state.

        Returns:
            An operator's frame (`c0`, ..., time, diff, error) of the data part only: not consolidated, all times before
            the interval.
        """
        ...

    def find(self, keys: pa.Table, positions: Sequence[int]) -> DataFrame:
        """Returns what `lookup` does, for keys that are known in this process, if the state `prunes`; no job."""
        ...

    def fetched(self, frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
        """Returns the rows of a frame, each once, None if they are not few; of a state that `prunes`; runs a job.

        Args:
            frame: Over the operator's changes, or the state.
            columns: The frame's.
        """
        ...

    def before(self) -> DataFrame:
        """Returns all updates of the state before the interval, as `lookup` does."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether a lookup returns all there is, whatever it is asked for."""
        ...

    @property
    def prunes(self) -> bool:
        """Whether a lookup begins with knowing its keys, the operator's changes being few enough for that."""
        ...

    def kept(self, changes: DataFrame) -> DataFrame:
        """Returns the operator's changes, computed only once if lookups are going to ask for their keys first."""
        ...


class FrameState:
    """A state that is a frame, not a shard: that of a collection which is being hydrated.

    Args:
        frame: An operator's frame; `before` in full.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def lookup(self, keys: DataFrame, positions: Sequence[int]) -> DataFrame:
        """Returns the rows of the keys; nothing is pruned."""
        return restricted_to_keys(self.before(), keys, positions)

    def find(self, keys: pa.Table, positions: Sequence[int]) -> DataFrame:
        """Raises `InternalError`: nothing prunes, so that nothing asks."""
        raise InternalError("a state that is being hydrated is not looked up by known keys")

    def fetched(self, frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
        """Raises `InternalError`: nothing prunes, so that nothing asks."""
        raise InternalError("a state that is being hydrated fetches no keys")

    def before(self) -> DataFrame:
        """Returns the frame's data part."""
        return self._frame.where(sf.col(ERROR).isNull())

    @property
    def is_whole(self) -> bool:
        """False."""
        return False

    @property
    def prunes(self) -> bool:
        """False: nobody knows how many the changes are."""
        return False

    def kept(self, changes: DataFrame) -> DataFrame:
        """Returns the changes as they are."""
        return changes


class ShardState:
    """A state in a shard: a lookup reads the files that hold its keys, if that is worth a look at them.

    Args:
        reads: What reads for the step of the state's collection.
        id: The collection.
        relation_type: Its columns.
        upper: The lower end of the interval.
        prunes: Whether the changes are few enough to look at their keys first.
    """

    def __init__(
        self, reads: StepReads, id: GlobalId, relation_type: RelationType, upper: int, *, prunes: bool = True
    ) -> None:
        self._reads = reads
        self._id = id
        self._type = relation_type
        self._upper = upper
        self._prunes = prunes

    @property
    def prunes(self) -> bool:
        """Whether the changes are few, and the state is not."""
        return self._prunes and not self.is_whole

    def lookup(self, keys: DataFrame, positions: Sequence[int]) -> DataFrame:
        """Returns the rows of the keys; may run a small job over `keys`."""
        if self.is_whole:
            return self.before()
        if not self.prunes:
            return restricted_to_keys(self.before(), keys, positions)
        by_position = {position: sf.col(f"k{i}") for i, position in enumerate(positions)}
        found = self._reads.lookup(self._id, self._upper, keys, by_position)
        return (
            restricted_to_keys(self.before(), keys, positions, sent=self._keys_at(positions))
            if found is None
            else self._data(found)
        )

    def find(self, keys: pa.Table, positions: Sequence[int]) -> DataFrame:
        """Returns the rows of the keys; no job."""
        columns = {position: in_shard(self._type.columns)[position] for position in positions}
        return self._data(self._reads.find(self._id, self._upper, LookupKeys.of(columns, [keys])))

    def fetched(self, frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
        """Returns the rows if they are few."""
        return fetched(frame, columns)

    def before(self) -> DataFrame:
        """Returns the shard's data part before the interval."""
        return self._data(self._reads.read(self._id, None, self._upper))

    def kept(self, changes: DataFrame) -> DataFrame:
        """Returns the changes, kept on the server if a lookup is going to fetch their keys."""
        return self._reads.shared(changes) if self.prunes else changes

    def _keys_at(self, positions: Sequence[int]) -> dict[str, ScalarType]:
        """Returns the names that columns have in keys, and their types."""
        return {f"k{i}": self._type.columns[position].type for i, position in enumerate(positions)}

    @property
    def is_whole(self) -> bool:
        """Whether it is little."""
        return self._reads.rows(self._id, self._upper) <= budget().whole_state_rows

    def _data(self, frame: DataFrame) -> DataFrame:
        return with_positions(frame, self._type).where(sf.col(ERROR).isNull())


def restricted_to_keys(
    frame: DataFrame, keys: DataFrame, positions: Sequence[int], *, sent: Mapping[str, ScalarType] | None = None
) -> DataFrame:
    """Returns the rows of `frame` whose columns at `positions` equal some row of `keys`; NULL equals NULL.

    Where the keys are few, which the types of what is `sent` say, they are sent to all tasks, and neither they nor the
    frame are shuffled.
    """
    if not positions:
        return frame
    wanted = keys.distinct() if sent is None else broadcast(keys, sent)
    equal = [sf.col(f"c{position}").eqNullSafe(sf.col(f"k{i}")) for i, position in enumerate(positions)]
    return frame.join(wanted, balanced(and_, equal), "left_semi")
