"""What a query can read, and what stands behind its FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.expressions import Column, Expr


@dataclass(frozen=True)
class Relation:
    """Is a table or view that queries may read.

    Attributes:
        safe: Whether reading it cannot fail.
        temporal: Whether what it holds changes by itself as time goes on.
    """

    name: str
    columns: tuple[Column, ...]
    safe: bool = True
    temporal: bool = False


@dataclass(frozen=True)
class Scope:
    """Is a FROM.

    Attributes:
        text: What stands behind the word.
        spelled: How each column is written.
        columns: The columns.
        safe: Whether reading it cannot fail.
        temporal: As of a relation.
    """

    text: str
    spelled: tuple[str, ...]
    columns: tuple[Column, ...]
    safe: bool = True
    temporal: bool = False

    def spell(self, one: Expr) -> str:
        """Returns an expression with the scope's names."""
        return one.with_columns(lambda n: self.spelled[n])


@dataclass(frozen=True)
class Arm:
    """Is one SELECT.

    Attributes:
        scope: What it reads.
        where: The condition, or None.
        items: The output.
    """

    scope: Scope
    where: Expr | None
    items: tuple[Expr, ...]

    def text(self, names: Sequence[str], condition: str | None = None) -> str:
        """Returns the SELECT; `condition` stands instead of its own."""
        items = ", ".join(f"{self.scope.spell(one)} AS {name}" for one, name in zip(self.items, names, strict=True))
        if condition is None and self.where is not None:
            condition = self.scope.spell(self.where)
        return f"SELECT {items} FROM {self.scope.text}" + (f" WHERE {condition}" if condition else "")


@dataclass(frozen=True)
class Query:
    """Is a query.

    Attributes:
        text: Its SQL, in both dialects.
        columns: Its output.
        safe: Whether it cannot fail.
        strict: Whether its errors are determined.
        prefix: WITH, if there is one.
        arms: What UNION ALL adds up; empty if it is not strict.
        temporal: Whether its answer changes by itself as time goes on.
        shape: What kind of query it is.
    """

    text: str
    columns: tuple[Column, ...]
    safe: bool
    strict: bool
    prefix: str = ""
    arms: tuple[Arm, ...] = ()
    temporal: bool = False
    shape: str = "select"
