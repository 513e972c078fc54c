"""The catalog's own relations: the engine's state, as rows, in `mz_catalog` and `mz_internal`.

Those of PostgreSQL's system catalogs (`system_catalogs/`) are others of the kind.

Each is answered from the catalog alone, without Spark's data and without a step: it has no timeline, is readable at
every time, and shows the state at the moment of the query. Its columns are declared beside the function
that fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mz_dagster.adapter.system_catalogs import SYSTEM_RELATIONS, BuiltIn, Facts, SystemRelation
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.types import BOOL, INT8, TEXT, Column, RelationType

Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IntrospectionRelation:
    """One introspection relation."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Catalog], Iterable[Row]]

    @property
    def id(self) -> GlobalId:
        """An id outside the catalog's sequence."""
        return GlobalId(f"mz:{self.name}")

    @property
    def relation_type(self) -> RelationType:
        """Its columns; nothing is promised about keys."""
        return RelationType(self.columns)

    def item(self) -> Item:
        """Returns what its name stands for."""
        return Item(self.id, self.name, "introspection", self.relation_type, None)

    def constant(self, facts: Facts) -> Constant:
        """Returns its rows now, as a plan."""
        catalog = facts.catalog
        rows = tuple(
            tuple(Literal(value, column.type) for value, column in zip(row, self.columns, strict=True))
            for row in self.rows(catalog)
        )
        return Constant(rows, self.relation_type)


def _time(frontier: Antichain[int]) -> int | None:
    """Returns a frontier's time, or NULL for the empty one, which is closed for good."""
    return None if frontier.is_empty else frontier.only


def _named(catalog: Catalog) -> Iterable[ObjectRow]:
    return (one for one in catalog.objects() if one.kind != "schema")


def _objects(catalog: Catalog) -> Iterable[Row]:
    for one in _named(catalog):
        yield (one.id, one.name, one.kind, one.timeline, one.sql)


def _columns(catalog: Catalog) -> Iterable[Row]:
    for one in _named(catalog):
        for position, column in enumerate(one.columns, start=1):
            yield (one.id, column.name, position, "NO" if not column.nullable else "YES", str(column.type))


def _comments(catalog: Catalog) -> Iterable[Row]:
    for one in _named(catalog):
        places = {column.name: position for position, column in enumerate(one.columns, start=1)}
        for column, text in sorted(one.comments.items()):
            yield (one.id, one.kind, places.get(column), text)


def _frontiers(catalog: Catalog) -> Iterable[Row]:
    names = {one.id: one.name for one in catalog.objects()}
    for row in catalog.collections():
        yield (row.id, names.get(row.id), row.timeline, _time(row.since), _time(row.upper), row.reason)


def _shards(catalog: Catalog) -> Iterable[Row]:
    rows = catalog.collections()
    batches = catalog.live_batches(tuple(row.id for row in rows))
    for row in rows:
        stats = [batch.stats for batch in batches[row.id]]
        yield (
            row.id,
            row.shard,
            len(stats),
            sum(one.rows for one in stats),
            sum(one.errors for one in stats),
            sum(one.files for one in stats),
            sum(one.bytes for one in stats),
        )


def _capabilities(catalog: Catalog) -> Iterable[Row]:
    for one in catalog.capabilities():
        yield (one.label, one.collection, one.right, _time(one.frontier), one.holder, one.until_ms, one.is_live)


def _ticks(catalog: Catalog) -> Iterable[Row]:
    for timeline in catalog.timelines():
        for tick in catalog.ticks(timeline.name):
            yield (timeline.name, tick)


def _text(name: str, nullable: bool = False) -> Column:
    return Column(name, TEXT, nullable)


def _int(name: str, nullable: bool = False) -> Column:
    return Column(name, INT8, nullable)


RELATIONS: tuple[IntrospectionRelation, ...] = (
    IntrospectionRelation(
        "mz_internal",
        "mz_frontiers",
        (
            _text("object_id"),
            _text("name", True),
            _text("timeline"),
            _int("read_frontier", True),
            _int("write_frontier", True),
            _text("failure", True),
        ),
        _frontiers,
    ),
    IntrospectionRelation(
        "mz_catalog",
        "mz_objects",
        (_text("id"), _text("name", True), _text("type"), _text("timeline", True), _text("definition")),
        _objects,
    ),
    IntrospectionRelation(
        "mz_catalog",
        "mz_columns",
        (_text("id"), _text("name"), _int("position"), _text("nullable"), _text("type")),
        _columns,
    ),
    IntrospectionRelation(
        "mz_internal",
        "mz_comments",
        (_text("id"), _text("object_type"), _int("object_sub_id", True), _text("comment")),
        _comments,
    ),
    IntrospectionRelation(
        "mz_internal",
        "mz_shards",
        (
            _text("object_id"),
            _text("folder"),
            _int("batches"),
            _int("updates"),
            _int("errors"),
            _int("files"),
            _int("bytes"),
        ),
        _shards,
    ),
    IntrospectionRelation(
        "mz_internal",
        "mz_capabilities",
        (
            _text("capability", True),
            _text("object_id"),
            _text("kind"),
            _int("frontier", True),
            _text("holder"),
            _int("expires_at", True),
            Column("live", BOOL, nullable=False),
        ),
        _capabilities,
    ),
    IntrospectionRelation("mz_internal", "mz_ticks", (_text("timeline"), _int("tick")), _ticks),
)


_EVERY: tuple[IntrospectionRelation | SystemRelation, ...] = (*RELATIONS, *SYSTEM_RELATIONS)
_BY_NAME: Mapping[tuple[str, ...], IntrospectionRelation | SystemRelation] = {
    **{(one.schema, one.name): one for one in _EVERY},
    **{(one.name,): one for one in _EVERY if one.schema != "information_schema"},
}
_BY_ID = {one.id: one for one in _EVERY}
_FIRST_ID = 12_500
"""The object id of the first of the engine's own."""
#: All of them, as the system catalogs tell of them.
BUILT_IN = (
    *(BuiltIn(one.schema, one.name, one.object_id, one.relation_type.columns, one.is_view) for one in SYSTEM_RELATIONS),
    *(BuiltIn(one.schema, one.name, _FIRST_ID + n, one.columns, is_view=True) for n, one in enumerate(RELATIONS)),
)


def find(name: tuple[str, ...]) -> IntrospectionRelation | SystemRelation | None:
    """Returns the relation of that name, qualified with its schema or, if that is searched always, not; or None."""
    return _BY_NAME.get(name)


def by_id(id: GlobalId) -> IntrospectionRelation | SystemRelation | None:
    """Returns the relation of that id, or None."""
    return _BY_ID.get(id)
