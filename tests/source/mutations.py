"""Damage to bytes, drawn from a seeded source: what disks, cables, editors and other people's programs do to a file."""

from __future__ import annotations

import random

#: What is put in: signs of the formats' own grammars, and bytes that are no text.
_PIECES = [
    b'"', b"'", b"\\", b",", b":", b"{", b"}", b"[", b"]", b" ", b"\t", b"\r", b"\n", b"\r\n", b"\0", b"\x1f", b"\x7f",
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xef\xbf\xbf", b"\xe2\x80\xa8",
    b"\\u", b"\\u0000", b"\\ud800", b"\\udc00", b"\\uffff1", b"null", b"NaN", b"-Infinity", b"true", b"1e999999999",
    b"-0", b"00", b"9" * 40, b".", b"-", b"+", b"e", b"0x1", b"''", b'""', b"\\N", b"24:00", b"2013-02-30", b"infinity",
]  # fmt: skip


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Returns `data` with one to four of: bytes flipped, inserted, taken away, doubled, moved; or cut short."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + 12)
        match rng.randrange(7):
            case 0 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 1 | 2:
                data = data[:at] + rng.choice(_PIECES) + data[at:]
            case 3:
                data = data[:at] + rng.choice(_PIECES) + data[end:]
            case 4:
                data = data[:at] + data[end:]
            case 5:
                data = data[:end] + data[at:]
            case _ if rng.randrange(3) == 0:
                data = data[:at]
    return data
