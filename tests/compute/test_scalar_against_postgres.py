"""Every function of the table returns what PostgreSQL 15 returns, value or error, for edge values and NULL.

The examples stand in `tests/compute/examples`, by area. Their arguments are drawn from pools of edge values; all calls
are evaluated over one local relation, a few dozen expressions a job; most of those that Spark's workers would only
call, in this process. A function that no example exercises fails a test.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.compute.spark.expressions import Emitter
from mz_dagster.compute.spark.expressions.emitted import LENIENT, STRICT
from mz_dagster.compute.spark.expressions.emitter import _LAZY
from mz_dagster.compute.spark.expressions.pure import in_python, plain_type, restored
from mz_dagster.functions import FUNCTIONS, INTERNAL_FUNCTIONS, Cast, Failure, cast, literal_of
from mz_dagster.functions.errors import NUMERIC_UNDERFLOW
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.numbers.numerics import LEAST_DIGITS
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, rewrite, walk
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    ScalarType,
    numeric,
)
from mz_dagster.sql.array_forms import is_quantifiable
from mz_dagster.storage.plain_cells import plain_cells, stored_cells
from tests.compute.examples import AREAS, POOLS, Example, quote, sample
from tests.postgres_server import Postgres

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

#: How many argument tuples each example gets, at most.
ROWS = 60
#: Of the examples that run in Python anyway, one in so many is evaluated on Spark's workers.
SAMPLED = 8

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
#: What is compared as our own cast to text spells it: Spark's differs.
_SPELLED = (
    *_MOMENTS,
    Kind.TIME,
    Kind.TIMETZ,
    Kind.INTERVAL,
    Kind.UUID,
    Kind.BYTEA,
    Kind.JSON,
    Kind.JSONB,
    Kind.ARRAY,
    Kind.RECORD,
    Kind.DIMENSIONED,
)


def arguments_of(pools: Sequence[str], seed: int, random_rows: int = ROWS) -> list[tuple[str | None, ...]]:
    """Returns tuples of texts: everything if it is little, else a sample, each value at least once."""
    source = random.Random(seed)
    texts: list[list[str | None]] = [[*POOLS[pool][1], None] for pool in pools]
    everything = math.prod(len(one) for one in texts)
    if everything <= ROWS:
        return list(itertools.product(*texts))
    rows = {tuple(source.choice(one) for one in texts) for _ in range(random_rows)}
    for position, one in enumerate(texts):
        rows |= {tuple(v if i == position else source.choice(o) for i, o in enumerate(texts)) for v in one}
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def postgres(postgres: Postgres) -> Postgres:
    postgres.run(
        "CREATE FUNCTION error(code text, message text) RETURNS bigint LANGUAGE plpgsql AS"
        " $f$ BEGIN RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message; END $f$;"
    )
    return postgres


def evaluate(
    spark: SparkSession, batch: list[Example], rows: list[list[tuple[str | None, ...]]]
) -> list[list[str | None]]:
    """Returns each example's outcomes, spelled as `Postgres.attempt` does, floats by Python's repr."""
    from pyspark.sql import functions as sf

    ensure_exact(spark)
    height = max(len(one) for one in rows)
    names: list[str] = []
    types: list[ScalarType] = []
    data: list[list[Any]] = []
    for number, (example, own) in enumerate(zip(batch, rows, strict=True)):
        for position, pool in enumerate(example.pools):
            type_ = POOLS[pool][0]
            names.append(f"a{number}_{position}")
            types.append(type_)
            given = [_cell(row[position], type_) for row in own]
            data.append(given + [None] * (height - len(given)))
    # Moments are given as numbers, also those in arrays: Python's know no year 10000.
    schema = ", ".join(f"{name} {plain_type(type_).simpleString()}" for name, type_ in zip(names, types, strict=True))
    frame = spark.createDataFrame([(i, *row) for i, row in enumerate(zip(*data, strict=True))], f"i int, {schema}")
    cells = (restored(sf.col(name), type_).alias(name) for name, type_ in zip(names, types, strict=True))
    frame = frame.select("i", *cells)
    shown: list[tuple[Column, Column]] = []
    # One emitter for all, so that the shared columns of all stand in the same few stages.
    emitter = Emitter([sf.col(name) for name in names])
    offset = 0
    for number, example in enumerate(batch):
        emitted = emitter.emit(moved(_comparable(example.scalar), offset))
        offset += len(example.pools)
        value = emitted.value
        if example.scalar.type.kind not in _FLOATS:
            value = value.cast("string")
        error = sf.lit(None).cast("string") if emitted.error is None else emitted.error
        shown.append((value.alias(f"v{number}"), error.alias(f"e{number}")))
    frame = emitter.stage(frame)
    answers = frame.select("i", *itertools.chain.from_iterable(shown)).collect()
    answers.sort(key=lambda answer: answer[0])
    found: list[list[str | None]] = []
    for number, own in enumerate(rows):
        outcomes = [(answer[1 + 2 * number], answer[2 + 2 * number]) for answer in answers[: len(own)]]
        for value, error in outcomes:
            assert value is None or error is None, f"{batch[number]}: both {value!r} and {error!r}"
        found.append([f"!{error}" if error is not None else None if v is None else f"={v}" for v, error in outcomes])
    return found


def functions_of(example: Example) -> set[str]:
    """Returns the names of all functions in an example; what is no call has one that is none."""
    nodes = walk(example.scalar)
    return {node.function if isinstance(node, Call) else "" for node in nodes if isinstance(node, Call | If)}


def runs_in_python(example: Example) -> bool:
    """Tells what Spark's workers would only call: the outcome is the same here, and needs no job."""
    return all(STRICT.get(one) is in_python for one in functions_of(example))


