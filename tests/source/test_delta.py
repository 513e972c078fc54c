"""Delta tables as sources: at each tick the collection is the table at the bound version, whoever wrote it how.

The tables are written by delta-rs; what it reads of them, all at once, is the reference. `test_delta_by_spark` has
tables of Spark's.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mz_dagster import Error, NotSupportedError
from mz_dagster.adapter import Connection
from mz_dagster.adapter.graphs import SourceNotPolled
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.errors import OperationalError
from mz_dagster.fail_point import VARIABLE
from mz_dagster.operations.doctor import examine
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import Ledger, SourceUnreadable, table_rows
from mz_dagster.storage.source.delta import data_files, delta_source
from mz_dagster.storage.table_place import TablePlace
from tests.budgets import SetBudget
from tests.errors import says_what_to_do
from tests.forks import forks
from tests.opened import opened

TIMELINE = "default"
ROWS = pa.schema([("a", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read."""
    found: list[str] = []

    def noted(one: Callable[..., Any]) -> Callable[..., Any]:
        def read_one(table: TablePlace, path: str, *arguments: Any) -> Any:
            found.append(path.rpartition("/")[2])
            return one(table, path, *arguments)

        return read_one

    for one in (data_files.file_rows, data_files.changed_rows):
        monkeypatch.setattr(delta_source, one.__name__, noted(one))
    return found


def rows(*values: tuple[int, str | None, float | None]) -> pa.Table:
    columns = zip(*values, strict=True) if values else ([], [], [])
    return pa.Table.from_arrays(
        [pa.array(one, type_) for one, type_ in zip(columns, ROWS.types, strict=True)], schema=ROWS
    )


def held(connection: Connection, name: str = "t", at: int | None = None) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(f"SELECT * FROM {name}{'' if at is None else f' AS OF {at}'}").fetchall())


def reference(table: Path | str, *columns: str) -> Counter[tuple[Any, ...]]:
    """Returns the rows of the newest version, as delta-rs reads them."""
    found = DeltaTable(table).to_pyarrow_table().select(list(columns or ROWS.names))
    return Counter(zip(*(one.to_pylist() for one in found.columns), strict=True))


def last_tick(connection: Connection) -> int:
    found = connection.engine.catalog.last_tick(TIMELINE)
    assert found is not None
    return found


def unpolled(connection: Connection) -> Error:
    (failure,) = connection.engine.poll(TIMELINE).failures.values()
    return failure


# ---- what a source is


def test_a_source_is_its_table_at_each_tick(connection: Connection, table: Path) -> None:
    write_deltalake(table, rows((1, "x", 0.5), (1, "x", 0.5), (2, None, None)))
    connection.execute("CREATE SOURCE t (a bigint, p text, x double precision) FROM DELTA (URI 'lake/t')")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM t GROUP BY p")
    first = held(connection)
    assert first == {(1, "x", 0.5): 2, (2, None, None): 1}
    before = last_tick(connection)
    write_deltalake(table, rows((3, "x", 1.0)), mode="append")
    DeltaTable(table).delete("a = 2")
    assert held(connection) == {(1, "x", 0.5): 2, (3, "x", 1.0): 1}
    assert held(connection, "v") == {("x", 3): 1}
    assert held(connection, at=before) == first
    assert held(connection, "v", before) == {("x", 2): 1, (None, 1): 1}
    tick = last_tick(connection)
    assert connection.engine.poll(TIMELINE).tick is None
    assert last_tick(connection) == tick
    assert connection.execute("SHOW SOURCES").fetchall()


