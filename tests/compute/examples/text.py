"""Functions of text, and LIKE."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import UNKNOWN, Failure, Resolved, resolve_function, resolve_operator
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT4, TEXT
from tests.compute.examples.example import POOLS, Example, applied, columns_of, function, operator, quote


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _texts()


def _texts() -> Iterator[Example]:
    for pair in (("text", "text"), ("text", "int4"), ("n2", "text"), ("bool", "text"), ("text", "ts")):
        yield operator("||", *pair)
    for name in (
        "length", "char_length", "octet_length", "bit_length", "lower", "upper", "btrim", "ltrim", "rtrim", "reverse",
        "md5", "ascii",
    ):  # fmt: skip
        yield function(name, "text")
    for name in ("btrim", "ltrim", "rtrim", "strpos", "starts_with"):
        yield function(name, "text", "needle")
    yield function("position", "text", "needle", sql="position({1} in {0})")
    yield function("replace", "text", "needle", "needle")
    yield function("translate", "text", "text", "needle")
    yield function("substring", "text", "small")
    yield function("substring", "text", "small", "small")
    yield function("left", "text", "small")
    yield function("right", "text", "small")
    for name in ("lpad", "rpad"):
        yield function(name, "text", "int2")
        yield function(name, "text", "int2", "needle")
        yield rounded_size(name)
    yield function("repeat", "text", "int2")
    yield function("repeat", "needle", "small")
    yield function("split_part", "text", "needle", "small")
    for name, sql in (("like", "LIKE"), ("not like", "NOT LIKE"), ("ilike", "ILIKE"), ("not ilike", "NOT ILIKE")):
        yield operator(sql, "text", "pattern", name=name)
        for pattern in POOLS["pattern"][1]:
            (column,) = columns_of(["text"])
            resolved = resolve_operator(name, [TEXT, UNKNOWN])
            call = applied(resolved, [column, Literal(pattern, TEXT)])
            yield Example(f"{{0}} {sql} {quote(pattern, TEXT)}", call, ("text",))
    escaped = function("like_escape", "pattern", "escape")
    yield escaped
    like = resolve_operator("like", [TEXT, TEXT])
    yield Example("{1} LIKE {0} ESCAPE {2}", _escaped(like), ("pattern", "text", "escape"))
    for names in (("text", "int4"), ("bool", "n2", "text"), ("ts", "date")):
        yield function("concat", *names)
        yield function("concat_ws", "needle", *names)


def rounded_size(name: str) -> Example:
    """A pad whose result is too long for PostgreSQL, or empty; nothing in between, for the machine's sake."""
    column, fill = ColumnRef(0, TEXT), ColumnRef(1, TEXT)
    resolved = resolve_function(name, [TEXT, INT4, TEXT])
    call = applied(resolved, [column, Literal(300_000_000, INT4), fill])
    return Example(f"{name}({{0}}, 300000000, {{1}})", call, ("text", "needle"))


def _escaped(like: Resolved | Failure) -> Scalar:
    pattern, text, escape = ColumnRef(0, TEXT), ColumnRef(1, TEXT), ColumnRef(2, TEXT)
    rewritten = applied(resolve_function("like_escape", [TEXT, TEXT]), [pattern, escape])
    return applied(like, [text, rewritten])
