"""What clients are told of connections, prepared statements and portals, beside what sessions say."""

from __future__ import annotations

from mz_dagster.errors import OperationalError, ProgrammingError


class InvalidPassword(ProgrammingError):
    """Somebody who may not connect."""

    sqlstate = "28P01"


class NotPermitted(ProgrammingError):
    """A role that has a password and may not connect."""

    sqlstate = "28000"


class TooManyConnections(OperationalError):
    """A client more than the server takes."""

    sqlstate = "53300"


class UndefinedPortal(ProgrammingError):
    """The name of a portal that there is none of."""

    sqlstate = "34000"


class CopyEnded(OperationalError):
    """A COPY whose client has given up."""

    sqlstate = "57014"


class IdleTimeout(OperationalError):
    """A client that was idle for longer than it may be, in no transaction."""

    sqlstate = "57P05"


class IdleInTransactionTimeout(OperationalError):
    """A client that was idle for longer than it may be, in a transaction."""

    sqlstate = "25P03"


def idle_error(*, in_transaction: bool) -> OperationalError:
    """Returns what a client is told that was idle for too long."""
    if in_transaction:
        return IdleInTransactionTimeout(
            "terminating connection due to idle-in-transaction timeout",
            detail="The transaction is rolled back.",
            hint="Commit sooner, or SET idle_in_transaction_session_timeout = 0.",
        )
    return IdleTimeout(
        "terminating connection due to idle-session timeout", hint="Connect anew, or SET idle_session_timeout = 0."
    )
