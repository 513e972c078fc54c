"""Why an embedded server ended, in words that say what to set.

The heap is what a server mostly ends of: its JVM ends itself where it cannot go on, with an exit code of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mz_dagster.process import Ending, ProcessIdentity, ending_of
from mz_dagster.storage.spark.launch import endings_file, output_file

_HEAP_CODE = 3  # of -XX:+ExitOnOutOfMemoryError
_NO_MEMORY = ("OutOfMemoryError", "insufficient memory", "Cannot allocate memory")


class WhyEnded(NamedTuple):
    """Why a server ended and what to do, a sentence each, and whether it was for its heap."""

    cause: str
    hint: str
    of_heap: bool = False


class WatchedServer(NamedTuple):
    """What must be known of a server to tell how it ended.

    Attributes:
        process: Its process.
        state_dir: Its folder.
        memory: The heap that it was given.
    """

    process: ProcessIdentity
    state_dir: Path
    memory: str

    def why_ended(self, *, seconds: float = 1.0) -> WhyEnded | None:
        """Returns why it ended; None if it runs, or nobody saw its end.

        Args:
            seconds: How long to wait for its end, which its clients may notice before the system does.
        """
        found = ending_of(self.process, endings_file(self.state_dir), seconds=seconds)
        return None if found is None else self._explained(found)

    def _explained(self, ending: Ending) -> WhyEnded:
        said = next((line for line in ending.said.splitlines() if any(one in line for one in _NO_MEMORY)), None)
        who = f"The Spark server (process {self.process.pid})"
        logs = f"Its last words are in {output_file(self.state_dir)}, those of servers before it in {_OLDER}."
        if ending.idle:
            return WhyEnded(
                f"{who} {ending.cause}.", 'Try again: it is started anew. "spark.idle" in mz.toml is how long.'
            )
        more = f"in mz.toml, table [spark.conf], which is {self.memory} now. {logs}"
        if ending.code == _HEAP_CODE or (said is not None and "OutOfMemoryError" in said):
            return WhyEnded(
                f"{who} ended because its heap of {self.memory} was full{'' if said is None else f': {said.strip()}'}.",
                f'Give it more: raise "spark.driver.memory" {more}',
                of_heap=True,
            )
        if ending.for_memory or said is not None:
            told = ending.cause if said is None else f"{ending.cause}: {said.strip()}"
            return WhyEnded(f"{who} {told}.", f'Free memory of this machine, or lower "spark.driver.memory" {more}')
        return WhyEnded(f"{who} {ending.cause}.", logs)


def why_not_started(said: str) -> tuple[str, str]:
    """Returns what kept a server from starting, by what it said, and what to do about it.

    Example:
        >>> why_not_started("java.io.IOException: No space left on device")[0]
        "there is no space for Spark's jars or its temporary files"
    """
    for sign, what, hint in _OBSTACLES:
        if sign in said:
            return what, hint
    return "the Spark server ended while it started", ""


_OLDER = "files that end in .1, .2 and so on"

_JARS = 'Its jars (87 MB) are fetched once, into the folder that "spark.jars.ivy" names in mz.toml, else ~/.ivy2.5.2.'
_OBSTACLES = (
    ("No space left", "there is no space for Spark's jars or its temporary files", f"Free space. {_JARS}"),
    ("Disk quota exceeded", "there is no space for Spark's jars or its temporary files", f"Free space. {_JARS}"),
    ("Read-only file system", "Spark cannot write where its jars or its temporary files are to be", _JARS),
    ("UNRESOLVED DEPENDENCIES", "Spark's jars cannot be fetched", f"Is the Maven repository reachable? {_JARS}"),
    ("Unresolved dependencies", "Spark's jars cannot be fetched", f"Is the Maven repository reachable? {_JARS}"),
)
