"""Statements about a session itself, as data: cursors, settings, transactions, and what it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mz_dagster.scalars.types import ScalarType
from mz_dagster.sql.statements import (
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateView,
    Delete,
    Insert,
    Name,
    Select,
    SqlText,
    Statement,
    Subscribe,
    Update,
)


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """`DECLARE name CURSOR FOR query`.

    Attributes:
        name: The cursor's.
        query: What it reads.
        holds: Whether it outlives its transaction.
        scrolls: Whether it may go back; None for as far as it can.
    """

    name: str
    query: Select | Subscribe
    holds: bool
    scrolls: bool | None


@dataclass(frozen=True, slots=True)
class LockTable(Statement):
    """`LOCK [TABLE] name, ... [IN mode MODE] [NOWAIT]`; the mode is in capitals."""

    names: tuple[Name, ...]
    mode: str
    nowait: bool


@dataclass(frozen=True, slots=True)
class Fetch(Statement):
    """`FETCH` or `MOVE`.

    Attributes:
        name: The cursor's.
        step: `forward` or `backward` by `count` rows; to the `absolute` row `count`, negative from the end; or by
            `relative` so many rows, of which only the last is returned.
        count: How many; None for all.
        moves: Whether it is MOVE, which returns no rows.
        timeout_ms: How long to wait for rows of a subscription, in milliseconds; None for as long as the first takes.
    """

    name: str
    step: Literal["forward", "backward", "absolute", "relative"]
    count: int | None
    moves: bool
    timeout_ms: int | None


@dataclass(frozen=True, slots=True)
class CloseCursor(Statement):
    """`CLOSE`; without a name, all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Prepare(Statement):
    """`PREPARE name (type, ...) AS statement`.

    Attributes:
        name: What it is called from then on.
        types: Of its first parameters; None of one whose type is left to where it stands.
        prepared: The statement, with `?` for its parameters.
        places: Of each `?` the number of the parameter that stands there, from 0 on.
    """

    name: str
    types: tuple[ScalarType | None, ...]
    prepared: Select | Insert | Update | Delete
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Execute(Statement):
    """`EXECUTE name (value, ...)`."""

    name: Name
    arguments: tuple[SqlText, ...]


@dataclass(frozen=True, slots=True)
class Deallocate(Statement):
    """`DEALLOCATE`; without a name, all statements that the client has prepared."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard(Statement):
    """`DISCARD`; `what` is `all`, `plans`, `sequences` or `temp`."""

    what: str


@dataclass(frozen=True, slots=True)
class Unlisten(Statement):
    """`UNLISTEN`; nobody can be listening."""


@dataclass(frozen=True, slots=True)
class SetConstraints(Statement):
    """`SET CONSTRAINTS {ALL | name, ...} {DEFERRED | IMMEDIATE}`; without names all that are deferrable."""

    names: tuple[Name, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class ResetAll(Statement):
    """`RESET ALL`."""


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """`EXPLAIN`; `stage` is `plan` (both), `logical` or `physical`.

    The target is a query, the name of a view or index, or a statement that would create one; a query if it is to be
    executed, so that its costs are known.
    """

    stage: str
    target: Name | SqlText | CreateView | CreateMaterializedView | CreateIndex | CreateCheck
    analyzes: bool = False


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """`SHOW`; `what` is `objects`, `tables`, ..., `columns`, `indexes` or `create`.

    Attributes:
        what: As above.
        name: For `columns` and `indexes`, of which object; for `create`, the object.
        kind: For `create`: the kind of the object.
        pattern: Of `LIKE '...'`, or None.
        predicate: Of `WHERE ...`, or None.
    """

    what: str
    name: Name | None
    kind: str | None
    pattern: str | None
    predicate: SqlText | None = None


@dataclass(frozen=True, slots=True)
class SetSetting(Statement):
    """`SET name = value` of the session, or of the transaction alone if it is local; None is DEFAULT."""

    name: str
    value: str | None
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class ShowSetting(Statement):
    """`SHOW name` of a setting of the session; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class TransactionModes:
    """What a statement says of transactions; None where it says nothing.

    Attributes:
        isolation: The name of the isolation level, one of `ISOLATION_LEVELS`.
        read_only: Whether nothing may be written.
    """

    isolation: str | None
    read_only: bool | None


@dataclass(frozen=True, slots=True)
class Begin(Statement):
    """`BEGIN` or `START TRANSACTION`."""

    modes: TransactionModes


@dataclass(frozen=True, slots=True)
class SetTransaction(Statement):
    """`SET TRANSACTION`, or `SET SESSION CHARACTERISTICS AS TRANSACTION`, which is for those that follow."""

    modes: TransactionModes
    of_session: bool


@dataclass(frozen=True, slots=True)
class Commit(Statement):
    """`COMMIT` or `END`; with `chain` the next transaction begins at once."""

    chain: bool


@dataclass(frozen=True, slots=True)
class Rollback(Statement):
    """`ROLLBACK` or `ABORT`; with `chain` the next transaction begins at once."""

    chain: bool


@dataclass(frozen=True, slots=True)
class Savepoint(Statement):
    """`SAVEPOINT`."""

    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint(Statement):
    """`RELEASE SAVEPOINT`."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo(Statement):
    """`ROLLBACK TO SAVEPOINT`."""

    name: str
