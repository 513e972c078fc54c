"""The versions of groups that change: the rows of each before an interval and at each time that touches it.

All versions of all groups are one table of rows as codes, so that what is computed of groups is computed of all
versions of all of them at once; what a version's result and the one before differ in are the updates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, by_position, positional
from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.error_part import error_updates, failed
from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.multiplicities import totals
from mz_dagster.functions.errors import NEGATIVE_MULTIPLICITY
from mz_dagster.plan.physical import Staged
from mz_dagster.storage.arrow_schema import update_schema, without_errors
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.row_numbers import compact, firsts, numbered, order_by, ranked, whole

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Versions:
    """The rows of all versions of the partitions that change.

    Attributes:
        version: Of each row: the number of its version.
        row: Which of the coded rows it is.
        copies: How often it is there, at least once.
        retracted: Of each version: the number of the touch, a partition's next time, at which its result goes; -1 for
            a partition's last.
        asserted: At which it comes; -1 for its first, which is there before.
        times: Of each touch: its time.
        negative: Of each row of a version whose multiplicity is negative: which version that is.
    """

    version: Integers
    row: Integers
    copies: Integers
    retracted: Integers
    asserted: Integers
    times: Integers
    negative: Integers

    @classmethod
    def of(cls, rows: CodedRows, group: tuple[int, ...], times: Integers, diffs: Integers) -> Versions:
        """Returns the versions that changes make, which are the first rows, of what is held, the others.

        Raises:
            Declined: There are very many rows.
            MultiplicityOverflow: There are more copies of one than can be counted.
        """
        count = len(times)
        partitions, _ = compact(numbered([pa.array(rows.compared[position]) for position in group], rows.size)[0])
        kept = np.flatnonzero(np.append(np.full(count, True), np.isin(partitions[count:], partitions[:count])))
        partitions, partition_count = compact(partitions[kept])
        diffs, row = diffs[kept], _whole_rows(rows)[kept]
        # A touch is a partition and a time at which it changes.
        order = order_by([partitions[:count], times])
        by_partition, by_time = partitions[:count][order], times[order]
        is_next = np.append(True, (by_partition[1:] != by_partition[:-1]) | (by_time[1:] != by_time[:-1]))
        touch = np.empty(count, np.int64)
        touch[order] = np.cumsum(is_next) - 1
        touched = by_partition[is_next]
        touches = np.bincount(touched, minlength=partition_count)
        first_touch = np.cumsum(touches) - touches
        # Each partition has a version more than touches: that from before.
        first_version = first_touch + np.arange(partition_count)
        begins = np.append(touch + touched[touch] + 1, first_version[partitions[count:]])
        ends = first_version[partitions] + touches[partitions] + 1
        spans = ends - begins
        if int(spans.sum()) > budget().versioned_rows:
            raise Declined("there are many rows in the versions of what is touched")
        version = np.repeat(begins - (np.cumsum(spans) - spans), spans) + np.arange(int(spans.sum()))
        numbers = version * rows.size + np.repeat(row, spans)
        distinct, place = ranked(numbers)
        copies = totals(place, np.repeat(diffs, spans))
        negative = distinct[copies < 0] // rows.size
        distinct, copies = distinct[copies > 0], copies[copies > 0]
        is_first, last = np.zeros(len(touched) + partition_count, np.bool_), first_version + touches
        is_first[first_version] = True
        after = np.arange(len(is_first)) - np.cumsum(is_first)
        retracted = after + 1
        retracted[last] = -1
        asserted = np.where(is_first, -1, after)
        version, row = distinct // rows.size, distinct % rows.size
        return cls(version, row, copies, retracted, asserted, by_time[is_next], negative)

    @property
    def each(self) -> Versions:
        """The same, each row as often as it is there.

        Raises:
            Declined: There are very many.
        """
        ensure_few_versioned(self.copies)
        version, row = np.repeat(self.version, self.copies), np.repeat(self.row, self.copies)
        return replace(self, version=version, row=row, copies=np.ones_like(row))

    @property
    def errors(self) -> Counter[tuple[int, str]]:
        """The errors that rows of negative multiplicities are: by time, how many come, less those that go."""
        found: Counter[tuple[int, str]] = Counter()
        for touches, diff in ((self.asserted, 1), (self.retracted, -1)):
            touch = touches[self.negative]
            for time in self.times[touch[touch >= 0]].tolist():
                found[time, NEGATIVE_MULTIPLICITY] += diff
        return found


def ensure_few_versioned(copies: Integers) -> None:
    """Returns if versions in which rows are so often have no more rows than are looked at in this process.

    Raises:
        Declined: They have.
    """
    most = budget().versioned_rows
    if copies.max(initial=0) > most or int(copies.sum()) > most:
        raise Declined("there are many rows in the versions of what is touched")


def _whole_rows(rows: CodedRows) -> Integers:
    """Returns for each row the first that is equal to it."""
    numbers, _ = compact(numbered([pa.array(one) for one in rows.columns], rows.size)[0])
    return firsts(numbers)[numbers]


def versioned_updates(
    changes: pa.Table,
    node: Staged,
    lookup: StateLookup,
    results: Callable[[CodedRows, Versions, pa.Schema], pa.Table],
) -> pa.Table:
    """Returns the updates of a state of which each version of a group is computed whole: of both its levels.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        node: The operator, whose state has one level below the last, in one bucket.
        lookup: Finds rows of the state by values of its columns.
        results: Returns the updates of the last level, of the state's schema.

    Returns:
        The state's updates in the same form, consolidated in the data part.

    Raises:
        Declined: There are very many rows, or `results` says so.
    """
    schema = update_schema(by_position(node.relation_type))
    good = without_errors(changes)
    if not good.num_rows:
        return failed(changes, schema)
    rows, versions = _versions_of(good, node, lookup)
    parts = [] if node.once else [_first_level(good, schema)]
    errors = error_updates(versions.errors, schema)
    return pa.concat_tables([*parts, results(rows, versions, schema), errors, failed(changes, schema)])


def _versions_of(good: pa.Table, node: Staged, lookup: StateLookup) -> tuple[CodedRows, Versions]:
    """Returns the rows of the groups that change, coded, and the versions that they are in.

    Args:
        good: Changes of the input's data part, at least one: columns `c0`, `c1`, ..., then time, diff and error.
        node: The operator, whose state has one level below the last, in one bucket.
        lookup: Returns updates of the state before the interval, and perhaps others: told values of its columns, by
            their positions.

    Raises:
        Declined: There are very many rows.
    """
    names = list(positional(node.input.relation_type.arity))
    keys = pa.table({"level": pa.array([0] * len(good), pa.int32()), "bucket": pa.array([0] * len(good), pa.int64())})
    asked = {0: keys.column(0), 1: keys.column(1), **{2 + k: good.column(f"c{k}") for k in node.group}}
    state = lookup(asked)
    state = state.filter(pc.and_(pc.is_null(state.column(ERROR)), pc.equal(state.column("c0"), 0)))
    held = state.select([f"c{2 + place}" for place in range(len(names))]).rename_columns(names)
    rows = CodedRows(pa.concat_tables([good.select(names), held]), len(good) + len(held))
    diffs = np.concatenate([integers(whole(one.column(DIFF))) for one in (good, state)])
    return rows, Versions.of(rows, node.group, integers(whole(good.column(TIME))), diffs)


def _first_level(changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the input's changes in its data part as those of the state's first level, consolidated."""
    found = summed(changes)
    count, names = len(found), changes.column_names[:-3]
    place = [pa.array(np.zeros(count, np.int32)), pa.array(np.zeros(count, np.int64))]
    results = [pa.nulls(count, field.type) for field in list(schema)[2 + len(names) : -3]]
    data = [found.column(name) for name in changes.column_names]
    return pa.Table.from_arrays([*place, *data[: len(names)], *results, *data[len(names) :]], schema=schema)
