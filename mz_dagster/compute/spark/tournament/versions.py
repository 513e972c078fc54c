"""Versions of buckets: what every recomputing operator does before and after its stage function.

A *flow* is a frame that holds all levels of a tournament at once: `mz_level` (NULL in the error part), `mz_bucket`, the
input's columns, time, diff and error. Its rows are changes, at their times, and what the state held before the
interval, at the time `PRIOR`. A stage takes the flow apart into versions and puts the next flow together:

    touched      the times at which a bucket of the stage's level changes: t1 < ... < tk
    versions     its content at PRIOR and after each ti: each row with the sum of its diffs up to then
    (the stage function makes the rows of each version into those of its result)
    replaced     each version's result asserted at its time and retracted at the next one of its bucket; that of PRIOR
                 is only retracted, and that of tk only asserted

What is of other levels stands by and leaves as it came, and so do the stage's own changes, which are updates of the
state. One frame flows through all stages, so the plan grows by the stages, not by what they share. A row whose
multiplicity in a version is negative is an error in the place of the row.

Floats, and what holds some, travel as two columns, the value with unsigned zeros and which of its zeros were negative,
so that grouping by all columns keeps the bits of rows while groups take the two zeros for one.

Cost: one shuffle by bucket for each stage, one window for the times, and a row for each row of a touched bucket and
each version of it. Where a stage looks at the first places only, one sort tells the rows that can have one, so that
only these have versions: of a row behind as many others as there are places and rows that go, there is no need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, positional, without_error_data
from mz_dagster.compute.algebra.times import PRIOR
from mz_dagster.functions.errors import NEGATIVE_MULTIPLICITY
from mz_dagster.scalars.types import RelationType, ScalarType
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.floats import FLOATS, flags_type, minus_zeros, unsigned, with_minus_zeros

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEVEL = "mz_level"
BUCKET = "mz_bucket"
#: The version's time, and the time of the next version of its bucket; NULL in rows that stand by, or in the last one.
FROM = "mz_from"
UNTIL = "mz_until"
#: Of a row of versions, the columns besides data and diff.
CARRIED = (LEVEL, BUCKET, FROM, UNTIL, TIME, ERROR)

#: The diff of a row that is no error; else NULL.
GOOD = "mz_good"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What a stage knows of the rows it works on.

    Attributes:
        relation_type: The input's columns.
        group: Positions of those that are the group.
    """

    relation_type: RelationType
    group: tuple[int, ...]

    @property
    def arity(self) -> int:
        """The number of columns."""
        return self.relation_type.arity

    @property
    def others(self) -> tuple[int, ...]:
        """The positions of the columns that are not of the group."""
        return tuple(position for position in range(self.arity) if position not in self.group)

    @property
    def floats(self) -> tuple[int, ...]:
        """The positions of the columns that can hold a negative zero."""
        return tuple(i for i, column in enumerate(self.relation_type.columns) if _holds_floats(column.type))

    @property
    def row(self) -> list[str]:
        """The names of all columns that tell one row from another."""
        return [*positional(self.arity), *(sign(position) for position in self.floats)]

    @property
    def group_names(self) -> list[str]:
        """The names of the group's columns."""
        return [f"c{position}" for position in self.group]

    def split(self) -> list[Column]:
        """Returns the columns `row` over an operator's frame."""
        data = [sf.col(name) for name in positional(self.arity)]
        signs = []
        for position in self.floats:
            column, type_ = sf.col(f"c{position}"), self.relation_type.columns[position].type
            signs.append(minus_zeros(column, type_).alias(sign(position)))
            data[position] = unsigned(column, type_).alias(f"c{position}")
        return [*data, *signs]

    def restored(self, position: int) -> Column:
        """Returns the column at `position` with its negative zeros."""
        column = sf.col(f"c{position}")
        if position not in self.floats:
            return column
        type_ = self.relation_type.columns[position].type
        return with_minus_zeros(column, sf.col(sign(position)), type_).alias(f"c{position}")

    def unsigned(self) -> list[Column]:
        """Returns the columns that tell of the signs, for rows of which no zero is negative."""
        return [
            sf.lit(None).cast(flags_type(self.relation_type.columns[position].type)).alias(sign(position))
            for position in self.floats
        ]

    def ties(self) -> list[Column]:
        """Returns the order of whole rows: all columns ascending, NULLs last, a negative zero before a positive."""
        data = [sf.col(name).asc_nulls_last() for name in positional(self.arity)]
        return [*data, *(sf.col(sign(position)).desc_nulls_last() for position in self.floats)]


@dataclass(frozen=True)
class Places:
    """The first places of a bucket, of which a row takes as many as its diff.

    Attributes:
        count: How many.
        order: By which they are taken, before `RowLayout.ties`.
    """

    count: int
    order: Sequence[Column]


def sign(position: int) -> str:
    """Returns the name of the column that tells which zeros at `position` are negative; NULL if none is."""
    return f"mz_negative_{position}"


def _holds_floats(type_: ScalarType) -> bool:
    return type_.kind in FLOATS or type_.holds(FLOATS)


