"""How long a write is tried that others are faster than."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.adapter.project import Project
from mz_dagster.clock import Clock
from mz_dagster.errors import OperationalError


class WriteContended(OperationalError):
    """A write that lost every race against others until its deadline; nothing was written."""

    sqlstate = "40001"


def write_attempts(project: Project, clock: Clock) -> Iterator[None]:
    """Yields for each attempt to be made, the first at once.

    Raises:
        WriteContended: The project's deadline has passed.
    """
    deadline_ms = project.write_deadline_ms
    until = clock.monotonic_ms() + deadline_ms
    yield
    while clock.monotonic_ms() < until:
        yield
    raise WriteContended(
        "could not serialize access due to concurrent writes",
        detail=f"For {deadline_ms / 1000:g} s others were faster to write what the statement reads or writes.",
        hint="Nothing was written. Try again, read less in it, or give it longer: deadline in [writes] of mz.toml.",
    )
