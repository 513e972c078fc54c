-- Carrier codes and names, from CSV files with a header row.
--
-- @group sources
-- @owner team:flights
-- @tag domain=reference
CREATE SOURCE airlines (
    carrier text NOT NULL,
    name    text NOT NULL,
    PRIMARY KEY (carrier)
)
IN TIMELINE feed
FROM FILES (FOLDER 'landing/airlines', PATTERN '*.csv')
FORMAT CSV
ENVELOPE UPSERT;
