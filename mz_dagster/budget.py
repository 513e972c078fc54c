"""How much is little: every threshold by which the engine chooses between two ways of computing the same.

Each way gives the same updates; a threshold says from which size on the other is the cheaper. All are here, in one
frozen record, so that one sees them together, and a test can have all of them reached by a handful of rows:

    with budget_of(Budget(evaluated_updates=0)): ...

`Budget.spark_alone()` leaves to Spark whatever it can compute, `Budget.here_alone()` nothing that this process can; the
tests of the queries run with both, and with the default. Users choose among them by the setting `engine`
(`EngineSetting`), which holds for what a thread does (`engine_of`), while a budget holds for the process.

What is no threshold of this kind is elsewhere: limits of SQL, of stored forms and of foreign software, sizes of pages
and portions, and how long to wait. Nor is what the planner decides by (`plan/`, `sql/`): plans are kept, and what is
maintained is hydrated anew if its plan becomes another, so these sizes change with a release and not with a setting.
`tests/architecture/sizes.py` lists each size that is not here, and why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path

from mz_dagster.allocators import keep_little

#: More than this process holds of anything; Spark's LIMIT takes one more, and no more than that.
_NEVER_REACHED = 2**31 - 2


#: Of fewer rows than these are put together here, however little memory there is.
_LEAST_ROWS = 2_000_000
#: Unless a process was told how much it may take: a row of twenty columns takes 320 bytes, and a few forms of that.
_BYTES_OF_A_ROW = 1_024


def _hot_bytes() -> int:
    return max(1 << 28 if _limit is None else 0, min(_memory() // 8, 1 << 32))


def _decoded_bytes() -> int:
    return _machine_memory() // 4 * 3


def _mapped_bytes() -> int:
    return _memory() // 4 * 3 if _limit is None else _memory() // 8


def _returned_bytes() -> int:
    return _memory() // (2 if _limit is None else 4)


def _first_times() -> int:
    return max(10 if _limit is None else 5, _memory() >> 28)


def _portion_times() -> int:
    return max(10, _machine_memory() >> 28)


def _portion_rows() -> int:
    return min(_memory() >> 14, 500_000)


def _portion_cells() -> int:
    return min(_memory() >> 9, 16_000_000)


def _frame_rows() -> int:
    return max(_least_rows(), min(_memory() >> 13, 20_000_000))


def _made_rows() -> int:
    return min(_least_rows(), 1_000_000)


def _held_rows() -> int:
    return max(_least_rows(), min(_memory() >> 7, _NEVER_REACHED))


def _decoded_cells() -> int:
    return max(15 * _least_rows(), min(_memory() >> 7, 1_000_000_000))


def _ingested_bytes() -> int:
    return min(_memory() >> 2, 320_000_000)


def _loaded_bytes() -> int:
    return min(_memory() << 2, 8_000_000_000)


def _spilled_bytes() -> int:
    return min(_memory() >> 6, 16_000_000)


def _streamed_bytes() -> int:
    return min(_memory() >> 4, 1 << 28)


def _inlined_memory() -> int:
    return min(_memory() >> 5, 1 << 26)


def _written_updates() -> int:
    return min(_least_rows(), 500_000)


def _least_rows() -> int:
    return _LEAST_ROWS if _limit is None else min(_LEAST_ROWS, _memory() // _BYTES_OF_A_ROW)


#: How many bytes of memory this process may take, if somebody said.
_limit: int | None = None


def _memory() -> int:
    """Returns how many bytes of memory this process may take: the machine's, if nobody said."""
    return _machine_memory() if _limit is None else min(_limit, _machine_memory())


