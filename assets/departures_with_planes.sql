-- Departures with what the register knows of the plane, if it knows it.
--
-- An outer join: when the register learns of a plane, the rows that stood there without it are replaced.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE MATERIALIZED VIEW departures_with_planes AS
SELECT
    f.carrier,
    f.flight,
    f.origin,
    f.sched_dep,
    f.dest,
    f.tailnum,
    p.manufacturer,
    p.model,
    p.seats,
    p.year AS built
FROM flights f
LEFT JOIN planes p ON p.tailnum = f.tailnum
WHERE f.dep_time IS NOT NULL;
