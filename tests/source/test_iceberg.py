"""Iceberg tables as sources: at each tick the collection is the table at the bound snapshot, whoever wrote it how.

The tables are written by pyiceberg, row-level deletes and compactions by its writers of manifests;
`tests.iceberg_tables` has the reference.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from fastavro import block_reader
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from mz_dagster import Error, NotSupportedError
from mz_dagster.adapter import Connection
from mz_dagster.adapter.graphs import SourceNotPolled
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.errors import OperationalError
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.doctor import examine
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedObject
from mz_dagster.storage.source import Ledger
from mz_dagster.storage.source.iceberg import iceberg_source
from tests.budgets import SetBudget
from tests.errors import says_what_to_do
from tests.forks import forks
from tests.iceberg_tables import (
    catalog_in,
    commit,
    compact,
    data_files,
    deletion_vectors,
    entries_of,
    equality_deletes,
    iceberg_duckdb,
    position_deletes,
    positions_gone,
    read_rows,
    rebuilt,
    rows_by_duckdb,
    rows_by_pyiceberg,
    rows_of,
    vectors_in,
)
from tests.opened import opened
from tests.source.test_delta import TIMELINE, held, last_tick, read_short, unpolled

CONNECT = "CREATE CONNECTION lake TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = 'sqlite:///lake/catalog.db')"
FROM = "FROM ICEBERG (TABLE 'db.t', CONNECTION lake)"
pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")

SCHEMA = pa.schema([("a", pa.int32()), ("p", pa.string()), ("x", pa.float64())])


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with iceberg_duckdb() as connection:
        yield connection


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = catalog_in(tmp_path / "lake")
    with made:
        yield made


@pytest.fixture
def lake(connection: Connection, catalog: SqlCatalog) -> Connection:
    """A connection to a project that knows the catalog."""
    connection.execute(CONNECT)
    return connection


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    return catalog.create_table("db.t", SCHEMA)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the data files that were read."""
    found: list[str] = []
    one = iceberg_source.file_rows

    def noted(files: Any, file: DataFile, *arguments: Any) -> Any:
        found.append(file.file_path)
        return one(files, file, *arguments)

    monkeypatch.setattr(iceberg_source, "file_rows", noted)
    return found


