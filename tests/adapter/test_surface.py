"""The statements around queries: names, lists, definitions, files; none of them needs Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.catalog import NameTaken, StillNeeded
from mz_dagster.errors import DataError, Error, IntegrityError, NotSupportedError, OperationalError, ProgrammingError
from mz_dagster.scalars.values import Interval
from mz_dagster.sql.errors import StatementTooComplex
from tests.adapter.evaluated import evaluate_peeks


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection that starts no Spark."""
    evaluate_peeks(monkeypatch)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def rows(connection: Connection, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Returns a query's rows in an order that does not depend on the engine."""
    return sorted(connection.execute(sql, parameters).fetchall(), key=repr)


# ---- names


def test_a_renamed_object_is_the_same_under_another_name(connection: Connection) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer)")
    execute("CREATE VIEW v AS SELECT t.a FROM t WHERE t.a > 0")
    execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    execute("CREATE INDEX ON t (a)")
    execute("INSERT INTO t VALUES (1)")
    id = connection.engine.collection_of("t")
    for kind, old, new in (
        ("TABLE", "t", "renamed"), ("VIEW", "v", '"V"'), ("MATERIALIZED VIEW", "m", "n"), ("INDEX", "t_a_idx", "i"),
    ):  # fmt: skip
        assert execute(f"ALTER {kind} {old} RENAME TO {new}").tag == f"ALTER {kind}"
        with pytest.raises(ProgrammingError, match=f'"{old}" does not exist'):
            execute(f"ALTER {kind} {old} RENAME TO x")
        assert execute(f"ALTER {kind} IF EXISTS {old} RENAME TO x").tag == f"ALTER {kind}"
    assert connection.engine.collection_of("renamed") == id
    assert rows(connection, 'SELECT renamed.a FROM renamed, "V"') == [(1,)]
    assert [name for name, _ in rows(connection, "SHOW OBJECTS")] == ["V", "i", "n", "renamed"]
    execute("INSERT INTO renamed VALUES (2)")
    assert rows(connection, 'SELECT * FROM "V"') == [(1,), (2,)]
    with pytest.raises(ProgrammingError, match='relation "t" does not exist'):
        execute("SELECT t.a FROM t")
    execute("CREATE TABLE t (b text)")  # the name is free, and what was bound to the old object does not notice
    assert rows(connection, 'SELECT a FROM "V"') == [(1,), (2,)]


def test_a_name_that_is_taken_or_of_another_kind_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    for name in ("t", "v"):
        with pytest.raises(NameTaken):
            connection.execute(f"ALTER TABLE t RENAME TO {name}")
    with pytest.raises(ProgrammingError, match='"t" is not a view') as caught:
        connection.execute("ALTER VIEW t RENAME TO w")
    assert caught.value.hint == "It is a table."
    assert caught.value.position == 12


def test_alter_table_renames_views_as_in_postgresql(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    connection.execute("ALTER TABLE v RENAME TO w")
    assert [name for name, _ in rows(connection, "SHOW VIEWS")] == ["w"]


@pytest.mark.parametrize("restrict", ["", " RESTRICT"])
def test_several_objects_are_dropped_together_or_not_at_all(connection: Connection, restrict: str) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer)")
    execute("CREATE VIEW v AS SELECT a FROM t")
    execute("CREATE VIEW w AS SELECT a FROM v")
    execute("CREATE VIEW other AS SELECT 1 AS a")
    with pytest.raises(StillNeeded, match='cannot drop "v"'):
        execute(f"DROP VIEW other, v{restrict}")
    with pytest.raises(ProgrammingError, match='view "nothing" does not exist'):
        execute(f"DROP VIEW other, nothing{restrict}")
    with pytest.raises(ProgrammingError, match='"t" is not a view'):
        execute(f"DROP VIEW IF EXISTS other, t{restrict}")
    assert [name for name, _ in rows(connection, "SHOW VIEWS")] == ["other", "v", "w"]
    assert execute(f"DROP VIEW IF EXISTS nothing, v, w{restrict}").tag == "DROP VIEW"  # each needs only the other
    assert [name for name, _ in rows(connection, "SHOW OBJECTS")] == ["other", "t"]
    execute("DROP TABLE t CASCADE")
    assert [name for name, _ in rows(connection, "SHOW OBJECTS")] == ["other"]


