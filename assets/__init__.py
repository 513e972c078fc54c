"""The demo project's assets: the SQL files of this folder, on the timeline of the feed's own clock.

Each `.sql` file holds one or more definitions. Sources, materialized views and indexes become assets, and
their partitions are the feed's ticks; a plain view is looked through.
"""

from collections.abc import Iterator

import dagster as dg

from mz_dagster import (
    MzResource,
    StepResult,
    build_compaction_job,
    build_continuous_job,
    build_mz_asset_checks,
    mz_assets,
    step_selection,
)
from resources import PROJECT


@mz_assets(project=PROJECT)
def nycflights(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
    """Steps the whole graph to the run's tick."""
    yield from mz.step(context)


#: One run at a time, all assets in one op: no need for a process of its own per step.
step_job = dg.define_asset_job(
    "step",
    selection=step_selection(nycflights),
    executor_def=dg.in_process_executor,
    description="Advances every collection to the selected ticks.",
)

#: Merges batches and forgets history that retention allows to.
compaction_job = build_compaction_job(PROJECT)

#: Drives tick after tick in one long run; started by hand, it takes the place of the sensor's runs.
continuous_job = build_continuous_job(PROJECT)

ASSETS = [nycflights]
CHECKS = [build_mz_asset_checks(PROJECT)]
JOBS = [step_job, compaction_job, continuous_job]
