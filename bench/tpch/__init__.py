"""TPC-H: its data and refreshes, its 22 queries as a project of views, and as plain Spark and DuckDB run them.

- `data`: the eight tables from `tpchgen-cli`, and rounds of changes to orders and lineitems as files;
- `project`: the project, loaded and hydrated once and kept; copies of it, stepped;
- `plain`: the same data as plain Delta tables, the same queries run in full.

The queries are verbatim those of `tests/tpch`.
"""
