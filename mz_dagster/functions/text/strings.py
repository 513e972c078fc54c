"""Strings with a length, `varchar(n)` and `char(n)`; `uuid` and `bytea`: their texts, and the functions of `bytea`.

A `varchar(n)` is a text that remembers how long it may be: all its functions are text's. A `char(n)` has functions of
its own where its blanks at the end, which comparisons ignore, are seen: matching, `octet_length`. Where such an
overload leads to a function of text, the argument is padded to its length first (`output_bpchar`); everywhere else it
becomes text without those blanks.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind

_UUID = re.compile(r"(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}")
_SPACE = " \t\n\r"
_BACKSLASH = 0x5C


@pure("cast_text_to_uuid")
def uuid_of(text: str) -> str:
    """Returns the canonical text of a uuid; braces around it are allowed, and hyphens between groups of four digits.

    Example:
        >>> uuid_of("{A0EEBC999C0B4EF8BB6D6BB9BD380A11}")
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
    """
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not _UUID.fullmatch(inner):
        raise SqlFailure("22P02", f'invalid input syntax for type uuid: "{text}"')
    digits = inner.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@pure("cast_text_to_bytea")
def bytea_of(text: str) -> bytes:
    r"""Returns the bytes that a text spells, in PostgreSQL's hex form (`\x00ff`) or its escape form (`a\000`).

    Example:
        >>> bytea_of(r"\x00ff"), bytea_of(r"a\\\377")
        (b'\x00\xff', b'a\\\xff')
    """
    return _hex(text[2:]) if text.startswith("\\x") else _escaped(text, "bytea")


def _hex(text: str) -> bytes:
    found = bytearray()
    position = 0
    while position < len(text):
        if text[position] in _SPACE:
            position += 1
            continue
        high = _digit(text[position])
        if position + 1 == len(text):
            raise SqlFailure("22023", "invalid hexadecimal data: odd number of digits")
        found.append(16 * high + _digit(text[position + 1]))
        position += 2
    return bytes(found)


def _digit(character: str) -> int:
    if character not in "0123456789abcdefABCDEF":
        raise SqlFailure("22023", f'invalid hexadecimal digit: "{character}"')
    return int(character, 16)


def _escaped(text: str, type_: str) -> bytes:
    raw = text.encode()
    found = bytearray()
    position = 0
    while position < len(raw):
        if raw[position] != _BACKSLASH:
            found.append(raw[position])
            position += 1
        elif re.fullmatch(rb"[0-3][0-7]{2}", raw[position + 1 : position + 4]):
            found.append(int(raw[position + 1 : position + 4], 8))
            position += 4
        elif raw[position + 1 : position + 2] == b"\\":
            found.append(_BACKSLASH)
            position += 2
        else:
            raise SqlFailure("22P02", f"invalid input syntax for type {type_}")
    return bytes(found)


# The text with its blanks: what concat() and casts to other kinds than text see.
@function("output_bpchar", (Kind.CHAR,), Kind.TEXT, of_call=True)
def padded(call: Call) -> Callable[[str], str]:
    """Returns the function that pads a text to its type's length."""
    length = call.arguments[0].type.length
    return lambda value: value.ljust(length)


@function("concat_bytea", (Kind.BYTEA, Kind.BYTEA), Kind.BYTEA, sql="||")
def concat(left: bytes, right: bytes) -> bytes:
    """Returns one after the other."""
    return left + right


@function("octet_length_bytea", (Kind.BYTEA,), Kind.INT4, sql=("length", "octet_length"))
def octet_length(value: bytes) -> int:
    """Returns how many bytes there are."""
    return len(value)


@function("bit_length_bytea", (Kind.BYTEA,), Kind.INT4, sql="bit_length")
def bit_length(value: bytes) -> int:
    """Returns how many bits there are."""
    return 8 * len(value)


@function("md5_bytea", (Kind.BYTEA,), Kind.TEXT, sql="md5")
def md5(value: bytes) -> str:
    """Returns the MD5 hash, in hexadecimal."""
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


@function(
    "sha224_bytea",
    (Kind.BYTEA,),
    Kind.BYTEA,
    sql="sha224",
    says="The SHA-224 hash of a bytea.",
    example="sha224('abc'::bytea)",
    gives="\\x23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
)
def sha224(value: bytes) -> bytes:
    """Returns the SHA-224 hash."""
    return hashlib.sha224(value).digest()


@function(
    "sha256_bytea",
    (Kind.BYTEA,),
    Kind.BYTEA,
    sql="sha256",
    says="The SHA-256 hash of a bytea.",
    example="sha256('abc'::bytea)",
    gives="\\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
)
def sha256(value: bytes) -> bytes:
    """Returns the SHA-256 hash."""
    return hashlib.sha256(value).digest()


@function(
    "sha384_bytea",
    (Kind.BYTEA,),
    Kind.BYTEA,
    sql="sha384",
    says="The SHA-384 hash of a bytea.",
    example="sha384('abc'::bytea)",
    gives="\\xcb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
)
def sha384(value: bytes) -> bytes:
    """Returns the SHA-384 hash."""
    return hashlib.sha384(value).digest()