def subject() -> Column:
    """Returns whether a row of versions is the stage's: it neither stands by nor is an error."""
    return sf.col(FROM).isNotNull() & sf.col(ERROR).isNull()


def partition(shape: RowLayout) -> list[str]:
    """Returns the names of the columns that part versions of buckets, and those from rows that are no subjects."""
    return [LEVEL, BUCKET, *shape.group_names, FROM, ERROR]


def versions(
    flow: DataFrame, shape: RowLayout, level: int | None, *, keeps_changes: bool, places: Places | None = None
) -> DataFrame:
    """Returns the rows of each version of the touched buckets of `level`, and the rows that stand by.

    Args:
        flow: The flow; what is PRIOR need not be consolidated.
        shape: Of the rows.
        level: The stage's. None for all stages at once: then a row of a negative multiplicity is an error at level 0
            and missing at others, and only level 0 has changes of its own.
        keeps_changes: Whether the level's own changes stand by.
        places: Which places of a bucket the stage function looks at, None for all. Rows that can have none of them in
            any version may be missing.

    Returns:
        `shape.row`, diff and `CARRIED`; time is NULL but in rows that stand by. Equal rows of a version are one row,
        with a positive diff, or with an error and diff 1.
    """
    own = sf.col(LEVEL).isNotNull() if level is None else sf.col(LEVEL).eqNullSafe(level)
    changed = own & (sf.col(TIME) > PRIOR)
    bucket = Window.partitionBy(LEVEL, BUCKET, *shape.group_names)
    times = sf.sort_array(sf.collect_set(sf.when(changed, sf.col(TIME))).over(bucket)).alias("mz_times")
    if places is None:
        timed = flow.select("*", times)
    else:
        lost = sf.sum(sf.when(changed & (sf.col(DIFF) < 0), -sf.col(DIFF)).otherwise(0)).over(bucket)
        timed = _ranked(flow, shape, own, places.order).select("*", times, lost.alias("mz_lost"))
        # So many may go before it and leave it behind the places; one that changes may become an error.
        behind = sf.col("mz_place") >= sf.lit(places.count) + sf.col("mz_lost")
        timed = timed.where(~own | sf.col("mz_changed") | ~behind)
    none = sf.lit(None).cast("bigint")
    standing = sf.array(sf.struct(none.alias(FROM), none.alias(UNTIL)))
    spans = sf.zip_with(
        sf.concat(sf.array(sf.lit(PRIOR).cast("bigint")), sf.col("mz_times")),
        sf.concat(sf.col("mz_times"), sf.array(none)),
        lambda start, end: sf.struct(start.alias(FROM), end.alias(UNTIL)),
    )
    stands = changed if keeps_changes else sf.lit(False)
    if level is None:
        stands = stands & (sf.col(LEVEL) == 0)
    live = sf.filter(sf.concat(standing, spans), lambda span: sf.coalesce(span[FROM] >= sf.col(TIME), stands))
    # Of a bucket that nothing touches there are no versions.
    entries = sf.when(~own, standing).when(sf.size("mz_times") > 0, live)
    exploded = timed.select("*", sf.explode(entries).alias("mz_span"))
    data = [sf.col(name) for name in shape.row]
    spread = exploded.select(
        LEVEL, BUCKET, *data, sf.col(f"mz_span.{FROM}"), sf.col(f"mz_span.{UNTIL}"),
        sf.when(sf.col(f"mz_span.{FROM}").isNull(), sf.col(TIME)).alias(TIME), sf.col(DIFF), sf.col(ERROR),
    )  # fmt: skip
    summed = spread.groupBy(*CARRIED, *shape.row).agg(sf.sum(DIFF).alias(DIFF)).where(sf.col(DIFF) != 0)
    negative = sf.col(FROM).isNotNull() & (sf.col(DIFF) < 0)
    if level is None:
        summed = summed.where(~negative | (sf.col(LEVEL) == 0))
    carried = [sf.col(name) for name in CARRIED if name != ERROR]
    return summed.select(*carried, *data, *failed_where(negative, NEGATIVE_MULTIPLICITY))


def failed_where(wrong: Column, code: str) -> list[Column]:
    """Returns a frame's diff and error, those of rows that are `wrong` being 1 and `code`."""
    diff = sf.when(wrong, sf.lit(1).cast("bigint")).otherwise(sf.col(DIFF))
    return [diff.alias(DIFF), sf.when(wrong, sf.lit(code)).otherwise(sf.col(ERROR)).alias(ERROR)]


