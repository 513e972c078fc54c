"""Growth: the same absolute change at several sizes of the data; goal: less than its 0.2th power with clustered keys.

The exponent is the slope of a line through the points (log scale, log seconds).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace

from bench.harness import Bench, Timing, table
from bench.tpch.data import Kind
from bench.tpch.project import opened
from bench.tpch.steps import together

#: The sizes, as parts of the run's scale factor.
_PARTS = (0.1, 0.3, 1.0)
_KINDS: tuple[Kind, ...] = ("clustered", "random")
#: 0.1 % of the orders at scale factor 1.
_ORDERS_AT_1 = 1500


def run(bench: Bench) -> None:
    """Measures steps of all views at each size, prints and records."""
    change = max(1, round(_ORDERS_AT_1 * bench.scale * _PARTS[0]))
    found: dict[Kind, dict[float, Timing]] = {kind: {} for kind in _KINDS}
    for part in _PARTS:
        scale = round(bench.scale * part, 6)
        with opened(replace(bench, scale=scale), orders_per_round=change) as project:
            for kind in _KINDS:
                found[kind][scale] = together(project, kind, bench.repetitions).step
    rows: list[tuple[str, object, str]] = []
    for kind, timings in found.items():
        power = exponent({scale: one.median for scale, one in timings.items()})
        bench.results.record(
            f"growth.{bench.scale_key}.{kind}",
            {"exponent": power} | {f"sf{scale:g}".replace(".", "_"): one for scale, one in timings.items()},
        )
        rows += [(f"{kind}, SF {scale:g}", one, "") for scale, one in timings.items()]
        rows.append((f"{kind}: grows with the data to the", "", f"{power:.2f}"))
    print(table((f"{change} orders come, {change} go", "step", "exponent"), rows))


def exponent(points: Mapping[float, float]) -> float:
    """Returns the power of its argument that a function grows with: the least squares' slope of the logarithms.

    Example:
        >>> round(exponent({1: 5.0, 10: 50.0}), 6), exponent({1: 7.0, 3: 7.0, 10: 7.0})
        (1.0, 0.0)
    """
    logs = [(math.log(x), math.log(y)) for x, y in points.items()]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
