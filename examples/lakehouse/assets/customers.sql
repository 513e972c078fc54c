-- Who buys: CSV files. A row replaces the earlier row of its customer.
--
-- @group lakehouse
CREATE SOURCE customers (
    customer_id integer NOT NULL,
    name        text    NOT NULL,
    city        text    NOT NULL,
    PRIMARY KEY (customer_id)
)
FROM FILES (FOLDER 'landing/customers', PATTERN '*.csv')
FORMAT CSV
ENVELOPE UPSERT;
