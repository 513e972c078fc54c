"""Functions of the system catalogs: what their calls, which `sql/catalog_calls.py` binds, are evaluated by."""
