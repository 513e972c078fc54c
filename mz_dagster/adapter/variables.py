"""What SET and BEGIN change in a session, for all that share it: the cursors of a connection are one session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mz_dagster.adapter.access import owner_name
from mz_dagster.adapter.activity import SessionState
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.declared_cursors import DeclaredCursor, UndefinedCursor
from mz_dagster.adapter.project import Project, engine_setting_of
from mz_dagster.adapter.timestamps import Isolation
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.budget import EngineSetting
from mz_dagster.errors import NotSupportedError
from mz_dagster.functions import UTC as UTC_ZONE
from mz_dagster.functions.moments.zones import NAMES_OF_UTC, zone_named
from mz_dagster.sql import ISOLATION_LEVELS, TransactionModes
from mz_dagster.sql.catalog_facts import CatalogFacts
from mz_dagster.sql.circumstances import DEFAULTS, Circumstances
from mz_dagster.sql.errors import InvalidParameterValue, UndefinedObject
from mz_dagster.sql.options import parse_interval_ms

#: Settings of PostgreSQL that are as they are here: SET takes the value that they have, SHOW tells it.
_FIXED: Mapping[str, str] = {
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "lc_collate": "C",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "role": "none",
    "server_encoding": "UTF8",
    "server_version_num": "150000",
    "standard_conforming_strings": "on",
}

#: How clients say the one style of dates that there is.
_DATE_STYLES = frozenset({"iso", "mdy", "iso, mdy", "iso,mdy", "mdy, iso", "iso, us"})
#: Settings of clients that change nothing here: SET takes any value, SHOW tells it.
_OF_CLIENTS: Mapping[str, str] = {
    "application_name": "",
    "client_min_messages": "notice",
    "extra_float_digits": "1",
    "lock_timeout": "0",
}
_TIMEOUT = "statement_timeout"

_TRUTH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
_Set = tuple[EngineSetting, str, bool, dict[str, str]]


def _timeout_ms(text: str) -> int:
    """Returns the milliseconds of a time as PostgreSQL's settings have them: a number, or one with a unit."""
    found = int(text) if text.strip().isdecimal() else parse_interval_ms(text)
    if found is None or found >= 2**31:
        raise InvalidParameterValue(f'invalid value for parameter "{_TIMEOUT}": "{text}"', hint="Write 5000 or '5 s'.")
    return found


def _shown(on: bool) -> str:
    return "on" if on else "off"


