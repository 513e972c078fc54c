"""Functions of text's characters, which Spark has, too; some are of bytes as well.

Positions count code points; `lower` and `upper` touch ASCII letters only, as the C collation has it.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable
from typing import AnyStr

from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.scalars.types import Kind

#: The most bytes that a text made by `repeat`, `lpad` or `rpad` may have. PostgreSQL allows 1 GB; a few rows of that
#: would end the Spark server, and a row must never end a run.
LONGEST = 16 * 2**20
#: What `||` shows behind or before a text: PostgreSQL's `text || anynonarray` and `anynonarray || text`.
_SHOWN = (
    *(Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED),
    *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.MZ_TIMESTAMP, Kind.TIME, Kind.TIMETZ, Kind.INTERVAL),
    *(Kind.UUID, Kind.BYTEA, Kind.JSON, Kind.JSONB, Kind.ENUM),
)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


@function(
    "concat_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="||",
    says="Texts, arrays or jsonb one after the other.",
    example="'a' || 1",
    gives="a1",
    signatures=tuple(pair for kind in _SHOWN for pair in ((Kind.TEXT, kind), (kind, Kind.TEXT))),
)
def concat(left: str, right: str) -> str:
    """Returns one text behind the other."""
    return left + right


@function(
    "length_text",
    (Kind.TEXT,),
    Kind.INT4,
    sql="length",
    says="How many characters a text has, or bytes a bytea.",
    example="length('jösé')",
    gives="4",
    also=(
        Named("char_length", "How many characters a text has.", "char_length('jösé')", "4"),
        Named("character_length", "The same as `char_length`.", "character_length('jösé')", "4"),
    ),
)
def length(text: str) -> int:
    """Returns how many characters a text has."""
    return len(text)


@function(
    "octet_length_text",
    (Kind.TEXT,),
    Kind.INT4,
    sql="octet_length",
    says="How many bytes a text or bytea has.",
    example="octet_length('jösé')",
    gives="6",
    signatures=((Kind.CHAR,),),
)
def octet_length(text: str) -> int:
    """Returns how many bytes a text has in UTF-8."""
    return len(text.encode())


@function(
    "bit_length_text",
    (Kind.TEXT,),
    Kind.INT4,
    sql="bit_length",
    says="Eight times `octet_length`.",
    example="bit_length('jösé')",
    gives="48",
)
def bit_length(text: str) -> int:
    """Returns how many bits a text has in UTF-8."""
    return 8 * octet_length(text)


@function(
    "lower_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="lower",
    says="A text in lower case.",
    example="lower('TOM')",
    gives="tom",
)
def lower(text: str) -> str:
    """Returns the text with its ASCII letters in lower case."""
    return text.translate(_LOWER)


@function(
    "upper_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="upper",
    says="A text in upper case.",
    example="upper('tom')",
    gives="TOM",
)
def upper(text: str) -> str:
    """Returns the text with its ASCII letters in upper case."""
    return text.translate(_UPPER)


@function(
    "substring_text_from",
    (Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="substring",
    says="Characters or bytes from a place on, or so many of them; what a regular expression matches.",
    example="substring('Thomas' FROM 2 FOR 3)",
    gives="hom",
    also=(
        Named("substr", "Characters or bytes from a place on, or so many of them.", "substr('alphabet', 3, 2)", "ph"),
    ),
)
@function("substring_bytea_from", (Kind.BYTEA, Kind.INT4), Kind.BYTEA, sql=("substring", "substr"))
def substring(text: AnyStr, start: int) -> AnyStr:
    """Returns the characters or bytes from the one with the number `start` on, counted from 1."""
    return text[max(0, start - 1) :]


@function(
    "substring_text_from_for", (Kind.TEXT, Kind.INT4, Kind.INT4), Kind.TEXT, sql=("substring", "substr"), fallible=True
)
@function(
    "substring_bytea_from_for",
    (Kind.BYTEA, Kind.INT4, Kind.INT4),
    Kind.BYTEA,
    sql=("substring", "substr"),
    fallible=True,
)
def substring_for(text: AnyStr, start: int, count: int) -> AnyStr:
    """Returns `count` characters or bytes from `start` on; those before the first one count, too.

    Example:
        >>> substring_for("abc", 0, 2), substring_for(b"abc", -1, 3)
        ('a', b'a')
    """
    if count < 0:
        raise SqlFailure("22011", "negative substring length not allowed")
    return text[max(0, start - 1) : max(0, start + count - 1)]


@function(
    "left_text",
    (Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="left",
    says="So many first characters, or all but so many last ones.",
    example="left('abcde', -2)",
    gives="abc",
)
def left(text: str, count: int) -> str:
    """Returns the first characters; of a negative count, all but so many last ones."""
    return text[:count] if count >= 0 else text[: max(0, len(text) + count)]


@function(
    "right_text",
    (Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="right",
    says="So many last characters, or all but so many first ones.",
    example="right('abcde', 2)",
    gives="de",
)
def right(text: str, count: int) -> str:
    """Returns the last characters; of a negative count, all but so many first ones."""
    if count == -(2**31):
        return text  # PostgreSQL negates the count in 32 bits
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


@function(
    "btrim_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="btrim",
    says="A text or bytea without blanks, or certain characters, at both ends.",
    example="btrim('xyxtrimyyx', 'xyz')",
    gives="trim",
)
@function("btrim_text_text", (Kind.TEXT, Kind.TEXT), Kind.TEXT, sql="btrim")
def btrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its ends."""
    return text.strip(characters)