def test_its_columns_are_the_tables_unless_they_are_stated(connection: Connection, table: Path) -> None:
    types: dict[str, tuple[pa.DataType, str]] = {
        "b": (pa.int8(), "smallint"), "i2": (pa.int16(), "smallint"), "i4": (pa.int32(), "integer"),
        "i8": (pa.int64(), "bigint"), "f4": (pa.float32(), "real"), "f8": (pa.float64(), "double precision"),
        "Dec imal": (pa.decimal128(10, 2), "numeric(10,2)"), "s": (pa.string(), "text"),
        "y": (pa.binary(), "bytea"), "o": (pa.bool_(), "boolean"), "d": (pa.date32(), "date"),
        "t": (pa.timestamp("us", "UTC"), "timestamptz"), "n": (pa.timestamp("us"), "timestamp"),
        "l": (pa.list_(pa.string()), "text[]"), "ll": (pa.list_(pa.list_(pa.int32())), "integer[][]"),
    }  # fmt: skip
    values: list[Any] = [
        -128, -32768, 2**31 - 1, -(2**63), 1.5, float("nan"), Decimal("-1.50"), "é", b"\0\xff", True,
        datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, datetime.UTC),
        datetime.datetime(1500, 1, 1), ["a", None], [[1, None], [3, 4]],
    ]  # fmt: skip
    schema = pa.schema([(name, one) for name, (one, _) in types.items()])
    arrays = [pa.array([value, None], one) for value, (one, _) in zip(values, types.values(), strict=True)]
    write_deltalake(table, pa.Table.from_arrays(arrays, schema=schema))
    connection.execute("CREATE SOURCE t IN TIMELINE \"default\" FROM DELTA (URI 'lake/t')")
    (made,) = connection.execute("SHOW CREATE SOURCE t").fetchall()
    for name, (_, sql) in types.items():
        assert f'"{name}" {sql}' in made[-1]
    write_deltalake(table, pa.Table.from_arrays(arrays, schema=schema), mode="append")
    found = connection.execute("SELECT * FROM t WHERE s IS NOT NULL").fetchall()
    assert [repr(row) for row in found] == [repr(tuple(values))] * 2  # NaN is not itself
    assert connection.execute("SELECT count(*) FROM t WHERE s IS NULL AND l IS NULL").fetchone() == (2,)
    connection.execute("CREATE SOURCE few (s varchar(1), i4 numeric(12, 1), i8 smallint) FROM DELTA (URI 'lake/t')")
    with pytest.raises(Error, match=r'out of range.*"i8"'):
        held(connection, "few")
    DeltaTable(table).delete("s = 'é'")
    assert held(connection, "few") == {(None, None, None): 2}


def test_what_cannot_be_a_source_says_why(connection: Connection, table: Path, tmp_path: Path) -> None:
    nested = pa.table({"a": [1], "s": pa.array([{"b": 1}])})
    write_deltalake(table, nested)
    create = "CREATE SOURCE t {} FROM DELTA (URI '{}') {}"
    for columns, uri, rest, error, text in (
        ("", "lake/t", "", OperationalError, "of a nested type"),
        ("", "lake/nothing", "", OperationalError, "is no Delta table"),
        ("(a bigint)", "hdfs://bucket/t", "", NotSupportedError, "not supported yet"),
        ("(a bigint)", ".mz/shards/x", "", FolderNotAllowed, "the engine's own"),
        ("(a bigint)", str(tmp_path.parent), "", FolderNotAllowed, "outside of the project"),
        ("(a bigint, PRIMARY KEY (a))", "lake/t", "", InvalidTableDefinition, "PRIMARY KEY requires ENVELOPE UPSERT"),
        ("(a bigint)", "lake/t", "ENVELOPE UPSERT", InvalidTableDefinition, "requires a primary key"),
        (
            "(a interval, PRIMARY KEY (a))",
            "lake/t",
            "ENVELOPE UPSERT",
            InvalidTableDefinition,
            "cannot be part of a key",
        ),
        (
            "(a bigint[], PRIMARY KEY (a))",
            "lake/t",
            "ENVELOPE UPSERT",
            InvalidTableDefinition,
            "cannot be part of a key",
        ),
        ("(a bigint)", "lake/t", "WITH (START VERSION 1, START VERSION 2)", InvalidTableDefinition, "twice"),
    ):
        with pytest.raises(error, match=text):
            connection.execute(create.format(columns, uri, rest))
    connection.execute(create.format("(a bigint)", f"file://{table}", ""))
    assert held(connection) == {(1,): 1}
    connection.execute("CREATE SOURCE u (a bigint) FROM DELTA (URI 'later')")
    says_what_to_do(unpolled(connection), "is no Delta table", "once the table is there")
    write_deltalake(tmp_path / "later", pa.table({"a": [2]}))
    assert held(connection, "u") == {(2,): 1}


