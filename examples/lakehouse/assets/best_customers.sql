-- Who has spent most in each city; of several the first by name.
--
-- @group lakehouse
-- @check not_null(name)
CREATE MATERIALIZED VIEW best_customers AS
SELECT DISTINCT ON (city) city, name, spent
FROM (
    SELECT c.city, c.name, sum(o.amount)::numeric(14, 2) AS spent
    FROM orders AS o
    JOIN customers AS c ON c.customer_id = o.customer_id
    GROUP BY c.city, c.name
) AS customers_spending
ORDER BY city, spent DESC, name;
