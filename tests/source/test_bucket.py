"""Files in an object store: a source of them is what it is of a folder, and a poll costs requests by what is new."""

from __future__ import annotations

import gzip
import os
import signal
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.doctor import examine
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedObject
from mz_dagster.storage.object_store import SecretUnavailable
from mz_dagster.storage.source import BoundFileChanged, FileSource, SourceUnreadable
from tests.forks import forks
from tests.object_store import BUCKET, Store, opened_beside, running_store
from tests.opened import opened
from tests.source.landing import bind, poll, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture
def connection(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    with opened_beside(store, tmp_path, monkeypatch) as connection:
        yield connection


class Prefix:
    """A place of the test's own in the bucket, and what is read from it."""

    def __init__(self, store: Store, name: str) -> None:
        self.client, self.name = store.client(), name

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/{self.name}"

    def put(self, path: str, content: str | bytes) -> None:
        body = content.encode() if isinstance(content, str) else content
        self.client.put_object(Bucket=BUCKET, Key=f"{self.name}/{path}", Body=body)

    def delete(self, path: str) -> None:
        self.client.delete_object(Bucket=BUCKET, Key=f"{self.name}/{path}")

    def files(self, pattern: str | None = None) -> str:
        said = "" if pattern is None else f", PATTERN '{pattern}'"
        return f"FILES (URI '{self.uri}', CONNECTION store{said})"


@pytest.fixture
def prefix(request: pytest.FixtureRequest, store: Store) -> Prefix:
    return Prefix(store, f"in é {abs(hash(request.node.nodeid))}/a=b")


def held(connection: Connection, query: str = "SELECT * FROM s") -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(query).fetchall())


def test_files_are_read_as_they_come(connection: Connection, prefix: Prefix) -> None:
    connection.execute(
        "CREATE SOURCE s (id integer, name text, PRIMARY KEY (id)) "
        f"FROM {prefix.files('**/*.jsonl*')} FORMAT JSON ENVELOPE UPSERT"
    )
    random, wanted = Random(1), dict[int, str]()
    for number in range(8):
        lines = []
        for _ in range(random.randrange(1, 5)):
            key = random.randrange(6)
            if random.random() < 0.3:
                lines.append(f'{{"key": {{"id": {key}}}, "value": null}}')
                wanted.pop(key, None)
            else:
                wanted[key] = f"n{random.randrange(99)}"
                lines.append(f'{{"key": {{"id": {key}}}, "value": {{"name": "{wanted[key]}"}}}}')
        content, packed = "\n".join(lines), random.random() < 0.5
        name = f"d {number % 2}/é+%?{number:03}.jsonl{'.gz' * packed}"
        prefix.put(name, gzip.compress(content.encode()) if packed else content)
        prefix.put(f"d {number % 2}/_unfinished{number}.jsonl", "junk")
        prefix.put(f"other{number}.txt", "junk")
        poll(connection)
        assert held(connection) == Counter(wanted.items())
    (made,) = connection.execute("SHOW CREATE SOURCE s").fetchall()
    assert f"URI '{prefix.uri}', CONNECTION store" in made[1]
    assert not [one for one in examine(connection.engine.project.root, deep=True).findings if "bound" in one.check]


