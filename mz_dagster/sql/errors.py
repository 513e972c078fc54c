"""The errors of SQL text: each names the broken rule, carries its SQLSTATE and the position to blame."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Self

from mz_dagster.errors import DataError, Error, IntegrityError, NotSupportedError, ProgrammingError
from mz_dagster.functions import Failure


class InvalidSyntax(ProgrammingError):
    """Text that is not a statement."""

    sqlstate = "42601"


class UndefinedTable(ProgrammingError):
    """A name of a relation that nothing bears."""

    sqlstate = "42P01"

    @classmethod
    def named(cls, name: str, known: Iterable[str], position: int | None = None, *, kind: str = "relation") -> Self:
        """Returns the error that says that nothing is called `name`, with what was probably meant."""
        return cls(f'{kind} "{name}" does not exist', hint=_meant(name, known), position=position)


def _meant(name: str, known: Iterable[str]) -> str | None:
    """Returns a hint that names what a relation was probably meant to be: first what has its name in another schema.

    Args:
        name: What was written.
        known: What the catalog calls objects, those of `public` by their names alone, and schemas, with a dot behind.

    Example:
        >>> _meant("x", ["sales.x"]), _meant("x", ["x"]), _meant("flihts", ["flights"])
        ('Perhaps you meant "sales.x".', 'Perhaps you meant "public.x".', 'Perhaps you meant "flights".')
    """
    last = name.rpartition(".")[2]
    objects = [one for one in known if not one.endswith(".")]
    elsewhere = sorted(one for one in objects if one.rpartition(".")[2] == last and one != name)
    if elsewhere:
        return f'Perhaps you meant "{elsewhere[0]}".'
    if name in objects:  # it is in a schema that is not searched
        return f'Perhaps you meant "public.{name}".'
    return suggestion(last, objects)


class UndefinedColumn(ProgrammingError):
    """A name of a column that is not in scope."""

    sqlstate = "42703"


class BadCharacter(DataError):
    """A character that no text can hold."""

    sqlstate = "22021"


class UndefinedFunction(ProgrammingError):
    """No function or operator fits the name and the argument types."""

    sqlstate = "42883"


class UndefinedType(ProgrammingError):
    """A type name that is not known."""

    sqlstate = "42704"


class UndefinedParameter(ProgrammingError):
    """A `?` for which no value was given, or a value without its `?`."""

    sqlstate = "42P02"


class AmbiguousAlias(ProgrammingError):
    """A name by which two relations of FROM could be meant."""

    sqlstate = "42P09"


class AmbiguousColumn(ProgrammingError):
    """A column name that several relations in scope offer."""

    sqlstate = "42702"


class AmbiguousFunction(ProgrammingError):
    """Several functions fit equally well."""

    sqlstate = "42725"


class DuplicateAlias(ProgrammingError):
    """Two relations of one name in one FROM clause."""

    sqlstate = "42712"


class ColumnUsed(ProgrammingError):
    """A column that another one of its table is computed of."""

    sqlstate = "2BP01"


class ObjectInUse(ProgrammingError):
    """A table of which something is yet to be looked at."""

    sqlstate = "55006"


class WrongColumnState(ProgrammingError):
    """A column that does not get its values as a statement takes it to, or does so already."""

    sqlstate = "55000"


class InvalidObjectDefinition(ProgrammingError):
    """A column that cannot be computed by what it says."""

    sqlstate = "42P17"


class DuplicateColumn(ProgrammingError):
    """A column that is named twice where each may be named once."""

    sqlstate = "42701"


class DatatypeMismatch(ProgrammingError):
    """An expression of a type that its place does not take."""

    sqlstate = "42804"


class CannotCoerce(ProgrammingError):
    """A cast that does not exist."""

    sqlstate = "42846"


class IndeterminateDatatype(ProgrammingError):
    """An expression whose type cannot be told."""

    sqlstate = "42P18"


class InvalidColumnReference(ProgrammingError):
    """A reference to a column that is there but may not be used so."""

    sqlstate = "42P10"


class InvalidTableDefinition(ProgrammingError):
    """A definition of a collection that contradicts itself."""

    sqlstate = "42P16"


class WrongObjectKind(ProgrammingError):
    """An object of another kind than the statement is about."""

    sqlstate = "42809"


class GroupingError(ProgrammingError):
    """An aggregate where none may stand, or a column that a grouped query does not have."""

    sqlstate = "42803"


class StatementTooComplex(ProgrammingError):
    """A statement that means more than can be planned."""

    sqlstate = "54001"


class TooMany(ProgrammingError):
    """A list that is longer than it may be."""

    sqlstate = "54011"


class WindowingError(ProgrammingError):
    """A window function where none may stand, or a window that contradicts itself."""

    sqlstate = "42P20"


class UndefinedWindow(ProgrammingError):
    """A name of a window that no WINDOW clause defines."""

    sqlstate = "42704"


class QueryOfTwoTimelines(ProgrammingError):
    """A query over collections of two timelines, whose times never compare."""

    sqlstate = "42P00"


class InvalidLiteral(DataError):
    """A literal that is not a value of its type."""

    sqlstate = "22P02"


class ValueOutOfRange(DataError):
    """A literal that is too large for its type."""

    sqlstate = "22003"


class InvalidDatetimeFormat(DataError):
    """A literal that is not a date or time."""

    sqlstate = "22007"


class DatetimeOutOfRange(DataError):
    """A literal that is a date or time that does not exist."""

    sqlstate = "22008"


class TimeZoneOutOfRange(DataError):
    """A literal with an offset that no time zone can have."""

    sqlstate = "22009"


class UntranslatableCharacter(DataError):
    """A literal with an escaped character that no text can have."""

    sqlstate = "22P05"


class IntervalOutOfRange(DataError):
    """A literal with a field that no interval can have."""

    sqlstate = "22015"


class InvalidRowCount(DataError):
    """A negative LIMIT."""

    sqlstate = "2201W"


class InvalidRowOffset(DataError):
    """A negative OFFSET."""

    sqlstate = "2201X"


class InvalidFrameOffset(DataError):
    """The end of a window's frame at a negative distance."""

    sqlstate = "22013"


