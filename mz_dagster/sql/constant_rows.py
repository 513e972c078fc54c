"""VALUES of nothing but plain literals, as an INSERT of many rows has them: read by one expression, without a tree.

What they mean is what they mean one by one, each assigned to its column. Where a literal is none of its column's type
the query is bound as any other is, which tells the error and its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mz_dagster.functions import CastContext, Failure, Unknown, cast
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import BOOL, Column, RelationType
from mz_dagster.sql.constant_lists import number_of, unquoted
from mz_dagster.sql.lexer import CONSTANT

_SPACE = r"[ \t\r\n\f\v]*+"
_VALUE = rf"(?:{CONSTANT}|(?i:true|false)\b)"
_ROW = rf"\({_SPACE}{_VALUE}(?:{_SPACE},{_SPACE}{_VALUE})*+{_SPACE}\)"
_ROWS = re.compile(rf"{_SPACE}(?i:values){_SPACE}{_ROW}(?:{_SPACE},{_SPACE}{_ROW})*+{_SPACE}")
#: A value and what ends it.
_EACH = re.compile(rf"({_VALUE}){_SPACE}([,)])")


def constant_rows(text: str, columns: Sequence[Column]) -> Constant | None:
    """Returns the rows of a query that is VALUES of plain literals; None if it is another, or a value is an error.

    Args:
        text: The query.
        columns: What its columns are assigned to; it may have fewer.

    Example:
        >>> from mz_dagster.scalars.types import INT4, TEXT
        >>> found = constant_rows("VALUES (1, 'it''s'), (-2, NULL)", [Column("a", INT4), Column("b", TEXT)])
        >>> [[cell.value for cell in row] for row in found.rows]
        [[1, "it's"], [-2, None]]
    """
    if _ROWS.fullmatch(text) is None:
        return None
    known: list[dict[str, Literal | None]] = [{} for _ in columns]
    rows: list[tuple[Literal, ...]] = []
    row: list[Literal] = []
    for value, end in _EACH.findall(text):
        if len(row) == len(columns):
            return None
        column = len(row)
        if value not in known[column]:
            known[column][value] = _assigned(value, columns[column])
        cell = known[column][value]
        if cell is None:
            return None
        row.append(cell)
        if end == ")":
            if rows and len(rows[0]) != len(row):
                return None
            rows.append(tuple(row))
            row = []
    given = (
        Column(f"column{i + 1}", column.type, any(one[i].value is None for one in rows))
        for i, column in enumerate(columns[: len(rows[0])])
    )
    keys = frozenset({frozenset[int]()}) if len(rows) <= 1 else frozenset[frozenset[int]]()
    return Constant(tuple(rows), RelationType(tuple(given), keys, True))


def _assigned(text: str, column: Column) -> Literal | None:
    """Returns the literal that one becomes in a column; None if it is an error there."""
    type_ = column.type
    if text[0] in "'nN":
        found = Unknown(unquoted(text) if text[0] == "'" else None).as_type(type_, assigned=True)
        return None if isinstance(found, Failure) else found
    literal: tuple[Any, Any] | None = (BOOL, text[0] in "tT") if text[0] in "tTfF" else number_of(text)
    if literal is None:
        return None
    own, value = literal
    if own.kind in INTEGER_RANGES and type_.kind in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.kind]
        return Literal(value, type_) if low <= value <= high else None
    becoming = cast(own, type_, CastContext.ASSIGNMENT)
    if isinstance(becoming, Failure):
        return None
    scalar = fold_scalar(becoming.apply(Literal(value, own)))
    return scalar if isinstance(scalar, Literal) and scalar.type == type_ else None
