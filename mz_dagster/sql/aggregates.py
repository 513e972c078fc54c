"""Binds calls of aggregates: PostgreSQL's types, spelled in the few core functions of the algebra.

Owns which aggregates there are and what each means. A call becomes *cores* (`COUNT`, `SUM`, `MIN`, `MAX`, `ARRAY_AGG`,
`STRING_AGG` over scalars of the rows) and a scalar over the cores' columns: `avg(x)` is `sum / count`, or NULL where
the count is 0. Equal cores of one SELECT are one. A function that ignores NULLs gets its FILTER as an `If` under the
argument, which also keeps the argument from failing for rows that do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from mz_dagster.plan.functions import CastContext, Failure, Unknown, cast, type_name
from mz_dagster.plan.relation import AggregateFunction
from mz_dagster.plan.scalar import ColumnRef, If, Literal, OuterColumn, Scalar, walk
from mz_dagster.plan.types import BOOL, FLOAT8, INT4, INT8, TEXT, Kind, ScalarType, array_of, numeric
from mz_dagster.sql.binding import Bound, name_of, only
from mz_dagster.sql.errors import (
    GroupingError,
    InvalidColumnReference,
    InvalidSyntax,
    TooMany,
    UndefinedFunction,
    UnsupportedForm,
    WindowingError,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.placeholders import AGGREGATE_BASE

if TYPE_CHECKING:
    from mz_dagster.sql.expressions import Expressions

_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_NUMBERS = (*_INTEGERS, Kind.NUMERIC, *_FLOATS)
_VARIANCES = ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")
_CONJUNCTIONS = ("bool_and", "every")
#: The aggregates there are.
AGGREGATES = frozenset(
    ("count", "sum", "avg", "min", "max", "bool_or", "array_agg", "string_agg", *_CONJUNCTIONS, *_VARIANCES)
)
_CASTS_HINT = "No function matches the given name and argument types. You might need to add explicit type casts."
_FLOAT_WINDOW = "Floating-point addition does not undo, and exact sums are only kept for groups yet."
_FLOAT_SQUARES = "The squares of floating-point numbers are rounded, by more perhaps than what they differ by."
_FLOAT_HINT = "Read the column as numeric(38, s), or add up round(x * 100)::bigint, for example."

#: How many keys one GROUPING may ask for: the bits of an integer without its sign.
_MOST_GROUPED = 31

#: What PostgreSQL calls the places where a call may not stand.
_PLACES = {"JOIN/ON": "JOIN conditions", "JOIN/USING": "JOIN conditions"}


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """Is a call as written.

    Attributes:
        name: Folded.
        arguments: Without DISTINCT and ORDER BY.
        star: Whether it is `f(*)`.
        distinct: Whether DISTINCT stands before the arguments.
        order: ORDER BY within the parentheses.
        filter: FILTER's condition.
        ignore_nulls: Whether IGNORE NULLS is asked for.
        position: Where it begins.
    """

    name: str
    arguments: tuple[exp.Expr, ...]
    star: bool
    distinct: bool
    order: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool
    position: int


def call_syntax(binder: Expressions, node: exp.Expr) -> CallSyntax:
    """Returns the parts of the call that `node` is, within FILTER and IGNORE NULLS."""
    body = binder.body
    position, condition, ignore_nulls = body.position(node), None, False
    inner = node
    while not isinstance(inner, exp.Anonymous):
        match inner:
            case exp.IgnoreNulls() | exp.RespectNulls():
                ignore_nulls = isinstance(inner, exp.IgnoreNulls)
                only(body, inner, "this")
                inner = inner.this
            case exp.Filter() if condition is None:
                only(body, inner, "this", "expression")
                condition = inner.expression.this
                inner = inner.this
            case exp.Dot() if name_of(inner.this) == "pg_catalog":
                inner = inner.expression
            case exp.Column() if name_of(inner.args.get("table")) == "pg_catalog":
                only(body, inner, "this", "table")
                inner = inner.this
            case _:
                raise UnsupportedForm(
                    "this form of call is not supported", detail="It has no exact plan yet.", position=position
                )
    only(body, inner, "this", "expressions", "name", what="this form of call")
    arguments: list[exp.Expr] = list(inner.expressions)
    order: tuple[exp.Expr, ...] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        ordered = arguments[-1]
        only(body, ordered, "this", "expressions")
        order = tuple(ordered.expressions)
        arguments[-1] = ordered.this
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only(body, arguments[0], "expressions", what="this form of DISTINCT")
        arguments = list(arguments[0].expressions)
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not distinct and not order
    if star:
        only(body, arguments[0], what="this form of *")
        arguments = []
    name = name_of(inner.this)
    return CallSyntax(name, tuple(arguments), star, distinct, order, condition, ignore_nulls, position)


@dataclass(frozen=True, slots=True)
class SortKey:
    """Is one key of an order, as a scalar over the rows."""

    scalar: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Core:
    """Is an aggregate of the algebra over scalars; see `plan.relation.Aggregate`."""

    function: AggregateFunction
    arguments: tuple[Scalar, ...]
    type: ScalarType
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()

    @property
    def nullable(self) -> bool:
        """False for a count only."""
        return self.function is not AggregateFunction.COUNT


@dataclass(frozen=True, slots=True)
class Grouping:
    """Is GROUPING of some keys: a bit for each, the last one lowest, 1 where a row's grouping is not by it.

    Attributes:
        positions: Where the arguments stand in the text.
    """

    arguments: tuple[Scalar, ...]
    positions: tuple[int, ...] = field(compare=False)
    type: ScalarType = INT4
    nullable: bool = False


#: Takes a core and answers with the column that will hold it.
Sink = Callable[[Core], ColumnRef]


@dataclass(slots=True)
class AggregateCalls:
    """Collects what one SELECT asks of its groups: the cores of its aggregates, and GROUPING.

    Attributes:
        calls: Each once; the placeholder of the i-th is at `AGGREGATE_BASE + i`.
    """

    calls: list[Core | Grouping] = field(default_factory=list)

    def column(self, call: Core | Grouping) -> ColumnRef:
        """Returns the placeholder of `call`."""
        if call not in self.calls:
            self.calls.append(call)
        name = call.function.value if isinstance(call, Core) else "grouping"
        return ColumnRef(AGGREGATE_BASE + self.calls.index(call), call.type, call.nullable, name)


def bind_aggregate(binder: Expressions, call: CallSyntax) -> Scalar:
    """Returns what an aggregate call without OVER means, over placeholders of `binder.aggregates`.

    Raises:
        GroupingError: No aggregate may stand here.
    """
    calls = binder.aggregates
    if binder.clause == "aggregate":
        raise GroupingError("aggregate function calls cannot be nested", position=call.position)
    if calls is None:
        place = _PLACES.get(binder.clause, binder.clause)
        raise GroupingError(f"aggregate functions are not allowed in {place}", position=call.position)
    if call.ignore_nulls:
        raise UnsupportedForm(
            f"IGNORE NULLS of {call.name}() is not supported",
            detail="It is for window functions.",
            hint="Use FILTER (WHERE ... IS NOT NULL).",
            position=call.position,
        )
    inner = replace(binder, clause="aggregate", aggregates=None, windows=None)
    cores: list[Core] = []

    def sink(core: Core) -> ColumnRef:
        cores.append(core)
        return calls.column(core)

    result = expand(inner, call, sink)
    parts = [part for core in cores for argument in core.arguments for part in walk(argument)]
    if any(isinstance(one, OuterColumn) for one in parts) and not any(isinstance(one, ColumnRef) for one in parts):
        raise UnsupportedForm(
            f"{call.name}() over columns of an enclosing query only is not supported",
            detail="It would belong to that query.",
            hint="Compute it there, or in a derived table.",
            position=call.position,
        )
    return result


def bind_grouping(binder: Expressions, arguments: Sequence[exp.Expr], position: int) -> Scalar:
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
    inner = replace(binder, aggregates=None, windows=None)
    positions = tuple(binder.body.position(one) for one in arguments)
    return binder.aggregates.column(Grouping(tuple(inner.typed(one) for one in arguments), positions))


def window_not_allowed(binder: Expressions, position: int) -> WindowingError | GroupingError:
    """Returns the error that says that no window function may stand at this place."""
    if binder.clause == "aggregate":
        return GroupingError("aggregate function calls cannot contain window function calls", position=position)
    if binder.clause == "window":
        return WindowingError("window function calls cannot be nested", position=position)
    place = _PLACES.get(binder.clause, binder.clause)
    return WindowingError(f"window functions are not allowed in {place}", position=position)


def sort_keys(binder: Expressions, order: Sequence[exp.Expr]) -> tuple[SortKey, ...]:
    """Returns the keys of an ORDER BY in a call or a window; numbers there are values, not positions."""
    keys: list[SortKey] = []
    for one in order:
        only(binder.body, one, "this", "desc", "nulls_first", what="this form of ORDER BY")
        scalar = binder.typed(one.this)
        keys.append(SortKey(scalar, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
    return tuple(keys)


def expand(binder: Expressions, call: CallSyntax, sink: Sink) -> Scalar:
    """Returns what the aggregate call means over the columns that `sink` gives for its cores.

    Args:
        binder: Binds the arguments.
        call: The call, of one of `AGGREGATES`.
        sink: Where the cores go.
    """
    if call.star and call.name != "count":
        raise _no_function(call, ())
    if not call.star and not call.arguments:
        if call.name == "count":
            message = "count(*) must be used to call a parameterless aggregate function"
            raise WrongObjectKind(message, position=call.position)
        raise _no_function(call, ())
    arguments = [binder.bind(one) for one in call.arguments]
    order = sort_keys(binder, call.order)
    condition = None
    if call.filter is not None:
        outside = replace(binder, clause="FILTER", aggregates=None, windows=None)
        condition = outside.boolean(call.filter, "FILTER")
    return _Expansion(binder, call, arguments, order, condition, sink).value()


@dataclass(slots=True)
class _Expansion:
    """Expands one call."""

    binder: Expressions
    call: CallSyntax
    arguments: list[Bound]
    order: tuple[SortKey, ...]
    condition: Scalar | None
    sink: Sink

    def value(self) -> Scalar:
        call = self.call
        if call.star:
            return self._count_star()
        types = [one if isinstance(one, Unknown) else one.type for one in self.arguments]
        if len(self.arguments) != (2 if call.name == "string_agg" else 1):
            raise _no_function(call, types)
        first = types[0]
        match call.name:
            case "count":
                self._check_order()
                return self._count(self._typed(0))
            case "sum" | "avg" | "variance" | "var_samp" | "var_pop" | "stddev" | "stddev_samp" | "stddev_pop":
                first = self._known(first)
                if first.kind not in _NUMBERS:
                    raise _no_function(call, types)
                self._check_order()
                return self._sums(self._typed(0), call.name)
            case "min" | "max":
                if not isinstance(first, Unknown) and first.kind is Kind.BOOL:
                    raise _no_function(call, types)
                if not isinstance(first, Unknown) and is_array(first):
                    raise UnsupportedForm(
                        f"{call.name}({type_name(first)}) is not supported",
                        detail="Arrays can be returned, not compared.",
                        position=call.position,
                    )
                self._check_order()
                value = self._guarded(self._typed(0))
                return self.sink(Core(AggregateFunction(call.name), (value,), value.type))
            case "bool_and" | "every" | "bool_or":
                if not isinstance(first, Unknown) and first.kind is not Kind.BOOL:
                    raise _no_function(call, types)
                self._check_order()
                return self._truth(call.name)
            case "array_agg":
                self._known(first)
                return self._array_agg()
            case _:
                return self._string_agg(types)

    def _typed(self, i: int, target: ScalarType | None = None) -> Scalar:
        return self.binder.as_type(self.arguments[i], target, self.call.arguments[i])

    def _known(self, type_: ScalarType | Unknown) -> ScalarType:
        """Returns the argument's type, by which one of several functions is chosen."""
        if isinstance(type_, Unknown):
            shown = f"function {self.call.name}(unknown) is not unique"
            hint = "Could not choose a best candidate function. You might need to add explicit type casts."
            raise error_of(Failure("42725", shown, hint), self.call.position)
        return type_

    def _operator(self, symbol: str, *arguments: Scalar) -> Scalar:
        return self.binder.operator(symbol, arguments, self.call.position)

    def _guarded(self, scalar: Scalar) -> Scalar:
        """Returns NULL for the rows that FILTER leaves out."""
        return scalar if self.condition is None else If(self.condition, scalar, Literal(None, scalar.type))

    def _guarded_if_computed(self, scalar: Scalar) -> Scalar:
        return scalar if isinstance(scalar, ColumnRef | Literal) else self._guarded(scalar)

    def _check_order(self) -> None:
        """Checks the ORDER BY of a call whose result does not depend on it."""
        if self.call.distinct:
            self._check_distinct_order([self._typed(i) for i in range(len(self.arguments))])

    def _check_distinct_order(self, arguments: Sequence[Scalar]) -> None:
        for key, node in zip(self.order, self.call.order, strict=True):
            if key.scalar not in arguments:
                raise InvalidColumnReference(
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    position=self.binder.body.position(node),
                )

    def _count_star(self) -> Scalar:
        if self.condition is None:
            return self.sink(Core(AggregateFunction.COUNT, (), INT8))
        return self.sink(Core(AggregateFunction.COUNT, (self._guarded(Literal(True, BOOL)),), INT8))

    def _count(self, value: Scalar, *, distinct: bool | None = None) -> ColumnRef:
        distinct = self.call.distinct if distinct is None else distinct
        value = self._guarded(value)
        if not value.nullable and not distinct:
            return self.sink(Core(AggregateFunction.COUNT, (), INT8))
        return self.sink(Core(AggregateFunction.COUNT, (value,), INT8, distinct))

    def _sum(self, value: Scalar) -> ColumnRef:
        return self.sink(Core(AggregateFunction.SUM, (self._guarded(value),), value.type, self.call.distinct))

    def _sums(self, value: Scalar, name: str) -> Scalar:
        if value.type.kind in _FLOATS:
            return self._float_sums(value, name)
        if name.startswith("stddev"):
            raise UnsupportedForm(
                f"{name}({type_name(value.type)}) is not supported",
                detail="The digits of a numeric square root are not computed here.",
                hint=f"Take sqrt(CAST({name.replace('stddev', 'var' if '_' in name else 'variance')}(x) AS "
                "double precision)), which is the nearest double.",
                position=self.call.position,
            )
        wide = INT8 if value.type.kind in (Kind.INT2, Kind.INT4) else value.type
        wide = numeric(0) if value.type.kind is Kind.INT8 else wide
        total = self._sum(_as(value, wide))
        if name == "sum":
            return total
        # One state of distinct values serves both.
        count = self._count(_as(value, wide) if self.call.distinct else value)
        exact = wide if wide.kind is Kind.NUMERIC else numeric(0)
        if name == "avg":
            average = self._operator("/", _as(total, exact), count)
            return If(self._operator("=", count, Literal(0, INT8)), Literal(None, average.type), average)
        return self._variance(name, _as(value, exact), _as(total, exact), count)

    def _float_sums(self, value: Scalar, name: str) -> Scalar:
        refused = _FLOAT_WINDOW if self.binder.clause == "window" else None
        if name not in ("sum", "avg"):
            refused = _FLOAT_SQUARES
        if refused is not None:
            raise UnsupportedForm(
                f"{name}({type_name(value.type)}) is not supported",
                detail=refused,
                hint=_FLOAT_HINT,
                position=self.call.position,
            )
        if name == "sum":
            return self._sum(value)
        value = _as(value, FLOAT8)
        total, count = self._sum(value), self._count(value)
        # The division is of the rounded sum, as in PostgreSQL.
        average = self._operator("/", total, _as(count, FLOAT8))
        return If(self._operator("=", count, Literal(0, INT8)), Literal(None, FLOAT8), average)

    def _variance(self, name: str, value: Scalar, total: Scalar, count: Scalar) -> Scalar:
        squares = self._squares(value)
        n = _as(count, numeric(0))
        spread = self._operator("-", self._operator("*", n, squares), self._operator("*", total, total))
        population = name == "var_pop"
        others = n if population else self._operator("-", n, Literal(1, INT8))
        result = self._operator("/", spread, self._operator("*", n, others))
        few = self._operator("<=", count, Literal(0 if population else 1, INT8))
        return If(few, Literal(None, result.type), result)

    def _squares(self, value: Scalar) -> Scalar:
        """Returns the sum of the squares; of distinct values by their signs, each of which squares one to one."""
        square = self._operator("*", value, value)
        if not self.call.distinct:
            return self._sum(square)
        null, zero = Literal(None, square.type), Literal(0, INT8)
        parts: list[Scalar] = []
        for sign in (">=", "<"):
            part = self._sum(If(self._operator(sign, value, zero), square, null))
            absent = self._operator("is null", part)
            parts.append(If(absent, _as(zero, square.type), part))
        return self._operator("+", *parts)

    def _truth(self, name: str) -> Scalar:
        value = self._typed(0, BOOL)
        sought = "is true" if name == "bool_or" else "is false"
        found = self._count(If(self._operator(sought, value), Literal(True, BOOL), Literal(None, BOOL)), distinct=False)
        count = self._count(value, distinct=False)
        zero = Literal(0, INT8)
        answer = self._operator(">" if name == "bool_or" else "=", found, zero)
        return If(self._operator("=", count, zero), Literal(None, BOOL), answer)

    def _array_agg(self) -> Scalar:
        value = self._typed(0)
        if is_array(value.type):
            raise UnsupportedForm(
                "array_agg() of arrays is not supported",
                detail="There are no arrays of several dimensions.",
                position=self.call.position,
            )
        if self.call.distinct:
            self._check_distinct_order([value])
        return self.sink(
            Core(
                AggregateFunction.ARRAY_AGG,
                (self._guarded_if_computed(value),),
                array_of(value.type),
                self.call.distinct,
                self.condition,
                self._order(),
            )
        )

    def _string_agg(self, types: Sequence[ScalarType | Unknown]) -> Scalar:
        if any(not isinstance(one, Unknown) and one != TEXT for one in types):
            raise _no_function(self.call, types)
        value, separator = self._typed(0, TEXT), self._typed(1, TEXT)
        if self.call.distinct:
            self._check_distinct_order([value, separator])
        return self.sink(
            Core(
                AggregateFunction.STRING_AGG,
                (self._guarded(value), self._guarded_if_computed(separator)),
                TEXT,
                self.call.distinct,
                None,
                self._order(),
            )
        )

    def _order(self) -> tuple[SortKey, ...]:
        return tuple(replace(key, scalar=self._guarded_if_computed(key.scalar)) for key in self.order)


def is_array(type_: ScalarType) -> bool:
    """Returns whether values of the type are arrays."""
    return type_.kind is Kind.ARRAY


def _as(scalar: Scalar, target: ScalarType) -> Scalar:
    found = cast(scalar.type, target, CastContext.IMPLICIT)
    assert not isinstance(found, Failure), found
    return found.apply(scalar)


def _no_function(call: CallSyntax, types: Sequence[ScalarType | Unknown]) -> UndefinedFunction:
    shown = ", ".join(type_name(one) for one in types)
    return UndefinedFunction(f"function {call.name}({shown}) does not exist", hint=_CASTS_HINT, position=call.position)
