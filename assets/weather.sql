-- Hourly weather at the three airports of New York.
--
-- ENVELOPE NONE: a record is a row and stays one. The source only ever grows, which plans make use of.
--
-- @group sources
-- @owner team:flights
-- @tag domain=weather
CREATE SOURCE weather (
    origin     text        NOT NULL,
    time_hour  timestamptz NOT NULL,
    temp       double precision, -- degrees Fahrenheit
    dewp       double precision,
    humid      double precision, -- percent
    wind_dir   integer,          -- degrees
    wind_speed double precision, -- miles per hour
    wind_gust  double precision,
    precip     numeric(38, 2),   -- inches; exact, unlike a double
    pressure   double precision, -- millibars
    visib      double precision  -- miles
)
IN TIMELINE feed
FROM FILES (FOLDER 'landing/weather', PATTERN '*.jsonl')
FORMAT JSON
ENVELOPE NONE;
