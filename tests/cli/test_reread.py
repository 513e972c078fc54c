"""A source whose contents are damaged is what it was again once its files were read again; or the files are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, Session
from mz_dagster.catalog import LedByAnother
from mz_dagster.cli import main
from mz_dagster.errors import Error
from mz_dagster.operations.doctor import examine
from mz_dagster.operations.rereading import FilesLost, NoSource, reread
from mz_dagster.storage.spark import SparkConfig
from tests.cli.damage import arrangement_of, breaks, flip, lose_log, object_named, take_away, unlist
from tests.cli.small_project import make_project

SQL = """
CREATE SOURCE rows (a integer, b text) FROM FILES (FOLDER 'rows') FORMAT JSON;
CREATE SOURCE states (k integer, v text, PRIMARY KEY (k)) FROM FILES (FOLDER 'states') FORMAT JSON ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM states GROUP BY v;
"""


def land(engine: Engine, number: int) -> None:
    """Drops a file for each source, and steps to it."""
    records: dict[str, list[dict[str, object]]] = {
        "rows": [{"a": number, "b": "x"}, {"a": "none", "b": "y"}],
        "states": [{"key": {"k": key}, "value": {"k": key, "v": f"{number}"}} for key in range(number, number + 2)]
        + [{"key": {"k": number - 2}, "value": None}],
    }
    for folder, lines in records.items():
        (engine.project.root / folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    tick = engine.poll("default").tick
    assert tick is not None
    report = engine.step("default", tick)
    assert not report.failures, report.failures


def contents(engine: Engine) -> dict[str, list[str]]:
    """Returns the updates of each source at each tick, summed up."""
    found = {}
    for name in ("rows", "states"):
        row = engine.catalog.collection(engine.collection_of(name))
        batches = engine.catalog.live_batches([row.id])[row.id]
        for tick in engine.catalog.ticks("default"):
            rows = engine.shards.consolidate(row, engine.shards.read(row, batches, upper=tick + 1), tick)
            found[f"{name} {tick}"] = sorted(map(repr, rows.to_pylist()))
    return found


def test_a_source_is_read_again_into_what_it_was(tmp_path: Path, spark_config: SparkConfig) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    (tmp_path / "mz.toml").write_text('[project]\nname = "damaged"\n[writes]\ninline_rows = 0\n')
    for folder in ("rows", "states"):
        (tmp_path / folder).mkdir()
    with Engine(Project.load(tmp_path), spark=spark_config) as engine:
        engine.apply()
        for number in range(3):
            land(engine, number)
        before = contents(engine)
        assert any("mz_error': '" in one for rows in before.values() for one in rows)
    for name, damage in (("states", flip), ("rows", take_away), ("states", unlist), ("rows", lose_log)):
        damage(tmp_path, object_named(tmp_path, name))
        assert breaks(examine(tmp_path)), damage
        with Engine(Project.load(tmp_path), spark=spark_config) as engine:
            told: list[str] = []
            assert reread(engine, name, told.append).files == 3
            assert contents(engine) == before
        found = examine(tmp_path, deep=True, repair=True)
        assert found.healthy, (damage, found.findings)
    with Engine(Project.load(tmp_path), spark=spark_config) as engine:
        land(engine, 3)
        after = contents(engine)
        assert after.items() > before.items()
    found = examine(tmp_path, deep=True)
    assert found.healthy, found.findings


def test_what_is_in_the_catalog_is_read_again_with_the_values_that_a_type_has_got_since(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.jsonl").write_text('{"m": "ok", "a": "10:00+02"}\n{"m": "new"}\n')
    with Engine(Project.load(tmp_path)) as engine:
        session = Session(engine)
        session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        session.execute("CREATE SOURCE rows (m mood, a timetz) FROM FILES (FOLDER 'rows') FORMAT JSON")
        with pytest.raises(Error, match='invalid input value for enum mood: "new"'):
            session.execute("SELECT * FROM rows")
        session.execute("ALTER TYPE mood ADD VALUE 'new' BEFORE 'ok'")
        assert reread(engine, "rows").updates == 2
        assert session.execute("SELECT m, a::text FROM rows ORDER BY m").rows == (("new", None), ("ok", "10:00:00+02"))
    assert examine(tmp_path, deep=True).healthy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "small").root


def change(path: Path) -> None:
    path.write_text(path.read_text().replace("landed", "LANDED"))


@pytest.mark.parametrize(
    ("lose", "says"), [(Path.unlink, "The file is gone"), (change, "Its SHA-256 was [0-9a-f]+ and is")]
)
def test_files_that_are_gone_or_changed_are_named_and_nothing_is_touched(
    root: Path, lose: Callable[[Path], None], says: str
) -> None:
    lose(root / "landing" / "1.jsonl")
    source = object_named(root, "s")
    lose_log(root, source)
    with Engine(Project.load(root)) as engine:
        before = engine.catalog.batches(source.id)
        with pytest.raises(FilesLost, match=f'(?s)1 of its files.*"1.jsonl": {says}.*--from-backup') as raised:
            reread(engine, "s")
        assert raised.value.files.keys() == {"1.jsonl"}
        assert engine.catalog.batches(source.id) == before
        assert not isinstance(engine.catalog.lead("default", "another", 60_000), LedByAnother)
    assert not (root / ".mz" / "quarantine").exists()


def test_only_sources_are_read_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Engine(Project.load(root)) as engine, pytest.raises(NoSource, match="table"):
        reread(engine, "t")
    assert main(["--project", str(root), "reread", "nobody"]) == 1
    assert "nobody" in capsys.readouterr().err


@pytest.mark.deep
def test_what_a_source_remembers_of_its_keys_is_made_again_with_it(tmp_path: Path) -> None:
    def tell(number: int, name: str, lsn: int) -> None:
        source = {"connector": "postgresql", "name": "shop", "lsn": lsn, "ts_ms": lsn}
        line = json.dumps({"before": None, "after": {"k": 1, "v": name}, "op": "u", "source": source})
        (tmp_path / "told" / f"{number}.jsonl").write_text(line)

    (tmp_path / "told").mkdir()
    (tmp_path / "mz.toml").write_text('[project]\nname = "told"\n[writes]\ninline_rows = 0\n')
    for number, damaged in enumerate(("s", "memory")):
        with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
            connection.execute(
                "CREATE SOURCE IF NOT EXISTS s (k integer, v text, PRIMARY KEY (k)) FROM FILES (FOLDER 'told') "
                "FORMAT JSON ENVELOPE DEBEZIUM"
            )
            tell(3 * number, f"{number}", 10 * number + 7)
            connection.execute("SELECT * FROM s")
        with Engine(Project.load(tmp_path)) as engine:
            flip(tmp_path, (object_named if damaged == "s" else arrangement_of)(tmp_path, "s"))
            found = breaks(examine(tmp_path))
            assert any("mz-dagster reread s" in str(one) for one in found), found
            reread(engine, "s")
        assert examine(tmp_path, deep=True, repair=True).healthy
        with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
            tell(3 * number + 1, "old", 10 * number + 6)
            assert connection.execute("SELECT * FROM s").fetchall() == [(1, f"{number}")]
