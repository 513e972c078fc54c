"""What SET changes in a session, for all that share it: the cursors of a connection are one session."""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.budget import EngineSetting


@dataclass(slots=True)
class Variables:
    """The variables of one session; those that are set hold until they are set again, or it ends.

    Attributes:
        engine: Who computes.
    """

    engine: EngineSetting
