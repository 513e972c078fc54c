"""Errors of a source that are dropped: bound as a tick of it, so that steps retract them (`envelope.dropped_errors`).

The source is brought to the last tick first. So it is complete before the one that is minted, and what is dropped are
the errors that it has: none of a file of which nobody knows yet what it holds. All that is durable is the tick with its
binding, one transaction; whoever steps next does the rest, after a crash, too. Others who drop the same errors
meanwhile mint a tick that the expectation of the last one does not meet, and find nothing left.
"""

from __future__ import annotations

from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.samples import NO_ERRORS, ErrorPart, errors_at
from mz_dagster.catalog import DROPPED_ERRORS
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source import Gain

#: How many of the dropped errors are named.
_MOST_NAMED = 10


def dropped_errors(engine: Engine, source: GlobalId) -> ErrorPart:
    """Drops the errors that a source of files has, if there are any; returns them.

    Raises:
        OperationalError: The source cannot be brought to the present, or others minted ticks again and again; nothing
            was dropped.
    """
    found = NO_ERRORS

    def gain(last: int | None) -> Gain:
        nonlocal found
        found = NO_ERRORS
        if last is None:
            return Gain()
        row = engine.catalog.collection(source)
        if row.upper.less_equal(last):
            engine.reach(str(row.timeline), last, frozenset((source,)))
            row = engine.catalog.collection(source)
        found = errors_at(engine, row, row.upper.only - 1, _MOST_NAMED)
        return Gain(offset={DROPPED_ERRORS: found.total}) if found.total else Gain()

    engine.bind(source, gain)
    return found
