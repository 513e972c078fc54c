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
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

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
    """Registers the decorated function as the implementation of `names`."""

    def register(implementation: Implementation) -> Implementation:
        for name in names:
            STRICT[name] = implementation
            if heavy:
                HEAVY.add(name)
        return implementation

    return register


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