@dataclass(slots=True, weakref_slot=True)
class Variables:
    """The variables of one session; those that are set hold until they are set again, or it ends.

    Attributes:
        project: The project.
        level: The isolation level by the name that was asked for, one of `ISOLATION_LEVELS`.
        read_only: Whether nothing may be written.
        autocommit: Whether each statement is a transaction of its own unless BEGIN was said; else the first of them
            begins one.
        engine: Who computes.
        changed: The other settings that were set, by their names.
        transaction: The transaction block that is open, or None.
        cursors: The cursors that were declared, by their names.
        client: Who sends and gets the rows of COPY; None if nobody does.
        role: The name of the session's role; None if it is the owner's.
    """

    project: Project
    level: str = Isolation.STRICT_SERIALIZABLE.value
    read_only: bool = False
    autocommit: bool = True
    engine: EngineSetting = field(init=False)
    changed: dict[str, str] = field(default_factory=dict)
    transaction: Transaction | None = None
    cursors: dict[str, DeclaredCursor] = field(default_factory=dict)
    client: WireClient | None = None
    role: str | None = None
    _at_start: dict[str, str] = field(default_factory=dict, repr=False)
    _before: _Set | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.engine = self.project.engine
        self._at_start["default_transaction_isolation"] = self.level

    @property
    def isolation(self) -> Isolation:
        """What reads may miss."""
        return Isolation(ISOLATION_LEVELS[self.level])

    def told(self) -> SessionState:
        """Returns how the session is now."""
        block = None if self.transaction is None else self.transaction.told()
        return SessionState(self.user, self.changed.get("application_name", ""), self.client, block)

    # ---- transaction blocks

    def begin(self, transaction: Transaction) -> None:
        """Opens a transaction block."""
        self.transaction = transaction
        self._before = self.engine, self.level, self.read_only, dict(self.changed)

    def commit(self) -> None:
        """Commits the block that is open and ends it; if that raises, what was set in it is undone, too."""
        transaction, self.transaction = self.transaction, None
        assert transaction is not None, "it is open"
        try:
            transaction.commit()
        except BaseException:
            self._restore()
            self._close_cursors(transaction, commits=False)
            raise
        self._close_cursors(transaction, commits=True)

    def roll_back(self) -> None:
        """Ends the block that is open, if there is one, and undoes all that was written and set in it."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            transaction.end()
            self._restore()
            self._close_cursors(transaction, commits=False)

    # ---- cursors

    def cursor(self, name: str) -> DeclaredCursor:
        """Returns a cursor that was declared.

        Raises:
            UndefinedCursor: There is none of the name.
        """
        found = self.cursors.get(name)
        if found is None:
            raise UndefinedCursor(
                f'cursor "{name}" does not exist', hint="DECLARE it, in this transaction or WITH HOLD."
            )
        return found

    def declare(self, name: str, cursor: DeclaredCursor) -> None:
        """Has a name denote a cursor."""
        self.cursors[name] = cursor

    def close_cursors(self, *names: str) -> None:
        """Closes cursors."""
        for name in names:
            self.cursors.pop(name).close()

    def _close_cursors(self, block: Transaction, *, commits: bool) -> None:
        """Closes the cursors that do not outlive the block that they were declared in."""
        over = [name for name, one in self.cursors.items() if one.block is block and not (commits and one.holds)]
        self.close_cursors(*over)

    def _restore(self) -> None:
        if self._before is not None:
            self.engine, self.level, self.read_only, self.changed = self._before

    # ---- settings

    def settings(self) -> Mapping[str, str]:
        """Returns all settings by their names, in lower case."""
        block = self.transaction
        now = (self.level, self.read_only) if block is None else (block.level, block.read_only)
        return {
            **_FIXED,
            **_OF_CLIENTS,
            _TIMEOUT: "0",
            **DEFAULTS,
            **self.changed,
            "engine": self.engine.value,
            "default_transaction_isolation": self.level,
            "default_transaction_read_only": _shown(self.read_only),
            "transaction_isolation": now[0],
            "transaction_read_only": _shown(now[1]),
        }

    @property
    def zone(self) -> str:
        """The name of the session's time zone."""
        return self.changed.get("timezone", DEFAULTS["timezone"])

    @property
    def search_path(self) -> str:
        """Where names are looked for that do not say their schema."""
        return self.changed.get("search_path", DEFAULTS["search_path"])

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

    def begin_with(self, name: str, value: str) -> None:
        """Sets a setting to what is its default in the session from now on; raises as `set`."""
        self.set(name, value)
        self._at_start[name] = value

    def reset_all(self) -> None:
        """Sets all settings but those of transactions to their defaults."""
        self.engine = self.project.engine
        self.changed = {}
        for name, value in self._at_start.items():
            self.set(name, value)

    def set(self, name: str, value: str | None) -> None:
        """Sets a setting, by None to its default.

        Raises:
            UndefinedObject: There is no such setting.
            InvalidParameterValue: It has no such value.
            NotSupportedError: It is always as it is.
        """
        value = self._at_start.get(name) if value is None else value
        if name == "engine":
            self.engine = self.project.engine if value is None else engine_setting_of(value)
            return
        if name in ("transaction_isolation", "default_transaction_isolation"):
            self._set_isolation(name, value)
            return
        if name in ("transaction_read_only", "default_transaction_read_only"):
            self._set_read_only(name, value)
            return
        if name == "timezone":
            self.changed["timezone"] = UTC_ZONE if value is None else zone_of_session(value)
            return
        if name == "search_path":
            self.changed.pop(name, None)
            self.changed |= {} if value is None else {name: value}
            return
        if name == _TIMEOUT:
            found = _timeout_ms(value or "0")
            self.changed[name] = f"{found}ms" if found else "0"
            return
        if name in _OF_CLIENTS:
            self.changed[name] = _OF_CLIENTS[name] if value is None else value
            return
        fixed = self.get(name)
        if name == "datestyle" and value is not None and value.lower() in _DATE_STYLES:
            return
        if value is not None and value.lower().replace("-", "") != fixed.lower().replace("-", ""):
            raise NotSupportedError(f'the setting "{name}" is always {fixed}')

    @property
    def statement_timeout_ms(self) -> int:
        """After how long a statement is cancelled, in milliseconds; 0 for never."""
        return _timeout_ms(self.changed.get(_TIMEOUT, "0"))

    def _set_isolation(self, name: str, value: str | None) -> None:
        level = " ".join((value or self.level).lower().split())
        if level not in ISOLATION_LEVELS:
            raise InvalidParameterValue(
                f'invalid value for parameter "{name}": "{value}"', hint=f"Use one of {', '.join(ISOLATION_LEVELS)}."
            )
        self.set_modes(TransactionModes(level, None), of_session=self._is_of_session(name))

    def _set_read_only(self, name: str, value: str | None) -> None:
        found = _TRUTH.get((value or "off").lower())
        if found is None:
            raise InvalidParameterValue(f'parameter "{name}" requires a Boolean value', hint="Use on or off.")
        self.set_modes(TransactionModes(None, found), of_session=self._is_of_session(name))

    def _is_of_session(self, name: str) -> bool:
        return self.transaction is None or name.startswith("default_")

    def set_modes(self, modes: TransactionModes, *, of_session: bool) -> None:
        """Sets the modes of the session, or of the block that is open.

        Raises:
            ActiveTransaction: It has read or written something already.
        """
        target: Variables | Transaction = self
        if not of_session:
            assert self.transaction is not None, "it is open"
            target = self.transaction
            if target.has_queried and (modes.isolation is not None or modes.read_only is False):
                what = "ISOLATION LEVEL" if modes.isolation is not None else "READ WRITE"
                raise ActiveTransaction(f"SET TRANSACTION {what} must be called before any query")
        if modes.isolation is not None:
            target.level = modes.isolation
        if modes.read_only is not None:
            target.read_only = modes.read_only

    @property
    def user(self) -> str:
        """Who executes statements."""
        return owner_name() if self.role is None else self.role

    def circumstances(self, now_ms: int, catalog: CatalogFacts) -> Circumstances:
        """Returns what a statement that begins now is to know of the session, and of the system catalogs."""
        clock = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=now_ms)
        process = os.getpid() if self.client is None else self.client.process_id
        return Circumstances(clock, self.user, self.project.name, self.settings(), catalog, process)


def zone_of_session(text: str) -> str:
    """Returns the name of the time zone that a session is set to.

    Raises:
        InvalidParameterValue: There is none of that name.
    """
    found = zone_named(text)
    if found is None or ("/" not in found and found not in NAMES_OF_UTC):
        raise InvalidParameterValue(
            f'invalid value for parameter "TimeZone": "{text}"', hint="Write a name like 'Europe/Berlin', or 'UTC'."
        )
    return UTC_ZONE if found in NAMES_OF_UTC else found
