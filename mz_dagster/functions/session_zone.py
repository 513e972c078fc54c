"""What depends on the time zone of the session in which a statement is executed: conversions of timestamptz.

A plan has no session: its functions of timestamptz reckon in UTC. So where a statement is bound in another zone, each
call that depends on it becomes one that names the zone; what has no such form is refused. In UTC nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from mz_dagster.errors import NotSupportedError
from mz_dagster.functions.moments.calendar import HOUR, MINUTE, SECOND
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import INT8, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, ScalarType

UTC = "UTC"
#: Units within a day in microseconds; `date_trunc` cuts with the offset that the moment itself has.
_WITHIN_A_DAY = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR}
#: What is the same in all zones, although its name or result suggests otherwise.
_INDEPENDENT = ("extract_epoch_timestamptz", "date_part_epoch_timestamptz")
#: What makes timestamps of something else, or the other way round, in a way that is not known to have a zone.
_CONVERTING = ("cast_elements", "assign_elements", "generate_series_timestamptz", "to_char_", "to_timestamp_text")
#: Patterns of templates that are of the zone itself.
_OF_ZONE = re.compile("tz|of", re.IGNORECASE)


class _SessionZone:
    """The zone of this context. A copy in another process is in UTC, as plans are: Spark's workers get one."""

    def __init__(self) -> None:
        self.variable: ContextVar[str] = ContextVar("session_zone", default=UTC)

    def __reduce__(self) -> tuple[type[_SessionZone], tuple[()]]:
        return _SessionZone, ()


_ZONE = _SessionZone()


