"""Assets of others beside those of a project: what they return becomes a table's rows, and views become what they take.

**In.** What an asset returns takes the place, in one transaction, of what its table held: of all rows, or where the
asset has partitions, of those that the partition column tells; or of those with the same keys, as in an upsert source.
So a materialization that is repeated, retried or killed leaves its rows there once, and what did not change is no
update. A source with a key, which reads files, is fed alike (`fed_source`).

**Out.** An asset that takes a view gets it as of a tick, as whatever its annotation says. The tick is the newest of the
partitions that Dagster maps to it; for one that has none in its run, the newest that the view can be read at.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from mz_dagster.adapter import Connection, Engine, Isolation, read
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.orchestration.events import NAME_KEY, TABLE_KEY
from mz_dagster.orchestration.fed_source import Replaced, feed, insert_batch, source_of
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.ticks import tick_of
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.schemas import written

#: What an asset's metadata say of where its rows go, beside `TABLE_KEY`.
PARTITION_COLUMN_KEY = "mz/partition_column"
UPSERT_KEY = "mz/upsert_by"

_PORTION_ROWS = 10_000
_SERIALIZATION_FAILURE = "40001"
#: For how long a transaction is tried that others are faster than.
_DEADLINE_MS = 300_000


class MzIOManager(dg.ConfigurableIOManager):
    """Feeds a project's tables from assets, and assets from its views.

    An asset's table is what its metadata name as `mz/table`, by default the last part of its key; with partitions,
    `mz/partition_column` names the column that has the partition's key. Where `mz/upsert_by` names columns of a key,
    rows take the place of those with the same key alone. A source with a key that reads files of JSON, CSV or Parquet
    from a folder or a bucket is fed as a table is. It returns a DataFrame of pandas, Polars or Spark, or a table or
    batches of Arrow, whose columns are the table's by name.

    Example:
        @dg.asset(io_manager_key="mz_io", metadata={"mz/table": "rates"})
        def rates() -> pd.DataFrame: ...

        @dg.asset(ins={"cities": dg.AssetIn(input_manager_key="mz_io")})
        def report(cities: pl.DataFrame) -> None: ...

        dg.Definitions(..., resources={"mz_io": MzIOManager(project_dir="path/to/project")})
    """

    project_dir: str = Field(description="The project's root folder, which holds mz.toml.")
    spark: dg.ConfigurableResource | None = Field(  # type: ignore[type-arg]
        default=None,
        description="A `LazyPySparkResource` or `PySparkResource` whose session reads views for assets that take a "
        "DataFrame of Spark; by default the project's own Spark.",
    )

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Puts what an asset returned in the place of what its table held.

        Raises:
            dagster.Failure: It is no table, has partitions and no column that tells them, or rows of another one.
        """
        if obj is None:
            return
        metadata = context.definition_metadata or {}
        table = str(metadata.get(TABLE_KEY) or context.asset_key.path[-1])
        batches = list(_batches(obj))
        key = _names(metadata.get(UPSERT_KEY))
        where, parameters = ("", ()) if key else _replaced(context, metadata.get(PARTITION_COLUMN_KEY))
        with self._connection(context.run_id) as connection:
            source = source_of(connection.engine, table)
            if source is None:
                rows = _put(connection, table, batches, where, parameters, key)
            else:
                said = f"{context.asset_key.path[-1]}-{context.run_id}"
                rows = feed(connection, source, table, batches, Replaced(where, parameters, key), said)
        if rows is None:
            raise dg.Failure(
                f'rows of asset "{context.asset_key.to_user_string()}" are of another partition than its run\'s',
                metadata={"mz/next": f"Return rows that have the key as {metadata[PARTITION_COLUMN_KEY]}."},
                allow_retries=False,
            )
        if not key:  # else there are others, too
            context.add_output_metadata({"dagster/partition_row_count" if where else "dagster/row_count": rows})

    def load_input(self, context: dg.InputContext) -> Any:
        """Returns a view, or whatever else can be read, as what an asset's annotation says.

        Raises:
            dagster.Failure: It cannot be read at the tick, or not as that.
        """
        upstream = context.upstream_output
        metadata = {} if upstream is None else upstream.definition_metadata or {}
        key, tick = str(metadata.get(TABLE_KEY) or context.asset_key.path[-1]), None
        wanted = context.dagster_type.typing_type
        with self._connection(None) as connection:
            name = key
            if NAME_KEY in metadata:
                key = str(metadata[NAME_KEY])
                name, tick = _of_project(connection.engine, key, context)
            if _named(wanted) == "pyspark.DataFrame":
                session, _ = connection.engine.spark.open()
                return read(session, key, tick, project=self.project_dir)
            at = "" if tick is None else f" AS OF {tick}"
            cursor = connection.execute(f"SELECT * FROM {name}{at}")
            return _as(wanted, cursor.fetch_arrow_table())

    @contextmanager
    def _connection(self, run_id: str | None) -> Iterator[Connection]:
        holder = "asset" if run_id is None else f"run {run_id}"
        with MzResource(project_dir=self.project_dir, spark=self.spark).engine(holder) as engine:
            yield Connection(engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False)


