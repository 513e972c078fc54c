"""Plans that together have every operator, and random histories of what they read.

Histories have duplicates, NULL keys, negative multiplicities, many times in an interval, and updates of the error part.
Every collection's first column is the number of a case, by which everything is joined and most is grouped, so that one
plan goes over many small random cases.

`SHAPES` are plans as of views, which have updates: what is linear, what joins it, and states. `ONCE` are plans as of
queries, which have a content only, and in which an operator may stand on any other. `LOOKED_UP` are joins that look up
the histories of all that is linear. What they come to is in `reference.py`.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    ConstantRows,
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TopRows,
    UnionAll,
    Unnest,
    is_linear,
    physical_inputs,
)
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, INT8, TEXT, Column, RelationType, ScalarType, array_of, numeric
from tests.compute.contents import Content, Row, Update, exact, is_error
from tests.compute.reference import Known, evaluate
from tests.compute.staged_reference import check_levels
from tests.compute.staged_shapes import INPUT, PLACE, STAGED_SHAPES, random_updates
from tests.compute.temporal_shapes import BOUNDED, TEMPORAL_SHAPES, random_bounds

TIMES = 12
CASES = 25
#: Of the tournaments one of each function, with stages and without.
_ONCE = ("top rows in two stages", "top rows with ties", "extremes in one stage", "gathered", "row numbers")


def relation(*columns: tuple[str, ScalarType]) -> RelationType:
    return RelationType(tuple(Column(name, type_) for name, type_ in columns))


A = relation(("case", INT4), ("x", INT4), ("a", INT4))
B = relation(("case", INT4), ("x", INT4), ("y", INT4))
C = relation(("case", INT4), ("y", INT4), ("c", INT4))
F = relation(("case", INT4), ("x", FLOAT8), ("t", TEXT))
G = relation(("case", INT4), ("p", array_of(INT4)), ("q", array_of(TEXT)))
S = relation(("case", INT4), ("k", INT4), ("x", FLOAT8), ("n", INT8), ("m", numeric(2)))
R = relation(("case", INT4), ("times", INT8), ("x", INT4))
TYPES = {
    GlobalId("a"): A,
    GlobalId("b"): B,
    GlobalId("c"): C,
    GlobalId("f"): F,
    GlobalId("empty"): A,
    GlobalId("r"): R,
    GlobalId("g"): G,
    GlobalId("s"): S,
    GlobalId("in"): INPUT,
    GlobalId("bounded"): BOUNDED,
}


def get(name: str) -> ReadCollection:
    return ReadCollection(GlobalId(name), TYPES[GlobalId(name)], name)


def column(position: int, type_: ScalarType = INT4) -> ColumnRef:
    return ColumnRef(position, type_)


def number(value: int) -> Literal:
    return Literal(value, INT4)


def call(function: str, *arguments: Scalar, type_: ScalarType = INT4) -> Call:
    return Call(function, arguments, type_)


def joined(*inputs: Physical) -> RelationType:
    return RelationType(tuple(c for one in inputs for c in one.relation_type.columns))


def join(
    inputs: Sequence[Physical],
    *equivalences: Sequence[Scalar],
    orders: tuple[tuple[int, ...], ...] | None = None,
    null_safe: tuple[int, ...] = (),
) -> DeltaJoin:
    count = len(inputs)
    usual = tuple(tuple(j for j in range(count) if j != i) for i in range(count))
    classes = tuple(tuple(e) for e in equivalences)
    return DeltaJoin(tuple(inputs), classes, orders or usual, joined(*inputs), frozenset(null_safe))


def mapped(node: Physical, steps: Sequence[tuple[str, Scalar]], projection: Sequence[int]) -> Linear:
    types = [c.type for c in node.relation_type.columns] + [s.type for kind, s in steps if kind == "map"]
    result = relation(*((f"m{i}", types[p]) for i, p in enumerate(projection)))
    return Linear(node, MapFilterProject(node.relation_type.arity, tuple(steps), tuple(projection)), result)


def _fallible_linear() -> Physical:
    quotient = call("divide_int4", number(6), column(1))
    return mapped(
        get("a"),
        [
            ("filter", call("lt_int4", column(2), number(3), type_=BOOL)),
            ("map", quotient),
            ("filter", call("lt_int4", column(3), number(6), type_=BOOL)),
            ("map", call("divide_int4", column(3), column(2))),
        ],
        [0, 4, 3, 2],
    )


def _plain_linear() -> Physical:
    steps = [
        ("filter", call("eq_int4", column(1), number(1), type_=BOOL)),
        ("map", call("add_int4", column(1), column(2))),
    ]
    return mapped(get("a"), steps, [0, 3, 3])


def _three_way() -> Physical:
    # The columns: a.case a.x a.a | b.case b.x b.y | c.case c.y c.c
    inputs = [get("a"), get("b"), get("c")]
    return join(
        inputs,
        [column(0), column(3), column(6)],
        [column(1), column(4)],
        [column(5), column(7)],
        orders=((1, 2), (2, 0), (1, 0)),
    )


def _same_class() -> Physical:
    inputs = [get("a"), get("b"), get("a")]
    return join(inputs, [column(0), column(3), column(6)], [column(1), column(4), column(7), column(8)])


def _spanning() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    ratio = call("divide_int4", column(2), column(5))
    total = call("add_int4", column(1), column(4))
    return join(inputs, [column(0), column(3), column(6)], [total, column(7)], [ratio, column(8)])


def _fallible_keys() -> Physical:
    inputs = [get("a"), get("b")]
    key = call("divide_int4", number(6), column(1))
    return join(inputs, [column(0), column(3)], [key, column(4)])


def _with_constant() -> Physical:
    inputs = [get("a"), get("b")]
    return join(inputs, [column(0), column(3)], [column(1), number(1), column(5)])


def _constants() -> Physical:
    rows = ((number(case), number(x), Literal(None, INT4)) for case in range(CASES) for x in (0, 1, 1))
    return ConstantRows(tuple(rows), A)


def _over_linear() -> Physical:
    subtracted = UnionAll((get("a"), NegateAll(get("empty"), A), NegateAll(_plain_linear(), A), _constants()), A)
    inputs = [subtracted, _fallible_linear()]
    return join(inputs, [column(0), column(3)], [column(1), column(4)])


def _floats() -> Physical:
    inputs = [get("f"), get("f")]
    return join(inputs, [column(0), column(3)], [column(1, FLOAT8), column(4, FLOAT8)])


def _texts() -> Physical:
    inputs = [get("f"), get("a"), get("f")]
    return join(inputs, [column(0), column(3), column(6)], [column(2, TEXT), column(8, TEXT)])


def _null_safe() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    return join(
        inputs, [column(0), column(3), column(6)], [column(1), column(4)], [column(5), column(7)], null_safe=(1,)
    )


def _null_safe_throughout() -> Physical:
    inputs = [get("a"), get("b"), get("a")]
    # One class within and across inputs, one with a constant NULL.
    return join(
        inputs,
        [column(0), column(3), column(6)],
        [column(1), column(4), column(7), column(8)],
        [column(2), Literal(None, INT4)],
        null_safe=(1, 2),
    )


def _null_safe_floats() -> Physical:
    inputs = [get("f"), get("f")]
    classes = [column(1, FLOAT8), column(4, FLOAT8)], [column(2, TEXT), column(5, TEXT)]
    return join(inputs, [column(0), column(3)], *classes, null_safe=(1, 2))


def _null_safe_keys_that_fail() -> Physical:
    inputs = [get("a"), get("b")]
    key = call("divide_int4", number(6), column(1))
    return join(inputs, [column(0), column(3)], [key, column(4)], null_safe=(1,))


def _null_safe_spanning() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    ratio = call("divide_int4", column(2), column(5))
    total = call("add_int4", column(1), column(4))
    return join(inputs, [column(0), column(3), column(6)], [total, column(7)], [ratio, column(8)], null_safe=(1, 2))


def _repeated() -> Physical:
    repeated = Repeat(get("r"), 1, relation(("case", INT4), ("x", INT4)))
    return join([get("a"), repeated], [column(0), column(3)], [column(1), column(4)])


def _series_that_fails() -> Physical:
    # Steps of 0 fail.
    series = call("generate_series_int4", number(0), column(1), column(2), type_=array_of(INT4))
    made = mapped(get("a"), [("map", series)], [0, 1, 3])
    return Unnest(made, 1, True, relation(("case", INT4), ("x", INT4), ("element", INT4), ("ordinality", INT8)))


def _caught() -> Physical:
    return _caught_of(_fallible_linear())


def _caught_of(below: Physical) -> Physical:
    return Catch(below, RelationType((*below.relation_type.columns, Column("error", TEXT))))


def _caught_and_joined() -> Physical:
    caught = _caught()
    errors = [("filter", call("is_not_null", column(4, TEXT), type_=BOOL))]
    few = mapped(get("b"), [("filter", call("lt_int4", column(0), number(3), type_=BOOL))], [0, 1])
    return join([few, mapped(caught, errors, [4])])


def _unnested_and_joined() -> Physical:
    elements = Unnest(get("g"), 2, False, relation(("case", INT4), ("x", INT4), ("t", TEXT)))
    return join([get("a"), elements], [column(0), column(3)], [column(1), column(4)])


def _cross() -> Physical:
    few = ConstantRows(((number(1), Literal(None, INT4), number(2)),), A)
    return join([few, mapped(get("a"), [("filter", call("lt_int4", column(0), number(3), type_=BOOL))], [1])])


def accumulated(node: Physical, key_arity: int) -> Accumulate:
    """Returns the counts and sums of what is behind a key."""
    columns = list(node.relation_type.columns)
    columns.insert(key_arity, Column("rows", INT8, False))
    return Accumulate(node, key_arity, RelationType(tuple(columns)))


def _sums(node: Physical, key: Sequence[int], values: Sequence[int]) -> Accumulate:
    # A key has no negative zero: that is column 5.
    steps = [("map", call("unsigned_zero_float8", column(2, FLOAT8), type_=FLOAT8))]
    return accumulated(mapped(node, steps, [0, *key, *values]), 1 + len(key))


def _sums_that_fail() -> Physical:
    quotient = call("divide_int8", Literal(6, INT8), column(3, INT8), type_=INT8)
    return accumulated(mapped(get("s"), [("map", quotient)], [0, 1, 5]), 2)


def _sums_of_a_join() -> Physical:
    # The columns: a.case a.x a.a | s.case s.k s.x s.n s.m
    both = join([get("a"), get("s")], [column(0), column(3)], [column(1), column(4)])
    return accumulated(mapped(both, [], [0, 2, 6, 7]), 2)


def _rows_of_a_join() -> Physical:
    both = join([get("in"), mapped(get("a"), [], [0, 1])], [column(0), column(5)])
    return mapped(both, [], range(5))


def _valid_of_a_join() -> Physical:
    both = join([get("bounded"), get("a")], [column(0), column(5)])
    return replace(TEMPORAL_SHAPES["several bounds"], input=mapped(both, [], range(5)))


def _same(node: Physical) -> Physical:
    return node


SHAPES: dict[str, Callable[[], Physical]] = {
    "read": lambda: get("a"),
    "constants": _constants,
    "fallible linear": _fallible_linear,
    "plain linear": _plain_linear,
    "union and negation": lambda: UnionAll((get("a"), NegateAll(_plain_linear(), A), get("b")), A),
    "three ways": _three_way,
    "one class of four": _same_class,
    "scalars over several inputs": _spanning,
    "keys that fail": _fallible_keys,
    "a constant among the equal": _with_constant,
    "linear inputs and constants": _over_linear,
    "floating-point keys": _floats,
    "text keys": _texts,
    "no equivalence": _cross,
    "rows repeated": lambda: Repeat(get("r"), 1, relation(("case", INT4), ("x", INT4))),
    "rows repeated and joined": _repeated,
    "errors as rows": _caught,
    "errors as rows, joined": _caught_and_joined,
    "elements side by side": lambda: Unnest(
        get("g"), 2, True, relation(("case", INT4), ("x", INT4), ("t", TEXT), ("ordinality", INT8))
    ),
    "elements of a series that fails": _series_that_fails,
    "elements joined": _unnested_and_joined,
    "NULL equals NULL in one class": _null_safe,
    "NULL equals NULL, a constant too": _null_safe_throughout,
    "NULL equals NULL, floats and texts": _null_safe_floats,
    "NULL equals NULL, keys that fail": _null_safe_keys_that_fail,
    "NULL equals NULL, scalars over several inputs": _null_safe_spanning,
    "counts and sums": lambda: _sums(get("s"), [1], [3, 4]),
    "counts and sums of everything": lambda: accumulated(mapped(get("s"), [], [3, 4]), 0),
    "distinct rows": lambda: _sums(get("s"), [1, 5], []),
    "counts and sums of what fails": _sums_that_fail,
    "counts and sums of what is joined": _sums_of_a_join,
    **{name: partial(_same, node) for name, node in STAGED_SHAPES.items()},
    "top rows of what is joined": lambda: replace(STAGED_SHAPES["top rows in two stages"], input=_rows_of_a_join()),
    **{f"valid in {name}": partial(_same, node) for name, node in TEMPORAL_SHAPES.items()},
    "valid with a bound from a join": _valid_of_a_join,
}


def nodes(plan: Physical) -> Iterator[Physical]:
    """Yields a plan's nodes."""
    yield plan
    for one in physical_inputs(plan):
        yield from nodes(one)


