"""Examples of times with a zone."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import resolve_date_part, resolve_extract, resolve_function
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.moments.field_names import DATE_PARTS, TIMETZ_FIELDS
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INTERVAL, TEXT, TIME, TIMETZ, Kind, Modifier, ScalarType
from mz_dagster.scalars.values import Interval
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator
from tests.compute.examples.interval import moved

_TIMES = [
    "00:00:00+00", "23:59:59.999999-12", "12:34:56.789+05:30", "12:34:56.789+05:45", "00:00:00.000001+15:59:59",
    "01:02:03-15:59", "07:04:56.789+00",
]  # fmt: skip
_TEXTS = [
    "10:00", "10:00+02", "10:00 -03:30", "1:2:3.5z", "12:30 am +1", "040506+0200", "2024-07-01 10:00 Europe/Berlin",
    "2024-01-01 10:00 Europe/Berlin", "10:00 Europe/Berlin", "10:00 UTC", "10:00+16", "25:00+00",
    "10:61+00", "abc", "", "allballs", "10:00+1:2:3",
]  # fmt: skip
POOLS["timetz"] = (TIMETZ, _TIMES)
POOLS["to_round_timetz"] = (TIMETZ, ["00:00:00+00", "12:34:56.789500+02", "00:00:00.05-03:30"])
POOLS["text_timetz"] = (TEXT, _TEXTS)


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        yield operator(symbol, "timetz", "timetz")
    yield operator("<", "timetz", "time")
    for name in ("greatest", "least"):
        yield function(name, "timetz", "timetz")
    yield operator("||", "text", "timetz")
    for pair in (("date", "timetz"), ("timetz", "date")):
        yield moved(operator("+", *pair))
    for pair in (("timetz", "iv_small"), ("iv_small", "timetz")):
        yield operator("+", *pair)
    yield operator("-", "timetz", "iv_small")
    for pool, type_ in (("timetz", TEXT), ("timetz", TIME), ("time", TIMETZ), ("tz", TIMETZ), ("text_timetz", TIMETZ)):
        yield casting(pool, type_)
    for digits in (0, 3):
        yield casting("to_round_timetz", ScalarType(Kind.TIMETZ, modifier=Modifier(digits)))
    (column,) = columns_of(["timetz"])
    for field in TIMETZ_FIELDS:
        yield Example(f"extract({field} from {{0}})", applied(resolve_extract(field, TIMETZ), [column]), ("timetz",))
    for field in (*DATE_PARTS, "timezone_minute"):
        found = resolve_date_part(field, TIMETZ)
        assert not isinstance(found, Failure)
        yield Example(f"date_part('{field}', {{0}})", found[1].apply(applied(found[0], [column])), ("timetz",))
    zone = Literal(Interval(0, 0, -9_000_000_000), INTERVAL)
    shifted = applied(resolve_function("timezone", [INTERVAL, TIMETZ]), [zone, column])
    yield Example("{0} AT TIME ZONE interval '-02:30'", shifted, ("timetz",))
