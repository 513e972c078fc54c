"""What a tournament holds, recomputed from scratch: the oracle of `Staged`.

Contents are `Counter`s of rows, as in `contents.py`; the state's rows are `(level, bucket, *row, *results)`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast

from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes, Gathered, Staged, TopRows, Windowed
from mz_dagster.plan.relation import Aggregate, ColumnOrder, FrameBound, FrameExclusion, FrameUnit, WindowFunction
from tests.compute.contents import Content, Exact, Row, Update, clean, exact, is_error

NEGATIVE = ("error", "XX001 a row has a negative multiplicity")
RETRACTED = ("error", "XX001 a row was retracted from a collection that never retracts")


def comparable(value: Any) -> Any:
    """Returns what sorts as the value does: texts go by bytes, NaN is last, NULL in what nests first."""
    if isinstance(value, tuple):
        return tuple(() if one is None else (comparable(one),) for one in value)
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else float(value))
    return value.encode() if isinstance(value, str) else value


def identical(value: Any) -> Any:
    """Returns what is equal for values of one group: NULLs, NaNs, the two zeros."""
    if isinstance(value, tuple):
        return tuple(map(identical, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(value) + 0.0
    return value


def ordered(rows: Sequence[Row], order: Sequence[ColumnOrder], arity: int) -> list[Row]:
    """Returns the rows in the order, ties by the whole row, NULLs last, a negative zero before a positive one."""

    def whole(row: Row) -> Any:
        cells = [(cell is None, 0 if cell is None else comparable(cell)) for cell in row[:arity]]
        return cells, [signs(cell) for cell in row[:arity]]

    result = sorted(rows, key=whole)
    for one in reversed(order):
        nulls = [row for row in result if row[one.position] is None]
        others = [row for row in result if row[one.position] is not None]
        others.sort(key=lambda row, p=one.position: comparable(row[p]), reverse=one.descending)  # type: ignore[misc]
        result = nulls + others if one.nulls_first else others + nulls
    return result


def signs(cell: Any) -> list[bool]:
    """Returns of each number in a value whether it is not -0.0."""
    if isinstance(cell, tuple):
        return [sign for one in cell for sign in signs(one)]
    return [not isinstance(cell, float) or float(cell) != 0 or math.copysign(1, cell) > 0]


def _equal(one: Any, other: Any) -> bool:
    return one is other is None or (None not in (one, other) and bool(comparable(one) == comparable(other)))


def copies(content: Content) -> list[Row]:
    return [row for row, n in content.items() for _ in range(n)]


def stage(node: Staged, content: Content, *, last: bool) -> Content:
    """Returns what the stage function makes of the rows of one bucket of one group."""
    function = node.function
    arity = node.input.relation_type.arity
    match function:
        case TopRows():
            rows = ordered(copies(content), function.order, arity)
            stop = None if function.limit is None else function.limit + function.offset
            if function.ties and stop and len(rows) > stop:
                end, places = rows[stop - 1], [one.position for one in function.order]
                stop += sum(1 for row in rows[stop:] if all(_equal(row[p], end[p]) for p in places))
            return Counter(rows[function.offset if last else 0 : stop])
        case Extremes():
            return Counter([_extreme(node, function, content)])
        case Gathered():
            first = next(iter(content))
            row = [_unsigned(cell) if i in node.group else None for i, cell in enumerate(first)]
            results = [gathered(one, content, arity) for one in function.aggregates]
            return Counter([(*row, *results)])
        case Windowed():
            rows = ordered(copies(content), function.order, arity)
            return Counter(
                [(*row, *(_said(one, rows, place) for one in function.functions)) for place, row in enumerate(rows)]
            )


def _said(function: WindowFunction, rows: Sequence[Row], place: int) -> Any:
    """Returns what a window function says of a row; its frame is of rows between two distances."""
    match function.name:
        case "row_number":
            return place + 1
        case "lag" | "lead":
            value, *rest = function.arguments
            steps = rows[place][rest[0]] if rest else 1
            other = place + (steps if function.name == "lead" else -steps)
            if 0 <= other < len(rows):
                return rows[other][value]
            return rows[place][rest[1]] if len(rest) > 1 else None
        case "sum" | "count" | "nth_value":
            frame = function.frame
            assert frame is not None
            assert frame.unit is FrameUnit.ROWS
            places = range(max(place + _steps(frame.start), 0), min(place + _steps(frame.end) + 1, len(rows)))
            with_own = frame.exclusion is FrameExclusion.NO_OTHERS
            seen = [rows[one][function.arguments[0]] for one in places if with_own or one != place]
            known = [one for one in seen if one is not None]
            match function.name:
                case "count":
                    return len(known)
                case "sum":
                    return sum(known) if known else None
            nth = rows[place][function.arguments[1]]
            return seen[nth - 1] if nth <= len(seen) else None
    raise NotImplementedError(function.name)


def gathered(aggregate: Aggregate, content: Content, arity: int) -> Any:
    rows = ordered(copies(content), aggregate.order, arity)
    if aggregate.filter is not None:
        rows = [row for row in rows if row[aggregate.filter]]
    algebra = aggregate.function.record.algebra
    assert algebra is not None
    found = algebra(aggregate.type).value([([row[position] for position in aggregate.arguments], 1) for row in rows])
    return tuple(found) if isinstance(found, list) else found


def _extreme(node: Staged, function: Extremes, content: Content) -> Row:
    row = [_unsigned(cell) for cell in next(iter(content))]
    others = [i for i in range(len(row)) if i not in node.group]
    for position, kind in zip(others, function.functions, strict=True):
        if kind in (AggregateFunction.MIN, AggregateFunction.MAX):
            # What nests has the order of its stored form, in which a plan has made it comparable.
            values = [one[position] for one in content if one[position] is not None]
            extreme = (max if kind is AggregateFunction.MAX else min)(values, key=comparable) if values else None
            row[position] = _unsigned(extreme)
            continue
        algebra = kind.record.of_type(node.input.relation_type.columns[position].type)
        row[position] = algebra.value([((one[position],), n) for one, n in content.items()])
    return tuple(row)


def _unsigned(cell: Any) -> Any:
    if isinstance(cell, tuple):
        return tuple(map(_unsigned, cell))
    return Exact(0.0) if isinstance(cell, float) and float(cell) == 0 else cell


def groups(node: Staged, content: Content) -> Iterator[Content]:
    """Yields the content of each group."""
    found: dict[Row, Content] = defaultdict(Counter)
    for row, n in content.items():
        found[tuple(identical(row[position]) for position in node.group)][row] += n
    yield from found.values()


def result(node: Staged, content: Content) -> Content:
    """Returns the last level, without level and bucket, and the error part, from the input's content."""
    whole: Content = Counter()
    good: Content = Counter()
    for row, n in content.items():
        if is_error(row):
            whole[row] += n
        elif n < 0:
            whole[RETRACTED if node.monotonic else NEGATIVE] += 1
        else:
            good[row] = n
    for group in groups(node, good):
        whole.update(stage(node, group, last=True))
    return clean(whole)


