"""Foreign keys in a project's files: made behind the tables, and what becomes of them when the files change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import (
    Action,
    ChangePlan,
    Engine,
    NotAllApplied,
    OrphanStillRead,
    Project,
    Result,
    Session,
    apply_project,
    effective_objects,
    preview_changes,
)
from mz_dagster.adapter.sequence.drop import StillReferenced
from mz_dagster.adapter.table_constraints import foreign_keys_of
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.sql import Statement
from mz_dagster.sql.declared_keys import ForeignKey
from mz_dagster.sql.errors import ForeignKeyViolation

P = "CREATE TABLE p (id integer PRIMARY KEY, c integer REFERENCES c (id), up integer REFERENCES p ON DELETE CASCADE);"
C = """
CREATE TABLE c (
    id integer UNIQUE,
    p integer REFERENCES p -- which it belongs to
);"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(tmp_path, c=C, p=P)
    return Project.load(tmp_path)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / "assets" / f"{name}.sql").write_text(text, encoding="utf-8")


def applied(engine: Engine, *, drop: bool = False) -> list[str]:
    """Applies a project as it is shown before; returns what was done with foreign keys."""
    shown, _ = preview_changes(engine.project, drop=drop)
    done = apply_project(engine, drop=drop)
    assert replace(done, changes=()) == replace(shown, changes=())
    assert [(one.name, one.action, one.reason) for one in done.changes] == [
        (one.name, one.action, one.reason) for one in shown.changes
    ]
    assert not apply_project(engine, drop=drop).changed
    return statements(done)


def statements(plan: ChangePlan) -> list[str]:
    return [one.statement.text for one in plan.references]


def faults(engine: Engine) -> dict[str, str]:
    """Applies a project; returns what is wrong in it by the places in files."""
    with pytest.raises(NotAllApplied) as caught:
        apply_project(engine)
    assert {one.name for one in caught.value.plan.faults} == {None}
    places = (re.fullmatch(r".*/(\w+\.sql:[\d:]+): (.*)", one.error.message) for one in caught.value.plan.faults)
    return {found[1]: found[2] for found in places if found is not None}


def keys(engine: Engine, name: str) -> list[ForeignKey]:
    row = engine.catalog.resolve_name(name)
    assert row is not None
    return list(foreign_keys_of(row))


def test_tables_that_refer_to_each_other_get_their_keys_behind_all_tables(project: Project) -> None:
    write(project.root, v="CREATE MATERIALIZED VIEW v AS SELECT * FROM c;")
    shown, _ = preview_changes(project)  # of a project that has no catalog yet
    with Engine(project) as engine:
        done = apply_project(engine)
        assert (done.created, shown.created, done.references) == (("c", "p", "v"), ("c", "p", "v"), shown.references)
        assert statements(done) == [
            "ALTER TABLE c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p (id)",
            "ALTER TABLE p ADD CONSTRAINT p_c_fkey FOREIGN KEY (c) REFERENCES c (id)",
            "ALTER TABLE p ADD CONSTRAINT p_up_fkey FOREIGN KEY (up) REFERENCES p (id) ON DELETE CASCADE",
        ]
        view = engine.collection_of("v")
        assert applied(engine) == []
        session = Session(engine)
        with pytest.raises(ForeignKeyViolation, match="c_p_fkey"):
            session.execute("INSERT INTO c VALUES (1, 1)")
        session.execute("INSERT INTO p VALUES (1, NULL, 1)")
        session.execute("INSERT INTO c VALUES (1, 1)")
        assert session.execute("SELECT * FROM v").rows == ((1, 1),)
        ((_, text),) = session.execute("SHOW CREATE TABLE c").rows
        session.execute("ALTER TABLE c RENAME TO d")
        session.execute(str(text))
        assert [(one.name, one.referenced) for one in keys(engine, "c")] == [("c_p_fkey", ("id",))]
        session.execute("DROP TABLE c")
        session.execute("ALTER TABLE d RENAME TO c")
        assert (applied(engine), engine.collection_of("v")) == ([], view)
    assert "FOREIGN KEY (p) REFERENCES p (id)" in effective_objects(project)[0].sql


def test_what_was_not_done_when_a_process_ended_is_done_by_the_next(project: Project) -> None:
    with Engine(project) as engine:
        engine.apply()  # which ends where tables are made, and no foreign key is
        Session(engine).execute("INSERT INTO c VALUES (1, 7)")
    with Engine(project) as engine:
        for _ in range(2):
            assert faults(engine) == {
                "c.sql:4": 'insert or update on table "c" violates foreign key constraint "c_p_fkey" (in "c")'
            }
            assert [*engine.definition_faults()] == [engine.collection_of("c")]
            assert [one.name for one in keys(engine, "p")] == ["p_c_fkey", "p_up_fkey"]
        Session(engine).execute("DELETE FROM c")
        assert applied(engine) == ["ALTER TABLE c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p (id)"]


