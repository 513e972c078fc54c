"""What views keep: rows and bytes of each view's state and output, beside what EXPLAIN says of them."""

from __future__ import annotations

import re

from bench.harness import Bench, table
from bench.tpch.project import TIMELINE, VIEWS, opened, short
from mz_dagster.adapter import Session
from mz_dagster.catalog import NO_ROWS


def run(bench: Bench) -> None:
    """Reads it from the catalog after one round of changes, prints and records."""
    with opened(bench) as project:
        project.place("random")
        project.step(project.ingest())
        engine = project.engine
        stats = {id: one for id, (_, one) in engine.catalog.live_batch_counts().items()}
        nodes = list(engine.graph(TIMELINE))
        sources = sum(stats.get(id, NO_ROWS).bytes for id in project.sources)
        rows = []
        kept = 0
        for view in VIEWS:
            id = engine.collection_of(view)
            output = stats.get(id, NO_ROWS)
            state = [stats.get(node.id, NO_ROWS) for node in nodes if getattr(node, "owner", None) == id]
            explained = [row[0] for row in Session(engine).execute(f"EXPLAIN {view}").rows]
            (line,) = (one for one in explained if one.startswith("rows expected:"))
            *expected_state, expected_output = map(int, re.findall(r"about (\d+)", line))
            found = {
                "arrangements": len(state),
                "state_rows_expected": sum(expected_state),
                "state_rows": sum(one.rows for one in state),
                "state_bytes": sum(one.bytes for one in state),
                "output_rows_expected": expected_output,
                "output_rows": output.rows,
                "output_bytes": output.bytes,
            }
            kept += sum(one.bytes for one in (*state, output))
            bench.results.record(f"state.{bench.scale_key}.{short(view)}", found)
            rows.append((short(view), *found.values()))
        bench.results.record(f"state.{bench.scale_key}.all", {"view_bytes": kept, "source_bytes": sources})
    head = ("view", "arrangements", "state rows expected", "state rows", "bytes")
    print(table((*head, "output rows expected", "output rows", "bytes"), rows))
    print(f"all views {kept / 1e6:.1f} MB, sources {sources / 1e6:.1f} MB")
