"""The rows of `pg_proc`: the functions that may stand in an expression, each signature one, and PostgreSQL's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mz_dagster.adapter.system_catalogs.of_types import ids_by_name
from mz_dagster.adapter.system_catalogs.postgres_functions import POSTGRES_FUNCTIONS, PostgresFunction
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
        volatility: `pg_proc.provolatile`.
        is_strict: Whether it is NULL where an argument is.
        kind: `pg_proc.prokind`.
    """

    id: int
    name: str
    arguments: tuple[int, ...]
    result: int
    returns_set: bool
    volatility: str = "i"
    is_strict: bool = True
    kind: str = "f"


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
    of_postgres = tuple(map(_of_postgres, POSTGRES_FUNCTIONS))
    known = {(one.name, one.arguments) for one in of_postgres}
    own = (one for one in sorted(set(found)) if one[:2] not in known)
    return (*(Signature(_FIRST_ID + place, *one) for place, one in enumerate(own)), *of_postgres)


def _of_postgres(one: PostgresFunction) -> Signature:
    ids = ids_by_name()
    arguments = tuple(ids[name] for name in one.arguments)
    return Signature(one.id, one.name, arguments, ids[one.result], False, one.volatility, one.is_strict, one.kind)


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
            "prokind": one.kind,
            "proisstrict": one.is_strict,
            "proretset": one.returns_set,
            "provolatile": one.volatility,
            "proparallel": "s",
            "pronargs": len(one.arguments),
            "prorettype": one.result,
            "proargtypes": one.arguments,
            "prosrc": one.name,
        }
