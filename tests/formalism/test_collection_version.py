"""Laws of collection versions (items 21 to 24 and 34 to 36)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import EMPTY, CollectionVersion, NegativeMultiplicity, Update, diff

from .orders import TOTAL, Updates, law

versions = st.dictionaries(st.sampled_from("abcd"), st.integers(-3, 3)).map(CollectionVersion)
histories = TOTAL.histories()


@law
@given(counts=st.dictionaries(st.sampled_from("abcd"), st.integers(-3, 3)))
def test_multiplicity_is_what_was_given(counts: dict[str, int]) -> None:
    """Items 21 and 22: a version is a map of data to multiplicity, 0 where it has no entry."""
    version = CollectionVersion(counts)
    assert all(version.multiplicity(data) == counts.get(data, 0) for data in "abcde")
    assert 0 not in version.multiplicities.values()


def test_version_is_a_value_that_nobody_can_alter() -> None:
    """Item 21: neither through the mapping it was made of, nor through its own."""
    counts = {"a": 1, "b": 0}
    version = CollectionVersion(counts)
    counts["a"] = 7
    assert version == CollectionVersion({"a": 1})
    assert hash(version) == hash(CollectionVersion({"a": 1}))
    assert not hasattr(version.multiplicities, "__setitem__")


@law
@given(data=st.lists(st.sampled_from("abcd")))
def test_contents_of_a_multiset_are_what_it_was_made_of(data: list[str]) -> None:
    """Item 21: each piece of data occurs as often as its multiplicity."""
    assert Counter(CollectionVersion.of(*data).contents()) == Counter(data)


def test_contents_never_show_a_negative_multiplicity() -> None:
    """Item 23: multiplicities may be negative, but a user does not see them."""
    version = CollectionVersion({"a": 1, "b": -2})
    assert version.multiplicity("b") == -2
    with pytest.raises(NegativeMultiplicity) as refused:
        next(version.contents())
    assert (refused.value.data, refused.value.multiplicity) == ("b", -2)


def test_empty_version_has_nothing() -> None:
    """Item 24: cv0."""
    assert CollectionVersion({}) == EMPTY == CollectionVersion.of()
    assert EMPTY.multiplicity("a") == 0
    assert list(EMPTY.contents()) == []


@law
@given(version=versions, data=st.sampled_from("abcd"), by=st.integers(-3, 3))
def test_apply_adds_diff_to_multiplicity(version: CollectionVersion[str], data: str, by: int) -> None:
    """Item 34: of the update's data by its diff, and of no other data."""
    after = version.apply([Update(data, 1, by)])
    for other in "abcd":
        assert after.multiplicity(other) == version.multiplicity(other) + (by if other == data else 0)


@law
@given(version=versions, history=histories, data=st.data())
def test_apply_is_independent_of_order(version: CollectionVersion[str], history: Updates, data: st.DataObject) -> None:
    """Item 35: however the updates are ordered and split, the outcome is one."""
    shuffled = data.draw(st.permutations(history))
    split = data.draw(st.integers(0, len(history)))
    assert version.apply(history) == version.apply(shuffled[:split]).apply(shuffled[split:])


@law
@given(before=versions, after=versions)
def test_diff_applied_to_before_gives_after(before: CollectionVersion[str], after: CollectionVersion[str]) -> None:
    """Item 36: apply(cv1, diff(t, cv1, cv2)) = cv2, and all updates are at t."""
    updates = diff(3, before, after)
    assert before.apply(updates) == after
    assert {update.time for update in updates} <= {3}


@law
@given(before=versions, after=versions)
def test_diff_is_minimal(before: CollectionVersion[str], after: CollectionVersion[str]) -> None:
    """Item 36: one update for each piece of data that differs, none of diff 0, none else."""
    updates = diff(3, before, after)
    differing = {data for data in "abcd" if before.multiplicity(data) != after.multiplicity(data)}
    assert sorted(update.data for update in updates) == sorted(differing)
    assert all(update.diff != 0 for update in updates)
