"""Scalar expressions: deterministic functions of one row, to a value or an error.

A frozen tree over column positions. Evaluation is total: an expression that can fail has an *error* as
one of its outcomes, which the operator that evaluates it turns into an update of its collection's
error part. `If` evaluates only the branch taken, and guards it. `Call` evaluates all its
arguments; which error wins when several fail is the leftmost argument's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Protocol, assert_never, cast
from uuid import UUID

from mz_dagster.scalars.infinity import Infinity
from mz_dagster.scalars.types import BOOL, INT4, MZ_TIMESTAMP, RelationType, ScalarType
from mz_dagster.scalars.values import Interval

#: The Python form of a literal: `date` for DATE, naive `datetime` for TIMESTAMP (aware UTC for TIMESTAMPTZ),
#: `Decimal` for NUMERIC, `int` for integers and MZ_TIMESTAMP (milliseconds), `None` for NULL; for the other kinds as
#: `scalars/values.py` says; an array or record is a tuple.
Value = (
    bool
    | int
    | float
    | Decimal
    | str
    | bytes
    | date
    | datetime
    | time
    | Infinity
    | Interval
    | UUID
    | tuple[Any, ...]
    | None
)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of the input row's column at `position`, counted from 0; `name` is for EXPLAIN only."""

    position: int
    type: ScalarType
    nullable: bool = True
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `None` is NULL of that type."""

    value: Value
    type: ScalarType

    @property
    def nullable(self) -> bool:
        """True for NULL."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Call:
    """The application of a function of the table in `functions/table.py`.

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
    """`then` where `condition` is true, `otherwise` where it is false or NULL; evaluates only that branch."""

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


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """The value of the argument `number` of the innermost `Subquery` or `DependentJoin` around it.

    So a dependent plan refers to nothing but its arguments: what it needs of a query further out is an argument of each
    subquery on the way. Only the binder makes it, and `decorrelate` leaves none.
    """

    number: int
    type: ScalarType
    nullable: bool = True
    name: str = field(default="", compare=False)


class SubqueryKind(Enum):
    """Says what a subquery in an expression is asked for."""

    SCALAR = "scalar"
    EXISTS = "exists"
    ANY = "any"


class Query(Protocol):
    """A relational expression, of which a scalar one need know no more; `relation.query_of` gives it back."""

    @property
    def relation_type(self) -> RelationType:
        """Its columns, keys and monotonicity."""
        ...


@dataclass(frozen=True, slots=True)
class Subquery:
    """What a query says for one row: its one value, whether it has rows, or whether a test is true for any of them.

    Only the binder makes it, and `decorrelate` leaves none. `ALL` is `not any not`, `NOT IN` is `not any`.

    Attributes:
        kind: `SCALAR`: the one column of the one row; NULL if there is none, an error of the data if there are several.
            `EXISTS`: never NULL. `ANY`: true if `test` is for some row, else NULL if it is for some row, else false.
        relation: The query, in which `OuterColumn` is one of the `arguments`.
        arguments: Over the row for which the query is asked.
        test: For `ANY`: boolean, over the query's columns and the arguments.
    """

    kind: SubqueryKind
    relation: Query
    arguments: tuple[Scalar, ...] = ()
    test: Scalar | None = None

    def __hash__(self) -> int:
        # Not of the plan, to whose nodes there may be very many ways.
        return hash((self.kind, self.relation.relation_type, self.arguments, self.test))

    def __post_init__(self) -> None:
        if self.kind is SubqueryKind.SCALAR and self.relation.relation_type.arity != 1:
            raise ValueError("a scalar subquery has one column")
        if (self.kind is SubqueryKind.ANY) != (self.test is not None):
            raise ValueError("a test belongs to ANY, and only to it")

    @property
    def type(self) -> ScalarType:
        """The type of what it says."""
        return self.relation.relation_type.columns[0].type if self.kind is SubqueryKind.SCALAR else BOOL

    @property
    def nullable(self) -> bool:
        """False for `EXISTS`, and for a test that never is NULL."""
        return self.kind is SubqueryKind.SCALAR or (self.test is not None and self.test.nullable)


Scalar = ColumnRef | Literal | Call | If | OuterColumn | Subquery


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """Returns the direct subexpressions, in order of evaluation."""
    match scalar:
        case ColumnRef() | Literal() | OuterColumn():
            return ()
        case Call() | Subquery():
            return scalar.arguments
        case If():
            return (scalar.condition, scalar.then, scalar.otherwise)
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yields `scalar` and all its subexpressions, parents first."""
    pending = [scalar]
    while pending:
        one = pending.pop()
        yield one
        pending += reversed(children(one))


#: The function whose value is the time at which a collection is looked at.
NOW = "mz_now"


def now(position: int) -> Call:
    """Returns the call of `mz_now()` that stands at `position` of the statement's text, for errors about it."""
    return Call(NOW, (Literal(position, INT4),), MZ_TIMESTAMP, False)


def is_now(scalar: Scalar) -> bool:
    """Returns whether `scalar` is a call of `mz_now()`."""
    return isinstance(scalar, Call) and scalar.function == NOW


def reads_now(scalar: Scalar) -> bool:
    """Returns whether the value of `scalar` depends on the time at which it is looked at."""
    return any(is_now(one) for one in walk(scalar))


def signs_of_zeros(plan: object) -> tuple[str, ...]:
    """Returns what equality of plans or scalars leaves out: the signs of the zeros among their literals.

    Example:
        >>> from mz_dagster.scalars.types import FLOAT8
        >>> zero, negative = Literal(0.0, FLOAT8), Literal(-0.0, FLOAT8)
        >>> zero == negative, signs_of_zeros(zero) == signs_of_zeros(negative)
        (True, False)
    """
    zeros: list[str] = []
    pending = [plan]
    for one in pending:
        kind: type = one.__class__
        if kind is tuple:
            pending += cast(tuple[object, ...], one)
        elif kind is float and one == 0:
            zeros.append(repr(one))
        elif names := _fields(kind):
            pending += [getattr(one, name) for name in names]
    return tuple(zeros)


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Returns the fields of a class that are given and shown; none of a type or of a plain value."""
    if kind is ScalarType or not is_dataclass(kind):
        return ()
    return tuple(one.name for one in fields(kind) if one.repr and one.init)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Returns the positions of the columns that `scalar` reads."""
    if isinstance(scalar, Literal):
        return frozenset()
    return frozenset(node.position for node in walk(scalar) if isinstance(node, ColumnRef))


def rewrite(scalar: Scalar, leaf: Callable[[ColumnRef], Scalar]) -> Scalar:
    """Returns `scalar` with each column reference replaced by what `leaf` makes of it; so in a subquery's arguments."""
    return substitute(scalar, lambda one: leaf(one) if isinstance(one, ColumnRef) else None)


def substitute(scalar: Scalar, rule: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Returns `scalar` with what `rule` makes of each subexpression for which it makes something, topmost first.

    In what the rule has made nothing is looked for again; a subquery is entered through its arguments.
    """
    found = rule(scalar)
    if found is not None:
        return found
    match scalar:
        case ColumnRef() | Literal() | OuterColumn():
            return scalar
        case Subquery():
            return replace(scalar, arguments=tuple(substitute(one, rule) for one in scalar.arguments))
        case Call():
            arguments = tuple(substitute(one, rule) for one in scalar.arguments)
            return Call(scalar.function, arguments, scalar.type, scalar.nullable)
        case If():
            parts = (substitute(one, rule) for one in (scalar.condition, scalar.then, scalar.otherwise))
            return If(*parts)
        case _:
            assert_never(scalar)
