-- What left each airport of New York, day by day: departures, different planes, the best and the worst delay.
--
-- Three kinds of aggregates in one GROUP BY. When the latest flight of a day is corrected, the next latest is found
-- without reading the day again.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE MATERIALIZED VIEW airport_traffic AS
SELECT
    origin AS airport,
    sched_dep::date AS day,
    count(*) AS departures,
    count(DISTINCT tailnum) AS planes,
    min(dep_delay) AS least_delay,
    max(dep_delay) AS greatest_delay
FROM flights
WHERE dep_time IS NOT NULL
GROUP BY origin, sched_dep::date;