def evaluate_here(example: Example, rows: list[tuple[str | None, ...]]) -> list[str | None]:
    """Returns the outcomes of an example in this process, spelled as `evaluate` on Spark does."""
    scalar = _comparable(example.scalar)
    value_of = compiled(scalar)
    types = [POOLS[pool][0] for pool in example.pools]
    found: list[str | None] = []
    for row in rows:
        literals = [literal_of(text, type_) for text, type_ in zip(row, types, strict=True)]
        cells = [to_plain(one.value, one.type) for one in literals if isinstance(one, Literal)]
        assert len(cells) == len(row)
        try:
            plain = value_of(cells)
        except SqlFailure as failure:
            found.append(f"!{failure}")
            continue
        # As cells of a table, there and back.
        stored = pa.chunked_array([stored_cells([plain], scalar.type)])
        value = from_plain(plain_cells(stored, scalar.type)[0], scalar.type)
        found.append(None if value is None else f"={_text(value)}")
    return found


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def moved(scalar: Scalar, offset: int) -> Scalar:
    return rewrite(scalar, lambda column: ColumnRef(column.position + offset, column.type))


def _comparable(scalar: Scalar) -> Scalar:
    if scalar.type.kind not in _SPELLED:
        return scalar
    found = cast(scalar.type, TEXT)
    assert isinstance(found, Cast), str(found)
    return found.apply(scalar)


def _cell(text: str | None, type_: ScalarType) -> Any:
    literal = literal_of(text, type_)
    assert isinstance(literal, Literal), str(literal)
    return to_plain(literal.value, type_)


def same(example: Example, ours: str | None, theirs: str | None) -> bool:
    if ours == theirs:
        return True
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    type_ = example.scalar.type
    if ours[0] == "!":
        return False
    if type_.kind in _FLOATS:
        code = "f" if type_.kind is Kind.FLOAT4 else "d"
        mine, other = (struct.pack(code, float(text[1:])) for text in (ours, theirs))
        return mine == other or (ours == "=nan" and theirs == "=NaN")
    if type_.kind is Kind.NUMERIC:
        mine_, other_ = Decimal(ours[1:]), Decimal(theirs[1:])
        if mine_ == other_:
            return True
        # Division keeps a fixed number of digits, PostgreSQL more for small quotients.
        if any(isinstance(node, Call) and node.function == "divide_numeric" for node in walk(example.scalar)):
            kept = Decimal(1).scaleb(-type_.scale)
            return abs(other_) < Decimal("0.0001") and abs(mine_ - other_) <= kept / 2
    return False


