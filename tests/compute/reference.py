"""A slow, obvious evaluator of physical plans: the oracle of `compute/`.

A collection's content at a time is a `Counter` of rows; an update of the error part is the row `("error", text)`.
Scalars are evaluated one by one, to a value or a `Failed`. Nothing is incremental and nothing is shared with the
product but the plan's own types.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    TemporalState,
    UnionAll,
    Unnest,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, columns_of
from tests.plan.reference import beside_elements

Row = tuple[Any, ...]
Content = Counter[Row]
#: `(row or ("error", text), time, diff)`.
Update = tuple[Row, int, int]


class Exact(float):
    """Is a float that equals only what has its bits, NaN included: two zeros are two rows."""

    def __hash__(self) -> int:
        return hash(struct.pack("d", self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and struct.pack("d", self) == struct.pack("d", other)


def exact(row: Row) -> Row:
    return tuple(map(exact_cell, row))


def exact_cell(cell: Any) -> Any:
    """Returns a cell that equals only what has its bits; of an array, an interval or a record a tuple."""
    if isinstance(cell, float):
        return Exact(cell)
    if isinstance(cell, dict):
        return exact(tuple(cell.values()))
    return exact(tuple(cell)) if isinstance(cell, list | tuple) else cell


class Failed(Exception):
    """Is the outcome of a scalar that fails."""


def at(updates: Sequence[Update], time: int) -> Content:
    """Returns the content that updates up to `time` sum to."""
    content: Content = Counter()
    for row, t, diff in updates:
        if t <= time:
            content[exact(row)] += diff
    return clean(content)


def clean(content: Content) -> Content:
    return Counter({row: n for row, n in content.items() if n})


def is_error(row: Row) -> bool:
    return len(row) == 2 and row[0] == "error"


def value_of(scalar: Scalar, row: Row) -> Any:
    match scalar:
        case ColumnRef():
            return row[scalar.position]
        case Literal():
            return scalar.value
        case If():
            taken = scalar.then if value_of(scalar.condition, row) else scalar.otherwise
            return value_of(taken, row)
        case Call():
            return call(scalar, row)


def call(scalar: Call, row: Row) -> Any:
    if scalar.function in ("and", "or"):
        decisive = scalar.function == "or"
        failed: Failed | None = None
        values = []
        for argument in scalar.arguments:
            try:
                values.append(value_of(argument, row))
            except Failed as error:
                failed = failed or error
        if decisive in values:
            return decisive
        if failed:
            raise failed
        return None if None in values else not decisive
    if scalar.function == "generate_series_int4":
        return series(*(value_of(argument, row) for argument in scalar.arguments))
    if scalar.function == "is_not_null":
        return value_of(scalar.arguments[0], row) is not None
    left, right = (value_of(argument, row) for argument in scalar.arguments)
    if left is None or right is None:
        return None
    name = scalar.function.partition("_")[0]
    match name:
        case "eq":
            return equal(left, right)
        case "lt":
            return left < right
        case "add":
            return left + right
        case "divide":
            if right == 0:
                raise Failed("22012 division by zero")
            return math.trunc(left / right)
    raise NotImplementedError(scalar.function)


def series(start: int | None, stop: int | None, step: int | None) -> tuple[int, ...] | None:
    if start is None or stop is None or step is None:
        return None
    if step == 0:
        raise Failed("22023 step size cannot equal zero")
    return tuple(range(start, stop + (1 if step > 0 else -1), step))


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        left, right = float(left), float(right)
        return left == right or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


def evaluate(node: Physical, collections: Mapping[GlobalId, Content]) -> Content:
    """Returns the content of `node`, given that of the collections."""
    match node:
        case ReadCollection():
            return collections[node.id]
        case ConstantRows():
            return clean(Counter([tuple(cell.value for cell in row) for row in node.rows]))
        case NegateAll():
            below = evaluate(node.input, collections)
            return Counter({row: n if is_error(row) else -n for row, n in below.items()})
        case UnionAll():
            whole: Content = Counter()
            for one in node.inputs:
                for row, n in evaluate(one, collections).items():
                    whole[row] += n
            return clean(whole)
        case Linear():
            return _linear(node.mfp, evaluate(node.input, collections))
        case DeltaJoin():
            return _join(node, [evaluate(one, collections) for one in node.inputs])
        case Repeat():
            repeated: Content = Counter()
            for row, n in evaluate(node.input, collections).items():
                if is_error(row):
                    repeated[row] += n
                else:
                    repeated[row[: node.count] + row[node.count + 1 :]] += n * row[node.count]
            return clean(repeated)
        case Catch():
            caught: Content = Counter()
            for row, n in evaluate(node.input, collections).items():
                width = node.input.relation_type.arity
                caught[((None,) * width + row[1:]) if is_error(row) else (*row, None)] += n
            return clean(caught)
        case Unnest():
            unnested: Content = Counter()
            for row, n in evaluate(node.input, collections).items():
                for each in [row] if is_error(row) else beside_elements(row, node.arrays, node.ordinality):
                    unnested[each] += n
            return clean(unnested)
        case Accumulate() | Staged() | TemporalState():
            raise NotImplementedError("keyed operators have oracles of their own")


def _linear(mfp: MapFilterProject, content: Content) -> Content:
    result: Content = Counter()
    for row, n in content.items():
        if is_error(row):
            result[row] += n
            continue
        wide = row
        try:
            for kind, scalar in mfp.steps:
                value = value_of(scalar, wide)
                if kind == "map":
                    wide = (*wide, value)
                elif value is not True:
                    break
            else:
                result[tuple(wide[p] for p in mfp.projection)] += n
        except Failed as error:
            result["error", str(error)] += n
    return clean(result)


def _join(node: DeltaJoin, inputs: list[Content]) -> Content:
    arities = [one.relation_type.arity for one in node.inputs]
    offsets = [sum(arities[:i]) for i in range(len(arities))]
    result: Content = Counter()
    good: list[list[tuple[Row, int]]] = []
    for i, content in enumerate(inputs):
        mine = range(offsets[i], offsets[i] + arities[i])
        own_keys = [
            scalar
            for equivalence in node.equivalences
            for scalar in equivalence
            if columns_of(scalar) and columns_of(scalar) <= set(mine)
        ]
        rows: list[tuple[Row, int]] = []
        for row, n in content.items():
            if is_error(row):
                result[row] += n
                continue
            placed = (None,) * offsets[i] + row + (None,) * (sum(arities) - offsets[i] - arities[i])
            try:
                for scalar in own_keys:
                    value_of(scalar, placed)
            except Failed as error:
                result["error", str(error)] += n
            else:
                rows.append((row, n))
        good.append(rows)
    for chosen in _candidates(node, good, offsets):
        joined = tuple(itertools.chain.from_iterable(row for row, _ in chosen))
        n = math.prod(n for _, n in chosen)
        outcome = _matches(node, joined)
        if isinstance(outcome, str):
            result["error", outcome] += n
        elif outcome:
            result[joined] += n
    return clean(result)


def _candidates(
    node: DeltaJoin, inputs: list[list[tuple[Row, int]]], offsets: list[int]
) -> Iterator[tuple[tuple[Row, int], ...]]:
    """Yields the combinations of rows to look at: all, or those that agree on the case, if that is the first class."""
    first = node.equivalences[0] if node.equivalences else ()
    if [scalar.position if isinstance(scalar, ColumnRef) else None for scalar in first] != offsets:
        yield from itertools.product(*inputs)
        return
    cases = {row[0] for row, _ in inputs[0]} - {None}
    for case in cases:
        yield from itertools.product(*([one for one in rows if one[0][0] == case] for rows in inputs))


def _matches(node: DeltaJoin, joined: Row) -> bool | str:
    """Compares what cannot fail first: an error of a scalar over several inputs belongs to rows that are met."""
    for number, equivalence in enumerate(node.equivalences):
        values = []
        failed: str | None = None
        for scalar in equivalence:
            try:
                values.append(value_of(scalar, joined))
            except Failed as error:
                failed = failed or str(error)
        if number not in node.null_safe and None in values:
            return False
        if any(not equal(values[0], value) for value in values[1:]):
            return False
        if failed:
            return failed
    return True
