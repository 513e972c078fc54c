"""What was bound and planned is kept between processes: it is what would be made anew, or it is made anew."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from mz_dagster.adapter import (
    Engine,
    Project,
    Session,
    catalog_definitions,
    definition_cache,
    file_indexes,
    kept_views,
    project_files,
)
from mz_dagster.adapter.applying import apply_project
from mz_dagster.adapter.definition import Definable, Definition, define, name_of
from mz_dagster.adapter.definition_cache import DefinitionCache
from mz_dagster.adapter.project_files import load_project
from mz_dagster.adapter.sequence import create
from mz_dagster.budget import Budget, budget_of
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Get, Let, Relation, query_of
from mz_dagster.plan.resolver import Item
from mz_dagster.plan.rewriting import nodes_of, scalars_of
from mz_dagster.scalars.scalar import Subquery, walk
from mz_dagster.scalars.types import INT4, Column, RelationType
from mz_dagster.sql import parse
from tests.plan.queries import QUERIES, VIEWS
from tests.sql.project import Project as Tables
from tests.tpcds import texts

#: TPC-DS's with the most joins, with windows, with grouping sets, and with subqueries of many forms.
_QUERIES = ("q05", "q10", "q14", "q36", "q51", "q64", "q72", "q85")


class World:
    """Resolves what was defined in it, by way of what is kept in a folder."""

    def __init__(self, state: Path, items: dict[str, Item] | None = None, ids: str = "u_") -> None:
        self.kept = DefinitionCache(state, "files")
        self.items = dict(items or {})
        self.ids = ids
        self.made: list[str] = []

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.items.get(name[-1])

    def names(self) -> tuple[str, ...]:
        return tuple(self.items)

    def define(self, text: str) -> Definition:
        (statement,) = parse(text)
        assert isinstance(statement, Definable)
        name = name_of(statement)

        def make(resolver: object) -> Definition:
            self.made.append(name)
            return define(statement, resolver, default_timeline="demo", indexed=True)  # type: ignore[arg-type]

        definition = self.kept.get((text,), self, make)
        self.items[name] = definition.item(GlobalId(self.ids + name))
        return definition


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state of it"
    folder.mkdir(mode=0o700)
    return folder


def created(queries: dict[str, str]) -> list[str]:
    return [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()]


def entries(state: Path) -> list[Path]:
    return sorted((state / "definitions").iterdir())


@pytest.fixture(scope="module")
def worlds() -> list[tuple[dict[str, Item], Sequence[str]]]:
    tables = Tables()
    for view, query in VIEWS.items():
        tables.add_view(view, query)
    named = {f"m{n}": query for n, query in enumerate(QUERIES.values())}
    tpcds = {name: text for name, text in texts.queries().items() if name in _QUERIES}
    return [(dict(tables.items), created(named)), ({}, [*texts.tables().values(), *created(tpcds)])]


def test_what_is_kept_is_what_would_be_made(state: Path, worlds: list[tuple[dict[str, Item], Sequence[str]]]) -> None:
    for items, statements in worlds:
        plain = {name: item for name, item in items.items() if item.expansion is None}
        first, second = World(state, plain), World(state, plain)
        for text in statements:
            try:
                made = first.define(text)
            except Error as error:  # it reads one of the views, or is refused
                with pytest.raises(type(error)):
                    second.define(text)
                continue
            again = second.define(text)
            assert again == made
            assert repr(again) == repr(made)
        kept = first.items.keys() - plain.keys()
        assert len(kept) > 30
        assert not kept & set(second.made)


@pytest.mark.deep
def test_what_was_planned_under_other_ids_is_what_would_be_made(
    state: Path, worlds: list[tuple[dict[str, Item], Sequence[str]]]
) -> None:
    """Also over plain views that share subplans, some of them in subqueries."""
    for items, statements in worlds:
        plain = {name: item for name, item in items.items() if item.expansion is None}
        moved = {name: replace(item, id=GlobalId(f"file:{name}")) for name, item in plain.items()}
        tables = ["t", "u", "v"] if plain else ["store", "item", "reason"]
        shared = [f"CREATE VIEW p{n} AS {_WITH_SHARED.format(name)}" for n, name in enumerate(tables)]
        over = [
            f"CREATE MATERIALIZED VIEW o{n} AS SELECT p{n}.n, (SELECT max(n) FROM p{n - 1}) AS m FROM p{n}, p{n} AS q "
            f"WHERE p{n}.n = q.n AND p{n}.n IN (SELECT n FROM p{n - 1})"
            for n in range(1, len(shared))
        ]
        first, second, fresh = World(state, moved, "file:"), World(state, plain), World(state / "none", plain)
        for text in (*statements, *shared, *over):
            try:
                first.define(text)
            except Error as error:
                for world in (second, fresh):
                    with pytest.raises(type(error)):
                        world.define(text)
                continue
            again, made = second.define(text), fresh.define(text)
            assert again == made
            assert repr(again) == repr(made)
            assert ids_read(again.relation) == ids_read(made.relation)
        kept = first.items.keys() - plain.keys() - set(texts.tables())
        assert {"p0", "p1", "p2", "o1", "o2"} < kept
        assert not kept & set(second.made)


#: A view that shares subplans, of which two may be read by one query.
_WITH_SHARED = (
    "WITH c AS (SELECT count(*) AS n FROM {0}), d AS (SELECT n + 1 AS n FROM c UNION ALL SELECT n FROM c) "
    "SELECT c.n FROM c JOIN d USING (n) UNION ALL SELECT n FROM d"
)


def ids_read(relation: Relation | None) -> list[GlobalId]:
    """Returns the collections and shared subplans that a query reads, with those of its subqueries."""
    nodes = () if relation is None else tuple(nodes_of(relation))
    parts = (part for node in nodes for scalar in scalars_of(node) for part in walk(scalar))
    below = (id for part in parts if isinstance(part, Subquery) for id in ids_read(query_of(part)))
    return [*(node.id for node in nodes if isinstance(node, Get | Let)), *below]


VIEW, OVER, DEEP = (
    "CREATE VIEW v AS SELECT a, b + 1 AS c FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT a, sum(c) AS s FROM v GROUP BY a",
    "CREATE VIEW w AS SELECT v.a, t.b FROM v JOIN t ON v.a = t.a",
)


@pytest.mark.parametrize(
    ("table", "view", "anew"),
    [
        ("CREATE TABLE t (a integer, b integer)", VIEW, []),
        ("CREATE TABLE t (a integer, b bigint)", VIEW, ["t", "v", "m", "w"]),
        ("CREATE TABLE t (a integer, b integer NOT NULL)", VIEW, ["t", "v", "m", "w"]),
        ("CREATE TABLE t (a integer, b integer, d text)", VIEW, ["t", "v", "m", "w"]),
        ("CREATE TABLE t (a integer, b integer)", VIEW.replace("+ 1", "+ 2"), ["v", "m", "w"]),
    ],
)
def test_what_reads_something_else_is_made_anew(state: Path, table: str, view: str, anew: list[str]) -> None:
    """Also where a view in between is what changed, and the one that reads it has the columns it had."""
    before, after, fresh = World(state), World(state), World(state / "none")
    for text in ("CREATE TABLE t (a integer, b integer)", VIEW, OVER, DEEP):
        before.define(text)
    for text in (table, view, OVER, DEEP):
        assert after.define(text) == fresh.define(text)
    assert after.made == anew


def test_what_reads_a_table_whose_columns_lie_elsewhere_is_made_anew(state: Path) -> None:
    """As of a table that was made and altered again after a catalog had been recovered, which has the ids of before."""
    a, b, c = (Column(name, INT4) for name in "abc")
    view = "CREATE MATERIALIZED VIEW m AS SELECT a, c FROM t"
    found = []
    for stored, places in (((a, b, c), (0, 2)), ((a, c, b), (0, 1))):
        item = Item(GlobalId("u1"), "t", "table", RelationType((a, c)), "demo", None, RelationType(stored), places, 1)
        here, fresh = (World(one, {"t": item}) for one in (state, state / "none"))
        found.append(here.define(view))
        assert found[-1] == fresh.define(view)
    assert found[0] != found[1]


def test_other_code_and_other_budgets_plan_for_themselves(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "CREATE TABLE t (a integer, b integer)"
    World(state).define(table)
    with budget_of(Budget(compared_constants=1)):
        other = World(state)
        other.define(table)
    assert other.made == ["t"]
    monkeypatch.setattr(definition_cache, "_planner", lambda: "another release")
    other = World(state)
    other.define(table)
    assert other.made == ["t"]


@pytest.mark.parametrize("layer", ["formalism", "scalars", "functions", "plan", "sql", "adapter"])
def test_code_is_told_from_other_code_that_binds_and_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    code = tmp_path / "mz_dagster"
    for one in ("adapter", layer):
        (code / one).mkdir(parents=True, exist_ok=True)
    changed = code / layer / "changed.py"
    changed.write_text("")
    monkeypatch.setattr(definition_cache, "__file__", str(code / "adapter" / "definition_cache.py"))
    before = definition_cache._planner.__wrapped__()
    changed.write_text("# Otherwise.")
    assert definition_cache._planner.__wrapped__() != before


def test_what_is_damaged_is_made_anew(state: Path) -> None:
    table = "CREATE TABLE t (a integer, b integer)"
    made = World(state).define(table)
    (path,) = entries(state)
    good = path.read_bytes()
    damaged = [b"", good[:10], good[:-1], good + b"x", good[:40] + bytes([good[40] ^ 1]) + good[41:], os.urandom(300)]
    damaged += [good[:n] + bytes([good[n] ^ 255]) + good[n + 1 :] for n in range(0, len(good), 97)]
    for content in damaged:
        path.write_bytes(content)
        world = World(state)
        assert world.define(table) == made
        assert world.made == ["t"]
        assert path.read_bytes() == good
    path.unlink()
    path.mkdir()
    assert World(state).define(table) == made


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("made by a pickle",)


def test_nothing_but_values_is_made_of_a_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if it has the digest of its content."""
    monkeypatch.chdir(state)
    table = "CREATE TABLE t (a integer, b integer)"
    World(state).define(table)
    (path,) = entries(state)
    for value in (Evil(), ((), Evil()), ((), os.system)):
        body = pickle.dumps(value)
        path.write_bytes(definition_cache._HEAD + hashlib.sha256(body).digest() + body)
        world = World(state)
        world.define(table)
        assert world.made == ["t"]
    assert not (state / "made by a pickle").exists()


