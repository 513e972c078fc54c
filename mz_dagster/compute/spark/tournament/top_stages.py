"""All stages of a tournament of first rows at once: `plan.physical.TopRows`.

The first rows of a bucket are rows of the input, and their hashes tell which buckets of the finer levels they come
from. So no stage has to wait for the one below: in a version of the input, the first rows of a bucket are the first
ones among

    the rows of the input that the step changes, and
    of each finest bucket in it, what represents that at PRIOR: all its rows where it changes itself, else the first
    rows of the largest bucket around it that does not.

They are put together for each stage at once, and `versions` and `top_rows` see one frame with all stages in it.

*Sparing buckets.* Much less represents a bucket none of whose first rows the step changes. These are rows of the input
in every version, so no other row of PRIOR comes to be one of the first: they alone represent the bucket at its stage.
What the rows that the step changes were at PRIOR is looked up by their hash besides, since a multiplicity may have been
negative. Which buckets can be spared is asked together with the keys of the lookup, where a state is large and has no
groups, as that of `ORDER BY ... LIMIT`. If one of a coarser level cannot, none is spared: that is rare, as it has the
first rows of many.

A little state is all there: its level 0 represents every bucket.

Cost: one shuffle of the changes and of what represents the buckets they touch, both once for each stage. Of a spared
bucket, its first rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME
from mz_dagster.compute.lookups.lookup_keys import key_schema
from mz_dagster.compute.spark.broadcast import broadcast
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.compute.spark.tournament.top_rows import places, top_rows
from mz_dagster.compute.spark.tournament.versions import (
    BUCKET,
    CARRIED,
    GOOD,
    LEVEL,
    RowLayout,
    bucket_of,
    consolidated,
    hashed,
    held,
    partition,
    replaced,
    subject,
    versions,
)
from mz_dagster.plan.physical import Staged, TopRows
from mz_dagster.scalars.types import INT4, INT8
from mz_dagster.scalars.types import Column as Named
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark import frame_of_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HASH = "mz_hash"
#: As what a row is looked up where buckets are spared, besides as one of the first of its bucket at a stage, which are
#: the numbers from 0: as a row of a bucket that is not spared, and, counting down by the stage, as one that changes.
_OPEN, _CHANGED = -1, -2
_KEY = (Named("k0", INT4), Named("k1", INT8))


def top_updates(changes: DataFrame, own: OwnState, shape: RowLayout, node: Staged, function: TopRows) -> DataFrame:
    """Returns the changes of all levels that the input's `changes` make, as a flow."""
    return _Tournament(changes, own, shape, node, function).updates()


