-- How late each carrier left and arrived, month by month.
--
-- Counts and sums are kept per group: a step reads the groups that changed, not their flights.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE MATERIALIZED VIEW carrier_delays AS
SELECT
    carrier,
    date_trunc('month', sched_dep)::date AS month,
    count(*) AS departures,
    count(*) FILTER (WHERE dep_delay > 15) AS late_departures,
    sum(dep_delay) AS dep_delay_minutes,
    avg(dep_delay) AS avg_dep_delay,
    avg(arr_delay) AS avg_arr_delay -- of the flights that have arrived; NULL as long as none has
FROM departures
GROUP BY carrier, date_trunc('month', sched_dep)::date;

COMMENT ON COLUMN carrier_delays.late_departures IS 'those more than a quarter of an hour late';
