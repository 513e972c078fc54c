"""What a project's files define, and the errors that say where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster.adapter import BadProjectFile, BadSettings, NoProject, Project, connect
from tests.project_objects import load_objects


def project(root: Path, settings: str = "", **files: str) -> Project:
    (root / "mz.toml").write_text(settings, encoding="utf-8")
    (root / "assets").mkdir()
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text, encoding="utf-8")
    return Project.load(root)


def test_objects_come_after_what_they_read_whatever_the_files_order(tmp_path: Path) -> None:
    found = load_objects(
        project(
            tmp_path,
            a="CREATE MATERIALIZED VIEW m AS SELECT a FROM v;",
            b="CREATE VIEW v AS SELECT a FROM t WHERE a > 1; CREATE INDEX i ON m (a);",
            z="CREATE TABLE t (a integer);",
        )
    )
    assert [one.name for one in found] == ["t", "v", "m", "i"]
    assert [one.depends for one in found] == [(), ("t",), ("v",), ("m",)]


def test_comments_above_a_statement_become_its_comment(tmp_path: Path) -> None:
    (table, view) = load_objects(
        project(
            tmp_path,
            a="-- not this\n\n-- First line.\n-- Second line.\nCREATE TABLE t (a integer);\n"
            "CREATE VIEW v AS SELECT a FROM t; COMMENT ON VIEW v IS 'said';",
        )
    )
    assert table.comment == "First line.\nSecond line."
    assert table.line == 5
    assert view.comment == "said"


def test_ends_of_lines_are_as_in_the_file(tmp_path: Path) -> None:
    given = project(tmp_path)
    lines = ["-- First line.", "-- Second line.", "CREATE VIEW v AS -- why", "SELECT 'a", "b' AS \"x", 'y";']
    (given.root / "assets" / "a.sql").write_bytes("\r\n".join(lines).encode())
    (view,) = load_objects(given)
    assert (view.comment, view.line) == ("First line.\nSecond line.", 3)
    assert view.definition.relation_type.names == ("x\r\ny",)
    assert "'a\r\nb'" in view.definition.text


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    given = project(tmp_path)
    (given.root / "assets" / "a.sql").write_bytes("-- Said.\r\nCREATE VIEW v AS SELECT 1 AS a;".encode("utf-8-sig"))
    (view,) = load_objects(given)
    assert (view.comment, view.line) == ("Said.", 2)


def test_two_objects_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    given = project(tmp_path, a="CREATE TABLE t (a integer);", b="\nCREATE VIEW t AS SELECT 1 AS a;")
    with pytest.raises(BadProjectFile, match='two objects are called "t"') as caught:
        load_objects(given)
    assert "a.sql:1" in str(caught.value.detail)
    assert "b.sql:2" in str(caught.value.detail)
    assert caught.value.hint == "Rename one of them."


def test_a_cycle_is_refused_and_told(tmp_path: Path) -> None:
    given = project(
        tmp_path,
        a="CREATE VIEW x AS SELECT a FROM y;",
        b="CREATE VIEW y AS SELECT a FROM z;",
        c="CREATE VIEW z AS SELECT a FROM x;",
    )
    with pytest.raises(BadProjectFile, match='"x" reads "y" reads "z" reads "x"'):
        load_objects(given)


def test_a_view_that_reads_itself_is_a_cycle(tmp_path: Path) -> None:
    with pytest.raises(BadProjectFile, match='"v" reads "v"'):
        load_objects(project(tmp_path, a="CREATE VIEW v AS SELECT * FROM v"))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("CREATE TABLE t (a integer);\nCREATE VIEW v AS\n  SELECT b FROM t;", "3:10", 'column "b" does not exist'),
        ("CREATE VIEW v AS SELECT a FROM nothing", "1:32", 'relation "nothing" does not exist'),
        ("CREATE TABLE t (a integer", "1:", ""),
        ("CREATE VIEW v AS SELECT 1 + 'x'", "1:29", "invalid input syntax for type integer"),
    ],
)
def test_an_error_names_file_line_and_column(tmp_path: Path, text: str, place: str, message: str) -> None:
    with pytest.raises(BadProjectFile) as caught:
        load_objects(project(tmp_path, a=text))
    assert f"a.sql:{place}" in caught.value.message
    assert message in caught.value.message


def test_only_definitions_may_stand_in_a_project(tmp_path: Path) -> None:
    with pytest.raises(BadProjectFile, match=r"a\.sql:2: only definitions"):
        load_objects(project(tmp_path, a="CREATE TABLE t (a integer);\nINSERT INTO t VALUES (1);"))


def test_a_comment_on_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadProjectFile, match='COMMENT ON "u"'):
        load_objects(project(tmp_path, a="CREATE TABLE t (a integer); COMMENT ON TABLE u IS 'x'"))


def test_a_file_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    given = project(tmp_path)
    (given.assets / "a.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(BadProjectFile, match="cannot read"):
        load_objects(given)


def test_a_connection_applies_the_files_if_asked_to_and_is_not_there_if_one_is_wrong(tmp_path: Path) -> None:
    given = project(tmp_path, a="CREATE TABLE t (a integer); CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM t")
    with connect(given.root, apply=True) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT b FROM m").fetchall() == [(2,)]
    (given.assets / "b.sql").write_text("CREATE VIEW v AS SELECT c FROM t")
    with pytest.raises(BadProjectFile, match=r'b\.sql:1:25: column "c" does not exist'):
        connect(given.root, apply=True)


def test_an_unknown_setting_is_told_beside_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r'unknown setting "writes[.]inline_row"') as raised:
        project(tmp_path, "[writes]\ninline_row = 3")
    assert raised.value.detail == "Known are writes.deadline, writes.inline_bytes, writes.inline_rows."


def test_how_long_to_wait_for_spark_is_a_setting(tmp_path: Path) -> None:
    assert Project.load(tmp_path).spark_config().start_seconds == 300
    assert project(tmp_path, "[spark]\nstart = '20 s'").spark_config().start_seconds == 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[project]\nnam = 'x'", 'unknown setting "project.nam"'),
        ("[proyect]", 'unknown setting "proyect"'),
        ("[project\n", "is not TOML"),
        ("[spark]\nremote = 'sc://h:1'\nmaster = 'local'", "exclude each other"),
        ("[spark]\nremote = 'sc://h:1'\nfolder = 'x'", "spark.folder and spark.remote exclude each other"),
        ("[spark]\nidle = '10 s'", 'setting "spark.idle" is 10000 ms'),
        ("[retention]\nkeep = 'long'", 'setting "retention.keep"'),
        ("[retention]\nkeep = '² h'", 'setting "retention.keep"'),
        ("[timelines.x]\nclok = 'c'", 'unknown setting "timelines.x.clok"'),
        ("[catalog]\nurl = 3", 'setting "catalog.url"'),
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, settings: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        project(tmp_path, settings)


@pytest.mark.parametrize(
    ("settings", "key", "allowed"),
    [
        ("project = 3", "project", "must be a table"),
        ("[timelines]\nx = 3", "timelines.x", "must be a table"),
        ("[project]\nname = ''", "project.name", "must be a text"),
        ("[project]\nstrict = 'yes'", "project.strict", "must be true or false"),
        ("[catalog]\nurl = 'mysql://u:hidden@h/d'", "catalog.url", "sqlite"),
        ("[spark]\nfolder = '${NOT_SET_ANYWHERE}'", "spark.folder", 'no variable "NOT_SET_ANYWHERE"'),
        ("[spark]\nidle = '10 s'", "spark.idle", "'1 min' on, or 'never'"),
        ("[spark]\nplan_bytes = true", "spark.plan_bytes", "must be a whole number, not negative"),
        ("[spark]\nconf = {a = []}", "spark.conf", "must be a table of settings, with quoted names"),
        ("[leases]\nduration = '1 s'", "leases.duration", "from '3 s' to '1 h'"),
        ("[retention]\nkeep = 7", "retention.keep", "the units are ms, s, min, h, d"),
        ("[reads]\nhot_bytes = 1.5", "reads.hot_bytes", "must be a whole number, not negative"),
        ("[project]\nmemory = 1000", "project.memory", "536870912 or more"),
        ("[project]\nmemory = '2 GB'", "project.memory", "must be a whole number, not negative"),
        ("[sources]\nfolders = ['a', 3]", "sources.folders.1", "must be a text"),
        ("[outputs]\nconnection = 'c'", "outputs.connection", "s3://bucket/path.json"),
        ("[storage]\nuri = 's3://b/x'\nregion = 3", "storage.region", "must be a text"),
        ("[storage]\nuri = 's3://b/x'\nsession_token = 'hidden'", "storage.session_token", "file:PATH"),
        ("[storage]\nuri = 'az://b/x'\nregion = 'r'", "storage.region", "storage.account_name"),
    ],
)
def test_an_error_of_a_setting_names_file_key_and_what_is_allowed(
    tmp_path: Path, settings: str, key: str, allowed: str
) -> None:
    with pytest.raises(BadSettings) as raised:
        project(tmp_path, settings)
    assert f'"{key}"' in raised.value.message
    assert f'"{tmp_path / "mz.toml"}"' in raised.value.message
    assert allowed in str(raised.value)
    assert raised.value.hint
    assert "hidden" not in f"{raised.value}{raised.value.__cause__}{raised.value.__context__}"


def test_no_secret_is_in_the_text_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "hidden")
    given = project(
        tmp_path,
        "[catalog]\nurl = 'postgresql://u:${PLANTED}@h/d'\n[spark]\nremote = 'sc://h/;token=${PLANTED}'\n"
        "[spark.conf]\n'a.secret' = '${PLANTED}'\n"
        "[storage]\nuri = 's3://b/x/'\nregion = '${PLANTED}'\nsecret_access_key = '${PLANTED}'",
    )
    assert (given.spark.remote, given.spark.conf) == ("sc://h/;token=hidden", {"a.secret": "hidden"})
    assert given.bucket is not None
    assert (given.bucket.uri, given.bucket.store.settings(tmp_path)["aws_region"]) == ("s3://b/x", "hidden")
    assert "hidden" not in f"{given.spark!r}{given.spark}{given!r}".replace("region='hidden'", "")


def test_settings_are_read(tmp_path: Path) -> None:
    given = project(
        tmp_path,
        "[project]\nname='n'\ntimeline='feed'\n[timelines.feed]\nclock='landing/clock'\n[retention]\nkeep='2 h'\n"
        "[spark.conf]\n'spark.driver.memory'='2g'",
    )
    assert (given.name, given.timeline, given.retention_ms) == ("n", "feed", 7_200_000)
    assert given.timelines["feed"].clock == tmp_path / "landing/clock"
    assert given.spark.conf == {"spark.driver.memory": "2g"}


def test_a_project_is_found_from_below_and_only_there(tmp_path: Path) -> None:
    given = project(tmp_path)
    assert Project.find(given.assets).root == tmp_path
    outside = tmp_path.parent / "outside"
    outside.mkdir(exist_ok=True)
    with pytest.raises(NoProject, match="no project in"):
        Project.find(outside)


def test_where_the_local_spark_is_and_how_long_it_stays(tmp_path: Path) -> None:
    for text, folder, seconds in (
        ("", tmp_path / ".mz" / "spark", 900.0),
        ("[spark]\nfolder = '../shared'\nidle = '2 h'", tmp_path / "../shared", 7200.0),
        ("[spark]\nfolder = '/srv/spark'\nidle = 'never'", Path("/srv/spark"), None),
    ):
        (tmp_path / "mz.toml").write_text(text)
        config = Project.load(tmp_path).spark_config()
        assert (config.state_dir, config.idle_seconds) == (folder, seconds)