def never_retracted(updates: Sequence[Update], hydrated_at: int, time: int) -> Content:
    """Returns the content that a monotonic operator takes for its input's, each retraction being a row that stays."""
    whole: Content = Counter()
    for now in range(hydrated_at, time + 1):
        changes: Content = Counter()
        for row, t, diff in updates:
            if t == now or (now == hydrated_at and t < now):
                changes[exact(row)] += diff
        for row, n in changes.items():
            if n < 0 and not is_error(row):
                whole[RETRACTED] += 1
            else:
                whole[row] += n
    return clean(whole)


def check_levels(node: Staged, state: Content, arity: int) -> None:
    """Checks that each level is what its stage makes of the buckets of the one below."""
    extra = node.relation_type.arity - 2 - arity
    levels: dict[int, dict[int, Content]] = defaultdict(lambda: defaultdict(Counter))
    for row, n in state.items():
        if not is_error(row):
            levels[row[0]][row[1]][row[2:]] += n
    widths = [*node.buckets, 1]
    for level, buckets in levels.items():
        assert all(0 <= bucket < widths[level] for bucket in buckets)
    homes: dict[Row, int] = {}
    for bucket, content in levels[0].items():
        for row in content:
            home = tuple(identical(cell) for cell in row)
            assert homes.setdefault(home, bucket) == bucket, "equal rows lie in two buckets"
    for level in range(node.last_level):
        last = level == node.last_level - 1
        above: dict[int, Content] = defaultdict(Counter)
        for bucket, content in levels[level].items():
            plain = Counter({row[:arity]: n for row, n in content.items() if n > 0})
            for group in groups(node, plain):
                made = stage(node, group, last=last)
                if not last:
                    made = Counter({(*row, *(None,) * extra): n for row, n in made.items()})
                above[bucket % widths[level + 1]].update(made)
        assert {b: clean(c) for b, c in above.items() if clean(c)} == dict(levels[level + 1]), f"level {level + 1}"


def _steps(bound: FrameBound) -> int:
    assert bound.offset is not None
    return cast(int, bound.offset.value) * (-1 if bound.preceding else 1)
