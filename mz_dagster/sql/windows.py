"""Binds window functions: calls with OVER, named windows, frames.

Owns PostgreSQL's rules for them, and IGNORE NULLS and QUALIFY besides. Calls become functions of the algebra over
scalars of the rows; aggregates over a window are spelled in the same cores as without one. Once all calls of a
SELECT are bound, `apply_windows` puts one `Window` per partition and order over the relation.

Frames: functions that have one always get it spelled out. A distance in a frame of ROWS or GROUPS is a bigint; of
RANGE, a bigint for an integer column, a numeric or double for such a column, an interval for dates and timestamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from mz_dagster import functions
from mz_dagster.errors import Error
from mz_dagster.functions import (
    UTC,
    CastContext,
    Failure,
    Unknown,
    cast,
    common_type,
    session_zone,
    type_name,
)
from mz_dagster.functions.moments.interval import length
from mz_dagster.plan.relation import (
    ColumnOrder,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    Relation,
    Window,
    WindowFrame,
    WindowFunction,
)
from mz_dagster.plan.semijoin import with_scalars
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar, columns_of
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, INTERVAL, Kind, ScalarType
from mz_dagster.scalars.values import Interval
from mz_dagster.sql.aggregates import AGGREGATES, expand, sort_keys, window_not_allowed
from mz_dagster.sql.binding import Bound, argument_type, name_of, only_parts
from mz_dagster.sql.call_syntax import CallSyntax, call_syntax, no_function
from mz_dagster.sql.collected_calls import Core, SortKey, WindowCall, WindowCalls, WindowSpec
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    InvalidColumnReference,
    InvalidFrameOffset,
    NullFrameOffset,
    UndefinedWindow,
    UnsupportedForm,
    WindowingError,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.ordered_sets import RANKS
from mz_dagster.sql.placeholders import WINDOW_BASE

#: The functions that are not aggregates: how many arguments each takes, and its result, if not its first argument's.
_FUNCTIONS: dict[str, tuple[range, ScalarType | None]] = {
    "row_number": (range(1), INT8),
    "rank": (range(1), INT8),
    "dense_rank": (range(1), INT8),
    "percent_rank": (range(1), FLOAT8),
    "cume_dist": (range(1), FLOAT8),
    "ntile": (range(1, 2), INT4),
    "lag": (range(1, 4), None),
    "lead": (range(1, 4), None),
    "first_value": (range(1, 2), None),
    "last_value": (range(1, 2), None),
    "nth_value": (range(2, 3), None),
}
WINDOW_FUNCTIONS = frozenset(_FUNCTIONS)
_IGNORING_NULLS = ("lag", "lead", "first_value", "last_value", "nth_value")
_FRAMED = ("first_value", "last_value", "nth_value")
#: Those that over a whole partition without an order have one value.
_OF_PEERS = frozenset(name for name, one in functions.AGGREGATES.items() if not one.sees_order)


def define_windows(binder: ExpressionBinder, windows: WindowCalls, definitions: Sequence[exp.Expr]) -> None:
    """Binds a WINDOW clause, in its order: a window may extend those before it."""
    for one in definitions:
        name = name_of(one.this)
        if name in windows.named:
            raise WindowingError(f'window "{name}" is already defined', position=_opening(binder, one))
        windows.named[name] = _spec(binder, windows, one, copies=True)


def bind_window(binder: ExpressionBinder, node: exp.Window) -> Scalar:
    """Returns the placeholder of a window function, in `binder.windows`.

    Raises:
        WindowingError: No window function may stand here.
    """
    windows, body = binder.windows, binder.body
    position = body.position(node)
    if windows is None:
        raise window_not_allowed(binder, position)
    only_parts(body, node, "this", "partition_by", "order", "spec", "alias", "over", what="this form of OVER")
    if str(node.args.get("over") or "OVER").upper() != "OVER":
        raise UnsupportedForm("this form of window is not supported", detail="Write OVER.", position=position)
    call = call_syntax(binder.body, node.this)
    inner = replace(binder, clause="window", windows=None, sets=None)
    if call.name not in AGGREGATES and call.name not in WINDOW_FUNCTIONS:
        return _no_window_function(inner, call)
    if call.within:
        raise UnsupportedForm(f"OVER is not supported for ordered-set aggregate {call.name}", position=position)
    if call.distinct:
        raise UnsupportedForm(
            "DISTINCT is not implemented for window functions",
            hint="Group a derived table by the partition, and join it.",
            position=position,
        )
    if call.order:
        raise UnsupportedForm("aggregate ORDER BY is not implemented for window functions", position=position)
    spec = _over(inner, windows, node)
    if not spec.order and call.name not in RANKS and (spec.frame is not None or call.name not in _OF_PEERS):
        if windows.given:
            spec, windows.takes_given = windows.in_given_order(spec), f"{call.name}() OVER"
        else:
            binder.binding.order_reader = f"{call.name}() OVER"
    if call.name in WINDOW_FUNCTIONS:
        return windows.column(_function(inner, call, spec), node)
    if call.ignore_nulls:
        raise UnsupportedForm(
            f"IGNORE NULLS of {call.name}() is not supported",
            detail="It is for lag, lead, first_value, last_value and nth_value.",
            hint="Use FILTER (WHERE ... IS NOT NULL).",
            position=position,
        )

    def sink(core: Core) -> ColumnRef:
        name, frame = core.function.value, spec.framed()
        one = WindowCall(spec, name, core.arguments, core.type, core.nullable, frame, False, core.filter)
        return windows.column(one, node)

    return expand(inner, call, sink)


def requires_over(name: str, position: int) -> WrongObjectKind:
    """Returns the error for a window function without OVER."""
    return WrongObjectKind(f"window function {name} requires an OVER clause", position=position)


def apply_windows(relation: Relation, calls: Sequence[WindowCall]) -> tuple[Relation, dict[int, ColumnRef]]:
    """Returns `relation` with the functions' columns appended, and for each placeholder the column that replaces it.

    Args:
        relation: What the calls' scalars are over.
        calls: In the order of their placeholders.
    """
    columns: dict[int, ColumnRef] = {}
    specs: list[tuple[tuple[Scalar, ...], tuple[SortKey, ...]]] = []
    for one in calls:
        if (one.spec.partition, one.spec.order) not in specs:
            specs.append((one.spec.partition, one.spec.order))
    for partition, order in specs:
        own = [(i, one) for i, one in enumerate(calls) if (one.spec.partition, one.spec.order) == (partition, order)]
        needed = [*partition, *(key.scalar for key in order)]
        for _, one in own:
            needed += [*one.arguments, *([] if one.filter is None else [one.filter])]
        relation, positions = with_scalars(relation, needed, "computed")
        places = iter(positions)
        group = tuple(dict.fromkeys(next(places) for _ in partition))
        keys = tuple(ColumnOrder(next(places), key.descending, key.nulls_first) for key in order)
        functions: list[WindowFunction] = []
        arity = relation.relation_type.arity
        for offset, (i, one) in enumerate(own):
            arguments = tuple(next(places) for _ in one.arguments)
            condition = None if one.filter is None else next(places)
            functions.append(
                WindowFunction(one.name, arguments, one.type, one.nullable, one.frame, one.ignore_nulls, condition)
            )
            columns[WINDOW_BASE + i] = ColumnRef(arity + offset, one.type, one.nullable, one.name)
        relation = Window(relation, group, keys, tuple(functions), tuple(one.name for _, one in own))
    return relation, columns


def _no_window_function(binder: ExpressionBinder, call: CallSyntax) -> Scalar:
    for node in call.arguments:
        binder.bind(node)
    raise WrongObjectKind(
        f"OVER specified, but {call.name} is not a window function nor an aggregate function", position=call.position
    )


def _function(binder: ExpressionBinder, call: CallSyntax, spec: WindowSpec) -> WindowCall:
    name, position = call.name, call.position
    if call.filter is not None:
        raise UnsupportedForm("FILTER is not implemented for non-aggregate window functions", position=position)
    if call.ignore_nulls and name not in _IGNORING_NULLS:
        raise UnsupportedForm(
            f"IGNORE NULLS of {name}() is not supported",
            detail="It is for lag, lead, first_value, last_value and nth_value.",
            position=position,
        )
    counts, result = _FUNCTIONS[name]
    arguments = [binder.bind(one) for one in call.arguments]
    if call.star or len(arguments) not in counts:
        raise _no_match(call, arguments)
    scalars: tuple[Scalar, ...] = ()
    if name in ("lag", "lead"):
        scalars = _offset_arguments(binder, call, arguments)
    elif name == "ntile":
        scalars = (_integer(binder, call, arguments, 0),)
    elif name in _FRAMED:
        value = binder.as_type(arguments[0], None, call.arguments[0])
        scalars = (value,) if name != "nth_value" else (value, _integer(binder, call, arguments, 1))
    frame = spec.framed() if name in _FRAMED else None
    return WindowCall(spec, name, scalars, result or scalars[0].type, bool(scalars), frame, call.ignore_nulls)


def _offset_arguments(binder: ExpressionBinder, call: CallSyntax, arguments: list[Bound]) -> tuple[Scalar, ...]:
    """Returns value, offset and default of lag or lead; value and default have one type."""
    value: Scalar
    if len(arguments) < 3:
        value = binder.as_type(arguments[0], None, call.arguments[0])
        return (value,) if len(arguments) == 1 else (value, _integer(binder, call, arguments, 1))
    pair = [arguments[0], arguments[2]]
    target = common_type([argument_type(one) for one in pair])
    if isinstance(target, Failure):
        raise _no_match(call, arguments)
    nodes = (call.arguments[0], call.arguments[2])
    value, default = (binder.as_type(one, target, node) for one, node in zip(pair, nodes, strict=True))
    return value, _integer(binder, call, arguments, 1), default


def _integer(binder: ExpressionBinder, call: CallSyntax, arguments: list[Bound], i: int) -> Scalar:
    bound = arguments[i]
    if not isinstance(bound, Unknown) and bound.type.kind not in (Kind.INT2, Kind.INT4):
        raise _no_match(call, arguments)
    return binder.as_type(bound, INT4, call.arguments[i])


def _no_match(call: CallSyntax, arguments: Sequence[Bound]) -> Error:
    return no_function(call, [argument_type(one) for one in arguments])


def _over(binder: ExpressionBinder, windows: WindowCalls, node: exp.Window) -> WindowSpec:
    alias: exp.Expr | None = node.args.get("alias")
    if alias is not None and binder.body.follows_directly(alias, "over"):
        return _named(binder, windows, alias)
    return _spec(binder, windows, node, copies=False)


def _named(binder: ExpressionBinder, windows: WindowCalls, alias: exp.Expr) -> WindowSpec:
    name = name_of(alias)
    if name not in windows.named:
        raise UndefinedWindow(f'window "{name}" does not exist', position=binder.body.position(alias))
    return windows.named[name]


def _spec(binder: ExpressionBinder, windows: WindowCalls, node: exp.Expr, *, copies: bool) -> WindowSpec:
    """Returns what stands in the parentheses of OVER, or behind AS in a WINDOW clause (`copies`)."""
    body = binder.body
    only_parts(body, node, "this", "partition_by", "order", "spec", "alias", "over", what="this form of window")
    alias, order_node = node.args.get("alias"), node.args.get("order")
    partition_nodes: list[exp.Expr] = list(node.args.get("partition_by") or [])
    inside = replace(binder, clause="window definitions", windows=None, sets=None)
    partition = tuple(dict.fromkeys(inside.typed(one) for one in partition_nodes))
    order: tuple[SortKey, ...] = ()
    if order_node is not None:
        only_parts(body, order_node, "expressions")
        order = sort_keys(inside, order_node.expressions)
    if alias is not None:
        base, name, position = _named(binder, windows, alias), name_of(alias), _opening(binder, node)
        if partition_nodes:
            raise WindowingError(f'cannot override PARTITION BY clause of window "{name}"', position=position)
        if base.order and order:
            raise WindowingError(f'cannot override ORDER BY clause of window "{name}"', position=position)
        if base.frame is not None:
            bare = not copies and order_node is None and node.args.get("spec") is None
            hint = "Omit the parentheses in this OVER clause." if bare else None
            raise WindowingError(
                f'cannot copy window "{name}" because it has a frame clause', hint=hint, position=position
            )
        partition, order = base.partition, order or base.order
    frame_node = node.args.get("spec")
    if frame_node is None:
        return WindowSpec(partition, order)
    return WindowSpec(partition, order, _frame(inside, node, order))


def _opening(binder: ExpressionBinder, node: exp.Expr) -> int:
    """Returns the position of the parenthesis that opens what is said of a window."""
    span = binder.body.span(node.this)
    for token in binder.body.tokens:
        if span is not None and token.start >= span[1] and token.is_symbol("("):
            return binder.body.text.offset + token.start + 1
    return binder.body.position(node)


def _frame(binder: ExpressionBinder, window: exp.Expr, order: tuple[SortKey, ...]) -> WindowFrame:
    body, opening = binder.body, _opening(binder, window)
    node: exp.Expr = window.args["spec"]
    only_parts(body, node, "kind", "start", "start_side", "end", "end_side", "exclude", what="this form of frame")
    unit = FrameUnit(str(node.args["kind"]).lower())
    begin, finish = _bound_positions(binder, opening)
    behind, ahead = _side(node, "start"), _side(node, "end")
    if node.args["start"] == "UNBOUNDED" and behind == "following":
        raise WindowingError("frame start cannot be UNBOUNDED FOLLOWING", position=begin)
    if node.args.get("end") == "UNBOUNDED" and ahead == "preceding":
        raise WindowingError("frame end cannot be UNBOUNDED PRECEDING", position=finish)
    if behind == "following" and node.args.get("end") is None:
        raise WindowingError("frame starting from following row cannot end with current row", position=begin)
    if behind == "current" and ahead == "preceding":
        raise WindowingError("frame starting from current row cannot have preceding rows", position=finish)
    if behind == "following" and ahead in ("preceding", "current"):
        raise WindowingError("frame starting from following row cannot have preceding rows", position=finish)
    if unit is FrameUnit.GROUPS and not order:
        raise WindowingError("GROUPS mode requires an ORDER BY clause", position=opening)
    start = _bound(binder, node, "start", unit, order, opening)
    end = _bound(binder, node, "end", unit, order, opening)
    exclude = node.args.get("exclude")
    exclusion = FrameExclusion(str(exclude.name).lower()) if exclude is not None else FrameExclusion.NO_OTHERS
    return WindowFrame(unit, start, end, exclusion)


def _bound_positions(binder: ExpressionBinder, opening: int) -> tuple[int, int]:
    """Returns the positions of a frame's bounds, within the parenthesis at `opening`; one bound is both."""
    offset, depth, found = binder.body.text.offset, 0, [opening]
    inside = [token for token in binder.body.tokens if offset + token.start + 1 > opening]
    for token, behind in pairwise(inside):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth < 0:
            break
        if depth == 0 and token.is_word("rows", "range", "groups", "between", "and"):
            place = offset + behind.start + 1
            # `BETWEEN` takes the place of the unit before it; an AND of ORDER BY comes before the unit.
            found = [*found[:1], place] if token.is_word("and") else [place]
    return found[0], found[-1]


