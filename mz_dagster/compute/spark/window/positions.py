"""Window functions by position: what Spark's own frames do not say.

A partition becomes one array of its rows by place, 1 to n, and one of its groups of peers. A frame of a row is an
interval of places; less what is excluded it is up to three, in order:

    CURRENT ROW  [lo, place - 1], [place + 1, hi]
    GROUP        [lo, first - 1], [last + 1, hi]              first and last of the row's peers
    TIES         [lo, first - 1], [place, place], [last + 1, hi]

cut to [lo, hi], without the empty ones. Counts and sums are differences of running ones. The n-th row is found by
counting through the intervals, and among those that are not NULL by the running count of them.

RANGE with a distance d: the bounds are found among the groups by bisection. With NULLS FIRST a NULL key is less, with
NULLS LAST greater than all others, and peers of NULLs are NULLs. NaN is greater than all numbers, and NaN plus or minus
d is NaN. Infinity less infinity is, as in PostgreSQL, whatever makes the frame larger. A bound beyond the type's last
value lies behind all keys. The distance is cut to the key's scale, which loses nothing. An interval is added to dates
and timestamps as `+` does.

Exact sums of floats are made in Python, from the values and the intervals of the whole partition.

Cost: the partition in memory, as one row. For each row O(log n) for a distance, O(1) for `lag`, `lead`, counts, sums
and single values, and as much as the frame has rows for `min`, `max`, bits, `array_agg` and `string_agg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions import emit, literal
from mz_dagster.compute.spark.expressions.emitted import literal_infinity
from mz_dagster.compute.spark.expressions.pure import plain_form, plain_type, restored
from mz_dagster.compute.spark.tournament.versions import RowLayout
from mz_dagster.compute.spark.window.sums import sum_types
from mz_dagster.errors import InternalError
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.aggregates.sums import exact_sums_of_frames
from mz_dagster.plan.relation import ColumnOrder, FrameBound, FrameExclusion, FrameUnit, WindowFrame, WindowFunction
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import FLOAT8, INT8, TIMESTAMP, Kind, array_of
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Of a row in its partition, all bigint, from 1: place, the first and last place of its peers, the number of the group
#: of peers, and the number of rows.
PLACE = "mz_place"
FIRST = "mz_first"
LAST = "mz_last"
GROUP = "mz_group"
SIZE = "mz_size"

_KEY = "mz_key"
_MADE = "mz_made"
#: Of a date the key is its midnight.
_MOMENT_OF = {Kind.DATE: Kind.TIMESTAMP}
_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.TIME)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
#: Farther than any place or group, and an int for Spark.
_FAR = 2**31 - 2


def value_name(shape: RowLayout, position: int) -> str:
    """Returns the name of the column that holds the value at `position` with its negative zeros."""
    return f"mz_signed_{position}" if position in shape.floats else f"c{position}"


def has_distance(frame: WindowFrame) -> bool:
    """Returns whether a bound is a distance between values, other than 0."""
    return frame.unit is FrameUnit.RANGE and any(_is_distance(bound) for bound in (frame.start, frame.end))


def steps(bound: FrameBound) -> int | None:
    """Returns how many rows or groups after the current one a bound lies; None if it is the partition's end."""
    return None if bound.unbounded else _count(bound)


def _count(bound: FrameBound) -> int:
    assert bound.offset is not None
    count = min(int(bound.offset.value), _FAR)  # type: ignore[arg-type]
    return -count if bound.preceding else count


def _is_distance(bound: FrameBound) -> bool:
    return not bound.unbounded and bound.offset is not None and bound.offset.value != 0


