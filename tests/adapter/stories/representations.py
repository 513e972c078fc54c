"""Views of equal values that are stored differently: jsonb 1 and 1.0, a month and 30 days, 0 and -0."""

from tests.adapter.stories import Story

_SIDES = "(SELECT {0} AS v FROM stored) a {1} JOIN (SELECT {0} AS w FROM stored) b ON v = w AND v::text < w::text"

REPRESENTATIONS = Story(
    table="CREATE TABLE stored (id integer NOT NULL, j jsonb, i interval, f double precision, r real,"
    " fs double precision[])",
    views={
        "left_of_jsonb": "SELECT v::text, w::text FROM " + _SIDES.format("j", "LEFT"),
        "right_of_intervals": "SELECT v::text, w::text FROM " + _SIDES.format("i", "RIGHT"),
        "full_of_floats": "SELECT v::text, w::text FROM " + _SIDES.format("f", "FULL"),
        "left_of_arrays": "SELECT v::text, w::text FROM " + _SIDES.format("fs", "LEFT"),
        "lateral_of_floats": "SELECT a.r::text, l.t FROM stored a LEFT JOIN LATERAL"
        " (SELECT a.r::text || b.f::text AS t FROM stored b WHERE b.id < a.id AND b.f = a.r) l ON true",
        "correlated": "SELECT id, (SELECT count(*) FROM stored b WHERE b.f::text < a.f::text) AS n,"
        " (SELECT max(b.id || a.j::text || a.i::text || a.f::text || a.r::text || a.fs::text) FROM stored b) AS t"
        " FROM stored a",
        "existing": "SELECT id, r::text FROM stored a"
        " WHERE EXISTS (SELECT 1 FROM stored b WHERE b.f::text < a.f::text AND b.id <> a.id)"
        " AND NOT EXISTS (SELECT 1 FROM stored b WHERE b.r::text > a.r::text AND b.fs::text <> a.fs::text)",
        "among": "SELECT id, f IN (SELECT r FROM stored WHERE id > 2) AS x,"
        " j <> ALL (SELECT b.j FROM stored b WHERE b.i::text < a.i::text) AS y FROM stored a",
        "partitions": "SELECT id, count(*) OVER (PARTITION BY f) AS n, rank() OVER (PARTITION BY r ORDER BY i) AS p,"
        " count(*) OVER (PARTITION BY j) AS m, sum(id) OVER (ORDER BY f) AS s FROM stored",
        "firsts": "SELECT DISTINCT ON (f) id FROM stored ORDER BY f, id DESC",
        "groups_of_zeros": "SELECT count(*) AS n, count(DISTINCT r) AS r, count(DISTINCT fs) AS fs, min(f) = 0 AS lo,"
        " max(f) = 0 AS hi FROM stored GROUP BY f",
        "rows_of_windows": "SELECT f::text, r::text, n FROM"
        " (SELECT f, r, count(*) OVER (PARTITION BY f) AS n FROM stored) s",
        "arrays_of_windows": "SELECT id, fs::text, t::text FROM (SELECT id, fs, lag(fs) OVER (ORDER BY id) AS t,"
        " count(*) OVER (PARTITION BY r) AS n FROM stored) s",
        "arrays_of_firsts": "SELECT id, fs::text FROM (SELECT id, fs FROM stored ORDER BY id LIMIT 9) s",
        "rows_of_firsts": "SELECT f::text, r::text FROM (SELECT f, r FROM stored ORDER BY f LIMIT 9) s",
        "groups_of_arrays": "SELECT count(*) AS n FROM stored GROUP BY fs, r",
        "common": "SELECT count(*) AS n FROM (SELECT f, fs FROM stored INTERSECT ALL SELECT r, fs FROM stored) s",
        "apart": "SELECT count(*) AS n FROM (SELECT f FROM stored EXCEPT ALL SELECT r FROM stored WHERE id > 2) s",
    },
    writes=(
        "INSERT INTO stored VALUES (1, '1', '1 mon', '0', '-0', '{0,1}'), (2, '1.0', '30 days', '-0', '0', '{-0,1}'),"
        " (3, '1.00', '720:00', '0', '0', '{0,1}'), (4, NULL, NULL, NULL, NULL, NULL),"
        " (5, '2', '1 day', 'NaN', '1', '{}')",
        "DELETE FROM stored WHERE id IN (2, 5)",
        "INSERT INTO stored VALUES (6, '[1.0]', '24:00', '-0', '-0', '{-0,1}'),"
        " (7, '[1]', '1 day', '1', '-0', '{NULL}')",
        "UPDATE stored SET f = -f, r = -r, j = '1.0', i = '30 days' WHERE id < 7",
    ),
    asked=(
        *(
            f"SELECT v::text, w::text FROM {_SIDES.format(column, 'LEFT')} ORDER BY 1, 2"
            for column in ("j", "i", "f", "r", "fs")
        ),
        "SELECT id, (SELECT a.f::text), (SELECT count(*) FROM stored b WHERE b.r::text < a.r::text)"
        " FROM stored a ORDER BY id",
    ),
)
