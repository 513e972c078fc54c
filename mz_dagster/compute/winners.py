"""Winners of what only ever grows: tournaments of a monotonic input that leave one row of a group.

Who wins among the rows so far is known from the winner before and what is new, without a version of the group for each
time (`versions.py`):

    first rows   a row that arrives at time t is first of its group from t until the first time b at which one that
                 comes before it in the order has arrived; not at all if b <= t
    extremes     at each time of a change, what the values so far come to, if that is not what they came to before

Cost of a step: one lookup of the touched groups' winners, one aggregation of these and the changes, one sort by group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pyspark.sql import Window
from pyspark.sql import functions as sf

from mz_dagster.compute.extremes import extreme
from mz_dagster.compute.frame import DIFF, ERROR, TIME
from mz_dagster.compute.top_rows import ordered
from mz_dagster.compute.versions import PRIOR, Shape, sign
from mz_dagster.plan.physical import Extremes, StageFunction, TopRows
from mz_dagster.plan.relation import AggregateFunction

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UPDATE = "mz_update"


def leaves_one_row(function: StageFunction) -> bool:
    """Returns whether `winners` knows the function: one row a group, which a further equal row does not change.

    Example:
        >>> leaves_one_row(TopRows((), 1)), leaves_one_row(TopRows((), 2)), leaves_one_row(TopRows((), 1, 1))
        (True, False, False)
    """
    match function:
        case TopRows(limit=1, offset=0):
            return True
        case Extremes(functions):
            return AggregateFunction.BIT_XOR not in functions
        case _:
            return False


def winners(rows: DataFrame, shape: Shape, function: TopRows | Extremes) -> DataFrame:
    """Returns the updates of the winners.

    Args:
        rows: `shape.row`, time, diff and error: what is new, at its times with a positive diff, consolidated, and the
            winners before, at the time `PRIOR`.
        shape: Of the rows.
        function: One that leaves a row of a group.

    Returns:
        The same columns: the winners' updates, and the rows that are errors.
    """
    match function:
        case TopRows():
            return _first(rows, shape, function)
        case Extremes():
            return _extremes(rows, shape, function)
        case _:
            assert_never(function)


def _first(rows: DataFrame, shape: Shape, function: TopRows) -> DataFrame:
    # Equal rows by their times: the later ones change nothing.
    order = [*(ordered(one) for one in function.order), *shape.ties(), sf.col(TIME)]
    better = Window.partitionBy(*shape.group_names, ERROR).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    placed = rows.select(*shape.row, TIME, DIFF, ERROR, sf.min(TIME).over(better).alias("mz_beaten"))
    time, beaten = sf.col(TIME), sf.col("mz_beaten")
    wins = beaten.isNull() | (beaten > time)
    updates = sf.array(
        _at(sf.when(wins & (time > PRIOR), time), 1),
        _at(sf.when(wins, beaten), -1),
    )
    exploded = placed.select(*shape.row, ERROR, sf.explode(_updates(updates)).alias(_UPDATE))
    return exploded.select(*shape.row, f"{_UPDATE}.{TIME}", f"{_UPDATE}.{DIFF}", ERROR)


def _extremes(rows: DataFrame, shape: Shape, function: Extremes) -> DataFrame:
    names = [f"c{position}" for position in shape.others]
    by_name = list(zip(function.functions, names, strict=True))
    at_once = [extreme(one, sf.col(name)).alias(name) for one, name in by_name]
    each_time = rows.groupBy(*shape.group_names, TIME, ERROR).agg(sf.sum(DIFF).alias(DIFF), *at_once)
    in_order = Window.partitionBy(*shape.group_names, ERROR).orderBy(TIME)
    until, before = (in_order.rowsBetween(Window.unboundedPreceding, last) for last in (0, -1))
    running = each_time.select(
        *shape.group_names, TIME, DIFF, ERROR,
        sf.struct(sf.lit(True), *(extreme(one, sf.col(name)).over(until).alias(name) for one, name in by_name))
        .alias("mz_until"),
        sf.struct(sf.lit(True), *(extreme(one, sf.col(name)).over(before).alias(name) for one, name in by_name))
        .alias("mz_before"),
        (sf.count(sf.lit(1)).over(before) > 0).alias("mz_had"),
    )  # fmt: skip
    time, had = sf.col(TIME), sf.col("mz_had")
    changed = (time > PRIOR) & (~had | (sf.col("mz_until") != sf.col("mz_before")))
    updates = sf.array(
        _at(sf.when(changed, time), 1, row=sf.col("mz_until")),
        _at(sf.when(changed & had, time), -1, row=sf.col("mz_before")),
    )
    passed = _at(time, sf.col(DIFF), row=sf.col("mz_until"))
    exploded = running.select(*shape.group_names, ERROR, sf.explode(_updates(updates, passed)).alias(_UPDATE))
    values = {name: sf.col(f"{_UPDATE}.mz_row.{name}").alias(name) for name in names}
    data = [values.get(name, sf.col(name)) for name in (f"c{position}" for position in range(shape.arity))]
    signs = [sf.lit(False).alias(sign(position)) for position in shape.floats]
    return exploded.select(*data, *signs, f"{_UPDATE}.{TIME}", f"{_UPDATE}.{DIFF}", ERROR)


def _at(time: Column, diff: Column | int, *, row: Column | None = None) -> Column:
    amount = sf.lit(diff).cast("bigint") if isinstance(diff, int) else diff
    return sf.struct(time.alias(TIME), amount.alias(DIFF), *([] if row is None else [row.alias("mz_row")]))


def _updates(updates: Column, passed: Column | None = None) -> Column:
    """Returns those of `updates` that have a time; of an error the row as it is."""
    present = sf.filter(updates, lambda update: update[TIME].isNotNull())
    own = _at(sf.col(TIME), sf.col(DIFF)) if passed is None else passed
    return sf.when(sf.col(ERROR).isNotNull(), sf.array(own)).otherwise(present)
