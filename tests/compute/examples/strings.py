"""Strings with a length, uuid and bytea."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import Cast, CastContext, cast, resolve_function
from mz_dagster.functions.function import COMPARISONS
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import BOOL, BYTEA, DATE, INT4, TEXT, UUID, Kind, ScalarType, array_of, numeric, record_of
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

_WORDS = ["", "a", "abc", "a  ", "abcdefgh", "Äh🐘", "a\tb", "  x", "a%", "abcde   "]
VARCHAR5 = ScalarType(Kind.VARCHAR, length=5)
CHAR5 = ScalarType(Kind.CHAR, length=5)
CHAR3 = ScalarType(Kind.CHAR, length=3)

POOLS |= {
    "words": (TEXT, _WORDS),
    "varchar5": (VARCHAR5, [word[:5] for word in _WORDS]),
    "varchar_number": (VARCHAR5, ["1", " 7 ", "x", "1e3", ""]),
    "char5": (CHAR5, [word[:5] for word in _WORDS]),
    "char3": (CHAR3, ["", "a", "abc", "a\t", "Äh🐘", "a%", "a b"]),
    "char_number": (CHAR5, ["1", " 7 ", "x", "1e3", "", "true"]),
    "uuid": (
        UUID,
        ["00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
         "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "ffffffff-ffff-ffff-ffff-ffffffffffff",
         "0fffffff-ffff-ffff-ffff-ffffffffffff"],
    ),
    "text_uuid": (
        TEXT,
        ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "", "abc",
         "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b-4ef8-bb6d-",
         " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
         "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g", "a-0eebc999c0b4ef8bb6d6bb9bd380a11"],
    ),
    "bytea": (BYTEA, ["\\x", "\\x00", "\\x00ff", "abc", "abcabc", "\\x7f80", "a\\000b", "\\\\", "\\xc3a9", "\\xc3"]),
    "bytes": (BYTEA, ["\\x", "a", "bc", "\\x00", "ab"]),
    "text_bytea": (
        TEXT,
        ["", "\\x", "\\x0", "\\x0g", "\\x00 ff\n", "\\x0 0", "abc", "\\", "\\\\", "\\000", "\\400", "\\12", "é", "a\\b",
         "\\xÄ"],
    ),
    "form": (TEXT, ["hex", "HEX", "base64", "escape", "latin1", ""]),
    "encoded": (
        TEXT,
        ["", "61", "6", "YWJj", "YQ==", "YQ=", "YQ", "Y Q = =", "Y!", "=", "YW=j", "a\\000", "a\\", "YWJjZA==", "6é"],
    ),
    "encoding": (TEXT, ["UTF8", "utf-8", "LATIN1", "iso_8859_1"]),
    "code": (INT4, ["0", "1", "-1", "65", "233", "55296", "65535", "128024", "1114111", "1114112"]),
    "qualified": (TEXT, ["", "a", "A.b", ' a . "B""b" ', '"".a', 'a."', "a.", ".a", "a b", "a.b()", "9x", "ÄB.é$1"]),
    "identifier": (TEXT, ["", "a", "A", "a b", "_x9", "9x", 'q"q', "select", "between", "é", "a$"]),
    "template": (TEXT, ["", "plain", "%s %s %s", "%3$s-%1$s", "%L|%I", "%5s|%-5s|", "%*s", "%-*s|", "%*2$s|", "%%",
        "%", "%d", "%4$s", "%0$s", "%s%s%s%s", "%1$s %s", "%2$L", "%-", "%1$*2$s|", "%I"]),
    "bit": (INT4, ["0", "1", "2", "-1"]),
    "index": (INT4, ["0", "1", "7", "8", "-1", "15", "16"]),
    "byte": (INT4, ["0", "255", "256", "-1", "65"]),
}  # fmt: skip


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _comparisons()
    yield from _casts()
    yield from _characters()
    yield from _bytes()
    yield from _words()
    yield from _gathered()


def _comparisons() -> Iterator[Example]:
    for symbol in COMPARISONS:
        for pool in ("char5", "uuid", "bytea"):
            yield operator(symbol, pool, pool)
    for symbol in ("=", "<"):
        for pair in (("char5", "char3"), ("char3", "words"), ("words", "char5")):
            yield operator(symbol, *pair)
        for pair in (("varchar5", "varchar5"), ("varchar5", "words"), ("varchar5", "char3"), ("char5", "varchar5")):
            yield operator(symbol, *pair)


def _casts() -> Iterator[Example]:
    for pool in ("words", "varchar5", "char5", "int4", "bool", "n2", "date", "uuid", "bytea"):
        for target in (CHAR3, ScalarType(Kind.VARCHAR, length=3), ScalarType(Kind.VARCHAR, length=40)):
            yield _shown(casting(pool, target))
    for pool in ("varchar5", "char5", "uuid", "bytea"):
        yield casting(pool, TEXT)
    for pool in ("varchar_number", "char_number"):
        for other in (INT4, numeric(2), BOOL, DATE, UUID, BYTEA):
            yield casting(pool, other)
    yield casting("text_uuid", UUID)
    yield casting("text_bytea", BYTEA)
    for pool in ("words", "varchar5", "char5"):
        for target in (CHAR3, ScalarType(Kind.VARCHAR, length=3), ScalarType(Kind.VARCHAR, length=40)):
            yield _assigning(pool, target)


def _shown(example: Example) -> Example:
    """Returns the example of a result as PostgreSQL's functions see it: with brackets, to see the blanks at its end."""
    found = cast(example.scalar.type, TEXT)
    assert isinstance(found, Cast)
    return Example(f"({example.sql})::text", found.apply(example.scalar), example.pools)


