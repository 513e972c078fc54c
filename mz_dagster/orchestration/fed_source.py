"""A source with a key that an asset feeds: what the asset returns becomes a file of records in the source's folder.

Let held be the rows of the source that the materialization replaces: all of them, those of its partition, or those that
have the keys of rows that the asset returns. The file has a record of each returned row that is not held as it is, and
one that deletes each held key that is not returned. Records of a key replace one another, so the source has the
returned rows in the place of held, once the file is bound.

A materialization that is repeated finds its rows held, and drops no file. One that was killed before its file was there
has changed nothing; after that its retry is a repetition. So it is because what is held is read after a poll that bound
every file, and no file of another materialization comes between (`storage.source.landing`): in a folder they wait for
one another, in a bucket who is second looks again.

Rows of CSV and Parquet delete nothing. Where a held key is not returned, such a source refuses.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import dagster as dg
import pyarrow as pa

from mz_dagster.adapter import Connection, Engine
from mz_dagster.catalog import ObjectRow
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.schemas import PUBLIC, key_of, parts_of
from mz_dagster.sql.source_statement import column_list
from mz_dagster.storage.source import (
    FileSource,
    Source,
    csv_of,
    is_typed,
    landing_in,
    packed,
    parquet_of,
    suffixes,
)
from mz_dagster.storage.source.folder import pattern_to_regex

_ROWS = "mz_returned_rows"
#: For how long others may be faster.
_DEADLINE_MS = 600_000


class Replaced(NamedTuple):
    """Which rows a materialization takes the place of.

    Attributes:
        where: A condition, as `WHERE` has it; nothing for all.
        parameters: Those of it.
        key: The columns of the key, if only rows with the same key are replaced.
    """

    where: str = ""
    parameters: Sequence[str] = ()
    key: Sequence[str] = ()


def source_of(engine: Engine, name: str) -> ObjectRow | None:
    """Returns the source that SQL calls so; None if it is none."""
    parts = parts_of(name)
    row = engine.catalog.resolve_name(key_of(parts[-2] if len(parts) > 1 else PUBLIC, parts[-1])) if parts else None
    return row if row is not None and row.kind == "source" else None


def feed(
    connection: Connection,
    row: ObjectRow,
    called: str,
    batches: Sequence[pa.RecordBatch],
    replaced: Replaced,
    said: str,
) -> int | None:
    """Puts rows in the place of others of a source; see above.

    Args:
        connection: To the project.
        row: The source.
        called: What SQL calls it.
        batches: The rows.
        replaced: Which others.
        said: What the file's name says of who drops it.

    Returns:
        How many rows; None if some do not fulfil the condition of those that they replace, and nothing was changed.

    Raises:
        dagster.Failure: It is no source that can be fed.
        Error: The rows are not as the source's columns and key say, or the source cannot be read.
    """
    source, suffix, key = _fed(connection.engine.definitions.source(row.id), called)
    if replaced.key and sorted(replaced.key) != sorted(key):
        raise dg.Failure(
            f'the key of source "{called}" is ({", ".join(key)}), and not ({", ".join(replaced.key)})',
            metadata={"mz/next": 'Name its key in the asset\'s metadata: "mz/upsert_by".'},
            allow_retries=False,
        )
    _take(connection, row, batches)
    returned = _records(connection, _ROWS, key)
    if replaced.where:
        (found,) = connection.execute(f"SELECT count(*) FROM {_ROWS}{replaced.where}", replaced.parameters).fetchall()
        if found != (len(returned),):
            return None
    where = replaced.where
    if replaced.key:
        columns = ", ".join(map(quoted, key))
        where = f" WHERE ({columns}) IN (SELECT {columns} FROM {_ROWS})"
    said = re.sub(r"[^\w-]", "_", said, flags=re.ASCII)
    until = SYSTEM_CLOCK.monotonic_ms() + _DEADLINE_MS
    while True:
        with landing_in(source.place) as landing:
            connection.engine.poll_for(str(row.timeline), [row.id])
            known = connection.engine.catalog.last_gain(row.id)
            held = _records(connection, called, key, where, replaced.parameters)
            content = _content(connection, source, called, held, returned)
            if not content or landing.put(packed(content, suffix, source.format), said, suffix, known):
                return len(returned)
        if SYSTEM_CLOCK.monotonic_ms() > until:
            raise OperationalError(
                f'others have fed source "{called}" whenever this asset looked, for {_DEADLINE_MS // 60_000} minutes',
                hint="Have fewer assets feed it at once, and materialize again.",
            )
        SYSTEM_CLOCK.sleep(random.uniform(0.05, 0.5))


def _fed(source: Source, called: str) -> tuple[FileSource, str, Sequence[str]]:
    """Returns a source that can be fed, the end of names there that it reads, and its key.

    Raises:
        dagster.Failure: It cannot be fed.
    """
    if isinstance(source, FileSource) and source.key and source.place.takes_files:
        reads = re.compile(pattern_to_regex(source.pattern)).fullmatch
        suffix = next((one for one in suffixes(source.format) if reads(f"{0:020}-asset{one}")), None)
        if suffix and not source.debezium and not source.partition and not source.names_ascend:
            return source, suffix, source.key
    raise dg.Failure(
        f'source "{called}" cannot be fed by an asset',
        metadata={
            "mz/next": "An asset feeds a table, or a source with a key that reads JSON, CSV or Parquet from a folder "
            "or a bucket: CREATE SOURCE ... FROM FILES (FOLDER '...') FORMAT JSON ENVELOPE UPSERT, with a pattern of "
            "names such as *.jsonl, no columns of partitions, and not NAMES ASCEND."
        },
        allow_retries=False,
    )


def _content(
    connection: Connection,
    source: FileSource,
    called: str,
    held: Mapping[tuple[str, ...], str],
    returned: Mapping[tuple[str, ...], str],
) -> bytes:
    """Returns the file that makes of what is held what was returned; nothing if that is so.

    Raises:
        dagster.Failure: Rows have to be deleted, and the format has no such records.
        Error: The format has no such rows.
    """
    key = source.key or ()
    if source.format == "json":
        return "".join(_lines(key, held, returned)).encode()
    if lost := [one for one in held if one not in returned]:
        raise dg.Failure(
            f'source "{called}" reads {source.format.upper()}, whose records delete no row, and {len(lost)} of its '
            "rows were not returned",
            metadata={
                "mz/next": 'Have rows replace only those with the same key, as "mz/upsert_by" in the asset\'s metadata '
                "says, or the source read FORMAT JSON.",
                "mz/lacking": ", ".join(map(str, lost[:5])),
            },
            allow_retries=False,
        )
    new = {one for one, value in returned.items() if held.get(one) != value}
    if not new:
        return b""
    names = [column.name for column in source.columns]
    cells = [quoted(one.name) if is_typed(source, one) else f"{quoted(one.name)}::text" for one in source.columns]
    texts = [f"{quoted(one)}::text" for one in key]
    rows = connection.execute(f"SELECT {', '.join(texts + cells)} FROM {_ROWS}").fetch_arrow_table()
    keys = zip(*(rows.column(i).to_pylist() for i in range(len(key))), strict=True)
    rows = rows.filter(pa.array([one in new for one in keys], pa.bool_())).select(range(len(key), rows.num_columns))
    if source.format == "csv":
        return csv_of(names, zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return parquet_of(rows.rename_columns(names), source.columns)


def _take(connection: Connection, row: ObjectRow, batches: Sequence[pa.RecordBatch]) -> None:
    """Has the rows in a table of this session, with the source's columns and key."""
    connection.execute(f"CREATE TEMPORARY TABLE {_ROWS} {column_list(row.sql)}")
    for batch in batches:
        insert_batch(connection, _ROWS, batch)


