"""What the comment above a statement, and COMMENT ON, tell of an object; and how what is wrong in them is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster.adapter import BadProjectFile, Project, ProjectObject
from mz_dagster.adapter.annotations import Annotations, Freshness, parse_annotations
from tests.project_objects import load_objects

HOUR = 3_600_000


def loaded(root: Path, **files: str) -> dict[str, ProjectObject]:
    (root / "assets").mkdir()
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text, encoding="utf-8")
    return {one.name: one for one in load_objects(Project.load(root))}


def refused(root: Path, text: str) -> BadProjectFile:
    with pytest.raises(BadProjectFile) as caught:
        loaded(root, a=text)
    assert caught.value.hint
    return caught.value


def test_annotations_are_read_and_the_other_lines_are_the_description(tmp_path: Path) -> None:
    objects = loaded(
        tmp_path,
        a="""
-- Departures with names.
-- @owner team:flights
-- @owner jo.do@example.com
--
-- @group ops/airlines
-- Corrections replace their rows.
-- @tag domain=ops
-- @tag ops/pii
-- @kind kafka
-- @freshness warn 30 min, fail 2 h
-- @dep lake/raw_flights
-- @dep weather
  CREATE TABLE departures (a integer);
-- @freshness   fail  1 h
CREATE INDEX by_a ON departures (a);
""",
    )
    departures = objects["departures"]
    assert departures.comment == "Departures with names.\n\nCorrections replace their rows."
    assert departures.annotations == Annotations(
        owners=("team:flights", "jo.do@example.com"),
        group="ops/airlines",
        tags=(("domain", "ops"), ("ops/pii", "")),
        kinds=("kafka",),
        freshness=Freshness(fail_ms=2 * HOUR, warn_ms=HOUR // 2),
        deps=(("lake", "raw_flights"), ("weather",)),
    )
    assert objects["by_a"].comment is None
    assert objects["by_a"].annotations == Annotations(freshness=Freshness(HOUR))


def test_an_address_in_a_sentence_is_no_annotation() -> None:
    assert parse_annotations(["Ask jo@example.com", "@ noon"]) == (Annotations(), "Ask jo@example.com\n@ noon")


@pytest.mark.parametrize(
    ("annotation", "message", "hint"),
    [
        ("@onwer team:x", 'unknown annotation "@onwer"', 'Perhaps you meant "owner".'),
        ("@todo later", 'unknown annotation "@todo"', "@owner, @group, @tag, @kind, @freshness, @dep"),
        ("@owner flights", 'invalid @owner "flights"', "team:flights"),
        ("@owner team:", 'invalid @owner "team:"', "team:flights"),
        ("@owner jo@localhost", 'invalid @owner "jo@localhost"', "e-mail"),
        ("@owner", "@owner says nothing", "team:flights"),
        ("@group a b", 'invalid @group "a b"', "letters"),
        ("@group /a", 'invalid @group "/a"', "letters"),
        ("@tag a b=c", 'invalid @tag "a b=c"', "key=value"),
        ("@tag a=b c", 'invalid @tag "a=b c"', "key=value"),
        (f"@tag a={'x' * 64}", "invalid @tag", "63"),
        ("@tag dagster/kind=x", 'invalid @tag "dagster/kind=x"', "@kind"),
        ("@kind Kafka", 'invalid @kind "Kafka"', "lower case"),
        ("@dep lake//flights", 'invalid @dep "lake//flights"', "@dep lake/raw_flights"),
        ("@dep", "@dep says nothing", "key of an asset"),
        ("@freshness soon", 'invalid @freshness "soon"', "ms, s, min, h, d"),
        ("@freshness 1 week", 'invalid @freshness "1 week"', "ms, s, min, h, d"),
        ("@freshness warn 1 h", 'invalid @freshness "warn 1 h"', "fail 2 h"),
        ("@freshness warn 1 h, 2 h", "invalid @freshness", "fail 2 h"),
        ("@freshness warn 2 h, fail 1 h", "invalid @freshness", "Warn earlier"),
        ("@freshness 30 s", 'invalid @freshness "30 s"', "1 min at least"),
        ("@freshness 99999 d", 'invalid @freshness "99999 d"', "36500 d at most"),
    ],
)
def test_a_wrong_annotation_is_refused_with_its_line_and_what_is_allowed(
    tmp_path: Path, annotation: str, message: str, hint: str
) -> None:
    error = refused(
        tmp_path, f"CREATE TABLE u (a integer);\n\n-- Says.\n-- {annotation}\n-- More.\nCREATE TABLE t (a int)"
    )
    assert "a.sql:4: " in error.message
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint


@pytest.mark.parametrize(
    "annotation",
    ["@owner team:x", "@group a", "@tag k=v", "@kind kafka", "@freshness 1 h", "@dep a/b"],
)
def test_nothing_is_said_twice(tmp_path: Path, annotation: str) -> None:
    error = refused(tmp_path, f"-- {annotation}\n-- {annotation}\nCREATE TABLE t (a integer)")
    assert f"a.sql:2: {annotation.split()[0]} is said twice" in error.message


def test_kinds_are_as_many_as_dagster_takes(tmp_path: Path) -> None:
    error = refused(tmp_path, "".join(f"-- @kind k{i}\n" for i in range(8)) + "CREATE TABLE t (a integer)")
    assert "a.sql:8: more than 7 kinds" in error.message


def test_comment_on_an_object_overrides_its_description_and_keeps_its_annotations(tmp_path: Path) -> None:
    objects = loaded(
        tmp_path,
        a="-- Above.\n-- @group g\nCREATE TABLE t (a integer); COMMENT ON TABLE t IS 'Said.'",
        b="-- Above.\nCREATE VIEW v AS SELECT a FROM t; COMMENT ON VIEW v IS NULL",
    )
    assert (objects["t"].comment, objects["t"].annotations.group) == ("Said.", "g")
    assert objects["v"].comment is None


def test_comments_on_columns_are_those_of_the_last_statement_and_of_indexes_too(tmp_path: Path) -> None:
    objects = loaded(
        tmp_path,
        a="COMMENT ON COLUMN t.b IS 'the second'; COMMENT ON COLUMN t.a IS 'no'; COMMENT ON COLUMN t.a IS NULL;",
        b="CREATE TABLE t (a integer, b integer); CREATE INDEX i ON t (b)",
    )
    assert objects["t"].column_comments == {"b": "the second"}
    assert objects["i"].column_comments == {"b": "the second"}
    assert objects["t"].comment is None


def test_the_comment_beside_a_column_is_the_columns_unless_comment_on_says_otherwise(tmp_path: Path) -> None:
    objects = loaded(
        tmp_path,
        a="""
