"""What a statement may ask of the system catalogs while it is bound: see `catalog_calls.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from mz_dagster.scalars.scalar import Call, Literal, Scalar, Value
from mz_dagster.scalars.types import ScalarType, array_of


@dataclass(frozen=True)
class CatalogLookup:
    """What something is, by a key: the name of a role by its object id, for example.

    Attributes:
        entries: The values by their keys.
        key: The type of the keys.
        value: The type of the values.
    """

    entries: Mapping[Any, Value]
    key: ScalarType
    value: ScalarType

    @cached_property
    def _arrays(self) -> tuple[Literal, Literal]:
        keys = sorted(self.entries)
        values = tuple(self.entries[one] for one in keys)
        return Literal(tuple(keys), array_of(self.key)), Literal(values, array_of(self.value))

    def of(self, key: Scalar) -> Scalar:
        """Returns the value of a key, NULL if there is none."""
        if isinstance(key, Literal):
            return Literal(None if key.value is None else self.entries.get(key.value), self.value)
        return Call("looked_up", (*self._arrays, key), self.value, True)


class CatalogFacts(Protocol):
    """The system catalogs as they are when a statement is bound, for its session."""

    def lookup(self, name: str) -> CatalogLookup:
        """Returns one of the lookups, by its name."""
        ...