def _looked_up(node: Physical) -> Physical:
    return join([get("a"), node], [column(0), column(3)])


#: For each shape that is linear, a join that looks up its history.
LOOKED_UP: dict[str, Callable[[], Physical]] = {
    f"{name}, looked up": partial(_looked_up, node)
    for name, node in ((name, shape()) for name, shape in SHAPES.items())
    if is_linear(node)
}


def _once(name: str) -> Staged:
    node = STAGED_SHAPES[name]
    return replace(node, once=True)


def _sums_of_windows() -> Physical:
    # The columns: level, bucket | case g x t f | row_number
    windows = replace(_once("row numbers"), input=_rows_of_a_join())
    return accumulated(mapped(windows, [], [2, 7]), 1)


def _top_of_sums() -> Physical:
    # The columns: case k | n | n m
    sums = mapped(_sums(get("s"), [1], [3, 4]), [], [0, 1, 2, 4])
    state = RelationType((*PLACE, *sums.relation_type.columns))
    return Staged(sums, (0,), TopRows((ColumnOrder(3, True, False),), 1), (1,), False, state, once=True)


def _joined_states() -> Physical:
    largest = mapped(_once("extremes in one stage"), [], [2, 3, 4])
    valid = mapped(TEMPORAL_SHAPES["several bounds"], [("filter", column(7, BOOL))], [0, 1])
    sums = _sums(get("s"), [1], [3])
    return join([sums, largest, valid], [column(0), column(4), column(7)])


