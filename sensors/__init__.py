"""What runs by itself: the frontier sensor pushes `upper`, the retention sensor `since`, a schedule compacts.

Beside them a feed plays the airlines' system. A real project has no feed: its files come from elsewhere.
"""

import dagster as dg

from assets import compaction_job, step_job
from mz_dagster import build_compaction_schedule, build_frontier_sensor, build_retention_sensor
from resources import PROJECT
from sensors.feed import Feed


@dg.sensor(
    name="feed",
    minimum_interval_seconds=20,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Drops the next day of 2013 into the landing folder, as an airline's system would.",
)
def feed_sensor() -> dg.SkipReason:
    """Drops the next day; requests no run, since the frontier sensor does when it sees the files."""
    drop = Feed(PROJECT.root / "landing").advance()
    return dg.SkipReason(f"dropped {len(drop.files)} files; the feed's clock stands at {drop.clock_ms}")


SENSORS = [feed_sensor, build_frontier_sensor(PROJECT, step_job), build_retention_sensor(PROJECT)]
SCHEDULES = [build_compaction_schedule(PROJECT, compaction_job)]
