-- What left New York, maintained as the feed goes on: each step does work for what changed, not for all flights.
--
-- Flights that are only scheduled, or were cancelled, are not in it; a correction replaces its row; a new name of an
-- airline or airport reaches every departure that shows it.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
-- @freshness warn 30 min, fail 1 h
CREATE MATERIALIZED VIEW departures AS
SELECT
    carrier,
    flight,
    origin,
    dest,
    sched_dep,
    dep_time,
    dep_delay,
    arr_delay,
    airline,
    origin_airport,
    dest_airport,
    origin || ' - ' || dest AS route,
    CASE
        WHEN dep_delay <= 0 THEN 'on time'
        WHEN dep_delay <= 15 THEN 'slightly late'
        WHEN dep_delay <= 60 THEN 'late'
        ELSE 'very late'
    END AS delay_class,
    -- Minutes made up in the air; NULL as long as the flight has not arrived.
    dep_delay - arr_delay AS gained
FROM flights_with_airports
WHERE dep_time IS NOT NULL;

-- The order in which departures are laid out, so that reads by route open few files.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE INDEX departures_by_route ON departures (origin, dest);

COMMENT ON COLUMN departures.delay_class IS 'on time; slightly late, up to 15 minutes; late, up to an hour; very late';
