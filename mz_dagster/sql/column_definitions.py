"""The parenthesis of `CREATE TABLE` and `CREATE SOURCE`: columns, keys and constraints.

Names of constraints that are not given are PostgreSQL's: `t_pkey`, `t_a_b_key`, `t_check`, and `t_a_check` of a
condition that names no column but `a`, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mz_dagster.errors import Error
from mz_dagster.functions import type_name
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.sql.binding import name_of
from mz_dagster.sql.body_parser import parse_scalar
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.declared_keys import ForeignKey, ReferenceAction, UniqueKey
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    InvalidForeignKey,
    InvalidSyntax,
    InvalidTableDefinition,
    UndefinedColumn,
    UndefinedObject,
    suggestion,
)
from mz_dagster.sql.identity import parse_identity, serial, serial_type
from mz_dagster.sql.lexer import Token, TokenKind
from mz_dagster.sql.statements import CheckConstraint, ColumnDefinition, SqlText
from mz_dagster.sql.type_names import BYTEWISE, COLLATED, column_type

#: Names that shards need for themselves.
_RESERVED = ("mz_timestamp", "mz_diff", "mz_error", "mz_batch")
_CONSTRAINTS = "constraint|not|null|unique|primary|check|references|default|generated|collate"
_REFUSED = {
    "exclude": ("Only equality of keys is enforced.", None),
    "like": ("Columns are written out.", "Or: CREATE TABLE t AS TABLE other WITH NO DATA, and ALTER TABLE adds keys."),
    "collate": ("Texts are ordered by their code points.", 'Leave it out, or write COLLATE "C".'),
}


@dataclass(slots=True)
class Columns:
    """What a parenthesis of columns says.

    Attributes:
        table: What is created, after which constraints are named.
        columns: In order; those of a primary key are NOT NULL.
        keys: The primary key and what is UNIQUE.
        checks: The conditions of CHECK.
        references: What refers to rows of other tables.
    """

    table: str
    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[UniqueKey] = field(default_factory=list)
    checks: list[CheckConstraint] = field(default_factory=list)
    references: list[ForeignKey] = field(default_factory=list)

    @property
    def primary_key(self) -> UniqueKey | None:
        """The primary key, if there is one."""
        return next((one for one in self.keys if one.primary), None)

    def add_key(
        self, columns: Sequence[str], *, primary: bool, offset: int, name: str | None, is_index: bool = False
    ) -> None:
        """Notes that no two rows are to be equal in these columns."""
        if primary and self.primary_key is not None:
            raise InvalidTableDefinition("multiple primary keys are not allowed", position=offset + 1)
        kind = "pkey" if primary else "_".join((*columns, "key"))
        self.keys.append(UniqueKey(self._named(name, kind, offset), tuple(columns), primary, offset, is_index))

    def add_check(self, predicate: SqlText, *, offset: int, name: str | None) -> None:
        """Notes that no row is to make this condition false; without a name it gets one with `check_names`."""
        self.checks.append(CheckConstraint("" if name is None else self._named(name, "check", offset), predicate))

    def add_reference(self, reference: ForeignKey, *, name: str | None) -> None:
        """Notes that rows refer to those of another table."""
        kind = "_".join((*reference.columns, "fkey"))
        self.references.append(replace(reference, name=self._named(name, kind, reference.offset)))

    def _named(self, name: str | None, kind: str, offset: int) -> str:
        taken = {one.name for every in (self.keys, self.checks, self.references) for one in every}
        if name is not None:
            if name in taken:
                raise DuplicateObject(
                    f'constraint "{name}" for relation "{self.table}" already exists', position=offset + 1
                )
            return name
        found = base = f"{self.table}_{kind}"
        number = 0
        while found in taken:
            number += 1
            found = f"{base}{number}"
        return found

    def check_names(self) -> None:
        """Names conditions, refuses keys over columns that are not there, and makes a primary key's NOT NULL."""
        names = [one.name for one in self.columns]
        for i, check in enumerate(self.checks):
            if not check.name:
                named = [one for one in names if one in _columns_in(check.predicate)]
                kind = f"{named[0]}_check" if len(named) == 1 else "check"
                self.checks[i] = replace(check, name=self._named(None, kind, check.predicate.offset))
        for key in self.keys:
            for name in key.columns:
                if name not in names:
                    raise UndefinedColumn(
                        f'column "{name}" named in key does not exist',
                        hint=suggestion(name, names),
                        position=key.offset + 1,
                    )
                if self.columns[names.index(name)].type.kind is Kind.JSON:
                    raise UndefinedObject(
                        'data type json has no default operator class for access method "btree"',
                        detail="A key needs comparisons, which it does not have.",
                        hint="Let the column be a jsonb.",
                        position=key.offset + 1,
                    )
            if len(set(key.columns)) != len(key.columns):
                kind = "primary key" if key.primary else "unique"
                twice = next(name for name in key.columns if key.columns.count(name) > 1)
                message = f'column "{twice}" appears twice in {kind} constraint'
                raise DuplicateColumn(message, position=key.offset + 1)
        for reference in self.references:
            for name in reference.columns:
                if name not in names:
                    raise UndefinedColumn(
                        f'column "{name}" referenced in foreign key constraint does not exist',
                        hint=suggestion(name, names),
                        position=reference.offset + 1,
                    )
        primary = self.primary_key.columns if self.primary_key is not None else ()
        self.columns = [replace(one, nullable=one.nullable and one.name not in primary) for one in self.columns]


