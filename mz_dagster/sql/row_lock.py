"""What a query locks of the rows that it reads, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RowLock:
    """`FOR {UPDATE | NO KEY UPDATE | SHARE | KEY SHARE} [OF name, ...] [NOWAIT | SKIP LOCKED]`.

    Attributes:
        strength: The words behind FOR, in capitals.
        relations: The names of what is locked, without what is a subquery, in parts.
        conflict: What is done about rows that another transaction has locked.
        offset: Where the clause starts.
        is_nested: Whether it is a subquery's.
    """

    strength: str
    relations: tuple[tuple[str, ...], ...]
    conflict: Literal["wait", "nowait", "skip"]
    offset: int
    is_nested: bool

    @property
    def is_shared(self) -> bool:
        """Whether several transactions may have it."""
        return self.strength.endswith("SHARE")
