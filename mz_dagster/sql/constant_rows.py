"""VALUES of nothing but plain literals and parameters, as an INSERT of many rows has them: read without a tree.

What they mean is what they mean one by one, each assigned to its column. Where a value is none of its column's type
the query is bound as any other is, which tells the error and its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mz_dagster.errors import Error
from mz_dagster.functions import CastContext, Failure, Unknown, cast
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import BOOL, Column, RelationType, ScalarType
from mz_dagster.sql.constant_lists import number_of, unquoted
from mz_dagster.sql.lexer import CONSTANT
from mz_dagster.sql.parameters import literal_of_value
from mz_dagster.sql.type_names import type_name_of

_SPACE = r"[ \t\r\n\f\v]*+"
#: Types that drivers cast parameters to, of which none has a modifier: then a cast rounds and cuts nothing.
_CAST = (
    r"(?i:character varying|varchar|text|boolean|bool|smallint|integer|int|bigint|int[248]|double precision|real"
    r"|float[48]|date|timestamp with(?:out)? time zone|timestamptz|timestamp|uuid|bytea|jsonb)"
)
_PARAMETER = rf"\?(?:{_SPACE}::{_SPACE}{_CAST}(?![\w(\[.]|{_SPACE}[(\[]))?"
_VALUE = rf"(?:{CONSTANT}|(?i:true|false)\b|{_PARAMETER})"
_ROW = rf"\({_SPACE}{_VALUE}(?:{_SPACE},{_SPACE}{_VALUE})*+{_SPACE}\)"
_ROWS = re.compile(rf"{_SPACE}(?i:values){_SPACE}{_ROW}(?:{_SPACE},{_SPACE}{_ROW})*+{_SPACE}")
#: A value and what ends it.
_EACH = re.compile(rf"({_VALUE}){_SPACE}([,)])")


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """The rows of a VALUES list.

    Attributes:
        cells: Of each row its values, as they are written.
        parameters_before: How many `?` the statement has before them.
    """

    cells: tuple[tuple[str, ...], ...]
    parameters_before: int = 0

    @classmethod
    def of(cls, text: str, parameters_before: int = 0) -> ConstantRows | None:
        """Returns the rows of a query that is VALUES of plain literals and parameters; None if it is another."""
        if _ROWS.fullmatch(text) is None:
            return None
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        for value, end in _EACH.findall(text):
            row.append(value)
            if end == ")":
                rows.append(tuple(row))
                row = []
        return cls(tuple(rows), parameters_before) if all(len(one) == len(rows[0]) for one in rows) else None

    @property
    def width(self) -> int:
        """How many values each row has."""
        return len(self.cells[0])

    def assigned(self, columns: Sequence[Column], parameters: Sequence[object] = ()) -> Constant | None:
        """Returns the rows as they are assigned to columns; None if a value is an error there.

        Args:
            columns: What the values are assigned to; the rows may have fewer.
            parameters: Those of the whole statement.

        Example:
            >>> from mz_dagster.scalars.types import INT4, TEXT
            >>> given = ConstantRows.of("VALUES (1, 'it''s'), (?, NULL)")
            >>> found = given.assigned([Column("a", INT4), Column("b", TEXT)], [-2])
            >>> [[cell.value for cell in row] for row in found.rows]
            [[1, "it's"], [-2, None]]
        """
        if self.width > len(columns):
            return None
        known: list[dict[str, Literal | None]] = [{} for _ in columns]
        given = iter(parameters[self.parameters_before :])
        rows: list[tuple[Literal, ...]] = []
        for texts in self.cells:
            row: list[Literal] = []
            for text, column, already in zip(texts, columns, known, strict=False):
                if text[0] == "?":
                    cell = _parameter(text, given, column.type)
                elif text in already:
                    cell = already[text]
                else:
                    cell = already[text] = _assigned(_literal(text), column.type)
                if cell is None:
                    return None
                row.append(cell)
            rows.append(tuple(row))
        types = (
            Column(f"column{i + 1}", column.type, any(one[i].value is None for one in rows))
            for i, column in enumerate(columns[: self.width])
        )
        keys = frozenset({frozenset[int]()}) if len(rows) <= 1 else frozenset[frozenset[int]]()
        return Constant(tuple(rows), RelationType(tuple(types), keys, True))


def _literal(text: str) -> Literal | Unknown | None:
    """Returns what a value means by itself; None if it is an error."""
    if text[0] in "'nN":
        return Unknown(unquoted(text) if text[0] == "'" else None)
    if text[0] in "tTfF":
        return Literal(text[0] in "tT", BOOL)
    number: tuple[ScalarType, Any] | None = number_of(text)
    return None if number is None else Literal(number[1], number[0])


def _parameter(text: str, given: Iterator[object], type_: ScalarType) -> Literal | None:
    """Returns the literal that the next parameter, perhaps cast, becomes in a column; None if it is an error there."""
    try:
        found = literal_of_value(next(given), 0)
    except (Error, StopIteration):
        return None
    named = text[1:].lstrip(" \t\r\n\f\v:")
    if named:
        cast_to = _type(named)
        if isinstance(found, Unknown):
            read = found.as_type(cast_to)
            return None if isinstance(read, Failure) else _assigned(read, type_)
        return _assigned(_cast(found, cast_to, CastContext.EXPLICIT), type_)
    return _assigned(found, type_)


@lru_cache(100)
def _type(named: str) -> ScalarType:
    return type_name_of(named).scalar_type


def _assigned(found: Literal | Unknown | None, type_: ScalarType) -> Literal | None:
    """Returns the literal that a value becomes in a column of a type; None if it is an error there."""
    if found is None:
        return None
    if isinstance(found, Unknown):
        read = found.as_type(type_, assigned=True)
        return None if isinstance(read, Failure) else read
    return _cast(found, type_, CastContext.ASSIGNMENT)


def _cast(found: Literal, type_: ScalarType, context: CastContext) -> Literal | None:
    """Returns what a cast makes of a literal; None if it is an error."""
    own, value = found.type, found.value
    if own == type_ and not type_.modifier:
        return found
    if own.kind in INTEGER_RANGES and type_.kind in INTEGER_RANGES and isinstance(value, int):
        low, high = INTEGER_RANGES[type_.kind]
        return Literal(value, type_) if low <= value <= high else None
    becoming = cast(own, type_, context)
    if isinstance(becoming, Failure):
        return None
    scalar: Scalar = fold_scalar(becoming.apply(found))
    return scalar if isinstance(scalar, Literal) and scalar.type == type_ else None
