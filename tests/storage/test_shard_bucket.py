"""Shards in a bucket: a project is there what it is in its folder, and needs of this machine only its catalog."""

from __future__ import annotations

import logging
import shutil
import signal
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

import mz_dagster
from mz_dagster.adapter import Connection, Engine, Isolation
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.budget import Budget, budget_of
from mz_dagster.catalog import OtherCatalog
from mz_dagster.cli import main
from mz_dagster.errors import NotSupportedError
from mz_dagster.fail_point import BUCKET_FAIL_POINTS
from mz_dagster.operations.backup import backup, recover, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.storage import BatchIncomplete, FileDamaged, ShardUnavailable, shard_bucket
from mz_dagster.storage.ownership import ShardsElsewhere
from mz_dagster.storage.spark import SparkConfig
from tests.errors import says_what_to_do
from tests.forks import forks
from tests.object_store import BUCKET, Store, running_store
from tests.postgres_server import Postgres
from tests.storage.bucket_story import breaks, elsewhere, live
from tests.storage.bucket_worker import insert


@pytest.fixture(scope="module")
def running() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("STORE_SECRET", running.secret)
    return running


@pytest.fixture
def settings(request: pytest.FixtureRequest, store: Store) -> str:
    """A `mz.toml` whose shards are below a prefix of the test's own; nothing is inlined."""
    return f"""
[project]
engine = "local"
[storage]
uri = "s3://{BUCKET}/{abs(hash(request.node.nodeid))}"
{store.settings}[writes]
inline_rows = 0
"""


@pytest.fixture
def root(tmp_path: Path, settings: str) -> Path:
    (folder := tmp_path / "p").mkdir()
    (folder / "mz.toml").write_text(settings)
    return folder


def prefix(root: Path) -> str:
    """Returns below what in the bucket a project's shards are."""
    found: str = tomllib.loads((root / "mz.toml").read_text())["storage"]["uri"].removeprefix(f"s3://{BUCKET}/")
    return found


def objects(store: Store, below: str) -> list[str]:
    """Returns the keys of what is below a prefix."""
    pages = store.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{below}/")
    return [one["Key"] for page in pages for one in page.get("Contents", ())]


def keys(store: Store, root: Path, part: str = "") -> list[str]:
    """Returns the objects of a project whose keys have a part."""
    return [one for one in objects(store, prefix(root)) if part in one]


def test_a_project_lives_in_a_bucket(root: Path, store: Store) -> None:
    below = prefix(root)
    live(root, lambda: [one for one in objects(store, below) if "/mz_batch=" in one])


def filled(root: Path) -> list[tuple[Any, ...]]:
    """Makes a project with a table and a view of it, and returns what the view holds."""
    with mz_dagster.connect(root) as connection:
        connection.execute("CREATE TABLE t (a bigint, b text)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b")
        connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')")
        connection.execute("INSERT INTO t VALUES (4, 'y')")
        return connection.execute("SELECT * FROM v ORDER BY b").fetchall()


def rows(root: Path, query: str = "SELECT * FROM v ORDER BY b") -> list[tuple[Any, ...]]:
    with mz_dagster.connect(root) as connection:
        return connection.execute(query).fetchall()


def test_a_kill_between_any_two_puts_loses_and_doubles_nothing(root: Path, store: Store) -> None:
    filled(root)
    before = keys(store, root, "/mz_batch=")
    killed = [forks().Process(target=insert, args=(str(root), store.secret, point)) for point in BUCKET_FAIL_POINTS]
    for one in killed:
        one.start()
    for one in killed:
        one.join(60)
    assert [one.exitcode for one in killed] == [-signal.SIGKILL] * len(killed)
    assert len(keys(store, root, "/mz_batch=")) == len(before) + len(killed)  # which nobody can see
    with mz_dagster.connect(root) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(4,)]
        connection.execute("INSERT INTO t VALUES (5, 'z')")
        assert connection.execute("SELECT * FROM v WHERE b = 'z'").fetchall() == [("z", 1, 5)]
        assert list(connection.engine.compact(thorough=True))
        listed = [file for row in connection.engine.catalog.collections() for file in files_of(connection, row)]
    assert sorted(keys(store, root, "/mz_batch=")) == sorted(f"{prefix(root)}/{one}" for one in listed)
    assert not list((root / ".mz" / "objects" / "drafts").iterdir())
    assert not breaks(examine(root, deep=True))


def files_of(connection: Any, row: Any) -> list[str]:
    """Returns the keys that the catalog lists for a collection, below the project's prefix."""
    live = connection.engine.catalog.live_batches([row.id])[row.id]
    return [f"{row.shard}/{one.path}" for batch in live for one in batch.stats.file_list or ()]


