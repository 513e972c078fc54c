"""Strings with a length, `varchar(n)` and `char(n)`; `uuid` and `bytea`.

A `varchar(n)` is a text that remembers how long it may be: all its functions are text's. A `char(n)` has functions of
its own where its blanks at the end, which comparisons ignore, are seen: matching, `octet_length`. Where such an
overload leads to a function of text, the argument is padded to its length first (`output_bpchar`); everywhere else it
becomes text without those blanks.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.comparing import comparing_functions, comparing_overloads
from mz_dagster.functions.signature import Function, Overload
from mz_dagster.scalars.types import Kind

_T, _CHAR, _UUID, _BYTEA, _I4, _I8 = Kind.TEXT, Kind.CHAR, Kind.UUID, Kind.BYTEA, Kind.INT4, Kind.INT8
_COMPARED = (_CHAR, _UUID, _BYTEA)
#: Where a text may not be longer than its column: the blanks beyond are dropped, anything else is an error.
_ASSIGNED = ("text", "varchar", "bpchar")

#: Operators over the padded text of a `char(n)`.
_PADDED = {
    **dict.fromkeys(("like", "~~"), "like_text"),
    **dict.fromkeys(("not like", "!~~"), "not_like_text"),
    **dict.fromkeys(("ilike", "~~*"), "ilike_text"),
    **dict.fromkeys(("not ilike", "!~~*"), "not_ilike_text"),
}

#: (SQL names, implementation, arguments, result, fallible).
_BYTEA_FUNCTIONS: tuple[tuple[tuple[str, ...], str, tuple[Kind, ...], Kind, bool], ...] = (
    (("||",), "concat_bytea", (_BYTEA, _BYTEA), _BYTEA, False),
    (("length", "octet_length"), "octet_length_bytea", (_BYTEA,), _I4, False),
    (("bit_length",), "bit_length_bytea", (_BYTEA,), _I4, False),
    (("substring", "substr"), "substring_bytea_from", (_BYTEA, _I4), _BYTEA, False),
    (("substring", "substr"), "substring_bytea_from_for", (_BYTEA, _I4, _I4), _BYTEA, True),
    (("position",), "position_bytea", (_BYTEA, _BYTEA), _I4, False),
    (("overlay",), "overlay_bytea", (_BYTEA, _BYTEA, _I4), _BYTEA, True),
    (("overlay",), "overlay_bytea_for", (_BYTEA, _BYTEA, _I4, _I4), _BYTEA, True),
    (("btrim",), "btrim_bytea", (_BYTEA, _BYTEA), _BYTEA, False),
    (("ltrim",), "ltrim_bytea", (_BYTEA, _BYTEA), _BYTEA, False),
    (("rtrim",), "rtrim_bytea", (_BYTEA, _BYTEA), _BYTEA, False),
    (("get_byte",), "get_byte_bytea", (_BYTEA, _I4), _I4, True),
    (("set_byte",), "set_byte_bytea", (_BYTEA, _I4, _I4), _BYTEA, True),
    (("get_bit",), "get_bit_bytea", (_BYTEA, _I8), _I4, True),
    (("set_bit",), "set_bit_bytea", (_BYTEA, _I8, _I4), _BYTEA, True),
    (("bit_count",), "bit_count_bytea", (_BYTEA,), _I8, False),
    (("md5",), "md5_bytea", (_BYTEA,), _T, False),
    (("sha224",), "sha224_bytea", (_BYTEA,), _BYTEA, False),
    (("sha256",), "sha256_bytea", (_BYTEA,), _BYTEA, False),
    (("sha384",), "sha384_bytea", (_BYTEA,), _BYTEA, False),
    (("sha512",), "sha512_bytea", (_BYTEA,), _BYTEA, False),
    (("encode",), "encode_bytea", (_BYTEA, _T), _T, True),
    (("decode",), "decode_text", (_T, _T), _BYTEA, True),
    (("convert_from",), "convert_from_bytea", (_BYTEA, _T), _T, True),
    (("convert_to",), "convert_to_text", (_T, _T), _BYTEA, True),
)


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    for kind in _COMPARED:
        yield from comparing_functions(kind)
    # The text with its blanks: what concat() and casts to other kinds than text see.
    yield Function("output_bpchar", (_CHAR,), _T)
    for source in _ASSIGNED:
        yield Function(f"assign_{source}_to_varchar", (), Kind.VARCHAR, fallible=True)
        yield Function(f"assign_{source}_to_bpchar", (), _CHAR, fallible=True)
    for _, name, arguments, result, fallible in _BYTEA_FUNCTIONS:
        yield Function(name, arguments, result, fallible=fallible)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for kind in _COMPARED:
        yield from comparing_overloads(kind)
    for symbol, implementation in _PADDED.items():
        yield Overload(symbol, (_CHAR, _T), implementation)
    yield Overload("octet_length", (_CHAR,), "octet_length_text")
    # PostgreSQL's text || anynonarray and anynonarray || text.
    for kind in (_UUID, _BYTEA):
        yield Overload("||", (_T, kind), "concat_text")
        yield Overload("||", (kind, _T), "concat_text")
    for names, implementation, arguments, _, _ in _BYTEA_FUNCTIONS:
        for name in names:
            yield Overload(name, arguments, implementation)
