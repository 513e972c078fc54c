"""The versions of several tables that belong together are what the views were at one time, whatever happens."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from mz_dagster.adapter import Connection
from mz_dagster.adapter.copy_to_file import FileNotWritten
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from tests.forks import forks
from tests.object_store import BUCKET, opened_beside, running_store
from tests.opened import opened

TIMELINE = "default"
MANIFEST = "out/tables.json"
#: Each sink with the view that it writes.
SINKS = {"rows": "v", "changes": "v", "totals": "sums"}


def make(root: Path, manifest: str = MANIFEST) -> None:
    (root / "mz.toml").write_text(f'[project]\nname = "shop"\n[outputs]\nmanifest = "{manifest}"\n')
    with opened(root) as connection:
        connection.execute("CREATE TABLE t (a integer, b text)")
        connection.execute("CREATE TABLE other (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT b, sum(a)::integer AS a FROM t GROUP BY b")
        for name, view in SINKS.items():
            envelope = "APPEND CHANGES" if name == "changes" else "ENVELOPE UPSERT"
            connection.execute(f"CREATE SINK {name} FROM {view} INTO DELTA (URI 'out/{name}') {envelope}")


def step(connection: Connection, *sinks: str) -> None:
    """Steps all, or of the sinks only some."""
    engine = connection.engine
    polled = engine.poll(TIMELINE).tick
    tick = polled if polled is not None else engine.catalog.last_tick(TIMELINE)
    if tick is None:
        tick = engine.catalog.write_ts(TIMELINE, engine.now(TIMELINE))
        engine.catalog.mint_tick(TIMELINE, tick, {}, None)
    only = {node.id for node in engine.graph(TIMELINE)} - {engine.collection_of(one) for one in SINKS}
    only |= {engine.collection_of(one) for one in sinks or SINKS}
    engine.step(TIMELINE, tick, only=frozenset(only))


def held(table: Path, version: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in DeltaTable(table, version=version).to_pyarrow_table().to_pylist():
        found[row["a"], row["b"]] += row.get("mz_diff", 1)
    return Counter({row: count for row, count in found.items() if count})


def check(connection: Connection, root: Path) -> int:
    """Compares what the manifest names with the views at its tick, and with what the catalog says; returns the tick."""
    said = json.loads((root / MANIFEST).read_text())
    assert said["project"] == "shop"
    (found,) = said["timelines"].values()
    tick = int(found["tick"])
    assert set(found["sinks"]) == set(SINKS)
    for name, one in found["sinks"].items():
        wanted = Counter(connection.execute(f"SELECT a, b FROM {SINKS[name]} AS OF {tick}").fetchall())
        assert held(Path(one["place"]), one["version"]) == wanted, name
    return tick


def versions(connection: Connection) -> dict[str, tuple[Any, ...]]:
    rows = connection.execute(
        "SELECT name, tick, version, common_tick, common_version FROM mz_internal.mz_sink_versions"
    ).fetchall()
    return {name: tuple(rest) for name, *rest in rows}


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.deep), 1])
def test_what_belongs_together_is_one_moment(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    make(tmp_path)
    with opened(tmp_path) as connection:
        last = -1
        step(connection)
        for _ in range(12):
            for _ in range(random.randrange(3)):
                connection.execute(random.choice([
                    f"INSERT INTO t VALUES ({random.randrange(9)}, '{random.choice('xy')}')",
                    f"DELETE FROM t WHERE a < {random.randrange(4)}",
                    "INSERT INTO other VALUES (1)",
                ]))  # fmt: skip
            if random.random() < 0.2:
                DeltaTable(tmp_path / "out" / "rows").optimize.compact()
            step(connection, *random.sample(sorted(SINKS), random.randrange(1, 4)))
            tick = check(connection, tmp_path)
            assert tick >= last, "it goes back never"
            last = tick
            for name, (own, version, common, common_version) in versions(connection).items():
                assert (common, common <= own) == (tick, True)
                assert held(tmp_path / "out" / name, version) == Counter(
                    connection.execute(f"SELECT a, b FROM {SINKS[name]} AS OF {own}").fetchall()
                )
                assert common_version <= version


def test_the_manifest_may_be_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_store() as store:
        said = f'manifest = "s3://{BUCKET}/out/tables.json"\nconnection = "store"\n'
        (tmp_path / "mz.toml").write_text(f'[project]\nname = "shop"\n[outputs]\n{said}')
        with opened_beside(store, tmp_path, monkeypatch) as connection:
            connection.execute("CREATE TABLE t (a integer)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
            into = f"DELTA (URI 's3://{BUCKET}/out/v', CONNECTION store) ENVELOPE UPSERT"
            connection.execute(f"CREATE SINK rows FROM v INTO {into}")
            for number in range(2):
                connection.execute(f"INSERT INTO t VALUES ({number})")
                engine = connection.engine
                engine.poll(TIMELINE)
                tick = engine.catalog.last_tick(TIMELINE)
                assert tick is not None
                engine.step(TIMELINE, tick)
                found = json.loads(store.client().get_object(Bucket=BUCKET, Key="out/tables.json")["Body"].read())
                (version,) = (one[3] for one in versions(connection).values())
                assert found["timelines"]["default"]["tick"] == tick
                place = f"s3://{BUCKET}/out/v"
                assert found["timelines"]["default"]["sinks"] == {"rows": {"place": place, "version": version}}
            monkeypatch.setenv("STORE_SECRET", "wrong, for moto does not look")
            monkeypatch.delenv("STORE_SECRET")
            connection.execute("INSERT INTO t VALUES (9)")
            engine.poll(TIMELINE)
            with pytest.raises(Error, match="STORE_SECRET"):
                engine.step(TIMELINE, engine.catalog.last_tick(TIMELINE) or 0)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('manifest = "s3://b/x.json"', "is reached by no connection"),
        ('manifest = "x.json"\nconnection = "c"', "leads to a manifest in a store, and none is named"),
        ('connection = "c"', "leads to a manifest in a store, and none is named"),
    ],
)
def test_a_manifest_in_a_store_needs_a_connection(tmp_path: Path, said: str, why: str) -> None:
    (tmp_path / "mz.toml").write_text(f'[project]\nname = "shop"\n[outputs]\n{said}\n')
    with pytest.raises(BadSettings, match=why), opened(tmp_path):
        pass


def test_a_connection_that_is_not_there_is_told(tmp_path: Path) -> None:
    make(tmp_path)
    said = 'manifest = "s3://b/x.json"\nconnection = "nope"\n'
    (tmp_path / "mz.toml").write_text(f'[project]\nname = "shop"\n[outputs]\n{said}')
    with opened(tmp_path) as connection, pytest.raises(FileNotWritten, match='no connection "nope" leads there'):
        step(connection)


def step_until_killed(root: str, fail_point: str) -> None:
    """Is the process: steps the project, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    with opened(Path(root)) as connection:
        step(connection)


