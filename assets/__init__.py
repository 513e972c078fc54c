"""The demo project's assets: the SQL files of this folder, on the timeline of the feed's own clock.

Each `.sql` file holds one or more definitions. Sources, materialized views and indexes become assets, and
their partitions are the feed's ticks; a plain view is looked through.
"""

from collections.abc import Iterator

import dagster as dg

from mz_dagster import MzResource, mz_assets
from resources import PROJECT


@mz_assets(project=PROJECT)
def nycflights(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[dg.MaterializeResult[None]]:
    """Steps the whole graph to the run's tick."""
    yield from mz.step(context)


#: One run at a time, all assets in one op: no need for a process of its own per step.
step_job = dg.define_asset_job(
    "step",
    selection=[nycflights],
    executor_def=dg.in_process_executor,
    description="Advances every collection to the selected ticks.",
)