def test_a_poll_asks_for_nothing_but_lists_and_what_is_new(
    connection: Connection, prefix: Prefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        prefix.put(f"{number}.csv", f"id\n{number}\n")
        prefix.put(f"deeper/{number}.csv", "junk")
    asked: list[str] = []
    for name in ("get", "head", "list", "list_with_delimiter"):
        original = getattr(obstore, name)

        def noted(*args: Any, name: str = name, original: Any = original, **options: Any) -> Any:
            asked.append(name if len(args) == 1 else f"{name} {args[1]}")
            return original(*args, **options)

        monkeypatch.setattr(obstore, name, noted)
    connection.execute(f"CREATE SOURCE s (id integer) FROM {prefix.files()} FORMAT CSV")
    poll(connection)
    assert held(connection) == Counter((number,) for number in range(5))
    asked.clear()
    poll(connection)
    assert asked == ["list_with_delimiter"]
    prefix.put("0a.csv", "id\n7\n")
    asked.clear()
    poll(connection)
    assert asked == ["list_with_delimiter", "get 0a.csv"], "it is new, wherever its name sorts"
    prefix.put("3.csv", "id\n3\n")  # the same content again, under the same tag
    asked.clear()
    poll(connection)
    assert asked == ["list_with_delimiter"]


@pytest.mark.parametrize("pattern", [None, "**/*.jsonl"])
def test_where_names_ascend_only_what_is_new_is_listed(
    connection: Connection, prefix: Prefix, monkeypatch: pytest.MonkeyPatch, pattern: str | None
) -> None:
    """Of names of any signs, which a store sorts by their bytes; and what is late comes unless it is too late."""
    names = sorted(["0", "A b", "a+%?", "a=1", "aé", "b", "b\uffff", "b🦆", "c"], key=str.encode)
    listed: list[str] = []
    original = obstore.list

    def noted(*args: Any, **options: Any) -> Any:
        for some in original(*args, **options):
            listed.extend(one["path"] for one in some)
            yield some

    monkeypatch.setattr(obstore, "list", noted)
    files = prefix.files(pattern).removesuffix(")")
    connection.execute(f"CREATE SOURCE s (id integer) FROM {files}, NAMES ASCEND) FORMAT JSON")
    wanted: Counter[tuple[int]] = Counter()
    for number, name in enumerate(names):
        if name != "b":
            prefix.put(f"{name}.jsonl", f'{{"id": {number}}}')
            prefix.put(f"{name}/x.txt", "junk")
            wanted[number,] += 1
            poll(connection)
            assert held(connection) == wanted
    prefix.put("b.jsonl", '{"id": 77}')  # late, by less than an hour
    poll(connection)
    assert held(connection) == wanted + Counter([(77,)])
    monkeypatch.setattr("mz_dagster.storage.source.files._LATE_MS", 0)
    listed.clear()
    prefix.put("0a.jsonl", '{"id": 78}')  # too late, by what was promised
    prefix.put("d.jsonl", '{"id": 79}')
    poll(connection)
    assert [one for one in listed if one.endswith(".jsonl")] == ["d.jsonl"]
    assert held(connection) == wanted + Counter([(77,), (79,)])
    prefix.put("e.jsonl", '{"id": 80}')
    poll(connection)
    prefix.put("e.jsonl", '{"id": 81}')  # bound, and not read yet
    with pytest.raises(BoundFileChanged, match=r'bound file "e\.jsonl" has changed'):
        poll(connection)
    assert "NAMES ASCEND" in connection.execute("SHOW CREATE SOURCE s").fetchall()[0][1]
    with pytest.raises(InvalidTableDefinition, match="NAMES ASCEND is about buckets"):
        connection.execute("CREATE SOURCE f (id integer) FROM FILES (FOLDER 'in', NAMES ASCEND) FORMAT JSON")


def test_what_changed_or_went_is_told(connection: Connection, prefix: Prefix) -> None:
    connection.execute(f"CREATE SOURCE s (id integer) FROM {prefix.files()} FORMAT JSON")
    for number in range(3):
        prefix.put(f"{number}.jsonl", f'{{"id": {number}}}')
    poll(connection)
    assert held(connection) == Counter([(0,), (1,), (2,)])
    prefix.put("1.jsonl", '{"id": 5}')
    with pytest.raises(BoundFileChanged, match=r'bound file "1\.jsonl" has changed[\s\S]* Move it away, or restore'):
        poll(connection)
    findings = examine(connection.engine.project.root, deep=True).findings
    assert [one.check for one in findings if one.check.startswith("bound")] == ["bound-file-changed"]
    prefix.put("1.jsonl", '{"id": 1}')
    prefix.put("3.jsonl", '{"id": 3}')
    poll(connection)
    assert held(connection, "SELECT count(*) FROM s") == Counter([(4,)])
    # What is sealed may go.
    for number in range(4):
        prefix.delete(f"{number}.jsonl")
    poll(connection)
    assert held(connection, "SELECT count(*) FROM s") == Counter([(4,)])


def test_parquet_is_read_from_a_store(connection: Connection, prefix: Prefix, tmp_path: Path) -> None:
    connection.execute(f"CREATE SOURCE s (id bigint, name text) FROM {prefix.files()} FORMAT PARQUET")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"name": ["x", None], "id": [1, 2]}), sink)
    whole = sink.getvalue().to_pybytes()
    prefix.put("a.parquet", whole[:-100] + bytes(90) + whole[-10:])
    with pytest.raises(SourceUnreadable, match=r"cannot read Parquet file \"a.parquet\""):
        poll(connection)
    prefix.put("a.parquet", whole)
    poll(connection)
    assert held(connection) == Counter([(1, "x"), (2, None)])
    prefix.put("b.parquet", b"no parquet")
    with pytest.raises(SourceUnreadable, match="It is not a Parquet file"):
        poll(connection)


def test_orc_is_read_from_a_store(connection: Connection, prefix: Prefix) -> None:
    connection.execute(f"CREATE SOURCE s (id bigint, name text) FROM {prefix.files()} FORMAT ORC")
    sink = BytesIO()
    orc.write_table(pa.table({"name": ["x", None], "id": [1, 2]}), sink)
    prefix.put("a.orc", sink.getvalue()[:-30])
    with pytest.raises(SourceUnreadable, match=r"cannot read ORC file \"a.orc\""):
        poll(connection)
    prefix.put("a.orc", sink.getvalue())
    poll(connection)
    assert held(connection) == Counter([(1, "x"), (2, None)])


