"""A release opens what older ones wrote: it reads the same, goes on, and makes anew what it plans otherwise."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, definition, preview_changes
from mz_dagster.adapter.catalog_definitions import PlannedDifferently
from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock
from mz_dagster.operations.doctor import examine
from mz_dagster.plan import PIPELINE, optimize
from mz_dagster.plan.relation import Relation, Union
from mz_dagster.storage.spark import SparkConfig
from tests.catalog.connected import connected
from tests.upgrade.make import SECOND, START, VIEWS, land, order

ARCHIVE = Path(__file__).parent / "release_0_1_0.tar.xz"
CHANGES = (
    "UPDATE customers SET name = 'Bea' WHERE id = 2",
    "INSERT INTO customers VALUES (9, 'Ike'), (4, 'Dee')",
    "DELETE FROM customers WHERE id = 5",
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A project of release 0.1.0, in a folder of its own."""
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


@contextmanager
def opened(root: Path, second: int = 100, spark: SparkConfig | None = None) -> Iterator[tuple[Connection, ManualClock]]:
    clock = ManualClock(START + second * SECOND)
    engine = Engine(Project.load(root), clock=clock, spark=spark)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        yield connection, clock


def rows(connection: Connection, query: str) -> list[str]:
    return sorted(map(repr, connection.execute(query).fetchall()))


def check_views(connection: Connection, clock: ManualClock) -> None:
    """Compares each view with its query, at one time."""
    clock.advance(SECOND)
    for name, query in VIEWS.items():
        assert rows(connection, f"SELECT * FROM {name}") == rows(connection, query), name


def test_a_project_of_release_0_1_0_is_read_as_that_release_read_it(old: Path) -> None:
    answers = json.loads((old / "answers.json").read_text(encoding="utf-8"))
    assert len(answers) > 5
    with opened(old) as (connection, _):
        for time, expected in answers.items():
            found = {name: rows(connection, f"SELECT * FROM {name} AS OF {time}") for name in expected}
            assert found == expected


def test_a_project_of_release_0_1_0_goes_on(old: Path, spark_config: SparkConfig) -> None:
    with opened(old, spark=spark_config) as (connection, clock):
        before = {row.name for row in connection.engine.catalog.objects()}
        assert before > {*VIEWS, "customers", "orders", "prices", "buyers", "joined_name", "joined_amount", "buyers_id"}
        for statement in CHANGES:
            clock.advance(SECOND)
            connection.execute(statement)
        check_views(connection, clock)
        new = [order(10, 1, "bolt", "101.00", -0.5, clock.now_ms()), order(11, 4, "nut", "1.00", 7.0, clock.now_ms())]
        land(old, "orders", "100.jsonl", new)
        land(old, "prices", "100.jsonl", [{"key": {"item": "nut"}, "value": None}])
        clock.advance(SECOND)
        tick = connection.engine.poll("default").tick
        assert tick is not None
        assert not connection.engine.step("default", tick).failures
        assert len(rows(connection, "SELECT * FROM orders")) == 10
        assert rows(connection, "SELECT item FROM prices") == ["('bolt',)", "('gear',)"]
        check_views(connection, clock)
        assert {row.name for row in connection.engine.catalog.objects()} == before
    found = examine(old, deep=True, clock=clock)
    assert found.healthy, found.findings


# ---- plans of another release

