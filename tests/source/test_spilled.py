"""A first load whose records go to disk makes the updates of one in memory, and takes memory for few of them."""

from __future__ import annotations

import errno
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget, budget_of
from mz_dagster.errors import OperationalError
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, TEXT, Column, ScalarType
from mz_dagster.storage.envelope import spilled
from mz_dagster.storage.envelope.local import insertions, upserts
from mz_dagster.storage.envelope.spilled import SpilledRecords
from mz_dagster.storage.key_hash import key_hashes
from tests.growth import peak
from tests.source.landing import drop, poll
from tests.source.test_debezium import change
from tests.source.test_local_envelope import COLUMNS, sums, table
from tests.source.test_upsert import KEY, histories, reference

TYPES: Mapping[str, ScalarType] = {"salt": INT4, "k": INT4, "l": TEXT}


def updates(
    portions: Iterator[pa.Table], folder: Path, columns: Sequence[Column], key: Mapping[str, ScalarType], **rest: bool
) -> Iterator[pa.Table]:
    def alone(some: pa.Table) -> pa.Table:
        return insertions(some.filter(pc.invert(some.column("mz_deleted"))), columns=columns)

    found = SpilledRecords.of(portions, folder, key, compares_all=rest.get("compares_all", False))
    return found.updates(alone, partial(upserts, prior=None, columns=columns, key=tuple(key)))


@pytest.mark.parametrize("compares_all", [False, True])
@pytest.mark.parametrize("different", [1 << 64, 7])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_records_on_disk_make_the_updates_of_their_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, different: int, compares_all: bool
) -> None:
    """Also where different keys share a hash."""

    def hashes(columns: Sequence[pa.ChunkedArray], types: Sequence[ScalarType]) -> NDArray[np.uint64]:
        return np.array([one % different for one in key_hashes(columns, types).tolist()], np.uint64)

    monkeypatch.setattr(spilled, "key_hashes", hashes)
    rng = random.Random(seed)
    records = histories(rng, 150)
    whole, size = table(records), rng.randrange(10, 60)
    portions = (whole.slice(start, size) for start in range(0, len(whole), size))
    assert tuple(TYPES) == KEY
    with budget_of(Budget(portion_rows=40)):
        found = list(updates(portions, tmp_path, COLUMNS, TYPES, compares_all=compares_all))
    assert sums(pa.concat_tables(found)) == reference({}, records)


def rows(keys: Sequence[Any], type_: pa.DataType) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "k": pa.array(keys, type_),
            "v": pa.array([f"value {one}" for one in range(count)]),
            "mz_timestamp": pa.array(np.ones(count, np.int64)),
            "mz_deleted": pa.array(np.zeros(count, np.bool_)),
            "mz_error": pa.nulls(count, pa.string()),
        }
    )


def test_keys_that_are_equal_are_compared_wherever_they_are(tmp_path: Path) -> None:
    given = rows([0.0, -0.0, float("nan"), 1.0, float("nan"), None, None], pa.float64())
    columns = (Column("k", FLOAT8), Column("v", TEXT))
    portions = (given.slice(one, 1) for one in range(len(given)))
    found = pa.concat_tables(updates(portions, tmp_path, columns, {"k": FLOAT8}))
    assert sorted(found.column("v").to_pylist()) == ["value 1", "value 3", "value 4", "value 6"]


def test_what_is_alone_keeps_its_order_and_no_records_make_no_updates(tmp_path: Path) -> None:
    given, columns = rows([5, 3, 5, 9, 1], pa.int64()), (Column("k", INT8), Column("v", TEXT))
    found = pa.concat_tables(updates(iter([given]), tmp_path, columns, {"k": INT8}))
    assert found.column("k").to_pylist() == [3, 9, 1, 5]
    with TemporaryDirectory(dir=tmp_path) as other:
        assert not list(updates(iter([]), Path(other), columns, {"k": INT8}))


