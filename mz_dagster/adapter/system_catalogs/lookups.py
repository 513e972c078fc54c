"""What functions and casts ask the system catalogs: values by keys, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mz_dagster.adapter.access import OWNERS
from mz_dagster.adapter.system_catalogs.filled import (
    DATABASE_ID,
    TABLESPACE_ID,
    checks_of,
    index_definitions,
    key_definition,
)
from mz_dagster.adapter.system_catalogs.of_functions import Signature, signatures
from mz_dagster.adapter.system_catalogs.of_types import ids_by_name
from mz_dagster.adapter.system_catalogs.postgres_operators import operators
from mz_dagster.functions.catalog.catalog_functions import NO_MODIFIER, formatted_type
from mz_dagster.scalars.type_ids import LABEL_IDS, NAME, TYPE_IDS
from mz_dagster.scalars.types import BOOL, INT4, INT8, TEXT, ScalarType
from mz_dagster.sql.catalog_calls import COLUMNS, ROLES
from mz_dagster.sql.catalog_facts import CatalogLookup
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.role_statements import PRIVILEGES
from mz_dagster.sql.table_text import foreign_key_text

if TYPE_CHECKING:
    from mz_dagster.adapter.system_catalogs.facts import Facts

Pairs = Iterator[tuple[Any, Any]]


def made(facts: Facts, name: str) -> CatalogLookup:
    """Returns the lookup of a name."""
    key, value, pairs = _LOOKUPS.get(name) or _privileges(name)
    return CatalogLookup(dict(pairs(facts)), key, value)


def _named_relations(facts: Facts) -> Iterator[tuple[int, str, str]]:
    """Yields object id, schema and name of everything in `pg_class`."""
    for one in facts.described:
        yield one.id, one.schema, one.name
        for id, name in one.own:
            yield id, one.schema, name
    for built_in in facts.built_in:
        yield built_in.id, built_in.schema, built_in.name


def _relation_texts(facts: Facts) -> Pairs:
    for id, schema, name in _named_relations(facts):
        yield id, facts.relation_text(schema, name)


def _relation_ids(facts: Facts) -> Pairs:
    for id, schema, name in _named_relations(facts):
        for schema_text, text in ((quoted(schema), quoted(name)), (_in_quotes(schema), _in_quotes(name))):
            yield f"{schema_text}.{text}", id
            for database in (quoted(facts.database), _in_quotes(facts.database)):
                yield f"{database}.{schema_text}.{text}", id
            if facts.is_visible(schema, name):
                yield text, id


def _in_quotes(name: str) -> str:
    """Returns a name in quotes even where it needs none, as some clients write all names."""
    return '"' + name.replace('"', '""') + '"'


def _visibility(facts: Facts) -> Pairs:
    for id, schema, name in _named_relations(facts):
        yield id, facts.is_visible(schema, name)


def _view_definitions(facts: Facts) -> Pairs:
    for one in facts.relations:
        if one.kind in "vm":
            yield one.id, one.definition


def _rule_definitions(facts: Facts) -> Pairs:
    for one in facts.relations:
        if one.kind in "vm":
            where = f"{quoted(one.schema)}.{quoted(one.name)}"
            yield one.id, f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {where} DO INSTEAD{one.definition}'


def _constraint_definitions(facts: Facts) -> Pairs:
    for one in facts.relations:
        for key in one.key_constraints:
            yield key.id, f"{'PRIMARY KEY' if key.primary else 'UNIQUE'} {key_definition(one, key.columns)}"
        for own in one.foreign_keys:
            where = facts.relation_text(own.parent.schema, own.parent.name)
            yield own.id, foreign_key_text(own.key, f"{where}{key_definition(own.parent, own.referenced)}")
        for id, check in checks_of(one):
            yield id, f"CHECK ({check.predicate.text.strip()})"


def _index_definitions(facts: Facts) -> Pairs:
    for on, id, _, columns, definition in index_definitions(facts):
        yield id * COLUMNS, definition
        for number, column in enumerate(columns, start=1):
            yield id * COLUMNS + number, quoted(on.row.relation_type.names[column - 1])


def _comments(facts: Facts) -> Pairs:
    for one in facts.described:
        names = one.row.relation_type.names
        for column, text in one.row.comments.items():
            if not column:
                yield one.id * COLUMNS, text
            elif column in names:
                yield one.id * COLUMNS + names.index(column) + 1, text


def _relation_sizes(facts: Facts) -> Pairs:
    for one in facts.described:
        yield one.id, facts.sizes.get(one.row.id, 0)
        for id, _ in one.own:
            yield id, 0
    for built_in in facts.built_in:
        yield built_in.id, 0


def _index_sizes(facts: Facts) -> Pairs:
    yield from ((one.id, 0) for one in facts.relations)
    found: dict[int, int] = {}
    for index in facts.indexes:
        found[index.indexed.id] = found.get(index.indexed.id, 0) + facts.sizes.get(index.row.id, 0)
    yield from found.items()


def _type_visibility(facts: Facts) -> Pairs:
    for one in (*TYPE_IDS.values(), *LABEL_IDS.values()):
        yield one.id, True
        if one.array:
            yield one.array, True
    for id, schema, _ in _made_types(facts):
        yield id, schema in facts.path
        yield id + 1, schema in facts.path


def _made_types(facts: Facts) -> Iterator[tuple[int, str, str]]:
    """Yields object id, schema and name of the types that were made, those of rows too; of arrays it is the next id."""
    yield from ((one.id, one.schema, one.name) for one in facts.enumerations)
    yield from ((one.row_type, one.schema, one.name) for one in facts.relations)


def _type_texts(facts: Facts) -> Pairs:
    """Yields what the types are called that were made."""
    for id, schema, name in _made_types(facts):
        text = quoted(name) if schema in facts.path else f"{quoted(schema)}.{quoted(name)}"
        yield id, text
        yield id + 1, f"{text}[]"


def _type_ids(facts: Facts) -> Pairs:
    """Yields the types that were made by their names."""
    made = [*_made_types(facts)]
    for id, schema, name in made:
        yield f"{quoted(schema)}.{quoted(name)}", id
    for searched in reversed(facts.path):
        yield from ((quoted(name), id) for id, schema, name in made if schema == searched)


def _type_name_ids(facts: Facts) -> Pairs:
    """Yields the types by whatever a text calls them: with their schema and without, in quotes and without."""
    built_in = [(id, "pg_catalog", name) for name, id in ids_by_name().items() if id]
    made = [
        one for id, schema, name in _made_types(facts) for one in ((id, schema, name), (id + 1, schema, f"_{name}"))
    ]
    for id, schema, name in (*made, *built_in):
        for schema_text, text in ((quoted(schema), quoted(name)), (_in_quotes(schema), _in_quotes(name))):
            yield f"{schema_text}.{text}", id
            if schema in facts.path or schema == "pg_catalog":
                yield text, id
    for one in (*TYPE_IDS.values(), *LABEL_IDS.values()):
        yield one.shown, one.id
        if one.array:
            yield f"{one.shown}[]", one.array


def _relation_events(facts: Facts) -> Pairs:
    """Yields what may be done to a relation: the sum of the bits of UPDATE, INSERT and DELETE of PostgreSQL."""
    for one in facts.relations:
        yield one.id, _ALL_EVENTS if one.kind == "r" else 0


def _function_arguments(facts: Facts) -> Pairs:
    for one in signatures():
        yield one.id, ", ".join(_arguments(one))


@cache
def _functions() -> Mapping[str, int | None]:
    """Returns the object ids of functions by their names; None of several."""
    found: dict[str, int | None] = {}
    for one in signatures():
        found[one.name] = None if one.name in found else one.id
    return found


def _function_names(facts: Facts) -> Pairs:
    """Yields what a `regproc` shows: a name that is not one function's is none without its schema."""
    for one in signatures():
        yield one.id, quoted(one.name) if _functions()[one.name] else f"pg_catalog.{quoted(one.name)}"


