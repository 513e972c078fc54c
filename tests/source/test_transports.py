"""The laws of transports, which every kind of source keeps wherever what fills it is.

A transport registers itself below: how a source of it is made, how rows come, and how what was bound goes and comes
back.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mz_dagster.adapter import Connection
from mz_dagster.catalog import Binding, CollectionRow
from mz_dagster.errors import OperationalError
from mz_dagster.storage.envelope.local import insertions
from mz_dagster.storage.source import ChangeSource, FileSource, Ledger, Source
from tests.iceberg_tables import catalog_in
from tests.object_store import BUCKET, Store, running_store
from tests.opened import opened
from tests.source.landing import poll

Rows = Sequence[tuple[int, str | None]]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Transport(ABC):
    """One kind of transport, with a place of its own.

    Args:
        root: The project's folder.
        store: An object store that runs.
    """

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.store, self.open = root, store, ExitStack()
        self.begin()

    def begin(self) -> None:
        """Makes the place."""
        self.numbers = count(1)

    @property
    @abstractmethod
    def create(self) -> Sequence[str]:
        """The statements that make the source `s`."""

    @abstractmethod
    def put(self, rows: Rows) -> None:
        """Has rows arrive."""

    @abstractmethod
    def lose(self) -> None:
        """Takes away what has arrived."""

    @abstractmethod
    def find(self) -> None:
        """Puts back what was taken away."""


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist([{"id": id, "name": name} for id, name in rows], SCHEMA)


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps({"id": id, "name": name}) + "\n" for id, name in rows).encode()


class InFolder(Transport):
    """Something in the folder `in`, which is renamed to be lost."""

    def lose(self) -> None:
        os.rename(self.root / "in", self.root / "elsewhere")

    def find(self) -> None:
        os.rename(self.root / "elsewhere", self.root / "in")


class InBucket(Transport):
    """Something below a prefix, whose objects are deleted to be lost."""

    def begin(self) -> None:
        super().begin()
        self.prefix = f"transports{abs(hash(self.root))}/in"
        self.client = self.store.client()
        self.lost: dict[str, bytes] = {}

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/{self.prefix}"

    def lose(self) -> None:
        for one in self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.prefix}/")["Contents"]:
            self.lost[one["Key"]] = self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read()
            self.client.delete_object(Bucket=BUCKET, Key=one["Key"])

    def find(self) -> None:
        for key, content in self.lost.items():
            self.client.put_object(Bucket=BUCKET, Key=key, Body=content)


class FilesInFolder(InFolder):
    def begin(self) -> None:
        super().begin()
        (self.root / "in").mkdir()

    @property
    def create(self) -> Sequence[str]:
        return ["CREATE SOURCE s (id bigint, name text) FROM FILES (FOLDER 'in') FORMAT JSON"]

    def put(self, rows: Rows) -> None:
        (self.root / "in" / f"{next(self.numbers)}.jsonl").write_bytes(lines(rows))


class FilesInBucket(InBucket):
    @property
    def create(self) -> Sequence[str]:
        files = f"FILES (URI '{self.uri}', CONNECTION store)"
        return [*self.store.statements, f"CREATE SOURCE s (id bigint, name text) FROM {files} FORMAT JSON"]

    def put(self, rows: Rows) -> None:
        key = f"{self.prefix}/{next(self.numbers)}.jsonl"
        self.client.put_object(Bucket=BUCKET, Key=key, Body=lines(rows))


class DeltaInFolder(InFolder):
    @property
    def create(self) -> Sequence[str]:
        return ["CREATE SOURCE s (id bigint, name text) FROM DELTA (URI 'in')"]

    def put(self, rows: Rows) -> None:
        write_deltalake(self.root / "in", table(rows), mode="append")


class DeltaInBucket(InBucket):
    @property
    def create(self) -> Sequence[str]:
        delta = f"DELTA (URI '{self.uri}', CONNECTION store)"
        return [*self.store.statements, f"CREATE SOURCE s (id bigint, name text) FROM {delta}"]

    def put(self, rows: Rows) -> None:
        options = {
            "aws_endpoint": self.store.endpoint, "aws_allow_http": "true", "aws_access_key_id": self.store.key,
            "aws_secret_access_key": self.store.secret, "aws_region": "us-east-1",
        }  # fmt: skip
        write_deltalake(self.uri, table(rows), mode="append", storage_options=options)


class Iceberg(InFolder):
    def begin(self) -> None:
        super().begin()
        catalog = self.open.enter_context(catalog_in(self.root / "in"))
        self.table = catalog.create_table("db.t", SCHEMA)

    @property
    def create(self) -> Sequence[str]:
        url = "sqlite:///in/catalog.db"
        return [
            f"CREATE CONNECTION lake TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = '{url}')",
            "CREATE SOURCE s (id bigint, name text) FROM ICEBERG (TABLE 'db.t', CONNECTION lake)",
        ]

    def put(self, rows: Rows) -> None:
        self.table.append(table(rows))


TRANSPORTS = [FilesInFolder, FilesInBucket, DeltaInFolder, DeltaInBucket, Iceberg]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture(params=TRANSPORTS, ids=lambda one: one.__name__)
def transport(
    request: pytest.FixtureRequest, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Transport]:
    monkeypatch.setenv("STORE_SECRET", store.secret)
    made = request.param(tmp_path, store)
    with made.open:
        yield made


@pytest.fixture
def connection(transport: Transport) -> Iterator[Connection]:
    """A connection to a project with a source of which a first row is there."""
    transport.put([(0, None)])
    with opened(transport.root) as connection:
        for statement in transport.create:
            connection.execute(statement)
        yield connection


def parts(connection: Connection) -> tuple[Source, CollectionRow, tuple[Binding, ...]]:
    """Returns the source, its collection, and what was bound."""
    engine = connection.engine
    id = engine.collection_of("s")
    return engine.definitions.source(id), engine.catalog.collection(id), tuple(engine.catalog.bindings(id, 0))


def held(connection: Connection, tick: int | None = None) -> Counter[tuple[object, ...]]:
    at = "" if tick is None else f" AS OF {tick}"
    return Counter(connection.execute(f"SELECT * FROM s{at}").fetchall())


def test_each_tick_has_what_was_there_and_each_arrival_is_bound_once(
    connection: Connection, transport: Transport
) -> None:
    poll(connection)
    wanted: Counter[tuple[object, ...]] = Counter({(0, None): 1})
    found = held(connection)
    assert found == wanted
    ticks = {}
    for number in range(1, 4):
        rows = [(number, "é'\\\\" * (number % 2)), (number, None), (0, None)][:number]
        transport.put(rows)
        polled = connection.engine.poll("default")
        assert polled.tick is not None
        wanted = wanted + Counter(rows)
        ticks[polled.tick] = wanted
        assert connection.engine.poll("default").tick is None, "nothing is new"
    assert held(connection) == wanted
    for tick, content in ticks.items():
        assert held(connection, tick) == content


def test_updates_are_a_function_of_bindings_however_they_are_taken_together(
    connection: Connection, transport: Transport
) -> None:
    for number in range(4):
        poll(connection)
        transport.put([(number, "x"), (0, None)])
    source, row, bindings = parts(connection)
    assert len(bindings) == 4
    columns = row.columns

    def updates(some: Sequence[Binding], before: Binding | None) -> pa.Table:
        if isinstance(source, ChangeSource):
            return source.updates(some, before, lambda _: pytest.fail("it has no key"), columns)
        assert isinstance(source, FileSource)
        return insertions(source.read_here(some), columns=columns)

    def summed(*tables: pa.Table) -> Counter[tuple[object, ...]]:
        sums: Counter[tuple[object, ...]] = Counter()
        for one in tables:
            for *data, time, diff, error in (tuple(row.values()) for row in one.to_pylist()):
                sums[*data, time, error] += diff
        return sums

    whole = summed(updates(bindings, None))
    assert whole.total() == 7
    for cut in range(1, 4):
        assert summed(updates(bindings[:cut], None), updates(bindings[cut:], bindings[cut - 1])) == whole
    assert summed(updates(bindings, None)) == whole, "and again"
    assert source.size(bindings) > 0
    assert source.described(bindings)


def test_what_is_lost_is_told_until_it_is_back(connection: Connection, transport: Transport) -> None:
    poll(connection)
    transport.put([(1, "x")])
    poll(connection)
    source, row, bindings = parts(connection)
    assert not source.lost(bindings)
    transport.lose()
    with pytest.raises(OperationalError) as caught:
        poll(connection)
    assert caught.value.hint, "it says what to do"
    with suppress(OperationalError):  # it may be that nothing can be told
        assert source.lost(bindings)
    assert parts(connection)[2] == bindings, "nothing was bound"
    transport.find()
    poll(connection)
    assert not source.lost(bindings)
    assert held(connection) == {(0, None): 1, (1, "x"): 1}
    assert not source.gain(Ledger(connection.engine.catalog, row))


def test_another_process_goes_on(connection: Connection, transport: Transport) -> None:
    poll(connection)
    transport.put([(1, "x")])
    poll(connection)
    with opened(transport.root) as another:
        assert another.engine.poll("default").tick is None, "all is bound"
        transport.put([(2, None)])
        poll(another)
        assert held(another) == {(0, None): 1, (1, "x"): 1, (2, None): 1}
    assert connection.engine.poll("default").tick is None


def test_places_show_that_something_arrived(connection: Connection, transport: Transport) -> None:
    poll(connection)
    source, *_ = parts(connection)
    if not source.places_show_all:
        return
    before = [os.stat(place).st_mtime_ns for place in source.places]
    transport.put([(1, "x")])
    assert before != [os.stat(place).st_mtime_ns for place in source.places]
