-- Planes that left more than a quarter of an hour late twice in a row.
--
-- @group views
-- @owner team:flights
-- @tag domain=fleet
CREATE MATERIALIZED VIEW repeat_delays AS
SELECT tailnum, carrier, flight, origin, sched_dep, dep_delay, previous_origin, previous_delay
FROM (
    SELECT
        tailnum,
        carrier,
        flight,
        origin,
        sched_dep,
        dep_delay,
        lag(origin) OVER plane AS previous_origin,
        lag(dep_delay) OVER plane AS previous_delay
    FROM flights
    WHERE dep_time IS NOT NULL AND tailnum IS NOT NULL
    WINDOW plane AS (PARTITION BY tailnum ORDER BY sched_dep, carrier, flight, origin)
) departures_of_plane
WHERE dep_delay > 15 AND previous_delay > 15;
