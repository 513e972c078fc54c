"""Rows that a SELECT asks for by key come without Spark, from the files that may hold them, as Spark would return them.

What is held here is the engine as a whole; which predicates are lookups, and which files they read, is storage's
(`tests/storage/test_lookup.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.adapter.simple_plan import SimplePlan
from mz_dagster.catalog import Batch, BatchId, BatchState, Catalog, CollectionRow, ListedBatches
from mz_dagster.compute.snapshot.peek import CollectionHasErrors, NegativeMultiplicity
from mz_dagster.errors import InternalError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.plan.physical import Linear, MapFilterProject, ReadCollection, SnapshotPlan
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, Literal
from mz_dagster.scalars.types import BOOL, INT4, INT8, Column, RelationType
from mz_dagster.storage import LocalShards, update_table
from mz_dagster.storage.shards import StoredFile
from tests.budgets import SetBudget
from tests.sparkless import refuse_spark

Row = tuple[Any, ...]

COLUMNS: Mapping[str, tuple[str, list[Any]]] = {
    "b": ("boolean", [True, False]),
    "s": ("smallint", [0, 1, -5]),
    "i": ("integer", [1, 2, 3, -(2**31)]),
    "l": ("bigint", [1, 2, 3, 2**62]),
    "n": ("numeric(20, 2)", [Decimal("0.00"), Decimal("1.50"), Decimal("-12345678901234567.89")]),
    "x": ("text", ["", "a", "é", "a "]),
    "v": ("varchar(5)", ["a", "b "]),
    "c": ("char(3)", ["a", "bcd"]),
    "d": ("date", [date(1900, 1, 1), date(2024, 2, 29)]),
    "ts": ("timestamp", [datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1900, 1, 1)]),
    "tz": ("timestamptz", [datetime(2024, 2, 29, 1, 2, 3, 4, UTC), datetime(1900, 1, 1, tzinfo=UTC)]),
    "ti": ("time", [time(0), time(12, 30, 0, 1)]),
    "u": ("uuid", [UUID(int=7), UUID(int=2**127 + 1)]),
    "y": ("bytea", [b"", b"\x00\xff"]),
    "f": ("double precision", [0.0, -0.0, 1.5, float("nan")]),
    "z": ("timestamptz[]", [[], [datetime(2024, 2, 29, 1, 2, 3, 4, UTC), None]]),
}
NAMES = ", ".join(COLUMNS)


@contextmanager
def without_spark() -> Iterator[None]:
    """Fails if Spark is opened in the block."""

    with pytest.MonkeyPatch.context() as patch:
        refuse_spark(patch)
        yield


@contextmanager
def by_spark() -> Iterator[None]:
    """Runs all that a plan reads on Spark for the length of the block."""

    def none(plan: SnapshotPlan, rows: Sequence[object]) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimplePlan, "of", none)
        yield


def rows(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
    return sorted(connection.execute(sql, parameters).fetchall(), key=repr)


@pytest.fixture
def laid_out(set_budget: SetBudget) -> None:
    """Lays batches out in buckets that hold little; Spark merges."""
    set_budget(clustered_rows=40, bucket_rows=12, inlined_rows=0, unbounded_rows=0, small_rows=0)


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[list[StoredFile]]:
    """The files that each read in process opens."""
    found: list[list[StoredFile]] = []
    read_files = LocalShards.read_files

    def noted(self: LocalShards, collection: Any, batches: Any, files: Sequence[StoredFile], **rest: Any) -> Any:
        found.append(list(files))
        return read_files(self, collection, batches, files, **rest)

    monkeypatch.setattr(LocalShards, "read_files", noted)
    return found


def compacted(connection: Connection) -> None:
    assert [line for line in connection.engine.compact() if "merged" in line]


def buckets(connection: Connection, name: str) -> set[tuple[int, ...] | None]:
    """Returns by which columns the files of a collection are laid out."""
    engine = connection.engine
    row = engine.catalog.collection(engine.collection_of(name))
    files = engine.shards.files(row, engine.catalog.live_batches([row.id])[row.id])
    return {None if one.bucket is None else one.bucket.key for one in files}


#: The columns that the table is laid out by.
KEYS = [
    ("b", "i", "c", "n", "u", "tz"),
    *(pytest.param(one, marks=pytest.mark.deep) for one in [("y", "ts", "ti", "s", "v"), ("l",), ("x", "d")]),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.usefixtures("laid_out")
def test_a_lookup_returns_what_spark_does(connection: Connection, key: tuple[str, ...]) -> None:
    dice = random.Random(repr(key))
    drawn = [[None, *pool] for _, pool in COLUMNS.values()]
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, (type_, _) in COLUMNS.items())})")
    connection.execute(f"CREATE INDEX t_by_key ON t ({', '.join(key)})")

    def insert(number: int) -> None:
        many = [tuple(map(dice.choice, drawn)) for _ in range(number)]
        marks = ", ".join("?" * len(COLUMNS))
        connection.cursor().executemany(f"INSERT INTO t VALUES ({marks})", [*many, *many[: number // 10]])

    insert(150)
    insert(20)
    with without_spark():
        connection.execute("DELETE FROM t WHERE i = 1 AND l IN (1, 2)")
    assert buckets(connection, "t") == {None}
    compacted(connection)
    assert tuple(sorted(list(COLUMNS).index(one) for one in key)) in buckets(connection, "t")
    insert(15)
    connection.execute("UPDATE t SET f = 2.5, x = 'new' WHERE l = 3 AND s = 1")
    with without_spark():
        connection.execute("DELETE FROM t WHERE x = 'new' AND b")
    assert None in buckets(connection, "t")

    def asked(name: str) -> tuple[str, list[Any]]:
        value = dice.choice(drawn[list(COLUMNS).index(name)])
        return (f"{name} IS NULL", []) if value is None else (f"{name} = ?", [value])

    found = 0
    for _ in range(4):
        chosen = [*key[: dice.choice([len(key), 1])], dice.choice(["s", "x", "b"])]
        parts = [asked(name) for name in dict.fromkeys(chosen if dice.random() < 0.5 else key)]
        where = " AND ".join(part for part, _ in parts)
        parameters = [value for _, values in parts for value in values]
        if dice.random() < 0.4:
            other, more = asked(key[0])
            where, parameters = f"({where}) OR {other} OR l IN (2, NULL, 77)", [*parameters, *more]
        sql = f"SELECT {NAMES}, 'const' AS k FROM t WHERE {where}"
        with without_spark():
            here = rows(connection, sql, parameters)
        with by_spark():
            there = rows(connection, sql, parameters)
        assert [*map(repr, here)] == [*map(repr, there)], (where, parameters)  # NaN and -0.0, too
        found += len(here)
    assert found
    for where in ("n = 1.5000", "n = 1.505", "s = 40000", "c = 'a'", "i = 1 AND i = 2"):
        sql = f"SELECT count(*) FROM (SELECT {NAMES} FROM t WHERE {where}) AS found"
        with without_spark():
            here = rows(connection, f"SELECT {NAMES} FROM t WHERE {where}")
        assert rows(connection, sql) == [(len(here),)], where


@pytest.mark.usefixtures("laid_out")
def test_a_lookup_opens_the_files_of_its_bucket_only(
    connection: Connection, files_read: list[list[StoredFile]]
) -> None:
    connection.execute("CREATE TABLE t (k bigint, g integer)")
    connection.execute("CREATE INDEX t_by_k ON t (k)")
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(k, k % 7) for k in range(200)])
    connection.execute("INSERT INTO t VALUES (NULL, 7)")
    compacted(connection)
    connection.execute("INSERT INTO t VALUES (500, 1), (600, 1)")
    for where, wanted, least in (
        ("k = 7", [(0,)], 1), ("k = 550", [], 2), ("k = 500", [(1,)], 2), ("k IS NULL", [(7,)], 3)
    ):  # fmt: skip
        files_read.clear()
        with without_spark():
            assert rows(connection, f"SELECT g FROM t WHERE {where}") == wanted
        ((*files,),) = files_read
        assert len(files) <= least, where
        assert len([one for one in files if one.bucket is not None]) <= 1
    files_read.clear()
    with without_spark():
        assert rows(connection, "SELECT k FROM t WHERE k IN (1, 2, 3) AND g = 2") == [(2,)]
    ((*files,),) = files_read
    assert 1 <= len(files) <= 3


@pytest.mark.deep
def test_an_error_anywhere_is_raised_as_spark_does(
    connection: Connection, laid_out: None, files_read: list[list[StoredFile]]
) -> None:
    connection.execute("CREATE TABLE t (k bigint, g integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 10 / g AS q FROM t")
    connection.execute("CREATE INDEX v_by_k ON v (k)")
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(k, 1 + k % 7) for k in range(200)])
    sql = "SELECT q FROM v WHERE k = 7"

    def failure() -> CollectionHasErrors:
        with pytest.raises(CollectionHasErrors, match="division by zero") as raised:
            connection.execute(sql)
        return raised.value

    assert rows(connection, sql) == [(10,)]
    connection.execute("INSERT INTO t VALUES (1000, 0), (1001, 0), (7, 2)")
    connection.execute("SELECT count(*) FROM t")
    with pytest.raises(CollectionHasErrors):  # Spark steps the view
        connection.execute("SELECT q FROM v")
    compacted(connection)
    with without_spark():
        here = failure()
    assert len(files_read[-1]) < len(_files(connection, "v"))
    with by_spark():
        there = failure()
    assert (str(here), here.detail, here.sqlstate) == (str(there), there.detail, there.sqlstate)
    connection.execute("DELETE FROM t WHERE g = 0")
    connection.execute("SELECT q FROM v WHERE k = 0")
    with without_spark():
        assert sorted(rows(connection, sql)) == [(5,), (10,)]


def _files(connection: Connection, name: str) -> Sequence[StoredFile]:
    engine = connection.engine
    row = engine.catalog.collection(engine.collection_of(name))
    return engine.shards.files(row, engine.catalog.live_batches([row.id])[row.id])


class Stored:
    """A collection with one batch of updates, each `(data, diff)` or `(data, diff, error)`, all at time 5."""

    def __init__(self, folder: Path, *updates: Any) -> None:
        columns = (Column("k", INT8), Column("g", INT4))
        lower, upper = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 9)
        self.row = CollectionRow(GlobalId("u1"), "t", lower, upper, columns, frozenset(), "shards/u1", None)
        self.shards = LocalShards(folder)
        frame = update_table(columns, [(data, 5, diff, *error) for data, diff, *error in updates])
        stats = self.shards.append(self.row, BatchId(1), frame)
        batch = Batch(BatchId(1), self.row.id, lower, upper, BatchState.LIVE, stats)
        self.listed = ListedBatches(lower, upper, (batch,))

    def looked_up(self, k: int) -> list[Row] | None:
        """Returns g where k is so."""
        relation_type = RelationType(self.row.columns)
        equal = Call("eq_int8", (reference(relation_type, 0), Literal(k, INT8)), BOOL)
        mfp = MapFilterProject(2, (("filter", equal),), (1,))
        plan = Linear(ReadCollection(self.row.id, relation_type), mfp, RelationType(self.row.columns[1:]))
        simple = SimplePlan.of(SnapshotPlan((), plan), [self.row])
        assert simple is not None
        found = simple.read(self.shards, self.row, self.listed, 5)
        return None if found is None else [*found]


def test_multiplicities_are_summed_and_a_negative_one_is_an_error_of_what_was_asked_for(tmp_path: Path) -> None:
    stored = Stored(tmp_path, ((1, 1), 3), ((1, 1), -1), ((2, 1), 1), ((2, 1), -1), ((3, 1), -1), ((None, 4), -1))
    assert stored.looked_up(1) == [(1,), (1,)]
    assert stored.looked_up(2) == []
    with pytest.raises(NegativeMultiplicity, match="negative"):
        stored.looked_up(3)


def test_errors_are_told_apart_by_what_they_say_only(tmp_path: Path) -> None:
    stored = Stored(tmp_path / "a", ((1, 1), 1), ((1, 2), 1, "22012 x"), ((2, None), 1, "22012 x"))
    with pytest.raises(CollectionHasErrors) as raised:
        stored.looked_up(7)
    assert (raised.value.message, raised.value.detail) == ("x", "It is an error of the data, with SQLSTATE 22012.")
    cancelled = Stored(tmp_path / "b", ((1, 1), 1), ((1, 2), 1, "22012 x"), ((2, None), -1, "22012 x"))
    assert cancelled.looked_up(1) == [(1,)]


def test_much_to_search_is_left_to_spark(tmp_path: Path, set_budget: SetBudget) -> None:
    stored = Stored(tmp_path, *(((k, 1), 1) for k in range(10)))
    set_budget(searched_rows=10)
    assert stored.looked_up(1) == [(1,)]
    set_budget(searched_rows=9)
    assert stored.looked_up(1) is None


def test_what_was_swept_while_it_was_read_is_read_again_under_a_lease(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    set_budget(inlined_rows=0)  # what is inlined stays in memory
    sparkless.execute("CREATE TABLE t (k integer)")
    for k in range(8):
        sparkless.execute(f"INSERT INTO t VALUES ({k})")
    engine = sparkless.engine
    id = engine.collection_of("t")
    before = engine.catalog.listed([id])
    assert rows(sparkless, "SELECT k FROM t WHERE k = 3") == [(3,)]  # so that the old batches are known
    compacted(sparkless)
    assert {one.id for one in before[id].batches} - engine.shards.stored_batches(engine.catalog.collection(id))
    leases: list[Sequence[GlobalId]] = []
    lease = Catalog.lease

    def noted(self: Catalog, collections: Sequence[GlobalId], *rest: Any, **named: Any) -> Any:
        leases.append(collections)
        return lease(self, collections, *rest, **named)

    monkeypatch.setattr(Catalog, "lease", noted)
    assert rows(sparkless, "SELECT k FROM t WHERE k = 3") == [(3,)]
    assert not leases
    moment = Catalog.moment
    monkeypatch.setattr(Catalog, "listed", lambda self, ids: before)
    monkeypatch.setattr(Catalog, "moment", lambda *asked: replace(moment(*asked), listed=before))
    assert rows(sparkless, "SELECT k FROM t WHERE k = 3") == [(3,)]
    assert rows(sparkless, "SELECT k FROM t") == [(k,) for k in range(8)]
    assert leases == [(id,), (id,)]


def test_predicates_of_other_kinds_are_evaluated_here_too(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (k integer, f double precision, j jsonb, l integer[])")
    connection.execute("INSERT INTO t VALUES (1, -0.0, '1', '{1,NULL}')")
    with without_spark():
        for where in (
            *("k = 1 AND 10 / k = 10", "j = '1'", "k + 0 = 1", "k = 1 OR 1 / (k - 1) = 3"),
            *("f = 0", "k = 2 OR f = 0", "f * 2 + 1 = 1", "l @> '{1}'", "1 = ANY (l)", "l[1] = k", "j::text ~ '^1$'"),
        ):
            assert connection.execute(f"SELECT k FROM t WHERE {where}").fetchall() == [(1,)], where
        assert connection.execute("SELECT k FROM t WHERE 10 / k = 1").fetchall() == []
        with pytest.raises(InternalError, match="needs no Spark"):  # whose last digit is the C library's
            connection.execute("SELECT k FROM t WHERE exp(f) = 1")
        connection.execute("SET engine = local")
        assert connection.execute("SELECT k FROM t WHERE exp(f) = 1").fetchall() == [(1,)]
