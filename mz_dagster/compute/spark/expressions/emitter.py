"""Emission: scalar expressions to Spark columns.

Owns the walk over a scalar: columns, literals, `If`, the connectives and the other functions that do not simply
return NULL for NULL; strict functions are looked up in the registry. What is emitted is total: no ANSI
exception is ever raised by it; an evaluation that fails yields an error text instead. `and` is false, and `or` true,
as soon as one argument is, whatever fails in the others. Otherwise the leftmost failing argument's error wins.

Large expressions share: Spark writes out a column as often as it is mentioned, so an expression of depth d whose nodes
each mention their arguments twice would have 2^d nodes. With an `Emitter`, subexpressions beyond a certain size become
columns of their own, in stages, that the caller adds to its frame; `emit` alone writes everything out.

Spark would write them out all the same: a filter that it moves below a projection takes the place of each column its
expression, in every stage, which makes trees of millions of nodes. So a shared column is made opaque: it depends,
formally, on the number of the partition, and nothing is moved through a projection that is not deterministic.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, assert_never

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.balanced import Branches, balanced
from mz_dagster.compute.spark.expressions.chain import chain_of, folded
from mz_dagster.compute.spark.expressions.emitted import (
    HEAVY,
    LENIENT,
    STRICT,
    Emitted,
    Invocation,
    all_present,
    leftmost,
)
from mz_dagster.compute.spark.expressions.interval import lengths_of
from mz_dagster.compute.spark.expressions.pure import on_worker
from mz_dagster.errors import InternalError
from mz_dagster.functions.casts import short_name
from mz_dagster.functions.membership import AMONG
from mz_dagster.functions.plain import to_plain
from mz_dagster.functions.references import PURE
from mz_dagster.plan.representations import representation_of, sortable
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery, children
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Beyond so many nodes, a value or an error becomes a column.
_SHARED_SIZE = 40


def emit(scalar: Scalar, columns: Sequence[Column]) -> Emitted:
    """Returns `scalar` over a row whose columns are `columns`, all written out in place.

    Fit for small expressions, as keys and predicates are; `Emitter` is for the others.
    """
    return Emitter(columns, shares=False).emit(scalar)


class Emitter:
    """Emits scalars over one row, and keeps the columns that they share.

    Example:
        `emitter = Emitter(columns)`, `emitted = emitter.emit(scalar)`, then `frame = emitter.stage(frame)`, which
        adds the shared columns; after that `emitted.value` can be selected from `frame`.
    """

    def __init__(self, columns: Sequence[Column], *, shares: bool = True, prefix: str = "mz_shared") -> None:
        self._row = [Emitted(column) for column in columns]
        self._shares = shares
        self._prefix = prefix
        self._stages: list[list[tuple[str, Column]]] = []
        self._seen: dict[object, Emitted] = {}
        self._parts: dict[int, tuple[Scalar, int]] = {}
        self._numbers: dict[object, int] = {}

    def bind(self, emitted: Emitted) -> None:
        """Appends a column to the row: an expression emitted before."""
        self._row.append(emitted)

    @property
    def load(self) -> int:
        """How many shared columns there are in all stages, each with those that it passes on."""
        return sum(accumulate(map(len, self._stages)))

    def stage(self, frame: DataFrame) -> DataFrame:
        """Returns `frame` with the shared columns added."""
        for stage in self._stages:
            frame = frame.select("*", *(opaque(column).alias(name) for name, column in stage))
        return frame

    def emit(self, scalar: Scalar) -> Emitted:
        """Returns `scalar` as columns."""
        match scalar:
            case ColumnRef():
                return self._row[scalar.position]
            case Literal():
                return Emitted(literal(scalar))
            case Call() | If():
                known = self._known(scalar)
                seen = self._seen.get(known)
                if seen is None:
                    seen = self._emit_call(scalar) if isinstance(scalar, Call) else self._emit_if(scalar)
                    seen = self._seen[known] = self.shared(seen)
                return seen
            case OuterColumn() | Subquery():
                raise InternalError("a subquery reached Spark")
            case _:
                assert_never(scalar)

    def _known(self, scalar: Scalar) -> int:
        """Returns a number that equal scalars have, and no others; each part is looked at once, however deep."""
        pending = [scalar]
        while pending:
            one = pending[-1]
            missing = [part for part in children(one) if id(part) not in self._parts]
            pending += missing
            if missing:
                continue
            pending.pop()
            parts = tuple(self._parts[id(part)][1] for part in children(one))
            match one:
                case Call():
                    form: object = (one.function, one.type, parts)
                case If():
                    form = ("if", one.type, parts)
                case Literal() if isinstance(one.value, float):
                    form = ("float", one.type, repr(one.value))  # equality does not tell 0.0 from -0.0
                case _:
                    form = one
            number = self._numbers.setdefault(form, len(self._numbers))
            self._parts[id(one)] = one, number  # with the scalar, whose id is then no other's
        return self._parts[id(scalar)][1]

    def shared(self, emitted: Emitted, *, above: int = _SHARED_SIZE) -> Emitted:
        """Returns `emitted` as a column of its own if it is larger than `above`."""
        if not self._shares or emitted.size <= above:
            return emitted
        while len(self._stages) <= emitted.level:
            self._stages.append([])
        stage = self._stages[emitted.level]
        name = f"{self._prefix}_{emitted.level}_{len(stage)}"
        stage.append((name, emitted.value))
        error = None
        if emitted.error is not None:
            stage.append((f"{name}_error", emitted.error))
            error = sf.col(f"{name}_error")
        return Emitted(sf.col(name), error, 1, emitted.level + 1)

    def _emit_if(self, scalar: If) -> Emitted:
        """Returns a CASE, of all branches at once: nested ones would be as deep as they are many."""
        none = sf.lit(None).cast("string")
        value, error = Branches(null(scalar.type)), Branches(none)
        size, level, fails = 4, 0, False
        last: Scalar = scalar
        while isinstance(last, If):
            condition, then = self.shared(self.emit(last.condition), above=8), self.emit(last.then)
            value.when(condition.value, then.value)
            error.when(condition.value, none if then.error is None else then.error)
            if condition.error is not None:
                value.when(condition.error.isNotNull(), null(scalar.type))
                error.when(condition.error.isNotNull(), condition.error)
            size += 2 * condition.size + then.size
            level = max(level, condition.level, then.level)
            fails = fails or condition.error is not None or then.error is not None
            last = last.otherwise
        otherwise = self.emit(last)
        value.default = otherwise.value
        size, level = size + otherwise.size, max(level, otherwise.level)
        if otherwise.error is not None:
            error.default, fails = otherwise.error, True
        return Emitted(value.otherwise(), error.otherwise() if fails else None, size, level)

    def _emit_chain(self, first: Scalar, operators: Sequence[Call]) -> Emitted:
        """Returns a long chain of operators, folded; one column however long."""
        parts = [self.emit(first), *(self.emit(one.arguments[1]) for one in operators)]
        level = max(one.level for one in parts)
        fold = self.shared(Emitted(folded(operators, parts[0], parts[1:]), None, _SHARED_SIZE + 1, level))
        return Emitted(fold.value.getField("v"), fold.value.getField("e"), 2, fold.level)

    def _emit_call(self, scalar: Call) -> Emitted:
        chain = chain_of(scalar)
        if chain is not None:
            return self._emit_chain(*chain)
        # The constants of a set, of which there are many, are no column.
        emitted = scalar.arguments[:1] if scalar.function == AMONG else scalar.arguments
        arguments = tuple(self.emit(argument) for argument in emitted)
        level = max((argument.level for argument in arguments), default=0)
        size = 3 + sum(argument.size for argument in arguments)
        lazy = _LAZY.get(scalar.function)
        if lazy is not None:
            value, error = lazy(scalar, arguments)
            return Emitted(value, error, 2 * size, level)
        heavy = scalar.function in HEAVY
        if heavy:
            arguments = tuple(self.shared(argument, above=2) for argument in arguments)
            level = max((argument.level for argument in arguments), default=0)
            size = _SHARED_SIZE + 1

        def share(*columns: Column) -> list[Column]:
            nonlocal level
            shared = [self.shared(Emitted(column, None, 1, level), above=0) for column in columns]
            level = max(one.level for one in shared)
            return [one.value for one in shared]

        invocation = Invocation(scalar.function, scalar.arguments, arguments, scalar.type, share)
        if scalar.function in LENIENT:
            value, own = LENIENT[scalar.function](invocation)
            failed = leftmost([argument.error for argument in arguments])
            value = value if failed is None else sf.when(failed.isNull(), value)
        else:
            value, own = STRICT[scalar.function](invocation)
        error = leftmost([*(argument.error for argument in arguments), own])
        return Emitted(value, error, size if error is None else 3 * size, level)


def opaque(column: Column) -> Column:
    """Returns the column's value as an expression that Spark does not copy to another place of a plan."""
    return sf.when(sf.spark_partition_id() >= 0, column)


