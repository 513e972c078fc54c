"""The rows of `pg_type`: the types that there are, arrays of them, and those that only the catalogs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.type_ids import LABEL_IDS, TYPE_IDS, TypeIds, ids_of
from mz_dagster.scalars.types import Kind, ScalarType

if TYPE_CHECKING:
    from mz_dagster.adapter.system_catalogs.facts import Facts

_PG_CATALOG_ID, _OWNER_ID = 11, 10
_PREFERRED = ("bool", "text", "float8", "timestamptz", "interval", "oid")
#: Types that are not a kind of values here.
_OTHERS = (
    TypeIds(194, 0, -1, "pg_node_tree", "pg_node_tree", "Z", 100),
    TypeIds(705, 0, -2, "unknown", "unknown", "X"),
    TypeIds(1033, 1034, 16, "aclitem", "aclitem", "U"),
    TypeIds(2276, 0, 4, "any", '"any"', "P"),
    TypeIds(2277, 0, -1, "anyarray", "anyarray", "P"),
    TypeIds(2278, 0, 4, "void", "void", "P"),
    TypeIds(2283, 0, 4, "anyelement", "anyelement", "P"),
)
_ENUM_SIZE = 4
_ELEMENT_OF_VECTOR = {"int2vector": 21, "oidvector": 26, "name": 18}


def size_of(type_: ScalarType) -> int:
    """Returns how many bytes a value of a type has in PostgreSQL; -1 if they vary."""
    if type_.kind is Kind.ENUM:
        return _ENUM_SIZE
    return -1 if type_.array_element is not None else ids_of(type_).size


def collation_of(type_: ScalarType) -> int:
    """Returns the object id of the collation by which values of a type compare; 0 if by none."""
    element = type_.array_element
    if (element or type_).kind is Kind.ENUM:
        return 0
    return ids_of(element if element is not None and not type_.label else type_).collation


def types(facts: Facts) -> Iterator[Mapping[str, Value]]:
    """Yields the types."""
    scalars = {one.id: one for kind, one in TYPE_IDS.items() if kind not in (Kind.MZ_TIMESTAMP, Kind.ENUM)}
    for one in (*scalars.values(), *LABEL_IDS.values(), *_OTHERS):
        yield {
            **_type(one.id, one.name, one.size, one.category, one.collation),
            "typelem": _ELEMENT_OF_VECTOR.get(one.name, 0),
            "typarray": one.array,
            "typispreferred": one.name in _PREFERRED,
        }
        if one.array:
            yield {**_type(one.array, f"_{one.name}", -1, "A", one.collation), "typelem": one.id, **_OF_ARRAYS}
    for made in facts.enumerations:
        own: dict[str, Value] = {"typnamespace": made.schema_id, "typtype": "e", "typarray": made.id + 1}
        yield {**_type(made.id, made.name, _ENUM_SIZE, "E", 0), **own}
        yield {
            **_type(made.id + 1, f"_{made.name}", -1, "A", 0),
            "typnamespace": made.schema_id,
            "typelem": made.id,
            **_OF_ARRAYS,
        }


ARRAY_IN = 750
"""The object id of what reads arrays, by which clients know them."""
_OF_ARRAYS: Mapping[str, Value] = {"typinput": ARRAY_IN}


def _type(id: int, name: str, size: int, category: str, collation: int) -> dict[str, Value]:
    return {
        "oid": id,
        "typname": name,
        "typnamespace": _PG_CATALOG_ID,
        "typowner": _OWNER_ID,
        "typlen": size,
        "typbyval": 0 < size <= 8,
        "typtype": "p" if category == "P" or name == "unknown" else "b",
        "typcategory": category,
        "typisdefined": True,
        "typdelim": ",",
        "typalign": "i",
        "typstorage": "p" if size > 0 else "x",
        "typtypmod": -1,
        "typcollation": collation,
    }