@dataclass(frozen=True, slots=True)
class Positions:
    """Computes functions by position.

    Attributes:
        order: The partition's.
        shape: Of the rows.
        functions: With their numbers, of which the columns that they read and make bear the names.
    """

    order: tuple[ColumnOrder, ...]
    shape: RowLayout
    functions: Sequence[tuple[int, WindowFunction]]

    def added(self, frame: DataFrame, partition: Sequence[str]) -> DataFrame:
        """Returns the frame with the functions' columns.

        Args:
            frame: Placed single rows, with each function's `mz_{part}_{i}`, what of the row counts, and
                `mz_until_{part}_{i}`, the running total of it.
            partition: Names of the columns that part partitions.
        """
        if self._has_distance:
            frame = frame.select("*", self._key().alias(_KEY))
        rows = frame.select(*partition, PLACE, sf.struct("*").alias("row"))
        row = sf.col("row")
        group = sf.struct(*(row.getField(name).alias(name) for name in (GROUP, FIRST, LAST, *self._keys)))
        leads = row.getField(PLACE) == row.getField(FIRST)
        arrays = {
            "rows": sf.collect_list(sf.struct(PLACE, row)),
            "groups": sf.collect_list(sf.when(leads, group)),
        } | {
            # What is NULL is not collected.
            f"kept_{i}": sf.collect_list(row.getField(f"mz_found_{i}"))
            for i, one in self.functions
            if one.ignore_nulls
        }
        collected = rows.groupBy(*partition).agg(*(column.alias(name) for name, column in arrays.items()))
        sorted_arrays = sf.struct(*(sf.sort_array(name).alias(name) for name in arrays))
        made = _let(
            sorted_arrays, lambda p: sf.transform(p.getField("rows"), lambda one: self._made(p, one.getField("row")))
        )
        exact = [(i, one) for i, one in self.functions if in_python(one)]
        if not exact:
            return collected.select(sf.inline(made)).select("row.*", "made.*")
        sums = [self._of_frames(sf.col(_MADE), i, one).alias(f"mz_sums_{i}") for i, one in exact]
        summed = collected.select(made.alias(_MADE)).select(_MADE, *sums)
        with_sums = sf.transform(
            _MADE,
            lambda one, n: sf.struct(
                one.getField("row").alias("row"),
                one.getField("made").alias("made"),
                sf.struct(*(sf.get(f"mz_sums_{i}", n).alias(f"mz_result_{i}") for i, _ in exact)).alias("sums"),
            ),
        )
        return summed.select(sf.inline(with_sums)).select("row.*", "made.*", "sums.*")

    @property
    def _has_distance(self) -> bool:
        return any(one.frame is not None and has_distance(one.frame) for _, one in self.functions)

    @property
    def _keys(self) -> tuple[str, ...]:
        return (_KEY,) if self._has_distance else ()

    @property
    def _frames(self) -> list[WindowFrame]:
        return list(dict.fromkeys(one.frame for _, one in self.functions if one.frame is not None))

    def _key(self) -> Column:
        (order,) = self.order
        type_ = self.shape.relation_type.columns[order.position].type
        column = sf.col(f"c{order.position}")
        if type_.kind in _INTEGERS:
            return column.cast("bigint")
        if type_.kind in _FLOATS:
            return column.cast("double")
        if type_.kind is Kind.DATE:
            return column.cast("timestamp_ntz")
        if type_.kind in (Kind.NUMERIC, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            return column
        raise InternalError(f"a distance between values of {type_}")

    def _made(self, partition: Column, row: Column) -> Column:
        """Returns the row and what the functions say of it; each frame's intervals are computed once."""

        def results(frames: Column) -> Column:
            made: list[Column] = []
            for i, one in self.functions:
                spans = None if one.frame is None else frames.getField(f"frame_{self._frames.index(one.frame)}")
                made += [column.alias(name) for name, column in self._function(partition, row, spans, i, one)]
            return sf.struct(row.alias("row"), sf.struct(*made).alias("made"))

        intervals = [
            self._intervals(partition, row, frame).alias(f"frame_{number}") for number, frame in enumerate(self._frames)
        ]
        return _let(sf.struct(sf.lit(0).alias("none"), *intervals), results)

    def _function(
        self, partition: Column, row: Column, spans: Column | None, i: int, one: WindowFunction
    ) -> list[tuple[str, Column]]:
        rows = partition.getField("rows")
        if spans is None:
            return [(f"mz_result_{i}", self._moved(partition, row, i, one))]

        def slices(name: str) -> Column:
            parts = sf.transform(
                spans, lambda span: sf.slice(rows, _int(span["lo"]), _int(span["hi"] - span["lo"] + 1))
            )
            return sf.transform(sf.flatten(parts), lambda other: other.getField("row").getField(name))

        if one.aggregate in EXTREMES:
            return [(f"mz_result_{i}", EXTREMES[one.aggregate].of_list(slices(f"mz_value_{i}"), spark_type(one.type)))]
        if in_python(one):
            places = sf.flatten(sf.transform(spans, lambda span: sf.array(span["lo"], span["hi"])))
            return [(f"mz_frame_{i}", places)]
        match one.aggregate:
            case AggregateFunction.COUNT:
                return [(f"mz_result_{i}", _total(rows, spans, f"mz_until_count_{i}", "bigint"))]
            case AggregateFunction.SUM:
                made = [(f"mz_sum_count_{i}", _total(rows, spans, f"mz_until_count_{i}", "bigint"))]
                return made + [
                    (f"mz_sum_{part}_{i}", _total(rows, spans, f"mz_until_{part}_{i}", spark_type(type_)))
                    for part, type_ in sum_types(self.shape, one).items()
                ]
            case AggregateFunction.ARRAY_AGG | AggregateFunction.STRING_AGG:
                return [(f"mz_list_{i}", sf.filter(slices(f"mz_found_{i}"), lambda found: found.isNotNull()))]
            case None if one.name in ("first_value", "last_value", "nth_value"):
                return [(f"mz_result_{i}", self._value(partition, row, spans, i, one))]
            case _:
                raise InternalError(f"{one.name} has no frame")

    def _of_frames(self, made: Column, i: int, one: WindowFunction) -> Column:
        """Returns what a function is of each row's frame, by place, on a worker: exact sums, or what has no kernel."""

        def parts(struct: str, name: str) -> Column:
            return sf.transform(made, lambda row: row.getField(struct).getField(f"mz_{name}_{i}"))

        if one.aggregate is AggregateFunction.EXACT_SUM:
            sums = sf.udf(exact_sums_of_frames, types.ArrayType(types.StringType()), useArrow=True)
            return sums(parts("row", "value"), parts("row", "factor"), parts("made", "frame"))
        assert one.aggregate is not None
        algebra = one.aggregate.record.of_type(one.type)

        def merged(values: Sequence[Any], frames: Sequence[Sequence[int]]) -> list[Any]:
            return algebra.of_frames([(value,) for value in values], frames)

        type_ = array_of(one.type)
        argument = array_of(self.shape.relation_type.columns[one.arguments[0]].type)
        by_place = sf.udf(merged, plain_type(type_), useArrow=True)
        return restored(by_place(plain_form(parts("row", "value"), argument), parts("made", "frame")), type_)

    def _value(self, partition: Column, row: Column, spans: Column, i: int, one: WindowFunction) -> Column:
        """Returns the first, last or n-th value of the intervals; among those that are not NULL, if so asked."""
        rows = partition.getField("rows")
        if one.ignore_nulls:
            kept = partition.getField(f"kept_{i}")
            counted = sf.transform(
                spans,
                lambda span: sf.struct(
                    (_until(rows, span["lo"] - 1, f"mz_until_count_{i}", "bigint") + 1).alias("lo"),
                    _until(rows, span["hi"], f"mz_until_count_{i}", "bigint").alias("hi"),
                ),
            )
            spans = sf.filter(counted, lambda span: span["lo"] <= span["hi"])
        match one.name:
            case "first_value":
                place = sf.get(spans, sf.lit(0)).getField("lo")
            case "last_value":
                place = _let(spans, lambda found: sf.get(found, sf.size(found) - 1).getField("hi"))
            case _:
                place = _nth(spans, row.getField(f"c{one.arguments[1]}").cast("bigint"))
        if one.ignore_nulls:
            return _let(place, lambda at: _at(kept, at).getField("value"))
        return _let(place, lambda at: _at(rows, at).getField("row").getField(f"mz_found_{i}").getField("value"))

    def _moved(self, partition: Column, row: Column, i: int, one: WindowFunction) -> Column:
        """Returns the value some rows before or after, or the default if there is no such row."""
        rows, direction = partition.getField("rows"), 1 if one.name == "lead" else -1
        offset = sf.lit(1).cast("bigint")
        if len(one.arguments) > 1:
            offset = row.getField(f"c{one.arguments[1]}").cast("bigint")
        value_type = self.shape.relation_type.columns[one.arguments[0]].type
        default = sf.lit(None).cast(spark_type(value_type))
        if len(one.arguments) > 2:
            default = row.getField(value_name(self.shape, one.arguments[2]))
        own = row.getField(value_name(self.shape, one.arguments[0]))

        def found(step: Column) -> Column:
            if not one.ignore_nulls:
                place, count = row.getField(PLACE) + step, row.getField(SIZE)
                value = _at(rows, place).getField("row").getField(f"mz_found_{i}").getField("value")
            else:
                kept, before = partition.getField(f"kept_{i}"), row.getField(f"mz_until_count_{i}")
                # The running total counts the row itself.
                before = before - sf.when((step < 0) & own.isNotNull(), 1).otherwise(0)
                place, count = before + step + sf.when(step < 0, 1).otherwise(0), sf.size(kept)
                value = _at(kept, place).getField("value")
            there = sf.when((place >= 1) & (place <= count), value).otherwise(default)
            there = sf.when(step == 0, own).otherwise(there) if one.ignore_nulls else there
            return sf.when(step.isNotNull(), there)

        return _let(offset * direction, found)

    def _intervals(self, partition: Column, row: Column, frame: WindowFrame) -> Column:
        """Returns the places that the row's frame holds as intervals `lo`, `hi`, in order, none empty."""
        place, first, last = (row.getField(name) for name in (PLACE, FIRST, LAST))

        def parts(ends: Column) -> Column:
            lo, hi = ends["lo"], ends["hi"]
            match frame.exclusion:
                case FrameExclusion.NO_OTHERS:
                    found = [(lo, hi)]
                case FrameExclusion.CURRENT_ROW:
                    found = [(lo, sf.least(hi, place - 1)), (sf.greatest(lo, place + 1), hi)]
                case FrameExclusion.GROUP:
                    found = [(lo, sf.least(hi, first - 1)), (sf.greatest(lo, last + 1), hi)]
                case FrameExclusion.TIES:
                    own = (sf.greatest(lo, place), sf.least(hi, place))
                    found = [(lo, sf.least(hi, first - 1)), own, (sf.greatest(lo, last + 1), hi)]
            spans = sf.array(*(sf.struct(start.alias("lo"), end.alias("hi")) for start, end in found))
            return sf.filter(spans, lambda span: span["lo"] <= span["hi"])

        lo, hi = self._start(partition, row, frame), self._end(partition, row, frame)
        return _let(sf.struct(lo.alias("lo"), hi.alias("hi")), parts)

    def _start(self, partition: Column, row: Column, frame: WindowFrame) -> Column:
        if frame.start.unbounded:
            return sf.lit(1).cast("bigint")
        groups = partition.getField("groups")
        if frame.unit is FrameUnit.RANGE and _is_distance(frame.start):
            number = self._bisected(groups, row, frame.start, starts=True)
            return _behind(row, sf.get(groups, number).getField(FIRST))
        count = _count(frame.start)
        if frame.unit is FrameUnit.ROWS:
            return sf.greatest(row.getField(PLACE) + count, sf.lit(1).cast("bigint"))
        number = row.getField(GROUP) + count
        return sf.when(number < 1, 1).otherwise(_behind(row, _at(groups, number).getField(FIRST)))

    def _end(self, partition: Column, row: Column, frame: WindowFrame) -> Column:
        size = row.getField(SIZE)
        if frame.end.unbounded:
            return size
        groups = partition.getField("groups")
        if frame.unit is FrameUnit.RANGE and _is_distance(frame.end):
            number = self._bisected(groups, row, frame.end, starts=False)
            return _behind(row, sf.get(groups, number).getField(FIRST)) - 1
        count = _count(frame.end)
        if frame.unit is FrameUnit.ROWS:
            return sf.least(row.getField(PLACE) + count, size)
        number = row.getField(GROUP) + count
        return sf.when(number < 1, 0).otherwise(sf.coalesce(_at(groups, number).getField(LAST), size))

    def _bisected(self, groups: Column, row: Column, bound: FrameBound, *, starts: bool) -> Column:
        """Returns the number, from 0, of the first group that is not before the frame, or that is behind it."""

        def search(target: Column) -> Column:
            def narrowed(ends: Column, _: Column) -> Column:
                low, high = ends["low"], ends["high"]
                middle = sf.shiftright(low + high, 1)
                before = self._is_before(
                    sf.get(groups, middle).getField(_KEY), row.getField(_KEY), target, bound, starts=starts
                )
                return sf.when(low >= high, ends).when(before, _ends(middle + 1, high)).otherwise(_ends(low, middle))

            # Each step halves what is left of the groups.
            halvings = sf.sequence(sf.lit(0), sf.ceil(sf.log2(sf.size(groups).cast("double") + 1.0)).cast("int"))
            return sf.aggregate(halvings, _ends(sf.lit(0), sf.size(groups)), narrowed).getField("low")

        return _let(self._target(row.getField(_KEY), bound, starts=starts), search)

    def _is_before(self, key: Column, own: Column, target: Column, bound: FrameBound, *, starts: bool) -> Column:
        """Returns whether a group is before the bound: before the frame's start, or not behind its end."""
        (order,) = self.order
        ascending, adds = not order.descending, self._adds(bound)
        # Without a target the bound lies beyond all finite keys, on the side to which it moves.
        is_below, is_above = sf.lit(adds), sf.lit(not adds)
        if isinstance(bound.offset, Literal) and isinstance(bound.offset.value, Interval):
            kind = self.shape.relation_type.columns[order.position].type.kind
            infinite = literal_infinity(INFINITY if adds else NEGATIVE_INFINITY, _MOMENT_OF.get(kind, kind))
            is_below, is_above = (key < infinite, key == infinite) if adds else (key == infinite, key > infinite)
        below = sf.coalesce(key < target, is_below)
        above = sf.coalesce(key > target, is_above)
        if starts:
            told = below if ascending else above
            of_null = key.isNotNull() & sf.lit(not order.nulls_first)
            null = sf.lit(order.nulls_first)
        else:
            told = ~(above if ascending else below)
            of_null = key.isNull() | sf.lit(not order.nulls_first)
            null = sf.lit(order.nulls_first)
        return sf.when(own.isNull(), of_null).when(key.isNull(), null).otherwise(told)

    def _adds(self, bound: FrameBound) -> bool:
        return self.order[0].descending == bound.preceding

    def _target(self, own: Column, bound: FrameBound, *, starts: bool) -> Column:
        """Returns the value at which the bound lies; NULL if the key is, or if its type has no such value."""
        assert bound.offset is not None
        (order,) = self.order
        type_ = self.shape.relation_type.columns[order.position].type
        if isinstance(bound.offset.value, Interval):
            # Of a date the key is its midnight.
            moment = TIMESTAMP if type_.kind is Kind.DATE else type_
            name = f"{'add' if self._adds(bound) else 'subtract'}_{moment.kind.value}_interval"
            return emit(Call(name, (ColumnRef(0, moment), bound.offset), moment), [own]).value
        operation = sf.try_add if self._adds(bound) else sf.try_subtract
        if type_.kind in _FLOATS:
            moved = operation(own, literal(Literal(float(bound.offset.value), FLOAT8)))  # type: ignore[arg-type]
            farthest = sf.lit(float("-inf") if starts != order.descending else float("inf"))
            return sf.when(~sf.isnan(own) & sf.isnan(moved), farthest).otherwise(moved)
        distance = Decimal(bound.offset.value)  # type: ignore[arg-type]
        with localcontext() as context:
            context.prec = 100
            rounding = ROUND_FLOOR if starts == bound.preceding else ROUND_CEILING
            distance = distance.quantize(Decimal(1).scaleb(-type_.scale), rounding)
            if type_.kind in _INTEGERS:
                return operation(own, literal(Literal(int(distance), INT8)))
            if distance.scaleb(type_.scale) >= 10**38:
                return sf.lit(None).cast(spark_type(type_))
        return operation(own, literal(Literal(distance, type_))).try_cast(spark_type(type_))


class Extreme(NamedTuple):
    """How Spark aggregates values of a frame, NULLs left out.

    Attributes:
        of_frame: A column over a window.
        of_list: An array of them, and their type.
    """

    of_frame: Callable[[Column], Column]
    of_list: Callable[[Column, str], Column]


def _bits(together: Callable[[Column, Column], Column]) -> Callable[[Column, str], Column]:
    """Returns what the bits of the values that are not NULL come to; NULL if there are none."""

    def of_list(values: Column, type_: str) -> Column:
        def with_value(found: Column, value: Column) -> Column:
            made = sf.coalesce(together(found, value), value)
            return sf.when(value.isNull(), found).otherwise(made).cast(type_)

        return sf.aggregate(values, sf.lit(None).cast(type_), with_value)

    return of_list


#: Of aggregates with a kernel whose values are those of the frame's.
EXTREMES: dict[AggregateFunction | None, Extreme] = {
    AggregateFunction.MIN: Extreme(lambda value: sf.min(value), lambda values, _: sf.array_min(values)),
    AggregateFunction.MAX: Extreme(lambda value: sf.max(value), lambda values, _: sf.array_max(values)),
    AggregateFunction.BIT_AND: Extreme(
        lambda value: sf.bit_and(value), _bits(lambda one, other: one.bitwiseAND(other))
    ),
    AggregateFunction.BIT_OR: Extreme(lambda value: sf.bit_or(value), _bits(lambda one, other: one.bitwiseOR(other))),
    AggregateFunction.BIT_XOR: Extreme(
        lambda value: sf.bit_xor(value), _bits(lambda one, other: one.bitwiseXOR(other))
    ),
}
_OTHERS = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.ARRAY_AGG, AggregateFunction.STRING_AGG)