def null(type_: ScalarType) -> Column:
    """Returns NULL of a type."""
    return sf.lit(None).cast(spark_type(type_))


def literal(scalar: Literal) -> Column:
    """Returns a constant column; Spark folds it to a literal, so that scans can prune by it."""
    value, type_ = scalar.value, scalar.type
    if value is None:
        return null(type_)
    match type_.kind:
        case Kind.NUMERIC:
            assert isinstance(value, Decimal)
            return sf.lit(f"{value:f}").cast(spark_type(type_))
        case Kind.DATE:
            return sf.date_from_unix_date(sf.lit(to_plain(value, type_)))
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            moment = sf.timestamp_micros(sf.lit(to_plain(value, type_)).cast("bigint"))
            return moment.cast("timestamp_ntz") if type_.kind is Kind.TIMESTAMP else moment
        case Kind.FLOAT8:
            return sf.lit(float(value))  # type: ignore[arg-type]
        case Kind.ARRAY:
            assert isinstance(value, tuple)
            assert type_.element is not None
            elements = [literal(Literal(one, type_.element)) for one in value]
            return sf.array(*elements).cast(spark_type(type_))
        case Kind.RECORD | Kind.DIMENSIONED:
            assert isinstance(value, tuple)
            fields = zip(value, type_.fields, strict=True)
            cells = [literal(Literal(one, field)).alias(f"f{i}") for i, (one, (_, field)) in enumerate(fields, 1)]
            return sf.struct(*cells).cast(spark_type(type_))
        case Kind.INTERVAL:
            parts = to_stored(value, type_)
            return sf.struct(*(sf.lit(part).alias(name) for name, part in parts.items())).cast(spark_type(type_))
        case _:
            return sf.lit(to_stored(value, type_)).cast(spark_type(type_))


