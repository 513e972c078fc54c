"""Foreign keys, beside PostgreSQL, and under writers that race."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, keeping_references
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.transaction import SerializationFailure
from mz_dagster.catalog import ObjectRow
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.sql.errors import ForeignKeyViolation, ProgramLimitExceeded, UnsupportedForm
from tests.adapter.outcomes import compare, outcome
from tests.forks import forks
from tests.opened import opened

#: Scripts of statements; each is run on an empty database, and what is left of `t` and `u` is compared after each.
SCRIPTS = {
    "foreign keys": (
        "CREATE TABLE t (id integer PRIMARY KEY, a smallint, b text, UNIQUE (b, a))",
        "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, NULL), (4, NULL, 'z')",
        "CREATE TABLE u (id bigint REFERENCES nothing)",
        "CREATE TABLE u (id bigint REFERENCES t (nothing))",
        "CREATE TABLE u (id bigint REFERENCES t (a))",
        "CREATE TABLE u (id text REFERENCES t)",
        "CREATE TABLE u (id bigint, FOREIGN KEY (id) REFERENCES t (b, a))",
        "CREATE TABLE u (id bigint, FOREIGN KEY (nothing) REFERENCES t)",
        "CREATE TABLE u (id bigint REFERENCES t (id), a integer, b varchar(3), FOREIGN KEY (a, b) REFERENCES t (a, b))",
        "INSERT INTO u VALUES (1, 1, 'x'), (NULL, 9, NULL), (3, NULL, 'q')",
        "INSERT INTO u VALUES (4, NULL, NULL), (9, NULL, NULL)",
        "INSERT INTO u SELECT 5, 1, 'x'",
        "INSERT INTO u VALUES (NULL, 1, 'y')",
        "UPDATE u SET a = 2, b = 'y' WHERE id = 1 RETURNING *",
        "UPDATE u SET b = 'x' WHERE id = 1",
        "UPDATE u SET b = NULL WHERE id = 1",
        "UPDATE u SET id = id + 1",
        "DELETE FROM t WHERE id IN (2, 3)",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET id = 10 - id WHERE id < 5",
        "UPDATE t SET a = a + 1",
        "INSERT INTO t VALUES (3, 7, 'w') ON CONFLICT (id) DO UPDATE SET id = 33",
        "DELETE FROM t USING u WHERE t.id = u.id RETURNING t.id",
        "TRUNCATE t",
        "TRUNCATE u, t",
        "INSERT INTO t VALUES (1, 1, 'x')",
        "INSERT INTO u VALUES (1, 1, 'x')",
        "TRUNCATE t CASCADE",
        "SELECT count(*) FROM u",
        "DROP TABLE t",
        "ALTER TABLE t DROP COLUMN id",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t RENAME COLUMN id TO key",
        "ALTER TABLE t RENAME TO v",
        "INSERT INTO u VALUES (1, NULL, NULL)",
        "INSERT INTO v VALUES (1, 1, 'x')",
        "INSERT INTO u VALUES (1, NULL, NULL)",
        "ALTER TABLE u RENAME CONSTRAINT u_id_fkey TO refers",
        "ALTER TABLE u RENAME COLUMN id TO c",
        "DELETE FROM v",
        "ALTER TABLE u DROP CONSTRAINT refers",
        "DELETE FROM v",
        "ALTER TABLE u ADD FOREIGN KEY (c) REFERENCES v",
        "DELETE FROM u",
        "ALTER TABLE u ADD FOREIGN KEY (c) REFERENCES v, ADD d integer REFERENCES v",
        "INSERT INTO u (d) VALUES (1)",
        "ALTER TABLE u DROP COLUMN c",
        "DROP TABLE v CASCADE",
        "INSERT INTO u (d) VALUES (1)",
    ),
    "other types of columns that refer": (
        "CREATE TABLE t (id integer PRIMARY KEY, a numeric)",
        "CREATE TABLE u (t bigint REFERENCES t)",
        "INSERT INTO t VALUES (1, 0.6)",
        "INSERT INTO u VALUES (1)",
        "ALTER TABLE t ALTER id TYPE bigint",
        "ALTER TABLE u ALTER t TYPE text",
        "ALTER TABLE t ALTER id TYPE text",
        "ALTER TABLE u ALTER t TYPE smallint",
        "INSERT INTO u VALUES (2)",
        "ALTER TABLE t ADD UNIQUE (a)",
        "ALTER TABLE u ADD a numeric REFERENCES t (a)",
        "UPDATE u SET a = 0.60",
        "ALTER TABLE u ALTER a TYPE numeric(4,0)",
        "DELETE FROM t",
    ),
    "rows that follow those they refer to": (
        "CREATE TABLE t (id integer PRIMARY KEY, up integer REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE u (id integer UNIQUE REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL, n integer NOT NULL, "
        "twice integer GENERATED ALWAYS AS (id * 2) STORED)",
        "CREATE TABLE v (u integer REFERENCES u (id) ON UPDATE SET NULL ON DELETE RESTRICT)",
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2), (4, 2), (5, 5), (6, NULL), (7, 8), (8, 7)",
        "INSERT INTO u VALUES (3, 1), (6, 2), (4, 3)",
        "INSERT INTO v VALUES (6), (4)",
        "UPDATE t SET id = id * 10 WHERE id IN (2, 5, 6)",
        "SELECT * FROM v",
        "DELETE FROM t WHERE id IN (5, 50)",
        "DELETE FROM t WHERE id = 7",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM u WHERE n = 2",
        "INSERT INTO v VALUES (4)",
        "DELETE FROM u",
        "DELETE FROM t WHERE id = 4",
        "DELETE FROM v",
        "UPDATE t SET id = 99, up = 99 WHERE id = 60",
        "CREATE TABLE w (t integer NOT NULL REFERENCES t ON DELETE SET NULL)",
        "INSERT INTO w VALUES (99)",
        "DELETE FROM t WHERE id = 99",
        "ALTER TABLE w ADD CHECK (t > 50), ADD x integer REFERENCES t ON UPDATE RESTRICT",
        "ALTER TABLE w DROP CONSTRAINT w_t_fkey",
        "ALTER TABLE w ADD FOREIGN KEY (t) REFERENCES t ON UPDATE CASCADE",
        "UPDATE t SET id = 9 WHERE id = 99",
        "UPDATE t SET id = 90 WHERE id = 99",
        "UPDATE w SET x = 90",
        "UPDATE t SET id = 91 WHERE id = 90",
        "DELETE FROM w",
        "DELETE FROM t",
    ),
    "rows that take the keys of others": (
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "INSERT INTO t VALUES (3), (2), (1)",
        "CREATE TABLE u (a integer REFERENCES t ON UPDATE CASCADE, b integer REFERENCES t ON UPDATE SET NULL, "
        "c integer CONSTRAINT restrict REFERENCES t ON UPDATE RESTRICT)",
        "INSERT INTO u VALUES (1, 1), (2, 2), (3, NULL)",
        "UPDATE t SET id = id + 1",
        "INSERT INTO u (c) VALUES (3)",
        "UPDATE t SET id = id + 1",
        "DROP TABLE t CASCADE",
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "ALTER TABLE u DROP CONSTRAINT restrict",
        "ALTER TABLE u ADD CONSTRAINT restrict FOREIGN KEY (b) REFERENCES t",
    ),
    "columns of other types follow": (
        "CREATE TABLE t (id bigint PRIMARY KEY, n numeric UNIQUE, v text UNIQUE, d timestamp UNIQUE)",
        "CREATE TABLE u (id smallint REFERENCES t ON UPDATE CASCADE, n integer REFERENCES t (n) ON UPDATE CASCADE, "
        "v varchar(2) REFERENCES t (v) ON UPDATE CASCADE, d date REFERENCES t (d) ON UPDATE CASCADE)",
        "INSERT INTO t VALUES (1, 1.0, 'a', '2020-01-01')",
        "INSERT INTO u VALUES (1, 1, 'a', '2020-01-01')",
        "UPDATE t SET id = 100000",
        "UPDATE t SET id = 7, n = 2.0, v = 'b', d = '2020-01-02'",
        "UPDATE t SET n = 2.5",
        "UPDATE t SET v = 'abc'",
        "UPDATE t SET d = '2020-01-02 01:00'",
    ),
    "what is of the same name, or of itself": (
        "DROP SCHEMA IF EXISTS s CASCADE",
        "CREATE SCHEMA s",
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "CREATE TABLE s.t (id integer PRIMARY KEY, t integer REFERENCES t)",
        "INSERT INTO s.t VALUES (1, 1)",
        "CREATE TABLE s.w (id integer PRIMARY KEY, w integer REFERENCES w)",
        "DROP SCHEMA s CASCADE",
        "CREATE TABLE u (n numeric PRIMARY KEY, u numeric REFERENCES u)",
        "INSERT INTO u VALUES (0.6, 0.60)",
        "ALTER TABLE u ALTER n TYPE numeric(4,0)",
    ),
    "numbers of rows that refer": (
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "CREATE TABLE u (id serial, t integer REFERENCES t)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO u VALUES (DEFAULT, 1)",
        "INSERT INTO u VALUES (DEFAULT, 1)",
    ),
    "constraints that are deferred": (
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "CREATE TABLE u (id integer REFERENCES t DEFERRABLE INITIALLY DEFERRED, "
        "b integer CONSTRAINT now REFERENCES t DEFERRABLE, c integer REFERENCES t)",
        "INSERT INTO u VALUES (1)",
        "BEGIN",
        "INSERT INTO u VALUES (1)",
        "INSERT INTO t VALUES (1)",
        "COMMIT",
        "BEGIN",
        "DELETE FROM t",
        "INSERT INTO t VALUES (2)",
        "COMMIT",
        "BEGIN",
        "SET CONSTRAINTS now DEFERRED",
        "INSERT INTO u (b) VALUES (3)",
        "SAVEPOINT s",
        "INSERT INTO u (id, b) VALUES (4, 4)",
        "ROLLBACK TO s",
        "INSERT INTO t VALUES (3)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "INSERT INTO u (b) VALUES (5)",
        "ROLLBACK",
        "BEGIN",
        "SET CONSTRAINTS ALL DEFERRED",
        "INSERT INTO u (c) VALUES (5)",
        "ROLLBACK",
        "BEGIN",
        "SET CONSTRAINTS ALL DEFERRED",
        "INSERT INTO u (id, b) VALUES (5, 5)",
        "SET CONSTRAINTS public.now IMMEDIATE",
        "ROLLBACK",
        "BEGIN",
        "SET CONSTRAINTS u_c_fkey DEFERRED",
        "ROLLBACK",
        "BEGIN",
        "SET CONSTRAINTS nothing DEFERRED",
        "ROLLBACK",
        "BEGIN",
        "DELETE FROM t",
        "DELETE FROM u",
        "COMMIT",
        "BEGIN",
        "INSERT INTO u VALUES (9)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (9)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "ROLLBACK TO s",
        "COMMIT",
        "BEGIN",
        "INSERT INTO u VALUES (9)",
        "ALTER TABLE u RENAME CONSTRAINT u_id_fkey TO refers",
        "COMMIT",
        "BEGIN",
        "INSERT INTO u VALUES (9)",
        "ALTER TABLE u ALTER id TYPE numeric",
        "ROLLBACK",
        "BEGIN",
        "INSERT INTO u VALUES (9)",
        "DROP TABLE t CASCADE",
        "COMMIT",
    ),
    "foreign keys in a block": (
        "CREATE TABLE t (id integer PRIMARY KEY, a integer)",
        "INSERT INTO t VALUES (1, 1)",
        "BEGIN",
        "CREATE TABLE u (id integer REFERENCES t)",
        "ALTER TABLE t ADD b text DEFAULT 'x'",
        "INSERT INTO u VALUES (1)",
        "ALTER TABLE u ADD c integer REFERENCES t",
        "ALTER TABLE t DROP COLUMN a",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO u VALUES (2, 1)",
        "COMMIT",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO u VALUES (3)",
        "BEGIN",
        "ALTER TABLE t ADD c integer DEFAULT 5",
        "DELETE FROM t WHERE id = 2",
        "ROLLBACK",
        "BEGIN",
        "DROP TABLE t",
        "ROLLBACK",
        "BEGIN",
        "DROP TABLE t CASCADE",
        "INSERT INTO u VALUES (7)",
        "ROLLBACK",
        "INSERT INTO u VALUES (7)",
        "BEGIN",
        "ALTER TABLE u ADD d integer, ADD CONSTRAINT more FOREIGN KEY (d) REFERENCES t",
        "INSERT INTO u (d) VALUES (7)",
        "ROLLBACK",
        "DROP TABLE t, u",
    ),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_rows_refer_to_others_as_in_postgres(
    theirs: psycopg.Connection[Any], sparkless: Connection, script: str
) -> None:
    compare(sparkless, theirs, SCRIPTS[script])


TABLES = (
    "CREATE TABLE p (id integer PRIMARY KEY, a integer, b text, UNIQUE (b, a))",
    "CREATE UNIQUE INDEX pi ON p (a)",
    "CREATE TABLE c (p integer REFERENCES p ON DELETE SET NULL ON UPDATE RESTRICT DEFERRABLE, b text, a integer, "
    "CONSTRAINT ba FOREIGN KEY (a, b) REFERENCES p (a, b) MATCH FULL ON DELETE CASCADE ON UPDATE CASCADE, "
    "one integer CONSTRAINT one REFERENCES p (a) DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO p VALUES (1, 1, 'x')",
    "INSERT INTO c VALUES (1, 'x', 1, 1)",
)
#: What clients ask of foreign keys.
QUESTIONS = (
    "SELECT conname, contype::text, condeferrable, condeferred, convalidated, conrelid::regclass::text, "
    "confrelid::regclass::text, conindid::regclass::text, conkey, confkey, confupdtype::text, confdeltype::text, "
    "confmatchtype::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'",
    "SELECT constraint_name, constraint_type, is_deferrable, initially_deferred FROM "
    "information_schema.table_constraints WHERE table_name = 'c'",
    "SELECT constraint_name, unique_constraint_schema, unique_constraint_name, match_option, update_rule, delete_rule "
    "FROM information_schema.referential_constraints",
    "SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint "
    "FROM information_schema.key_column_usage WHERE table_name = 'c'",
    "SELECT constraint_name, table_name, column_name FROM information_schema.constraint_column_usage "
    "WHERE constraint_name IN ('c_p_fkey', 'ba', 'one')",
)
#: Statements that break foreign keys.
BREAKING = (
    "INSERT INTO c (p) VALUES (7)",
    "INSERT INTO c (a) VALUES (1)",
    "INSERT INTO c (a, b) VALUES (2, 'x')",
    "UPDATE c SET p = 8",
    "UPDATE p SET id = 3",
    "UPDATE p SET a = 9",
    "TRUNCATE p",
    "DROP TABLE p",
    "ALTER TABLE c ADD CONSTRAINT more FOREIGN KEY (one) REFERENCES c (p)",
    "ALTER TABLE c ADD q integer DEFAULT 5 REFERENCES p",
)


def test_catalogs_and_errors_tell_of_them_as_postgres_does(
    theirs: psycopg.Connection[Any], sparkless: Connection
) -> None:
    for statement in TABLES:
        assert outcome(sparkless, statement) == outcome(theirs, statement), statement
    for question in QUESTIONS:
        found = [tuple(one) for one in sparkless.execute(question).fetchall()]
        assert sorted(map(repr, found)) == sorted(map(repr, theirs.execute(question).fetchall())), question
    for statement in BREAKING:
        with pytest.raises(Error) as ours:
            sparkless.execute(statement)
        with pytest.raises(psycopg.Error) as said:
            theirs.execute(statement)
        error = said.value
        assert (ours.value.sqlstate, ours.value.message, ours.value.detail) == (
            error.sqlstate,
            error.diag.message_primary,
            error.diag.message_detail,
        ), statement
    ((_, text),) = sparkless.execute("SHOW CREATE TABLE c").fetchall()
    before = [sparkless.execute(one).fetchall() for one in QUESTIONS[1:3]]
    sparkless.execute("DROP TABLE c")
    sparkless.execute(str(text))
    assert [sparkless.execute(one).fetchall() for one in QUESTIONS[1:3]] == before


def test_definitions_tell_of_them_under_the_names_that_a_session_knows(sparkless: Connection) -> None:
    sparkless.execute("CREATE TEMPORARY TABLE p (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TEMPORARY TABLE c (p integer REFERENCES p)")
    sparkless.execute("BEGIN")
    sparkless.execute("CREATE TABLE q (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TABLE d (q integer REFERENCES q)")
    for table, other in (("c", "p"), ("d", "q")):
        ((_, text),) = sparkless.execute(f"SHOW CREATE TABLE {table}").fetchall()
        assert f"FOREIGN KEY ({other}) REFERENCES {other} (id)" in str(text)


def test_what_others_refer_to_keeps_its_values(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE p (v text PRIMARY KEY)")
    sparkless.execute("CREATE TABLE c (v text REFERENCES p)")
    sparkless.execute("INSERT INTO p VALUES ('abc')")
    sparkless.execute("INSERT INTO c VALUES ('abc')")
    with pytest.raises(UnsupportedForm):
        sparkless.execute("ALTER TABLE p ALTER v TYPE varchar(2) USING v::varchar(2)")
    assert sparkless.execute("SELECT v FROM p").fetchall() == [("abc",)]


def test_tables_that_refer_to_each_other_do_not_follow_each_other_for_ever(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping_references, "_MOST_UPDATES", 3)
    sparkless.execute("CREATE TABLE p (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TABLE c (id integer PRIMARY KEY REFERENCES p ON UPDATE CASCADE)")
    sparkless.execute("INSERT INTO p VALUES (1), (2)")
    sparkless.execute("INSERT INTO c VALUES (1), (2)")
    sparkless.execute("UPDATE p SET id = 3 - id")
    sparkless.execute("ALTER TABLE p ADD FOREIGN KEY (id) REFERENCES c ON UPDATE CASCADE")
    with pytest.raises(ProgramLimitExceeded):
        sparkless.execute("UPDATE p SET id = 3 - id")


def test_a_write_looks_at_no_table_that_has_nothing_to_do_with_its_own(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def as_named(names: Names, row: ObjectRow) -> ObjectRow:
        looked.append(row.id)
        return named(names, row)

    def looked_at() -> int:
        looked.clear()
        for statement in (
            "INSERT INTO p VALUES (1), (2)",
            "INSERT INTO c VALUES (1)",
            "DELETE FROM c",
            "DELETE FROM p",
        ):
            sparkless.execute(statement)
        return len(looked)

    named = Names.as_named
    monkeypatch.setattr(Names, "as_named", as_named)
    sparkless.execute("CREATE TABLE p (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TABLE c (p integer REFERENCES p)")
    before = looked_at()
    assert before
    sparkless.execute("CREATE TABLE other (id integer PRIMARY KEY)")
    for number in range(5):
        sparkless.execute(f"CREATE TABLE other_{number} (id integer REFERENCES other)")
    assert looked_at() == before


def test_one_that_is_not_enforced_is_shown_and_not_held(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE p (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TABLE c (p integer REFERENCES p ON DELETE CASCADE NOT ENFORCED)")
    sparkless.execute("INSERT INTO c VALUES (1)")
    sparkless.execute("INSERT INTO p VALUES (1)")
    sparkless.execute("DELETE FROM p")
    assert sparkless.execute("SELECT p FROM c").fetchall() == [(1,)]
    ((enforced, text),) = sparkless.execute(
        "SELECT conenforced, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
    ).fetchall()
    assert (enforced, text) == (False, "FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE NOT ENFORCED")
    (told,) = sparkless.execute(
        "SELECT enforced FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY'"
    ).fetchall()
    assert told == ("NO",)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Connection, Connection]]:
    """Two sessions, each with an engine of its own as two servers have, of a project with rows to refer to."""
    with opened(tmp_path) as one, opened(tmp_path) as other:
        one.execute("CREATE TABLE p (id integer PRIMARY KEY)")
        one.execute("INSERT INTO p VALUES (1), (2), (3)")
        one.execute("CREATE TABLE c (p integer REFERENCES p)")
        yield one, other


#: What a block does, what another session does meanwhile, and what that does behind the block's commit.
RACES = (
    (["DELETE FROM p WHERE id = 1"], ["INSERT INTO c VALUES (1)"]),
    (["INSERT INTO c VALUES (1)"], ["DELETE FROM p WHERE id = 1"]),
    (["UPDATE p SET id = 9 WHERE id = 1"], ["INSERT INTO c VALUES (1)"]),
    (["DELETE FROM p WHERE id = 1"], ["CREATE TABLE d (p integer REFERENCES p)", "INSERT INTO d VALUES (1)"]),
    (
        ["DELETE FROM p WHERE id = 1"],
        ["CREATE TABLE d (p integer)", "INSERT INTO d VALUES (1)", "ALTER TABLE d ADD FOREIGN KEY (p) REFERENCES p"],
    ),
    (["CREATE TABLE d (p integer REFERENCES p)", "INSERT INTO d VALUES (1)"], ["DELETE FROM p WHERE id = 1"]),
    (["TRUNCATE p, c"], ["CREATE TABLE d (p integer REFERENCES p)", "INSERT INTO d VALUES (1)"]),
    (
        ["ALTER TABLE c ADD q integer DEFAULT 1, ADD FOREIGN KEY (q) REFERENCES p", "INSERT INTO c VALUES (2)"],
        ["DELETE FROM p WHERE id = 1"],
    ),
)


@pytest.mark.parametrize(
    ("block", "meanwhile"),
    [pytest.param(*one, marks=pytest.mark.deep if number % 2 else ()) for number, one in enumerate(RACES)],
)
def test_of_a_row_that_goes_and_one_that_comes_to_refer_to_it_one_fails(
    two: tuple[Connection, Connection], block: list[str], meanwhile: list[str]
) -> None:
    one, other = two
    one.execute("BEGIN")
    for statement in block:
        one.execute(statement)
    for statement in meanwhile:
        other.execute(statement)
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")


def test_a_table_that_a_block_has_made_is_referred_to_from_its_commit_on(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("BEGIN; CREATE TABLE d (p integer REFERENCES p)")
    other.execute("BEGIN; DELETE FROM p WHERE id = 1")
    one.execute("COMMIT; INSERT INTO d VALUES (1)")
    with pytest.raises(SerializationFailure):
        other.execute("COMMIT")


def test_whoever_writes_and_whatever_goes_no_row_refers_to_none(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text('[writes]\ndeadline = "2 min"\n')
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE p (id integer PRIMARY KEY, up integer REFERENCES p ON DELETE CASCADE)")
        connection.execute("CREATE TABLE c (p integer NOT NULL REFERENCES p, by integer)")
        connection.execute("CREATE TABLE d (p integer REFERENCES p ON DELETE CASCADE)")
        connection.execute("INSERT INTO p VALUES (0, NULL), (1, 0), (2, 1), (3, 0)")
        done: list[str] = []

        def write(number: int) -> None:
            chance = random.Random(number)
            with opened(tmp_path) as own:
                for _ in range(6):
                    id = chance.randrange(4)
                    statement = chance.choice(
                        (
                            f"INSERT INTO c VALUES ({id}, {number})",
                            f"INSERT INTO d VALUES ({id})",
                            f"DELETE FROM p WHERE id = {id}",
                            f"INSERT INTO p VALUES ({id}, NULL) ON CONFLICT DO NOTHING",
                            f"DELETE FROM c WHERE by = {number}",
                        )
                    )
                    with suppress(ForeignKeyViolation):
                        own.execute(statement)
                        done.append(statement)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(120)
        assert done
        for child, column in (("c", "p"), ("d", "p"), ("p", "up")):
            lost = connection.execute(
                f"SELECT count(*) FROM {child} AS x WHERE {column} IS NOT NULL AND NOT EXISTS "
                f"(SELECT FROM p WHERE p.id = x.{column})"
            )
            assert lost.fetchall() == [(0,)], done


def cascade(root: str, kill: str) -> None:
    """Is the process: deletes a row and all that refer to it, and is killed."""
    with opened(Path(root)) as connection:
        os.environ[VARIABLE] = kill
        connection.execute("DELETE FROM p WHERE id = 1")


def test_rows_of_several_tables_go_at_one_time_or_stay_wherever_it_is_killed(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE p (id integer PRIMARY KEY)")
        connection.execute("CREATE TABLE c (p integer REFERENCES p ON DELETE CASCADE)")
        connection.execute("INSERT INTO p VALUES (1)")
        connection.execute("INSERT INTO c VALUES (1)")
        for kill, left in (("seal.in_transaction", 1), ("seal.sealed", 0)):
            process = forks().Process(target=cascade, args=(str(tmp_path), kill))
            process.start()
            process.join(60)
            assert process.exitcode == -9
            for table in ("p", "c"):
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(left,)]


def test_rows_of_files_and_of_programs_are_held_to_them(sparkless: Connection, tmp_path: Path) -> None:
    sparkless.execute("CREATE TABLE p (id integer PRIMARY KEY)")
    sparkless.execute("CREATE TABLE c (p integer REFERENCES p)")
    sparkless.execute("INSERT INTO p SELECT * FROM generate_series(1, 2000)")
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(map(str, range(1, 2002))))
    copy = f"COPY c FROM '{file}' (FORMAT CSV)"
    with pytest.raises(ForeignKeyViolation, match=r"Key \(p\)=\(2001\)"):
        sparkless.execute(copy)
    cursor = sparkless.cursor()
    with pytest.raises(ForeignKeyViolation, match=r"Key \(p\)=\(2001\)"):
        cursor.executemany("INSERT INTO c VALUES (?)", [(one,) for one in range(1, 2002)])
    sparkless.execute("INSERT INTO p VALUES (2001)")
    sparkless.execute(copy)
    cursor.executemany("INSERT INTO c VALUES (?)", [(one,) for one in range(1, 2002)])
    assert sparkless.execute("SELECT count(*) FROM c").fetchall() == [(4002,)]
    with pytest.raises(ForeignKeyViolation, match="is still referenced"):
        sparkless.execute("DELETE FROM p WHERE id > 1000")
