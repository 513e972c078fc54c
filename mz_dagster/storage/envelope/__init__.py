"""Envelopes: what a record does to a collection.

Owns the turning of records into updates. Each module is one envelope with one function `updates(records, prior, ...)`,
which returns an update frame (`<data columns>, mz_timestamp, mz_diff, mz_error`) and is lazy.

Invariant: the updates keep the records' exact ticks, and splitting the ticks into other intervals gives the same sums.

Files: `none`, a record is a row; `upsert`, a record is the new state of its key; `debezium`, records that were told
before are left out, which `log_place` says; `local`, all three in this process; `spilled`, a first load of more keyed
records than memory holds; `table_upsert`, the rows that the commits of a table add are records, and those that they
take away deletions; `dropped_errors`, the updates of an interval in which a source's errors are dropped.

Does not read files (`source`) nor shards: the prior state is handed in.
"""

from mz_dagster.storage.envelope import debezium, none, upsert

__all__ = ["debezium", "none", "upsert"]
