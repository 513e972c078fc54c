"""What a project does whose shards are in a bucket: the same story in each kind of store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import mz_dagster
from mz_dagster.operations.doctor import Diagnosis, Severity, examine


def breaks(found: Diagnosis) -> list[str]:
    """Returns what a diagnosis says is broken."""
    return [f"{one.check}: {one.what}" for one in found.findings if one.severity is Severity.BREAK]


def elsewhere(root: Path) -> Path:
    """Returns another working folder of a project: its settings and its catalog, and no copies of any object."""
    (other := root.with_name("elsewhere")).mkdir()
    shutil.copy(root / "mz.toml", other)
    (other / ".mz").mkdir()
    for file in (root / ".mz").glob("catalog.sqlite*"):
        shutil.copy(file, other / ".mz")
    return other


def live(root: Path, files: Callable[[], Sequence[str]]) -> None:
    """Lives through writes, compaction and the loss of the working folder.

    Args:
        root: A folder with a `mz.toml` that names a prefix of its own, and in which nothing is inlined.
        files: Returns the data files that lie there.
    """
    with mz_dagster.connect(root) as connection:
        connection.execute("CREATE TABLE t (a bigint, b text)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b")
        for number in range(6):
            connection.execute(f"INSERT INTO t VALUES ({number}, 'x'), ({number}, 'y')")
        connection.execute("UPDATE t SET b = 'z' WHERE a = 3 AND b = 'x'")
        connection.execute("DELETE FROM t WHERE a = 5")
        wanted = [("x", 4, 7), ("y", 5, 10), ("z", 1, 3)]
        assert connection.execute("SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b").fetchall() == wanted
        assert connection.execute("SELECT * FROM v ORDER BY b").fetchall() == wanted
        before = len(files())
        assert list(connection.engine.compact(thorough=True))
        assert 0 < len(files()) < before
        assert connection.execute("SELECT * FROM v ORDER BY b").fetchall() == wanted
    assert not breaks(examine(root, deep=True))
    assert not (root / ".mz" / "shards").exists()

    # Nothing of this machine is needed but the catalog.
    other = elsewhere(root)
    shutil.rmtree(root)
    with mz_dagster.connect(other) as connection:
        assert connection.execute("SELECT * FROM v ORDER BY b").fetchall() == wanted
        connection.execute("INSERT INTO t VALUES (3, 'z')")
        assert connection.execute("SELECT * FROM v WHERE b = 'z'").fetchall() == [("z", 2, 6)]
        connection.execute("DROP TABLE t CASCADE")
        assert list(connection.engine.compact(thorough=True))
    assert not breaks(examine(other, deep=True))
    assert not files()
