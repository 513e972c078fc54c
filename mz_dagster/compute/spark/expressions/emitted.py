"""What emission yields, and what an implementation is given.

Owns the records `Emitted` and `Invocation`, the registry of implementations and the few expressions all of them use.
Invariant: a value is NULL wherever its error is not, and evaluating either never raises, whatever the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import and_
from typing import TYPE_CHECKING, Protocol

from mz_dagster.compute.spark.balanced import balanced
from mz_dagster.functions.moments.infinite import DATE, MOMENT, RULES, InfiniteResult, InfinityRule
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY, Infinity
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class Emitted:
    """A scalar as Spark columns.

    Attributes:
        value: The value; NULL where there is an error.
        error: `<SQLSTATE> <message>` where the evaluation fails, else NULL; None if it cannot fail.
        size: About how many nodes the larger of the two expressions has.
        level: How many stages of shared columns must be there before these columns can be evaluated.
    """

    value: Column
    error: Column | None = None
    size: int = 1
    level: int = 0


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call to emit.

    Attributes:
        function: The implementation's name.
        scalars: The arguments, for their types, and their values where they are literals.
        arguments: The arguments emitted.
        type: The result's type.
        share: Makes columns, all of one stage, of expressions that will be mentioned often; those of a later call
            may build on those of an earlier one.
    """

    function: str
    scalars: tuple[Scalar, ...]
    arguments: tuple[Emitted, ...]
    type: ScalarType
    share: Share

    @property
    def values(self) -> list[Column]:
        """The arguments' values."""
        return [argument.value for argument in self.arguments]


class Share(Protocol):
    """Makes columns of expressions."""

    def __call__(self, *columns: Column) -> list[Column]:
        """Returns one column for each expression."""
        ...


#: A value with the error of the function itself, or None if it has none; what fails in arguments is added outside.
Outcome = tuple["Column", "Column | None"]
Implementation = Callable[[Invocation], Outcome]

#: The strict implementations: NULL where an argument is, without an error.
STRICT: dict[str, Implementation] = {}

#: The implementations that see NULLs, and errors as NULLs: where an argument fails, their value does not count.
LENIENT: dict[str, Implementation] = {}

#: Those whose expression mentions an argument many times, so that the argument had better be a column.
HEAVY: set[str] = set()


def strict(*names: str, heavy: bool = False) -> Callable[[Implementation], Implementation]:
    """Registers the decorated function as the implementation of `names`, which is not asked about what is infinite."""

    def register(implementation: Implementation) -> Implementation:
        for name in names:
            rule = RULES.get(name)
            STRICT[name] = implementation if rule is None else _finite(implementation, rule)
            if heavy or rule is not None:
                HEAVY.add(name)
        return implementation

    return register


def _finite(implementation: Implementation, rule: InfinityRule) -> Implementation:
    """Returns an implementation that goes by a rule where an argument is infinite."""

    def emitted(invocation: Invocation) -> Outcome:
        value, error = implementation(invocation)
        known = all_present(invocation.values)
        for argument, scalar, unit in reversed([*zip(invocation.values, invocation.scalars, rule.units, strict=False)]):
            if not unit or (isinstance(scalar, Literal) and not isinstance(scalar.value, Infinity)):
                continue
            for infinity in (INFINITY, NEGATIVE_INFINITY):
                found, why = _infinite(infinity, scalar.type.kind, rule, invocation.type)
                is_infinite = (argument == literal_infinity(infinity, scalar.type.kind)) & known
                value = sf.when(is_infinite, found).otherwise(value)
                if error is not None or why is not None:
                    error = sf.when(is_infinite, sf.lit(why)).otherwise(sf.lit(None) if error is None else error)
        return value, error

    return emitted


def _infinite(infinity: Infinity, kind: Kind, rule: InfinityRule, type_: ScalarType) -> tuple[Column, str | None]:
    """Returns what a rule makes of an infinite value of a kind, and the error."""
    try:
        plain = rule.of(infinity.stored(kind), DATE if kind is Kind.DATE else MOMENT)
    except SqlFailure as failure:
        return sf.lit(None).cast(spark_type(type_)), str(failure)
    if rule.outcome is InfiniteResult.KEPT:
        return literal_infinity(infinity, type_.kind), None
    return sf.lit(plain).cast(spark_type(type_)), None


def literal_infinity(infinity: Infinity, kind: Kind) -> Column:
    """Returns an infinite date or timestamp."""
    if kind is Kind.DATE:
        return sf.date_from_unix_date(sf.lit(infinity.stored(kind)))
    moment = sf.timestamp_micros(sf.lit(infinity.stored(kind)))
    return moment if kind is Kind.TIMESTAMPTZ else moment.cast("timestamp_ntz")


def lenient(*names: str) -> Callable[[Implementation], Implementation]:
    """Registers the decorated function as the implementation of `names`, which see NULLs."""

    def register(implementation: Implementation) -> Implementation:
        LENIENT.update(dict.fromkeys(names, implementation))
        return implementation

    return register


def all_present(values: Sequence[Column]) -> Column:
    """Returns whether none of `values` is NULL."""
    return balanced(and_, [value.isNotNull() for value in values])


def failing(value: Column, arguments: Sequence[Column], error: str | Column) -> Outcome:
    """Returns `value`, and `error` where it is NULL although no argument is."""
    text = sf.lit(error) if isinstance(error, str) else error
    return value, sf.when(value.isNull() & all_present(arguments), text)


def call(name: str, *arguments: Column) -> Column:
    """Returns the call of Spark's SQL function `name`."""
    return sf.call_function(name, *arguments)


def try_cast(value: Column, type_: str) -> Column:
    """Returns the cast that yields NULL where it cannot be done."""
    return value.try_cast(type_)


def number(value: int, type_: str) -> Column:
    """Returns an integer constant of a Spark type."""
    return sf.lit(value).cast(type_)


def decimal(text: str, scale: int) -> Column:
    """Returns a constant of type `decimal(38, scale)`."""
    return sf.lit(text).cast(f"decimal(38,{scale})")


def leftmost(errors: Sequence[Column | None]) -> Column | None:
    """Returns the first error that is not NULL, or None if there can be none."""
    possible = [error for error in errors if error is not None]
    if not possible:
        return None
    return possible[0] if len(possible) == 1 else sf.coalesce(*possible)