def test_what_does_not_exist_is_reported_alike_everywhere(connection: Connection) -> None:
    connection.execute("CREATE TABLE flights (a integer)")
    for statement in (
        "SELECT * FROM flihts", "INSERT INTO flihts VALUES (1)", "DELETE FROM flihts", "UPDATE flihts SET a = 1",
        "COPY flihts FROM 'x' (FORMAT CSV)", "SHOW COLUMNS FROM flihts", "SHOW INDEXES ON flihts", "EXPLAIN flihts",
        "CREATE VIEW v AS SELECT * FROM flihts", "CREATE INDEX ON flihts", "SELECT * FROM elsewhere.flights",
        "DELETE FROM elsewhere.flights",
    ):  # fmt: skip
        with pytest.raises(ProgrammingError, match=r'relation "(flihts|elsewhere.flights)" does not exist') as caught:
            connection.execute(statement)
        assert caught.value.sqlstate == "42P01"
        assert caught.value.hint == 'Perhaps you meant "flights".'
        assert caught.value.position == max(statement.find("flihts"), statement.find("elsewhere")) + 1


@pytest.mark.deep
def test_depth_has_a_limit_that_nobody_reaches_by_hand(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1), (70)")
    nested = "".join(f"(a = {n} OR " for n in range(25)) + "a = 70" + ")" * 25
    assert rows(connection, f"SELECT a FROM t WHERE {nested}") == [(1,), (70,)]
    for deep in ("(" * 1000 + "a" + ")" * 1000, " + ".join(["a"] * 5000)):
        with pytest.raises(StatementTooComplex) as caught:
            connection.execute(f"SELECT {deep} FROM t")
        assert caught.value.hint == "Split it into views or CTEs."


# ---- lists and definitions


def test_show_create_gives_the_names_of_today(connection: Connection) -> None:
    execute = connection.execute
    written = {
        "TABLE t": "CREATE TABLE t (a integer, b text)",
        "VIEW v": "CREATE VIEW v AS WITH t AS (SELECT a FROM public.t WHERE t.a > 0) SELECT t.a, x.b FROM t, t AS y, "
        "(SELECT b FROM (SELECT 1) one CROSS JOIN public.t) x",
        "VIEW p": "CREATE VIEW p AS SELECT t.a, u.b FROM t JOIN t u ON u.a = t.a -- t\nWHERE t.b = 't'",
        "INDEX t_a_idx": "CREATE INDEX ON t (a)",
        "INDEX i": "CREATE INDEX i ON p",
    }
    for statement in written.values():
        execute(statement)
    shown = {what: rows(connection, f"SHOW CREATE {what}")[0][1] for what in written}
    assert shown == written
    execute('ALTER TABLE t RENAME TO "T"')
    execute("ALTER VIEW p RENAME TO q")
    assert {
        what: rows(connection, f"SHOW CREATE {what}")[0][1]
        for what in ('TABLE "T"', "VIEW v", "VIEW q", "INDEX t_a_idx", "INDEX i")
    } == {
        'TABLE "T"': 'CREATE TABLE "T" (a integer, b text)',
        "VIEW v": 'CREATE VIEW v AS WITH t AS (SELECT a FROM "T" AS t WHERE t.a > 0) SELECT t.a, x.b FROM t, t AS y, '
        '(SELECT b FROM (SELECT 1) one CROSS JOIN "T" AS t) x',
        "VIEW q": 'CREATE VIEW q AS SELECT t.a, u.b FROM "T" AS t JOIN "T" u ON u.a = t.a -- t\nWHERE t.b = \'t\'',
        "INDEX t_a_idx": 'CREATE INDEX t_a_idx ON "T" (a)',
        "INDEX i": "CREATE INDEX i ON q",
    }
    with pytest.raises(ProgrammingError, match='"v" is not a table'):
        execute("SHOW CREATE TABLE v")