@function(
    "sha512_bytea",
    (Kind.BYTEA,),
    Kind.BYTEA,
    sql="sha512",
    says="The SHA-512 hash of a bytea.",
    example="sha512('abc'::bytea)",
    gives="\\xddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
)
def sha512(value: bytes) -> bytes:
    """Returns the SHA-512 hash."""
    return hashlib.sha512(value).digest()


@function("overlay_bytea", (Kind.BYTEA, Kind.BYTEA, Kind.INT4), Kind.BYTEA, sql="overlay", fallible=True)
def overlay(value: bytes, new: bytes, start: int) -> bytes:
    """Returns `value` with `new` in the place of as many bytes, from `start` on."""
    return overlay_for(value, new, start, len(new))


@function("overlay_bytea_for", (Kind.BYTEA, Kind.BYTEA, Kind.INT4, Kind.INT4), Kind.BYTEA, sql="overlay", fallible=True)
def overlay_for(value: bytes, new: bytes, start: int, count: int) -> bytes:
    """Returns `value` with `new` in the place of `count` bytes from `start` on; a negative count repeats some.

    Example:
        >>> overlay_for(b"abcdef", b"--", 2, 3)
        b'a--ef'
    """
    if start <= 0:
        raise SqlFailure("22011", "negative substring length not allowed")
    if start + count > 2**31 - 1:
        raise SqlFailure("22003", "integer out of range")
    return value[: start - 1] + new + value[max(0, start + count - 1) :]


@function("btrim_bytea", (Kind.BYTEA, Kind.BYTEA), Kind.BYTEA, sql="btrim")
def btrim(value: bytes, characters: bytes) -> bytes:
    """Returns `value` without the bytes of `characters` at both ends."""
    return value.strip(characters)


@function("ltrim_bytea", (Kind.BYTEA, Kind.BYTEA), Kind.BYTEA, sql="ltrim")
def ltrim(value: bytes, characters: bytes) -> bytes:
    """Returns `value` without the bytes of `characters` at its start."""
    return value.lstrip(characters)


@function("rtrim_bytea", (Kind.BYTEA, Kind.BYTEA), Kind.BYTEA, sql="rtrim")
def rtrim(value: bytes, characters: bytes) -> bytes:
    """Returns `value` without the bytes of `characters` at its end."""
    return value.rstrip(characters)


def _checked(index: int, size: int) -> int:
    if not 0 <= index < size:
        raise SqlFailure("2202E", f"index {index} out of valid range, 0..{size - 1}")
    return index


@function(
    "get_byte_bytea",
    (Kind.BYTEA, Kind.INT4),
    Kind.INT4,
    sql="get_byte",
    says="A byte of a bytea, from 0 on.",
    example="get_byte('\\x1234567890'::bytea, 4)",
    gives="144",
    fallible=True,
)
def get_byte(value: bytes, index: int) -> int:
    """Returns the byte at `index`, counted from 0."""
    return value[_checked(index, len(value))]


@function(
    "set_byte_bytea",
    (Kind.BYTEA, Kind.INT4, Kind.INT4),
    Kind.BYTEA,
    sql="set_byte",
    says="A bytea with another byte at a place.",
    example="set_byte('\\x1234567890'::bytea, 4, 64)",
    gives="\\x1234567840",
    fallible=True,
)
def set_byte(value: bytes, index: int, byte: int) -> bytes:
    """Returns `value` with another byte at `index`, of which the lowest eight bits count."""
    _checked(index, len(value))
    return value[:index] + bytes((byte & 255,)) + value[index + 1 :]