@pytest.mark.deep
def test_a_damaged_object_is_found_and_put_back(root: Path, store: Store, tmp_path: Path) -> None:
    wanted = filled(root)
    backup(Project.load(root), tmp_path / "backup")
    with mz_dagster.connect(root) as connection:
        row = connection.engine.catalog.collection(connection.engine.collection_of("v"))
        key = f"{prefix(root)}/{files_of(connection, row)[0]}"
    client = store.client()
    written = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    client.put_object(Bucket=BUCKET, Key=key, Body=written[:-9] + b"x" + written[-8:])
    assert rows(root) == wanted  # of its copy, which is what was written
    with pytest.raises(FileDamaged, match=rf'data file "s3://{BUCKET}/{key}".* is damaged'):
        rows(elsewhere(root))
    for deep in (False, True):
        assert [one for one in breaks(examine(root, deep=deep)) if one.startswith("file-")]
    client.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(BatchIncomplete):
        rows(root.with_name("elsewhere"))
    assert any(one.startswith("file-missing") for one in breaks(examine(root)))
    assert main(["--project", str(root), "doctor", "--from-backup", str(tmp_path / "backup")]) == 0
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == written
    assert rows(root.with_name("elsewhere")) == wanted
    assert not breaks(examine(root, deep=True))


@pytest.mark.deep
def test_a_damaged_log_is_made_anew_and_open_tables_go_on(root: Path, store: Store) -> None:
    wanted = filled(root)
    with mz_dagster.connect(root) as open_meanwhile:
        open_meanwhile.execute("INSERT INTO t VALUES (6, 'q')")  # it has the table open
        log = sorted(keys(store, root, "/_delta_log/0"))
        store.client().delete_object(Bucket=BUCKET, Key=log[1])
        assert any(one.startswith("log-damaged") for one in breaks(examine(root)))
        assert any("made the log of" in one for one in examine(root, repair=True).repaired)
        assert not breaks(examine(root, deep=True))
        assert keys(store, root, "_delta_log.damaged-1/")
        for number in (7, 8):
            open_meanwhile.execute(f"INSERT INTO t VALUES ({number}, 'q')")
    assert rows(root) == sorted([*wanted, ("q", 3, 21)])
    assert not breaks(examine(root, deep=True))


def test_what_is_restored_has_its_shards_in_its_folder(root: Path, store: Store, tmp_path: Path) -> None:
    wanted = filled(root)
    backup(Project.load(root), tmp_path / "backup")
    before = sorted(keys(store, root))
    restored = restore(tmp_path / "backup", tmp_path / "restored").root
    assert rows(restored) == wanted
    with mz_dagster.connect(restored) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'z')")
    assert not breaks(examine(restored, deep=True))
    assert sorted(keys(store, root)) == before
    with pytest.raises(NotSupportedError, match="cannot be recovered in its place") as refused:
        recover(Project.load(root), tmp_path / "backup")
    says_what_to_do(refused.value)


def test_a_place_is_one_project_s(root: Path, tmp_path: Path) -> None:
    filled(root)
    text = (root / "mz.toml").read_text()
    (other := tmp_path / "other").mkdir()
    (other / "mz.toml").write_text(text)
    with pytest.raises(OtherCatalog, match="is not the one of this project's shards"):
        mz_dagster.connect(other).close()
    (other / "mz.toml").write_text(text.partition("[storage]")[0])
    mz_dagster.connect(other).close()
    (other / "mz.toml").write_text(text)
    with pytest.raises(OtherCatalog, match="is not the one of this project's shards"):
        mz_dagster.connect(other).execute("SELECT 1")
    (root / "mz.toml").write_text(text.replace(prefix(root), f"{prefix(root)}/moved"))
    with pytest.raises(ShardsElsewhere, match="the shards of this catalog are not in") as refused:
        mz_dagster.connect(root).execute("SELECT 1")
    says_what_to_do(refused.value)
    (root / "mz.toml").write_text(text.partition("[storage]")[0])
    with pytest.raises(ShardsElsewhere, match="the shards of this catalog are not in"):
        mz_dagster.connect(root).execute("SELECT 1")


