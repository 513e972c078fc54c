"""The rows around a subquery, and what a name means that its own FROM does not offer.

While a subquery or a lateral relation is bound, what encloses it is on a stack. A name is looked for in the query's
own FROM, then outwards; what is found becomes an argument of every subquery on the way in. Invariant: the number of an
`OuterColumn` is one among the arguments of the innermost row on the stack when it was bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mz_dagster.plan.dependence import is_dependent, with_free_columns
from mz_dagster.plan.relation import Relation
from mz_dagster.scalars.scalar import ColumnRef, OuterColumn, Scalar, walk
from mz_dagster.sql.errors import InvalidColumnReference, UndefinedColumn, UndefinedTable
from mz_dagster.sql.scope import Scope


@dataclass(slots=True)
class Enclosing:
    """A row that a subquery is asked for.

    Attributes:
        scope: What can be named of it.
        arguments: What the subquery takes from it, each once.
        visible: Whether it may be named now: what stands to the left in FROM may only be in a LATERAL relation.
        outer_joined: Whether the relation to the right is preserved, and so must not depend on it.
        aggregate: Binds a call as an aggregate of the query that the subquery stands in; None if it stands in FROM.
    """

    scope: Scope
    arguments: list[Scalar] = field(default_factory=list)
    visible: bool = True
    outer_joined: bool = False
    aggregate: Callable[..., Scalar] | None = None

    def column(self, scalar: Scalar) -> OuterColumn:
        """Returns what stands for `scalar`, over the row, within the subquery."""
        if scalar not in self.arguments:
            self.arguments.append(scalar)
        name = getattr(scalar, "name", "")
        return OuterColumn(self.arguments.index(scalar), scalar.type, scalar.nullable, name)


@contextmanager
def enclosed(stack: list[Enclosing], one: Enclosing) -> Iterator[Enclosing]:
    """Puts `one` on the stack for the duration of the block."""
    stack.append(one)
    try:
        yield one
    finally:
        stack.pop()


@contextmanager
def with_rows_visible(stack: Sequence[Enclosing]) -> Iterator[None]:
    """Makes the rows in `stack` visible for the duration of the block: it binds a LATERAL relation."""
    before = [one.visible for one in stack]
    for one in stack:
        one.visible = True
    try:
        yield
    finally:
        for one, visible in zip(stack, before, strict=True):
            one.visible = visible


def named(
    scope: Scope, stack: Sequence[Enclosing], table: str | None, name: str, position: int
) -> ColumnRef | OuterColumn:
    """Returns the scalar that a name means, in the scope of its own query or in an enclosing one.

    Raises:
        UndefinedColumn: Nothing offers it.
        UndefinedTable: No relation that may be named here is called `table`.
        AmbiguousColumn: The nearest scope that offers it has several.
        InvalidColumnReference: A lateral relation that is preserved depends on the other side.
    """
    if scope.offers(table, name):
        return scope.named(table, name, position)
    level = _level(stack, table, name, position)
    if level is None:
        return scope.named(table, name, position)
    return _inwards(stack[level].scope.named(table, name, position), stack, level)


def all_named(scope: Scope, stack: Sequence[Enclosing], table: str, position: int) -> list[ColumnRef | OuterColumn]:
    """Returns the scalars that `table.*` means; raises as `named` does."""
    level = None if scope.offers(table, "") else _level(stack, table, "", position)
    if level is None:
        return [column.reference for column in scope.table(table, position).columns]
    columns = stack[level].scope.table(table, position).columns
    return [_inwards(column.reference, stack, level) for column in columns]


def _level(stack: Sequence[Enclosing], table: str | None, name: str, position: int) -> int | None:
    """Returns which row of the stack offers a name that its own query does not; None if none does."""
    for level in reversed(range(len(stack))):
        one = stack[level]
        if not one.visible or not one.scope.offers(table, name):
            continue
        if one.outer_joined:
            raise InvalidColumnReference(
                f'invalid reference to FROM-clause entry for table "{table or one.scope.owner(name)}"',
                detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
                position=position,
            )
        return level
    hidden = next((one.scope for one in reversed(stack) if not one.visible and one.scope.offers(table, name)), None)
    if hidden is None:
        return None
    barred = "but it cannot be referenced from this part of the query."
    hint = "Write LATERAL before the derived table."
    if table is not None:
        message = f'invalid reference to FROM-clause entry for table "{table}"'
        detail = f'There is an entry for table "{table}", {barred}'
        raise UndefinedTable(message, detail=detail, hint=hint, position=position)
    detail = f'There is a column named "{name}" in table "{hidden.owner(name)}", {barred}'
    raise UndefinedColumn(f'column "{name}" does not exist', detail=detail, hint=hint, position=position)


def _inwards(found: ColumnRef | OuterColumn, stack: Sequence[Enclosing], level: int) -> ColumnRef | OuterColumn:
    """Returns what stands within all rows of the stack for what is one of the row at `level`, or of those around it."""
    for one in stack[level:]:
        found = one.column(found)
    return found


def level_of(outers: Sequence[OuterColumn], stack: Sequence[Enclosing]) -> int:
    """Returns which row of the stack is the innermost that any of `outers`, of which there is one at least, is of."""
    level, pending = len(stack) - 1, list[Scalar](outers)
    while all(isinstance(one, OuterColumn) for one in pending):
        pending = [stack[level].arguments[one.number] for one in pending if isinstance(one, OuterColumn)]
        pending = [part for one in pending for part in walk(one) if isinstance(part, ColumnRef | OuterColumn)]
        level -= 1
    return level + 1


@contextmanager
def only_outer_rows(stack: list[Enclosing], level: int) -> Iterator[None]:
    """Leaves only the rows around the one at `level` on the stack, for the duration of the block."""
    inner = stack[level:]
    del stack[level:]
    try:
        yield
    finally:
        stack += inner


def outer_reference(scalar: Scalar, stack: Sequence[Enclosing], level: int) -> Scalar:
    """Returns what stands within all rows of the stack for a scalar over the row at `level`."""
    for one in stack[level:]:
        scalar = one.column(scalar)
    return scalar


def relation_within_all(relation: Relation, stack: Sequence[Enclosing], level: int) -> Relation:
    """Returns a relation that was bound within the first `level` rows of the stack, as it is within all of them."""
    if not is_dependent(relation):
        return relation

    return with_free_columns(relation, lambda outer: _inwards(outer, stack, level))