def test_lists_are_filtered_by_like_and_where(connection: Connection) -> None:
    for name in ("t_1", "tx1", "u"):
        connection.execute(f"CREATE TABLE {name} (a integer NOT NULL, b text)")
    connection.execute("CREATE VIEW v AS SELECT a FROM u")
    names = [name for name, _ in rows(connection, "SHOW TABLES LIKE 't_1'")]
    assert names == ["t_1", "tx1"]
    assert [name for name, _ in rows(connection, r"SHOW TABLES LIKE 't\_%'")] == ["t_1"]
    assert rows(connection, "SHOW OBJECTS WHERE type = 'view'") == [("v", "view")]
    assert [name for name, _ in rows(connection, "SHOW OBJECTS WHERE name IN (?, ?)", "u", "v")] == ["u", "v"]
    assert rows(connection, "SHOW COLUMNS FROM u WHERE nullable = 'NO'") == [("a", "NO", "integer")]
    with pytest.raises(ProgrammingError, match='column "colour" does not exist') as caught:
        connection.execute("SHOW TABLES WHERE colour = 'red'")
    assert caught.value.position == 19


def test_explain_takes_what_exists_and_what_would(connection: Connection) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer, b integer)")
    execute("CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    execute("CREATE INDEX i ON v")

    def plan(what: str) -> str:
        lines = [line for (line,) in execute(f"EXPLAIN {what}").fetchall()]
        # Who computes is told behind it; of what is maintained already that is another, as its arrangements are there.
        end = lines.index("engine: auto") - 1 if "engine: auto" in lines else len(lines)
        return "\n".join(lines[:end])

    query = "SELECT a, count(*) AS n FROM t GROUP BY a"
    physical = plan(f"PHYSICAL PLAN FOR {query}")
    assert "writes per step" in physical
    execute("INSERT INTO t VALUES (1, 1), (1, 2), (2, 3)")
    assert plan(query).splitlines()[-1] == "rows expected: arrangement:1 about 3, output about 1"
    physical = plan(f"PHYSICAL PLAN FOR {query}")
    for same in ("v", "VIEW v", f"CREATE MATERIALIZED VIEW m AS {query}", f"CREATE VIEW w AS {query}", "INDEX i"):
        assert plan(same) == plan(query)
        assert plan(f"PHYSICAL PLAN FOR {same}") == physical
        assert plan(f"OPTIMIZED PLAN FOR {same}") + "\n\n" + physical == plan(query)
    assert [name for name, _ in rows(connection, "SHOW OBJECTS")] == ["i", "t", "v"]
    with pytest.raises(ProgrammingError, match='"t" is no view') as caught:
        execute("EXPLAIN t")
    assert caught.value.position == 9


# ---- many rows


def test_executemany_of_an_insert_is_one_batch(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer NOT NULL, b text)")
    catalog = connection.engine.catalog
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t VALUES (?, ?), (?, upper('x'))", [(n, str(n), -n) for n in range(50)])
    assert (cursor.rowcount, cursor.tag, cursor.description) == (100, "INSERT 0 100", None)
    id = connection.engine.collection_of("t")
    (batch,) = catalog.live_batches([id])[id]
    assert batch.stats.rows == 100
    expected = [(n, str(n)) for n in range(50)] + [(-n, "X") for n in range(50)]
    assert rows(connection, "SELECT * FROM t") == sorted(expected, key=repr)
    before = catalog.read_ts("default")
    with pytest.raises(IntegrityError):
        cursor.executemany("INSERT INTO t VALUES (?, 'y')", [(1,), (None,)])
    with pytest.raises(ProgrammingError, match="1 values for 2 parameters"):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2,)])
    assert len(rows(connection, "SELECT * FROM t")) == 100
    assert catalog.read_ts("default") == before
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [])
    assert cursor.rowcount == 0


