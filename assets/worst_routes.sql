-- For each airport of New York the three destinations that one arrives at latest, of those with ten arrivals or more.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE MATERIALIZED VIEW worst_routes AS
SELECT o.origin, r.dest, r.arrivals, r.avg_arr_delay
FROM (SELECT DISTINCT origin FROM departures) o,
LATERAL (
    SELECT d.dest, count(d.arr_delay) AS arrivals, avg(d.arr_delay) AS avg_arr_delay
    FROM departures d
    WHERE d.origin = o.origin
    GROUP BY d.dest
    HAVING count(d.arr_delay) >= 10
    ORDER BY avg_arr_delay DESC, d.dest
    LIMIT 3
) r;
