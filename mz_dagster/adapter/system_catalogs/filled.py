"""The rows of the relations of `pg_catalog`: of each, the cells that are not as usual."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from mz_dagster.adapter.activity import moment
from mz_dagster.adapter.session_settings import SETTINGS, SPELLED
from mz_dagster.adapter.system_catalogs.facts import (
    OWNER_ID,
    PG_CATALOG_ID,
    TEMPORARY_SCHEMA,
    CatalogEntry,
    Facts,
    type_modifier,
)
from mz_dagster.adapter.system_catalogs.of_functions import functions
from mz_dagster.adapter.system_catalogs.of_types import collation_of, size_of, stored_as, types
from mz_dagster.adapter.system_catalogs.postgres_operators import (
    casts,
    family_functions,
    family_operators,
    operator_class_of,
    operator_classes,
    operator_families,
    operators,
)
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.type_ids import type_id
from mz_dagster.scalars.types import BOOL, INT8, TEXT, Column, Kind
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.statements import CheckConstraint

Cells = Mapping[str, Value]
Rows = Callable[[Facts], Iterable[Cells]]

HEAP_ID, BTREE_ID = 2, 403
CLASS_ID, ATTRIBUTE_DEFAULT_ID, REWRITE_ID, CONSTRAINT_ID, NAMESPACE_ID = 1259, 2604, 2618, 2606, 2615
#: What the number of an advisory lock is told in two halves by.
_HALF = 1 << 32
DATABASE_ID = 5
TABLESPACE_ID = 1663


# ---- relations


def _classes(facts: Facts) -> Iterator[Cells]:
    sizes = facts.row_counts
    for one in facts.relations:
        keys = one.keys
        yield {
            "oid": one.id,
            "relname": one.name,
            "relnamespace": one.schema_id,
            "reltype": one.row_type,
            "relowner": OWNER_ID,
            "relam": 0 if one.kind == "v" else HEAP_ID,
            "relfilenode": 0 if one.kind == "v" else one.id,
            "reltuples": float(sizes.get(one.row.id, 0)),
            "relhasindex": one.has_index,
            "relpersistence": "t" if one.is_temporary else "p",
            "relkind": one.kind,
            "relnatts": len(one.columns),
            "relchecks": len(one.constraints.checks) if one.constraints is not None else 0,
            "relhasrules": one.kind in "vm",
            "relispopulated": True,
            "relreplident": "n" if one.kind == "v" else "d",
            "relacl": _acl(facts, one),
        }
        for key in keys:
            yield _index_class(one, key.id, key.name, len(key.columns))
        for sequence in one.sequences:
            yield {
                **_index_class(one, sequence.id, sequence.name, 3),
                "relam": 0,
                "relkind": "S",
            }
    for index in facts.indexes:
        yield _index_class(index, index.id, index.name, len(index.key))
    for built_in in facts.built_in:
        yield {
            "oid": built_in.id,
            "relname": built_in.name,
            "relnamespace": facts.schemas[built_in.schema],
            "relowner": OWNER_ID,
            "relam": 0 if built_in.is_view else HEAP_ID,
            "relpersistence": "p",
            "relkind": "v" if built_in.is_view else "r",
            "relnatts": len(built_in.columns),
            "relispopulated": True,
            "relreplident": "n",
        }


def _acl(facts: Facts, one: CatalogEntry) -> tuple[str, ...] | None:
    """Returns who may do what with a relation, as PostgreSQL writes it; NULL before anything was granted."""
    names = {role.id: quoted(role.name) for role in facts.roles} | {0: ""}
    granted = facts.granted(one)
    owner = quoted(facts.owner.name)
    return tuple(f"{names[role]}={letters}/{owner}" for role, letters in granted.items() if role in names) or None


def _index_class(on: CatalogEntry, id: int, name: str, columns: int) -> Cells:
    return {
        "oid": id,
        "relname": name,
        "relnamespace": on.schema_id,
        "relowner": OWNER_ID,
        "relam": BTREE_ID,
        "relfilenode": id,
        "relpersistence": "t" if on.is_temporary else "p",
        "relkind": "i",
        "relnatts": columns,
        "relispopulated": True,
        "relreplident": "n",
    }


def _namespaces(facts: Facts) -> Iterator[Cells]:
    for name, id in facts.schemas.items():
        if name != TEMPORARY_SCHEMA or any(one.is_temporary for one in facts.described):
            yield {"oid": id, "nspname": name, "nspowner": OWNER_ID}


def _attribute(facts: Facts, relation: int, number: int, column: Column, **others: Value) -> Cells:
    stored = stored_as(column.type)
    return {
        "attrelid": relation,
        "attname": column.name,
        "atttypid": facts.type_id(column.type),
        "attstattarget": -1,
        "attlen": size_of(column.type),
        "attnum": number,
        "attndims": 2 if column.type.kind is Kind.DIMENSIONED else int(column.type.element is not None),
        "attcacheoff": -1,
        "atttypmod": type_modifier(column.type),
        "attbyval": stored.by_value,
        "attalign": stored.alignment,
        "attstorage": stored.storage,
        "attnotnull": not column.nullable,
        "attislocal": True,
        "attcollation": collation_of(column.type),
        **others,
    }


def _attributes(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        identities = {} if one.constraints is None else one.constraints.identities
        computed = () if one.constraints is None else one.constraints.computed
        for number, column in enumerate(one.columns, start=1):
            identity = identities.get(column.name)
            generated = "" if identity is None else identity.generated
            yield _attribute(
                facts,
                one.id,
                number,
                column,
                atthasdef=one.default(column.name) is not None,
                attidentity={"always": "a", "by default": "d"}.get(generated, ""),
                attgenerated="s" if column.name in computed else "",
            )
        for key in one.keys:
            for number, place in enumerate(key.columns, start=1):
                yield _attribute(facts, key.id, number, one.columns[place - 1], attnotnull=False)
        for sequence in one.sequences:
            for number, column in enumerate(_OF_SEQUENCES, start=1):
                yield _attribute(facts, sequence.id, number, column)
    for index in facts.indexes:
        for number, column in enumerate(index.columns, start=1):
            yield _attribute(facts, index.id, number, column, attnotnull=False)
    for built_in in facts.built_in:
        for number, column in enumerate(built_in.columns, start=1):
            yield _attribute(facts, built_in.id, number, column)


def _defaults(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for number, column in enumerate(one.columns, start=1):
            text = one.default(column.name)
            if text is not None:
                yield {"oid": one.id + number, "adrelid": one.id, "adnum": number, "adbin": text}


# ---- keys and indexes


def _index(id: int, on: CatalogEntry, columns: tuple[int, ...], *, unique: bool, primary: bool) -> Cells:
    count = len(columns)
    types = [on.columns[number - 1].type for number in columns]
    return {
        "indexrelid": id,
        "indrelid": on.id,
        "indnatts": count,
        "indnkeyatts": count,
        "indisunique": unique,
        "indisprimary": primary,
        "indimmediate": True,
        "indisvalid": True,
        "indisready": True,
        "indislive": True,
        "indkey": columns,
        "indcollation": tuple(collation_of(one) for one in types),
        "indclass": tuple(operator_class_of(type_id(one)) for one in types),
        "indoption": (0,) * count,
    }


def _indexes(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for key in one.keys:
            yield _index(key.id, one, key.columns, unique=True, primary=key.primary)
    for index in facts.indexes:
        yield _index(index.id, index.indexed, index.key, unique=False, primary=False)


def _constraint(id: int, name: str, of: CatalogEntry, kind: str, columns: tuple[int, ...]) -> Cells:
    return {
        "oid": id,
        "conname": name,
        "connamespace": of.schema_id,
        "contype": kind,
        "conenforced": True,
        "convalidated": True,
        "conrelid": of.id,
        "confupdtype": " ",
        "confdeltype": " ",
        "confmatchtype": " ",
        "conislocal": True,
        "connoinherit": kind != "c",
        "conkey": columns,
    }


def checks_of(one: CatalogEntry) -> Iterator[tuple[int, CheckConstraint]]:
    """Yields the CHECK constraints of a relation, each with its object id."""
    checks = () if one.constraints is None else one.constraints.checks
    for place, check in enumerate(checks):
        yield one.id + 512 + place, check


def _constraints(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for key in one.key_constraints:
            yield {**_constraint(key.id, key.name, one, "p" if key.primary else "u", key.columns), "conindid": key.id}
        for id, check in checks_of(one):
            names = one.row.relation_type.names
            used = {token.value for token in tokens_of(check.predicate.text)}
            numbers = tuple(number for number, name in enumerate(names, start=1) if name in used)
            yield {**_constraint(id, check.name, one, "c", numbers), "conbin": check.predicate.text}
        for own in one.foreign_keys:
            index, said = own.index, own.key
            yield {
                **_constraint(own.id, said.name, one, "f", own.columns),
                "condeferrable": said.is_deferrable,
                "condeferred": said.is_deferred,
                "conenforced": said.is_enforced,
                "convalidated": said.is_enforced,
                "conindid": 0 if index is None else index.id,
                "confrelid": own.parent.id,
                "confupdtype": said.on_update,
                "confdeltype": said.on_delete,
                "confmatchtype": "f" if said.is_full else "s",
                "confkey": own.referenced,
            }


def key_definition(one: CatalogEntry, columns: tuple[int, ...]) -> str:
    """Returns columns between parentheses, as a definition lists them."""
    names = one.row.relation_type.names
    return f"({', '.join(quoted(names[number - 1]) for number in columns)})"


def index_definitions(facts: Facts) -> Iterator[tuple[CatalogEntry, int, str, tuple[int, ...], str]]:
    """Yields of each index what it is on, its object id, its name, its columns and its definition."""

    def definition(on: CatalogEntry, name: str, columns: tuple[int, ...], unique: str) -> str:
        where = f"{quoted(on.schema)}.{quoted(on.name)}"
        return f"CREATE {unique}INDEX {quoted(name)} ON {where} USING btree {key_definition(on, columns)}"

    for one in facts.relations:
        for key in one.keys:
            yield one, key.id, key.name, key.columns, definition(one, key.name, key.columns, "UNIQUE ")
    for index in facts.indexes:
        on = index.indexed
        yield on, index.id, index.name, index.key, definition(on, index.name, index.key, "")


# ---- sequences, views, comments, dependencies

_OF_SEQUENCES = (Column("last_value", INT8, False), Column("log_cnt", INT8, False), Column("is_called", BOOL, False))


def _sequences(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for sequence in one.sequences:
            definition = sequence.definition
            yield {
                "seqrelid": sequence.id,
                "seqtypid": type_id(sequence.type),
                "seqstart": definition.start,
                "seqincrement": definition.increment,
                "seqmax": definition.maximum,
                "seqmin": definition.minimum,
                "seqcache": 1,
                "seqcycle": definition.cycles,
            }


def _rewrites(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind in "vm":
            yield {
                "oid": one.id,
                "rulename": "_RETURN",
                "ev_class": one.id,
                "ev_type": "1",
                "ev_enabled": "O",
                "is_instead": True,
            }


def _descriptions(facts: Facts) -> Iterator[Cells]:
    for one in facts.described:
        names = one.row.relation_type.names
        for column, text in one.row.comments.items():
            number = names.index(column) + 1 if column in names else 0
            if number or not column:
                yield {"objoid": one.id, "classoid": CLASS_ID, "objsubid": number, "description": text}


def _dependencies(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind in "vm":
            yield _depends(REWRITE_ID, one.id, CLASS_ID, one.id, 0, "i")
            for id in sorted({facts.names.in_place_of(id)[0] for id in one.row.dependencies.values()}):
                if id in facts.by_global_id:
                    yield _depends(REWRITE_ID, one.id, CLASS_ID, facts.by_global_id[id].id, 0, "n")
        for key in one.keys:
            if not key.is_index:
                yield _depends(CLASS_ID, key.id, CONSTRAINT_ID, key.id, 0, "i")
            for number in key.columns:
                yield _depends(CLASS_ID if key.is_index else CONSTRAINT_ID, key.id, CLASS_ID, one.id, number, "a")
        for own in one.foreign_keys:
            for number in own.columns:
                yield _depends(CONSTRAINT_ID, own.id, CLASS_ID, one.id, number, "a")
            for number in own.referenced:
                yield _depends(CONSTRAINT_ID, own.id, CLASS_ID, own.parent.id, number, "n")
            if own.index is not None:
                yield _depends(CONSTRAINT_ID, own.id, CLASS_ID, own.index.id, 0, "n")
        for sequence in one.sequences:
            kind = "a" if sequence.identity.generated == "serial" else "i"
            yield _depends(CLASS_ID, sequence.id, CLASS_ID, one.id, sequence.column, kind)
    for index in facts.indexes:
        for number in index.key:
            yield _depends(CLASS_ID, index.id, CLASS_ID, index.indexed.id, number, "a")


def _depends(catalog: int, id: int, on_catalog: int, on: int, column: int, kind: str) -> Cells:
    return {
        "classid": catalog,
        "objid": id,
        "refclassid": on_catalog,
        "refobjid": on,
        "refobjsubid": column,
        "deptype": kind,
    }


def _enumerated(facts: Facts) -> Iterator[Cells]:
    for one in facts.enumerations:
        enumeration = one.row.columns[0].type.enumeration
        assert enumeration is not None, "it is one"
        for place, label in enumerate(enumeration.labels, start=1):
            yield {"oid": one.id + 1 + place, "enumtypid": one.id, "enumsortorder": float(place), "enumlabel": label}


# ---- views of the above


def _tables(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind == "r":
            yield {
                "schemaname": one.schema,
                "tablename": one.name,
                "tableowner": facts.owner.name,
                "hasindexes": one.has_index,
                "hasrules": False,
                "hastriggers": False,
                "rowsecurity": False,
            }


def _views(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind == "v":
            yield {
                "schemaname": one.schema,
                "viewname": one.name,
                "viewowner": facts.owner.name,
                "definition": one.definition,
            }


def _materialized_views(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        if one.kind == "m":
            yield {
                "schemaname": one.schema,
                "matviewname": one.name,
                "matviewowner": facts.owner.name,
                "hasindexes": one.has_index,
                "ispopulated": True,
                "definition": one.definition,
            }


def _index_views(facts: Facts) -> Iterator[Cells]:
    for on, _, name, _, definition in index_definitions(facts):
        yield {"schemaname": on.schema, "tablename": on.name, "indexname": name, "indexdef": definition}


def _sequence_views(facts: Facts) -> Iterator[Cells]:
    for one in facts.relations:
        for sequence in one.sequences:
            definition = sequence.definition
            yield {
                "schemaname": one.schema,
                "sequencename": sequence.name,
                "sequenceowner": facts.owner.name,
                "data_type": type_id(sequence.type),
                "start_value": definition.start,
                "min_value": definition.minimum,
                "max_value": definition.maximum,
                "increment_by": definition.increment,
                "cycle": definition.cycles,
                "cache_size": 1,
                "last_value": facts.last_numbers.get((one.row.id, one.columns[sequence.column - 1].name)),
            }


# ---- the server


def _databases(facts: Facts) -> Iterator[Cells]:
    yield {
        "oid": DATABASE_ID,
        "datname": facts.database,
        "datdba": OWNER_ID,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": TABLESPACE_ID,
        "datcollate": "C",
        "datctype": "C",
    }


def _groups(facts: Facts) -> Iterator[Cells]:
    """Yields the roles that nobody connects as."""
    for one in facts.roles:
        if not one.can_login:
            members = tuple(other.id for other in facts.roles if one.id in other.groups)
            yield {"groname": one.name, "grosysid": one.id, "grolist": members}


def _memberships(facts: Facts) -> Iterator[Cells]:
    for one in facts.roles:
        for group in one.groups:
            yield {"roleid": group, "member": one.id, "grantor": OWNER_ID, "admin_option": False}


def _roles(facts: Facts) -> Iterator[Cells]:
    for one in facts.roles:
        yield {
            "oid": one.id,
            "rolname": one.name,
            "rolsuper": one.is_superuser,
            "rolinherit": True,
            "rolcreaterole": one.is_superuser,
            "rolcreatedb": False,
            "rolcanlogin": one.can_login,
            "rolreplication": False,
            "rolbypassrls": one.is_superuser,
            "rolconnlimit": -1,
            "rolpassword": "********",
        }


def _users(facts: Facts) -> Iterator[Cells]:
    for one in facts.roles:
        if one.can_login:
            yield {
                "usename": one.name,
                "usesysid": one.id,
                "usecreatedb": False,
                "usesuper": one.is_superuser,
                "userepl": False,
                "usebypassrls": one.is_superuser,
                "passwd": "********",
            }


def _settings(facts: Facts) -> Iterator[Cells]:
    for name, value in sorted(facts.settings.items()):
        setting = SETTINGS.get(name)
        if setting is None:  # of the client's own
            continue
        kind = "bool" if value in ("on", "off") else "string" if setting.kind in ("fixed", "own") else setting.kind
        yield {
            "name": SPELLED.get(name, name),
            "setting": setting.base(value),
            "unit": setting.unit or None,
            "category": "Settings",
            "short_desc": setting.about,
            "context": "internal" if setting.kind == "fixed" else "user",
            "vartype": kind,
            "source": "default" if value == setting.default else "session",
            "min_val": str(setting.least) if setting.kind == "integer" else None,
            "enumvals": setting.choices or None,
            "boot_val": setting.base(setting.default) or None,
            "reset_val": setting.base(value),
            "pending_restart": False,
        }


def _access_methods(facts: Facts) -> Iterator[Cells]:
    yield {"oid": HEAP_ID, "amname": "heap", "amhandler": 3, "amtype": "t"}
    yield {"oid": BTREE_ID, "amname": "btree", "amhandler": 330, "amtype": "i"}


def _collations(facts: Facts) -> Iterator[Cells]:
    for id, name, provider in ((100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")):
        yield {
            "oid": id,
            "collname": name,
            "collnamespace": PG_CATALOG_ID,
            "collowner": OWNER_ID,
            "collprovider": provider,
            "collisdeterministic": True,
            "collencoding": -1,
            "collcollate": None if id == 100 else name,
            "collctype": None if id == 100 else name,
        }


def _table_statistics(facts: Facts) -> Iterator[Cells]:
    """Yields how much there is of each relation that has rows of its own; nobody counts who reads and writes them."""
    counts = facts.row_counts
    for one in facts.relations:
        if one.kind in "rm":
            live = counts.get(one.row.id, 0)
            yield {"relid": one.id, "schemaname": one.schema, "relname": one.name, "n_live_tup": live}


def _all_table_statistics(facts: Facts) -> Iterator[Cells]:
    """Yields the same, and behind them the system catalogs' own, of which nothing is counted."""
    yield from _table_statistics(facts)
    for one in facts.built_in:
        if not one.is_view:
            yield {"relid": one.id, "schemaname": one.schema, "relname": one.name}


