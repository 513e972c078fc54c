"""Sources: what the outside world has, bound to ticks, as records.

Owns the file sources (`files`), the formats they read and the decoding of text into declared types.

Invariant: records are a function of the bindings. The same bindings give the same records in the same order, or an
error that names the file which makes that impossible.

Files: `files` the source, polled and read; `file_place` where files are, `folder` which of them are ready in one of
this machine, `bucket` in an object store, `web` on a web server; `compression` what compressed ones hold;
`partition_folders` what folders say; `avro_files` Avro as Parquet, `avro_changes` as lines; `orc_files` ORC as
Parquet, by the process that `orc_reader` is; `csv_header` and `parquet_schema` what is refused before anything is
bound; `json_record` what a line says; `faults` what can be wrong with a record; `landing` drops files
into a folder or a bucket, `fed_files` makes them of rows.
None of these needs Spark. With Spark: `text_lines` under `json_lines` and `csv_lines`, beside `parquet_rows`; all yield
`cells`, which `decode` types and `record` assembles. `local` is all that in this process, for what is little.

Does not mint ticks or store bindings (`catalog`), nor give records a meaning (`envelope`).
"""

from mz_dagster.storage.source.described import is_typed
from mz_dagster.storage.source.errors import BoundFileChanged, SourceUnreadable
from mz_dagster.storage.source.fed_files import csv_of, packed, parquet_of, suffixes
from mz_dagster.storage.source.files import RECORD_COLUMNS, FileSource, Format
from mz_dagster.storage.source.landing import Landing, landing_in
from mz_dagster.storage.source.orc_files import ensure_orc_is_read
from mz_dagster.storage.source.source import ChangeSource, Envelope, Gain, Ledger, RecordSource, Source

__all__ = [
    "RECORD_COLUMNS",
    "BoundFileChanged",
    "ChangeSource",
    "Envelope",
    "FileSource",
    "Format",
    "Gain",
    "Landing",
    "Ledger",
    "RecordSource",
    "Source",
    "SourceUnreadable",
    "csv_of",
    "ensure_orc_is_read",
    "is_typed",
    "landing_in",
    "packed",
    "parquet_of",
    "suffixes",
]