def test_a_source_begins_with_the_version_that_it_says(connection: Connection, table: Path) -> None:
    for number in range(4):
        write_deltalake(table, rows((number, "x", None)), mode="append")
    connection.execute("CREATE SOURCE t (a bigint) FROM DELTA (URI 'lake/t') WITH (START VERSION 1)")
    tick = connection.engine.poll(TIMELINE).tick
    assert tick is not None
    assert held(connection, at=tick) == {(0,): 1, (1,): 1}
    assert held(connection) == {(0,): 1, (1,): 1, (2,): 1, (3,): 1}


# ---- what it reads


def test_what_changes_no_row_costs_no_rows_read(connection: Connection, table: Path, read: list[str]) -> None:
    for number in range(3):
        write_deltalake(table, rows((number, "x", None)), mode="append")
    connection.execute("CREATE SOURCE t (a bigint, p text, x double precision) FROM DELTA (URI 'lake/t')")
    whole = held(connection)
    assert len(read) == 3
    DeltaTable(table).optimize.compact()
    assert held(connection) == whole
    DeltaTable(table).optimize.z_order(["a"])
    DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    DeltaTable(table).alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    assert held(connection) == whole
    assert len(read) == 3
    write_deltalake(table, rows((9, "x", None)), mode="append")
    assert held(connection) == whole + Counter({(9, "x", None): 1})
    assert len(read) == 4, "one file was added, and one is read"
    bindings = connection.engine.catalog.bindings(connection.engine.collection_of("t"))
    versions = [one.offset["version"] for one in bindings if one.offset is not None]
    assert versions == [2, 3, DeltaTable(table).version() - 1, DeltaTable(table).version()]


def test_what_comes_and_goes_between_two_polls_is_not_read(
    connection: Connection, table: Path, read: list[str]
) -> None:
    write_deltalake(table, rows((1, "x", None)))
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    held(connection)
    write_deltalake(table, rows(*((n, "y", None) for n in range(100))), mode="append")
    DeltaTable(table).delete("p = 'y'")
    DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert held(connection) == {(1, "x"): 1}
    assert len(read) == 1


def test_change_data_is_read_in_the_place_of_whole_files(connection: Connection, table: Path, read: list[str]) -> None:
    write_deltalake(
        table, rows(*((n, "x", None) for n in range(1000))), configuration={"delta.enableChangeDataFeed": "true"}
    )
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    held(connection)
    read.clear()
    DeltaTable(table).delete("a < 3")
    DeltaTable(table).update(updates={"p": "'z'"}, predicate="a = 5")
    assert held(connection) == reference(table, "a", "p")
    files = DeltaTable(table).get_add_actions()
    assert read
    assert not set(pa.table(files).column("path").to_pylist()) & set(read)


def test_change_data_that_leaves_rows_out_is_not_read(connection: Connection, table: Path) -> None:
    write_deltalake(
        table, rows(*((n, "x", None) for n in (7, 8, 8))), configuration={"delta.enableChangeDataFeed": "true"}
    )
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    held(connection)
    DeltaTable(table).update(updates={"a": "a + 1"}, predicate="p = 'x'")
    (changed,) = (table / "_change_data").glob("*.parquet")
    assert sorted(pq.read_table(changed)["a"].to_pylist()) == [7, 9, 9], "delta-rs leaves out what was 8 or is"
    assert held(connection) == {(8, "x"): 1, (9, "x"): 2}


