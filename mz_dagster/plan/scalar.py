"""Scalar expressions: deterministic functions of one row, to a value or an error.

A frozen tree over column positions. Evaluation is total: an expression that can fail has an *error* as
one of its outcomes, which the operator that evaluates it turns into an update of its collection's
error part. `If` evaluates only the branch taken, and guards it. `Call` evaluates all its
arguments; which error wins when several fail is the leftmost argument's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import assert_never

from mz_dagster.plan.types import BOOL, ScalarType

#: The Python form of a literal: `date` for DATE, naive `datetime` for TIMESTAMP (aware UTC for TIMESTAMPTZ),
#: `Decimal` for NUMERIC, `int` for integers and MZ_TIMESTAMP (milliseconds), `None` for NULL.
Value = bool | int | float | Decimal | str | date | datetime | None


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """Is the value of the input row's column at `position`, counted from 0; `name` is for EXPLAIN only."""

    position: int
    type: ScalarType
    nullable: bool = True
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """Is a constant; `None` is NULL of that type."""

    value: Value
    type: ScalarType

    @property
    def nullable(self) -> bool:
        """True for NULL."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Call:
    """Is the application of a function of the table in `plan/functions.py`.

    Attributes:
        function: The unique name of one implementation, `add_int4` for example, not the SQL name.
        arguments: Already cast to the implementation's argument types.
        type: The result's type.
        nullable: False only if the result is never NULL.
    """

    function: str
    arguments: tuple[Scalar, ...]
    type: ScalarType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class If:
    """Is `then` where `condition` is true, `otherwise` where it is false or NULL; evaluates only that branch."""

    condition: Scalar
    then: Scalar
    otherwise: Scalar

    def __post_init__(self) -> None:
        if self.condition.type != BOOL:
            raise ValueError(f"condition has type {self.condition.type}, not boolean")
        if self.then.type != self.otherwise.type:
            raise ValueError(f"branches have types {self.then.type} and {self.otherwise.type}")

    @property
    def type(self) -> ScalarType:
        """The branches' common type."""
        return self.then.type

    @property
    def nullable(self) -> bool:
        """True if either branch may be NULL."""
        return self.then.nullable or self.otherwise.nullable


Scalar = ColumnRef | Literal | Call | If


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """Returns the direct subexpressions, in order of evaluation."""
    match scalar:
        case ColumnRef() | Literal():
            return ()
        case Call():
            return scalar.arguments
        case If():
            return (scalar.condition, scalar.then, scalar.otherwise)
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yields `scalar` and all its subexpressions, parents first."""
    yield scalar
    for child in children(scalar):
        yield from walk(child)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Returns the positions of the columns that `scalar` reads."""
    return frozenset(node.position for node in walk(scalar) if isinstance(node, ColumnRef))


def rewrite(scalar: Scalar, leaf: Callable[[ColumnRef], Scalar]) -> Scalar:
    """Returns `scalar` with each column reference replaced by what `leaf` makes of it."""
    match scalar:
        case ColumnRef():
            return leaf(scalar)
        case Literal():
            return scalar
        case Call():
            arguments = tuple(rewrite(argument, leaf) for argument in scalar.arguments)
            return Call(scalar.function, arguments, scalar.type, scalar.nullable)
        case If():
            return If(rewrite(scalar.condition, leaf), rewrite(scalar.then, leaf), rewrite(scalar.otherwise, leaf))
        case _:
            assert_never(scalar)
