"""What each engine makes of updates that an operator looks at one by one."""

from __future__ import annotations

from typing import Protocol, TypeVar, assert_never

from mz_dagster.plan.physical import Catch, EachUpdate, Linear, NegateAll, Repeat, Unnest

F = TypeVar("F")


class EachUpdateOperators(Protocol[F]):
    """Says what an engine makes of each update of an operator's input."""

    def linear(self, node: Linear, below: F) -> F:
        """Returns what a map, filter and project makes of updates."""
        ...

    def negate(self, node: NegateAll, below: F) -> F:
        """Returns updates with the opposite diffs."""
        ...

    def repeat(self, node: Repeat, below: F) -> F:
        """Returns updates with their diffs times a column."""
        ...

    def catch(self, node: Catch, below: F) -> F:
        """Returns updates in which errors are rows."""
        ...

    def unnest(self, node: Unnest, below: F) -> F:
        """Returns updates with elements in the places of arrays."""
        ...


def of_each_update(operators: EachUpdateOperators[F], node: EachUpdate, below: F) -> F:
    """Returns what an operator makes of each update of its input by itself."""
    match node:
        case Linear():
            return operators.linear(node, below)
        case NegateAll():
            return operators.negate(node, below)
        case Repeat():
            return operators.repeat(node, below)
        case Catch():
            return operators.catch(node, below)
        case Unnest():
            return operators.unnest(node, below)
        case _:
            assert_never(node)