@pytest.mark.parametrize(
    ("engine", "is_read"), [("Apache-Spark/4.0 Delta-Lake/4.0", True), ("Trino/470", False), (None, False)]
)
def test_change_data_of_unknown_writers_is_not_read(
    connection: Connection, table: Path, read: list[str], engine: str | None, is_read: bool
) -> None:
    write_deltalake(table, rows((1, "x", None), (2, "x", None)), configuration={"delta.enableChangeDataFeed": "true"})
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    held(connection)
    DeltaTable(table).delete("a = 1")
    commit = table / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    said = [
        {"commitInfo": {**line["commitInfo"], "engineInfo": engine}} if "commitInfo" in line else line for line in lines
    ]
    commit.write_text("".join(f"{json.dumps(line)}\n" for line in said))
    read.clear()
    assert held(connection) == {(2, "x"): 1}
    changed = {one.name for one in (table / "_change_data").iterdir()}
    assert (set(read) == changed) == is_read


def test_a_row_that_is_an_error_goes_with_its_row(connection: Connection, table: Path) -> None:
    write_deltalake(table, rows((1, "x", None), (70_000, "y", None), (70_000, "y", None)))
    connection.execute("CREATE SOURCE t (a smallint NOT NULL, p text) FROM DELTA (URI 'lake/t')")
    with pytest.raises(Error, match="smallint out of range"):
        held(connection)
    nulls = pa.table({"a": pa.array([None], pa.int64()), "p": ["n"]})
    write_deltalake(table, nulls, mode="append", schema_mode="merge")
    DeltaTable(table).optimize.compact()
    DeltaTable(table).delete("a = 70000")
    with pytest.raises(Error, match="not-null"):
        held(connection)
    DeltaTable(table).delete("p = 'n'")
    assert held(connection) == {(1, "x"): 1}


# ---- random histories


class Writer:
    """Does at random what others do to a table."""

    def __init__(self, table: Path | str, random: Random, *, feed: bool) -> None:
        self.table = table
        self.random = random
        self.has_more = False
        write_deltalake(
            table,
            self.some(5),
            partition_by=["p"] if random.random() < 0.5 else None,
            configuration={"delta.enableChangeDataFeed": str(feed).lower()},
        )

    def some(self, most: int) -> pa.Table:
        random = self.random
        return rows(
            *(
                (random.randrange(8), random.choice(["x", "y", "a b/c", None]), random.choice([None, 0.5, -0.0, 1e300]))
                for _ in range(random.randint(1, most))
            )
        )

    def write(self) -> str:
        """Commits something, and returns what."""
        name = self.random.choice(
            ["append", "append", "append", "delete", "update", "overwrite", "merge", "optimize", "z_order", "restore",
             "more columns", "some replaced", "properties"]
        )  # fmt: skip
        getattr(self, name.replace(" ", "_"))()
        return name

    def append(self) -> None:
        write_deltalake(self.table, self.some(4), mode="append", schema_mode="merge")

    def delete(self) -> None:
        DeltaTable(self.table).delete(f"a = {self.random.randrange(8)}")

    def update(self) -> None:
        DeltaTable(self.table).update(updates={"x": "x + 1", "a": "a + 1"}, predicate="p = 'x'")

    def overwrite(self) -> None:
        write_deltalake(
            self.table, self.some(5), mode="overwrite", schema_mode="overwrite" if not self.has_more else "merge"
        )

    def some_replaced(self) -> None:
        new = self.some(3)
        new = new.set_column(1, "p", pa.array(["y"] * len(new), pa.string()))
        write_deltalake(self.table, new, mode="overwrite", predicate="p = 'y'", schema_mode="merge")

    def merge(self) -> None:
        new = self.some(3)
        keys: dict[int, int] = {one: place for place, one in enumerate(new.column("a").to_pylist())}
        new = new.take(list(keys.values()))
        merge = DeltaTable(self.table).merge(new, "t.a = s.a", source_alias="s", target_alias="t")
        values = {name: f"s.{name}" for name in ("a", "p", "x")}
        merge.when_matched_delete("s.x is null").when_matched_update(values).when_not_matched_insert(values).execute()

    def optimize(self) -> None:
        DeltaTable(self.table).optimize.compact()

    def z_order(self) -> None:
        DeltaTable(self.table).optimize.z_order(["a", "x"])

    def restore(self) -> None:
        opened = DeltaTable(self.table)
        if opened.version():
            opened.restore(self.random.randrange(max(0, opened.version() - 3), opened.version()))

    def more_columns(self) -> None:
        self.has_more = True
        new = self.some(2)
        write_deltalake(
            self.table, new.append_column("more", pa.array([1] * len(new))), mode="append", schema_mode="merge"
        )

    def properties(self) -> None:
        DeltaTable(self.table).alter.set_table_properties({"delta.appendOnly": "false"})


