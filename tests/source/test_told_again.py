"""Changes that Debezium tells again, from any place on, make what they make if they are told once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.storage.envelope.log_place import place_of, remembered
from mz_dagster.storage.spark import SparkConfig
from tests.forks import forks
from tests.opened import opened
from tests.source.landing import drop, poll
from tests.source.test_avro import avro, record

KEYS = range(6)
CREATE = (
    "CREATE SOURCE s (id integer, name text, PRIMARY KEY (id)) FROM FILES (FOLDER 'in') FORMAT JSON ENVELOPE DEBEZIUM"
)
Block = dict[str, Any]


def of_postgres(at: int, commit: int) -> Block:
    return {"connector": "postgresql", "lsn": at, "txId": commit, "sequence": f'[null, "{at}"]'}


def of_mysql(at: int, commit: int) -> Block:
    file, pos = divmod(commit, 30)
    return {"connector": "mysql", "file": f"bin.{file + 9:06}", "pos": pos * 100, "row": at % 2, "gtid": None}


def of_mysql_with_gtid(at: int, commit: int) -> Block:
    return {**of_mysql(at, commit), "gtid": f"24bc7850-2c16-11e6-a073-0242ac110002:{commit}"}


def of_mariadb(at: int, commit: int) -> Block:
    return {**of_mysql(at, commit), "connector": "mariadb", "gtid": f"0-{commit % 2}-{commit}"}


def of_sqlserver(at: int, commit: int) -> Block:
    lsn = f"00000027:{commit:08x}:0005"
    return {"connector": "sqlserver", "commit_lsn": lsn, "change_lsn": f"{lsn[:-4]}{at:04x}", "event_serial_no": 1}


def of_oracle(at: int, commit: int) -> Block:
    return {"connector": "oracle", "scn": str(at), "commit_scn": str(commit)}


CONNECTORS = (of_postgres, of_mysql, of_mysql_with_gtid, of_mariadb, of_sqlserver, of_oracle)


@dataclass
class Database:
    """A table, and what Debezium tells of it: a snapshot, changes in transactions that overlap, and rows read again.

    Attributes:
        told: The records, in order.
        states: The table behind each of them.
    """

    random: Random
    block: Callable[[int, int], Block]
    told: list[str] = field(default_factory=list)
    states: list[dict[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._table: dict[int, str] = {}
        self._positions = count(90)
        self._names = map(str, count())
        begun = [next(self._positions) for _ in KEYS]  # changes of transactions that are open during the snapshot
        snapshot = next(self._positions)
        for key in KEYS:
            if self.random.random() < 0.7:
                self._table[key] = next(self._names)
                self._tell("r", key, snapshot, snapshot, snapshot)
        for key, at in zip(KEYS, begun, strict=True):
            if self.random.random() < 0.3:
                self._change(key, at)
        for _ in range(60):
            if self.random.random() < 0.15 and self._table:  # an incremental snapshot, from where the connector is
                key = self.random.choice(list(self._table))
                self._tell("r", key, self.last, self.last, next(self._positions))
            else:
                self._change(self.random.choice(KEYS), next(self._positions))

    def _change(self, key: int, at: int) -> None:
        op = self.random.choice("ud") if key in self._table else "c"
        if op == "d":
            self._tell(op, key, at, next(self._positions), None)
        else:
            self._table[key] = next(self._names)
            self._tell(op, key, at, next(self._positions), None)

    def _tell(self, op: str, key: int, at: int, commit: int, read_at: int | None) -> None:
        row = {"id": key, "name": self._table.get(key)}
        if op == "d":
            del self._table[key]
        self.last = at
        source = {**self.block(at, commit), "name": "shop", "ts_ms": read_at or commit}
        if op == "r":
            source |= {"gtid": None, "change_lsn": None, "commit_scn": None, "snapshot": "incremental"}
        sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
        self.told.append(json.dumps({**sides, "source": source, "op": op}))
        self.states.append(dict(self._table))

    def deliveries(self) -> Iterator[tuple[list[str], dict[int, str]]]:
        """Yields what is written, from places that go back any distance, and the table at the furthest so far."""
        place = furthest = 0
        while furthest < len(self.told):
            if self.random.random() < 0.5:
                place = self.random.randrange(place + 1)
            end = min(len(self.told), place + self.random.randrange(1, 25))
            furthest = max(furthest, end)
            yield self.told[place:end], self.states[furthest - 1]
            place = end


@pytest.mark.parametrize("seeds", [50, pytest.param(150, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    "block", [pytest.param(one, marks=pytest.mark.deep if number % 2 else ()) for number, one in enumerate(CONNECTORS)]
)
def test_what_is_told_again_changes_nothing(block: Callable[[int, int], Block], seeds: int) -> None:
    for seed in range(seeds):
        database = Database(Random(seed), block)
        known: dict[int, str] = {}
        table: dict[int, str] = {}
        for lines, wanted in database.deliveries():
            for line in lines:
                change = json.loads(line)
                row = change["before"] if change["op"] == "d" else change["after"]
                place = place_of(change)
                assert place is not None
                behind = remembered(known.get(row["id"]), place)
                if behind is None:
                    continue
                known[row["id"]] = behind
                if change["op"] == "d":
                    table.pop(row["id"], None)
                else:
                    table[row["id"]] = row["name"]
            assert table == wanted, seed


def held(connection: Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM s").fetchall())


def tell(folder: Path, tick: int, lines: Sequence[str]) -> None:
    """Writes records into two files."""
    half = len(lines) // 2
    drop(folder, f"in/{tick:03}_a.jsonl", "\n".join(lines[:half]))
    drop(folder, f"in/{tick:03}_b.jsonl", "\n".join(lines[half:]))


@pytest.mark.parametrize("block", [of_postgres, of_mysql_with_gtid])
def test_a_source_is_the_table_however_often_it_is_told(
    connection: Connection, tmp_path: Path, block: Callable[[int, int], Block]
) -> None:
    connection.execute(CREATE)
    for tick, (lines, wanted) in enumerate(Database(Random(1), block).deliveries()):
        tell(tmp_path, tick, lines)
        poll(connection)
        if tick % 3:  # two ticks in one step
            assert held(connection) == wanted


def test_records_of_avro_say_their_places_too(connection: Connection, tmp_path: Path) -> None:
    connection.execute(CREATE.replace("FORMAT JSON", "FORMAT AVRO").replace("'in'", "'in', PATTERN '*'"))
    row = record(id="int", name=["null", "string"])
    source = {**record(connector="string", name="string", lsn="long", ts_ms="long"), "name": "source"}
    schema = {**record(before=["null", row], after=["null", "r"], source=source, op="string"), "name": "envelope"}
    for tick, (lines, wanted) in enumerate(Database(Random(2), of_postgres).deliveries()):
        drop(tmp_path, f"in/{tick:03}", avro(schema, *map(json.loads, lines)))
        poll(connection)
        assert held(connection) == wanted


@pytest.mark.deep
def test_spark_leaves_out_what_this_process_does(tmp_path: Path, spark_config: SparkConfig) -> None:
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute(CREATE)
        for tick, (lines, wanted) in enumerate(list(Database(Random(3), of_postgres).deliveries())[:3]):
            tell(tmp_path, tick, lines)
            poll(connection)
            connection.execute(f"SET engine = '{'spark' if tick == 1 else 'local'}'")
            assert held(connection) == wanted


def read_until_killed(root: str, fail_point: str) -> None:
    """Is the process: reads the source, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    with opened(Path(root)) as connection:
        held(connection)


