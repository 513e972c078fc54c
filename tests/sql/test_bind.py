"""Names, types, nullability and keys of bound queries, as PostgreSQL has them."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import optimize
from mz_dagster.plan.relation import Constant, TopK
from mz_dagster.plan.relation import Projection as Projection
from mz_dagster.sql import (
    AsOf,
    BoundChange,
    ColumnOrder,
    Delete,
    Insert,
    SqlText,
    Update,
    bind_as_of,
    bind_definition,
    bind_delete,
    bind_insert,
    bind_predicate,
    bind_update,
    ordered_rows,
    parse,
)
from mz_dagster.sql.circumstances import Circumstances
from tests.sql.project import Project, T, bind


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT a, A AS x, b FROM T", ["a integer NOT NULL", "x integer NOT NULL", "b integer"]),
        ("SELECT 1, 3000000000, 1.50, 'x', NULL, true", [
            "?column? integer NOT NULL", "?column? bigint NOT NULL", "?column? numeric(38,2) NOT NULL",
            "?column? text NOT NULL", "?column? text", "bool boolean NOT NULL"]),
        ("SELECT -2147483648, -9223372036854775808", ["?column? integer NOT NULL", "?column? bigint NOT NULL"]),
        ("SELECT a / 2, a + 1.5, a % 2, -a FROM t", [
            "?column? integer NOT NULL", "?column? numeric(38,1) NOT NULL", "?column? integer NOT NULL",
            "?column? integer NOT NULL"]),
        ("SELECT upper(c), coalesce(b, 0), nullif(a, 1), greatest(a, b) FROM t", [
            "upper text", "coalesce integer NOT NULL", "nullif integer", "greatest integer NOT NULL"]),
        ("SELECT CASE WHEN f THEN 1 END, CASE WHEN f THEN 1 ELSE b END, CASE a WHEN 1 THEN 'x' ELSE 'y' END FROM t", [
            "case integer", "b integer", "case text NOT NULL"]),
        ("SELECT a::bigint, b::text, '1'::int8, CAST('1.5' AS numeric(10,1)), DATE '2020-01-01', c::varchar FROM t", [
            "a bigint NOT NULL", "b text", "int8 bigint NOT NULL", "numeric numeric(10,1) NOT NULL",
            "date date NOT NULL", "c text"]),
        ("SELECT extract(year FROM e), substring(c FROM 2), trim(c), position('x' IN c) FROM t", [
            "extract numeric(38,0)", "substring text", "btrim text", "position integer"]),
        ("SELECT a = 1, b IS NULL, b IS DISTINCT FROM 1, f IS NOT TRUE, f, NOT f, c LIKE 'x%' FROM t", [
            "?column? boolean NOT NULL", "?column? boolean NOT NULL", "?column? boolean NOT NULL",
            "?column? boolean NOT NULL", "f boolean", "?column? boolean", "?column? boolean"]),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", ["a bigint NOT NULL"]),
        ("SELECT 1 AS n UNION ALL SELECT NULL UNION ALL SELECT '3'", ["n integer"]),
        ("VALUES (1, 'a'), (2.5, NULL)", ["column1 numeric(38,1) NOT NULL", "column2 text"]),
        ("SELECT * FROM t JOIN u USING (a)", [
            "a bigint NOT NULL", "b integer", "c text", "d numeric(38,2)", "e date", "f boolean", "x text",
            "ts timestamp"]),
        ("SELECT v.* FROM t x (k), v", ["k integer NOT NULL", "a integer", "g double precision"]),
        ("SELECT * FROM (VALUES (1, 'x')) AS q (n, s) JOIN v ON v.a = q.n", [
            "n integer NOT NULL", "s text NOT NULL", "k integer NOT NULL", "a integer", "g double precision"]),
        ("WITH q (p) AS (SELECT a, b FROM t) SELECT * FROM q", ["p integer NOT NULL", "b integer"]),
        ("WITH t AS (SELECT 1 AS one) SELECT * FROM t", ["one integer NOT NULL"]),
        ("SELECT (SELECT count(*) FROM t), ((SELECT a AS x FROM u LIMIT 1)), EXISTS (SELECT 1), (VALUES (1)),"
         " (SELECT k FROM v UNION SELECT 1), (SELECT a FROM u LIMIT 1)::text, (SELECT 1 + 1)", [
            "count bigint NOT NULL", "x bigint", "exists boolean NOT NULL", "column1 integer NOT NULL", "k integer",
            "a text", "?column? integer NOT NULL"]),
        ("SELECT (SELECT x.* FROM (SELECT k FROM v) x), (WITH c (q) AS (SELECT k FROM v) TABLE c), ((SELECT * FROM"
         " (SELECT k FROM v) x))::text, (SELECT y.* FROM generate_series(1, 1) y)", [
            "k integer", "q integer", "k text", "y integer"]),
        ("SELECT e + 1, e - e, e > '2020-01-01' FROM t", ["?column? date", "?column? integer", "?column? boolean"]),
    ],
)  # fmt: skip
def test_output_columns_are_postgresqls(query: str, columns: list[str]) -> None:
    assert [str(column) for column in bind(query).relation_type.columns] == columns


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT a, b FROM t", {("a",)}),
        ("SELECT b FROM t", set()),
        ("SELECT t.a, v.k FROM t, v", {("a", "k")}),
        ("SELECT v.k, t.b FROM v JOIN t ON t.a = v.a", set()),
        ("SELECT 1 AS one", {()}),
        ("SELECT a FROM t UNION ALL SELECT a FROM t", set()),
    ],
)
def test_keys_are_only_those_that_hold(query: str, keys: set[tuple[str, ...]]) -> None:
    relation_type = bind(query).relation_type
    assert {tuple(relation_type.names[i] for i in sorted(key)) for key in relation_type.keys} == keys


def test_monotonic_is_inherited_from_sources() -> None:
    assert bind("SELECT a, x FROM u WHERE x = 'y' UNION ALL VALUES (1, 'z')").relation_type.monotonic
    assert not bind("SELECT a FROM t").relation_type.monotonic
    assert not bind("SELECT u.a FROM u, t").relation_type.monotonic


def test_names_and_dependencies_are_those_used() -> None:
    project = Project()
    project.add_view("live", "SELECT a, b FROM t WHERE f")
    bound = bind("SELECT live.a FROM LIVE, public.v", project=project)
    assert bound.names == {"live": GlobalId("u6"), "public.v": GlobalId("u3")}
    assert bound.depends == {GlobalId("u6"), GlobalId("u3")}
    assert bound.timeline == "demo"


def test_a_constant_query_has_no_timeline() -> None:
    assert bind("SELECT 1").timeline is None


def test_parameters_are_literals_of_their_types() -> None:
    moment = datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    values = (1, 2**40, -(2**31), 1.5, Decimal("1.50"), "x", True, None, date(2020, 1, 1), moment)
    bound = bind("SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", values)
    assert [str(column.type) for column in bound.relation_type.columns] == [
        "integer", "bigint", "integer", "double precision", "numeric(38,2)", "text", "boolean", "text", "date",
        "timestamptz",
    ]  # fmt: skip
    assert isinstance(bound.relation, Constant)
    assert bound.relation.rows[0][9].value == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_text_parameter_takes_the_type_of_its_context() -> None:
    assert str(bind("SELECT a FROM t WHERE e = ?", ("2020-01-01",)).relation).count("2020, 1, 1") == 1
    with pytest.raises(Error, match="invalid input syntax for type integer"):
        bind("SELECT a FROM t WHERE a = ?", ("x",))


def test_finishing_holds_order_limit_and_hidden_columns() -> None:
    bound = bind("SELECT a, b AS q FROM t ORDER BY q DESC, e NULLS FIRST, 1 LIMIT 3 OFFSET ?", (1,))
    finishing = bound.finishing
    assert finishing.order == (ColumnOrder(1, True, True), ColumnOrder(2, False, True), ColumnOrder(0, False, False))
    assert (finishing.limit, finishing.offset, finishing.project) == (3, 1, (0, 1))
    assert bound.relation_type.names == ("a", "q")
    assert bound.relation.relation_type.arity == 3


def test_rows_are_ordered_nulls_last_and_by_bytes() -> None:
    finishing = bind("SELECT c FROM t ORDER BY c LIMIT 4").finishing
    assert ordered_rows([("é",), (None,), ("b",), ("B",), ("a",)], finishing) == [("B",), ("a",), ("b",), ("é",)]


@pytest.mark.parametrize("order", ["b DESC", "a + 1", "2"])
def test_an_order_at_the_end_of_a_definition_is_without_effect(order: str) -> None:
    bound = bind_definition(SqlText(f"SELECT a, b FROM t ORDER BY {order}"), (), Project())
    without = bind_definition(SqlText("SELECT a, b FROM t"), (), Project())
    assert (bound.relation, bound.relation_type) == (without.relation, without.relation_type)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.a FROM (SELECT a FROM t {}) x ORDER BY x.a LIMIT 1",
        "WITH x AS (SELECT a, b FROM t {}) SELECT sum(a), array_agg(b ORDER BY b) FROM x",
        "(SELECT a FROM t {}) UNION ALL SELECT b FROM t",
        "SELECT rank() OVER (), count(*) OVER (), row_number() OVER (ORDER BY a) FROM (SELECT a FROM t {}) x",
        "SELECT EXISTS (SELECT a FROM t {0}), 1 IN (SELECT a FROM t {0})",
    ],
)
def test_an_order_within_a_query_is_without_effect(query: str) -> None:
    bound, without = bind(query.format("ORDER BY b DESC")), bind(query.format(""))
    assert (optimize(bound.relation), bound.finishing) == (optimize(without.relation), without.finishing)


def test_an_order_at_the_end_of_a_definition_is_checked() -> None:
    with pytest.raises(Error) as caught:
        bind_definition(SqlText("SELECT a FROM t ORDER BY nowhere"), (), Project())
    assert (caught.value.sqlstate, caught.value.position) == ("42703", 26)


def test_a_definition_may_end_in_a_limit() -> None:
    bound = bind_definition(SqlText("SELECT a FROM t ORDER BY b DESC, 1 LIMIT 3 OFFSET 1"), (), Project())
    assert (bound.finishing.order, bound.finishing.limit, bound.finishing.offset) == ((), None, 0)
    assert isinstance(bound.relation, Projection)
    top = bound.relation.input
    assert isinstance(top, TopK)
    assert (top.group, top.limit, top.offset) == ((), 3, 1)
    assert top.order == (ColumnOrder(1, True, True), ColumnOrder(0, False, False))


@pytest.mark.parametrize(
    ("query", "columns", "sqlstate"),
    [
        ("SELECT a, a FROM t", (), "42701"),
        ("SELECT a, b FROM t", ("x", "x"), "42701"),
        ("SELECT a FROM t", ("x", "y"), "42601"),
        ("SELECT a AS mz_diff FROM t", (), "42P16"),
    ],
)
def test_a_definition_has_usable_column_names(query: str, columns: tuple[str, ...], sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        bind_definition(SqlText(query), columns, Project())
    assert caught.value.sqlstate == sqlstate


def test_a_definition_renames_its_first_columns() -> None:
    assert bind_definition(SqlText("SELECT a, b FROM t"), ("x",), Project()).relation_type.names == ("x", "b")


def insert(text: str, params: tuple[object, ...] = ()) -> Constant:
    (statement,) = parse(text)
    assert isinstance(statement, Insert)
    relation = bind_insert(statement, T, Project(), params=params).relation
    assert isinstance(relation, Constant)
    return relation


def test_inserted_rows_are_literals_cast_by_assignment() -> None:
    rows = insert(
        "INSERT INTO t (d, a, e, f, c) VALUES (1, 2.5, '2020-01-01', 't', 7), (?, -1, NULL, false, 'x')", ("1.005",)
    ).rows
    assert [[cell.value for cell in row] for row in rows] == [
        [3, None, "7", Decimal("1.00"), date(2020, 1, 1), True],
        [-1, None, "x", Decimal("1.01"), None, False],
    ]
    assert all(cell.type == column.type for row in rows for cell, column in zip(row, T.columns, strict=True))


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("INSERT INTO t (b) VALUES (1)", "23502"),
        ("INSERT INTO t (a) VALUES (NULL)", "23502"),
        ("INSERT INTO t (a, zz) VALUES (1, 2)", "42703"),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "42701"),
        ("INSERT INTO t (a) VALUES (1, 2)", "42601"),
        ("INSERT INTO t (a, b) VALUES (1)", "42601"),
        ("INSERT INTO t (a) VALUES (true)", "42804"),
        ("INSERT INTO t (a) VALUES ('x')", "22P02"),
    ],
)
def test_rows_that_do_not_fit_are_refused(text: str, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        insert(text)
    assert caught.value.sqlstate == sqlstate


def test_inserted_rows_need_no_order() -> None:
    (ordered, plain) = (parse(f"INSERT INTO t (a) SELECT b FROM t{order}")[0] for order in (" ORDER BY a", ""))
    assert isinstance(ordered, Insert)
    assert isinstance(plain, Insert)
    assert bind_insert(ordered, T, Project()).relation == bind_insert(plain, T, Project()).relation


def test_delete_binds_its_predicate_under_the_alias() -> None:
    (statement,) = parse("DELETE FROM t AS x WHERE x.a = ? AND b IS NULL")
    assert isinstance(statement, Delete)
    bound = bind_delete(statement, T, Project(), params=(3,))
    assert bound.old.relation_type.names == T.names
    assert (bound.matches, bound.joins) == (None, False)


def test_update_gives_the_old_row_and_the_whole_new_one() -> None:
    (statement,) = parse("UPDATE t SET b = a + 1, c = NULL WHERE f")
    assert isinstance(statement, Update)
    bound = bind_update(statement, T, Project())
    assert bound.matches is not None
    old, new = (bound.matches.relation_type.columns[i : i + T.arity] for i in (0, T.arity))
    assert [column.type for column in new] == [column.type for column in old] == [column.type for column in T.columns]


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("UPDATE t SET b = 1, c = nope WHERE f", "nope"),
        ("UPDATE t SET b = 1, zz = 2 WHERE f", "zz"),
        ("UPDATE t AS x SET b = v.k FROM v WHERE x.a = v.a AND wrong = 1", "wrong"),
        ("UPDATE t AS x SET b = v.k FROM nowhere, v WHERE true", "nowhere"),
        ("UPDATE t SET b = 1, b = 2", "b = 2"),
        ("DELETE FROM t AS x USING v AS y WHERE a = 1", "a = 1"),
        ("DELETE FROM t WHERE b = 1 AND a", "a"),
        ("DELETE FROM t AS x USING v x", "v x"),
        ("DELETE FROM t USING LATERAL (SELECT t.b AS n) q WHERE q.n = 1", "t.b"),
        ("DELETE FROM t USING v, generate_series(1, t.b) g", "t.b"),
        ("UPDATE t AS x SET b = 1 FROM LATERAL (SELECT x.b AS n) q", "x.b"),
    ],
)
def test_an_error_of_a_write_blames_the_statements_own_text(text: str, blamed: str) -> None:
    with pytest.raises(Error) as caught:
        change(text)
    assert caught.value.position == text.rindex(blamed) + 1


def change(text: str) -> BoundChange:
    (statement,) = parse(text)
    if isinstance(statement, Update):
        return bind_update(statement, T, Project())
    assert isinstance(statement, Delete)
    return bind_delete(statement, T, Project())


def test_a_scalar_over_columns_blames_its_own_text() -> None:
    with pytest.raises(Error) as caught:
        bind_predicate(T, SqlText("a = zz", offset=100), table="t")
    assert caught.value.position == 105


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("5", 5),
        ("'5'", 5),
        ("1.0", 1),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", 1500),
        ("'1970-01-02'", 86_400_000),
        ("DATE '1970-01-02'", 86_400_000),
        ("?", 7),
        ("'9'::mz_timestamp", 9),
    ],
)
def test_a_time_is_milliseconds(text: str, time: int) -> None:
    assert bind_as_of(AsOf(SqlText(text)), params=(7,)) == time


@pytest.mark.parametrize(("text", "before"), [("now()", 0), ("now() - interval '1 hour'", 3_600_000), ("now() - ?", 7)])
def test_a_time_goes_by_the_clock_of_its_statement(text: str, before: int) -> None:
    circumstances = Circumstances(clock=datetime(1970, 1, 2, tzinfo=UTC))
    found = bind_as_of(AsOf(SqlText(text)), params=(timedelta(milliseconds=7),), circumstances=circumstances)
    assert found == 86_400_000 - before


@pytest.mark.parametrize("text", ["NULL", "-1", "1.2", "now()", "7/0", "'x'", "true", "a", "1, 2"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Error):
        bind_as_of(AsOf(SqlText(text)))