class ZoneNotSupported(NotSupportedError):
    """What has no exact form in a session whose time zone is not UTC."""


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Lets what is bound in the block be bound for a session in a zone."""
    token = _ZONE.variable.set(zone)
    try:
        yield
    finally:
        _ZONE.variable.reset(token)


def session_zone() -> str:
    """Returns the name of the zone for which statements are bound now."""
    return _ZONE.variable.get()


def zoned(call: Call) -> Call:
    """Returns what a call that was written in the session's zone is in a plan.

    Raises:
        ZoneNotSupported: It has no such form.
    """
    zone = _ZONE.variable.get()
    if zone == UTC:
        return call
    return _Zoned(Literal(zone, TEXT)).call(call)


class _Zoned:
    """Names a zone in calls."""

    def __init__(self, zone: Literal) -> None:
        self._zone = zone

    def call(self, call: Call) -> Call:
        name, arguments = call.function, call.arguments
        if name in _INDEPENDENT or name.startswith(("timezone_", "date_bin_")):
            return call
        match name:
            case "cast_timestamptz_to_timestamp":
                return self._reading(arguments[0])
            case "cast_timestamp_to_timestamptz":
                return self._moment(arguments[0])
            case "cast_date_to_timestamptz":
                return self._moment(Call("cast_date_to_timestamp", arguments, TIMESTAMP, call.nullable))
            case "cast_text_to_timestamptz":
                return self._named("timestamptz_of_text_in_zone", call)
            case "cast_timestamptz_to_timetz":
                return self._named("timetz_of_timestamptz_in_zone", call)
            case _ if name.startswith("jsonb_path_") and "_tz" in name and self._has_moments(arguments[1]):
                raise _refused_path(name)
            case "cast_time_to_timetz" | "cast_text_to_timetz":
                raise _of_day(call)
            case "cast_timestamptz_to_text":
                return self._named("text_of_timestamptz_in_zone", call)
            case "add_timestamptz_interval":
                return self._named("add_timestamptz_interval_in_zone", call)
            case "add_interval_timestamptz":
                return self._later(call, arguments[1], arguments[0])
            case "subtract_timestamptz_interval":
                back = Call("negate_interval", arguments[1:], INTERVAL, arguments[1].nullable)
                return self._later(call, arguments[0], back)
            case "make_timestamptz":
                return self._moment(Call("make_timestamp", arguments, TIMESTAMP, call.nullable))
            case "to_timestamp_text_text" if self._is_local(arguments[1]):
                return self._moment(Call("cast_timestamptz_to_timestamp", (call,), TIMESTAMP, call.nullable))
            case "to_char_timestamptz" if self._is_local(arguments[1]):
                return self._of_readings(call)
            case _ if name.startswith("date_trunc_") and name.endswith("_timestamptz"):
                return self._truncated(call)
            case _ if name.startswith(("extract_timezone", "date_part_timezone")):
                raise _refused(call)
            case _ if name.startswith(("extract_", "date_part_", "cast_timestamptz_to_", "age_")):
                return call if call.type.kind is Kind.MZ_TIMESTAMP else self._of_readings(call)
            case _ if self._shows(call) or name.startswith(
                ("generate_series_timestamptz", "to_char_", "to_timestamp_t")
            ):
                if any(one.type == TIMESTAMPTZ or one.type.holds((Kind.TIMESTAMPTZ,)) for one in (*arguments, call)):
                    raise _refused(call)
        return call

    def _of_readings(self, call: Call) -> Call:
        """Returns the twin of a function of timestamptz for what the clocks show."""
        arguments = tuple(self._reading(one) if one.type == TIMESTAMPTZ else one for one in call.arguments)
        if arguments == call.arguments:
            return call
        return Call(call.function.replace("timestamptz", "timestamp"), arguments, call.type, call.nullable)

    def _truncated(self, call: Call) -> Call:
        (moment,) = call.arguments
        unit = call.function.removeprefix("date_trunc_").removesuffix("_timestamptz")
        if unit in _WITHIN_A_DAY:
            length = Literal(_WITHIN_A_DAY[unit], INT8)
            return Call("date_trunc_in_zone", (self._zone, length, moment), TIMESTAMPTZ, call.nullable)
        return self._moment(Call(f"date_trunc_{unit}_timestamp", (self._reading(moment),), TIMESTAMP, call.nullable))

    def _reading(self, moment: Scalar) -> Call:
        return Call("timezone_text_timestamptz", (self._zone, moment), TIMESTAMP, moment.nullable)

    def _moment(self, reading: Scalar) -> Call:
        return Call("timezone_text_timestamp", (self._zone, reading), TIMESTAMPTZ, reading.nullable)

    def _named(self, function: str, call: Call) -> Call:
        return Call(function, (self._zone, *call.arguments), call.type, call.nullable)

    def _later(self, call: Call, moment: Scalar, span: Scalar) -> Call:
        return Call("add_timestamptz_interval_in_zone", (self._zone, moment, span), call.type, call.nullable)

    def _is_local(self, template: Scalar) -> bool:
        """Returns whether a template is known, and shows or reads nothing of the zone."""
        return isinstance(template, Literal) and _OF_ZONE.search(str(template.value)) is None

    def _has_moments(self, path: Scalar) -> bool:
        return not isinstance(path, Literal) or "datetime" in str(path.value)

    def _shows(self, call: Call) -> bool:
        """Returns whether a function makes text or json of its arguments."""
        shown: Sequence[ScalarType] = (call.type, *call.type.parts)
        return any(one.kind in (Kind.TEXT, Kind.JSONB) for one in shown)


def _of_day(call: Call) -> ZoneNotSupported:
    return ZoneNotSupported(
        "a cast to time with time zone is not supported in a session in another zone",
        detail=f'The offset of "{_ZONE.variable.get()}" depends on the day.',
        hint="SET TIME ZONE 'UTC', or write a literal with its offset: timetz '10:00+02'.",
    )


def _refused_path(name: str) -> ZoneNotSupported:
    return ZoneNotSupported(
        f"{name.partition('_tz')[0]}_tz with .datetime() is not supported in a session in another zone",
        detail=f'The session\'s time zone is "{_ZONE.variable.get()}", and moments of a path without one are in UTC.',
        hint="SET TIME ZONE 'UTC', or write the zone in the data.",
    )


def _refused(call: Call) -> ZoneNotSupported:
    return ZoneNotSupported(
        f"{call.function.partition('_timestamptz')[0]} of a timestamptz is not supported in a session in another zone",
        detail=f'The session\'s time zone is "{_ZONE.variable.get()}".',
        hint="SET TIME ZONE 'UTC', or name the zone in the query: moment AT TIME ZONE 'Europe/Berlin'.",
    )