class NullFrameOffset(DataError):
    """The end of a window's frame at a distance that is NULL."""

    sqlstate = "22004"


class InvalidParameterValue(DataError):
    """An argument outside what a function takes."""

    sqlstate = "22023"


class InvalidName(ProgrammingError):
    """A name or label that is too long."""

    sqlstate = "42602"


class DuplicateObject(ProgrammingError):
    """A name of a constraint that another of its table bears, or of a type that there is."""

    sqlstate = "42710"


class UndefinedObject(ProgrammingError):
    """A name of a constraint that its table does not have, or of an index that there is not."""

    sqlstate = "42704"


class UniqueViolation(IntegrityError):
    """A row that is equal to another in a key."""

    sqlstate = "23505"


class ForeignKeyViolation(IntegrityError):
    """A row that refers to none of another table, or would be left so."""

    sqlstate = "23503"


class InvalidForeignKey(ProgrammingError):
    """A foreign key that refers to no key of another table."""

    sqlstate = "42830"


class CheckViolation(IntegrityError):
    """A row that makes a condition of its table false."""

    sqlstate = "23514"


class CardinalityViolation(ProgrammingError):
    """A row that one statement would change twice."""

    sqlstate = "21000"


class ReservedName(ProgrammingError):
    """A name that is the system's own."""

    sqlstate = "42939"


class DuplicateSchema(ProgrammingError):
    """A schema that is there already."""

    sqlstate = "42P06"


class InvalidSchemaName(ProgrammingError):
    """A schema that does not exist."""

    sqlstate = "3F000"


class GeneratedAlways(ProgrammingError):
    """A value for a column that generates its own."""

    sqlstate = "428C9"


class NullNotAllowed(IntegrityError):
    """A NULL for a column that is NOT NULL."""

    sqlstate = "23502"

    @classmethod
    def of(cls, column: str, table: str, *, hint: str | None = None, position: int | None = None) -> NullNotAllowed:
        """Returns the error of a column of a table, called without its schema."""
        message = f'null value in column "{column}" of relation "{table}" violates not-null constraint'
        return cls(message, hint=hint, position=position).about(table=table, column=column)


class StringTooLong(DataError):
    """A string with more characters than its column has."""

    sqlstate = "22001"


class ArraySubscriptError(DataError):
    """Bounds that no array has."""

    sqlstate = "2202E"


class ProgramLimitExceeded(ProgrammingError):
    """More of something than PostgreSQL takes."""

    sqlstate = "54000"


class UnsupportedForm(NotSupportedError):
    """Legal SQL that is refused, with the reason."""


_BY_SQLSTATE: dict[str, type[DataError] | type[ProgrammingError] | type[NotSupportedError]] = {
    one.sqlstate: one
    for one in (
        InvalidSyntax,
        UndefinedFunction,
        AmbiguousFunction,
        DatatypeMismatch,
        CannotCoerce,
        IndeterminateDatatype,
        InvalidLiteral,
        ValueOutOfRange,
        InvalidDatetimeFormat,
        DatetimeOutOfRange,
        TimeZoneOutOfRange,
        UntranslatableCharacter,
        IntervalOutOfRange,
        InvalidParameterValue,
        StringTooLong,
        ArraySubscriptError,
        ProgramLimitExceeded,
        UnsupportedForm,
    )
}


def error_of(failure: Failure, position: int | None, *, hint: str | None = None) -> Error:
    """Returns the error that reports `failure` at `position`; its own hint goes before `hint`."""
    kind = _BY_SQLSTATE.get(failure.sqlstate, InvalidLiteral if failure.sqlstate.startswith("22") else ProgrammingError)
    return kind(failure.message, hint=failure.hint or hint, position=position)


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """Returns a hint that names what `name` was probably meant to be, or None.

    Example:
        >>> suggestion("flihts", ["flights", "planes"])
        'Perhaps you meant "flights".'
    """
    close = difflib.get_close_matches(name.lower(), sorted(set(known)), n=1, cutoff=0.6)
    return f'Perhaps you meant "{close[0]}".' if close else None