@function(
    "ltrim_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="ltrim",
    says="Likewise at the beginning.",
    example="ltrim('zzzytest', 'xyz')",
    gives="test",
)
@function("ltrim_text_text", (Kind.TEXT, Kind.TEXT), Kind.TEXT, sql="ltrim")
def ltrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its beginning."""
    return text.lstrip(characters)


@function(
    "rtrim_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="rtrim",
    says="Likewise at the end.",
    example="rtrim('testxxzx', 'xyz')",
    gives="test",
)
@function("rtrim_text_text", (Kind.TEXT, Kind.TEXT), Kind.TEXT, sql="rtrim")
def rtrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its end."""
    return text.rstrip(characters)


@function(
    "replace_text",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="replace",
    says="A text with each occurrence of a second one replaced by a third.",
    example="replace('abcdefabcdef', 'cd', 'XX')",
    gives="abXXefabXXef",
)
def replace(text: str, search: str, replacement: str) -> str:
    """Returns the text with `replacement` for `search`, wherever it is; for nothing, nothing is replaced."""
    return text.replace(search, replacement) if search else text


@function(
    "translate_text",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="translate",
    says="A text with each character of a second one replaced by that of a third at its place, or gone.",
    example="translate('12345', '143', 'ax')",
    gives="a2x5",
)
def translate(text: str, characters: str, others: str) -> str:
    """Returns the text with each of the characters replaced by the one at its place in `others`, or left out.

    Example:
        >>> translate("12345", "143", "ax")
        'a2x5'
    """
    table: dict[int, str | None] = {}
    for place, character in enumerate(characters):
        table.setdefault(ord(character), others[place] if place < len(others) else None)
    return text.translate(table)


@function(
    "strpos_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.INT4,
    sql="strpos",
    says="Where a text first occurs in another, from 1 on; 0 if it does not.",
    example="strpos('high', 'ig')",
    gives="2",
    also=(Named("position", "The same: `position(a IN b)`.", "position('om' IN 'Thomas')", "3"),),
)
@function("position_bytea", (Kind.BYTEA, Kind.BYTEA), Kind.INT4, sql="position")
def strpos(text: AnyStr, part: AnyStr) -> int:
    """Returns where a part begins, counted from 1; 0 if it is not there."""
    return text.find(part) + 1


@function(
    "starts_with_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="starts_with",
    says="Whether a text begins with another.",
    example="starts_with('alphabet', 'alph')",
    gives="true",
    also=(Named("^@", "The same as `starts_with`.", "'alphabet' ^@ 'alph'", "true"),),
)
def starts_with(text: str, prefix: str) -> bool:
    """Returns whether a text begins with another."""
    return text.startswith(prefix)


