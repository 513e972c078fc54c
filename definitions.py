"""What Dagster loads: the project's assets, checks, resources, jobs, schedules and sensors."""

import dagster as dg

from assets import ASSETS, CHECKS, JOBS
from resources import RESOURCES
from sensors import SCHEDULES, SENSORS

defs = dg.Definitions(
    assets=ASSETS,
    asset_checks=CHECKS,
    resources=RESOURCES,
    jobs=JOBS,
    schedules=SCHEDULES,
    sensors=SENSORS,
    # A step is one op: no need for a process of its own within the run's.
    executor=dg.in_process_executor,
)
