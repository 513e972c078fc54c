"""Resolution of functions, operators and casts is PostgreSQL's: by its manual, and by asking it."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest

from docs import functions
from mz_dagster.functions import (
    FUNCTIONS,
    OVERLOADS,
    UNKNOWN,
    Cast,
    CastContext,
    Failure,
    Resolved,
    Unknown,
    cast,
    common_type,
    literal_of,
    numeric_literal,
    resolve_date_trunc,
    resolve_extract,
    resolve_function,
    resolve_operator,
)
from mz_dagster.functions.signature import ArgumentType, type_name
from mz_dagster.scalars.scalar import Call, ColumnRef
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNCONSTRAINED,
    Kind,
    ScalarType,
    numeric,
)
from tests.postgres_server import Postgres

TYPES = (BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, numeric(2), TEXT, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL)


def answer(resolved: Resolved | Failure) -> str:
    """The result's type as PostgreSQL calls it, or `!` and the SQLSTATE."""
    if isinstance(resolved, Failure):
        return f"!{resolved.sqlstate}"
    type_ = resolved.result_type
    return "numeric" if type_.kind is Kind.NUMERIC else type_name(type_)


def test_operators_resolve_to_the_types_postgres_resolves_to(postgres: Postgres) -> None:
    arguments: list[ArgumentType] = [*TYPES, UNKNOWN]
    asked: list[tuple[str, ArgumentType, ArgumentType]] = [
        (operator, left, right)
        for operator in ("=", "<", "+", "-", "*", "/", "%", "||")
        for left, right in itertools.product(arguments, arguments)
    ]

    def null(type_: ArgumentType) -> str:
        return "NULL" if isinstance(type_, Unknown) else f"NULL::{'numeric' if type_.kind is Kind.NUMERIC else type_}"

    theirs = postgres.attempt([f"pg_typeof({null(left)} {operator} {null(right)})" for operator, left, right in asked])
    wrong = []
    for (operator, left, right), other in zip(asked, theirs, strict=True):
        ours = answer(resolve_operator(operator, [left, right]))
        assert other is not None
        expected = other[1:] if other[0] == "=" else other[:6]
        # What we refuse must be refused as such; PostgreSQL has types that we do not.
        if ours != expected and ours != "!0A000" and expected != "jsonb" and "[]" not in expected:
            wrong.append(f"{type_name(left)} {operator} {type_name(right)}: {ours}, PostgreSQL {other}")
    assert not wrong, "\n".join(wrong)


def test_common_types_are_those_of_postgres(postgres: Postgres) -> None:
    pairs = list(itertools.product(TYPES, TYPES))
    sql = {type_: "numeric" if type_.kind is Kind.NUMERIC else str(type_) for type_ in TYPES}
    theirs = postgres.attempt([f"pg_typeof(coalesce(NULL::{sql[a]}, NULL::{sql[b]}))" for a, b in pairs])
    for (a, b), other in zip(pairs, theirs, strict=True):
        ours = common_type([a, b], "COALESCE")
        assert other is not None
        if isinstance(ours, Failure):
            assert f"!{ours}" == other
        else:
            assert f"={'numeric' if ours.kind is Kind.NUMERIC else type_name(ours)}" == other, (a, b)


def test_casts_exist_in_the_contexts_of_postgres(postgres: Postgres) -> None:
    pairs = [(a, b) for a, b in itertools.product(TYPES, TYPES) if a != b]
    names = {type_: "numeric" if type_.kind is Kind.NUMERIC else type_name(type_) for type_ in TYPES}
    wrong = []
    context = (
        "(SELECT coalesce((SELECT castcontext::text FROM pg_cast WHERE castsource = '{0}'::regtype AND"
        " casttarget = '{1}'::regtype), CASE WHEN '{1}' = 'text' THEN 'a' WHEN '{0}' = 'text' THEN 'e' END))"
    )
    theirs = postgres.attempt([context.format(names[a], names[b]) for a, b in pairs])
    for (a, b), other in zip(pairs, theirs, strict=True):
        ours = None
        for letter, where in (("i", CastContext.IMPLICIT), ("a", CastContext.ASSIGNMENT), ("e", CastContext.EXPLICIT)):
            found = cast(a, b, where)
            if isinstance(found, Cast) or found.sqlstate == "0A000":
                ours = "refused" if isinstance(found, Failure) else f"={letter}"
                break
        if ours not in (other, "refused"):
            wrong.append(f"{a} -> {b}: {ours}, PostgreSQL {other}")
    assert not wrong, "\n".join(wrong)


def test_a_missing_function_says_so_as_postgres_does(postgres: Postgres) -> None:
    asked = {
        "nosuch(1, 'a'::text)": resolve_function("nosuch", [INT4, TEXT]),
        "1 + true": resolve_operator("+", [INT4, BOOL]),
        "length(1)": resolve_function("length", [INT4]),
        "- 'a'::text": resolve_operator("-", [TEXT]),
        "'1' + '2'": resolve_operator("+", [UNKNOWN, UNKNOWN]),
        "'1' * '2'": resolve_operator("*", [UNKNOWN, UNKNOWN]),
        "- '1'": resolve_operator("-", [UNKNOWN]),
        "mod('1', '2')": resolve_function("mod", [UNKNOWN, UNKNOWN]),
        "'1' % true": resolve_operator("%", [UNKNOWN, BOOL]),
        "1 LIKE 2": resolve_operator("like", [INT4, INT4]),
        "1::int8::int4 AND true": resolve_operator("and", [INT4, BOOL]),
    }
    for sql, ours in asked.items():
        assert isinstance(ours, Failure)
        assert postgres.attempt([sql]) == [f"!{ours}"]


