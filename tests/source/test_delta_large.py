"""A large Delta table of which little changes: the source reads the files that changed, and nothing of the others.

`MZ_LARGE_ROWS` says how many rows there are in the 2,000 files, by default a million. What a tick takes is compared
with what deltalake takes to read the same files, at the version before and at the new one, and with the view's time,
which says something from tens of millions on. What Arrow takes for the bare files, named to it, is printed beside it.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from mz_dagster.adapter import Connection
from mz_dagster.compute import StepReport
from mz_dagster.storage.source.delta import data_files, delta_source
from mz_dagster.storage.table_place import TablePlace
from tests.opened import opened
from tests.source.test_delta import TIMELINE

ROWS = int(os.environ.get("MZ_LARGE_ROWS", "1000000"))
FILES, CHANGED = 2_000, 30
#: From how many rows on the time is compared.
TELLING = 20_000_000


def write_table(table: Path) -> None:
    """Writes a table of many files in one commit."""
    each = ROWS // FILES
    write_deltalake(
        table,
        pa.table({"id": pa.array([], pa.int64()), "g": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
    )
    adds: list[AddAction | RemoveAction] = []
    for number in range(FILES):
        ids = pa.array(range(number * each, (number + 1) * each), pa.int64())
        found = pa.table({"id": ids, "g": pc.bit_wise_and(ids, 1023), "v": ids})
        path = table / f"part-{number:05}.parquet"
        pq.write_table(found, path)
        stats = (
            f'{{"numRecords": {each}, "minValues": {{"id": {number * each}}}, '
            f'"maxValues": {{"id": {(number + 1) * each - 1}}}, "nullCount": {{"id": 0}}}}'
        )
        adds.append(AddAction(path.name, path.stat().st_size, {}, int(path.stat().st_mtime * 1000), True, stats))
    opened_table = DeltaTable(table)
    opened_table.create_write_transaction(adds, "append", opened_table.schema(), [])


def rows_of(table: DeltaTable, wanted: set[str]) -> int:
    """Returns how many rows some files of a table have, read as deltalake opens them."""
    dataset = table.to_pyarrow_dataset()
    names = {os.path.basename(one) for one in wanted}
    return sum(one.to_table().num_rows for one in dataset.get_fragments() if os.path.basename(one.path) in names)


def advance(connection: Connection) -> StepReport:
    """Binds the newest version and steps to it, however long that takes."""
    engine = connection.engine
    engine.poll(TIMELINE)
    tick = engine.catalog.last_tick(TIMELINE)
    assert tick is not None
    report = engine.step(TIMELINE, tick)
    assert not report.failures
    return report


@pytest.mark.deep
@pytest.mark.timeout(7200)
def test_of_a_large_table_what_changed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "lake" / "t"
    write_table(table)
    read: Counter[str] = Counter()
    rows: list[int] = []
    original = data_files.file_rows

    def noted(place: TablePlace, path: str, *arguments: Any, **options: Any) -> Any:
        read[path] += 1
        for one in original(place, path, *arguments, **options):
            rows.append(one[0].num_rows)
            yield one

    monkeypatch.setattr(delta_source, "file_rows", noted)
    with opened(tmp_path) as connection:
        connection.execute("CREATE SOURCE t FROM DELTA (URI 'lake/t')")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g")
        begin = monotonic()
        first = advance(connection)
        assert connection.execute("SELECT sum(n)::bigint FROM v").fetchall() == [(ROWS,)]
        each_took = {one.name: round(one.spark_ms / 1000, 1) for one in first.collections}
        print(f"{ROWS} rows in {FILES} files: loaded in {monotonic() - begin:.1f} s, {each_took}")
        each = ROWS // FILES
        ids = ", ".join(str(number * (FILES // CHANGED) * each + 3) for number in range(CHANGED))
        before = set(DeltaTable(table).file_uris())
        DeltaTable(table).update(updates={"v": "v + 1"}, predicate=f"id IN ({ids})")
        changed = before ^ set(DeltaTable(table).file_uris())
        assert len(before - set(DeltaTable(table).file_uris())) == CHANGED
        read.clear()
        rows.clear()
        begin = monotonic()
        report = advance(connection)
        took = monotonic() - begin
        assert set(read) == {os.path.basename(one) for one in changed}, "the files that changed"
        assert set(read.values()) == {1}
        assert sum(rows) <= 2 * CHANGED * each, "and their rows"
        assert connection.execute("SELECT sum(s)::bigint FROM v").fetchall() == [(sum(range(ROWS)) + CHANGED,)]
    begin = monotonic()
    version = DeltaTable(table).version()
    rows_read = sum(rows_of(DeltaTable(table, version=one), changed) for one in (version - 1, version))
    reading = monotonic() - begin
    assert rows_read == sum(rows), "the same rows"
    begin = monotonic()
    for one in changed:
        pq.read_table(one.removeprefix("file://"))
    bare = monotonic() - begin
    views = sum(one.spark_ms for one in report.collections if one.name != "t") / 1000
    print(
        f"a tick took {took:.2f} s; reading the same files by deltalake {reading:.2f} s (by Arrow {bare:.2f} s), "
        f"the view {views:.2f} s"
    )
    assert ROWS < TELLING or took < 1.2 * (reading + views)