@cache
def _machine_memory() -> int:
    """Returns how many bytes of memory the machine has, or the container that this process is in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or it is "max"
            found.append(int(Path("/sys/fs/cgroup", limit).read_text()))
    return min(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of what is little; see each attribute's comment for what happens beyond.

    Attributes:
        evaluated_updates: Of more updates of its inputs a plan with scalars of Spark's is left to it altogether. On
            columns 200,000 are filtered, multiplied and summed as q1 of TPC-H does in 0.2 s, where Spark takes 1.7;
            their groups' greatest are found in 2 s on a busy machine, a row at a time in 15.
        step_times: In a step up to so many times as many updates are computed with here, if scalars have kernels: of
            TPC-DS's views over 750,000 rows of facts one compares all customers with a maximum that changes, which
            makes 540,000 updates.
        first_times: Of a plan from the beginning, a first load's or a query's, up to so many times as many updates are
            read here, if scalars have kernels: by default one for each 256 MiB of memory, of which they take a
            sixteenth then, if five columns of 16 bytes are used of each; at least 10, or 5 of a process that was told.
        portion_times: If what a plan holds of them at once is no more than that, because the rest goes by in portions,
            up to so many times as many are read here, which takes time and no memory: by default one for each 256 MiB
            that the machine has, at least 10, whatever a process was told.
        portion_rows: What is linear in a collection of more is computed in portions of so many: by default one for each
            16 KiB of memory, at most 500,000.
        portion_cells: Of fewer, if more cells than these would be made of a portion on the way.
        least_portion_rows: A portion of fewer rows is not cut any more.
        numbered_rows: Fewer rows cost less to sort than to look at for what numbers of theirs may spare.
        narrowed_cells: A column in memory of fewer cells is not looked at for a narrower form: it takes little.
        compared_updates: Of more updates that a query reads as they are Arrow looks whether they have to be summed.
        unmatched_rows: Of a changed file's rows fewer that were left over are not looked up: they are summed as fast.
        frame_rows: More rows are not put together here, nor groups kept: by default one for each 8 KiB of memory, as a
            few forms of a row of twenty columns take; at least two million, or one for each KiB of what a process was
            told that it may take.
        joined_rows: More rows are not made in this process by one join; by default as `frame_rows`.
        joined_at_once: Of more, made of updates that take rows back at several times, fewer times are joined at once.
        pairs_per_row: If by its keys alone a join makes no more pairs than so many for each row of both sides, they are
            compared when they are made.
        made_rows: Nor by one operator of any other kind: the elements of arrays, the updates of groups.
        compared_rows: What a column is compared with in a join is looked at for up to so many rows; of more, the bounds
            within which the other side lies are not worked out, and all of it is read.
        scalar_rows: For more different arguments a function is not called row by row here, as what has no kernel is: a
            call for 50,000 takes 0.2 s (`lpad`) to 2.5 s (`to_char`), where two cores of Spark take 2.4 to 29, as it,
            too, calls Python.
        fetched_rows: More rows are not fetched from Spark by an operator in this process.
        whole_rows: A collection of more is not read whole by a lookup in this process, but by its keys.
        versioned_rows: In more rows of versions winners are not looked for in this process; by default as `frame_rows`.
        decoded_cells: A lookup in files with more cells that are not in memory, in the columns that are used, is
            Spark's: what it takes to decode them, fifty million in a second, is the same there, but Spark leaves out
            pages, and begins after a tenth of a second, or ten seconds if it is not there yet. Not so where what is
            decoded finds room on disk, for the lookups to come. By default one for each 128 bytes of memory, at least
            30 million.
        common_rows: More rows, which others look up, too, are not fetched from Spark.
        serial_rows: A collection whose inputs changed by no more updates is stepped alone, but for the first time in a
            process.
        due_rows: Of more updates of a temporal filter's state Spark finds the next that falls due: three integers of
            each are read, batch by batch.
        small_rows: A collection of more updates is read and merged by Spark.
        ingested_bytes: Files of a source with more in a step are decoded by Spark: a fourth of memory, at most 320 MB.
        ingested_rows: And so are Parquet files of more rows, which hardly take a byte each where they are alike.
        loaded_bytes: In a first load, of which records are not in memory at once, files with more are: four times what
            memory has, at most 8 GB, which take five minutes. Spark begins sooner with many files and many processors;
            of one file of 2.4 GB of keyed JSON lines the heap of 4 GiB was full.
        loaded_rows: And so are Parquet files of more rows.
        spilled_bytes: Of files of a first load with more, records go to disk while they are decoded, and their updates
            are made and written portion by portion.
        streamed_bytes: What comes portion by portion is written once it has so many bytes in memory, at most 256 MiB.
        text_bytes: Of a file of more lines so many bytes are decoded at a time, which take six times as much meanwhile;
            a Parquet file of more is read where it is.
        searched_rows: In more updates a lookup by key is Spark's, whose two jobs are faster then.
        young_rows: More updates than this are not merged in this process, after a step or when they are quiet.
        merged_parts: A merge takes so many batches together at least, so that a shard of a commit a second is not
            merged each second.
        young_parts: And so many after a step or a write: at a commit a second, a merge in sixteen seconds.
        written_updates: More that Spark computed are written by Spark.
        first_updates: And so is a first load of more, which Spark lays out for lookups; by default as `frame_rows`.
        inlined_rows: A batch of up to so many updates is stored in the catalog, in the transaction that seals it, where
            the settings do not say. Lists of batches stay short by merges, which this makes cheap.
        inlined_bytes: If it takes no more than so many bytes there.
        inlined_memory: How many bytes of such batches a process keeps in memory, at most a part in 32 of it.
        hot_bytes: How many bytes of the columns of data files that are read again a process keeps in memory: by default
            an eighth of what this machine has, between 256 MiB and 4 GiB. What joins look up whole may take an eighth
            of that besides.
        decoded_bytes: How many bytes of such columns of large files are on disk, for all processes to map: by default
            three quarters of what memory this machine has, as what is mapped should be found there, whatever a process
            was told: it is the machine's, which has it back when it needs it.
        mapped_bytes: Once a process was handed columns of so many bytes of these, it lets go of their pages, which are
            found in the machine's memory when they are looked at again: what it has mapped counts as taken. By default
            as many as may be on disk; an eighth of what a process was told.
        decoded_rows: A file of fewer rows is decoded faster than what is on disk of it is found.
        ordered_rows: In a file in memory of so many rows, keys are looked up in the order of its rows by a column of
            theirs, which is made for the first of them; in a smaller one, each row is compared.
        sorted_rows: In so many rows of a join's input, keys that are asked for again are put in order to be searched.
        loose_rows: In what is kept of a collection between steps, up to so many updates, and an eighth of all, came
            since equal ones were summed, and may cancel.
        unbounded_rows: Batches of up to so many rows are read rather than their table's log asked within which bounds
            their columns are.
        handed_rows: Up to so many rows are read by this process and handed to Spark, which has no file to open for
            them, and evaluates what it can while it plans. Each use of the frame sends them again.
        handed_bytes: And of no more than so many bytes, in files as in memory: Spark's server refuses plans of which a
            part is large.
        broadcast_updates: Up to how many updates of an input are sent to every task of a lookup instead of being
            shuffled to them, and planned once. Many, since the other way shuffles all that they are looked up in.
        sent_rows: More rows are not sent to every task by one that made them: how many they are is not known before.
        sent_bytes: Nor rows of more bytes: they are in memory in each task, and where the plan is made.
        one_task_rows: Up to so many rows are read by one task. What groups or joins them then needs no shuffle, each
            of which costs more.
        pruned_rows: A lookup in more rows begins with its keys.
        common_lookup_rows: A lookup in fewer is left to each join: to read them is little more than to plan it.
        kept_rows: More rows that joins look up alike are not kept, nor their keys read in this process.
        kept_rows_alone: Of more rows a join alone looks only those up that its other conditions leave.
        large_rows: To read so many takes about as long as a small job.
        whole_state_rows: A state of up to so many updates is looked at whole: to look keys up, they have to be fetched.
        keys: More keys are not looked at. To send and to broadcast one costs Spark 5 microseconds each time, to shuffle
            a row of what they are looked up in as much.
        key_bytes: Nor keys of more bytes.
        small_file_bytes: Files of up to so many bytes have little in them.
        sought_file_bytes: Files of up to so many have few keys, so that what they touch is looked at before the state.
        alternatives: How many alternatives an OR has at most that is a lookup, those that ask for one column being one.
        bucket_keys: For how many keys their buckets are looked for; more would be in most of them.
        compared_constants: Comparisons of one scalar with up to so many constants stay what they are; more are one look
            into a set.
        literal_constants: Of more constants Spark is not sent a literal each, which costs a quarter of a millisecond:
            a function in Python looks into all of them.
        planned_columns: Of scalars that need more columns to be planned, in all stages of columns that build upon one
            another, Spark is not sent expressions, which take a millisecond to plan each: its workers evaluate them in
            Python.
        planned_states: A query's operators that group are planned together with fewer than so many below them; what has
            more is computed for itself.
        planned_operators: Nor are more operators of any kind, what is shared counted for each of its uses, planned
            together: Spark's planner takes memory for each, and time by more than their number.
        clustered_rows: Batches of more rows are laid out in buckets, if their collection has a key to do it by. It is
            more than this process merges, which cannot.
        bucket_rows: How many rows a bucket should hold at most, as long as there are few buckets: what a lookup of one
            key reads of a batch. Each is a file, which costs a write about what 10,000 rows do, and a read of
            everything what 20,000 do.
        few_buckets: How many buckets are few. Beyond it they grow first: a part in 32 is little enough to read, and a
            scan of 6 million rows took half as long again in 256 files as in 32.
        most_bucket_rows: How many rows a bucket holds at most, where there are more than few.
        most_buckets: The most buckets of a batch, which bounds the log: beyond it buckets grow once more.
        file_rows: The most rows that one file holds.
        folded_operators: A chain of so many operators is folded over an array of its operands by Spark; a shorter one
            is written out, and compiled.
        lines_at_once: So many lines of JSON are read at once on columns; fewer one by one.
        cheap_operators: A shared subplan of up to so many operators may as well be computed for each of its uses.
        shared_objects: In a step in which fewer views and indexes have work, all is computed by the process that steps.
        shared_hydrations: Unless so many collections hydrate: then workers begin at once, even in a process that has
            not stepped before.
        shared_updates: And so is what more updates change the inputs of.
        returned_bytes: Of a query's rows, each as often as it is there, no more bytes are made: half of memory, or a
            quarter of what a process was told.
    """

    evaluated_updates: int = 200_000
    step_times: int = 5
    first_times: int = field(default_factory=_first_times)
    portion_times: int = field(default_factory=_portion_times)
    portion_rows: int = field(default_factory=_portion_rows)
    portion_cells: int = field(default_factory=_portion_cells)
    least_portion_rows: int = 10_000
    numbered_rows: int = 500
    narrowed_cells: int = 1_000
    compared_updates: int = 100
    unmatched_rows: int = 512
    frame_rows: int = field(default_factory=_frame_rows)
    joined_rows: int = field(default_factory=_frame_rows)
    joined_at_once: int = 100_000
    pairs_per_row: int = 4
    made_rows: int = field(default_factory=_made_rows)
    compared_rows: int = 1_000
    scalar_rows: int = field(default_factory=_made_rows)
    fetched_rows: int = 200_000
    whole_rows: int = 20_000
    versioned_rows: int = field(default_factory=_frame_rows)
    decoded_cells: int = field(default_factory=_decoded_cells)
    common_rows: int = 200_000
    serial_rows: int = 20_000
    due_rows: int = 2_000_000
    small_rows: int = 100_000
    ingested_bytes: int = field(default_factory=_ingested_bytes)
    ingested_rows: int = 1_000_000
    loaded_bytes: int = field(default_factory=_loaded_bytes)
    loaded_rows: int = 10_000_000
    spilled_bytes: int = field(default_factory=_spilled_bytes)
    streamed_bytes: int = field(default_factory=_streamed_bytes)
    text_bytes: int = 8_000_000
    searched_rows: int = 400_000
    young_rows: int = 100_000
    merged_parts: int = 4
    young_parts: int = 16
    written_updates: int = field(default_factory=_written_updates)
    first_updates: int = field(default_factory=_frame_rows)
    inlined_rows: int = 1_000
    inlined_bytes: int = 65_536
    inlined_memory: int = field(default_factory=_inlined_memory)
    hot_bytes: int = field(default_factory=_hot_bytes)
    decoded_bytes: int = field(default_factory=_decoded_bytes)
    mapped_bytes: int = field(default_factory=_mapped_bytes)
    decoded_rows: int = 4_096
    ordered_rows: int = 20_000
    sorted_rows: int = 64
    loose_rows: int = 64
    unbounded_rows: int = 10_000
    handed_rows: int = 1_000
    handed_bytes: int = 1_000_000
    broadcast_updates: int = 500_000
    sent_rows: int = 500_000
    sent_bytes: int = 32_000_000
    one_task_rows: int = 50_000
    pruned_rows: int = 200_000
    common_lookup_rows: int = 50_000
    kept_rows: int = 1_000_000
    kept_rows_alone: int = 500_000
    large_rows: int = 500_000
    whole_state_rows: int = 10_000
    keys: int = 500_000
    key_bytes: int = 16_000_000
    small_file_bytes: int = 10_000_000
    sought_file_bytes: int = 200_000_000
    alternatives: int = 64
    bucket_keys: int = 1024
    compared_constants: int = 16
    literal_constants: int = 1_000
    planned_columns: int = 8_000
    planned_states: int = 4
    planned_operators: int = 500
    clustered_rows: int = 131_072
    bucket_rows: int = 32_768
    few_buckets: int = 32
    most_bucket_rows: int = 262_144
    most_buckets: int = 1024
    file_rows: int = 1_000_000
    folded_operators: int = 16
    lines_at_once: int = 20
    cheap_operators: int = 16
    shared_objects: int = 16
    shared_hydrations: int = 100
    shared_updates: int = 200_000
    returned_bytes: int = field(default_factory=_returned_bytes)

    @property
    def read_in_step(self) -> int:
        """How many updates change at most of the inputs of a plan that is computed here in a step."""
        return self.evaluated_updates * self.step_times

    @property
    def read_from_start(self) -> int:
        """How many updates a plan reads at most that is computed here from the beginning."""
        return self.evaluated_updates * self.first_times

    @property
    def read_in_portions(self) -> int:
        """How many updates a plan reads at most that is computed here from the beginning, most of them in portions."""
        return self.evaluated_updates * self.portion_times

    @classmethod
    def spark_alone(cls) -> Budget:
        """Returns the budget under which Spark computes whatever it can."""
        return cls(**dict.fromkeys(_HERE, 0))

    @classmethod
    def here_alone(cls) -> Budget:
        """Returns the budget under which this process computes whatever it can, however much that is.

        What an operator makes at once has to fit memory, of which a row takes 128 bytes.
        """
        return cls(
            first_updates=_NEVER_REACHED,
            **(dict.fromkeys(_HERE, _NEVER_REACHED) | dict.fromkeys(_IN_MEMORY, _held_rows())),
        )


