"""PostgreSQL's object ids of types, and the types that are others under another name.

A label (`ScalarType.label`) tells such a type from the one that holds its values: in the system catalogs an `oid` is a
bigint, a `name` a text; everywhere a `varchar` without a length is a text, and is told as what it was declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mz_dagster.scalars.types import (
    INT2,
    INT8,
    TEXT,
    Kind,
    ScalarType,
    dimensioned,
    labelled,
)


@dataclass(frozen=True, slots=True)
class TypeIds:
    """What PostgreSQL's catalog says of a type.

    Attributes:
        id: Its object id.
        array: That of arrays of it; 0 if there are none.
        size: How many bytes a value has; -1 if they vary.
        name: What `pg_type` calls it.
        shown: What `format_type` calls it, without a modifier.
        category: `pg_type.typcategory`.
        collation: `pg_type.typcollation`.
    """

    id: int
    array: int
    size: int
    name: str
    shown: str
    category: str
    collation: int = 0


#: Of each kind.
TYPE_IDS: Mapping[Kind, TypeIds] = {
    Kind.BOOL: TypeIds(16, 1000, 1, "bool", "boolean", "B"),
    Kind.BYTEA: TypeIds(17, 1001, -1, "bytea", "bytea", "U"),
    Kind.INT8: TypeIds(20, 1016, 8, "int8", "bigint", "N"),
    Kind.INT2: TypeIds(21, 1005, 2, "int2", "smallint", "N"),
    Kind.INT4: TypeIds(23, 1007, 4, "int4", "integer", "N"),
    Kind.TEXT: TypeIds(25, 1009, -1, "text", "text", "S", 100),
    Kind.JSON: TypeIds(114, 199, -1, "json", "json", "U"),
    Kind.FLOAT4: TypeIds(700, 1021, 4, "float4", "real", "N"),
    Kind.FLOAT8: TypeIds(701, 1022, 8, "float8", "double precision", "N"),
    Kind.CHAR: TypeIds(1042, 1014, -1, "bpchar", "character", "S", 100),
    Kind.VARCHAR: TypeIds(1043, 1015, -1, "varchar", "character varying", "S", 100),
    Kind.DATE: TypeIds(1082, 1182, 4, "date", "date", "D"),
    Kind.TIME: TypeIds(1083, 1183, 8, "time", "time without time zone", "D"),
    Kind.TIMETZ: TypeIds(1266, 1270, 12, "timetz", "time with time zone", "D"),
    Kind.TIMESTAMP: TypeIds(1114, 1115, 8, "timestamp", "timestamp without time zone", "D"),
    Kind.TIMESTAMPTZ: TypeIds(1184, 1185, 8, "timestamptz", "timestamp with time zone", "D"),
    Kind.INTERVAL: TypeIds(1186, 1187, 16, "interval", "interval", "T"),
    Kind.NUMERIC: TypeIds(1700, 1231, -1, "numeric", "numeric", "N"),
    Kind.UNCONSTRAINED: TypeIds(1700, 1231, -1, "numeric", "numeric", "N"),
    Kind.UUID: TypeIds(2950, 2951, 16, "uuid", "uuid", "U"),
    Kind.JSONB: TypeIds(3802, 3807, -1, "jsonb", "jsonb", "U"),
    Kind.RECORD: TypeIds(2249, 2287, -1, "record", "record", "P"),
    Kind.MZ_TIMESTAMP: TypeIds(20, 1016, 8, "int8", "bigint", "N"),
    # Outside of the system catalogs, which know the id of each enumeration, a value of one is its label.
    Kind.ENUM: TypeIds(25, 1009, -1, "text", "text", "S", 100),
}

#: Of each label of the system catalogs.
LABEL_IDS: Mapping[str, TypeIds] = {
    "char": TypeIds(18, 1002, 1, "char", '"char"', "Z"),
    "name": TypeIds(19, 1003, 64, "name", "name", "S", 950),
    "int2vector": TypeIds(22, 1006, -1, "int2vector", "int2vector", "A"),
    "regproc": TypeIds(24, 1008, 4, "regproc", "regproc", "N"),
    "oid": TypeIds(26, 1028, 4, "oid", "oid", "N"),
    "xid": TypeIds(28, 1011, 4, "xid", "xid", "U"),
    "oidvector": TypeIds(30, 1013, -1, "oidvector", "oidvector", "A"),
    "regclass": TypeIds(2205, 2210, 4, "regclass", "regclass", "N"),
    "regprocedure": TypeIds(2202, 2207, 4, "regprocedure", "regprocedure", "N"),
    "regoperator": TypeIds(2204, 2209, 4, "regoperator", "regoperator", "N"),
    "regtype": TypeIds(2206, 2211, 4, "regtype", "regtype", "N"),
    "regnamespace": TypeIds(4089, 4090, 4, "regnamespace", "regnamespace", "N"),
    "regrole": TypeIds(4096, 4097, 4, "regrole", "regrole", "N"),
}

_HELD_AS_INT8 = (
    *("oid", "xid", "regproc", "regprocedure", "regoperator", "regclass", "regtype", "regnamespace", "regrole"),
)
#: The types of the system catalogs that bear a label.
LABELLED: Mapping[str, ScalarType] = {
    "char": labelled(TEXT, "char"),
    "name": labelled(TEXT, "name"),
    # Their first subscript is 0, which a list cannot say.
    "int2vector": labelled(dimensioned(INT2), "int2vector"),
    "oidvector": labelled(dimensioned(labelled(INT8, "oid")), "oidvector"),
    **{one: labelled(INT8, one) for one in _HELD_AS_INT8},
}
OID = LABELLED["oid"]
NAME = LABELLED["name"]
#: A `varchar` of any length.
VARYING = labelled(TEXT, "varchar")


def ids_of(type_: ScalarType) -> TypeIds:
    """Returns what PostgreSQL's catalog says of a type that is no array, or is one with a label.

    Example:
        >>> ids_of(OID).id, ids_of(INT8).id
        (26, 20)
    """
    if type_.label == VARYING.label:
        return TYPE_IDS[Kind.VARCHAR]
    return LABEL_IDS[type_.label] if type_.label else TYPE_IDS[type_.kind]


def type_id(type_: ScalarType) -> int:
    """Returns the object id of a type.

    Example:
        >>> from mz_dagster.scalars.types import array_of
        >>> type_id(array_of(TEXT)), type_id(array_of(OID))
        (1009, 1028)
    """
    element = type_.array_element
    return ids_of(element).array if element is not None and not type_.label else ids_of(type_).id