def test_a_kill_anywhere_forgets_nothing(connection: Connection, tmp_path: Path) -> None:
    connection.execute(CREATE)
    points = ("tick.minted", "append.inlined", "append.inlined:2", "seal.in_transaction", "seal.sealed")
    for tick, (lines, wanted) in enumerate(Database(Random(5), of_postgres).deliveries()):
        tell(tmp_path, tick, lines)
        if tick < len(points):
            process = forks().Process(target=read_until_killed, args=(str(tmp_path), points[tick]))
            process.start()
            process.join(60)
            assert process.exitcode == -signal.SIGKILL
        poll(connection)
        assert held(connection) == wanted


def change(op: str, key: int, value: str | None, **source: Any) -> str:
    row = {"id": key, "name": value}
    sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    return json.dumps({**sides, "op": op, "source": {"connector": "postgresql", "name": "shop", **source}})


def test_a_log_that_began_anew_and_what_says_no_place_are_taken_up(connection: Connection, tmp_path: Path) -> None:
    connection.execute(CREATE)
    told = [
        (change("c", 1, "a", lsn=900, ts_ms=100), {1: "a"}),
        (change("d", 1, None, lsn=950, ts_ms=110), {}),
        (change("c", 1, "a", lsn=900, ts_ms=100), {}),
        (change("c", 1, "b", lsn=20, ts_ms=200), {1: "b"}),  # the database was restored
        (change("u", 1, "c", lsn=30, ts_ms=210), {1: "c"}),
        (change("c", 1, "b", lsn=20, ts_ms=200), {1: "c"}),
        (change("u", 1, "d", lsn=10, ts_ms=1, name="other"), {1: "d"}),  # of another server
        (change("u", 1, "e"), {1: "e"}),
        (change("u", 1, "f", connector="vitess", vgtid="7"), {1: "f"}),
        (change("u", 1, "x", lsn=5, ts_ms=1, name="other"), {1: "f"}),
        (change("u", 1, "g", lsn="?", name="other"), {1: "g"}),
    ]
    for tick, (line, wanted) in enumerate(told):
        drop(tmp_path, f"in/{tick:02}.jsonl", line)
        poll(connection)
        assert held(connection) == wanted, line


def test_what_is_remembered_goes_with_the_source_and_an_old_change_heals_no_error(
    connection: Connection, tmp_path: Path
) -> None:
    connection.execute(CREATE.replace("name text", "name integer"))
    drop(tmp_path, "in/0.jsonl", change("c", 1, "1", lsn=1) + "\n" + change("u", 1, "x", lsn=2))
    drop(tmp_path, "in/1.jsonl", change("c", 1, "1", lsn=1))
    poll(connection)
    with pytest.raises(Error, match=r'0\.jsonl", line 2, column "name"'):
        held(connection)
    assert connection.execute("SELECT count(*) FROM mz_objects WHERE type = 'arrangement'").fetchall() == [(1,)]
    connection.execute("DROP SOURCE s")
    assert connection.execute("SELECT count(*) FROM mz_objects WHERE type = 'arrangement'").fetchall() == [(0,)]
    connection.execute(CREATE)
    poll(connection)
    assert held(connection) == {1: "x"}
