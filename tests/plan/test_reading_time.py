"""What a plan says of the time at which it is read is found in time linear in the plan. Cost is counted in calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.reading_time import at_time, depends_on_time, unmaintainable, with_position
from mz_dagster.plan.relation import Filter, Get, Negate, Relation, Union
from mz_dagster.scalars.scalar import Call, Literal, now
from mz_dagster.scalars.types import BOOL, INT4, MZ_TIMESTAMP, Column, RelationType
from tests.growth import calls, exponent

T = Get(GlobalId("u1"), RelationType((Column("a", INT4),)))


def _bounded(n: int) -> Relation:
    """Returns a filter that compares `mz_now()` so many times."""
    bounds = (Literal(1_000 + i, MZ_TIMESTAMP) for i in range(n))
    return Filter(T, tuple(Call("lt_mz_timestamp", (now(7), one), BOOL, False) for one in bounds))


def _doubled(n: int, one: Relation = T) -> Relation:
    """Returns a plan with 2^n ways through it."""
    for _ in range(n):
        one = Union((one, Negate(one)))
    return one


ASKED: dict[str, Callable[[Relation], object]] = {
    "depends_on_time": depends_on_time,
    "unmaintainable": unmaintainable,
    "with_position": partial(with_position, position=3),
    "at_time": partial(at_time, time=5),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_plan_says_of_time_takes_time_by_its_size(asked: str) -> None:
    for made, sizes in ((_bounded, (250, 1_000, 4_000)), (_doubled, (20, 40, 80))):
        assert exponent(lambda n, made=made: calls(partial(ASKED[asked], made(n))), sizes, times=1) <= 1.1  # type: ignore[misc]


def test_of_several_reasons_not_to_be_maintained_the_lowest_is_told() -> None:
    early = Filter(T, (Call("ne_mz_timestamp", (now(7), Literal(1, MZ_TIMESTAMP)), BOOL, False),))
    late = Filter(_doubled(30, early), (Call("ne_mz_timestamp", (now(9), Literal(1, MZ_TIMESTAMP)), BOOL, False),))
    found = unmaintainable(late)
    assert found is not None
    assert found.position == 7
