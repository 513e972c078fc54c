"""Plain views are read through their plans: what they share stays theirs, wherever it comes to stand."""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Let, Relation
from mz_dagster.plan.resolver import Item
from mz_dagster.plan.rewriting import nodes_of
from mz_dagster.sql import BoundQuery, Select, bind_query, parse
from tests.sql.test_joins_against_postgres import Tables

VIEWS = {
    "w": "SELECT t.a, u.x AS b FROM t FULL JOIN u ON t.a = u.a",
    "x": "SELECT v.k AS a, v.c FROM v LEFT JOIN t ON v.k = t.b AND v.a < t.n",
    "y": "SELECT w.a, (SELECT count(*) FROM x WHERE x.a = w.b) AS b FROM w",
}
QUERY = """
    SELECT y.a FROM y WHERE EXISTS (
        SELECT 1 FROM v WHERE y.b IN (SELECT x.a FROM x JOIN w ON x.a = w.b WHERE w.a <= y.a)
    )
"""


class Views(Tables):
    """Resolves plain views, too."""

    def __init__(self) -> None:
        self.views: dict[str, Item] = {}
        for name, text in VIEWS.items():
            found = bound(text, self)
            self.views[name] = Item(GlobalId(f"u_{name}"), name, "view", found.relation_type, "demo", found.relation)

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        view = self.views.get(name[-1])
        return super().resolve(name) if view is None else replace(view)


def bound(text: str, views: Views) -> BoundQuery:
    (select,) = parse(text)
    assert isinstance(select, Select)
    return bind_query(select.query, views)


def test_no_two_statements_bind_what_they_share_by_one_id() -> None:
    """Each statement numbers its own; a row of one view that asks another once came to read that one's subplans."""
    shared: dict[GlobalId, Relation] = {}
    for one in nodes_of(bound(QUERY, Views()).relation):
        if isinstance(one, Let):
            assert shared.setdefault(one.id, one.value) == one.value, one.id
    assert len(shared) > len(VIEWS)


def test_a_view_stays_one_plan_however_many_read_it() -> None:
    views = Views()
    first, second = (bound(f"SELECT a FROM {name}", views).relation for name in ("y", "y"))
    lets = [{id(one) for one in nodes_of(plan) if isinstance(one, Let)} for plan in (first, second)]
    assert lets[0] == lets[1] != set()