def _signature_key(one: Signature) -> str:
    return f"{one.name}({','.join(map(str, one.arguments))})"


def _arguments(one: Signature) -> Iterator[str]:
    """Yields what the types of a function's arguments are called."""
    return (formatted_type(argument, NO_MODIFIER) for argument in one.arguments)


def _result(one: Signature) -> str:
    """Returns what the type of a function's result is called."""
    return f"{'SETOF ' if one.returns_set else ''}{formatted_type(one.result, NO_MODIFIER)}"


def _signature_text(one: Signature) -> str:
    return f"{quoted(one.name)}({','.join(_arguments(one))})"


def _function_definitions(facts: Facts) -> Pairs:
    words = {"i": "IMMUTABLE ", "s": "STABLE ", "v": ""}
    for one in signatures():
        if one.kind != "a":
            given, result = ", ".join(_arguments(one)), _result(one)
            said = f"{'WINDOW ' if one.kind == 'w' else ''}{words[one.volatility]}PARALLEL SAFE"
            yield (
                one.id,
                (
                    f"CREATE OR REPLACE FUNCTION pg_catalog.{quoted(one.name)}({given})\n RETURNS {result}\n"
                    f" LANGUAGE internal\n {said}{' STRICT' if one.is_strict else ''}\n"
                    f"AS $function${one.name}$function$\n"
                ),
            )


