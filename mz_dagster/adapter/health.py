"""Why collections stay behind: for a reason of their own, or for that of what they are computed from.

A reason is a line for people: what the last poll of a source or the last step of a collection said, or why an object
cannot be planned. Everything else goes on, so what has no reason here is not behind for long.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import FailedNode, Graph
from mz_dagster.errors import one_line
from mz_dagster.formalism import GlobalId


def reasons(graph: Graph, rows: Mapping[GlobalId, CollectionRow]) -> dict[GlobalId, str]:
    """Returns why collections of a timeline stay behind, by their ids; those that do not are left out.

    Args:
        graph: The timeline's.
        rows: Its collections.
    """
    own: dict[GlobalId, str] = {}
    for node in graph:
        row = rows.get(node.id)
        if row is not None and row.reason is not None:
            own[node.id] = row.reason
        elif isinstance(node, FailedNode) and node.owner is None:
            own[node.id] = one_line(node.error)
    if not own:
        return {}
    names = {node.id: node.name for node in graph}
    # The arrangements of what cannot be planned wait for it, although it is computed from them.
    waiting = {
        node.id: _waits(names[node.owner], own[node.owner])
        for node in graph
        if isinstance(node, FailedNode) and node.owner in own and node.id not in own
    }
    return with_dependants(own | waiting, {node.id: node.inputs for node in graph}, names)


def with_dependants(
    own: Mapping[GlobalId, str], inputs: Mapping[GlobalId, Collection[GlobalId]], names: Mapping[GlobalId, str]
) -> dict[GlobalId, str]:
    """Returns the reasons together with those of everything that is computed from what has one.

    Args:
        own: The reasons of some collections' own.
        inputs: What each collection is computed from.
        names: What to call them.

    Example:
        >>> a, b = GlobalId("u1"), GlobalId("u2")
        >>> with_dependants({a: "no folder"}, {b: {a}}, {a: "a", b: "b"})[b]
        'waits for "a": no folder'
    """
    outputs: dict[GlobalId, list[GlobalId]] = {}
    for output in sorted(inputs):
        for input in inputs[output]:
            outputs.setdefault(input, []).append(output)
    found = dict(own)
    for cause in sorted(own):
        reached = [cause]
        while reached:
            for output in outputs.get(reached.pop(), ()):
                if output not in found:
                    found[output] = _waits(names.get(cause, cause), own[cause])
                    reached.append(output)
    return found


def _waits(name: str, reason: str) -> str:
    return f'waits for "{name}": {reason}'
