"""Google's and Azure's stores: sources of files, Delta sources and sinks are in them what they are in S3's."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import obstore
import pytest
from deltalake import DeltaTable

from mz_dagster.adapter import Connection
from mz_dagster.operations.doctor import CHECKS, Severity, examine
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedObject
from mz_dagster.storage.source import BoundFileChanged, FileSource, SourceUnreadable, landing_in
from tests.adapter.test_delta_sinks import step
from tests.clouds import ACCOUNT, Cloud, running_azure, running_gcs
from tests.opened import opened
from tests.source import test_delta
from tests.source.landing import poll
from tests.source.test_delta import reference
from tests.storage.bucket_story import live

#: What these stores have of their own is little: that of S3 is shown by `test_object_store.py` and `test_bucket.py`.
pytestmark = pytest.mark.deep


@pytest.fixture(scope="module", params=[running_gcs, running_azure], ids=["gcs", "azure"])
def running(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    with request.param() as cloud:
        yield cloud


@pytest.fixture
def cloud(running: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The store, which the tests' own writers find in the environment."""
    for name, value in {**running.environment, "STORE_SECRET": running.secret}.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def connection(tmp_path: Path, cloud: Cloud) -> Iterator[Connection]:
    with ExitStack() as stack:
        connection = stack.enter_context(opened(tmp_path))
        for statement in cloud.statements:
            connection.execute(statement)
        yield connection


def test_files_are_read_as_they_come(connection: Connection, cloud: Cloud) -> None:
    place = "in é/a=b"
    connection.execute(
        f"CREATE SOURCE s (id integer) FROM FILES (URI '{cloud.uri(place)}', CONNECTION store, PATTERN '**/*.json*') "
        "FORMAT JSON"
    )
    for number in range(3):
        content = f'{{"id": {number}}}'.encode()
        cloud.put(place, f"d {number % 2}/é+%?{number}.json.gz", gzip.compress(content))
        cloud.put(place, f"d {number % 2}/_unfinished.json", "junk")
        poll(connection)
        poll(connection)
        assert connection.execute("SELECT id FROM s ORDER BY id").fetchall() == [(one,) for one in range(number + 1)]
    cloud.put(place, "d 0/é+%?0.json.gz", gzip.compress(b'{"id": 7}'))
    with pytest.raises(BoundFileChanged, match=r"é\+%\?0\.json\.gz"):
        poll(connection)
    obstore.delete(cloud.client(place), ["d 0/é+%?0.json.gz"])
    poll(connection)
    assert connection.execute("SELECT count(*) FROM s").fetchall() == [(3,)]


def test_of_two_that_create_an_object_one_does(connection: Connection, cloud: Cloud) -> None:
    connection.execute(
        f"CREATE SOURCE s (id integer, PRIMARY KEY (id)) FROM FILES (URI '{cloud.uri('fed')}', CONNECTION store) "
        "FORMAT JSON ENVELOPE UPSERT"
    )
    row = connection.engine.catalog.resolve_name("s")
    assert row is not None
    source = connection.engine.definitions.source(row.id)
    assert isinstance(source, FileSource)
    one = b'{"key": {"id": 1}, "value": {}}'
    with landing_in(source.place) as landing:
        assert landing.put(one, "x", ".jsonl", 7) == f"{7:020}-fed.jsonl"
        assert landing.put(one, "y", ".jsonl", 7) is None
    poll(connection)
    assert connection.execute("SELECT id FROM s").fetchall() == [(1,)]
    assert connection.engine.catalog.last_gain(row.id) > 7


def test_whatever_is_committed_the_source_is_the_table(connection: Connection, cloud: Cloud) -> None:
    table = cloud.uri("follow/t")
    test_delta.follow(connection, table, 0, 7, f"DELTA (URI '{table}', CONNECTION store)")


@pytest.mark.parametrize("envelope", ["ENVELOPE UPSERT", "APPEND CHANGES"])
def test_a_sink_is_its_view(connection: Connection, cloud: Cloud, envelope: str) -> None:
    table = cloud.uri(f"out/{envelope.split()[0]}")
    connection.execute("CREATE TABLE t (a bigint, p text, x double precision)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    connection.execute(f"CREATE SINK s FROM v INTO DELTA (URI '{table}', CONNECTION store) {envelope}")
    for number in range(3):
        connection.execute(f"INSERT INTO t VALUES ({number}, 'x', 0.5), ({number}, 'y', NULL)")
        connection.execute(f"DELETE FROM t WHERE a = {number - 1} AND p = 'x'")
        assert not step(connection).failures
    wanted = Counter(connection.execute("SELECT * FROM v").fetchall())
    if envelope == "APPEND CHANGES":
        sums: Counter[tuple[object, ...]] = Counter()
        for row in DeltaTable(table).to_pyarrow_table().to_pylist():
            sums[row["a"], row["p"], row["x"]] += row["mz_diff"]
        assert +sums == wanted
    else:
        assert reference(table) == wanted
    found = examine(connection.engine.project.root, deep=True).findings
    assert not [one for one in found if CHECKS[one.check].severity is Severity.BREAK]


def test_shards_may_lie_there(cloud: Cloud, tmp_path: Path) -> None:
    (root := tmp_path / "p").mkdir()
    settings = f'[storage]\nuri = "{cloud.uri("shards-of/p")}"\n{cloud.storage}'
    (root / "mz.toml").write_text(f'[project]\nengine = "local"\n{settings}[writes]\ninline_rows = 0\n')

    def files() -> list[str]:
        found = (one["path"] for chunk in cloud.client("shards-of/p").list() for one in chunk)
        return [one for one in found if "/mz_batch=" in one]

    live(root, files)


def test_what_does_not_lead_there_is_told(connection: Connection, cloud: Cloud) -> None:
    create = "CREATE SOURCE {} (a bigint) FROM FILES (URI '{}', CONNECTION {}) FORMAT JSON"
    connection.execute("CREATE CONNECTION s3 TO S3 (REGION = 'us-east-1')")
    with pytest.raises(UndefinedObject, match=r'connection "s3" does not lead to (GCS|AZURE)'):
        connection.execute(create.format("s", cloud.uri("x"), "s3"))
    with pytest.raises(UndefinedObject, match='connection "store" does not lead to S3'):
        connection.execute(create.format("s", "s3://lake/x", "store"))
    with pytest.raises(InvalidTableDefinition, match="needs a CONNECTION"):
        connection.execute(f"CREATE SOURCE s (a bigint) FROM DELTA (URI '{cloud.uri('x')}')")
    connection.execute(create.format("s", f"{cloud.scheme}://nowhere/x", "store"))
    with pytest.raises(SourceUnreadable, match=r"cannot list .*nowhere/x") as failure:
        poll(connection)
    assert cloud.secret not in str(failure.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("REGION = 'x'", "expected ACCOUNT NAME or"),
        ("ENDPOINT = 'x'", "requires an ACCOUNT NAME"),
        (f"ACCOUNT NAME = '{ACCOUNT}', ACCOUNT KEY = 'written out'", "has to be a secret"),
        (f"ACCOUNT NAME = '{ACCOUNT}', ACCOUNT KEY = SECRET k, SAS TOKEN = SECRET k", "one way to get in"),
        (f"ACCOUNT NAME = '{ACCOUNT}', CLIENT ID = 'x'", "one way to get in"),
    ],
)
def test_a_connection_to_azure_is_whole(options: str, why: str, tmp_path: Path) -> None:
    with opened(tmp_path) as connection, pytest.raises(Exception, match=why):
        connection.execute(f"CREATE CONNECTION c TO AZURE ({options})")