def rows(*values: tuple[int | None, str | None, float | None]) -> pa.Table:
    columns = zip(*values, strict=True) if values else ([], [], [])
    return pa.Table.from_arrays(
        [pa.array(one, type_) for one, type_ in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


# ---- what a source is


def test_a_source_is_its_table_at_each_tick(lake: Connection, table: Table) -> None:
    table.append(rows((1, "x", 0.5), (1, "x", 0.5), (2, None, None)))
    lake.execute(f"CREATE SOURCE t {FROM}")
    lake.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM t GROUP BY p")
    (made,) = lake.execute("SHOW CREATE SOURCE t").fetchall()
    assert '("a" integer, "p" text, "x" double precision)' in made[-1]
    first = held(lake)
    assert first == {(1, "x", 0.5): 2, (2, None, None): 1}
    before = last_tick(lake)
    table.append(rows((3, "x", 1.0)))
    table.delete("a = 2")
    assert held(lake) == {(1, "x", 0.5): 2, (3, "x", 1.0): 1}
    assert held(lake, "v") == {("x", 3): 1}
    table.overwrite(rows((7, "y", None)))
    assert held(lake) == {(7, "y", None): 1}
    assert held(lake, at=before) == first
    assert held(lake, "v", before) == {("x", 2): 1, (None, 1): 1}
    tick = last_tick(lake)
    assert lake.engine.poll(TIMELINE).tick is None
    assert last_tick(lake) == tick


# ---- random histories


def is_read_by_pyiceberg(table: Table) -> bool:
    deletes = data_files(table, DataFileContent.EQUALITY_DELETES)
    return not deletes and not has_vectors(table)


def has_vectors(table: Table) -> bool:
    return any(one.file_format is FileFormat.PUFFIN for one in data_files(table, DataFileContent.POSITION_DELETES))


class Writer:
    """Does at random what others do to a table."""

    def __init__(self, catalog: SqlCatalog, random: Random) -> None:
        self.random = random
        self.texts = ["x", "y", "a b/c", *([None] if random.random() < 0.5 else [])]
        schema = Schema(
            NestedField(1, "a", IntegerType()), NestedField(2, "p", StringType()), NestedField(3, "x", DoubleType())
        )
        spec = PartitionSpec(*([PartitionField(2, 1000, IdentityTransform(), "p")] if random.random() < 0.5 else ()))
        self.table = catalog.create_table("db.t", schema, partition_spec=spec)
        self.append()

    def some(self, most: int) -> pa.Table:
        random = self.random
        found = rows(
            *(
                (
                    random.choice([*range(6), self.texts[-1] and 6]),
                    random.choice(self.texts),
                    random.choice([None, 0.5, -0.0, 1e300]),
                )
                for _ in range(random.randint(1, most))
            )
        )
        return found.set_column(0, "a", found.column("a").cast(pa.int64())) if self.is_wide else found

    @property
    def is_wide(self) -> bool:
        return isinstance(self.table.schema().find_type("a"), LongType)

    def write(self) -> str:
        """Commits something, and returns what."""
        self.table = self.table.refresh()
        name = self.random.choice(
            ["append", "append", "append", "delete", "overwrite", "overwrite some", "positions", "positions", "vectors",
             "equalities", "equalities", "compact", "rewrite deletes", "roll back", "more columns", "widen",
             "partition anew", "properties"]
        )  # fmt: skip
        if name in ("delete", "overwrite some") and not is_read_by_pyiceberg(self.table):
            name = "compact"
        getattr(self, name.replace(" ", "_"))()
        return name

    def append(self) -> None:
        self.table.append(self.some(4))

    def delete(self) -> None:
        self.table.delete(f"a = {self.random.randrange(6)}")

    def overwrite(self) -> None:
        self.compact()
        self.table.refresh().overwrite(self.some(5))

    def overwrite_some(self) -> None:
        new = self.some(3)
        self.table.overwrite(new.set_column(1, "p", pa.array(["y"] * len(new), pa.string())), "p = 'y'")

    def positions(self) -> None:
        files = data_files(self.table)
        if not files:
            return
        like = self.random.choice(files)
        of = {
            one.file_path: [place for place in range(one.record_count) if self.random.random() < 0.4]
            for one in files
            if one.spec_id == like.spec_id and one.partition == like.partition and self.random.random() < 0.7
        }
        of = {path: places for path, places in of.items() if places}
        if of:
            deletes = position_deletes(self.table, of, like, bounds=self.random.random() < 0.7)
            commit(self.table, Operation.DELETE, [deletes])

    def vectors(self) -> None:
        """Deletes by deletion vectors, which take the place of those that were there."""
        entries = entries_of(self.table, self.table.current_snapshot())
        vectors = [one.data_file for one in entries if one.data_file.file_format is FileFormat.PUFFIN]
        known = {of.referenced_data_file: one.file_path for one in vectors for of in vectors_in(self.table, one)}
        new, old = [], set()
        for entry in entries:
            file = entry.data_file
            if file.content is DataFileContent.DATA and self.random.random() < 0.4:
                gone = positions_gone(self.table, entries, entry) | {self.random.randrange(file.record_count)}
                new += deletion_vectors(self.table, {file.file_path: sorted(gone)}, file)
                old |= {known[file.file_path]} if file.file_path in known else set()
        if new:
            commit(self.table, Operation.DELETE, new, old)

    def equalities(self) -> None:
        """Deletes by values, and adds rows in the same snapshot, as a stream of changes is written."""
        spec = self.table.spec()
        columns = self.random.choice([["a"], ["a", "p"], ["p"]])
        new = self.some(2).select(columns)
        if spec.is_unpartitioned():
            deletes = equality_deletes(self.table, new, spec.spec_id)
        else:
            deletes = equality_deletes(self.table, new, spec.spec_id, Record(self.random.choice(self.texts)))
        commit(self.table, Operation.OVERWRITE, [deletes])

    def compact(self) -> None:
        if self.table.refresh().current_snapshot() is not None:
            self.table = compact(self.table)

    def rewrite_deletes(self) -> None:
        """Puts position deletes of a partition into one file."""
        found = data_files(self.table, DataFileContent.POSITION_DELETES)
        deletes = [one for one in found if one.file_format is FileFormat.PARQUET]
        if not deletes:
            return
        like = deletes[0]
        mine = [one for one in deletes if one.spec_id == like.spec_id and one.partition == like.partition]
        of: dict[str, list[int]] = {}
        live = {one.file_path for one in data_files(self.table)}
        for one in mine:
            with self.table.io.new_input(one.file_path).open() as opened:
                for row in pa.parquet.read_table(opened).to_pylist():
                    of.setdefault(row["file_path"], []).append(row["pos"])
        new = [position_deletes(self.table, {path: places}, like) for path, places in of.items() if path in live]
        commit(self.table, Operation.REPLACE, new, {one.file_path for one in mine})

    def roll_back(self) -> None:
        known = [one.snapshot_id for one in self.table.metadata.snapshots[-6:]]
        self.table.manage_snapshots().set_current_snapshot(self.random.choice(known)).commit()

    def more_columns(self) -> None:
        name = f"more{len(self.table.schema().fields)}"
        with self.table.update_schema() as update:
            update.add_column(name, StringType())
        new = self.some(2)
        self.table.append(new.append_column(name, pa.array(["n"] * len(new), pa.string())))

    def widen(self) -> None:
        if not self.is_wide:
            with self.table.update_schema() as update:
                update.update_column("a", LongType())

    def partition_anew(self) -> None:
        with self.table.update_spec() as update:
            if self.table.spec().is_unpartitioned():
                update.add_field("p", IdentityTransform(), f"p{len(self.table.specs())}")
            else:
                update.remove_field(self.table.spec().fields[0].name)

    def properties(self) -> None:
        with self.table.transaction() as transaction:
            transaction.set_properties({"owner": "x"})


def follow(
    connection: Connection, catalog: SqlCatalog, duck: duckdb.DuckDBPyConnection, seed: int, commits: int
) -> None:
    random = Random(seed)
    writer = Writer(catalog, random)
    connection.execute(f"CREATE SOURCE t (a bigint, p text, x double precision) {FROM}")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n, sum(a)::bigint AS a FROM t GROUP BY p")
    done: list[str] = []
    history: dict[int, Counter[tuple[Any, ...]]] = {}
    for _ in range(commits):
        done.append(writer.write())
        if random.random() < 0.5:
            continue
        wanted = rows_of(writer.table, "a", "p", "x")
        is_flat = all(one.is_unpartitioned() for one in writer.table.specs().values())
        if None not in writer.texts and is_flat and not has_vectors(writer.table):
            assert rows_by_duckdb(duck, writer.table, "a", "p", "x") == wanted, done
        if is_read_by_pyiceberg(writer.table):
            assert rows_by_pyiceberg(writer.table, "a", "p", "x") == wanted, done
        assert {tuple(map(repr, row)): n for row, n in held(connection).items()} == {
            tuple(map(repr, row)): n for row, n in wanted.items()
        }, done
        groups: dict[Any, list[Any]] = {}
        for (a, p, _), n in wanted.items():
            of = groups.setdefault(p, [0, None])
            of[0] += n
            of[1] = of[1] if a is None else (of[1] or 0) + n * a
        assert held(connection, "v") == {(p, n, a): 1 for p, (n, a) in groups.items()}, done
        history[last_tick(connection)] = wanted
    for tick, wanted in history.items():
        assert held(connection, at=tick) == wanted


@pytest.mark.parametrize(
    ("seed", "commits"), [(0, 10), *(pytest.param(n, 16, marks=pytest.mark.deep) for n in range(5))]
)
def test_whatever_is_committed_the_source_is_the_table(
    lake: Connection, catalog: SqlCatalog, duck: duckdb.DuckDBPyConnection, seed: int, commits: int
) -> None:
    follow(lake, catalog, duck, seed, commits)


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 120))
def test_whatever_is_committed_for_long_the_source_is_the_table(
    lake: Connection, catalog: SqlCatalog, duck: duckdb.DuckDBPyConnection, seed: int
) -> None:
    follow(lake, catalog, duck, seed, 200)


