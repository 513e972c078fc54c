"""Cells as PostgreSQL's protocol writes and reads them: PostgreSQL itself says what is right."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import UNCONSTRAINED
from mz_dagster.wire import Server
from mz_dagster.wire.types import binary_of, parameter_of
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn

EXPRESSIONS = (
    "true, false, NULL::boolean",
    "1::smallint, (-2147483648)::integer, 9223372036854775807::bigint",
    "1.5::real, 0.1::double precision, 'NaN'::float8, '-Infinity'::float8, 1e300::float8, -0.0::float8",
    "1.50::numeric(10,2), 0.00::numeric(5,2), 10000::numeric(10,0), -12345.6789::numeric(20,4), 0.0001::numeric(10,4)",
    "'1e40'::numeric, 'NaN'::numeric, 1/3.0, 12345678901234567890123456789012345678901234567890::numeric",
    "'x'::text, 'äöü€𝄞', '', 'a'::char(3), 'ab'::varchar(5)",
    "'\\x00ff'::bytea, ''::bytea",
    "'2020-02-29'::date, '0001-01-01'::date, '9999-12-31'::date, 'infinity'::date, '-infinity'::date",
    "'2020-02-29 01:02:03.000456'::timestamp, '1999-12-31 23:59:59'::timestamp, 'infinity'::timestamp",
    "'2020-02-29 01:02:03.5+02'::timestamptz, '-infinity'::timestamptz, '1970-01-01 00:00:00+00'::timestamptz",
    "'00:00:00'::time, '23:59:59.999999'::time",
    "interval '1 year -2 days 03:04:05.678', interval '0', interval '-1 mon'",
    "'00000000-0000-0000-0000-0000000000ff'::uuid",
    '\'{"b": [1, 2.50, null], "a": "x"}\'::jsonb',
    "ARRAY[1, NULL, 3], ARRAY['a,b', NULL, '\"', ''], ARRAY[]::integer[], ARRAY[1.5, 2.0]",
    "ARRAY[[1, NULL], [3, 4]], '[0:1][2:2]={{a},{NULL}}'::text[], '[5:5]={1.5}'::float8[], '{}'::int[][]",
    "ARRAY['2020-01-01'::date], ARRAY[true, false], ARRAY[interval '1 day'], ARRAY['{}'::jsonb]",
)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_cells_are_sent_as_postgresql_sends_them(server: Server, postgres_server: Postgres, binary: bool) -> None:
    theirs = f"host={postgres_server.socket_dir} user={postgres_server.user} dbname={postgres_server.database}"
    with psycopg.connect(dsn(server)) as ours, psycopg.connect(theirs) as reference:
        reference.execute("SET timezone = 'UTC'")
        for sql in EXPRESSIONS:
            found = []
            for connection in (ours, reference):
                cursor = connection.cursor(binary=binary)
                cursor.execute(f"SELECT {sql}".encode())
                result = cursor.pgresult
                assert result is not None
                found.append([(result.ftype(i), result.get_value(0, i)) for i in range(result.nfields)])
            assert found[0] == found[1], sql


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_arrays_of_dimensions_come_as_parameters(server: Server, postgres_server: Postgres, binary: bool) -> None:
    form = "b" if binary else "t"
    theirs = f"host={postgres_server.socket_dir} user={postgres_server.user} dbname={postgres_server.database}"
    with psycopg.connect(dsn(server)) as ours, psycopg.connect(theirs) as reference:
        for type_, value in (
            ("int[]", [[1, 2], [3, None]]),
            ("int8[][]", [[[10**15]], [[-1]]]),
            ("int8[]", [7, None]),
            ("int8[][]", [7, None]),
            ("float8[]", [[0.5], [float("nan")]]),
            ("text[]", [["a", 'b "c"'], [None, ""]]),
            ("date[]", [[date(2020, 2, 29), None]]),
            ("int[][]", []),
        ):
            sql = f"SELECT (%{form}::{type_})::text, array_dims(%{form}::{type_})".encode()
            found = [one.execute(sql, [value, value]).fetchall() for one in (ours, reference)]
            assert found[0] == found[1], (type_, value)


def test_arrays_of_strings_of_any_length_come_as_parameters(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a varchar[], b varchar(3)[], c char(2)[])")
        sql = b"INSERT INTO t VALUES ($1, $2, $3) RETURNING *"
        for types in ((0, 0, 0), (1015, 1015, 1014)):
            result = connection.pgconn.exec_params(sql, [b"{a,NULL}", b"{b}", b"{c}"], types)
            assert [result.get_value(0, i) for i in range(3)] == [b"{a,NULL}", b"{b}", b'{"c "}'], result.error_message


@given(st.decimals(allow_nan=True, allow_infinity=True, places=None))
def test_numerics_in_binary_are_read_as_they_were_written(value: Decimal) -> None:
    value = value if value.is_finite() else Decimal("NaN") if value.is_nan() else value
    if value.is_finite() and abs(value.adjusted()) > 1000:
        return
    read = parameter_of(binary_of(value, UNCONSTRAINED), UNCONSTRAINED, binary=True)
    assert not isinstance(read, Literal)
    again = Decimal(str(read))
    assert again == value or (again.is_nan() and value.is_nan())