def test_executemany_of_what_reads_is_done_set_by_set(connection: Connection) -> None:
    cursor = connection.execute("CREATE TABLE t (a integer, b integer)")
    cursor.executemany("INSERT INTO t VALUES (?, 0)", [(1,), (2,), (3,)])
    cursor.executemany("UPDATE t SET a = a + ? WHERE a < 3", [(1,), (1,)])
    assert (cursor.rowcount, cursor.tag) == (3, "UPDATE 3")
    assert rows(connection, "SELECT a FROM t") == [(3,)] * 3
    cursor.executemany("DELETE FROM t WHERE a = ?", [(3,), (4,)])
    assert cursor.rowcount == 3
    for statement in ("SELECT a FROM t WHERE a = ?", "INSERT INTO t VALUES (?, 1) RETURNING a"):
        with pytest.raises(ProgrammingError, match="executemany") as caught:
            cursor.executemany(statement, [(1,)])
        assert caught.value.hint


# ---- parameters

#: By type, values that a parameter gives and a read returns, and what else may be given for them.
VALUES: dict[str, tuple[object, dict[object, object]]] = {
    "boolean": (True, {"yes": True}),
    "smallint": (-3, {"-3": -3}),
    "bigint": (2**63 - 1, {}),
    "double precision": (0.1, {1: 1.0, "1e-3": 0.001}),
    "numeric(38, 2)": (Decimal("1.50"), {2: Decimal("2.00"), "2.005": Decimal("2.01")}),
    "text": ("it's", {}),
    "varchar(3)": ("abc", {"ab   ": "ab "}),
    "date": (date(2024, 2, 29), {"2024-02-29": date(2024, 2, 29)}),
    "time": (time(1, 2, 3, 4), {"01:02": time(1, 2)}),
    "timestamp": (datetime(2024, 2, 29, 1, 2, 3, 4), {date(2024, 2, 29): datetime(2024, 2, 29)}),
    "timestamptz": (datetime(2024, 2, 29, tzinfo=UTC), {"2024-02-29 01:00+01": datetime(2024, 2, 29, tzinfo=UTC)}),
    "interval": (
        Interval(1, 2, 3),
        {timedelta(days=1, hours=1): Interval(0, 1, 3_600_000_000), "1 mon": Interval(1)},
    ),
    "bytea": (b"\x00\xff", {bytearray(b"a").hex(): b"61", "\\x61": b"a"}),
    "uuid": (UUID(int=7), {str(UUID(int=7)): UUID(int=7)}),
    "integer[]": ([1, None, 3], {"{1,NULL}": [1, None]}),
    "text[]": (["a", None, 'b"'], {}),
    "numeric(38, 1)[]": ([Decimal("1.0"), Decimal("2.5")], {}),
}


def test_parameters_of_every_type_come_back(connection: Connection) -> None:
    for number, (kind, (value, others)) in enumerate(VALUES.items()):
        table = f"t{number}"
        connection.execute(f"CREATE TABLE {table} (a {kind})")
        connection.execute(f"INSERT INTO {table} VALUES (?), (?)", (value, None))
        assert connection.execute(f"SELECT a FROM {table} WHERE a IS NOT NULL").fetchall() == [(value,)], kind
        ((found,),) = connection.execute(f"SELECT CAST(? AS {kind})", (value,)).fetchall()
        assert found == value, kind
        assert type(found) is type(value), kind
        for given, expected in others.items():
            ((found,),) = connection.execute(f"INSERT INTO {table} VALUES (?) RETURNING a", (given,)).fetchall()
            assert found == expected, (kind, given)