ONCE: dict[str, Callable[[], Physical]] = {
    **{f"{name}, once": partial(_once, name) for name in _ONCE},
    "sums over windows of what is joined": _sums_of_windows,
    "first rows of sums": _top_of_sums,
    "sums, extremes and what is valid, joined": _joined_states,
    "errors of states as rows": lambda: _caught_of(_once("top rows in one stage")),
}


def check_content(node: Physical, found: Content, known: Known) -> None:
    """Checks that a content is the one that a plan has by its definition; of a tournament, at all levels."""
    wanted = evaluate(node, known)
    if not isinstance(node, Staged) or node.once or node.monotonic:
        assert spelled(found) == spelled(wanted), f"at {known.time}"
        return
    top = Counter({row: n for row, n in found.items() if is_error(row) or row[0] == node.last_level})
    assert spelled(top) == spelled(wanted), f"the result at {known.time}"
    lowest = Counter({row[2:]: n for row, n in found.items() if not is_error(row) and row[0] == 0})
    results = node.relation_type.arity - 2 - node.input.relation_type.arity
    given = evaluate(node.input, known)
    assert spelled(lowest) == spelled(
        Counter({(*row, *(None,) * results): n for row, n in given.items() if not is_error(row)})
    ), f"the input at {known.time}"
    check_levels(node, found, node.input.relation_type.arity)


