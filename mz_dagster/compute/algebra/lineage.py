"""Where the columns of what is linear come from."""

from __future__ import annotations

from collections.abc import Callable

from mz_dagster.plan.physical import EachUpdate, Physical, UnionAll


def passed_inputs(node: Physical) -> list[tuple[Physical, Callable[[int], int | None]]]:
    """Returns the inputs of a linear operator, each with what tells for an output column which input column it is."""
    if isinstance(node, EachUpdate):
        return [(node.input, node.passed)]
    return [(one, lambda p: p) for one in node.inputs] if isinstance(node, UnionAll) else []