def test_its_columns_are_the_tables_unless_they_are_stated(lake: Connection, catalog: SqlCatalog) -> None:
    types: dict[str, tuple[IcebergType, str]] = {
        "i4": (IntegerType(), "integer"), "i8": (LongType(), "bigint"), "f4": (FloatType(), "real"),
        "f8": (DoubleType(), "double precision"), "Dec imal": (DecimalType(10, 2), "numeric(10,2)"),
        "s": (StringType(), "text"), "y": (BinaryType(), "bytea"), "z": (FixedType(2), "bytea"),
        "o": (BooleanType(), "boolean"), "d": (DateType(), "date"), "c": (TimeType(), "time"),
        "t": (TimestamptzType(), "timestamptz"), "n": (TimestampType(), "timestamp"), "u": (UUIDType(), "uuid"),
        "l": (ListType(100, StringType(), element_required=False), "text[]"),
        "ll": (ListType(101, ListType(102, LongType(), element_required=False)), "bigint[][]"),
    }  # fmt: skip
    values: list[Any] = [
        2**31 - 1, -(2**63), 1.5, float("nan"), Decimal("-1.50"), "é", b"\0\xff", b"\0\xff", True,
        datetime.date(1, 1, 1), datetime.time(12, 30, 0, 500), datetime.datetime(
            9999, 12, 31, 23, 59, 59, 999999, datetime.UTC
        ), datetime.datetime(1500, 1, 1), UUID(int=7), ["a", None], [[1, None], [3, 4]],
    ]  # fmt: skip
    fields = [NestedField(at, name, type_) for at, (name, (type_, _)) in enumerate(types.items(), 1)]
    table = catalog.create_table("db.t", Schema(*fields))
    arrow = table.schema().as_arrow()
    rest = [one.bytes if isinstance(one, UUID) else one for one in values]
    arrays = [pa.array([value, None], one.type) for value, one in zip(rest, arrow, strict=True)]
    table.append(pa.Table.from_arrays(arrays, schema=arrow))
    lake.execute(f'CREATE SOURCE t IN TIMELINE "default" {FROM}')
    (made,) = lake.execute("SHOW CREATE SOURCE t").fetchall()
    for name, (_, sql) in types.items():
        assert f'"{name}" {sql}' in made[-1]
    table.append(pa.Table.from_arrays(arrays, schema=arrow))
    found = lake.execute("SELECT * FROM t WHERE s IS NOT NULL").fetchall()
    assert [repr(row) for row in found] == [repr(tuple(values))] * 2  # NaN is not itself
    assert lake.execute("SELECT count(*) FROM t WHERE s IS NULL AND l IS NULL").fetchone() == (2,)
    lake.execute(f"CREATE SOURCE few (s varchar(1), i8 numeric(30, 1), i4 smallint) {FROM}")
    with pytest.raises(Error, match=r'out of range.*"i4"'):
        held(lake, "few")
    table.delete("s = 'é'")
    assert held(lake, "few") == {(None, None, None): 2}


