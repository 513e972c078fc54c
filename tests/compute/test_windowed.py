"""Window functions over every kind of frame: PostgreSQL 15 is the referee.

Random tables, with NULLs, equal keys, NaN, infinities and copies of rows, are given to both. One `Windowed` of many
functions is one Spark job and one query, so that hundreds of combinations cost a handful of jobs. Where PostgreSQL
leaves the order of peers open, it is asked with the order by which ties go here, or a reference in Python is.
"""

from __future__ import annotations

import functools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import DIFF, ERROR, ensure_exact, positional, spark_type
from mz_dagster.compute.algebra.gathering import TOO_MANY_BYTES
from mz_dagster.compute.local import elements
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.expressions.outcome import first_errors
from mz_dagster.compute.local.window_frames import Frames, Partitions
from mz_dagster.compute.local.window_functions import KERNELS as LOCAL_KERNELS
from mz_dagster.compute.local.window_functions import evaluated_functions
from mz_dagster.compute.spark.tournament.versions import RowLayout
from mz_dagster.compute.spark.window import windowed as spark_windowed
from mz_dagster.compute.spark.window.positions import EXTREMES, has_distance
from mz_dagster.compute.spark.window.windowed import windowed
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Windowed
from mz_dagster.plan.relation import (
    ColumnOrder,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    WindowFrame,
    WindowFunction,
)
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    Column,
    Kind,
    RelationType,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.arrow_schema import arrow_type
from tests.postgres_server import Postgres

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The table's columns. `g` is the partition; `o` an offset, `p` a place, `m` for ntile; `id` is last, so that it
#: decides ties only where all others are equal.
COLUMNS: dict[str, ScalarType] = {
    "g": INT4,
    "i": INT4,
    "b": INT8,
    "f": FLOAT8,
    "r": FLOAT4,
    "n": numeric(2),
    "t": TEXT,
    "s": TEXT,
    "q": BOOL,
    "o": INT4,
    "p": INT4,
    "m": INT4,
    "e": DATE,
    "ts": TIMESTAMP,
    "id": INT4,
}
NAMES = tuple(COLUMNS)
SHAPE = RowLayout(RelationType(tuple(Column(name, type_) for name, type_ in COLUMNS.items())), (0,))
VALUES = ("i", "b", "f", "n", "t", "q", "id")
ORDERABLE = ("i", "b", "f", "r", "n", "t")
RANGES = ("i", "b", "f", "r", "n", "e", "ts", "id")
ARGUMENTS_OF_SUM = {"i": INT8, "b": numeric(0), "n": numeric(2)}

INTERVALS = (
    ("0", Interval()),
    ("1 day", Interval(days=1)),
    ("1 month", Interval(months=1)),
    ("1 month -1 day 1 hour", Interval(1, -1, 3_600_000_000)),
    ("23 hours", Interval(microseconds=82_800_000_000)),
    ("2100 years", Interval(months=25_200)),
)

Row = tuple[object, ...]


@dataclass(frozen=True)
class Case:
    """Is a function as a node and as SQL.

    Attributes:
        function: The node.
        sql: With `{over}` where OVER goes; `{before}` and `{after}` are OVER for the rows before and after the row.
        frame: What OVER says after the order.
    """

    function: WindowFunction
    sql: str
    frame: str = ""


def position(name: str) -> int:
    return NAMES.index(name)


def random_rows(rng: random.Random, partitions: int, size: int) -> list[tuple[Row, int]]:
    """Returns rows, each with its multiplicity."""
    made: list[tuple[Row, int]] = []
    edges = [2**63 - 1, -(2**63), 2**63 - 2, 0, 1, -1]
    floats = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 2.0, -1.0, 1e308, 0.1]
    for g in range(partitions):
        for _ in range(0 if g == 1 else rng.randint(1, size)):
            row: Row = (
                None if g == 0 else g,
                rng.choice([None, *range(-2, 6)]),
                rng.choice([None, *edges, 3, 5, 8]),
                rng.choice([None, *floats]),
                rng.choice([None, math.nan, math.inf, -math.inf, 0.5, -0.0, 1.0, 0.25]),
                rng.choice([None, *(Decimal(x) for x in ("0.00", "1.50", "-1.25", "2.00", "7.75", "9" * 33 + ".99"))]),
                rng.choice([None, "", "a", "b", "B", "é", "aa", "z\U0001f600"]),
                rng.choice([None, ",", "", "--"]),
                rng.choice([None, True, False]),
                rng.choice([None, *range(-3, 4)]),
                rng.choice([None, 1, 1, 2, 3, 9]),
                rng.choice([None, 1, 2, 3, 4, 100]),
                rng.choice([None, *(date(2024, *one) for one in ((1, 30), (1, 31), (2, 29), (3, 1), (3, 31)))]),
                rng.choice([None, *(datetime(2024, 2, day, hour) for day in (1, 2, 29) for hour in (0, 1, 23))]),
                len(made),
            )
            made.append((row, rng.choice([1, 1, 1, 1, 2, 3])))
    return made


