"""`ALTER TABLE`: its actions, and the definition that they make of another.

Actions are applied one after the other. What is added is parsed beside what is there, so that constraints get their
names as in `CREATE TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mz_dagster.functions import CastContext, Failure, cast, type_name
from mz_dagster.notices import tell
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column, Kind, RelationType, ScalarType
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.column_definitions import Columns, parse_column, parse_constraint
from mz_dagster.sql.constraints import bind_check
from mz_dagster.sql.cursor import TokenCursor, quoted
from mz_dagster.sql.errors import (
    ColumnUsed,
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    InvalidSyntax,
    InvalidTableDefinition,
    UndefinedColumn,
    UndefinedObject,
    UnsupportedForm,
    WrongColumnState,
    suggestion,
)
from mz_dagster.sql.identity import SERIAL_TYPES, integer, parse_identity, serial
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of
from mz_dagster.sql.options import Common
from mz_dagster.sql.schemas import names_in
from mz_dagster.sql.statements import (
    AlterAction,
    AlterTable,
    CheckConstraint,
    ColumnDefinition,
    CreateTable,
    Name,
    SqlText,
)
from mz_dagster.sql.type_names import column_type

_CONSTRAINTS = "constraint|primary|unique|check|foreign|exclude"


def parse_alter_table(cursor: TokenCursor, common: Common, name: Name, if_exists: bool) -> AlterTable:
    """Moves past the actions of `ALTER TABLE name`."""
    actions = [_action(cursor)]
    while not actions[0].stands_alone and cursor.accepts_symbol(","):
        actions.append(_action(cursor))
    return AlterTable(*common, name, tuple(actions), if_exists)


def _action(cursor: TokenCursor) -> AlterAction:
    offset = cursor.current.start
    if cursor.accepts("add"):
        if cursor.sees(_CONSTRAINTS):
            return AlterAction("add constraint", "", offset, text=cursor.text_until(_end(cursor)))
        cursor.accepts("column")
        missing = cursor.accepts("if", "not", "exists")
        column = cursor.current.value
        return AlterAction("add column", column, offset, missing, text=cursor.text_until(_end(cursor)))
    if cursor.accepts("drop"):
        kind = "drop constraint" if cursor.accepts("constraint") else "drop column"
        cursor.accepts("column")
        there = cursor.accepts("if", "exists")
        named = cursor.identifier("a constraint" if kind == "drop constraint" else "a column")
        cascade = cursor.accepts("cascade")
        cursor.accepts("restrict")
        return AlterAction(kind, named, offset, there, cascade=cascade)  # type: ignore[arg-type]  # one of two literals
    if cursor.accepts("rename"):
        is_constraint = cursor.accepts("constraint")
        cursor.accepts("column")
        named = cursor.identifier("a constraint" if is_constraint else "a column")
        cursor.expects("to")
        new = cursor.identifier("the new name")
        return AlterAction("rename constraint" if is_constraint else "rename column", named, offset, new_name=new)
    if cursor.accepts("alter"):
        cursor.accepts("column")
        column = cursor.identifier("a column")
        if cursor.accepts("set", "not", "null"):
            return AlterAction("set not null", column, offset)
        if cursor.accepts("drop", "not", "null"):
            return AlterAction("drop not null", column, offset)
        if cursor.sees("add", "generated"):
            cursor.advance()
            return AlterAction("add identity", column, offset, text=cursor.text_until(_end(cursor)))
        if cursor.accepts("drop", "identity"):
            return AlterAction("drop identity", column, offset, cursor.accepts("if", "exists"))
        if cursor.accepts("restart"):
            cursor.accepts("with")
            number = None if cursor.current.kind is TokenKind.END else integer(cursor)
            return AlterAction("restart", column, offset, number=number)
        if cursor.accepts("drop", "expression"):
            return AlterAction("drop expression", column, offset, cursor.accepts("if", "exists"))
        if cursor.accepts("drop", "default"):
            return AlterAction("drop default", column, offset)
        if cursor.accepts("set", "default"):
            return AlterAction("set default", column, offset, text=cursor.text_until(_end(cursor)))
        if cursor.accepts("type") or cursor.accepts("set", "data", "type"):
            type_ = column_type(cursor)
            using = cursor.current
            casts = cursor.accepts("using")
            if casts and not _casts(cursor, column, type_):
                raise cursor.refuse(
                    "ALTER COLUMN ... TYPE ... USING",
                    "Values are cast to the type.",
                    "Add another column, UPDATE it from this one, drop this one and rename the other.",
                    using,
                )
            return AlterAction("set type", column, offset, type=type_, casts=casts)
        raise cursor.refuse(
            "this form of ALTER COLUMN",
            "A column keeps how it generates its values.",
            "Add another column, UPDATE it from this one, drop this one and rename the other.",
        )
    raise cursor.refuse(
        "this form of ALTER",
        "Columns, defaults and constraints change, the name, and how much history is kept: SET (RETAIN HISTORY ...).",
    )


def _casts(cursor: TokenCursor, column: str, type_: ScalarType) -> bool:
    """Moves past `column::type`, which is what becomes of the values anyway; returns whether it was just that."""
    end, named = _end(cursor), cursor.advance()
    if named.kind is TokenKind.STRING or named.value != column or not cursor.accepts_symbol("::"):
        return False
    return column_type(cursor) == type_ and cursor.at == end


def _end(cursor: TokenCursor) -> int:
    """Returns where the action ends: at a comma outside of parentheses."""
    depth = 0
    for index in range(cursor.at, len(cursor.tokens)):
        token = cursor.tokens[index]
        if depth == 0 and token.is_symbol(","):
            return index
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
    return len(cursor.tokens)


@dataclass(slots=True)
class AlteredTable:
    """What becomes of a table's definition.

    Attributes:
        definition: Its columns, keys and checks.
        sources: For each column the one whose values it takes over; None for one that is new.
        casts: By what values of another type become those of the one that their column gets, one after the other, by
            what the column was called.
    """

    definition: Columns
    sources: list[str | None] = field(default_factory=list)
    casts: dict[str, list[Callable[[Scalar], Scalar]]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: str, statement: CreateTable, actions: Sequence[AlterAction]) -> AlteredTable:
        """Returns what actions make of a table.

        Raises:
            ProgrammingError: One names what is not there, or what is there already, or contradicts the rest.
            UnsupportedForm: No column would be left, or a form is refused.
        """
        definition = Columns(
            table, list(statement.columns), list(statement.keys), list(statement.checks), list(statement.references)
        )
        altered = cls(definition, [one.name for one in statement.columns])
        for one in actions:
            altered._apply(one)
            definition.check_names()
        return altered

    @property
    def renamed(self) -> dict[str, str]:
        """The columns that take over the values of others, by those."""
        names = (one.name for one in self.definition.columns)
        return {source: name for source, name in zip(self.sources, names, strict=True) if source is not None}

    def _apply(self, action: AlterAction) -> None:
        columns, table = self.definition.columns, self.definition.table
        match action.kind:
            case "add column":
                self._add(action)
            case "add constraint":
                cursor = _cursor(action)
                parse_constraint(cursor, self.definition)
                cursor.expects_end()
                if action.is_of_files:
                    *others, added = self.definition.references
                    self.definition.references = [*others, replace(added, is_of_files=True)]
            case "drop column":
                if self._has(action):
                    self._drop(action)
                else:
                    tell(f'column "{action.column}" of relation "{table}" does not exist, skipping')
            case "drop constraint":
                keys = [one for one in self.definition.keys if one.name != action.column or one.is_index]
                checks = [one for one in self.definition.checks if one.name != action.column]
                references = [one for one in self.definition.references if one.name != action.column]
                if (keys, checks, references) == (
                    self.definition.keys, self.definition.checks, self.definition.references
                ):  # fmt: skip
                    if action.if_exists:
                        tell(f'constraint "{action.column}" of relation "{table}" does not exist, skipping')
                        return
                    raise self._no_constraint(action)
                self.definition.keys, self.definition.checks, self.definition.references = keys, checks, references
            case "drop index":
                self.definition.keys = [one for one in self.definition.keys if one.name != action.column]
            case "rename constraint" | "rename index":
                self._rename_constraint(action)
            case "rename column":
                self._rename(action)
            case "set default" | "drop default":
                place = self._place_of_no_identity(action)
                if columns[place].computed is not None:
                    raise InvalidSyntax(
                        f'column "{action.column}" of relation "{table}" is a generated column',
                        hint="Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.",
                        position=action.offset + 1,
                    )
                columns[place] = self._with_default(columns[place], action.text)
            case "drop expression":
                self._drop_expression(action)
            case "add identity":
                self._add_identity(action)
            case "drop identity":
                place = self._place(action)
                identity = columns[place].identity
                if identity is not None and identity.generated != "serial":
                    columns[place] = replace(columns[place], identity=None)
                elif action.if_exists:
                    tell(f'column "{action.column}" of relation "{table}" is not an identity column, skipping')
                else:
                    raise self._wrong_column(action, "is not an identity column")
            case "set type":
                assert action.type is not None
                place = self._place_of_no_identity(action)
                if users := self._computed_of(action.column):
                    raise UnsupportedForm(
                        "cannot alter type of a column used by a generated column",
                        detail=f'Column "{action.column}" is used by generated column "{users[0]}".',
                        hint="Drop the generated column, and add it again behind.",
                        position=action.offset + 1,
                    )
                self._cast(columns[place].type, action)
                columns[place] = replace(columns[place], type=action.type)
            case "set not null":
                place = self._place(action)
                columns[place] = replace(columns[place], nullable=False)
            case "drop not null":
                place = self._place_of_no_identity(action)
                primary = self.definition.primary_key
                if primary is not None and action.column in primary.columns:
                    raise InvalidTableDefinition(
                        f'column "{action.column}" is in a primary key', position=action.offset + 1
                    )
                columns[place] = replace(columns[place], nullable=True)

    def _cast(self, before: ScalarType, action: AlterAction) -> None:
        """Notes how a column's values become those of its type from here on."""
        assert action.type is not None
        if action.type.kind is Kind.ENUM or before.kind is Kind.ENUM:
            if action.type == before:
                return
            raise UnsupportedForm(
                f"this change of a type, from {before} to {action.type}, is not supported",
                hint="Add another column, UPDATE it from this one, drop this one and rename the other.",
                position=action.offset + 1,
            )
        found = cast(before, action.type, CastContext.EXPLICIT if action.casts else CastContext.ASSIGNMENT)
        if isinstance(found, Failure):
            raise DatatypeMismatch(
                f'column "{action.column}" cannot be cast automatically to type {type_name(action.type)}',
                hint=f'You might need to specify "USING {quoted(action.column)}::{action.type}".',
                position=action.offset + 1,
            )
        source = self.sources[self._place(action)]
        if source is not None and action.type != before:
            self.casts[source] = [*self.casts.get(source, []), found.apply]

    def _add(self, action: AlterAction) -> None:
        cursor = _cursor(action)
        column = parse_column(cursor, self.definition)
        cursor.expects_end()
        if column.name in [one.name for one in self.definition.columns]:
            if action.if_exists:
                tell(f'column "{column.name}" of relation "{self.definition.table}" already exists, skipping', "42701")
                return
            raise DuplicateColumn(
                f'column "{column.name}" of relation "{self.definition.table}" already exists',
                position=action.offset + 1,
            )
        self.definition.columns.append(column)
        self.sources.append(None)

    def _drop(self, action: AlterAction) -> None:
        definition, place = self.definition, self._place(action)
        if len(definition.columns) == 1:
            raise UnsupportedForm(
                "a table without columns is not supported",
                hint="Drop the table, or add another column first.",
                position=action.offset + 1,
            )
        users = self._computed_of(action.column)
        if users and not action.cascade:
            raise ColumnUsed(
                f"cannot drop column {action.column} of table {definition.table} because other objects depend on it",
                detail=f"Column {users[0]} of table {definition.table} depends on it.",
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
                position=action.offset + 1,
            )
        for one in users:
            self._drop(replace(action, column=one))
        place = self._place(action)
        del definition.columns[place], self.sources[place]
        definition.keys = [one for one in definition.keys if action.column not in one.columns]
        columns = RelationType(tuple(Column(one.name, one.type, one.nullable) for one in definition.columns))
        definition.checks = [one for one in definition.checks if _binds(definition.table, columns, one)]
        definition.references = [one for one in definition.references if action.column not in one.columns]

    def _rename(self, action: AlterAction) -> None:
        definition, place, new = self.definition, self._place(action), str(action.new_name)
        if new in [one.name for one in definition.columns]:
            raise DuplicateColumn(
                f'column "{new}" of relation "{definition.table}" already exists', position=action.offset + 1
            )
        old = action.column
        definition.columns[place] = replace(definition.columns[place], name=new)
        definition.keys = [
            replace(one, columns=tuple(new if name == old else name for name in one.columns), offset=0)
            for one in definition.keys
        ]
        definition.checks = [replace(one, predicate=_renamed(one.predicate, old, new)) for one in definition.checks]
        definition.references = [one.renamed(old, new) for one in definition.references]
        definition.columns = [
            one if one.computed is None else replace(one, computed=_renamed(one.computed, old, new))
            for one in definition.columns
        ]

    def _computed_of(self, column: str) -> list[str]:
        """Returns the columns that are computed of a column."""
        found = self.definition.columns
        return [one.name for one in found if one.computed is not None and _mentions(one.computed, column)]

    def _with_default(self, column: ColumnDefinition, text: SqlText | None) -> ColumnDefinition:
        """Returns a column with a default; one that asks for its own sequence's next number is serial, as in dumps."""
        tokens = [] if text is None else [one for one in tokens_of(text.text) if not one.is_word("pg_catalog")]
        words = [one.value for one in tokens if one.kind is not TokenKind.SYMBOL]
        asks = len(words) > 1 and words[0] == "nextval" and words[2:] in ([""], ["regclass", ""])
        own = f"{self.definition.table}_{column.name}_seq"
        if asks and names_in(words[1])[-1:] == (own,) and not column.nullable and column.type in SERIAL_TYPES:
            return replace(column, default=None, identity=serial(column.type))
        return replace(column, default=text, identity=None)

    def _add_identity(self, action: AlterAction) -> None:
        """Lets a column generate its values from here on."""
        place = self._place(action)
        column = self.definition.columns[place]
        if column.identity is not None and column.identity.generated != "serial":
            raise self._wrong_column(action, "is already an identity column")
        if column.identity is not None or column.default is not None:
            raise self._wrong_column(action, "already has a default value")
        cursor = _cursor(action)
        cursor.expects("generated")
        identity = parse_identity(cursor, column.type, f"{self.definition.table}_{column.name}_seq")
        cursor.expects_end()
        if column.nullable:
            raise self._wrong_column(action, "must be declared NOT NULL before identity can be added")
        self.definition.columns[place] = replace(column, identity=identity)

    def _wrong_column(self, action: AlterAction, what: str) -> WrongColumnState:
        message = f'column "{action.column}" of relation "{self.definition.table}" {what}'
        return WrongColumnState(message, position=action.offset + 1)

    def _drop_expression(self, action: AlterAction) -> None:
        """Lets a column that is computed be written from here on."""
        place = self._place(action)
        if self.definition.columns[place].computed is None:
            error = self._wrong_column(action, "is not a stored generated column")
            if not action.if_exists:
                raise error
            tell(f"{error.message}, skipping")
        self.definition.columns[place] = replace(self.definition.columns[place], computed=None)

    def _rename_constraint(self, action: AlterAction) -> None:
        definition, old, new = self.definition, action.column, str(action.new_name)
        names = [one.name for every in (definition.keys, definition.checks, definition.references) for one in every]
        indexes = [one.name for one in definition.keys if one.is_index]
        if old not in names or (old in indexes and action.kind == "rename constraint"):
            raise self._no_constraint(action)
        if new in names:
            raise DuplicateObject(
                f'constraint "{new}" for relation "{definition.table}" already exists', position=action.offset + 1
            )
        definition.keys = [replace(one, name=new) if one.name == old else one for one in definition.keys]
        definition.checks = [replace(one, name=new) if one.name == old else one for one in definition.checks]
        definition.references = [replace(one, name=new) if one.name == old else one for one in definition.references]

    def _no_constraint(self, action: AlterAction) -> UndefinedObject:
        return UndefinedObject(
            f'constraint "{action.column}" of relation "{self.definition.table}" does not exist',
            position=action.offset + 1,
        )

    def _has(self, action: AlterAction) -> bool:
        return not action.if_exists or action.column in [one.name for one in self.definition.columns]

    def _place(self, action: AlterAction) -> int:
        names = [one.name for one in self.definition.columns]
        if action.column not in names:
            raise UndefinedColumn(
                f'column "{action.column}" of relation "{self.definition.table}" does not exist',
                hint=suggestion(action.column, names),
                position=action.offset + 1,
            )
        return names.index(action.column)

    def _place_of_no_identity(self, action: AlterAction) -> int:
        place = self._place(action)
        identity = self.definition.columns[place].identity
        if identity is not None and identity.generated != "serial":
            raise InvalidSyntax(
                f'column "{action.column}" of relation "{self.definition.table}" is an identity column',
                position=action.offset + 1,
            )
        return place


def _cursor(action: AlterAction) -> TokenCursor:
    """Returns a cursor over what an action adds, whose positions are those of the whole text."""
    assert action.text is not None
    source = " " * action.text.offset + action.text.text
    tokens = tuple(one for one in tokens_of(source) if one.kind is not TokenKind.END)
    return TokenCursor(source, tokens, len(source))


def _binds(table: str, columns: RelationType, check: CheckConstraint) -> bool:
    try:
        bind_check(table, columns, check, Circumstances())
    except UndefinedColumn:
        return False
    return True


def _renamed(predicate: SqlText, old: str, new: str) -> SqlText:
    """Returns a condition in which a column has another name."""
    text = predicate.text
    for token in reversed(_mentions(predicate, old)):
        text = text[: token.start] + quoted(new) + text[token.end :]
    return SqlText(text)


def _mentions(expression: SqlText, column: str) -> list[Token]:
    """Returns where an expression names a column."""
    return [
        token
        for token, behind in pairwise(tokens_of(expression.text))
        if token.kind in (TokenKind.WORD, TokenKind.QUOTED) and token.value == column and not behind.is_symbol("(", ".")
    ]
