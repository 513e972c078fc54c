-- The register of aircraft, from Parquet files whose columns are found by name.
--
-- A later row of the same tail number replaces the earlier one.
--
-- @group sources
-- @owner team:flights
-- @tag domain=reference
CREATE SOURCE planes (
    tailnum      text NOT NULL,
    year         integer, -- of manufacture
    type         text,
    manufacturer text,
    model        text,
    engines      integer,
    seats        integer,
    speed        integer,
    engine       text,
    PRIMARY KEY (tailnum)
)
IN TIMELINE feed
FROM FILES (FOLDER 'landing/planes', PATTERN '*.parquet')
FORMAT PARQUET
ENVELOPE UPSERT;