def _value(source: random.Random, type_: ScalarType) -> Any:
    if type_ is FLOAT8:
        return source.choice([None, 0.0, -0.0, float("nan"), 1.5])
    if type_ is TEXT:
        return source.choice([None, "", "a", "A", "é"])
    if type_.element is not None:
        elements = [_value(source, type_.element) for _ in range(source.randrange(4))]
        return source.choice([None, tuple(elements), tuple(elements)])
    if type_ == numeric(2):
        return source.choice([Decimal("0.00"), Decimal("1.25"), Decimal("-0.50")])
    if type_ is INT8:
        return source.choice([-2, -1, 0, 1, 2])
    return source.choice([None, 0, 1, 1, 2, 3])


def _values(source: random.Random, type_: RelationType) -> list[Any]:
    return random_bounds(source) if type_ is BOUNDED else [_value(source, c.type) for c in type_.columns[1:]]


def _stored(row: Row) -> Row:
    return tuple(list(cell) if isinstance(cell, tuple) else cell for cell in row)


def random_histories(seed: int, cases: int = CASES) -> dict[GlobalId, list[Update]]:
    """Returns random updates of all collections."""
    source = random.Random(seed)
    updates: dict[GlobalId, list[Update]] = {}
    for id, type_ in TYPES.items():
        own = updates[id] = []
        if id == "in":
            own += random_updates(source, range(cases), errors=3)
            continue
        for case in range(cases) if id != "empty" else ():
            for _ in range(source.randrange(8)):
                row: Row = (case, *_values(source, type_))
                own.append((row, source.randrange(TIMES), source.choice([-2, -1, 1, 1, 1, 2])))
                if source.random() < 0.3:  # a duplicate, or its retraction
                    own.append((row, source.randrange(TIMES), source.choice([-1, 1])))
        for _ in range(3 if own else 0):
            own.append(
                (("error", f"22000 bad record {source.randrange(2)}"), source.randrange(TIMES), source.choice([-1, 1]))
            )
    return updates


