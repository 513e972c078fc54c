"""Storage: shards on Delta Lake, and the protocols by which updates become durable and are read back exactly.

Owns the shard of each collection (a Delta table of updates, partitioned by `mz_batch` and `mz_bucket`) and what is done
with it: append and seal, leased reads, physical compaction, the sweep. `source/` and `envelope/` turn
external data into updates, `sink/` writes them for readers outside; `spark/` runs the one warm Spark.

The invariant: at every time between since and upper, the updates of the listed batches are exactly the
collection's, whatever crashed, was retried, raced, was compacted or swept meanwhile. A read that cannot have
them all is an error, never fewer rows.

Files, in the order of import:

- `clustering`: how large batches are laid out by key, so that a lookup of few keys reads few rows;
- `skipping`: which files need not be read, because no row of theirs passes a predicate;
- `shards`: the protocol that both implementations keep, the physical schema, and the errors of reading;
- `row_numbers`: rows told apart by the values of columns;
- `row_hashes`: rows as words of 64 bits, and hashes of these;
- `arrow_schema`, `consolidation`: update frames in Arrow, and sums of equal updates in process;
- `plain_cells`: values in Arrow's tables and in Python;
- `numerics`: most of them are stored as integers of 64 bits;
- `table_summary`: what spares Spark's first write to a table a job;
- `table_sync`: what a batch is read through is on disk before it is listed;
- `file_hashes`: a data file is read only if it is the one that was written;
- `batch_stats`: what a batch holds, from Delta's own metadata;
- `open_tables`, `known_files`: tables that are open already; what their logs said before;
- `decoded_files`: columns of large files as Arrow has them, on disk, for all processes to map;
- `hot_files`, `kept_tables`: columns of files, and what is made of these, in memory from one step to the next;
- `shard_place`, `shard_bucket`: where shards lie, and when what is written there lasts: a folder, a bucket;
- `table_place`, `stored_object`: where tables and single objects of others lie;
- `inlined`: batches that are stored in the catalog, with their seals;
- `local_shards`: the implementation in process, on `deltalake` and pyarrow; `shard_files`: decodes their data files;
- `spark_shards`: the implementation on Spark;
- `renewal`: keeps leases alive while their holder works;
- `append`, `read`, `compact`, `sweep`: the protocols over a catalog and any shards;
- `subscribe`, `api`: the commands by which a collection is made, written and read by right of capabilities;
- `shard_copy`, `table_log`: copies of shards for backups; a table's log entry by entry, and made anew;
- `copy_columns`, `copy_csv`, `copy_parquet`: a file that COPY reads, as the stored columns of a table; plain lines at
  once, others field by field.

It does not choose timestamps, plan queries or decide when to run: `compute`, `adapter` and `orchestration` do.
The front door imports no Spark; `spark`, `spark_shards`, `source` and `envelope` have doors of their own.

Open to other layers beside this front door: `append`, `arrow_schema`, `batch_stats`, `clustering`, `compact`,
`consolidation`, `copy_csv`, `copy_errors`, `copy_parquet`, `decoded_files`, `envelope.debezium`,
`envelope.dropped_errors`, `envelope.local`, `envelope.none`, `envelope.spilled`, `envelope.upsert`, `file_hashes`,
`foreign`, `iceberg_catalog`, `inlined`, `kept_tables`, `key_hash`, `keyed_rows`, `late_pyspark`, `local_shards`,
`lookup`, `numerics`, `object_store`, `open_tables`, `ownership`, `parquet_file`, `plain_cells`, `published`, `read`,
`renewal`, `row_hashes`, `row_numbers`, `shard_bucket`, `shard_copy`, `shard_place`, `shards`, `sink.delta_columns`,
`sink.delta_sink`, `sink.sink`, `source`, `source.bucket`, `source.delta.delta_source`, `source.file_place`,
`source.folder`, `source.iceberg.iceberg_source`, `source.table_source`, `source.unreadable_files`, `source.web`,
`spark`, `spark.causes`, `spark.config`, `spark.deadline`, `spark.floats`, `spark.schema`, `spark_shards`,
`stored_object`, `sweep`, `table_log`, `table_place`.
"""

from mz_dagster.storage.api import AppendLost, CollectionDescription, CollectionStatus, Storage
from mz_dagster.storage.append import LEASE_MS, BatchWriter, compare_and_append
from mz_dagster.storage.arrow_schema import arrow_type, update_schema, update_table
from mz_dagster.storage.compact import Merge, choose_merge, compact, sort_key
from mz_dagster.storage.inlined import Inlining, PayloadDamaged
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import (
    LeaseLost,
    ReadBeforeSince,
    ReadBeyondUpper,
    check_readable,
    leased,
    overlapping,
    read_at,
    read_updates,
)
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import BatchIncomplete, FileDamaged, LogDamaged, Shards, ShardUnavailable, StatsMissing
from mz_dagster.storage.subscribe import Message, SubscribeDeadline, Subscription, Updates, Upper
from mz_dagster.storage.sweep import Swept, delete_strays, sweep

__all__ = [
    "LEASE_MS",
    "AppendLost",
    "BatchIncomplete",
    "BatchWriter",
    "CollectionDescription",
    "CollectionStatus",
    "FileDamaged",
    "Inlining",
    "LeaseLost",
    "LocalShards",
    "LogDamaged",
    "Merge",
    "Message",
    "PayloadDamaged",
    "ReadBeforeSince",
    "ReadBeyondUpper",
    "Renewal",
    "ShardUnavailable",
    "Shards",
    "StatsMissing",
    "Storage",
    "SubscribeDeadline",
    "Subscription",
    "Swept",
    "Updates",
    "Upper",
    "arrow_type",
    "check_readable",
    "choose_merge",
    "compact",
    "compare_and_append",
    "delete_strays",
    "leased",
    "overlapping",
    "read_at",
    "read_updates",
    "sort_key",
    "sweep",
    "update_schema",
    "update_table",
]
