"""`set_config`: a query that sets settings.

A query reads and does nothing else. So it is no function that expressions could have, but a form of `SELECT`, whose
only items are its calls:

    SELECT set_config('work_mem', '64MB', false);

Its arguments are what is queried; each row of that then sets a setting, and becomes what that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.select_call import SelectCall
from mz_dagster.adapter.session_settings import SETTINGS, SPELLED
from mz_dagster.adapter.variables import Variables
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.sql import SqlText
from mz_dagster.sql.errors import InvalidParameterValue, UndefinedFunction

_NAME = "set_config"
#: What tools ask for a setting that is there, and the relation that tells it.
_ROWS, _RELATION = "pg_show_all_settings()", "pg_settings"


#: The columns in which SHOW ALL returns all settings.
SETTING_COLUMNS = tuple(Column(one, TEXT, False) for one in ("name", "setting", "description"))


@dataclass(frozen=True, slots=True)
class ConfigCall:
    """A query that sets settings.

    Attributes:
        names: What its columns are called.
        query: What says which settings: names, values, and whether they are for the transaction alone, for each.
        arguments: How many arguments each call has.
    """

    names: tuple[str, ...]
    query: SqlText
    arguments: tuple[int, ...]

    @classmethod
    def of(cls, query: SqlText) -> ConfigCall | None:
        """Returns what a query is if it is of the form, else None.

        Example:
            >>> ConfigCall.of(SqlText("SELECT set_config('a', 'b', false) AS x")).query.text
            "SELECT            'a', 'b', false      "
            >>> ConfigCall.of(SqlText("SELECT set_config('a', 'b', true) , set_config(c, d, true) FROM t")).query.text
            "SELECT            'a', 'b', true  ,            c, d, true  FROM t"
        """
        if _NAME not in query.text.lower():
            return None
        calls = SelectCall.each_of(query.text, (_NAME,))
        if not calls:
            return None
        text = query.text
        begin = calls[0].select.end
        for one in calls:
            text = text[:begin] + one.asked[begin : one.last.end] + text[one.last.end :]
            begin = text.find(",", one.last.end) + 1
        arguments = tuple(len(one.commas) + 1 for one in calls)
        names = tuple(one.column for one in calls)
        return cls(names, replace(query, text=text.replace(_ROWS, _RELATION.ljust(len(_ROWS)))), arguments)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return tuple(Column(one, TEXT) for one in self.names)

    def carried_out(self, asked: Result, variables: Variables) -> Result:
        """Returns the result once the settings are set.

        Args:
            asked: What the query returned.
            variables: The session's.

        Raises:
            UndefinedFunction: It was called with other arguments.
            UndefinedObject: There is no such setting.
            InvalidParameterValue: It has no such value.
            NotSupportedError: It is always as it is.
        """
        for count in self.arguments:
            if count != 3:
                raise UndefinedFunction(f"function {_NAME}() of {count} arguments does not exist")
        places = range(0, 3 * len(self.names), 3)
        rows = tuple(tuple(_set(row[place : place + 3], variables) for place in places) for row in asked.rows)
        return Result(asked.tag, self.columns, rows, len(rows))


def setting_column(name: str) -> Column:
    """Returns the column in which SHOW returns a setting."""
    return Column(SPELLED.get(name, name), TEXT, False)


def every_setting(variables: Variables) -> Result:
    """Returns what SHOW ALL does: the settings with their values and what they are."""
    rows = tuple(
        (SPELLED.get(name, name), value, SETTINGS[name].about)
        for name, value in sorted(variables.settings().items())
        if name in SETTINGS
    )
    return Result("SHOW", SETTING_COLUMNS, rows, len(rows))


def _set(row: Sequence[object], variables: Variables) -> str:
    name, value, is_local = row
    if name is None:
        raise InvalidParameterValue("SET requires parameter name", hint="Give set_config the name of a setting.")
    named, text = str(name).lower(), None if value is None else str(value)
    variables.set(named, text, is_local=is_local in (True, "true", "t", "on"))
    return variables.get(named)
