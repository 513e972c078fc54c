"""A small project with everything in it that a backup copies and the doctor looks at; made and read without Spark.

A source with bound files, a table, and a view of each. What a step would write is appended by hand, so the contents are
known: `m` is `t` at every time, and `p` is `s`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import Catalog, CollectionRow, Sealed
from mz_dagster.formalism import Antichain
from mz_dagster.storage import LocalShards, compare_and_append, update_table

SQL = """
CREATE SOURCE s (a integer, b text) FROM FILES (FOLDER 'landing') FORMAT JSON;
CREATE TABLE t (a integer, b text);
CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t;
CREATE MATERIALIZED VIEW p AS SELECT a, b FROM s;
"""
Contents = dict[str, dict[int, Counter[tuple[Any, ...]]]]


def make_project(root: Path, settings: str = "", *, inline_rows: int = 0) -> Project:
    """Makes the project, with three writes to the table and two files of the source.

    Args:
        root: Its folder.
        settings: More of `mz.toml`.
        inline_rows: Of how many rows batches have no files.
    """
    (root / "assets").mkdir(parents=True)
    (root / "assets" / "all.sql").write_text(SQL)
    (root / "landing").mkdir()
    writes = f"[writes]\ninline_rows = {inline_rows}\n"
    (root / "mz.toml").write_text(f'[project]\nname = "small"\n{writes}{settings}')
    project = Project.load(root)
    with Engine(project) as engine:
        engine.apply()
        for number in range(3):
            write(engine, number)
        for number in range(2):
            land(engine, number)
    return project


def write(engine: Engine, number: int) -> None:
    """Inserts two rows into the table, deletes one of those before, and lets its view follow."""
    session = Session(engine)
    session.execute(f"INSERT INTO t VALUES ({number}, 'x'), ({number}, NULL)")
    follow(engine, "m", "t")


def land(engine: Engine, number: int) -> None:
    """Drops a file, mints a tick, and lets the source and its view follow."""
    (engine.project.root / "landing" / f"{number}.jsonl").write_text(f'{{"a": {number}, "b": "landed"}}\n')
    poll = engine.poll(engine.project.timeline)
    assert poll.files == 1, poll
    tick = engine.catalog.last_tick(engine.project.timeline)
    assert tick is not None
    append(engine, "s", [((number, "landed"), tick, 1)], tick + 1)
    follow(engine, "p", "s")


def follow(engine: Engine, view: str, input: str) -> None:
    """Appends to a view what its input has and it has not."""
    source, row = collection_named(engine.catalog, input), collection_named(engine.catalog, view)
    lower, upper = row.upper.only, source.upper.only
    if lower == upper:
        return
    batches = engine.catalog.live_batches([source.id])[source.id]
    found = [tuple(one.values()) for one in engine.shards.read(source, batches).to_pylist()]
    # A view is born with what its input has by then.
    updates = [((a, b), time, diff) for a, b, time, diff, _ in found if time >= lower or not row.is_hydrated]
    append(engine, view, [(data, max(time, lower), diff) for data, time, diff in updates], upper)


def append(engine: Engine, name: str, updates: list[tuple[tuple[Any, ...], int, int]], upper: int) -> None:
    """Appends updates to a collection, up to an upper."""
    row = collection_named(engine.catalog, name)
    frame = update_table(row.columns, updates)
    done = compare_and_append(
        engine.catalog, engine.shards, row, row.upper, Antichain.of(row.upper.lattice, upper), frame, holder="test"
    )
    assert isinstance(done, Sealed), done


def contents(project: Project, names: Sequence[str] = ("s", "t", "m", "p")) -> Contents:
    """Returns the rows of every collection at each time at which it may differ, since and the last one included.

    Writes nothing, not even a lease: nobody else is at work.
    """
    catalog = Catalog.open_made(project.catalog_url)
    assert catalog is not None
    found: Contents = {}
    shards = LocalShards(project.state, catalog)
    with catalog:
        for name in names:
            row = collection_named(catalog, name)
            batches = catalog.live_batches([row.id])[row.id]
            updates = [tuple(one.values()) for one in shards.read(row, batches).to_pylist()]
            since, upper = row.since.only, row.upper.only
            found[name] = {}
            for as_of in {since, upper - 1, *(max(since, time) for _, _, time, _, _ in updates)}:
                rows: Counter[tuple[Any, ...]] = Counter()
                for a, b, time, diff, _ in updates:
                    rows[a, b] += diff if time <= as_of else 0
                found[name][as_of] = Counter({one: count for one, count in rows.items() if count})
    return found


def collection_named(catalog: Catalog, name: str) -> CollectionRow:
    """Returns the collection that a name denotes."""
    row = catalog.resolve_name(name)
    assert row is not None
    return catalog.collection(row.id)
