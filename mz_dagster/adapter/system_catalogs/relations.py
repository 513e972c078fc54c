"""The relations of the system catalogs: columns, and what fills them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mz_dagster.adapter.system_catalogs import columns as declared
from mz_dagster.adapter.system_catalogs.facts import Facts
from mz_dagster.adapter.system_catalogs.filled import FILLED
from mz_dagster.adapter.system_catalogs.information import INFORMATION
from mz_dagster.errors import NotSupportedError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Constant, Map, Projection, Relation
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.type_ids import LABELLED
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    FLOAT4,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMPTZ,
    Column,
    Kind,
    RelationType,
    ScalarType,
    array_of,
)
from mz_dagster.scalars.values import Dimensioned

#: The columns of a row that are not as usual, by their names.
Cells = Mapping[str, Value]

_TYPES: Mapping[str, ScalarType] = {
    "bool": BOOL,
    "bytea": BYTEA,
    "float4": FLOAT4,
    "int2": INT2,
    "int4": INT4,
    "int8": INT8,
    "text": TEXT,
    "timestamptz": TIMESTAMPTZ,
    "aclitem": TEXT,
    "pg_node_tree": TEXT,
    "anyarray": array_of(TEXT),
    "inet": TEXT,
    "pg_lsn": TEXT,
    **LABELLED,
}
#: What a column that may not be NULL has where a row does not say it.
_USUAL: Mapping[ScalarType, Value] = {BOOL: False, BYTEA: b"", FLOAT4: 0.0, INT2: 0, INT4: 0, INT8: 0, TEXT: ""}
#: Of tables.
_HIDDEN = (Column("tableoid", LABELLED["oid"], False),)
_FIRST_VIEW_ID = 12_000
"""The object id of the first relation that is a view in PostgreSQL."""

#: What there is and is not told.
_REFUSED = frozenset((
    "pg_aggregate", "pg_statistic", "pg_stats",
    "pg_statistic_ext_data", "pg_stat_database",
    "pg_stat_replication", "pg_replication_slots",
    "pg_timezone_names", "pg_timezone_abbrevs", "pg_available_extensions", "pg_hba_file_rules", "pg_file_settings",
    "pg_config", "pg_shmem_allocations", "pg_stat_user_indexes", "pg_stat_ssl", "pg_stat_statements",
))  # fmt: skip
_REFUSED_INFORMATION = frozenset((
    "routines", "parameters", "column_privileges", "element_types",
    "data_type_privileges", "usage_privileges", "attributes", "user_defined_types", "view_table_usage",
    "view_column_usage", "routine_privileges", "collations", "sql_features",
))  # fmt: skip


@dataclass(frozen=True)
class SystemRelation:
    """A relation of the system catalogs.

    Attributes:
        schema: `pg_catalog` or `information_schema`.
        name: Its name.
        object_id: Its object id.
        columns: Its columns, as they are shown.
        rows: Yields of each row what is not as usual.
        is_view: Whether PostgreSQL has it as a view.
    """

    schema: str
    name: str
    object_id: int
    columns: tuple[Column, ...]
    rows: Callable[[Facts], Iterable[Cells]]
    is_view: bool

    @property
    def id(self) -> GlobalId:
        """An id outside the catalog's sequence."""
        return GlobalId(f"{self.schema}:{self.name}")

    @cached_property
    def relation_type(self) -> RelationType:
        """Its columns, behind them those of a table that `*` does not show; nothing is promised about keys."""
        return RelationType((*self.columns, *(() if self.is_view else _HIDDEN)))

    def item(self) -> Item:
        """Returns what its name stands for."""
        hidden = self.relation_type.arity - len(self.columns)
        return Item(self.id, self.name, "introspection", self.relation_type, None, schema=self.schema, hidden=hidden)

    def constant(self, facts: Facts) -> Relation:
        """Returns its rows now, as a plan: columns that are the same in all rows stand beside those that are not."""
        columns = self.relation_type.columns
        rows = list(self.rows(facts))
        told = {name for cells in rows for name in cells}
        always: Cells = {"tableoid": self.object_id}
        varying = [one for one in columns if one.name in told]
        literals = tuple(zip(*(_literals(one, rows) for one in varying), strict=True)) if varying else ((),) * len(rows)
        found: Relation = Constant(literals, RelationType(tuple(varying)))
        same = [one for one in columns if one.name not in told]
        if not same:
            return found
        values = tuple(Literal(always.get(one.name, _stored(usual_value(one), one.type)), one.type) for one in same)
        found = Map(found, values, tuple(one.name for one in same))
        places = {one.name: place for place, one in enumerate((*varying, *same))}
        return Projection(found, tuple(places[one.name] for one in columns))


def usual_value(column: Column) -> Value:
    """Returns what a column has where a row does not say it."""
    if column.nullable:
        return None
    return () if column.type.array_element is not None else _USUAL[column.type]


def _literals(column: Column, rows: Sequence[Cells]) -> list[Literal]:
    """Returns the cells of a column: a value that many rows have is one literal."""
    name, type_, usual = column.name, column.type, usual_value(column)
    made: dict[Value, Literal] = {}
    found = []
    for cells in rows:
        value = cells.get(name, usual)
        literal = made.get(value)
        if literal is None:
            literal = made[value] = Literal(_stored(value, type_), type_)
        found.append(literal)
    return found


def _stored(value: Value, type_: ScalarType) -> Value:
    """Returns a cell in its type's form: a vector is told as a tuple, and its first subscript is 0."""
    if type_.kind is not Kind.DIMENSIONED or value is None:
        return value
    assert isinstance(value, tuple), "vectors are told as tuples"
    return Dimensioned(value, (len(value),), (0,)) if value else Dimensioned()


def refused(name: tuple[str, ...]) -> NotSupportedError | None:
    """Returns the error for a relation that PostgreSQL has and that is not told here, None for any other name."""
    schema = name[0] if len(name) > 1 else "pg_catalog"
    if (schema == "pg_catalog" and name[-1] in _REFUSED) or (
        schema == "information_schema" and name[-1] in _REFUSED_INFORMATION
    ):
        return NotSupportedError(
            f'"{schema}.{name[-1]}" is not told',
            detail="PostgreSQL has such a relation; to answer as if it were empty would be wrong.",
            hint="docs/clients/index.md lists the relations that there are.",
        )
    return None


def _columns(text: str) -> Iterator[Column]:
    for one in text.split():
        name, _, type_ = one.partition(":")
        nullable, type_ = type_.endswith("?"), type_.removesuffix("?")
        element = _TYPES[type_.removesuffix("[]")]
        yield Column(name, array_of(element) if type_.endswith("[]") else element, nullable)


def _nothing(facts: Facts) -> Iterable[Cells]:
    return ()


def _declared() -> Iterator[SystemRelation]:
    parts: tuple[tuple[str, str, Mapping[str, Callable[[Facts], Iterable[Cells]]]], ...] = (
        ("pg_catalog", declared.FILLED, FILLED),
        ("pg_catalog", declared.EMPTY, {}),
        ("information_schema", declared.INFORMATION, INFORMATION),
    )
    place = 0
    for schema, text, rows in parts:
        for block in text.strip().replace("\n    ", " ").splitlines():
            name, id, columns = block.split(" ", 2)
            place += 1
            object_id = int(id) or _FIRST_VIEW_ID + place
            yield SystemRelation(
                schema, name, object_id, tuple(_columns(columns)), rows.get(name, _nothing), is_view=id == "0"
            )


SYSTEM_RELATIONS: tuple[SystemRelation, ...] = tuple(_declared())
