"""Which terms of a delta join are planned: those in which updates may meet, told by the times of each input's."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.compute.algebra.delta_terms import meeting_terms


def rows(times: list[list[int]], term: int) -> bool:
    """Returns whether some updates meet in a term: those before it at its time or earlier, those after it earlier."""
    return any(
        all(t <= chosen[term] if j < term else t < chosen[term] for j, t in enumerate(chosen) if j != term)
        for chosen in product(*times)
    )


@given(st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=2, max_size=4))
def test_a_term_in_which_updates_meet_is_planned(times: list[list[int]]) -> None:
    planned = meeting_terms([(min(one), max(one)) if one else None for one in times])
    assert {term for term in range(len(times)) if rows(times, term)} <= planned


@given(st.lists(st.integers(0, 4), min_size=2, max_size=5))
def test_of_inputs_that_changed_once_only_those_terms_are_planned_that_have_rows(times: list[int]) -> None:
    planned = meeting_terms([(time, time) for time in times])
    assert planned == {term for term in range(len(times)) if rows([[time] for time in times], term)}
    assert len(planned) == 1
