"""Functions of text's characters, which Spark has, too; some are of bytes as well.

Positions count code points; `lower` and `upper` touch ASCII letters only, as the C collation has it.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable
from typing import AnyStr

from mz_dagster.functions.registry import SqlFailure, pure

#: The most bytes that a text made by `repeat`, `lpad` or `rpad` may have. PostgreSQL allows 1 GB; a few rows of that
#: would end the Spark server, and a row must never end a run.
LONGEST = 16 * 2**20
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


@pure("concat_text")
def concat(left: str, right: str) -> str:
    """Returns one text behind the other."""
    return left + right


@pure("length_text")
def length(text: str) -> int:
    """Returns how many characters a text has."""
    return len(text)


@pure("octet_length_text")
def octet_length(text: str) -> int:
    """Returns how many bytes a text has in UTF-8."""
    return len(text.encode())


@pure("bit_length_text")
def bit_length(text: str) -> int:
    """Returns how many bits a text has in UTF-8."""
    return 8 * octet_length(text)


@pure("lower_text")
def lower(text: str) -> str:
    """Returns the text with its ASCII letters in lower case."""
    return text.translate(_LOWER)


@pure("upper_text")
def upper(text: str) -> str:
    """Returns the text with its ASCII letters in upper case."""
    return text.translate(_UPPER)


@pure("substring_text_from", "substring_bytea_from")
def substring(text: AnyStr, start: int) -> AnyStr:
    """Returns the characters or bytes from the one with the number `start` on, counted from 1."""
    return text[max(0, start - 1) :]


@pure("substring_text_from_for", "substring_bytea_from_for")
def substring_for(text: AnyStr, start: int, count: int) -> AnyStr:
    """Returns `count` characters or bytes from `start` on; those before the first one count, too.

    Example:
        >>> substring_for("abc", 0, 2), substring_for(b"abc", -1, 3)
        ('a', b'a')
    """
    if count < 0:
        raise SqlFailure("22011", "negative substring length not allowed")
    return text[max(0, start - 1) : max(0, start + count - 1)]


@pure("left_text")
def left(text: str, count: int) -> str:
    """Returns the first characters; of a negative count, all but so many last ones."""
    return text[:count] if count >= 0 else text[: max(0, len(text) + count)]


@pure("right_text")
def right(text: str, count: int) -> str:
    """Returns the last characters; of a negative count, all but so many first ones."""
    if count == -(2**31):
        return text  # PostgreSQL negates the count in 32 bits
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


@pure("btrim_text", "btrim_text_text")
def btrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its ends."""
    return text.strip(characters)


@pure("ltrim_text", "ltrim_text_text")
def ltrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its beginning."""
    return text.lstrip(characters)


@pure("rtrim_text", "rtrim_text_text")
def rtrim(text: str, characters: str = " ") -> str:
    """Returns the text without any of the characters at its end."""
    return text.rstrip(characters)


@pure("replace_text")
def replace(text: str, search: str, replacement: str) -> str:
    """Returns the text with `replacement` for `search`, wherever it is; for nothing, nothing is replaced."""
    return text.replace(search, replacement) if search else text


@pure("translate_text")
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


@pure("strpos_text", "position_bytea")
def strpos(text: AnyStr, part: AnyStr) -> int:
    """Returns where a part begins, counted from 1; 0 if it is not there."""
    return text.find(part) + 1


@pure("starts_with_text")
def starts_with(text: str, prefix: str) -> bool:
    """Returns whether a text begins with another."""
    return text.startswith(prefix)


@pure("lpad_text", "lpad_text_space")
def lpad(text: str, count: int, fill: str = " ") -> str:
    """Returns the text's first characters, or it behind so much of `fill` that it has as many as are asked for.

    Example:
        >>> lpad("hi", 5, "xy"), lpad("hi", 1, "xy")
        ('xyxhi', 'h')
    """
    return _padded(text, count, fill, lambda padding: padding + text)


@pure("rpad_text", "rpad_text_space")
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


@pure("repeat_text")
def repeat(text: str, count: int) -> str:
    """Returns the text so many times."""
    if octet_length(text) * count > LONGEST:
        raise _too_long()
    return text * count


def _too_long() -> SqlFailure:
    return SqlFailure("54000", "requested length too large")


@pure("reverse_text")
def reverse(text: str) -> str:
    """Returns the characters from the last to the first."""
    return text[::-1]


@pure("md5_text")
def md5(text: str) -> str:
    """Returns the MD5 of the text's bytes in UTF-8, in hexadecimal digits."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@pure("ascii_text")
def code_point(text: str) -> int:
    """Returns the code point of the first character, 0 if there is none."""
    return ord(text[0]) if text else 0


@pure("split_part_text")
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