def test_a_parameter_has_the_type_of_its_python_value(connection: Connection) -> None:
    given: list[object] = [
        1, 2**31, 2**63, -(2**31), 1.5, Decimal("1.50"), "x", date(2024, 1, 1), time(1), timedelta(1), b"x",
        UUID(int=1), {"b": [1, None], "a": {"x": "\u00e9"}}, [1, 2**40], ["x"], [1, 1.5], [Decimal("1.5"), 2], [],
    ]  # fmt: skip
    cursor = connection.execute(f"SELECT {', '.join('?' * len(given))}", given)
    assert [one[1] for one in cursor.description or ()] == [
        "integer", "bigint", "numeric(38,0)", "integer", "double precision", "numeric(38,2)", "text", "date", "time",
        "interval", "bytea", "uuid", "jsonb", "bigint[]", "text[]", "double precision[]", "numeric(38,1)[]", "text",
    ]  # fmt: skip
    row = cursor.fetchone()
    assert row is not None
    assert row[12] == '{"a": {"x": "\u00e9"}, "b": [1, null]}'
    assert row[13:] == ([1, 2**40], ["x"], [1.0, 1.5], [Decimal("1.5"), Decimal("2.0")], "{}")


@pytest.mark.parametrize(
    "given", [object(), {1, 2}, (1, 2), time(1, tzinfo=ZoneInfo("Europe/Berlin")), [1, "x"], {"a": b"x"}]
)
def test_a_parameter_that_no_type_holds_is_refused(connection: Connection, given: object) -> None:
    with pytest.raises(Error) as caught:
        connection.execute("SELECT 1, ?", (given,))
    assert caught.value.position == 11
    assert caught.value.hint


# ---- files