def _columns_in(predicate: SqlText) -> set[str]:
    """Returns the names in a condition that may be columns'; none if it does not parse, which its binder says."""
    try:
        root = parse_scalar(predicate).root
    except Error:
        return set()
    return {name_of(one.this) for one in root.find_all(exp.Column) if isinstance(one.this, exp.Identifier)}


def parse_columns(cursor: TokenCursor, table: str, *, only_keys: bool = False, states_columns: bool = True) -> Columns:
    """Moves past `(column type [constraint ...], ..., [constraint ...])`.

    Args:
        cursor: At the opening parenthesis.
        table: What is created.
        only_keys: Whether constraints but NOT NULL and PRIMARY KEY are refused, as of what others write.
        states_columns: Whether columns have to be there; keys alone are of columns that come from elsewhere.

    Raises:
        DuplicateColumn: A column is named twice, in the list or in a key.
        InvalidTableDefinition: A column bears a reserved name, or a key is not one.
        UnsupportedForm: A constraint that is not enforced.
    """
    cursor.expects_symbol("(")
    found = Columns(table)
    while True:
        token = cursor.current
        if cursor.sees("constraint|primary|unique|check|foreign|exclude|like"):
            parse_constraint(cursor, found, only_keys=only_keys)
        else:
            column = parse_column(cursor, found, only_keys=only_keys)
            if any(other.name == column.name for other in found.columns):
                raise DuplicateColumn(f'column "{column.name}" specified more than once', position=token.start + 1)
            found.columns.append(column)
        if cursor.accepts_symbol(")"):
            break
        cursor.expects_symbol(",")
    if states_columns or found.columns:
        found.check_names()
    return found


def parse_constraint(cursor: TokenCursor, found: Columns, *, only_keys: bool = False) -> None:
    """Moves past a constraint of the table."""
    first = cursor.current
    name = cursor.identifier("the constraint's name") if cursor.accepts("constraint") else None
    token = cursor.current
    if only_keys and (name is not None or not token.is_word("primary")):
        raise cursor.refuse(f"{first.value.upper()} in a definition", "It could not be enforced.", token=first)
    if cursor.accepts("primary", "key"):
        found.add_key(cursor.names_in_parentheses(), primary=True, offset=token.start, name=name)
    elif name is None and cursor.accepts("unique", "index"):
        index = cursor.identifier("the index's name")
        found.add_key(cursor.names_in_parentheses(), primary=False, offset=token.start, name=index, is_index=True)
    elif cursor.accepts("unique"):
        _check_nulls(cursor)
        found.add_key(cursor.names_in_parentheses(), primary=False, offset=token.start, name=name)
    elif cursor.accepts("check"):
        found.add_check(cursor.parenthesized(), offset=token.start, name=name)
    elif cursor.accepts("foreign", "key"):
        columns = cursor.names_in_parentheses()
        cursor.expects("references")
        found.add_reference(_reference(cursor, columns, token.start), name=name)
    elif token.value in _REFUSED and token.kind is TokenKind.WORD:
        raise cursor.refuse(f"{token.value.upper()} in a definition", *_REFUSED[token.value])
    else:
        raise cursor.unexpected("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY")