def _of_project(engine: Engine, key: str, context: dg.InputContext) -> tuple[str, int | None]:
    """Returns what SQL calls the object of an asset of the project, and as of when it is asked for.

    Its partitions are ticks. An asset without partitions has all of them: of several it is the newest that is readable,
    and of such as are all forgotten, because nothing has come for longer than history is kept, none.
    """
    row = engine.catalog.resolve_name(key)
    ticks = [tick_of(one) for one in context.asset_partition_keys] if context.has_asset_partitions else []
    if row is None or not ticks:
        return quoted(key) if row is None else written(row.schema, str(row.name)), None
    collection = engine.catalog.collection(engine.definitions.collection_of(row))
    readable = [one for one in ticks if collection.is_readable_at(one)]
    if not readable and not context.step_context.has_partitions and not collection.since.less_equal(max(ticks)):
        return written(row.schema, str(row.name)), None
    return written(row.schema, str(row.name)), max(readable or ticks)


def _put(
    connection: Connection,
    table: str,
    batches: Sequence[pa.RecordBatch],
    where: str,
    parameters: Sequence[str],
    key: Sequence[str] = (),
) -> int | None:
    """Puts rows in the place of others in one transaction, tried again while other assets are faster.

    Args:
        connection: To the project.
        table: Where to.
        batches: The rows.
        where: Which others, unless there is a key.
        parameters: Those of `where`.
        key: The columns in which those are the same whose place a row takes.

    Returns:
        How many; None if some do not fulfil the condition of those whose place they take, and nothing was changed.

    Raises:
        OperationalError: Others were faster for minutes.
    """
    clock = SYSTEM_CLOCK
    rows: int = sum(batch.num_rows for batch in batches)
    until = clock.monotonic_ms() + _DEADLINE_MS
    while True:
        try:
            with connection.transaction():
                if key:
                    for batch in batches:
                        _delete(connection, table, batch, key)
                else:
                    connection.execute(f"DELETE FROM {table}{where}", parameters)
                for batch in batches:
                    insert_batch(connection, table, batch)
                if not key:
                    found = connection.execute(f"SELECT count(*) FROM {table}{where}", parameters).fetchall()
                    if found != [(rows,)]:
                        raise _OfAnotherPartition
            return rows
        except _OfAnotherPartition:
            return None
        except OperationalError as error:
            if error.sqlstate != _SERIALIZATION_FAILURE or clock.monotonic_ms() > until:
                raise
            clock.sleep(random.uniform(0.05, 0.5))


