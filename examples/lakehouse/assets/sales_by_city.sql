-- What each city has ordered, and what of it is still to be shipped.
--
-- @group lakehouse
-- @check unique(city), blocking
-- @check expression(to_ship <= orders)
CREATE MATERIALIZED VIEW sales_by_city AS
SELECT
    c.city,
    count(*) AS orders,
    count(*) FILTER (WHERE o.status = 'placed') AS to_ship,
    sum(o.amount)::numeric(14, 2) AS revenue
FROM orders AS o
JOIN customers AS c ON c.customer_id = o.customer_id
GROUP BY c.city;

-- The same as a plain Delta table, for whoever reads Delta: each tick that changes it is one commit.
--
-- @group lakehouse
CREATE SINK published_sales FROM sales_by_city
INTO DELTA (URI 'lake/sales_by_city') KEY (city) ENVELOPE UPSERT;
