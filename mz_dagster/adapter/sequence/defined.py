"""What statements that define have in common: names that may be missing, and what no block may do."""

from __future__ import annotations

from mz_dagster.adapter.block_definitions import NoPartOfBlock
from mz_dagster.adapter.names import Names
from mz_dagster.catalog import ObjectRow
from mz_dagster.notices import tell
from mz_dagster.sql import Name
from mz_dagster.sql.errors import UndefinedTable, UndefinedType


def refuse_in_block(
    names: Names,
    what: str,
    hint: str = "Execute it before BEGIN, or commit first.",
    *,
    detail: str = "Others would see what it defines before the transaction commits.",
) -> None:
    """Raises NoPartOfBlock if a transaction block is open."""
    if names.block() is not None:
        raise NoPartOfBlock(
            f"{what} cannot run inside a transaction block",
            detail=detail,
            hint=hint,
        )


def named(names: Names, name: Name, kind: str, if_exists: bool) -> ObjectRow | None:
    """Returns an object by its name; None if there is none, and that is said to be no error."""
    try:
        return names.object(name, kind)
    except UndefinedTable:
        if if_exists:
            tell(f'{kind} "{name.last}" does not exist, skipping')
            return None
        if kind == "type":
            raise UndefinedType(f'type "{name}" does not exist', position=name.offset + 1) from None
        raise