def test_what_cannot_be_a_source_says_why(
    lake: Connection, catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = Schema(NestedField(1, "a", LongType()), NestedField(2, "s", StructType(NestedField(3, "b", LongType()))))
    catalog.create_table("db.nested", nested).append(pa.table({"a": [1], "s": pa.array([{"b": 1}])}))
    create = "CREATE SOURCE t {} FROM ICEBERG (TABLE '{}', CONNECTION {}) {}"
    for columns, name, connection, rest, error, text in (
        ("", "db.nested", "lake", "", OperationalError, "of a nested type"),
        ("", "db.nothing", "lake", "", OperationalError, 'has no Iceberg table "db.nothing"'),
        ("(a bigint)", "nested", "lake", "", InvalidTableDefinition, "names no table of a catalog"),
        ("(a bigint)", "db.nested", "lagoon", "", UndefinedObject, 'connection "lagoon" does not exist'),
        ("(a bigint, PRIMARY KEY (a))", "db.nested", "lake", "", InvalidTableDefinition, "requires ENVELOPE UPSERT"),
        ("(a bigint)", "db.nested", "lake", "WITH (START VERSION 1)", NotSupportedError, "START SNAPSHOT"),
        (
            "(a bigint)",
            "db.nested",
            "lake",
            "WITH (START SNAPSHOT 1, START SNAPSHOT 2)",
            InvalidTableDefinition,
            "twice",
        ),
    ):
        with pytest.raises(error) as raised:
            lake.execute(create.format(columns, name, connection, rest))
        assert text in str(raised.value)
    for options, text in (
        ("URL = 'x'", "requires a CATALOG TYPE"),
        ("CATALOG TYPE = 'hive', URL = 'x'", "requires a CATALOG TYPE"),
        ("CATALOG TYPE = 'sql'", "requires a URL"),
        ("CATALOG TYPE = 'sql', URL = 'x', SCOPE = 'y'", "SCOPE is no option"),
        ("CATALOG TYPE = 'sql', URL = 'postgresql+psycopg://me:hidden@host/db'", "has to be a secret"),
        ("CATALOG TYPE = 'rest', URL = 'http://x', CREDENTIAL = 'me:hidden'", "has to be a secret"),
    ):
        with pytest.raises(InvalidTableDefinition, match=text) as raised:
            lake.execute(f"CREATE CONNECTION wrong TO ICEBERG CATALOG ({options})")
        assert "hidden" not in str(raised.value)
    lake.execute(create.format("(a bigint)", "db.nested", "lake", ""))
    assert held(lake) == {(1,): 1}
    connect = "CREATE CONNECTION {} TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = '{}')"
    for name, url, text in (
        ("gone", "sqlite:///lake/nothing.db", "There is no database"),
        ("outside", f"sqlite:///{tmp_path.parent}/other.db", "is outside of the project"),
        ("own", "sqlite:///.mz/catalog.sqlite", "the engine's own"),
        ("odd", "what", "Could not parse"),
    ):
        lake.execute(connect.format(name, url))
        lake.execute(f"CREATE SOURCE of_{name} (a bigint) FROM ICEBERG (TABLE 'db.t', CONNECTION {name})")
        says_what_to_do(unpolled(lake), text)
        lake.execute(f"DROP SOURCE of_{name}")
    assert not (tmp_path / "lake" / "nothing.db").exists()
    monkeypatch.setitem(sys.modules, "mz_dagster.storage.source.iceberg.iceberg_source", None)
    with pytest.raises(NotSupportedError, match="need a package that is not there") as raised:
        lake.execute(create.format("", "db.nested", "lake", "").replace("SOURCE t", "SOURCE more"))
    says_what_to_do(raised.value, "pip install 'mz_dagster[iceberg]'")


def test_a_source_begins_with_the_snapshot_that_it_says(lake: Connection, table: Table) -> None:
    for number in range(4):
        table.append(rows((number, "x", None)))
    first = table.metadata.snapshots[1].snapshot_id
    lake.execute(f"CREATE SOURCE t (a bigint) {FROM} WITH (START SNAPSHOT {first})")
    tick = lake.engine.poll(TIMELINE).tick
    assert tick is not None
    assert held(lake, at=tick) == {(0,): 1, (1,): 1}
    assert held(lake) == {(0,): 1, (1,): 1, (2,): 1, (3,): 1}
    lake.execute(f"CREATE SOURCE u (a bigint) {FROM} WITH (START SNAPSHOT 9223372036854775807)")
    says_what_to_do(unpolled(lake), "snapshot 9223372036854775807", "was expired")


def test_a_table_that_nothing_was_written_to_is_empty(lake: Connection, table: Table) -> None:
    lake.execute(f"CREATE SOURCE t {FROM}")
    assert held(lake) == {}
    table.append(rows((1, "x", None)))
    assert held(lake) == {(1, "x", None): 1}


# ---- what it reads


def test_what_changes_no_row_costs_no_rows_read(lake: Connection, table: Table, read: list[str]) -> None:
    for number in range(3):
        table.append(rows((number, "x", None)))
    lake.execute(f"CREATE SOURCE t {FROM}")
    whole = held(lake)
    assert len(read) == 3
    table = compact(table)
    assert held(lake) == whole
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "x"})
    with table.update_schema() as update:
        update.add_column("more", StringType())
    assert held(lake) == whole
    assert len(read) == 3
    table.append(rows((9, "x", None)))
    compact(table)
    table.append(rows((10, "x", None)))
    assert held(lake) == whole + Counter({(9, "x", None): 1, (10, "x", None): 1})
    assert len(read) == 5, "two files were added, and two are read"


def test_what_comes_and_goes_between_two_polls_is_not_read(lake: Connection, table: Table, read: list[str]) -> None:
    table.append(rows((1, "x", None)))
    lake.execute(f"CREATE SOURCE t {FROM}")
    held(lake)
    table.append(rows(*((n, "y", None) for n in range(100))))
    table.delete("p = 'y'")
    assert held(lake) == {(1, "x", None): 1}
    table.append(rows((2, "y", None)))
    before = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    assert held(lake) == {(1, "x", None): 1}
    assert len(read) == 1


def test_deletes_read_the_files_that_they_may_be_about(lake: Connection, table: Table, read: list[str]) -> None:
    for start in (0, 100, 200):
        table.append(rows(*((n, "x", None) for n in range(start, start + 100))))
    lake.execute(f"CREATE SOURCE t (a integer) {FROM}")
    assert len(held(lake)) == 300
    read.clear()
    keys = pa.table({"a": pa.array([5, 7, 1000], pa.int32())})
    commit(table, Operation.DELETE, [equality_deletes(table, keys)])
    assert len(held(lake)) == 298
    assert len(read) == 3, "the manifest says no bounds"
    read.clear()
    keys = pa.table({"a": pa.array([6, 8], pa.int32())})
    commit(table, Operation.DELETE, [equality_deletes(table, keys, bounds=True)])
    assert set(range(10)) - {a for (a,) in held(lake)} == {5, 6, 7, 8}
    assert len(read) == 1
    files = data_files(table)
    read.clear()
    deletes = position_deletes(table, {files[0].file_path: [50]}, files[0], bounds=False)
    commit(table, Operation.DELETE, [deletes])
    assert len(held(lake)) == 295
    assert read == [files[0].file_path], "what deletes do not name is not read"


