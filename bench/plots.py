"""Plots of what `results.json` holds, for the README: `python -m bench.plots`.

Needs matplotlib, which nothing else does: it is imported when the first plot is drawn.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.harness import REPOSITORY, Results

_BLUE, _GREY = "#2f6fb0", "#9aa5b1"
_SCALES = ("sf1", "sf10")


def main() -> int:
    """Draws each plot whose results are there, and returns 0."""
    results = Results(REPOSITORY / "bench" / "results.json").load()
    docs = REPOSITORY / "docs"
    for scale in _SCALES:
        if measured := results.get("tpch", {}).get(scale):
            _views(measured, scale, docs / f"bench_{scale}.png")
    for scale, measured in results.get("growth", {}).items():
        _growth(measured, docs / f"bench_growth_{scale}.png")
    return 0


def _views(measured: dict[str, Any], scale: str, target: Path) -> None:
    """Draws the full refresh over the step, for each view alone and for all together."""
    names = ["together", *(f"q{n}" for n in range(1, 23))]
    found = [measured["together"], *(measured["views"][name] for name in names[1:])]
    ratios = [one["ratio"] for one in found]
    spreads = [one["ratio_spread"] for one in found]
    errors = [[ratio - low for ratio, (low, _) in zip(ratios, spreads, strict=True)],
              [high - ratio for ratio, (_, high) in zip(ratios, spreads, strict=True)]]  # fmt: skip
    figure = _figure(10, 3.6)
    axes = figure.subplots()
    colors = [_BLUE, *[_GREY] * 22]
    axes.bar(names, ratios, yerr=errors, color=colors, ecolor="#444444", error_kw={"linewidth": 0.8})
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylabel("full refresh / step")
    axes.set_title(f"TPC-H, scale factor {scale[2:]}: 0.1 % of the orders come, 0.1 % go")
    axes.tick_params(axis="x", rotation=60)
    _save(figure, target)


def _growth(measured: dict[str, Any], target: Path) -> None:
    """Draws the time of a step of one size over the size of the data."""
    figure = _figure(5, 3.6)
    axes = figure.subplots()
    scales: tuple[float, ...] = ()
    for kind, color in (("clustered", _BLUE), ("random", _GREY)):
        points = sorted(
            (float(name[2:].replace("_", ".")), one["seconds"], one["spread"])
            for name, one in measured[kind].items()
            if name.startswith("sf")
        )
        scales, seconds, spreads = zip(*points, strict=True)
        errors = [[middle - low for middle, (low, _) in zip(seconds, spreads, strict=True)],
                  [high - middle for middle, (_, high) in zip(seconds, spreads, strict=True)]]  # fmt: skip
        label = f"{kind} deletes: data to the {measured[kind]['exponent']:.2f}"
        axes.errorbar(scales, seconds, yerr=errors, color=color, marker="o", label=label)
    axes.set_xscale("log")
    axes.set_xticks(scales, labels=[f"{scale:g}" for scale in scales], minor=False)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("scale factor")
    axes.set_ylabel("seconds a step")
    axes.set_title("The same change in more data")
    axes.legend()
    _save(figure, target)


def _figure(width: float, height: float) -> Any:
    return import_module("matplotlib.figure").Figure(figsize=(width, height))


def _save(figure: Any, target: Path) -> None:
    figure.tight_layout()
    figure.savefig(target, dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    sys.exit(main())
