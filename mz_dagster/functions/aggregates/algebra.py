"""The records of aggregates, each at the reference of its algebra in plain Python.

Owns `AGGREGATES`. A record says all there is to know of an aggregate: what it takes and returns, what it is for, how it
is maintained, and either its algebra, whose class it decorates, or of which others it is spelled (`spelled.py`). Of
rows r1, r2, ... in their order, with multiplicities n1, n2, ..., an aggregate of the algebra is

    finish(merge(merge(partial(r1, n1), partial(r2, n2)), ...))

and `merge` is associative, so that frames of windows, buckets of tournaments and parts of groups can be merged. An
engine computes it so where it has no kernel of that name. Spark's workers get the code by value.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import Enum
from typing import Any, ClassVar, TypeVar

from mz_dagster.functions.aggregates.sums import ExactSum, nearest_float8
from mz_dagster.functions.errors import NUMERIC_OVERFLOW, failure, out_of_range
from mz_dagster.functions.numbers.unconstrained_sums import sum_digits, sum_places, total
from mz_dagster.functions.registry import PURE, SqlFailure
from mz_dagster.functions.value_order import order_key
from mz_dagster.scalars.types import Kind, ScalarType

#: The integers that the kinds hold end before these.
_MOST = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
#: Kinds of which PostgreSQL 15 has no min and max.
_WITHOUT_EXTREMES = (Kind.BOOL, Kind.UUID, Kind.BYTEA, Kind.JSON, Kind.JSONB, Kind.RECORD)
_NOT_IN_ORDER = "The arrays of a group are not kept in their order."


class AggregateClass(Enum):
    """How an aggregate is maintained, as Materialize divides them.

    - *accumulable*: a sum of contributions, which a retraction takes back;
    - *hierarchical*: a group's is known from those of its parts, of which a tree is kept;
    - *basic*: made of the whole group again.
    """

    ACCUMULABLE = "accumulable"
    HIERARCHICAL = "hierarchical"
    BASIC = "basic"


class AggregateFunction(Enum):
    """Names the aggregates of the algebra; the binder makes all others of these and scalars.

    All but `ARRAY_AGG` ignore rows whose (first) argument is NULL. `EXACT_SUM` is the sum of doubles, or of products of
    two, as text (see `functions/aggregates/sums.py`); it ignores a pair of which one is NULL.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    ARRAY_AGG = "array_agg"
    STRING_AGG = "string_agg"
    EXACT_SUM = "exact_sum"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"

    @property
    def record(self) -> Aggregated:
        """What is known of it."""
        return AGGREGATES[self.value]

    @property
    def aggregate_class(self) -> AggregateClass:
        """How it is maintained."""
        return self.record.aggregate_class

    @property
    def is_idempotent(self) -> bool:
        """Whether what is there twice counts once, so that DISTINCT changes nothing."""
        algebra = self.record.algebra
        return algebra is not None and algebra.is_idempotent

    @property
    def of_nothing(self) -> int | None:
        """What it is of no rows."""
        return None if self.record.nullable else 0


class Spelling(Enum):
    """How the binder spells a call of an aggregate in those of the algebra: `sql/aggregates.py`."""

    CORE = "itself, of one argument"
    COUNT = "count"
    SUM = "sum"
    AVERAGE = "avg"
    EXTREME = "min or max"
    TRUTH = "counts of rows that are true or false"
    VARIANCE = "of count, sum and sum of squares"
    REGRESSION = "of count and sums of pairs"
    ARRAY = "array_agg"
    TEXT = "string_agg"
    JSON_ARRAY = "json_agg"
    JSONB_ARRAY = "jsonb_agg"
    JSON_OBJECT = "json_object_agg"
    JSONB_OBJECT = "jsonb_object_agg"
    CONTINUOUS_PERCENTILE = "percentile_cont"
    DISCRETE_PERCENTILE = "percentile_disc"
    MODE = "mode"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    PERCENT_RANK = "percent_rank"
    CUMULATIVE_DISTRIBUTION = "cume_dist"
    INTERNAL = "only plans call it"


