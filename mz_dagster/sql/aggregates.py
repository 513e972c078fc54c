"""Binds calls of aggregates: PostgreSQL's types, spelled in the few core functions of the algebra.

Owns what each spelling of a record (`functions/aggregates/`) means. A call becomes *cores* (functions of the algebra
over scalars of the rows) and a scalar over the cores' columns: `avg(x)` is `sum / count`, or NULL where the count is 0.
Equal cores of one SELECT are one. Variances and regressions are `statistics.py`'s, what stands WITHIN GROUP is
`ordered_sets.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mz_dagster.errors import Error, InternalError
from mz_dagster.functions import AGGREGATES as RECORDS
from mz_dagster.functions import ArgumentType, CastContext, Failure, Unknown, ambiguous, cast, type_name
from mz_dagster.functions.aggregates.algebra import AggregateFunction, Spelling
from mz_dagster.functions.arrays.dimensioned import accumulated
from mz_dagster.scalars.scalar import ColumnRef, If, Literal, OuterColumn, Scalar, walk
from mz_dagster.scalars.types import BOOL, BYTEA, FLOAT8, INT8, INTERVAL, TEXT, Kind, ScalarType, dimensioned, numeric
from mz_dagster.sql.aggregate_expansion import Expansion, Sink
from mz_dagster.sql.binding import only_parts
from mz_dagster.sql.call_syntax import CallSyntax, no_function
from mz_dagster.sql.coercions import implicit
from mz_dagster.sql.collected_calls import AggregateCalls, Core, Grouping, SortKey
from mz_dagster.sql.enclosing import Enclosing, level_of, only_outer_rows, outer_reference
from mz_dagster.sql.errors import (
    GroupingError,
    InvalidSyntax,
    TooMany,
    UnsupportedForm,
    WindowingError,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.interval_aggregates import interval_extreme, interval_total
from mz_dagster.sql.jsonb_aggregates import json_array, jsonb_array, object_of_pairs
from mz_dagster.sql.ordered_sets import ordered_set
from mz_dagster.sql.statistics import regression, variance
from mz_dagster.sql.unconstrained_aggregates import unconstrained_extreme, unconstrained_total

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
#: The aggregates there are, but for those that are window functions, too.
AGGREGATES = frozenset(
    name for name, one in RECORDS.items() if one.spelling is not Spelling.INTERNAL and not one.hypothetical
)
#: How many keys one GROUPING may ask for: the bits of an integer without its sign.
_MOST_GROUPED = 31

#: What PostgreSQL calls the places where a call may not stand.
_PLACES = {"JOIN/ON": "JOIN conditions", "JOIN/USING": "JOIN conditions"}


def bind_aggregate(binder: ExpressionBinder, call: CallSyntax) -> Scalar:
    """Returns what an aggregate call without OVER means, over placeholders of `binder.aggregates`.

    Raises:
        GroupingError: No aggregate may stand here.
    """
    if binder.clause == "aggregate":
        raise GroupingError("aggregate function calls cannot be nested", position=call.position)
    stack = binder.binding.enclosing
    if binder.aggregates is None and not stack:
        raise _not_allowed(binder, call)
    if call.ignore_nulls:
        raise UnsupportedForm(
            f"IGNORE NULLS of {call.name}() is not supported",
            detail="It is for window functions.",
            hint="Use FILTER (WHERE ... IS NOT NULL).",
            position=call.position,
        )
    inner = replace(binder, clause="aggregate", aggregates=None, windows=None, sets=None)
    calls = AggregateCalls() if binder.aggregates is None else binder.aggregates
    collected, taken = len(calls.calls), [len(one.arguments) for one in stack]

    def sink(core: Core) -> ColumnRef:
        if core.is_unordered and calls.given:
            core, calls.takes_given = replace(core, order=calls.given), f"{call.name}()"
        elif core.is_unordered:
            binder.binding.order_reader = f"{call.name}()"
        return calls.column(core)

    expansion = _expansion(inner, call, sink)
    result = _meaning(expansion)
    parts = [part for scalar in expansion.scalars for part in walk(scalar)]
    outers = [one for one in parts if isinstance(one, OuterColumn)]
    if outers and not any(isinstance(one, ColumnRef) for one in parts):
        level = level_of(outers, stack)
        del calls.calls[collected:]
        for one, count in zip(stack, taken, strict=True):
            del one.arguments[count:]
        return _of_enclosing(stack, call, level)
    if binder.aggregates is None:
        raise _not_allowed(binder, call)
    return result


def _of_enclosing(stack: list[Enclosing], call: CallSyntax, level: int) -> Scalar:
    """Returns what stands for an aggregate of the query around, to which it belongs as all it is over are its columns.

    Raises:
        GroupingError: No aggregate may stand where the subquery does.
    """
    bind = stack[level].aggregate
    if bind is None:
        message = "aggregate functions are not allowed in FROM clause of their own query level"
        raise GroupingError(message, position=call.position)
    with only_outer_rows(stack, level):
        result = bind(call)
    return outer_reference(result, stack, level)


def _not_allowed(binder: ExpressionBinder, call: CallSyntax) -> GroupingError:
    place = _PLACES.get(binder.clause, binder.clause)
    return GroupingError(f"aggregate functions are not allowed in {place}", position=call.position)


def bind_grouping(binder: ExpressionBinder, arguments: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns what GROUPING of `arguments` means, over a placeholder of `binder.aggregates`.

    Raises:
        GroupingError: It may not stand here.
    """
    if not arguments:
        raise InvalidSyntax("GROUPING needs the keys that it asks for", position=position)
    if len(arguments) > _MOST_GROUPED:
        raise TooMany(f"GROUPING must have fewer than {_MOST_GROUPED + 1} arguments", position=position)
    if binder.aggregates is None:
        place = _PLACES.get(binder.clause, binder.clause)
        raise GroupingError(f"grouping operations are not allowed in {place}", position=position)
    inner = replace(binder, aggregates=None, windows=None, sets=None)
    positions = tuple(binder.body.position(one) for one in arguments)
    return binder.aggregates.column(Grouping(tuple(inner.typed(one) for one in arguments), positions))