def test_a_call_is_built_with_its_arguments_cast() -> None:
    resolved = resolve_operator("+", [INT4, Unknown("7")])
    assert isinstance(resolved, Resolved)
    call = resolved.apply([ColumnRef(0, INT4, nullable=False), Unknown("7")])
    assert isinstance(call, Call)
    assert (call.function, str(call.type), call.nullable) == ("add_int4", "integer", False)
    mixed = resolve_operator("=", [INT4, numeric(2)])
    assert isinstance(mixed, Resolved)
    call = mixed.apply([ColumnRef(0, INT4), ColumnRef(1, numeric(2))])
    assert isinstance(call, Call)
    assert [str(argument.type) for argument in call.arguments] == ["numeric(38,0)", "numeric(38,2)"]
    failure = resolved.apply([ColumnRef(0, INT4), Unknown("x")])
    assert str(failure) == '22P02 invalid input syntax for type integer: "x"'


@pytest.mark.parametrize(
    ("operator", "left", "right", "scale"),
    [("+", 2, 10, 10), ("*", 2, 10, 12), ("/", 2, 10, 20), ("/", 25, 0, 25), ("%", 2, 10, 10), ("-", 0, 3, 3)],
)
def test_scales_are_fixed_when_bound(operator: str, left: int, right: int, scale: int) -> None:
    resolved = resolve_operator(operator, [numeric(left), numeric(right)])
    assert isinstance(resolved, Resolved)
    assert resolved.result_type == numeric(scale)


def test_what_has_no_scale_that_is_known_is_unconstrained() -> None:
    found = [
        resolve_operator("*", [numeric(20), numeric(20)]),
        resolve_operator("/", [numeric(38), numeric(2)]),
        resolve_function("round", [numeric(4), INT4]),
        resolve_operator("+", [UNCONSTRAINED, INT4]),
        resolve_operator("-", [numeric(2), Unknown("1e-39")]),
        resolve_operator("/", [numeric(0), INT4], [Decimal(12345678901234567890), 123]),
    ]
    assert [isinstance(one, Resolved) and one.result_type for one in found] == [UNCONSTRAINED] * len(found)
    rounded = resolve_function("round", [numeric(4), INT4], [None, 1])
    assert isinstance(rounded, Resolved)
    assert rounded.result_type == numeric(1)


def test_what_cannot_be_exact_is_refused_and_not_replaced() -> None:
    refused = [
        common_type([ScalarType(Kind.CHAR, length=3), ScalarType(Kind.CHAR, length=4)]),
    ]
    assert [one.sqlstate if isinstance(one, Failure) else one for one in refused] == ["0A000"] * len(refused)


def test_fields_are_those_of_the_type() -> None:
    assert str(resolve_extract("hour", DATE)) == '0A000 unit "hour" not supported for type date'
    assert str(resolve_extract("nosuch", DATE)) == '22023 unit "nosuch" not recognized for type date'
    trunc = resolve_date_trunc("Month", DATE)
    assert isinstance(trunc, Resolved)
    assert (trunc.implementation, trunc.result_type) == ("date_trunc_month_timestamptz", TIMESTAMPTZ)


def test_mz_timestamp_compares_with_what_casts_to_it_and_makes_nothing_else_comparable() -> None:
    for other in (INT4, INT8, DATE, TIMESTAMP, TIMESTAMPTZ, numeric(0), Unknown("5")):
        resolved = resolve_operator("<=", [MZ_TIMESTAMP, other])
        assert isinstance(resolved, Resolved)
        assert resolved.implementation == "le_mz_timestamp"
    assert isinstance(resolve_operator("=", [DATE, INT4]), Failure)
    assert isinstance(resolve_operator("-", [MZ_TIMESTAMP, INT4]), Failure)


def test_every_overload_leads_to_an_implementation() -> None:
    for overload in itertools.chain.from_iterable(OVERLOADS.values()):
        assert overload.refused or overload.implementation in FUNCTIONS
        assert overload.refused or (overload.scale is not None) == (
            FUNCTIONS[overload.implementation].result is Kind.NUMERIC
        )


@pytest.mark.parametrize(
    ("text", "type_"),
    [("1", INT4), ("2147483648", INT8), ("9223372036854775808", numeric(0)), ("1.50", numeric(2)), ("1e3", numeric(0))],
)
def test_unquoted_numbers_have_the_type_they_need(text: str, type_: ScalarType) -> None:
    literal = numeric_literal(text)
    assert not isinstance(literal, Failure)
    assert literal.type == type_


def test_null_is_null_of_any_type() -> None:
    for type_ in TYPES:
        literal = literal_of(None, type_)
        assert not isinstance(literal, Failure)
        assert (literal.value, literal.type) == (None, type_)


def test_the_reference_of_functions_is_what_the_table_says() -> None:
    assert functions.PAGE.read_text(encoding="utf-8") == functions.page(), "run: python -m docs.functions"
