"""Parts of dates and timestamps."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.plan.functions import Failure, resolve_date_part, resolve_date_trunc, resolve_extract
from mz_dagster.plan.functions.table import EXTRACT_FIELDS, TRUNC_UNITS
from tests.compute.examples.example import Example, applied, columns_of


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _moments()


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
                "CASE WHEN date_trunc('{0}', {{0}}) < '0001-01-01' THEN error('22008', 'timestamp out of range')::text"
            )
            guard = f"{guard.format(unit)} ELSE date_trunc('{unit}', {{0}})::text END"
            yield Example(guard, applied(resolved, [column]), (pool,))