def _delete(connection: Connection, table: str, batch: pa.RecordBatch, key: Sequence[str]) -> None:
    """Deletes the rows that have the same key as one of a batch.

    Raises:
        dagster.Failure: It does not have the key's columns.
    """
    if missing := [name for name in key if name not in batch.schema.names]:
        raise dg.Failure(
            f'rows that are put by their key have no column "{missing[0]}"',
            metadata={"mz/next": f'Return it, or name other columns in the asset\'s metadata: "{UPSERT_KEY}".'},
            allow_retries=False,
        )
    columns = ", ".join(map(quoted, key))
    types = [one[1] for one in connection.execute(f"SELECT {columns} FROM {table} LIMIT 0").description or ()]
    arrays = ", ".join(f"?::{type_}[]" for type_ in types)
    keys = [batch.column(name).to_pylist() for name in key]
    connection.execute(f"DELETE FROM {table} WHERE ({columns}) IN (SELECT * FROM unnest({arrays}))", keys)


def _names(said: Any) -> tuple[str, ...]:
    """Returns the columns that metadata name, one or several.

    Example:
        >>> _names("id"), _names(["day", "currency"]), _names(None)
        (('id',), ('day', 'currency'), ())
    """
    return () if said is None else (said,) if isinstance(said, str) else tuple(map(str, said))


class _OfAnotherPartition(Exception):
    """Rolls a transaction back."""


def _replaced(context: dg.OutputContext, column: Any) -> tuple[str, Sequence[str]]:
    """Returns the condition of the rows whose place is taken, with its parameters."""
    if not context.has_asset_partitions:
        return "", ()
    asset = context.asset_key.to_user_string()
    if column is None:
        raise dg.Failure(
            f'asset "{asset}" has partitions, and nothing says which rows are whose',
            metadata={"mz/next": f'Name the column that has the key in its metadata: "{PARTITION_COLUMN_KEY}".'},
            allow_retries=False,
        )
    keys = context.asset_partition_keys
    return f" WHERE {quoted(str(column))} IN ({', '.join('?' * len(keys))})", tuple(keys)


def _batches(obj: Any) -> Iterable[pa.RecordBatch]:
    """Returns the rows of what an asset returned.

    Raises:
        dagster.Failure: It is no table.
    """
    if isinstance(obj, pa.RecordBatchReader):
        reader: Iterable[pa.RecordBatch] = obj
        return reader
    if not isinstance(obj, pa.Table):
        # Its class is asked: a frame of Spark Connect takes whatever else it is asked for as a column.
        if hasattr(type(obj), "to_arrow"):  # of Polars
            obj = obj.to_arrow()
        elif hasattr(type(obj), "toArrow"):  # of Spark
            obj = obj.toArrow()
        elif type(obj).__module__.partition(".")[0] == "pandas":
            obj = pa.Table.from_pandas(obj, preserve_index=False)
        else:
            raise dg.Failure(
                f"an asset returned a {type(obj).__name__}, of which no rows of a table can be made",
                metadata={"mz/next": "Return a DataFrame of pandas, Polars or Spark, or a table of Arrow."},
                allow_retries=False,
            )
    batches: list[pa.RecordBatch] = obj.to_batches(max_chunksize=_PORTION_ROWS)
    return batches


def _as(wanted: Any, found: pa.Table) -> Any:
    """Returns a table as what an annotation says; one that says nothing in particular gets Arrow's.

    Raises:
        dagster.Failure: It is none that is known.
    """
    match _named(wanted):
        case "pandas.DataFrame":
            return found.to_pandas()
        case "polars.DataFrame":
            import polars as pl

            return pl.from_arrow(found)
        case "pyarrow.RecordBatchReader":
            return found.to_reader()
        case "builtins.list":
            return found.to_pylist()
        case "pyarrow.Table" | "typing.Any" | "builtins.object":
            return found
    raise dg.Failure(
        f"a view cannot be had as {_named(wanted)}",
        metadata={
            "mz/next": "Annotate a DataFrame of pandas, Polars or Spark, pyarrow.Table, RecordBatchReader or list."
        },
        allow_retries=False,
    )


def _named(wanted: Any) -> str:
    """Returns what an annotation says, by its package, as which Spark's classic and Connect classes are the same."""
    return f"{getattr(wanted, '__module__', '').partition('.')[0]}.{getattr(wanted, '__name__', wanted)}"