def follow(
    connection: Connection, table: Path | str, seed: int, commits: int, delta: str = "DELTA (URI 'lake/t')"
) -> None:
    random = Random(seed)
    writer = Writer(table, random, feed=random.random() < 0.5)
    connection.execute(f"CREATE SOURCE t (a bigint, p text, x double precision) FROM {delta}")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n, sum(a)::bigint AS a FROM t GROUP BY p")
    done: list[str] = []
    history: dict[int, Counter[tuple[Any, ...]]] = {}
    for _ in range(commits):
        done.append(writer.write())
        if random.random() < 0.6:
            continue
        wanted = reference(table)
        assert {tuple(map(repr, row)): n for row, n in held(connection).items()} == {
            tuple(map(repr, row)): n for row, n in wanted.items()
        }, done
        sums: dict[Any, list[int]] = {}
        for (a, p, _), n in wanted.items():
            of = sums.setdefault(p, [0, 0])
            of[0] += n
            of[1] += n * a
        assert held(connection, "v") == {(p, n, a): 1 for p, (n, a) in sums.items()}, done
        history[last_tick(connection)] = wanted
    for tick, wanted in history.items():
        assert held(connection, at=tick) == wanted


@pytest.mark.parametrize(
    ("seed", "commits"), [(0, 18), *(pytest.param(n, 30, marks=pytest.mark.deep) for n in range(5))]
)
def test_whatever_is_committed_the_source_is_the_table(
    connection: Connection, table: Path, seed: int, commits: int
) -> None:
    follow(connection, table, seed, commits)


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 120))
def test_whatever_is_committed_for_long_the_source_is_the_table(connection: Connection, table: Path, seed: int) -> None:
    follow(connection, table, seed, 300)


# ---- what goes wrong


@pytest.fixture
def bound(connection: Connection, table: Path) -> Callable[[], None]:
    """A source with two rows, whose content cannot be told any more before it is reset; then it is the table's."""
    write_deltalake(table, rows((1, "x", None), (2, "x", None)))
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    assert held(connection) == {(1, "x"): 1, (2, "x"): 1}
    before = last_tick(connection)

    def heal() -> None:
        with pytest.raises(SourceNotPolled):
            held(connection)
        assert held(connection, at=before) == {(1, "x"): 1, (2, "x"): 1}, "nothing is lost"
        connection.execute("ALTER SOURCE t RESET")
        assert held(connection) == reference(table, "a", "p")
        assert held(connection, "v") == {(sum(reference(table).values()),): 1}
        write_deltalake(table, rows((7, "z", None)), mode="append")
        assert held(connection) == reference(table, "a", "p")

    return heal


def vacuum(table: Path | str) -> None:
    DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def test_files_that_were_vacuumed_before_they_were_read(
    connection: Connection, table: Path, bound: Callable[[], None]
) -> None:
    DeltaTable(table).update(updates={"p": "'y'"}, predicate="a = 1")
    vacuum(table)
    says_what_to_do(unpolled(connection), "cannot be read any more", "VACUUM", "ALTER SOURCE ... RESET")
    bound()


def test_files_that_go_between_poll_and_step(connection: Connection, table: Path) -> None:
    write_deltalake(table, rows((1, "x", None)))
    connection.execute("CREATE SOURCE t (a bigint) FROM DELTA (URI 'lake/t')")
    held(connection)
    write_deltalake(table, rows((2, "x", None)), mode="append")
    polled = connection.engine.poll(TIMELINE)
    assert polled.tick is not None
    write_deltalake(table, rows((3, "x", None)), mode="overwrite")
    vacuum(table)
    report = connection.engine.step(TIMELINE, polled.tick)
    assert report.failures[0].error is not None
    says_what_to_do(report.failures[0].error, "cannot be read any more", "ALTER SOURCE ... RESET")
    connection.execute("ALTER SOURCE t RESET")
    assert held(connection) == {(3,): 1}


