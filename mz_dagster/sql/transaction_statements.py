"""BEGIN, COMMIT, ROLLBACK, savepoints, and SET TRANSACTION: parses the statements that bound transactions.

Isolation levels are those of the session (`adapter.timestamps.Isolation`), and PostgreSQL's weaker ones, which are
served by the strongest: a level says what must not happen, so that more than it asks for is right.
"""

from __future__ import annotations

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.session_statements import (
    Begin,
    Commit,
    LockTable,
    ReleaseSavepoint,
    Rollback,
    RollbackTo,
    Savepoint,
    SetTransaction,
    TransactionModes,
)
from mz_dagster.sql.statements import Name

#: What the levels that can be named are served by.
ISOLATION_LEVELS = {
    "read uncommitted": "strict serializable",
    "read committed": "strict serializable",
    "repeatable read": "strict serializable",
    "serializable": "serializable",
    "strict serializable": "strict serializable",
}


def parse_begin(cursor: TokenCursor, common: Common) -> Begin:
    """Moves past `BEGIN [WORK | TRANSACTION] modes` or `START TRANSACTION modes`."""
    if cursor.accepts("start"):
        cursor.expects("transaction")
    else:
        cursor.expects("begin")
        cursor.accepts("work|transaction")
    return Begin(*common, _modes(cursor))


def parse_set_transaction(cursor: TokenCursor, common: Common) -> SetTransaction | None:
    """Moves past what follows SET, if it is `TRANSACTION modes` or `SESSION CHARACTERISTICS AS TRANSACTION modes`."""
    of_session = cursor.accepts("session", "characteristics", "as", "transaction")
    if not of_session and not cursor.accepts("transaction"):
        return None
    if cursor.sees("snapshot"):
        raise cursor.refuse("SET TRANSACTION SNAPSHOT", "A transaction reads at a time.", "Read AS OF that time.")
    if cursor.current.kind is TokenKind.END:
        raise cursor.unexpected("ISOLATION LEVEL, READ ONLY or READ WRITE")
    return SetTransaction(*common, _modes(cursor), of_session)


#: The modes of LOCK TABLE.
_LOCK_MODES = (
    "access share", "row share", "row exclusive", "share update exclusive", "share row exclusive", "share", "exclusive",
    "access exclusive",
)  # fmt: skip


def parse_lock_table(cursor: TokenCursor, common: Common) -> LockTable:
    """Moves past `LOCK [TABLE] [ONLY] name, ... [IN mode MODE] [NOWAIT]`."""
    cursor.advance()
    cursor.accepts("table")
    names: list[Name] = []
    while not names or cursor.accepts_symbol(","):
        cursor.accepts("only")
        names.append(cursor.name())
    mode = "access exclusive"
    if cursor.accepts("in"):
        said = next((one for one in _LOCK_MODES if cursor.accepts(*one.split())), None)
        if said is None:
            raise cursor.unexpected("the mode of a lock")
        mode = said
        cursor.expects("mode")
    return LockTable(*common, tuple(names), mode.upper(), cursor.accepts("nowait"))


def parse_commit(cursor: TokenCursor, common: Common) -> Commit:
    """Moves past `COMMIT | END [WORK | TRANSACTION] [AND [NO] CHAIN]`."""
    cursor.advance()
    if cursor.sees("prepared"):
        raise cursor.refuse("COMMIT PREPARED", "There are no prepared transactions.")
    cursor.accepts("work|transaction")
    return Commit(*common, _chain(cursor))


def parse_rollback(cursor: TokenCursor, common: Common) -> Rollback | RollbackTo:
    """Moves past `ROLLBACK | ABORT [WORK | TRANSACTION] [AND [NO] CHAIN | TO [SAVEPOINT] name]`."""
    cursor.advance()
    if cursor.sees("prepared"):
        raise cursor.refuse("ROLLBACK PREPARED", "There are no prepared transactions.")
    cursor.accepts("work|transaction")
    if cursor.accepts("to"):
        cursor.accepts("savepoint")
        return RollbackTo(*common, cursor.identifier("the name of a savepoint"))
    return Rollback(*common, _chain(cursor))


def parse_savepoint(cursor: TokenCursor, common: Common) -> Savepoint:
    """Moves past `SAVEPOINT name`."""
    cursor.expects("savepoint")
    return Savepoint(*common, cursor.identifier("the name of a savepoint"))


def parse_release(cursor: TokenCursor, common: Common) -> ReleaseSavepoint:
    """Moves past `RELEASE [SAVEPOINT] name`."""
    cursor.expects("release")
    cursor.accepts("savepoint")
    return ReleaseSavepoint(*common, cursor.identifier("the name of a savepoint"))


def _isolation_level(cursor: TokenCursor) -> str:
    """Moves past the name of an isolation level, and returns it."""
    token = cursor.current
    name = cursor.identifier("an isolation level")
    if name in ("read", "repeatable", "strict"):
        name = f"{name} {cursor.identifier('an isolation level')}"
    if name not in ISOLATION_LEVELS:
        error = InvalidSyntax(f'isolation level "{name}" is not known', position=token.start + 1)
        error.hint = f"Use one of {', '.join(one.upper() for one in ISOLATION_LEVELS)}."
        raise error
    return name


def _modes(cursor: TokenCursor) -> TransactionModes:
    isolation: str | None = None
    read_only: bool | None = None
    while cursor.at < len(cursor.tokens):
        if cursor.accepts("read", "only"):
            read_only = True
        elif cursor.accepts("read", "write"):
            read_only = False
        elif cursor.accepts("isolation", "level"):
            isolation = _isolation_level(cursor)
        elif not cursor.accepts("deferrable") and not cursor.accepts("not", "deferrable"):  # nothing is ever deferred
            raise cursor.unexpected("ISOLATION LEVEL, READ ONLY or READ WRITE")
        if cursor.accepts_symbol(",") and cursor.at == len(cursor.tokens):
            raise cursor.unexpected("a transaction mode")
    return TransactionModes(isolation, read_only)


def _chain(cursor: TokenCursor) -> bool:
    if not cursor.accepts("and"):
        return False
    negated = cursor.accepts("no")
    cursor.expects("chain")
    return not negated
