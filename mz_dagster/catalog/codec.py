"""How frontiers, columns and keys are written as text in the catalog: canonical JSON, so equal values are equal text.

That makes a compare-and-set on a frontier a comparison of two strings in SQL, for any lattice.
"""

from __future__ import annotations

import json
from typing import Any

from mz_dagster.catalog.rows import Keys
from mz_dagster.formalism import EPOCH_MS, NATURAL, Antichain, IntegerTimes
from mz_dagster.plan.types import Column, Kind, ScalarType, array_of

LATTICES: dict[str, IntegerTimes] = {"epoch_ms": EPOCH_MS, "natural": NATURAL}
"""The lattices that a timeline can be declared with, by name."""


def json_text(value: Any) -> str:
    """Returns the one JSON text of a value: keys sorted, no spaces.

    Example:
        >>> json_text({"b": [1], "a": None})
        '{"a":null,"b":[1]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def frontier_text(frontier: Antichain[int]) -> str:
    """Returns the text of a frontier.

    Example:
        >>> frontier_text(Antichain.of(EPOCH_MS, 5)), frontier_text(Antichain.empty(EPOCH_MS))
        ('[5]', '[]')
    """
    return json_text(frontier.to_json())


def frontier_of(lattice: IntegerTimes, text: str) -> Antichain[int]:
    """Returns the frontier of a text."""
    return Antichain.from_json(lattice, json.loads(text))


def columns_text(columns: tuple[Column, ...]) -> str:
    """Returns the text of columns."""
    return json_text([[c.name, *_type_parts(c.type), c.nullable] for c in columns])


def _type_parts(type_: ScalarType) -> tuple[str, int]:
    """Returns the name of a type's kind, with `[]` behind it for an array of that kind, and the scale."""
    if type_.element is not None:
        return f"{type_.element.kind.value}[]", type_.element.scale
    return type_.kind.value, type_.scale


def _type_of(kind: str, scale: int) -> ScalarType:
    one = ScalarType(Kind(kind.removesuffix("[]")), scale)
    return array_of(one) if kind.endswith("[]") else one


def columns_of(text: str) -> tuple[Column, ...]:
    """Returns the columns of a text.

    Example:
        >>> from mz_dagster.plan.types import numeric
        >>> columns = (Column("a", numeric(2), nullable=False), Column("b", array_of(numeric(2))))
        >>> columns_of(columns_text(columns)) == columns
        True
    """
    return tuple(Column(name, _type_of(kind, scale), nullable) for name, kind, scale, nullable in json.loads(text))


def keys_text(keys: Keys) -> str:
    """Returns the text of keys."""
    return json_text(sorted(sorted(key) for key in keys))


def keys_of(text: str) -> Keys:
    """Returns the keys of a text.

    Example:
        >>> keys_of(keys_text(frozenset({frozenset({1, 0})}))) == {frozenset({0, 1})}
        True
    """
    return frozenset(frozenset(key) for key in json.loads(text))