# ---- the newest row of each key

UPSERT = f"CREATE SOURCE t (a integer, p text, x double precision, PRIMARY KEY (a)) {FROM} ENVELOPE UPSERT"


def test_the_last_row_of_a_key_is_its_row(lake: Connection, table: Table) -> None:
    table.append(rows((1, "x", 0.5), (2, "x", None)))
    lake.execute(f"CREATE SOURCE t (PRIMARY KEY (a)) {FROM} ENVELOPE UPSERT")
    assert held(lake) == {(1, "x", 0.5): 1, (2, "x", None): 1}
    table.append(rows((1, "y", 0.5)))
    table.append(rows((1, "z", 0.5), (3, "x", 0.0)))
    assert held(lake) == {(1, "z", 0.5): 1, (2, "x", None): 1, (3, "x", 0.0): 1}
    table = compact(table)
    table.delete("p = 'x' and a = 1")  # what was replaced long ago
    table.delete("a = 2")
    assert held(lake) == {(1, "z", 0.5): 1, (3, "x", 0.0): 1}
    before = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    says_what_to_do(unpolled(lake), "cannot be read any more", "was rolled back", "ALTER SOURCE ... RESET")
    lake.execute("ALTER SOURCE t RESET")
    assert held(lake) == {(1, "x", 0.5): 1, (2, "x", None): 1}


class OneOfEach(Writer):
    """Does at random what others do to a table, most commits with one row of each key."""

    def some(self, most: int) -> pa.Table:
        found = super().some(most)
        found = found.filter(found.column("a").is_valid())
        if self.random.random() < 0.1:
            return found
        last = {key: place for place, key in enumerate(found.column("a").to_pylist())}
        return found.take(pa.array([*last.values()], pa.int64()))

    def roll_back(self) -> None:
        self.append()


class States:
    """The states of keys by the differences of snapshots."""

    def __init__(self) -> None:
        self.seen = 0
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.of: dict[Any, Counter[tuple[Any, ...]]] = {}

    def advance(self, table: Table) -> None:
        snapshots = table.refresh().metadata.snapshots
        for snapshot in snapshots[self.seen :]:
            there = Counter((row["a"], row["p"], repr(row["x"])) for row in read_rows(table, snapshot))
            comes, goes = there - self.rows, self.rows - there
            for key in {row[0] for row in [*comes, *goes]}:
                new, gone = (Counter({row: n for row, n in one.items() if row[0] == key}) for one in (comes, goes))
                self.of[key] = new or self.of.get(key, Counter()) - gone
            self.rows = there
        self.seen = len(snapshots)


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.deep) for one in range(100, 110))])
def test_whatever_is_committed_keys_have_their_last_rows(lake: Connection, catalog: SqlCatalog, seed: int) -> None:
    random = Random(seed)
    writer, states = OneOfEach(catalog, random), States()
    lake.execute(UPSERT.replace("integer", "bigint"))
    lake.engine.poll(TIMELINE)
    equal = 0
    done: list[str] = []
    for _ in range(20 if seed < 100 else 200):
        done.append(writer.write())
        if random.random() < 0.5:
            continue
        states.advance(writer.table)
        if any(one.total() > 1 for one in states.of.values()):
            with pytest.raises(Error, match="several rows of one key"):
                held(lake)
            continue
        equal += 1
        wanted: Counter[tuple[Any, ...]] = sum(states.of.values(), Counter())
        assert Counter((a, p, repr(x)) for a, p, x in held(lake).elements()) == wanted, done
    assert equal >= 3


# ---- what goes wrong


@pytest.fixture
def bound(lake: Connection, catalog: SqlCatalog, table: Table) -> Callable[[], None]:
    """A source with two rows, whose content cannot be told any more before it is reset; then it is the table's."""
    table.append(rows((1, "x", None), (2, "x", None)))
    lake.execute(f"CREATE SOURCE t (a integer, p text) {FROM}")
    lake.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    assert held(lake) == {(1, "x"): 1, (2, "x"): 1}
    before = last_tick(lake)

    def heal() -> None:
        with pytest.raises(SourceNotPolled):
            held(lake)
        assert held(lake, at=before) == {(1, "x"): 1, (2, "x"): 1}, "nothing is lost"
        lake.execute("ALTER SOURCE t RESET")
        now = catalog.load_table("db.t")
        assert held(lake) == rows_of(now, "a", "p")
        assert held(lake, "v") == {(sum(rows_of(now).values()),): 1}
        now.append(rows((7, "z", None)))
        assert held(lake) == rows_of(now, "a", "p")

    return heal


def expire(table: Table) -> None:
    """Has a table forget all snapshots but the newest, with the files that no other has."""
    table = table.refresh()
    kept = {one.file_path for one in data_files(table)}
    gone = [one for one in table.metadata.snapshots if one.snapshot_id != table.metadata.current_snapshot_id]
    for snapshot in gone:
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.data_file.file_path not in kept:
                    Path(entry.data_file.file_path.removeprefix("file://")).unlink(missing_ok=True)
        Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in gone]).commit()


def test_snapshots_that_were_expired_before_they_were_read(
    lake: Connection, table: Table, bound: Callable[[], None]
) -> None:
    table.append(rows((3, "x", None)))
    table.delete("a = 1")
    expire(table)
    says_what_to_do(unpolled(lake), "cannot be read any more", "was expired", "ALTER SOURCE ... RESET")
    bound()


def test_only_the_snapshots_at_both_ends_have_to_be_there(lake: Connection, table: Table, bound: object) -> None:
    for number in range(3):
        table.append(rows((number, "y", None)))
    between = [one.snapshot_id for one in table.metadata.snapshots[1:-1]]
    table.maintenance.expire_snapshots().by_ids(between).commit()
    assert held(lake) == rows_of(table, "a", "p")