def test_no_secret_gets_out(
    root: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    filled(root)
    project = Project.load(root)
    assert store.secret not in repr(project) + repr(vars(project.shard_place()))
    (root / "key").write_text(store.secret)
    (root / "mz.toml").write_text((root / "mz.toml").read_text().replace("${STORE_SECRET}", "file:key"))
    assert rows(root, "SELECT count(*) FROM t") == [(4,)]
    backup(Project.load(root), tmp_path / "backup")
    (root / "key").unlink()
    for folder in (root, tmp_path / "backup"):
        for path in folder.rglob("*"):
            assert not path.is_file() or store.secret.encode() not in path.read_bytes()
    with pytest.raises(mz_dagster.Error, match=r"storage\.secret_access_key") as failure:
        rows(root)
    told = [str(failure.value)]
    (root / "key").write_text(store.secret)
    for wrong in ("http://127.0.0.1:9", store.endpoint + "/nowhere"):
        (root / "mz.toml").write_text((root / "mz.toml").read_text().replace(store.endpoint, wrong))
        monkeypatch.setattr(
            "mz_dagster.storage.object_client.timedelta", lambda **_: __import__("datetime").timedelta()
        )
        with pytest.raises(mz_dagster.Error) as failure:
            rows(root)
        told.append(str(failure.value))
        (found,) = examine(root).findings
        assert found.check == "shards-unreachable"
        told.append(str(found))
        says_what_to_do(failure.value)
        (root / "mz.toml").write_text((root / "mz.toml").read_text().replace(wrong, store.endpoint))
    assert store.secret not in "".join(told) + caplog.text


def test_a_store_that_overwrites_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Overwriting(S3Store):
        def put(self, path: str, file: Any, *, mode: Any = None, **options: Any) -> Any:
            return super().put(path, file, **options)

    monkeypatch.setattr("mz_dagster.storage.object_client._BUCKETS", {"s3": Overwriting})
    for _ in range(2):
        with pytest.raises(ShardUnavailable, match="overwrites what it is told to write only if") as refused:
            filled(root)
    says_what_to_do(refused.value)


def test_copies_that_nobody_uses_go(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = filled(root)
    text = (root / "mz.toml").read_text()
    (root / "mz.toml").write_text(text.replace("[writes]", "copies_bytes = 1\n[writes]"))
    copies = root / ".mz" / "objects" / "shards"
    assert rows(root) == wanted
    assert (before := set(copies.rglob("*.parquet")))  # they were used just now
    monkeypatch.setattr(shard_bucket, "_USED_MS", -1000)
    with mz_dagster.connect(root) as connection:
        connection.execute("INSERT INTO t VALUES (9, 'w')")
    assert not before & set(copies.rglob("*.parquet"))
    assert rows(root) == sorted([*wanted, ("w", 1, 9)])
    shutil.rmtree(root / ".mz" / "objects")
    assert rows(root) == sorted([*wanted, ("w", 1, 9)])


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('uri = "s3:/lake"', "must name a prefix in a bucket"),
        ('uri = "ftp://lake/x"', "must name a prefix in a bucket"),
        ('uri = "s3://lake/x"\nsecret_access_key = "plain"', "must say where the secret is"),
        ('uri = "s3://lake/x"\nendpoint = "https://user:pass@host"', "must be a URL without a user"),
        ('uri = "s3://lake/x"\naccount_key = "${STORE_SECRET}"', 'unknown setting "storage.account_key"'),
        ('endpoint = "https://host"', 'unknown setting "storage.endpoint"'),
    ],
)
def test_settings_that_lead_nowhere_are_refused(tmp_path: Path, setting: str, why: str) -> None:
    (tmp_path / "mz.toml").write_text(f"[storage]\n{setting}\n")
    with pytest.raises(BadSettings, match=why) as refused:
        Project.load(tmp_path)
    says_what_to_do(refused.value)
    assert "pass@" not in str(refused.value)
    assert "plain" not in str(refused.value)


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_spark_computes_over_the_same_shards(root: Path, store: Store, spark_config: SparkConfig) -> None:
    wanted = filled(root)  # by this process
    shutil.rmtree(root / ".mz" / "objects")
    (root / "mz.toml").write_text((root / "mz.toml").read_text().replace('"local"', '"auto"'))
    engine = Engine(Project.load(root), spark=spark_config)
    spark_alone = replace(Budget.spark_alone(), written_updates=0, handed_rows=0)
    with budget_of(spark_alone), Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        assert connection.execute("SELECT * FROM v ORDER BY b").fetchall() == wanted
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT a, n FROM t JOIN v USING (b)")
        connection.execute("INSERT INTO t VALUES (7, 'y')")
        assert connection.execute("SELECT * FROM w ORDER BY a").fetchall() == [(1, 2), (2, 2), (3, 3), (4, 3), (7, 3)]
        copies = (root / ".mz" / "objects" / "shards").rglob("*.parquet")
        writers = {pq.ParquetFile(one).metadata.created_by.split()[0] for one in copies}
        assert writers == {"parquet-rs", "parquet-mr"}  # this process, and Spark
        assert list(engine.compact(thorough=True))
        assert connection.execute("SELECT * FROM w WHERE a = 7").fetchall() == [(7, 3)]
    assert not breaks(examine(root, deep=True))
    (root / "mz.toml").write_text((root / "mz.toml").read_text().replace('"auto"', '"local"'))
    assert rows(elsewhere(root), "SELECT * FROM w WHERE a = 7") == [(7, 3)]


