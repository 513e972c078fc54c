"""Views of strings with a length, uuids and bytes: equal values, an order, a join of two types, and blanks."""

from tests.adapter.stories import Story

STRINGS = Story(
    table="CREATE TABLE s (id int, c char(3), v varchar(5), u uuid, b bytea)",
    views={
        "groups": "SELECT c, count(*) AS n, max(c) AS m, count(DISTINCT b) AS b FROM s GROUP BY c HAVING c <> 'zz '",
        "pairs": "SELECT x.id, y.id AS other, concat('<', x.c, '>', x.v) AS shown FROM s AS x, s AS y WHERE x.c = y.v",
        "replaced": "SELECT id, u, regexp_replace(v, '(a|ab)(c|bcd)?', '[\\1-\\2]', 'g') AS p,"
        " v SIMILAR TO '[a-c]+' AS w,"
        " encode(sha256(b), 'hex') AS h FROM s WHERE c LIKE 'a %' OR v ~ '^a.c'",
    },
    writes=(
        "INSERT INTO s VALUES (1, 'a', 'abc', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff'),"
        " (2, 'a  ', 'a', '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}', ''), (3, 'abc', 'abcd', NULL, '\\x80'),"
        " (4, NULL, NULL, '00000000-0000-0000-0000-000000000000', NULL), (5, 'a\t', 'a\t', NULL, '\\x7f')",
        "INSERT INTO s VALUES (6, 'ab', 'ab   ', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\\x00ff'),"
        " (7, '', '', NULL, '')",
        "DELETE FROM s WHERE c = 'a' OR u = 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'",
    ),
)
