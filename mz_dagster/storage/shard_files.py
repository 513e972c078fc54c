"""The data files of shards, decoded: updates in the form in which they are stored.

What reads them with a condition is `scanned`; who keeps what it has read takes whole columns, by `read_whole`. Pages
are held against their checksums. A file from before a collection gained a column has NULL there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.object_cache import cached_by_object
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.numerics import short_fields
from mz_dagster.storage.parquet_file import open_parquet


@cached_by_object(most=20_000)
def stored_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Returns the schema of the stored form of updates of a collection with these columns."""
    return pa.schema([*update_schema(columns), *short_fields(columns)])


def filled(stored: pa.Table, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Returns columns of updates in stored form; those that the collection gained later are NULL."""
    present = set(stored.column_names)
    if present.issuperset(names):
        return stored.select(names)
    fields = [schema.field(name) for name in names]
    columns = [stored.column(one.name) if one.name in present else pa.nulls(len(stored), one.type) for one in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def scanned(files: Sequence[Path], schema: pa.Schema, columns: Sequence[str], only: pc.Expression | None) -> pa.Table:
    """Returns columns of the rows of Parquet files for which `only` is true; pages are held against their checksums."""
    import pyarrow.dataset as ds  # imports pandas, a tenth of this package's start, which few processes need

    parquet = ds.ParquetFileFormat(
        read_options={"coerce_int96_timestamp_unit": "us"},
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
    )
    dataset = ds.dataset([str(file) for file in files], schema=schema, format=parquet)
    return dataset.to_table(columns=list(columns), filter=only)


def read_whole(file: Path, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Returns columns of a Parquet file, each in one piece; pages are held against their checksums."""
    with open_parquet(file) as opened:
        table = opened.read(columns=list(columns))
    return filled(table, schema, columns).cast(pa.schema([schema.field(name) for name in columns]))