-- Miles -- and feet.
CREATE SOURCE t (
    a integer NOT NULL, -- miles -- one way
    b integer, "c--d" integer, -- feet
    -- about what follows
    e numeric(4, 2),
    f integer, --
    g integer, -- hours
    h integer -- days
    , PRIMARY KEY (a) -- the key
) FROM FILES (FOLDER 'landing', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE VIEW v AS SELECT a -- not here
FROM t;
COMMENT ON COLUMN t.g IS NULL;
COMMENT ON COLUMN t.h IS 'weeks';
""",
    )
    assert objects["t"].column_comments == {"a": "miles -- one way", "c--d": "feet", "h": "weeks"}
    assert objects["v"].column_comments == {}


@pytest.mark.parametrize(
    ("comment", "message", "hint"),
    [
        ("COMMENT ON COLUMN t.amuont IS 'x'", 'column "amuont" of "t" does not exist', 'Perhaps you meant "amount".'),
        ("COMMENT ON COLUMN t.zzz IS 'x'", 'column "zzz" of "t" does not exist', "Its columns are id, amount."),
        ("COMMENT ON COLUMN i.id IS 'x'", 'column "id" of "i" does not exist', 'Comment on the column of "t".'),
        ("COMMENT ON COLUMN tt.id IS 'x'", 'COMMENT ON "tt"', 'Perhaps you meant "t".'),
        ("COMMENT ON TABLE nothing IS 'x'", 'COMMENT ON "nothing"', "Define it"),
    ],
)
def test_a_comment_on_what_does_not_exist_is_refused(tmp_path: Path, comment: str, message: str, hint: str) -> None:
    error = refused(tmp_path, f"CREATE TABLE t (id integer, amount integer);\nCREATE INDEX i ON t (id);\n{comment}")
    assert f"a.sql:3: {message}" in error.message
    assert error.hint is not None
    assert hint in error.hint


def test_the_version_changes_with_the_sql_of_an_object_and_of_the_views_in_it(tmp_path: Path) -> None:
    def versions(folder: str, view: str, comment: str = "") -> dict[str, str]:
        root = tmp_path / folder
        root.mkdir()
        objects = loaded(
            root,
            a="CREATE TABLE t (a integer); CREATE VIEW v AS SELECT a FROM w; "
            f"{comment}CREATE MATERIALIZED VIEW m AS SELECT a FROM v; {view}",
        )
        return {name: one.version for name, one in objects.items()}

    first = versions("first", "CREATE VIEW w AS SELECT a FROM t")
    assert versions("commented", "CREATE VIEW w AS SELECT a FROM t", "\n-- Said.\n-- @group g\n") == first
    second = versions("second", "CREATE VIEW w AS SELECT a + 1 AS a FROM t")
    assert {name for name in first if first[name] != second[name]} == {"w", "v", "m"}
