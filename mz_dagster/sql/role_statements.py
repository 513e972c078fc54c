"""CREATE, ALTER and DROP ROLE, GRANT and REVOKE: as data, and their grammar.

The text of a statement that has a password is without it, so that nobody shows or logs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax, ReservedName
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import Name, Statement

PRIVILEGES = {
    "select": "r",
    "insert": "a",
    "update": "w",
    "delete": "d",
    "truncate": "D",
    "references": "x",
    "trigger": "t",
}
"""PostgreSQL's letters of the privileges that there are on relations."""


@dataclass(frozen=True, slots=True)
class Password:
    """What is said of a role's password.

    Attributes:
        text: The password, or what SCRAM compares it with; None for none.
    """

    text: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class RoleName:
    """A role that is named.

    Attributes:
        name: Its name; None for who executes the statement.
        offset: Where it stands.
        is_public: Whether all roles are meant.
    """

    name: str | None
    offset: int
    is_public: bool = False


@dataclass(frozen=True, slots=True)
class CreateRole(Statement):
    """`CREATE ROLE` or `CREATE USER`.

    Attributes:
        role: The role.
        can_login: Whether it may connect.
        password: Its password; None if nothing is said of it.
    """

    role: RoleName
    can_login: bool
    password: Password | None


@dataclass(frozen=True, slots=True)
class AlterRole(Statement):
    """`ALTER ROLE` or `ALTER USER`.

    Attributes:
        role: The role.
        can_login: Whether it may connect from now on; None for as before.
        password: Its password; None for as before.
        new_name: What it is called from now on; None for as before.
    """

    role: RoleName
    can_login: bool | None
    password: Password | None
    new_name: RoleName | None


