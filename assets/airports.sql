-- Airports, from CSV files with a header row; an empty field is NULL.
--
-- On its third day the feed adds four airports that flights have been bound for all along: departures of the days
-- before appear in the views then, without a rebuild.
--
-- @group sources
-- @owner team:flights
-- @tag domain=reference
CREATE SOURCE airports (
    faa   text NOT NULL,
    name  text NOT NULL,
    lat   double precision NOT NULL,
    lon   double precision NOT NULL,
    alt   integer, -- feet
    tz    integer, -- hours from UTC
    dst   text,
    tzone text,
    PRIMARY KEY (faa)
)
IN TIMELINE feed
FROM FILES (FOLDER 'landing/airports', PATTERN '*.csv')
FORMAT CSV
ENVELOPE UPSERT;
