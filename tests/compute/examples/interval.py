"""Intervals and times: their texts, sums with moments, products, fields, comparisons, and the makers."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import (
    Failure,
    literal_of,
    resolve_date_part,
    resolve_date_trunc,
    resolve_extract,
    resolve_function,
    resolve_operator,
)
from mz_dagster.functions.moments.field_names import DATE_PARTS, INTERVAL_FIELDS, INTERVAL_UNITS, TIME_FIELDS
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import FLOAT8, INT4, INTERVAL, TEXT, TIME, TIMESTAMP
from mz_dagster.scalars.values import Interval
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

_INTERVALS = [
    "0", "1 mon", "30 days", "29 days 24:00", "1 day", "24:00:00", "-1 mon", "-30 days", "1 us", "-1 us",
    "1 year 2 mons -3 days 04:05:06.789", "-1 year -2 mons +3 days -04:05", "45 days 36:00", "-5 days +03:00",
    "1 mon -1 day", "-1 mon 31 days", "100 years", "119988 mons", "3652059 days", "11 mons 29 days 23:59:59.999999",
    "2147483647 mons", "-2147483648 mons", "2147483647 days", "-2147483648 days", "9223372036854775807 us",
    "-9223372036854775808 us",
]  # fmt: skip
_SMALL_INTERVALS = _INTERVALS[:18]
_TEXTS = [
    "1 day", "1 year 2 mons -3 days 04:05:06.789", "1-2", "1-12", "@ 1 hour 5 min ago", ".001 second",
    "1-2 3:4:5 5 day", "1.5 mon", "-1.5 months", "2.7 years", "1.25 weeks", "1e3 seconds", "1:2.5", "12:60", "5", "",
    "day", "1 foo", "1 day 1 d", "3 days ago 02:00", "2147483648 days", "9223372036854775808 us", "P1Y2M3DT4H5M6.7S",
    "P0001-02-03T04:05", "PT101112.5", "P1YM", "p1y", "1 D 2 H", "2147483648 months", "é", "00:00:61", "1 2",
    "1 +02:03", "- 3 days",
]  # fmt: skip
_TIME_TEXTS = [
    "00:00", "1:2:3", "23:59:59.999999", "12:30 am", "12:30 PM", "1:00pm", "13:00 am", "24:00:00.1",
    "25:00", "10:60", "10:00:60", "10:00:61", "abc", "", " 10:00 ", "10:00:00.", "10:00:00.1234565",
]  # fmt: skip
POOLS["iv"] = (INTERVAL, _INTERVALS)
POOLS["iv_small"] = (INTERVAL, _SMALL_INTERVALS)
POOLS["time"] = (TIME, ["00:00:00", "23:59:59.999999", "12:34:56.789", "00:00:00.000001", "01:02:03"])
POOLS["text_iv"] = (TEXT, _TEXTS)
POOLS["text_time"] = (TEXT, _TIME_TEXTS)
POOLS["factor"] = (
    FLOAT8,
    ["0", "1", "-1", "0.5", "1.5", "-2.7", "0.333333333", "1e-3", "1e10", "1e300", "NaN", "Infinity"],
)
POOLS["ts_some"] = (TIMESTAMP, ["1970-01-01 00:00:00", "2020-02-29 12:34:56.789", "2021-01-31 23:59:59.999999"])
POOLS["stride"] = (INTERVAL, ["15 min", "1 day", "0", "-1 day", "1 mon", "1 us", "3 days", "7 hours 13 min"])
POOLS["year"] = (INT4, ["1", "2020", "9999", "0", "1900"])
POOLS["month"] = (INT4, ["0", "1", "2", "12", "13"])
POOLS["day"] = (INT4, ["0", "1", "28", "29", "31", "32"])
POOLS["hour"] = (INT4, ["0", "1", "23", "25", "-1"])
POOLS["minute"] = (INT4, ["0", "59", "60"])
POOLS["seconds"] = (FLOAT8, ["0", "1.5", "59.999999", "60.5", "-1", "30.1234567"])


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _comparisons()
    yield from _sums()
    yield from _scaled()
    yield from _fields()
    yield from _casts()
    yield from _makers()


def _comparisons() -> Iterator[Example]:
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        yield operator(symbol, "iv", "iv")
        yield operator(symbol, "time", "time")
    yield operator("=", "time", "iv_small")
    yield operator("IS DISTINCT FROM", "iv_small", "iv_small", name="is distinct from")
    yield operator("IS NOT DISTINCT FROM", "iv_small", "iv_small", name="is not distinct from")
    for name in ("greatest", "least"):
        yield function(name, "iv_small", "iv_small", "iv_small")
        yield function(name, "time", "time")
    for pair in (("text", "iv_small"), ("time", "text")):
        yield operator("||", *pair)


def _sums() -> Iterator[Example]:
    for moment in ("date", "ts", "tz"):
        for pair, symbol in (((moment, "iv"), "+"), (("iv", moment), "+"), ((moment, "iv"), "-")):
            yield moved(operator(symbol, *pair))
        for text in ("90 days", "1 mon", "-1 mon 31 days 12:00", "00:00:01", "1 mon 1 day 1 us"):
            yield moved(_by_literal(moment, "+", text))
            yield moved(_by_literal(moment, "-", text))
    for moment in ("ts", "tz"):
        yield operator("-", moment, moment)
        yield function("age", moment, moment)
    yield operator("-", "date", "ts")
    for pair in (("date", "time"), ("time", "date")):
        yield operator("+", *pair)
    yield operator("-", "time", "time")
    for symbol in "+-":
        yield _unwrapped(operator(symbol, "time", "iv"))
        yield operator(symbol, "iv", "iv")
    yield _unwrapped(operator("+", "iv", "time"))
    yield operator("-", "iv")
    for moment in ("ts", "tz"):
        origin = "ts_some" if moment == "ts" else "tz"
        yield moved(function("date_bin", "stride", moment, origin))


def _scaled() -> Iterator[Example]:
    yield operator("*", "iv", "factor")
    yield operator("*", "factor", "iv")
    yield operator("/", "iv", "factor")
    yield operator("*", "iv", "int4")
    yield operator("/", "iv", "n2")
    for name in ("justify_hours", "justify_days", "justify_interval"):
        yield function(name, "iv")


def _fields() -> Iterator[Example]:
    for fields, pool in ((TIME_FIELDS, "time"), (INTERVAL_FIELDS, "iv")):
        for field in fields:
            (column,) = columns_of([pool])
            resolved = resolve_extract(field, column.type)
            yield Example(f"extract({field} from {{0}})", applied(resolved, [column]), (pool,))
    for field in (*DATE_PARTS, "minute", "microseconds"):
        for pool in ("time", "iv", "ts", "tz", "date"):
            (column,) = columns_of([pool])
            found = resolve_date_part(field, column.type)
            if isinstance(found, Failure):
                continue
            yield Example(f"date_part('{field}', {{0}})", found[1].apply(applied(found[0], [column])), (pool,))
    for unit in INTERVAL_UNITS:
        for pool in ("iv", "time"):
            (column,) = columns_of([pool])
            resolved = resolve_date_trunc(unit, column.type)
            yield Example(f"date_trunc('{unit}', {{0}})", applied(resolved, [column]), (pool,))


def _casts() -> Iterator[Example]:
    yield casting("iv", TEXT)
    yield casting("time", TEXT)
    yield casting("text_iv", INTERVAL)
    yield casting("text_time", TIME)
    yield casting("time", INTERVAL)
    yield casting("iv_small", TIME)
    yield casting("ts", TIME)
    yield casting("tz", TIME)


def _makers() -> Iterator[Example]:
    yield function("make_date", "year", "month", "day")
    yield function("make_time", "hour", "minute", "seconds")
    parts = ("year", "month", "day", "hour", "minute", "seconds")
    yield moved(function("make_timestamp", *parts))
    yield moved(function("make_timestamptz", *parts))
    yield function("make_interval", *parts[:3], "small_int", *parts[3:])
    yield moved(function("to_timestamp", "epoch"))
    for pool in ("date", "ts", "tz", "iv"):
        yield function("isfinite", pool)
    for pool in ("ts", "tz", "iv_small"):
        yield _unshown(function("to_char", pool, "template"))
    for pool in ("ts", "tz"):
        for zone in (Literal("Europe/Berlin", TEXT), Literal(Interval(0, 0, -9_000_000_000), INTERVAL)):
            (column,) = columns_of([pool])
            sql = "'Europe/Berlin'" if isinstance(zone.value, str) else "interval '-02:30'"
            call = applied(resolve_function("timezone", [zone.type, column.type]), [zone, column])
            yield moved(Example(f"{{0}} AT TIME ZONE {sql}", call, (pool,)))


POOLS["template"] = (TEXT, [
    "", "YYYY-MM-DD HH24:MI:SS.US", "FMDay, FMDDth FMMonth Y,YYY", "Day|DY|Mon|MONTH|RM|FMRM", "IYYY-IW-ID IDDD J",
    "CC Q WW W D", "HH12:MI am P.M. SSSS MS FF3", "TZ OF TZH:TZM AD b.c.", '"quoted YYYY" \\"x',
    "DDDTH HH24th YYY YY Y TMMonth", "monday",
])  # fmt: skip
POOLS["small_int"] = (INT4, ["0", "1", "-40", "100000"])
POOLS["epoch"] = (FLOAT8, ["0", "1.5", "-0.000001", "1700000000.123456", "1e9", "253402300799.5", "NaN", "1e18"])


def _by_literal(pool: str, symbol: str, text: str) -> Example:
    (column,) = columns_of([pool])
    literal = literal_of(text, INTERVAL)
    assert isinstance(literal, Literal)
    resolved = resolve_operator(symbol, [column.type, INTERVAL])
    return Example(f"{{0}} {symbol} interval '{text}'", applied(resolved, [column, literal]), (pool,))


def moved(example: Example) -> Example:
    """Tolerates what lies outside the years 1 to 9999."""

    def beyond(ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
        if ours is None or theirs is None or not ours.startswith("!22008"):
            return False
        return theirs.endswith(" BC") or len(theirs.partition("-")[0]) > len("=9999")

    return Example(example.sql, example.scalar, example.pools, beyond)


def _unshown(example: Example) -> Example:
    """Tolerates that fields of the calendar are refused for intervals where PostgreSQL makes some up."""

    def made_up(ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
        return ours == "!22007 invalid format specification for an interval value"

    return Example(example.sql, example.scalar, example.pools, made_up)


def _unwrapped(example: Example) -> Example:
    """Tolerates what PostgreSQL makes of a sum of a time with an interval beyond 64 bits, which wraps around."""

    def wraps(ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
        return any(cell is not None and "9223372036854775" in cell for cell in row)

    return Example(example.sql, example.scalar, example.pools, wraps)
