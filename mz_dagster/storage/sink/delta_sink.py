"""Delta tables that a sink writes, for any reader of Delta: a collection's rows, or the updates that they come by.

Each write is one commit, which also says, by Delta's transaction identifiers, up to which time the table stands: the
application is the sink, the version its upper. So whether a write took effect is known from the table alone, and of two
writers one fails.

`ENVELOPE UPSERT`: the table holds the rows that there are. A row that goes is looked for in the files whose statistics
do not rule it out; a file that has it is written anew without it, in the same commit. Rows are told apart by all of
their columns, as often as they are there. `APPEND CHANGES`: each update is a row, with its time and its diff. `ENVELOPE
DEBEZIUM`: each change of a key is a row, see `change_events`.

Nobody else may write the table. Maintenance may: compaction moves rows, VACUUM removes files that no version since a
week has, and the sink does both itself, now and then.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import first_line
from mz_dagster.fail_point import fail_point
from mz_dagster.scalars.types import Column
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.row_numbers import compact, numbered, whole
from mz_dagster.storage.shards import DIFF, ERROR, TIME
from mz_dagster.storage.sink.change_events import change_events, event_schema, nth, repeated, updates_of_events
from mz_dagster.storage.sink.delta_columns import delta_schema, delta_values
from mz_dagster.storage.sink.sink import (
    Sink,
    SinkChanged,
    SinkEnvelope,
    SinkTaken,
    SinkUnwritable,
    UnwritablePartition,
)
from mz_dagster.storage.table_place import TablePlace, commit_path, is_full, reason

#: How large a data file is to be, if nothing is said, and how many rows it has at most.
FILE_BYTES = 128 << 20
_FILE_ROWS = 1_000_000
#: After how many commits small files are put together.
_COMMITS = 64
#: Longer texts are not told as bounds of a file.
_LONGEST = 32


@dataclass(frozen=True)
class DeltaSink(Sink):
    """A Delta table, in a folder of this machine or in an object store, that holds what a collection holds.

    Attributes:
        table: Where it is.
        columns: The collection's columns, as they are declared.
        envelope: Whether it has rows, updates, or events.
        id: Of the sink, never another one's.
        project: Of the project, whose sinks may write what others of its sinks have written.
        key: The columns that tell rows apart, of events.
        partition: The columns by whose values the table is partitioned.
        file_bytes: How large a file is to be, about.
    """

    table: TablePlace
    columns: tuple[Column, ...]
    envelope: SinkEnvelope
    id: str
    project: str
    key: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    file_bytes: int = FILE_BYTES

    @property
    def operators(self) -> str:
        """What it does with updates, for people."""
        return "APPEND CHANGES" if self.envelope == "append changes" else f"ENVELOPE {self.envelope.upper()}"

    @property
    def keeps_times(self) -> bool:
        """Whether it writes updates with their times."""
        return self.envelope != "upsert"

    @property
    def _application(self) -> str:
        return f"mz_dagster {self.project} {self.id}"

    @property
    def _description(self) -> str:
        """What the table says of itself, by which other sinks of the project know that they may write it."""
        return f"Written by a sink of mz_dagster, project {self.project}"

    @property
    def _row_schema(self) -> pa.Schema:
        return delta_schema(self.columns, keeps_times=self.keeps_times)

    @property
    def _schema(self) -> pa.Schema:
        return event_schema(self._row_schema) if self.envelope == "debezium" else self._row_schema

    def stands_at(self) -> int | None:
        """Returns the time before which all is written; None if nothing was written yet.

        Raises:
            SinkTaken: There is something in its place that no sink of the project has written.
            SinkUnwritable: The table cannot be read.
        """
        with self._failing():
            opened = self._opened()
            return None if opened is None else opened.transaction_version(self._application)

    def begin(self, updates: pa.Table, upper: int) -> None:
        """Writes a collection's contents in one commit; see `Sink.begin`."""
        with self._failing():
            opened = self._opened()
            self.table.write(
                self._written(updates, are_first=True),
                mode="overwrite",
                schema_mode="overwrite",
                description=self._description if opened is None else None,
                commit_properties=self._commit(upper),
                partition_by=list(self.partition),
                target_file_size=self.file_bytes,
            )
            newest = self._opened()
            assert newest is not None, "it has just been written"
            self.table.sync(*(unquote(one["path"]) for one in _files(newest)))
            self._sync_log(newest)
        fail_point("sink.committed")

    def go_on(self, updates: pa.Table, lower: int, upper: int) -> None:
        """Writes the updates of an interval in one commit; see `Sink.go_on`."""
        with self._failing():
            opened = self._opened()
            if opened is None:
                raise SinkChanged(f'the Delta table "{self.table}" of the sink is gone', hint=_RESET)
            stands = opened.transaction_version(self._application)
            if stands is not None and stands >= upper:
                return
            if stands is None or stands > lower:
                raise SinkChanged(
                    f'the Delta table "{self.table}" does not stand where the sink left it',
                    detail=f"The sink stands at {lower}, the table at {stands}.",
                    hint=_RESET,
                )
            actions = list(self._actions(opened, updates))
            fail_point("sink.written")
            opened.create_write_transaction(actions, "append", opened.schema(), commit_properties=self._commit(upper))
            newest = self._opened()
            assert newest is not None, "it has just been written"
            self._sync_log(newest)
        fail_point("sink.committed")
        if newest.version() % _COMMITS == 0:
            self._maintain()

    @property
    def place(self) -> str:
        """The table's folder or URI."""
        return str(self.table)

    def version_at(self, time: int) -> int | None:
        """Returns the version that has what the collection held at a time; see `Sink.version_at`.

        It is the newest commit of a tick that is not later. What was written before everything was written anew is left
        out: others may have changed it. Commits of maintenance change no row.
        """
        with self._failing():
            opened = self._opened()
            for commit in () if opened is None else opened.history():
                if "mz_tick" not in commit:
                    continue
                if int(commit["mz_tick"]) <= time:
                    return int(commit["version"])
                if commit["operationParameters"]["mode"] == "Overwrite":
                    return None
        return None

    def difference(self, contents: pa.Table) -> str | None:
        """Returns how the table differs from what it should be; see `Sink.difference`."""
        with self._failing():
            opened = self._opened()
            files = [] if opened is None else _files(opened)
            there = pa.concat_tables([self._schema.empty_table(), *(self._read(one) for one in files)])
        if self.envelope == "debezium":
            there = updates_of_events(there, self._row_schema)
        wanted = self._rows(contents, contents.column(DIFF))
        if self.keeps_times:
            error = pa.nulls(len(there), pa.string())
            sums = consolidated(there.append_column(ERROR, error), 0)
            if pc.any(pc.less(sums.column(DIFF), 0)).as_py():
                return "it takes away rows that it never added"
            there = repeated(sums.select(wanted.column_names[:-2]), sums.column(DIFF))
            wanted = repeated(wanted.select(there.column_names), contents.column(DIFF))
        found = matched(wanted, there)
        missing, besides = int((~found[: len(wanted)]).sum()), int((~found[len(wanted) :]).sum())
        return f"{missing} rows are missing, and {besides} should not be there" if missing or besides else None

    # ---- what is committed

    def _actions(self, opened: DeltaTable, updates: pa.Table) -> Iterator[AddAction | RemoveAction]:
        """Writes new files, and yields what to commit so that a table holds updates, too."""
        diffs = updates.column(DIFF)
        if self.keeps_times:
            yield from self._added(self._written(updates))
            return
        come = updates.filter(pc.greater(diffs, 0))
        gone = updates.filter(pc.less(diffs, 0))
        kept = [self._rows(come, come.column(DIFF))]
        if len(gone):
            for file, rest in self._touched(opened, self._rows(gone, pc.negate(gone.column(DIFF)))):
                values = {name: _partition_text(file[f"partition.{name}"]) for name in self.partition}
                yield RemoveAction(unquote(file["path"]), True, SYSTEM_CLOCK.now_ms(), file["size_bytes"], values)
                kept.append(rest)
        yield from self._added(pa.concat_tables(kept))

    def _touched(self, opened: DeltaTable, gone: pa.Table) -> Iterator[tuple[Mapping[str, Any], pa.Table]]:
        """Yields the files that have rows that are to go, each with what it has besides.

        Raises:
            SinkChanged: Some of the rows are nowhere.
        """
        for file in _files(opened):
            if not len(gone):
                return
            if not _may_hold(file, gone):
                continue
            there = self._read(file)
            found = matched(gone, there)
            if not found.any():
                continue
            left, rest = ~found[: len(gone)], ~found[len(gone) :]
            gone = gone.filter(pa.array(left))
            yield file, there.filter(pa.array(rest))
        if len(gone):
            raise SinkChanged(
                f'the Delta table "{self.table}" has not the rows that the sink has written',
                detail=f"{len(gone)} rows that go are not there; somebody else has changed the table.",
                hint=_RESET,
            )

    def _read(self, file: Mapping[str, Any]) -> pa.Table:
        """Returns the rows of a file.

        Raises:
            SinkChanged: It is gone, or somebody else has written it.
        """
        try:
            with self.table.file(unquote(file["path"])) as opened:
                found = pq.read_table(opened, partitioning=None)
            for name in self.partition:
                value = pa.scalar(file[f"partition.{name}"], self._schema.field(name).type)
                found = found.append_column(name, pa.repeat(value, len(found)))
            return found.select(self._schema.names).cast(self._schema)
        except (FileNotFoundError, KeyError, pa.ArrowInvalid) as error:
            raise SinkChanged(
                f'a file of the Delta table "{self.table}" is gone, or is not the sink\'s',
                detail=f'It is "{file["path"]}".',
                hint=_RESET,
            ) from error

    def _added(self, rows: pa.Table) -> Iterator[AddAction]:
        """Writes rows as new files, on disk, and yields what names them."""
        most = min(_FILE_ROWS, max(1, len(rows) * self.file_bytes // max(1, rows.nbytes)))
        names = []
        for values, part in self._parts(rows):
            folder = "".join(f"{column}={_folder_text(value)}/" for column, value in values.items())
            for start in range(0, len(part), most):
                portion = part.slice(start, most)
                name = f"{folder}part-00000-{secrets.token_hex(16)}-c000.zstd.parquet"
                content = pa.BufferOutputStream()
                pq.write_table(portion, content, compression="zstd")
                written = content.getvalue().to_pybytes()
                at = self.table.add(name, written)
                names.append(name)
                yield AddAction(name, len(written), values, at, True, json.dumps(statistics(portion)))
        self.table.sync(*names)

    def _parts(self, rows: pa.Table) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
        """Yields the rows of each partition, without its columns, and the values of these."""
        if not self.partition:
            yield {}, rows
            return
        numbers, _ = numbered([whole(rows.column(name)) for name in self.partition], len(rows))
        order = np.argsort(numbers, kind="stable")
        _, starts = np.unique(numbers[order], return_index=True)
        held = rows.drop_columns(list(self.partition))
        for places in np.split(order, starts[1:]) if len(rows) else ():
            values = {name: _partition_text(rows.column(name)[int(places[0])].as_py()) for name in self.partition}
            yield values, held.take(pa.array(places))

    def _written(self, updates: pa.Table, *, are_first: bool = False) -> pa.Table:
        """Returns what is written of updates, or of a collection's first contents.

        Raises:
            UnwritablePartition: A text is empty by which the table is partitioned: it would be NULL.
        """
        if self.envelope == "debezium":
            return change_events(self._rows(updates, updates.column(DIFF)), self.key, are_first=are_first)
        return self._rows(updates, updates.column(DIFF))

    def _rows(self, updates: pa.Table, copies: pa.ChunkedArray) -> pa.Table:
        """Returns the table's rows that updates are: each as often as it is there, or each with its time and diff."""
        columns = [
            delta_values(whole(values), column)
            for values, column in zip(updates.columns[: len(self.columns)], self.columns, strict=True)
        ]
        if self.keeps_times:
            columns += [whole(updates.column(one)) for one in (TIME, DIFF)]
        found = pa.Table.from_arrays(columns, schema=self._row_schema)
        for name in self.partition:
            values = found.column(name)
            if pa.types.is_string(values.type) and pc.any(pc.equal(values, "")).as_py():
                raise UnwritablePartition(
                    f'column "{name}" has an empty text, and no partition of a Delta table has that',
                    detail="It would be read as NULL.",
                    hint="Have the view say something else, nullif(...) for example.",
                )
        return found if self.keeps_times else repeated(found, copies)

    def _commit(self, upper: int) -> CommitProperties:
        """Returns what a commit says besides: where the table stands, by which two writers are told apart."""
        return CommitProperties(
            custom_metadata={"mz_tick": str(upper - 1)},
            app_transactions=[Transaction(self._application, upper)],
            max_commit_retries=0,
        )

    def _sync_log(self, opened: DeltaTable) -> None:
        self.table.sync(commit_path(opened.version()))

    def _maintain(self) -> None:
        """Puts small files together and removes old ones; what fails here is tried again."""
        try:
            opened = self.table.opened()
            opened.optimize.compact(target_size=self.file_bytes)
            opened.vacuum(dry_run=False)
        except (DeltaError, OSError):
            return

    # ---- the table

    def _opened(self) -> DeltaTable | None:
        """Returns the table if there is one, of a sink of the project.

        Raises:
            SinkTaken: There is another one, or something else.
        """
        try:
            opened = self.table.opened()
        except (TableNotFoundError, FileNotFoundError):
            if self.table.is_taken():
                raise SinkTaken(
                    f'there is something else at "{self.table}"',
                    hint="Name another folder in URI, or an empty one; nothing was written.",
                ) from None
            return None
        if opened.metadata().description != self._description:
            raise SinkTaken(
                f'the Delta table "{self.table}" was not written by a sink of this project',
                hint="Name another folder in URI, or move the table away; nothing was written.",
            )
        return opened

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            if isinstance(error, CommitFailedError) and not is_full(error):
                raise SinkUnwritable(
                    f'another commit to Delta table "{self.table}" came first',
                    detail=f"{first_line(error)}.",
                    hint="The next step tries again.",
                ) from error
            raise SinkUnwritable(
                f'cannot write Delta table "{self.table}": {reason(error)}',
                hint="Free space where it is, or raise its quota; the next step tries again, and nothing is lost."
                if is_full(error)
                else "Look at the rights there and at free space; the next step tries again.",
            ) from error


_RESET = "ALTER SINK ... RESET writes the table anew, from what the sink reads."


def matched(wanted: pa.Table, there: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns which rows of two tables are each other's: as many of equal ones as both have.

    Returns:
        Whether each row of the one and then of the other has its match.

    Example:
        >>> matched(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 3, 1, 1]})).tolist()
        [True, True, False, True, False, True, False]
    """
    both = pa.concat_tables([wanted, there])
    numbers, _ = numbered([whole(one) for one in both.columns], len(both))
    ids, _ = compact(numbers)
    first, second = ids[: len(wanted)], ids[len(wanted) :]
    most = int(ids.max(initial=-1)) + 1
    common = np.minimum(np.bincount(first, minlength=most), np.bincount(second, minlength=most))
    return np.concatenate([nth(one) < common[one] for one in (first, second)])


def statistics(rows: pa.Table) -> Mapping[str, object]:
    """Returns what a commit says of a file's rows: how many, and the bounds of numbers, dates and short texts."""
    nulls: dict[str, int] = {}
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_nested(field.type):
            continue
        nulls[field.name] = column.null_count
        if not (pa.types.is_integer(field.type) or pa.types.is_date(field.type) or pa.types.is_string(field.type)):
            continue
        bounds = pc.min_max(column).as_py()
        found = [bounds["min"], bounds["max"]]
        if None in found or any(isinstance(one, str) and len(one) > _LONGEST for one in found):
            continue
        low[field.name], high[field.name] = (one.isoformat() if isinstance(one, date) else one for one in found)
    return {"numRecords": len(rows), "nullCount": nulls, "minValues": low, "maxValues": high}


def _may_hold(file: Mapping[str, Any], wanted: pa.Table) -> bool:
    """Returns whether a file may have one of some rows, by the bounds that the log says of it."""
    for field, column in zip(wanted.schema, wanted.columns, strict=True):
        if f"partition.{field.name}" in file:
            least = greatest = file[f"partition.{field.name}"]
        else:
            least, greatest = file.get(f"min.{field.name}"), file.get(f"max.{field.name}")
        if least is None or greatest is None or not (pa.types.is_integer(field.type) or pa.types.is_date(field.type)):
            continue
        bounds = [pa.scalar(one, field.type) for one in (least, greatest)]
        inside = pc.and_(pc.greater_equal(column, bounds[0]), pc.less_equal(column, bounds[1]))
        if not pc.any(pc.fill_null(inside, True)).as_py():
            return False
    return True


def _partition_text(value: object) -> str | None:
    """Returns what a log says of a partition's value."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _folder_text(value: str | None) -> str:
    """Returns what the name of a partition's folder says of a value: some readers go by that."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")


def _files(opened: DeltaTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    return found