def window_not_allowed(binder: ExpressionBinder, position: int) -> WindowingError | GroupingError:
    """Returns the error that says that no window function may stand at this place."""
    if binder.clause == "aggregate":
        return GroupingError("aggregate function calls cannot contain window function calls", position=position)
    if binder.clause == "window":
        return WindowingError("window function calls cannot be nested", position=position)
    place = _PLACES.get(binder.clause, binder.clause)
    return WindowingError(f"window functions are not allowed in {place}", position=position)


def sort_keys(binder: ExpressionBinder, order: Sequence[exp.Expr]) -> tuple[SortKey, ...]:
    """Returns the keys of an ORDER BY in a call or a window; numbers there are values, not positions."""
    keys: list[SortKey] = []
    for one in order:
        only_parts(binder.body, one, "this", "desc", "nulls_first", what="this form of ORDER BY")
        scalar = binder.typed(one.this)
        keys.append(SortKey(scalar, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
    return tuple(keys)


def expand(binder: ExpressionBinder, call: CallSyntax, sink: Sink) -> Scalar:
    """Returns what the aggregate call means over the columns that `sink` gives for its cores.

    Args:
        binder: Binds the arguments.
        call: The call, of one of `AGGREGATES`.
        sink: Where the cores go.
    """
    return _meaning(_expansion(binder, call, sink))


def _expansion(binder: ExpressionBinder, call: CallSyntax, sink: Sink) -> Expansion:
    is_counted = call.name in RECORDS and RECORDS[call.name].spelling is Spelling.COUNT
    if call.star and not is_counted:
        raise no_function(call, ())
    if not call.star and not call.arguments and not call.within:
        if is_counted:
            message = "count(*) must be used to call a parameterless aggregate function"
            raise WrongObjectKind(message, position=call.position)
        raise no_function(call, ())
    arguments = [binder.bind(one) for one in call.arguments]
    order = sort_keys(binder, call.order)
    condition = None
    if call.filter is not None:
        outer = replace(binder, clause="FILTER", aggregates=None, windows=None, sets=None)
        condition = outer.boolean(call.filter, "FILTER")
    return Expansion(binder, call, arguments, order, condition, sink)


def _meaning(expansion: Expansion) -> Scalar:
    """Returns what the call means over the cores' columns."""
    call = expansion.call
    if call.within:
        return ordered_set(expansion)
    if call.star:
        return _count_star(expansion)
    record = expansion.record
    if record.ordered_set or not record.takes(len(expansion.arguments)):
        raise _no_function(expansion)
    match record.spelling:
        case Spelling.COUNT:
            _check_order(expansion)
            return expansion.count(expansion.typed(0))
        case Spelling.SUM | Spelling.AVERAGE if _is_interval(expansion):
            _check_order(expansion)
            return interval_total(expansion, implicit(expansion.typed(0), INTERVAL))
        case Spelling.EXTREME if _is_interval(expansion):
            _check_order(expansion)
            return interval_extreme(expansion, expansion.typed(0))
        case Spelling.SUM | Spelling.AVERAGE:
            return _sums(expansion, _one_of(expansion))
        case Spelling.VARIANCE:
            return variance(expansion, _one_of(expansion))
        case Spelling.REGRESSION:
            return _regression(expansion)
        case Spelling.CORE:
            value = expansion.guarded(_one_of(expansion))
            return expansion.sink(Core(AggregateFunction(call.name), (value,), value.type, call.distinct))
        case Spelling.EXTREME:
            return _extreme(expansion)
        case Spelling.TRUTH:
            return _truth(expansion)
        case Spelling.ARRAY:
            return _array_agg(expansion)
        case Spelling.TEXT:
            return _string_agg(expansion)
        case Spelling.JSON_ARRAY:
            return json_array(expansion)
        case Spelling.JSONB_ARRAY:
            return jsonb_array(expansion)
        case Spelling.JSON_OBJECT | Spelling.JSONB_OBJECT:
            return object_of_pairs(expansion)
    raise InternalError(f"{call.name} has no spelling without WITHIN GROUP")


def _no_function(expansion: Expansion) -> Error:
    return no_function(expansion.call, expansion.types)


def _one_of(expansion: Expansion) -> Scalar:
    """Returns the one argument, by whose kind one of several functions is chosen."""
    kind = _known(expansion, expansion.types[0]).kind
    if kind not in expansion.record.kinds:
        raise _no_function(expansion)
    _check_order(expansion)
    return expansion.typed(0)


def _regression(expansion: Expansion) -> Scalar:
    if any(
        isinstance(cast(one, FLOAT8, CastContext.IMPLICIT), Failure)
        for one in expansion.types
        if not isinstance(one, Unknown)
    ):
        raise _no_function(expansion)
    if expansion.call.distinct:
        raise UnsupportedForm(
            f"DISTINCT in {expansion.call.name}() is not supported",
            detail="Its sums are kept for single rows, not for distinct pairs.",
            hint="Select the distinct pairs in a derived table.",
            position=expansion.call.position,
        )
    return regression(expansion, expansion.typed(0, FLOAT8), expansion.typed(1, FLOAT8))


def _extreme(expansion: Expansion) -> Scalar:
    first = expansion.types[0]
    kind = None if isinstance(first, Unknown) else first.kind
    refused = expansion.record.refusal(kind)
    if refused:
        raise UnsupportedForm(
            f"{expansion.call.name}({type_name(first)}) is not supported",
            detail=refused,
            hint="Use DISTINCT ON, or ORDER BY with LIMIT 1.",
            position=expansion.call.position,
        )
    if kind is not None and kind not in expansion.record.kinds:
        raise _no_function(expansion)
    _check_order(expansion)
    if kind is Kind.UNCONSTRAINED:
        return unconstrained_extreme(expansion, expansion.typed(0))
    return expansion.extreme(expansion.typed(0, TEXT if kind is Kind.VARCHAR else None))


def _known(expansion: Expansion, type_: ArgumentType) -> ScalarType:
    """Returns the argument's type, by which one of several functions is chosen."""
    if isinstance(type_, Unknown):
        raise error_of(ambiguous(expansion.call.name, [type_]), expansion.call.position)
    return type_


def _is_interval(expansion: Expansion) -> bool:
    """Tells intervals, and times where PostgreSQL adds them up as intervals."""
    type_ = expansion.types[0]
    if isinstance(type_, Unknown):
        return False
    return any(one.arguments == (type_.kind,) and one.result is Kind.INTERVAL for one in expansion.record.signatures)


def _check_order(expansion: Expansion) -> None:
    """Checks the ORDER BY of a call whose result does not depend on it."""
    if expansion.call.distinct:
        expansion.check_distinct_order([expansion.typed(i) for i in range(len(expansion.arguments))])


def _count_star(expansion: Expansion) -> Scalar:
    if expansion.condition is None:
        return expansion.sink(Core(AggregateFunction.COUNT, (), INT8))
    return expansion.sink(Core(AggregateFunction.COUNT, (expansion.guarded(Literal(True, BOOL)),), INT8))


def _sums(expansion: Expansion, value: Scalar) -> Scalar:
    is_sum = expansion.record.spelling is Spelling.SUM
    if value.type.kind in _FLOATS:
        return expansion.sum(value) if is_sum else expansion.float_average(value)
    if value.type.kind is Kind.UNCONSTRAINED:
        return unconstrained_total(expansion, value)
    wide = INT8 if value.type.kind in (Kind.INT2, Kind.INT4) else value.type
    wide = numeric(0) if value.type.kind is Kind.INT8 else wide
    total = expansion.sum(implicit(value, wide))
    if is_sum:
        return total
    # One state of distinct values serves both.
    count = expansion.count(implicit(value, wide) if expansion.call.distinct else value)
    exact = wide if wide.kind is Kind.NUMERIC else numeric(0)
    average = expansion.operator("/", implicit(total, exact), count)
    return If(expansion.operator("=", count, Literal(0, INT8)), Literal(None, average.type), average)


def _truth(expansion: Expansion) -> Scalar:
    first = expansion.types[0]
    if not isinstance(first, Unknown) and first.kind is not Kind.BOOL:
        raise _no_function(expansion)
    _check_order(expansion)
    value = expansion.typed(0, BOOL)
    sought = expansion.record.scalar
    found = expansion.count(
        If(expansion.operator(sought, value), Literal(True, BOOL), Literal(None, BOOL)), distinct=False
    )
    count = expansion.count(value, distinct=False)
    zero = Literal(0, INT8)
    answer = expansion.operator(">" if sought == "is true" else "=", found, zero)
    return If(expansion.operator("=", count, zero), Literal(None, BOOL), answer)


def _array_agg(expansion: Expansion) -> Scalar:
    _known(expansion, expansion.types[0])
    value = expansion.typed(0)
    element = value.type.array_element
    if element is not None:
        whole = implicit(value, dimensioned(element))
        # Ordered by what it was before it was one of dimensions it is ordered by the same.
        expansion.order = tuple(key.over(whole) if key.scalar == value else key for key in expansion.order)
        return accumulated(expansion.ordered_array(whole), element)
    return expansion.ordered_array(value)


def _string_agg(expansion: Expansion) -> Scalar:
    kinds = {one.kind for one in expansion.types if not isinstance(one, Unknown)}
    target = BYTEA if kinds == {Kind.BYTEA} else TEXT
    if target is TEXT and not kinds <= {Kind.TEXT, Kind.VARCHAR, Kind.CHAR}:
        raise _no_function(expansion)
    value, separator = expansion.typed(0, target), expansion.typed(1, target)
    arguments = (expansion.guarded(value), expansion.guarded_if_computed(separator))
    order = expansion.guarded_order()
    if expansion.call.distinct:
        given = dict(zip(expansion.arguments, (value, separator), strict=True))  # before they were cast
        expansion.check_distinct_order([value, separator, *(one for one in given if not isinstance(one, Unknown))])
        # Distinct are the arguments as they are told apart, so that is what is put in order.
        told = dict(zip((value, separator), arguments, strict=True))
        order = tuple(key.over(told[given.get(key.scalar, key.scalar)]) for key in expansion.order)
    return expansion.sink(Core(AggregateFunction.STRING_AGG, arguments, target, expansion.call.distinct, None, order))
