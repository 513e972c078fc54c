"""What SET and BEGIN change in a session, for all that share it: the cursors of a connection are one session."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mz_dagster.adapter.access import owner_name
from mz_dagster.adapter.activity import SessionState
from mz_dagster.adapter.advisory_locks import AdvisoryLocks, SessionLocks
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.declared_cursors import DeclaredCursor, UndefinedCursor
from mz_dagster.adapter.kept_statements import KeptCursor, KeptStatement
from mz_dagster.adapter.prepared_statements import PreparedStatement
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.session_settings import LEVELS, SETTINGS, TRUTH, is_custom
from mz_dagster.adapter.setting_values import engine_setting_of
from mz_dagster.adapter.timestamps import Isolation
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.budget import EngineSetting
from mz_dagster.errors import NotSupportedError, OperationalError
from mz_dagster.functions import UTC as UTC_ZONE
from mz_dagster.functions.moments.zones import NAMES_OF_UTC, zone_named, zone_of_hours
from mz_dagster.notices import Notice, warn
from mz_dagster.sql import ISOLATION_LEVELS, TransactionModes
from mz_dagster.sql.catalog_facts import CatalogFacts
from mz_dagster.sql.circumstances import DEFAULTS, Circumstances
from mz_dagster.sql.errors import InvalidParameterValue, UndefinedObject
from mz_dagster.sql.schemas import names_in, path_of

_MOST_NOTICES = 1000
_TIMEOUT = "statement_timeout"
_IN_TRANSACTION = "idle_in_transaction_session_timeout"
_IN_SESSION = "idle_session_timeout"
#: What each setting is that has not been changed and has no rules of its own.
_DEFAULTS = {name: one.default for name, one in SETTINGS.items()}
_Set = tuple[EngineSetting, str, bool, dict[str, str]]


class FixedParameter(OperationalError):
    """A setting that says what a session is, and cannot be set."""

    sqlstate = "55P02"


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
        prepared: The statements that SQL has prepared, by their names.
        client: Who sends and gets the rows of COPY; None if nobody does.
        role: The name of the session's role; None if it is the owner's.
        locks: The session's advisory locks; None before it has taken one.
    """

    project: Project
    level: str = Isolation.STRICT_SERIALIZABLE.value
    read_only: bool = False
    autocommit: bool = True
    engine: EngineSetting = field(init=False)
    changed: dict[str, str] = field(default_factory=dict)
    transaction: Transaction | None = None
    cursors: dict[str, DeclaredCursor] = field(default_factory=dict)
    prepared: dict[str, PreparedStatement] = field(default_factory=dict)
    client: WireClient | None = None
    role: str | None = None
    locks: SessionLocks | None = None
    _at_start: dict[str, str] = field(default_factory=dict, repr=False)
    #: What was set in the block that is open for that alone, and what it was before.
    _local: dict[str, str] = field(default_factory=dict, repr=False)
    #: The savepoints of the block that is open, the newest last, and what was set at each.
    _saved: list[tuple[str, _Set, dict[str, str]]] = field(default_factory=list, repr=False)
    _notices: deque[Notice] = field(default_factory=lambda: deque(maxlen=_MOST_NOTICES), repr=False)
    _before: _Set | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.engine = self.project.engine
        self._at_start["default_transaction_isolation"] = self.level

    @property
    def process_id(self) -> int:
        """What clients know the session by."""
        return os.getpid() if self.client is None else self.client.process_id

    @property
    def isolation(self) -> Isolation:
        """What reads may miss."""
        return Isolation(ISOLATION_LEVELS[self.level])

    def state(self) -> SessionState:
        """Returns how the session is now."""
        block = None if self.transaction is None else self.transaction.state()
        return SessionState(self.user, self.changed.get("application_name", ""), self.client, block)

    # ---- transaction blocks

    def begin(self, transaction: Transaction) -> None:
        """Opens a transaction block."""
        self.transaction = transaction
        self._local, self._saved = {}, []
        self._before = self._now()

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
        finally:
            self._end_locks()
        local, self._local = self._local, {}
        for name, value in local.items():
            self.set(name, value)
        self._close_cursors(transaction, commits=True)

    def roll_back(self) -> None:
        """Ends the block that is open, if there is one, and undoes all that was written and set in it."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            transaction.end()
            self._restore()
            self._close_cursors(transaction, commits=False)
            self._end_locks()

    def save(self, name: str) -> None:
        """Remembers what is set, for `roll_back_to` the savepoint of a name."""
        self._saved.append((name, self._now(), dict(self._local)))

    def roll_back_to(self, name: str) -> None:
        """Undoes what was set since the newest savepoint of a name, which stays."""
        now, self._local = self.release(name)
        self.engine, self.level, self.read_only, self.changed = now
        self.save(name)

    def release(self, name: str) -> tuple[_Set, dict[str, str]]:
        """Forgets the newest savepoint of a name, which there is, and those since; returns what was set at it."""
        while self._saved[-1][0] != name:
            self._saved.pop()
        return self._saved.pop()[1:]

    def locks_of(self, locks: AdvisoryLocks) -> SessionLocks:
        """Returns the session's part of the process's advisory locks."""
        if self.locks is None:
            self.locks = SessionLocks(locks, self.process_id)
        return self.locks

    def give_back_locks(self) -> None:
        """Gives back the advisory locks that the session has taken for itself."""
        if self.locks is not None:
            self.locks.give_back_own()

    def _end_locks(self) -> None:
        if self.locks is not None:
            self.locks.end_block()

    def _now(self) -> _Set:
        return self.engine, self.level, self.read_only, dict(self.changed)

    # ---- prepared statements and cursors

    def kept_statements(self) -> Iterator[KeptStatement]:
        """Yields the statements that are prepared under a name."""
        for name, one in self.prepared.items():
            yield KeptStatement(name, one.source, one.kept_ms, one.types, from_sql=True)
        if self.client is not None:
            yield from self.client.kept_statements()

    def kept_cursors(self) -> Iterator[KeptCursor]:
        """Yields the cursors that are declared."""
        for name, one in self.cursors.items():
            scrolls = one.scrolls is not False and one.result.stream is None
            yield KeptCursor(name, one.text, one.kept_ms, one.holds, scrolls)

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
        self._local = {}
        if self._before is not None:
            self.engine, self.level, self.read_only, self.changed = self._before

    # ---- notices

    def hear(self, notice: Notice) -> None:
        """Keeps what a statement tells, unless the session wants to hear of more important things only."""
        if LEVELS.index(notice.severity.lower()) >= LEVELS.index(self.get("client_min_messages")):
            self._notices.append(notice)

    def notices(self) -> tuple[Notice, ...]:
        """Returns what statements have told since this was last asked; the newest, if that is much."""
        told = tuple(self._notices)
        self._notices.clear()
        return told

    # ---- settings

    def settings(self) -> Mapping[str, str]:
        """Returns all settings by their names, in lower case."""
        block = self.transaction
        now = (self.level, self.read_only) if block is None else (block.level, block.read_only)
        return {
            **_DEFAULTS,
            **self.changed,
            "engine": self.engine.value,
            "default_transaction_isolation": self.level,
            "default_transaction_read_only": _shown(self.read_only),
            "is_superuser": _shown(self.role is None),
            "session_authorization": self.user,
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
        self.changed = {name: "" for name in self.changed if is_custom(name)}
        for name, value in self._at_start.items():
            self.set(name, value)

    def set(self, name: str, value: str | None, *, is_local: bool = False) -> None:
        """Sets a setting, by None to its default; if it is local, until the block that is open ends.

        Raises:
            UndefinedObject: There is no such setting.
            InvalidParameterValue: It has no such value.
            NotSupportedError: It is always as it is.
        """
        if is_local:
            self._set_local(name, value)
            return
        self._local.pop(name, None)
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
        if name == "role":
            self.changed["role"] = self._own_role(value)
            return
        if name == "search_path":
            self.changed.pop(name, None)
            self.changed |= {} if value is None else {name: path_of([one for one in names_in(value) if one != "$user"])}
            return
        setting = SETTINGS.get(name)
        if setting is None and is_custom(name):
            self.changed[name] = value or ""
            return
        if setting is None:
            raise UndefinedObject(
                f'unrecognized configuration parameter "{name}"', hint="SHOW ALL lists those there are."
            )
        if name in ("is_superuser", "session_authorization"):
            raise FixedParameter(f'parameter "{name}" cannot be changed', hint="Connect as somebody else.")
        shown = setting.default if value is None else setting.shown(name, value)
        if name in (_IN_TRANSACTION, _IN_SESSION) and self.client is None and shown != "0":
            raise NotSupportedError(
                f'the setting "{name}" is not supported in a session without a client',
                detail="Nobody but the program that has the session could end it.",
                hint="Connect to mz-dagster serve, or set it to 0.",
            )
        if setting.kind != "fixed":
            self.changed[name] = shown

    def _own_role(self, name: str | None) -> str:
        """Returns a role that is set, if it is the session's own: a tool that is done goes back to whom it found."""
        if name not in (None, "none", self.user):
            raise NotSupportedError(
                "SET of a user is not supported",
                detail="Access is the folder's and the catalog's.",
                hint=f'Connect as "{name}", whose privileges GRANT says.',
            )
        return name or "none"

    def _set_local(self, name: str, value: str | None) -> None:
        before = self.settings().get(name, "") if is_custom(name) else self.get(name)
        set_before = dict(self._local)
        self.set(name, value)
        self._local = set_before
        if self.transaction is None:
            self.set(name, before)
            warn("SET LOCAL can only be used in transaction blocks", "25P01")
        elif not name.startswith("transaction_"):
            self._local.setdefault(name, before)

    @property
    def statement_timeout_ms(self) -> int:
        """After how long a statement is cancelled, in milliseconds; 0 for never."""
        return self._milliseconds(_TIMEOUT)

    @property
    def idle_timeout_ms(self) -> int:
        """After how long a client is ended that is as idle as the session is now, in milliseconds; 0 for never."""
        return self._milliseconds(_IN_SESSION if self.transaction is None else _IN_TRANSACTION)

    def _milliseconds(self, name: str) -> int:
        shown = self.changed.get(name, "0")
        return 0 if shown == "0" else int(SETTINGS[name].base(shown))

    def _set_isolation(self, name: str, value: str | None) -> None:
        level = " ".join((value or self.level).lower().split())
        if level not in ISOLATION_LEVELS:
            raise InvalidParameterValue(
                f'invalid value for parameter "{name}": "{value}"', hint=f"Use one of {', '.join(ISOLATION_LEVELS)}."
            )
        self.set_modes(TransactionModes(level, None), of_session=self._is_of_session(name))

    def _set_read_only(self, name: str, value: str | None) -> None:
        found = TRUTH.get((value or "off").lower())
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
            if target.has_queried and (modes.isolation is not None or (target.read_only and modes.read_only is False)):
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
        return Circumstances(clock, self.user, self.project.name, self.settings(), catalog, self.process_id)


def zone_of_session(text: str) -> str:
    """Returns the name of the time zone that a session is set to.

    Args:
        text: Its name, or how many hours it is ahead of UTC.

    Raises:
        InvalidParameterValue: There is none of that name, or not so many hours ahead.
    """
    found = zone_named(zone_of_hours(text) or text)
    if found is None or ("/" not in found and found not in NAMES_OF_UTC):
        raise InvalidParameterValue(
            f'invalid value for parameter "TimeZone": "{text}"', hint="Write a name like 'Europe/Berlin', or 'UTC'."
        )
    return UTC_ZONE if found in NAMES_OF_UTC else found