@function(
    "get_bit_bytea",
    (Kind.BYTEA, Kind.INT8),
    Kind.INT4,
    sql="get_bit",
    says="A bit of a bytea, from 0 on.",
    example="get_bit('\\x1234567890'::bytea, 30)",
    gives="1",
    fallible=True,
)
def get_bit(value: bytes, index: int) -> int:
    """Returns the bit at `index`, the lowest of the first byte being 0."""
    _checked(index, 8 * len(value))
    return value[index // 8] >> index % 8 & 1


@function(
    "set_bit_bytea",
    (Kind.BYTEA, Kind.INT8, Kind.INT4),
    Kind.BYTEA,
    sql="set_bit",
    says="A bytea with another bit at a place.",
    example="set_bit('\\x1234567890'::bytea, 30, 0)",
    gives="\\x1234563890",
    fallible=True,
)
def set_bit(value: bytes, index: int, bit: int) -> bytes:
    """Returns `value` with another bit at `index`."""
    _checked(index, 8 * len(value))
    if bit not in (0, 1):
        raise SqlFailure("22023", "new bit must be 0 or 1")
    byte = value[index // 8] & ~(1 << index % 8) | bit << index % 8
    return set_byte(value, index // 8, byte)


@function(
    "bit_count_bytea",
    (Kind.BYTEA,),
    Kind.INT8,
    sql="bit_count",
    says="How many bits of a bytea are set.",
    example="bit_count('\\x1234567890'::bytea)",
    gives="15",
)
def bit_count(value: bytes) -> int:
    """Returns how many bits are set."""
    return sum(byte.bit_count() for byte in value)


@function(
    "encode_bytea",
    (Kind.BYTEA, Kind.TEXT),
    Kind.TEXT,
    sql="encode",
    says="A bytea as text: `base64`, `hex` or `escape`.",
    example="encode('123'::bytea, 'base64')",
    gives="MTIz",
    fallible=True,
)
def encode(value: bytes, form: str) -> str:
    r"""Returns bytes as text, in the form `hex`, `base64` or `escape`.

    Example:
        >>> encode(b"a\x00\\", "hex"), encode(b"a\x00\\", "escape")
        ('61005c', 'a\\000\\\\')
    """
    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[start : start + 76] for start in range(0, len(text), 76))
        case "escape":
            special = {0: "\\000", _BACKSLASH: "\\\\"}
            return "".join(special.get(one) or (chr(one) if one < 128 else f"\\{one:03o}") for one in value)
        case _:
            raise SqlFailure("22023", f'unrecognized encoding: "{form}"')


@function(
    "decode_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BYTEA,
    sql="decode",
    says="The bytea that such a text is.",
    example="decode('MTIz', 'base64')",
    gives="\\x313233",
    fallible=True,
)
def decode(text: str, form: str) -> bytes:
    r"""Returns the bytes that `encode` made a text of.

    Example:
        >>> decode("61 5C", "hex"), decode("YVw=", "base64")
        (b'a\\', b'a\\')
    """
    match form.lower():
        case "hex":
            return _hex(text)
        case "base64":
            return _base64(text)
        case "escape":
            return _escaped(text, "bytea")
        case _:
            raise SqlFailure("22023", f'unrecognized encoding: "{form}"')


_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _base64(text: str) -> bytes:
    """Returns the bytes, as PostgreSQL reads them: what follows the end of a group of four is another group."""
    found = bytearray()
    group: list[int] = []
    kept = 3
    for character in text:
        if character in _SPACE:
            continue
        if character == "=":
            if kept == 3:
                if len(group) not in (2, 3):
                    raise SqlFailure("22023", 'unexpected "=" while decoding base64 sequence')
                kept = len(group) - 1
            group.append(0)
        elif character in _BASE64:
            group.append(_BASE64.index(character))
        else:
            raise SqlFailure("22023", f'invalid symbol "{character}" found while decoding base64 sequence')
        if len(group) == 4:
            bits = group[0] << 18 | group[1] << 12 | group[2] << 6 | group[3]
            found += bits.to_bytes(3, "big")[:kept]
            group.clear()
    if group:
        raise SqlFailure("22023", "invalid base64 end sequence")
    return bytes(found)


_LATIN1 = ("latin1", "iso88591")
_UTF8 = ("utf8", "unicode")


def _encoding(name: str) -> str:
    """Returns PostgreSQL's name of an encoding, which Python knows, too."""
    word = re.sub("[^a-z0-9]", "", name.lower())
    if word in _UTF8:
        return "UTF8"
    if word in _LATIN1:
        return "LATIN1"
    raise SqlFailure("0A000", f'encoding "{name}" is not supported')


@function(
    "convert_from_bytea",
    (Kind.BYTEA, Kind.TEXT),
    Kind.TEXT,
    sql="convert_from",
    says="The text whose bytes, in an encoding, a bytea has.",
    example="convert_from('\\x74c3a9'::bytea, 'UTF8')",
    gives="té",
    fallible=True,
)
def convert_from(value: bytes, encoding: str) -> str:
    """Returns the text that bytes spell in an encoding: UTF8 or LATIN1."""
    name = _encoding(encoding)
    # No text holds a zero byte.
    readable, zero, _ = value.partition(b"\0")
    try:
        text = readable.decode(name)
    except UnicodeDecodeError as error:
        raise _invalid_bytes(name, _announced(value[error.start :])) from None
    if zero:
        raise _invalid_bytes(name, zero)
    return text


def _invalid_bytes(encoding: str, found: bytes) -> SqlFailure:
    shown = " ".join(f"0x{byte:02x}" for byte in found)
    return SqlFailure("22021", f'invalid byte sequence for encoding "{encoding}": {shown}')


def _announced(rest: bytes) -> bytes:
    """Returns the bytes of the character that cannot be read, as many as its first byte announces."""
    first = rest[0]
    return rest[: 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1]


@function(
    "convert_to_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BYTEA,
    sql="convert_to",
    says="A text's bytes in an encoding.",
    example="convert_to('té', 'UTF8')",
    gives="\\x74c3a9",
    fallible=True,
)
def convert_to(text: str, encoding: str) -> bytes:
    """Returns the bytes that spell a text in an encoding: UTF8 or LATIN1."""
    try:
        return text.encode(_encoding(encoding))
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
        raise SqlFailure(
            "22P05",
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding "LATIN1"',
        ) from None