def _side(node: exp.Expr, which: str) -> str:
    """Returns on which side of the current row a bound lies: `preceding`, `current` or `following`."""
    value = node.args.get(which)
    if value is None or value == "CURRENT ROW":
        return "current"
    return str(node.args[f"{which}_side"]).lower()


def _bound(
    binder: ExpressionBinder, node: exp.Expr, which: str, unit: FrameUnit, order: tuple[SortKey, ...], opening: int
) -> FrameBound:
    value = node.args.get(which)
    preceding = _side(node, which) == "preceding"
    if value is None or value == "CURRENT ROW":
        return FrameBound(False, Literal(0, INT8))
    if value == "UNBOUNDED":
        return FrameBound(True, preceding=preceding)
    inside = replace(binder, clause=f"window {unit.value.upper()}", aggregates=None, windows=None, sets=None)
    if unit is FrameUnit.RANGE:
        return FrameBound(False, _range_offset(inside, value, order, opening), preceding)
    bound = inside.bind(value)
    if isinstance(bound, Literal) and bound.type.kind is Kind.NUMERIC:
        raise UnsupportedForm(
            f"{unit.value.upper()} of a size that is not whole is not supported",
            hint="Write a whole number.",
            position=binder.body.position(value),
        )
    if not isinstance(bound, Unknown) and bound.type.kind not in (Kind.INT2, Kind.INT4, Kind.INT8):
        raise DatatypeMismatch(
            f"argument of {unit.value.upper()} must be type bigint, not type {type_name(bound.type)}",
            position=binder.body.position(value),
        )
    literal = _constant(inside, inside.as_type(bound, INT8, value), value, unit)
    return FrameBound(False, _not_negative(inside, literal, value, which), preceding)