def insert_batch(connection: Connection, table: str, batch: pa.RecordBatch) -> None:
    """Inserts the rows of a batch into a table, by the names of their columns."""
    names = ", ".join(map(quoted, batch.schema.names))
    marks = ", ".join("?" * batch.num_columns)
    values = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    if values:
        connection.cursor().executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def _records(
    connection: Connection, name: str, key: Sequence[str], where: str = "", parameters: Sequence[str] = ()
) -> Mapping[tuple[str, ...], str]:
    """Returns rows as JSON, by the texts of their keys."""
    texts = ", ".join(f"{quoted(one)}::text" for one in key)
    query = f"SELECT row_to_json(mz_row)::text, {texts} FROM (SELECT * FROM {name}{where}) AS mz_row"
    return {tuple(key): value for value, *key in connection.execute(query, parameters).fetchall()}


def _lines(
    names: Sequence[str], held: Mapping[tuple[str, ...], str], returned: Mapping[tuple[str, ...], str]
) -> Iterator[str]:
    """Yields the records that make of what is held what was returned."""
    for key in held:
        if key not in returned:
            yield _line(names, key, "null")
    for key, value in returned.items():
        if held.get(key) != value:
            yield _line(names, key, value)


def _line(names: Sequence[str], key: Sequence[str], value: str) -> str:
    told = json.dumps(dict(zip(names, key, strict=True)), ensure_ascii=False)
    return f'{{"key": {told}, "value": {value}}}\n'
