"""`mz-dagster plan` and `apply`, as a user meets them: what is printed, and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster.cli import main

BEFORE = """
CREATE TABLE t (a integer, b text);
CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE MATERIALIZED VIEW top AS SELECT b FROM m ORDER BY n DESC LIMIT 3;
CREATE VIEW old AS SELECT a FROM t;
"""
AFTER = """
CREATE TABLE t (a integer, b text);
CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t WHERE a > 1 GROUP BY b;
CREATE MATERIALIZED VIEW top AS SELECT b FROM m ORDER BY n DESC LIMIT 3;
CREATE VIEW fresh AS SELECT b FROM t;
"""
PLAN = """\
action     kind               name   because                      until hydrated
---------  -----------------  -----  ---------------------------  --------------
leave      view               old    no file defines it any more  readable
rehydrate  materialized view  m      its definition changed       not readable
rehydrate  materialized view  top    it reads m                   not readable
create     view               fresh  it is new
kept: t
with --drop would go: old

m
  before                                                                     after
  CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b  | \
CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t WHERE a > 1 GROUP BY b

hydrating, at the next step
collection  reads  updates  bytes  after  states to build     frees updates  bytes
----------  -----  -------  -----  -----  ------------------  -------------  -----
m           t            0      0         Accumulate (keyed)              0      0
top         m                      m      TopRows (keyed)                 0      0
"""


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "assets" / "all.sql"
    file.write_text(BEFORE)
    return file


def test_a_change_is_shown_checked_and_carried_out(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--check"]) == 3
    assert main(["apply"]) == 0
    assert capsys.readouterr().out.endswith("created: t, m, top, old\n")
    assert main(["plan", "--check"]) == 0
    assert capsys.readouterr().out == "nothing to change\nkept: t, m, top, old\n"

    assets.write_text(AFTER)
    assert main(["plan"]) == 0
    assert capsys.readouterr().out == PLAN
    assert main(["apply"]) == 0
    assert capsys.readouterr().out == (
        "created: fresh\nreplaced: m, top\nkept: t\nno file defines any more: old (apply --drop drops them)\n"
    )
    assert main(["plan", "--check"]) == 0
    assert main(["plan", "--drop", "--check"]) == 3
    told = capsys.readouterr().out
    assert "drop    view  old   no file defines it any more" in told
    assert "dropping" in told
    assert main(["apply", "--drop"]) == 0
    assert capsys.readouterr().out == "dropped: old\nkept: t, m, top, fresh\n"
    assert main(["plan", "--drop", "--check"]) == 0


def test_a_bad_file_ends_a_plan_with_file_and_line(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets.write_text("CREATE TABLE t (a integer);\nCREATE VIEW v AS SELECT b FROM t;\n")
    assert main(["plan", "--check"]) == 1
    told = capsys.readouterr()
    assert "create" in told.out  # the others
    assert told.err.startswith(f"ERROR: {assets}:2:25: ")
    assert not (assets.parents[1] / ".mz").exists()


def test_what_is_wrong_with_several_is_told_once(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets.write_text("CREATE VIEW x AS SELECT a FROM y;\nCREATE VIEW y AS SELECT a FROM x;\nCREATE VIEW z AS TABLE x;")
    assert main(["plan"]) == 1
    told = capsys.readouterr().err
    assert (told.count("ERROR"), told.count("cycle:")) == (1, 1)
    assert "z waits for" in told


def test_what_is_left_says_who_cannot_do_without_it(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    views = assets.with_name("views.sql")
    views.write_text("CREATE VIEW a AS TABLE old;\nCREATE VIEW b AS TABLE a;")
    last = assets.with_name("last.sql")
    last.write_text("-- @check not_null(a)\nCREATE VIEW last AS TABLE b;")
    assert main(["apply"]) == 0
    views.unlink()
    last.write_text("-- @chek not_null(a)\nCREATE VIEW last AS TABLE b;")
    assert main(["plan"]) == 1
    out = capsys.readouterr().out
    assert out.count("no file defines it any more, and last, last_not_null_a cannot do without") == 0
    assert out.count("no file defines it any more, and last cannot do without") == 2
    assert "no file defines it any more, and what it checks is wrong there" in out


def test_foreign_keys_are_shown_with_what_makes_them(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets.write_text("CREATE TABLE c (p integer REFERENCES p);\nCREATE TABLE p (id integer PRIMARY KEY);\n")
    statement = "ALTER TABLE c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p (id)"
    assert main(["plan", "--check"]) == 3
    assert f"add     foreign key  c_p_fkey  its file declares it: {statement}" in capsys.readouterr().out
    assert main(["apply"]) == 0
    assert capsys.readouterr().out.endswith(f"created: c, p\nforeign key: {statement}\n")
    assets.write_text("CREATE TABLE c (p integer);\nCREATE TABLE p (id integer PRIMARY KEY);\n")
    assert main(["plan", "--check"]) == 3
    assert "no file declares it any more: ALTER TABLE c DROP CONSTRAINT c_p_fkey" in capsys.readouterr().out
    assert main(["apply"]) == 0
    assert capsys.readouterr().out == "kept: c, p\nforeign key: ALTER TABLE c DROP CONSTRAINT c_p_fkey\n"
    assert main(["plan", "--check"]) == 0
