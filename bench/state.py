"""What views keep: rows and bytes of each view's state and output, beside what EXPLAIN says of them."""

from __future__ import annotations

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
            explained = "\n".join(row[0] for row in Session(engine).execute(f"EXPLAIN {view}").rows)
            found = {
                "arrangements": len(state),
                "state_rows": sum(one.rows for one in state),
                "state_bytes": sum(one.bytes for one in state),
                "output_rows": output.rows,
                "output_bytes": output.bytes,
                "explained": [line for line in explained.splitlines() if "writes per step" in line or "bytes" in line],
            }
            kept += sum(one.bytes for one in (*state, output))
            bench.results.record(f"state.{bench.scale_key}.{short(view)}", found)
            rows.append((short(view), len(state), *(found[name] for name in list(found)[1:5])))
        bench.results.record(f"state.{bench.scale_key}.all", {"view_bytes": kept, "source_bytes": sources})
    print(table(("view", "arrangements", "state rows", "bytes", "output rows", "bytes"), rows))
    print(f"all views {kept / 1e6:.1f} MB, sources {sources / 1e6:.1f} MB")
