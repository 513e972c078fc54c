"""The expansion of one call of an aggregate: what the meanings of all aggregates are made of.

A function that ignores NULLs gets its FILTER as an `If` under the argument, which also keeps the argument from failing
for rows that do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mz_dagster.functions import AGGREGATES, ArgumentType, Unknown, type_name
from mz_dagster.functions.aggregates.algebra import Aggregated, AggregateFunction
from mz_dagster.plan.representations import REPRESENTATIONS
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import FLOAT8, INT8, TEXT, UNCONSTRAINED, Kind, ScalarType, array_of
from mz_dagster.sql.binding import Bound, argument_type
from mz_dagster.sql.call_syntax import CallSyntax
from mz_dagster.sql.coercions import explicit, implicit
from mz_dagster.sql.collected_calls import Core, SortKey
from mz_dagster.sql.errors import InvalidColumnReference, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)

#: Takes a core and answers with the column that will hold it.
Sink = Callable[[Core], ColumnRef]


@dataclass(slots=True)
class Expansion:
    """A call of an aggregate with its parts bound; it makes cores of them.

    Attributes:
        binder: Binds the arguments.
        call: As written.
        arguments: Bound.
        order: ORDER BY.
        condition: FILTER's.
        sink: Where cores go.
    """

    binder: ExpressionBinder
    call: CallSyntax
    arguments: list[Bound]
    order: tuple[SortKey, ...]
    condition: Scalar | None
    sink: Sink

    @property
    def record(self) -> Aggregated:
        """What is known of the aggregate."""
        return AGGREGATES[self.call.name]

    @property
    def types(self) -> list[ArgumentType]:
        """The arguments' types."""
        return [argument_type(one) for one in self.arguments]

    @property
    def scalars(self) -> list[Scalar]:
        """Everything that the call is over, but for bare literals."""
        arguments = [one for one in self.arguments if not isinstance(one, Unknown)]
        return [*arguments, *(key.scalar for key in self.order), *(() if self.condition is None else (self.condition,))]

    def typed(self, i: int, target: ScalarType | None = None) -> Scalar:
        """Returns the i-th argument, cast to `target` if there is one."""
        return self.binder.as_type(self.arguments[i], target, self.call.arguments[i])

    def position_of_argument(self, i: int) -> int:
        """Returns where the i-th argument stands."""
        return self.binder.body.position(self.call.arguments[i])

    def operator(self, symbol: str, *arguments: Scalar) -> Scalar:
        """Returns the application of an operator."""
        return self.binder.operator(symbol, arguments, self.call.position)

    def guarded(self, scalar: Scalar) -> Scalar:
        """Returns NULL for the rows that FILTER leaves out."""
        return scalar if self.condition is None else If(self.condition, scalar, Literal(None, scalar.type))

    def guarded_if_computed(self, scalar: Scalar) -> Scalar:
        """Returns NULL for these rows, unless there is nothing in `scalar` that could fail."""
        return scalar if isinstance(scalar, ColumnRef | Literal) else self.guarded(scalar)

    def guarded_order(self) -> tuple[SortKey, ...]:
        """Returns ORDER BY over the rows that count."""
        return tuple(key.over(self.guarded_if_computed(key.scalar)) for key in self.order)

    def check_distinct_order(self, arguments: Sequence[Scalar]) -> None:
        """Raises InvalidColumnReference if a call with DISTINCT is ordered by anything but its arguments."""
        for key, node in zip(self.order, self.call.order, strict=True):
            if key.scalar not in arguments:
                raise InvalidColumnReference(
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    position=self.binder.body.position(node),
                )

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
        if value.type.kind is Kind.UNCONSTRAINED and self.binder.clause == "window":
            # Frames add up numbers of one scale.
            listed = self.array(self.guarded_if_computed(value), self.condition, ())
            return Call("sum_list_unconstrained", (listed,), UNCONSTRAINED)
        return self.sink(Core(AggregateFunction.SUM, (self.guarded(value),), value.type.unmodified, self.call.distinct))

    def extreme(self, value: Scalar) -> ColumnRef:
        """Returns the least or the greatest value, as the call says."""
        type_ = TEXT if value.type.kind is Kind.TEXT else value.type.unmodified  # of a varchar or a name, too
        return self.sink(Core(AggregateFunction(self.call.name), (self.guarded(value),), type_))

    def exact_sum(self, *factors: Scalar) -> ColumnRef:
        """Returns the exact sum of a floating-point number, or of a product of two."""
        values = tuple(self.guarded(explicit(one, FLOAT8)) for one in factors)
        return self.sink(Core(AggregateFunction.EXACT_SUM, values, TEXT, self.call.distinct))

    def float_average(self, value: Scalar) -> Scalar:
        """Returns the average of a floating-point number."""
        value = implicit(value, FLOAT8)
        total, count = self.sum(value), self.count(value)
        # The division is of the rounded sum, as in PostgreSQL.
        average = self.operator("/", total, implicit(count, FLOAT8))
        return If(self.operator("=", count, Literal(0, INT8)), Literal(None, FLOAT8), average)

    def ordered_array(self, value: Scalar) -> Scalar:
        """Returns the array of a value of the rows that count, in the order that the call says."""
        given, order = self.guarded_if_computed(value), self.guarded_order()
        if self.call.distinct:
            self.check_distinct_order([value])
            is_nested = value.type.kind is Kind.DIMENSIONED and not value.type.holds(REPRESENTATIONS)
            if value.type.kind in REPRESENTATIONS or is_nested:
                # Of equal values, which are neighbours in their order, the first one stays.
                sorted_ = self.array(given, self.condition, order or (SortKey(given, False, False),), distinct=False)
                return Call("distinct_elements", (sorted_,), sorted_.type)
            if value.type.holds(REPRESENTATIONS):
                raise UnsupportedForm(
                    f"array_agg(DISTINCT {type_name(value.type)}) is not supported",
                    detail="Values that are equal but look different have no order by which one of them stays.",
                    hint="Select the distinct values in a derived table.",
                    position=self.call.position,
                )
        return self.array(given, self.condition, order)

    def array(
        self, value: Scalar, condition: Scalar | None, order: tuple[SortKey, ...], *, distinct: bool | None = None
    ) -> ColumnRef:
        """Returns the array of a value of the rows for which the condition is true, in an order."""
        distinct = self.call.distinct if distinct is None else distinct
        type_ = array_of(value.type.unmodified)
        return self.sink(Core(AggregateFunction.ARRAY_AGG, (value,), type_, distinct, condition, order))
