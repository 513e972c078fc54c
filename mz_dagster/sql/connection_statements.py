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

from mz_dagster.errors import ProgrammingError
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import Name, Statement

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+", re.DOTALL)

#: The options of a connection: their words, and whether each is a secret.
_OPTIONS = {
    ("access", "key", "id"): False,
    ("secret", "access", "key"): True,
    ("session", "token"): True,
    ("region",): False,
    ("endpoint",): False,
}


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
    """`CREATE CONNECTION name TO S3 (option = 'value' | SECRET name, ...)`.

    Attributes:
        name: Its name.
        options: Texts, or names of secrets, by the options' names: `access key id` and so on.
        if_not_exists: Whether one that is there is good enough.
    """

    name: Name
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
        InvalidTableDefinition: A secret is written out, or only one of the two parts of a key is there.
        UnsupportedForm: It leads to something else than S3.
    """
    with _not_repeating(cursor):
        found = _connection(cursor, common)
        cursor.expects_end()
    return found


def _connection(cursor: TokenCursor, common: Common) -> CreateConnection:
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    cursor.expects("to")
    if not cursor.accepts("s3"):
        raise cursor.refuse("this kind of connection", "Only S3 is known, and what speaks its protocol.")
    cursor.expects_symbol("(")
    options: dict[str, str | Name] = {}
    while not cursor.accepts_symbol(")"):
        if options:
            cursor.expects_symbol(",")
        words, is_secret = _option(cursor)
        option = " ".join(words)
        if option in options:
            raise InvalidSyntax(f"{option.upper()} is given twice")
        cursor.accepts_symbol("=")
        if cursor.accepts("secret"):
            options[option] = cursor.name()
        elif is_secret:
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
    return CreateConnection(*common, name, options, if_not_exists)


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


def _option(cursor: TokenCursor) -> tuple[tuple[str, ...], bool]:
    for words, is_secret in _OPTIONS.items():
        if cursor.accepts(*words):
            return words, is_secret
    raise cursor.unexpected(" or ".join(" ".join(words).upper() for words in _OPTIONS))