def _range_offset(binder: ExpressionBinder, node: exp.Expr, order: tuple[SortKey, ...], opening: int) -> Literal:
    position = binder.body.position(node)
    if len(order) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column", position=opening
        )
    type_ = order[0].scalar.type
    match type_.kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            target = INT8
        case Kind.FLOAT4 | Kind.FLOAT8:
            target = FLOAT8
        case Kind.NUMERIC:
            target = type_
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            target = INTERVAL
        case _:
            raise UnsupportedForm(
                f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {type_name(type_)}",
                position=position,
            )
    bound = binder.bind(node)
    if isinstance(bound, Unknown):
        found = bound.as_type(target, rounds=False)
        if isinstance(found, Failure):
            raise error_of(found, position)
        return _distance(binder, found, type_, node)
    if target.kind is Kind.NUMERIC and bound.type.kind is Kind.NUMERIC:
        target = bound.type
    known = cast(bound.type, target, CastContext.IMPLICIT)
    if isinstance(known, Failure):
        raise UnsupportedForm(
            f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {type_name(type_)} "
            f"and offset type {type_name(bound.type)}",
            hint="Cast the offset value to an appropriate type.",
            position=position,
        )
    return _distance(binder, _constant(binder, known.apply(bound), node, FrameUnit.RANGE), type_, node)


