"""What is computed of much in portions: memory is theirs, and a portion of which too much is made is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.budget import Budget, budget_of
from mz_dagster.compute.local.declined import TooManyMade
from mz_dagster.compute.placement.choice import placed_from_start
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.walk import portions
from mz_dagster.compute.walk.local_plans import LocalContents
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT4, INT8, TEXT, Column, RelationType, numeric
from mz_dagster.storage.arrow_schema import update_schema, update_table
from mz_dagster.storage.consolidation import summed
from tests.budgets import SetBudget
from tests.growth import exponent, peak

FACTS = RelationType((Column("k", INT8, False), Column("n", INT8, False)))
TAKEN = RelationType(FACTS.columns[:1])
AROUND = RelationType((Column("k", INT8, False), *(Column(f"t{i}", TEXT, False) for i in range(6))))


def no_spark() -> Any:
    raise AssertionError("this needs no Spark")


def table(of: RelationType, columns: list[pa.Array], time: int = 0) -> pa.Table:
    rows = len(columns[0])
    meta = [pa.array(np.full(rows, time)), pa.array(np.ones(rows, np.int64)), pa.nulls(rows, pa.string())]
    return pa.Table.from_arrays([*columns, *meta], schema=update_schema(of.columns))


def facts_and_around() -> DeltaJoin:
    """Returns the facts joined with what is around them."""
    joined = RelationType((*FACTS.columns, *AROUND.columns))
    inputs = ReadCollection(GlobalId("facts"), FACTS, "facts"), ReadCollection(GlobalId("around"), AROUND, "around")
    return DeltaJoin(inputs, ((ColumnRef(0, INT8), ColumnRef(2, INT8)),), ((1,), (0,)), joined)


def summed_by_text() -> Physical:
    """Returns the sum of the facts by a column of what is around them."""
    join = facts_and_around()
    joined = join.relation_type
    columns = (joined.columns[3], joined.columns[1])
    row = Linear(join, MapFilterProject(joined.arity, (), (3, 1)), RelationType(columns))
    return Accumulate(row, 1, RelationType((columns[0], Column("rows", INT8, False), Column("sum", INT8, False))))


@pytest.mark.parametrize("since", [0, 5])
def test_what_is_joined_takes_the_memory_of_a_portion(since: int) -> None:
    """Also where all came after the first time, as it does where files are loaded into what has just been made."""
    around = table(AROUND, [pa.array(range(100)), *(pa.array([f"text {n}" * 5 for n in range(100)]),) * 6])

    def memory(rows: int) -> float:
        numbers = np.arange(rows)
        read = {"facts": table(FACTS, [pa.array(numbers % 100), pa.array(numbers)], since), "around": around}

        def content(one: ReadCollection, *_: object) -> list[pa.Table]:
            return [read[one.id]]

        contents = LocalContents(SparkUse(no_spark), lambda id: read[id].num_rows, content, 0, 1)
        found: list[pa.Table | None] = []
        most = peak(lambda: found.append(contents.updates(summed_by_text())))
        assert found[0] is not None
        assert sum(found[0].column("c2").to_pylist()) == rows * (rows - 1) // 2
        return most

    sizes = (20_000, 80_000, 320_000)
    with budget_of(Budget(portion_rows=10_000)):
        memory(sizes[0])
        # To hold the facts' times against the first costs what they do themselves.
        assert exponent(memory, sizes, times=1) <= 0.5
    assert exponent(memory, sizes, times=1) > 0.5


@pytest.mark.parametrize("seed", range(4))
def test_groups_of_portions_are_those_of_all_at_once_at_every_time(seed: int) -> None:
    random_ = random.Random(seed)
    of = RelationType((Column("k", INT4), Column("n", INT8, False), Column("x", numeric(20), False)))
    state = RelationType((of.columns[0], Column("rows", INT8, False), *of.columns[1:]))
    rows = [
        ((random_.choice([None, 1, 2, 3]), random_.randrange(-5, 6), Decimal(random_.randrange(-9, 10)).scaleb(-20)),
         random_.choice([7, 7, 8, 9, 12]), random_.choice([1, 1, 2, -1]))
        for _ in range(random_.choice([60, 400]))
    ]  # fmt: skip
    frame = update_table(of.columns, rows).rename_columns(["c0", "c1", "c2", "mz_timestamp", "mz_diff", "mz_error"])
    errors = frame.slice(0, 3).set_column(5, frame.schema.field(5), pa.array(["22012 division by zero"] * 3))
    read = pa.concat_tables([frame, errors])
    plan = Accumulate(ReadCollection(GlobalId("facts"), of, "facts"), random_.choice([0, 1]), state)
    if plan.key_arity == 0:
        read = read.drop_columns("c0").rename_columns(["c0", "c1", "mz_timestamp", "mz_diff", "mz_error"])
        below = RelationType(of.columns[1:])
        plan = Accumulate(ReadCollection(GlobalId("facts"), below, "facts"), 0, RelationType(state.columns[1:]))

    def content() -> list[Any]:
        contents = LocalContents(SparkUse(no_spark), lambda id: len(read), lambda *_: [read], 7, 20)
        found = contents.updates(plan)
        assert found is not None
        return sorted(map(repr, summed(found).to_pylist()))

    whole = content()
    for portion in (7, 50):
        with budget_of(Budget(portion_rows=portion)):
            assert content() == whole


def test_many_groups_are_added_up_a_share_at_a_time() -> None:
    """To add up all takes memory for more than three times what they do themselves."""
    rows, times = 20_000, 20
    state = RelationType((FACTS.columns[0], Column("rows", INT8, False), Column("sum", INT8, False)))
    plan = Accumulate(ReadCollection(GlobalId("facts"), FACTS, "facts"), 1, state)

    def content(*_: object) -> Iterator[pa.Table]:
        for number in range(times):
            numbers = np.arange(number * rows, (number + 1) * rows)
            yield table(FACTS, [pa.array(numbers), pa.array(numbers)])

    contents = LocalContents(SparkUse(no_spark), lambda _: rows * times, content, 0, 1)
    found: list[pa.Table | None] = []
    with budget_of(Budget(portion_rows=rows)):
        most = peak(lambda: found.append(contents.updates(plan)))
    (made,) = found
    assert made is not None
    assert sorted(made.column("c0").to_pylist()) == list(range(rows * times))
    assert made.column("c2").equals(made.column("c0"))
    assert most < 2.8 * made.nbytes, most / made.nbytes


def texts() -> Physical:
    """Returns the facts' texts: what is around them is joined, and nothing is grouped."""
    join = facts_and_around()
    joined = join.relation_type
    return Linear(join, MapFilterProject(joined.arity, (), (3,)), RelationType((joined.columns[3],)))


