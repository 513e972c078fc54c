"""Counts and sums per key: `plan.physical.Accumulate`.

Keyed. The state is the output: of each key that has rows, one row with the number of rows and the sums. Both are
linear, so no row is ever looked at again. With the changes of an interval [l, u) summed by key and time, at each time t
at which that sum is not zero:

    before(t) = sum of diff * (n, sums) over the key's state rows at times < l
              + sum of the changes at times in [l, t)
    after(t)  = before(t) + the changes at t
    updates   = -1 of the row of before(t), +1 of the row of after(t); a row of zeros does not exist

Both are one running sum over the key's rows in the order of time. The state's come in the order in which they
were written, each retraction before what replaces it, so that the running sum never leaves what the state held. A
number of rows below zero is kept: it may yet be made up for, and is what is above's to judge.

Errors are summed with the changes, as groups of their own, and pass with their time and diff.

Overflow raises, and never wraps: sums of bigints beyond 2^63, of numerics beyond 38 digits. Contributions of type
bigint are at most 2^31 and those of type numeric at most 10^19 units of the last digit, so neither happens before
2^32 rows, or 10^19.

Cost of a step: a shuffle of the changes after partial sums, a second one, by key, of these sums and the state's rows of
the touched keys. The changes are evaluated once: the lookup's keys are read from the first shuffle, or known before. Of
a snapshot: one shuffle after partial sums.
"""

from __future__ import annotations

from operator import or_
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, positional, spark_type
from mz_dagster.compute.spark.balanced import balanced
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.plan.physical import Accumulate
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

#: True in changes, false in what the state held before.
_CHANGED = "mz_changed"
_ROW = "mz_row"


def accumulate_updates(changes: DataFrame, own: OwnState, node: Accumulate, known: pa.Table | None = None) -> DataFrame:
    """Returns the state's updates that the input's `changes` make, at their times.

    Those of the data part are consolidated.

    Args:
        changes: Of the input.
        own: The state.
        node: The operator.
        known: The keys of the changes and perhaps others, if they are known here, of a state that prunes.
    """
    keys = positional(node.key_arity)
    totals = _totals(node)
    summed = _summed(changes, node, [*keys, TIME, ERROR]).select("*", sf.lit(True).alias(_CHANGED))
    if known is None:
        # Without a filter, and from the sums: the same shuffle as that of `summed`, which Spark then runs once. The
        # keys of errors find state rows of which nothing comes.
        found = own.lookup(
            summed.select(*(sf.col(key).alias(f"k{i}") for i, key in enumerate(keys))), range(node.key_arity)
        )
    else:
        found = own.find(known, range(node.key_arity))
    prior = found.select(
        *keys, TIME, ERROR, DIFF,
        *((sf.col(DIFF) * sf.col(name)).cast(type_).alias(name) for name, type_ in totals),
        sf.lit(False).alias(_CHANGED),
    )  # fmt: skip
    # Without a key a constant, so that Spark does not warn of a single partition.
    in_order = Window.partitionBy(*(keys or [sf.lit(0)])).orderBy(TIME, DIFF).rowsBetween(Window.unboundedPreceding, 0)
    after = [sf.sum(name).over(in_order).alias(f"{name}_after") for name, _ in totals]
    running = summed.unionAll(prior).select(*keys, TIME, DIFF, ERROR, _CHANGED, *(name for name, _ in totals), *after)
    before = [(sf.col(f"{name}_after") - sf.col(name)).cast(type_).alias(name) for name, type_ in totals]
    retracted = _update(-1, before)
    asserted = _update(1, [sf.col(f"{name}_after").cast(type_).alias(name) for name, type_ in totals])
    passed = _update(sf.col(DIFF), [sf.lit(None).cast(type_).alias(name) for name, type_ in totals])
    updates = sf.when(sf.col(ERROR).isNotNull(), sf.array(passed)).otherwise(
        sf.filter(sf.array(retracted, asserted), lambda update: _exists([update[name] for name, _ in totals]))
    )
    exploded = running.where(sf.col(_CHANGED)).select(*keys, TIME, ERROR, sf.explode(updates).alias(_ROW))
    state = [sf.col(f"{_ROW}.{name}").alias(name) for name in (*(name for name, _ in totals), DIFF)]
    return exploded.select(*keys, *state, TIME, ERROR).select(*_columns(node))


def accumulate_snapshot(content: DataFrame, node: Accumulate, as_of: int) -> DataFrame:
    """Returns the state over an input whose content at `as_of` is `content`, as updates at `as_of`."""
    summed = _summed(content, node, [*positional(node.key_arity), ERROR])
    one = sf.when(sf.col(ERROR).isNull(), sf.lit(1).cast("bigint")).otherwise(sf.col(DIFF))
    data = [name for name in _columns(node) if name not in META]
    return summed.select(*data, sf.lit(as_of).cast("bigint").alias(TIME), one.alias(DIFF), ERROR)


def _totals(node: Accumulate) -> list[tuple[str, str]]:
    """Returns names and types of the state's columns that are no key: the number of rows and the sums."""
    columns = node.relation_type.columns
    return [(f"c{i}", spark_type(columns[i].type)) for i in range(node.key_arity, len(columns))]


def _columns(node: Accumulate) -> list[str]:
    return [*positional(node.relation_type.arity), TIME, DIFF, ERROR]


def _summed(frame: DataFrame, node: Accumulate, groups: list[str]) -> DataFrame:
    """Returns, for each of `groups`, the sums over its updates of the diffs and of what the state adds up.

    Errors have NULLs for sums. Groups in which all sums are zero are left out.
    """
    (rows, _), *sums = _totals(node)
    good = sf.col(ERROR).isNull()
    added = [sf.sum(DIFF).alias(DIFF)]
    for position, (name, type_) in enumerate(sums, start=node.key_arity):
        added.append(sf.sum(sf.when(good, (sf.col(DIFF) * sf.col(f"c{position}")).cast(type_))).alias(name))
    summed = frame.groupBy(*groups).agg(*added)
    return summed.where(_exists([sf.col(DIFF), *(sf.col(name) for name, _ in sums)])).select(
        *groups, DIFF, sf.when(good, sf.col(DIFF)).alias(rows),
        *(sf.col(name).cast(type_).alias(name) for name, type_ in sums),
    )  # fmt: skip


def _exists(totals: list[Column]) -> Column:
    """Returns whether one of `totals` is not zero."""
    return balanced(or_, [one != 0 for one in totals])


def _update(diff: Column | int, totals: list[Column]) -> Column:
    amount = sf.lit(diff).cast("bigint") if isinstance(diff, int) else diff
    return sf.struct(amount.alias(DIFF), *totals)
