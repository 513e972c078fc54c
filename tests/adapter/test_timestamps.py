"""Timestamp selection: each constraint of the module's docstring, and the refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.adapter.timestamps import AsOfTime, Isolation, NoValidTimestamp, select_timestamp
from mz_dagster.catalog import CollectionRow
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId

STRICT, SERIALIZABLE = Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE


def row(since: int | None, upper: int) -> CollectionRow:
    frontier = Antichain.empty(EPOCH_MS) if since is None else Antichain.of(EPOCH_MS, since)
    return CollectionRow(
        GlobalId("u1"), "t", frontier, Antichain.of(EPOCH_MS, upper), (), frozenset(), "shards/u1", None
    )


rows = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: row(pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=4,
)


@given(rows, st.integers(0, 100))
def test_a_read_is_valid_and_sees_every_acknowledged_write(inputs: list[CollectionRow], read_ts: int) -> None:
    chosen = select_timestamp(inputs, read_ts, STRICT)
    assert all(one.since.less_equal(chosen) for one in inputs)
    assert chosen >= read_ts
    assert chosen in (read_ts, *(one.since.only for one in inputs))  # the least such


@given(rows, st.integers(0, 100))
def test_a_serializable_read_is_complete_where_it_can_be(inputs: list[CollectionRow], read_ts: int) -> None:
    chosen = select_timestamp(inputs, read_ts, SERIALIZABLE)
    valid = max(one.since.only for one in inputs)
    complete = min(one.upper.only for one in inputs) - 1
    assert chosen == max(valid, complete)


@given(rows, st.integers(0, 100))
def test_what_can_be_closed_at_once_holds_no_serializable_read_back(inputs: list[CollectionRow], read_ts: int) -> None:
    table = replace(row(0, 1), id=GlobalId("u2"))
    without = select_timestamp(inputs, read_ts, SERIALIZABLE)
    assert select_timestamp([*inputs, table], read_ts, SERIALIZABLE, closable={table.id}) == without
    assert select_timestamp([table], read_ts, SERIALIZABLE, closable={table.id}) == read_ts


@given(rows, st.integers(0, 100), st.integers(0, 200))
def test_as_of_is_taken_at_its_word_or_refused(inputs: list[CollectionRow], read_ts: int, time: int) -> None:
    valid = max(one.since.only for one in inputs)
    known = max(read_ts, valid, min(one.upper.only for one in inputs) - 1)
    if valid <= time <= known:
        assert select_timestamp(inputs, read_ts, STRICT, AsOfTime(time)) == time
    else:
        with pytest.raises(NoValidTimestamp, match="could not find a valid timestamp"):
            select_timestamp(inputs, read_ts, STRICT, AsOfTime(time))


def test_as_of_at_least_is_a_lower_bound() -> None:
    assert select_timestamp([row(0, 9)], 5, STRICT, AsOfTime(3, at_least=True)) == 5
    assert select_timestamp([row(0, 9)], 5, STRICT, AsOfTime(7, at_least=True)) == 7
    with pytest.raises(NoValidTimestamp, match="not known yet"):
        select_timestamp([row(0, 9)], 5, STRICT, AsOfTime(30, at_least=True))


def test_a_dropped_collection_cannot_be_read() -> None:
    with pytest.raises(NoValidTimestamp, match="was dropped"):
        select_timestamp([row(None, 9)], 5, STRICT)
