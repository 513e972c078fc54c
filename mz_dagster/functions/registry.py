"""The records of functions, each at its reference in plain Python, and how a reference fails.

Owns `RECORDS`. A record says all there is to know of a function: what it takes and returns, the SQL names that lead to
it, what these are for, and its reference, which it decorates. The table (`table.py`), the descriptions and the
references (`references.py`, `evaluation.py`) are made of the records. Casts alone are declared elsewhere, in one matrix
(`casts.py`), and have but their references here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mz_dagster.functions.function import AnyType, Description, Function, Nullability, Overload, ScaleRule, TypeRule
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind

F = TypeVar("F", bound=Callable[..., Any])


class SqlFailure(Exception):
    """An error of the data, with PostgreSQL's SQLSTATE and message."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate} {message}")


@dataclass(frozen=True, slots=True)
class Named:
    """A SQL name that leads to a function beside the first, and what it is for.

    Attributes:
        sql: The function's name in lower case, or the operator.
        says: What it returns, as a sentence; empty if another overload of the name says so.
        example: An expression of SQL that calls it.
        gives: The text of the example's value.
    """

    sql: str
    says: str = ""
    example: str = ""
    gives: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A function.

    Attributes:
        function: What it takes and returns.
        overloads: What leads to it in an expression.
        row_overloads: What leads to it where a function returns rows.
        internal: Whether only plans call it.
    """

    function: Function
    overloads: tuple[Overload, ...] = ()
    row_overloads: tuple[Overload, ...] = ()
    internal: bool = False


#: The functions, by their names.
RECORDS: dict[str, Record] = {}
#: What the SQL names of the records are for.
DESCRIBED: dict[str, Description] = {}
#: SQL name -> (function, arguments, result) of those over arrays of any element type, in the order in which they are
#: tried.
OF_ANY: dict[str, tuple[tuple[str, tuple[AnyType, ...], AnyType], ...]] = {}
#: What PostgreSQL has and is not offered. It takes part in the resolution: no call silently means another function.
REFUSED: list[Overload] = []
#: References that take and return values in their plain form, by names in the table of functions.
PURE: dict[str, Callable[..., Any]] = {}
#: Those that take the scale of their result, a numeric, as a last argument.
SCALED: set[str] = set()
#: References that depend on the types of a call: what returns the function of plain values for a call, None for a call
#: that it does not know.
BUILT: dict[str, Callable[[Call], Callable[..., Any] | None]] = {}
#: References that evaluate their arguments themselves: what returns the function of a row for a call and what evaluates
#: its arguments, `evaluation.Evaluate`.
LAZY: dict[str, Callable[[Call, tuple[Callable[..., Any], ...]], Callable[..., Any]]] = {}


def describe(*names: Named) -> None:
    """Says what SQL names are for, those that `function` is not told about: of many functions of a kind."""
    for one in names:
        if one.says:
            assert one.sql not in DESCRIBED, f"two descriptions of {one.sql}"
            DESCRIBED[one.sql] = Description(one.says, one.example, one.gives)


def refuse(sql: str, signature: tuple[Kind, ...], reason: str) -> None:
    """Refuses calls of a function or operator over arguments of these kinds."""
    REFUSED.append(Overload(sql, signature, "", refused=reason))


def pure(*names: str, scaled: bool = False) -> Callable[[F], F]:
    """Registers the decorated reference of casts, which `casts.CASTS` declares; `scaled` as `SCALED` says."""

    def register(reference: F) -> F:
        for name in names:
            PURE[name] = reference
            if scaled:
                SCALED.add(name)
        return reference

    return register


def built(*names: str) -> Callable[[F], F]:
    """Registers the decorated reference, as `BUILT` says, of casts, which `casts.CASTS` declares."""

    def register(reference: F) -> F:
        for name in names:
            BUILT[name] = reference
        return reference

    return register


def function(
    name: str,
    arguments: tuple[Kind, ...],
    result: Kind | None,
    *,
    sql: str | tuple[str, ...] = (),
    says: str = "",
    example: str = "",
    gives: str = "",
    also: tuple[Named, ...] = (),
    rows: str | Named = "",
    signatures: tuple[tuple[Kind, ...], ...] = (),
    of_any: Mapping[tuple[AnyType, ...], AnyType] | None = None,
    strict: bool = True,
    fallible: bool = False,
    nullability: Nullability = Nullability.IF_ANY_ARGUMENT,
    scale: ScaleRule | None = None,
    type: TypeRule | None = None,
    scaled: bool = False,
    internal: bool = False,
    of_call: bool = False,
    lazy: bool = False,
) -> Callable[[F], F]:
    """Makes the record of a function, of which the decorated one is the reference.

    A reference takes and returns values in the plain form (`references.py`), takes None only if it is not strict, and
    raises `SqlFailure` for an error of the data. Several records may stand at one reference.

    Args:
        name: Unique; what `Call.function` says, and what kernels are called.
        arguments: The kinds that it takes.
        result: The kind that it returns; None for its arguments' type.
        sql: The SQL names that lead to it; none of a function that casts, aggregates or plans call.
        says: What the first of these names, or `rows`, is for, as a sentence; once for all overloads of a name.
        example: An expression of SQL that calls it; it is held against PostgreSQL.
        gives: The text of the example's value.
        also: Further SQL names, each with a description of its own.
        rows: The name of a function that returns rows, those of the resulting array.
        signatures: Further kinds of arguments that lead to it, cast to its own.
        of_any: Of a function over arrays of any element type, the types of arguments that the names lead to it with,
            and the result's; such calls are resolved otherwise (`polymorphic.py`).
        strict: Whether NULL in gives NULL out.
        fallible: Whether it may fail although its arguments do not.
        nullability: When the result may be NULL.
        scale: The rule for a numeric result.
        type: The rule for a result that is more than a kind.
        scaled: Whether the reference takes the scale of its result as a last argument.
        internal: Whether only plans call it.
        of_call: Whether the reference depends on a call's types: it takes the call, and returns the function of plain
            values, or None if it does not know such a call.
        lazy: Whether the reference evaluates its arguments itself, as `LAZY` says.

    Example:
        >>> @function("twice_text", (Kind.TEXT,), Kind.TEXT, sql="twice", says="Two.", example="twice('a')", gives="aa")
        ... def twice(text: str) -> str:
        ...     return text + text
        >>> PURE.pop("twice_text")("b"), RECORDS.pop("twice_text").overloads[0].sql_name, DESCRIBED.pop("twice").text
        ('bb', 'twice', 'Two.')
    """

    def register(reference: F) -> F:
        names = (sql,) if isinstance(sql, str) else sql
        returned = rows if isinstance(rows, Named) else Named(rows)
        describe(Named(names[0] if names else returned.sql, says, example, gives), *also, returned)
        every = (*names, *(one.sql for one in also))
        overloads = tuple(
            Overload(sql_name, signature, name, scale, result=type)
            for sql_name in every
            for signature in (arguments, *signatures)
            if not of_any
        )
        for sql_name in every:
            for taken, returns in (of_any or {}).items():
                OF_ANY[sql_name] = (*OF_ANY.get(sql_name, ()), (name, taken, returns))
        sets = (Overload(returned.sql, arguments, name, result=type),) if returned.sql else ()
        declared = Function(name, arguments, result, strict, fallible, nullability)
        assert name not in RECORDS, f"two records of {name}"
        RECORDS[name] = Record(declared, overloads, sets, internal)
        if lazy:
            LAZY[name] = reference
            return reference
        if of_call:
            return built(name)(reference)
        if not strict:
            built(name)(lambda _: reference)
            return reference
        return pure(name, scaled=scaled)(reference)

    return register
