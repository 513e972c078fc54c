"""Lists of many constants and long chains of operators: as PostgreSQL has them, here and by Spark, in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import process_time

import psycopg
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.errors import Error
from mz_dagster.sql import choices
from mz_dagster.sql.lexer import same_tokens
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.growth import calls, exponent
from tests.postgres_server import Postgres

ROWS = "(1, 'x', 1.50, '2024-01-01'), (2, 'y', -2, '2024-01-02'), (NULL, NULL, NULL, NULL), (2147483647, '', 0, NULL)"
TABLE = "CREATE TABLE t (a integer, b text, c numeric(8, 2), d date)"


def _numbers(n: int) -> str:
    return ", ".join(map(str, range(n)))


def _rows(listed: str) -> str:
    return ", ".join(f"({one})" for one in listed.split(", "))


def _floats(n: int) -> str:
    return ", ".join(f"{i}e-1" for i in range(-1, n - 1))


def _words(n: int) -> str:
    return ", ".join(f"'{chr(97 + i % 26)}{i // 26 or ''}'" for i in range(n))


def _days(n: int) -> str:
    return ", ".join(f"'{date.fromordinal(737_000 + i)}'" for i in range(n))


#: By what is long: a query of a length.
SHAPES: dict[str, Callable[[int], str]] = {
    "in": lambda n: f"SELECT a FROM t WHERE a IN ({_numbers(n)})",
    "in, as a value": lambda n: f"SELECT a IN ({_numbers(n)}) FROM t",
    "in, with NULL": lambda n: f"SELECT a, a IN ({_numbers(n)}, NULL) AS f FROM t",
    "not in": lambda n: f"SELECT a FROM t WHERE a NOT IN (-1, {_numbers(n)[3:]})",
    "not in, with NULL": lambda n: f"SELECT a NOT IN (NULL, {_numbers(n)}) FROM t",
    "in, of texts": lambda n: f"SELECT b FROM t WHERE b IN ({_words(n)})",
    "in, of bigints": lambda n: f"SELECT a FROM t WHERE a IN ({_numbers(n)}, 3000000000)",
    "in, of dates": lambda n: (
        f"SELECT d FROM t WHERE d IN ('2024-01-02', {', '.join(['date ' + repr('2025-01-01')] * n)})"
    ),
    "in, of numerics": lambda n: f"SELECT c FROM t WHERE c IN (1.5, 2.000, {', '.join(f'{i}.25' for i in range(n))})",
    "in, of expressions": lambda n: f"SELECT a FROM t WHERE a IN (length(b), {_numbers(n)})",
    "in, of numbers and texts": lambda n: (
        f"SELECT a FROM t WHERE a IN ('2', -1, +1, null, 2147483647, {_numbers(n)[3:]})"
    ),
    "in, of what is negative": lambda n: f"SELECT c FROM t WHERE c IN (-2.0, -2147483648, - 7, {_numbers(n)})",
    "in, of floats": lambda n: f"SELECT a FROM t WHERE a IN ({_numbers(n)}, 1e0, '2')",
    "in, of zeros": lambda n: f"SELECT a FROM t WHERE c::float8 * -1 IN ({_floats(n)})",
    "not in, of reals": lambda n: f"SELECT a, a::real * -0.1 NOT IN ({_floats(n)}) AS f FROM t",
    "any, of floats": lambda n: f"SELECT a FROM t WHERE c::float8 = ANY(ARRAY[{_floats(n)}]::float8[])",
    "in, of a float": lambda n: f"SELECT a FROM t WHERE a::float8 IN ('NaN', -0.0, 1e0, {_numbers(n)})",
    "in, of a cast": lambda n: (
        f"SELECT b FROM t WHERE b::varchar(3) IN ('xy', {_words(n)}) OR a::bigint IN ({_numbers(n)})"
    ),
    "in, of casts": lambda n: f"SELECT a FROM t WHERE a IN ({_numbers(n)}, '7'::bigint, cast('1' AS integer))",
    "in, of quotes": lambda n: f"SELECT b FROM t WHERE b || '''' IN ('x''', 'a, ''b', '(', ')', E'y\\'', {_words(n)})",
    "in, of NULLs": lambda n: f"SELECT a, a IN ({', '.join(['NULL'] * n)}) FROM t",
    "in, of a constant": lambda n: (
        f"SELECT 7 IN ({_numbers(n)}), '7' IN ({_numbers(n)}), NULL IN ({_numbers(n)}) FROM t"
    ),
    "in, of booleans": lambda n: f"SELECT a FROM t WHERE a > 1 IN (true, {_numbers(n)})",
    "in, of an aggregate": lambda n: (
        f"SELECT count(*) IN ({_numbers(n)}) FROM t GROUP BY b HAVING max(a) IN ({_numbers(n)})"
    ),
    "in, of a subquery": lambda n: (
        f"SELECT a FROM t WHERE (SELECT max(u.a) FROM t u WHERE u.b = t.b) IN ({_numbers(n)})"
    ),
    "in, of too long a number": lambda n: f"SELECT a IN ({_numbers(n)}, 3000000000, 1.5, 99999999999999999999) FROM t",
    "in, of no integer": lambda n: f"SELECT a IN ({_numbers(n)}, '1.5') FROM t",
    "in, of what cannot be compared": lambda n: f"SELECT b IN ({_words(n)}, 7) FROM t",
    "in, of padded strings": lambda n: (
        f"SELECT b FROM t WHERE b::char(4) IN ({_words(n)}, 'x  ') OR b::char(4) NOT IN ({_words(n)}, 'y ')"
    ),
    "in, of bounded strings": lambda n: (
        f"SELECT b, b::varchar(2) IN ({_words(n)}, 'x  ', 'y'), b::varchar(1) IN ({_words(n)}, NULL) FROM t"
    ),
    "in, of padded strings and numbers": lambda n: f"SELECT b FROM t WHERE b::char(4) IN ({_words(n)}, 7)",
    "in, of numbers where texts are": lambda n: f"SELECT b IN ({_numbers(n)}) FROM t",
    "any": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{_numbers(n)}])",
    "any, of texts": lambda n: f"SELECT b FROM t WHERE b = ANY(ARRAY[{_words(n)}, NULL])",
    "any, of a cast": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{_numbers(n)}, '7']::bigint[])",
    "any, of a cast that fails": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{_numbers(n)}, 99999]::smallint[])",
    "any, of numerics": lambda n: f"SELECT a FROM t WHERE c = ANY(ARRAY[1.5, -2.00, 1.505, {_numbers(n)}])",
    "any, of texts for a number": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{_words(n)}])",
    "any, of numbers and texts": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{_numbers(n)}, 'x'])",
    "an array": lambda n: f"SELECT (ARRAY[{_numbers(n)}, NULL, 7])[7], ARRAY[{_words(n)}] FROM t",
    "in, values": lambda n: f"SELECT a, a IN (VALUES {_rows(_numbers(n))}, (NULL)) FROM t",
    "in, values of numbers for a text": lambda n: f"SELECT b FROM t WHERE b IN (VALUES {_rows(_numbers(n))})",
    "in, values in an order": lambda n: f"SELECT a FROM t WHERE a IN (VALUES {_rows(_numbers(n))} ORDER BY 1 LIMIT 2)",
    "not in, values": lambda n: f"SELECT b FROM t WHERE b NOT IN (VALUES {_rows(_words(n)[5:])})",
    "all, values": lambda n: (
        f"SELECT c <> ALL (VALUES {_rows(_numbers(n))}), c > ANY ((VALUES {_rows('7, ' * n + '1')})) FROM t"
    ),
    "any, of a literal": lambda n: f"SELECT a, a = ANY('{{{_numbers(n)},NULL}}') FROM t",
    "all, of a literal": lambda n: (
        f"SELECT a, a <> ALL('{{{_numbers(n)[3:]}}}'), a <> ALL('{{ NULL,{_numbers(n)} }}') FROM t"
    ),
    "any, of quotes": lambda n: f'SELECT b FROM t WHERE b = ANY(\'{{"x", "NULL",{_numbers(n)}}}\')',
    "any, of no integer": lambda n: f"SELECT a = ANY('{{{_numbers(n)}, 1x}}') FROM t",
    "any, malformed": lambda n: f"SELECT a = ANY('{{{_numbers(n)},}}') FROM t",
    "all": lambda n: f"SELECT a FROM t WHERE a <> ALL(ARRAY[{_numbers(n)}])",
    "or": lambda n: "SELECT a FROM t WHERE " + " OR ".join(f"a + 0 = {i}" for i in range(n)),
    "or, of all kinds": lambda n: "SELECT a FROM t WHERE b > 'z' OR " + " OR ".join(f"a < {-i}" for i in range(n)),
    "and": lambda n: "SELECT a FROM t WHERE " + " AND ".join(f"a <> {i + 2}" for i in range(n)),
    "and, of bounds": lambda n: "SELECT a FROM t WHERE " + " AND ".join(f"a < {i + 2}" for i in range(n)),
    "sum": lambda n: f"SELECT {' + '.join(['c'] * n)} FROM t",
    "sum and difference": lambda n: f"SELECT {' + a - '.join(['1'] * n)} + a / a FROM t WHERE a <> 0",
    "concatenation": lambda n: f"SELECT {' || '.join(['b'] * n)} FROM t",
    "case": lambda n: f"SELECT CASE {' '.join(f'WHEN a = {i} THEN {i + 1}' for i in range(n))} ELSE a END FROM t",
    "coalesce": lambda n: f"SELECT coalesce({', '.join(['a'] * n)}, 7) FROM t",
    "an error at its end": lambda n: f"SELECT a {'+ 1' * n} FROM t WHERE a > 2",
}


#: Returns what PostgreSQL answers: rows, or an error's message.
Referee = Callable[[str], "list[str] | str"]


@pytest.fixture
def connection(tmp_path: Path, compiling_spark_config: SparkConfig) -> Iterator[Connection]:
    with Connection(
        Engine(Project.load(tmp_path), spark=compiling_spark_config), Isolation.STRICT_SERIALIZABLE
    ) as opened:
        opened.execute(TABLE)
        opened.execute(f"INSERT INTO t VALUES {ROWS}")
        yield opened


def _here(connection: Connection, query: str) -> list[str] | str:
    try:
        return sorted(map(repr, connection.execute(query).fetchall()))
    except Error as error:
        return error.message


@pytest.fixture(scope="module")
def referee(postgres: Postgres) -> Iterator[Referee]:
    with postgres.connect() as there, there.cursor() as cursor:
        cursor.execute(TABLE)
        cursor.execute(f"INSERT INTO t VALUES {ROWS}")

        def answer(query: str) -> list[str] | str:
            try:
                cursor.execute(query)
                return sorted(map(repr, cursor.fetchall()))
            except psycopg.Error as error:
                return str(error).partition("\n")[0]

        yield answer


@pytest.mark.parametrize("size", [90, pytest.param(200, marks=pytest.mark.deep)])
@pytest.mark.parametrize("shape", SHAPES)
def test_long_expressions_are_as_in_postgresql(connection: Connection, referee: Referee, shape: str, size: int) -> None:
    query = SHAPES[shape](size)
    assert _here(connection, query) == referee(query)


@pytest.mark.timeout(600)
@pytest.mark.deep
@pytest.mark.parametrize("first", range(12))
def test_spark_evaluates_long_expressions_as_well(
    connection: Connection, referee: Referee, set_budget: SetBudget, first: int
) -> None:
    set_budget(Budget.spark_alone())
    for shape, query in [*SHAPES.items()][first::12]:
        assert _here(connection, query(130)) == referee(query(130)), shape


#: Arms that are true, fail, or are never reached, and values that are NULL or fail.
CASES: dict[str, Callable[[int], str]] = {
    "searched": lambda n: (
        f"SELECT a, CASE {' '.join(f'WHEN a = {i} THEN {i + 1}' for i in range(n))} WHEN 1 / (a - 2147483647) = 1 "
        "THEN 0 ELSE a END FROM t WHERE a < 9 OR a IS NULL"
    ),
    "simple": lambda n: f"SELECT CASE a {' '.join(f'WHEN {i} THEN nullif({i}, 2)' for i in range(n))} END FROM t",
    "of a value that fails": lambda n: (
        f"SELECT CASE {' '.join(f'WHEN a = {i} THEN 1 / (a - {i + 1})' for i in range(n))} ELSE 1 / (a - 7) END FROM t"
    ),
    "that fails": lambda n: (
        f"SELECT CASE {' '.join(f'WHEN a = {i} THEN {i}' for i in range(3, n))} WHEN 1 / (a - 2) = 1 THEN 0 END FROM t"
    ),
}


@pytest.mark.parametrize("arms", [2_000, pytest.param(5_000, marks=pytest.mark.deep)])
def test_a_case_may_have_thousands_of_arms(connection: Connection, referee: Referee, arms: int) -> None:
    assert _here(connection, CASES["searched"](arms)) == referee(CASES["searched"](arms))


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_arms_in_groups_mean_what_they_mean_one_by_one(
    connection: Connection,
    referee: Referee,
    set_budget: SetBudget,
    monkeypatch: pytest.MonkeyPatch,
    by_spark: bool,
) -> None:
    set_budget(Budget.spark_alone() if by_spark else Budget.here_alone())
    monkeypatch.setattr(choices, "DEEPEST", 5)
    monkeypatch.setattr(choices, "GROUP", 3)
    for shape, query in CASES.items():
        assert _here(connection, query(20)) == referee(query(20)), shape


@pytest.mark.deep
def test_a_case_takes_time_by_its_arms(connection: Connection) -> None:
    def seconds(size: int) -> float:
        begin = process_time()
        _here(connection, CASES["simple"](size))
        return process_time() - begin

    assert exponent(seconds, (2_000, 4_000, 8_000, 16_000)) < 1.3, "linear, but for what the machine adds"


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_spark_looks_into_sets_of_many_constants(
    connection: Connection, referee: Referee, set_budget: SetBudget
) -> None:
    set_budget(replace(Budget.spark_alone(), literal_constants=100))
    for shape in ("in, with NULL", "not in, with NULL", "in, of texts", "in, of dates", "in, of numerics", "any"):
        assert _here(connection, SHAPES[shape](150)) == referee(SHAPES[shape](150)), shape
    begin = process_time()
    assert _here(connection, SETS["in"](70_000)) == referee(SETS["in"](70_000))
    assert process_time() - begin < 20, "a literal for each took half a minute"


#: More than Python reads.
DIGITS = "1" * 5_000


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT '{DIGITS}'::bigint",
        f"SELECT b::integer FROM (SELECT '-{DIGITS}' AS b) s",
        f"SELECT '{{1,{DIGITS}}}'::integer[]",
        f"SELECT '{DIGITS}:00:00'::interval",
        f"SELECT '2020-01-01 00:00+{DIGITS}'::timestamptz",
        f"SELECT format('%{DIGITS}s', b) FROM t",
        f"SELECT '{'0' * 5_000}7'::smallint",
    ],
)
def test_numbers_of_very_many_digits_are_as_in_postgresql(connection: Connection, referee: Referee, query: str) -> None:
    assert _here(connection, query) == referee(query)


def test_literals_of_very_many_digits_are_errors_of_the_statement(connection: Connection) -> None:
    for query in (
        f"SELECT '{DIGITS}'::mz_timestamp",
        f"SELECT a FROM t ORDER BY {DIGITS}",
        f"SELECT b::varchar({DIGITS}) FROM t",
    ):
        with pytest.raises(Error) as raised:
            connection.execute(query)
        assert raised.value.sqlstate in ("22003", "42704", "42601"), query


#: Of what is long in the same way, one is measured each time.
MEASURED = [
    pytest.param(one, marks=() if one in ("in", "sum") else pytest.mark.deep)
    for one in SHAPES
    if not one.startswith("in, of")
]


@pytest.mark.parametrize("least", [50, pytest.param(100, marks=pytest.mark.deep)])
@pytest.mark.parametrize("shape", MEASURED)
def test_long_expressions_take_time_by_their_length(connection: Connection, shape: str, least: int) -> None:
    def cost(size: int) -> float:
        return calls(lambda: _here(connection, SHAPES[shape](size)))

    cost(least)
    assert exponent(cost, (least, 2 * least, 4 * least), times=1) < 1.2


#: What is long, and looked for in a set.
SETS = {
    "in": lambda n: f"SELECT a FROM t WHERE a IN ({_numbers(n)})",
    "not in": lambda n: f"SELECT a FROM t WHERE a NOT IN ({_numbers(n)}, NULL)",
    "in, of texts": lambda n: f"SELECT b FROM t WHERE b IN ({_words(n)})",
    "in, of padded strings": lambda n: f"SELECT b FROM t WHERE b::char(9) IN ({_words(n)})",
    "in, of dates": lambda n: f"SELECT a FROM t WHERE d IN ({_days(n)})",
    "in, of floats": lambda n: f"SELECT a FROM t WHERE a::float8 * -0.5 IN ({_floats(n)})",
    "any": lambda n: f"SELECT a FROM t WHERE a = ANY('{{{_numbers(n)}}}')",
    "all": lambda n: f"SELECT a FROM t WHERE a <> ALL('{{{_numbers(n)}}}')",
}


@pytest.mark.parametrize(
    "shape",
    [pytest.param(one, marks=() if one in ("in, of texts", "any") else pytest.mark.deep) for one in SETS],
)
@pytest.mark.parametrize(("many", "most_s"), [(50_000, 10), pytest.param(100_000, 20, marks=pytest.mark.deep)])
def test_a_set_of_constants_takes_time_by_its_size(
    connection: Connection, shape: str, many: int, most_s: float
) -> None:
    def seconds(size: int) -> float:
        query = SETS[shape](size)
        begin = process_time()
        _here(connection, query)
        return process_time() - begin

    seconds(100)
    assert exponent(seconds, (1_000, 10_000), times=2) <= 1.2, "linear, but for what the machine adds"
    assert seconds(many) < most_s, "one by one 100,000 took a minute"


@pytest.mark.parametrize(("item", "position"), [("'1.5'", 1), ("'x'", 1), ("(SELECT", None)])
def test_an_error_in_a_list_of_constants_has_its_position(
    connection: Connection, referee: Referee, item: str, position: int | None
) -> None:
    before = f"SELECT a FROM t WHERE a IN ({_numbers(40)}, "
    with pytest.raises(Error) as found:
        connection.execute(f"{before}{item}, 7)")
    assert found.value.position is not None
    if position is not None:
        assert found.value.position == len(before) + position


def test_a_list_of_constants_stands_behind_in_alone(connection: Connection) -> None:
    with pytest.raises(Error, match="not supported"):
        connection.execute(f"SELECT position('a' IN ({_numbers(40)})) FROM t")


def test_a_list_of_constants_differs_in_white_space_only(connection: Connection) -> None:
    one, two = _numbers(40), _numbers(40).replace(", ", " ,\n")
    assert same_tokens(f"SELECT a IN ({one}, NULL)", f"select a in ( {two},null )")
    assert not same_tokens(f"SELECT a IN ({one})", f"SELECT a IN ({one}, 40)")