def _ranked(flow: DataFrame, shape: RowLayout, own: Column, order: Sequence[Column]) -> DataFrame:
    """Returns a flow, consolidated, with each row's place in its bucket before the interval, and whether it changes.

    Of what is not `own` both mean nothing.
    """
    parted = [LEVEL, BUCKET, *shape.group_names]
    rows = flow.repartition(*parted).groupBy(LEVEL, BUCKET, *shape.row, TIME, ERROR).agg(sf.sum(DIFF).alias(DIFF))
    ranked = Window.partitionBy(*parted).orderBy(*order, *shape.ties())
    equal = ranked.rangeBetween(Window.currentRow, Window.currentRow)
    taken = sf.when(own & (sf.col(TIME) == PRIOR) & (sf.col(DIFF) > 0), sf.col(DIFF)).otherwise(0)
    # Equal rows take the same place.
    place = sf.sum(taken).over(ranked.rangeBetween(Window.unboundedPreceding, Window.currentRow)) - sf.sum(taken).over(
        equal
    )
    return rows.where(sf.col(DIFF) != 0).select(
        "*", place.alias("mz_place"), (sf.max(sf.when(own, sf.col(TIME))).over(equal) > PRIOR).alias("mz_changed")
    )


def replaced(
    results: DataFrame,
    shape: RowLayout,
    level: Column,
    bucket: Column,
    extra: Sequence[str] = (),
    *,
    consolidates: bool,
) -> DataFrame:
    """Returns the flow after a stage: the results of versions as changes of the next level, and what stood by.

    Args:
        results: As from `versions`, with the subjects' rows replaced by those of the results.
        shape: Of the rows.
        level: Of the results, over `LEVEL`.
        bucket: Theirs at that level, over `LEVEL` and `BUCKET`.
        extra: Names of further columns of the results, to be kept.
        consolidates: Whether equal changes become one, so that the next stage is not touched where nothing changed.
    """
    standing = sf.col(FROM).isNull()
    result_level = sf.when(standing, sf.col(LEVEL)).when(sf.col(ERROR).isNull(), level)
    result_bucket = sf.when(standing, sf.col(BUCKET)).when(sf.col(ERROR).isNull(), bucket)
    start = sf.when(standing, sf.col(TIME)).when(sf.col(FROM) > PRIOR, sf.col(FROM))
    updates = sf.array(
        sf.struct(start.alias(TIME), sf.col(DIFF).alias(DIFF)),
        sf.struct(sf.col(UNTIL).alias(TIME), sf.negate(sf.col(DIFF)).alias(DIFF)),
    )
    kept = [*shape.row, *extra]
    flow = results.select(
        sf.col(LEVEL).alias("mz_old_level"), sf.col(BUCKET).alias("mz_old_bucket"), result_level.alias(LEVEL),
        result_bucket.alias(BUCKET), *(sf.col(name) for name in kept), sf.col(ERROR),
        sf.explode(sf.filter(updates, lambda update: update[TIME].isNotNull())).alias("mz_update"),
    )  # fmt: skip
    old = ["mz_old_level", "mz_old_bucket"]
    columns = [LEVEL, BUCKET, *kept]
    flow = flow.select(*old, *columns, sf.col(f"mz_update.{TIME}"), sf.col(f"mz_update.{DIFF}"), ERROR)
    if consolidates:
        # Within the old bucket, where the rows already are: no shuffle.
        keys = [*old, *columns, ERROR, TIME]
        flow = flow.groupBy(*keys).agg(sf.sum(DIFF).alias(DIFF)).where(sf.col(DIFF) != 0)
    return flow.select(*columns, TIME, DIFF, ERROR)


def hashed(shape: RowLayout) -> Column:
    """Returns a row's hash, by which it has its buckets: that of the columns that are not of the group."""
    others = [sf.col(f"c{position}") for position in shape.others]
    return sf.xxhash64(*others) if others else sf.lit(0).cast("bigint")


def bucket_of(number: Column, buckets: int) -> Column:
    """Returns the bucket of a hash, or that of a finer level's bucket: both agree for powers of two."""
    return sf.lit(0).cast("bigint") if buckets == 1 else sf.pmod(number, sf.lit(buckets).cast("bigint"))


def bucket_at(buckets: int) -> Column:
    """Returns the bucket at a level with `buckets` buckets in which the results of the row's bucket lie."""
    return bucket_of(sf.col(BUCKET), buckets)


def consolidated(frame: DataFrame, shape: RowLayout) -> DataFrame:
    """Returns the frame's updates as `shape.row`, time, diff, error and `GOOD`, equal ones summed."""
    rows = without_error_data(frame, shape.arity).select(*shape.split(), *META)
    good = sf.sum(sf.when(sf.col(ERROR).isNull(), sf.col(DIFF))).alias(GOOD)
    summed = rows.groupBy(*shape.row, TIME, ERROR).agg(sf.sum(DIFF).alias(DIFF), good)
    return summed.where(sf.col(DIFF) != 0)


def held(state: DataFrame, shape: RowLayout, level: Column) -> DataFrame:
    """Returns updates of a state, as an operator's frame, as a flow of what was PRIOR.

    Args:
        state: The updates: level and bucket, then the columns of `shape`.
        shape: Of the rows.
        level: At which they stand in the flow, over the columns of `state`.
    """
    data = [sf.col(f"c{2 + position}").alias(f"c{position}") for position in range(shape.arity)]
    rows = state.select(level.alias(LEVEL), sf.col("c1").alias(BUCKET), *data, *META)
    prior = sf.lit(PRIOR).cast("bigint").alias(TIME)
    return rows.select(LEVEL, BUCKET, *shape.split(), prior, DIFF, ERROR)