#: What this process computes instead of Spark.
_HERE = (
    "evaluated_updates",
    "frame_rows",
    "joined_rows",
    "made_rows",
    "scalar_rows",
    "fetched_rows",
    "whole_rows",
    "versioned_rows",
    "decoded_cells",
    "common_rows",
    "due_rows",
    "small_rows",
    "ingested_bytes",
    "ingested_rows",
    "loaded_bytes",
    "loaded_rows",
    "searched_rows",
)
#: Of these, how many rows are in memory at once.
_IN_MEMORY = ("frame_rows", "joined_rows", "made_rows", "versioned_rows")


class EngineSetting(Enum):
    """Who computes: the setting `engine`.

    Attributes:
        AUTO: This process what is little, Spark the rest, by the budget.
        SPARK: Spark whatever it can.
        LOCAL: This process whatever it can; what it cannot is an error, and Spark is never started.
    """

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


def _alone() -> dict[EngineSetting, Budget]:
    return {EngineSetting.SPARK: Budget.spark_alone(), EngineSetting.LOCAL: Budget.here_alone()}


_default = Budget()
_in_force = _default
_engines = _alone()
_engine: ContextVar[EngineSetting | None] = ContextVar("mz_engine", default=None)


def budget() -> Budget:
    """Returns the budget in force: of the process, unless this thread's engine is chosen."""
    return _engines.get(engine_setting(), _in_force)