@dataclass(frozen=True, slots=True)
class Signature:
    """What an aggregate takes, and what it then returns.

    Attributes:
        arguments: The kinds of its arguments, those before WITHIN GROUP; None for any.
        result: The kind of the result; None for the type of the argument, or of the key behind WITHIN GROUP.
        ordered: The kinds of the keys behind WITHIN GROUP.
        of: The aggregates of the algebra that it is spelled in.
        refused: If not empty, why PostgreSQL has it and it is not offered.
    """

    arguments: tuple[Kind | None, ...]
    result: Kind | None
    ordered: tuple[Kind | None, ...] = ()
    of: tuple[AggregateFunction, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A call of an aggregate over a few rows.

    Attributes:
        call: As in SQL.
        rows: As in VALUES.
        gives: The text of its value.
        columns: The rows' columns.
    """

    call: str
    rows: str
    gives: str
    columns: str = "x"

    @property
    def query(self) -> str:
        """The query of one value."""
        return f"SELECT {self.call} FROM (VALUES {self.rows}) AS t ({self.columns})"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate.

    Attributes:
        name: In SQL, and what kernels are called.
        signatures: What it takes and returns.
        says: What it returns, as a sentence.
        example: A call.
        aggregate_class: How it is maintained.
        spelling: How the binder spells it.
        nullable: Whether its result may be NULL.
        sees_order: Whether its result depends on the order of the rows.
        ordered_set: Whether WITHIN GROUP stands behind it.
        hypothetical: Whether it is of a row that is not there, and without WITHIN GROUP a window function.
        scalar: The function or operator that the binder spells it with, if the spelling leaves that open.
        terms: Which sums that function takes.
        algebra: Of one that is no scalar over others.
    """

    name: str
    signatures: tuple[Signature, ...]
    says: str
    example: Example | None
    aggregate_class: AggregateClass
    spelling: Spelling
    nullable: bool = True
    sees_order: bool = False
    ordered_set: bool = False
    hypothetical: bool = False
    scalar: str = ""
    terms: tuple[str, ...] = ()
    algebra: type[Algebra] | None = None

    def of_type(self, type_: ScalarType) -> Algebra:
        """Returns the algebra of an aggregate that has one, with a result of a type."""
        assert self.algebra is not None, f"{self.name} is spelled in others"
        return self.algebra(type_)

    @property
    def kinds(self) -> tuple[Kind | None, ...]:
        """The kinds that its first argument may have."""
        return tuple(one.arguments[0] for one in self.signatures if one.arguments and not one.refused)

    @property
    def keys(self) -> tuple[Kind | None, ...]:
        """The kinds that the key behind WITHIN GROUP may have."""
        return tuple(key for one in self.signatures for key in one.ordered)

    def takes(self, count: int) -> bool:
        """Returns whether it has so many arguments, before WITHIN GROUP."""
        return any(len(one.arguments) == count for one in self.signatures)

    def refusal(self, kind: Kind | None) -> str:
        """Returns why a first argument of a kind is refused; the empty text if it is not."""
        return next((one.refused for one in self.signatures if one.refused and one.arguments[:1] == (kind,)), "")


#: The aggregates, by their names.
AGGREGATES: dict[str, Aggregated] = {}


class Algebra(ABC):
    """What an aggregate makes of rows.

    Args:
        type_: The result's type.

    Attributes:
        ignores_nulls: Whether a row does not count whose first argument is NULL.
        is_idempotent: Whether what is there twice counts once.
    """

    ignores_nulls: ClassVar[bool] = True
    is_idempotent: ClassVar[bool] = False

    def __init__(self, type_: ScalarType) -> None:
        self.type = type_

    @abstractmethod
    def partial(self, cells: Sequence[Any], diff: int) -> Any:
        """Returns what a row comes to, its arguments' values in plain form, that counts and is there `diff` times."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """Returns what rows come to and those that follow them."""

    def finish(self, whole: Any) -> Any:
        """Returns the result of what all rows come to, at least one.

        Raises:
            SqlFailure: Its type cannot hold it.
        """
        return whole

    def value(self, rows: Iterable[tuple[Sequence[Any], int]]) -> Any:
        """Returns the aggregate of rows, each with how often it is there; None of nothing that counts."""
        whole, is_first = None, True
        for cells, diff in rows:
            if self.counts(cells):
                part = self.partial(cells, diff)
                whole, is_first = part if is_first else self.merge(whole, part), False
        return None if is_first else self.finish(whole)

    def counts(self, cells: Sequence[Any]) -> bool:
        """Returns whether a row counts."""
        return not (self.ignores_nulls and cells and cells[0] is None)

    def of_frames(self, rows: Sequence[Sequence[Any] | None], frames: Sequence[Sequence[int]]) -> list[Any]:
        """Returns the aggregate of each frame of a partition, or how it fails.

        A row costs some merges, however wide its frame is.

        Args:
            rows: In order; None for one that the filter leaves out.
            frames: The first and last places, from 1, of each interval of a frame, one after the other; in order.
        """
        # A tree: of each level the merged pairs of the one below.
        parts = [None if one is None or not self.counts(one) else (self.partial(one, 1),) for one in rows]
        levels = [parts]
        while len(parts) > 1:
            pairs = range(0, len(parts), 2)
            parts = [self._merged(parts[i], parts[i + 1] if i + 1 < len(parts) else None) for i in pairs]
            levels.append(parts)
        found = []
        for frame in frames:
            whole: tuple[Any] | None = None
            for i in range(0, len(frame), 2):
                whole = self._merged(whole, self._of_span(levels, frame[i] - 1, frame[i + 1]))
            found.append(None if whole is None else self._outcome(whole[0]))
        return found

    def _outcome(self, whole: Any) -> Any:
        try:
            return self.finish(whole)
        except SqlFailure as failed:
            return failed

    def _of_span(self, levels: Sequence[Sequence[tuple[Any] | None]], lo: int, hi: int) -> tuple[Any] | None:
        before: tuple[Any] | None = None
        behind: tuple[Any] | None = None
        for level in levels:
            if lo >= hi:
                break
            if lo % 2:
                before, lo = self._merged(before, level[lo]), lo + 1
            if hi % 2:
                behind, hi = self._merged(level[hi - 1], behind), hi - 1
            lo, hi = lo // 2, hi // 2
        return self._merged(before, behind)

    def _merged(self, one: tuple[Any] | None, other: tuple[Any] | None) -> tuple[Any] | None:
        if one is None or other is None:
            return other if one is None else one
        return (self.merge(one[0], other[0]),)


A = TypeVar("A", bound=type[Algebra])


def aggregate(
    name: AggregateFunction,
    aggregate_class: AggregateClass,
    spelling: Spelling,
    *,
    signatures: Sequence[Signature],
    says: str = "",
    example: Example | None = None,
    nullable: bool = True,
    sees_order: bool = False,
) -> Callable[[A], A]:
    """Makes the record of an aggregate of the algebra, which the decorated class is; arguments as in `Aggregated`.

    A *hierarchical* one has its argument's type, and of a single row it is the argument: tournaments keep its parts.
    """

    def register(algebra: A) -> A:
        own = tuple(one if one.of or one.refused else _of(one, name) for one in signatures)
        record(
            Aggregated(name.value, own, says, example, aggregate_class, spelling, nullable, sees_order, algebra=algebra)
        )
        return algebra

    return register


def record(one: Aggregated) -> None:
    """Makes the record of an aggregate known."""
    assert one.name not in AGGREGATES, f"two records of {one.name}"
    AGGREGATES[one.name] = one


def _of(signature: Signature, name: AggregateFunction) -> Signature:
    return Signature(signature.arguments, signature.result, signature.ordered, (name,))


def of_own_kind(*kinds: Kind) -> list[Signature]:
    """Returns the signatures of an aggregate whose result has the type of its argument."""
    return [Signature((kind,), kind) for kind in kinds]


def _of_extremes() -> list[Signature]:
    kinds = [kind for kind in Kind if kind not in (*_WITHOUT_EXTREMES, Kind.ARRAY, Kind.DIMENSIONED)]
    refused = [Signature((kind,), None, refused=_NOT_IN_ORDER) for kind in (Kind.ARRAY, Kind.DIMENSIONED)]
    return [*(Signature((kind,), Kind.TEXT if kind is Kind.VARCHAR else kind) for kind in kinds), *refused]


@aggregate(
    AggregateFunction.COUNT,
    AggregateClass.ACCUMULABLE,
    Spelling.COUNT,
    signatures=[Signature((), Kind.INT8), Signature((None,), Kind.INT8)],
    says="How many rows there are, `count(*)`, or how many values that are not NULL.",
    example=Example("count(x)", "(1), (NULL), (3)", "2"),
    nullable=False,
)
class _Count(Algebra):
    """How often rows are there."""

    def partial(self, cells: Sequence[Any], diff: int) -> int:
        return diff

    def merge(self, one: int, other: int) -> int:
        return one + other

    def value(self, rows: Iterable[tuple[Sequence[Any], int]]) -> int:
        return super().value(rows) or 0

    def of_frames(self, rows: Sequence[Sequence[Any] | None], frames: Sequence[Sequence[int]]) -> list[int]:
        return [one or 0 for one in super().of_frames(rows, frames)]


@aggregate(
    AggregateFunction.SUM,
    AggregateClass.ACCUMULABLE,
    Spelling.SUM,
    signatures=[
        *(Signature((kind,), Kind.INT8) for kind in (Kind.INT2, Kind.INT4)),
        Signature((Kind.INT8,), Kind.NUMERIC),
        *of_own_kind(Kind.NUMERIC, Kind.UNCONSTRAINED, *FLOATS),
        *(Signature((kind,), Kind.INTERVAL) for kind in (Kind.INTERVAL, Kind.TIME)),
    ],
    says="The sum of the values.",
    example=Example("sum(x)", "(1), (2), (NULL)", "3"),
)
class _Sum(Algebra):
    """How many numbers, and what they add up to: floats exactly, unconstrained ones place by place."""

    def partial(self, cells: Sequence[Any], diff: int) -> Any:
        value = cells[0]
        match self.type.kind:
            case Kind.FLOAT4 | Kind.FLOAT8:
                return ExactSum.of(value, 1.0, diff)
            case Kind.UNCONSTRAINED:
                return {
                    place: (diff, digits * diff)
                    for place, digits in zip(sum_places(value), sum_digits(value), strict=True)
                }
            case Kind.NUMERIC:
                return diff, _EXACT.multiply(Decimal(value), Decimal(diff))
            case _:
                return diff, value * diff

    def merge(self, one: Any, other: Any) -> Any:
        match self.type.kind:
            case Kind.FLOAT4 | Kind.FLOAT8:
                return one + other
            case Kind.UNCONSTRAINED:
                both = {
                    place: tuple(map(operator.add, one.get(place, (0, 0)), other.get(place, (0, 0))))
                    for place in (*one, *other)
                }
                return {place: part for place, part in both.items() if part[0]}
            case Kind.NUMERIC:
                return one[0] + other[0], _EXACT.add(one[1], other[1])
            case _:
                return one[0] + other[0], one[1] + other[1]

    def finish(self, whole: Any) -> Any:
        match self.type.kind:
            case Kind.FLOAT4 | Kind.FLOAT8:
                found = None if whole.text is None else nearest_float8(whole.text)
                return found if self.type.kind is Kind.FLOAT8 else self._narrowed(found)
            case Kind.UNCONSTRAINED:
                return total([*whole], [digits for _, digits in whole.values()])
            case _:
                return self._fitting(whole[1]) if whole[0] else None

    def _fitting(self, value: Any) -> Any:
        """Returns an integer or a numeric that its type can hold."""
        kind = self.type.kind
        if kind is Kind.NUMERIC and value.copy_abs() >= Decimal(f"1e{38 - self.type.scale}"):
            raise failure(NUMERIC_OVERFLOW)
        if kind in _MOST and not -_MOST[kind] <= value < _MOST[kind]:
            raise failure(out_of_range(kind))
        return value

    def _narrowed(self, value: float | None) -> float | None:
        return None if value is None else PURE["cast_float8_to_float4"](value)


@aggregate(
    AggregateFunction.EXACT_SUM,
    AggregateClass.ACCUMULABLE,
    Spelling.INTERNAL,
    signatures=[Signature((Kind.FLOAT8,), Kind.TEXT), Signature((Kind.FLOAT8, Kind.FLOAT8), Kind.TEXT)],
)
class _ExactSums(Algebra):
    """Doubles, or products of two, added up exactly."""

    def counts(self, cells: Sequence[Any]) -> bool:
        return None not in cells

    def partial(self, cells: Sequence[Any], diff: int) -> ExactSum:
        return ExactSum.of(cells[0], cells[1] if len(cells) > 1 else 1.0, diff)

    def merge(self, one: ExactSum, other: ExactSum) -> ExactSum:
        return one + other

    def finish(self, whole: ExactSum) -> str | None:
        return whole.text


class _Extreme(Algebra):
    """A value with what it is compared by."""

    is_idempotent = True

    def __init__(self, type_: ScalarType) -> None:
        super().__init__(type_)
        self._key = order_key(type_)

    def partial(self, cells: Sequence[Any], diff: int) -> Any:
        return cells[0]


@aggregate(
    AggregateFunction.MIN,
    AggregateClass.HIERARCHICAL,
    Spelling.EXTREME,
    signatures=_of_extremes(),
    says="The least of the values.",
    example=Example("min(x)", "(2), (1), (NULL)", "1"),
)
class _Least(_Extreme):
    """The first in the values' order."""

    def merge(self, one: Any, other: Any) -> Any:
        return min(one, other, key=self._key)


@aggregate(
    AggregateFunction.MAX,
    AggregateClass.HIERARCHICAL,
    Spelling.EXTREME,
    signatures=_of_extremes(),
    says="The greatest of the values.",
    example=Example("max(x)", "('ab'), ('b')", "b"),
)
class _Greatest(_Extreme):
    """The last in the values' order."""

    def merge(self, one: Any, other: Any) -> Any:
        return max(one, other, key=self._key)


class _Bits(Algebra):
    """Integers, bit by bit."""

    is_idempotent = True
    together: ClassVar[Callable[[int, int], int]]

    def partial(self, cells: Sequence[Any], diff: int) -> int:
        value: int = cells[0]
        return value

    def merge(self, one: int, other: int) -> int:
        return type(self).together(one, other)


@aggregate(
    AggregateFunction.BIT_AND,
    AggregateClass.HIERARCHICAL,
    Spelling.CORE,
    signatures=of_own_kind(*INTEGERS),
    says="The bits that all values have.",
    example=Example("bit_and(x)", "(6), (3)", "2"),
)
class _BitAnd(_Bits):
    """The bits that all have."""

    together = operator.and_


@aggregate(
    AggregateFunction.BIT_OR,
    AggregateClass.HIERARCHICAL,
    Spelling.CORE,
    signatures=of_own_kind(*INTEGERS),
    says="The bits that some value has.",
    example=Example("bit_or(x)", "(6), (3)", "7"),
)
class _BitOr(_Bits):
    """The bits that one has."""

    together = operator.or_


@aggregate(
    AggregateFunction.BIT_XOR,
    AggregateClass.HIERARCHICAL,
    Spelling.CORE,
    signatures=of_own_kind(*INTEGERS),
    says="The bits that an odd number of values have.",
    example=Example("bit_xor(x)", "(6), (3)", "5"),
)
class _BitXor(_Bits):
    """The bits that an odd number have: two of a kind cancel out."""

    is_idempotent = False
    together = operator.xor

    def partial(self, cells: Sequence[Any], diff: int) -> int:
        return super().partial(cells, diff) if diff % 2 else 0


@aggregate(
    AggregateFunction.ARRAY_AGG,
    AggregateClass.BASIC,
    Spelling.ARRAY,
    signatures=[Signature((None,), Kind.ARRAY)],
    says="The array of the values, NULLs among them, in the order that the call says.",
    example=Example("array_agg(x ORDER BY x DESC)", "(1), (2), (NULL)", "{NULL,2,1}"),
    sees_order=True,
)
class _Array(Algebra):
    """Values one after the other."""

    ignores_nulls = False

    def partial(self, cells: Sequence[Any], diff: int) -> list[Any]:
        return [cells[0]] * diff

    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        return one + other


@aggregate(
    AggregateFunction.STRING_AGG,
    AggregateClass.BASIC,
    Spelling.TEXT,
    signatures=[
        *(Signature((kind, Kind.TEXT), Kind.TEXT) for kind in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)),
        Signature((Kind.BYTEA, Kind.BYTEA), Kind.BYTEA),
    ],
    says="The values, each but the first behind its separator, in the order that the call says.",
    example=Example("string_agg(x, ', ' ORDER BY x)", "('b'), ('a')", "a, b"),
    sees_order=True,
)
class _Text(Algebra):
    """Texts or byteas one after the other, each with the separator before it."""

    def partial(self, cells: Sequence[Any], diff: int) -> list[tuple[Any, Any]]:
        value, separator = cells
        return [(value[:0] if separator is None else separator, value)] * diff

    def merge(self, one: list[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return one + other

    def finish(self, whole: list[tuple[Any, Any]]) -> Any:
        nothing = whole[0][1][:0]
        return nothing.join([whole[0][1], *(part for pair in whole[1:] for part in pair)])