def _reference(cursor: TokenCursor, columns: tuple[str, ...], offset: int) -> ForeignKey:
    """Moves past `table [(column, ...)] [MATCH ...] [ON DELETE | UPDATE ...] [DEFERRABLE ...] [[NOT] ENFORCED]`."""
    table = cursor.name()
    referenced = cursor.names_in_parentheses() if cursor.current.is_symbol("(") else ()
    if referenced and len(referenced) != len(columns):
        raise InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree", position=offset + 1
        )
    found = ForeignKey("", columns, referenced, table=table.parts, offset=offset)
    while True:
        if cursor.accepts("match"):
            if cursor.sees("partial"):
                raise cursor.refuse("MATCH PARTIAL", "A reference is to one row.")
            found = replace(found, is_full=cursor.accepts("full"))
            cursor.accepts("simple")
        elif cursor.accepts("on", "delete"):
            found = replace(found, on_delete=_reference_action(cursor))
        elif cursor.accepts("on", "update"):
            found = replace(found, on_update=_reference_action(cursor))
        elif cursor.accepts("not", "deferrable"):
            found = replace(found, is_deferrable=False)
        elif cursor.accepts("deferrable"):
            found = replace(found, is_deferrable=True)
        elif cursor.accepts("initially", "deferred"):
            found = replace(found, is_deferrable=True, is_deferred=True)
        elif cursor.accepts("initially", "immediate"):
            found = replace(found, is_deferred=False)
        elif cursor.accepts("not", "enforced"):
            found = replace(found, is_enforced=False)
        elif cursor.accepts("enforced"):
            found = replace(found, is_enforced=True)
        elif cursor.sees("not", "valid"):
            raise cursor.refuse(
                "NOT VALID", "Rows that are there are held to it, too.", "Leave it out, or write NOT ENFORCED."
            )
        else:
            return found


def _reference_action(cursor: TokenCursor) -> ReferenceAction:
    if cursor.accepts("no", "action"):
        return "a"
    if cursor.accepts("restrict"):
        return "r"
    if cursor.accepts("cascade"):
        return "c"
    if cursor.accepts("set", "null"):
        if cursor.current.is_symbol("("):
            raise cursor.refuse("SET NULL of some columns", "All columns of the key become NULL.")
        return "n"
    if cursor.sees("set", "default"):
        raise cursor.refuse(
            "SET DEFAULT", "A row would come to refer to another one.", "Write SET NULL, CASCADE or RESTRICT."
        )
    raise cursor.unexpected("NO ACTION, RESTRICT, CASCADE or SET NULL")


def _skip_collation(cursor: TokenCursor, type_: ScalarType) -> None:
    """Moves past `COLLATE "C"`, or another collation that compares by bytes, as all do here; leaves others standing."""
    if not cursor.sees("collate"):
        return
    first = cursor.at
    token = cursor.advance()
    if cursor.sees("pg_catalog") and cursor.ahead(1).is_symbol("."):
        cursor.advance()
        cursor.advance()
    if cursor.identifier("a collation") not in BYTEWISE:
        cursor.at = first
    elif (type_.array_element or type_).kind not in COLLATED:
        raise DatatypeMismatch(f"collations are not supported by type {type_name(type_)}", position=token.start + 1)


