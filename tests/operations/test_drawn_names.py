"""A project lives as any other, whatever it, its folders and files, and all that is in it are called.

The names are drawn (`tests/names.py`): of tables, columns, views, indexes, sources, schemas; of the project's folder,
of landing folders; of files that land, are applied, copied to and from; and of backups.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.orchestration import build_mz_asset_specs
from tests.names import Names, quoted
from tests.sparkless import refuse_spark

Rows = list[tuple[int, str]]


class Life:
    """A project's, under names drawn by a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.pick = random.Random(seed)
        self.names = Names(self.pick, 200)
        self.folder = folder
        self.root = self.names.project(folder)
        self.landing = self.root / self.names.file() / self.names.file()
        self.format = self.pick.choice(("JSON", "CSV", "PARQUET"))
        self.schema, self.table, self.source, self.view, self.held, self.index = (self.name() for _ in range(6))
        self.key, self.note, self.sum, self.more = (self.name() for _ in range(4))
        if self.format == "CSV":  # whose records are lines
            self.key, self.note = (" ".join(one.splitlines()) or "a" for one in (self.key, self.note))
        self.rows: Rows = []
        self.landed: Rows = []

    def name(self) -> str:
        return self.names.identifier()

    def definitions(self) -> str:
        table, source, view, held = map(quoted, (self.table, self.source, self.view, self.held))
        key, note, sum_ = map(quoted, (self.key, self.note, self.sum))
        place = str(self.landing.relative_to(self.root)).replace("'", "''")
        return (
            f"CREATE TABLE {table} ({key} integer NOT NULL, {note} text, PRIMARY KEY ({key}));\n"
            f"CREATE SOURCE {source} ({key} integer, {note} text) FROM FILES (FOLDER '{place}', PATTERN '*') "
            f"FORMAT {self.format} ENVELOPE NONE;\n"
            f"CREATE VIEW {view} AS SELECT {key}, {note} FROM {table} UNION ALL SELECT * FROM {source};\n"
            f"CREATE MATERIALIZED VIEW {held} AS SELECT {note}, sum({key}) AS {sum_}, max({view}.{key}) AS {key} "
            f"FROM {view} LEFT JOIN {table} AS other USING ({key}, {note}) GROUP BY {note};\n"
            f"CREATE INDEX {quoted(self.index)} ON {held} ({note});\n"
        )

    def live(self) -> None:
        """Makes the project, fills it, changes it, and looks at it from all sides."""
        self.root.mkdir(parents=True)
        self.landing.mkdir(parents=True)
        assets = self.root / "assets"
        assets.mkdir()
        (self.root / "mz.toml").touch()
        (assets / f"{self.names.file()}.sql").write_text(self.definitions(), encoding="utf-8", newline="")
        with Engine(Project.load(self.root)) as engine:
            assert len(engine.apply().created) == 5
            assert not engine.apply().changed
        told = {str(one.metadata["mz/name"]) for one in build_mz_asset_specs(Project.load(self.root))}
        assert told >= {self.table, self.source, self.held}
        with self.opened() as connection:
            self.insert(connection)
            self.land()
            self.step(connection.engine)
            self.check(connection)
        with self.opened() as connection:
            self.land()
            self.change(connection)
            self.step(connection.engine)
            self.check(connection)
            self.copy(connection)
            self.check_catalog(connection)
            list(connection.engine.compact(thorough=True))  # and takes what was dropped
            self.check(connection)
        self.check_backup()
        with self.opened() as connection:
            self.check_definitions(connection)
            self.drop(connection)

    def opened(self) -> Connection:
        return Connection(Engine(Project.load(self.root)), Isolation.STRICT_SERIALIZABLE)

    def some(self) -> Rows:
        first = len(self.rows) + len(self.landed) + 1
        notes = [self.pick.choice((self.note, self.table, self.name())) for _ in range(3)]
        if self.format == "CSV":
            notes = [" ".join(one.splitlines()) for one in notes]
        return [(first + n, one) for n, one in enumerate(notes)]

    def insert(self, connection: Connection) -> None:
        for row in self.some():
            connection.execute(
                f"INSERT INTO {quoted(self.table)} ({quoted(self.note)}, {quoted(self.key)}) VALUES (?, ?)", row[::-1]
            )
            self.rows.append(row)

    def land(self) -> None:
        rows = self.some()
        file = self.landing / self.names.file().replace(":", "-")  # which Spark could not open
        if self.format == "JSON":
            lines = (json.dumps({self.key: key, self.note: note}) for key, note in rows)
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
        elif self.format == "CSV":
            with file.open("w", encoding="utf-8", newline="") as written:
                csv.writer(written).writerows([(self.key, self.note), *rows])
        else:
            pq.write_table(
                pa.table([pa.array(one) for one in zip(*rows, strict=True)], [self.key, self.note]).cast(
                    pa.schema([(self.key, pa.int32()), (self.note, pa.string())])
                ),
                file,
            )
        self.landed += rows

    def step(self, engine: Engine) -> None:
        tick = engine.poll("default").tick
        assert tick is not None
        assert engine.step("default", tick).failures == ()

    def change(self, connection: Connection) -> None:
        table, key, note = map(quoted, (self.table, self.key, self.note))
        name = self.name()
        connection.execute(f"UPDATE {table} SET {note} = ? WHERE {table}.{key} = ?", (name, self.rows[0][0]))
        connection.execute(
            f"DELETE FROM {table} AS x USING {quoted(self.held)} AS y WHERE x.{key} = ?", (self.rows[1][0],)
        )
        self.rows = [(self.rows[0][0], name), *self.rows[2:]]

    def check(self, connection: Connection) -> None:
        every = self.rows + self.landed
        assert self.read(connection, self.table) == ([self.key, self.note], sorted(self.rows))
        assert self.read(connection, self.source) == ([self.key, self.note], sorted(self.landed))
        assert self.read(connection, self.view) == ([self.key, self.note], sorted(every))
        sums: Counter[str] = Counter()
        for key, note in every:
            sums[note] += key
        held = sorted((note, sum_, max(key for key, one in every if one == note)) for note, sum_ in sums.items())
        assert self.read(connection, self.held) == ([self.note, self.sum, self.key], held)
        note = held[0][0]
        found = connection.execute(f"SELECT * FROM {quoted(self.held)} WHERE {quoted(self.note)} = ?", (note,))
        assert found.fetchall() == [held[0]]

    def read(self, connection: Connection, name: str) -> tuple[list[str], list[tuple[object, ...]]]:
        cursor = connection.execute(f"SELECT * FROM {quoted(name)}")
        assert cursor.description is not None
        return [one[0] for one in cursor.description], sorted(cursor.fetchall())

    def copy(self, connection: Connection) -> None:
        """Copies a table into a file and back, by way of a table in a schema, which is renamed on the way."""
        format_ = self.pick.choice(("CSV, HEADER", "PARQUET"))
        path, schema, made = self.names.file().replace("'", "''"), quoted(self.schema), quoted(self.name())
        connection.execute(f"COPY {quoted(self.table)} TO '{path}' (FORMAT {format_})")
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.{made} ({quoted(self.key)} integer, {quoted(self.note)} text)")
        connection.execute(f"COPY {schema}.{made} FROM '{path}' (FORMAT {format_})")
        connection.execute(f"ALTER TABLE {schema}.{made} ADD COLUMN {quoted(self.more)} text")
        found = connection.execute(f"SELECT {made}.* FROM {schema}.{made} ORDER BY 1").fetchall()
        assert found == [(*row, None) for row in sorted(self.rows)]
        renamed = quoted(self.name())
        connection.execute(f"ALTER TABLE {schema}.{made} RENAME TO {renamed}")
        assert len(connection.execute(f"SELECT {quoted(self.more)} FROM {schema}.{renamed}").fetchall()) == len(found)
        connection.execute(f"DROP TABLE {schema}.{renamed}")
        connection.execute(f"DROP SCHEMA {schema}")

    def check_catalog(self, connection: Connection) -> None:
        of_table = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position",
            (self.table,),
        )
        assert [one[0] for one in of_table.fetchall()] == [self.key, self.note]
        by_type = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = ?::regclass AND attnum > 0 ORDER BY attnum",
            (quoted(self.held),),
        )
        assert [one[0] for one in by_type.fetchall()] == [self.note, self.sum, self.key]
        assert connection.execute(f"EXPLAIN SELECT * FROM {quoted(self.view)}").fetchall()
        names = {one[0] for one in connection.execute("SELECT name FROM mz_internal.mz_frontiers").fetchall()}
        assert names >= {self.table, self.source, self.held}

    def check_definitions(self, connection: Connection) -> None:
        """Makes everything anew, elsewhere, from how it is shown."""
        shown = []
        for kind, name in self.objects():
            ((found, text),) = connection.execute(f"SHOW CREATE {kind} {quoted(name)}").fetchall()
            assert found == name
            shown.append(text)
        elsewhere = self.names.project(self.folder)
        (elsewhere / self.landing.relative_to(self.root)).mkdir(parents=True)
        with Connection(Engine(Project.load(elsewhere)), Isolation.STRICT_SERIALIZABLE) as other:
            for text in shown:
                other.execute(text)
            for (kind, name), text in zip(self.objects(), shown, strict=True):
                assert other.execute(f"SHOW CREATE {kind} {quoted(name)}").fetchall() == [(name, text)]

    def objects(self) -> list[tuple[str, str]]:
        return [
            ("TABLE", self.table),
            ("SOURCE", self.source),
            ("VIEW", self.view),
            ("MATERIALIZED VIEW", self.held),
            ("INDEX", self.index),
        ]

    def check_backup(self) -> None:
        assert examine(self.root, deep=True).findings == ()
        kept, again = self.names.project(self.folder), self.names.project(self.folder)
        backup(Project.load(self.root), kept)
        made = restore(kept, again)
        assert examine(made.root, deep=True).findings == ()
        with Connection(Engine(Project.load(made.root)), Isolation.STRICT_SERIALIZABLE) as connection:
            self.check(connection)

    def drop(self, connection: Connection) -> None:
        for kind, name in reversed(self.objects()):
            connection.execute(f"DROP {kind} {quoted(name)}")
        left = connection.execute("SELECT name FROM mz_internal.mz_frontiers").fetchall()
        assert not {one[0] for one in left} & {self.table, self.source, self.held}


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.deep) for n in range(2, 60))])
def test_a_project_lives_whatever_all_is_called(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_spark(monkeypatch)
    Life(seed, tmp_path).live()