def test_a_kill_leaves_what_belonged_together_before(tmp_path: Path) -> None:
    make(tmp_path)
    with opened(tmp_path) as connection:
        step(connection)
        last = check(connection, tmp_path)
        for number, point in enumerate(("sink.committed:2", "sink.before_seal:2", "copy.written")):
            connection.execute(f"INSERT INTO t VALUES ({number}, 'x')")
            process = forks().Process(target=step_until_killed, args=(str(tmp_path), point))
            process.start()
            process.join(60)
            assert process.exitcode == -signal.SIGKILL
            assert check(connection, tmp_path) == last
            step(connection)
            step(connection)
            assert check(connection, tmp_path) > last
            last = check(connection, tmp_path)


def test_what_was_written_anew_belongs_to_others_once_they_have_come_so_far(tmp_path: Path) -> None:
    make(tmp_path)
    with opened(tmp_path) as connection:
        step(connection)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        step(connection, "rows", "totals")
        tick = check(connection, tmp_path)
        connection.execute("ALTER SINK rows RESET")
        assert check(connection, tmp_path) == tick, "there is no version of then that is sure to be the sink's"
        own, version, common, common_version = versions(connection)["rows"]
        assert (common, common_version) == (tick, None)
        assert own > tick
        assert version is not None
        step(connection)
        assert check(connection, tmp_path) > tick
        for name in SINKS:
            connection.execute(f"DROP SINK {name}")
        assert versions(connection) == {}
        step_all = connection.engine.catalog.last_tick(TIMELINE)
        assert step_all is not None
        connection.engine.step(TIMELINE, step_all)
        assert json.loads((tmp_path / MANIFEST).read_text())["timelines"] == {}


def test_a_manifest_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    make(tmp_path)
    with opened(tmp_path) as connection:
        step(connection)
        (tmp_path / MANIFEST).unlink()
        (tmp_path / MANIFEST / "full").mkdir(parents=True)
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        with pytest.raises(FileNotWritten, match=r"could not write file .*tables\.json"):
            step(connection)
        (tmp_path / MANIFEST / "full").rmdir()
        (tmp_path / MANIFEST).rmdir()
        step(connection)
        check(connection, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mz.toml").write_text('[outputs]\nmanifest = "../tables.json"\n')
    with pytest.raises(FolderNotAllowed, match="outside of the project"):
        opened(tmp_path / "elsewhere")
