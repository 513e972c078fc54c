"""What a function of the table is: an implementation, the SQL names that lead to it, and what these are for.

An *implementation* is what the renderer knows (`add_int4`); an *overload* is a SQL name with a signature that leads to
one. Several overloads may share an implementation: `integer + bigint` is `add_int8` after a cast, as PostgreSQL's
`int48pl` is in effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from mz_dagster.functions.failure import Failure
from mz_dagster.scalars.types import Kind, ScalarType, array_of

#: The comparisons: operator -> part of a function's name.
COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Nullability(Enum):
    """Says when a result may be NULL."""

    IF_ANY_ARGUMENT = "if any argument is"
    IF_ALL_ARGUMENTS = "if all arguments are"
    IF_FIRST_ARGUMENT = "if the first argument is"
    NEVER = "never"
    ALWAYS = "always"

    def of(self, arguments: Sequence[bool]) -> bool:
        """Returns whether the result may be NULL, given which arguments may be."""
        match self:
            case Nullability.IF_ANY_ARGUMENT:
                return any(arguments)
            case Nullability.IF_ALL_ARGUMENTS:
                return all(arguments)
            case Nullability.IF_FIRST_ARGUMENT:
                return arguments[0]
            case Nullability.NEVER:
                return False
            case Nullability.ALWAYS:
                return True


#: From the argument types and the literal arguments' values, the result's scale, or why there is none.
ScaleRule = Callable[[Sequence[ScalarType], Sequence[object]], "int | Failure"]

#: From the argument types the result's type, where it is more than a kind: the element type of an array, for example.
TypeRule = Callable[[Sequence[ScalarType]], ScalarType]


class Pseudo(Enum):
    """A type that depends on the arguments."""

    ARRAY = "anycompatiblearray"
    ELEMENT = "anycompatible"


#: A type in the signature of a function over arrays of any element type.
AnyType = Pseudo | ScalarType


@dataclass(frozen=True, slots=True)
class Function:
    """One implementation.

    Attributes:
        name: Unique; what `Call.function` says.
        arguments: The kinds it takes; empty for a variadic or a generic one.
        result: The kind it returns; None for a generic one, which returns its arguments' type.
        strict: True if NULL in gives NULL out.
        fallible: True if it may have an error as its outcome although its arguments have none.
        nullability: When the result may be NULL.
    """

    name: str
    arguments: tuple[Kind, ...]
    result: Kind | None
    strict: bool = True
    fallible: bool = False
    nullability: Nullability = Nullability.IF_ANY_ARGUMENT


@dataclass(frozen=True, slots=True)
class Overload:
    """A SQL name with a signature.

    Attributes:
        sql_name: The function's name in lower case, or the operator.
        signature: The kinds against which a call is resolved.
        implementation: The `Function` it leads to; its arguments are cast to that function's.
        scale: For a numeric result.
        refused: If not empty, why this overload, which PostgreSQL has, is not offered. It takes part in the
            resolution all the same: a call must not silently mean another function.
        result: The result's type, where the implementation's kind and `scale` do not say it.
    """

    sql_name: str
    signature: tuple[Kind, ...]
    implementation: str
    scale: ScaleRule | None = None
    refused: str = ""
    result: TypeRule | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A function or operator for its reader.

    Attributes:
        text: What it returns, as a sentence.
        example: An expression of SQL that calls it; empty for one that is refused.
        result: The text of the example's value.
    """

    text: str
    example: str
    result: str


def list_of(element: ScalarType) -> TypeRule:
    """Returns the rule of a function whose result is an array of one type, or rows of it."""
    return lambda _: array_of(element)


def mixed(kinds: Sequence[Kind], widest: Kind) -> tuple[tuple[Kind, Kind], ...]:
    """Returns the pairs of different kinds of one family that are computed as the wider one, `widest`.

    Example:
        >>> [(left.name, right.name) for left, right in mixed((Kind.FLOAT4, Kind.FLOAT8), Kind.FLOAT8)]
        [('FLOAT4', 'FLOAT8'), ('FLOAT8', 'FLOAT4')]
    """
    narrower = kinds[: kinds.index(widest)]
    return tuple(pair for one in narrower for pair in ((one, widest), (widest, one)))