def _read_blocks(statistics: Rows) -> Rows:
    """Returns what yields the relations of some statistics: nobody counts which blocks of them are read."""

    def rows(facts: Facts) -> Iterator[Cells]:
        for one in statistics(facts):
            yield {name: one[name] for name in ("relid", "schemaname", "relname")}

    return rows


def _locks(facts: Facts) -> Iterator[Cells]:
    """Yields the advisory locks of this process, which are all that there are."""
    for one in facts.inspection.activity.advisory_locks.told():
        high, low = one.key if len(one.key) > 1 else divmod(one.key[0], _HALF)
        yield {
            "locktype": "advisory",
            "database": DATABASE_ID,
            "classid": high % _HALF,
            "objid": low % _HALF,
            "objsubid": len(one.key),
            "pid": one.session.process_id,
            "mode": "ShareLock" if one.is_shared else "ExclusiveLock",
            "granted": one.is_held,
            "fastpath": False,
        }


def _activity(facts: Facts) -> Iterator[Cells]:
    """Yields the sessions of this process, of others' only whose they are; what each executes is not kept."""
    roles = {one.name: one for one in facts.roles}
    sees_all = roles[facts.user].is_superuser
    for _, began_ms, one in facts.inspection.activity.sessions():
        known: Cells = {
            "datid": DATABASE_ID,
            "datname": facts.database,
            "pid": os.getpid() if one.client is None else one.client.process_id,
            "usesysid": roles[one.role].id if one.role in roles else None,
            "usename": one.role,
            "application_name": one.application,
        }
        if not sees_all and one.role != facts.user:
            yield {**known, "query": "<insufficient privilege>"}
            continue
        block = one.transaction
        yield {
            **known,
            "client_addr": None if one.client is None else one.client.address,
            "backend_start": moment(began_ms),
            "xact_start": None if block is None else moment(block.began_ms),
            "state": None if block is None else f"idle in transaction{' (aborted)' if block.is_failed else ''}",
            "backend_type": "client backend",
        }


