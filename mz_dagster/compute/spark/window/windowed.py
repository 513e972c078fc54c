"""Window functions over whole partitions: `plan.physical.Windowed`.

Each row is given its place in its partition. The order is total: the function's keys, then the whole row ascending with
NULLs last, then the copies of a row one after the other; peers are the rows that the function's keys do not tell apart.
Ranks, row numbers and `ntile` follow from the places. A function over a frame goes one of two ways:

- Spark's own frames, where they say the same: over the places (ROWS), over the peer groups' numbers (GROUPS, and RANGE
  whose bounds are groups of peers). Frames that end with the partition are turned round, so that they grow.
- `window_positions.py`: RANGE with a distance, exclusions, `nth_value`, `lag` and `lead` by more than their value, and
  exact sums of floats.

What PostgreSQL gives up a query for is an error of the row: a sum that its type cannot hold, `ntile` and `nth_value` of
what is not positive, a text of more than a gigabyte. `ntile` counts from the first row whose argument is not NULL, by
that argument, as in PostgreSQL.
With IGNORE NULLS, `lag` and `lead` by 0 rows are the row's own value, NULL or not.

Cost: one shuffle by partition, one sort by the total order, which most functions share; a further sort for frames in
GROUPS or turned round. A frame that grows costs O(1) a row, one that slides as much as it has rows. A row of
multiplicity n costs as n rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, spark_type
from mz_dagster.compute.algebra.gathering import MOST_BYTES, TOO_MANY_BYTES
from mz_dagster.compute.spark.tournament.gathered import joined, text_size
from mz_dagster.compute.spark.tournament.top_rows import ordered
from mz_dagster.compute.spark.tournament.versions import RowLayout
from mz_dagster.compute.spark.window.positions import (
    EXTREMES,
    FIRST,
    GROUP,
    LAST,
    PLACE,
    SIZE,
    Positions,
    has_distance,
    in_python,
    steps,
    value_name,
)
from mz_dagster.compute.spark.window.sums import sum_parts, sum_types, summed
from mz_dagster.errors import InternalError
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.errors import NTH_VALUE_NOT_POSITIVE, NTILE_NOT_POSITIVE
from mz_dagster.plan.physical import Windowed
from mz_dagster.plan.relation import FrameExclusion, FrameUnit, WindowFrame, WindowFunction
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

_COPY = "mz_copy"
_NTILE = "mz_ntile"
_PLACED = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def windowed(
    frame: DataFrame, shape: RowLayout, function: Windowed, partition: Sequence[str], subject: Column
) -> DataFrame:
    """Returns the rows with the functions' results behind them, in each partition.

    Args:
        frame: Rows of `shape` with a positive diff, an error and further columns, which are kept.
        shape: Of the rows.
        function: The order and the functions.
        partition: Names of the columns that part partitions, and subjects from other rows.
        subject: Whether a row belongs to a partition; another leaves as it came, with NULL results.

    Returns:
        The frame's columns, then `c{arity}`, ... in the functions' types; a subject of diff n is n rows of diff 1.
        Where a function fails, the row's error is set.
    """
    return _Windows(frame, shape, function, tuple(partition), subject).results()


@dataclass(frozen=True, slots=True)
class _Windows:
    """Computes the functions of one `Windowed`."""

    frame: DataFrame
    shape: RowLayout
    function: Windowed
    partition: tuple[str, ...]
    subject: Column

    @property
    def numbered(self) -> list[tuple[int, WindowFunction]]:
        return list(enumerate(self.function.functions))

    @property
    def whole(self) -> WindowSpec:
        return Window.partitionBy(*self.partition)

    @property
    def total(self) -> WindowSpec:
        """The window by place; to say it in full shares its sort."""
        return self.whole.orderBy(*self.keys, *self.shape.ties(), sf.col(_COPY))

    @property
    def keys(self) -> list[Column]:
        return [ordered(one) for one in self.function.order]

    def results(self) -> DataFrame:
        frame = self._placed()
        signed = [
            self.shape.restored(position).alias(value_name(self.shape, position)) for position in self.shape.floats
        ]
        frame = frame.select("*", *signed)
        by_position = [(i, one) for i, one in self.numbered if one.name not in _PLACED and not self._is_native(one)]
        framed = [(i, one) for i, one in self.numbered if one.name not in _PLACED and self._is_native(one)]
        elements = [
            column.alias(f"mz_{part}_{i}")
            for i, one in [*framed, *by_position]
            for part, column in self._elements(one).items()
        ]
        if elements:
            frame = frame.select("*", *elements)
        native = [column.alias(name) for i, one in framed for name, column in self._native(i, one)]
        native += [self._ntile_start(one).alias(f"{_NTILE}_{i}") for i, one in self.numbered if one.name == "ntile"]
        if native:
            frame = frame.select("*", *native)
        if by_position:
            frame = self._by_position(frame, by_position)
        return self._finished(frame)

    def _placed(self) -> DataFrame:
        """Returns single rows with place, first and last place among peers, number of the peer group and size."""
        one = sf.lit(1).cast("bigint")
        copies = sf.when(self.subject, sf.sequence(one, sf.col(DIFF))).otherwise(sf.array(one))
        split = self.frame.select("*", sf.explode(copies).alias(_COPY))
        split = split.withColumn(DIFF, sf.when(self.subject, one).otherwise(sf.col(DIFF)))
        place = sf.row_number().over(self.total).cast("bigint")
        placed = split.select("*", place.alias(PLACE), sf.count(one).over(self.whole).alias(SIZE))
        if not self.keys:
            return placed.select("*", one.alias(FIRST), sf.col(SIZE).alias(LAST), one.alias(GROUP))
        peers = self.whole.orderBy(*self.keys)
        reached = sf.count(one).over(peers.rangeBetween(Window.unboundedPreceding, Window.currentRow))
        number = sf.dense_rank().over(peers).cast("bigint")
        return placed.select(
            "*", sf.rank().over(peers).cast("bigint").alias(FIRST), reached.alias(LAST), number.alias(GROUP)
        )

    def _is_native(self, one: WindowFunction) -> bool:
        if one.name in ("lag", "lead"):
            return len(one.arguments) == 1 and not one.ignore_nulls
        if one.name == "nth_value" or one.frame is None or in_python(one):
            return False
        return one.frame.exclusion is FrameExclusion.NO_OTHERS and not has_distance(one.frame)

    def _elements(self, one: WindowFunction) -> dict[str, Column]:
        """Returns what of a row a function looks at: NULL if the row does not count."""
        match one.aggregate:
            case AggregateFunction.COUNT if not one.arguments:
                return {"count": self._where(one, sf.lit(1))}
            case AggregateFunction.COUNT:
                return {"count": self._where(one, sf.when(self._argument(one).isNotNull(), 1))}
            case AggregateFunction.SUM:
                parts = {"count": sf.when(self._argument(one).isNotNull(), 1), **sum_parts(self.shape, one)}
                return {name: self._where(one, part) for name, part in parts.items()}
            case AggregateFunction.EXACT_SUM:
                factor = self._argument(one, 1) if len(one.arguments) > 1 else sf.lit(1.0)
                return {"value": self._where(one, self._argument(one)), "factor": factor}
            case function if function in EXTREMES or in_python(one):
                return {"value": self._where(one, self._argument(one))}
            case AggregateFunction.STRING_AGG:
                empty = sf.lit("").cast(spark_type(one.type))
                value, separator = self._argument(one), sf.coalesce(self._argument(one, 1), empty)
                found = sf.struct(sf.col(PLACE), value.alias("value"), separator.alias("separator"))
                return {"found": self._where(one, sf.when(value.isNotNull(), found))}
            case _:
                value = sf.col(value_name(self.shape, one.arguments[0]))
                found = sf.struct(sf.col(PLACE), value.alias("value"))
                if one.aggregate is AggregateFunction.ARRAY_AGG:
                    return {"found": self._where(one, found)}
                return {"found": sf.when(value.isNotNull(), found) if one.ignore_nulls else found}

    def _argument(self, one: WindowFunction, number: int = 0) -> Column:
        return sf.col(f"c{one.arguments[number]}")

    def _where(self, one: WindowFunction, value: Column) -> Column:
        return value if one.filter is None else sf.when(sf.col(f"c{one.filter}"), value)

    def _native(self, i: int, one: WindowFunction) -> list[tuple[str, Column]]:
        if one.name in ("lag", "lead"):
            step = sf.lag if one.name == "lag" else sf.lead
            return [(f"mz_result_{i}", step(value_name(self.shape, one.arguments[0])).over(self.total))]
        assert one.frame is not None
        spec = self._spec(one.frame)

        def over(aggregation: Column) -> Column:
            # An aggregate of nothing has the type and the value of one over an empty frame.
            return aggregation.over(spec) if spec is not None else sf.when(sf.lit(False), aggregation.over(self.whole))

        found = sf.col(f"mz_found_{i}")
        if one.aggregate in EXTREMES:
            return [(f"mz_result_{i}", over(EXTREMES[one.aggregate].of_frame(sf.col(f"mz_value_{i}"))))]
        match one.aggregate:
            case AggregateFunction.COUNT:
                return [(f"mz_result_{i}", sf.coalesce(over(sf.count(f"mz_count_{i}")), sf.lit(0).cast("bigint")))]
            case AggregateFunction.SUM:
                sums = [(f"mz_sum_{name}_{i}", over(sf.sum(f"mz_{name}_{i}"))) for name in sum_types(self.shape, one)]
                return [(f"mz_sum_count_{i}", over(sf.count(f"mz_count_{i}"))), *sums]
            case AggregateFunction.ARRAY_AGG | AggregateFunction.STRING_AGG:
                return [(f"mz_list_{i}", sf.sort_array(over(sf.collect_list(found))))]
            case None if one.name in ("first_value", "last_value"):
                # Of structs that begin with the place.
                extreme = sf.min if one.name == "first_value" else sf.max
                return [(f"mz_result_{i}", over(extreme(found)).getField("value"))]
            case _:
                raise InternalError(f"{one.name} has no frame")

    def _spec(self, frame: WindowFrame) -> WindowSpec | None:
        """Returns the frame as Spark's, or None if it is empty for every row."""
        start, end = steps(frame.start), steps(frame.end)
        if start is not None and end is not None and start > end:
            return None
        in_rows = frame.unit is FrameUnit.ROWS
        if (start is None and end is None) or (not in_rows and not self.keys):
            return self.whole
        if end is None:
            assert start is not None
            if in_rows:
                return self.whole.orderBy(sf.col(PLACE).desc()).rowsBetween(Window.unboundedPreceding, -start)
            return self.whole.orderBy(sf.col(GROUP).desc()).rangeBetween(Window.unboundedPreceding, -start)
        first = Window.unboundedPreceding if start is None else start
        if in_rows:
            return self.total.rowsBetween(first, end)
        if start is None and end == 0:
            return self.whole.orderBy(*self.keys).rangeBetween(first, Window.currentRow)
        return self.whole.orderBy(sf.col(GROUP)).rangeBetween(first, end)

    def _by_position(self, frame: DataFrame, functions: Sequence[tuple[int, WindowFunction]]) -> DataFrame:
        """Returns the frame with the same columns that `_native` would add."""
        running = self.total.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        sums: list[Column] = []
        for i, one in functions:
            if one.aggregate in (AggregateFunction.COUNT, AggregateFunction.SUM):
                for part in self._elements(one):
                    sums.append(sf.sum(f"mz_{part}_{i}").over(running).alias(f"mz_until_{part}_{i}"))
            elif one.ignore_nulls:
                sums.append(sf.count(f"mz_found_{i}").over(running).alias(f"mz_until_count_{i}"))
        if sums:
            frame = frame.select("*", *sums)
        return Positions(self.function.order, self.shape, functions).added(frame, self.partition)

    def _finished(self, frame: DataFrame) -> DataFrame:
        values: dict[int, Column] = {}
        errors: list[Column] = []
        for i, one in self.numbered:
            if one.name in _PLACED:
                value, error = self._from_place(i, one)
            elif one.aggregate is AggregateFunction.SUM:
                frame, value, error = summed(frame, self.shape, one, i)
            elif one.aggregate is AggregateFunction.STRING_AGG:
                is_large = _is_too_large(i, one)
                value, error = sf.when(~is_large, _listed(i, one)), sf.when(is_large, TOO_MANY_BYTES)
            elif one.aggregate is AggregateFunction.ARRAY_AGG:
                value, error = _listed(i, one), None
            else:
                value, error = sf.col(f"mz_result_{i}"), None
                if one.name == "nth_value":
                    error = sf.when(self._argument(one, 1) <= 0, NTH_VALUE_NOT_POSITIVE)
            values[i] = value
            if error is not None:
                errors.append(sf.when(self.subject, error))
        results = [sf.when(self.subject, value).alias(f"c{self.shape.arity + i}") for i, value in values.items()]
        error = sf.coalesce(sf.col(ERROR), *errors).alias(ERROR)
        kept = [error if name == ERROR else sf.col(name) for name in self.frame.columns]
        return frame.select(*kept, *results)

    def _from_place(self, i: int, one: WindowFunction) -> tuple[Column, Column | None]:
        first, size = sf.col(FIRST), sf.col(SIZE)
        match one.name:
            case "row_number":
                return sf.col(PLACE), None
            case "rank":
                return first, None
            case "dense_rank":
                return sf.col(GROUP), None
            case "percent_rank":
                others = sf.when(size > 1, size - 1).otherwise(1)
                return (first - 1).cast("double") / others.cast("double"), None
            case "cume_dist":
                return sf.col(LAST).cast("double") / size.cast("double"), None
            case _:
                return self._ntile(sf.col(f"{_NTILE}_{i}"))

    def _ntile_start(self, one: WindowFunction) -> Column:
        """Returns place and argument of the partition's first row whose argument is not NULL."""
        value = self._argument(one).cast("bigint")
        return sf.min(sf.when(value.isNotNull(), sf.struct(sf.col(PLACE), value.alias("value")))).over(self.whole)

    def _ntile(self, start: Column) -> tuple[Column, Column]:
        row, buckets = sf.col(PLACE) - start.getField(PLACE), start.getField("value")
        counted = row >= 0
        error = sf.when(counted & (buckets <= 0), NTILE_NOT_POSITIVE)
        buckets = sf.when(buckets > 0, buckets)
        size, large = sf.col(SIZE), sf.col(SIZE) % buckets
        small_size = _quotient(size, buckets)
        in_large = large * (small_size + 1)
        number = sf.when(row < in_large, _quotient(row, small_size + 1)).otherwise(
            large + _quotient(row - in_large, sf.greatest(small_size, sf.lit(1)))
        )
        return sf.when(counted, (number + 1).cast("int")), error


def _listed(i: int, one: WindowFunction) -> Column:
    found = sf.col(f"mz_list_{i}")
    is_array = one.aggregate is AggregateFunction.ARRAY_AGG
    made = sf.transform(found, lambda row: row.getField("value")) if is_array else joined(found, one.type)
    return sf.when(sf.size(found) > 0, made)


def _is_too_large(i: int, one: WindowFunction) -> Column:
    """Returns whether a text would be more than PostgreSQL holds, reckoned as that of a group is."""
    size = sf.aggregate(
        sf.col(f"mz_list_{i}"),
        sf.lit(0.0),
        lambda so_far, row: so_far + text_size(row.getField("value"), row.getField("separator"), one.type),
    )
    return size > MOST_BYTES


def _quotient(left: Column, right: Column) -> Column:
    return sf.call_function("div", left, right)
