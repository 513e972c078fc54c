r"""Reads many JSON lines at once, by columns, with Arrow: those of which it says exactly what `json_record` does.

Arrow's reader takes a hundredth of what a line takes in Python, and is stricter: what it does not read, because of the
type that a member has, a member that comes twice or a number that does not fit, is left to `json_record`. What it takes
and PostgreSQL's json does not, or takes in another way, is looked for before:

- NaN and infinities as numbers, which it knows; escapes like `\u0000`, which no text holds;
- a line of two objects, and two lines of one. Each line begins with a brace and ends with one, and within an object no
  object begins after the end of another; so if there are as many objects as lines, each line is one;
- what is nested deep, for which it takes stack: a line that is long may be.

Invariant: what is returned is what `json_record` returns of each line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json import JSONDecodeError, loads
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from mz_dagster.budget import budget
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.source.json_record import form_of

#: Of how many lines the members' types are looked at.
_SAMPLE = 50
#: A line of more characters may be nested deeper than what reads it has stack for.
_LONGEST = 4_096
#: What may be among the lines only if one of them is to be read in another way.
_STRANGE = ("\\u", "NaN", "Inf", "\ufeff")
_INTEGERS = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP})


def columns_of_json(
    lines: Sequence[str], columns: Sequence[Column], key: Sequence[str] | None
) -> tuple[list[pa.Array], pa.Array] | None:
    """Returns for each declared column the cells of lines, and which lines are to be read by themselves.

    None if all are.

    Args:
        lines: Texts without line feeds, none of them blank.
        columns: The declared ones.
        key: None if a line is a row; if it is a key with its value, those columns that stand in the key.
    """
    content = "\n".join(lines)
    if (
        len(lines) < budget().lines_at_once
        or any(form_of(column.type) != "text" for column in columns)
        or any(one in content for one in _STRANGE)
        or max(map(len, lines)) > _LONGEST
        or not all(line[0] == "{" and line[-1] == "}" for line in lines)
    ):
        return None
    sample = _sample(lines[:: max(1, len(lines) // _SAMPLE)])
    schema = None if sample is None else _schema(sample, columns, key)
    if schema is None:
        return None
    try:
        found = pj.read_json(
            pa.BufferReader(content.encode()),
            read_options=pj.ReadOptions(use_threads=False),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    if len(found) != len(lines):
        return None
    if key is None:
        return [_whole(found.column(column.name)) for column in columns], pa.array([False] * len(lines))
    keyed, valued = (_whole(found.column(name)) for name in ("key", "value"))
    cells = [pc.struct_field(keyed if column.name in key else valued, column.name) for column in columns]
    return cells, pc.or_(keyed.is_null(), valued.is_null())


def _sample(lines: Iterable[str]) -> list[dict[str, Any]] | None:
    """Returns the objects that some lines are; None if one is none."""
    try:
        found = [loads(line) for line in lines]
    except (JSONDecodeError, RecursionError):
        return None
    return found if all(isinstance(one, dict) for one in found) else None


def _schema(sample: list[dict[str, Any]], columns: Sequence[Column], key: Sequence[str] | None) -> pa.Schema | None:
    """Returns what Arrow is told that the lines are; None if it cannot read some column exactly."""
    if key is None:
        fields = _fields(columns, sample)
        return None if fields is None else pa.schema(fields)
    parts = []
    for name, own in (
        ("key", [column for column in columns if column.name in key]),
        ("value", [column for column in columns if column.name not in key]),
    ):
        objects = [one[name] for one in sample if isinstance(one.get(name), dict)]
        if not (fields := _fields(own, objects)):
            return None
        parts.append(pa.field(name, pa.struct(fields)))
    return pa.schema(parts)


def _fields(columns: Sequence[Column], objects: Sequence[dict[str, Any]]) -> list[pa.Field] | None:
    found = [_field(column, objects) for column in columns]
    return None if any(one is None for one in found) else found


def _field(column: Column, objects: Iterable[dict[str, Any]]) -> pa.Field | None:
    """Returns what a column's members are, as those of some objects are; None if their texts would be others."""
    kinds = {type(one[column.name]) for one in objects if one.get(column.name) is not None}
    if kinds <= {str}:
        return pa.field(column.name, pa.string())
    if kinds == {int} and column.type.kind in _INTEGERS:
        return pa.field(column.name, pa.int64())
    if kinds <= {int, float} and column.type.kind is Kind.NUMERIC:
        return pa.field(column.name, pa.decimal128(38, column.type.scale))
    return None


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
