"""Types with parentheses: what is cast or assigned to them is rounded, narrowed or refused, whichever way it comes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import DatabaseError, DataError, NotSupportedError, ProgrammingError


def test_literals_are_read_as_their_type_says(sparkless: Connection) -> None:
    row = sparkless.execute(
        "SELECT timestamp(3) '2020-01-01 00:00:00.1235', time(1) '10:00:00.25', interval '90' day,"
        " '90'::interval day, cast('1.005' AS numeric(3, 2)), interval(1) '0.25 seconds',"
        " timestamptz(0) '2020-01-01 00:00:00.5+01'"
    ).fetchone()
    assert row is not None
    shown = ["2020-01-01 00:00:00.124000", "10:00:00.300000", "90", "90", "1.01", "300000", "2019-12-31 23:00:01+00:00"]
    assert [str(getattr(one, "days", one) or one.microseconds) for one in row] == shown
    with pytest.raises(DataError, match="numeric field overflow"):
        sparkless.execute("SELECT '1000'::numeric(5, 2)")
    # What nobody asked to be rounded is not.
    sparkless.execute("CREATE TABLE t (a timestamp(3))")
    sparkless.execute("INSERT INTO t VALUES ('2020-01-01 00:00:00.1235')")
    assert sparkless.execute("SELECT a FROM t WHERE a = '2020-01-01 00:00:00.1235'").fetchall() == []
    assert len(sparkless.execute("SELECT a FROM t WHERE a = '2020-01-01 00:00:00.124'").fetchall()) == 1


def test_every_way_to_write_keeps_to_the_columns_types(sparkless: Connection, tmp_path: Path) -> None:
    sparkless.execute(
        "CREATE TABLE t (k integer PRIMARY KEY, n numeric(5, 2) DEFAULT 0.555, s timestamp(0), c time(1),"
        " i interval(0))"
    )
    sparkless.execute("INSERT INTO t VALUES (1, 1.005, '2020-01-01 00:00:00.5', '00:00:00.25', '0.5 seconds')")
    sparkless.cursor().executemany("INSERT INTO t (k, n) VALUES (?, ?)", [(2, "2.005"), (3, 3)])
    sparkless.execute("INSERT INTO t (k) SELECT 4")
    sparkless.execute("UPDATE t SET n = n * 1.5, s = s + interval '0.6 seconds' WHERE k = 1")
    sparkless.execute("INSERT INTO t VALUES (2, 9.999) ON CONFLICT (k) DO UPDATE SET n = excluded.n + 0.005")
    (tmp_path / "t.csv").write_text("5,5.555,2020-01-01 00:00:01.5,00:00:01.25,1.5 seconds\n")
    sparkless.execute(f"COPY t FROM '{tmp_path / 't.csv'}' (FORMAT CSV)")
    found = pa.table({
        "k": [6, 7], "n": pa.array([666, None], pa.int64()), "s": pa.array([1_500_000, None], pa.timestamp("us")),
        "c": pa.array([250_000, None], pa.time64("us")), "i": ["2.5 seconds", None],
    })  # fmt: skip
    pq.write_table(found, tmp_path / "t.parquet")
    sparkless.execute(f"COPY t FROM '{tmp_path / 't.parquet'}' (FORMAT PARQUET)")
    shown = sparkless.execute("SELECT k, n::text, s::text, c::text, i::text FROM t ORDER BY k").fetchall()
    assert shown == [
        (1, "1.52", "2020-01-01 00:00:02", "00:00:00.3", "00:00:01"),
        (2, "10.01", None, None, None),
        (3, "3.00", None, None, None),
        (4, "0.56", None, None, None),
        (5, "5.56", "2020-01-01 00:00:02", "00:00:01.3", "00:00:02"),
        (6, "666.00", "1970-01-01 00:00:01", "00:00:00.3", "00:00:03"),
        (7, None, None, None, None),
    ]
    (tmp_path / "long.csv").write_text("8,1000,,,\n")
    pq.write_table(pa.table({"k": [8], "n": [1000]}), tmp_path / "long.parquet")
    sparkless.execute("CREATE TABLE wide (n numeric(10, 2))")
    sparkless.execute("INSERT INTO wide VALUES (1000)")
    for statement in (
        "INSERT INTO t (k, n) VALUES (8, 1000)",
        "INSERT INTO t (k, n) VALUES (8, 999.995)",
        "INSERT INTO t (k, n) SELECT 8, n FROM wide",
        "UPDATE t SET n = 1000",
        "UPDATE t SET n = n + 999 WHERE k = 6",
        f"COPY t FROM '{tmp_path / 'long.csv'}' (FORMAT CSV)",
        f"COPY t (k, n) FROM '{tmp_path / 'long.parquet'}' (FORMAT PARQUET)",
        "ALTER TABLE wide ADD COLUMN m numeric(1, 0) DEFAULT 10",
    ):
        with pytest.raises(DataError, match=r"numeric field overflow|out of range for type numeric"):
            sparkless.execute(statement)


def test_elements_of_arrays_keep_to_their_type_whichever_way_they_come(sparkless: Connection, tmp_path: Path) -> None:
    sparkless.execute(
        "CREATE TABLE t (k integer, n numeric(4, 1)[], m numeric(4, 1)[][], s timestamp(0)[], v varchar(3)[])"
    )
    sparkless.execute(
        "INSERT INTO t VALUES (1, '{1.25}', '{{1.25}}', '{2020-01-01 00:00:00.5}', '{abc}'),"
        " (2, ARRAY[1.25], ARRAY[[1.25]], ARRAY[timestamp '2020-01-01 00:00:00.5'], ARRAY['abc  '])"
    )
    sparkless.execute("INSERT INTO t (k, n, m) VALUES (3, ?, ?)", ([Decimal("1.25")], [[Decimal("1.25")]]))
    sparkless.execute("INSERT INTO t (k, n, s) SELECT 4, array_agg(k * 1.25), array_agg(s[1]) FROM t WHERE k = 1")
    (tmp_path / "t.csv").write_text("5,{1.25},{{1.25}},{2020-01-01 00:00:00.5},{abc}\n")
    sparkless.execute(f"COPY t FROM '{tmp_path / 't.csv'}' (FORMAT CSV)")
    moments = pa.array([[1_577_836_800_500_000]], pa.list_(pa.timestamp("us")))
    pq.write_table(pa.table({"k": [6], "n": [[Decimal("1.3")]], "s": moments}), tmp_path / "t.parquet")
    sparkless.execute(f"COPY t (k, n, s) FROM '{tmp_path / 't.parquet'}' (FORMAT PARQUET)")
    shown = sparkless.execute("SELECT k, n::text, m::text, s::text, v::text FROM t ORDER BY k").fetchall()
    later = '{"2020-01-01 00:00:01"}'
    assert shown == [
        (1, "{1.3}", "{{1.3}}", later, "{abc}"),
        (2, "{1.3}", "{{1.3}}", later, "{abc}"),
        (3, "{1.3}", "{{1.3}}", None, None),
        (4, "{1.3}", None, later, None),
        (5, "{1.3}", "{{1.3}}", later, "{abc}"),
        (6, "{1.3}", None, later, None),
    ]
    (tmp_path / "long.csv").write_text("8,{12345},,,\n")
    pq.write_table(pa.table({"k": [8], "n": [[12345]]}), tmp_path / "long.parquet")
    for statement in (
        "INSERT INTO t (k, n) VALUES (8, '{12345}')",
        "INSERT INTO t (k, n) VALUES (8, ARRAY[12345])",
        "INSERT INTO t (k, m) VALUES (8, ARRAY[[1, 12345]])",
        "INSERT INTO t (k, n) SELECT 8, array_agg(k + 12344) FROM t WHERE k = 1",
        "UPDATE t SET n = array_append(n, 999.96) WHERE k = 1",
        f"COPY t FROM '{tmp_path / 'long.csv'}' (FORMAT CSV)",
        f"COPY t (k, n) FROM '{tmp_path / 'long.parquet'}' (FORMAT PARQUET)",
        "SELECT (n || 12345::numeric)::numeric(4, 1)[] FROM t WHERE k = 1",
        "SELECT * FROM json_to_record('{\"n\": [12345]}') AS x (n numeric(4, 1)[])",
    ):
        with pytest.raises(DataError, match=r"numeric field overflow|out of range for type numeric"):
            sparkless.execute(statement)
    with pytest.raises(DataError, match="numeric field overflow"):
        sparkless.execute("INSERT INTO t (k, n) VALUES (8, ?)", ([Decimal(12345)],))
    for value in ("'NaN'::numeric(4, 1)", "'{NaN}'::numeric(4, 1)[]", "'NaN'::text::numeric(4, 1)",
                  "'NaN'::numeric::numeric(4, 1)", "'NaN'::float8::numeric(4, 1)",
                  "(SELECT n FROM json_to_record('{\"n\": [\"NaN\"]}') AS x (n numeric(4, 1)[]))"):  # fmt: skip
        with pytest.raises(DatabaseError, match="declare the column, as numeric without"):
            sparkless.execute(f"SELECT {value}")
    assert sparkless.execute(
        'SELECT n::text FROM json_to_record(\'{"n": ["NaN", 1.5]}\') AS x (n numeric[])'
    ).fetchall() == [("{NaN,1.5}",)]
    with pytest.raises(DataError, match=r"declare, a type like integer\[\]\[\]"):
        sparkless.execute("SELECT * FROM json_to_record('{\"n\": [[1], [2]]}') AS x (n integer[])")
    with pytest.raises(DataError, match="too long"):
        sparkless.execute("INSERT INTO t (k, v) SELECT k, ARRAY['abcd'] FROM t")
    # Types are equal whatever their modifiers, but each cast does what its own says.
    query = "SELECT m::numeric(3, 1)[], m::numeric(9, 0)[], n::numeric(9, 0)[], n::numeric(2, 0)[] FROM t WHERE k = 1"
    assert sparkless.execute(query).fetchall() == [([[Decimal("1.3")]], [[Decimal(1)]], [Decimal(1)], [Decimal(1)])]


def test_columns_show_their_types_as_they_were_written(sparkless: Connection) -> None:
    sparkless.execute(
        "CREATE TABLE t (n numeric(5, 2), s timestamp(3) with time zone, c time(0), i interval day to second(2),"
        " m numeric, v varchar, w varchar[])"
    )
    types = ["numeric(5,2)", "timestamptz(3)", "time(0)", "interval day to second(2)", "numeric"]
    types += ["character varying", "character varying[]"]

    def shown(of: str) -> dict[str, str]:
        return {name: type_ for name, _, type_ in sparkless.execute(f"SHOW COLUMNS FROM {of}").fetchall()}

    assert shown("t") == dict(zip("nscimvw", types, strict=True))
    listed = "SELECT c.name, c.type FROM mz_columns AS c JOIN mz_tables AS t ON t.id = c.id WHERE t.name = 't'"
    assert dict(sparkless.execute(listed).fetchall()) == shown("t")
    sparkless.execute("ALTER TABLE t ADD COLUMN z timestamp(1)")
    assert shown("t") == dict(zip("nscimvwz", [*types, "timestamp(1)"], strict=True))
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT n, n + 1 AS p, max(s) AS s, z::timestamp(2) AS z FROM t "
                      "GROUP BY n, z")  # fmt: skip
    assert shown("v") == {"n": "numeric(5,2)", "p": "numeric(38,2)", "s": "timestamptz", "z": "timestamp(2)"}
    sparkless.execute("CREATE TABLE copied AS SELECT n, z FROM t")
    assert shown("copied") == {"n": "numeric(5,2)", "z": "timestamp(1)"}
    with pytest.raises(DataError, match="overflow"):
        sparkless.execute("INSERT INTO copied VALUES (1000, NULL)")


def test_a_sum_has_more_digits_than_its_column_wherever_it_stands(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (k integer, n numeric(4, 2))")
    sparkless.execute("INSERT INTO t VALUES (1, 99.99), (1, 99.98), (2, 99.97)")
    query = (
        "SELECT (SELECT sum(n) FROM t), (SELECT round(avg(n), 2) FROM t), (SELECT sum(DISTINCT n) FROM t),"
        " (SELECT sum(n) FILTER (WHERE k = 1) FROM t), (SELECT sum(n) FROM t u WHERE u.k = o.k),"
        " (SELECT max(s) FROM (SELECT sum(n) OVER (ORDER BY n) AS s FROM t) w), sum(o.n) FROM t o GROUP BY k"
    )
    sparkless.execute(f"CREATE MATERIALIZED VIEW v (a, b, c, d, e, f, g) AS {query}")
    sparkless.execute("INSERT INTO t VALUES (2, 99.96)")
    every = [Decimal("399.90"), Decimal("99.98"), Decimal("399.90"), Decimal("199.97")]
    expected = [
        (*every, Decimal("199.97"), Decimal("399.90"), Decimal("199.97")),
        (*every, Decimal("199.93"), Decimal("399.90"), Decimal("199.93")),
    ]
    assert sparkless.execute(f"{query} ORDER BY k").fetchall() == expected
    assert sorted(sparkless.execute("SELECT * FROM v").fetchall(), reverse=True) == expected


@pytest.mark.parametrize(
    "value",
    [
        "date '0044-03-15 BC'", "timestamp '10000-01-01'", "timestamptz '4714-11-24 BC'", "make_date(-44, 3, 15)",
        "d - 1", "d - interval '1 day'", "date '9999-12-31' + 1", "d::timestamp - interval '1 second'",
    ],
)  # fmt: skip
def test_moments_beyond_the_years_1_to_9999_are_errors(sparkless: Connection, value: str) -> None:
    sparkless.execute("CREATE TABLE t (d date)")
    sparkless.execute("INSERT INTO t VALUES ('0001-01-01')")
    with pytest.raises(DatabaseError, match="out of range"):
        sparkless.execute(f"SELECT {value} FROM t")


def test_an_array_as_written_is_compared_element_by_element_whatever_it_is_cast_to(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (i integer, a numeric)")
    sparkless.execute("INSERT INTO t VALUES (1, 1.0), (2, 2.50), (3, NULL), (4, 'NaN')")
    assert sparkless.execute("SELECT i FROM t WHERE a = ANY (ARRAY[1, 2.5]::numeric[]) ORDER BY i").fetchall() == [
        (1,),
        (2,),
    ]
    query = "SELECT a <> ALL (ARRAY[1, NULL]::numeric[]), a > ANY (ARRAY[i, 2]::numeric[]) FROM t ORDER BY i"
    assert sparkless.execute(query).fetchall() == [(False, False), (None, True), (None, None), (None, True)]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (
            "CREATE SOURCE u (a time(3)[]) FROM FILES (FOLDER 'in', PATTERN '*.csv') FORMAT CSV",
            NotSupportedError,
            r"time\(3\)\[\] of a source",
        ),
        ("CREATE TABLE u (a interval day to year)", ProgrammingError, "no such type of intervals"),
        ("CREATE TABLE u (a timestamp(1, 2))", ProgrammingError, "invalid type modifier"),
        ("CREATE TABLE u (a numeric(39, 2))", ProgrammingError, "between 1 and 38"),
        (
            "CREATE SOURCE u (a timestamp(3)) FROM FILES (FOLDER 'in', PATTERN '*.csv') FORMAT CSV",
            NotSupportedError,
            "of a source",
        ),
    ],
)
def test_what_is_no_type_is_refused(
    sparkless: Connection, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sparkless.execute(statement)
