"""Writes `introspection.md`, the reference of the catalog's own relations: `python -m docs.introspection`.

A test holds that the page is what the relations are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mz_dagster.adapter.introspection import RELATIONS
from mz_dagster.adapter.introspection.relation import IntrospectionRelation

PAGE = Path(__file__).with_name("introspection.md")

_HEAD = """\
# Introspection

What a project and this process do, as relations that any query reads: made from their declarations by
`python -m docs.introspection`. They have Materialize's names where it has such a relation. They say what is there when
they are read, and nothing of any other time: an `AS OF` changes nothing in them, and no view can be defined over them.
Only a statement that names one pays for it; none starts Spark or makes a step. `pg_catalog` and `information_schema`
are [others of the kind](clients/index.md#the-system-catalogs).

What is *of this process* is known to it alone: the clients of one `mz-dagster serve` see each other's sessions, and not
those of a Python program beside it. What processes hold is in the catalog, and seen by all: leases, capabilities,
leaders.

Times of timelines are numbers, as in `AS OF`.

```sql
CREATE TABLE orders (id integer, amount integer);
CREATE MATERIALIZED VIEW shares AS SELECT id, 100 / amount AS share FROM orders;
INSERT INTO orders VALUES (1, 5), (2, 0);
SELECT name, lag FROM mz_internal.mz_oracle_lag ORDER BY name;
SELECT o.name, d.referenced_object_id FROM mz_objects o JOIN mz_object_dependencies d ON d.object_id = o.id;
SELECT name, code, message, count FROM mz_internal.mz_errors;
SELECT c.name, s.operator, s.duration_ms FROM mz_step_operators s JOIN mz_step_collections c USING (step_id, object_id);
```

`SUBSCRIBE` tells what changes in them, also where they are joined with what has a history. Its query is executed again
every second, and what differs is told at the oracle's time at which that was: what is told up to a time is the query's
result then, and what came and went in between is not told.

```text
SUBSCRIBE (SELECT name, lag FROM mz_internal.mz_oracle_lag WHERE lag > 60000);
```
"""


def page() -> str:
    """Returns the text of the page."""
    parts = [_HEAD]
    for schema in ("mz_catalog", "mz_internal"):
        parts.append(f"## {schema}\n")
        for one in RELATIONS:
            if one.schema == schema:
                parts += [f"### {one.name}\n", f"{one.about}\n", *_table(one), ""]
    return "\n".join(parts).rstrip() + "\n"


def _table(one: IntrospectionRelation) -> Iterator[str]:
    yield "| column | type | what it says |"
    yield "|---|---|---|"
    for column, says in zip(one.columns, one.says, strict=True):
        yield f"| `{column.name}` | {column.type}{'' if column.nullable else ', not NULL'} | {says} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