def legitimate(example: Example, ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
    """Tells the documented limits of numerics, some of whose 38 digits must be left, and years 1 to 9999.

    Quotients are below 10^17, divisors have at most 37 digits.
    """
    if example.tolerates is not None and example.tolerates(ours, theirs, row):
        return True
    if ours == "!22008 date out of range" and theirs is not None:
        return theirs.endswith(" BC") or theirs.startswith("=10")
    if ours is not None and ours.startswith("!0A000 extract(") and "infinite" in ours:
        return theirs in ("=Infinity", "=-Infinity")
    if "age(" in example.sql and any(one is not None and one.endswith("infinity") for one in row):
        return ours == "!22008 timestamp out of range"  # PostgreSQL 15 counts to its own number for infinity
    numeric_result = example.scalar.type.kind is Kind.NUMERIC
    if ours == f"!{NUMERIC_UNDERFLOW}" and theirs is not None and theirs[0] == "=" and numeric_result:
        return 0 < abs(Decimal(theirs[1:])) < Decimal(1).scaleb(LEAST_DIGITS - example.scalar.type.scale)
    if ours == "!22003 numeric field overflow" and theirs is not None and theirs[0] == "=" and numeric_result:
        divides = any(isinstance(n, Call) and n.function == "divide_numeric" for n in walk(example.scalar))
        if divides and sum(c.isdigit() for c in row[-1] or "") >= 38:
            return True
        limit = Decimal(10) ** (38 - example.scalar.type.scale - divides)
        return abs(Decimal(theirs[1:])) >= limit
    return False


def covering(everything: Sequence[Example]) -> list[int]:
    """Returns where few examples are that together call each function that Spark evaluates, and some of the others."""
    called = [{one for one in functions_of(example) if STRICT.get(one) is not in_python} for example in everything]
    left = set[str]().union(*called)
    chosen = {i for i, example in enumerate(everything) if not i % (8 * SAMPLED) and runs_in_python(example)}
    while left:
        most = max(range(len(everything)), key=lambda i: len(called[i] & left))
        chosen.add(most)
        left -= called[most]
    return sorted(chosen)


@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["some", "each"])
@pytest.mark.parametrize("area", AREAS)
def test_every_function_returns_what_postgres_returns(
    spark: SparkSession, postgres: Postgres, area: str, each: bool
) -> None:
    """Compares each example made in this process and by Spark, or a few that call each function."""
    everything = list(AREAS[area]())
    asked_for = range(len(everything)) if each else sorted({*sample(everything), *covering(everything)})
    rows = [
        arguments_of(example.pools, seed, ROWS if each else ROWS // 3) if seed in asked_for else []
        for seed, example in enumerate(everything)
    ]
    asked = [
        example.sql.format(*(quote(text, POOLS[pool][0]) for text, pool in zip(row, example.pools, strict=True)))
        for example, own in zip(everything, rows, strict=True)
        for row in own
    ]
    answers = iter(postgres.attempt(asked))
    expected = [[next(answers) for _ in own] for own in rows]
    here_of = {i: evaluate_here(everything[i], rows[i]) for i in asked_for}
    found = list(here_of.items())
    chosen = range(len(everything)) if each else covering(everything)
    there = [i for i in chosen if not (i % SAMPLED and runs_in_python(everything[i]))]
    there_of: dict[int, list[str | None]] = {}
    for start in range(0, len(there), 40):
        batch = there[start : start + 40]
        outcomes = evaluate(spark, [everything[i] for i in batch], [rows[i] for i in batch])
        found += zip(batch, outcomes, strict=True)
        there_of |= dict(zip(batch, outcomes, strict=True))
    # What is evaluated in this process is what Spark makes of it, also where PostgreSQL is less limited.
    wrong = [
        f"{everything[i].sql} {row}: here {mine!r}, on Spark {other!r}"
        for i in here_of.keys() & there_of.keys()
        for row, mine, other in zip(rows[i], here_of[i], there_of[i], strict=True)
        if not same(everything[i], mine, other)
    ]
    for i, outcome in found:
        example = everything[i]
        wrong += [
            f"{example.sql} {row} [{example.scalar.type}]: {mine!r}, PostgreSQL {other!r}"
            for row, mine, other in zip(rows[i], outcome, expected[i], strict=True)
            if not same(example, mine, other) and not legitimate(example, mine, other, row)
        ]
    assert not wrong, f"{len(wrong)} of {len(asked)} differ:\n" + "\n".join(wrong[:200])


def test_every_function_is_emittable_and_exercised() -> None:
    # mz_now() never gets there: it is a literal in a query, and a bound in a view.
    assert {*_LAZY, *STRICT, *LENIENT} == frozenset(FUNCTIONS) - {"mz_now"}
    everything = itertools.chain.from_iterable(examples() for examples in AREAS.values())
    exercised = {node.function for example in everything for node in walk(example.scalar) if isinstance(node, Call)}
    # PostgreSQL has no like of the internal ones: `test_accumulation.py` exercises them. An enumeration is a type that
    # somebody makes: `stories/enums.py`.
    of_enumerations = {"label_of_enum", "enum_of_label", "renamed_label_of_enum", "enum_of_renamed_label"}
    assert frozenset(FUNCTIONS) - exercised == INTERNAL_FUNCTIONS | of_enumerations | {"mz_now"}


def test_every_test_of_an_element_is_sparks_own() -> None:
    tests = [one for one in FUNCTIONS.values() if one.result is Kind.BOOL and len(one.arguments) == 2]
    called = {one.name for one in tests if STRICT.get(one.name) is in_python}
    assert called == {one.name for one in tests if not is_quantifiable(one.name)}


def test_literals_are_read_as_postgres_reads_them(postgres: Postgres) -> None:
    targets = {
        "text_int": (INT2, INT4, INT8), "text_float": (FLOAT4, FLOAT8), "text_numeric": (numeric(0), numeric(2)),
        "text_bool": (BOOL,), "text_date": (DATE,), "text_ts": (TIMESTAMP, TIMESTAMPTZ),
    }  # fmt: skip
    read = [one for pool, types in targets.items() for one in itertools.product(types, POOLS[pool][1])]
    answers = postgres.attempt([quote(text, type_) for type_, text in read])
    wrong = []
    for (type_, text), theirs in zip(read, answers, strict=True):
        ours = literal_of(text, type_)
        if isinstance(ours, Failure):
            shown = f"!{ours}"
        elif type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
            example = Example("", ours, ())
            if same(example, f"={ours.value!s}", theirs):
                continue
            shown = f"={ours.value!s}"
        else:
            shown = f"={str(ours.value).lower() if type_ == BOOL else ours.value!s}"
            if theirs is not None and type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
                shown = shown.replace("+00:00", "+00")
                if "." in shown:
                    whole, _, zone = shown.partition("+")
                    shown = whole.rstrip("0") + (f"+{zone}" if zone else "")
        if shown != theirs:
            wrong.append(f"{quote(text, type_)}: {shown!r}, PostgreSQL {theirs!r}")
    assert not wrong, "\n".join(wrong)
