-- Flights with the names that their codes stand for.
--
-- A plain view: nothing is stored, whoever reads it plans it as part of their own query.
CREATE VIEW flights_with_airports AS
SELECT
    f.carrier,
    f.flight,
    f.origin,
    f.sched_dep,
    f.dest,
    f.tailnum,
    f.distance,
    f.dep_time,
    f.dep_delay,
    f.arr_time,
    f.arr_delay,
    f.air_time,
    a.name  AS airline,
    o.name  AS origin_airport,
    d.name  AS dest_airport,
    d.tzone AS dest_tzone
FROM flights f
JOIN airlines a ON a.carrier = f.carrier
JOIN airports o ON o.faa = f.origin
JOIN airports d ON d.faa = f.dest;
