"""Dagster: a project's timelines as assets, ticks as partitions, sensors that push the frontiers.

Owns everything that imports Dagster. The invariant: a partition is materialized exactly when its time is readable, so
what the UI shows is what a query would find; and Dagster's storage is never asked what is true, only the catalog is.
Losing the whole Dagster instance loses history, not data.

- `assets.py`: `mz_assets`, the decorator, and `build_mz_asset_specs`.
- `translator.py`: `MzDagsterTranslator`, how an object looks as an asset.
- `resource.py`: `MzResource`, what ops and sensors use; the op's body.
- `ticks.py`: ticks and partition keys.
- `sensors.py`: the frontier sensor.
- `drive.py`: sensors and runs in one process, without the daemon.

It plans nothing, steps nothing and stores nothing itself; that is the adapter's engine.
"""

from mz_dagster.orchestration.assets import build_mz_asset_specs, mz_assets
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.sensors import build_frontier_sensor
from mz_dagster.orchestration.ticks import partition_key, partitions_of, tick_of
from mz_dagster.orchestration.translator import MzDagsterTranslator

__all__ = [
    "MzDagsterTranslator",
    "MzResource",
    "build_frontier_sensor",
    "build_mz_asset_specs",
    "mz_assets",
    "partition_key",
    "partitions_of",
    "tick_of",
]
