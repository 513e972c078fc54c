"""The values of functions of jsonb that are no Python, for `tests/sql/evaluation.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from mz_dagster.scalars.scalar import Call


def _number(call: Call, value: Any) -> str:
    return str(value).lower()


def _moment(call: Call, value: date | datetime) -> str:
    shown, zone, utc = value.isoformat().partition("+00:00")
    return json.dumps((shown.rstrip("0") if "." in shown else shown) + zone + utc)


STRICT: dict[str, Callable[..., Any]] = {
    **{f"to_jsonb_{kind}": _number for kind in ("bool", "int2", "int4", "int8", "numeric")},
    **{f"to_jsonb_{kind}": _moment for kind in ("date", "timestamp", "timestamptz")},
    "cast_jsonb_to_text": lambda call, value: value,
    "cast_json_to_text": lambda call, value: value,
    "cast_jsonb_to_json": lambda call, value: value,
}