FILES = """
CREATE TABLE t (k int, x int, y int);
CREATE TABLE u (k int, z text);
CREATE MATERIALIZED VIEW m AS
    SELECT t.k, sum(t.x) AS s, max(u.z) AS z FROM t, u WHERE t.k = u.k AND t.y > 0 GROUP BY t.k;
CREATE INDEX m_s ON m (s);
CREATE VIEW v AS SELECT k, s FROM m WHERE s > 1;
CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(s) AS s FROM v;
CREATE MATERIALIZED VIEW plain AS SELECT k, x FROM t WHERE x > 1;
"""
SESSIONS = ("CREATE MATERIALIZED VIEW mine AS SELECT z, count(*) AS n FROM m GROUP BY z", "CREATE INDEX ON mine (n)")
QUERIES = {
    "m": "SELECT t.k, sum(t.x) AS s, max(u.z) AS z FROM t, u WHERE t.k = u.k AND t.y > 0 GROUP BY t.k",
    "n": "SELECT count(*) AS n, sum(s) AS s FROM (SELECT t.k, sum(t.x) AS s FROM t, u WHERE t.k = u.k AND t.y > 0 "
    "GROUP BY t.k) q WHERE s > 1",
    "mine": "SELECT z, count(*) AS n FROM (SELECT t.k, max(u.z) AS z FROM t, u WHERE t.k = u.k AND t.y > 0 "
    "GROUP BY t.k) q GROUP BY z",
    "plain": "SELECT k, x FROM t WHERE x > 1",
}
#: Planned otherwise by the older release, and what reads it.
OTHERWISE = {"m", "n", "mine", "m_s", "v", "mine_n_idx"}


def as_before(relation: Relation) -> Relation:
    """Plans as a release did that knew fewer transforms: its states have columns that nobody needs."""
    return optimize(relation, tuple(one for one in PIPELINE if one.name not in ("demand", "push_predicates")))


def write(connection: Connection, number: int) -> None:
    connection.execute(f"INSERT INTO t VALUES ({number % 3}, {number}, 1), ({number}, 2, -1), ({number}, 2, 2)")
    connection.execute(f"INSERT INTO u VALUES ({number}, '{chr(97 + number)}')")
    if number > 1:
        connection.execute(f"DELETE FROM t WHERE x = {number - 1}")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that an older release made and stepped, of files and in sessions."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(FILES)
    (tmp_path / "mz.toml").write_text('[project]\nname = "old"\n')
    with monkeypatch.context() as patch, opened(tmp_path, 0) as (connection, clock):
        patch.setattr(definition, "optimize", as_before)
        connection.engine.apply()
        for number, statement in enumerate(SESSIONS):
            write(connection, number)
            connection.execute(statement)
        for number in range(2, 5):
            clock.advance(SECOND)
            write(connection, number)
        for name in QUERIES:
            connection.execute(f"SELECT * FROM {name}")
        connection.execute("ALTER MATERIALIZED VIEW mine SET (RETAIN HISTORY = FOR '3 days')")
    shutil.rmtree(tmp_path / ".mz" / "definitions")  # what another release's code kept is not read by this one's
    return tmp_path


def ids(connection: Connection) -> dict[str, str]:
    return {str(row.name): str(row.id) for row in connection.engine.catalog.objects() if row.name is not None}


def check_answers(connection: Connection) -> None:
    for name, query in QUERIES.items():
        assert rows(connection, f"SELECT * FROM {name}") == rows(connection, query), name


def check_goes_on(root: Path, connection: Connection, clock: ManualClock, before: dict[str, str]) -> None:
    after = ids(connection)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == OTHERWISE
    catalog = connection.engine.catalog
    assert catalog.collection(connection.engine.collection_of("mine")).retention_ms == 3 * 86_400_000
    check_answers(connection)
    for number in range(5, 8):
        clock.advance(SECOND)
        write(connection, number)
        check_answers(connection)
    assert not connection.engine.replan()
    found = examine(root, deep=True, clock=clock)
    assert found.healthy, found.findings


def test_the_plan_of_an_upgrade_says_what_is_planned_otherwise(made: Path) -> None:
    plan, _ = preview_changes(Project.load(made))
    assert plan.changed
    assert {one.name: one.reason for one in plan.replanned} == {
        "m": "this release plans its state otherwise",
        "m_s": "it reads m",
        "v": "it reads m",
        "n": "it reads v",
        "mine": "it reads m",
        "mine_n_idx": "it reads mine",
    }


def applied(engine: Engine) -> None:
    plan = engine.apply()
    assert {one.name for one in plan.replanned} == OTHERWISE
    assert not engine.apply().changed