def test_files_that_go_between_poll_and_step(lake: Connection, table: Table) -> None:
    table.append(rows((1, "x", None)))
    lake.execute(f"CREATE SOURCE t (a bigint) {FROM}")
    held(lake)
    table.append(rows((2, "x", None)))
    polled = lake.engine.poll(TIMELINE)
    assert polled.tick is not None
    table.overwrite(rows((3, "x", None)))
    expire(table)
    (failure,) = lake.engine.step(TIMELINE, polled.tick).failures
    assert failure.error is not None
    says_what_to_do(failure.error, "cannot be read any more", "ALTER SOURCE ... RESET")
    lake.execute("ALTER SOURCE t RESET")
    assert held(lake) == {(3,): 1}


def test_another_table_in_its_place(lake: Connection, catalog: SqlCatalog, bound: Callable[[], None]) -> None:
    rebuilt(catalog, rows((10, "x", None)))
    says_what_to_do(unpolled(lake), "is not the one that was read", "ALTER SOURCE ... RESET")
    bound()


def test_a_table_that_is_gone_and_comes_back(
    lake: Connection, catalog: SqlCatalog, table: Table, bound: object
) -> None:
    catalog.rename_table("db.t", "db.elsewhere")
    says_what_to_do(unpolled(lake), 'has no Iceberg table "db.t"', "once the table is there")
    catalog.rename_table("db.elsewhere", "db.t")
    catalog.load_table("db.t").append(rows((3, "x", None)))
    assert held(lake) == rows_of(catalog.load_table("db.t"), "a", "p")


def test_a_catalog_of_another_name_has_no_such_table(lake: Connection, table: Table) -> None:
    lake.execute(CONNECT.replace("lake TO", "other TO").replace(")", ", NAME = 'other')"))
    lake.execute(f"CREATE SOURCE t (a bigint) {FROM.replace('lake', 'other')}")
    says_what_to_do(unpolled(lake), 'under the name "other"', "the NAME of the connection")


def test_a_column_that_goes_or_becomes_another(lake: Connection, table: Table, bound: Callable[[], None]) -> None:
    with table.update_schema() as update:
        update.rename_column("p", "q")
    says_what_to_do(unpolled(lake), 'has no column "p"', "or create the source anew")
    with table.update_schema() as update:
        update.rename_column("q", "p")
    table.append(rows((4, "x", None)))
    assert held(lake) == rows_of(table, "a", "p"), "it is called what it was"
    with table.update_schema() as update:
        update.delete_column("p")
    with table.update_schema() as update:
        update.add_column("p", LongType())
    says_what_to_do(unpolled(lake), "is bigint, which is not readable as text", "Create the source anew")
    with table.update_schema() as update:
        update.delete_column("p")
    with table.update_schema() as update:
        update.add_column("p", StringType())
    says_what_to_do(unpolled(lake), "other columns under the names", "ALTER SOURCE ... RESET")
    lake.execute("ALTER SOURCE t RESET")
    assert held(lake) == {(1, None): 1, (2, None): 1, (4, None): 1}


def test_deletes_by_a_column_that_was_dropped_go_on(lake: Connection, table: Table, bound: object) -> None:
    commit(table, Operation.DELETE, [equality_deletes(table, pa.table({"x": pa.array([None], pa.float64())}))])
    says_what_to_do(unpolled(lake), "equality deletes by floats", "ALTER SOURCE ... RESET")
    table = compact(table)
    lake.execute("ALTER SOURCE t RESET")
    assert held(lake) == {}
    table.append(rows((5, "y", None), (6, "y", None)))
    commit(table, Operation.DELETE, [equality_deletes(table, pa.table({"p": ["y"], "a": pa.array([5], pa.int32())}))])
    with table.update_schema() as update:
        update.add_column("more", StringType())
    lake.execute(f"CREATE SOURCE few (a integer) {FROM}")
    with table.update_schema() as update:
        update.delete_column("p")
    assert held(lake, "few") == {(6,): 1}


def test_a_table_that_asks_too_much_of_its_readers(lake: Connection, table: Table, bound: object) -> None:
    (file,) = data_files(table)
    odd = DataFile.from_args(
        content=DataFileContent.DATA, file_path=file.file_path, file_format=FileFormat.ORC, partition=Record(),
        record_count=1, file_size_in_bytes=1,
    )  # fmt: skip
    odd.spec_id = 0
    table = commit(table, Operation.APPEND, [odd])
    says_what_to_do(unpolled(lake), "has files of Orc, which are not read", "with Parquet files")
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    lake.engine.poll(TIMELINE)
    metadata = Path(table.refresh().metadata_location.removeprefix("file://"))
    content = metadata.read_text()
    metadata.write_text(json.dumps({**json.loads(content), "format-version": 4}))
    says_what_to_do(unpolled(lake), "has a version of the format that is not read", "an older version")
    metadata.write_text(content)
    assert held(lake) == {(1, "x"): 1, (2, "x"): 1}


def damaged(content: bytes, random: Random) -> Iterator[tuple[bytes, bool]]:
    """Yields a file with something wrong in its bytes, and whether it is cut off."""
    for at in (0, 1, *(random.randrange(len(content)) for _ in range(8)), len(content) - 1):
        yield content[:at], True
    for at in (random.randrange(len(content)) for _ in range(25)):
        yield content[:at] + bytes([random.randrange(256)]) + content[at + 1 :], False