def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    columns = (Column("k", INT8), Column("v", TEXT))

    def load(count: int) -> None:
        portions = (rows(range(start, start + 5_000), pa.int64()) for start in range(0, count, 5_000))
        with TemporaryDirectory(dir=tmp_path) as folder:
            assert sum(map(len, updates(portions, Path(folder), columns, {"k": INT8}))) == count

    few, many = (peak(partial(load, count)) for count in (20_000, 200_000))
    assert many - few < 12 * 180_000, "bytes for each further row"


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spilled, "_written_to", full)
    with pytest.raises(OperationalError, match=r"cannot write to folder .*: No space left on device") as caught:
        SpilledRecords.of(iter([rows([1], pa.int64())]), tmp_path, {"k": INT8}, compares_all=False)
    assert "Make room" in str(caught.value.hint)


SOURCES = """
CREATE SOURCE j (id integer, name text, PRIMARY KEY (id)) FROM FILES (FOLDER 'j') FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE c (id integer, name text) FROM FILES (FOLDER 'c') FORMAT CSV;
CREATE SOURCE p (id integer, name text, PRIMARY KEY (id)) FROM FILES (FOLDER 'p') FORMAT PARQUET ENVELOPE UPSERT;
CREATE SOURCE d (id integer, name text, PRIMARY KEY (id)) FROM FILES (FOLDER 'd') FORMAT JSON ENVELOPE DEBEZIUM;
CREATE SOURCE n (id integer, name text, PRIMARY KEY (id)) FROM FILES (FOLDER 'n') FORMAT JSON ENVELOPE UPSERT;
"""


def test_sources_of_each_envelope_and_format_are_what_their_files_say(connection: Connection, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    def keyed(key: int, name: str | None) -> str:
        value = None if name is None else {"name": name}
        return json.dumps({"key": {"id": key}, "value": value}) + "\n"

    files = {
        "j/0.jsonl": "".join(keyed(one % 40, None if one % 7 == 0 else f"n{one}") for one in range(60)),
        "c/0.csv": "id,name\n" + "".join(f"{one % 9},a\n" for one in range(60)),
        "d/0.jsonl": "".join(change("c", None, {"id": one, "name": "a"}) + "\n" for one in range(9))
        + change("u", None, {"id": 3, "name": "b"})
        + "\n"
        + change("d", {"id": 4}, None),
        "n/0.jsonl": keyed(1, None),
    }
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        drop((tmp_path / path).parent, Path(path).name, content)
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"id": [one % 50 for one in range(80)], "name": ["x"] * 80}), tmp_path / "p" / "0.parquet")
    for statement in filter(str.strip, SOURCES.split(";")):
        connection.execute(statement)
    with budget_of(Budget(spilled_bytes=0, text_bytes=100, streamed_bytes=500, portion_rows=8)):
        poll(connection)
        connection.execute("SELECT (SELECT count(*) FROM j), (SELECT count(*) FROM c)").fetchall()
        connection.execute(
            "SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM d), (SELECT count(*) FROM n)"
        ).fetchall()
    kept = [f"n{max(one, one + 40 if one < 20 else 0)}" for one in range(40)]
    last = {int(name[1:]) % 40: name for name in kept if int(name[1:]) % 7}
    assert connection.execute("SELECT * FROM j ORDER BY id").fetchall() == sorted(last.items())
    found = connection.execute("SELECT id, count(*) FROM c GROUP BY id ORDER BY id").fetchall()
    assert found == [(one, 7 if one < 6 else 6) for one in range(9)]
    assert connection.execute("SELECT count(*), sum(id), min(name) FROM p").fetchall() == [(50, 50 * 49 // 2, "x")]
    told = [(one, "b" if one == 3 else "a") for one in range(9) if one != 4]
    assert connection.execute("SELECT * FROM d ORDER BY id").fetchall() == told
    assert connection.execute("SELECT * FROM n").fetchall() == []
    drop(tmp_path / "j", "1.jsonl", keyed(8, None) + keyed(99, "new"))
    poll(connection)
    expected = sorted({**{key: name for key, name in last.items() if key != 8}, 99: "new"}.items())
    assert connection.execute("SELECT * FROM j ORDER BY id").fetchall() == expected