@pytest.mark.deep
def test_spark_reads_copies(spark: SparkSession, connection: Connection, prefix: Prefix, tmp_path: Path) -> None:
    connection.execute(f"CREATE SOURCE s (id integer, name text) FROM {prefix.files('**/*')} FORMAT JSON")
    prefix.put("a b/f.zst", bytes(pa.Codec("zstd").compress(b'{"id": 1, "name": "x"}\n{"id": "y"}', asbytes=True)))
    prefix.put("g", '{"id": 2}')
    files = connection.engine.definitions.source(connection.engine.collection_of("s"))
    assert isinstance(files, FileSource)
    bindings = bind({1: files.poll({})})
    with files.found_by_spark(bindings) as (found, bound):
        by_spark = records(spark, found, bound, files.read_here(bindings))
    assert [one[1:3] for one in by_spark] == [("a b/f.zst", 1), ("a b/f.zst", 2), ("g", 1)]


def read_until_killed(root: str, secret: str, fail_point: str) -> None:
    """Is the process: reads the source, and is killed on the way."""
    os.environ |= {"STORE_SECRET": secret, VARIABLE: fail_point}
    with opened(Path(root)) as connection:
        held(connection)


@pytest.mark.parametrize(
    "fail_point",
    [
        "tick.minted",
        *(
            pytest.param(point, marks=pytest.mark.deep)
            for point in ("tick.before_mint", "append.inlined", "append.before_seal", "seal.in_transaction")
        ),
        "seal.sealed",
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    connection: Connection, prefix: Prefix, tmp_path: Path, store: Store, fail_point: str
) -> None:
    connection.execute(f"CREATE SOURCE s (id integer) FROM {prefix.files()} FORMAT JSON")
    for number in range(2):
        prefix.put(f"{number}.jsonl", f'{{"id": {number}}}')
        process = forks().Process(target=read_until_killed, args=(str(tmp_path), store.secret, fail_point))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        poll(connection)
        assert held(connection) == Counter((one,) for one in range(number + 1))


def test_a_connection_that_is_altered_is_taken_up_by_the_next_poll_and_write(
    connection: Connection, prefix: Prefix, tmp_path: Path, store: Store
) -> None:
    sink = f"s3://{BUCKET}/out of {abs(hash(prefix.name))}".replace(" ", "_")
    connection.execute(
        f"CREATE SOURCE s (id integer, PRIMARY KEY (id)) FROM {prefix.files()} FORMAT JSON ENVELOPE UPSERT"
    )
    connection.execute(f"CREATE SINK k FROM s INTO DELTA (URI '{sink}', CONNECTION store) ENVELOPE UPSERT")
    prefix.put("0.jsonl", '{"key": {"id": 1}, "value": {}}')
    poll(connection)
    assert held(connection) == Counter([(1,)])
    id = connection.engine.collection_of("s")
    prefix.put("1.jsonl", '{"key": {"id": 2}, "value": {}}')
    with opened(tmp_path) as other:  # another process, which has used the old way
        poll(other)
        connection.execute("ALTER CONNECTION store SET (ENDPOINT = 'http://127.0.0.1:9')")
        prefix.put("2.jsonl", '{"key": {"id": 3}, "value": {}}')
        for one in (other, connection):
            with pytest.raises(Error, match="cannot"):
                poll(one)
        connection.execute(f"ALTER CONNECTION store SET (ENDPOINT = '{store.endpoint}')")
        for one in (other, connection):
            poll(one)
            assert held(one) == Counter([(1,), (2,), (3,)])
    assert connection.engine.collection_of("s") == id
    (found,) = connection.execute("SHOW SINKS").fetchall()
    assert found[0] == "k"
    assert not [one for one in examine(tmp_path, deep=True).findings if "sink" in one.check]


def test_what_is_no_place_is_refused(connection: Connection, prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    create = "CREATE SOURCE s (id integer) FROM FILES ({}) FORMAT JSON"
    for place, why in {
        f"URI '{prefix.uri}'": "needs a CONNECTION",
        "FOLDER 'in', CONNECTION store": "FOLDER is reached without a CONNECTION",
        f"FOLDER 'in', URI '{prefix.uri}', CONNECTION store": "exclude each other",
        "URI 's3://b/../c', CONNECTION store": "names no files",
        "URI 'ftp://b/c', CONNECTION store": "names no files",
        "URI 's3://b//c', CONNECTION store": "names no files",
        "CONNECTION store": "requires a FOLDER",
    }.items():
        with pytest.raises(InvalidTableDefinition, match=why):
            connection.execute(create.format(place))
    with pytest.raises(UndefinedObject, match='connection "nobody" does not exist'):
        connection.execute(create.format(f"URI '{prefix.uri}', CONNECTION nobody"))
    connection.execute(create.format("URI 's3://nowhere', CONNECTION store"))
    with pytest.raises(SourceUnreadable, match="NoSuchBucket: The specified bucket does not exist"):
        poll(connection)
    monkeypatch.delenv("STORE_SECRET")
    with pytest.raises(SecretUnavailable, match="STORE_SECRET"):
        poll(connection)
    assert os.environ.get("STORE_SECRET") is None