def test_metadata_with_anything_wrong_in_them_are_an_error_or_read(
    lake: Connection, table: Table, bound: object
) -> None:
    table.append(rows((3, "y", None)))
    commit(table, Operation.DELETE, [equality_deletes(table, pa.table({"a": pa.array([1], pa.int32())}))])
    table = table.refresh()
    engine = lake.engine
    id = engine.collection_of("t")
    source, ledger = engine.definitions.source(id), Ledger(engine.catalog, engine.catalog.collection(id))
    now = table.current_snapshot()
    assert now is not None
    random, failed = Random(1), 0
    for path in (table.metadata_location, now.manifest_list, *(one.manifest_path for one in now.manifests(table.io))):
        file = Path(path.removeprefix("file://"))
        content = file.read_bytes()
        for changed, is_cut_off in damaged(content, random):
            file.write_bytes(changed)
            try:
                source.gain(ledger)
            except Error as error:
                says_what_to_do(error)
                failed += 1
            else:
                assert not is_cut_off, f"{len(changed)} bytes of {len(content)} of {path}"
        file.write_bytes(content)
    assert failed > 60
    assert held(lake) == rows_of(table, "a", "p")


def test_a_manifest_that_is_cut_off_behind_a_block_is_an_error(lake: Connection, table: Table, bound: object) -> None:
    table.append(rows((3, "y", None)))
    table = table.refresh()
    now = table.current_snapshot()
    assert now is not None
    (manifest,) = (one for one in now.manifests(table.io) if one.added_snapshot_id == now.snapshot_id)
    file = Path(manifest.manifest_path.removeprefix("file://"))
    content = file.read_bytes()
    file.write_bytes(content[: next(iter(block_reader(BytesIO(content)))).offset])
    says_what_to_do(unpolled(lake), f"bytes of {len(content)}")
    file.write_bytes(content)
    assert held(lake) == rows_of(table, "a", "p")


def test_a_data_file_with_fewer_rows_than_it_says_is_damaged(lake: Connection, table: Table, bound: object) -> None:
    table.append(rows((3, "y", None)))
    table = table.refresh()
    (path,) = (one.file_path for one in data_files(table) if one.record_count == 1)
    file = Path(path.removeprefix("file://"))
    file.write_bytes(read_short(file.read_bytes()))
    with pytest.raises(Error) as caught:
        held(lake)
    says_what_to_do(
        caught.value, file.name, "it says that it has 1 rows, its parts 1, and 0", "whoever writes the table"
    )


