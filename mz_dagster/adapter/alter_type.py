"""ALTER TYPE ... ADD VALUE: a type gets another value under all that has to do with it.

Values are stored as members, which tell their order, and there is place for another between any two (`Enumeration`). So
contents stay as they are, and what is kept of them, too: tables, sources, indexes and views go on. In the catalog the
type and all that depends on it know the value from one transaction on, and every process binds anew what it meets of
them after that.

A view goes by more than its input where its query makes values of texts, or asks for the last of them: a text that was
no value was an error of its row, and is a value now. Such a view, and what reads it, hydrates anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mz_dagster.adapter.alter_in_place import readers_of
from mz_dagster.adapter.definition import Definition, define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.replanning import recreate, with_readers
from mz_dagster.catalog import ObjectRow, TypeAlteration
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.scalars.types import Enumeration
from mz_dagster.sql import AlterType, CreateType, parse
from mz_dagster.sql.errors import DuplicateObject, InvalidParameterValue
from mz_dagster.sql.type_statements import type_text


def add_value(engine: Engine, row: ObjectRow, statement: AlterType) -> dict[GlobalId, GlobalId]:
    """Gives a type a value.

    Returns:
        The new ids of what is made anew, by the old ones.

    Raises:
        DuplicateObject: It has that value, and IF NOT EXISTS was not said.
        InvalidParameterValue: It has none like the one beside which it is to come.
        TypeAltered: It was given another one meanwhile; nothing was done.
    """
    before = row.columns[0].type.enumeration
    assert before is not None, "every type that is created is an enumeration"
    if statement.label in before.labels:
        if statement.if_not_exists:
            return {}
        raise DuplicateObject(
            f'enum label "{statement.label}" already exists',
            hint="ADD VALUE IF NOT EXISTS leaves it as it is.",
            position=statement.offset + 1,
        )
    after = before.with_value(statement.label, _place(before, statement))
    (created,) = parse(row.sql)
    assert isinstance(created, CreateType)
    text = type_text(created.name, after.labels)
    readers = readers_of(engine, row.id)
    alteration = TypeAlteration(row.id, text, before, after, frozenset(one.id for one in readers))
    known = _AlteredDefinitions(engine, alteration)
    changed = {one.id for one in readers if known.is_planned_otherwise(one)}
    reason = f"{row.name} has another value"
    anew = with_readers(engine.catalog, lambda one: reason if one.id in changed else None)
    done = recreate(engine.catalog, engine.definitions, anew, known.made, alteration)
    return {one.row.id: id for one, id in done}


def _place(before: Enumeration, statement: AlterType) -> int:
    """Returns how many values come before the new one."""
    labels = before.labels
    if statement.neighbour is None:
        return len(labels)
    if statement.neighbour not in labels:
        raise InvalidParameterValue(
            f'"{statement.neighbour}" is not an existing enum label',
            hint=f"Its values are {', '.join(labels)}.",
            position=statement.offset + 1,
        )
    return labels.index(statement.neighbour) + (not statement.comes_before)


@dataclass(frozen=True, slots=True)
class _AlteredDefinitions:
    """Defines objects as if a type had always had another value.

    Attributes:
        engine: The project.
        alteration: What becomes of the type.
        made: The definitions.
    """

    engine: Engine
    alteration: TypeAlteration
    made: dict[GlobalId, Definition] = field(default_factory=dict)

    def is_planned_otherwise(self, row: ObjectRow) -> bool:
        """Returns whether what an object keeps is not what it would have computed; those it reads were asked before."""
        if row.kind not in ("view", "materialized view", "index", "check"):
            return False
        try:
            before = self.engine.definitions.definition_of(row)
        except Error:  # it does not step before it is mended
            return False
        (statement,) = parse(row.sql)
        self.made[row.id] = now = define(
            statement,  # type: ignore[arg-type]  # only definitions are ever stored
            _WithValue(self.engine.definitions.as_created(row), self.alteration, self.made),
            default_timeline=row.timeline or self.engine.project.timeline,
            name=row.created_as,
            indexed=bool(row.options.get("copy", False)),
        )
        return repr(before.plan) != repr(now.plan)  # in which types are told by their names


@dataclass(frozen=True, slots=True)
class _WithValue:
    """A resolver of names to what they stand for once a type has another value."""

    resolver: Resolver
    alteration: TypeAlteration
    views: Mapping[GlobalId, Definition]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        item = self.resolver.resolve(name)
        if item is None:
            return None
        if item.expansion is not None:
            return self.views[item.id].item(item.id) if item.id in self.views else item
        before, after = self.alteration.before, self.alteration.after
        stored = None if item.stored is None else item.stored.with_values(before, after)
        return replace(item, relation_type=item.relation_type.with_values(before, after), stored=stored)

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.resolver.names()
