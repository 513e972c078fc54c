"""Views of jsonb: functions that return rows; groups of equal values, and an order."""

from tests.adapter.stories import Story

JSONB = Story(
    table="CREATE TABLE d (id int, j jsonb)",
    views={
        "parts": "SELECT id, n, e -> 'a' AS a, j ->> 'name' AS name"
        " FROM d, jsonb_array_elements(j -> 'parts') WITH ORDINALITY AS p (e, n) WHERE e <> '7'",
        "sizes": "SELECT jsonb_typeof(j -> 'size') AS size, count(*) AS n,"
        " jsonb_agg(j -> 'name' ORDER BY j -> 'name' DESC, id) AS names,"
        " jsonb_object_agg(id, j #> '{size,0}') AS o FROM d GROUP BY j -> 'size'",
    },
    writes=(
        """INSERT INTO d VALUES (1, '{"name": "x", "size": [1.0, 2], "parts": [{"a": 1}, {"b": null, "a": "é"}]}'),
        (2, '{"size": [1, 2.00], "name": "y", "parts": []}'), (3, '{"name": null, "size": null}'), (4, NULL)""",
        """INSERT INTO d VALUES (5, '{"size": [10], "parts": [{"a": [true, {}]}, 7]}'), (6, '{"size": [1.000, 2]}')""",
        """UPDATE d SET j = jsonb_set(j, '{size}', '[10.0]') || '{"name": "z"}' WHERE j ? 'name' AND id < 3""",
    ),
)

#: Texts as they were written, with their blanks and repeated keys.
JSON = Story(
    table="CREATE TABLE e (id int, j json)",
    views={
        "json_found": "SELECT id, j, j -> 'a' AS a, j ->> 'name' AS name, json_typeof(j #> '{size,0}') AS first FROM e",
        "pieces": "SELECT id, n, value FROM e, json_array_elements(j -> 'parts') WITH ORDINALITY AS p (value, n)",
        "whole": "SELECT j ->> 'name' AS name, json_agg(j ORDER BY id, j::text) AS js,"
        " json_object_agg(id, j -> 'size' ORDER BY id, j::text) AS o,"
        " json_agg(json_build_object('id', id, 'e', e) ORDER BY id, j::text) AS es FROM e GROUP BY 1",
    },
    writes=(
        """INSERT INTO e VALUES (1, '{"name": "x", "size":  [1.0, 2], "parts": [{"a": 1}, {"b": null , "a":2}]}'),
        (2, '{"size": [1,2.00],"name":"x", "size" : 1e3, "parts": []}'), (3, '{"name": null}'), (4, NULL)""",
        """INSERT INTO e VALUES (5, '{"name":"y" }'), (2, '{"name":"x"}'), (2, '{"name":"x"}')""",
        """UPDATE e SET j = json_build_object('name', j -> 'name', 'a', j) WHERE id < 3""",
        """DELETE FROM e WHERE j -> 'a' ->> 'name' = 'x' AND id = 1""",
    ),
)
