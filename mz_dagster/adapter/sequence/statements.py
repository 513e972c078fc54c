"""The table of statements: which function carries out a statement of a type, and what it does to a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar, cast

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence import alter, copy, create, cursors, discard, prepare, settings
from mz_dagster.adapter.sequence import transaction_control as control
from mz_dagster.adapter.sequence.alter_means import alter_means
from mz_dagster.adapter.sequence.alter_source import alter_source
from mz_dagster.adapter.sequence.alter_table import alter_table
from mz_dagster.adapter.sequence.alter_type import alter_type
from mz_dagster.adapter.sequence.comment import comment
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.create_schema import create_schema
from mz_dagster.adapter.sequence.create_table_as import create_table_as
from mz_dagster.adapter.sequence.delete import delete
from mz_dagster.adapter.sequence.drop import drop
from mz_dagster.adapter.sequence.explain import explain
from mz_dagster.adapter.sequence.insert import insert
from mz_dagster.adapter.sequence.locking import lock_table
from mz_dagster.adapter.sequence.refresh import maintain, refresh
from mz_dagster.adapter.sequence.roles import change_roles
from mz_dagster.adapter.sequence.select import select
from mz_dagster.adapter.sequence.show import show
from mz_dagster.adapter.sequence.subscribe import subscribe
from mz_dagster.adapter.sequence.truncate import truncate
from mz_dagster.adapter.sequence.unique_index import create_unique_index
from mz_dagster.adapter.sequence.update import update
from mz_dagster.sql import (
    AlterDropErrors,
    AlterRename,
    AlterReset,
    AlterRetainHistory,
    AlterSource,
    AlterTable,
    AlterType,
    Begin,
    CloseCursor,
    Comment,
    Commit,
    Copy,
    CopyFromClient,
    CopyToClient,
    CopyToFile,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateUniqueIndex,
    CreateView,
    Deallocate,
    Declare,
    Delete,
    Discard,
    Drop,
    Execute,
    Explain,
    Fetch,
    Insert,
    LockTable,
    Maintenance,
    Prepare,
    Refresh,
    ReleaseSavepoint,
    ResetAll,
    Rollback,
    RollbackTo,
    Savepoint,
    Select,
    SetConstraints,
    SetSetting,
    SetTransaction,
    Show,
    ShowSetting,
    Statement,
    Subscribe,
    Truncate,
    Unlisten,
    Update,
)
from mz_dagster.sql.connection_statements import AlterConnection, AlterSecret, CreateConnection, CreateSecret
from mz_dagster.sql.role_statements import AlterRole, CreateRole, DropRole, Grant, GrantRole


class Effect(Enum):
    """What a statement does, of what a transaction block has to know."""

    BOUNDS = auto()
    """It begins or ends a block, or part of one, or is what another statement is."""
    OF_SESSION = auto()
    """It is about the session itself, and neither reads nor writes."""
    READS = auto()
    WRITES = auto()
    DEFINES = auto()
    """It defines what others see at once."""


S = TypeVar("S", bound=Statement)


@dataclass(frozen=True, slots=True)
class Sequenced:
    """How a type of statement is carried out.

    Attributes:
        carry_out: Carries it out, given the session's context, the statement and a value for each of its parameters.
        effect: What it does to a block.
    """

    carry_out: Callable[[Context, Statement, Sequence[object]], Result]
    effect: Effect


def _of(
    effect: Effect, carry_out: Callable[[Context, S, Sequence[object]], Result], type_: type[S]
) -> dict[type[Statement], Sequenced]:
    of_any = cast("Callable[[Context, Statement, Sequence[object]], Result]", carry_out)  # it is looked up by its type
    return {type_: Sequenced(of_any, effect)}


STATEMENTS: Mapping[type[Statement], Sequenced] = {
    **_of(Effect.BOUNDS, control.begin, Begin),
    **_of(Effect.BOUNDS, control.end, Commit),
    **_of(Effect.BOUNDS, control.end, Rollback),
    **_of(Effect.BOUNDS, control.roll_back_to, RollbackTo),
    **_of(Effect.OF_SESSION, control.savepoint, Savepoint),
    **_of(Effect.OF_SESSION, control.release, ReleaseSavepoint),
    **_of(Effect.OF_SESSION, settings.set_transaction, SetTransaction),
    **_of(Effect.OF_SESSION, settings.set_constraints, SetConstraints),
    **_of(Effect.OF_SESSION, settings.set_setting, SetSetting),
    **_of(Effect.OF_SESSION, settings.reset_all, ResetAll),
    **_of(Effect.OF_SESSION, settings.show_setting, ShowSetting),
    **_of(Effect.OF_SESSION, discard.discard, Discard),
    **_of(Effect.OF_SESSION, prepare.prepare, Prepare),
    **_of(Effect.BOUNDS, prepare.execute, Execute),
    **_of(Effect.OF_SESSION, discard.deallocate, Deallocate),
    **_of(Effect.OF_SESSION, discard.unlisten, Unlisten),
    **_of(Effect.OF_SESSION, cursors.fetch, Fetch),
    **_of(Effect.OF_SESSION, cursors.close_cursor, CloseCursor),
    **_of(Effect.OF_SESSION, show, Show),
    **_of(Effect.OF_SESSION, explain, Explain),
    **_of(Effect.READS, cursors.declare, Declare),
    **_of(Effect.READS, select, Select),
    **_of(Effect.READS, lock_table, LockTable),
    **_of(Effect.READS, subscribe, Subscribe),
    **_of(Effect.READS, copy.copy_to_client, CopyToClient),
    **_of(Effect.READS, copy.copy_to_file, CopyToFile),
    **_of(Effect.READS, refresh, Refresh),
    **_of(Effect.READS, maintain, Maintenance),
    **_of(Effect.WRITES, insert, Insert),
    **_of(Effect.WRITES, delete, Delete),
    **_of(Effect.WRITES, update, Update),
    **_of(Effect.WRITES, truncate, Truncate),
    **_of(Effect.WRITES, copy.copy_from_file, Copy),
    **_of(Effect.WRITES, copy.copy_from_client, CopyFromClient),
    **_of(Effect.DEFINES, create.create, CreateSource),
    **_of(Effect.DEFINES, create.create, CreateSink),
    **_of(Effect.DEFINES, create.create, CreateCheck),
    **_of(Effect.DEFINES, create.create, CreateTable),
    **_of(Effect.DEFINES, create.create, CreateView),
    **_of(Effect.DEFINES, create.create, CreateMaterializedView),
    **_of(Effect.DEFINES, create.create, CreateIndex),
    **_of(Effect.DEFINES, create_unique_index, CreateUniqueIndex),
    **_of(Effect.DEFINES, create.create, CreateType),
    **_of(Effect.DEFINES, create.create, CreateSecret),
    **_of(Effect.DEFINES, create.create, CreateConnection),
    **_of(Effect.DEFINES, create_schema, CreateSchema),
    **_of(Effect.DEFINES, create_table_as, CreateTableAs),
    **_of(Effect.DEFINES, drop, Drop),
    **_of(Effect.DEFINES, alter.rename, AlterRename),
    **_of(Effect.DEFINES, alter.reset, AlterReset),
    **_of(Effect.DEFINES, alter.drop_errors, AlterDropErrors),
    **_of(Effect.DEFINES, alter.alter_retain_history, AlterRetainHistory),
    **_of(Effect.DEFINES, alter_source, AlterSource),
    **_of(Effect.DEFINES, alter_table, AlterTable),
    **_of(Effect.DEFINES, alter_type, AlterType),
    **_of(Effect.DEFINES, alter_means, AlterConnection),
    **_of(Effect.DEFINES, alter_means, AlterSecret),
    **_of(Effect.DEFINES, comment, Comment),
    **_of(Effect.DEFINES, change_roles, CreateRole),
    **_of(Effect.DEFINES, change_roles, AlterRole),
    **_of(Effect.DEFINES, change_roles, DropRole),
    **_of(Effect.DEFINES, change_roles, Grant),
    **_of(Effect.DEFINES, change_roles, GrantRole),
}
