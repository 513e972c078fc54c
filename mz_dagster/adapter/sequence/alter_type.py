"""ALTER TYPE ... ADD VALUE and RENAME VALUE: a type gets another value, or a label, under all that has to do with it.

Values are stored as members, which tell their order, and there is place for another between any two (`Enumeration`). So
contents stay as they are, and what is kept of them, too: tables, sources, indexes and views go on. In the catalog the
type and all that depends on it know the value from one transaction on, and every process binds anew what it meets of
them after that.

A view goes by more than its input where its query makes values of texts, or texts of values, or asks for the last of
them: a text that was no value was an error of its row, and is a value now. Such a view, and what reads it, hydrates
anew. So does a sink whose table has labels that are others now.

A member keeps the label that it was stored with; the type says what it is called. Definitions that say the old label
of a value as a literal say the new one from then on, as PostgreSQL shows them. Which literals are such is found by
binding: one that is replaced by what is no label is an error of the type only if it is one of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mz_dagster.adapter.alter_in_place import readers_of
from mz_dagster.adapter.definition import Definition, define_stored
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.replanning import recreate, with_readers
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import named
from mz_dagster.catalog import ObjectRow, TypeAlteration
from mz_dagster.errors import Error, ProgrammingError, first_line
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.scalars.types import Enumeration
from mz_dagster.sql import AlterType, CreateType, parse
from mz_dagster.sql.errors import DuplicateObject, InvalidParameterValue
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of
from mz_dagster.sql.type_statements import label_text, type_text

#: What has a text that may say values.
_DEFINED = ("table", "view", "materialized view", "index", "check")
#: What is no value of any type: no label begins with this character of nobody's.
_NO_LABEL = "\uf8ff no label"


class LabelUsed(ProgrammingError):
    """Others say the label of a value in a way that cannot be written anew; nothing was done."""

    sqlstate = "2BP01"


def _alter_values(engine: Engine, row: ObjectRow, statement: AlterType) -> dict[GlobalId, GlobalId]:
    """Gives a type a value, or one of its values another label.

    Returns:
        The new ids of what is made anew, by the old ones.

    Raises:
        DuplicateObject: It has that value, and IF NOT EXISTS was not said.
        InvalidParameterValue: It has none like the one beside which it is to come, or that is to be renamed.
        LabelUsed: A definition says the label where no other can be written in its place.
        TypeAltered: It was altered meanwhile; nothing was done.
    """
    before = row.columns[0].type.enumeration
    assert before is not None, "every type that is created is an enumeration"
    after = _altered(before, statement)
    if after == before:
        return {}
    (created,) = parse(row.sql)
    assert isinstance(created, CreateType)
    readers = readers_of(engine, row.id)
    texts = {row.id: type_text(created.name, after.labels)}
    if statement.new_label is not None:
        texts |= _renamed_texts(engine, readers, before, statement.label, statement.new_label)
    alteration = TypeAlteration(row.id, texts, before, after, frozenset(one.id for one in readers))
    known = _AlteredDefinitions(engine, alteration)
    changed = {one.id for one in readers if known.is_other(one)}
    reason = f"{row.name} has another {'value' if statement.new_label is None else 'label'}"
    anew = with_readers(engine.catalog, lambda one: reason if one.id in changed else None)
    done = recreate(engine.catalog, engine.definitions, anew, known.made, alteration)
    return {one.row.id: id for one, id in done}


def _altered(before: Enumeration, statement: AlterType) -> Enumeration:
    """Returns the values from then on; those of before if there is nothing to do."""
    new = statement.label if statement.new_label is None else statement.new_label
    if statement.new_label is not None:
        _check_known(before, statement.label, statement)
    if new in before.labels:
        if statement.if_not_exists:
            tell(f'enum label "{new}" already exists, skipping', "42710")
            return before
        adding = statement.new_label is None
        raise DuplicateObject(
            f'enum label "{new}" already exists',
            hint="ADD VALUE IF NOT EXISTS leaves it as it is." if adding else None,
            position=statement.offset + 1,
        )
    if statement.new_label is not None:
        return before.with_label(statement.label, new)
    return before.with_value(new, _place(before, statement))


def _place(before: Enumeration, statement: AlterType) -> int:
    """Returns how many values come before the new one."""
    labels = before.labels
    if statement.neighbour is None:
        return len(labels)
    _check_known(before, statement.neighbour, statement)
    return labels.index(statement.neighbour) + (not statement.comes_before)


def _check_known(before: Enumeration, label: str, statement: AlterType) -> None:
    if label not in before.labels:
        raise InvalidParameterValue(
            f'"{label}" is not an existing enum label',
            hint=f"Its values are {', '.join(before.labels)}.",
            position=statement.offset + 1,
        )


def _renamed_texts(
    engine: Engine, readers: Iterable[ObjectRow], type_: Enumeration, old: str, new: str
) -> dict[GlobalId, str]:
    """Returns the definitions that say a label of a type, with the new one in its place."""
    found = {}
    for row in readers:
        if row.kind not in _DEFINED:
            continue
        text = row.sql
        for token in reversed(tokens_of(row.sql)):
            if token.kind is TokenKind.STRING and token.value == old and _is_value(engine, row, type_, token):
                text = text[: token.start] + label_text(new) + text[token.end :]
        if text != row.sql:
            found[row.id] = text
    return found


def _is_value(engine: Engine, row: ObjectRow, type_: Enumeration, token: Token) -> bool:
    """Returns whether a literal in a definition is a value of a type."""
    text = row.sql[: token.start] + label_text(_NO_LABEL) + row.sql[token.end :]
    try:
        define_stored(row, text, engine.definitions.as_created(row), engine.project.timeline)
    except Error as error:
        return str(error).startswith(f"invalid input value for enum {type_.name}: ")
    return False


@dataclass(frozen=True, slots=True)
class _AlteredDefinitions:
    """Defines objects as if a type had always had the values that it gets.

    Attributes:
        engine: The project.
        alteration: What becomes of the type.
        made: The definitions.
    """

    engine: Engine
    alteration: TypeAlteration
    made: dict[GlobalId, Definition] = field(default_factory=dict)

    def is_other(self, row: ObjectRow) -> bool:
        """Returns whether what an object keeps is not what it would have; those it reads were asked before."""
        before, after = self.alteration.before, self.alteration.after
        if row.kind == "sink":  # whose table has labels
            known_by = row.relation_type.with_values(before, after)
            return before.renamed != after.renamed and known_by != row.relation_type
        if row.kind not in _DEFINED:
            return False
        try:
            known = self.engine.definitions.bound_definition_of(row)
        except Error:  # it does not step before it is mended
            return False
        text = self.alteration.texts.get(row.id, row.sql)
        resolver = _WithValue(self.engine.definitions.as_created(row), self.alteration, self.made)
        try:
            self.made[row.id] = now = define_stored(row, text, resolver, self.engine.project.timeline)
        except Error as error:
            raise LabelUsed(
                f'cannot alter type {before.name} because {row.kind} "{row.name or row.created_as}" says a value of it',
                detail=f"It would no longer bind: {first_line(error)}.",
                hint="Write the value as a literal of its own there, or drop it and create it anew.",
            ) from error
        return row.kind != "table" and repr(known.plan) != repr(now.plan)  # in which types are told by their names


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


def alter_type(context: Context, statement: AlterType, _: Sequence[object]) -> Result:
    """Gives a type another value, or a value another label.

    Raises:
        UndefinedType: There is no such type.
    """
    names = context.names
    row = named(names, statement.name, "type", if_exists=False)
    assert row is not None
    for old, new in _alter_values(names.engine, row, statement).items():
        names.follow(old, new)
    return Result("ALTER TYPE")
