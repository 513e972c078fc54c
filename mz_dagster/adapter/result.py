"""What a statement returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mz_dagster.plan.types import Column

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Is what a statement returned.

    Attributes:
        tag: The command tag, as PostgreSQL's: `SELECT 3`, `INSERT 0 1`, `CREATE TABLE`.
        columns: The result set's columns; empty if there is none.
        rows: Its rows.
        rowcount: Rows returned or changed; -1 if that means nothing for the statement.
    """

    tag: str
    columns: tuple[Column, ...] = ()
    rows: Rows = ()
    rowcount: int = -1