def load(postgres: Postgres, rows: Sequence[tuple[Row, int]]) -> None:
    def cell(value: object) -> str:
        if value is None:
            return "NULL"
        return "'" + str(value).replace("inf", "Infinity") + "'" if not isinstance(value, bool) else str(value)

    types = ", ".join(
        f"{name} {'numeric' if type_.kind is Kind.NUMERIC else type_.kind.value}" for name, type_ in COLUMNS.items()
    )
    lines = [f"({', '.join(cell(value) for value in row)})" for row, diff in rows for _ in range(diff)]
    postgres.run(f"DROP TABLE IF EXISTS w; CREATE TABLE w ({types}); INSERT INTO w VALUES {', '.join(lines)};")


def in_postgres(
    postgres: Postgres, cases: Sequence[Case], order: Sequence[ColumnOrder], *, ties: bool
) -> Counter[tuple[object, ...]]:
    keys = [
        f"{NAMES[one.position]} {'DESC' if one.descending else 'ASC'} NULLS {'FIRST' if one.nulls_first else 'LAST'}"
        for one in order
    ]
    keys += [f"{name} ASC NULLS LAST" for name in NAMES] if ties else []
    by = f"ORDER BY {', '.join(keys)}" if keys else ""
    window = f"OVER (PARTITION BY g {by} "
    before, after = (
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
        "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    )
    calls = ", ".join(
        one.sql.format(over=f"{window}{one.frame})", before=window + before, after=window + after) + f" AS x{i}"
        for i, one in enumerate(cases)
    )
    out = postgres.run(f"SELECT row_to_json(x) FROM (SELECT id, {calls} FROM w) AS x;")
    found: Counter[tuple[object, ...]] = Counter()
    for line in out.splitlines():
        values = json.loads(line, parse_int=lambda text: _Number(text), parse_float=lambda text: _Number(text))
        types = [INT4, *(one.function.type for one in cases)]
        found[tuple(normal(value, type_) for value, type_ in zip(values.values(), types, strict=True))] += 1
    return found


class _Number(str):
    """Is a number as PostgreSQL prints it."""


def normal(value: object, type_: ScalarType | None) -> object:
    """Returns a value so that equal ones, and only they, are equal in Python: NaN equals NaN, 0.0 is -0.0."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(normal(one, type_.element if type_ is not None else None) for one in value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, _Number):
        return _float(float(value)) if type_ in (FLOAT4, FLOAT8) else Decimal(value)
    if isinstance(value, str) and type_ in (FLOAT4, FLOAT8):
        return _float(float(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return value


def _float(value: float) -> object:
    return "NaN" if math.isnan(value) else value + 0.0


def as_frame(spark: SparkSession, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Returns rows with diff, mark and error as versions have them."""
    # PySpark takes no decimals of 38 digits.
    fields = [
        f"c{i} {'string' if one.type.kind is Kind.NUMERIC else spark_type(one.type)}"
        for i, one in enumerate(SHAPE.relation_type.columns)
    ]
    given = [tuple(str(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in rows]
    schema = ", ".join([*fields, f"{DIFF} bigint", "mz_from bigint", f"{ERROR} string"])
    number = f"c{position('n')}"
    frame = spark.createDataFrame(given, schema).coalesce(1)
    frame = frame.withColumn(number, frame[number].cast(spark_type(COLUMNS["n"])))
    return frame.select(*SHAPE.split(), DIFF, "mz_from", ERROR)


def in_spark(
    spark: SparkSession, rows: Sequence[tuple[Row, int]], cases: Sequence[Case], order: Sequence[ColumnOrder]
) -> list[tuple[object, ...]]:
    """Returns id, results and error of every row, and checks that rows and bystanders leave as they came."""
    from pyspark.sql import functions as sf

    ensure_exact(spark)
    marked: list[tuple[object, ...]] = [(*row, diff, 1, None) for row, diff in rows]
    marked += [(*row, -2, None, None) for row, _ in rows[:2]] + [
        (*row, -1, 1, "22012 division by zero") for row, _ in rows[2:3]
    ]
    frame = as_frame(spark, marked)
    subject = sf.col("mz_from").isNotNull() & sf.col(ERROR).isNull()
    function = Windowed(tuple(order), tuple(one.function for one in cases))
    made = windowed(frame, SHAPE, function, ["c0", "mz_from", ERROR], subject)
    names = [f"c{SHAPE.arity + i}" for i in range(len(cases))]
    found: list[tuple[object, ...]] = []
    standing: list[tuple[object, ...]] = []
    for row in made.select(f"c{position('id')}", *names, ERROR, "mz_from", DIFF).collect():
        *values, error, mark, diff = row
        if mark is None or error == "22012 division by zero":
            standing.append((values[0], mark, error, diff))
            assert set(values[1:]) == {None}
        else:
            assert diff == 1
            found.append((*values, error))
    assert sorted(standing, key=repr) == sorted(
        ((row[-4], row[-2], row[-1], row[-3]) for row in marked[len(rows) :]), key=repr
    )
    return found


def in_process(
    rows: Sequence[tuple[Row, int]], cases: Sequence[Case], order: Sequence[ColumnOrder]
) -> list[tuple[object, ...]]:
    """Returns id, results and error of every row."""
    single = [row for row, diff in rows for _ in range(diff)]
    types = list(COLUMNS.values())
    columns = [pa.array([row[i] for row in single], arrow_type(types[i])) for i in range(len(NAMES))]
    coded = CodedRows(pa.table(dict(zip(NAMES, columns, strict=True))), len(single))
    partitions = Partitions.of(coded.columns[0], coded.sorted_by, order)
    row = partitions.order
    frames = Frames(partitions, order, types, lambda one, places: columns[one].take(pa.array(row[places])))
    found = evaluated_functions([one.function for one in cases], frames, coded, row)
    errors = first_errors(found)
    told = [None] * len(single) if errors is None else errors.to_pylist()
    values = (one.array(len(single)).to_pylist() for one in found)
    return list(zip((single[place][-1] for place in row), *values, told, strict=True))


#: Returns id, results and error of every row: told rows with their multiplicities, functions and an order.
Ask = Callable[[Sequence[tuple[Row, int]], Sequence[Case], Sequence[ColumnOrder]], list[tuple[object, ...]]]


#: By the algebra: without the kernels of aggregates, by which their references are used.
WAYS = ("spark", "this process", "this process by the algebra", "spark by the algebra")


@pytest.fixture(params=[*WAYS[:3], pytest.param(WAYS[3], marks=pytest.mark.deep)])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Ask:
    if request.param.endswith("algebra"):
        for one in AggregateFunction:
            monkeypatch.delitem(LOCAL_KERNELS, one)
            monkeypatch.delitem(EXTREMES, one, raising=False)
    if request.param.startswith("this"):
        return in_process
    return functools.partial(in_spark, request.getfixturevalue("spark"))


def random_bound(
    rng: random.Random, unit: FrameUnit, order: Sequence[ColumnOrder], *, starts: bool
) -> tuple[int, FrameBound, str]:
    """Returns a bound, as a node and in SQL, and where it lies: 0 to 4, from the partition's start to its end."""
    kind = rng.choice([0, 1, 1, 2, 3] if starts else [1, 2, 3, 3, 4])
    if kind in (1, 3) and unit is FrameUnit.RANGE and (len(order) != 1 or NAMES[order[0].position] not in RANGES):
        kind = 2
    if kind in (0, 4):
        return kind, FrameBound(True, preceding=starts), f"UNBOUNDED {'PRECEDING' if starts else 'FOLLOWING'}"
    if kind == 2:
        return kind, FrameBound(False, Literal(0, INT8)), "CURRENT ROW"
    if unit is FrameUnit.RANGE:
        name = NAMES[order[0].position]
        literal, sql = random_distance(rng, COLUMNS[name])
    else:
        literal = Literal(rng.choice([0, 1, 1, 2, 5, 2**62]), INT8)
        sql = str(literal.value)
    side = "PRECEDING" if kind == 1 else "FOLLOWING"
    return kind, FrameBound(False, literal, kind == 1), f"{sql} {side}"


def random_distance(rng: random.Random, type_: ScalarType) -> tuple[Literal, str]:
    match type_.kind:
        case Kind.INT4 | Kind.INT8:
            number = rng.choice([0, 1, 2, 3, 2**31, 2**63 - 1])
            return Literal(number, INT8), f"{number}::bigint"
        case Kind.FLOAT4 | Kind.FLOAT8:
            value = rng.choice([0.0, 0.5, 1.0, 3.25, 1e308, math.inf])
            return Literal(value, FLOAT8), f"'{value}'::float8".replace("inf", "Infinity")
        case Kind.DATE | Kind.TIMESTAMP:
            text, interval = rng.choice(INTERVALS)
            return Literal(interval, INTERVAL), f"interval '{text}'"
        case _:
            text = rng.choice(["0", "0.5", "1.25", "1.255", "3", "9" * 36 + ".99", "1" + "0" * 37])
            decimal = Decimal(text)
            return Literal(decimal, numeric(-int(decimal.as_tuple().exponent))), f"{text}::numeric"


def random_frame(
    rng: random.Random,
    order: Sequence[ColumnOrder],
    units: Sequence[FrameUnit],
    exclusions: Sequence[FrameExclusion] = tuple(FrameExclusion),
) -> tuple[WindowFrame, str]:
    unit = rng.choice([one for one in units if order or one is not FrameUnit.GROUPS])
    while True:
        (low, start, start_sql), (high, end, end_sql) = (
            random_bound(rng, unit, order, starts=starts) for starts in (True, False)
        )
        if low <= high:
            break
    exclusion = rng.choice([FrameExclusion.NO_OTHERS, *exclusions])
    sql = f"{unit.value.upper()} BETWEEN {start_sql} AND {end_sql} EXCLUDE {exclusion.value.upper()}"
    return WindowFrame(unit, start, end, exclusion), sql


def random_aggregate(rng: random.Random, frame: WindowFrame, sql: str, *, sees_order: bool) -> Case:
    bits = ["bit_and", "bit_or", "bit_xor"]
    name = rng.choice(["count", "sum", "min", "max", *bits] + (["array_agg", "string_agg"] if sees_order else []))
    condition = rng.choice([None, None, "q"])
    suffix = "" if condition is None else f" FILTER (WHERE {condition})"
    type_: ScalarType
    if name == "sum":
        value = rng.choice(list(ARGUMENTS_OF_SUM))
        arguments, type_ = [value], ARGUMENTS_OF_SUM[value]
    elif name == "count":
        arguments, type_ = rng.choice([[], ["i"], ["t"]]), INT8
    elif name == "string_agg":
        arguments, type_ = ["t", "s"], TEXT
    elif name in bits:
        value = rng.choice(["i", "b", "id"])
        arguments, type_ = [value], COLUMNS[value]
    else:
        value = rng.choice(VALUES if name == "array_agg" else ORDERABLE)
        arguments = [value]
        type_ = array_of(COLUMNS[value]) if name == "array_agg" else COLUMNS[value]
    function = WindowFunction(
        name,
        tuple(position(one) for one in arguments),
        type_,
        frame=frame,
        filter=None if condition is None else position(condition),
    )
    return Case(function, f"{name}({', '.join(arguments) or '*'}){suffix} {{over}}", sql)


def random_value(rng: random.Random, frame: WindowFrame, sql: str) -> Case:
    """Returns a function of one row of the frame; PostgreSQL has no IGNORE NULLS, so it is spelled out there."""
    name, value, ignores = (
        rng.choice(["first_value", "last_value", "nth_value"]),
        rng.choice(VALUES),
        rng.random() < 0.5,
    )
    if " FOLLOWING AND" in sql or "PRECEDING EXCLUDE" in sql:
        # Where the frame is without the current row, PostgreSQL takes it, unlike in aggregates, for the ties left out.
        sql = sql.replace("EXCLUDE TIES", "EXCLUDE GROUP")
        frame = replace(frame, exclusion=FrameExclusion.GROUP) if frame.exclusion is FrameExclusion.TIES else frame
    arguments = [value, "p"] if name == "nth_value" else [value]
    call = f"{name}({', '.join(arguments)}) {{over}}"
    if ignores:
        array = f"(array_agg({value}) FILTER (WHERE {value} IS NOT NULL) {{over}})"
        index = {"first_value": "1", "last_value": f"cardinality({array})", "nth_value": "p"}[name]
        call = f"{array}[{index}]"
    positions = tuple(position(one) for one in arguments)
    return Case(WindowFunction(name, positions, COLUMNS[value], frame=frame, ignore_nulls=ignores), call, sql)


def random_move(rng: random.Random) -> Case:
    name, value, ignores = rng.choice(["lag", "lead"]), rng.choice(VALUES), rng.random() < 0.5
    default = {"i": "id", "id": "o", "f": "f", "t": "s", "n": "n"}.get(value)
    arguments = [value, "o", *([] if default is None else [default])][: rng.choice([1, 2, 3])]
    call = f"{name}({', '.join(arguments)}) {{over}}"
    if ignores:
        sign = "-" if name == "lead" else ""
        back = f"({sign}{'o' if len(arguments) > 1 else '1'})"
        otherwise = arguments[2] if len(arguments) > 2 else "NULL"
        behind, ahead = (
            f"(array_agg({value}) FILTER (WHERE {value} IS NOT NULL) {{{side}}})" for side in ("before", "after")
        )
        call = (
            f"CASE WHEN {back} = 0 THEN {value} "
            f"WHEN {back} > 0 THEN CASE WHEN cardinality({behind}) >= {back} "
            f"THEN {behind}[cardinality({behind}) - {back} + 1] ELSE {otherwise} END "
            f"WHEN {back} < 0 THEN CASE WHEN cardinality({ahead}) >= - {back} "
            f"THEN {ahead}[- {back}] ELSE {otherwise} END END"
        )
    return Case(WindowFunction(name, tuple(map(position, arguments)), COLUMNS[value], ignore_nulls=ignores), call)


RANKS = [
    Case(WindowFunction("rank", (), INT8), "rank() {over}"),
    Case(WindowFunction("dense_rank", (), INT8), "dense_rank() {over}"),
    Case(WindowFunction("percent_rank", (), FLOAT8), "percent_rank() {over}"),
    Case(WindowFunction("cume_dist", (), FLOAT8), "cume_dist() {over}"),
]
NUMBERS = [
    Case(WindowFunction("row_number", (), INT8), "row_number() {over}"),
    Case(WindowFunction("ntile", (position("m"),), INT4), "ntile(m) {over}"),
]


def random_order(rng: random.Random, names: Sequence[str]) -> list[ColumnOrder]:
    return [ColumnOrder(position(one), rng.random() < 0.5, rng.random() < 0.5) for one in names]


def check(
    ask: Ask,
    postgres: Postgres,
    rows: Sequence[tuple[Row, int]],
    cases: Sequence[Case],
    order: Sequence[ColumnOrder],
    *,
    ties: bool,
) -> None:
    wanted = in_postgres(postgres, cases, order, ties=ties)
    types = [INT4, *(one.function.type for one in cases)]
    found: Counter[tuple[object, ...]] = Counter()
    for *values, error in ask(rows, cases, order):
        assert error is None
        found[tuple(normal(value, type_) for value, type_ in zip(values, types, strict=True))] += 1
    for i, one in enumerate(cases):
        ours, theirs = (Counter((row[0], row[i + 1]) for row in side.elements()) for side in (found, wanted))
        assert ours == theirs, (
            one,
            order,
            sorted((ours - theirs).items(), key=repr)[:5],
            sorted((theirs - ours).items(), key=repr)[:5],
        )
    assert found == wanted


ORDERS = (["f"],)
MORE_ORDERS = (["b"], ["n"], ["e"], ["i"], ["r"], ["ts"], ["id"], ["i", "t"])
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 7))]