def test_commits_that_were_cleaned_up_before_they_were_read(
    connection: Connection, table: Path, bound: Callable[[], None]
) -> None:
    for number in range(3, 6):
        write_deltalake(table, rows((number, "x", None)), mode="append")
    DeltaTable(table).create_checkpoint()
    for version in range(3):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    says_what_to_do(unpolled(connection), "cannot be read any more", "not in the log", "ALTER SOURCE ... RESET")
    bound()


@pytest.mark.parametrize("commits", [1, 3])
def test_another_table_in_its_place(
    connection: Connection, table: Path, bound: Callable[[], None], commits: int
) -> None:
    shutil.rmtree(table)
    for number in range(commits):
        write_deltalake(table, rows((number + 10, "x", None)), mode="append")
    says_what_to_do(unpolled(connection), "is not the one that was read", "ALTER SOURCE ... RESET")
    bound()


def test_a_table_that_is_gone_and_comes_back(
    connection: Connection, table: Path, bound: object, tmp_path: Path
) -> None:
    table.rename(tmp_path / "elsewhere")
    says_what_to_do(unpolled(connection), "is no Delta table", "the folder that holds _delta_log")
    (tmp_path / "elsewhere").rename(table)
    write_deltalake(table, rows((3, "x", None)), mode="append")
    assert held(connection) == reference(table, "a", "p")


def test_a_column_that_goes_or_becomes_another(connection: Connection, table: Path, bound: object) -> None:
    write_deltalake(table, pa.table({"a": [1]}), mode="overwrite", schema_mode="overwrite")
    says_what_to_do(unpolled(connection), 'has no column "p"', "or create the source anew")
    write_deltalake(table, pa.table({"a": ["1"], "p": ["x"]}), mode="overwrite", schema_mode="overwrite")
    says_what_to_do(unpolled(connection), "is string, which is not readable as bigint", "Create the source anew")
    write_deltalake(table, rows((4, "x", None)), mode="overwrite", schema_mode="overwrite")
    assert held(connection) == reference(table, "a", "p"), "what lies between is not told, but what is there is"


def test_a_table_that_asks_too_much_of_its_readers(connection: Connection, table: Path, bound: object) -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timeTravel"],
        "writerFeatures": ["timeTravel"],
    }
    (table / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    says_what_to_do(unpolled(connection), "asks its readers for features timeTravel", "drop the feature")


@pytest.mark.parametrize("content", [b"", b"{", b'{"add": 1}', b'{"add": {"path": "x"}}', b"\xff", b"null", b"[]"])
def test_a_damaged_log_is_the_sources_own_error(
    connection: Connection, table: Path, bound: object, content: bytes
) -> None:
    commit = table / "_delta_log" / f"{1:020}.json"
    commit.write_bytes(content)
    if content:
        says_what_to_do(unpolled(connection), "commit 1", "is damaged", "mend its log")
    else:
        connection.engine.poll(TIMELINE)
    commit.unlink()


def test_a_damaged_data_file_is_mended_by_whoever_writes_the_table(
    connection: Connection, table: Path, bound: object
) -> None:
    before = set(table.glob("*.parquet"))
    write_deltalake(table, rows((3, "x", None)), mode="append")
    (damaged,) = set(table.glob("*.parquet")) - before
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(SourceUnreadable) as caught:
        held(connection)
    says_what_to_do(caught.value, damaged.name, "is damaged", "whoever writes the table", "ALTER SOURCE ... RESET")
    write_deltalake(table, rows((4, "y", None)), mode="overwrite")
    connection.execute("ALTER SOURCE t RESET")
    assert held(connection) == reference(table, "a", "p")


def read_short(content: bytes) -> bytes:
    """Returns a file of Parquet with one bit of its footer flipped, of which Arrow reads fewer rows and no error."""
    for at in range(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), len(content) - 8):
        found = bytearray(content)
        found[at] ^= 1
        with suppress(OSError, pa.ArrowException), pq.ParquetFile(pa.BufferReader(bytes(found))) as file:
            if sum(batch.num_rows for batch in file.iter_batches()) < file.metadata.num_rows:
                return bytes(found)
    raise AssertionError("there is none")


