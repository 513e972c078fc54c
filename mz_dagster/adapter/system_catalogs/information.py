"""The rows of the relations of `information_schema`: of each, the cells that are not NULL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from mz_dagster.adapter.system_catalogs.facts import (
    OWNER_ID,
    TEMPORARY_SCHEMA,
    CatalogEntry,
    Facts,
    Role,
    type_modifier,
)
from mz_dagster.adapter.system_catalogs.filled import checks_of
from mz_dagster.catalog import LETTERS
from mz_dagster.functions.catalog.catalog_functions import NO_MODIFIER, formatted_type
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.type_ids import ids_of, type_id
from mz_dagster.scalars.types import TEXT, Column, Kind, ScalarType
from mz_dagster.sql.declared_keys import ForeignKey
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.table_text import ACTIONS

Cells = Mapping[str, Value]
Rows = Callable[[Facts], Iterable[Cells]]

_BITS = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64, Kind.MZ_TIMESTAMP: 64, Kind.FLOAT4: 24, Kind.FLOAT8: 53}
_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.TIMETZ, Kind.INTERVAL)
_OCTETS = 1 << 30
"""How many bytes a text without a limit has at most."""


def _yes(on: bool) -> str:
    return "YES" if on else "NO"


def _schemata(facts: Facts) -> Iterator[Cells]:
    for name in facts.schemas:
        if name != TEMPORARY_SCHEMA:
            yield {"catalog_name": facts.database, "schema_name": name, "schema_owner": facts.owner.name}


def _of_table(facts: Facts, schema: str, name: str) -> dict[str, Value]:
    return {"table_catalog": facts.database, "table_schema": schema, "table_name": name}


def _tables(facts: Facts) -> Iterator[Cells]:
    kinds = {"r": "BASE TABLE", "v": "VIEW"}  # a materialized view is none of the standard's, as in PostgreSQL
    for one in facts.relations:
        if one.kind in kinds:
            kind = "LOCAL TEMPORARY" if one.is_temporary and one.kind == "r" else kinds[one.kind]
            yield {
                **_of_table(facts, one.schema, one.name),
                "table_type": kind,
                "is_insertable_into": _yes(one.row.kind == "table"),
                "is_typed": "NO",
            }
    for built_in in facts.built_in:
        kind = "VIEW" if built_in.is_view else "BASE TABLE"
        yield {
            **_of_table(facts, built_in.schema, built_in.name),
            "table_type": kind,
            "is_insertable_into": "NO",
            "is_typed": "NO",
        }


def _columns(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind == "m":
            continue
        for number, column in enumerate(one.columns, start=1):
            yield {
                **_of_table(facts, one.schema, one.name),
                **_column(facts, number, column),
                "column_default": one.default(column.name),
                "is_updatable": _yes(one.row.kind == "table"),
                **_identity(one, column.name),
                **_computed(one, column.name),
            }
    for built_in in facts.built_in:
        for number, column in enumerate(built_in.columns, start=1):
            yield {**_of_table(facts, built_in.schema, built_in.name), **_column(facts, number, column)}


def _column(facts: Facts, number: int, column: Column) -> dict[str, Value]:
    type_ = column.type
    element = type_.array_element
    enumeration = (element or type_).enumeration
    if enumeration is not None:
        return _enumerated(facts, number, column)
    udt = f"_{ids_of(element).name}" if element is not None and not type_.label else ids_of(type_).name
    shown = "ARRAY" if element is not None else formatted_type(type_id(type_), NO_MODIFIER)
    return {
        "column_name": column.name,
        "ordinal_position": number,
        "is_nullable": _yes(column.nullable),
        "data_type": shown,
        "udt_catalog": facts.database,
        "udt_schema": "pg_catalog",
        "udt_name": udt,
        "dtd_identifier": str(number),
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "identity_cycle": "NO",
        "is_generated": "NEVER",
        "is_updatable": "NO",
        **_measures(type_),
    }


def _enumerated(facts: Facts, number: int, column: Column) -> dict[str, Value]:
    is_array = column.type.array_element is not None
    id = facts.type_id(column.type.array_element or column.type)
    made = next(one for one in facts.enumerations if one.id == id)
    return {
        **_column(facts, number, Column(column.name, TEXT, column.nullable)),
        "data_type": "ARRAY" if is_array else "USER-DEFINED",
        "character_octet_length": None,
        "udt_schema": made.schema,
        "udt_name": f"_{made.name}" if is_array else made.name,
    }


def _measures(type_: ScalarType) -> dict[str, Value]:
    """Returns what is said of the size of a type."""
    kind = type_.kind
    if type_.array_element is not None or type_.label in ("oid", "xid"):
        return {}
    if kind in (Kind.VARCHAR, Kind.CHAR):
        return {"character_maximum_length": type_.length, "character_octet_length": 4 * type_.length}
    if kind is Kind.TEXT:
        return {} if type_.label in ("name", "char") else {"character_octet_length": _OCTETS}
    if kind in _BITS:
        scale = {} if kind in (Kind.FLOAT4, Kind.FLOAT8) else {"numeric_scale": 0}
        return {"numeric_precision": _BITS[kind], "numeric_precision_radix": 2, **scale}
    if kind is Kind.NUMERIC:
        precision = type_modifier(type_) - 4 >> 16
        return {"numeric_precision": precision, "numeric_precision_radix": 10, "numeric_scale": type_.scale}
    if kind is Kind.UNCONSTRAINED:
        return {"numeric_precision_radix": 10}
    if kind in _MOMENTS:
        digits = None if type_.modifier is None else type_.modifier.precision
        return {"datetime_precision": 6 if digits is None else digits}
    return {"datetime_precision": 0} if kind is Kind.DATE else {}


def _computed(one: CatalogEntry, column: str) -> dict[str, Value]:
    if one.constraints is None or column not in one.constraints.computed:
        return {}
    return {"column_default": None, "is_generated": "ALWAYS", "generation_expression": one.default(column)}


def _identity(one: CatalogEntry, column: str) -> dict[str, Value]:
    identity = None if one.constraints is None else one.constraints.identities.get(column)
    if identity is None or identity.generated == "serial":
        return {}
    sequence = identity.sequence
    return {
        "is_identity": "YES",
        "identity_generation": identity.generated.upper(),
        "identity_start": str(sequence.start),
        "identity_increment": str(sequence.increment),
        "identity_maximum": str(sequence.maximum),
        "identity_minimum": str(sequence.minimum),
        "identity_cycle": _yes(sequence.cycles),
    }


def _views(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind == "v":
            yield {
                **_of_table(facts, one.schema, one.name),
                "view_definition": one.definition,
                "check_option": "NONE",
                **dict.fromkeys(("is_updatable", "is_insertable_into"), "NO"),
                **dict.fromkeys(("is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into"), "NO"),
            }


# ---- constraints


def _constraint(facts: Facts, schema: str, name: str) -> dict[str, Value]:
    return {"constraint_catalog": facts.database, "constraint_schema": schema, "constraint_name": name}


def _table_constraints(facts: Facts) -> Iterator[Cells]:
    def cells(one: CatalogEntry, name: str, kind: str, key: ForeignKey | None = None) -> Cells:
        return {
            **_constraint(facts, one.schema, name),
            **_of_table(facts, one.schema, one.name),
            "constraint_type": kind,
            "is_deferrable": "YES" if key is not None and key.is_deferrable else "NO",
            "initially_deferred": "YES" if key is not None and key.is_deferred else "NO",
            "enforced": "YES" if key is None or key.is_enforced else "NO",
            "nulls_distinct": "YES" if kind == "UNIQUE" else None,
        }

    for one in facts.relations:
        for key in one.key_constraints:
            yield cells(one, key.name, "PRIMARY KEY" if key.primary else "UNIQUE")
        for own in one.foreign_keys:
            yield cells(one, own.key.name, "FOREIGN KEY", own.key)
        for _, check in checks_of(one):
            yield cells(one, check.name, "CHECK")
        if one.row.kind == "table":
            for number, column in enumerate(one.columns, start=1):
                if not column.nullable:
                    yield cells(one, _not_null(one, number), "CHECK")


def _not_null(one: CatalogEntry, number: int) -> str:
    """Returns what PostgreSQL calls the constraint that a column is not NULL."""
    return f"{one.schema_id}_{one.id}_{number}_not_null"


def _key_columns(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for key in one.key_constraints:
            for place, number in enumerate(key.columns, start=1):
                yield {
                    **_constraint(facts, one.schema, key.name),
                    **_of_table(facts, one.schema, one.name),
                    "column_name": one.columns[number - 1].name,
                    "ordinal_position": place,
                }
        for own in one.foreign_keys:
            index = own.index
            for place, (number, other) in enumerate(zip(own.columns, own.referenced, strict=True), start=1):
                yield {
                    **_constraint(facts, one.schema, own.key.name),
                    **_of_table(facts, one.schema, one.name),
                    "column_name": one.columns[number - 1].name,
                    "ordinal_position": place,
                    "position_in_unique_constraint": None if index is None else index.columns.index(other) + 1,
                }


def _references(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for own in one.foreign_keys:
            index = own.index
            named = index is not None and not index.is_index
            yield {
                **_constraint(facts, one.schema, own.key.name),
                "unique_constraint_catalog": facts.database if named else None,
                "unique_constraint_schema": own.parent.schema if named else None,
                "unique_constraint_name": index.name if index is not None and named else None,
                "match_option": "FULL" if own.key.is_full else "NONE",
                "update_rule": ACTIONS[own.key.on_update],
                "delete_rule": ACTIONS[own.key.on_delete],
            }


def _constrained_columns(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        used = [(key.name, [one.columns[number - 1].name for number in key.columns]) for key in one.key_constraints]
        for _, check in checks_of(one):
            words = {token.value for token in tokens_of(check.predicate.text)}
            used.append((check.name, [column.name for column in one.columns if column.name in words]))
        for name, columns in used:
            for column in columns:
                yield {
                    **_of_table(facts, one.schema, one.name),
                    "column_name": column,
                    **_constraint(facts, one.schema, name),
                }
        for own in one.foreign_keys:
            for number in own.referenced:
                yield {
                    **_of_table(facts, own.parent.schema, own.parent.name),
                    "column_name": own.parent.columns[number - 1].name,
                    **_constraint(facts, one.schema, own.key.name),
                }


def _check_constraints(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for _, check in checks_of(one):
            yield {**_constraint(facts, one.schema, check.name), "check_clause": f"({check.predicate.text.strip()})"}
        if one.row.kind == "table":
            for number, column in enumerate(one.columns, start=1):
                if not column.nullable:
                    yield {
                        **_constraint(facts, one.schema, _not_null(one, number)),
                        "check_clause": f"{column.name} IS NOT NULL",
                    }


# ---- the rest


def _sequences(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for sequence in one.sequences:
            if sequence.identity.generated == "serial":  # as in PostgreSQL, not those of identity columns
                definition = sequence.definition
                yield {
                    "sequence_catalog": facts.database,
                    "sequence_schema": one.schema,
                    "sequence_name": sequence.name,
                    "data_type": formatted_type(type_id(sequence.type), NO_MODIFIER),
                    "numeric_precision": _BITS[sequence.type.kind],
                    "numeric_precision_radix": 2,
                    "numeric_scale": 0,
                    "start_value": str(definition.start),
                    "minimum_value": str(definition.minimum),
                    "maximum_value": str(definition.maximum),
                    "increment": str(definition.increment),
                    "cycle_option": _yes(definition.cycles),
                }


def _character_sets(facts: Facts) -> Iterator[Cells]:
    yield {
        "character_set_name": "UTF8",
        "character_repertoire": "UCS",
        "form_of_use": "UTF8",
        "default_collate_catalog": facts.database,
        "default_collate_schema": "pg_catalog",
        "default_collate_name": "C",
    }


_PRIVILEGES = {
    "a": "INSERT",
    "r": "SELECT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
}


def _table_privileges(facts: Facts) -> Iterator[Cells]:
    """Yields what the one who asks was granted or has granted, and what all were."""
    names = {role.id: role.name for role in facts.roles} | {0: "PUBLIC"}
    enabled = {0, *(one.id for one in _enabled(facts))}
    for one in facts.relations:
        for role, letters in (facts.granted(one) or {OWNER_ID: LETTERS}).items():
            if role not in names or (facts.user != facts.owner.name and role not in enabled):
                continue
            for letter in letters:
                yield {
                    "grantor": facts.owner.name,
                    "grantee": names[role],
                    **_of_table(facts, one.schema, one.name),
                    "privilege_type": _PRIVILEGES[letter],
                    "is_grantable": _yes(role == OWNER_ID),
                    "with_hierarchy": _yes(letter == "r"),
                }


def _role_table_grants(facts: Facts) -> Iterator[Cells]:
    return (one for one in _table_privileges(facts) if one["grantee"] != "PUBLIC")


def _enabled_roles(facts: Facts) -> Iterator[Cells]:
    return ({"role_name": one.name} for one in _enabled(facts))


def _enabled(facts: Facts) -> list[Role]:
    """Returns the roles by whose privileges the one who asks acts; the owner acts by all."""
    if facts.user == facts.owner.name:
        return list(facts.roles)
    held = facts.held_roles(next(one for one in facts.roles if one.name == facts.user))
    return [one for one in facts.roles if one.id in held]


def _applicable_roles(facts: Facts) -> Iterator[Cells]:
    """Yields which of the roles that the one who asks acts by are members of which."""
    names = {one.id: one.name for one in facts.roles}
    for one in _enabled(facts):
        for group in one.groups:
            yield {"grantee": one.name, "role_name": names[group], "is_grantable": "NO"}


def _database(facts: Facts) -> Iterator[Cells]:
    yield {"catalog_name": facts.database}


INFORMATION: Mapping[str, Rows] = {
    "applicable_roles": _applicable_roles,
    "character_sets": _character_sets,
    "check_constraints": _check_constraints,
    "columns": _columns,
    "constraint_column_usage": _constrained_columns,
    "enabled_roles": _enabled_roles,
    "information_schema_catalog_name": _database,
    "key_column_usage": _key_columns,
    "referential_constraints": _references,
    "role_table_grants": _role_table_grants,
    "schemata": _schemata,
    "sequences": _sequences,
    "table_constraints": _table_constraints,
    "table_privileges": _table_privileges,
    "tables": _tables,
    "views": _views,
}
