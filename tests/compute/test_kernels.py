"""What is evaluated column by column is what the row evaluator gives, value and error, bit for bit.

The row evaluator is held against PostgreSQL and Spark, by the same examples (`test_scalar_against_postgres.py`). Here
each that is evaluated in this process is put to columns of its edge values and of random ones, with NULLs, in every
way that arguments come: all of them varying, and each of them the same for all rows. What puts outcomes together, and
must hide errors that no row may see, is put to random nests of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.local.expressions import (
    LENIENT,
    STRICT,
    Evaluated,
    RowBatch,
    by_row,
    decimals,
    evaluated,
    evaluator,
    statistics,
)
from mz_dagster.compute.local.expressions.by_row import evaluated_by_row
from mz_dagster.functions import FUNCTIONS, literal_of
from mz_dagster.functions.evaluation import Evaluate, compiled, is_evaluable
from mz_dagster.functions.numbers import numerics
from mz_dagster.functions.plain import to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, rewrite, walk
from mz_dagster.scalars.types import (
    BOOL,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    MZ_TIMESTAMP,
    TEXT,
    Enumeration,
    Kind,
    ScalarType,
    array_of,
    enum_of,
    numeric,
    record_of,
)
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.plain_cells import moments_as_numbers, plain_cells, stored_cells
from tests.compute.examples import AREAS, POOLS, Example, sample

ROWS = 60
#: How many besides each value, where there is no other argument to be combined with.
_REPEATED = 5
#: An expression of more is put to columns in one way only.
_MANY_NODES = 100
#: Whose exponential, of thousands of digits, takes a second; deep.
_LONG_TAKING = "-5999"


def examples() -> list[Example]:
    found = [one for make in AREAS.values() for one in make()]
    return [one for one in found if is_exact_in_python(one.scalar)]


def cells_of(pool: str) -> list[Any]:
    """Returns the edge values of a pool, in their plain form."""
    type_, texts = POOLS[pool]
    literals = [literal_of(text, type_) for text in texts]
    return [to_plain(one.value, type_) for one in literals if isinstance(one, Literal)]


def assert_same(scalar: Scalar, types: Sequence[ScalarType], rows: Sequence[Sequence[Any]]) -> int:
    """Holds the outcome over columns against that of each row; returns how many are errors."""
    columns = [stored_cells([row[place] for row in rows], type_) for place, type_ in enumerate(types)]
    found = evaluated(scalar, RowBatch(len(rows), columns.__getitem__))
    values = found.array(len(rows))
    values.validate(full=True)
    errors = [None] * len(rows) if found.errors is None else found.errors.to_pylist()
    evaluate = compiled(scalar)
    wanted: list[Any] = []
    failures: list[str | None] = []
    # As the columns have them: a cell is rounded to its type's scale, for example.
    plain = [plain_cells(pa.chunked_array([column]), type_) for column, type_ in zip(columns, types, strict=True)]
    for row in zip(*plain, strict=True) if plain else [()] * len(rows):
        try:
            wanted.append(evaluate(row))
            failures.append(None)
        except SqlFailure as error:
            wanted.append(None)
            failures.append(str(error))
    expected = stored_cells(wanted, scalar.type)
    assert values.type == expected.type
    assert len(values) == len(rows)
    found, wanted = (moments_as_numbers(one).to_pylist() for one in (values, expected))
    both = zip(found, errors, strict=True), zip(wanted, failures, strict=True)
    for number, (outcome, other) in enumerate(zip(*both, strict=True)):
        # By what is shown: 0.0 equals -0.0, and no NaN another one.
        assert repr(outcome) == repr(other), (scalar, rows[number])
    return sum(one is not None for one in failures)


def ways(example: Example, seed: int, constants: int) -> list[tuple[Scalar, list[ScalarType], list[list[Any]]]]:
    """Returns an example with all arguments varying, and so many ways of all but one being constants, for each."""
    chosen = random.Random(seed)
    pools = [cells_of(pool) for pool in example.pools]
    types = [POOLS[pool][0] for pool in example.pools]
    rows = [[chosen.choice([*one, None]) for one in pools] for _ in range(ROWS if len(pools) > 1 else _REPEATED)]
    rows += [[value if i == place else chosen.choice(one) for i, one in enumerate(pools)]
             for place, values in enumerate(pools) for value in [*values, None]]  # fmt: skip
    found = [(example.scalar, types, rows)]
    if len(pools) == 1 or len(list(walk(example.scalar))) > _MANY_NODES:
        return found
    for place in range(len(pools)):
        for _ in range(constants):
            others = [chosen.choice(POOLS[pool][1]) for pool in example.pools]
            literals = [literal_of(text, type_) for text, type_ in zip(others, types, strict=True)]

            def fixed(column: ColumnRef, place: int = place, literals: list[Any] = literals) -> Scalar:
                literal: Scalar = literals[column.position]
                return column if column.position == place else literal

            found.append((rewrite(example.scalar, fixed), types, rows[::3]))
    return found


@pytest.mark.parametrize(("constants", "every"), [(1, 10), pytest.param(3, 1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("area", AREAS)
def test_a_function_over_columns_is_what_it_is_over_rows(area: str, constants: int, every: int) -> None:
    own = [one for one in AREAS[area]() if is_exact_in_python(one.scalar)]
    chosen = range(len(own)) if every == 1 else sample(own)
    for number in chosen:
        example = own[number]
        for scalar, types, rows in ways(example, number, 0 if number % every else constants):
            if every > 1:
                rows = [row for row in rows if row != [_LONG_TAKING]]
                rows = rows[:: 8 if len(list(walk(scalar))) > _MANY_NODES else 1]
            if is_exact_in_python(scalar):
                assert_same(scalar, types, rows)


def calls_of_lowering() -> list[Call]:
    """Returns calls of kernels that SQL does not call by itself, or of which examples leave something out."""
    found = [Call(f"{name}_mz_timestamp", columns(MZ_TIMESTAMP, MZ_TIMESTAMP), BOOL) for name in _COMPARISONS]
    found.append(Call("multiplicity_int8", columns(INT8), INT8))
    found.append(Call("unsigned_zero_float4", columns(FLOAT4), FLOAT4))
    found.append(Call("unsigned_zero_float8", columns(FLOAT8), FLOAT8))
    for type_ in (FLOAT4, FLOAT8):
        found.append(Call("represented_floats", columns(type_), _signed(type_)))
        found.append(Call("unsigned_zeros", columns(_signed(type_)), _signed(type_)))
        found.append(Call("restored_floats", columns(_signed(type_)), type_))
    found.append(Call("limb_float8", columns(FLOAT8), INT4))
    found += [Call("digit_float8", (*columns(FLOAT8), Literal(place, INT4)), INT8) for place in range(4)]
    found.append(Call("label_of_enum", columns(enum_of(Enumeration.of("mood", MOODS))), TEXT))
    found.append(Call("step_mz_timestamp", columns(MZ_TIMESTAMP), MZ_TIMESTAMP))
    scales = ((0, 38), (2, 20), (20, 2), (5, 6))
    found += [Call(f"{name}_numeric", columns(*map(numeric, both)), BOOL) for name in _COMPARISONS for both in scales]
    for scale in (0, 2, 10, 38):
        parts = numeric(max(0, scale - 19)), numeric(scale)
        found.append(Call("low_part_numeric", columns(parts[1]), parts[1]))
        found.append(Call("high_part_numeric", columns(parts[1]), parts[0]))
        found.append(Call("whole_numeric", columns(*parts), parts[1]))
        found.append(Call("widened_numeric", columns(numeric(0)), parts[1]))
    return found


def _signed(type_: ScalarType) -> ScalarType:
    """Returns the type of numbers beside whether each is -0.0."""
    return record_of([("value", type_), ("is_minus_zero", BOOL)])


#: Labels, of which some look like values.
MOODS = ("ok", "2 good", "", " ", "1 2 3\n4 5")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def columns(*types: ScalarType) -> tuple[Scalar, ...]:
    return tuple(ColumnRef(place, type_) for place, type_ in enumerate(types))


def test_what_lowering_calls_is_over_columns_what_it_is_over_rows() -> None:
    chosen = random.Random(7)
    for call in calls_of_lowering():
        types = [one.type for one in call.arguments if isinstance(one, ColumnRef)]
        values: dict[Kind, list[Any]] = {
            Kind.MZ_TIMESTAMP: [0, 5, 2**63 - 2, 2**63 - 1, None], Kind.INT8: [0, 3, -1, 2**63 - 1, None],
            Kind.FLOAT8: [0.0, -0.0, 1.0, -3.0, 0.1, 5e-324, 1e308, 2.0**-1022, math.nan, math.inf, -math.inf, None],
            Kind.FLOAT4: [0.0, -0.0, 0.5, math.nan, None],
            Kind.RECORD: [(0.0, False), (0.0, True), (-0.0, False), (1.5, False), (math.nan, False), None],
            Kind.ENUM: [*(Enumeration.of("mood", MOODS).members or ()), None],
        }  # fmt: skip
        rows = []
        for _ in range(ROWS):
            units = [chosen.choice([0, 1, -1, 25, 10**17, -(2**63), 2**63 - 1, 2**63, 10**38 - 1]) for _ in types]
            rows.append(
                [
                    chosen.choice([None, Decimal(unit).scaleb(-type_.scale, Context(prec=60)), Decimal(0)])
                    if type_.kind is Kind.NUMERIC
                    else chosen.choice(values[type_.kind])
                    for unit, type_ in zip(units, types, strict=True)
                ]
            )
        assert_same(call, types, rows)


def test_every_kernel_is_of_a_function_and_has_an_example() -> None:
    kernels = STRICT.keys() | LENIENT.keys()
    assert kernels <= FUNCTIONS.keys()
    assert not STRICT.keys() & LENIENT.keys()
    assert all(FUNCTIONS[name].strict for name in STRICT)
    seen = {node.function for one in examples() for node in walk(one.scalar) if isinstance(node, Call)}
    # Those of statistics are held to their references in `test_statistics_kernels.py`.
    others = {name for name, kernel in STRICT.items() if kernel.__module__ == statistics.__name__}
    assert kernels <= seen | others | {call.function for call in calls_of_lowering()}


def test_every_function_has_a_reference_in_python() -> None:
    everything = [one.scalar for make in AREAS.values() for one in make()]
    assert [one for one in everything if not is_evaluable(one)] == []


FACTS = [BOOL, INT4, INT8, TEXT, numeric(2), BOOL, FLOAT8, array_of(INT4), FLOAT4]


def random_scalar(chosen: random.Random, type_: ScalarType, depth: int) -> Scalar:
    """Returns a scalar in which everything meets: branches, connectives, what may fail, what has no kernel."""
    leaves: list[Scalar] = [ColumnRef(place, one) for place, one in enumerate(FACTS) if one == type_]
    if depth == 0 or chosen.random() < 0.1:
        constants: dict[ScalarType, list[Any]] = {
            BOOL: [True, False, None], INT4: [0, 1, -7, 2**31 - 1, None], INT8: [0, 3, 2**62, None],
            TEXT: ["", "a", "7", "x7", None], numeric(2): [Decimal("0.00"), Decimal("-3.25"), None],
            FLOAT8: [0.0, -1.5, math.nan, math.inf, 1e300, None], FLOAT4: [-0.0, 0.5, 2.0**99, None],
            array_of(INT4): [(), (1, None, 2), None],
        }  # fmt: skip
        return chosen.choice([*leaves, *leaves, Literal(chosen.choice(constants[type_]), type_)])

    def some(other: ScalarType) -> Scalar:
        return random_scalar(chosen, other, depth - 1)

    def call(name: str, *arguments: ScalarType) -> Scalar:
        return Call(name, tuple(map(some, arguments)), type_)

    general: list[Callable[[], Scalar]] = [
        lambda: If(some(BOOL), some(type_), some(type_)),
        lambda: If(some(BOOL), some(type_), some(type_)),
        lambda: call("coalesce", type_, type_, type_),
        lambda: Call("coalesce", (some(type_), random_scalar(chosen, type_, 0)), type_),
        lambda: call("without_error", type_),
    ]
    own: dict[ScalarType, list[Callable[[], Scalar]]] = {
        BOOL: [
            lambda: call("and", *(BOOL,) * chosen.randint(2, 4)), lambda: call("or", *(BOOL,) * chosen.randint(2, 4)),
            lambda: call("not", BOOL), lambda: call("lt_int4", INT4, INT4), lambda: call("eq_text", TEXT, TEXT),
            lambda: call("is_null", chosen.choice(FACTS)), lambda: call("is_true", BOOL),
            lambda: call("cast_text_to_bool", TEXT), lambda: call("ge_numeric", numeric(2), numeric(2)),
            lambda: call("is_distinct_from", *[chosen.choice(FACTS)] * 2), lambda: call("cast_int4_to_bool", INT4),
            lambda: call(chosen.choice(["lt_float8", "eq_float8"]), FLOAT8, FLOAT8),
            lambda: call(chosen.choice(["ge_array", "array_contains"]), array_of(INT4), array_of(INT4)),
            lambda: Call("any_element", (some(INT4), some(array_of(INT4)), Literal("lt_int4", TEXT)), BOOL),
        ],
        FLOAT8: [
            lambda: call(chosen.choice(["add_float8", "multiply_float8", "divide_float8"]), FLOAT8, FLOAT8),
            lambda: call(chosen.choice(["sqrt_float8", "floor_float8", "unsigned_zero_float8"]), FLOAT8),
            lambda: call("cast_int8_to_float8", INT8), lambda: call("cast_float4_to_float8", FLOAT4),
            lambda: call("greatest", FLOAT8, FLOAT8, FLOAT8),
        ],
        FLOAT4: [
            lambda: call(chosen.choice(["subtract_float4", "multiply_float4", "divide_float4"]), FLOAT4, FLOAT4),
            lambda: call("cast_float8_to_float4", FLOAT8), lambda: call("negate_float4", FLOAT4),
        ],
        array_of(INT4): [
            lambda: call("array", INT4, INT4), lambda: call("array_cat", array_of(INT4), array_of(INT4)),
            lambda: call("array_remove", array_of(INT4), INT4),
        ],
        INT4: [
            lambda: call("divide_int4", INT4, INT4), lambda: call("multiply_int4", INT4, INT4),
            lambda: call("cast_text_to_int4", TEXT), lambda: call("cast_int8_to_int4", INT8),
            lambda: call("length_text", TEXT), lambda: call("greatest", INT4, INT4, INT4),
            lambda: call("array_subscript", array_of(INT4), INT4), lambda: call("cast_float8_to_int4", FLOAT8),
            lambda: Call("error", (Literal("22000 told", TEXT),), INT4),
        ],
        INT8: [
            lambda: call("add_int8", INT8, INT8), lambda: call("cast_int4_to_int8", INT4),
            lambda: call("modulo_int8", INT8, INT8), lambda: call("cast_numeric_to_int8", numeric(2)),
        ],
        TEXT: [
            lambda: call("concat_text", TEXT, TEXT), lambda: call("cast_int4_to_text", INT4),
            lambda: call("md5_text", TEXT), lambda: call("split_part_text", TEXT, TEXT, INT4),
            lambda: call("error_of", chosen.choice(FACTS)), lambda: call("concat", TEXT, TEXT),
            lambda: call("cast_numeric_to_text", numeric(2)),
        ],
        numeric(2): [
            lambda: call("add_numeric", numeric(2), numeric(2)), lambda: call("cast_int4_to_numeric", INT4),
            lambda: call("cast_text_to_numeric", TEXT), lambda: call("negate_numeric", numeric(2)),
        ],
    }  # fmt: skip
    return chosen.choice([*general, *own[type_], *own[type_]])()


def facts(chosen: random.Random, rows: int) -> list[list[Any]]:
    large = [Decimal(10**38 - 1).scaleb(-2, Context(prec=60)), Decimal(2**63).scaleb(-2)]
    values: list[list[Any]] = [
        [True, False, None], [0, 1, -1, 7, 2**31 - 1, -(2**31), None], [0, 2, -3, 2**63 - 1, -(2**63), None],
        ["", "a", "12", "-5", "t", "é,b", "7.455", None],
        [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), *large, None], [True, False, False],
        [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 5e-324, 1e308, None], [[], [1, None, 3], [2, 2], None],
        [0.0, -0.0, 0.5, -2.5, math.nan, math.inf, 2.0**100, 2.0**-140, None],
    ]  # fmt: skip
    return [[chosen.choice(one) for one in values] for _ in range(rows)]


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(one, marks=pytest.mark.deep) for one in range(4, 200))])
def test_nests_of_branches_and_errors_are_what_they_are_over_rows(seed: int) -> None:
    """An error of a branch that is not taken, or of what another argument decides, is never seen; others are."""
    chosen = random.Random(seed)
    failed = 0
    for _ in range(60):
        scalar = random_scalar(chosen, chosen.choice(FACTS), 4)
        failed += assert_same(scalar, FACTS, facts(chosen, chosen.choice([1, 2, 40])))
    assert failed


def test_what_has_no_kernel_is_evaluated_once_for_each_distinct_tuple(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def spying(scalar: Scalar) -> Evaluate:
        evaluate = compiled(scalar)

        def evaluated_once(row: Any) -> Any:
            asked.append(tuple(row))
            return evaluate(row)

        return evaluated_once

    monkeypatch.setattr(by_row, "compiled", spying)
    texts, counts = pa.array(["a", "b", None, "a"] * 500), pa.array([1, 2, 3, 1] * 500, pa.int32())
    scalar = Call("repeat_text", (ColumnRef(0, TEXT), ColumnRef(1, INT4)), TEXT)
    found = evaluated(scalar, RowBatch(2000, [texts, counts].__getitem__))
    assert found.array(2000).to_pylist()[:4] == ["a", "bb", None, "a"]
    assert sorted(asked, key=repr) == [("a", 1), ("b", 2), (None, 3)]


def test_only_the_rows_that_a_kernel_does_not_vouch_for_are_evaluated_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(call: Call, given: Sequence[Any], rows: int) -> Evaluated:
        asked.append(rows)
        return evaluated_by_row(call, given, rows)

    monkeypatch.setattr(evaluator, "evaluated_by_row", counted)
    divisors = pa.array([1, 0, 2, None, 0] * 100, pa.int32())
    scalar = Call("divide_int4", (Literal(6, INT4), ColumnRef(0, INT4)), INT4)
    found = evaluated(scalar, RowBatch(500, [divisors].__getitem__))
    assert asked == [200]
    assert found.array(500).to_pylist()[:5] == [6, None, 3, None, None]
    assert found.errors is not None
    assert found.errors.to_pylist()[:4] == [None, "22012 division by zero", None, None]


@pytest.mark.parametrize("seed", range(6))
def test_quotients_on_columns_are_those_of_the_reference(seed: int) -> None:
    random_ = random.Random(seed)
    vouched = needless = 0
    for _ in range(20):
        left, right = random_.choice([0, 2, 4, 10, 17, 38]), random_.choice([0, 1, 2, 5, 9, 20, 38])
        scale = max(left, right, random_.choice([10, 16, 20]))

        def column(scale: int, most: int) -> list[Decimal]:
            values = []
            for digits in (random_.randrange(1, most) for _ in range(100)):
                near = random_.choice([0, 1, 10**digits - 1, 10 ** (digits - 1), -5 * 10 ** (digits - 1)])
                value = random_.choice([random_.randrange(-(10**digits) + 1, 10**digits), near])
                values.append(Decimal(value).scaleb(-scale, Context(prec=80)))
            return values

        above, below = column(left, random_.choice([19, 39])), column(right, random_.choice([13, 39]))
        call = Call("divide_numeric", (ColumnRef(0, numeric(left)), ColumnRef(1, numeric(right))), numeric(scale))
        found = STRICT["divide_numeric"](
            call, [pa.array(above, pa.decimal128(38, left)), pa.array(below, pa.decimal128(38, right))]
        )
        assert found is not None
        doubtful = np.zeros(100, np.bool_) if found.doubtful is None else found.doubtful
        for one, other, value, is_doubtful in zip(above, below, found.values.to_pylist(), doubtful, strict=True):
            if not is_doubtful:
                vouched += 1
                assert value == numerics.quotient(one, other, (left, right), scale), (one, other, scale)
            else:
                needless += _is_quotient(one, other, (left, right), scale)
    assert vouched > 500
    assert needless < vouched / 20, "what has a value is computed on columns, but for what is nearly an underflow"


def _is_quotient(above: Decimal, below: Decimal, scales: tuple[int, int], scale: int) -> bool:
    try:
        numerics.quotient(above, below, scales, scale)
    except SqlFailure:
        return False
    return True


@pytest.mark.parametrize("function", ["add_numeric", "subtract_numeric", "multiply_numeric", "low_part_numeric",
                                      "high_part_numeric", "whole_numeric", "negate_numeric"])  # fmt: skip
def test_numerics_beyond_64_bits_are_not_evaluated_row_by_row(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(3)
    large = [Decimal(random_.randrange(-(10**30), 10**30)).scaleb(-4) for _ in range(500)]
    small = [Decimal(random_.randrange(-(10**6), 10**6)).scaleb(-2) for _ in range(500)]
    is_single = function in ("low_part_numeric", "high_part_numeric", "negate_numeric")
    whole = function == "whole_numeric"
    high = [Decimal(random_.randrange(-(10**15), 10**15)) for _ in range(500)]
    columns = {0: (high, 0) if whole else (large, 4), 1: (large, 4) if whole else (small, 2)}
    scale = {"multiply_numeric": 6, "high_part_numeric": 0}.get(function, 4)
    arguments = tuple(ColumnRef(place, numeric(columns[place][1])) for place in range(1 if is_single else 2))
    call = Call(function, arguments, numeric(scale))
    evaluate = compiled(call)
    wanted = [evaluate(row) for row in zip(columns[0][0], columns[1][0], strict=True)]
    monkeypatch.setattr(evaluator, "evaluated_by_row", None)
    arrays = [pa.array(values, pa.decimal128(38, own)) for values, own in columns.values()]
    found = evaluated(call, RowBatch(500, arrays.__getitem__))
    assert found.errors is None
    assert found.array(500).to_pylist() == wanted


@pytest.mark.parametrize("digits", range(25))
@pytest.mark.parametrize("rounding", numerics.ROUNDINGS)
def test_digits_are_cut_as_they_are_rounded(digits: int, rounding: str) -> None:
    edges = [0, 1, 4, 5, 6, 9, 10, 14, 15, 10**18, 5 * 10**18 - 1, 5 * 10**18, 5 * 10**18 + 1, 2**63 - 1]
    edges += [5 * 10**n + one for n in range(18) for one in (-1, 0, 1)]
    units = [sign * one for one in edges for sign in (1, -1)]
    wanted = [int(numerics.rounded(Decimal(one), -digits, numerics.ROUNDINGS[rounding])) // 10**digits for one in units]
    assert decimals.cut(np.array(units), digits, rounding).tolist() == wanted


@pytest.mark.parametrize("type_", [FLOAT4, FLOAT8], ids=str)
def test_zeros_lose_their_signs_beside_fields_that_are_null(type_: ScalarType) -> None:
    pairs = pa.StructArray.from_arrays(
        [pa.array([-0.0, None, 2.0], arrow_type(type_)), pa.array([False, None, True])],
        fields=list(arrow_type(_signed(type_))),
        mask=pa.array([False, False, True]),
    )
    found = STRICT["unsigned_zeros"](Call("unsigned_zeros", columns(_signed(type_)), _signed(type_)), [pairs])
    assert found is not None
    assert repr([tuple(row.values()) for row in found.values[:2].to_pylist()]) == "[(0.0, False), (None, None)]"