def test_a_data_file_with_fewer_rows_than_it_says_is_damaged(connection: Connection, table: Path) -> None:
    write_deltalake(table, rows((3, "x", None)))
    (damaged,) = table.glob("*.parquet")
    damaged.write_bytes(read_short(damaged.read_bytes()))
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    with pytest.raises(SourceUnreadable) as caught:
        held(connection)
    says_what_to_do(
        caught.value, damaged.name, "it says that it has 1 rows, its parts 1, and 0", "whoever writes the table"
    )


def test_a_log_that_leads_out_of_its_folder_is_not_followed(
    connection: Connection, table: Path, bound: object, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "secret", rows((9, "secret", None)))
    (secret,) = (tmp_path / "secret").glob("*.parquet")
    for path in (f"file://{secret}", str(secret), f"../../secret/{secret.name}"):
        add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        (table / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}) + "\n")
        says_what_to_do(unpolled(connection), "outside of the table's folder", "Read that other table")


@pytest.mark.parametrize("lost", ["", " WHERE tick = (SELECT max(tick) FROM bound_offset)"], ids=["all", "newest"])
def test_lost_bindings_are_found_before_anything_is_read_twice(
    connection: Connection, table: Path, bound: object, tmp_path: Path, lost: str
) -> None:
    write_deltalake(table, rows((3, "x", None)), mode="append")
    held(connection)
    write_deltalake(table, rows((4, "x", None)), mode="append")
    with closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute(f"DELETE FROM bound_offset{lost}")
    says_what_to_do(unpolled(connection), "has lost what source", "doctor")
    assert "bindings-lost" in {one.check for one in examine(tmp_path).findings}


def mutated(content: bytes, random: Random) -> bytes:
    """Returns a commit with something wrong in it: in its bytes, or in what its JSON says."""
    if random.random() < 0.3:
        at = random.randrange(len(content))
        return random.choice([content[:at], content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]])
    actions = [json.loads(line) for line in content.splitlines()]
    place: Any = random.choice(actions)
    while True:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and random.random() < 0.8:
            place = inner
            continue
        if random.random() < 0.3:
            del place[key]
        else:
            place[key] = random.choice(
                [None, True, -1, 2**70, "", "x", "\0", "../x", [], {}, [None], {"a": 1}, float("nan")]
            )
        return "".join(f"{json.dumps(one)}\n" for one in actions).encode()


