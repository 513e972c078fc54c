"""A bucket that is full: an error that says so, nothing is lost or half written, and all goes on once there is room.

Stores say it in their own ways: MinIO by status 507, which clients try again, Ceph by 403. Shards and a sink are in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

import mz_dagster
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from mz_dagster.storage import ShardUnavailable
from mz_dagster.storage.sink.sink import SinkUnwritable
from tests.adapter.test_delta_sinks import step
from tests.errors import says_what_to_do
from tests.full_store import Room, with_room
from tests.object_store import BUCKET, Store, running_store

MINIO, CEPH = (507, "XMinioStorageFull"), (403, "QuotaExceeded")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Store, Room]]:
    with running_store() as behind, with_room(behind) as found:
        yield found


@pytest.fixture
def room(running: tuple[Store, Room], monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    store, room = running
    for name, value in {**store.environment, "STORE_SECRET": store.secret}.items():
        monkeypatch.setenv(name, value)
    yield room
    room.is_there()


@pytest.fixture
def root(running: tuple[Store, Room], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (folder := tmp_path / "p").mkdir()
    (folder / "mz.toml").write_text(
        f'[project]\nengine = "local"\n[storage]\nuri = "s3://{BUCKET}/{abs(hash(request.node.nodeid))}"\n'
        f"{running[0].settings}[writes]\ninline_rows = 0\n"
    )
    return folder


@pytest.mark.parametrize(
    ("full", "taken"),
    [
        pytest.param(CEPH, range(6), marks=pytest.mark.deep),
        pytest.param(MINIO, [0, 3, 4], marks=[pytest.mark.deep, pytest.mark.timeout(900)]),
    ],
    ids=["Ceph", "MinIO"],
)
def test_a_full_bucket_is_an_error_and_costs_nothing_once_there_is_room(
    root: Path, running: tuple[Store, Room], room: Room, full: tuple[int, str], taken: Sequence[int]
) -> None:
    sink = f"s3://{BUCKET}/{root.parent.name}-{full[0]}"
    with mz_dagster.connect(root) as connection:
        for statement in running[0].statements:
            connection.execute(statement)
        connection.execute("CREATE TABLE t (a bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a % 3 AS k, count(*) AS n FROM t GROUP BY a % 3")
        connection.execute(f"CREATE SINK s FROM v INTO DELTA (URI '{sink}', CONNECTION store) ENVELOPE UPSERT")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        assert not step(connection).failures
        written = 2
        met: set[type] = set()
        for after in taken:  # another object is the first that does not fit
            room.is_over(*full, after)
            try:
                connection.execute(f"INSERT INTO t VALUES ({written + 1})")
                written += 1
            except ShardUnavailable as error:
                says_what_to_do(error, full[1], "Free space in the bucket, or raise its quota")
            room.is_over(*full, after)
            for one in step(connection).failures:
                failed = one.error
                assert isinstance(failed, ShardUnavailable | SinkUnwritable)
                met.add(type(failed))
                says_what_to_do(failed, full[1], "Free space", "raise its quota")
            assert connection.execute("SELECT count(*)::bigint FROM t").fetchall() == [(written,)]
            assert room.is_there()
            connection.execute(f"INSERT INTO t VALUES ({written + 1})")
            written += 1
            assert not step(connection).failures
            numbers = range(1, written + 1)
            wanted = Counter(one % 3 for one in numbers)
            assert dict(connection.execute("SELECT * FROM v").fetchall()) == wanted
            found = DeltaTable(sink).to_pyarrow_table().to_pylist()
            assert {one["k"]: one["n"] for one in found} == wanted
    assert SinkUnwritable in met
    severe = [one for one in examine(root, deep=True).findings if CHECKS[one.check].severity is Severity.BREAK]
    assert not severe
