"""How fresh the demo's views are while its feed goes on without a pause, under `mz-dagster run --continuous`.

The first days of the demo's flights are there, without the feed's clock: ticks have the times of the wall clock. Then
what becomes of the next day's flights arrives one by one, a file of one record every tenth of a second for a minute.
Measured is how long it takes from a file's arrival until every view can be read with it. Goals: half of them within
0.3 s, 99 % within a second.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.dagster_tick import awaited, driven
from bench.harness import REPOSITORY, Bench, say, table
from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK
from sensors.feed import Feed, files_of_day

_DAYS, _EVERY_S, _FOR_S = 2, 0.1, 60.0
#: What comes before what is counted: a process that has just begun compiles and reads everything for the first time.
_WARMUP_S = 5.0
_START_SECONDS, _END_SECONDS = 120.0, 60.0
_LOOK_SECONDS = 0.01
_PARTS = ("assets", "resources", "sensors", "definitions.py")


def run(bench: Bench) -> None:
    """Measures, prints and records."""
    root = bench.new_path("demo")
    root.mkdir()
    for name in _PARTS:
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    (root / "mz.toml").write_text('[project]\ntimeline = "feed"\n', encoding="utf-8")
    Feed(root / "landing").advance(_DAYS)
    with Engine(Project.load(root)) as engine:
        engine.apply()
        with driven(root, ("run", "--continuous")):
            awaited(lambda: _upper(engine) > 1, _START_SECONDS, root)
            waits = sorted(_waits(engine, root))
    found = {"median": waits[len(waits) // 2], "p99": waits[len(waits) * 99 // 100], "longest": waits[-1]}
    bench.results.record("freshness", {"changes": len(waits), **{name: round(one, 3) for name, one in found.items()}})
    print(table(("from arrival to all views", "seconds"), [(name, f"{one:.2f}") for name, one in found.items()]))


def _waits(engine: Engine, root: Path) -> Iterator[float]:
    """Lets records arrive, and yields for each that is counted how long it took to be readable, in seconds."""
    arrived: dict[str, float] = {}
    feeding = threading.Thread(target=_feed, args=(root / "landing" / "flights", arrived))
    feeding.start()
    flights = engine.collection_of("flights")
    waits: dict[str, float] = {}

    def is_over() -> bool:
        upper, now = _upper(engine), SYSTEM_CLOCK.monotonic_ms() / 1000
        for binding in engine.catalog.bindings(flights):
            for file in binding.files if binding.tick < upper else ():
                if file.path in arrived:
                    waits.setdefault(file.path, now - arrived[file.path])
        return not feeding.is_alive() and len(waits) == len(arrived)

    awaited(is_over, _WARMUP_S + _FOR_S + _END_SECONDS, root, _LOOK_SECONDS)
    feeding.join()
    first = min(arrived.values())
    return (waits[name] for name, at in arrived.items() if at >= first + _WARMUP_S)


def _feed(folder: Path, arrived: dict[str, float]) -> None:
    """Drops what becomes of a day's flights, one record at a time, and notes when."""
    (lines,) = (content for path, content in files_of_day(_DAYS + 1) if path.endswith(".2-actual.jsonl"))
    records = lines.splitlines(keepends=True)[: round((_WARMUP_S + _FOR_S) / _EVERY_S)]
    begun = SYSTEM_CLOCK.monotonic_ms() / 1000
    for number, record in enumerate(records):
        SYSTEM_CLOCK.sleep(max(0, begun + number * _EVERY_S - SYSTEM_CLOCK.monotonic_ms() / 1000))
        path = folder / f"arrived-{number:05}.jsonl"
        draft = path.with_name(f".{path.name}")
        draft.write_bytes(record)
        arrived[path.name] = SYSTEM_CLOCK.monotonic_ms() / 1000
        draft.rename(path)
    say(f"  {len(records)} records arrived")


def _upper(engine: Engine) -> int:
    """Returns up to when all of the demo's views can be read."""
    rows = engine.catalog.objects()
    views = [row.id for row in rows if row.kind == "materialized view"]
    return min(engine.catalog.collection(id).upper.only for id in views)
