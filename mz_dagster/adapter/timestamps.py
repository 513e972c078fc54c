"""Timestamp selection: at which time a read happens, written as constraints.

    valid      t >= since of every input                       else the history is forgotten
    linear     t >= the oracle's read timestamp                 strict serializable: sees every acknowledged write
    complete   t <  upper of every input                        serializable: answers without waiting
    asked      t == the time of AS OF; t >= that of AS OF AT LEAST

Strict serializable is the default: the least time that is valid and linear, for which the reader may have to
drive a step. Serializable takes the latest time that is complete, and falls back to the least valid
one. A table is complete at any time that has come, since a transaction of the catalog closes it there
and then: one that nobody writes neither waits for a poll nor holds what is read with it in the past. A
time that no step may close yet, because it is still to come, or a feed has not told what it contains,
is waited for by whoever reads, up to a deadline (`Peeks`), and refused after it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import Enum

from mz_dagster.catalog import CollectionRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId


class Isolation(Enum):
    """Says which reads may miss acknowledged writes: none, or those not yet complete in all inputs."""

    STRICT_SERIALIZABLE = "strict serializable"
    SERIALIZABLE = "serializable"


class NoValidTimestamp(ProgrammingError):
    """The inputs cannot be read at the time asked for."""

    sqlstate = "22023"


@dataclass(frozen=True, slots=True)
class AsOfTime:
    """The time of an AS OF clause, in milliseconds; `at_least` makes it a lower bound."""

    time: int
    at_least: bool = False


def select_timestamp(
    inputs: Sequence[CollectionRow],
    read_ts: int,
    isolation: Isolation,
    as_of: AsOfTime | None = None,
    *,
    closable: Set[GlobalId] = frozenset(),
) -> int:
    """Returns the time at which to read the inputs.

    Args:
        inputs: The collections to be read, of one timeline; may be empty for a query over constants.
        read_ts: The oracle's read timestamp of the timeline.
        isolation: What the session asked for.
        as_of: The AS OF clause, if there is one.
        closable: Those that can be closed at any time without a step: tables, where the project can be written.

    Raises:
        NoValidTimestamp: An input is closed for reading, or the time asked for is forgotten or not known yet.
    """
    for row in inputs:
        if row.since.is_empty:
            raise NoValidTimestamp(f'collection "{row.id}" was dropped', hint="Read what replaced it.")
    valid = max((row.since.only for row in inputs), default=0)
    latest = max(read_ts, valid)
    stepped = [row for row in inputs if row.id not in closable]
    complete = min((row.upper.only - 1 for row in stepped if not row.upper.is_empty), default=latest)
    if as_of is not None:
        if as_of.time > max(latest, complete):
            raise NoValidTimestamp(
                f"could not find a valid timestamp: time {as_of.time} is not known yet",
                detail=f"The latest time that can be read is {max(latest, complete)}.",
                hint="Read at that time, or wait until the frontiers have passed the time you want; AS OF waits "
                "as long as reads.as_of_deadline in mz.toml says.",
            )
        if not as_of.at_least:
            if as_of.time < valid:
                raise NoValidTimestamp(
                    f"could not find a valid timestamp: history before {valid} is forgotten",
                    detail=f"The query asks for {as_of.time}; its inputs can be read from {valid} on.",
                    hint="Read at a later time, or keep more history with RETAIN HISTORY.",
                )
            return as_of.time
    chosen = max(valid, complete) if isolation is Isolation.SERIALIZABLE else latest
    return chosen if as_of is None else max(chosen, as_of.time)