class _Tournament:
    def __init__(self, changes: DataFrame, own: OwnState, shape: RowLayout, node: Staged, function: TopRows) -> None:
        self._changes = changes
        self._own = own
        self._shape = shape
        self._buckets = node.buckets
        self._function = function

    def updates(self) -> DataFrame:
        shape, last = self._shape, len(self._buckets)
        flow = self._changed().unionAll(self._before())
        flow = flow.select(LEVEL, self._bucket().alias(BUCKET), *shape.row, TIME, DIFF, ERROR)
        rows = versions(flow, shape, None, keeps_changes=True, places=places(self._function))
        is_last = sf.col(LEVEL) == last - 1
        found = top_rows(rows, shape, self._function, list(CARRIED), partition(shape), subject(), last=is_last)
        # That of the next level: the hash is not known any more, and need not be.
        above = [bucket_of(sf.col(BUCKET), n) for n in (*self._buckets[1:], 1)]
        return replaced(found, shape, sf.col(LEVEL) + 1, _at_level(above), consolidates=False)

    def _changed(self) -> DataFrame:
        """Returns the input's changes, once for each stage, and those of the error part: hash, level and the rest."""
        summed = consolidated(self._changes, self._shape)
        good = sf.col(GOOD).isNotNull()
        none = sf.array(sf.lit(None).cast("int"))
        return summed.select(
            sf.explode(sf.when(good, self._every).otherwise(none)).alias(LEVEL), hashed(self._shape).alias(_HASH),
            *self._shape.row, TIME, DIFF, ERROR,
        )  # fmt: skip

    def _before(self) -> DataFrame:
        """Returns what represents the touched buckets, and perhaps others, at PRIOR, as `_changed` does."""
        if self._own.is_whole:
            rows = self._held(self._own.before().where(sf.col("c0") == 0))
            return self._at_stages(rows, self._every)
        changing = self._changing()
        fetched = self._fetched(changing) if self._may_spare else None
        if fetched is None:
            return self._representatives(changing)
        numbers: dict[int | None, set[int]] = {}
        for stage, number in zip(*(column.to_pylist() for column in fetched.columns), strict=True):
            numbers.setdefault(stage, set()).add(number)
        changed = numbers.pop(None, set())
        if numbers.keys() - {0}:
            return self._representatives(changing)
        return self._sparing(changed, numbers.get(0, set()))

    @property
    def _every(self) -> Column:
        """All stages, as an array."""
        return sf.array(*(sf.lit(stage) for stage in range(len(self._buckets))))

    @property
    def _may_spare(self) -> bool:
        has_all_first = not self._function.offset and self._function.limit is not None
        return has_all_first and not self._shape.group and self._own.prunes

    def _changing(self) -> DataFrame:
        """Returns the hash and the group of what changes, rows that cancel each other among them."""
        # As a filter, not of the consolidated changes, which it would have computed twice.
        good = self._changes.where(sf.col(ERROR).isNull()).select(*self._shape.split())
        return good.select(hashed(self._shape).alias(_HASH), *self._shape.group_names)

    def _representatives(self, changing: DataFrame) -> DataFrame:
        """Returns what represents the touched buckets, as `_before`, no bucket spared."""
        shape, stages = self._shape, len(self._buckets)
        group = [sf.col(name).alias(f"k{2 + i}") for i, name in enumerate(shape.group_names)]
        places = [
            sf.struct(sf.lit(stage).alias("k0"), bucket_of(sf.col(_HASH), n).alias("k1"))
            for stage, n in enumerate(self._buckets)
        ]
        found = self._own.lookup(
            changing.select(sf.inline(sf.array(*places)), *group), [0, 1, *(2 + position for position in shape.group)]
        )
        rows = self._held(found.where(sf.col("c0") < stages))
        # A bucket's rows stand at the first level at which it changes.
        first = sf.lit(0)
        for stage, n in enumerate(self._buckets[:-1]):
            names = [f"mz_group_{stage}_{i}" for i in range(len(shape.group))]
            flag, bucket = f"mz_changing_{stage}", f"mz_bucket_{stage}"
            groups = [sf.col(one).alias(name) for one, name in zip(shape.group_names, names, strict=True)]
            keys = changing.select(bucket_of(sf.col(_HASH), n).alias(bucket), *groups).distinct()
            keys = keys.select(bucket, *names, sf.lit(True).alias(flag))
            equal = bucket_of(sf.col(_HASH), n) == sf.col(bucket)
            for one, name in zip(shape.group_names, names, strict=True):
                equal = equal & sf.col(one).eqNullSafe(sf.col(name))
            types = {name: shape.relation_type.columns[p].type for name, p in zip(names, shape.group, strict=True)}
            rows = rows.join(broadcast(keys, types) if self._own.prunes else keys, equal, "left")
            first = first + sf.when(sf.col(flag).isNull(), 1).otherwise(0)
        return self._at_stages(rows.where(sf.col(LEVEL) == first), sf.sequence(LEVEL, sf.lit(stages - 1)))

    def _fetched(self, changing: DataFrame) -> pa.Table | None:
        """Returns the hashes of what changes, with NULL, and the buckets of which first rows change, with their stage.

        None if they are many.
        """
        hashes = changing.select(_HASH)
        above = [(level, bucket) for level, n in enumerate((*self._buckets[1:], 1), 1) for bucket in range(n)]
        winners = self._held(self._own.find(_table(above), [0, 1]).where(sf.col("c0") > 0))
        found = winners.join(broadcast(hashes), _HASH, "left_semi").select((sf.col(LEVEL) - 1).alias(LEVEL), _HASH)
        opened = found.select(LEVEL, self._bucket().alias(_HASH))
        asked = hashes.select(sf.lit(None).cast("int").alias(LEVEL), _HASH).unionAll(opened)
        asked = asked.toDF("k0", "k1")
        return self._own.fetched(asked, _KEY)

    def _sparing(self, changed: set[int], opened: set[int]) -> DataFrame:
        """Returns what represents the touched buckets, as `_before`, those not `opened` at level 0 being spared."""
        first, stages = self._buckets[0], range(len(self._buckets))
        places = [(stage, bucket) for stage, n in enumerate(self._buckets) for bucket in {one % n for one in changed}]
        found = self._own.find(_table([*places, (len(self._buckets), 0)]), [0, 1])
        wanted = [one for one in places if one[0] or one[1] not in opened]
        wanted += [(_OPEN, bucket) for bucket in opened]
        wanted += [(_CHANGED - stage, one) for one in changed for stage in stages if stage or one % first not in opened]
        wanted_frame = frame_of_rows(self._changes.sparkSession, _table(wanted), key_schema(_KEY))
        below = _at_level([sf.lit(None).cast("bigint"), *(bucket_of(sf.col(_HASH), n) for n in self._buckets)])
        winner = sf.struct((sf.col(LEVEL) - 1).alias("k0"), below.alias("k1"))
        open_ = sf.struct(sf.lit(_OPEN).alias("k0"), bucket_of(sf.col(_HASH), first).alias("k1"))
        one_changed = [sf.struct(sf.lit(_CHANGED - stage).alias("k0"), sf.col(_HASH).alias("k1")) for stage in stages]
        roles = sf.when(sf.col(LEVEL) == 0, sf.array(open_, *one_changed)).otherwise(sf.array(winner))
        rest = [_HASH, *self._shape.row, TIME, DIFF, ERROR]
        rows = self._held(found).select(sf.inline(roles), *rest)
        rows = rows.join(wanted_frame.hint("broadcast"), ["k0", "k1"], "left_semi")
        role = sf.col("k0")
        stage = sf.when(role <= _CHANGED, _CHANGED - role).when(role == _OPEN, 0).otherwise(role)
        return rows.select(stage.alias(LEVEL), *rest)

    def _held(self, state: DataFrame) -> DataFrame:
        """Returns updates of the state, as an operator's frame, with their level and hash."""
        rows = held(state, self._shape, sf.col("c0"))
        return rows.select(LEVEL, hashed(self._shape).alias(_HASH), *self._shape.row, TIME, DIFF, ERROR)

    def _at_stages(self, rows: DataFrame, stages: Column) -> DataFrame:
        return rows.select(sf.explode(stages).alias(LEVEL), _HASH, *self._shape.row, TIME, DIFF, ERROR)

    def _bucket(self) -> Column:
        """Returns the bucket of a row's hash at its level, NULL in the error part."""
        return _at_level([bucket_of(sf.col(_HASH), n) for n in self._buckets])


def _at_level(columns: list[Column]) -> Column:
    """Returns that one of columns whose number is the level; NULL if none is."""
    found = sf.when(sf.col(LEVEL) == 0, columns[0])
    for level, column in enumerate(columns[1:], 1):
        found = found.when(sf.col(LEVEL) == level, column)
    return found


def _table(keys: list[tuple[int, int]]) -> pa.Table:
    levels, numbers = [one for one, _ in keys], [one for _, one in keys]
    return pa.table({"k0": pa.array(levels, pa.int32()), "k1": pa.array(numbers, pa.int64())})
