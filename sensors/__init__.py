"""The demo project's sensors: the feed that plays the airline system, and the frontier sensor.

A real project has no feed: its files come from elsewhere.
"""

import dagster as dg

from assets import step_job
from mz_dagster import build_frontier_sensor
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


frontier_sensor = build_frontier_sensor(PROJECT, step_job)

SENSORS = [feed_sensor, frontier_sensor]
