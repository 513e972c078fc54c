"""The rows of `pg_type`: the types that there are, arrays of them, and those that only the catalogs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from mz_dagster.adapter.system_catalogs.postgres_functions import TYPE_FUNCTIONS, TypeFunctions
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.type_ids import LABEL_IDS, TYPE_IDS, TypeIds, ids_of
from mz_dagster.scalars.types import Kind, ScalarType

if TYPE_CHECKING:
    from mz_dagster.adapter.system_catalogs.facts import Facts

_PG_CATALOG_ID, _OWNER_ID = 11, 10
#: Types that are not a kind of values here.
_OTHERS = (
    TypeIds(194, 0, -1, "pg_node_tree", "pg_node_tree", "Z", 100),
    TypeIds(269, 0, 4, "table_am_handler", "table_am_handler", "P"),
    TypeIds(325, 0, 4, "index_am_handler", "index_am_handler", "P"),
    TypeIds(705, 0, -2, "unknown", "unknown", "X"),
    TypeIds(1033, 1034, 12, "aclitem", "aclitem", "U"),
    TypeIds(2275, 1263, -2, "cstring", "cstring", "P"),
    TypeIds(2276, 0, 4, "any", '"any"', "P"),
    TypeIds(2277, 0, -1, "anyarray", "anyarray", "P"),
    TypeIds(2278, 0, 4, "void", "void", "P"),
    TypeIds(2279, 0, 4, "trigger", "trigger", "P"),
    TypeIds(2281, 0, 8, "internal", "internal", "P"),
    TypeIds(2283, 0, 4, "anyelement", "anyelement", "P"),
    TypeIds(3500, 0, 4, "anyenum", "anyenum", "P"),
    TypeIds(5077, 0, 4, "anycompatible", "anycompatible", "P"),
    TypeIds(5078, 0, -1, "anycompatiblearray", "anycompatiblearray", "P"),
)
_ENUM_SIZE = 4
_ELEMENT_OF_VECTOR = {"int2vector": 21, "oidvector": 26, "name": 18}


def size_of(type_: ScalarType) -> int:
    """Returns how many bytes a value of a type has in PostgreSQL; -1 if they vary."""
    if type_.kind is Kind.ENUM:
        return _ENUM_SIZE
    return -1 if type_.array_element is not None else ids_of(type_).size


def stored_as(type_: ScalarType) -> TypeFunctions:
    """Returns how a type is stored."""
    element = type_.array_element
    if (element or type_).kind is Kind.ENUM:
        return _OF_ENUMERATIONS if element is None else _of_arrays("i", 0, 0)
    if element is not None and not type_.label:
        return _of_arrays(TYPE_FUNCTIONS[ids_of(element).name].alignment, 0, 0)
    return TYPE_FUNCTIONS[ids_of(type_).name]


def collation_of(type_: ScalarType) -> int:
    """Returns the object id of the collation by which values of a type compare; 0 if by none."""
    element = type_.array_element
    if (element or type_).kind is Kind.ENUM:
        return 0
    return ids_of(element if element is not None and not type_.label else type_).collation


def _scalars() -> tuple[TypeIds, ...]:
    """Returns the types that are always there, but for arrays."""
    kinds = {one.id: one for kind, one in TYPE_IDS.items() if kind not in (Kind.MZ_TIMESTAMP, Kind.ENUM)}
    return (*kinds.values(), *LABEL_IDS.values(), *_OTHERS)


@cache
def ids_by_name() -> Mapping[str, int]:
    """Returns the object ids of the types that are always there, by what `pg_type` calls them; 0 of `-`."""
    arrays = {f"_{one.name}": one.array for one in _scalars() if one.array}
    return {"-": 0, **{one.name: one.id for one in _scalars()}, **arrays}


def types(facts: Facts) -> Iterator[Mapping[str, Value]]:
    """Yields the types."""
    for one in _scalars():
        functions = TYPE_FUNCTIONS[one.name]
        yield {
            **_type(one.id, one.name, one.size, one.category, one.collation, functions),
            "typelem": _ELEMENT_OF_VECTOR.get(one.name, 0),
            "typarray": one.array,
        }
        if one.array:
            own = _of_arrays(functions.alignment, *functions.functions[4:6])
            category = "P" if one.name == "record" else "A"
            yield {**_type(one.array, f"_{one.name}", -1, category, one.collation, own), "typelem": one.id}
    for made in facts.enumerations:
        schema: dict[str, Value] = {"typnamespace": made.schema_id}
        yield {
            **_type(made.id, made.name, _ENUM_SIZE, "E", 0, _OF_ENUMERATIONS),
            **schema,
            "typtype": "e",
            "typarray": made.id + 1,
        }
        yield {
            **_type(made.id + 1, f"_{made.name}", -1, "A", 0, _of_arrays("i", 0, 0)),
            **schema,
            "typelem": made.id,
        }

    for relation in facts.relations:
        placed: dict[str, Value] = {"typnamespace": relation.schema_id}
        yield {
            **_type(relation.row_type, relation.name, -1, "C", 0, _OF_ROWS),
            **placed,
            "typtype": "c",
            "typrelid": relation.id,
            "typarray": relation.row_type + 1,
        }
        yield {
            **_type(relation.row_type + 1, f"_{relation.name}", -1, "A", 0, _of_arrays("d", 0, 0)),
            **placed,
            "typelem": relation.row_type,
        }


_OF_ROWS = TypeFunctions((2290, 2291, 2402, 2403, 0, 0, 0, 0), "d", "x", False, False)
_OF_ENUMERATIONS = TypeFunctions((3506, 3507, 3532, 3533, 0, 0, 0, 0), "i", "p", True, False)


def _of_arrays(alignment: str, modifier_in: int, modifier_out: int) -> TypeFunctions:
    """Returns those of arrays, whose modifiers are their elements'."""
    ids = (750, 751, 2400, 2401, modifier_in, modifier_out, 3816, 6179)
    return TypeFunctions(ids, "d" if alignment == "d" else "i", "x", False, False)


def _type(id: int, name: str, size: int, category: str, collation: int, functions: TypeFunctions) -> dict[str, Value]:
    read, write, receive, send, modifier_in, modifier_out, analyze, subscript = functions.functions
    return {
        "oid": id,
        "typname": name,
        "typnamespace": _PG_CATALOG_ID,
        "typowner": _OWNER_ID,
        "typlen": size,
        "typbyval": functions.by_value,
        "typtype": "p" if category == "P" or name == "unknown" else "b",
        "typcategory": category,
        "typispreferred": functions.is_preferred,
        "typisdefined": True,
        "typdelim": ",",
        "typsubscript": subscript,
        "typinput": read,
        "typoutput": write,
        "typreceive": receive,
        "typsend": send,
        "typmodin": modifier_in,
        "typmodout": modifier_out,
        "typanalyze": analyze,
        "typalign": functions.alignment,
        "typstorage": functions.storage,
        "typtypmod": -1,
        "typcollation": collation,
    }
