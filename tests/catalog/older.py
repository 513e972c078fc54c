"""A catalog as an older version has left it: the one list of what each migration adds, taken back by tests."""

from __future__ import annotations

from collections.abc import Callable

#: For each migration that adds columns: of which table, and which; None for a whole table.
_ADDED: dict[str, list[tuple[str, str | None]]] = {
    "0003": [("capability", "writes")],
    "0004": [("collection", "poll_failure")],
    "0005": [("batch", "file_list")],
    "0006": [("bound_file", "identity")],
    "0007": [("collection", "live_batches"), ("collection", "live_rows"), ("collection", "live_digest")],
    "0008": [("project", "state_format"), ("project", "release")],
    "0009": [("timeline", "process")],
    "0010": [("tombstone", None)],
    "0011": [("changed", None)],
    "0012": [("inlined", None)],
    "0013": [("project", "names"), ("collection", "bound_files")],
    "0014": [("sequence", None)],
    "0016": [("object", "shapes")],
    "0017": [("writer", "process"), ("lease", "process")],
    "0018": [("bound_offset", None)],
    "0019": [("role", None)],
    "0020": [("membership", None)],
    "0021": [("compute_replica", None)],
}


def take_back(execute: Callable[[str], object], revision: str, *, on_postgresql: bool = False) -> None:
    """Takes from a catalog what all migrations behind `revision` have added.

    Args:
        execute: Executes a statement in the catalog's database.
        revision: The last migration that stays, from "0002" on.
        on_postgresql: Whether that is PostgreSQL.
    """
    for table in ("object", "name", "dependency", "collection"):
        for event in ("insert", "update", "delete"):
            name = f"note_{table}_{event}"
            execute(f"DROP FUNCTION {name} CASCADE" if on_postgresql else f"DROP TRIGGER {name}")
    for migration, columns in reversed(_ADDED.items()):
        if migration > revision:
            for table, column in columns:
                execute(f"DROP TABLE {table}" if column is None else f"ALTER TABLE {table} DROP COLUMN {column}")
    execute("DELETE FROM counter WHERE name = 'role'")  # of 0019
    execute(f"UPDATE alembic_version SET version_num = '{revision}'")
