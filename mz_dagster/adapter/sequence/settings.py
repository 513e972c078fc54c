"""SET, RESET and SHOW of settings, SET TRANSACTION and SET CONSTRAINTS."""

from __future__ import annotations

from mz_dagster.adapter.config_calls import every_setting, setting_column
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.adapter.table_references import TableReferences
from mz_dagster.catalog import stands_for
from mz_dagster.notices import warn
from mz_dagster.sql import Name, ResetAll, SetConstraints, SetSetting, SetTransaction, ShowSetting
from mz_dagster.sql.errors import UndefinedObject, WrongObjectKind


def set_setting(context: Context, statement: SetSetting, _: Parameters) -> Result:
    """Sets or resets a setting."""
    context.variables.set(statement.name, statement.value, is_local=statement.is_local)
    return Result(statement.text.split(maxsplit=1)[0].upper())


def set_transaction(context: Context, statement: SetTransaction, _: Parameters) -> Result:
    """Sets the modes of the block that is open, or of those to come."""
    if not statement.of_session and context.variables.transaction is None:
        context.block(statement)
    context.variables.set_modes(statement.modes, of_session=statement.of_session)
    return Result("SET")


def set_constraints(context: Context, statement: SetConstraints, _: Parameters) -> Result:
    """Has foreign keys that are deferrable be looked at when the block commits, or at the end of each statement.

    Raises:
        UndefinedObject: There is no such constraint.
        WrongObjectKind: It is not deferrable.
        ForeignKeyViolation: What was put off, and is to be looked at now, breaks a key.
    """
    named = None if not statement.names else [one for name in statement.names for one in _constraints(context, name)]
    block = context.variables.transaction
    if block is None:
        warn("SET CONSTRAINTS can only be used in transaction blocks", "25P01")
        return Result("SET CONSTRAINTS")
    block.constraints.set(named, deferred=statement.deferred)
    if not statement.deferred:
        with context.failing():
            context.check_deferred(at_commit=False)
    return Result("SET CONSTRAINTS")


def _constraints(context: Context, name: Name) -> list[tuple[str, str]]:
    """Returns the foreign keys of a name, by what their tables stand for and their own name."""
    schemas = name.parts[:-1] or context.names.path()
    found = [one for one in TableReferences(context.names) if one.key.name == name.last and one.child.schema in schemas]
    if not found:
        raise UndefinedObject(f'constraint "{name}" does not exist', position=name.offset + 1)
    if not all(one.key.is_deferrable for one in found):
        raise WrongObjectKind(f'constraint "{name.last}" is not deferrable', position=name.offset + 1)
    return [(stands_for(one.child), one.key.name) for one in found]


def reset_all(context: Context, _: ResetAll, __: Parameters) -> Result:
    """Resets all settings."""
    context.variables.reset_all()
    return Result("RESET")


def show_setting(context: Context, statement: ShowSetting, _: Parameters) -> Result:
    """Returns what a setting is, or all."""
    if statement.name is None:
        return every_setting(context.variables)
    rows = ((context.variables.get(statement.name),),)
    return Result("SHOW", (setting_column(statement.name),), rows, 1)
