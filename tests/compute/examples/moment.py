"""Parts of dates and timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mz_dagster.functions import Failure, resolve_date_part, resolve_date_trunc, resolve_extract
from mz_dagster.functions.moments.field_names import EXTRACT_FIELDS, TRUNC_UNITS
from mz_dagster.scalars.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function

POOLS["text_moment"] = (TEXT, [
    "Jan 1, 2020", "1/8/1999", "20200101", "January 8, 1999", "08-Jan-1999", "epoch", "J2451187", "2020.060 4:05 PM",
    "Thu Jan 8 04:05:06.789 1970 UTC", "2020-07-01 04:05 Europe/Berlin", "20200708T040506-08", "13/1/2020",
    "Jan 32 2020", "2020-01-01 25:00", "2020-01-01 +16", "2020-01-01 Mars/Olympus", "yesterdayish", "",
])  # fmt: skip
POOLS["text_by_template"] = (TEXT, ["2020-02-29 16:05:06.7", "29 Feb 2020", "Feb 2020 29", "20200229", "12:30 pm", ""])
POOLS["moment_template"] = (TEXT, [
    "YYYY-MM-DD HH24:MI:SS.MS", "DD Mon YYYY", "Mon YYYY DD", "YYYYMMDD", "YYYY", "HH:MI AM", "IYYYIWID", "YYYY-DDD",
    "",
])  # fmt: skip


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _moments()
    for type_ in (DATE, TIMESTAMP, TIMESTAMPTZ):
        yield casting("text_moment", type_)
    for name in ("to_date", "to_timestamp"):
        yield replace(function(name, "text_by_template", "moment_template"), tolerates=_is_before_christ)


def _is_before_christ(ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
    """Tolerates that there is no year before 1, which PostgreSQL takes where a text names none."""
    return ours is not None and ours.startswith("!22008") and theirs is not None and theirs.endswith(" BC")


def _moments() -> Iterator[Example]:
    for field, (kinds, _) in EXTRACT_FIELDS.items():
        for pool in ("date", "ts", "tz"):
            (column,) = columns_of([pool])
            if column.type.kind not in kinds:
                continue
            resolved = resolve_extract(field, column.type)
            yield Example(f"extract({field} from {{0}})", applied(resolved, [column]), (pool,))
    for field in ("year", "hour", "microseconds"):
        for pool in ("date", "ts"):
            (column,) = columns_of([pool])
            found = resolve_date_part(field, column.type)
            assert not isinstance(found, Failure)
            yield Example(f"date_part('{field}', {{0}})", found[1].apply(applied(found[0], [column])), (pool,))
    for unit in TRUNC_UNITS:
        for pool in ("date", "ts", "tz"):
            (column,) = columns_of([pool])
            resolved = resolve_date_trunc(unit, column.type)
            # Before year 1 there is nothing here.
            guard = (
                "CASE WHEN isfinite({{0}}) AND date_trunc('{0}', {{0}}) < '0001-01-01'"
                " THEN error('22008', 'timestamp out of range')::text"
            )
            guard = f"{guard.format(unit)} ELSE date_trunc('{unit}', {{0}})::text END"
            yield Example(guard, applied(resolved, [column]), (pool,))
