-- Flights that are to leave within the next two hours, as the feed's clock goes on: to the millisecond, also between
-- two ticks.
--
-- mz_now() is the time at which the view is read. A row appears and disappears by itself, without new data; what is
-- over is not kept.
--
-- @group views
-- @owner team:flights
-- @tag domain=operations
CREATE MATERIALIZED VIEW flights_due AS
SELECT carrier, flight, origin, dest, sched_dep
FROM flights
WHERE mz_now() >= extract(epoch FROM sched_dep) * 1000 - 7200000
  AND mz_now() < extract(epoch FROM sched_dep) * 1000;
