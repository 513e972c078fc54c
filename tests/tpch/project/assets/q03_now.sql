-- TPC-H query 3 with the clock in the place of its dates: the unshipped orders of highest value, at any time.
CREATE MATERIALIZED VIEW q03_now AS
select
    l_orderkey,
    sum(l_extendedprice * (1 - l_discount)) as revenue,
    o_orderdate,
    o_shippriority
from
    customer,
    orders,
    lineitem
where
    c_mktsegment = 'BUILDING'
    and c_custkey = o_custkey
    and l_orderkey = o_orderkey
    and o_orderdate < mz_now()
    and l_shipdate > mz_now()
group by
    l_orderkey,
    o_orderdate,
    o_shippriority
order by
    revenue desc,
    o_orderdate
limit 10;
