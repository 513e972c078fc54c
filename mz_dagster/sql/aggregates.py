"""Binds calls of aggregates: PostgreSQL's types, spelled in the few core functions of the algebra.

Owns which aggregates there are and what each means. A call becomes *cores* (functions of the algebra over scalars of
the rows) and a scalar over the cores' columns: `avg(x)` is `sum / count`, or NULL where the count is 0. Equal cores of
one SELECT are one. A function that ignores NULLs gets its FILTER as an `If` under the argument, which also keeps the
argument from failing for rows that do not count. Variances and regressions are
`statistics.py`'s, what stands WITHIN GROUP is `ordered_sets.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from mz_dagster.errors import Error
from mz_dagster.plan.functions import ArgumentType, Unknown, ambiguous, no_match, type_name
from mz_dagster.plan.relation import AggregateFunction
from mz_dagster.plan.representations import REPRESENTATIONS
from mz_dagster.plan.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, walk
from mz_dagster.plan.types import BOOL, BYTEA, FLOAT8, INT4, INT8, INTERVAL, TEXT, Kind, ScalarType, array_of, numeric
from mz_dagster.sql.binding import Bound, argument_type, name_of, only
from mz_dagster.sql.coercions import explicit, implicit
from mz_dagster.sql.errors import (
    GroupingError,
    InvalidColumnReference,
    InvalidSyntax,
    TooMany,
    UnsupportedForm,
    WindowingError,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.interval_aggregates import interval_extreme, interval_total
from mz_dagster.sql.jsonb_aggregates import JSONB_AGGREGATES, jsonb_aggregate
from mz_dagster.sql.ordered_sets import ORDERED_SETS, ordered_set
from mz_dagster.sql.placeholders import AGGREGATE_BASE
from mz_dagster.sql.statistics import REGRESSIONS, VARIANCES, regression, variance

if TYPE_CHECKING:
    from mz_dagster.sql.expressions import Expressions

_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_NUMBERS = (*_INTEGERS, Kind.NUMERIC, *_FLOATS)
_CONJUNCTIONS = ("bool_and", "every")
#: Kinds of which PostgreSQL 15 has no min and max.
_WITHOUT_EXTREMES = (Kind.BOOL, Kind.UUID, Kind.BYTEA, Kind.JSONB, Kind.RECORD)
_BITWISE = ("bit_and", "bit_or", "bit_xor")
#: The aggregates there are.
AGGREGATES = frozenset(
    (
        *("count", "sum", "avg", "min", "max", "bool_or", "array_agg", "string_agg"),
        *(*_CONJUNCTIONS, *_BITWISE, *VARIANCES, *REGRESSIONS, *ORDERED_SETS, *JSONB_AGGREGATES),
    )
)
#: Those of two arguments.
_OF_TWO = ("string_agg", "jsonb_object_agg", *REGRESSIONS)
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
        order: ORDER BY within the parentheses, or behind WITHIN GROUP.
        filter: FILTER's condition.
        ignore_nulls: Whether IGNORE NULLS is asked for.
        position: Where it begins.
        within: Whether WITHIN GROUP stands behind it.
    """

    name: str
    arguments: tuple[exp.Expr, ...]
    star: bool
    distinct: bool
    order: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool
    position: int
    within: bool = False


