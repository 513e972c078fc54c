"""Plans whatever the tests have queries for, and prints a digest of each plan: run under several hash seeds.

python -m tests.plan.planned RANDOM EVERY     RANDOM queries of each generator, besides what is written down: one of
                                              EVERY files of the tests, stories and queries of TPC-DS
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from mz_dagster.adapter.definition import Definable, define, name_of
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.lowering import lower_to_snapshot_plan
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item
from mz_dagster.sql import (
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    Select,
    bind_query,
    parse,
)
from tests.adapter.test_views_against_postgres import STORIES
from tests.plan.queries import QUERIES, TIMED, VIEWS
from tests.plan.random_plans import relations
from tests.sql import join_queries, random_queries
from tests.sql.against_postgres import tables
from tests.sql.project import Project
from tests.sql.test_joins_against_postgres import TABLES as JOINED
from tests.tpcds import texts

ROOT = Path(__file__).resolve().parents[2]
CREATE = CreateIndex | CreateMaterializedView | CreateSource | CreateTable | CreateView


class World:
    """Resolves what was created in it, as sessions do, and remembers the digests of all plans."""

    def __init__(self, name: str, digests: dict[str, str], items: dict[str, Item] | None = None) -> None:
        self.name, self.digests = name, digests
        self.items = {} if items is None else items

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.items.get(name[-1])

    def names(self) -> tuple[str, ...]:
        return tuple(self.items)

    def run(self, text: str) -> None:
        """Creates what a text creates, and plans what it asks for; what is refused is told by its refusal."""
        try:
            for statement in parse(text):
                if isinstance(statement, CREATE):
                    self._create(statement)
                elif isinstance(statement, Select):
                    bound = bind_query(statement.query, self, params=[None] * statement.parameters)
                    relation = optimize(bound.relation)
                    self._tell(text, [explain_logical(bound.relation), explain_logical(relation)])
                    self._tell(text, [repr(relation), repr(lower_to_snapshot_plan(relation))])
                    names = relation.relation_type.names
                    self._tell(text, [repr(lower_to_maintained_plan(relation, names))])
        except Error as error:
            self._tell(text, [repr(error), str(error), str(error.hint)])

    def _create(self, statement: Definable) -> None:
        made = define(statement, self, default_timeline="demo", indexed=True)
        identity = GlobalId(f"u{len(self.items) + 1}")
        self.items[name_of(statement)] = made.item(identity)
        if made.plan is not None:
            self._tell(statement.text, [repr(made.relation_type), repr(made.plan), explain_physical(made.plan)])

    def _tell(self, text: str, parts: list[str]) -> None:
        key = f"{self.name}: {' '.join(text.split())}"
        before = self.digests.get(key, "")
        self.digests[key] = hashlib.sha256("\0".join([before, *parts]).encode()).hexdigest()[:16]


def written(every: int) -> Iterator[tuple[str, list[str]]]:
    """Yields the statements in one of so many files of the tests, in their order; if it is each, the demo's, too."""
    paths = [path for path in sorted((ROOT / "tests").rglob("*.py")) if "CREATE " in path.read_text(encoding="utf-8")]
    for path in paths[::every]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [
            (node.lineno, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        ]
        statements = [text for _, text in sorted(texts) if text.lstrip().upper().startswith(("CREATE ", "SELECT "))]
        if any(text.lstrip().upper().startswith("CREATE ") for text in statements):
            yield path.relative_to(ROOT).as_posix(), statements
    for folder in ("assets", "tests/tpch/project/assets") if every == 1 else ():
        paths = sorted((ROOT / folder).rglob("*.sql"), key=lambda path: ("source" not in path.name, path.as_posix()))
        yield folder, [path.read_text(encoding="utf-8") for path in paths]


def all_digests(wanted: int, every: int) -> dict[str, str]:
    """Returns the digest of each plan, by where its query is from and its text."""
    digests: dict[str, str] = {}
    for name, statements in written(every):
        world = World(name, digests)
        for text in statements:
            world.run(text)
    for number, story in islice(enumerate(STORIES), 0, None, every):
        world = World(f"story {number}", digests)
        for text in (story.table, *(f"CREATE MATERIALIZED VIEW {n} AS {q}" for n, q in story.views.items())):
            world.run(text)
    project = Project()
    for view, query in VIEWS.items():
        project.add_view(view, query)
    world = World("golden", digests, project.items)
    for text in (QUERIES | TIMED).values():
        world.run(text)
    world = World("tpcds", digests)
    for text in (*texts.tables().values(), *islice(texts.queries().values(), 0, None, every)):
        world.run(text)
    chance = random_queries.Queries(random.Random(1))
    joined = join_queries.queries(1, wanted)
    own = {name: of for name, (of, _) in tables(1).items()}
    asked = [(own, chance.query()) for _ in range(wanted)]
    asked += [(JOINED, query) for query, _ in random.Random(1).sample(joined, wanted)]
    for schema, text in asked:
        items = {name: Item(GlobalId(f"u_{name}"), name, "table", of, "demo") for name, of in schema.items()}
        World("random", digests, items).run(text)
    for number, relation in enumerate(random_relations(wanted)):
        plan = optimize(relation)
        parts = [repr(relation), repr(plan), repr(lower_to_maintained_plan(plan, plan.relation_type.names))]
        digests[f"drawn {number}"] = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return digests


def random_relations(wanted: int) -> list[Relation]:
    """Returns plans as the laws of transforms draw them, the same in each process."""
    drawn: list[Relation] = []

    @seed(1)
    @settings(max_examples=wanted, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(relations())
    def draw(relation: Relation) -> None:
        drawn.append(relation)

    draw()
    return drawn


if __name__ == "__main__":
    json.dump(all_digests(*map(int, sys.argv[1:])), sys.stdout)
