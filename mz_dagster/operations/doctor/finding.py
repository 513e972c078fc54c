"""What the doctor may find: every check by name, why a break of it matters, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from mz_dagster.catalog import BatchId

Repair = Callable[[], str]
"""Mends what was found, and returns a line that says what was done."""


class Severity(Enum):
    """How bad a finding is; only a break makes the doctor fail."""

    BREAK = "broken"
    LEFTOVER = "leftover"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the doctor looks at.

    Attributes:
        severity: How bad a finding is.
        why: Why it matters, a sentence.
        advice: What to do, a sentence; empty if only the way back of the contents helps (`Finding.way_back`).
    """

    severity: Severity
    why: str
    advice: str


_MENDED = "Run doctor --repair."
_REBUILT = 'Make the output anew with "mz-dagster rebuild".'
_SWEPT = 'The next compaction takes it, or "doctor --repair" now.'
_RECOVERED = 'Stop writing; "mz-dagster recover --damaged BACKUP" moves the catalog away and puts a backup\'s there.'


def _broken(why: str, advice: str = "") -> Check:
    return Check(Severity.BREAK, why, advice)


def _left(why: str) -> Check:
    return Check(Severity.LEFTOVER, why, _SWEPT)


CHECKS = {
    # surroundings
    "settings-unreadable": _broken("Nothing can open the project.", "Correct mz.toml as the message says."),
    "not-writable": _broken("Nothing can be appended.", "Give this user the right to write there."),
    "disk-full": _broken("Appends will fail soon.", "Free space, or move the project to a larger disk."),
    "project-files": _broken("It stays as it was applied last, if ever it was.", "Correct the file."),
    "definitions-differ": Check(
        Severity.NOTE,
        "The catalog does not hold what the files define.",
        '"mz-dagster plan" shows it, "apply" does it.',
    ),
    "no-catalog": Check(Severity.NOTE, "Nothing was ever applied or written here.", '"mz-dagster apply" makes it.'),
    "no-dagster": Check(Severity.NOTE, "Dagster has no history of runs here.", '"mz-dagster run" or "dev" makes it.'),
    "quarantine": Check(
        Severity.NOTE,
        "It may be the only copy of something.",
        '"mz-dagster quarantine" lists it, and deletes it if told to.',
    ),
    "spark-gone": _left("Its Spark server ended without cleaning up; the next one starts all the same."),
    # the catalog's rows
    "catalog-unreadable": _broken("Nothing can be read or written.", _RECOVERED),
    "catalog-unreachable": _broken(
        "Nothing can be read or written. That by itself damages nothing.",
        "Do as the message says, then run doctor again.",
    ),
    "catalog-version": _broken("This version of the code cannot use the catalog.", "Do as the message says."),
    "catalog-lost": _broken(
        "The shards are there, and nothing says what is in them.",
        'Correct catalog.url in mz.toml if the catalog is elsewhere; else "mz-dagster recover BACKUP".',
    ),
    "shards-of-another": _broken(
        "The catalog would take another project's files for its own.",
        "Correct catalog.url in mz.toml, or open the project whose catalog it is.",
    ),
    "shards-unreachable": _broken("Nothing can be read from shards, or written to them.", "Do as the message says."),
    "unreadable-value": _broken("What reads it fails.", _RECOVERED),
    "dangling-reference": _broken("What follows the reference fails.", _RECOVERED),
    "wrong-id": _broken("An id must denote one thing for good.", _RECOVERED),
    "counter-behind": _broken("An id would be handed out twice.", _MENDED),
    "names-lost": _broken("Nothing can be defined or dropped, and it is not known what had them.", _RECOVERED),
    "changes-lost": _broken("Processes at work would not learn what others changed.", _MENDED),
    "bindings-lost": _broken("The source cannot be polled: it would read files again.", _RECOVERED),
    "tick-lost": _broken("Dagster does not show it, although its times are readable.", _MENDED),
    "sequence-lost": _broken("Rows that would get a number of it cannot be inserted.", _RECOVERED),
    "tombstone-of-living": _broken("It would be said to have been dropped.", _MENDED),
    "name-of-dropped": _broken("The name is taken by what cannot be read.", _MENDED),
    "right-of-dropped": _broken("It grants nothing and will never go by itself.", _MENDED),
    "needs-dropped": _broken("What it is computed from is gone, so it can never advance.", "Drop it."),
    "missing-hold": _broken(
        "Compaction may forget history of the input that the output still needs.",
        'Do not compact; make the output anew with "mz-dagster rebuild".',
    ),
    # frontiers and time
    "since-beyond-upper": _broken("No time of it is readable.", _RECOVERED),
    "since-beyond-capability": _broken("History was forgotten that somebody holds a right to.", _RECOVERED),
    "upper-beyond-capability": _broken("Times are closed that somebody holds the right to write.", _RECOVERED),
    "since-beyond-output": _broken(
        "The output is readable at times at which its input is not, so it cannot be checked or recomputed.",
        _REBUILT,
    ),
    "upper-beyond-input": _broken("The output claims to be complete where its input is not known yet.", _REBUILT),
    "oracle-behind": _broken("A new write could land at a time that was read already.", _MENDED),
    "oracle-ahead": Check(
        Severity.NOTE,
        "A clock was ahead: until the present catches up, times are counted one by one, and tell no time of day.",
        "All is in order all the same; check the clocks of the machines that write.",
    ),
    "lease-in-future": _broken("A clock was set back: until then, everybody waits for who may be long gone.", _MENDED),
    "lease-expired": _left("It ran out long ago and protects nothing."),
    # batches
    "list-damaged": _broken(
        "Reads of it are refused, and nothing of it is swept.",
        "Run doctor --repair: it helps if what was on the list can be proven.",
    ),
    "batch-interval": _broken("A batch must cover some time.", _RECOVERED),
    "batch-overlap": _broken("Reads return updates twice.", _RECOVERED),
    "batch-beyond-upper": _broken("Reads return updates of times that are not closed.", _RECOVERED),
    "batch-of-dropped": _broken("Nobody can read it, and no sweep will take it.", _RECOVERED),
    "batch-unsealed": _left("Its writer ended before sealing it; nobody can read it."),
    "batch-replaced": _left("Another batch took its place, or what it belonged to was dropped, and nobody reads it."),
    # shards
    "log-damaged": _broken("The shard cannot be read.", "Run doctor --repair: it is made anew if all files are there."),
    "batch-rows": _broken("Reads of the batch are refused.", "Run doctor --repair: it helps if only the log is wrong."),
    "batch-files": _broken(
        "Reads of the batch are refused.", "Run doctor --repair: it helps if the files that were written are there."
    ),
    "batch-unhashed": Check(
        Severity.NOTE,
        "It was written by a version that kept no hashes of files, so that a flipped bit in it may not be found.",
        '"mz-dagster compact" writes it anew, with hashes.',
    ),
    "payload-missing": _broken("Reads of the batch fail."),
    "payload-content": _broken("Reads of the batch fail."),
    "payload-stray": Check(
        Severity.LEFTOVER, "No batch has it for its updates.", "Run doctor --repair: it is moved to the quarantine."
    ),
    "batch-stats": _broken(
        "Reads may skip the batch's errors, and its size is misjudged.",
        "Run doctor --repair: it helps if only the log is wrong.",
    ),
    "file-missing": _broken("Reads of the batch fail."),
    "file-size": _broken("The file is not the one that was written."),
    "file-damaged": _broken("Reads of the batch fail."),
    "file-content": _broken("Reads return something else than was written."),
    "times-outside": _broken("Reads by time miss updates, or return them at the wrong time."),
    "diff-zero": _broken("An update that says nothing must not be stored.", _RECOVERED),
    "negative-rows": _broken(
        "A multiset cannot hold a row fewer than no times.", "Compare the view with its inputs (audit)."
    ),
    "stray-files": _left("They are no batch's that the catalog knows, left by a crashed or paused writer."),
    "stray-folder": Check(
        Severity.NOTE, "No collection has it for its shard.", "Look at it, and remove it if nobody needs it."
    ),
    # sources
    "bound-file-missing": _broken("The next poll of the source fails.", "Put the file back, byte by byte as it was."),
    "bound-file-changed": _broken(
        "The next poll of the source fails.",
        "Put the file back, byte by byte as it was; or move it away, if the tick that bound it is sealed.",
    ),
    # sinks
    "sink-differs": _broken("Its readers see what is not there.", "ALTER SINK ... RESET writes it anew."),
    "sink-unreadable": _broken("The next step of the sink fails.", "Do as the message says."),
    "step-failed": Check(Severity.NOTE, "It and what reads it stay behind.", "Do as the message says."),
    "poll-failed": Check(
        Severity.NOTE,
        "What it contains by now is not known, so it and what reads it stay behind.",
        "Do as the message says: every poll tries again.",
    ),
    "input-behind": Check(Severity.NOTE, "It cannot pass what it is computed from.", "Mend that, and it follows."),
    "cannot-be-planned": _broken(
        "It and what reads it cannot be advanced.",
        f"Do as the message says. If the catalog is damaged: {_RECOVERED}",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        check: The name of the check, one of `CHECKS`.
        where: The object, file or setting.
        what: What is wrong, a clause.
        repair: Mends it, if it is safe to; None if only a person can.
        batch: The live batch that it is about, or None.
        way_back: How to get damaged contents back if no repair does, a sentence; empty if none are damaged.
    """

    check: str
    where: str
    what: str
    repair: Repair | None = None
    batch: BatchId | None = None
    way_back: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return CHECKS[self.check].severity

    def __str__(self) -> str:
        check = CHECKS[self.check]
        said = " ".join(one for one in (check.why, check.advice, self.way_back) if one)
        return f"{check.severity.value}: {self.where}: {self.what} [{self.check}]\n    {said}"


def listing(ids: Collection[int]) -> str:
    """Returns the first of some ids, and how many there are beside them.

    Example:
        >>> listing([3, 1]), listing(range(9))
        ('1, 3', '0, 1, 2, 3, 4 and 4 more')
    """
    shown = ", ".join(map(str, sorted(ids)[:5]))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"
