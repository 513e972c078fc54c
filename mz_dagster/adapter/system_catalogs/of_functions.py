"""The rows of `pg_proc`: the functions that may stand in an expression, each signature one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mz_dagster.functions import FUNCTIONS, OVERLOADS, TABLE_OVERLOADS, Overload
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.type_ids import TYPE_IDS
from mz_dagster.scalars.types import Kind

if TYPE_CHECKING:
    from mz_dagster.adapter.system_catalogs.facts import Facts

_FIRST_ID = 6_500
_ANY_ARRAY, _ANY_ELEMENT = 2277, 2283


@dataclass(frozen=True, slots=True)
class Signature:
    """A function with the types of its arguments.

    Attributes:
        id: Its object id.
        name: Its name.
        arguments: The object ids of its arguments' types.
        result: That of its result's.
        returns_set: Whether it returns rows.
    """

    id: int
    name: str
    arguments: tuple[int, ...]
    result: int
    returns_set: bool


def _type(kind: Kind | None) -> int:
    if kind is Kind.ARRAY:
        return _ANY_ARRAY
    return _ANY_ELEMENT if kind is None else TYPE_IDS[kind].id


@cache
def signatures() -> tuple[Signature, ...]:
    """Returns those that there are, in the order of their names."""
    found: list[tuple[str, tuple[int, ...], int, bool]] = []
    for returns_set, overloads in ((False, OVERLOADS), (True, TABLE_OVERLOADS)):
        for name, several in overloads.items():
            found += (_signature(name, one, returns_set) for one in _named(name, several))
    return tuple(Signature(_FIRST_ID + place, *one) for place, one in enumerate(sorted(set(found))))


def _named(name: str, overloads: Sequence[Overload]) -> Iterator[Overload]:
    if name.replace("_", "a").isalnum():
        yield from (one for one in overloads if not one.refused)


def _signature(name: str, one: Overload, returns_set: bool) -> tuple[str, tuple[int, ...], int, bool]:
    result = FUNCTIONS[one.implementation].result
    if returns_set:
        result = None
    return name, tuple(map(_type, one.signature)), _type(result), returns_set


def functions(facts: Facts) -> Iterator[Mapping[str, Value]]:
    """Yields the functions."""
    for one in signatures():
        yield {
            "oid": one.id,
            "proname": one.name,
            "pronamespace": 11,
            "proowner": 10,
            "prolang": 12,
            "procost": 1.0,
            "prorows": 1000.0 if one.returns_set else 0.0,
            "prokind": "f",
            "proisstrict": True,
            "proretset": one.returns_set,
            "provolatile": "i",
            "proparallel": "s",
            "pronargs": len(one.arguments),
            "prorettype": one.result,
            "proargtypes": one.arguments,
            "prosrc": one.name,
        }