@pytest.mark.parametrize(("distinct", "is_here"), [(100, True), (700, True), (990, False), (20_000, False)])
def test_what_becomes_much_is_summed_before_it_is_too_much(
    distinct: int, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, summing = 20_000, list[int]()
    numbers = np.arange(rows)
    read = {
        "facts": table(FACTS, [pa.array(numbers % distinct), pa.array(numbers)]),
        "around": table(AROUND, [pa.array(range(distinct)), *(pa.array([str(n) for n in range(distinct)]),) * 6]),
    }

    def counted(frame: pa.Table) -> pa.Table:
        summing.append(len(frame))
        return summed(frame)

    monkeypatch.setattr(portions, "summed", counted)
    contents = LocalContents(SparkUse(no_spark), lambda id: read[id].num_rows, lambda one, *_: [read[one.id]], 0, 1)
    with budget_of(Budget(portion_rows=200, frame_rows=1_000)):
        found = contents.updates(texts())
    assert sum(summing) <= (portions._SUMS + 1) * rows
    if not is_here:
        assert found is None
        return
    assert found is not None
    counts: Counter[str] = Counter()
    for text, diff in zip(found.column("c0").to_pylist(), found.column("mz_diff").to_pylist(), strict=True):
        counts[text] += diff
    assert counts == Counter(str(n) for n in (numbers % distinct).tolist())
    assert summing


def test_what_is_taken_away_leaves_room_for_what_is_made() -> None:
    rows = 2_000
    read = {"facts": table(FACTS, [pa.array(range(rows)), pa.array(range(rows))])}

    def those(least: int, most: int) -> Physical:
        column = ColumnRef(1, INT8)
        within = [("filter", Call("ge_int8", (column, Literal(least, INT8)), BOOL)),
                  ("filter", Call("lt_int8", (column, Literal(most, INT8)), BOOL))]  # fmt: skip
        facts = ReadCollection(GlobalId("facts"), FACTS, "facts")
        return Linear(facts, MapFilterProject(2, tuple(within), (0,)), TAKEN)

    node = UnionAll((those(0, 900), those(900, 1_200), NegateAll(those(0, 300), TAKEN)), TAKEN)
    contents = LocalContents(SparkUse(no_spark), lambda id: read[id].num_rows, lambda one, *_: [read[one.id]], 0, 1)
    with budget_of(Budget(portion_rows=200, frame_rows=1_000)):
        found = contents.updates(node)
    assert found is not None
    assert sorted(summed(found).column("c0").to_pylist()) == list(range(300, 1_200))


@pytest.mark.parametrize(
    ("facts", "around", "is_here", "told"),
    [
        (90, 3, True, "first_times"),
        (4_000, 90, True, "portion_times"),
        (90, 4_000, True, "portion_times"),
        (4_000, 110, False, "first_times"),
        (6_000, 3, False, "portion_times"),
    ],
)
def test_what_goes_by_in_portions_counts_for_its_time_and_not_for_its_memory(
    facts: int, around: int, is_here: bool, told: str
) -> None:
    rows = {GlobalId("facts"): facts, GlobalId("around"): around}
    with budget_of(Budget(evaluated_updates=10, first_times=10, portion_times=500, portion_rows=50)):
        placed = placed_from_start(summed_by_text(), (), rows.__getitem__)
    assert (placed.is_spark, placed.threshold) == (not is_here, f"evaluated_updates * {told}")


def test_portions_have_fewer_rows_where_these_become_wide() -> None:
    node = summed_by_text()
    assert isinstance(node, Accumulate)
    with budget_of(Budget(portion_rows=500_000, portion_cells=900_000)):
        assert portions._rows_at_once(node.input) == 100_000  # of nine columns


@pytest.mark.parametrize("least", [1, 4])
def test_a_portion_of_which_too_much_is_made_is_cut_in_two(set_budget: SetBudget, least: int) -> None:
    set_budget(least_portion_rows=least)

    def at_most(most: int, part: pa.Table) -> pa.Table:
        if len(part) > most:
            raise TooManyMade("too many")
        return part

    whole = pa.table({"n": range(11)})
    parts = list(portions._in_parts(partial(at_most, 4), whole))
    assert pa.concat_tables(parts).equals(whole)
    assert max(map(len, parts)) <= 4
    if least == 4:
        with pytest.raises(TooManyMade):
            list(portions._in_parts(partial(at_most, 1), whole))
