"""Sums per key are exact whatever their size: in 64 bits, in more, and across the border between the two."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.compute.local.sums import Sums, added_totals, summed_by_key, totals_by_key
from mz_dagster.errors import InternalError
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, numeric
from mz_dagster.storage.arrow_schema import update_schema, update_table
from mz_dagster.storage.shards import MultiplicityOverflow

KEYS = [Column("c0", TEXT), Column("c1", INT4)]
GIVEN = [*KEYS, Column("c2", INT8), Column("c3", numeric(2))]
STATE = [*KEYS, Column("c2", INT8), Column("c3", INT8), Column("c4", numeric(2))]
SUMS = Sums(len(KEYS), update_schema(STATE))


def amount(units: int) -> Decimal:
    return Decimal(units).scaleb(-2, Context(prec=60))


def updates(chosen: random.Random, rows: int, most: int) -> list[tuple[Any, ...]]:
    found = []
    for _ in range(rows):
        key = chosen.choice([None, "a", "b"]), chosen.choice([None, 1, 2])
        cells = chosen.choice([0, 1, -(2**31)]), amount(chosen.choice([0, -3, most, -most, chosen.randrange(most)]))
        found.append(((*key, *cells), chosen.randrange(5), chosen.choice([1, 1, -1, 2])))
    return found


def reference(given: list[tuple[Any, ...]], held: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Returns the state's updates as the operator defines them."""
    totals: defaultdict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (*key, rows, count, sum_), _, diff in held:
        for place, cell in enumerate((rows, count, int(sum_.scaleb(2, Context(prec=60))))):
            totals[tuple(key)][place] += diff * cell
    found: Counter[tuple[Any, ...]] = Counter()
    for key in {data[:2] for data, _, _ in given}:
        for time in range(5):
            before = list(totals[key])
            for data, at, diff in given:
                if data[:2] == key and at == time:
                    for place, cell in enumerate((1, data[2], int(data[3].scaleb(2, Context(prec=60))))):
                        totals[key][place] += diff * cell
            if before != totals[key]:
                for sign, (rows, count, sum_) in ((-1, before), (1, totals[key])):
                    if rows or count or sum_:
                        found[(*key, rows, count, amount(sum_), time, sign)] += 1
    return found


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns[:-1]), strict=True))


@pytest.mark.parametrize("most", [100, 10**16, 2**63 - 1, 2**63, 10**30])
@pytest.mark.parametrize("seed", range(6))
def test_sums_are_those_of_the_definition_whatever_their_size(most: int, seed: int) -> None:
    chosen = random.Random(seed)
    given = updates(chosen, chosen.choice([1, 7, 60]), most)
    held = []
    for key in [(None, None), ("a", 1), ("b", 2), ("c", 3)]:
        held.append(((*key, chosen.randrange(9), 2**40, amount(chosen.choice([0, 5, most]))), 0, 1))
        held.append(((*key, 1, 1, amount(-most)), 0, -1))
    changes, state = update_table(GIVEN, given), update_table(STATE, held)
    # As frames come: in several pieces.
    changes = pa.concat_tables([changes[:3], changes[3:]])
    assert counted(summed_by_key(changes, state, SUMS)) == reference(given, held)


@pytest.mark.parametrize("most", [100, 10**16, 2**63 - 1, 2**63, 10**30])
@pytest.mark.parametrize("seed", range(6))
def test_totals_of_portions_are_those_of_all(most: int, seed: int) -> None:
    chosen = random.Random(seed)
    diffs = (lambda diff: 1) if seed % 2 else int
    given = [(data, 0, diffs(diff)) for data, _, diff in updates(chosen, chosen.choice([1, 7, 1_000]), most)]
    # As much goes as came, of one key.
    given += [(("b", 9, 0, amount(most)), 0, diff) for diff in (1, -1)][: 2 - 2 * (seed % 2)]
    given += [(("b", 9, cell, amount(units)), 0, 1) for cell, units in ((5, -most), (-5, most))]
    changes = update_table(GIVEN, given)
    ends = sorted([0, *(chosen.randrange(len(given) + 1) for _ in range(chosen.randrange(4))), len(given)])
    parts = [totals_by_key(changes[first:end], SUMS, 0) for first, end in pairwise(ends)]
    assert counted(added_totals(parts, SUMS, 0)) == reference(given, [])
    assert counted(added_totals([], SUMS, 0)) == Counter()


def test_what_is_out_of_range_is_told_here() -> None:
    state = update_table(STATE, [])
    most = Decimal(10**38 - 1).scaleb(-2, Context(prec=60))
    summed_by_key(update_table(GIVEN, [(("a", 1, 0, most), 1, 1)]), state, SUMS)
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        summed_by_key(update_table(GIVEN, [(("a", 1, 0, most), 1, 2)]), state, SUMS)
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        summed_by_key(update_table(GIVEN, [(("a", 1, 2**62, most), 1, 2)]), state, SUMS)
    least = summed_by_key(update_table(GIVEN, [(("a", 1, -(2**62), 0), 1, 2)]), state, SUMS)
    assert [row[3] for row in counted(least)] == [-(2**63)]
    half = totals_by_key(update_table(GIVEN, [(("a", 1, 2**62, most), 1, 1)]), SUMS, 1)
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        added_totals([half, half], SUMS, 1)
    with pytest.raises(InternalError, match="NULL"):
        summed_by_key(update_table(GIVEN, [(("a", 1, None, most), 1, 1)]), state, SUMS)