@pytest.mark.deep
def test_shards_are_moved_by_copying_them(tmp_path: Path, settings: str, store: Store) -> None:
    (root := tmp_path / "p").mkdir()
    in_bucket, in_folder = settings, settings.partition("[storage]")[0] + "[writes]\ninline_rows = 0\n"
    (root / "mz.toml").write_text(in_folder)
    wanted = filled(root)
    shards, client = root / ".mz" / "shards", store.client()
    (root / "mz.toml").write_text(in_bucket)
    with pytest.raises(ShardsElsewhere):
        rows(root)
    for path in shards.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), BUCKET, f"{prefix(root)}/shards/{path.relative_to(shards).as_posix()}")
    shutil.rmtree(shards)
    assert rows(root) == wanted
    with mz_dagster.connect(root) as connection:
        connection.execute("INSERT INTO t VALUES (5, 'z')")
    assert not breaks(examine(root, deep=True))
    mark = client.get_object(Bucket=BUCKET, Key=f"{prefix(root)}/shards/.project")["Body"].read()
    assert b"conditional-puts" in mark  # which a copy does not say
    for key in keys(store, root):
        (path := shards / key.partition("/shards/")[2]).parent.mkdir(parents=True, exist_ok=True)
        client.download_file(BUCKET, key, str(path))
    (root / "mz.toml").write_text(in_folder)
    assert rows(root) == [*wanted, ("z", 1, 5)]
    with mz_dagster.connect(root) as connection:
        connection.execute("INSERT INTO t VALUES (6, 'z')")
    assert not breaks(examine(root, deep=True))


@pytest.mark.deep
def test_what_is_damaged_is_made_anew_from_what_it_was_read_from(root: Path, store: Store) -> None:
    (root / "landing").mkdir()
    (root / "landing" / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    with mz_dagster.connect(root) as connection:
        connection.execute("CREATE SOURCE s (a bigint) FROM FILES (FOLDER 'landing') FORMAT JSON")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS a FROM s")
        assert connection.execute("SELECT * FROM v").fetchall() == [(3,)]
        catalog, named = connection.engine.catalog, connection.engine.collection_of
        log, view = (catalog.collection(named(name)).shard for name in ("s", "v"))
    client = store.client()
    for key in keys(store, root, f"{log}/_delta_log/"):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"no log")
    for key in keys(store, root, f"{view}/mz_batch="):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"no file")
    assert {one.partition(":")[0] for one in breaks(examine(root))} == {"log-damaged", "file-size"}
    assert main(["--project", str(root), "reread", "s"]) == 0
    assert main(["--project", str(root), "rebuild", "v"]) == 0
    assert list((root / ".mz" / "quarantine" / log).rglob("*.parquet"))
    shutil.rmtree(root / ".mz" / "objects")
    assert rows(root, "SELECT * FROM v") == [(3,)]
    assert rows(root, "SELECT * FROM s ORDER BY a") == [(1,), (2,)]
    assert not breaks(examine(root, deep=True))


def test_machines_that_share_catalog_and_bucket_share_the_project(
    tmp_path: Path, settings: str, postgres_server: Postgres
) -> None:
    server = postgres_server.new_database()
    catalog = f"postgresql+psycopg://{server.user}@/{server.database}?host={server.socket_dir}"
    roots = [tmp_path / name for name in ("one", "other")]
    for root in roots:
        root.mkdir()
        (root / "mz.toml").write_text(f'{settings}\n[catalog]\nurl = "{catalog}"\n')
    with mz_dagster.connect(roots[0]) as one, mz_dagster.connect(roots[1]) as other:
        one.execute("CREATE TABLE t (a bigint)")
        one.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
        for number in range(3):
            one.execute(f"INSERT INTO t VALUES ({number})")
            assert other.execute("SELECT * FROM v").fetchall() == [(2 * number + 1, number * number)]
            other.execute(f"INSERT INTO t VALUES ({number})")
            assert one.execute("SELECT * FROM v").fetchall() == [(2 * number + 2, number * (number + 1))]
        assert list(other.engine.compact(thorough=True))
        assert one.execute("SELECT count(*) FROM t").fetchall() == [(6,)]
    for root in roots:
        assert not breaks(examine(root, deep=True))
