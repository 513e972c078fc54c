"""Connectives, tests, branches; errors under them."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import resolve_function, resolve_operator
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, TEXT
from tests.compute.examples.example import Example, applied, function


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _logic()


def _logic() -> Iterator[Example]:
    failing = applied(resolve_operator("=", [INT4, INT4]), [_quotient(), Literal(1, INT4)])
    bool_ = ColumnRef(2, BOOL)
    pools = ("int4", "int4", "bool")
    sql = "({0} / {1} = 1)"
    for name in ("and", "or"):
        ok = ("CASE WHEN {2} THEN " + sql + " ELSE {2} AND NULL END") if name == "and" else (
            "CASE WHEN {2} THEN true ELSE " + sql + " OR {2} END"
        )  # fmt: skip
        if name == "and":
            ok = f"CASE WHEN {{2}} IS FALSE THEN false ELSE ({sql}) AND {{2}} END"
        for arguments in ([failing, bool_], [bool_, failing]):
            yield Example(ok, applied(resolve_operator(name, [BOOL, BOOL]), arguments), pools)
    yield Example(f"NOT {sql}", applied(resolve_operator("not", [BOOL]), [failing]), pools)
    for test in ("null", "true", "false", "unknown"):
        for phrase in (f"is {test}", f"is not {test}"):
            yield Example(f"{sql} {phrase}", applied(resolve_operator(phrase, [BOOL]), [failing]), pools)
    guard = applied(resolve_operator("<>", [INT4, INT4]), [ColumnRef(1, INT4), Literal(0, INT4)])
    yield Example(
        "CASE WHEN {1} <> 0 THEN {0} / {1} ELSE {0} END", If(guard, _quotient(), ColumnRef(0, INT4)), ("int4", "int4")
    )
    yield Example("CASE WHEN " + sql + " THEN 1 ELSE 2 END", If(failing, Literal(1, INT4), Literal(2, INT4)), pools)
    three = (INT4, INT4, INT4)
    yield Example(
        "coalesce({2}, {0} / {1}, {0})",
        applied(resolve_function("coalesce", three), [ColumnRef(2, INT4), _quotient(), ColumnRef(0, INT4)]),
        ("int4", "int4", "int4"),
    )
    for name in ("greatest", "least"):
        yield function(name, "int4", "int4", "int4")
        yield function(name, "float8", "float8")
        yield function(name, "n2", "n2", "int4")
        yield function(name, "text", "needle")
        yield function(name, "int4")
        for pool in ("date", "ts", "tz", "time"):
            yield function(name, pool, pool)
    # Deep enough that written out in place it would be too large.
    deep: Scalar = ColumnRef(0, INT4)
    text = "{0}"
    for _ in range(10):
        deep = applied(resolve_operator("/", [INT4, INT4]), [deep, ColumnRef(1, INT4)])
        deep = applied(resolve_operator("+", [INT4, INT4]), [deep, deep])
        text = f"({text} / {{1}})"
        text = f"({text} * 2)"
    yield Example(text, deep, ("int4", "int4"))
    fails = Call("error", (Literal("22012 division by zero", TEXT),), INT4)
    yield Example("1 / 0", fails, ("one",))
    inverse = applied(resolve_operator("/", [INT4, INT4]), [Literal(1, INT4), ColumnRef(0, INT4)])
    yield Example("1 / nullif({0}, 0)", Call("without_error", (inverse,), INT4), ("int4",))
    said = "CASE WHEN {0} = 0 THEN '22012 division by zero' END"
    yield Example(said, Call("error_of", (inverse,), TEXT), ("int4",))
    shown = Call("error_of", (ColumnRef(0, INT4),), TEXT)
    yield Example("NULL::text", shown, ("int4",))
    yield Example("NULL::integer", Call("error", (shown,), INT4), ("int4",))


def _quotient() -> Scalar:
    return applied(resolve_operator("/", [INT4, INT4]), [ColumnRef(0, INT4), ColumnRef(1, INT4)])
