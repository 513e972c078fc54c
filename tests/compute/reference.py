"""A slow, obvious evaluator of physical plans: the oracle of `compute/`.

A collection's content at a time is a `Counter` of rows; an update of the error part is the row `("error", text)`.
Scalars are evaluated one by one, to a value or a `Failed`. Nothing is incremental and nothing is shared with the
product but the plan's own types. What tournaments come to is in `staged_reference.py`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

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
from tests.compute.contents import Content, Exact, Row, Update, at, clean, is_error
from tests.compute.staged_reference import never_retracted, result
from tests.plan.reference import beside_elements

#: The last time that there is.
LAST = 2**63 - 1


@dataclass(frozen=True)
class Known:
    """Is what is known of all collections, for one time.

    Attributes:
        updates: Theirs, at all times.
        time: Which time it is.
        first: When what is asked about began: what came before, came then.
    """

    updates: Mapping[GlobalId, Sequence[Update]]
    time: int
    first: int = 0
    _contents: dict[tuple[GlobalId, int], Content] = field(default_factory=dict)

    def content(self, id: GlobalId) -> Content:
        """Returns a collection's content."""
        if (id, self.time) not in self._contents:
            self._contents[id, self.time] = at(self.updates[id], self.time)
        return self._contents[id, self.time]


class Failed(Exception):
    """Is the outcome of a scalar that fails."""


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
    if len(scalar.arguments) == 1:
        return of_one(scalar.function, value_of(scalar.arguments[0], row))
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


def of_one(function: str, value: Any) -> Any:
    """Returns what a function of one argument returns."""
    if function == "is_not_null":
        return value is not None
    if value is None:
        return None
    match function:
        case "unsigned_zero_float8":
            return Exact(0.0) if float(value) == 0 else value
        case "cast_int8_to_mz_timestamp":
            if value < 0:
                raise Failed("22003 mz_timestamp out of range")
            return value
        case "step_mz_timestamp":
            if value == LAST:
                raise Failed("22003 step mz_timestamp overflow")
            return value + 1
    raise NotImplementedError(function)


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


def evaluate(node: Physical, known: Known) -> Content:
    """Returns the content of `node`; of a tournament without the levels below the last."""
    match node:
        case ReadCollection():
            return known.content(node.id)
        case ConstantRows():
            return clean(Counter([tuple(cell.value for cell in row) for row in node.rows]))
        case NegateAll():
            below = evaluate(node.input, known)
            return Counter({row: n if is_error(row) else -n for row, n in below.items()})
        case UnionAll():
            whole: Content = Counter()
            for one in node.inputs:
                for row, n in evaluate(one, known).items():
                    whole[row] += n
            return clean(whole)
        case Linear():
            return _linear(node.mfp, evaluate(node.input, known))
        case DeltaJoin():
            return _join(node, [evaluate(one, known) for one in node.inputs])
        case Repeat():
            repeated: Content = Counter()
            for row, n in evaluate(node.input, known).items():
                if is_error(row):
                    repeated[row] += n
                else:
                    repeated[row[: node.count] + row[node.count + 1 :]] += n * row[node.count]
            return clean(repeated)
        case Catch():
            caught: Content = Counter()
            for row, n in evaluate(node.input, known).items():
                width = node.input.relation_type.arity
                caught[((None,) * width + row[1:]) if is_error(row) else (*row, None)] += n
            return clean(caught)
        case Unnest():
            unnested: Content = Counter()
            for row, n in evaluate(node.input, known).items():
                for each in [row] if is_error(row) else beside_elements(row, node.arrays, node.ordinality):
                    unnested[each] += n
            return clean(unnested)
        case Accumulate():
            return accumulated(node, evaluate(node.input, known))
        case Staged():
            rows = result(node, _of_what_grows(node, known) if node.monotonic else evaluate(node.input, known))
            return Counter({row if is_error(row) else (node.last_level, 0, *row): n for row, n in rows.items()})
        case TemporalState():
            return valid(node, evaluate(node.input, known), known.time)
        case _:
            assert_never(node)


def accumulated(node: Accumulate, content: Content) -> Content:
    """Returns the counts and sums of what is there."""
    arity = node.input.relation_type.arity
    totals: dict[Row, list[Any]] = defaultdict(lambda: [0] * (1 + arity - node.key_arity))
    found: Content = Counter()
    for row, n in content.items():
        if is_error(row):
            found[row] += n
            continue
        total = totals[row[: node.key_arity]]
        for i, value in enumerate((1, *row[node.key_arity :])):
            total[i] += n * value
    found.update({(*key, *total): 1 for key, total in totals.items() if any(total)})
    return found


def valid(node: TemporalState, content: Content, time: int) -> Content:
    """Returns which rows of a content are valid at a time, or will be."""
    found: Content = Counter()
    for row, n in content.items():
        if is_error(row):
            found[row] += n
            continue
        try:
            lower, upper = ([value_of(one, row) for one in bounds] for bounds in (node.lower, node.upper))
        except Failed as error:
            found["error", str(error)] += n
            continue
        if None in lower or None in upper:
            continue
        start, end = max([0, *lower]), min(upper, default=None)
        if end is None or max(start, time) < end:
            found[(*row, start, end, start <= time)] += n
    return clean(found)


def _of_what_grows(node: Staged, known: Known) -> Content:
    changes: list[Update] = []
    before: Content = Counter()
    for time in range(known.first, known.time + 1):
        content = evaluate(node.input, replace(known, time=time))
        changes += [(row, time, n) for row in {*before, *content} if (n := content[row] - before[row])]
        before = content
    return never_retracted(changes, known.first, known.time)


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
