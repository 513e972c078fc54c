-- What the shop has sold: a Delta table that the asset shop_orders writes. Each tick has it as of one version.
--
-- @group lakehouse
-- @check unique(order_id), blocking
-- @check accepted_values(status, 'placed', 'shipped')
-- @check relationships(customer_id, customers.customer_id), severity warn
CREATE SOURCE orders (
    order_id    bigint         NOT NULL,
    customer_id integer        NOT NULL,
    ordered_on  date           NOT NULL,
    amount      numeric(10, 2) NOT NULL, -- euros
    status      text           NOT NULL  -- placed or shipped; a cancelled order is deleted
)
FROM DELTA (URI 'lake/orders');
