"""Ticks as Dagster's partitions: one dynamic partition set per timeline of a project, in ascending order.

A partition key is the tick as a fixed-width UTC instant, so that keys sort as times do and a person can read
them; of a tick beyond the year 9999, which no fixed width of an instant holds, it is the number, behind a letter that
sorts after all years. Dagster orders dynamic partitions by insertion; ticks are only ever minted in ascending order, so
both orders agree.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import dagster as dg

from mz_dagster.adapter import Project

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
#: The last tick that an instant of four digits a year tells.
_LAST_INSTANT = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MS


def partitions_of(project: Project, timeline: str) -> dg.DynamicPartitionsDefinition:
    """Returns the partition set of a timeline's ticks.

    An instance has one set of a name, whichever code location names it: so the project's name is in it.
    """
    return dg.DynamicPartitionsDefinition(name=f"mz_ticks_{project.name}.{timeline}")


def named(what: str, timeline: str) -> str:
    """Returns a name that Dagster allows for what serves a timeline.

    Example:
        >>> named("mz_frontier", "feed-2013")
        'mz_frontier_feed_2013'
    """
    return f"{what}_" + re.sub(r"[^A-Za-z0-9_]", "_", timeline)


def partition_key(tick: int) -> str:
    """Returns the key of a tick, in milliseconds since the epoch.

    Example:
        >>> partition_key(1357102800001), partition_key(253402300800000)
        ('2013-01-02T05:00:00.001Z', 'T0000253402300800000')
    """
    if tick > _LAST_INSTANT:
        return f"T{tick:019d}"
    return (_EPOCH + tick * _MS).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tick_of(key: str) -> int:
    """Returns the tick of a partition key.

    Raises:
        ValueError: It is not the key of any tick.

    Example:
        >>> tick_of("2013-01-02T05:00:00.001Z")
        1357102800001
    """
    tick = int(key[1:]) if key.startswith("T") else (datetime.fromisoformat(key).replace(tzinfo=UTC) - _EPOCH) // _MS
    if partition_key(tick) != key:
        raise ValueError(f'"{key}" is not the key of a tick')
    return tick
