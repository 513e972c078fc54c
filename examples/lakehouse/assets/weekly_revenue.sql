-- A plain view: nothing is kept of it, and it is no asset.
CREATE VIEW daily_revenue AS
SELECT ordered_on AS day, sum(amount)::numeric(14, 2) AS revenue FROM orders GROUP BY ordered_on;

-- What each day has brought, and the seven days that end with it.
--
-- @group lakehouse
-- @check expression(revenue <= week)
CREATE MATERIALIZED VIEW weekly_revenue AS
SELECT
    day,
    revenue,
    (sum(revenue) OVER (ORDER BY day RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW))::numeric(14, 2) AS week
FROM daily_revenue;
