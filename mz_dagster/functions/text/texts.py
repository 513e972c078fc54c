"""Functions of text: words, characters by number, quoting, `format`."""

from __future__ import annotations

import re

from mz_dagster.functions.function import list_of
from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import TEXT, Kind

#: PostgreSQL 15's keywords that are no names unless they are quoted.
_KEYWORDS = """
all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both
case cast char character check coalesce collate collation column concurrently constraint create cross
current_catalog current_date current_role current_schema current_time current_timestamp current_user dec
decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign
freeze from full grant greatest group grouping having ilike in initially inner inout int integer intersect
interval into is isnull join lateral leading least left like limit localtime localtimestamp national natural
nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
placing position precision primary real references returning right row select session_user setof similar
smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union
unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement
xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
#: The most characters that a width may ask for.
_MOST = 16 << 20
_RESERVED = frozenset(_KEYWORDS.split())
#: A part of a qualified name, quoted or not, with what leads to the next one.
_IDENTIFIER = re.compile(
    r'[ \t\n\r\f]*(?:"((?:[^"]|"")*)"|([A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*))[ \t\n\r\f]*(\.)?', re.ASCII
)
_LOWER = str.maketrans({chr(one): chr(one + 32) for one in range(ord("A"), ord("Z") + 1)})


@function(
    "initcap_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="initcap",
    says="A text with each word's first letter in upper case, the others in lower.",
    example="initcap('hi THOMAS')",
    gives="Hi Thomas",
)
def initcap(text: str) -> str:
    """Returns the text with each word's first letter in upper case and the others in lower case; ASCII's only.

    Example:
        >>> initcap("hi THOMAS-x2y")
        'Hi Thomas-X2y'
    """
    return re.sub("[A-Za-z0-9]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)


@function(
    "chr_int4",
    (Kind.INT4,),
    Kind.TEXT,
    sql="chr",
    says="The character of a number.",
    example="chr(65)",
    gives="A",
    fallible=True,
)
def chr_of(number: int) -> str:
    """Returns the character with that code point."""
    if number < 0:
        raise SqlFailure("22023", "character number must be positive")
    if number == 0:
        raise SqlFailure("54000", "null character not permitted")
    if number > 0x10FFFF:
        raise SqlFailure("54000", f"requested character too large for encoding: {number}")
    if 0xD800 <= number <= 0xDFFF:
        raise SqlFailure("54000", f"requested character not valid for encoding: {number}")
    return chr(number)


@function(
    "overlay_text",
    (Kind.TEXT, Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="overlay",
    says="A text or bytea with another in the place of some of it.",
    example="overlay('Txxxxas' PLACING 'hom' FROM 2 FOR 4)",
    gives="Thomas",
    fallible=True,
)
@function("overlay_text_for", (Kind.TEXT, Kind.TEXT, Kind.INT4, Kind.INT4), Kind.TEXT, sql="overlay", fallible=True)
def overlay(text: str, new: str, start: int, count: int | None = None) -> str:
    """Returns `text` with `new` in the place of `count` characters, by default as many, from `start` on.

    Example:
        >>> overlay("Txxxxas", "hom", 2, 4)
        'Thomas'
    """
    replaced = len(new) if count is None else count
    if start <= 0:
        raise SqlFailure("22011", "negative substring length not allowed")
    if start + replaced > 2**31 - 1:
        raise SqlFailure("22003", "integer out of range")
    return text[: start - 1] + new + text[max(0, start + replaced - 1) :]


@function(
    "quote_ident_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="quote_ident",
    says="A name as SQL spells it, quoted where it must be.",
    example="quote_ident('Foo bar')",
    gives='"Foo bar"',
)
def quote_ident(text: str) -> str:
    """Returns the text as an identifier, quoted if it has to be.

    Example:
        >>> quote_ident("a_1"), quote_ident("Foo"), quote_ident("select")
        ('a_1', '"Foo"', '"select"')
    """
    if re.fullmatch("[a-z_][a-z0-9_]*", text) and text not in _RESERVED:
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


@function(
    "parse_ident",
    (Kind.TEXT,),
    Kind.ARRAY,
    sql="parse_ident",
    says="The parts of a qualified name, as SQL reads them; what follows is an error unless it is said to be none.",
    example="parse_ident('Shop.\"Big Orders\"')",
    gives='{shop,"Big Orders"}',
    fallible=True,
    type=list_of(TEXT),
)
@function(
    "parse_ident_strictly",
    (Kind.TEXT, Kind.BOOL),
    Kind.ARRAY,
    sql="parse_ident",
    fallible=True,
    type=list_of(TEXT),
)
def parse_ident(text: str, strict: bool = True) -> list[str]:
    """Returns the identifiers of a qualified name.

    Raises:
        SqlFailure: It is none, or something follows it and `strict` is true.

    Example:
        >>> parse_ident('a . "B""b"'), parse_ident("a.b()", strict=False)
        (['a', 'B"b'], ['a', 'b'])
    """
    failure = SqlFailure("22023", f'string is not a valid identifier: "{text}"')
    found: list[str] = []
    at = 0
    while part := _IDENTIFIER.match(text, at):
        quoted, plain, dot = part.groups()
        if quoted == "":
            raise failure
        found.append(plain.translate(_LOWER) if quoted is None else quoted.replace('""', '"'))
        at = part.end()
        if dot is None:
            if strict and at < len(text):
                raise failure
            return found
    raise failure


@function(
    "quote_literal_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="quote_literal",
    says="A text as a literal of SQL.",
    example="quote_literal(E'O\\'Reilly')",
    gives="'O''Reilly'",
)
def quote_literal(text: str) -> str:
    """Returns the text as a string literal."""
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"{'E' if chr(92) in text else ''}'{doubled}'"


_SPECIFIER = re.compile(r"%(?:(\d+)\$)?(-)?(?:(\d+)|\*(?:(\d+)\$)?)?(.?)", re.DOTALL)


# The binder gathers the arguments' texts.
@function("format_text", (Kind.TEXT, Kind.ARRAY), Kind.TEXT, fallible=True)
def format_text(template: str, arguments: list[str | None]) -> str:
    """Returns the template with its `%s`, `%I` and `%L` replaced by the arguments' texts.

    Example:
        >>> format_text("%s, %2$L|%-5s|", ["a", None, "x"])
        'a, NULL|x    |'
    """
    pieces: list[str] = []
    place, used = 0, 0
    while place < len(template):
        if template[place] != "%":
            end = template.find("%", place)
            end = len(template) if end < 0 else end
            pieces.append(template[place:end])
            place = end
            continue
        if template.startswith("%%", place):
            pieces.append("%")
            place += 2
            continue
        found = _SPECIFIER.match(template, place)
        assert found is not None
        piece, used = _specified(found, arguments, used)
        pieces.append(piece)
        place = found.end()
    return "".join(pieces)


def _specified(found: re.Match[str], arguments: list[str | None], used: int) -> tuple[str, int]:
    position, minus, width_text, width_position, kind = found.groups()
    width, left = _counted(width_text or "0"), minus is not None
    if "*" in found.group()[:-1] or found.group().endswith("*"):
        used = _counted(width_position) if width_position else used + 1
        asked = _argument(arguments, used)
        width = 0 if asked is None else _width(asked)
        left, width = left or width < 0, abs(width)
    if width > _MOST:
        raise SqlFailure("54000", "requested length too large")
    if not kind:
        raise SqlFailure("22023", "unterminated format() type specifier")
    if kind not in "sIL":
        raise SqlFailure("22023", f'unrecognized format() type specifier "{kind}"')
    used = _counted(position) if position else used + 1
    value = _argument(arguments, used)
    if kind == "s":
        text = value or ""
    elif kind == "L":
        text = "NULL" if value is None else quote_literal(value)
    elif value is None:
        raise SqlFailure("22004", "null values cannot be formatted as an SQL identifier")
    else:
        text = quote_ident(value)
    return (text.ljust(width) if left else text.rjust(width)), used


def _counted(digits: str) -> int:
    number = whole_number(digits)
    if number >= 2**31:
        raise SqlFailure("22003", "number is out of range")
    return number


def _width(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text, re.ASCII):
        raise SqlFailure("22P02", f'invalid input syntax for type integer: "{text}"')
    width = whole_number(text)
    if not -(2**31) <= width < 2**31:
        raise SqlFailure("22003", f'value "{text}" is out of range for type integer')
    return width


def _argument(arguments: list[str | None], number: int) -> str | None:
    if number == 0:
        raise SqlFailure("22023", "format specifies argument 0, but arguments are numbered from 1")
    if number > len(arguments):
        raise SqlFailure("22023", "too few arguments for format()")
    return arguments[number - 1]
