"""Temporal filters: `plan.physical.TemporalState`, the rows that are valid or will be.

A row with the bounds [lo, hi) that an update (row, t, d) brings is valid from `a = max(t, lo)` until `b = max(hi, a)`:

    (row, false)  +d at t, -d at a     if a > t        it waits
    (row, true)   +d at a, -d at b     if a < b        it is valid; without `hi` for ever

and nothing at all if a = b. What lies at or beyond the interval's upper is not written: it follows from the state by
the same rule in the step that comes there. So an own row (row, valid) whose *due* time, `valid_from` as long as it is
not valid and `valid_to` then, lies in the interval goes on from there. All of it is linear in the updates, those of
the state included, which need no consolidation: a negative diff undoes exactly what its positive one did.

A NULL bound is no time: the row is never valid, and not kept. A bound that fails is an error at the update's time, with
its diff.

Cost: the updates, and of the state the rows that are due, found by literal bounds on two columns; no shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, columns_at, positional
from mz_dagster.compute.spark.expressions import Emitted, Emitter
from mz_dagster.compute.spark.expressions.emitted import leftmost
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.plan.physical import TemporalState
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FROM, _TO, _EVENT = "mz_valid_from", "mz_valid_to", "mz_event"


def temporal_updates(
    changes: DataFrame | None, own: OwnState, node: TemporalState, lower: int, upper: int
) -> DataFrame | None:
    """Returns the state's updates in `[lower, upper)`: those that `changes` make, and what falls due."""
    arity = node.input.relation_type.arity
    due = _fallen_due(own.before(), arity, lower, upper)
    if changes is None:
        return due
    return _arrived(_bounded(changes, node), arity, upper).unionAll(due)


def temporal_snapshot(content: DataFrame, node: TemporalState, as_of: int) -> DataFrame:
    """Returns the state over an input whose content at `as_of` is `content`, as updates at `as_of`."""
    arity = node.input.relation_type.arity
    valid = sf.col(_FROM) <= _time(as_of)
    kept = _bounded(content, node).where(
        sf.col(ERROR).isNotNull() | sf.col(_TO).isNull() | (sf.col(_TO) > _time(as_of))
    )
    return kept.select(*_state_columns(arity, valid), sf.col(TIME), sf.col(DIFF), sf.col(ERROR))


def _bounded(frame: DataFrame, node: TemporalState) -> DataFrame:
    """Returns the updates with the columns of their bounds, without those that are never valid."""
    arity = node.input.relation_type.arity
    emitter = Emitter(columns_at(arity))
    lower = [emitter.shared(emitter.emit(one), above=8) for one in node.lower]
    upper = [emitter.shared(emitter.emit(one), above=8) for one in node.upper]
    error = leftmost([sf.col(ERROR), *(one.error for one in (*lower, *upper))])
    assert error is not None
    start = _extreme(sf.greatest, lower)
    end = _extreme(sf.least, upper)
    frame = emitter.stage(frame).select(
        *columns_at(arity),
        _time(0).alias(_FROM) if start is None else start.alias(_FROM),
        sf.lit(None).cast("bigint").alias(_TO) if end is None else end.alias(_TO),
        sf.col(TIME),
        sf.col(DIFF),
        error.alias(ERROR),
        _all_present([*lower, *upper]).alias("mz_bounded"),
    )
    # An interval that is empty is so at whatever time the row arrives.
    ordered = sf.col(_TO).isNull() | (sf.col(_TO) > sf.col(_FROM))
    bounded = frame.where(sf.col(ERROR).isNotNull() | (sf.col("mz_bounded") & ordered))
    return bounded.select(*columns_at(arity), _FROM, _TO, *META)


def _arrived(frame: DataFrame, arity: int, upper: int) -> DataFrame:
    """Returns what updates with bounds make before `upper`."""
    time, start, end = sf.col(TIME), sf.col(_FROM), sf.col(_TO)
    last = _time(upper)
    # In a row of the error part the bounds may be anything.
    good = sf.col(ERROR).isNull()
    first = sf.greatest(time, start)
    lives = end.isNull() | (end > first)
    waits = good & lives & (start > time)
    events = sf.array(
        _event(~good, time, 1, None),
        _event(waits, time, 1, False),
        _event(waits & (start < last), start, -1, False),
        _event(good & lives & (first < last), first, 1, True),
        _event(good & lives & (end < last), end, -1, True),
    )
    return _exploded(frame, arity, events)


def _fallen_due(own: DataFrame, arity: int, lower: int, upper: int) -> DataFrame:
    """Returns what becomes of the state's rows in `[lower, upper)`."""
    first, last = _time(lower), _time(upper)
    start, end, valid = (sf.col(f"c{arity + i}") for i in range(3))
    starts = ~valid & (start >= first) & (start < last)
    ends = valid & (end >= first) & (end < last)
    due = own.where(starts | ends).select(
        *columns_at(arity), start.alias(_FROM), end.alias(_TO), valid.alias("mz_valid"), TIME, DIFF, ERROR
    )
    waiting = ~sf.col("mz_valid")
    events = sf.array(
        _event(waiting, sf.col(_FROM), -1, False),
        _event(waiting, sf.col(_FROM), 1, True),
        _event(sf.col(_TO) < last, sf.col(_TO), -1, True),
    )
    return _exploded(due, arity, events)


def _exploded(frame: DataFrame, arity: int, events: Column) -> DataFrame:
    """Returns the updates of `events`, an array of `_event`s for each row; their factor multiplies its diff."""
    happening = sf.explode(sf.array_compact(events)).alias(_EVENT)
    frame = frame.select(*columns_at(arity), sf.col(_FROM), sf.col(_TO), sf.col(DIFF), sf.col(ERROR), happening)
    event = sf.col(_EVENT)
    return frame.select(
        *_state_columns(arity, event["valid"]),
        event["time"].alias(TIME),
        (sf.col(DIFF) * event["factor"]).alias(DIFF),
        sf.col(ERROR),
    )


def _event(happens: Column, time: Column, factor: int, valid: bool | None) -> Column:
    """Returns what happens to a row at a time, NULL if it does not."""
    fields = (
        time.alias("time"),
        _time(factor).alias("factor"),
        sf.lit(valid).cast("boolean").alias("valid"),
    )
    return sf.when(happens, sf.struct(*fields))


def _state_columns(arity: int, valid: Column) -> list[Column]:
    bounds = [sf.col(_FROM), sf.col(_TO), valid]
    names = positional(arity + 3)[arity:]
    return [*columns_at(arity), *(column.alias(name) for column, name in zip(bounds, names, strict=True))]


def _extreme(function: Callable[..., Column], bounds: Sequence[Emitted]) -> Column | None:
    values = [one.value for one in bounds]
    if not values:
        return None
    return values[0] if len(values) == 1 else function(*values)


def _all_present(bounds: Sequence[Emitted]) -> Column:
    present = sf.lit(True)
    for one in bounds:
        present = present & one.value.isNotNull()
    return present


def _time(value: int) -> Column:
    return sf.lit(value).cast("bigint")