def test_nothing_is_read_from_a_folder_that_others_may_write(state: Path) -> None:
    table = "CREATE TABLE t (a integer, b integer)"
    World(state).define(table)
    (state / "definitions").chmod(0o770)
    opened = World(state)
    opened.define(table)
    assert opened.made == ["t"]
    state.chmod(0o755)
    assert World(state).kept._folder is None
    assert World(state / "missing").kept._folder is None


def test_what_nobody_uses_goes(state: Path) -> None:
    for name in ("old", "used", "young"):
        World(state).define(f"CREATE TABLE {name} (a integer)")
    for path in entries(state):
        if b"CREATE TABLE young" not in path.read_bytes():
            os.utime(path, (0, path.stat().st_mtime - 40 * 86_400))
    used = World(state)
    used.define("CREATE TABLE used (a integer)")
    assert used.made == []
    World(state).define("CREATE TABLE another (a integer)")
    left = b"".join(path.read_bytes() for path in entries(state))
    assert [name in left for name in (b"TABLE old", b"TABLE used", b"TABLE young")] == [False, True, True]


def note_defined(monkeypatch: pytest.MonkeyPatch, noted: list[str], *modules: ModuleType) -> None:
    """Has the names of what modules define noted, until the end of the test."""

    def counted(statement: Definable, *args: object, **others: object) -> Definition:
        noted.append(name_of(statement))
        return define(statement, *args, **others)  # type: ignore[arg-type]

    for module in modules:
        monkeypatch.setattr(module, "define", counted)


