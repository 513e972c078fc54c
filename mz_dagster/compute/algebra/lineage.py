"""Where the columns of what is linear come from."""

from __future__ import annotations

from collections.abc import Callable

from mz_dagster.plan.physical import Catch, Linear, NegateAll, Physical, Repeat, UnionAll, Unnest


def passed_inputs(node: Physical) -> list[tuple[Physical, Callable[[int], int | None]]]:
    """Returns the inputs of a linear operator, each with what tells for an output column which input column it is."""
    match node:
        case Linear():
            return [(node.input, node.mfp.passed)]
        case NegateAll():
            return [(node.input, lambda p: p)]
        case Repeat():
            count = node.count
            return [(node.input, lambda p: p if p < count else p + 1)]
        case Catch():  # an error is there whatever its columns would have been
            return [(node.input, lambda _: None)]
        case Unnest():
            kept = node.input.relation_type.arity - node.arrays
            return [(node.input, lambda p: p if p < kept else None)]
        case UnionAll():
            return [(one, lambda p: p) for one in node.inputs]
        case _:
            return []