def stored(updates: Sequence[Update], arity: int) -> list[tuple[Row, int, int, str | None]]:
    """Returns updates as they are stored: data, time, diff and error."""
    return [
        ((None,) * arity, time, diff, row[1]) if row[0] == "error" else (_stored(row), time, diff, None)
        for row, time, diff in updates
    ]


def random_split(source: random.Random, first: int) -> list[tuple[int, int]]:
    """Returns intervals that together are [first, TIMES)."""
    inner = range(first + 1, TIMES)
    cuts = sorted(source.sample(inner, source.randrange(min(3, len(inner) + 1))))
    edges = [first, *cuts, TIMES]
    return list(itertools.pairwise(edges))


def compacted(updates: Sequence[Update], since: int) -> list[Update]:
    """Returns updates of which those before a time are at it, equal ones summed."""
    total = Counter[tuple[Row, int]]()
    for row, time, diff in updates:
        total[exact(row), max(time, since)] += diff
    return [(row, time, diff) for (row, time), diff in total.items() if diff]


def spelled(content: Content) -> dict[str, int]:
    """Returns the content by its rows' spelling, in which NaN equals NaN and -0.0 differs from 0.0."""
    total: dict[str, int] = {}
    for row, n in content.items():
        total[repr(row)] = total.get(repr(row), 0) + n
    return {row: n for row, n in total.items() if n}
