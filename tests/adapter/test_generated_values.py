"""Values that columns generate: none twice, whoever writes and whoever is killed; and through all ways to write."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.catalog import CatalogDamaged
from mz_dagster.fail_point import VARIABLE
from mz_dagster.storage.sweep import sweep
from tests.forks import forks
from tests.opened import opened

TABLE = "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, a text, n serial)"


def insert(root: str, kill: str) -> None:
    """Is the process: inserts rows, and is killed."""
    with opened(Path(root)) as connection:
        os.environ[VARIABLE] = kill
        connection.execute("INSERT INTO t (a) VALUES ('killed'), ('killed')")


def numbers(connection: Connection) -> list[tuple[int, int]]:
    return [(id, n) for id, n in connection.execute("SELECT id, n FROM t").fetchall()]


def test_no_value_is_generated_twice_by_several_writers_some_of_whom_are_killed(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute(TABLE)

        def write(name: str) -> None:
            with opened(tmp_path) as own:
                for _ in range(10):
                    own.execute("INSERT INTO t (a) VALUES (?), (?)", (name, name))

        writers = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
        for one in writers:
            one.start()
        for kill in ("append.before_seal", "seal.in_transaction", "seal.sealed", "catalog.before_commit:2"):
            process = forks().Process(target=insert, args=(str(tmp_path), kill))
            process.start()
            process.join(60)
            assert process.exitcode == -9
        for one in writers:
            one.join()
        found = numbers(connection)
        assert len(found) == 42
        for column in zip(*found, strict=True):
            assert len(set(column)) == len(column)
            assert max(column) > len(column)  # what was claimed by who was killed is a gap


def test_every_row_of_executemany_gets_its_own_value(sparkless: Connection) -> None:
    sparkless.execute(TABLE)
    cursor = sparkless.cursor()
    cursor.executemany("INSERT INTO t (a) VALUES (?)", [("x",), ("y",)])
    cursor.executemany("INSERT INTO t VALUES (DEFAULT, ?, DEFAULT)", [("z",), ("w",)])
    assert sorted(numbers(sparkless)) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_copy_generates_what_a_file_does_not_have(sparkless: Connection, tmp_path: Path) -> None:
    sparkless.execute(TABLE)
    (tmp_path / "two.csv").write_text("x\ny\n")
    (tmp_path / "given.csv").write_text("100,z\n")
    sparkless.execute("COPY t (a) FROM 'two.csv' (FORMAT CSV)")
    sparkless.execute("COPY t (id, a) FROM 'given.csv' (FORMAT CSV)")
    assert sorted(numbers(sparkless)) == [(1, 1), (2, 2), (100, 3)]


def test_a_table_of_a_file_generates_its_values_through_apply_and_drop(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text(f"{TABLE};\nCREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;")
    with opened(tmp_path) as connection:
        connection.engine.apply()
        connection.execute("INSERT INTO t (a) VALUES ('x')")
        connection.engine.apply()
        connection.execute("INSERT INTO t (a) VALUES ('y')")
        assert sorted(numbers(connection)) == [(1, 1), (2, 2)]
        connection.execute("DROP TABLE t CASCADE")
        sweep(connection.engine.catalog, connection.engine.shards)
        assert connection.engine.catalog.records()["sequence"] == ()


def test_a_lost_sequence_is_told_and_never_begun_anew(sparkless: Connection) -> None:
    sparkless.execute(TABLE)
    with sparkless.engine.catalog._database.write() as transaction:
        transaction.exec_driver_sql("DELETE FROM sequence")
    with pytest.raises(CatalogDamaged, match="t_id_seq"):
        sparkless.execute("INSERT INTO t (a) VALUES ('x')")
