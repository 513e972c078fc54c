"""What SET changes in a session, for all that share it: the cursors of a connection are one session."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mz_dagster.adapter.project import Project, engine_setting_of
from mz_dagster.budget import EngineSetting
from mz_dagster.errors import NotSupportedError
from mz_dagster.sql.circumstances import DEFAULTS, Circumstances
from mz_dagster.sql.errors import UndefinedObject

#: Settings of PostgreSQL that are as they are here: SET takes the value that they have, SHOW tells it.
_FIXED: Mapping[str, str] = {
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "lc_collate": "C",
    "max_identifier_length": "63",
    "server_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "transaction_isolation": "serializable",
}


@dataclass(slots=True)
class Variables:
    """The variables of one session; those that are set hold until they are set again, or it ends.

    Attributes:
        project: The project.
        engine: Who computes.
        changed: The other settings that were set, by their names.
    """

    project: Project
    engine: EngineSetting = field(init=False)
    changed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = self.project.engine

    def settings(self) -> Mapping[str, str]:
        """Returns all settings by their names, in lower case."""
        return {**_FIXED, **DEFAULTS, **self.changed, "engine": self.engine.value}

    def get(self, name: str) -> str:
        """Returns the value of a setting.

        Raises:
            UndefinedObject: There is no such setting.
        """
        found = self.settings().get(name)
        if found is None:
            raise UndefinedObject(
                f'unrecognized configuration parameter "{name}"', hint="SHOW ALL lists those there are."
            )
        return found

    def set(self, name: str, value: str | None) -> None:
        """Sets a setting, by None to its default.

        Raises:
            UndefinedObject: There is no such setting.
            InvalidParameterValue: It has no such value.
            NotSupportedError: It is always as it is.
        """
        if name == "engine":
            self.engine = self.project.engine if value is None else engine_setting_of(value)
            return
        fixed = self.get(name)
        if value is not None and value.lower().replace("-", "") != fixed.lower().replace("-", ""):
            raise NotSupportedError(f'the setting "{name}" is always {fixed}')

    def circumstances(self, now_ms: int) -> Circumstances:
        """Returns what a statement that begins now is to know of the session."""
        clock = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=now_ms)
        return Circumstances(clock, getpass.getuser(), self.project.name, self.settings())
