"""What statements return, printed as tables, CSV, JSON and Markdown; and the shell's own commands."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.cli import main
from mz_dagster.cli.output import Output, OutputFormat
from mz_dagster.cli.shell_commands import HELP, Left, ShellCommands
from mz_dagster.errors import ProgrammingError

ROWS = """
SELECT * FROM (VALUES (1, 1.50, true, 'a|b', ARRAY['x', NULL], '{"k": [1.0, "é"]}'::jsonb, 'NaN'::float8),
  (NULL, -0.25, NULL, '', '{}', NULL, 1e20),
  (12345, 0, false, E'two\nlines, "quoted"', NULL, 'null', 0.1)) AS v(n, d, b, t, a, j, f) ORDER BY d DESC
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Engine(Project.load(tmp_path)) as engine:
        yield Session(engine)


def printed(session: Session, capsys: pytest.CaptureFixture[str], output: Output, sql: str = ROWS) -> str:
    capsys.readouterr()
    output.show(session.execute(sql))
    return capsys.readouterr().out


def test_a_table_shows_cells_as_postgresql_does(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 7 AS n, 1.50 AS d, true AS b, ARRAY[1, NULL] AS a, NULL AS x, '\\x01'::bytea AS y"
    assert printed(session, capsys, Output(), sql) == (
        "n     d  b  a         x  y\n-  ----  -  --------  -  ----\n7  1.50  t  {1,NULL}     \\x01\n"
    )
    assert printed(session, capsys, Output(expanded=True), "SELECT 7 AS n, 'x' AS long, NULL AS z") == (
        "-[ 1 ]-\nn     7\nlong  x\nz\n"
    )


def test_csv_is_read_back(session: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = printed(session, capsys, Output(OutputFormat.CSV))
    names, *rows = csv.reader(io.StringIO(text))
    assert names == ["n", "d", "b", "t", "a", "j", "f"]
    assert [row[3] for row in rows] == ["a|b", 'two\nlines, "quoted"', ""]
    (tmp_path / "rows.csv").write_text(text)
    session.execute("CREATE TABLE back (n int, d numeric(9, 2), b bool, t text, a text[], j jsonb, f float8)")
    session.execute("COPY back FROM 'rows.csv' (FORMAT CSV, HEADER)")
    assert session.execute("SELECT * FROM back ORDER BY d DESC, n").rows[2:] == session.execute(ROWS).rows[2:]
    assert session.execute("SELECT count(*), count(n), count(t), count(a), count(j) FROM back").rows == (
        (3, 2, 3, 2, 2),
    )


def test_json_has_a_row_in_each_line_with_all_digits(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(session, capsys, Output(OutputFormat.JSON)).splitlines()
    first, second, third = (json.loads(line, parse_float=Decimal) for line in lines)
    assert '"d": 1.50' in lines[0]
    assert first == {"n": 1, "d": Decimal("1.50"), "b": True, "t": "a|b", "a": ["x", None],
                     "j": {"k": [Decimal("1.0"), "é"]}, "f": "NaN"}  # fmt: skip
    assert (second["t"], second["a"], second["j"]) == ('two\nlines, "quoted"', None, None)
    assert (third["b"], third["f"]) == (None, Decimal("1e20"))


def test_markdown_is_a_table_whatever_the_cells(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    head, rules, *rows = printed(session, capsys, Output(OutputFormat.MARKDOWN)).splitlines()
    assert head == "| n | d | b | t | a | j | f |"
    assert rules == "| --: | --: | --- | --- | --- | --- | --: |"
    assert len(rows) == 3
    assert rows[0].startswith(r"| 1 | 1.50 | t | a\|b |")


def test_a_subscription_is_printed_as_it_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], session: Session
) -> None:
    session.execute("CREATE TABLE t (a int)")
    session.execute("INSERT INTO t VALUES (1), (2)")
    time = session.execute("SELECT mz_now()").rows[0][0]
    session.execute("INSERT INTO t VALUES (30000)")
    until = session.execute("SELECT mz_now()").rows[0][0] + 1
    statement = f"SUBSCRIBE t AS OF {time} UP TO {until}"
    assert main(["--project", str(tmp_path), "sql", "--format", "csv", "-c", statement]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "mz_timestamp,mz_diff,a"
    assert sorted(row.split(",", 1)[1] for row in rows) == ["1,1", "1,2", "1,30000"]
    assert main(["--project", str(tmp_path), "sql", "-c", statement]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["mz_timestamp", "mz_diff", "a"]
    assert len(rows) == 3


def test_what_is_longer_than_the_terminal_goes_through_the_pager(
    session: Session, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    monkeypatch.setenv("LINES", "10")
    output = Output(OutputFormat.CSV, pages=True)
    output.show(session.execute("SELECT * FROM generate_series(1, 20)"))
    assert capfd.readouterr().out.count("paged:") == 21
    output.show(session.execute("SELECT * FROM generate_series(1, 3)"))
    assert "paged:" not in capfd.readouterr().out
    monkeypatch.setenv("PAGER", "no-such-pager")
    output.show(session.execute("SELECT * FROM generate_series(1, 20)"))
    assert len(capfd.readouterr().out.splitlines()) == 21


def test_commands_of_the_shell(session: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    executed: list[Path] = []
    output = Output()
    commands = ShellCommands(session, output, executed.append)

    def told(line: str) -> list[str]:
        capsys.readouterr()
        commands.run(line)
        return capsys.readouterr().out.splitlines()

    session.execute("CREATE TABLE orders (id int NOT NULL, note text)")
    session.execute("CREATE TABLE order_2 (id int)")
    session.execute("CREATE VIEW recent AS SELECT id FROM orders")
    session.execute("CREATE MATERIALIZED VIEW kept AS SELECT id FROM orders")
    session.execute("CREATE INDEX kept_by_id ON kept (id)")
    assert told("\\d")[2:] == ["kept        materialized view", "kept_by_id  index", "order_2     table",
                               "orders      table", "recent      view"]  # fmt: skip
    assert [line.split()[0] for line in told("\\dt")[2:]] == ["order_2", "orders"]
    assert [line.split()[0] for line in told("\\dt order_*;")[2:]] == ["order_2"]
    assert [line.split()[0] for line in told("\\dv")[2:]] == ["recent"]
    assert [line.split()[0] for line in told("\\dm k??t")[2:]] == ["kept"]
    assert [line.split()[0] for line in told("\\di")[2:]] == ["kept_by_id"]
    assert [line.split()[0] for line in told("\\dn")[2:]] == ["public"]
    described = told("\\d kept")
    assert described[2].split() == ["id", "NO", "integer"]
    assert described[-1].startswith("CREATE MATERIALIZED VIEW kept AS SELECT id")
    assert any(line.startswith("kept_by_id") for line in described)
    assert told("\\x") == ["Expanded display is on."]
    assert told("\\x off") == ["Expanded display is off."]
    assert (told("\\timing on"), commands.timing) == (["Timing is on."], True)
    assert (told("\\format json"), output.format) == (["Rows are printed as json."], OutputFormat.JSON)
    assert told("\\?") == HELP.splitlines()
    commands.run("\\i my file.sql")
    assert executed == [Path("my file.sql")]
    for wrong in ("\\nonsense", "\\format xml", "\\x maybe", "\\i"):
        with pytest.raises(ProgrammingError):
            commands.run(wrong)
    with pytest.raises(Left):
        commands.run("\\q")
