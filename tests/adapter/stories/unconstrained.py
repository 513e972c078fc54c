"""Views of numerics without a scale: digits, NaN, infinities, equal values of several scales, sums that come and go."""

from tests.adapter.stories import Story

UNCONSTRAINED = Story(
    table="CREATE TABLE amounts (id integer NOT NULL, g integer, a numeric, b numeric, t text, f double precision)",
    views={
        "amounts_by_group": "SELECT g, count(a) AS n, sum(a)::text AS s, avg(a)::text AS m, sum(b)::text AS sb,"
        " min(a) AS lo, max(a) AS hi, stddev(b)::text AS d, var_pop(a)::text AS v, count(DISTINCT a) AS k"
        " FROM amounts GROUP BY g",
        "amounts_in_all": "SELECT sum(a)::text AS s, avg(b)::text AS m, sum(a * b)::text AS p, sum(DISTINCT a) AS u"
        " FROM amounts",
        "amounts_of_each": "SELECT a, count(*) AS n, sum(id) AS s FROM amounts GROUP BY a",
        "amounts_joined": "SELECT x.id AS x, y.id AS y, (x.a + y.b)::text AS s FROM amounts x"
        " JOIN amounts y ON x.a = y.b",
        "amounts_computed": "SELECT id, (a + 1)::text AS p, (a * b)::text AS m,"
        " round(a, g)::text AS r, (a % 7)::text AS e,"
        " (a / nullif(b, 0))::text AS q, scale(a) AS s, trim_scale(b)::text AS t, greatest(a, b, g)::text AS h,"
        " coalesce(b, 0.5)::text AS c, a IS DISTINCT FROM b AS d, to_jsonb(a) AS j, (f::numeric + a)::text AS f,"
        " cast(t AS numeric) < a AS l, a BETWEEN -5 AND 1e30 AS w FROM amounts",
        "amounts_distinct": "SELECT DISTINCT b FROM amounts",
        "amounts_apart": "SELECT a FROM amounts EXCEPT ALL SELECT b FROM amounts",
        "amounts_in_order": "SELECT g, array_agg(a ORDER BY a, id)::text AS s FROM amounts GROUP BY g",
        "amounts_framed": "SELECT id, (sum(a) OVER w)::text AS s, (avg(b) FILTER (WHERE b > 0) OVER w)::text AS m,"
        " trim_scale(min(a) OVER w)::text AS lo, (stddev(b) OVER v)::text AS d, lag(a) OVER (ORDER BY id)::text AS l"
        " FROM amounts WINDOW w AS (PARTITION BY g ORDER BY id), v AS (ORDER BY id ROWS 2 PRECEDING)",
        "amounts_gathered": "SELECT g, array_agg(DISTINCT trim_scale(a) ORDER BY trim_scale(a) DESC)::text AS s,"
        " trim_scale(mode() WITHIN GROUP (ORDER BY a))::text AS m, cardinality(array_agg(DISTINCT b)) AS n"
        " FROM amounts GROUP BY g",
        "amounts_side_by_side": "SELECT id, ARRAY[a, b] = ARRAY[b, 1.000] AS e, ARRAY[a, b] < ARRAY[b, a] AS l,"
        " ARRAY[a] <@ ARRAY[1, 2.5, 'NaN'] AS c, ARRAY[a, b] && ARRAY[1, 7.0] AS o,"
        " array_position(ARRAY[a, b, 1], 1.00) AS p, array_remove(ARRAY[a, b], 1)::text AS r FROM amounts",
        "amounts_first": "SELECT DISTINCT ON (g) g, a::text AS a FROM amounts ORDER BY g, a DESC, id",
        "amounts_among": "SELECT id FROM amounts WHERE a IN (1, 'NaN', 2.5)"
        " OR b = ANY (SELECT a FROM amounts WHERE id < 3)",
    },
    writes=(
        "INSERT INTO amounts VALUES (1, 1, 1.0, 1.00, '1', 0.1), (2, 1, 2.50, 1, '2.5', 1e20),"
        " (3, 2, 123456789012345678901234567890123456789012345.678, -0.5, '-1e-3', -2.5),"
        " (4, 2, NULL, NULL, NULL, NULL),"
        " (5, 3, 'NaN', 7, 'NaN', 3)",
        "INSERT INTO amounts VALUES (6, 1, 1.000, 0.000000000000000000000000000000000000000001, '5', 1e-5),"
        " (7, 2, 'Infinity', '-Infinity', 'inf', 'NaN'), (8, 3, -3.3, 2.50, '4', 0)",
        "DELETE FROM amounts WHERE id IN (5, 7)",
        "UPDATE amounts SET a = -a, b = a / 3 WHERE id IN (3, 6, 8)",
        "INSERT INTO amounts SELECT id + 10, g, round(a * 1.005, 2), b + 1, t, f FROM amounts WHERE id < 4",
        "DELETE FROM amounts WHERE id = 3 OR id = 13",
    ),
    asked=(
        "SELECT id, a::text, b::text FROM amounts ORDER BY a DESC NULLS LAST, b, id",
        "SELECT 12345678901234567890 / 123, 1e40 * 1.5, 3.14159265358979323846264338327950288419716939937510::text,"
        " 2 ^ 200.0, 1 / 3e30",
        "SELECT a::integer, a::double precision, a::numeric(20, 1) FROM amounts WHERE a < 1000 ORDER BY id",
    ),
)