def _distance(binder: ExpressionBinder, literal: Literal, key: ScalarType, node: exp.Expr) -> Literal:
    """Returns the distance between values of the type `key`: between times of day, microseconds."""
    if key.kind is Kind.TIME and isinstance(literal.value, Interval):
        # PostgreSQL does not look at its months and days either.
        literal = Literal(literal.value.microseconds, INT8)
    elif key.kind is Kind.TIMESTAMPTZ and session_zone() != UTC:
        days = isinstance(literal.value, Interval) and (literal.value.months or literal.value.days)
        if days:
            raise UnsupportedForm(
                "RANGE with an offset of days between timestamptz is not supported in a session in another zone",
                hint="SET TIME ZONE 'UTC', or order by moment AT TIME ZONE 'Europe/Berlin'.",
                position=binder.body.position(node),
            )
    return _not_negative(binder, literal, node, "RANGE")


def _constant(binder: ExpressionBinder, scalar: Scalar, node: exp.Expr, unit: FrameUnit) -> Literal:
    if columns_of(scalar):
        position = binder.body.position(node.find(exp.Column, bfs=False) or node)
        raise InvalidColumnReference(f"argument of {unit.value.upper()} must not contain variables", position=position)
    folded = fold_scalar(scalar)
    if not isinstance(folded, Literal):
        raise UnsupportedForm(
            "a frame whose size is not a number is not supported",
            detail="It must be known when the query is planned.",
            hint="Write a number or a parameter.",
            position=binder.body.position(node),
        )
    return folded


def _not_negative(binder: ExpressionBinder, literal: Literal, node: exp.Expr, which: str) -> Literal:
    position, value = binder.body.position(node), literal.value
    word = {"start": "starting", "end": "ending"}.get(which)
    if value is None:
        what = f"frame {word} offset" if word else "frame offset"
        raise NullFrameOffset(f"{what} must not be null", position=position)
    size = length(value) if isinstance(value, Interval) else value
    assert isinstance(size, int | float | Decimal)
    if not size >= 0:
        what = (
            f"frame {word} offset must not be negative"
            if word
            else ("invalid preceding or following size in window function")
        )
        raise InvalidFrameOffset(what, position=position)
    return literal