def in_python(one: WindowFunction) -> bool:
    """Returns whether workers compute an aggregate over frames: exact sums, and what has no kernel."""
    return one.aggregate is not None and one.aggregate not in EXTREMES and one.aggregate not in _OTHERS


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """Returns `body` of a value that is computed once, wherever the expression stands."""
    return sf.get(sf.transform(sf.array(value), body), sf.lit(0))


def _int(value: Column) -> Column:
    return value.cast("int")


def _ends(low: Column, high: Column) -> Column:
    return sf.struct(low.alias("low"), high.alias("high"))


def _at(array: Column, place: Column) -> Column:
    """Returns the element at a place from 1; NULL if there is none."""
    return sf.get(array, (place - 1).try_cast("int"))


def _behind(row: Column, place: Column) -> Column:
    """Returns `place`, or the place behind the partition's end for NULL."""
    return sf.coalesce(place, row.getField(SIZE) + 1)


def _until(rows: Column, place: Column, name: str, type_: str) -> Column:
    """Returns a running total up to a place, 0 at 0."""
    return sf.coalesce(_at(rows, place).getField("row").getField(name), sf.lit(0)).cast(type_)


def _total(rows: Column, spans: Column, name: str, type_: str) -> Column:
    """Returns the total over the intervals."""

    def with_span(total: Column, span: Column) -> Column:
        return (total + _until(rows, span["hi"], name, type_) - _until(rows, span["lo"] - 1, name, type_)).cast(type_)

    return sf.aggregate(spans, sf.lit(0).cast(type_), with_span)


def _nth(spans: Column, number: Column) -> Column:
    """Returns the place that is the n-th of the intervals, counted from 1; NULL if there is none."""

    def with_span(found: Column, span: Column) -> Column:
        left, length = found["left"], span["hi"] - span["lo"] + 1
        here = found["place"].isNull() & (left >= 1) & (left <= length)
        place = sf.when(here, span["lo"] + left - 1).otherwise(found["place"])
        return sf.struct((left - length).alias("left"), place.alias("place"))

    nowhere = sf.struct(number.alias("left"), sf.lit(None).cast("bigint").alias("place"))
    return sf.aggregate(spans, nowhere, with_span).getField("place")