def test_a_process_plans_nothing_that_another_has_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the project's files nor for the graph; and what changed, with what reads it, only."""
    made: list[str] = []
    note_defined(monkeypatch, made, catalog_definitions, project_files)
    (tmp_path / "assets").mkdir()
    for name, text in (
        ("t", "-- Called as a shared subplan may be.\nCREATE TABLE l1 (a integer, b integer);"),
        ("p", "-- Few.\nCREATE VIEW p AS SELECT a, b FROM l1 WHERE b > 1;"),
        ("odd", 'CREATE TABLE "x:file:p" (o integer); CREATE MATERIALIZED VIEW odd AS SELECT * FROM "x:file:p", p;'),
        (
            "twice",
            "CREATE MATERIALIZED VIEW twice AS WITH g AS (SELECT a, sum(b) AS s FROM p GROUP BY a) "
            "SELECT x.a, y.s, l1.b FROM g x, g y, l1 WHERE x.a = y.a + 1 AND l1.a = x.a;",
        ),
        ("s", "CREATE SCHEMA s; CREATE MATERIALIZED VIEW s.v AS SELECT count(*) AS n FROM twice;"),
        ("s2", 'CREATE TABLE s."R 1" (r integer); CREATE VIEW s.few AS SELECT r FROM s."R 1" WHERE r < 9;'),
        ("s3", "CREATE MATERIALIZED VIEW s.over AS SELECT n, r FROM s.v, s.few; CREATE INDEX s_i ON s.few (r);"),
        ("s4", "CREATE SCHEMA s4; CREATE MATERIALIZED VIEW s4.over AS SELECT over.n AS o FROM s.over, p;"),
        ("c", "CREATE CHECK c ON twice AS SELECT a FROM twice WHERE s < 0;"),
        *(
            (f"v{n}", f"CREATE MATERIALIZED VIEW v{n} AS SELECT a, sum(b) + {n} AS s FROM p GROUP BY a;")
            for n in range(5)
        ),
        ("i", "CREATE INDEX i ON p (a);"),
    ):
        (tmp_path / "assets" / f"{name}.sql").write_text(text)
    project = Project.load(tmp_path)
    with Engine(project) as engine:
        engine.apply()
        first = engine.graph("default")
        assert {"l1", "p", "twice", "v", "c", "v0", "i", "few", "s_i"} <= set(made)
        assert Counter(made) == {name: 2 if name == "over" else 1 for name in made}, "each once"
        rows = [row for row in engine.catalog.objects() if row.kind not in ("arrangement", "schema")]
        known = {row.id: engine.definitions.definition_of(row) for row in rows}
    shutil.rmtree(tmp_path / ".mz" / "definitions")
    with Engine(project) as engine:
        for row in rows:
            assert engine.definitions.definition_of(row) == known[row.id], "what it is bound to in the catalog"
        engine.apply()
    made.clear()
    # What reads the index of a plain view is planned with that, too.
    note_defined(monkeypatch, made, kept_views, file_indexes)
    with Engine(project) as engine:
        engine.apply()
        assert engine.graph("default") == first
    load_project(project)
    assert made == []
    (tmp_path / "assets" / "v1.sql").write_text("CREATE MATERIALIZED VIEW v1 AS SELECT a FROM l1;")
    with Engine(project) as engine:
        engine.apply()
        engine.graph("default")
    assert set(made) == {"v1"}


