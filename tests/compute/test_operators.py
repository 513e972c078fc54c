"""The operators of this process keep the law that `test_render` holds Spark's to, over the same plans and histories.

That the plans (`shapes`) have every operator, in all the ways in which it is computed, is held here, too.

The updates of a plan, summed over any split of time, are the plan's content recomputed from scratch; so are all its
updates from the beginning. What this process does not compute is known before it is asked, and no Spark is there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mz_dagster.budget import Budget, EngineSetting, budget, budget_of, engine_of
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.placement.choice import why_spark
from mz_dagster.compute.placement.portioned import held_whole
from mz_dagster.compute.placement.supported import unsupported, unsupported_scalar
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.walk.local_plans import LocalContents, LocalUpdates
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    DeltaJoin,
    Linear,
    MapFilterProject,
    OperatorKind,
    Physical,
    ReadCollection,
    Staged,
    StageFunction,
    StateOperator,
    operator_kind,
    physical_inputs,
)
from mz_dagster.scalars.scalar import Call, ColumnRef
from mz_dagster.scalars.types import FLOAT8, Column, RelationType
from mz_dagster.storage.arrow_schema import update_schema, update_table
from tests.compute.contents import Row, Update, at, is_error
from tests.compute.reference import Known
from tests.compute.shapes import (
    LOOKED_UP,
    ONCE,
    SHAPES,
    TIMES,
    TYPES,
    check_content,
    compacted,
    nodes,
    random_histories,
    random_split,
    stored,
)
from tests.compute.staged_reference import identical


class Histories:
    """The histories of all collections, as this process reads them.

    Args:
        updates: Of each collection.
        source: Decides what else a lookup finds, and what is compacted.
        types: Of each collection.
    """

    def __init__(
        self,
        updates: Mapping[GlobalId, Sequence[Update]],
        source: random.Random,
        types: Mapping[GlobalId, RelationType] = TYPES,
    ) -> None:
        self.updates = updates
        self._source = source
        self._types = types

    def table(self, id: GlobalId, lower: int | None, upper: int) -> pa.Table:
        kept = [one for one in self.updates[id] if (lower is None or lower <= one[1]) and one[1] < upper]
        return update_table(self._types[id].columns, stored(kept, self._types[id].arity))

    def skips_all(self, *_: object) -> bool:
        return False

    def read_table(self, id: GlobalId, lower: int | None, upper: int, used: Collection[int], *_: object) -> pa.Table:
        return unused_are_null(self.table(id, lower, upper), self._types[id], used)

    def find_table(self, id: GlobalId, upper: int, keys: LookupKeys, used: Collection[int], *_: object) -> pa.Table:
        whole = self.table(id, None, upper)
        wanted = set(map(identical, zip(*(column.to_pylist() for column in keys.table.columns), strict=True)))
        met = map(identical, zip(*(whole.column(position).to_pylist() for position in keys.columns), strict=True))
        # A lookup may find more than was asked for.
        kept = [one in wanted or self._source.random() < 0.1 for one in met]
        return unused_are_null(whole.filter(pa.array(kept, pa.bool_())), self._types[id], used)

    def common_table(self, *_: object) -> None:
        return None

    def changes_by_itself(self, *_: object) -> bool:
        return True

    def new_rows(self, id: GlobalId, lower: int, upper: int) -> int:
        return len(self.table(id, lower, upper))

    def kept_table(
        self,
        key: object,
        id: GlobalId,
        lower: int,
        upper: int,
        make: Callable[[int | None], pa.Table],
        compacted: Callable[[pa.Table, int], pa.Table],
    ) -> pa.Table:
        middle = self._source.randrange(lower + 1)
        before = make(None).filter(pc.less(make(None).column("mz_timestamp"), middle))
        return pa.concat_tables([compacted(before, lower - 1), make(middle)])

    def rows(self, id: GlobalId, upper: int) -> int:
        return len(self.table(id, None, upper))

    def span(self, id: GlobalId, upper: int) -> tuple[int, int] | None:
        times = [time for _, time, _ in self.updates[id] if time < upper]
        return (min(times), max(times)) if times else None


def unused_are_null(table: pa.Table, type_: RelationType, used: Collection[int]) -> pa.Table:
    schema = update_schema(type_.columns)
    columns = [
        pa.nulls(len(table), field.type) if n < type_.arity and n not in used else table.column(n)
        for n, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def no_spark() -> Any:
    raise AssertionError("this needs no Spark")


def told(found: pa.Table) -> list[Update]:
    updates = []
    for *data, time, diff, error in zip(*(column.to_pylist() for column in found.columns), strict=True):
        if error is not None:
            assert data == [None] * len(data), "an update of the error part carries data"
        cells: Row = tuple(tuple(cell) if isinstance(cell, list) else cell for cell in data)
        updates.append((cells if error is None else ("error", error), time, diff))
    return updates


def content(node: Physical, histories: Histories, as_of: int, upper: int) -> list[Update]:
    def rows(id: GlobalId) -> int:
        return histories.rows(id, upper)

    def read(one: ReadCollection, used: Collection[int], at_once: int | None) -> list[pa.Table]:
        found = histories.read_table(one.id, None, upper, used)
        if at_once is None:
            assert one.id in held or rows(one.id) <= budget().portion_rows
            return [found]
        return [found.slice(start, at_once + 1) for start in range(0, max(1, len(found)), at_once + 1)]

    held = held_whole(node, rows)
    contents = LocalContents(SparkUse(no_spark), rows, read, as_of, upper)
    found = contents.updates(node)
    assert found is not None, contents.spark_because
    return told(found)


def lived(node: Physical, histories: Histories, source: random.Random, as_of: int) -> list[Update]:
    """Returns the content of a plan at a time, and its updates from then on, in one interval or several."""
    found = content(node, histories, as_of, as_of + 1)
    own = ReadCollection(GlobalId("own"), node.relation_type, "own")
    for lower, upper in random_split(source, as_of + 1):
        # What a state holds is itself, of which some times may have been compacted.
        held = compacted([one for one in found if not is_error(one[0])], source.randrange(lower))
        reads = Histories({**histories.updates, own.id: held}, source, {**TYPES, own.id: node.relation_type})
        plans = LocalUpdates(SparkUse(no_spark), cast(StepReads, reads), lower, upper, own)
        updates = plans.updates(node)
        assert updates is not None, plans.spark_because
        new = told(updates)
        assert all(lower <= time < upper for _, time, _ in new)
        found += new
    return found


WITH_UPDATES = {**SHAPES, **LOOKED_UP}
#: Of two ways, each shape goes one; both are deep.
ALTERNATING = [
    (shape, is_other, () if number % 2 == is_other else pytest.mark.deep)
    for number, shape in enumerate(WITH_UPDATES)
    for is_other in (False, True)
]


@pytest.mark.parametrize(
    ("shape", "is_looked_up"),
    [
        pytest.param(shape, way, id=f"{shape}-{'looked up by key' if way else 'read whole'}", marks=marks)
        for shape, way, marks in ALTERNATING
    ],
)
def test_updates_sum_to_the_recomputed_content(shape: str, *, is_looked_up: bool) -> None:
    node, source = WITH_UPDATES[shape](), random.Random(len(shape))
    assert not why_spark(node)
    histories = Histories(random_histories(seed=7), source)
    as_of = source.randrange(TIMES - 1)
    with budget_of(Budget(whole_rows=0) if is_looked_up else Budget()):
        found = lived(node, histories, source, as_of)
    for time in range(as_of, TIMES):
        check_content(node, at(found, time), Known(histories.updates, time, as_of))


@pytest.mark.parametrize(
    ("shape", "in_portions"),
    [
        pytest.param(shape, not way, id=f"{shape}-{'at once' if way else 'in portions'}", marks=marks)
        for shape, way, marks in ALTERNATING
    ],
)
def test_all_updates_from_the_beginning_are_the_recomputed_contents(
    shape: str, in_portions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(portion_rows=5, least_portion_rows=1, joined_rows=300, made_rows=10) if in_portions else Budget()
    node = WITH_UPDATES[shape]()
    histories = Histories(random_histories(seed=8), random.Random(0))
    with budget_of(budget):
        found = content(node, histories, 3, TIMES)
    for time in range(3, TIMES):
        check_content(node, at(found, time), Known(histories.updates, time, 3))


@pytest.mark.parametrize("shape", ONCE)
def test_what_is_computed_once_is_the_recomputed_content(shape: str) -> None:
    node, histories = ONCE[shape](), Histories(random_histories(seed=9), random.Random(0))
    for as_of in (2, TIMES - 1):
        found = content(node, histories, as_of, as_of + 1)
        check_content(node, at(found, as_of), Known(histories.updates, as_of, as_of))


def kinds(plans: Iterable[Physical]) -> set[type]:
    """Returns the classes of some plans' nodes."""
    return {type(node) for plan in plans for node in nodes(plan)}


