"""What there is: objects, columns, indexes, comments, and what depends on what."""

from __future__ import annotations

from collections.abc import Iterable

from mz_dagster.adapter.checks import about, options_of
from mz_dagster.adapter.introspection.relation import Fill, Row, relation
from mz_dagster.adapter.system_catalogs import Facts
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.sql.schemas import names_in
from mz_dagster.sql.table_text import type_text


def _named(catalog: Catalog) -> Iterable[ObjectRow]:
    return (one for one in catalog.objects() if one.kind != "schema")


def _objects(facts: Facts) -> Iterable[Row]:
    for one in _named(facts.catalog):
        yield (one.id, one.name, one.kind, one.timeline, one.sql, one.schema, one.owner)


def _schemas(facts: Facts) -> Iterable[Row]:
    for one in facts.names.schemas():
        yield (one.id, names_in(str(one.name))[0])


def _of_kind(kind: str) -> Fill:
    def rows(facts: Facts) -> Iterable[Row]:
        for one in facts.relations:
            if one.row.kind == kind:
                yield (one.row.id, one.name, one.schema, one.row.timeline, one.row.sql)

    return rows


_OF_KIND = """
    id          text    its id
    name        text    its name in its schema
    schema      text    its schema
    timeline    text?   the timeline of its times; NULL if it never changes
    definition  text    the statement that defines it
"""


def _columns(facts: Facts) -> Iterable[Row]:
    for one in _named(facts.catalog):
        for position, column in enumerate(one.columns, start=1):
            yield (one.id, column.name, position, "NO" if not column.nullable else "YES", type_text(column.type))


def _comments(facts: Facts) -> Iterable[Row]:
    for one in _named(facts.catalog):
        places = {column.name: position for position, column in enumerate(one.columns, start=1)}
        for column, text in sorted(one.comments.items()):
            yield (one.id, one.kind, places.get(column), text)


def _indexes(facts: Facts) -> Iterable[Row]:
    for one in facts.indexes:
        yield (one.row.id, one.name, one.schema, one.indexed.row.id, one.row.has_collection)


def _checks(facts: Facts) -> Iterable[Row]:
    state = facts.catalog.state()
    for one in facts.relations:
        if one.row.kind == "check":
            options = options_of(one.row)
            yield (one.row.id, one.name, one.schema, about(one.row, state), options.severity, options.blocking)


def _index_columns(facts: Facts) -> Iterable[Row]:
    for one in facts.indexes:
        names = one.indexed.row.relation_type.names
        for position, number in enumerate(one.key, start=1):
            yield (one.row.id, position, number, names[number - 1])


def _object_dependencies(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.objects():
        for id in sorted(set(one.dependencies.values())):
            yield (one.id, id)


def _compute_dependencies(facts: Facts) -> Iterable[Row]:
    for one in facts.catalog.collections():
        for id in sorted(facts.catalog.holds(one.id)):
            yield (one.id, id)


RELATIONS = (
    relation(
        "mz_catalog",
        "mz_objects",
        "Everything that was created, and the arrangements that serve it.",
        """
        id          text    its id, which nothing else ever has
        name        text?   its name, with its schema if that is not `public`; NULL of what has none
        type        text    `table`, `source`, `view`, `materialized view`, `check`, `index`, `arrangement`, `sink`, ...
        timeline    text?   the timeline of its times; NULL if it never changes
        definition  text    the statement that defines it
        schema      text    its schema
        served      text?   of an arrangement: the object that it serves
        """,
        _objects,
    ),
    relation(
        "mz_catalog",
        "mz_schemas",
        "The schemas that were created.",
        """
        id    text  its id
        name  text  its name
        """,
        _schemas,
    ),
    relation("mz_catalog", "mz_tables", "The tables that can be named.", _OF_KIND, _of_kind("table")),
    relation("mz_catalog", "mz_sources", "The sources that can be named.", _OF_KIND, _of_kind("source")),
    relation("mz_catalog", "mz_views", "The plain views that can be named.", _OF_KIND, _of_kind("view")),
    relation(
        "mz_catalog",
        "mz_materialized_views",
        "The materialized views that can be named.",
        _OF_KIND,
        _of_kind("materialized view"),
    ),
    relation(
        "mz_catalog",
        "mz_columns",
        "The columns of each object.",
        """
        id        text    the object
        name      text    the column's name
        position  bigint  its place, from 1 on
        nullable  text    `YES` or `NO`
        type      text    its type
        """,
        _columns,
    ),
    relation(
        "mz_catalog",
        "mz_indexes",
        "The indexes that can be named.",
        """
        id       text     its id
        name     text     its name in its schema
        schema   text     its schema
        on_id    text     what it is on
        is_copy  boolean  whether it is a copy of the rows; else it is the order in which they are stored
        """,
        _indexes,
    ),
    relation(
        "mz_catalog",
        "mz_checks",
        "The checks that can be named, each of which is a relation with its violations.",
        """
        id        text     its id
        name      text     its name in its schema
        schema    text     its schema
        on_id     text     what it is about
        severity  text     `warn` or `error`
        blocking  boolean  whether what is downstream waits until it holds
        """,
        _checks,
    ),
    relation(
        "mz_catalog",
        "mz_index_columns",
        "The columns of each index.",
        """
        index_id        text    the index
        index_position  bigint  the column's place in the key, from 1 on
        on_position     bigint  its place in what the index is on
        name            text    its name there
        """,
        _index_columns,
    ),
    relation(
        "mz_internal",
        "mz_object_dependencies",
        "What the definition of each object names.",
        """
        object_id             text  the object
        referenced_object_id  text  what it names, and the collections that its plan reads
        """,
        _object_dependencies,
    ),
    relation(
        "mz_internal",
        "mz_compute_dependencies",
        "What each collection is computed from, by its plan.",
        """
        object_id      text  the collection: of an object, or an arrangement
        dependency_id  text  a collection that its plan reads
        """,
        _compute_dependencies,
    ),
    relation(
        "mz_internal",
        "mz_comments",
        "What COMMENT said.",
        """
        id             text     the object
        object_type    text     what it is
        object_sub_id  bigint?  the place of the column that it is about; NULL of the object itself
        comment        text     the comment
        """,
        _comments,
    ),
)