def _unless_failing(value: Column, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    error = leftmost([argument.error for argument in arguments])
    return (value, None) if error is None else (sf.when(error.isNull(), value), error)


def _and(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    value = balanced(operator.and_, [argument.value for argument in arguments])
    error = leftmost([argument.error for argument in arguments])
    # A failing argument's value is NULL, so the conjunction is false exactly if another argument is.
    return value, None if error is None else sf.when(sf.coalesce(value, sf.lit(True)), error)


def _or(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    value = balanced(operator.or_, [argument.value for argument in arguments])
    error = leftmost([argument.error for argument in arguments])
    return value, None if error is None else sf.when(~sf.coalesce(value, sf.lit(False)), error)


def _test(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    argument = arguments[0].value
    match scalar.function:
        case "is_null":
            value = argument.isNull()
        case "is_not_null":
            value = argument.isNotNull()
        case "is_true":
            value = sf.coalesce(argument, sf.lit(False))
        case "is_not_true":
            value = ~sf.coalesce(argument, sf.lit(False))
        case "is_false":
            value = ~sf.coalesce(argument, sf.lit(True))
        case _:
            value = sf.coalesce(argument, sf.lit(True))
    return _unless_failing(value, arguments)


def _distinct(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    left, right = (argument.value for argument in arguments)
    type_ = scalar.arguments[0].type
    if type_ == scalar.arguments[1].type and representation_of(type_) is None:
        same = left.eqNullSafe(right)
    else:  # numerics of different scales, or what is equal in several representations
        name = f"eq_{short_name(type_.kind)}"
        invocation = Invocation(name, scalar.arguments, tuple(arguments), scalar.type, lambda *columns: [*columns])
        equal, _ = STRICT[name](invocation)
        same = sf.coalesce(equal, ~all_present([left]) & ~all_present([right]))
    return _unless_failing(~same if scalar.function == "is_distinct_from" else same, arguments)


def _coalesce(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    if all(argument.error is None for argument in arguments):
        return sf.coalesce(*(argument.value for argument in arguments)), None
    # One CASE, however many arguments: nested ones would be as deep as they are many.
    value, error = Branches(null(scalar.type)), Branches(sf.lit(None).cast("string"))
    for argument in arguments:
        value.when(argument.value.isNotNull(), argument.value)
        error.when(argument.value.isNotNull(), sf.lit(None).cast("string"))
        if argument.error is not None:
            value.when(argument.error.isNotNull(), null(scalar.type))
            error.when(argument.error.isNotNull(), argument.error)
    return value.otherwise(), error.otherwise()


def _extreme(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    values = [argument.value for argument in arguments]
    if len(values) == 1:
        return _unless_failing(values[0], arguments)
    extreme = sf.greatest if scalar.function == "greatest" else sf.least
    if scalar.type.kind is Kind.ARRAY:
        ordered = [_behind_order(value) for value in values]
        return _unless_failing(extreme(*ordered).getField("value"), arguments)
    if scalar.type.kind is Kind.UNCONSTRAINED:
        order = sf.udf(on_worker(PURE["order_unconstrained"], fallible=False), "binary", useArrow=True)
        keys = [[order(value)] for value in values]
    elif scalar.type.kind is Kind.DIMENSIONED:
        keys = [[emit(sortable(ColumnRef(0, scalar.type)), [value]).value] for value in values]
    elif scalar.type.kind is Kind.INTERVAL:
        keys = [[*lengths_of(value)] for value in values]
    else:
        return _unless_failing(extreme(*values), arguments)
    # Of equal ones the first.
    ranks = range(len(values))[:: -1 if scalar.function == "greatest" else 1]
    ordered = [_ranked(value, key, rank) for value, key, rank in zip(values, keys, ranks, strict=True)]
    return _unless_failing(extreme(*ordered).getField("value"), arguments)


def _behind_order(array: Column) -> Column:
    """Returns an array behind what orders it, in which NULL is last among its elements; NULL if it is."""
    order = sf.transform(array, lambda one: sf.struct(one.isNull().alias("f1"), one.alias("f2")))
    return sf.when(array.isNotNull(), sf.struct(order.alias("order"), array.alias("value")))


def _ranked(value: Column, key: Sequence[Column], rank: int) -> Column:
    """Returns a value behind what orders it, and its rank among equal ones; NULL if it is."""
    order = [one.alias(f"key_{i}") for i, one in enumerate(key)]
    return sf.when(value.isNotNull(), sf.struct(*order, sf.lit(rank).alias("rank"), value.alias("value")))


def _concat(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    value = sf.concat(*(sf.coalesce(argument.value, sf.lit("")) for argument in arguments))
    return _unless_failing(value, arguments)


def _concat_ws(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    value = sf.call_function("concat_ws", *(argument.value for argument in arguments))
    return _unless_failing(value, arguments)


def _error(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    return null(scalar.type), arguments[0].value


def _without_error(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    return arguments[0].value, None


def _error_of(scalar: Call, arguments: Sequence[Emitted]) -> tuple[Column, Column | None]:
    error = arguments[0].error
    return null(scalar.type) if error is None else error, None


_LAZY = {
    "and": _and,
    "or": _or,
    **dict.fromkeys(("is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false"), _test),
    **dict.fromkeys(("is_distinct_from", "is_not_distinct_from"), _distinct),
    "coalesce": _coalesce,
    **dict.fromkeys(("greatest", "least"), _extreme),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "error": _error,
    "without_error": _without_error,
    "error_of": _error_of,
}
