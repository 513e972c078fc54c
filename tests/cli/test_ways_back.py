"""Each kind of damage has a way back, and it is run: what is computed is made anew from what it is computed from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.rebuilding import NotRebuilt, rebuild
from mz_dagster.catalog import ObjectRow
from mz_dagster.cli import main
from mz_dagster.errors import DamageError, Error
from mz_dagster.operations.doctor import examine
from mz_dagster.sql.errors import UndefinedTable
from tests.cli.damage import (
    arrangement_of,
    breaks,
    flip,
    forget_frontiers,
    lose_log,
    object_named,
    objects,
    take_away,
    unlist,
)

FILES = """
CREATE TABLE t (k int, x int);
CREATE TABLE u (k int, z text);
CREATE MATERIALIZED VIEW m AS SELECT t.k, sum(t.x) AS s, max(u.z) AS z FROM t, u WHERE t.k = u.k GROUP BY t.k;
CREATE INDEX m_s ON m (s);
CREATE INDEX m_z ON m (z);
CREATE VIEW v AS SELECT k, s FROM m WHERE s > 1;
CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(s) AS s FROM v;
CREATE MATERIALIZED VIEW apart AS SELECT k FROM t WHERE x > 1;
"""
M = "SELECT t.k, sum(t.x) AS s, max(u.z) AS z FROM t, u WHERE t.k = u.k GROUP BY t.k"
QUERIES = {
    "m": M,
    "n": f"SELECT count(*) AS n, sum(s) AS s FROM ({M}) q WHERE s > 1",
    "mine": f"SELECT z, count(*) AS n FROM ({M}) q GROUP BY z",
    "apart": "SELECT k FROM t WHERE x > 1",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of files and of what a session made: a join with its states, and views upon it."""
    root = tmp_path_factory.mktemp("sound")
    (root / "assets").mkdir()
    (root / "assets" / "all.sql").write_text(FILES)
    (root / "mz.toml").write_text('[project]\nname = "damaged"\n[writes]\ninline_rows = 0\n')
    for connection in opened(root):
        connection.engine.apply()
        connection.execute("CREATE MATERIALIZED VIEW mine AS SELECT z, count(*) AS n FROM m GROUP BY z")
        for number in range(2):
            write(connection, number)
            check_answers(connection)
        engine = connection.engine
        engine.reach("default", engine.catalog.read_ts("default"), frozenset({engine.collection_of("m_z")}))
    return root


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "damaged")


def opened(root: Path) -> Iterator[Connection]:
    with Connection(Engine(Project.load(root)), Isolation.STRICT_SERIALIZABLE) as connection:
        yield connection


def write(connection: Connection, number: int) -> None:
    connection.execute(f"INSERT INTO t VALUES ({number % 2}, {number}), ({number}, 2)")
    connection.execute(f"INSERT INTO u VALUES ({number}, '{chr(97 + number)}')")


def check_answers(connection: Connection) -> None:
    for name, query in QUERIES.items():
        found, expected = (
            sorted(map(repr, connection.execute(each).fetchall())) for each in (f"SELECT * FROM {name}", query)
        )
        assert found == expected, name


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        ("m", flip),
        pytest.param("m", lose_log, marks=pytest.mark.deep),
        pytest.param("m", unlist, marks=pytest.mark.deep),
        pytest.param("m", forget_frontiers, marks=pytest.mark.deep),
        pytest.param("arrangement", forget_frontiers, marks=pytest.mark.deep),
        pytest.param("m_z", forget_frontiers, marks=pytest.mark.deep),
        pytest.param("arrangement", flip, marks=pytest.mark.deep),
        ("arrangement", unlist),
        pytest.param("m_z", take_away, marks=pytest.mark.deep),
    ],
)
def test_what_is_computed_is_rebuilt_from_what_it_reads(
    root: Path, what: str, damage: Callable[[Path, ObjectRow], None], capsys: pytest.CaptureFixture[str]
) -> None:
    row = arrangement_of(root, "m") if what == "arrangement" else object_named(root, what)
    damage(root, row)
    assert breaks(examine(root, deep=True))
    before = {each.name: each.id for each in objects(root) if each.name is not None}
    assert main(["--project", str(root), "rebuild", row.name or row.id]) == 0
    anew = {"m_z"} if what == "m_z" else {"m", "m_s", "m_z", "v", "n", "mine"}
    assert capsys.readouterr().out.splitlines()[-1].startswith("made anew: ")
    after = {each.name: each.id for each in objects(root) if each.name is not None}
    assert {name for name in after if after[name] != before.get(name)} == anew
    assert after.keys() == before.keys()
    for connection in opened(root):
        check_answers(connection)
        write(connection, 2)
        check_answers(connection)
    found = examine(root, deep=True, repair=True)
    assert found.healthy, found.findings


def test_an_arrangement_is_rebuilt_by_what_people_call_it_and_session_made_views_as_well(root: Path) -> None:
    flip(root, object_named(root, "mine"))
    assert main(["--project", str(root), "rebuild", "mine", "n (arrangement 1)"]) == 0
    for connection in opened(root):
        check_answers(connection)
    assert not breaks(examine(root, deep=True, repair=True))


@pytest.mark.parametrize("damage", [flip, unlist])
def test_nothing_is_given_up_for_what_cannot_be_made_anew(
    root: Path, damage: Callable[[Path, ObjectRow], None]
) -> None:
    damage(root, object_named(root, "t"))
    before = objects(root)
    for connection in opened(root):
        with pytest.raises(DamageError, match=object_named(root, "t").id):
            rebuild(connection.engine, ["m"])
        assert connection.execute("SELECT * FROM n AS OF AT LEAST 0").fetchall()
    assert objects(root) == before


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("t", NotRebuilt, 'table "t" cannot be rebuilt.*--from-backup.*restore'),
        ("v", NotRebuilt, 'view "v" cannot be rebuilt.*what it reads'),
        ("nobody", UndefinedTable, "nobody"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused_with_what_to_do_instead(
    root: Path, name: str, error: type[Error], says: str
) -> None:
    before = objects(root)
    for connection in opened(root):
        with pytest.raises(error, match=f"(?s){says}"):
            rebuild(connection.engine, ["m", name])
    assert objects(root) == before
