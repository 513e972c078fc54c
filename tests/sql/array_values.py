"""The values of functions over arrays and records, both of which are tuples here, for `tests/sql/evaluation.py`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mz_dagster.functions.references import PURE
from mz_dagster.scalars.scalar import Call


class ArrayFailure(Exception):
    """Is an error of the data."""


def _series(call: Call, start: Any, stop: Any, step: Any = 1) -> tuple[Any, ...]:
    if step == 0:
        raise ArrayFailure("22023")
    found = []
    while (start <= stop) if step > 0 else (start >= stop):
        found.append(start)
        start += step
    return tuple(found)


def key_of(array: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((one is None, 0 if one is None else one) for one in array)


def _slice(call: Call, array: tuple[Any, ...], first: int, last: int) -> tuple[Any, ...]:
    return array[max(first, 1) - 1 : max(last, 0)]


def _places(call: Call, array: tuple[Any, ...] | None, one: Any) -> tuple[int, ...] | None:
    return None if array is None else tuple(i for i, cell in enumerate(array, 1) if cell == one)


def _position(call: Call, array: tuple[Any, ...] | None, one: Any, start: int = 1) -> int | None:
    found = [place for place in _places(call, array, one) or () if place >= start]
    return found[0] if found else None


def _to_string(call: Call, array: Any, separator: Any, shown: str | None = None) -> str | None:
    if array is None or separator is None:
        return None
    texts = [shown if one is None else str(one) for one in array]
    return str(separator).join(one for one in texts if one is not None)


def _of_string(call: Call, text: str | None, separator: str | None, null: str | None = None) -> Any:
    if text is None:
        return None
    parts = list(text) if separator is None else [text] if separator == "" else text.split(separator)
    return tuple(None if one == null else one for one in parts) if text else ()


def _quantified(call: Call, value: Any, array: tuple[Any, ...] | None, name: str) -> bool | None:
    if array is None:
        return None
    operations = {one: getattr(operator, one) for one in ("eq", "ne", "lt", "le", "gt", "ge")}
    test = PURE[name] if name in PURE else operations[name.split("_")[0]]
    tests = [None if value is None or one is None else test(value, one) for one in array]
    decides = call.function == "any_element"
    return decides if decides in tests else None if None in tests else not decides


def _shown(cell: Any) -> str | None:
    return str(cell)[0].lower() if isinstance(cell, bool) else None if cell is None else str(cell)


#: By the implementation's name; strict.
STRICT: dict[str, Callable[..., Any]] = {
    **{f"generate_series_{kind}{by}": _series for kind in ("int4", "int8", "numeric") for by in ("", "_by_1")},
    "generate_subscripts": lambda call, array, n: tuple(range(1, len(array) + 1)) if n == 1 else (),
    "field": lambda call, record, number: record[number],
    "array_subscript": lambda call, array, place: array[place - 1] if 1 <= place <= len(array) else None,
    "array_slice": _slice,
    "cardinality": lambda call, array: len(array),
    "array_length": lambda call, array, dimension: len(array) or None if dimension == 1 else None,
    "array_upper": lambda call, array, dimension: len(array) or None if dimension == 1 else None,
    "array_lower": lambda call, array, dimension: 1 if array and dimension == 1 else None,
    "array_contains": lambda call, a, b: None not in b and set(b) <= set(a),
    "array_contained": lambda call, a, b: None not in a and set(a) <= set(b),
    "array_overlaps": lambda call, a, b: bool(set(a) & set(b) - {None}),
    "is_among": lambda call, value, array: value in array or (None if None in array else False),
    "eq_array": lambda call, a, b: key_of(a) == key_of(b),
    "ne_array": lambda call, a, b: key_of(a) != key_of(b),
    "lt_array": lambda call, a, b: key_of(a) < key_of(b),
    "le_array": lambda call, a, b: key_of(a) <= key_of(b),
    "gt_array": lambda call, a, b: key_of(a) > key_of(b),
    "ge_array": lambda call, a, b: key_of(a) >= key_of(b),
    "order_array": lambda call, array: key_of(array),
    "array_output": lambda call, array: tuple(map(_shown, array)),
    "record_output": lambda call, record: tuple(map(_shown, record)),
}
#: Those that see NULLs.
LENIENT: dict[str, Callable[..., Any]] = {
    "record": lambda call, *fields: fields,
    "array": lambda call, *elements: elements,
    "any_element": _quantified,
    "all_elements": _quantified,
    "array_append": lambda call, array, one: (*(array or ()), one),
    "array_prepend": lambda call, one, array: (one, *(array or ())),
    "array_cat": lambda call, a, b: b if a is None else a if b is None else (*a, *b),
    "array_position": _position,
    "array_position_from": _position,
    "array_positions": _places,
    "array_remove": lambda call, array, one: array and tuple(x for x in array if x != one),
    "array_replace": lambda call, array, old, new: array and tuple(new if x == old else x for x in array),
    "array_to_string": _to_string,
    "string_to_array": _of_string,
    "string_to_array_by": _of_string,
}