def parse_column(cursor: TokenCursor, found: Columns, *, only_keys: bool = False) -> ColumnDefinition:
    """Moves past a column and its constraints, which are noted beside the others; the column is not."""
    offset = cursor.current.start
    name = cursor.identifier("a column")
    if name in _RESERVED:
        raise InvalidTableDefinition(
            f'column name "{name}" is reserved',
            detail="Shards keep times, diffs and errors of updates under such names.",
            position=offset + 1,
        )
    says_null: Token | None = None
    start = cursor.current
    generates = serial_type(cursor)
    if generates is not None and only_keys:
        raise cursor.refuse(f"{start.value.upper()} in a definition", "It could not be enforced.", token=start)
    if generates is None:
        type_ = column_type(cursor)
        if only_keys and type_.value_modifier is not None:
            if (type_.array_element or type_).kind is not Kind.NUMERIC:
                raise cursor.refuse(
                    f"type {type_} of a source",
                    "Its files say what they say.",
                    f"Write {type_.unmodified}, and cast it in a view.",
                    start,
                )
            type_ = type_.unmodified
        column = ColumnDefinition(name, type_, True, offset, type_offset=start.start)
    else:
        column = ColumnDefinition(name, generates, False, offset, identity=serial(generates))
    while True:
        if not only_keys:
            _skip_collation(cursor, column.type)
        first = cursor.current
        called = cursor.identifier("the constraint's name") if cursor.accepts("constraint") else None
        token = cursor.current
        if cursor.accepts("not", "null"):
            column = replace(column, nullable=False)
        elif cursor.accepts("null"):
            says_null = token
        elif cursor.accepts("primary", "key"):
            found.add_key((name,), primary=True, offset=token.start, name=called)
        elif only_keys and cursor.sees("default|unique|check|references|generated|collate|constraint"):
            raise cursor.refuse(f"{first.value.upper()} in a definition", "It could not be enforced.", token=first)
        elif cursor.accepts("unique"):
            _check_nulls(cursor)
            found.add_key((name,), primary=False, offset=token.start, name=called)
        elif cursor.accepts("check"):
            found.add_check(cursor.parenthesized(), offset=token.start, name=called)
        elif cursor.accepts("references"):
            found.add_reference(_reference(cursor, (name,), token.start), name=called)
        elif cursor.accepts("default"):
            if column.default is not None or (column.identity is not None and column.identity.generated == "serial"):
                raise InvalidSyntax(
                    f'multiple default values specified for column "{name}" of table "{found.table}"',
                    position=token.start + 1,
                )
            column = replace(column, default=_default(cursor))
        elif cursor.sees("generated", "always", "as") and cursor.ahead(3).is_symbol("("):
            cursor.accepts("generated", "always", "as")
            computed = cursor.parenthesized()
            cursor.expects("stored")
            if column.computed is not None:
                raise InvalidSyntax(
                    f'multiple generation clauses specified for column "{name}" of table "{found.table}"',
                    position=token.start + 1,
                )
            column = replace(column, computed=computed)
        elif cursor.accepts("generated"):
            identity = parse_identity(cursor, column.type, f"{found.table}_{name}_seq")
            if column.identity is not None:
                both = "both default and identity" if column.identity.generated == "serial" else "multiple identity"
                what = "specified" if both.startswith("both") else "specifications"
                raise InvalidSyntax(
                    f'{both} {what} for column "{name}" of table "{found.table}"', position=token.start + 1
                )
            column = replace(column, nullable=False, identity=identity)
        elif token.value in _REFUSED and token.kind is TokenKind.WORD:
            raise cursor.refuse(f"{token.value.upper()} in a definition", *_REFUSED[token.value])
        elif called is not None:
            raise cursor.unexpected("a constraint")
        else:
            break
    if says_null is not None and not column.nullable:
        raise InvalidSyntax(
            f'conflicting NULL/NOT NULL declarations for column "{name}" of table "{found.table}"',
            position=says_null.start + 1,
        )
    if column.default is not None and column.identity is not None:
        raise InvalidSyntax(
            f'both default and identity specified for column "{name}" of table "{found.table}"', position=offset + 1
        )
    if column.computed is not None and (column.default is not None or column.identity is not None):
        other = "default" if column.default is not None else "identity"
        raise InvalidSyntax(
            f'both {other} and generation expression specified for column "{name}" of table "{found.table}"',
            position=offset + 1,
        )
    return column


def _check_nulls(cursor: TokenCursor) -> None:
    if cursor.sees("nulls", "not", "distinct"):
        raise cursor.refuse("NULLS NOT DISTINCT", "Rows with a NULL in a key are all different.")
    cursor.accepts("nulls", "distinct")


def _default(cursor: TokenCursor) -> SqlText:
    """Moves past the expression of a DEFAULT: up to a comma, the parenthesis' end, or a further constraint."""
    stop, depth = cursor.at, 0
    while stop < len(cursor.tokens):
        token = cursor.tokens[stop]
        if depth == 0 and (token.is_symbol(",", ")") or (stop > cursor.at and token.is_word(*_CONSTRAINTS.split("|")))):
            break
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        stop += 1
    return cursor.text_until(stop)