def _function_results(facts: Facts) -> Pairs:
    for one in signatures():
        yield one.id, _result(one)


def _operator_ids(facts: Facts) -> Pairs:
    for one in operators(facts):
        name, left, right = (str(one[part]) for part in ("oprname", "oprleft", "oprright"))
        yield f"{name}({left},{right})", one["oid"]


def _operator_texts(facts: Facts) -> Pairs:
    for one in operators(facts):
        left, right = (int(str(one[side])) for side in ("oprleft", "oprright"))
        shown = formatted_type(left, NO_MODIFIER) if left else "NONE"
        name = str(one["oprname"])
        yield one["oid"], f"{name}({shown},{formatted_type(right, NO_MODIFIER)})"


def _last_numbers(facts: Facts) -> Pairs:
    for one in facts.relations:
        for sequence in one.sequences:
            yield sequence.id, facts.last_numbers.get((one.row.id, one.columns[sequence.column - 1].name))


def _serial_sequences(facts: Facts) -> Pairs:
    for one in facts.relations:
        for sequence in one.sequences:
            called = f"{quoted(one.schema)}.{quoted(sequence.name)}"
            column = one.columns[sequence.column - 1].name
            yield f"{quoted(one.schema)}.{quoted(one.name)}.{column}", called
            if facts.is_visible(one.schema, one.name):
                yield f"{quoted(one.name)}.{column}", called


def _temporary_schema(facts: Facts) -> Pairs:
    yield "", max((facts.schemas[one.schema] for one in facts.described if one.is_temporary), default=0)


def _privileges(name: str) -> tuple[ScalarType, ScalarType, Callable[[Facts], Pairs]]:
    """Returns the lookup of who has a privilege, by what it is on and by role."""
    what, _, privilege = name.removesuffix(_GRANTABLE).removesuffix(_ADMIN).rpartition(" ")

    def pairs(facts: Facts) -> Pairs:
        of_all = () if name.endswith(_GRANTABLE) else _OF_ALL[what]
        granted = dict(_granted(facts, privilege)) if what == "on relations" and not name.endswith(_GRANTABLE) else {}
        held = {role.id: facts.held_roles(role) for role in facts.roles}
        for id in _KEPT[what](facts):
            for role in facts.roles:
                is_held = (
                    privilege in of_all
                    or not held[role.id].isdisjoint(granted.get(id, ()))
                    or (what == "of roles" and id in held[role.id] and not name.endswith(_ADMIN))
                )
                yield id * ROLES + role.id, role.is_superuser or is_held

    return INT8, BOOL, pairs


_ALL_EVENTS = (1 << 2) + (1 << 3) + (1 << 4)
_GRANTABLE = " WITH GRANT OPTION"
_ADMIN = " WITH ADMIN OPTION"
#: What every role may do, of what.
_OF_ALL: Mapping[str, Collection[str]] = {
    "on relations": (),
    "on schemas": ("USAGE",),
    "on databases": ("CONNECT",),
    "on functions": ("EXECUTE",),
    "of roles": (),
}


