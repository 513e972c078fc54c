"""The functions of regular expressions, with PostgreSQL 15's rules for flags, starts and empty matches."""

from __future__ import annotations

import json
from dataclasses import replace as with_fields

from mz_dagster.functions.function import Nullability, list_of
from mz_dagster.functions.regexps.regexp_match import Pattern, Span, compiled
from mz_dagster.functions.regexps.regexp_syntax import Options, options_of
from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.scalars.types import TEXT, Kind


def _pattern(name: str, pattern: str, flags: str) -> Pattern:
    """Returns the compiled pattern for a function that finds no more than it is asked for."""
    options = options_of(flags)
    if options.is_global:
        raise SqlFailure("22023", f'{name}() does not support the "global" option')
    return compiled(pattern, options)


def _cut(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span[0] : span[1]]


@function(
    "regexp_matches_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="~",
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def matches(text: str, pattern: str) -> bool:
    """Returns whether the pattern matches anywhere in the text.

    Example:
        >>> matches("foobar", "o{2}b"), matches("foo", "^o")
        (True, False)
    """
    return compiled(pattern, Options()).matches(text)


@function(
    "not_regexp_matches_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="!~",
    says="Whether a regular expression does not match.",
    example="'abc' !~ 'd'",
    gives="true",
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def not_matches(text: str, pattern: str) -> bool:
    """Returns whether the pattern matches nowhere in the text."""
    return not matches(text, pattern)


@function(
    "iregexp_matches_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="~*",
    says="Whether a regular expression matches, upper and lower case being the same.",
    example="'ABC' ~* 'b'",
    gives="true",
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def matches_any_case(text: str, pattern: str) -> bool:
    """Returns whether the pattern matches anywhere in the text, whatever the case of its letters."""
    return compiled(pattern, Options(ignore_case=True)).matches(text)


@function(
    "not_iregexp_matches_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="!~*",
    says="The opposite of `~*`.",
    example="'ABC' !~* 'b'",
    gives="false",
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def not_matches_any_case(text: str, pattern: str) -> bool:
    """Returns whether the pattern matches nowhere in the text, whatever the case of its letters."""
    return not matches_any_case(text, pattern)


@function(
    "regexp_like_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="regexp_like",
    says="Whether a regular expression matches, with flags.",
    example="regexp_like('Hello World', 'world$', 'i')",
    gives="true",
    fallible=True,
)
@function("regexp_like_text_flags", (Kind.TEXT, Kind.TEXT, Kind.TEXT), Kind.BOOL, sql="regexp_like", fallible=True)
def like(text: str, pattern: str, flags: str = "") -> bool:
    """Returns whether the pattern matches anywhere in the text."""
    return _pattern("regexp_like", pattern, flags).matches(text)


@function(
    "regexp_match_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="regexp_match",
    says="What the groups of the first match hold, or all of it.",
    example="regexp_match('foobarbequebaz', '(bar)(beque)')",
    gives="{bar,beque}",
    fallible=True,
    nullability=Nullability.ALWAYS,
    type=list_of(TEXT),
)
@function(
    "regexp_match_text_flags",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="regexp_match",
    fallible=True,
    nullability=Nullability.ALWAYS,
    type=list_of(TEXT),
)
def match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    """Returns what the groups of the first match hold, or the whole match of a pattern without groups.

    Example:
        >>> match("foobarbequebaz", "(bar)(beque|x)"), match("foobar", "o+"), match("foo", "x")
        (['bar', 'beque'], ['oo'], None)
    """
    found = _pattern("regexp_match", pattern, flags).search(text, 0)
    if found is None:
        return None
    return [_cut(text, span) for span in (found[1:] or found)]


@function(
    "regexp_all_matches_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    rows="regexp_matches",
    says="What the groups of the first match hold, or with `g` those of each, a row a match.",
    example="(SELECT max(m) FROM (SELECT array_to_string(regexp_matches('foobarbaz', 'b(.)(.)', 'g'), '')) AS r(m))",
    gives="az",
    fallible=True,
    type=list_of(TEXT),
)
@function(
    "regexp_all_matches_text_flags",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    rows="regexp_matches",
    fallible=True,
    type=list_of(TEXT),
)
def all_matches(text: str, pattern: str, flags: str = "") -> list[str]:
    """Returns what `match` returns of the first match, or with the flag g of each, as texts for `groups`.

    Example:
        >>> all_matches("foobarbaz", "(b)(a.)", "g"), all_matches("foo", "x")
        (['["b", "ar"]', '["b", "az"]'], [])
    """
    options = options_of(flags)
    each = compiled(pattern, options).each(text, 0)
    found = [json.dumps([_cut(text, span) for span in (one[1:] or one)], ensure_ascii=False) for one in each]
    return found if options.is_global else found[:1]


@function("regexp_groups_text", (Kind.TEXT,), Kind.ARRAY)
def groups(found: str) -> list[str | None]:
    """Returns what the groups of a match hold, of one of the texts of `all_matches`."""
    parsed: list[str | None] = json.loads(found)
    return parsed


@function(
    "substring_text_regexp",
    (Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="substring",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def substring(text: str, pattern: str) -> str | None:
    """Returns what the first group of the first match holds, or the match if the pattern has no groups.

    Example:
        >>> substring("foobar", "o(.)b"), substring("foobar", "o.b")
        ('o', 'oob')
    """
    found = compiled(pattern, Options()).search(text, 0)
    return None if found is None else _cut(text, found[1] if len(found) > 1 else found[0])


def _positive(value: int, name: str) -> None:
    if value <= 0:
        raise SqlFailure("22023", f'invalid value for parameter "{name}": {value}')


def _not_negative(value: int, name: str) -> None:
    if value < 0:
        raise SqlFailure("22023", f'invalid value for parameter "{name}": {value}')


def _nth(pattern: Pattern, text: str, start: int, number: int) -> list[Span | None] | None:
    """Returns the match with that number from the character `start` on, both counted from 1."""
    for position, found in enumerate(pattern.each(text, start - 1), 1):
        if position == number:
            return found
    return None


@function(
    "regexp_count_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.INT4,
    sql="regexp_count",
    says="How many times a regular expression matches.",
    example="regexp_count('123456789012', '\\d\\d\\d', 2)",
    gives="3",
    fallible=True,
)
@function("regexp_count_text_from", (Kind.TEXT, Kind.TEXT, Kind.INT4), Kind.INT4, sql="regexp_count", fallible=True)
@function(
    "regexp_count_text_from_flags",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.TEXT),
    Kind.INT4,
    sql="regexp_count",
    fallible=True,
)
def count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    """Returns how many matches there are from the character `start` on."""
    _positive(start, "start")
    return sum(1 for _ in _pattern("regexp_count", pattern, flags).each(text, start - 1))


@function(
    "regexp_instr_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.INT4,
    sql="regexp_instr",
    says="Where a match begins or ends.",
    example="regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i')",
    gives="3",
    fallible=True,
)
@function("regexp_instr_text_2", (Kind.TEXT, Kind.TEXT, Kind.INT4), Kind.INT4, sql="regexp_instr", fallible=True)
@function(
    "regexp_instr_text_3", (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4), Kind.INT4, sql="regexp_instr", fallible=True
)
@function(
    "regexp_instr_text_4",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.INT4),
    Kind.INT4,
    sql="regexp_instr",
    fallible=True,
)
@function(
    "regexp_instr_text_5",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.INT4, Kind.TEXT),
    Kind.INT4,
    sql="regexp_instr",
    fallible=True,
)
@function(
    "regexp_instr_text_6",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.INT4, Kind.TEXT, Kind.INT4),
    Kind.INT4,
    sql="regexp_instr",
    fallible=True,
)
def instr(
    text: str, pattern: str, start: int = 1, number: int = 1, end: int = 0, flags: str = "", group: int = 0
) -> int:
    """Returns where a match, or a group of it, begins, or where it has ended; 0 if there is none."""
    _positive(start, "start")
    _positive(number, "n")
    if end not in (0, 1):
        raise SqlFailure("22023", f'invalid value for parameter "endoption": {end}')
    _not_negative(group, "subexpr")
    span = _group_of(_pattern("regexp_instr", pattern, flags), text, start, number, group)
    return 0 if span is None else span[end] + 1


def _group_of(pattern: Pattern, text: str, start: int, number: int, group: int) -> Span | None:
    # Of a pattern without groups the first is the whole match.
    if group > max(1, pattern.groups):
        return None
    found = _nth(pattern, text, start, number)
    return None if found is None else found[group if pattern.groups else 0]


@function(
    "regexp_substr_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="regexp_substr",
    says="What a match, or one of its groups, holds.",
    example="regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2)",
    gives="EF",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
@function(
    "regexp_substr_text_2",
    (Kind.TEXT, Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="regexp_substr",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
@function(
    "regexp_substr_text_3",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4),
    Kind.TEXT,
    sql="regexp_substr",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
@function(
    "regexp_substr_text_4",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.TEXT),
    Kind.TEXT,
    sql="regexp_substr",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
@function(
    "regexp_substr_text_5",
    (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="regexp_substr",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def substr(text: str, pattern: str, start: int = 1, number: int = 1, flags: str = "", group: int = 0) -> str | None:
    """Returns a match, or what a group of it holds."""
    _positive(start, "start")
    _positive(number, "n")
    _not_negative(group, "subexpr")
    return _cut(text, _group_of(_pattern("regexp_substr", pattern, flags), text, start, number, group))


@function(
    "regexp_split_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="regexp_split_to_array",
    says="The parts between matches.",
    example="regexp_split_to_array('hello world', '\\s+')",
    gives="{hello,world}",
    rows=Named(
        "regexp_split_to_table",
        "The parts of a text between matches.",
        "(SELECT min(w) FROM regexp_split_to_table('hello world', '\\s+') AS r(w))",
        "hello",
    ),
    fallible=True,
    type=list_of(TEXT),
)
@function(
    "regexp_split_text_flags",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="regexp_split_to_array",
    rows="regexp_split_to_table",
    fallible=True,
    type=list_of(TEXT),
)
def split(text: str, pattern: str, flags: str = "") -> list[str]:
    """Returns what stands between the matches; empty ones at the start, at the end or behind another do not count.

    Example:
        >>> split("hello world", "o"), split("abc", "")
        (['hell', ' w', 'rld'], ['a', 'b', 'c'])
    """
    pieces: list[str] = []
    last = 0
    for found in _pattern("regexp_split_to_array", pattern, flags).each(text, 0):
        assert found[0] is not None
        begin, end = found[0]
        if begin == end and (begin in (0, len(text)) or begin == last):
            continue
        pieces.append(text[last:begin])
        last = end
    return [*pieces, text[last:]]


@function(
    "regexp_replace_text",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="regexp_replace",
    says="A text with the first match, or with `g` all, replaced; `\\1` is what a group holds.",
    example="regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')",
    gives="fooXarYXazY",
    fallible=True,
)
def replace(text: str, pattern: str, new: str) -> str:
    r"""Returns the text with the first match replaced; `\1` to `\9` and `\&` stand for the groups and the match.

    Example:
        >>> replace("foobarbaz", "b(..)", r"X\1Y")
        'fooXarYbaz'
    """
    return _replaced(text, compiled(pattern, Options()), new, 1, 1)


@function("regexp_replace_text_flags", (Kind.TEXT,) * 4, Kind.TEXT, sql="regexp_replace", fallible=True)
def replace_flags(text: str, pattern: str, new: str, flags: str) -> str:
    """Returns the text with the first match replaced; with the flag `g`, all of them."""
    if flags and flags[0] in "0123456789":
        raise SqlFailure("22023", f'invalid regular expression option: "{flags[0]}"')
    options = options_of(flags)
    return _replaced(text, compiled(pattern, _local(options)), new, 1, 0 if options.is_global else 1)


@function(
    "regexp_replace_text_from",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="regexp_replace",
    fallible=True,
)
@function(
    "regexp_replace_text_from_n",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4),
    Kind.TEXT,
    sql="regexp_replace",
    fallible=True,
)
@function(
    "regexp_replace_text_from_n_flags",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4, Kind.TEXT),
    Kind.TEXT,
    sql="regexp_replace",
    fallible=True,
)
def replace_from(text: str, pattern: str, new: str, start: int, number: int = 1, flags: str = "") -> str:
    """Returns the text with the match of that number replaced, from the character `start` on; 0 stands for all."""
    _positive(start, "start")
    _not_negative(number, "n")
    # The flag g is allowed, and the number decides all the same.
    return _replaced(text, compiled(pattern, _local(options_of(flags))), new, start, number)


def _local(options: Options) -> Options:
    return with_fields(options, is_global=False)


def _replaced(text: str, pattern: Pattern, new: str, start: int, number: int) -> str:
    pieces: list[str] = []
    last = 0
    for position, found in enumerate(pattern.each(text, start - 1), 1):
        if number and position < number:
            continue
        assert found[0] is not None
        begin, end = found[0]
        pieces += (text[last:begin], _expanded(new, text, found))
        last = end
        if number:
            break
    return "".join((*pieces, text[last:]))


def _expanded(new: str, text: str, found: list[Span | None]) -> str:
    if "\\" not in new:
        return new
    pieces: list[str] = []
    position = 0
    while position < len(new):
        character = new[position]
        follows = new[position + 1 : position + 2]
        if character != "\\" or not follows:
            pieces.append(character)
            position += 1
            continue
        position += 2
        if follows in "123456789":
            number = int(follows)
            pieces.append((_cut(text, found[number]) if number < len(found) else None) or "")
        elif follows == "&":
            pieces.append(_cut(text, found[0]) or "")
        elif follows == "\\":
            pieces.append("\\")
        else:
            pieces.append("\\" + follows)
    return "".join(pieces)
