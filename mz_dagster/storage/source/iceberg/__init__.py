"""Iceberg tables that others write, as sources.

Owns the transport `iceberg_source`: an offset is a snapshot of the table, and what lies between two of them is the
files in which they differ (`live_files`, of which `manifests` tell), each with what its deletes take of it (`deletes`,
`data_files`). `opening` asks the catalog for a table; `table_schema` says which columns of SQL it has.

Invariant: at each tick the collection is the table at the snapshot that is bound to it, row by row, whichever way leads
there. What cannot be told exactly is an error of the source, with the way back that it names.

pyiceberg, which is an extra, reads metadata and opens files. Manifests are read here, with fastavro, since its own
decoder trusts what it reads; and rows, since it has no equality deletes and reads no part of what changed. Only modules
of this folder import it, and `adapter` imports them when there is a source that needs them.
"""
