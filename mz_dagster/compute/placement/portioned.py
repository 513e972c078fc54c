"""Which collections a plan over all updates reads a portion at a time, of which it never holds the whole.

What is linear in its inputs is computed in portions of the largest of them where there is much (`walk.portions`): a
group adds each portion to what it has, and all else puts together what is made of them, `Budget.frame_rows` of it at
most. A collection is held whole where it is the input of another operator itself, with nothing above it that leaves
rows or columns out, or where it has no more than a portion's rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from mz_dagster.budget import budget
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    EachUpdate,
    Physical,
    ReadCollection,
    UnionAll,
    identity,
    physical_inputs,
)


def topmost_joins(node: Physical) -> Iterator[DeltaJoin]:
    """Yields the joins of a plan, but for those below joins."""
    if isinstance(node, DeltaJoin):
        yield node
        return
    for one in physical_inputs(node):
        yield from topmost_joins(one)


def repeated_joins(plan: Physical) -> frozenset[object]:
    """Returns the identities of the topmost joins that a plan has more than once, which are computed once, whole."""
    joins = list(topmost_joins(plan))
    times = Counter(map(identity, joins)) if len(joins) > 1 else {}
    return frozenset(one for one, count in times.items() if count > 1)


def largest_cut(node: Physical, rows: Callable[[GlobalId], int], repeated: frozenset[object]) -> int:
    """Returns how many rows the largest collection has that what is linear is computed in portions of.

    Args:
        node: A plan.
        rows: Returns how many updates of a collection are read.
        repeated: The joins that are computed once.
    """
    match node:
        case ReadCollection():
            return rows(node.id)
        case DeltaJoin() if identity(node) in repeated:
            return 0
    if isinstance(node, EachUpdate | UnionAll | DeltaJoin):
        return max((largest_cut(one, rows, repeated) for one in physical_inputs(node)), default=0)
    return 0


def cut_input(node: DeltaJoin, rows: Callable[[GlobalId], int], repeated: frozenset[object]) -> int:
    """Returns which input of a join is cut into portions."""
    sizes = [largest_cut(one, rows, repeated) for one in node.inputs]
    return sizes.index(max(sizes))


def held_whole(plan: Physical, rows: Callable[[GlobalId], int]) -> frozenset[GlobalId]:
    """Returns the collections that a plan reads of which all rows are held at once."""
    repeated = repeated_joins(plan)
    held = set[GlobalId]()
    seen = set[tuple[int, bool]]()
    below = [(plan, _is_made(plan))]
    while below:
        node, goes_by = below.pop()
        if (id(node), goes_by) in seen:
            continue
        seen.add((id(node), goes_by))
        match node:
            case ReadCollection():
                if not goes_by or rows(node.id) <= budget().portion_rows:
                    held.add(node.id)
            case Accumulate():
                below.append((node.input, True))
            case DeltaJoin() if identity(node) not in repeated:
                cut = cut_input(node, rows, repeated)
                below += [(one, _is_made(one) or (i == cut and goes_by)) for i, one in enumerate(node.inputs)]
            case ConstantRows():
                pass
            case _ if isinstance(node, EachUpdate | UnionAll):
                below += [(one, goes_by) for one in physical_inputs(node)]
            case _:
                below += [(one, _is_made(one)) for one in physical_inputs(node)]
    return frozenset(held)


def _is_made(node: Physical) -> bool:
    """Returns whether what an operator is given is made of what is read, and not that itself."""
    return not isinstance(node, ReadCollection)
