"""Writes that are sealed together: those that come while another is being sealed, in one transaction of the catalog.

To seal is to wait for a disk and to write a dozen rows, whatever it is that is sealed. So a write of this process that
finds another under way waits for a thread that takes all that wait, and seals them at one time: the rows of a table as
one batch, the batches of several tables together. That is as if they had been executed one after the other, since none
of them reads anything: what reads, even to look whether a key is there, seals alone (`dml`). Each is acknowledged once
all are durable.

None fails for another. What is wrong with one, a table that was dropped or altered, a cell that cannot be stored, is
found before they are sealed; if the seal of several is refused for any other reason than a lost race, each is sealed by
itself, and only who fails then is told.

Who serves many clients in one thread has what they write `queue`, and then does `seal` it: each is told when its own is
over, and none of them has waited in a thread.

A statement that is cancelled while it waits is withdrawn; once it is being sealed, it goes on to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa

from mz_dagster.adapter.project import Project
from mz_dagster.adapter.write_attempts import WriteContended, write_attempts
from mz_dagster.catalog import Catalog, CollectionRow, Seal, Sealed, TableAltered, UnknownObject
from mz_dagster.clock import Clock
from mz_dagster.errors import Error
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.storage.append import BatchWriter
from mz_dagster.storage.local_shards import LocalShards

#: How often who waits looks whether it is to be cancelled, in seconds.
_LOOK_S = 0.05


@dataclass(slots=True, eq=False)
class QueuedWrite:
    """A write that waits to be sealed, and then how that ended.

    Attributes:
        table: The table.
        version: How often the table had been altered when the write was made for it; None if that does not matter.
        frame: Returns its updates at a time.
        time: The time at which it was sealed.
        error: Why it was not.
        is_over: Is set once it is one or the other.
    """

    table: GlobalId
    version: int | None
    frame: Callable[[int], pa.Table]
    time: int | None = None
    error: BaseException | None = None
    is_over: threading.Event = field(default_factory=threading.Event)
    _callbacks: list[Callable[[], None]] = field(default_factory=list)

    def when_over(self, callback: Callable[[], None]) -> None:
        """Has `callback` called once it is over, by the thread that ends it; at once if it is."""
        self._callbacks.append(callback)
        if self.is_over.is_set():
            self._tell()

    def wait(self) -> None:
        """Returns once it is sealed; raises why it was not."""
        self.is_over.wait()
        if self.error is not None:
            raise self.error

    def succeed(self, time: int) -> None:
        """Ends it: it was sealed at a time."""
        self.time = time
        self._end()

    def fail(self, error: BaseException) -> None:
        """Ends it: it was not sealed."""
        self.error = error
        self._end()

    def _end(self) -> None:
        self.is_over.set()
        self._tell()

    def _tell(self) -> None:
        with suppress(IndexError):  # either of two threads finds it
            self._callbacks.pop()()


class GroupCommit:
    """Seals writes together. Safe for use from several threads.

    Args:
        catalog: The catalog.
        shards: Where to.
        project: How long a lease lasts, and a write is tried.
        clock: Wall clock.
        holder: Who writes, in words that help to find it.
        now: Returns a timeline's time now.
        wrote: Is told of each table that was written.
    """

    def __init__(
        self,
        catalog: Catalog,
        shards: LocalShards,
        project: Project,
        clock: Clock,
        holder: str,
        now: Callable[[str], int],
        wrote: Callable[[GlobalId], None],
    ) -> None:
        self._catalog = catalog
        self._shards = shards
        self._project = project
        self._clock = clock
        self._holder = holder
        self._now = now
        self._wrote = wrote
        self._lock = threading.Lock()
        self._alone: set[int] = set()
        self._waiting: list[QueuedWrite] = []
        self._thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sealed."""
        return not self._alone and self._thread is None

    @contextmanager
    def sealing(self) -> Iterator[None]:
        """Lets others know, in the block, that a thread of theirs is sealing something."""
        thread = threading.get_ident()
        self._alone.add(thread)
        try:
            yield
        finally:
            self._alone.discard(thread)

    def queue(self, table: GlobalId, version: int | None, frame: Callable[[int], pa.Table]) -> QueuedWrite:
        """Returns updates that wait for somebody who seals them: for the next `append`, or `seal`; see `append`."""
        one = QueuedWrite(table, version, frame)
        with self._lock:
            self._waiting.append(one)
        return one

    def seal(self) -> Iterable[GlobalId]:
        """Seals what waits in this thread, unless another does that; returns which tables were written.

        `wrote` is to be told of them, once who waits for it has been told.
        """
        with self._lock:
            if not self._is_due:
                return ()
            self._thread = threading.current_thread()
        return dict.fromkeys(table for tables in self._groups() for table in tables)

    def withdraw(self, one: QueuedWrite, error: Error) -> None:
        """Has a write fail with an error, unless it is being sealed already."""
        if self._withdrawn(one):
            one.fail(error)

    def append(self, table: GlobalId, version: int | None, frame: Callable[[int], pa.Table]) -> int:
        """Appends updates to a table, together with others; returns their time.

        Args:
            table: The table.
            version: How often it had been altered when the updates were made for it; None if that does not matter.
            frame: Returns the updates at a time.

        Raises:
            UnknownObject: The table was dropped.
            TableAltered: It was altered since.
            WriteContended: Others were faster, until the deadline; nothing was written.
        """
        one = self.queue(table, version, frame)
        try:
            self._start()
            while not one.is_over.wait(_LOOK_S):
                self._start()
        except BaseException:
            if self._withdrawn(one):
                raise
            while not one.is_over.wait(_LOOK_S):  # somebody who has taken it ends it
                self._start()
        one.wait()
        assert one.time is not None, "it was sealed"
        return one.time

    def _withdrawn(self, one: QueuedWrite) -> bool:
        """Returns whether nobody has begun to seal a write, which nobody does any more then."""
        with self._lock:
            if one not in self._waiting:
                return False
            self._waiting.remove(one)
            return True

    def _start(self) -> None:
        """Has a thread seal what waits, unless one does already."""
        with self._lock:
            if not self._is_due:
                return
            self._thread = threading.Thread(target=self._run, name="mz-group-commit", daemon=True)
            self._thread.start()

    @property
    def _is_due(self) -> bool:
        """Whether something waits, and no thread seals."""
        return bool(self._waiting) and (self._thread is None or not self._thread.is_alive())

    def _run(self) -> None:
        for tables in self._groups():
            self.wrote(tables)

    def _groups(self) -> Iterator[Iterable[GlobalId]]:
        """Seals what waits, until nothing does; yields which tables were written, group by group."""
        while True:
            with self._lock:
                group, self._waiting = self._waiting, []
                if not group:
                    self._thread = None
                    return
            self._sealed(group)
            yield dict.fromkeys(one.table for one in group if one.time is not None)

    def wrote(self, tables: Iterable[GlobalId]) -> None:
        """Tells of tables that were written."""
        for table in tables:
            with suppress(Error):  # what was sealed is sealed; who writes or merges next finds out what is wrong
                self._wrote(table)

    def _sealed(self, group: Sequence[QueuedWrite]) -> None:
        """Seals writes, together as far as that goes; when it returns, all of them are over."""
        try:
            self._seal(group)
        except BaseException as error:
            left = [one for one in group if not one.is_over.is_set()]
            is_of_all = isinstance(error, WriteContended) or not isinstance(error, Error)
            if len(left) == 1 or is_of_all or getattr(error, "may_have_taken_effect", False):
                for one in left:
                    one.fail(error)
                return
            for one in left:
                self._sealed([one])

    def _seal(self, group: Sequence[QueuedWrite]) -> None:
        for _ in write_attempts(self._project, self._clock):
            rows = self._open(group)
            group = [one for one in group if not one.is_over.is_set()]
            if not group:
                return
            # Those of one timeline; the others in the next round.
            timeline = rows[group[0].table].timeline
            assert timeline is not None
            now = [one for one in group if rows[one.table].timeline == timeline]
            time = self._catalog.write_ts(timeline, self._now(timeline))
            if self._append(now, rows, timeline, time):
                for one in now:
                    if not one.is_over.is_set():
                        one.succeed(time)
                group = [one for one in group if one not in now]
                if not group:
                    return

    def _open(self, group: Sequence[QueuedWrite]) -> dict[GlobalId, CollectionRow]:
        """Returns the tables that are there; the writes of others fail, and of those that were altered."""
        rows: dict[GlobalId, CollectionRow] = {}
        for one in group:
            try:
                row = rows.get(one.table) or self._catalog.collection(one.table)
            except Error as error:
                one.fail(error)
                continue
            if row.upper.is_empty:
                one.fail(UnknownObject(one.table, dropped=True))
            elif one.version not in (None, row.version):
                one.fail(TableAltered(one.table, row.version))
            else:
                rows[one.table] = row
        return rows

    def _append(
        self, group: Sequence[QueuedWrite], rows: dict[GlobalId, CollectionRow], timeline: str, time: int
    ) -> bool:
        """Returns whether the writes were sealed at a time; those whose updates cannot be made have failed."""
        frames: dict[GlobalId, list[pa.Table]] = {}
        for one in group:
            if not rows[one.table].upper.less_equal(time):
                return False
            try:
                frame = one.frame(time)
            except Error as error:
                one.fail(error)
                continue
            frames.setdefault(one.table, []).append(frame)
        if not frames:
            return True
        with BatchWriter(self._catalog, holder=self._holder, ttl_ms=self._project.lease_ms) as writer:
            seals = []
            for table, some in frames.items():
                row = rows[table]
                upper = Antichain.of(row.upper.lattice, time + 1)
                batch, stats = writer.write(self._shards, row, row.upper, upper, pa.concat_tables(some))
                seals.append(Seal(table, row.upper, upper, batch, stats))
            return isinstance(self._catalog.seal(seals, apply=(timeline, time)), Sealed)