def test_metadata_that_lead_out_of_the_project_are_not_followed(
    lake: Connection, table: Table, bound: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("secret")
    with catalog_in(outside) as other:
        secret = other.create_table("db.t", SCHEMA)
        secret.append(rows((9, "secret", None)))
        (file,) = data_files(secret)
        lost = commit(table, Operation.APPEND, [file])
        error = unpolled(lake)
        assert isinstance(error, FolderNotAllowed)
        says_what_to_do(error, "is outside of the project", "folders = [")
        lost.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
        with closing(sqlite3.connect(lake.engine.project.root / "lake" / "catalog.db")) as tables, tables:
            tables.execute("UPDATE iceberg_tables SET metadata_location = ?", (secret.metadata_location,))
        says_what_to_do(unpolled(lake), "is outside of the project")


@pytest.mark.parametrize("lost", ["", " WHERE tick = (SELECT max(tick) FROM bound_offset)"], ids=["all", "newest"])
def test_lost_bindings_are_found_before_anything_is_read_twice(
    lake: Connection, table: Table, bound: object, tmp_path: Path, lost: str
) -> None:
    table.append(rows((3, "x", None)))
    held(lake)
    table.append(rows((4, "x", None)))
    with closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute(f"DELETE FROM bound_offset{lost}")
    says_what_to_do(unpolled(lake), "has lost what source", "doctor")
    assert "bindings-lost" in {one.check for one in examine(tmp_path).findings}


# ---- kills


def read_until_killed(root: str, fail_point: str) -> None:
    """Is the process: reads the source, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    with opened(Path(root)) as connection:
        held(connection, "v")


@pytest.mark.parametrize(
    "fail_point",
    [
        "seal.in_transaction",
        *(
            pytest.param(one, marks=pytest.mark.deep)
            for one in ("tick.minted", "tick.before_mint", "append.inlined", "append.before_seal", "seal.sealed")
        ),
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    lake: Connection, table: Table, tmp_path: Path, fail_point: str
) -> None:
    table.append(rows((1, "x", None)))
    lake.execute(f"CREATE SOURCE t (a integer, p text) {FROM}")
    lake.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    for kill, number in ((True, 2), (False, 3)):
        table.append(rows((number, "x", None), (1, "x", None)))
        (like, *_) = data_files(table)
        commit(table, Operation.DELETE, [position_deletes(table, {like.file_path: [1]}, like)])
        table = table.refresh()
        if kill:
            process = forks().Process(target=read_until_killed, args=(str(tmp_path), fail_point))
            process.start()
            process.join(60)
            assert process.exitcode == -signal.SIGKILL
        assert held(lake) == rows_of(table, "a", "p")
        counts = Counter(a for a, _ in rows_of(table, "a", "p").elements())
        assert held(lake, "v") == dict.fromkeys(counts.items(), 1)


# ---- large tables


def test_a_large_table_is_read_portion_by_portion(lake: Connection, table: Table, set_budget: SetBudget) -> None:
    set_budget(small_file_bytes=0)
    table.append(rows(*((n, "x", None) for n in range(200_000))))
    (file,) = data_files(table)
    commit(table, Operation.DELETE, [position_deletes(table, {file.file_path: [0, 65_535, 65_536, 199_999]}, file)])
    commit(table, Operation.DELETE, [equality_deletes(table, pa.table({"a": pa.array([7, 150_000], pa.int32())}))])
    lake.execute(f"CREATE SOURCE t (a bigint, p varchar(1)) {FROM}")
    gone = [0, 65_535, 65_536, 199_999, 7, 150_000]
    assert lake.execute("SELECT count(*), sum(a), min(a) FROM t").fetchall() == [
        (200_000 - len(gone), Decimal(sum(range(200_000)) - sum(gone)), 1)
    ]
    table.refresh().append(rows((1, "y", None)))
    assert lake.execute("SELECT count(*) FROM t WHERE p = 'y'").fetchall() == [(1,)]


def test_a_table_of_the_first_version_of_the_format(lake: Connection, catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "1"})
    table.append(rows((1, "x", None), (2, "x", None)))
    lake.execute(f"CREATE SOURCE t (a integer) {FROM}")
    assert held(lake) == {(1,): 1, (2,): 1}
    table.delete("a = 1")
    assert held(lake) == {(2,): 1}


def test_files_that_were_not_written_for_the_table(lake: Connection, catalog: SqlCatalog, tmp_path: Path) -> None:
    """Files of before Iceberg know no numbers of columns, and may have partitions in their paths alone."""
    schema = Schema(
        NestedField(1, "a", LongType()), NestedField(2, "p", StringType()), NestedField(3, "d", DateType()),
        NestedField(4, "n", TimestampType()), NestedField(5, "more", StringType()),
    )  # fmt: skip
    spec = PartitionSpec(*(PartitionField(at, 1000 + at, IdentityTransform(), f"p{at}") for at in (2, 3, 4)))
    table = catalog.create_table("db.t", schema, partition_spec=spec)
    mapping = [{"field-id": one.field_id, "names": [one.name, f"old {one.name}"]} for one in schema.fields]
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    path = tmp_path / "lake" / "old.parquet"
    pa.parquet.write_table(pa.table({"old a": [1, 2], "else": ["x", "y"]}), path)
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
        partition=Record("x", 19_000, 1_500_000), record_count=2, file_size_in_bytes=path.stat().st_size,
    )  # fmt: skip
    file.spec_id = 0
    commit(table, Operation.APPEND, [file])
    lake.execute(f"CREATE SOURCE t {FROM}")
    day, moment = datetime.date(2022, 1, 8), datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000)
    assert held(lake) == {(1, "x", day, moment, None): 1, (2, "x", day, moment, None): 1}
    lake.execute(f"CREATE SOURCE few (more text) {FROM}")
    assert held(lake, "few") == {(None,): 2}


def test_a_table_of_the_third_version_of_the_format(lake: Connection, table: Table) -> None:
    table.append(rows((1, "x", None), (2, "x", None)))
    (file,) = data_files(table)
    table = commit(table, Operation.DELETE, [position_deletes(table, {file.file_path: [0]}, file)])
    metadata = Path(table.metadata_location.removeprefix("file://"))
    said = json.loads(metadata.read_text())
    fields = said["schemas"][0]["fields"]
    fields.append({"id": 4, "name": "d", "type": "string", "required": False, "initial-default": "before"})
    fields.append({"id": 5, "name": "t", "type": "timestamp_ns", "required": False})
    metadata.write_text(json.dumps({**said, "format-version": 3, "next-row-id": 2, "last-column-id": 5}))
    with pytest.raises(Error, match="of timestamp_ns, which SQL has not"):
        lake.execute(f"CREATE SOURCE t {FROM}")
    lake.execute(f"CREATE SOURCE t (a integer, d text) {FROM}")
    assert held(lake) == {(2, "before"): 1}


def test_deletion_vectors_take_the_place_of_position_deletes(
    lake: Connection, table: Table, duck: duckdb.DuckDBPyConnection, read: list[str]
) -> None:
    table.append(rows(*((n, "x", None) for n in range(100))))
    table.append(rows(*((n, "x", None) for n in range(100, 200))))
    first, second = sorted(data_files(table), key=lambda one: (one.lower_bounds or {})[1])
    commit(table, Operation.DELETE, [position_deletes(table, {first.file_path: [1, 2]}, first)])
    lake.execute(f"CREATE SOURCE t (a integer) {FROM}")

    def gone() -> set[int]:
        return set(range(200)) - {a for (a,) in held(lake)}

    assert gone() == {1, 2}
    read.clear()
    vectors = deletion_vectors(table, {first.file_path: [1, 2, 3], second.file_path: [0, 99]}, first)
    commit(table, Operation.DELETE, vectors)
    assert gone() == {1, 2, 3, 100, 199}
    assert sorted(read) == sorted([first.file_path, second.file_path])
    metadata = Path(table.refresh().metadata_location.removeprefix("file://"))
    content = metadata.read_text()
    metadata.write_text(json.dumps({**json.loads(content), "format-version": 3, "next-row-id": 200}))
    assert set(range(200)) - {a for (a,) in rows_by_duckdb(duck, table, "a")} == gone()
    metadata.write_text(content)
    read.clear()
    newer = deletion_vectors(table, {first.file_path: [1, 2, 3, 4]}, first)
    commit(table, Operation.DELETE, newer, {vectors[0].file_path})
    assert gone() == {1, 2, 3, 4}, "the other vector is gone with its file"
    assert len(read) == 2
    odd = Path(newer[0].file_path.removeprefix("file://"))
    bad = bytearray(odd.read_bytes())
    bad[20] ^= 1
    odd.write_bytes(bad)
    lake.execute(f"CREATE SOURCE u (a integer) {FROM}")
    polled = lake.engine.poll(TIMELINE)
    assert polled.tick is not None
    (failure,) = lake.engine.step(TIMELINE, polled.tick).failures
    assert failure.error is not None
    says_what_to_do(failure.error, "deletion vector at 4", "is damaged")
