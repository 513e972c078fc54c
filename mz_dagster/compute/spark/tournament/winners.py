"""Winners of what only ever grows: tournaments of a monotonic input that leave one row of a group.

Who wins among the rows so far is known from the winner before and what is new, without a version of the group for each
time (`versions.py`):

    first rows   a row that arrives at time t is first of its group from t until the first time b at which one that
                 comes before it in the order has arrived; not at all if b <= t. Where the group is the whole row, it
                 is there from the first of its times
    extremes     at each time of a change, what the values so far come to, if that is not what they came to before

Cost of a step: one lookup of the touched groups' winners, one aggregation of these and the changes, one sort by group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME
from mz_dagster.compute.algebra.times import PRIOR
from mz_dagster.compute.spark.tournament.extremes import extreme
from mz_dagster.compute.spark.tournament.top_rows import ordered
from mz_dagster.compute.spark.tournament.versions import RowLayout
from mz_dagster.plan.physical import Extremes, TopRows
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

_UPDATE = "mz_update"


def winners(rows: DataFrame, shape: RowLayout, function: TopRows | Extremes) -> DataFrame:
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


def _first(rows: DataFrame, shape: RowLayout, function: TopRows) -> DataFrame:
    if not shape.others and not shape.floats:
        return _first_times(rows, shape)
    # Equal rows by their times: the later ones change nothing.
    order = [*(ordered(one) for one in function.order), *shape.ties(), sf.col(TIME)]
    better = Window.partitionBy(*shape.group_names, ERROR).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    placed = rows.select(*shape.row, TIME, DIFF, ERROR, sf.min(TIME).over(better).alias("mz_beaten"))
    time, beaten = sf.col(TIME), sf.col("mz_beaten")
    wins = _holds() & (beaten.isNull() | (beaten > time))
    updates = sf.array(
        _at(sf.when(~_holds() | (wins & (time > PRIOR)), time), sf.when(_holds(), _one()).otherwise(sf.col(DIFF))),
        _at(sf.when(wins, beaten), _one(-1)),
    )
    exploded = placed.select(*shape.row, ERROR, sf.explode(updates).alias(_UPDATE))
    found = exploded.select(*shape.row, f"{_UPDATE}.{TIME}", f"{_UPDATE}.{DIFF}", ERROR)
    return found.where(sf.col(TIME).isNotNull())


def _first_times(rows: DataFrame, shape: RowLayout) -> DataFrame:
    """Returns each row that was not there before, at the first of its times; the group is the whole row."""
    own_time = sf.when(~_holds(), sf.col(TIME)).alias("mz_own_time")
    diff = sf.when(_holds(), _one()).otherwise(sf.sum(DIFF))
    found = rows.groupBy(*shape.row, ERROR, own_time).agg(sf.min(TIME).alias(TIME), diff.alias(DIFF))
    return found.where(sf.col(TIME) > PRIOR).select(*shape.row, TIME, DIFF, ERROR)


def _extremes(rows: DataFrame, shape: RowLayout, function: Extremes) -> DataFrame:
    names = [f"c{position}" for position in shape.others]
    types = [shape.relation_type.columns[position].type for position in shape.others]
    by_name = list(zip(function.functions, names, types, strict=True))
    at_once = [extreme(one, sf.col(name), type_).alias(name) for one, name, type_ in by_name]
    each_time = rows.groupBy(*shape.group_names, TIME, ERROR).agg(sf.sum(DIFF).alias(DIFF), *at_once)
    in_order = Window.partitionBy(*shape.group_names, ERROR).orderBy(TIME)
    until, before = (in_order.rowsBetween(Window.unboundedPreceding, last) for last in (0, -1))

    def over(window: WindowSpec) -> Column:
        found = (extreme(one, sf.col(name), type_, window).alias(name) for one, name, type_ in by_name)
        return sf.struct(_one(), *found)

    running = each_time.select(
        *shape.group_names, TIME, DIFF, ERROR, over(until).alias("mz_until"), over(before).alias("mz_before"),
        (sf.count(sf.lit(1)).over(before) > 0).alias("mz_had"),
    )  # fmt: skip
    time, had = sf.col(TIME), sf.col("mz_had")
    changed = _holds() & (time > PRIOR) & (~had | (sf.col("mz_until") != sf.col("mz_before")))
    updates = sf.array(
        _at(sf.when(~_holds() | changed, time), sf.when(_holds(), _one()).otherwise(sf.col(DIFF)), sf.col("mz_until")),
        _at(sf.when(changed & had, time), _one(-1), sf.col("mz_before")),
    )
    exploded = running.select(*shape.group_names, ERROR, sf.explode(updates).alias(_UPDATE))
    values = {name: sf.col(f"{_UPDATE}.mz_row.{name}").alias(name) for name in names}
    data = [values.get(name, sf.col(name)) for name in (f"c{position}" for position in range(shape.arity))]
    found = exploded.select(*data, *shape.unsigned(), f"{_UPDATE}.{TIME}", f"{_UPDATE}.{DIFF}", ERROR)
    return found.where(sf.col(TIME).isNotNull())


def _at(time: Column, diff: Column, *row: Column) -> Column:
    """Returns an update; none if the time is NULL."""
    return sf.struct(time.alias(TIME), diff.alias(DIFF), *(one.alias("mz_row") for one in row))


def _holds() -> Column:
    return sf.col(ERROR).isNull()


def _one(sign_: int = 1) -> Column:
    return sf.lit(sign_).cast("bigint")
