"""Views of an enumeration, whose values have the order in which they were declared."""

from tests.adapter.stories import Story

ENUMS = Story(
    table="CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy', 'blue');"
    "CREATE TABLE feelings (id integer NOT NULL, g integer, m mood, n mood, ms mood[], t text)",
    views={
        "feelings_by_mood": "SELECT m, count(*) AS n, min(n) AS lo, max(n) AS hi, count(DISTINCT n) AS k"
        " FROM feelings GROUP BY m",
        "feelings_in_all": "SELECT min(m) AS lo, max(m) AS hi, array_agg(m ORDER BY m DESC, id)::text AS a,"
        " string_agg(m::text, ',' ORDER BY m, id) AS s, mode() WITHIN GROUP (ORDER BY m) AS o FROM feelings",
        "feelings_joined": "SELECT x.id AS x, y.id AS y FROM feelings x JOIN feelings y ON x.m = y.n",
        "feelings_apart": "SELECT x.id AS x, y.id AS y FROM feelings x JOIN feelings y ON x.m < y.n AND x.g = y.g",
        "feelings_computed": "SELECT id, m::text AS t, m > 'ok' AS a, m IN ('ok', 'blue') AS b, greatest(m, n) AS c,"
        " coalesce(n, 'sad') AS d, m IS DISTINCT FROM n AS e, m = ANY (ms) AS f, ms[1] AS h, to_jsonb(m) AS j,"
        " nullif(m, n) AS k, m || t AS l, CASE WHEN m <> 'sad' THEN n END AS o FROM feelings",
        "feelings_read": "SELECT id, t::mood AS m, (ARRAY[t, NULL]::text[])::mood[]::text AS ms,"
        " ARRAY[[t]]::mood[]::text AS mm FROM feelings WHERE t <> 'none'",
        "feelings_first": "SELECT DISTINCT ON (g) g, m, id FROM feelings ORDER BY g, m DESC NULLS LAST, id",
        "feelings_ranked": "SELECT id, rank() OVER (PARTITION BY g ORDER BY m) AS r, lag(m) OVER (ORDER BY m, id) AS l"
        " FROM feelings",
        "feelings_united": "SELECT m FROM feelings UNION SELECT n FROM feelings",
        "feelings_below": "SELECT id FROM feelings WHERE m < (SELECT max(n) FROM feelings)",
    },
    writes=(
        "INSERT INTO feelings VALUES (1, 1, 'ok', 'sad', '{ok,sad}', 'blue'), (2, 1, 'sad', 'blue', '{}', 'none'),"
        " (3, 2, 'very happy', NULL, '{NULL,blue}', 'ok'), (4, 2, NULL, 'ok', NULL, 'very happy')",
        "INSERT INTO feelings VALUES (5, 1, 'blue', 'ok', ARRAY['very happy']::mood[], 'sad'),"
        " (6, 2, 'blue', 'blue', enum_range(NULL::mood), 'sad')",
        "UPDATE feelings SET m = 'sad', n = m WHERE m >= 'very happy'",
        "DELETE FROM feelings WHERE n = 'blue' OR m IS NULL",
    ),
    asked=(
        "SELECT id, m, n, ms::text FROM feelings ORDER BY m DESC NULLS LAST, n, id",
        "SELECT unnest(enum_range('ok'::mood, NULL)) ORDER BY 1 DESC",
    ),
)