def process_budget() -> Budget:
    """Returns the budget of the process, whatever engine this thread has chosen."""
    return _in_force


def engine_setting() -> EngineSetting:
    """Returns who computes what this thread asks for."""
    return _engine.get() or EngineSetting.AUTO


@contextmanager
def engine_of(setting: EngineSetting, *, unless_chosen: bool = False) -> Iterator[None]:
    """Has one engine compute what this thread does, and threads with a copy of its context, until the block ends.

    Args:
        setting: Who computes.
        unless_chosen: Whether what is in force already, by a block around this one, stays.

    Example:
        >>> with engine_of(EngineSetting.SPARK), engine_of(EngineSetting.LOCAL, unless_chosen=True):
        ...     engine_setting(), budget() == Budget.spark_alone()
        (<EngineSetting.SPARK: 'spark'>, True)
    """
    before = _engine.get()
    token = _engine.set(before if unless_chosen and before is not None else setting)
    try:
        yield
    finally:
        _engine.reset(token)


def limit_memory(most: int | None) -> None:
    """Has what follows from memory follow from so many bytes for this process; of several limits the least holds.

    Args:
        most: How many; None if nobody says.

    Example:
        >>> import sys
        >>> from subprocess import run
        >>> code = "from mz_dagster.budget import *; limit_memory(1 << 31); print(budget().hot_bytes)"
        >>> int(run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True).stdout)
        268435456
    """
    global _limit, _default, _in_force, _engines
    if most is None or (_limit is not None and _limit <= most):
        return
    _limit = most
    keep_little()
    before, _default = _default, Budget()
    _engines = _alone()
    if _in_force is before:
        _in_force = _default


def memory_limit() -> int | None:
    """Returns how many bytes of memory this process may take, None if nobody said."""
    return _limit


@contextmanager
def budget_of(other: Budget) -> Iterator[None]:
    """Puts another budget in force, for all threads, until the block ends.

    Example:
        >>> with budget_of(Budget(keys=3)):
        ...     budget().keys
        3
        >>> budget() == Budget()
        True
    """
    global _in_force
    before, _in_force = _in_force, other
    try:
        yield
    finally:
        _in_force = before
