"""One object's fault in a project's files is its own, and that of what reads it; everything else is applied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mz_dagster import cli
from mz_dagster.adapter import (
    BadProjectFile,
    Engine,
    NotAllApplied,
    Project,
    Session,
    effective_objects,
    load_project,
    preview_changes,
)

GOOD = {
    "t": "CREATE TABLE t (a integer);",
    "v": "CREATE MATERIALIZED VIEW v AS SELECT a FROM t;",
    "w": "CREATE MATERIALIZED VIEW w AS SELECT a FROM v;",
    "x": "CREATE MATERIALIZED VIEW x AS SELECT a FROM t;",
}


def write(root: Path, **files: str | bytes) -> None:
    for name, text in files.items():
        content = text if isinstance(text, bytes) else text.encode()
        (root / "assets" / f"{name}.sql").write_bytes(content)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").write_text("", encoding="utf-8")
    (tmp_path / "assets").mkdir()
    write(tmp_path, **GOOD)
    with Engine(Project.load(tmp_path)) as engine:
        engine.apply()
    return Project.load(tmp_path)


def stored(engine: Engine) -> dict[str, str]:
    return {str(row.name): row.sql for row in engine.catalog.objects() if row.name is not None}


def refused(project: Project, *, drop: bool = False) -> tuple[NotAllApplied, dict[str, str]]:
    with Engine(project) as engine:
        with pytest.raises(NotAllApplied) as caught:
            engine.apply(drop=drop)
        return caught.value, stored(engine)


CHANGED_X = "CREATE MATERIALIZED VIEW x AS SELECT a + 1 AS a FROM t"
BROKEN = [
    "CREATE MATERIALIZED VIEW v AS\n  SELECT nothing FROM t;",
    "CREATE MATERIALIZED VIEW v AS SELEC a FROM t;",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE;",
    "CREATE MATERIALIZED VIEW v (a, b) AS SELECT a FROM t;",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM v;",
    "CREATE TABLE v (a integer);",
    "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a; CREATE VIEW v AS SELECT 1 AS a;",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t; COMMENT ON COLUMN v.b IS 'x';",
    "CREATE TABLE v (a integer) IN TIMELINE undeclared;",
    "CREATE SOURCE v (a integer) FROM FILES (FOLDER '/elsewhere', FORMAT JSON);",
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_does_not_depend_on_a_broken_definition_is_applied(project: Project, text: str) -> None:
    write(
        project.root, v=text, x=CHANGED_X, y="CREATE VIEW y AS SELECT a FROM t;", z="CREATE VIEW z AS SELECT a FROM w;"
    )
    error, held = refused(project)
    assert (error.plan.created, error.plan.replaced) == (("y",), ("x",))
    assert held["v"] + ";" == GOOD["v"]
    assert held["w"] + ";" == GOOD["w"]
    assert "z" not in held
    own, *behind = error.plan.faults
    assert (own.name, own.waits_for) == ("v", None)
    assert {(one.name, one.waits_for) for one in behind} == {("w", "v"), ("z", "v")}
    assert error.detail is not None
    assert "w, z" in error.detail


def test_a_broken_reader_keeps_what_it_reads_as_it_was(project: Project) -> None:
    with Engine(project) as engine:
        old = engine.collection_of("v")
    write(
        project.root, v="CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS a FROM t", w="CREATE VIEW w AS SELECT b FROM v"
    )
    error, held = refused(project)
    assert (error.plan.replaced, held["w"] + ";") == (("v",), GOOD["w"])
    with Engine(project) as engine:
        assert engine.collection_of("v") != old
        reader = engine.catalog.resolve_name("w")
        assert reader is not None
        assert old in reader.dependencies.values()
        assert not engine.catalog.collection(old).since.is_empty
        write(project.root, w=GOOD["w"])
        assert engine.apply().replaced == ("w",)
        assert engine.catalog.collection(old).since.is_empty


def test_what_a_broken_reader_needs_is_not_dropped(project: Project) -> None:
    (project.assets / "v.sql").unlink()
    (project.assets / "x.sql").unlink()
    write(project.root, w="CREATE MATERIALIZED VIEW w AS SELECT a FROM v WHERE;")
    error, held = refused(project, drop=True)
    assert error.plan.dropped == ("x",)
    assert held.keys() == {"t", "v", "w"}


@pytest.mark.parametrize("text", [b"\xff\xfe", b"CREATE VIEW v AS SELECT 'open", b"CREAT VIEW v AS SELECT 1;"])
def test_a_file_that_hides_what_it_defines_takes_nothing_away(project: Project, text: bytes) -> None:
    write(project.root, v=text, y="CREATE VIEW y AS SELECT a FROM t;")
    error, held = refused(project, drop=True)
    assert held.keys() == {"t", "v", "w", "x", "y"}
    assert error.plan.orphaned == ()
    assert "v.sql" in error.message
    assert {one.name: one.fault is not None for one in effective_objects(project)} == {
        "t": False,
        "v": True,
        "w": True,
        "x": False,
        "y": False,
    }


@pytest.mark.parametrize(
    "wrong",
    ["SELECT 1a FROM t", "SELECT b'01' FROM t", "SELECT n';' FROM t", "SELECT U&';\\00' FROM t", "SELECT \0 FROM t"],
)
def test_an_unreadable_literal_is_the_fault_of_its_own_statement(project: Project, wrong: str) -> None:
    text = f"{GOOD['w']} CREATE MATERIALIZED VIEW v AS {wrong}; {CHANGED_X};"
    write(project.root, v=text, w="", x="")
    error, held = refused(project)
    is_told_apart = "U&" not in wrong
    assert held["x"] == (CHANGED_X if is_told_apart else GOOD["x"].removesuffix(";"))
    assert (None in {one.name for one in error.plan.faults}) == (not is_told_apart)
    assert "v.sql:1" in error.plan.faults[0].error.message


def test_what_is_before_an_open_quote_is_looked_at(project: Project) -> None:
    write(project.root, v=f"{CHANGED_X}; CREATE VIEW v AS SELECT 'open; CREATE VIEW y AS SELECT 1;", x="")
    error, held = refused(project, drop=True)
    assert held == {name: CHANGED_X if name == "x" else text.removesuffix(";") for name, text in GOOD.items()}
    assert None in {one.name for one in error.plan.faults}


def test_a_statement_without_its_semicolon_is_the_fault_of_all_that_it_runs_into(project: Project) -> None:
    write(project.root, v=GOOD["v"].removesuffix(";") + "\n" + GOOD["x"], x="")
    error, held = refused(project, drop=True)
    assert {one.name for one in error.plan.faults} == {"v", "w", "x"}
    assert held.keys() == {"t", "v", "w", "x"}


def test_what_no_definition_is_keeps_nothing_from_being_applied(project: Project) -> None:
    write(project.root, x=CHANGED_X + "; INSERT INTO t VALUES (1);")
    error, held = refused(project)
    assert (error.plan.replaced, held["x"]) == (("x",), CHANGED_X)
    assert "only definitions" in error.message


def test_a_bad_object_stands_as_it_was_applied_last(project: Project) -> None:
    write(project.root, v="\n" + BROKEN[0])
    standing = {one.name: one for one in effective_objects(project)}
    assert list(standing) == ["t", "x", "v", "w"]
    v, w = standing["v"], standing["w"]
    assert (v.definition.text + ";", v.line, v.depends, w.depends) == (GOOD["v"], 2, ("t",), ("v",))
    assert v.fault is not None
    assert w.fault is not None
    assert "v.sql:3:10" in v.fault.message
    assert w.fault.message.startswith('waits for "v": ')
    assert {one.name for one in load_project(project).objects} == {"t", "x"}


def test_a_strict_project_is_not_loaded_with_a_fault(project: Project) -> None:
    write(project.root, v="\n" + BROKEN[0])
    (project.root / "mz.toml").write_text("[project]\nstrict = true\n")
    with pytest.raises(BadProjectFile, match=r"v[.]sql:3:10"):
        effective_objects(Project.load(project.root))
    write(project.root, v=GOOD["v"])
    assert {one.name for one in effective_objects(Project.load(project.root))} == {"t", "v", "w", "x"}


def test_doctor_plan_apply_and_frontiers_name_each_fault(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    write(project.root, v=BROKEN[0], x="CREATE MATERIALIZED VIEW x AS SELECT b FROM t")
    assert {one.name for one in preview_changes(project)[0].faults} == {"v", "w", "x"}
    for command, code in (("plan", 1), ("apply", 1), ("frontiers", 0), ("doctor", 1)):
        assert cli.main(["--project", str(project.root), command]) == code, command
        said = capsys.readouterr()
        out = said.out + said.err
        for named in ("v.sql:2:10", "x.sql:1:38", 'waits for "v"'):
            assert named in out, command


def test_an_error_of_many_faults_tells_some_and_its_plan_has_all(project: Project) -> None:
    write(project.root, **{f"b{n}": f"CREATE MATERIALIZED VIEW b{n} AS SELECT z FROM t;" for n in range(9)})
    write(project.root, **{f"c{n}": f"CREATE VIEW c{n} AS SELECT * FROM b0;" for n in range(7)})
    error, _ = refused(project)
    assert error.message.count('column "z" does not exist') == 5
    assert error.message.endswith("; and 4 more")
    assert error.detail == "As it was stays what reads it: c0, c1, c2, c3, c4, and 2 more."
    assert len(error.plan.faults) == 16


def test_a_fault_is_told_once_with_all_that_waits_for_it(
    project: Project, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    write(project.root, v=BROKEN[0], **{f"r{n}": f"CREATE VIEW r{n} AS SELECT * FROM v;" for n in range(8)})
    assert cli.main(["--project", str(project.root), "plan"]) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.startswith("ERROR: ") for line in told] == [True, False]
    assert told[1] == f'{", ".join(f"r{n}" for n in range(8))}, w wait for "v"'
    fresh = Project.load(project.root / "fresh")
    shutil.copytree(project.assets, fresh.assets)
    assert [one.name for one in effective_objects(fresh)] == ["t", "x"]
    (line,) = caplog.messages
    assert line.startswith("not defined: ")
    assert line.endswith("; nor is what reads it: r0, r1, r2, r3, r4, and 4 more")


def test_what_was_made_in_a_session_is_to_be_written_in_a_file(project: Project) -> None:
    with Engine(project) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE big (id integer)")
        session.execute("INSERT INTO big VALUES (7)")
        ((_, definition),) = session.execute("SHOW CREATE TABLE big").rows
    write(project.root, on="CREATE MATERIALIZED VIEW on_big AS SELECT id FROM big;")
    error, _ = refused(project)
    (fault,) = error.plan.faults
    assert 'relation "big" does not exist' in fault.error.message
    assert "SHOW CREATE TABLE shows" in str(fault.error.hint)
    write(project.root, big=f"{definition};")
    with Engine(project) as engine:
        engine.apply()
        assert list(Session(engine).execute("SELECT id FROM on_big").rows) == [(7,)]