def test_a_log_with_anything_wrong_in_it_is_an_error_or_read(connection: Connection, table: Path) -> None:
    write_deltalake(
        table, rows((1, "x", None)), partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    held(connection)
    write_deltalake(table, rows((2, "y", None)).append_column("z", pa.array([1])), mode="append", schema_mode="merge")
    DeltaTable(table).delete("a = 1")
    engine = connection.engine
    id = engine.collection_of("t")
    source, ledger = engine.definitions.source(id), Ledger(engine.catalog, engine.catalog.collection(id))
    random, failed = Random(1), 0
    for version in (1, 2):
        commit = table / "_delta_log" / f"{version:020}.json"
        content = commit.read_bytes()
        for _ in range(150):
            commit.write_bytes(mutated(content, random))
            try:
                source.gain(ledger)
            except Error:
                failed += 1
        commit.write_bytes(content)
    assert failed > 50
    assert held(connection) == reference(table, "a", "p")


# ---- kills


def read_until_killed(root: str, fail_point: str) -> None:
    """Is the process: reads the source, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    with opened(Path(root)) as connection:
        held(connection, "v")


@pytest.mark.parametrize(
    "fail_point",
    [
        *("tick.minted", "seal.in_transaction", "seal.sealed"),
        *(
            pytest.param(one, marks=pytest.mark.deep)
            for one in ("tick.before_mint", "append.inlined", "append.before_seal")
        ),
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    connection: Connection, table: Path, tmp_path: Path, fail_point: str
) -> None:
    write_deltalake(table, rows((1, "x", None)))
    connection.execute("CREATE SOURCE t (a bigint, p text) FROM DELTA (URI 'lake/t')")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    for kill, number in ((True, 2), (False, 3)):
        write_deltalake(table, rows((number, "x", None), (1, "x", None)), mode="append")
        DeltaTable(table).delete(f"a = {number - 1} and p = 'x' and {number} = 3")
        if kill:
            process = forks().Process(target=read_until_killed, args=(str(tmp_path), fail_point))
            process.start()
            process.join(60)
            assert process.exitcode == -signal.SIGKILL
        assert held(connection) == reference(table, "a", "p")
        counts: Counter[int] = Counter()
        for (a, _), n in reference(table, "a", "p").items():
            counts[a] += n
        assert held(connection, "v") == dict.fromkeys(counts.items(), 1)


# ---- large tables


def test_a_large_table_is_read_portion_by_portion(connection: Connection, table: Path, set_budget: SetBudget) -> None:
    set_budget(small_file_bytes=0)
    for start in (0, 100_000, 200_000):
        write_deltalake(table, rows(*((n, "x", None) for n in range(start, start + 100_000))), mode="append")
    DeltaTable(table).delete("a < 10")
    connection.execute("CREATE SOURCE t (a bigint, p varchar(1)) FROM DELTA (URI 'lake/t')")
    connection.execute("CREATE SOURCE few (a smallint) FROM DELTA (URI 'lake/t')")
    assert connection.execute("SELECT count(*), sum(a), min(a) FROM t").fetchall() == [
        (299_990, Decimal(sum(range(10, 300_000))), 10)
    ]
    with pytest.raises(Error, match="smallint out of range"):
        held(connection, "few")
    write_deltalake(table, rows((1, "y", None)), mode="append")
    assert connection.execute("SELECT count(*) FROM t WHERE p = 'y'").fetchall() == [(1,)]
    connection.execute("CREATE SOURCE gone (a bigint) FROM DELTA (URI 'lake/t')")
    polled = connection.engine.poll(TIMELINE)
    assert polled.tick is not None
    for file in table.glob("*.parquet"):
        file.unlink()
    failures = {one.name: one.error for one in connection.engine.step(TIMELINE, polled.tick).failures}
    assert failures["gone"] is not None
    says_what_to_do(failures["gone"], "cannot be read any more", "ALTER SOURCE ... RESET")
    DeltaTable(table).delete()
    connection.execute("ALTER SOURCE gone RESET")
    assert held(connection, "gone") == {}


@pytest.mark.parametrize("how", ["update", "merge"])
def test_of_rewritten_files_the_rows_that_differ_become_updates(
    connection: Connection, table: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    for first in (0, 2000, 4000):
        write_deltalake(table, rows(*((n, f"{n % 7}", -0.0) for n in range(first, first + 2000))), mode="append")
    connection.execute("CREATE SOURCE t FROM DELTA (URI 'lake/t')")
    held(connection)
    made: list[int] = []
    one = table_rows.row_updates

    def noted(batch: pa.RecordBatch, *arguments: Any) -> pa.Table:
        made.append(batch.num_rows)
        return one(batch, *arguments)

    monkeypatch.setattr(delta_source, "row_updates", noted)
    if how == "update":  # keeps the rows' order, piece by piece
        DeltaTable(table).update(updates={"x": "0.0"}, predicate="a % 1000 = 3")
    else:  # leaves them in no order
        source = rows(*((n, None, 0.0) for n in range(3, 6000, 1000)))
        merged = DeltaTable(table).merge(source, "t.a = s.a", source_alias="s", target_alias="t")
        merged.when_matched_update({"x": "s.x"}).execute()
    assert held(connection) == reference(table)
    assert 12 <= sum(made) < 1500, "of 12000 in the files, 6 changed"