def _assigning(pool: str, target: ScalarType) -> Example:
    (column,) = columns_of([pool])
    found = cast(column.type, target, CastContext.ASSIGNMENT)
    assert isinstance(found, Cast)
    name = "varchar" if target.kind is Kind.VARCHAR else "bpchar"
    # An assignment is a cast of context 'a': only functions with such parameters can be asked for one.
    sql = f"pg_catalog.{name}({{0}}::{name}, {target.length + 4}, false)::text"
    shown = cast(target, TEXT)
    assert isinstance(shown, Cast)
    return Example(sql, shown.apply(found.apply(column)), (pool,))


def _characters() -> Iterator[Example]:
    for pool in ("varchar5", "char5"):
        for name in ("length", "octet_length", "upper", "md5", "reverse"):
            yield function(name, pool)
        yield function("concat", pool, "int4")
        yield function("substring", pool, "small", "small")
        yield operator("||", pool, pool)
        yield operator("||", pool, "int4")
        yield operator("||", "text", pool)
        for name, sql in (("like", "LIKE"), ("not like", "NOT LIKE"), ("ilike", "ILIKE"), ("not ilike", "NOT ILIKE")):
            yield operator(sql, pool, "pattern", name=name)
        yield operator("IS DISTINCT FROM", pool, pool, name="is distinct from")
    yield operator("||", "text", "uuid")
    yield operator("||", "bytea", "text")


def _words() -> Iterator[Example]:
    yield function("initcap", "text")
    yield function("chr", "code")
    yield function("overlay", "text", "needle", "small", sql="overlay({0} placing {1} from {2})")
    yield function("overlay", "text", "needle", "small", "small", sql="overlay({0} placing {1} from {2} for {3})")
    yield function("quote_ident", "identifier")
    yield function("parse_ident", "qualified")
    yield function("parse_ident", "qualified", "bool")
    yield function("quote_literal", "text")
    pools = ("template", "text", "bit", "text")
    columns = columns_of(pools)
    texts = applied(resolve_function("concat", [column.type for column in columns[1:]]), columns[1:])
    assert isinstance(texts, Call)
    gathered = Call("array", texts.arguments, array_of(TEXT), False)
    yield Example("format({0}, {1}, {2}, {3})", Call("format_text", (columns[0], gathered), TEXT), pools)


def _gathered() -> Iterator[Example]:
    """Yields arrays and rows: their texts show each value as its type's output does."""
    for pool in ("char3", "varchar5", "uuid", "bytea"):
        (column,) = columns_of([pool])
        yield Example("ARRAY[{0}]", Call("array", (column,), array_of(column.type), False), (pool,))
        row = record_of([("f1", column.type)])
        yield Example("ROW({0})", Call("record", (column,), row, False), (pool,))


def _bytes() -> Iterator[Example]:
    yield operator("||", "bytea", "bytea")
    for name in ("length", "octet_length", "bit_length", "bit_count", "md5", "sha224", "sha256", "sha384", "sha512"):
        yield function(name, "bytea")
    for name in ("substring", "substr"):
        yield function(name, "bytea", "small")
        yield function(name, "bytea", "small", "small")
    yield function("position", "bytea", "bytes", sql="position({1} in {0})")
    for name in ("btrim", "ltrim", "rtrim"):
        yield function(name, "bytea", "bytes")
    yield function("overlay", "bytea", "bytes", "small", sql="overlay({0} placing {1} from {2})")
    yield function("overlay", "bytea", "bytes", "small", "small", sql="overlay({0} placing {1} from {2} for {3})")
    yield function("get_byte", "bytea", "index")
    yield function("get_bit", "bytea", "index")
    yield function("set_byte", "bytea", "index", "byte")
    yield function("set_bit", "bytea", "index", "bit")
    yield function("encode", "bytea", "form")
    yield function("decode", "encoded", "form")
    yield function("convert_from", "bytea", "encoding")
    yield function("convert_to", "text", "encoding")
