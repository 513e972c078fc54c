"""The settings of a session: which there are, what each may be, and what it is shown as.

A setting does here what it does in PostgreSQL; or it changes no result, whatever its value, and takes those that it
takes there; or it is as it is, and SET takes that value only. So none is set and then silently not heeded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mz_dagster.errors import NotSupportedError
from mz_dagster.sql.circumstances import DEFAULTS
from mz_dagster.sql.errors import InvalidParameterValue
from mz_dagster.sql.options import parse_interval_ms

TRUTH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
#: Units by what a setting counts in: how many of that each has, the largest first.
_UNITS: Mapping[str, Mapping[str, float]] = {
    "ms": {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1, "us": 0.001},
    "kB": {"TB": 1 << 30, "GB": 1 << 20, "MB": 1 << 10, "kB": 1, "B": 1 / 1024},
}
_QUANTITY = re.compile(r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
#: The names that clients expect to be spelled otherwise than in lower case.
SPELLED = {"datestyle": "DateStyle", "timezone": "TimeZone", "intervalstyle": "IntervalStyle"}
#: The name of a setting that a client has for itself: PostgreSQL keeps it, and heeds nothing of it, either.
_CUSTOM = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)+")
LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
#: How clients say the one style of dates that there is.
_DATE_STYLES = frozenset({"iso", "mdy", "iso, mdy", "iso,mdy", "mdy, iso", "iso, us"})
_INT4 = 2**31


def is_custom(name: str) -> bool:
    """Returns whether a name is that of a setting that clients have for themselves.

    Example:
        >>> is_custom("shop.tenant"), is_custom("work_mem")
        (True, False)
    """
    return _CUSTOM.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting.

    Attributes:
        default: What it is in a session that has changed nothing, as it is shown.
        about: What it is.
        kind: `fixed`, `bool`, `integer`, `enum`, `string`; `own` has rules of its own, which `Variables` knows.
        unit: What an integer counts, `ms` or `kB`; empty if it has no unit.
        least: The least integer.
        choices: The values of an enum.
    """

    default: str
    about: str
    kind: str = "fixed"
    unit: str = ""
    least: int = 0
    choices: tuple[str, ...] = ()

    def shown(self, name: str, value: str) -> str:
        """Returns a value as it is shown once it is set.

        Raises:
            InvalidParameterValue: The setting has no such value.
            NotSupportedError: It has another one, always.

        Example:
            >>> SETTINGS["work_mem"].shown("work_mem", "65536"), SETTINGS["row_security"].shown("row_security", "YES")
            ('64MB', 'on')
        """
        match self.kind:
            case "bool":
                found = TRUTH.get(value.lower())
                if found is None:
                    raise InvalidParameterValue(f'parameter "{name}" requires a Boolean value', hint="Use on or off.")
                return "on" if found else "off"
            case "enum":
                if value.lower() not in self.choices:
                    raise InvalidParameterValue(
                        f'invalid value for parameter "{name}": "{value}"',
                        hint=f"Available values: {', '.join(self.choices)}.",
                    )
                return value.lower()
            case "integer":
                return self._quantity_shown(self._quantity(name, value))
            case "fixed":
                return self._as_it_is(name, value)
            case _:
                return value

    def base(self, value: str) -> str:
        """Returns a value that is shown, an integer in the setting's unit."""
        return str(self._quantity("", value)) if self.kind == "integer" else value

    def _as_it_is(self, name: str, value: str) -> str:
        if name == "datestyle" and value.lower() in _DATE_STYLES:
            return self.default
        asked, fixed = (one.lower().replace("-", "") for one in (value, self.default))
        if asked != fixed and (asked not in TRUTH or TRUTH[asked] != TRUTH.get(fixed)):
            raise NotSupportedError(f'the setting "{name}" is always {self.default}')
        return self.default

    def _quantity(self, name: str, value: str) -> int:
        units = _UNITS.get(self.unit, {})
        match = _QUANTITY.fullmatch(value)
        number = None
        if match is not None and (not match[2] or match[2] in units):
            number = round(float(match[1]) * (units[match[2]] if match[2] else 1))
        elif self.unit == "ms":
            number = parse_interval_ms(value)
        if number is None:
            hint = f"Valid units are {', '.join(units)}." if units else "Write a whole number."
            if self.unit == "ms":
                hint = f"Write 5000 or '5 s'. {hint}"
            raise InvalidParameterValue(f'invalid value for parameter "{name}": "{value}"', hint=hint)
        if not self.least <= number < _INT4:
            raise InvalidParameterValue(
                f'{number} is outside the valid range for parameter "{name}" ({self.least} .. {_INT4 - 1})',
                hint=f"Write no less than {self.least}.",
            )
        return number

    def _quantity_shown(self, number: int) -> str:
        if number > 0:
            for unit, size in _UNITS.get(self.unit, {}).items():
                if number % size == 0:
                    return f"{number // int(size)}{unit}"
        return str(number)


def _time(about: str) -> Setting:
    return Setting("0", f"{about}; 0 for never.", "integer", "ms")


def _flag(default: str, about: str) -> Setting:
    return Setting(default, about, "bool")


_CHANGES_NOTHING = "It changes nothing here"
#: Whether PostgreSQL's planner may use something, which no result depends on.
_OF_PLANNER = (
    "bitmapscan", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan", "indexscan", "material", "memoize",
    "mergejoin", "nestloop", "seqscan", "sort",
)  # fmt: skip

