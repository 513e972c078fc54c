"""Random logical plans over three small collections, with NULLs and duplicates.

For the laws of transforms and of lowering. Every operator of the algebra occurs but what the binder alone makes. A plan
may count rows of negative multiplicity; the reference says so, and a test drops that case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    ColumnOrder,
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFunction,
)
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, MZ_TIMESTAMP, TEXT, Column, RelationType, array_of, numeric
from tests.plan.reference import Rows

#: `keyed` keeps its promises: `id` is unique, and rows are never retracted.
COLLECTIONS = {
    "rows": RelationType((Column("a", INT4, False), Column("b", INT4), Column("s", TEXT), Column("f", BOOL))),
    "keyed": RelationType((Column("id", INT4, False), Column("x", INT4)), frozenset({frozenset({0})}), True),
    "numbers": RelationType((Column("n", numeric(2)), Column("big", INT8), Column("a", INT4))),
}
_small = st.sampled_from([1, 2, 0, 3, -1])
_maybe = st.sampled_from([1, 2, None, 0, 3, -1])
_text = st.sampled_from([None, "x", "y"])
_flag = st.sampled_from([None, True, False])


def _counted(*cells: st.SearchStrategy[Any]) -> st.SearchStrategy[Rows]:
    return st.dictionaries(st.tuples(*cells), st.sampled_from([1, 1, 1, 2, 3]), min_size=3, max_size=6).map(Counter)


contents: st.SearchStrategy[dict[str, Rows]] = st.fixed_dictionaries(
    {
        "rows": _counted(_small, _maybe, _text, _flag),
        "keyed": st.dictionaries(_small, _maybe, min_size=3, max_size=5).map(lambda rows: Counter(rows.items())),
        "numbers": _counted(_maybe, _maybe, _maybe),
    }
)
times = st.sampled_from([2, 1, 0, 3])
Draw = Callable[[st.SearchStrategy[Any]], Any]


def _of_type(relation: Relation, *types: object) -> list[int]:
    return [i for i, column in enumerate(relation.relation_type.columns) if column.type in types]


def _predicate(draw: Draw, relation: Relation) -> Scalar:
    choices: list[Scalar] = []
    for position in range(relation.relation_type.arity):
        column = reference(relation.relation_type, position)
        choices.append(Call("is_not_null", (column,), BOOL, False))
        if column.type == BOOL:
            choices.append(column)
        if column.type == INT4:
            name = draw(st.sampled_from(["ne_int4", "le_int4", "gt_int4", "eq_int4"]))
            choices.append(Call(name, (column, Literal(draw(_small), INT4)), BOOL, column.nullable))
    if not choices:
        return Literal(True, BOOL)
    found: Scalar = draw(st.sampled_from(choices))
    if draw(st.integers(0, 4)) == 0:
        other = draw(st.sampled_from(choices))
        found = Call("or", (found, other), BOOL, found.nullable or other.nullable)
    return found


def _mapped(draw: Draw, relation: Relation) -> Relation:
    scalars: list[Scalar] = [Literal(draw(_maybe), INT4)]
    for position in _of_type(relation, INT4):
        column = reference(relation.relation_type, position)
        scalars.append(Call("add_int4", (column, Literal(draw(_small), INT4)), INT4, column.nullable))
        scalars.append(Call("coalesce", (column, Literal(draw(_small), INT4)), INT4, False))
        scalars.append(If(_predicate(draw, relation), column, Literal(None, INT4)))
    return Map(relation, (draw(st.sampled_from(scalars)),), ("m",))


def _order(draw: Draw, positions: list[int]) -> tuple[ColumnOrder, ...]:
    if not positions:
        return ()
    chosen = draw(st.lists(st.sampled_from(positions), unique=True, max_size=2))
    return tuple(ColumnOrder(position, draw(st.booleans()), draw(st.booleans())) for position in chosen)


def _some(draw: Draw, relation: Relation, most: int = 2) -> tuple[int, ...]:
    everything = list(range(relation.relation_type.arity))
    return tuple(draw(st.lists(st.sampled_from(everything), unique=True, max_size=most))) if everything else ()


def _aggregate(draw: Draw, relation: Relation) -> Aggregate:
    columns = relation.relation_type.columns
    flags = _of_type(relation, BOOL)
    filter_ = draw(st.sampled_from([None, None, *flags]))
    distinct = draw(st.integers(0, 2)) == 0
    choices = [Aggregate(AggregateFunction.COUNT, (), INT8, filter=filter_)]
    for position, column in enumerate(columns):
        sum_type = {INT4: INT8, INT8: numeric(0)}.get(column.type, column.type)
        order = _order(draw, [position] if distinct else list(range(len(columns))))
        choices.append(Aggregate(AggregateFunction.COUNT, (position,), INT8, distinct, filter_))
        if column.type != BOOL and column.type.element is None:
            for function in (AggregateFunction.MIN, AggregateFunction.MAX):
                choices.append(Aggregate(function, (position,), column.type, distinct, filter_))
        if column.type.element is None:
            array = array_of(column.type)
            choices.append(Aggregate(AggregateFunction.ARRAY_AGG, (position,), array, distinct, filter_, order))
        if column.type in (INT4, INT8) or column.type == numeric(2):
            choices.append(Aggregate(AggregateFunction.SUM, (position,), sum_type, distinct, filter_))
        if column.type in (INT4, INT8):
            for function in (AggregateFunction.BIT_AND, AggregateFunction.BIT_OR, AggregateFunction.BIT_XOR):
                choices.append(Aggregate(function, (position,), column.type, distinct, filter_))
        if column.type == TEXT and not distinct:
            separator = draw(st.sampled_from(_of_type(relation, TEXT)))
            choices.append(Aggregate(AggregateFunction.STRING_AGG, (position, separator), TEXT, False, filter_, order))
    return draw(st.sampled_from(choices))  # type: ignore[no-any-return]


def _reduced(draw: Draw, relation: Relation) -> Relation:
    aggregates = tuple(_aggregate(draw, relation) for _ in range(draw(st.integers(0, 4))))
    return Reduce(
        relation,
        _some(draw, relation),
        aggregates,
        tuple(f"g{i}" for i in range(len(aggregates))),
        draw(st.sampled_from([None, 10, 5000])),
    )


def _ints(draw: Draw, relation: Relation) -> Relation:
    """Makes two integer columns of a relation, so that relations can be added up."""
    positions = _of_type(relation, INT4)
    padded = Map(relation, (Literal(draw(_maybe), INT4),), ("p",))
    positions.append(padded.relation_type.arity - 1)
    return Projection(padded, (draw(st.sampled_from(positions)), draw(st.sampled_from(positions))))


def _joined(draw: Draw, left: Relation, right: Relation) -> Relation:
    offset = left.relation_type.arity
    columns = RelationType(left.relation_type.columns + right.relation_type.columns)
    classes = []
    for _ in range(draw(st.integers(0, 2))):
        pairs = [(i, offset + j) for i in _of_type(left, INT4) for j in _of_type(right, INT4)]
        if pairs:
            pair = draw(st.sampled_from(pairs))
            classes.append(tuple(reference(columns, position) for position in pair))
    null_safe = frozenset(i for i in range(len(classes)) if draw(st.booleans()))
    joined: Relation = Join((left, right), tuple(classes), null_safe)
    if draw(st.booleans()):
        joined = Filter(joined, (_predicate(draw, joined),))
    pairs = [(i, offset + j) for i in _of_type(left, INT4) for j in _of_type(right, INT4)]
    if pairs and draw(st.booleans()):
        pair = draw(st.sampled_from(pairs))
        equal = Call("eq_int4", tuple(reference(columns, position) for position in pair), BOOL)
        joined = Filter(joined, (equal,))
    return joined


def _temporal(draw: Draw, relation: Relation) -> Relation:
    def bounds() -> tuple[Scalar, ...]:
        found: list[Scalar] = []
        for position in draw(st.lists(st.sampled_from(_of_type(relation, INT4)), max_size=1)):
            column = reference(relation.relation_type, position)
            found.append(Call("cast_int4_to_mz_timestamp", (column,), MZ_TIMESTAMP, column.nullable))
        return tuple(found)

    return TemporalFilter(relation, bounds(), bounds()) if _of_type(relation, INT4) else relation


def _repeated(draw: Draw, relation: Relation) -> Relation:
    counts: list[Scalar] = [Literal(draw(st.sampled_from([1, 2, 2, 3, 0, -1])), INT8)]
    for position in _of_type(relation, INT4):
        column = reference(relation.relation_type, position)
        count = Call("coalesce", (column, Literal(1, INT4)), INT4, False)
        counts.append(Call("cast_int4_to_int8", (count,), INT8, False))
    return RepeatRow(Map(relation, (draw(st.sampled_from(counts)),), ("n",)), relation.relation_type.arity)


def _caught(draw: Draw, relation: Relation) -> Relation:
    caught = CatchErrors(relation)
    error = reference(caught.relation_type, relation.relation_type.arity)
    kind = draw(st.sampled_from(["is_null", "is_null", "is_not_null"]))
    return Projection(Filter(caught, (Call(kind, (error,), BOOL, False),)), tuple(range(relation.relation_type.arity)))


def _flattened(draw: Draw, relation: Relation) -> Relation:
    """Makes rows of one or two arrays: of literals, of columns, or NULL."""
    arrays: list[Scalar] = [Literal(draw(st.sampled_from([None, (), (1,), (2, None, 2)])), array_of(INT4))]
    for position in _of_type(relation, INT4):
        column = reference(relation.relation_type, position)
        arrays.append(Call("array", (column, Literal(draw(_maybe), INT4)), array_of(INT4), False))
    chosen = tuple(draw(st.sampled_from(arrays)) for _ in range(draw(st.integers(1, 2))))
    mapped = Map(relation, chosen, tuple(f"e{i}" for i in range(len(chosen))))
    return FlatMap(mapped, len(chosen), draw(st.booleans()))


def _windowed(draw: Draw, relation: Relation) -> Relation:
    functions = tuple(
        WindowFunction(name, (), INT8, False)
        for name in draw(st.lists(st.sampled_from(["row_number", "rank", "count"]), min_size=1, max_size=2))
    )
    order = _order(draw, list(range(relation.relation_type.arity)))
    window = Window(relation, _some(draw, relation), order, functions, tuple(f"w{i}" for i in range(len(functions))))
    if draw(st.booleans()):
        return window
    bounded = ColumnRef(window.relation_type.arity - 1, INT8, False)
    bound = Literal(draw(st.integers(0, 3)), INT8)
    comparisons = [Call(name, (bounded, bound), BOOL, False) for name in ("le_int8", "lt_int8", "eq_int8")]
    comparisons += [Call(name, (bound, bounded), BOOL, False) for name in ("ge_int8", "gt_int8", "eq_int8")]
    return Filter(window, (draw(st.sampled_from(comparisons)),))


def _shared(draw: Draw, value: Relation, depth: int) -> Relation:
    """Binds a relation and uses it twice."""
    get = Get(GlobalId(f"let:{depth}"), value.relation_type)

    def use() -> Relation:
        match draw(st.sampled_from(["plain", "filter", "project"])):
            case "filter":
                return Filter(get, (_predicate(draw, get),))
            case "project":
                return Projection(get, _some(draw, get, most=4))
            case _:
                return get

    if draw(st.booleans()):
        return Let(get.id, value, _joined(draw, use(), use()))
    return Let(get.id, value, Union((_ints(draw, use()), Negate(_ints(draw, use())), _ints(draw, use()))))


_OPERATORS = [
    "let",
    "filter",
    "map",
    "project",
    "join",
    "union",
    "except",
    "reduce",
    "top",
    "window",
    "temporal",
    "repeat",
    "flatten",
    "catch",
]


@st.composite
def relations(draw: Draw, depth: int = 4) -> Relation:
    """Draws a plan of at most `depth` operators above one another."""
    if depth == 0 or draw(st.integers(0, 9)) == 9:
        if draw(st.integers(0, 19)) == 19:
            rows = draw(st.lists(st.tuples(_small, _maybe), min_size=1, max_size=3))
            columns = RelationType((Column("v", INT4), Column("w", INT4)))
            return Constant(tuple((Literal(v, INT4), Literal(w, INT4)) for v, w in rows), columns)
        name = draw(st.sampled_from(sorted(COLLECTIONS)))
        return Get(GlobalId(name), COLLECTIONS[name], name)

    def below() -> Relation:
        return draw(relations(depth=depth - 1))  # type: ignore[no-any-return]

    match draw(st.sampled_from(_OPERATORS)):
        case "let":
            return _shared(draw, below(), depth)
        case "filter":
            relation = below()
            return Filter(relation, (_predicate(draw, relation),))
        case "map":
            return _mapped(draw, below())
        case "project":
            relation = below()
            return Projection(relation, _some(draw, relation, most=4))
        case "join":
            return _joined(draw, below(), below())
        case "union":
            return Union((_ints(draw, below()), _ints(draw, below())))
        case "except":
            return Threshold(Union((_ints(draw, below()), Negate(_ints(draw, below())))))
        case "reduce":
            return _reduced(draw, below())
        case "top":
            relation = below()
            order = _order(draw, list(range(relation.relation_type.arity)))
            limit, offset = draw(st.sampled_from([3, 2, 1, 4, 5, None])), draw(st.sampled_from([0, 0, 0, 1]))
            size, ties = draw(st.sampled_from([None, 10])), limit is not None and not offset and draw(st.booleans())
            return TopK(relation, _some(draw, relation), order, limit, offset, size, ties)
        case "window":
            return _windowed(draw, below())
        case "temporal":
            return _temporal(draw, below())
        case "flatten":
            return _flattened(draw, below())
        case "catch":
            return _caught(draw, below())
        case _:
            return _repeated(draw, below())
