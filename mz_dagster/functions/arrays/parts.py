"""What stands for an array or a record by what stands for its parts: elements, fields, and theirs.

Arrays and records are equal where their parts are, and some parts are equal that look different: `{1.0}` equals
`{1.00}`, and so do jsonb, intervals and the two zeros. What stands for such a part alone is the area's of its kind
(`comparable_jsonb`); `plan/representations.py` says what each of these is for. Spark's workers run them, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import copysign
from typing import Any, TypeAlias

from mz_dagster.functions.casts import short_name
from mz_dagster.functions.registry import PURE, function
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind, ScalarType

#: Maps a value in its plain form, which is not None, to another.
Mapped: TypeAlias = Callable[[Any], Any]

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)


def _by_parts(type_: ScalarType, rule: Callable[[ScalarType], Mapped]) -> Mapped:
    """Returns what maps a value of a type by what `rule` says for its parts that have none themselves."""
    if type_.element is not None:
        element = _by_parts(type_.element, rule)
        return lambda values: [None if one is None else element(one) for one in values]
    if type_.is_composite:
        fields = [_by_parts(one, rule) for _, one in type_.fields]
        return lambda cells: tuple(
            None if cell is None else field(cell) for field, cell in zip(fields, cells, strict=True)
        )
    return rule(type_)


def _itself(value: Any) -> Any:
    return value


def _of_numbers(rule: Mapped) -> Callable[[ScalarType], Mapped]:
    """Returns the rule of floating-point numbers; all else stays."""
    return lambda type_: rule if type_.kind in _FLOATS else _itself


_UNSIGNED = _of_numbers(lambda number: number or 0.0)
_WITH_SIGN = _of_numbers(lambda number: (number or 0.0, number == 0 and copysign(1.0, number) < 0))
_WITHOUT_SIGN = _of_numbers(lambda pair: -pair[0] if pair[1] else pair[0])


def _called(*prefixes: str) -> Callable[[ScalarType], Mapped]:
    """Returns the rule that calls the function of a part's kind that begins with one of `prefixes`, if there is one."""

    def rule(type_: ScalarType) -> Mapped:
        names = (f"{prefix}_{short_name(type_.kind)}" for prefix in prefixes)
        return next((PURE[name] for name in names if name in PURE), _itself)

    return rule


def _of_json(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part


#: What JSON has for a part of a kind, and what goes back, where it does not have the part itself.
_IN_JSON: Mapping[Kind, tuple[Mapped, Mapped]] = {
    Kind.FLOAT4: (repr, float),
    Kind.FLOAT8: (repr, float),
    Kind.NUMERIC: (str, Decimal),
    Kind.BYTEA: (bytes.hex, bytes.fromhex),
}


def _packed(type_: ScalarType) -> Callable[[Any], bytes]:
    """Returns what makes bytes of a value, the same only of the same: JSON of its parts."""
    shown = _by_parts(type_, lambda part: _IN_JSON.get(part.kind, (_itself, _of_json))[0])
    return lambda value: json.dumps(shown(value), ensure_ascii=False, separators=(",", ":")).encode()


def _unpacked(type_: ScalarType) -> Callable[[bytes], Any]:
    read = _by_parts(type_, lambda part: _IN_JSON.get(part.kind, (_itself, _of_json))[1])
    return lambda packed: read(json.loads(packed))


#: What is made of a value of a call's argument that is not NULL, for the call.
PARTS: Mapping[str, Callable[[Call], Mapped]] = {
    "unsigned_zeros": lambda call: _by_parts(call.type, _UNSIGNED),
    "represented_floats": lambda call: _by_parts(call.arguments[0].type, _WITH_SIGN),
    "restored_floats": lambda call: _by_parts(call.type, _WITHOUT_SIGN),
    "comparable_parts": lambda call: _by_parts(call.type, _called("comparable")),
    "sorted_parts": lambda call: _by_parts(call.arguments[0].type, _called("order", "comparable")),
    "ordered_parts": lambda call: _packed(call.arguments[0].type),
    "restored_parts": lambda call: _unpacked(call.type),
}
for _name, _builder in PARTS.items():
    function(_name, (), Kind.BYTEA if _name == "ordered_parts" else None, internal=True, of_call=True)(_builder)
