"""`CREATE SECRET` and `CREATE CONNECTION`: what sources and sinks outside of this machine need.

A secret is a reference: to a variable of the environment or a file, read when it is needed. What it stands for is in no
statement, so the catalog, its copies and what is shown of it cannot have it. A literal is refused, and no error about
such a statement repeats a text of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from mz_dagster.errors import ProgrammingError
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import Name, Statement

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+", re.DOTALL)

#: What a connection leads to.
ConnectionKind = Literal["s3", "gcs", "azure", "http", "iceberg catalog"]

#: The options of each kind of connection: their words, and what each is.
_OPTIONS: dict[ConnectionKind, dict[tuple[str, ...], Literal["text", "secret", "connection"]]] = {
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


def parse_create_secret(cursor: TokenCursor, common: Common) -> CreateSecret:
    """Moves past what follows `CREATE SECRET`.

    Raises:
        InvalidTableDefinition: It is no reference.
    """
    with _not_repeating(cursor):
        if_not_exists = cursor.accepts("if", "not", "exists")
        name = cursor.name()
        cursor.expects("as")
        reference = cursor.string("a reference")
        cursor.expects_end()
    if not _REFERENCE.fullmatch(reference):
        raise InvalidTableDefinition(
            f'secret "{name}" is not a reference',
            detail="What a statement says is kept in the catalog and its backups, where no secret belongs.",
            hint="Write AS '${VARIABLE}' for a variable of the environment, or AS 'file:path' for what a file has.",
        )
    return CreateSecret(*common, name, reference, if_not_exists)


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
        words, is_a = _option(cursor, kind)
        option = " ".join(words)
        if option in options:
            raise InvalidSyntax(f"{option.upper()} is given twice")
        cursor.accepts_symbol("=")
        if is_a == "connection" or cursor.accepts("secret"):
            options[option] = cursor.name()
        elif is_a == "secret" or _PASSWORD.search(cursor.current.value):
            raise InvalidTableDefinition(
                f'{option.upper()} of connection "{name}" has to be a secret',
                detail="What a statement says is kept in the catalog and its backups, where no secret belongs.",
                hint=f"CREATE SECRET name AS '${{VARIABLE}}', and write {option.upper()} = SECRET name.",
            )
        else:
            options[option] = cursor.string(option.upper())
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


def _option(cursor: TokenCursor, kind: ConnectionKind) -> tuple[tuple[str, ...], str]:
    for words, is_a in _OPTIONS[kind].items():
        if cursor.accepts(*words):
            return words, is_a
    raise cursor.unexpected(" or ".join(" ".join(words).upper() for words in _OPTIONS[kind]))
