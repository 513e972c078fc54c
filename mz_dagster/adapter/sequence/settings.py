"""SET, RESET and SHOW of settings, SET TRANSACTION and SET CONSTRAINTS."""

from __future__ import annotations

from mz_dagster.adapter.config_calls import every_setting, setting_column
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.notices import warn
from mz_dagster.sql import ResetAll, SetConstraints, SetSetting, SetTransaction, ShowSetting


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


def set_constraints(context: Context, _: SetConstraints, __: Parameters) -> Result:
    """Changes nothing: every statement keeps all constraints by itself."""
    if context.variables.transaction is None:
        warn("SET CONSTRAINTS can only be used in transaction blocks", "25P01")
    return Result("SET CONSTRAINTS")


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
