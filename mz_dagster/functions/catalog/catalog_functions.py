"""Looking up what the system catalogs say, and what they call types."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from mz_dagster.functions.function import Nullability, list_of
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.type_ids import LABEL_IDS, TYPE_IDS
from mz_dagster.scalars.types import BOOL, INT4, INT8, TEXT, Kind, record_of

#: By object id.
_SHOWN = {one.id: one.shown for one in (*TYPE_IDS.values(), *LABEL_IDS.values())} | {
    194: "pg_node_tree", 705: "unknown", 1033: "aclitem",
}  # fmt: skip
#: Types that no value has, by object id.
PSEUDO_TYPES = {
    269: "table_am_handler", 325: "index_am_handler", 2275: "cstring", 2276: '"any"', 2277: "anyarray", 2278: "void",
    2279: "trigger", 2281: "internal", 2283: "anyelement", 3500: "anyenum", 5077: "anycompatible",
    5078: "anycompatiblearray",
}  # fmt: skip
_SHOWN |= PSEUDO_TYPES
_ELEMENTS = {one.array: one.id for one in (*TYPE_IDS.values(), *LABEL_IDS.values()) if one.array} | {
    1034: 1033,
    1263: 2275,
}
_NUMERIC, _BPCHAR, _VARCHAR, _TIME, _TIMESTAMP, _TIMESTAMPTZ, _INTERVAL = 1700, 1042, 1043, 1083, 1114, 1184, 1186
_FIELDS = {"month": 1, "year": 2, "day": 3, "hour": 10, "minute": 11, "second": 12}
_ALL_FIELDS, _ALL_DIGITS = 0x7FFF, 0xFFFF
NO_MODIFIER = -2


def interval_modifier(fields: str, precision: int | None) -> int:
    """Returns PostgreSQL's modifier of the intervals that have these fields, in lower case, and digits of seconds.

    Example:
        >>> formatted_type(1186, interval_modifier("day to second", 3))
        'interval day to second(3)'
    """
    order = ("year", "month", "day", "hour", "minute", "second")
    first, _, last = fields.partition(" to ")
    named = order[order.index(first) : order.index(last or first) + 1] if fields else ()
    mask = sum(1 << _FIELDS[one] for one in named) or _ALL_FIELDS
    return mask << 16 | (_ALL_DIGITS if precision is None else precision)


def _interval_text(modifier: int) -> str:
    mask, digits = modifier >> 16, modifier & 0xFFFF
    precision = "" if digits == _ALL_DIGITS else f"({digits})"
    if mask == _ALL_FIELDS:
        return f"interval{precision}"
    named = [one for one in ("year", "month", "day", "hour", "minute", "second") if mask >> _FIELDS[one] & 1]
    return f"interval {named[0]}{f' to {named[-1]}' if len(named) > 1 else ''}{precision}"


@function("formatted_type", (Kind.INT8, Kind.INT8), Kind.TEXT, internal=True)
def formatted_type(id: int, modifier: int) -> str:
    """Returns what PostgreSQL's `format_type` calls a type.

    Example:
        >>> formatted_type(1700, (10 << 16 | 2) + 4), formatted_type(1009, -1), formatted_type(1184, 3)
        ('numeric(10,2)', 'text[]', 'timestamp(3) with time zone')
    """
    if id == 0:
        return "-"
    if id in _ELEMENTS:
        return f"{formatted_type(_ELEMENTS[id], modifier)}[]"
    shown = _SHOWN.get(id)
    if shown is None:
        return "???"
    if modifier < 0:
        return "bpchar" if id == _BPCHAR and modifier != NO_MODIFIER else shown
    if id == _NUMERIC:
        return f"numeric({modifier - 4 >> 16},{modifier - 4 & 0xFFFF})"
    if id in (_BPCHAR, _VARCHAR):
        return f"{shown}({modifier - 4})"
    if id in (_TIME, _TIMESTAMP, _TIMESTAMPTZ):
        first, rest = shown.split(" ", 1)
        return f"{first}({modifier}) {rest}"
    return _interval_text(modifier) if id == _INTERVAL else shown


@function("looked_up", (), None, nullability=Nullability.ALWAYS, internal=True)
def looked_up(keys: Sequence[Any], values: Sequence[Any], key: Any) -> Any:
    """Returns the value at the place of a key, None if that is not there.

    Example:
        >>> looked_up([1, 3], ["a", "b"], 3), looked_up([1, 3], ["a", "b"], 2)
        ('b', None)
    """
    place = bisect_left(keys, key)
    return values[place] if place < len(keys) and keys[place] == key else None


@function(
    "pg_options_to_table",
    (Kind.ARRAY,),
    Kind.ARRAY,
    fallible=True,
    rows="pg_options_to_table",
    says="Names and values of options.",
    example="(SELECT option_value FROM pg_options_to_table(ARRAY['host=here']))",
    gives="here",
    type=list_of(record_of((("option_name", TEXT), ("option_value", TEXT)))),
)
def options(texts: Sequence[str | None]) -> list[tuple[str, str | None]]:
    """Returns names and values of options that are texts like `name=value`.

    Example:
        >>> options(["host=here", "on"])
        [('host', 'here'), ('on', None)]
    """
    found: list[tuple[str, str | None]] = []
    for one in texts:
        if one is None:
            raise SqlFailure("22004", "null array element not allowed in this context")
        name, sign, value = one.partition("=")
        found.append((name, value if sign else None))
    return found


@function(
    "pg_partition_tree",
    (Kind.INT8,),
    Kind.ARRAY,
    rows="pg_partition_tree",
    says="The partitions of a relation; there are none.",
    example="(SELECT count(*) FROM pg_partition_tree(0))",
    gives="0",
    type=list_of(record_of((("relid", INT8), ("parentrelid", INT8), ("isleaf", BOOL), ("level", INT4)))),
)
def partitions(id: int) -> list[tuple[int, int, bool, int]]:
    """Returns the partitions of a relation, which has none."""
    return []


@function("pretty_size", (Kind.INT8,), Kind.TEXT, internal=True)
def pretty_size(size: int) -> str:
    """Returns a number of bytes as `pg_size_pretty` shows it: below 10,240 of a unit, halves rounded up.

    Example:
        >>> pretty_size(10239), pretty_size(10240), pretty_size(-(1 << 30))
        ('10239 bytes', '10 kB', '-1024 MB')
    """
    sign, left = ("-", -size) if size < 0 else ("", size)
    if left < 10_240:
        return f"{sign}{left} bytes"
    left >>= 9  # one bit more than the unit, to round by
    for unit in ("kB", "MB", "GB", "TB"):
        if left < 20_480 - 1:
            return f"{sign}{left + 1 >> 1} {unit}"
        left >>= 10
    return f"{sign}{left + 1 >> 1} PB"