def test_every_operator_is_in_a_shape() -> None:
    """With updates; and in a plan that is computed once, on and below others."""
    with_updates = [shape() for shape in SHAPES.values()]
    assert kinds(with_updates) == set(get_args(Physical))
    states = {type(plan) for plan in with_updates} & set(get_args(StateOperator))
    assert states == set(get_args(StateOperator)), "a state is the root of its plan"
    once = [shape() for shape in ONCE.values()]
    assert kinds(one for plan in once for one in physical_inputs(plan)) >= {*get_args(StateOperator), DeltaJoin}


def test_every_function_of_a_stage_is_in_a_shape() -> None:
    for shapes in (SHAPES, ONCE):
        staged = [node for shape in shapes.values() for node in nodes(shape()) if isinstance(node, Staged)]
        assert {type(node.function) for node in staged} == set(get_args(StageFunction))


def test_every_linear_operator_is_looked_up_in_a_shape() -> None:
    """What joins look up are histories of what is linear."""
    below = [one for shape in LOOKED_UP.values() for one in physical_inputs(shape())]
    linear = {
        type(node) for shape in SHAPES.values() for node in nodes(shape()) if operator_kind(node) is OperatorKind.LINEAR
    }
    assert kinds(below) == linear


def test_what_has_a_scalar_of_spark_is_known_before() -> None:
    """The C library's last digit is Spark's workers' business, unless all is computed here."""
    read = ReadCollection(GlobalId("in"), RelationType((Column("x", FLOAT8),)), "in")
    row = MapFilterProject(1, (("map", Call("exp_float8", (ColumnRef(0, FLOAT8),), FLOAT8)),), (1,))
    node = Linear(read, row, RelationType((Column("y", FLOAT8),)))
    assert why_spark(node) == unsupported_scalar(node) != ""
    assert not unsupported(node)
    with engine_of(EngineSetting.LOCAL):
        assert not why_spark(node)
