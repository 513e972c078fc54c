"""What is constant is computed now, as far as Python computes it exactly as SQL does.

Owns: calls that `functions.evaluation` knows; booleans, NULL through strict functions, branches whose condition is
known; dates compared with moments; errors of what cannot fail; filters that keep all or nothing; rows of constants
under maps, projections, unions and joins; operators over no rows, and those that keep all rows or none. A call that
Python does not evaluate, or whose result would be an error, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeAlias, assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import FUNCTIONS
from mz_dagster.functions.evaluation import compiled, is_evaluable, value_of
from mz_dagster.functions.plain import to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.day_comparison import compared_by_day
from mz_dagster.plan.membership import as_membership
from mz_dagster.plan.relation import (
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    OneInput,
    Projection,
    Relation,
    TemporalFilter,
    TopK,
    Union,
    inputs_of,
    query_of,
)
from mz_dagster.plan.rewriting import (
    bottom_up,
    can_fail,
    empty,
    filtered,
    is_not_true,
    is_true,
    moved,
    projected_to,
    scalars_of,
    substituted,
    with_inputs,
    with_mapped_scalars,
)
from mz_dagster.scalars.scalar import (
    Call,
    ColumnRef,
    If,
    Literal,
    OuterColumn,
    Scalar,
    Subquery,
    Value,
    children,
    columns_of,
    walk,
)
from mz_dagster.scalars.types import BOOL, INT8, Column, Kind, RelationType
from mz_dagster.scalars.values import Dimensioned

_Row: TypeAlias = tuple[Literal, ...]

#: So many rows of arrays are written out in a plan.
_FEW_ROWS = 1000
#: So many elements an array has whose functions are computed here.
_FEW_ELEMENTS = 100
#: So long a text or bytea is.
_FEW_CHARACTERS = 10_000


def fold_constants(relation: Relation) -> Relation:
    """Returns `relation` with constants computed."""
    return bottom_up(relation, _folded_relation)


def with_constant_calls(relation: Relation) -> Relation:
    """Returns `relation` with calls of constants computed, and nothing else changed; so in its subqueries.

    What decides by whether a scalar can fail then knows that `1 + 3` cannot. A node in which nothing changes stays
    itself.
    """
    found: dict[int, Relation] = {}

    def rebuilt(one: Relation) -> Relation:
        if id(one) not in found:
            scalars = scalars_of(one)
            own = one if _are(scalars, map(computed, scalars)) else with_mapped_scalars(one, computed)
            found[id(one)] = with_inputs(own, [rebuilt(each) for each in inputs_of(own)])
        return found[id(one)]

    def computed(scalar: Scalar) -> Scalar:
        match scalar:
            case Call():
                arguments = tuple(computed(one) for one in scalar.arguments)
                if not _are(arguments, scalar.arguments):
                    scalar = Call(scalar.function, arguments, scalar.type, scalar.nullable)
                if arguments and all(isinstance(one, Literal) for one in arguments):
                    return _value_of(scalar) or scalar
                return scalar
            case If():
                parts = tuple(computed(one) for one in children(scalar))
                return scalar if _are(parts, children(scalar)) else If(*parts)
            case Subquery():
                query = query_of(scalar)
                relation, arguments = rebuilt(query), tuple(computed(one) for one in scalar.arguments)
                test = None if scalar.test is None else computed(scalar.test)
                if relation is query and test is scalar.test and _are(arguments, scalar.arguments):
                    return scalar
                return Subquery(scalar.kind, relation, arguments, test)
            case ColumnRef() | Literal() | OuterColumn():
                return scalar
            case _:
                assert_never(scalar)

    return rebuilt(relation)


def _are(scalars: Iterable[Scalar], others: Iterable[Scalar]) -> bool:
    """Returns whether as many scalars are the very same."""
    return all(one is other for one, other in zip(scalars, others, strict=True))


def _folded_relation(relation: Relation) -> Relation:
    match relation:
        case Filter():
            return _folded_filter(relation)
        case Map():
            scalars = tuple(fold_scalar(one) for one in relation.scalars)
            below = relation.input
            if isinstance(below, Constant):
                return _mapped_rows(Map(below, scalars, relation.names), below)
            return relation if scalars == relation.scalars else Map(below, scalars, relation.names)
        case Projection():
            if isinstance(relation.input, Constant):
                rows = tuple(tuple(row[i] for i in relation.positions) for row in relation.input.rows)
                return Constant(rows, relation.relation_type)
            return relation
        case FlatMap() if isinstance(relation.input, Constant):
            return _unnested_rows(relation, relation.input)
        case Union():
            return _folded_union(relation)
        case Join():
            return _folded_join(relation)
        case Let(id=id, value=Constant(rows=()) as none):
            return fold_constants(bottom_up(relation.body, lambda one: none if _reads(one, id) else one))
        case TopK() if relation.limit == 0:
            return empty(relation.relation_type)
        case TopK() if relation.limit is None and relation.offset == 0:
            return relation.input
        case TemporalFilter() if not relation.lower and not relation.upper:
            return relation.input
        case TemporalFilter() if any(_is_null(one) for one in (*relation.lower, *relation.upper)):
            return empty(relation.relation_type)
        case _ if isinstance(relation, OneInput):
            nothing = isinstance(relation.input, Constant) and not relation.input.rows
            return empty(relation.relation_type) if nothing else relation
        case _:
            return relation


def _reads(relation: Relation, id: GlobalId) -> bool:
    return isinstance(relation, Get) and relation.id == id


def _is_null(scalar: Scalar) -> bool:
    """Returns whether `scalar` is the literal NULL."""
    return isinstance(scalar, Literal) and scalar.value is None


def _folded_filter(relation: Filter) -> Relation:
    predicates = tuple(one for one in map(fold_scalar, relation.predicates) if not is_true(one))
    if any(is_not_true(one) for one in predicates):
        return empty(relation.relation_type)
    if isinstance(relation.input, Constant):
        known = _passing(relation.input.rows, predicates)
        if known is not None:
            return Constant(known, relation.relation_type)
        kept: list[_Row] = []
        for row in relation.input.rows:
            values = [fold_scalar(substituted(one, dict(enumerate(row)))) for one in predicates]
            if not all(isinstance(one, Literal) for one in values):
                return filtered(relation.input, predicates)
            if all(is_true(one) for one in values):
                kept.append(row)
        return Constant(tuple(kept), relation.relation_type)
    return relation if predicates == relation.predicates else filtered(relation.input, predicates)


def _passing(rows: Sequence[_Row], predicates: Sequence[Scalar]) -> tuple[_Row, ...] | None:
    """Returns the rows that pass, by predicates that are compiled once; None if one is not told, or fails for a row."""
    if not all(map(is_evaluable, predicates)) or not all(_is_small(node) for one in predicates for node in walk(one)):
        return None
    positions = sorted(frozenset[int]().union(*map(columns_of, predicates)))
    tests = list(map(compiled, predicates))
    kept = []
    for row in rows:
        if any(_is_long(row[position]) for position in positions):
            return None
        cells = {position: to_plain(row[position].value, row[position].type) for position in positions}
        try:
            passes = all(test(cells) is True for test in tests)
        except SqlFailure:
            return None
        if passes:
            kept.append(row)
    return tuple(kept)


def _mapped_rows(relation: Map, below: Constant) -> Relation:
    rows: list[_Row] = []
    for row in below.rows:
        cells: list[Literal] = list(row)
        for scalar in relation.scalars:
            value = fold_scalar(substituted(scalar, dict(enumerate(cells))))
            if not isinstance(value, Literal):
                return relation
            cells.append(value)
        rows.append(tuple(cells))
    return Constant(tuple(rows), relation.relation_type)


def _unnested_rows(relation: FlatMap, below: Constant) -> Relation:
    """Returns the rows that arrays as literals become, if these are few."""
    kept = below.relation_type.arity - relation.arrays
    columns = relation.relation_type.columns
    rows: list[_Row] = []
    for row in below.rows:
        arrays = [one.value if isinstance(one.value, tuple) else () for one in row[kept:]]
        for number, cells in enumerate(zip_longest(*arrays), 1):
            elements = (Literal(cell, column.type) for cell, column in zip(cells, columns[kept:], strict=False))
            numbers = (Literal(number, INT8),) if relation.ordinality else ()
            rows.append((*row[:kept], *elements, *numbers))
    return Constant(tuple(rows), relation.relation_type) if len(rows) <= _FEW_ROWS else relation


def _folded_union(relation: Union) -> Relation:
    arms: list[Relation] = []
    rows: list[_Row] = []
    for one in relation.inputs:
        if isinstance(one, Constant):
            rows += one.rows
        else:
            arms.append(one)
    if rows or not arms:
        columns = tuple(
            Column(c.name, c.type, any(row[i].value is None for row in rows))
            for i, c in enumerate(relation.relation_type.columns)
        )
        keys = frozenset({frozenset[int]()}) if len(rows) <= 1 else frozenset[frozenset[int]]()
        constant = Constant(tuple(rows), RelationType(columns, keys, True))
        if not arms:
            return constant
        if sum(isinstance(one, Constant) for one in relation.inputs) > 1:
            return replace(relation, inputs=(*arms, constant))
        return relation
    if len(arms) == len(relation.inputs):
        return relation
    return arms[0] if len(arms) == 1 else replace(relation, inputs=tuple(arms))


def _folded_join(relation: Join) -> Relation:
    if any(isinstance(one, Constant) and not one.rows for one in relation.inputs):
        return empty(relation.relation_type)
    read = frozenset(column for one in relation.equivalences for scalar in one for column in columns_of(scalar))
    units = {
        i: one.rows[0]
        for i, one in enumerate(relation.inputs)
        if isinstance(one, Constant) and len(one.rows) == 1 and read.isdisjoint(relation.columns_of(i))
    }
    if len(units) == len(relation.inputs):
        del units[0]
    rest = [i for i in range(len(relation.inputs)) if i not in units]
    if not units or (len(rest) == 1 and relation.equivalences):
        return relation
    places = relation.places((*rest, *units))
    below = relation.inputs[rest[0]]
    if len(rest) > 1:
        classes = tuple(tuple(moved(scalar, places) for scalar in one) for one in relation.equivalences)
        below = Join(tuple(relation.inputs[i] for i in rest), classes, relation.null_safe)
    cells = tuple(cell for row in units.values() for cell in row)
    if cells:
        names = tuple(column.name for i in units for column in relation.inputs[i].relation_type.columns)
        below = _folded_relation(Map(below, cells, names))
    return _folded_relation(projected_to(below, [places[i] for i in range(relation.relation_type.arity)]))


def fold_scalar(scalar: Scalar) -> Scalar:
    """Returns `scalar` with its constant parts computed.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> fold_scalar(Call("add_int4", (Literal(1, INT4), Literal(2, INT4)), INT4, False)).value
        3
    """
    match scalar:
        case ColumnRef() | Literal() | OuterColumn() | Subquery():
            return scalar
        case If():
            condition = fold_scalar(scalar.condition)
            if isinstance(condition, Literal):
                return fold_scalar(scalar.then if condition.value is True else scalar.otherwise)
            return If(condition, fold_scalar(scalar.then), fold_scalar(scalar.otherwise))
        case Call():
            arguments = tuple(fold_scalar(one) for one in scalar.arguments)
            call = Call(scalar.function, arguments, scalar.type, scalar.nullable)
            return _folded_call(call)


def _folded_call(call: Call) -> Scalar:
    name, arguments = call.function, call.arguments
    if name == "without_error" and not can_fail(arguments[0]):
        return arguments[0]
    if name == "error_of" and not can_fail(arguments[0]):
        return Literal(None, call.type)
    if name in ("and", "or"):
        return _folded_connector(call)
    if name in ("is_null", "is_not_null") and not arguments[0].nullable and not can_fail(arguments[0]):
        return Literal(name == "is_not_null", BOOL)
    if name == "coalesce" and isinstance(arguments[0], Literal) and arguments[0].value is not None:
        return arguments[0]
    function = FUNCTIONS[name]
    null_given = any(isinstance(one, Literal) and one.value is None for one in arguments)
    if function.strict and null_given and not any(can_fail(one) for one in arguments):
        return Literal(None, call.type)
    if name == "array" and all(isinstance(one, Literal) for one in arguments):
        return Literal(tuple(one.value for one in arguments if isinstance(one, Literal)), call.type)
    literals = [one for one in arguments if isinstance(one, Literal)]
    if len(literals) != len(arguments):
        return compared_by_day(call)
    if name.startswith("generate_series_int"):
        return _series(call, [one.value for one in literals])
    folded = _value_of(call)
    return call if folded is None else folded


def _series(call: Call, values: list[Value]) -> Scalar:
    """Returns the elements of a short series of integers."""
    start, stop, step = ([one for one in values if isinstance(one, int)] + [1])[:3]
    if step == 0:
        return call
    elements = range(start, stop + (1 if step > 0 else -1), step)
    return Literal(tuple(elements), call.type) if len(elements) <= _FEW_ROWS else call


def _folded_connector(call: Call) -> Scalar:
    decides = call.function == "or"
    if any(isinstance(one, Literal) and one.value is decides for one in call.arguments):
        return Literal(decides, BOOL)
    rest = tuple(one for one in call.arguments if not (isinstance(one, Literal) and one.value is (not decides)))
    if not rest:
        return Literal(not decides, BOOL)
    if len(rest) == 1:
        return rest[0]
    if all(isinstance(one, Literal) for one in rest):
        return Literal(None, BOOL)
    return as_membership(Call(call.function, rest, BOOL, any(one.nullable for one in rest)))


def _is_long(scalar: Scalar) -> bool:
    """Returns whether a scalar is an array of many elements, which to read anew for every row would take long."""
    if not isinstance(scalar, Literal) or not isinstance(scalar.value, tuple):
        return False
    elements = scalar.value.elements if isinstance(scalar.value, Dimensioned) else scalar.value
    return len(elements) > _FEW_ELEMENTS


def _is_small(scalar: Scalar) -> bool:
    """Returns whether a scalar is none whose value may have many parts, though it is of few literals."""
    if not isinstance(scalar, Call):
        return not _is_long(scalar)
    return scalar.type.kind not in (Kind.ARRAY, Kind.RECORD) and not scalar.function.startswith("dimensioned_fill")


def _value_of(call: Call) -> Literal | None:
    """Returns the value of a call of literals, None if it is not known or an error."""
    if not _is_small(call) or not is_evaluable(call) or any(map(_is_long, call.arguments)):
        return None
    try:
        value = value_of(call)
    except SqlFailure:
        return None
    return None if isinstance(value, str | bytes) and len(value) > _FEW_CHARACTERS else Literal(value, call.type)
