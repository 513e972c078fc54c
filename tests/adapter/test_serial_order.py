"""Statements that read and write from several sessions at once are as if each had happened alone.

Sessions with engines of their own insert counts, delete from each table what the other has, update by subqueries and
read, while others step, compact and read beside them, on both catalogs; `serial_order` says what is wrong with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from time import monotonic_ns
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.adapter.engine import SecondRunner
from mz_dagster.adapter.replica import Replica
from mz_dagster.adapter.write_attempts import WriteContended
from mz_dagster.compute.step.stepper import StepLost
from mz_dagster.storage.read import leased
from tests.adapter.serial_order import Effect, Ran, Row, State, violations
from tests.postgres_server import Postgres

TABLES = ("a", "b")
OTHER = {"a": "b", "b": "a"}

Result = Callable[[State], frozenset[tuple[object, ...]]]


def tagged(effect: Callable[[State], Effect]) -> Result:
    """Returns what RETURNING tag comes to."""
    return lambda state: frozenset((row[1],) for row, _ in effect(state))


def statement(rng: random.Random, tag: str) -> tuple[str, str | None, Callable[[State], Effect], Result]:
    """Returns a statement, what it writes, and what it does and returns over given contents."""
    table = rng.choice(TABLES)
    other = rng.choice(TABLES)
    k = rng.randrange(3)
    match rng.choice(("count", "count", "delete", "update", "values", "view", "select")):
        case "count":
            sql = f"INSERT INTO {table} SELECT count(*), '{tag}', {k} FROM {other} RETURNING tag"
            return sql, table, *both(lambda state: frozenset({((len(state[other]), tag, k), 1)}))
        case "view":
            sql = f"INSERT INTO {table} SELECT n, '{tag}', {k} FROM {other}_rows RETURNING tag"
            return sql, table, *both(lambda state: frozenset({((len(state[other]), tag, k), 1)}))
        case "values":
            sql = f"INSERT INTO {table} VALUES (-1, '{tag}', {k}) RETURNING tag"
            return sql, table, *both(lambda _: frozenset({((-1, tag, k), 1)}))
        case "delete":
            other = OTHER[table]
            where = f"{table}.k = {other}.k AND {other}.k = {k}"
            sql = f"DELETE FROM {table} USING {other} WHERE {where} RETURNING {table}.tag"

            def gone(state: State) -> Effect:
                met = any(row[2] == k for row in state[other].values())
                return frozenset((row, -1) for row in state[table].values() if met and row[2] == k)

            return sql, table, *both(gone)
        case "update":
            n = f"(SELECT count(*) FROM {OTHER[table]}) + 1000"
            sql = f"UPDATE {table} SET n = {n} WHERE k = {k} AND n < 1000 RETURNING tag"

            def changed(state: State) -> Effect:
                n = len(state[OTHER[table]]) + 1000
                old = [row for row in state[table].values() if row[2] == k and row[0] < 1000]
                return frozenset([*((row, -1) for row in old), *(((n, row[1], k), 1) for row in old)])

            return sql, table, *both(changed)
        case _:
            sql = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)"
            return sql, None, lambda _: frozenset(), lambda state: frozenset({(len(state["a"]), len(state["b"]))})


def both(effect: Callable[[State], Effect]) -> tuple[Callable[[State], Effect], Result]:
    return effect, tagged(effect)


def run(engine: Engine, name: str, rng: random.Random, over: Event, most: int) -> list[Ran]:
    """Runs statements one after the other in a session of its own, until it is over."""
    ran: list[Ran] = []
    session = Session(engine)
    for n in range(most):
        if over.is_set():
            break
        sql, table, effect, result = statement(rng, f"{name}-{n}")
        begun = monotonic_ns()
        try:
            answer: Any = session.execute(sql).rows
        except WriteContended:
            answer = None
        reads = " VALUES " not in sql
        ran.append(Ran(sql, table, answer, begun, monotonic_ns(), effect, result, reads))
    return ran


def disturb(project: Project, rng: random.Random, over: Event) -> None:
    """Does beside the sessions what runners, schedules, readers and replicas do."""
    with Engine(project, holder="disturber") as engine:
        session, replica = Session(engine), Replica(engine, "beside")
        while not over.wait(rng.random() / 5):
            match rng.randrange(4):
                case 0:
                    list(engine.compact())
                case 1:
                    session.execute("SELECT n FROM a_rows")
                case 2:
                    replica.turn()
                case _:
                    engine.poll("default")
                    for tick in engine.unsealed_ticks("default"):
                        try:
                            engine.step("default", tick)
                        except (SecondRunner, StepLost):
                            break


def updates_of(engine: Engine, table: str) -> list[tuple[Row, int, int]]:
    row = engine.catalog.collection(engine.collection_of(table))
    with leased(engine.catalog, [row.id], holder="test") as lease:
        found = engine.shards.read(row, lease.snapshots[row.id].batches, lower=None, upper=None).to_pylist()
    return [((one["n"], one["tag"], one["k"]), one["mz_timestamp"], one["mz_diff"]) for one in found]


def test_statements_that_read_nothing_may_take_effect_at_one_time() -> None:
    def inserted(tag: str, begun: int) -> Ran:
        effect: Effect = frozenset({((-1, tag, 0), 1)})
        sql = f"INSERT INTO a VALUES (-1, '{tag}', 0)"
        return Ran(sql, "a", ((tag,),), begun, begun + 10, *both(lambda _: effect), reads=False)

    together = [((-1, tag, 0), 7, 1) for tag in ("x", "y")]
    assert list(violations([inserted("x", 1), inserted("y", 2)], {"a": together})) == []
    assert [one[:4] for one in violations([inserted("x", 1)], {"a": together})] == ["two ", "out "]
    later = [((-1, "x", 0), 8, 1), ((-1, "y", 0), 7, 1)]
    assert [one[:10] for one in violations([inserted("x", 1), inserted("y", 20)], {"a": later})] == ["not strict"]

    def counted(state: State) -> Effect:
        return frozenset({((len(state["a"]), "z", 0), 1)})

    reads = Ran("INSERT INTO a SELECT count(*), 'z', 0 FROM a", "a", (("z",),), 3, 13, *both(counted))
    beside = [*together, ((2, "z", 0), 7, 1)]
    found = list(violations([inserted("x", 1), inserted("y", 2), reads], {"a": beside}))
    assert [one[:22] for one in found] == ["two statements wrote a"]


def project_for_races(request: pytest.FixtureRequest, folder: Path, catalog: str) -> Project:
    """Returns a project on a catalog of a kind, in which who loses a race tries again for long."""
    settings = "[writes]\ndeadline = '120 s'\n"
    if catalog == "postgresql":
        server: Postgres = request.getfixturevalue("postgres_server")
        url = f"postgresql://{server.user}@/{server.new_database().database}?host={server.socket_dir}"
        settings += f"[catalog]\nurl = '{url}'\n"
    (folder / "mz.toml").write_text(settings)
    return Project.load(folder)


@pytest.mark.parametrize(
    ("engines", "catalog", "seconds"),
    [
        ("one engine each", "postgresql", 2),
        pytest.param("one engine", "sqlite", 2, marks=pytest.mark.deep),
        *(
            pytest.param(engines, catalog, 300, marks=[pytest.mark.deep, pytest.mark.timeout(900)])
            for engines in ("one engine", "one engine each")
            for catalog in ("sqlite", "postgresql")
        ),
    ],
)
def test_statements_of_many_sessions_are_as_if_each_had_happened_alone(
    request: pytest.FixtureRequest, tmp_path: Path, catalog: str, seconds: int, engines: str
) -> None:
    project = project_for_races(request, tmp_path, catalog)
    with ExitStack() as opened:
        engine = opened.enter_context(Engine(project))
        session = Session(engine)
        of_sessions = [
            engine if engines == "one engine" else opened.enter_context(Engine(project, holder=f"s{n}"))
            for n in range(4)
        ]
        for table in TABLES:
            session.execute(f"CREATE TABLE {table} (n bigint, tag text, k integer)")
            session.execute(f"CREATE MATERIALIZED VIEW {table}_rows AS SELECT count(*) AS n FROM {table}")
        over = Event()
        with ThreadPoolExecutor() as pool:
            sessions = [
                pool.submit(run, one, f"s{n}", random.Random(n), over, 100_000) for n, one in enumerate(of_sessions)
            ]
            disturber = pool.submit(disturb, project, random.Random(99), over)
            running: list[Future[Any]] = [*sessions, disturber]
            wait(running, timeout=seconds, return_when=FIRST_EXCEPTION)
            over.set()
            ran = [one for each in sessions for one in each.result()]
            disturber.result()
        updates = {table: updates_of(engine, table) for table in TABLES}
    assert list(violations(ran, updates)) == []
    failed = [one for one in ran if one.answer is None]
    assert len(failed) <= len(ran) // 10
    wrote = [one for one in ran if one.answer and one.table is not None]
    print(f"{catalog}: {len(ran)} statements, {len(wrote)} wrote, {len(failed)} gave up")
    assert wrote
