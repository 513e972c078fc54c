"""What a poll of sources found, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId


@dataclass(frozen=True, slots=True)
class Poll:
    """What a poll of a timeline's sources found.

    Attributes:
        tick: The tick that it minted, or None.
        files: How many files were bound to it.
        reason: One line for people.
        failures: Why sources could not be polled, by their ids; they stay behind until they can.
        changed: The sources of which that is new: they fail since this poll, for another reason, or no more.
        is_raced: Whether somebody else minted a tick meanwhile, so that nothing of what it found is bound.
    """

    tick: int | None
    files: int
    reason: str
    failures: Mapping[GlobalId, Error] = field(default_factory=dict)
    changed: frozenset[GlobalId] = frozenset()
    is_raced: bool = False

    @property
    def healed(self) -> frozenset[GlobalId]:
        """The sources that could not be polled before and were now."""
        return self.changed - self.failures.keys()