def test_what_another_process_has_just_done_is_no_fault(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = Session.sequence

    def raced(session: Session, statement: Statement) -> Result:
        sequence(Session(engine), statement)
        return sequence(session, statement)

    monkeypatch.setattr(Session, "sequence", raced)
    with Engine(project) as engine:
        apply_project(engine)
        assert len(keys(engine, "p")) == 2
        write(project.root, p="CREATE TABLE p (id integer PRIMARY KEY, c integer, up integer, more text);")
        assert apply_project(engine).names(Action.ALTER) == ("p",)
        assert keys(engine, "p") == []


def test_a_table_that_cannot_be_altered_holds_back_what_reads_it_alone(project: Project) -> None:
    with Engine(project) as engine:
        applied(engine)
        write(
            project.root, c=C.replace("UNIQUE", ""), q="CREATE TABLE q (c integer REFERENCES c (id), p integer UNIQUE);"
        )
        write(project.root, v="CREATE VIEW v AS SELECT id FROM c;", w="CREATE VIEW w AS SELECT p FROM q;")
        with pytest.raises(NotAllApplied) as caught:
            apply_project(engine)
        plan = caught.value.plan
        assert [(one.name, one.path.name, one.line) for one in plan.faults] == [
            (None, "p.sql", 1),
            (None, "q.sql", 1),
            ("c", "c.sql", 2),
            ("v", "v.sql", 1),
        ]
        assert "cannot drop a key of table c because other objects depend on it" in str(plan.faults[2].error)
        assert set(plan.created) == {"q", "w"}
        assert [one.name for one in keys(engine, "p")] == ["p_c_fkey", "p_up_fkey"]


def test_a_key_that_cannot_be_is_told_with_its_line_and_the_rest_is_applied(project: Project) -> None:
    with Engine(project) as engine:
        Session(engine).execute("CREATE TABLE made (id integer PRIMARY KEY)")
        wrong = (
            "CREATE TABLE w (\n    a integer REFERENCES nothing,\n    b integer REFERENCES made,\n"
            "    d integer REFERENCES c,\n    e integer REFERENCES c (p),\n    f text REFERENCES p,\n"
            "    g integer REFERENCES v,\n    h integer REFERENCES broken,\n    i integer REFERENCES p\n);"
        )
        write(project.root, w=wrong, v="CREATE VIEW v AS SELECT a, i FROM w;")
        write(project.root, x="CREATE TABLE broken (id nonsense PRIMARY KEY);")
        with pytest.raises(NotAllApplied) as caught:
            apply_project(engine)
        plan = caught.value.plan
        told = {one.line: one.error for one in plan.faults if one.name is None}
        assert [told[line].message.split(": ", 1)[1].removesuffix(' (in "w")') for line in range(2, 8)] == [
            'relation "nothing" does not exist',
            'relation "made" does not exist',
            'there is no primary key for referenced table "c"',
            'there is no unique constraint matching given keys for referenced table "c"',
            'foreign key constraint "w_f_fkey" cannot be implemented',
            'referenced relation "v" is not a table',
        ]
        assert told[8].message.split(": ", 1)[1].startswith('foreign key "w_h_fkey" waits for "broken": ')
        assert "was made in a session" in str(told[3].hint)
        assert all(re.match(rf".*/w\.sql:{line}:\d+: ", error.message) for line, error in told.items())
        assert set(plan.created) == {"c", "p", "w", "v"}
        assert [one.name for one in keys(engine, "w")] == ["w_i_fkey"]
        assert [str(one.error) for one in preview_changes(project)[0].faults] == [str(one.error) for one in plan.faults]
        write(project.root, w=wrong.replace("nothing", "p (id) ON DELETE SET NULL"))
        with pytest.raises(NotAllApplied) as caught:
            apply_project(engine)
        assert [one.name for one in caught.value.plan.references] == ["w_a_fkey"]


def test_what_files_say_otherwise_is_replaced_renamed_or_goes(project: Project) -> None:
    with Engine(project) as engine:
        applied(engine)
        session = Session(engine)
        session.execute("INSERT INTO p VALUES (1, NULL, NULL)")
        session.execute("INSERT INTO c VALUES (1, 1)")
        write(project.root, c=C.replace("REFERENCES p", "REFERENCES p ON DELETE SET NULL"))
        assert applied(engine) == [
            "ALTER TABLE c DROP CONSTRAINT c_p_fkey, "
            "ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL"
        ]
        write(project.root, c=C.replace("REFERENCES p", "CONSTRAINT of_p REFERENCES p ON DELETE SET NULL"))
        assert applied(engine) == ["ALTER TABLE c RENAME CONSTRAINT c_p_fkey TO of_p"]
        # What is the key of p is another column, which p gets thereby.
        write(project.root, p="CREATE TABLE p (id integer, c integer, up integer, key integer DEFAULT 1 PRIMARY KEY);")
        assert applied(engine) == [
            "ALTER TABLE c DROP CONSTRAINT of_p",
            "ALTER TABLE p DROP CONSTRAINT p_c_fkey",
            "ALTER TABLE p DROP CONSTRAINT p_up_fkey",
            "ALTER TABLE c ADD CONSTRAINT of_p FOREIGN KEY (p) REFERENCES p (key) ON DELETE SET NULL",
        ]
        session.execute("DELETE FROM p")
        assert session.execute("SELECT p FROM c").rows == ((None,),)
        write(project.root, c="CREATE TABLE c (id integer UNIQUE, p integer);")
        assert applied(engine) == ["ALTER TABLE c DROP CONSTRAINT of_p"]
        assert keys(engine, "c") == keys(engine, "p") == []


def test_renamed_tables_keep_their_keys_and_those_to_them(project: Project) -> None:
    with Engine(project) as engine:
        applied(engine)
        Session(engine).execute("ALTER TABLE p ADD CONSTRAINT mine FOREIGN KEY (c) REFERENCES c (id)")
        before = keys(engine, "p")
        child = C.replace("TABLE c", "TABLE d").replace("REFERENCES p", "REFERENCES q")
        write(project.root, c="-- @renamed_from c" + child)
        write(project.root, p="-- @renamed_from p\n" + P.replace("p", "q").replace("uq", "up").replace("c (", "d ("))
        assert applied(engine) == [
            "ALTER TABLE d RENAME CONSTRAINT c_p_fkey TO d_p_fkey",
            "ALTER TABLE q RENAME CONSTRAINT p_c_fkey TO q_c_fkey",
            "ALTER TABLE q RENAME CONSTRAINT p_up_fkey TO q_up_fkey",
        ]
        assert [one.parent for one in keys(engine, "q")] == [one.parent for one in before]
        assert [one.name for one in keys(engine, "q")] == ["q_c_fkey", "q_up_fkey", "mine"]


def test_what_a_session_has_added_stays_and_what_it_has_altered_is_still_of_the_files(project: Project) -> None:
    with Engine(project) as engine:
        write(project.root, p="CREATE TABLE p (id integer PRIMARY KEY);", c="CREATE TABLE c (p integer, q integer);")
        applied(engine)
        session = Session(engine)
        session.execute("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p ON DELETE CASCADE")
        assert applied(engine) == []
        write(project.root, c="CREATE TABLE c (p integer REFERENCES p, q integer REFERENCES p);")
        assert faults(engine) == {
            "c.sql:1": 'foreign key "c_p_fkey" is another in the catalog, where a session added it (in "c")'
        }
        write(project.root, c="CREATE TABLE c (p integer REFERENCES p ON DELETE CASCADE, q integer REFERENCES p);")
        assert applied(engine) == []
        session.execute("ALTER TABLE c RENAME COLUMN q TO r")
        session.execute("ALTER TABLE c RENAME CONSTRAINT c_q_fkey TO other")
        session.execute("ALTER TABLE p RENAME COLUMN id TO key")
        write(project.root, p="CREATE TABLE p (key integer PRIMARY KEY);", c="CREATE TABLE c (p integer, r integer);")
        assert applied(engine) == ["ALTER TABLE c DROP CONSTRAINT other"]
        assert [(one.name, one.referenced) for one in keys(engine, "c")] == [("c_p_fkey", ("key",))]


def test_keys_of_schemas_and_of_odd_names(project: Project) -> None:
    write(
        project.root,
        p='CREATE SCHEMA s; CREATE TABLE s."P q" (id integer PRIMARY KEY, up integer REFERENCES s."P q");',
        c='CREATE TABLE s.c (p integer REFERENCES s."P q", c integer REFERENCES "a.b"); '
        'CREATE TABLE "a.b" (id integer, PRIMARY KEY (id));',
    )
    with Engine(project) as engine:
        assert applied(engine) == [
            'ALTER TABLE s.c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES s."P q" (id)',
            'ALTER TABLE s.c ADD CONSTRAINT c_c_fkey FOREIGN KEY (c) REFERENCES "a.b" (id)',
            'ALTER TABLE s."P q" ADD CONSTRAINT "P q_up_fkey" FOREIGN KEY (up) REFERENCES s."P q" (id)',
        ]
        write(
            project.root,
            c='CREATE TABLE s.c (p integer, c integer, d text); CREATE TABLE "a.b" (id integer PRIMARY KEY);',
        )
        assert applied(engine) == [
            "ALTER TABLE s.c DROP CONSTRAINT c_p_fkey",
            "ALTER TABLE s.c DROP CONSTRAINT c_c_fkey",
        ]


@pytest.mark.parametrize("by", ["file", "session"])
def test_a_table_that_others_refer_to_is_not_dropped(project: Project, by: str) -> None:
    write(project.root, p="CREATE TABLE p (id integer PRIMARY KEY);")
    if by == "session":
        write(project.root, c="CREATE TABLE c (p integer);")
    with Engine(project) as engine:
        applied(engine)
        session = Session(engine)
        if by == "session":
            session.execute("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p NOT ENFORCED")
        (project.assets / "p.sql").unlink()
        for refused in (
            lambda: preview_changes(project, drop=True),
            lambda: apply_project(engine, drop=True),
            lambda: engine.apply(drop=True),
        ):
            with pytest.raises(OrphanStillRead, match='table "p" is not dropped: table "c" refers to it') as caught:
                refused()
            assert "constraint c_p_fkey on table c" in str(caught.value.detail)
        if by == "file":
            assert faults(engine) == {"c.sql:4:15": 'relation "p" does not exist (in "c")'}
            write(project.root, c="CREATE TABLE c (id integer UNIQUE, p integer);")
        else:
            assert not apply_project(engine).changed
            session.execute("ALTER TABLE c DROP CONSTRAINT c_p_fkey")
        done = apply_project(engine, drop=True)
        assert (done.dropped, len(done.references)) == (("p",), int(by == "file"))


def test_tables_that_refer_to_each_other_are_dropped_together(project: Project) -> None:
    with Engine(project) as engine:
        applied(engine)
        write(project.root, c="CREATE TABLE c (nonsense", p="")
        # What c is nobody knows, and as it was it refers to p.
        with pytest.raises(NotAllApplied) as caught:
            apply_project(engine, drop=True)
        assert [(row.name, readers) for row, readers in caught.value.plan.missed] == [("p", ("c",))]
        assert len(keys(engine, "c")) == 1
        (project.assets / "c.sql").unlink()
        assert set(apply_project(engine, drop=True).dropped) == {"c", "p"}


def test_a_key_that_a_session_adds_just_before_its_table_is_renamed_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project.root, p="CREATE TABLE p (id integer PRIMARY KEY);", c="CREATE TABLE c (p integer);")
    write(project.root, v="CREATE VIEW v AS SELECT p FROM c;")
    swap = Catalog.swap

    def raced(catalog: Catalog, *given: Any, **named: Any) -> tuple[ObjectRow, ...]:
        Session(engine).execute("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p")
        return swap(catalog, *given, **named)

    with Engine(project) as engine:
        applied(engine)
        write(project.root, c="-- @renamed_from c\nCREATE TABLE d (p integer);", v="CREATE VIEW v AS SELECT p FROM d;")
        with monkeypatch.context() as patched:
            patched.setattr(Catalog, "swap", raced)
            apply_project(engine)
        assert [one.name for one in keys(engine, "d")] == ["c_p_fkey"]


def test_a_table_that_another_has_just_come_to_refer_to_is_not_dropped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project.root, p="CREATE TABLE p (id integer PRIMARY KEY);", c="CREATE TABLE c (p integer);")
    with Engine(project) as engine:
        applied(engine)
        session = Session(engine)

        def raced(name: str) -> None:
            carry_out = getattr(Catalog, name)

            def refers(catalog: Catalog, *given: Any, **named: Any) -> object:
                monkeypatch.setattr(Catalog, name, carry_out)
                Session(engine).execute("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p")
                return carry_out(catalog, *given, **named)

            monkeypatch.setattr(Catalog, name, refers)

        raced("drop_objects")
        with pytest.raises(StillReferenced):
            session.execute("DROP TABLE p")
        session.execute("ALTER TABLE c DROP CONSTRAINT c_p_fkey")
        (project.assets / "p.sql").unlink()
        raced("swap")
        with pytest.raises(OrphanStillRead):
            apply_project(engine, drop=True)
        assert [one.name for one in keys(engine, "c")] == ["c_p_fkey"]
        session.execute("INSERT INTO p VALUES (1)")
