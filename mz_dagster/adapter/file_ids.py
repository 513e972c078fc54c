"""The ids that objects of a project's files have in each other's plans, before the catalog gives them any.

They are unlike those of the catalog and of a plan's own parts, whatever the objects are called.
"""

from __future__ import annotations

from mz_dagster.formalism import GlobalId

_HEAD = "file:"


def file_id(name: str) -> GlobalId:
    """Returns the id of the object that the catalog will call so.

    Example:
        >>> file_id("orders"), name_of_file_id(file_id("orders"))
        ('file:orders', 'orders')
    """
    return GlobalId(_HEAD + name)


def name_of_file_id(id: GlobalId) -> str:
    """Returns the name of the object that a file defines; of what no file does, the id."""
    return id.removeprefix(_HEAD)
