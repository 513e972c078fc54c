"""The values of functions of strings, uuid, bytea and bits that are no Python, for `tests/sql/evaluation.py`."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable
from typing import Any

from mz_dagster.functions import Failure, literal_of
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind


class StringFailure(Exception):
    """Is an error of the data."""


def _cast(call: Call, value: str) -> str:
    return _fitted(call, value, assigned=False)


def _assigned(call: Call, value: str) -> str:
    return _fitted(call, value, assigned=True)


def _fitted(call: Call, value: str, *, assigned: bool) -> str:
    found = literal_of(value, call.type, assigned=assigned)
    if isinstance(found, Failure):
        raise StringFailure(found.sqlstate)
    assert isinstance(found.value, str)
    return found.value


def _same(call: Call, value: Any) -> str:
    return str(value)


def _padded(call: Call, value: str) -> str:
    type_ = call.arguments[0].type
    assert type_.kind is Kind.CHAR
    return value.ljust(type_.length)


def _like(call: Call, value: str, pattern: str) -> bool:
    parts = {"%": ".*", "_": "."}
    source = "".join(parts.get(one) or re.escape(one) for one in pattern)
    return re.fullmatch(source, value, re.DOTALL) is not None


def _bits(function: Callable[..., int]) -> Callable[..., int]:
    return lambda call, *values: function(*values)


_STRINGS = ("text", "varchar", "bpchar")
_INTEGERS = ("int2", "int4", "int8")
STRICT: dict[str, Callable[..., Any]] = {
    **{f"cast_{source}_to_{target}": _cast for source in _STRINGS for target in ("varchar", "bpchar")},
    **{f"assign_{source}_to_{target}": _assigned for source in _STRINGS for target in ("varchar", "bpchar")},
    **dict.fromkeys(("cast_varchar_to_text", "cast_bpchar_to_text", "cast_uuid_to_text"), _same),
    "cast_bytea_to_text": lambda call, value: f"\\x{value.hex()}",
    "output_bpchar": _padded,
    "like_text": _like,
    "not_like_text": lambda call, value, pattern: not _like(call, value, pattern),
    "md5_text": lambda call, value: hashlib.md5(value.encode()).hexdigest(),
    "sha256_bytea": lambda call, value: hashlib.sha256(value).digest(),
    "octet_length_text": lambda call, value: len(value.encode()),
    "octet_length_bytea": lambda call, value: len(value),
    **{f"bit_and_{kind}": _bits(operator.and_) for kind in _INTEGERS},
    **{f"bit_or_{kind}": _bits(operator.or_) for kind in _INTEGERS},
    **{f"bit_xor_{kind}": _bits(operator.xor) for kind in _INTEGERS},
    **{f"bit_not_{kind}": _bits(operator.inv) for kind in _INTEGERS},
}
