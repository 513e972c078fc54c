"""Temporal filters with every kind of bound, and random rows for them."""

from __future__ import annotations

import random

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection, TemporalState
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, MZ_TIMESTAMP, Column, RelationType
from tests.compute.reference import LAST

#: What filters read: four numbers that bounds are made of.
BOUNDED = RelationType((Column("case", INT4), *(Column(f"n{i}", INT8) for i in range(4))))
#: What their states hold.
VALID = RelationType((
    *BOUNDED.columns, Column("valid_from", MZ_TIMESTAMP), Column("valid_to", MZ_TIMESTAMP), Column("valid", BOOL),
))  # fmt: skip
_USUAL = [None, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 11, 12, 14, LAST]


def _time(position: int) -> Scalar:
    return Call("cast_int8_to_mz_timestamp", (ColumnRef(position, INT8),), MZ_TIMESTAMP)


def _after(position: int) -> Scalar:
    return Call("step_mz_timestamp", (_time(position),), MZ_TIMESTAMP)


def _filter(lower: tuple[Scalar, ...], upper: tuple[Scalar, ...]) -> TemporalState:
    return TemporalState(ReadCollection(GlobalId("bounded"), BOUNDED, "bounded"), lower, upper, VALID)


TEMPORAL_SHAPES = {
    "an interval": _filter((_time(1),), (_time(3),)),
    "several bounds": _filter((_time(1), _time(2)), (_time(3), _after(4))),
    "no end": _filter((_after(1),), ()),
    "no beginning": _filter((), (_time(3),)),
}


def random_bounds(source: random.Random) -> list[int | None]:
    """Returns four numbers: absent, of any time, past all, or of no time at all."""
    numbers = [source.choice(_USUAL) for _ in range(4)]
    if source.random() < 0.1:
        numbers[source.randrange(4)] = -1
    return numbers