#: The settings by their names, in lower case.
SETTINGS: Mapping[str, Setting] = {
    # What has an effect.
    "client_min_messages": Setting("notice", "The least level of messages that are sent.", "enum", choices=LEVELS),
    "default_transaction_isolation": Setting("", "The isolation level of new transactions.", "own"),
    "default_transaction_read_only": Setting("", "Whether new transactions write nothing.", "own"),
    "engine": Setting("", "Who computes: this process, Spark, or each what it does best.", "own"),
    "idle_in_transaction_session_timeout": _time("After how long a client that is idle in a transaction is ended"),
    "idle_session_timeout": _time("After how long a client that is idle, and in no transaction, is ended"),
    "search_path": Setting(DEFAULTS["search_path"], "The schemas in which names are looked for.", "own"),
    "statement_timeout": _time("After how long a statement is cancelled"),
    "timezone": Setting(DEFAULTS["timezone"], "The time zone of what is shown and read.", "own"),
    "transaction_isolation": Setting("", "The isolation level of this transaction.", "own"),
    "transaction_read_only": Setting("", "Whether this transaction writes nothing.", "own"),
    # What changes no result.
    "application_name": Setting("", "What the client calls itself, in pg_stat_activity.", "string"),
    "check_function_bodies": _flag("on", f"{_CHANGES_NOTHING}: there are no functions in SQL."),
    "default_transaction_deferrable": _flag("off", f"{_CHANGES_NOTHING}: reads never wait for writes."),
    "extra_float_digits": Setting(
        "1", "Floats are shown in the fewest digits that tell them apart.", "integer", least=1
    ),
    "jit": _flag("off", f"{_CHANGES_NOTHING}: plans are not compiled."),
    "lock_timeout": _time(f"{_CHANGES_NOTHING}, as nothing waits for a lock: after how long that fails"),
    "maintenance_work_mem": Setting("64MB", f"{_CHANGES_NOTHING}: see mz.toml.", "integer", "kB", 1024),
    "row_security": _flag("on", f"{_CHANGES_NOTHING}: there are no policies of rows."),
    "synchronous_commit": Setting(
        "on", f"{_CHANGES_NOTHING}: what is committed is always durable.", "enum",
        choices=("local", "remote_write", "remote_apply", "on", "off"),
    ),
    "temp_buffers": Setting("8MB", f"{_CHANGES_NOTHING}: see mz.toml.", "integer", "kB", 800),
    "transaction_deferrable": _flag("off", f"{_CHANGES_NOTHING}: reads never wait for writes."),
    "work_mem": Setting("4MB", f"{_CHANGES_NOTHING}: see mz.toml.", "integer", "kB", 64),
    **{f"enable_{one}": _flag("on", f"{_CHANGES_NOTHING}: plans are chosen otherwise.") for one in _OF_PLANNER},
    "geqo": _flag("on", f"{_CHANGES_NOTHING}: plans are chosen otherwise."),
    "max_parallel_workers_per_gather": Setting("2", f"{_CHANGES_NOTHING}: see mz.toml.", "integer"),
    **{f"{one}_collapse_limit": Setting("8", f"{_CHANGES_NOTHING}: plans are chosen otherwise.", "integer", least=1)
       for one in ("from", "join")},
    # What is as it is.
    "array_nulls": Setting("on", "NULL in an array's text is a null element."),
    "backslash_quote": Setting("safe_encoding", "When a quote in a string may follow a backslash."),
    "bytea_output": Setting("hex", "How bytea is shown."),
    "client_encoding": Setting("UTF8", "The client's encoding."),
    "datestyle": Setting("ISO, MDY", "How dates are shown and read."),
    "default_table_access_method": Setting("heap", "How tables are kept."),
    "default_tablespace": Setting("", "Where tables are kept."),
    "escape_string_warning": Setting("off", "Whether a backslash in a string is warned of."),
    "integer_datetimes": Setting("on", "Timestamps are integers."),
    "intervalstyle": Setting("postgres", "How intervals are shown."),
    "is_superuser": Setting("", "Whether the session is its owner's.", "own"),
    "lc_collate": Setting("C", "The order of texts, which is that of their bytes."),
    "lc_ctype": Setting("C.UTF-8", "The letters that there are."),
    "lc_messages": Setting("C", "The language of messages."),
    "lc_monetary": Setting("C", "How amounts of money are shown."),
    "lc_numeric": Setting("C", "How numbers are shown."),
    "lc_time": Setting("C", "How days and months are called."),
    "max_identifier_length": Setting("63", "The bytes of a name."),
    "max_index_keys": Setting("32", "The columns of an index."),
    "quote_all_identifiers": Setting("off", "Whether names are quoted that need not be."),
    "role": Setting("none", "The role that was set."),
    "server_encoding": Setting("UTF8", "The encoding of what is kept."),
    "server_version": Setting(DEFAULTS["server_version"], "The release of PostgreSQL that this is like."),
    "server_version_num": Setting("150000", "The release of PostgreSQL that this is like, as a number."),
    "session_authorization": Setting("", "Whose the session is.", "own"),
    "session_replication_role": Setting("origin", "Whether constraints and triggers hold."),
    "standard_conforming_strings": Setting("on", "A backslash in a string is a backslash."),
    "transform_null_equals": Setting("off", "Whether = NULL is IS NULL."),
    "xmloption": Setting("content", "How XML is read."),
}  # fmt: skip
