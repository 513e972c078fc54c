"""Measuring: repetitions on a warm machine, medians and spreads, results by dotted keys, tables for people.

Ratios are of medians; the spread of a ratio is from the worst pairing of its repetitions to the best.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.storage.spark import (
    SparkConfig,
    close_sessions,
    ensure_server,
    open_session,
    server_status,
    stop_server,
    warm_up,
)

REPOSITORY = Path(__file__).resolve().parents[1]
#: Heap of the server on which both sides of every comparison run.
MEMORY = "8g"

P = ParamSpec("P")
T = TypeVar("T")


def say(line: str) -> None:
    """Prints a line of progress."""
    print(line, file=sys.stderr, flush=True)


def timed(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    """Returns how long a call took, in seconds, and what it returned."""
    start = SYSTEM_CLOCK.monotonic_ms()
    result = action(*args, **kwargs)
    return (SYSTEM_CLOCK.monotonic_ms() - start) / 1000, result


@dataclass(frozen=True)
class Timing:
    """Is the durations of an action's repetitions.

    Attributes:
        seconds: Each of them, in the order measured; at least one.

    Example:
        >>> Timing((1.0, 3.0, 2.0))
        2.00 s (1.00 to 3.00)
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one in the middle."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """The shortest and the longest."""
        return min(self.seconds), max(self.seconds)

    def __repr__(self) -> str:
        low, high = self.spread
        return f"{self.median:.2f} s ({low:.2f} to {high:.2f})"


@dataclass(frozen=True)
class Ratio:
    """Is how many times longer one thing took than another.

    Example:
        >>> Ratio(Timing((8.0, 10.0, 12.0)), Timing((1.0, 2.0, 4.0)))
        5.00 (2.00 to 12.00)
    """

    slower: Timing
    faster: Timing

    @property
    def median(self) -> float:
        """That of the medians."""
        return self.slower.median / self.faster.median

    @property
    def spread(self) -> tuple[float, float]:
        """From the worst pairing to the best."""
        (slow_low, slow_high), (fast_low, fast_high) = self.slower.spread, self.faster.spread
        return slow_low / fast_high, slow_high / fast_low

    def __repr__(self) -> str:
        low, high = self.spread
        return f"{self.median:.2f} ({low:.2f} to {high:.2f})"


def round_name(number: int, warmups: int) -> str:
    """Returns what to call a round, counted from 0, of which the first few are not counted.

    Example:
        >>> [round_name(number, 1) for number in range(3)]
        ['warm-up 1', 'round 1', 'round 2']
    """
    return f"warm-up {number + 1}" if number < warmups else f"round {number - warmups + 1}"


class Results:
    """Is a JSON file of results, objects within objects; each run replaces what it measured and keeps the rest.

    Args:
        path: The file.

    Example:
        >>> folder = tempfile.TemporaryDirectory()
        >>> results = Results(Path(folder.name) / "results.json")
        >>> results.record("tpch.sf1", {"step": Timing((2.0,)), "rows": 3})
        >>> results.record("tpch.sf1.rows", 4)
        >>> Results(results.path).load()["tpch"]["sf1"]
        {'step': {'seconds': 2.0, 'spread': [2.0, 2.0], 'repetitions': 1}, 'rows': 4}
        >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[str, Any]:
        """Returns what the file holds."""
        if not self.path.exists():
            return {}
        found: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return found

    def record(self, key: str, value: Any) -> None:
        """Keeps a value under a dotted key: numbers, texts, timings, ratios, or objects of these.

        A timing is an object, `{"seconds": median, "spread": [...], "repetitions": n}`. A ratio is the number, with its
        spread beside it as `<name>_spread`.
        """
        held = self.load()
        place = held
        *parents, last = key.split(".")
        for name in parents:
            place = place.setdefault(name, {})
        _put(place, last, value)
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(held, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, self.path)


def _put(place: dict[str, Any], name: str, value: Any) -> None:
    match value:
        case Timing():
            place[name] = {
                "seconds": round(value.median, 4),
                "spread": [round(one, 4) for one in value.spread],
                "repetitions": len(value.seconds),
            }
        case Ratio():
            place[name] = round(value.median, 3)
            place[f"{name}_spread"] = [round(one, 3) for one in value.spread]
        case dict():
            held = place.setdefault(name, {})
            for key, one in value.items():
                _put(held, key, one)
        case float():
            place[name] = round(value, 4)
        case _:
            place[name] = value


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns rows as text, in columns.

    Example:
        >>> print(table(("view", "s"), [("q1", 1.25), ("q22", 10.0)]))
        view      s
        q1     1.25
        q22   10.00
    """
    shown = [tuple(head), *(tuple(f"{one:.2f}" if isinstance(one, float) else str(one) for one in row) for row in rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    numeric = [i > 0 for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in shown
    )


@dataclass(frozen=True)
class Bench:
    """Is a run of benchmarks.

    Attributes:
        folder: Where data and hydrated projects are kept from run to run.
        work: A folder of this run alone.
        results: Where to.
        spark: The one server.
        scale: TPC-H's scale factor.
        repetitions: How many rounds are counted.
        rebuild: Whether to make anew what is kept of projects.
        views: Which views `some_views` measures, by their short names; all if it is empty.
    """

    folder: Path
    work: Path
    results: Results
    spark: SparkConfig
    scale: float
    repetitions: int
    rebuild: bool = False
    views: tuple[str, ...] = ()

    def new_path(self, name: str) -> Path:
        """Returns the path of a file or folder of this run that nothing is at."""
        return Path(tempfile.mkdtemp(dir=self.work)) / name

    @property
    def full_repetitions(self) -> int:
        """How many rounds of full refreshes are counted: they are long, and vary little."""
        return min(3, self.repetitions)

    @property
    def warmups(self) -> int:
        """How many rounds go before those that are counted; fewer where each takes long: at scale 10, minutes."""
        return 3 if self.scale < 10 else 1

    @property
    def scale_key(self) -> str:
        """The scale factor as part of a dotted key: `sf1`, `sf0_1`."""
        return f"sf{self.scale:g}".replace(".", "_")


@contextmanager
def running(
    folder: Path,
    results: Path,
    *,
    scale: float,
    repetitions: int,
    rebuild: bool = False,
    spark_state: Path | None = None,
    views: tuple[str, ...] = (),
    warm: bool = True,
) -> Iterator[Bench]:
    """Runs a block with a Spark, `warm` or to be started: one of its own, or the one of `spark_state`, which stays."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder / "work", prefix=f"{os.getpid()}-"))
    # What Spark has done is asked of its UI.
    conf = {"spark.ui.enabled": "true"}
    config = SparkConfig(state_dir=spark_state or work / "spark", driver_memory=MEMORY, conf=conf)
    try:
        if warm:
            say(f"Spark: {'of ' + str(spark_state) if spark_state else 'one for this run'}")
            ensure_server(config)
            warm_up(open_session(config))
        yield Bench(folder, work, Results(results), config, scale, repetitions, rebuild, views)
    finally:
        close_sessions()
        if spark_state is None and server_status(config.state_dir) is not None:
            stop_server(config.state_dir)
        shutil.rmtree(work, ignore_errors=True)