def call_syntax(binder: Expressions, node: exp.Expr) -> CallSyntax:
    """Returns the parts of the call that `node` is, within FILTER, WITHIN GROUP and IGNORE NULLS."""
    body = binder.body
    position, condition, ignore_nulls = body.position(node), None, False
    within: exp.Expr | None = None
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
            case exp.WithinGroup() if within is None:
                only(body, inner, "this", "expression")
                within = inner.expression
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
    if within is not None:
        if order or any(isinstance(one, exp.Distinct) for one in arguments):
            word = "multiple ORDER BY clauses" if order else "DISTINCT"
            raise InvalidSyntax(f"cannot use {word} with WITHIN GROUP", position=position)
        only(body, within, "expressions")
        order = tuple(within.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only(body, arguments[0], "expressions", what="this form of DISTINCT")
        arguments = list(arguments[0].expressions)
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not distinct and not order
    if star:
        only(body, arguments[0], what="this form of *")
        arguments = []
    name = name_of(inner.this)
    return CallSyntax(
        name, tuple(arguments), star, distinct, order, condition, ignore_nulls, position, within is not None
    )


@dataclass(frozen=True, slots=True)
class SortKey:
    """Is one key of an order, as a scalar over the rows."""

    scalar: Scalar
    descending: bool
    nulls_first: bool

    def over(self, scalar: Scalar) -> SortKey:
        """Returns the key for another scalar."""
        return replace(self, scalar=scalar)


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

    @property
    def is_unordered(self) -> bool:
        """True if its result depends on the order of the rows, and no order is asked for."""
        listed = self.function in (AggregateFunction.ARRAY_AGG, AggregateFunction.STRING_AGG)
        return listed and not self.distinct and not self.order


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
    inner = replace(binder, clause="aggregate", aggregates=None, windows=None, sets=None)
    cores: list[Core] = []

    def sink(core: Core) -> ColumnRef:
        cores.append(core)
        if core.is_unordered:
            binder.binding.order_reader = f"{call.name}()"
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
    inner = replace(binder, aggregates=None, windows=None, sets=None)
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
        raise no_function(call, ())
    if not call.star and not call.arguments and not call.within:
        if call.name == "count":
            message = "count(*) must be used to call a parameterless aggregate function"
            raise WrongObjectKind(message, position=call.position)
        raise no_function(call, ())
    arguments = [binder.bind(one) for one in call.arguments]
    order = sort_keys(binder, call.order)
    condition = None
    if call.filter is not None:
        outside = replace(binder, clause="FILTER", aggregates=None, windows=None, sets=None)
        condition = outside.boolean(call.filter, "FILTER")
    return Expansion(binder, call, arguments, order, condition, sink).value()


@dataclass(slots=True)
class Expansion:
    """Expands one call.

    Attributes:
        binder: Binds the arguments.
        call: As written.
        arguments: Bound.
        order: ORDER BY.
        condition: FILTER's.
        sink: Where cores go.
    """

    binder: Expressions
    call: CallSyntax
    arguments: list[Bound]
    order: tuple[SortKey, ...]
    condition: Scalar | None
    sink: Sink

    def value(self) -> Scalar:
        """Returns what the call means over the cores' columns."""
        call = self.call
        if call.within:
            return ordered_set(self)
        if call.star:
            return self._count_star()
        if call.name in ORDERED_SETS or len(self.arguments) != (2 if call.name in _OF_TWO else 1):
            raise self._no_function()
        match call.name:
            case "count":
                self._check_order()
                return self.count(self.typed(0))
            case "sum" | "avg" | "min" | "max" if self._is_interval(self.types[0]):
                self._check_order()
                value = implicit(self.typed(0), INTERVAL)
                return interval_total(self, value) if call.name in ("sum", "avg") else interval_extreme(self, value)
            case "sum" | "avg":
                return self._sums(self._one_of(_NUMBERS), call.name)
            case name if name in VARIANCES:
                return variance(self, name, self._one_of(_NUMBERS))
            case name if name in REGRESSIONS:
                return self._regression(name)
            case "bit_and" | "bit_or" | "bit_xor":
                value = self.guarded(self._one_of(_INTEGERS))
                return self.sink(Core(AggregateFunction(call.name), (value,), value.type, call.distinct))
            case "min" | "max":
                return self._extreme()
            case "bool_and" | "every" | "bool_or":
                return self._truth(call.name)
            case "array_agg":
                return self._array_agg()
            case name if name in JSONB_AGGREGATES:
                return jsonb_aggregate(self)
            case _:
                return self._string_agg()

    @property
    def types(self) -> list[ArgumentType]:
        """The arguments' types."""
        return [argument_type(one) for one in self.arguments]

    def _no_function(self) -> Error:
        return no_function(self.call, self.types)

    def _one_of(self, kinds: Sequence[Kind]) -> Scalar:
        """Returns the one argument, by whose kind one of several functions is chosen, if it is one of `kinds`."""
        if self._known(self.types[0]).kind not in kinds:
            raise self._no_function()
        self._check_order()
        return self.typed(0)

    def _regression(self, name: str) -> Scalar:
        if any(not isinstance(one, Unknown) and one.kind not in _NUMBERS for one in self.types):
            raise self._no_function()
        if self.call.distinct:
            raise UnsupportedForm(
                f"DISTINCT in {name}() is not supported",
                detail="Its sums are kept for single rows, not for distinct pairs.",
                hint="Select the distinct pairs in a derived table.",
                position=self.call.position,
            )
        return regression(self, name, self.typed(0, FLOAT8), self.typed(1, FLOAT8))

    def _extreme(self) -> Scalar:
        first = self.types[0]
        kind = None if isinstance(first, Unknown) else first.kind
        if kind in _WITHOUT_EXTREMES:
            raise self._no_function()
        if kind is Kind.ARRAY:
            raise UnsupportedForm(
                f"{self.call.name}({type_name(first)}) is not supported",
                detail="The arrays of a group are not kept in their order.",
                hint="Use DISTINCT ON, or ORDER BY with LIMIT 1.",
                position=self.call.position,
            )
        self._check_order()
        return self.extreme(self.typed(0, TEXT if kind is Kind.VARCHAR else None))

    def typed(self, i: int, target: ScalarType | None = None) -> Scalar:
        """Returns the i-th argument, cast to `target` if there is one."""
        return self.binder.as_type(self.arguments[i], target, self.call.arguments[i])

    def _known(self, type_: ArgumentType) -> ScalarType:
        """Returns the argument's type, by which one of several functions is chosen."""
        if isinstance(type_, Unknown):
            raise error_of(ambiguous(self.call.name, [type_]), self.call.position)
        return type_

    def _is_interval(self, type_: ArgumentType) -> bool:
        """Tells intervals, and times where PostgreSQL adds them up as intervals."""
        kinds = (Kind.INTERVAL, Kind.TIME) if self.call.name in ("sum", "avg") else (Kind.INTERVAL,)
        return not isinstance(type_, Unknown) and type_.kind in kinds

    def operator(self, symbol: str, *arguments: Scalar) -> Scalar:
        """Returns the application of an operator."""
        return self.binder.operator(symbol, arguments, self.call.position)

    def guarded(self, scalar: Scalar) -> Scalar:
        """Returns NULL for the rows that FILTER leaves out."""
        return scalar if self.condition is None else If(self.condition, scalar, Literal(None, scalar.type))

    def _guarded_if_computed(self, scalar: Scalar) -> Scalar:
        return scalar if isinstance(scalar, ColumnRef | Literal) else self.guarded(scalar)

    def _check_order(self) -> None:
        """Checks the ORDER BY of a call whose result does not depend on it."""
        if self.call.distinct:
            self._check_distinct_order([self.typed(i) for i in range(len(self.arguments))])

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
        return self.sink(Core(AggregateFunction.COUNT, (self.guarded(Literal(True, BOOL)),), INT8))

    def count(self, value: Scalar, *, distinct: bool | None = None) -> ColumnRef:
        """Returns how often a value is not NULL."""
        distinct = self.call.distinct if distinct is None else distinct
        value = self.guarded(value)
        if not value.nullable and not distinct:
            return self.sink(Core(AggregateFunction.COUNT, (), INT8))
        return self.sink(Core(AggregateFunction.COUNT, (value,), INT8, distinct))

    def sum(self, value: Scalar) -> Scalar:
        """Returns the sum of a value in its own type."""
        if value.type.kind in _FLOATS and self.binder.clause == "window":
            # Spark's frames do not add up floats exactly.
            return explicit(Call("nearest_float8", (self.exact_sum(value),), FLOAT8), value.type)
        return self.sink(Core(AggregateFunction.SUM, (self.guarded(value),), value.type, self.call.distinct))

    def extreme(self, value: Scalar) -> ColumnRef:
        """Returns the least or the greatest value, as the call says."""
        return self.sink(Core(AggregateFunction(self.call.name), (self.guarded(value),), value.type))

    def exact_sum(self, *factors: Scalar) -> ColumnRef:
        """Returns the exact sum of a floating-point number, or of a product of two."""
        values = tuple(self.guarded(explicit(one, FLOAT8)) for one in factors)
        return self.sink(Core(AggregateFunction.EXACT_SUM, values, TEXT, self.call.distinct))

    def _sums(self, value: Scalar, name: str) -> Scalar:
        if value.type.kind in _FLOATS:
            return self.sum(value) if name == "sum" else self.float_average(value)
        wide = INT8 if value.type.kind in (Kind.INT2, Kind.INT4) else value.type
        wide = numeric(0) if value.type.kind is Kind.INT8 else wide
        total = self.sum(implicit(value, wide))
        if name == "sum":
            return total
        # One state of distinct values serves both.
        count = self.count(implicit(value, wide) if self.call.distinct else value)
        exact = wide if wide.kind is Kind.NUMERIC else numeric(0)
        average = self.operator("/", implicit(total, exact), count)
        return If(self.operator("=", count, Literal(0, INT8)), Literal(None, average.type), average)

    def float_average(self, value: Scalar) -> Scalar:
        """Returns the average of a floating-point number."""
        value = implicit(value, FLOAT8)
        total, count = self.sum(value), self.count(value)
        # The division is of the rounded sum, as in PostgreSQL.
        average = self.operator("/", total, implicit(count, FLOAT8))
        return If(self.operator("=", count, Literal(0, INT8)), Literal(None, FLOAT8), average)

    def _truth(self, name: str) -> Scalar:
        first = self.types[0]
        if not isinstance(first, Unknown) and first.kind is not Kind.BOOL:
            raise self._no_function()
        self._check_order()
        value = self.typed(0, BOOL)
        sought = "is true" if name == "bool_or" else "is false"
        found = self.count(If(self.operator(sought, value), Literal(True, BOOL), Literal(None, BOOL)), distinct=False)
        count = self.count(value, distinct=False)
        zero = Literal(0, INT8)
        answer = self.operator(">" if name == "bool_or" else "=", found, zero)
        return If(self.operator("=", count, zero), Literal(None, BOOL), answer)

    def _array_agg(self) -> Scalar:
        self._known(self.types[0])
        value = self.typed(0)
        if is_array(value.type):
            raise UnsupportedForm(
                "array_agg() of arrays is not supported",
                detail="There are no arrays of several dimensions.",
                position=self.call.position,
            )
        return self.ordered_array(value)

    def ordered_array(self, value: Scalar) -> ColumnRef:
        """Returns the array of a value of the rows that count, in the order that the call says."""
        if self.call.distinct:
            self._check_distinct_order([value])
            if value.type.kind in REPRESENTATIONS:
                raise UnsupportedForm(
                    f"DISTINCT in {self.call.name}({type_name(value.type)}) is not supported",
                    detail="Equal values have several representations, of which one would have to be chosen.",
                    hint="Select the distinct values in a derived table.",
                    position=self.call.position,
                )
        return self.array(self._guarded_if_computed(value), self.condition, self._order())

    def array(self, value: Scalar, condition: Scalar | None, order: tuple[SortKey, ...]) -> ColumnRef:
        """Returns the array of a value of the rows for which the condition is true, in an order."""
        distinct, type_ = self.call.distinct, array_of(value.type)
        return self.sink(Core(AggregateFunction.ARRAY_AGG, (value,), type_, distinct, condition, order))

    def _string_agg(self) -> Scalar:
        kinds = {one.kind for one in self.types if not isinstance(one, Unknown)}
        target = BYTEA if kinds == {Kind.BYTEA} else TEXT
        if target is TEXT and not kinds <= {Kind.TEXT, Kind.VARCHAR, Kind.CHAR}:
            raise self._no_function()
        value, separator = self.typed(0, target), self.typed(1, target)
        if self.call.distinct:
            self._check_distinct_order([value, separator])
        return self.sink(
            Core(
                AggregateFunction.STRING_AGG,
                (self.guarded(value), self._guarded_if_computed(separator)),
                target,
                self.call.distinct,
                None,
                self._order(),
            )
        )

    def _order(self) -> tuple[SortKey, ...]:
        return tuple(key.over(self._guarded_if_computed(key.scalar)) for key in self.order)

    def position_of_argument(self, i: int) -> int:
        """Returns where the i-th argument stands."""
        return self.binder.body.position(self.call.arguments[i])


def is_array(type_: ScalarType) -> bool:
    """Returns whether values of the type are arrays."""
    return type_.kind is Kind.ARRAY


def no_function(call: CallSyntax, types: Sequence[ArgumentType]) -> Error:
    """Returns the error that says that no function of the call's name takes these arguments."""
    return error_of(no_match(call.name, types), call.position)
