"""What Dagster loads: the project's assets, resources, sensors and jobs."""

import dagster as dg

from assets import nycflights, step_job
from resources import RESOURCES
from sensors import SENSORS

defs = dg.Definitions(assets=[nycflights], resources=RESOURCES, sensors=SENSORS, jobs=[step_job])
