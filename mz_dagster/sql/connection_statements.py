"""`CREATE` and `ALTER` of `SECRET` and `CONNECTION`: what sources and sinks outside of this machine need.

A secret is a reference: to a variable of the environment or a file, read when it is needed. What it stands for is in no
statement, so the catalog, its copies and what is shown of it cannot have it. A literal is refused, and no error about
such a statement repeats a text of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from mz_dagster.errors import ProgrammingError
from mz_dagster.sql.cursor import TokenCursor, quoted
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import Name, Statement

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+", re.DOTALL)

#: What a connection leads to.
ConnectionKind = Literal["s3", "gcs", "azure", "http", "iceberg catalog"]

#: The options of each kind of connection: their words, and what each is.
_OptionKind = Literal["text", "secret", "connection"]
_OPTIONS: dict[ConnectionKind, dict[tuple[str, ...], _OptionKind]] = {
    "s3": {
        ("access", "key", "id"): "text",
        ("secret", "access", "key"): "secret",
        ("session", "token"): "secret",
        ("region",): "text",
        ("endpoint",): "text",
    },
    "gcs": {("service", "account", "key"): "secret"},
    "azure": {
        ("account", "name"): "text",
        ("account", "key"): "secret",
        ("sas", "token"): "secret",
        ("client", "id"): "text",
        ("client", "secret"): "secret",
        ("tenant", "id"): "text",
        ("endpoint",): "text",
    },
    "http": {("url",): "text", ("token",): "secret"},
    "iceberg catalog": {
        ("catalog", "type"): "text",
        ("url",): "text",
        ("name",): "text",
        ("warehouse",): "text",
        ("credential",): "secret",
        ("token", "url"): "text",
        ("token",): "secret",
        ("scope",): "text",
        ("s3", "connection"): "connection",
    },
}
#: All options, the longer ones before those with which they begin.
_ALL = dict(sorted((item for one in _OPTIONS.values() for item in one.items()), key=lambda item: -len(item[0])))
_WEB = re.compile(r"https?://[^/?#@\s]+(/[^/?#\s]+)*/?", re.ASCII)
_CATALOG_TYPES = ("rest", "sql")
_OF_REST = ("warehouse", "credential", "token", "token url", "scope")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@")


@dataclass(frozen=True, slots=True)
class CreateSecret(Statement):
    """`CREATE SECRET name AS '${VARIABLE}' | 'file:path'`.

    Attributes:
        name: Its name.
        reference: Where its value is.
        if_not_exists: Whether one that is there is good enough.
    """

    name: Name
    reference: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateConnection(Statement):
    """`CREATE CONNECTION name TO S3 | GCS | AZURE | HTTP | ICEBERG CATALOG (option = 'value' | SECRET name, ...)`.

    Attributes:
        name: Its name.
        kind: What it leads to.
        options: Texts, or names of secrets and connections, by the options' names: `access key id` and so on.
        if_not_exists: Whether one that is there is good enough.
    """

    name: Name
    kind: ConnectionKind
    options: dict[str, str | Name]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AlterMeans(Statement):
    """What has a connection or a secret lead elsewhere.

    Attributes:
        name: Its name.
        if_exists: Whether nothing is to be done if there is none.
    """

    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterSecret(AlterMeans):
    """`ALTER SECRET name AS '${VARIABLE}' | 'file:path'`.

    Attributes:
        reference: Where its value is from then on.
    """

    reference: str


@dataclass(frozen=True, slots=True)
class AlterConnection(AlterMeans):
    """`ALTER CONNECTION name SET (option = value, ...) | RESET (option, ...) [, ...]`.

    Attributes:
        options: What becomes of options, in order: a value, or None for one that goes.
    """

    options: tuple[tuple[str, str | Name | None], ...]


def parse_alter_secret(cursor: TokenCursor, common: Common, name: Name, if_exists: bool) -> AlterSecret:
    """Moves past what follows `ALTER SECRET name`.

    Raises:
        InvalidTableDefinition: It is no reference.
    """
    return AlterSecret(*common, name, if_exists, _reference(cursor, name))


def parse_alter_connection(cursor: TokenCursor, common: Common, name: Name, if_exists: bool) -> AlterConnection:
    """Moves past what follows `ALTER CONNECTION name`; whether it has such options is not known here.

    Raises:
        InvalidTableDefinition: A secret is written out.
    """
    found: list[tuple[str, str | Name | None]] = []
    with _not_repeating(cursor):
        while not found or cursor.accepts_symbol(","):
            sets = cursor.accepts("set")
            if not sets and not cursor.accepts("reset") and not cursor.accepts("drop"):
                raise cursor.unexpected("SET or RESET")
            cursor.expects_symbol("(")
            while True:
                option, is_a = _option(cursor, _ALL)
                found.append((option, _value(cursor, option, is_a, name) if sets else None))
                if cursor.accepts_symbol(")"):
                    break
                cursor.expects_symbol(",")
        cursor.expects_end()
    names = [option for option, _ in found]
    if repeated := next((one for one in names if names.count(one) > 1), None):
        raise InvalidSyntax(f"{repeated.upper()} is given twice")
    return AlterConnection(*common, name, if_exists, tuple(found))


def altered_text(created: CreateConnection, statement: AlterConnection) -> str:
    """Returns what creates a connection as it is once it is altered; whether it may be so, who parses it finds out.

    Raises:
        InvalidTableDefinition: Connections of its kind have no such option.
    """
    options = dict(created.options)
    for option, value in statement.options:
        if tuple(option.split()) not in _OPTIONS[created.kind]:
            known = ", ".join(" ".join(words).upper() for words in _OPTIONS[created.kind])
            raise InvalidTableDefinition(
                f'connection "{created.name}" leads to {created.kind.upper()}, which has no option {option.upper()}',
                hint=f"Its options are {known}.",
            )
        if value is None:
            options.pop(option, None)
        else:
            options[option] = value
    return connection_text(replace(created, options=options))


def connection_text(created: CreateConnection) -> str:
    """Returns what creates a connection, written in one way."""
    written = ", ".join(f"{option.upper()} = {_written(option, value)}" for option, value in created.options.items())
    return f"CREATE CONNECTION {_name(created.name)} TO {created.kind.upper()} ({written})"


def secret_text(name: Name, reference: str) -> str:
    """Returns what creates a secret."""
    return f"CREATE SECRET {_name(name)} AS {_text(reference)}"


def _written(option: str, value: str | Name) -> str:
    if isinstance(value, str):
        return _text(value)
    return _name(value) if option == "s3 connection" else f"SECRET {_name(value)}"


def _name(name: Name) -> str:
    return ".".join(quoted(part) for part in name.parts)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def parse_create_secret(cursor: TokenCursor, common: Common) -> CreateSecret:
    """Moves past what follows `CREATE SECRET`.

    Raises:
        InvalidTableDefinition: It is no reference.
    """
    with _not_repeating(cursor):
        if_not_exists = cursor.accepts("if", "not", "exists")
        name = cursor.name()
    return CreateSecret(*common, name, _reference(cursor, name), if_not_exists)


def _reference(cursor: TokenCursor, name: Name) -> str:
    """Moves past `AS '...'`, which ends the statement."""
    with _not_repeating(cursor):
        cursor.expects("as")
        reference = cursor.string("a reference")
        cursor.expects_end()
    if not _REFERENCE.fullmatch(reference):
        raise InvalidTableDefinition(
            f'secret "{name}" is not a reference',
            detail="What a statement says is kept in the catalog and its backups, where no secret belongs.",
            hint="Write AS '${VARIABLE}' for a variable of the environment, or AS 'file:path' for what a file has.",
        )
    return reference


def parse_create_connection(cursor: TokenCursor, common: Common) -> CreateConnection:
    """Moves past what follows `CREATE CONNECTION`.

    Raises:
        InvalidTableDefinition: A secret is written out, or options are missing or do not go together.
        UnsupportedForm: It leads to something else than an object store or a catalog of Iceberg tables.
    """
    with _not_repeating(cursor):
        found = _connection(cursor, common)
        cursor.expects_end()
    return found


def _connection(cursor: TokenCursor, common: Common) -> CreateConnection:
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    cursor.expects("to")
    kind = next((kind for kind in _OPTIONS if cursor.accepts(*kind.split())), None)
    if kind is None:
        raise cursor.refuse(
            "this kind of connection",
            "S3 is known, with what speaks its protocol, GCS, AZURE, HTTP and ICEBERG CATALOG.",
        )
    cursor.expects_symbol("(")
    options: dict[str, str | Name] = {}
    while not cursor.accepts_symbol(")"):
        if options:
            cursor.expects_symbol(",")
        option, is_a = _option(cursor, _OPTIONS[kind])
        if option in options:
            raise InvalidSyntax(f"{option.upper()} is given twice")
        options[option] = _value(cursor, option, is_a, name)
    if ("access key id" in options) != ("secret access key" in options):
        raise InvalidTableDefinition(
            "ACCESS KEY ID and SECRET ACCESS KEY go together",
            hint="Give both, or none: then the machine's own credentials are used, as AWS's tools find them.",
        )
    if kind == "iceberg catalog":
        _check_catalog(options)
    if kind == "http" and not re.fullmatch(_WEB, str(options.get("url"))):
        raise InvalidTableDefinition(
            "a connection to a web server requires a URL", hint="Write URL = 'https://example.com/folder'."
        )
    if kind == "azure":
        _check_azure(options)
    return CreateConnection(*common, name, kind, options, if_not_exists)


def _value(cursor: TokenCursor, option: str, is_a: _OptionKind, name: Name) -> str | Name:
    """Moves past an option's value."""
    cursor.accepts_symbol("=")
    if is_a == "connection" or cursor.accepts("secret"):
        return cursor.name()
    if is_a == "secret" or _PASSWORD.search(cursor.current.value):
        raise InvalidTableDefinition(
            f'{option.upper()} of connection "{name}" has to be a secret',
            detail="What a statement says is kept in the catalog and its backups, where no secret belongs.",
            hint=f"CREATE SECRET name AS '${{VARIABLE}}', and write {option.upper()} = SECRET name.",
        )
    return cursor.string(option.upper())


