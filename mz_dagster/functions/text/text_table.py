"""Functions of text beyond the first ones: words, characters by number, quoting, overlay, format."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.signature import Function, Overload
from mz_dagster.scalars.types import Kind

_T, _I4, _A, _E = Kind.TEXT, Kind.INT4, Kind.ARRAY, Kind.ENUM

#: (SQL name, implementation, arguments, fallible), all of which return text.
_FUNCTIONS: tuple[tuple[str, str, tuple[Kind, ...], bool], ...] = (
    ("initcap", "initcap_text", (_T,), False),
    ("chr", "chr_int4", (_I4,), True),
    ("overlay", "overlay_text", (_T, _T, _I4), True),
    ("overlay", "overlay_text_for", (_T, _T, _I4, _I4), True),
    ("quote_ident", "quote_ident_text", (_T,), False),
    ("quote_literal", "quote_literal_text", (_T,), False),
)


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    for _, name, arguments, fallible in _FUNCTIONS:
        yield Function(name, arguments, _T, fallible=fallible)
    yield Function("label_of_enum", (_E,), _T)
    yield Function("enum_of_label", (_T, _A, _T), _E, fallible=True)
    yield Function("renamed_label_of_enum", (_E, _A, _A), _T)
    yield Function("enum_of_renamed_label", (_T, _A, _A, _T), _E, fallible=True)
    # The binder gathers the arguments' texts.
    yield Function("format_text", (_T, _A), _T, fallible=True)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for name, implementation, arguments, _ in _FUNCTIONS:
        yield Overload(name, arguments, implementation)
    # PostgreSQL's text || anynonarray and anynonarray || text.
    yield Overload("||", (_T, _E), "concat_text")
    yield Overload("||", (_E, _T), "concat_text")