def polled(engine: Engine) -> None:
    tick = engine.poll("default").tick
    assert tick is not None
    assert not engine.step("default", tick).failures


def asked(engine: Engine) -> None:
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("SELECT * FROM mine").fetchall()


@pytest.mark.parametrize("heal", [applied, pytest.param(polled, marks=pytest.mark.deep)])
def test_what_is_planned_otherwise_is_made_anew_with_all_that_reads_it(
    made: Path, heal: Callable[[Engine], None]
) -> None:
    with opened(made) as (connection, clock):
        before = ids(connection)
        write(connection, 4)
        heal(connection.engine)
        check_goes_on(made, connection, clock, before)


def test_a_session_makes_anew_what_it_reads(made: Path) -> None:
    with opened(made) as (connection, clock):
        before = ids(connection)
        write(connection, 4)
        assert rows(connection, "SELECT * FROM mine") == rows(connection, QUERIES["mine"])
        check_goes_on(made, connection, clock, before)


def test_what_is_hydrated_is_read_before_it_is_made_anew(made: Path) -> None:
    with opened(made) as (connection, _):
        before = ids(connection)
        collections = connection.engine.catalog.collections("default")
        as_of = min(row.upper.only for row in collections) - 1
        for name, query in QUERIES.items():
            assert rows(connection, f"SELECT * FROM {name} AS OF {as_of}") == rows(connection, f"{query} AS OF {as_of}")
        assert ids(connection) == before


def test_what_was_planned_with_a_fault_is_made_anew_though_its_states_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT k, x FROM t WHERE x > 1"
    with monkeypatch.context() as patch, opened(tmp_path, 0) as (connection, _):
        patch.setattr(definition, "optimize", lambda relation: optimize(Union((relation, relation))))
        connection.execute("CREATE TABLE t (k int, x int)")
        connection.execute(f"CREATE MATERIALIZED VIEW plain AS {query}")
        connection.execute("INSERT INTO t VALUES (1, 2), (2, 3)")
        assert len(rows(connection, "SELECT * FROM plain")) == 4
    shutil.rmtree(tmp_path / ".mz" / "definitions")
    with opened(tmp_path) as (connection, clock):
        clock.advance(SECOND)
        connection.execute("DELETE FROM t WHERE k = 1")
        assert rows(connection, "SELECT * FROM plain") == rows(connection, query) == ["(2, 3)"]
        assert not connection.engine.replan()


def test_a_view_over_what_is_planned_otherwise_is_created(made: Path) -> None:
    with opened(made) as (connection, _):
        write(connection, 4)
        connection.execute("CREATE MATERIALIZED VIEW late AS SELECT z FROM m WHERE s > 0")
        expected = rows(connection, f"SELECT z FROM ({QUERIES['m']}) q WHERE s > 0")
        assert rows(connection, "SELECT * FROM late") == expected


def test_what_a_newer_release_made_is_left_to_it(made: Path) -> None:
    with opened(made) as (connection, _):
        url = connection.engine.project.catalog_url.url.render_as_string(hide_password=False)
    with connected(url) as raw:
        raw.exec_driver_sql(
            """UPDATE object SET options = replace(options, '"release":"', '"release":"99.') WHERE kind <> 'table'"""
        )
        changed = raw.exec_driver_sql("SELECT count(*) FROM object WHERE options LIKE '%99.%'").scalar()
    assert changed
    with opened(made) as (connection, _):
        before = ids(connection)
        write(connection, 4)
        with pytest.raises(PlannedDifferently, match="release 99") as error:
            connection.execute("SELECT * FROM m")
        assert error.value.hint == "Use that release, or a later one."
        assert rows(connection, "SELECT * FROM plain") == rows(connection, QUERIES["plain"])
        assert not connection.engine.apply().changed
        assert ids(connection) == before


def test_objects_say_which_release_planned_them(made: Path) -> None:
    with Catalog.open(Project.load(made).catalog_url) as catalog:
        planned = [row for row in catalog.objects() if "arrangements" in row.options]
    assert planned
    assert all(row.options["release"] for row in planned)