def _granted(facts: Facts, privilege: str) -> Iterator[tuple[int, Collection[int]]]:
    """Yields the object id of each relation, and those of the roles that have a privilege on it."""
    everybody = [role.id for role in facts.roles]
    letter = PRIVILEGES.get(privilege.lower(), "")
    for one in facts.relations:
        held = [role for role, letters in facts.granted(one).items() if letter and letter in letters]
        yield one.id, everybody if 0 in held else held
    for built_in in facts.built_in:
        if privilege == "SELECT" and built_in.name not in OWNERS:
            yield built_in.id, everybody


_KEPT: Mapping[str, Callable[[Facts], Iterator[int]]] = {
    "on relations": lambda facts: (id for id, _, _ in _named_relations(facts)),
    "on schemas": lambda facts: iter(facts.schemas.values()),
    "on databases": lambda facts: iter((DATABASE_ID,)),
    "on functions": lambda facts: (one.id for one in signatures()),
    "of roles": lambda facts: (one.id for one in facts.roles),
}

_LOOKUPS: Mapping[str, tuple[ScalarType, ScalarType, Callable[[Facts], Pairs]]] = {
    "collation visibility": (INT8, BOOL, lambda facts: iter([(100, True), (950, True), (951, True)])),
    "comments": (INT8, TEXT, _comments),
    "constraint definitions": (INT8, TEXT, _constraint_definitions),
    "database ids": (TEXT, INT8, lambda facts: iter([(facts.database, DATABASE_ID)])),
    "database sizes": (INT8, INT8, lambda facts: iter([(DATABASE_ID, sum(facts.sizes.values()))])),
    "function arguments": (INT8, TEXT, _function_arguments),
    "ambiguous functions": (TEXT, BOOL, lambda facts: ((name, True) for name, one in _functions().items() if not one)),
    "function definitions": (INT8, TEXT, _function_definitions),
    "function ids": (TEXT, INT8, lambda facts: ((name, one) for name, one in _functions().items() if one)),
    "function names": (INT8, TEXT, _function_names),
    "function signature ids": (TEXT, INT8, lambda facts: ((_signature_key(one), one.id) for one in signatures())),
    "function signatures": (INT8, TEXT, lambda facts: ((one.id, _signature_text(one)) for one in signatures())),
    "function results": (INT8, TEXT, _function_results),
    "function visibility": (INT8, BOOL, lambda facts: ((one.id, True) for one in signatures())),
    "index definitions": (INT8, TEXT, _index_definitions),
    "index sizes": (INT8, INT8, _index_sizes),
    "operator signature ids": (TEXT, INT8, _operator_ids),
    "operator signatures": (INT8, TEXT, _operator_texts),
    "relation events": (INT8, INT4, _relation_events),
    "relation ids": (TEXT, INT8, _relation_ids),
    "relation sizes": (INT8, INT8, _relation_sizes),
    "relation texts": (INT8, TEXT, _relation_texts),
    "relation visibility": (INT8, BOOL, _visibility),
    "role ids": (TEXT, INT8, lambda facts: ((one.name, one.id) for one in facts.roles)),
    "role names": (INT8, NAME, lambda facts: ((one.id, one.name) for one in facts.roles)),
    "rule definitions": (INT8, TEXT, _rule_definitions),
    "schema ids": (TEXT, INT8, lambda facts: iter(facts.schemas.items())),
    "temporary schema": (TEXT, INT8, _temporary_schema),
    "schema texts": (INT8, TEXT, lambda facts: ((id, quoted(name)) for name, id in facts.schemas.items())),
    "search path": (INT8, TEXT, lambda facts: enumerate(facts.path)),
    "sequence numbers": (INT8, INT8, _last_numbers),
    "serial sequences": (TEXT, TEXT, _serial_sequences),
    "session": (TEXT, TEXT, lambda facts: iter([("user", facts.user)])),
    "tablespace sizes": (INT8, INT8, lambda facts: iter([(TABLESPACE_ID, sum(facts.sizes.values()))])),
    "type ids": (TEXT, INT8, _type_ids),
    "type name ids": (TEXT, INT8, _type_name_ids),
    "type texts": (INT8, TEXT, _type_texts),
    "type visibility": (INT8, BOOL, _type_visibility),
    "view definitions": (INT8, TEXT, _view_definitions),
}
