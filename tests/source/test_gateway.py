"""Object storage by a real gateway, versitygw, which orders writes as S3 does: moto's server loses races."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mz_dagster.adapter import Connection
from mz_dagster.adapter.engine import SecondRunner
from mz_dagster.operations.doctor import examine
from tests.adapter.test_delta_sinks import step
from tests.forks import forks
from tests.object_store import BUCKET, Store, opened_beside, running_gateway
from tests.opened import opened
from tests.source import test_delta, test_delta_upsert
from tests.source.landing import poll
from tests.source.test_delta import reference
from tests.storage.bucket_story import breaks, live
from tests.storage.bucket_worker import insert_many

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as store:
        yield store


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, which the tests' own writers find in the environment."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def connection(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    with opened_beside(store, tmp_path, monkeypatch) as connection:
        yield connection


def place(request: pytest.FixtureRequest) -> str:
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid))}/t"


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_committed_the_source_is_the_table(
    connection: Connection, request: pytest.FixtureRequest, seed: int
) -> None:
    table = place(request)
    test_delta.follow(connection, table, seed, 30, f"DELTA (URI '{table}', CONNECTION store)")


def test_whatever_is_committed_keys_have_their_last_rows(
    connection: Connection, request: pytest.FixtureRequest
) -> None:
    table = place(request)
    equal, _ = test_delta_upsert.follow(connection, table, 1, 15, f"DELTA (URI '{table}', CONNECTION store)")
    assert equal


def test_a_source_reads_what_many_write_at_once(connection: Connection, request: pytest.FixtureRequest) -> None:
    table = place(request)
    write_deltalake(table, pa.table({"a": [0], "p": ["x"], "x": [0.5]}))
    connection.execute(f"CREATE SOURCE t FROM DELTA (URI '{table}', CONNECTION store)")

    def append(number: int) -> None:
        for one in range(5):
            write_deltalake(table, pa.table({"a": [number * 10 + one], "p": ["x"], "x": [0.5]}), mode="append")

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(append, number) for number in range(4)]
        while not all(one.done() for one in writing):
            poll(connection)
        for one in writing:
            one.result()
    assert Counter(connection.execute("SELECT * FROM t").fetchall()) == reference(table)
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(21,)]


def test_of_two_that_write_a_sink_one_writes_each_tick(
    connection: Connection, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    table = place(request)
    connection.execute("CREATE TABLE t (a bigint, p text, x double precision)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    connection.execute(f"CREATE SINK s FROM v INTO DELTA (URI '{table}', CONNECTION store) APPEND CHANGES")

    def step_unless_led(one: Connection) -> None:
        with suppress(SecondRunner):
            step(one)

    with opened(tmp_path) as another, ThreadPoolExecutor(2) as pool:
        for number in range(10):
            connection.execute(f"INSERT INTO t VALUES ({number}, 'x', 0.5)")
            for done in [pool.submit(step_unless_led, one) for one in (connection, another)]:
                done.result()
        step(connection)
    sums: Counter[tuple[object, ...]] = Counter()
    for row in DeltaTable(table).to_pyarrow_table().to_pylist():
        sums[row["a"], row["mz_diff"]] += 1
    assert sums == {(number, 1): 1 for number in range(10)}


def test_shards_may_lie_there(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(store, tmp_path / "p", monkeypatch)
    live(root, lambda: [one for one in objects(store, "p") if "/mz_batch=" in one])


@pytest.mark.parametrize("writers", [2, pytest.param(3, marks=pytest.mark.deep)])
def test_processes_that_write_beside_each_other_lose_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writers: int
) -> None:
    root = project(store, tmp_path / "q", monkeypatch)
    with opened(root) as connection:
        connection.execute("CREATE TABLE t (a bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    processes = [forks().Process(target=insert_many, args=(str(root), store.secret, n, 12)) for n in range(writers)]
    for one in processes:
        one.start()
    for _ in range(4):
        with opened(root) as connection:
            assert list(connection.engine.compact(thorough=True))
    for one in processes:
        one.join(300)
    assert [one.exitcode for one in processes] == [0] * writers
    with opened(root) as connection:
        assert connection.execute("SELECT * FROM v").fetchall() == [(12 * writers, sum(range(12 * writers)))]
    assert not breaks(examine(root, deep=True))


def project(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a new project whose shards are below a prefix that its folder's name is; nothing is inlined."""
    monkeypatch.setenv("STORE_SECRET", store.secret)
    root.mkdir()
    storage = f'[storage]\nuri = "s3://{BUCKET}/{root.name}"\n{store.settings}'
    (root / "mz.toml").write_text(f'[project]\nengine = "local"\n{storage}[writes]\ninline_rows = 0\n')
    return root


def objects(store: Store, below: str) -> list[str]:
    """Returns the keys of what is below a prefix."""
    pages = store.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{below}/")
    return [one["Key"] for page in pages for one in page.get("Contents", ())]