def test_a_process_plans_nothing_that_reads_what_was_altered_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table and a type that were altered in place are other things in the catalog than in their files."""
    made: list[str] = []
    note_defined(monkeypatch, made, catalog_definitions, project_files)
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "kind.sql").write_text("CREATE TYPE kind AS ENUM ('x');")
    (assets / "t.sql").write_text("CREATE TABLE t (a integer, b integer, k kind);")
    (assets / "v.sql").write_text("CREATE VIEW v AS SELECT a, k FROM t WHERE k = 'x'; CREATE INDEX i ON v (a);")
    (assets / "m.sql").write_text("CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM v GROUP BY k;")
    project = Project.load(tmp_path)
    with Engine(project) as engine:
        apply_project(engine)
    (assets / "kind.sql").write_text("CREATE TYPE kind AS ENUM ('x', 'y');")
    (assets / "t.sql").write_text("CREATE TABLE t (a integer, b integer, k kind, d date);")
    with Engine(project) as engine:
        assert len(apply_project(engine).changes) > 1
        altered = engine.graph("default")
    assert {"t", "v", "m"} <= set(made)
    made.clear()
    for _ in range(2):
        with Engine(project) as engine:
            engine.apply()
            assert engine.graph("default") == altered
        load_project(project)
    assert made == []


@pytest.mark.parametrize(
    "session",
    [
        [],
        ["CREATE SCHEMA other", "CREATE TABLE other.t (k int, at timestamptz)", "SET search_path = other, public"],
    ],
    ids=["plain", "path"],
)
def test_what_is_created_is_bound_once_and_as_others_bind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Sequence[str]
) -> None:
    """A view's definition is what CREATE bound; another process, with nothing kept, makes the same of the catalog."""
    bound: list[str] = []
    note_defined(monkeypatch, bound, catalog_definitions, create)
    views = {
        "plain": "SELECT k + 1 AS k, date_trunc('day', at) AS day FROM t WHERE at > '2024-01-01'",
        "grouped": "SELECT day, count(*) AS n FROM plain GROUP BY day",
        "starred": "SELECT * FROM grouped JOIN plain USING (day)",
        "own": "SELECT relname FROM pg_class",
    }
    with Engine(Project.load(tmp_path)) as engine:
        connection = Session(engine)
        connection.execute("CREATE TABLE t (k int, at timestamptz)")
        for sql in session:
            connection.execute(sql)
        connection.execute("CREATE VIEW plain AS " + views["plain"])
        for name in ("grouped", "starred"):
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {views[name]}")
        connection.execute("CREATE INDEX of_plain ON plain (k)")
        connection.execute("SELECT * FROM starred")
        made = [name for name in bound if name in ("plain", "grouped", "starred", "of_plain")]
        assert sorted(made) == ["grouped", "of_plain", "plain", "starred"], "each once"
        rows = [row for row in engine.catalog.objects() if row.kind not in ("arrangement", "schema")]
        here = {row.id: engine.definitions.definition_of(row) for row in rows}
    shutil.rmtree(tmp_path / ".mz" / "definitions")
    with Engine(Project.load(tmp_path)) as engine:
        for row in engine.catalog.objects():
            if row.id in here:
                assert repr(engine.definitions.definition_of(row)) == repr(here[row.id])
                assert engine.definitions.definition_of(row) == here[row.id]


def test_a_process_that_has_read_no_statement_steps_what_is_nested_deeply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition_cache, "_read_last", OrderedDict())
    project, limit = Project.load(tmp_path), sys.getrecursionlimit()
    with Engine(project) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE t (a integer, b integer)")
        sums = "".join(f" + b * {n}" for n in range(600))
        session.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a{sums} AS s FROM t")
        session.execute("INSERT INTO t VALUES (1, 2)")
        time = engine.now("default")
    sys.setrecursionlimit(1_000)  # as it is when a process begins
    try:
        with Engine(project) as engine:
            engine.catalog.apply_write("default", time)
            report = engine.step("default", time)
        assert [one.error for one in report.collections] == [None, None]
    finally:
        sys.setrecursionlimit(limit)