@dataclass(frozen=True, slots=True)
class DropRole(Statement):
    """`DROP ROLE` or `DROP USER`."""

    roles: tuple[RoleName, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Grant(Statement):
    """`GRANT` or `REVOKE`.

    Attributes:
        letters: The privileges, by their letters; none of a schema or a database.
        on: `relations`, `all` that are in schemas, `schema` or `database`.
        names: Which.
        roles: To whom, or from whom.
        revokes: Whether it is REVOKE.
    """

    letters: str
    on: str
    names: tuple[Name, ...]
    roles: tuple[RoleName, ...]
    revokes: bool


@dataclass(frozen=True, slots=True)
class GrantRole(Statement):
    """`GRANT role TO role` or `REVOKE role FROM role`.

    Attributes:
        groups: The roles that get or lose members.
        members: Those.
        revokes: Whether it is REVOKE.
    """

    groups: tuple[RoleName, ...]
    members: tuple[RoleName, ...]
    revokes: bool


def parse_create_role(cursor: TokenCursor, common: Common) -> CreateRole:
    """Moves past what follows `CREATE`: `ROLE name [WITH] options`, or `USER`, who may connect."""
    can_login = cursor.advance().value == "user"
    role = _named(cursor)
    login, password = _options(cursor)
    return CreateRole(*_without_password(cursor, common), role, can_login if login is None else login, password)


def parse_alter_role(cursor: TokenCursor, common: Common) -> AlterRole:
    """Moves past what follows `ALTER`: `ROLE name [WITH] options`, or `RENAME TO name`."""
    cursor.advance()
    role = _role(cursor)
    if cursor.accepts("rename", "to"):
        return AlterRole(*common, role, None, None, _named(cursor))
    if cursor.sees("set|reset|in"):
        raise cursor.refuse("settings of a role", "Each session sets its own.", "SET them when the session begins.")
    login, password = _options(cursor)
    return AlterRole(*_without_password(cursor, common), role, login, password, None)


def parse_drop_role(cursor: TokenCursor, common: Common) -> DropRole:
    """Moves past what follows `DROP`: `ROLE [IF EXISTS] name, ...`."""
    cursor.advance()
    if_exists = cursor.accepts("if", "exists")
    return DropRole(*common, _roles(cursor), if_exists)


def parse_grant(cursor: TokenCursor, common: Common) -> Grant | GrantRole:
    """Moves past `GRANT privileges ON objects TO roles`, `GRANT roles TO roles`, or `REVOKE` with `FROM`."""
    revokes = cursor.advance().value == "revoke"
    if cursor.sees("grant|admin", "option", "for"):
        raise cursor.refuse(f"{cursor.current.value.upper()} OPTION", "Only the owner grants.")
    first, at = cursor.current, cursor.at
    words = _privileges(cursor)
    if not cursor.sees("on"):
        cursor.at = at
        return _membership(cursor, common, revokes=revokes)
    cursor.expects("on")
    on, names = _objects(cursor, words)
    if on in ("schema", "database"):
        _check_held_by_all(cursor, on, words, revokes=revokes)
    else:
        wrong = next((word for word in words if word not in PRIVILEGES), None)
        if wrong is not None:
            raise InvalidSyntax(f"invalid privilege type {wrong.upper()} for relation", position=first.start + 1)
    cursor.expects("from" if revokes else "to")
    roles = _roles(cursor)
    if cursor.sees("with"):
        raise cursor.refuse("WITH GRANT OPTION", "Only the owner grants.")
    if revokes and not cursor.accepts("restrict"):
        cursor.accepts("cascade")
    letters = "".join(PRIVILEGES[word] for word in words if word in PRIVILEGES)
    return Grant(*common, letters, on, names, roles, revokes)


def _membership(cursor: TokenCursor, common: Common, *, revokes: bool) -> GrantRole:
    groups = _roles(cursor)
    cursor.expects("from" if revokes else "to")
    members = _roles(cursor)
    if cursor.sees("with"):
        raise cursor.refuse("WITH ADMIN OPTION", "Only the owner grants.")
    if cursor.accepts("granted", "by"):
        _role(cursor)
    if revokes and not cursor.accepts("restrict"):
        cursor.accepts("cascade")
    return GrantRole(*common, groups, members, revokes)


def _privileges(cursor: TokenCursor) -> tuple[str, ...]:
    """Moves past `ALL [PRIVILEGES]` or a list, and returns the words."""
    if cursor.accepts("all"):
        cursor.accepts("privileges")
        return tuple(PRIVILEGES)
    words: list[str] = []
    while not words or cursor.accepts_symbol(","):
        if cursor.current.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise cursor.unexpected("a privilege")
        words.append(cursor.advance().value)
        if cursor.current.is_symbol("("):
            raise cursor.refuse("a privilege on columns", "What is granted is the whole object.", "Grant a view of it.")
    return tuple(words)


def _objects(cursor: TokenCursor, words: tuple[str, ...]) -> tuple[str, tuple[Name, ...]]:
    """Moves past the objects of a GRANT, and returns of which kind they are, and their names."""
    if cursor.accepts("all", "tables", "in", "schema"):
        return "all", _names(cursor)
    if cursor.sees("all") or cursor.sees("sequence|function|type|language|tablespace|domain|procedure|routine|foreign"):
        raise cursor.refuse("GRANT on this", "There are privileges on relations.", "Name tables, views and sources.")
    for kind in ("schema", "database"):
        if cursor.accepts(kind):
            return kind, _names(cursor)
    cursor.accepts("table")
    return "relations", _names(cursor)


def _check_held_by_all(cursor: TokenCursor, on: str, words: tuple[str, ...], *, revokes: bool) -> None:
    """Refuses what cannot be granted or revoked of a schema or database: every role may use all of them."""
    given = {"schema": ("usage",), "database": ("connect",)}[on]
    if revokes or any(word not in given for word in words):
        raise cursor.refuse(
            f"{'REVOKE' if revokes else 'GRANT'} {', '.join(words).upper()} on a {on}",
            f"Every role may {'use all schemas' if on == 'schema' else 'connect'}, and only the owner defines objects.",
            "Grant and revoke privileges on tables, views and sources.",
        )


def _names(cursor: TokenCursor) -> tuple[Name, ...]:
    names = [cursor.name()]
    while cursor.accepts_symbol(","):
        names.append(cursor.name())
    return tuple(names)


def _roles(cursor: TokenCursor) -> tuple[RoleName, ...]:
    roles = [_role(cursor)]
    while cursor.accepts_symbol(","):
        roles.append(_role(cursor))
    return tuple(roles)


def _role(cursor: TokenCursor) -> RoleName:
    """Moves past a role that there is, or `PUBLIC`, or who executes the statement."""
    cursor.accepts("group")
    token = cursor.current
    if cursor.accepts("public"):
        return RoleName("public", token.start, is_public=True)
    if cursor.accepts("current_user|session_user|current_role"):
        return RoleName(None, token.start)
    return RoleName(cursor.identifier("a role"), token.start)


def _named(cursor: TokenCursor) -> RoleName:
    """Moves past the name that a role gets."""
    token = cursor.current
    name = cursor.identifier("a role")
    if name in ("public", "none") or name.startswith("pg_"):
        raise ReservedName(f'role name "{name}" is reserved', position=token.start + 1)
    return RoleName(name, token.start)


def _options(cursor: TokenCursor) -> tuple[bool | None, Password | None]:
    """Moves past the options of a role, and returns whether it may connect and its password, as far as that is said."""
    cursor.accepts("with")
    login: bool | None = None
    password: Password | None = None
    while cursor.current.kind is not TokenKind.END:
        if cursor.accepts("login"):
            login = True
        elif cursor.accepts("nologin"):
            login = False
        elif cursor.accepts("inherit|nosuperuser|nocreatedb|nocreaterole|noreplication|nobypassrls"):
            pass  # as every role is
        elif cursor.sees("encrypted", "password") or cursor.sees("password"):
            cursor.accepts("encrypted")
            cursor.expects("password")
            password = Password(None if cursor.accepts("null") else cursor.string("the password"))
        elif cursor.sees("superuser|createdb|createrole|replication|bypassrls"):
            raise cursor.refuse(cursor.current.value.upper(), "There is one who may do everything: the owner.")
        elif cursor.sees("noinherit|in|role|user|admin|connection|valid|sysid|unencrypted"):
            raise cursor.refuse(f"{cursor.current.value.upper()} of a role", "Roles have a name and a password.")
        else:
            raise cursor.unexpected("LOGIN, NOLOGIN or PASSWORD")
    return login, password


def _without_password(cursor: TokenCursor, common: Common) -> Common:
    """Returns what a statement starts with, its text without the strings in it."""
    text, start = common.text, cursor.tokens[0].start
    for token in reversed(cursor.tokens):
        if token.kind is TokenKind.STRING:
            text = f"{text[: token.start - start]}'********'{text[token.end - start :]}"
    return common._replace(text=text)
