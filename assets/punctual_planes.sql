-- Planes that have never left more than a quarter of an hour late, be it that they have never left at all.
--
-- An anti join: a correction of a flight can bring a plane back.
--
-- @group views
-- @owner team:flights
-- @tag domain=fleet
CREATE MATERIALIZED VIEW punctual_planes AS
SELECT p.tailnum, p.manufacturer, p.model
FROM planes p
WHERE NOT EXISTS (
    SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.dep_delay > 15
);
