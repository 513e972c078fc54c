-- Every flight, as far as it is known: scheduled first, flown or cancelled later, corrected now and then.
--
-- The feed drops JSON lines of the form {"key": {...}, "value": {...}}. With ENVELOPE UPSERT a record replaces the
-- earlier record of its key, and a null value deletes it. A line that cannot be read becomes an error of this
-- source (and of the views that would show it) until a correct line with the same key arrives.
--
-- IN TIMELINE feed: times are the feed's own clock, in milliseconds. The folder is relative to the project.
--
-- @group sources
-- @owner team:flights
-- @tag domain=operations
-- @freshness warn 30 min, fail 1 h
CREATE SOURCE flights (
    carrier   text      NOT NULL,
    flight    integer   NOT NULL,
    origin    text      NOT NULL,
    sched_dep timestamp NOT NULL, -- New York time, as are the other departures
    dest      text      NOT NULL,
    tailnum   text,
    sched_arr timestamp NOT NULL, -- the destination's local time, as are the other arrivals
    distance  integer   NOT NULL, -- miles
    dep_time  timestamp,          -- NULL until the flight has left
    dep_delay integer,            -- minutes; negative when early
    arr_time  timestamp,          -- NULL until the flight has arrived, and for good if it was diverted
    arr_delay integer,
    air_time  integer,            -- minutes
    PRIMARY KEY (carrier, flight, origin, sched_dep)
)
IN TIMELINE feed
FROM FILES (FOLDER 'landing/flights', PATTERN '*.jsonl')
FORMAT JSON
ENVELOPE UPSERT;
