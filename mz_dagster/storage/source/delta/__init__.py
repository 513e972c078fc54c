"""Delta tables that others write, as sources.

Owns the transport `delta_source`: an offset is a version of the table, and what lies between two of them is read from
the commits of its log (`commits`), from the files that these add and remove or from their change data (`data_files`).
`table_schema` says which columns of SQL a table has.

Invariant: at each tick the collection is the table at the version that is bound to it, row by row, whatever the commits
between two versions are. What cannot be told exactly is an error of the source, with the way back that it names.

Which files a table has, and which of their rows, delta-rs says. The files are read here: it reads no part of what a
commit changes, and takes timestamps of years beyond its nanoseconds for others, without a word.
"""
