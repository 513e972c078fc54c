"""Regular expressions: PostgreSQL's advanced ones, and SQL's SIMILAR TO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.scalars.types import TEXT, Kind, ScalarType, array_of

_T, _I4, _B, _A, _CHAR = Kind.TEXT, Kind.INT4, Kind.BOOL, Kind.ARRAY, Kind.CHAR

_MATCHES = {
    "~": "regexp_matches_text",
    "!~": "not_regexp_matches_text",
    "~*": "iregexp_matches_text",
    "!~*": "not_iregexp_matches_text",
}

#: (SQL name, implementation, arguments, result).
_FUNCTIONS: tuple[tuple[str, str, tuple[Kind, ...], Kind], ...] = (
    ("regexp_like", "regexp_like_text", (_T, _T), _B),
    ("regexp_like", "regexp_like_text_flags", (_T, _T, _T), _B),
    ("regexp_match", "regexp_match_text", (_T, _T), _A),
    ("regexp_match", "regexp_match_text_flags", (_T, _T, _T), _A),
    ("substring", "substring_text_regexp", (_T, _T), _T),
    ("substring", "substring_text_similar", (_T, _T, _T), _T),
    ("regexp_count", "regexp_count_text", (_T, _T), _I4),
    ("regexp_count", "regexp_count_text_from", (_T, _T, _I4), _I4),
    ("regexp_count", "regexp_count_text_from_flags", (_T, _T, _I4, _T), _I4),
    ("regexp_instr", "regexp_instr_text", (_T, _T), _I4),
    ("regexp_instr", "regexp_instr_text_2", (_T, _T, _I4), _I4),
    ("regexp_instr", "regexp_instr_text_3", (_T, _T, _I4, _I4), _I4),
    ("regexp_instr", "regexp_instr_text_4", (_T, _T, _I4, _I4, _I4), _I4),
    ("regexp_instr", "regexp_instr_text_5", (_T, _T, _I4, _I4, _I4, _T), _I4),
    ("regexp_instr", "regexp_instr_text_6", (_T, _T, _I4, _I4, _I4, _T, _I4), _I4),
    ("regexp_substr", "regexp_substr_text", (_T, _T), _T),
    ("regexp_substr", "regexp_substr_text_2", (_T, _T, _I4), _T),
    ("regexp_substr", "regexp_substr_text_3", (_T, _T, _I4, _I4), _T),
    ("regexp_substr", "regexp_substr_text_4", (_T, _T, _I4, _I4, _T), _T),
    ("regexp_substr", "regexp_substr_text_5", (_T, _T, _I4, _I4, _T, _I4), _T),
    ("regexp_split_to_array", "regexp_split_text", (_T, _T), _A),
    ("regexp_split_to_array", "regexp_split_text_flags", (_T, _T, _T), _A),
    ("regexp_replace", "regexp_replace_text", (_T, _T, _T), _T),
    ("regexp_replace", "regexp_replace_text_flags", (_T, _T, _T, _T), _T),
    ("regexp_replace", "regexp_replace_text_from", (_T, _T, _T, _I4), _T),
    ("regexp_replace", "regexp_replace_text_from_n", (_T, _T, _T, _I4, _I4), _T),
    ("regexp_replace", "regexp_replace_text_from_n_flags", (_T, _T, _T, _I4, _I4, _T), _T),
    # x SIMILAR TO p is x ~ similar_to_escape(p), x SIMILAR TO p ESCAPE e is x ~ similar_to_escape(p, e).
    ("similar_to_escape", "similar_to_escape_text", (_T,), _T),
    ("similar_to_escape", "similar_to_escape_text_text", (_T, _T), _T),
)
#: What `regexp_matches`, which returns rows, is made of.
_OF_MATCHES = (
    Function("regexp_all_matches_text", (_T, _T), _A, fallible=True),
    Function("regexp_all_matches_text_flags", (_T, _T, _T), _A, fallible=True),
    Function("regexp_groups_text", (_T,), _A),
)
#: Those that may find nothing.
_NULLABLE = ("regexp_match_", "substring_", "regexp_substr_")


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    yield from _OF_MATCHES
    for implementation in _MATCHES.values():
        yield Function(implementation, (_T, _T), _B, fallible=True)
    for _, implementation, arguments, result in _FUNCTIONS:
        nullability = Nullability.ALWAYS if implementation.startswith(_NULLABLE) else Nullability.IF_ANY_ARGUMENT
        yield Function(implementation, arguments, result, fallible=True, nullability=nullability)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for symbol, implementation in _MATCHES.items():
        yield Overload(symbol, (_T, _T), implementation)
        yield Overload(symbol, (_CHAR, _T), implementation)
    for name, implementation, arguments, result in _FUNCTIONS:
        yield Overload(name, arguments, implementation, result=_texts if result is _A else None)


def _texts(types: Sequence[ScalarType]) -> ScalarType:
    return array_of(TEXT)