@function(
    "lpad_text",
    (Kind.TEXT, Kind.INT4, Kind.TEXT),
    Kind.TEXT,
    sql="lpad",
    says="A text brought to a length by blanks, or a text, before it, or cut.",
    example="lpad('hi', 5, 'xy')",
    gives="xyxhi",
    fallible=True,
)
@function("lpad_text_space", (Kind.TEXT, Kind.INT4), Kind.TEXT, sql="lpad", fallible=True)
def lpad(text: str, count: int, fill: str = " ") -> str:
    """Returns the text's first characters, or it behind so much of `fill` that it has as many as are asked for.

    Example:
        >>> lpad("hi", 5, "xy"), lpad("hi", 1, "xy")
        ('xyxhi', 'h')
    """
    return _padded(text, count, fill, lambda padding: padding + text)


@function(
    "rpad_text",
    (Kind.TEXT, Kind.INT4, Kind.TEXT),
    Kind.TEXT,
    sql="rpad",
    says="Likewise behind it.",
    example="rpad('hi', 5, 'xy')",
    gives="hixyx",
    fallible=True,
)
@function("rpad_text_space", (Kind.TEXT, Kind.INT4), Kind.TEXT, sql="rpad", fallible=True)
def rpad(text: str, count: int, fill: str = " ") -> str:
    """Returns the text's first characters, or it before so much of `fill` that it has as many as are asked for."""
    return _padded(text, count, fill, lambda padding: text + padding)


def _padded(text: str, count: int, fill: str, join: Callable[[str], str]) -> str:
    if not fill:
        return text[: max(0, count)]
    if count > LONGEST // 4:  # PostgreSQL reckons 4 bytes a character
        raise _too_long()
    missing = count - len(text)
    return join((fill * (missing // len(fill) + 1))[:missing]) if missing > 0 else text[: max(0, count)]


@function(
    "repeat_text",
    (Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="repeat",
    says="A text so many times.",
    example="repeat('Pg', 4)",
    gives="PgPgPgPg",
    fallible=True,
)
def repeat(text: str, count: int) -> str:
    """Returns the text so many times."""
    if octet_length(text) * count > LONGEST:
        raise _too_long()
    return text * count


def _too_long() -> SqlFailure:
    return SqlFailure("54000", "requested length too large")


@function(
    "reverse_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="reverse",
    says="The characters from the last to the first.",
    example="reverse('abcde')",
    gives="edcba",
)
def reverse(text: str) -> str:
    """Returns the characters from the last to the first."""
    return text[::-1]


@function(
    "md5_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="md5",
    says="The MD5 hash, in hexadecimal.",
    example="md5('abc')",
    gives="900150983cd24fb0d6963f7d28e17f72",
)
def md5(text: str) -> str:
    """Returns the MD5 of the text's bytes in UTF-8, in hexadecimal digits."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@function(
    "ascii_text",
    (Kind.TEXT,),
    Kind.INT4,
    sql="ascii",
    says="The number of the first character.",
    example="ascii('x')",
    gives="120",
)
def code_point(text: str) -> int:
    """Returns the code point of the first character, 0 if there is none."""
    return ord(text[0]) if text else 0


@function(
    "split_part_text",
    (Kind.TEXT, Kind.TEXT, Kind.INT4),
    Kind.TEXT,
    sql="split_part",
    says="One of the parts between separators, from 1 on, or from the end.",
    example="split_part('a~@~b~@~c', '~@~', 2)",
    gives="b",
    fallible=True,
)
def split_part(text: str, delimiter: str, field: int) -> str:
    """Returns the part of that number between delimiters, from the end if it is negative; nothing if there is none.

    Example:
        >>> split_part("a,b,c", ",", 2), split_part("a,b,c", ",", -1), split_part("a", ",", 5)
        ('b', 'c', '')
    """
    if field == 0:
        raise SqlFailure("22023", "field position must not be zero")
    parts = text.split(delimiter) if delimiter else [text]
    place = field - 1 if field > 0 else len(parts) + field
    return parts[place] if 0 <= place < len(parts) else ""
