"""What a session may do: everything if it is the owner's, else what its role was granted.

A statement is held against the objects that it names. What those are computed from is read by the owner's right, as
PostgreSQL's views read what they are over. All that defines anything is the owner's.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import NoReturn

from mz_dagster.catalog import EVERYBODY, ObjectRow, RoleRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql import (
    CloseCursor,
    Copy,
    CopyFromClient,
    CopyToClient,
    Deallocate,
    Declare,
    Delete,
    Discard,
    Explain,
    Fetch,
    Insert,
    Prepare,
    ReleaseSavepoint,
    ResetAll,
    Savepoint,
    Select,
    SetConstraints,
    SetSetting,
    SetTransaction,
    Show,
    ShowSetting,
    SqlText,
    Statement,
    Subscribe,
    Truncate,
    Unlisten,
    Update,
)
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.role_statements import AlterRole
from mz_dagster.sql.schemas import last_of

#: What a role may execute that is not the owner, if it has the privileges.
_OF_ALL = (
    Select
    | Subscribe
    | Insert
    | Update
    | Delete
    | Truncate
    | CopyFromClient
    | CopyToClient
    | Declare
    | Fetch
    | CloseCursor
    | Explain
    | Show
    | ShowSetting
    | SetConstraints
    | SetSetting
    | SetTransaction
    | ResetAll
    | Prepare
    | Deallocate
    | Discard
    | Unlisten
    | Savepoint
    | ReleaseSavepoint
    | AlterRole
)

#: Relations of the catalogs that only the owner reads: what they show of data and of others is nobody else's.
OWNERS = frozenset({"mz_errors", "mz_sessions", "mz_transactions", "mz_subscriptions", "pg_authid", "pg_shadow"})

Writing = Insert | Update | Delete | Truncate | Copy | CopyFromClient


class InsufficientPrivilege(ProgrammingError):
    """What the session's role may not do."""

    sqlstate = "42501"


def owner_name() -> str:
    """Returns the name of the project's owner: the user of the operating system."""
    return getpass.getuser()


@dataclass(frozen=True, slots=True)
class Access:
    """What a session may do.

    Attributes:
        role: Its role; None if it is the owner's.
        held_roles: Returns the roles by whose privileges a role acts now, see `Catalog.held_roles`.
    """

    role: RoleRow | None = None
    held_roles: Callable[[int], Set[int]] = lambda role: {role, EVERYBODY}

    @property
    def is_owner(self) -> bool:
        """Whether everything is allowed."""
        return self.role is None

    def check_statement(self, statement: Statement) -> None:
        """Returns if a statement may be executed at all, whatever it names.

        Raises:
            InsufficientPrivilege: It may not.
        """
        if self.role is not None and not isinstance(statement, _OF_ALL):
            words = " ".join(statement.text.upper().split()[:2])
            self._refuse(
                f"permission denied to execute {words}", "Only the owner of the project defines and maintains."
            )

    def check(self, row: ObjectRow, letters: str) -> None:
        """Returns if all of some privileges were granted on an object.

        Raises:
            InsufficientPrivilege: One was not.
        """
        if self.role is not None:
            held = (row.privileges.get(role, "") for role in self.held_roles(self.role.id))
            if not set(letters) <= set("".join(held)):
                self.refuse(row.kind, row.name or row.id)

    def check_built_in(self, name: str) -> None:
        """Returns if a relation of the catalogs may be read.

        Raises:
            InsufficientPrivilege: It may not.
        """
        if self.role is not None and name in OWNERS:
            self.refuse("view", name)

    def refuse(self, kind: str, name: str) -> NoReturn:
        """Raises the error for an object that may not be used so."""
        self._refuse(
            f"permission denied for {kind} {name}", "The owner of the project grants: GRANT ... ON ... TO ...."
        )

    def _refuse(self, message: str, hint: str) -> NoReturn:
        raise InsufficientPrivilege(message, hint=hint)


def needed_to_write(statement: Writing, row: ObjectRow) -> str:
    """Returns the letters of the privileges on a table that a statement needs which writes it."""
    match statement:
        case Truncate():
            return "D"
        case Copy() | CopyFromClient():
            return "a"
        case Insert():
            conflict = statement.conflict
            reads = conflict is not None and bool(conflict.columns)
            own = "aw" if conflict is not None and conflict.assignments else "a"
            parts = []
        case Delete():
            parts, own, reads = [statement.predicate], "d", _is_named(statement.using, statement.ctes, of=row)
        case Update():
            values = [one.value if one.row is None else one.row[0] for one in statement.assignments]
            reads = _is_named(statement.using, statement.ctes, of=row)
            parts, own = [statement.predicate, *values], "w"
    reads = reads or _is_named(*parts, statement.returning, of=row, names={statement.alias, *row.relation_type.names})
    reads = reads or (statement.returning is not None and "*" in statement.returning.text)
    return f"{own}r" if reads else own


def _is_named(*parts: SqlText | None, of: ObjectRow, names: Set[str | None] = frozenset()) -> bool:
    """Returns whether parts of a statement may read a table: whether a word in them is its name, or one of others."""
    words = {last_of(of.schema, str(of.name)), *names}
    tokens = (token for part in parts if part is not None for token in tokens_of(part.text))
    return any(one.kind in (TokenKind.WORD, TokenKind.QUOTED) and one.value in words for one in tokens)