def _check_catalog(options: dict[str, str | Name]) -> None:
    type_ = options.get("catalog type")
    if type_ not in _CATALOG_TYPES:
        raise InvalidTableDefinition(
            "an Iceberg catalog requires a CATALOG TYPE that is known",
            hint="Write CATALOG TYPE = 'rest' or CATALOG TYPE = 'sql'.",
        )
    if "url" not in options:
        raise InvalidTableDefinition(
            "an Iceberg catalog requires a URL",
            hint="It is that of a REST server, or of a database as SQLAlchemy has it: URL = 'sqlite:///lake/catalog.db'.",
        )
    wrong = [one for one in options if (one in _OF_REST) != (type_ == "rest") and one in (*_OF_REST, "name")]
    if wrong:
        raise InvalidTableDefinition(f"{wrong[0].upper()} is no option of a catalog of type '{type_}'")


def _check_azure(options: dict[str, str | Name]) -> None:
    if "account name" not in options:
        raise InvalidTableDefinition(
            "a connection to Azure requires an ACCOUNT NAME", hint="Write ACCOUNT NAME = '...', the storage account's."
        )
    principal = {"client id", "client secret", "tenant id"} & options.keys()
    ways = ["account key" in options, "sas token" in options, bool(principal)]
    if sum(ways) > 1 or len(principal) not in (0, 3):
        raise InvalidTableDefinition(
            "a connection to Azure has one way to get in",
            hint="Give ACCOUNT KEY, or SAS TOKEN, or CLIENT ID with CLIENT SECRET and TENANT ID; or none: then the "
            "machine's own identity is used.",
        )


@contextmanager
def _not_repeating(cursor: TokenCursor) -> Iterator[None]:
    """Has errors say nothing of what is between quotes, nor show the line that they are about."""
    try:
        yield
    except ProgrammingError as error:
        message = error.message
        for token in cursor.tokens:
            if token.kind is TokenKind.STRING:
                message = message.replace(cursor.source[token.start : token.end], "'...'")
        raise type(error)(message, detail=error.detail, hint=error.hint) from None


def _option(cursor: TokenCursor, known: Mapping[tuple[str, ...], _OptionKind]) -> tuple[str, _OptionKind]:
    for words, is_a in known.items():
        if cursor.accepts(*words):
            return " ".join(words), is_a
    raise cursor.unexpected(" or ".join(" ".join(words).upper() for words in known))
