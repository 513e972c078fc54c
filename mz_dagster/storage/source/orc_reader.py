"""A program that writes files of ORC as Parquet: run by `orc_files` as a process of its own, never imported.

Arrow's reader of ORC ends its process over some damaged files, so it is in none that does anything else. Each line on
the standard input asks for a file, and has a line of JSON as its answer; without a further one the process ends.

Values are those of the file, or it is refused: a moment that Arrow's nanoseconds do not have, or that has parts of
microseconds; a number of more digits than its type; and days before 1582 by writers that count those by the Julian
calendar.
"""

import errno
import json
import os
import resource
import select
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import orc

IDLE_SECONDS = 60
_PORTION_ROWS = 65_536
#: The first day of the Gregorian calendar, since 1970, and what else counts days before it by that calendar.
_GREGORIAN = -141_427
_PROLEPTIC = {"ORC_CPP", "PRESTO", "TRINO"}


def main() -> None:
    """Answers until nothing is asked."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pa.set_cpu_count(1)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what libraries print is no answer
        while select.select([0], [], [], IDLE_SECONDS)[0] and (line := sys.stdin.readline()):
            print(json.dumps(answer(*json.loads(line))), file=answers, flush=True)


def answer(path: str, target: str | None, names: list[str]) -> dict[str, Any]:
    """Writes columns of a file as Parquet, or only counts its rows if there is no target.

    Returns:
        Either `rows`, how many there are, and the `names` of all columns; or why it was `refused`; or `full`, if there
        is no room for it.
    """
    try:
        rows = orc.ORCFile(path).nrows if target is None else write(path, target, set(names))
        return {"rows": rows, "names": orc.ORCFile(path).schema.names}
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return {"full": os.strerror(error.errno)}
        return {"refused": next(iter(str(error).splitlines()), "") or type(error).__name__}


def write(path: str, target: str, names: set[str]) -> int:
    """Writes those of the named columns that a file has, and returns how many rows it has."""
    file = orc.ORCFile(path)
    chosen = [name for name in file.schema.names if name in names]
    schema = pa.schema([(name, _stored(file.schema.field(name).type)) for name in chosen])
    found = 0
    with pq.ParquetWriter(target, schema) as writer:
        if chosen:
            rows = ds.dataset(path, format="orc").scanner(
                columns=chosen, batch_size=_PORTION_ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False
            )
            for batch in rows.to_batches():
                for column in batch.columns:
                    _check(column, str(file.writer))
                writer.write_batch(batch.cast(schema))
                found += batch.num_rows
            if found != file.nrows:
                raise ValueError(f"it says that it has {file.nrows} rows, and {found} are there")
    return int(file.nrows)


def _stored(type_: pa.DataType) -> pa.DataType:
    """Returns a type with moments in microseconds: Arrow has those of ORC in nanoseconds."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return pa.list_(_stored(type_.value_type)) if pa.types.is_list(type_) else type_


def _check(column: pa.Array, writer: str) -> None:
    """Raises what is wrong with values that Arrow lets pass."""
    for values in _within_lists(column):
        if pa.types.is_decimal(values.type):
            values.validate(full=True)
        elif pa.types.is_date(values.type) and writer not in _PROLEPTIC:
            earliest = pc.min(values.cast(pa.int32())).as_py()
            if earliest is not None and earliest < _GREGORIAN:
                raise ValueError(f"it has dates before 1582-10-15, and {writer} may count those by the Julian calendar")


def _within_lists(column: pa.Array) -> Iterator[pa.Array]:
    while pa.types.is_list(column.type):
        column = column.flatten()
    yield column


if __name__ == "__main__":
    main()