def _prepared(facts: Facts) -> Iterator[Cells]:
    """Yields the session's prepared statements; how often each was planned is not counted."""
    for one in facts.names.kept_statements():
        yield {
            "name": one.name,
            "statement": one.text,
            "prepare_time": moment(one.kept_ms),
            "parameter_types": tuple(facts.type_id(type_ or TEXT) for type_ in one.types),
            "from_sql": one.from_sql,
        }


def _cursors(facts: Facts) -> Iterator[Cells]:
    for one in facts.names.kept_cursors():
        yield {
            "name": one.name,
            "statement": one.text,
            "is_holdable": one.holds,
            "is_binary": False,
            "is_scrollable": one.scrolls,
            "creation_time": moment(one.kept_ms),
        }


def _tablespaces(facts: Facts) -> Iterator[Cells]:
    yield {"oid": TABLESPACE_ID, "spcname": "pg_default", "spcowner": OWNER_ID}


def _languages(facts: Facts) -> Iterator[Cells]:
    for id, name in ((12, "internal"), (14, "sql")):
        yield {"oid": id, "lanname": name, "lanowner": OWNER_ID, "lanpltrusted": name == "sql"}


FILLED: Mapping[str, Rows] = {
    "pg_am": _access_methods,
    "pg_attrdef": _defaults,
    "pg_attribute": _attributes,
    "pg_authid": _roles,
    "pg_auth_members": _memberships,
    "pg_class": _classes,
    "pg_collation": _collations,
    "pg_constraint": _constraints,
    "pg_database": _databases,
    "pg_depend": _dependencies,
    "pg_description": _descriptions,
    "pg_enum": _enumerated,
    "pg_group": _groups,
    "pg_index": _indexes,
    "pg_indexes": _index_views,
    "pg_language": _languages,
    "pg_matviews": _materialized_views,
    "pg_namespace": _namespaces,
    "pg_amop": family_operators,
    "pg_amproc": family_functions,
    "pg_cast": casts,
    "pg_opclass": operator_classes,
    "pg_operator": operators,
    "pg_opfamily": operator_families,
    "pg_cursors": _cursors,
    "pg_prepared_statements": _prepared,
    "pg_proc": functions,
    "pg_rewrite": _rewrites,
    "pg_roles": _roles,
    "pg_sequence": _sequences,
    "pg_sequences": _sequence_views,
    "pg_settings": _settings,
    "pg_shadow": _users,
    "pg_locks": _locks,
    "pg_stat_activity": _activity,
    "pg_stat_all_tables": _all_table_statistics,
    "pg_stat_user_tables": _table_statistics,
    "pg_statio_all_tables": _read_blocks(_all_table_statistics),
    "pg_statio_user_tables": _read_blocks(_table_statistics),
    "pg_tables": _tables,
    "pg_tablespace": _tablespaces,
    "pg_type": types,
    "pg_user": _users,
    "pg_views": _views,
}