def drawn(cases: int, seed: int) -> range:
    """Returns one for each random case that a seed draws: of the seed that always runs few, since Spark plans each."""
    return range(cases if seed else cases // 4)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_functions_that_see_no_ties_are_as_in_postgres(ask: Ask, postgres: Postgres, seed: int) -> None:
    """Orders leave ties, and peers stay peers: ranks, and aggregates over RANGE and GROUPS."""
    rng = random.Random(seed)
    rows = random_rows(rng, 5, 20)
    load(postgres, rows)
    for names in ORDERS if seed == 0 else (*MORE_ORDERS, rng.sample(ORDERABLE, 1)):
        order = random_order(rng, names)
        cases = list(RANKS)
        for _ in drawn(26, seed):
            frame, sql = random_frame(rng, order, [FrameUnit.RANGE, FrameUnit.RANGE, FrameUnit.GROUPS])
            cases.append(random_aggregate(rng, frame, sql, sees_order=False))
        check(ask, postgres, rows, cases, order, ties=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_functions_that_count_rows_are_as_in_postgres(ask: Ask, postgres: Postgres, seed: int) -> None:
    """Ties go by the whole row: places, ROWS, single values, lists; lag and lead by dynamic distances."""
    rng = random.Random(11 + 100 * seed)
    rows = random_rows(rng, 5, 16)
    load(postgres, rows)
    for names in (["t"] if seed == 0 else rng.sample(ORDERABLE, 2), []):
        order = random_order(rng, names)
        cases = [*NUMBERS, *(random_move(rng) for _ in drawn(20, seed))]
        for _ in drawn(14, seed):
            frame, sql = random_frame(rng, order, [FrameUnit.ROWS], [FrameExclusion.CURRENT_ROW])
            cases.append(random_aggregate(rng, frame, sql, sees_order=True))
            frame, sql = random_frame(rng, order, [FrameUnit.ROWS], [FrameExclusion.CURRENT_ROW])
            cases.append(random_value(rng, frame, sql))
        check(ask, postgres, rows, cases, order, ties=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_ranges_are_as_in_postgres(ask: Ask, postgres: Postgres, seed: int) -> None:
    """RANGE and GROUPS over an order without ties but copies."""
    rng = random.Random(12 + 100 * seed)
    rows = random_rows(rng, 4, 16)
    load(postgres, rows)
    for names in (["id"], ["n", "id"]):
        order = random_order(rng, names)
        cases = []
        for _ in drawn(14, seed):
            frame, sql = random_frame(rng, order, tuple(FrameUnit))
            cases.append(random_aggregate(rng, frame, sql, sees_order=True))
            cases.append(random_value(rng, frame, sql))
        check(ask, postgres, rows, cases, order, ties=False)


def test_ties_go_by_the_whole_row(ask: Ask) -> None:
    """Of peers, the whole row decides which is first, and copies follow each other; exclusions see them as peers."""
    rng = random.Random(13)
    rows = random_rows(rng, 4, 14)
    identity = position("id")
    for names in (["f"], ["i", "q"]):
        order = random_order(rng, names)
        cases: list[Case] = []
        for _ in range(3):
            unit = rng.choice(tuple(FrameUnit))
            # No distances between values: PostgreSQL has judged them.
            while has_distance(frame := random_frame(rng, order, [unit])[0]):
                pass
            for name, arguments, type_ in (
                ("first_value", (identity,), INT4),
                ("last_value", (identity,), INT4),
                ("nth_value", (identity, position("p")), INT4),
                ("array_agg", (identity,), array_of(INT4)),
            ):
                cases.append(Case(WindowFunction(name, arguments, type_, frame=frame), name))
        found = sorted((tuple(map(_plain, row[:-1])) for row in ask(rows, cases, order)), key=repr)
        wanted = sorted(in_python(rows, cases, order), key=repr)
        for i, one in enumerate(cases):
            assert [(row[0], row[i + 1]) for row in found] == [(row[0], row[i + 1]) for row in wanted], (one, order)


@pytest.mark.deep
def test_sums_of_floats_are_those_of_their_frames(ask: Ask) -> None:
    check_sums_of_floats(ask, random.Random(14), None)


@pytest.mark.parametrize(
    "floats",
    [
        [0.0, 0.25, -3.0, 7.5],  # in 64 bits
        [0.1, -97.31, 1e6, -0.0, 1 / 3],
        [1e60, -1e-60, 0.1, -1e60, math.inf, math.nan],
        [1e308, 5e-324, 0.1, -1e308, -math.inf],  # too far apart for integers of one unit
    ],
)
def test_sums_of_floats_near_and_far_are_those_of_their_frames_in_this_process(floats: list[float]) -> None:
    for seed in range(4):
        check_sums_of_floats(in_process, random.Random(seed), floats)


def check_sums_of_floats(ask: Ask, rng: random.Random, floats: list[float] | None) -> None:
    """Compares exact sums with those of fractions; which rows a frame has is what array_agg says."""
    rows = random_rows(rng, 4, 14)
    if floats is not None:
        place = position("f")
        rows = [((*row[:place], rng.choice([None, *floats]), *row[place + 1 :]), diff) for row, diff in rows]
    of_id = {row[position("id")]: row for row, _ in rows}
    for names in (["id"], ["f"], ["n", "id"], []):
        order = random_order(rng, names)
        cases: list[Case] = []
        for _ in range(3):
            frame, _ = random_frame(rng, order, tuple(FrameUnit))
            ids = WindowFunction("array_agg", (position("id"),), array_of(INT4), frame=frame)
            condition = rng.choice([None, position("q")])
            factors = rng.choice([("f",), ("f", "f")])
            total = WindowFunction("exact_sum", tuple(map(position, factors)), TEXT, frame=frame, filter=condition)
            cases += [Case(ids, "array_agg"), Case(total, "exact_sum")]
        for _, *values, error in ask(rows, cases, order):
            assert error is None
            for i, one in enumerate(cases[1::2]):
                ids_of_frame, text = values[2 * i : 2 * i + 2]
                seen = [of_id[each] for each in ids_of_frame or ()]  # type: ignore[attr-defined]
                if one.function.filter is not None:
                    seen = [row for row in seen if row[one.function.filter]]
                factors_of = [[row[each] for each in one.function.arguments] for row in seen]
                assert text == exact_text(factors_of), (one, order, factors_of)


def exact_text(products: Sequence[Sequence[Any]]) -> str | None:
    """Returns the exact sum of products of one or two doubles: by fractions, or by floats where one is not finite."""
    present = [one for one in products if None not in one]
    if not present:
        return None
    values = [math.prod(one) for one in present]
    if not all(math.isfinite(each) for one in present for each in one):
        special = {one for one, factors in zip(values, present, strict=True) if not all(map(math.isfinite, factors))}
        found = sum(special)
        return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
    total = sum((math.prod(map(Fraction, one)) for one in present), Fraction(0))
    zeros = (total.numerator & -total.numerator).bit_length() - 1 if total else 0
    exponent = zeros - (total.denominator.bit_length() - 1) if total else 0
    return f"{total.numerator >> zeros:x}p{exponent}"


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def in_python(
    rows: Sequence[tuple[Row, int]], cases: Sequence[Case], order: Sequence[ColumnOrder]
) -> list[tuple[object, ...]]:
    """Returns id and results of value functions and array_agg over ids, by the words of the standard."""
    whole = [ColumnOrder(i, False, False) for i in range(len(NAMES))]
    made: list[tuple[object, ...]] = []
    for g in {row[0] for row, _ in rows}:
        part = [row for row, diff in rows if row[0] == g for _ in range(diff)]
        part.sort(key=functools.cmp_to_key(functools.partial(compared, order=[*order, *whole])))
        groups: list[list[int]] = []
        for n, row in enumerate(part):
            if n == 0 or compared(part[n - 1], row, order) != 0:
                groups.append([])
            groups[-1].append(n)
        for number, group in enumerate(groups):
            for n in group:
                results: list[object] = [part[n][-1]]
                for one in cases:
                    assert one.function.frame is not None
                    ids = [part[other][-1] for other in frame_of(one.function.frame, n, number, groups)]
                    nth = part[n][position("p")]
                    match one.function.name:
                        case "first_value":
                            results.append(ids[0] if ids else None)
                        case "last_value":
                            results.append(ids[-1] if ids else None)
                        case "nth_value":
                            results.append(ids[nth - 1] if isinstance(nth, int) and nth <= len(ids) else None)
                        case _:
                            results.append(tuple(ids) or None)
                made.append(tuple(results))
    return made


def compared(left: Row, right: Row, order: Sequence[ColumnOrder]) -> int:
    for one in order:
        a, b = left[one.position], right[one.position]
        if (a is None) != (b is None):
            return -1 if (a is None) == one.nulls_first else 1
        if a is None:
            continue
        keys = [(value != value, 0 if value != value else value) for value in (a, b)]
        if keys[0] != keys[1]:
            less = keys[0] < keys[1]
            return -1 if less != one.descending else 1
    return 0


def frame_of(frame: WindowFrame, n: int, number: int, groups: list[list[int]]) -> list[int]:
    """Returns the rows of a frame: of row `n` in the group `number`."""
    rows = [row for group in groups for row in group]
    units = [[row] for row in rows] if frame.unit is FrameUnit.ROWS else groups
    own = n if frame.unit is FrameUnit.ROWS else number
    low, high = 0, len(units) - 1
    for bound in (frame.start, frame.end):
        if bound.unbounded:
            continue
        assert bound.offset is not None
        steps = int(bound.offset.value)  # type: ignore[arg-type]
        at = own + (-steps if bound.preceding else steps)
        low, high = (max(low, at), high) if bound is frame.start else (low, min(high, at))
    found = [row for unit in range(low, high + 1) for row in units[unit]]
    match frame.exclusion:
        case FrameExclusion.CURRENT_ROW:
            return [row for row in found if row != n]
        case FrameExclusion.GROUP:
            return [row for row in found if row not in groups[number]]
        case FrameExclusion.TIES:
            return [row for row in found if row == n or row not in groups[number]]
        case _:
            return found


ALL = WindowFrame(FrameUnit.RANGE, FrameBound(True, preceding=True), FrameBound(True))
ZERO = FrameBound(False, Literal(0, INT8))
RUNNING = WindowFrame(FrameUnit.ROWS, FrameBound(True, preceding=True), ZERO)


def test_what_fails_is_an_error_of_its_row_and_zeros_keep_their_signs(ask: Ask) -> None:
    """Sums may pass beyond their type and come back: what counts is the frame's own sum."""
    empty: dict[str, object] = dict.fromkeys(NAMES)
    most, numeric_most = 2**63 - 1, Decimal("9" * 36 + ".99")
    given = [
        {"id": 1, "b": most, "n": numeric_most, "f": -0.0, "p": 1},
        {"id": 2, "b": most, "n": numeric_most, "f": 0.0, "p": 0},
        {"id": 3, "b": -most, "n": numeric_most.copy_negate(), "f": math.nan, "p": -1},
    ]
    rows = [(tuple((empty | one).values()), 1) for one in given] + [
        (tuple((empty | {"g": 1, "id": 4 + i, "m": m}).values()), 1) for i, m in enumerate([None, 0, 2])
    ]
    order = [ColumnOrder(position("id"), False, False)]
    others = replace(RUNNING, end=FrameBound(True), exclusion=FrameExclusion.CURRENT_ROW)
    cases = [
        Case(WindowFunction("sum", (position("b"),), INT8, frame=RUNNING), "sum(b)"),
        Case(WindowFunction("sum", (position("n"),), numeric(2), frame=RUNNING), "sum(n)"),
        Case(WindowFunction("sum", (position("b"),), INT8, frame=others), "sum(b)"),
        Case(WindowFunction("sum", (position("n"),), numeric(2), frame=others), "sum(n)"),
    ]
    found = {row[0]: row[1:] for row in ask(rows, cases[:1] + cases[2:3], order)}
    assert found[1] == (most, 0, None)
    assert found[2][1:] == (0, "22003 bigint out of range")
    # The two others' sum does not fit, though what it is made of does.
    assert found[3] == (most, None, "22003 bigint out of range")
    found = {row[0]: row[1:] for row in ask(rows, cases[1:2] + cases[3:], order)}
    assert found[1] == (numeric_most, 0, None)
    assert found[2][1:] == (0, "22003 numeric field overflow")
    assert found[3] == (numeric_most, None, "22003 numeric field overflow")
    values = [
        Case(WindowFunction("ntile", (position("m"),), INT4), "ntile(m)"),
        Case(WindowFunction("nth_value", (position("id"), position("p")), INT4, frame=ALL), "nth_value(id, p)"),
        Case(WindowFunction("array_agg", (position("f"),), array_of(FLOAT8), frame=ALL), "array_agg(f)"),
        Case(WindowFunction("first_value", (position("f"),), FLOAT8, frame=ALL), "first_value(f)"),
        Case(WindowFunction("lag", (position("f"),), FLOAT8), "lag(f)"),
        Case(WindowFunction("lead", (position("f"), position("p")), FLOAT8), "lead(f, p)"),
    ]
    found = {row[0]: row[1:] for row in ask(rows, values, order)}
    assert repr(found[1]) == "(None, 1, [-0.0, 0.0, nan], -0.0, None, 0.0, None)"
    assert repr(found[2][4:6]) == "(-0.0, 0.0)"
    assert [found[one][-1] for one in range(1, 7)] == [
        None,
        "22016 argument of nth_value must be greater than zero",
        "22016 argument of nth_value must be greater than zero",
        None,
        "22014 argument of ntile must be greater than zero",
        "22014 argument of ntile must be greater than zero",
    ]
    assert ask([], values, order) == []


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_text_that_is_too_large_is_an_error_of_its_row(
    way: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_windowed, "MOST_BYTES", 6)
    monkeypatch.setattr(elements, "MOST_BYTES", 6)
    texts: list[tuple[object, object]] = [("ab", "-"), (None, "-"), ("\u00e9", "-"), ("", None)]
    given = [{"id": number, "t": text, "s": separator} for number, (text, separator) in enumerate(texts, 1)]
    empty: dict[str, object] = dict.fromkeys(NAMES)
    rows = [(tuple((empty | one).values()), 1) for one in given]
    order = [ColumnOrder(position("id"), False, False)]
    case = Case(WindowFunction("string_agg", (position("t"), position("s")), TEXT, frame=RUNNING), "string_agg(t, s)")
    asked = in_process if way == "this process" else functools.partial(in_spark, request.getfixturevalue("spark"))
    assert {row[0]: row[1:] for row in asked(rows, [case], order)} == {
        1: ("ab", None),
        2: ("ab", None),
        3: ("ab-\u00e9", None),
        4: (None, TOO_MANY_BYTES),  # an element has a byte at least
    }


def test_results_follow_the_frame_in_the_types_of_the_plan(spark: SparkSession) -> None:
    from pyspark.sql import functions as sf

    cases = [*RANKS, *NUMBERS]
    for name, arguments, type_ in (
        ("count", (), INT8),
        ("sum", ("i",), INT8),
        ("sum", ("b",), numeric(0)),
        ("sum", ("n",), numeric(2)),
        ("min", ("r",), FLOAT4),
        ("array_agg", ("t",), array_of(TEXT)),
        ("string_agg", ("t", "s"), TEXT),
        ("first_value", ("q",), BOOL),
        ("nth_value", ("i", "p"), INT4),
    ):
        for frame in (RUNNING, replace(RUNNING, exclusion=FrameExclusion.TIES)):
            cases.append(Case(WindowFunction(name, tuple(map(position, arguments)), type_, frame=frame), name))
    cases.append(Case(WindowFunction("lag", (position("n"), position("o"), position("n")), numeric(2)), "lag"))
    given = as_frame(spark, [])
    function = Windowed((ColumnOrder(1, False, False),), tuple(one.function for one in cases))
    made = windowed(given, SHAPE, function, ["c0", "mz_from", ERROR], sf.col(ERROR).isNull())
    results = positional(SHAPE.arity + len(cases))[SHAPE.arity :]
    assert made.columns == [*given.columns, *results]
    types = dict(made.dtypes)
    assert [types[name] for name in results] == [spark_type(one.function.type) for one in cases]