def test_copy_reads_csv_as_postgres_does(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE TABLE t (a integer NOT NULL, b text, c numeric(38, 2), d timestamp)")
    (tmp_path / "t.csv").write_text(
        'a,b,c,d\n1,,1.005,2024-02-29 01:02:03.5\n2,"",,\n 3 ,"x,""y""\nz",-0.5,2024-01-01\n4,a"b,c"d,7,\n'
    )
    assert connection.execute("COPY t FROM 't.csv' WITH (FORMAT CSV, HEADER MATCH)").tag == "COPY 4"
    assert rows(connection, "SELECT * FROM t") == sorted(
        [
            (1, None, Decimal("1.01"), datetime(2024, 2, 29, 1, 2, 3, 500000)),
            (2, "", None, None),
            (3, 'x,"y"\nz', Decimal("-0.50"), datetime(2024, 1, 1)),
            (4, "ab,cd", Decimal("7.00"), None),
        ],
        key=repr,
    )
    connection.execute("DELETE FROM t")
    (tmp_path / "p.csv").write_text("7|'x\\'y'\r\n8|-\r\n9|'-'\r\n")
    connection.execute("COPY t (a, b) FROM 'p.csv' (FORMAT CSV, DELIMITER '|', QUOTE '''', ESCAPE '\\', NULL '-')")
    assert rows(connection, "SELECT a, b, c FROM t") == sorted(
        [(7, "x'y", None), (8, None, None), (9, "-", None)], key=repr
    )
    id = connection.engine.collection_of("t")
    assert connection.engine.catalog.live_batches([id])[id][-1].stats.rows == 3


@pytest.mark.parametrize(
    ("text", "kind", "message", "detail"),
    [
        ("1\n", DataError, 'missing data for column "b"', "line 1"),
        ("1,x\n\n", DataError, 'missing data for column "b"', "line 2"),
        ("1,x,y\n", DataError, "extra data after last expected column", "line 1"),
        ('1,x\n2,"y\n', DataError, "unterminated CSV quoted field", "line 2"),
        ('1,"x\n\ny"\n2,z\r\n', DataError, "unquoted carriage return found in data", "line 4"),
        ('1,"x\n"\nk,z\n', DataError, 'invalid input syntax for type integer: "k"', 'line 3, column "a"'),
        ("99999999999,x\n", DataError, 'value "99999999999" is out of range for type integer', 'line 1, column "a"'),
        (",x\n", IntegrityError, 'null value in column "a" of relation "t" violates not-null constraint', None),
        ("\xff,x\n", DataError, "is not UTF-8", "byte 1"),
        ("1,x\n2,y\0\n", DataError, 'invalid byte sequence for encoding "UTF8": 0x00', "line 2"),
    ],
)
def test_copy_writes_all_of_a_file_or_nothing(
    connection: Connection, tmp_path: Path, text: str, kind: type[Error], message: str, detail: str | None
) -> None:
    connection.execute("CREATE TABLE t (a integer NOT NULL, b text)")
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(kind) as caught:
        connection.execute("COPY t FROM 't.csv' (FORMAT CSV)")
    assert message in caught.value.message
    assert detail is None or detail in str(caught.value.detail)
    assert caught.value.hint
    assert rows(connection, "SELECT * FROM t") == []


def test_copy_reads_parquet_by_name(connection: Connection, tmp_path: Path) -> None:
    connection.execute(
        "CREATE TABLE t (a smallint NOT NULL, b text, c numeric(38, 2), d date, e timestamptz, f real, g bigint)"
    )
    whole = {
        "e": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
        "extra": pa.array([1, 2]),
        "a": pa.array([1, -2], pa.int64()),
        "b": pa.array(["x", None]).dictionary_encode(),
        "c": pa.array([Decimal("1.5"), None], pa.decimal128(9, 1)),
        "d": pa.array([date(2024, 2, 29), None]),
        "f": pa.array([0.5, None], pa.float32()),
    }
    pq.write_table(pa.table(whole), tmp_path / "t.parquet")
    with pytest.raises(DataError, match='has no column "g"') as caught:
        connection.execute("COPY t FROM 't.parquet' (FORMAT PARQUET)")
    assert "List the table's columns" in str(caught.value.hint)
    assert connection.execute("COPY t (a, b, c, d, e, f) FROM 't.parquet' (FORMAT PARQUET)").rowcount == 2
    assert rows(connection, "SELECT * FROM t") == sorted(
        [
            (1, "x", Decimal("1.50"), date(2024, 2, 29), datetime(2024, 1, 1, tzinfo=UTC), 0.5, None),
            (-2, None, None, None, None, None, None),
        ],
        key=repr,
    )
    for column, values, message in (
        ("a", pa.array([1, 2**40]), 'a value of column "a" is out of range for type smallint'),
        ("a", pa.array(["1", "2"]), 'column "a" of the file is of type string, which does not hold smallint'),
        ("c", pa.array([Decimal("1.005"), None]), 'a value of column "c" is out of range'),
        ("e", pa.array([datetime(2024, 1, 1), None]), "which does not hold timestamptz"),
        ("b", pa.array(["x", "y\0"]), 'invalid byte sequence for encoding "UTF8"'),
        ("b", pa.array([b"x", b"\xff"]).view(pa.string()), 'invalid byte sequence for encoding "UTF8"'),
        ("d", pa.array([2**30, None], pa.int32()).cast(pa.date32()), "out of range for type date"),
    ):
        pq.write_table(pa.table(whole | {column: values}), tmp_path / "bad.parquet")
        with pytest.raises(DataError) as refused:
            connection.execute("COPY t (a, b, c, d, e, f) FROM 'bad.parquet' (FORMAT PARQUET)")
        assert message in refused.value.message
        assert refused.value.hint
    assert len(rows(connection, "SELECT * FROM t")) == 2


def test_copy_says_what_it_could_not_open(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    (tmp_path / "t.txt").write_text("1\n")
    for file, format_ in (("nothing.csv", "CSV"), ("nothing.parquet", "PARQUET"), ("t.txt", "PARQUET"), (".", "CSV")):
        with pytest.raises(OperationalError) as caught:
            connection.execute(f"COPY t FROM '{file}' (FORMAT {format_})")
        assert str(tmp_path) in caught.value.message
        assert caught.value.hint
        assert not caught.value.may_have_taken_effect
    with pytest.raises(ProgrammingError, match='cannot change "v"'):
        connection.execute("COPY v FROM 't.txt' (FORMAT CSV)")
    with pytest.raises(ProgrammingError, match='column "z" of relation "t" does not exist'):
        connection.execute("COPY t (z) FROM 't.txt' (FORMAT CSV)")
    with pytest.raises(NotSupportedError, match="this format of COPY") as refused:
        connection.execute("COPY t FROM 't.txt'")
    assert refused.value.hint
