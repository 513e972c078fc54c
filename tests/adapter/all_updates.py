"""All that a project's collections hold, to be compared with what another project's hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mz_dagster.adapter import Engine
from mz_dagster.storage.shards import DIFF

#: Of a collection each update but for its diff, `(error, time, cells)`, and the diffs' sum, which is not 0.
Updates = Counter[tuple[Any, ...]]


def all_updates(engine: Engine) -> dict[str, Updates]:
    """Returns the summed updates of each collection, arrangements too, by what it is called and its id."""
    found: dict[str, Updates] = {}
    names = engine.names()
    for row in engine.catalog.collections():
        table = engine.shards.read(row, engine.catalog.listed([row.id])[row.id].batches)
        columns = [name for name in sorted(table.column_names) if name != DIFF]
        summed: Updates = Counter()
        cells = [map(_bits, table[name].to_pylist()) for name in columns]
        for *update, diff in zip(*cells, table[DIFF].to_pylist(), strict=True):
            summed[tuple(update)] += diff
        found[f"{names[row.id]} {row.id}"] = Counter({update: diff for update, diff in summed.items() if diff})
    return found


def _bits(cell: Any) -> Any:
    """Returns what tells two cells apart that are equal: -0.0 and 0.0, 1 and 1.0."""
    return cell.hex() if isinstance(cell, float) else f"{type(cell).__name__} {cell!r}"
